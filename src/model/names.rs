//! Names of keywords, symbols and strings in data.

use std::rc::Rc;

use flowstone_lang::value::Value;

/// Returns the name of a keyword, symbol or string.
pub fn name_of(value: &Value) -> Option<Rc<str>> {
    match value {
        Value::Keyword(keyword) => Some(Rc::from(&keyword.to_string()[1..])),
        Value::Text(text) => Some(Rc::from(&***text)),
        other => other
            .as_symbol()
            .map(|symbol| Rc::from(&*symbol.to_string())),
    }
}
