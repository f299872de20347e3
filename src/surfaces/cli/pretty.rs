//! Values as EDN over several lines, for people to read.

use flowstone_lang::value::{PrintOptions, Result, Value};
use flowstone_lang::vm::Vm;

const WIDTH: usize = 88;

/// Prints a value: on one line where it fits, else an item a line.
///
/// # Errors
/// Whatever computing a lazy part throws.
pub fn pretty(vm: &mut Vm, value: &Value) -> Result<String> {
    let mut out = String::new();
    write(&mut out, vm, value, 0)?;
    Ok(out)
}

fn write(out: &mut String, vm: &mut Vm, value: &Value, indent: usize) -> Result<()> {
    let line = vm.print(value, PrintOptions::READABLE)?;
    if indent + line.chars().count() <= WIDTH {
        out.push_str(&line);
        return Ok(());
    }
    match value {
        Value::Map(map) => {
            out.push('{');
            for (idx, (key, value)) in map.iter().enumerate() {
                new_line(out, idx, indent + 1);
                let key = vm.print(key, PrintOptions::READABLE)?;
                out.push_str(&key);
                out.push(' ');
                let column = indent + 2 + key.chars().count();
                write(out, vm, value, column)?;
            }
            out.push('}');
        }
        Value::Vector(vector) => {
            let items: Vec<Value> = vector.iter().cloned().collect();
            sequence(out, vm, ("[", "]"), &items, indent)?;
        }
        Value::Set(set) => {
            let items: Vec<Value> = set.iter().cloned().collect();
            sequence(out, vm, ("#{", "}"), &items, indent)?;
        }
        Value::List(_) | Value::Seq(_) | Value::Lazy(_) => {
            let items = vm.items(value.clone())?;
            sequence(out, vm, ("(", ")"), &items, indent)?;
        }
        _ => out.push_str(&line),
    }
    Ok(())
}

fn sequence(
    out: &mut String,
    vm: &mut Vm,
    (open, close): (&str, &str),
    items: &[Value],
    indent: usize,
) -> Result<()> {
    out.push_str(open);
    let indent = indent + open.len();
    for (idx, item) in items.iter().enumerate() {
        new_line(out, idx, indent);
        write(out, vm, item, indent)?;
    }
    out.push_str(close);
    Ok(())
}

fn new_line(out: &mut String, idx: usize, indent: usize) {
    if idx > 0 {
        out.push('\n');
        out.push_str(&" ".repeat(indent));
    }
}
