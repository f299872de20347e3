//! Values as EDN over several lines, for people to read.

use flowstone_lang::value::{PrintOptions, Unforced, Value, print_value};

const WIDTH: usize = 88;

/// Prints stored data: on one line if it fits, otherwise one item per line.
pub fn pretty(value: &Value) -> String {
    pretty_at(value, 0)
}

/// Prints stored data that begins at a column.
pub fn pretty_at(value: &Value, column: usize) -> String {
    let mut out = String::new();
    write(&mut out, value, column);
    out
}

fn write(out: &mut String, value: &Value, indent: usize) {
    let line = line(value);
    if indent + line.chars().count() <= WIDTH {
        out.push_str(&line);
        return;
    }
    match value {
        Value::Map(map) => {
            out.push('{');
            for (idx, (key, value)) in map.iter().enumerate() {
                new_line(out, idx, indent + 1);
                let key = self::line(key);
                out.push_str(&key);
                out.push(' ');
                write(out, value, indent + 2 + key.chars().count());
            }
            out.push('}');
        }
        Value::Vector(vector) => items(out, ("[", "]"), vector.iter(), indent),
        Value::Set(set) => items(out, ("#{", "}"), set.iter(), indent),
        Value::List(list) => {
            let parts: Vec<&Value> = list.iter().collect();
            items(out, ("(", ")"), parts.into_iter(), indent);
        }
        // Other values have no parts, or only parts that are not data.
        _ => out.push_str(&line),
    }
}

fn line(value: &Value) -> String {
    let mut out = String::new();
    match print_value(&mut out, &mut Unforced, value, PrintOptions::READABLE) {
        Ok(()) => out,
        Err(_) => format!("#<{}>", value.kind()),
    }
}

fn items<'a>(
    out: &mut String,
    (open, close): (&str, &str),
    items: impl Iterator<Item = &'a Value>,
    indent: usize,
) {
    out.push_str(open);
    let indent = indent + open.len();
    for (idx, item) in items.enumerate() {
        new_line(out, idx, indent);
        write(out, item, indent);
    }
    out.push_str(close);
}

fn new_line(out: &mut String, idx: usize, indent: usize) {
    if idx > 0 {
        out.push('\n');
        out.push_str(&" ".repeat(indent));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_on_a_line() {
        let value = Value::vector([Value::Int(1), Value::keyword("a")]);
        assert_eq!(pretty(&value), "[1 :a]");
    }

    #[test]
    fn what_is_wide_gets_an_item_a_line() {
        let text = Value::text("x".repeat(50));
        let inner = Value::vector([text.clone(), text.clone()]);
        let value = Value::map([(Value::keyword("key"), inner)]);
        let x = "x".repeat(50);
        assert_eq!(
            pretty(&value),
            format!("{{:key [\"{x}\"\n       \"{x}\"]}}")
        );
    }
}
