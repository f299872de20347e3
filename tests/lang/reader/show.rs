//! Forms as text, implemented separately from the printer so that reader and printer cannot share an error.

use flowstone_lang::value::{Object, Value};

pub fn show_all(forms: &[Value]) -> String {
    joined(forms.iter())
}

pub fn show(value: &Value) -> String {
    let meta = match value {
        Value::Object(_) => Value::Nil,
        _ => value.meta(),
    };
    let plain = match value {
        Value::Nil => "nil".to_owned(),
        Value::Bool(bool) => bool.to_string(),
        Value::Int(int) => int.to_string(),
        Value::Float(float) => format!("{float:?}f"),
        Value::BigInt(int) => format!("{int}N"),
        Value::Ratio(ratio) => ratio.to_string(),
        Value::Decimal(decimal) => format!("{decimal}M"),
        Value::Char(char) => format!("{char:?}"),
        Value::Keyword(keyword) => keyword.to_string(),
        Value::Symbol(symbol) => symbol.to_string(),
        Value::Name(name) => name.symbol.to_string(),
        Value::Text(text) => format!("{:?}", text.as_str()),
        Value::Vector(vector) => format!("[{}]", joined(vector.iter())),
        Value::List(list) => format!("({})", joined(list.iter())),
        Value::Set(set) => format!("#{{{}}}", joined(set.iter())),
        Value::Map(map) => {
            let entries: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{} {}", show(key), show(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Object(object) => match &**object {
            Object::Regex { source, .. } => format!("#\"{source}\""),
            Object::Inst(millis) => format!("#inst<{millis}>"),
            Object::Uuid(bits) => format!("#uuid<{bits:032x}>"),
            Object::Tagged { tag, form } => format!("#{tag} {}", show(form)),
            _ => object.kind().to_owned(),
        },
        _ => value.kind().to_owned(),
    };
    if meta.is_nil() {
        plain
    } else {
        format!("^{} {plain}", show(&meta))
    }
}

fn joined<'a>(items: impl Iterator<Item = &'a Value>) -> String {
    let items: Vec<String> = items.map(show).collect();
    items.join(" ")
}
