//! Values of parameters as code. A text that begins with `=` is a template, whose parts in `{{ }}` are JavaScript: paths into the
//! data of nodes and literals become code, everything else is refused.

use serde_json::Value as Json;

/// Returns the code for the data of a node: of the one that precedes (`None`), or of a named one. `None` if there is no such
/// data.
pub(super) type Data<'a> = &'a mut dyn FnMut(Option<&str>) -> Option<String>;

/// Returns a value as code; texts that are not understood are kept as they are, and added to `refused`.
pub(super) fn code(value: &Json, data: Data<'_>, refused: &mut Vec<String>) -> String {
    match value {
        Json::Null => "nil".to_owned(),
        Json::Bool(value) => value.to_string(),
        Json::Number(number) => number.to_string(),
        Json::String(text) => match text.strip_prefix('=') {
            None => edn_text(text),
            Some(template) => match self::template(template, data) {
                Ok(code) => code,
                Err(part) => {
                    refused.push(part);
                    edn_text(text)
                }
            },
        },
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| code(item, data, refused)).collect();
            format!("[{}]", items.join(" "))
        }
        Json::Object(members) => {
            let entries = members
                .iter()
                .map(|(key, value)| format!("{} {}", edn_text(key), code(value, data, refused)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(" "))
        }
    }
}

/// Tells whether a value has parts that are computed.
pub(super) fn is_computed(value: &Json) -> bool {
    match value {
        Json::String(text) => text.starts_with('='),
        Json::Array(items) => items.iter().any(is_computed),
        Json::Object(members) => members.values().any(is_computed),
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}

/// Returns a text as a string literal.
pub(super) fn edn_text(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            char if char.is_control() => out.push_str(&format!("\\u{:04x}", char as u32)),
            char => out.push(char),
        }
    }
    out.push('"');
    out
}

/// Returns a key of JSON as the keyword that flows see.
pub(super) fn edn_key(key: &str) -> String {
    let is_plain = key.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'?' | b'!'));
    match is_plain {
        true => format!(":{key}"),
        false => format!("(keyword {})", edn_text(key)),
    }
}

/// Returns a template as code; the error is the part that is not understood.
fn template(text: &str, data: Data<'_>) -> Result<String, String> {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let end = rest[start..].find("}}").ok_or_else(|| rest.to_owned())? + start;
        if start > 0 {
            parts.push(edn_text(&rest[..start]));
        }
        let expression = rest[start + 2..end].trim();
        parts.push(self::expression(expression, data).ok_or_else(|| expression.to_owned())?);
        rest = &rest[end + 2..];
    }
    if !rest.is_empty() || parts.is_empty() {
        parts.push(edn_text(rest));
    }
    Ok(match &parts[..] {
        [only] => only.clone(),
        parts => format!("(str {})", parts.join(" ")),
    })
}

/// Returns a JavaScript expression as code.
fn expression(text: &str, data: Data<'_>) -> Option<String> {
    if let Some(literal) = literal(text) {
        return Some(literal);
    }
    let (node, rest) = head(text)?;
    let base = data(node.as_deref())?;
    let path = path(rest)?;
    Some(match path.is_empty() {
        true => base,
        false => format!("(get-in {base} [{}])", path.join(" ")),
    })
}

fn literal(text: &str) -> Option<String> {
    if matches!(text, "true" | "false") {
        return Some(text.to_owned());
    }
    if matches!(text, "null" | "undefined") {
        return Some("nil".to_owned());
    }
    if text.parse::<i64>().is_ok()
        || (text.contains('.') && text.parse::<f64>().is_ok_and(f64::is_finite))
    {
        return Some(text.to_owned());
    }
    let quoted = text.strip_prefix('\'').and_then(|it| it.strip_suffix('\''));
    let quoted = quoted.or_else(|| text.strip_prefix('"').and_then(|it| it.strip_suffix('"')));
    quoted
        .filter(|it| !it.contains(['\'', '"', '\\']))
        .map(edn_text)
}

/// Splits an expression into the node whose data it begins with, and the path into the data.
fn head(text: &str) -> Option<(Option<String>, &str)> {
    for own in ["$json", "$input.item.json", "$input.first().json"] {
        if let Some(rest) = text.strip_prefix(own) {
            return Some((None, rest));
        }
    }
    let (name, rest) = if let Some(rest) = text.strip_prefix("$(") {
        let (name, rest) = quoted(rest)?;
        (name, rest.strip_prefix(')')?)
    } else if let Some(rest) = text.strip_prefix("$node[") {
        let (name, rest) = quoted(rest)?;
        (name, rest.strip_prefix(']')?)
    } else {
        return None;
    };
    let access = [".item.json", ".first().json", ".last().json", ".json"];
    let rest = access.iter().find_map(|it| rest.strip_prefix(it))?;
    Some((Some(name), rest))
}

/// Reads a quoted text without escapes; returns it and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text
        .chars()
        .next()
        .filter(|char| matches!(char, '\'' | '"' | '`'))?;
    let (name, rest) = text[1..].split_once(quote)?;
    (!name.contains('\\')).then(|| (name.to_owned(), rest))
}

/// Returns the keys and indices of a path such as `.a["b c"][0]`.
fn path(mut text: &str) -> Option<Vec<String>> {
    let mut keys = Vec::new();
    while !text.is_empty() {
        if let Some(rest) = text.strip_prefix("?.").or_else(|| text.strip_prefix('.')) {
            let is_name = |char: char| char.is_alphanumeric() || char == '_' || char == '$';
            let end = rest.find(|char: char| !is_name(char)).unwrap_or(rest.len());
            let (name, more) = rest.split_at(end);
            // A call is no path.
            if name.is_empty() || more.starts_with('(') {
                return None;
            }
            keys.push(edn_key(name));
            text = more;
        } else {
            let inner = text.strip_prefix('[')?;
            if let Some((name, rest)) = quoted(inner) {
                keys.push(edn_key(&name));
                text = rest.strip_prefix(']')?;
            } else {
                let (index, rest) = inner.split_once(']')?;
                keys.push(index.parse::<u32>().ok()?.to_string());
                text = rest;
            }
        }
    }
    Some(keys)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn translated(text: &str) -> Result<String, Vec<String>> {
        let mut refused = Vec::new();
        let mut data = |node: Option<&str>| match node {
            None => Some("in".to_owned()),
            Some("Get it") => Some("get-it".to_owned()),
            Some(_) => None,
        };
        let code = code(&json!(text), &mut data, &mut refused);
        match refused.is_empty() {
            true => Ok(code),
            false => Err(refused),
        }
    }

    #[test]
    fn paths_and_templates_become_code() {
        for (text, expected) in [
            ("=plain", r#""plain""#),
            ("not {{ $json.a }}", r#""not {{ $json.a }}""#),
            (
                "={{ $json.a.b[0]['c d'] }}",
                r#"(get-in in [:a :b 0 (keyword "c d")])"#,
            ),
            ("={{ $json }}", "in"),
            (
                "=/x/{{ $('Get it').item.json.id }}/y",
                r#"(str "/x/" (get-in get-it [:id]) "/y")"#,
            ),
            (
                "={{ $node[\"Get it\"].json[\"id\"] }}",
                "(get-in get-it [:id])",
            ),
            (
                "={{ 'a' }}{{ 5 }}{{ 1.5 }}{{ null }}",
                r#"(str "a" 5 1.5 nil)"#,
            ),
        ] {
            assert_eq!(translated(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_javascript_is_refused() {
        for text in [
            "={{ $json.a.toUpperCase() }}",
            "={{ $json.a + 1 }}",
            "={{ $now }}",
            "={{ $('Nobody').item.json.id }}",
            "={{ $json.a",
            "={{ $jsonx }}",
        ] {
            assert!(translated(text).is_err(), "{text}");
        }
    }
}
