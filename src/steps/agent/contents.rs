//! Contents of a tool's result that are not text: images are shown to the model, others are named.
//!
//! A text for a model never contains a `data:` address. The format of an image, and whether the model can see it, are
//! checked where the message is sent.

use std::borrow::Cow;

use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;

use super::notes::facts;
use crate::json::items;

/// Maximum number of images shown per result.
const MOST_IMAGES: usize = 10;
/// Maximum depth at which contents are searched.
const DEEPEST: usize = 12;
const KINDS: &[&str] = &["audio", "image", "resource"];

/// Splits a result into the rest, with a line for each removed content, and the images as parts of a message.
pub(super) fn apart(value: Value) -> (Value, Vec<Value>) {
    if !holds_any(&value, 0) {
        return (value, Vec::new());
    }
    let mut images = Vec::new();
    let left = without(&value, 0, &mut images);
    (left, images)
}

fn holds_any(value: &Value, depth: usize) -> bool {
    if depth > DEEPEST {
        return false;
    }
    if address(value).is_some() {
        return true;
    }
    match value {
        Value::Map(map) => map.iter().any(|(_, value)| holds_any(value, depth + 1)),
        Value::Vector(_) | Value::List(_) => {
            let items = items(value).unwrap_or_default();
            items.iter().any(|item| holds_any(item, depth + 1))
        }
        _ => false,
    }
}

fn without(value: &Value, depth: usize, images: &mut Vec<Value>) -> Value {
    if depth > DEEPEST {
        return value.clone();
    }
    if let Some(address) = address(value) {
        return named(value, &address, images);
    }
    match value {
        Value::Map(map) => Value::map(
            map.iter()
                .map(|(key, value)| (key.clone(), without(value, depth + 1, images))),
        ),
        Value::Vector(_) | Value::List(_) => {
            let items = items(value).unwrap_or_default();
            Value::vector(items.iter().map(|item| without(item, depth + 1, images)))
        }
        other => other.clone(),
    }
}

/// Returns the `data:` address of a part: of `{:type :image :url "data:..."}`, of `{:uri "..." :url "data:..."}`, or of a content of an MCP server,
/// `{:type "image" :data "..." :mimeType "image/png"}` or `{:uri "..." :blob "..." :mimeType "..."}`.
fn address(value: &Value) -> Option<Cow<'_, str>> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let is_kind = || {
        let kind = value.get("type").and_then(name_of);
        kind.is_some_and(|kind| KINDS.contains(&&*kind))
    };
    if let Some(address) = text("url").filter(|it| it.starts_with("data:")) {
        // The contents of a resource have no type.
        return (is_kind() || text("uri").is_some()).then_some(Cow::Borrowed(address));
    }
    let content_type = text("mimeType")?;
    let data = text("blob").or_else(|| text("data").filter(|_| is_kind()))?;
    Some(Cow::Owned(format!("data:{content_type};base64,{data}")))
}

/// Returns the text that replaces a part, and collects the part if it is an image.
fn named(value: &Value, address: &str, images: &mut Vec<Value>) -> Value {
    let (head, data) = address.split_once(',').unwrap_or((address, ""));
    let content_type = head.trim_start_matches("data:").split(';').next();
    let content_type = content_type.filter(|it| !it.is_empty());
    let content_type = content_type.unwrap_or("application/octet-stream");
    let bytes = match head.ends_with(";base64") {
        true => data.trim_end_matches('=').len() * 3 / 4,
        false => data.len(),
    };
    let uri = value.get("uri").and_then(Value::as_str);
    let name = uri.map_or_else(String::new, |uri| format!("{uri}: "));
    let about = format!("{name}{content_type}, {bytes} bytes");
    let is_same = |it: &Value| it.get("url").and_then(Value::as_str) == Some(address);
    let text = match (content_type.starts_with("image/"), images.len()) {
        // Servers return the same content as data and as parts.
        (true, _) if let Some(at) = images.iter().position(is_same) => {
            format!("[image {}: {about}]", at + 1)
        }
        (true, shown) if shown < MOST_IMAGES => {
            images.push(facts([
                ("type", Value::keyword("image")),
                ("url", Value::from(address)),
            ]));
            format!("[image {}: {about}]", images.len())
        }
        (true, _) => format!(
            "[an image, {about}: it is not shown, {MOST_IMAGES} of a result are; ask for fewer]"
        ),
        (false, _) => format!("[{about}: contents that are not shown]"),
    };
    facts([
        ("type", Value::keyword("text")),
        ("text", Value::from(text)),
    ])
}

#[cfg(test)]
mod tests {
    use flowstone_lang::reader::read_data;

    use super::*;

    #[track_caller]
    fn check(value: &str, left: &str, shown: usize) {
        let (found, images) = apart(read_data(value).unwrap());
        assert_eq!(crate::text::brief(&found), left);
        assert_eq!(images.len(), shown);
    }

    #[test]
    fn no_address_of_data_is_left() {
        check(
            r#"{:parts [{:type :text :text "a"} {:type :image :url "data:image/png;base64,aGk="}]}"#,
            r#"{:parts [{:type :text, :text "a"} {:type :text, :text "[image 1: image/png, 2 bytes]"}]}"#,
            1,
        );
        check(
            r#"{:type :resource :uri "x://1" :url "data:image/jpeg;base64,aGk="}"#,
            r#"{:type :text, :text "[image 1: x://1: image/jpeg, 2 bytes]"}"#,
            1,
        );
        check(
            r#"{:type :audio :url "data:audio/wav;base64,aGk="}"#,
            r#"{:type :text, :text "[audio/wav, 2 bytes: contents that are not shown]"}"#,
            0,
        );
        check(
            r#"{:contents [{:uri "x://1" :url "data:application/zip;base64,aGk="}]}"#,
            r#"{:contents [{:type :text, :text "[x://1: application/zip, 2 bytes: contents that are not shown]"}]}"#,
            0,
        );
        // The same image as data and as a part is shown once.
        check(
            r#"[{:type "image" :data "aGk=" :mimeType "image/png"} {:type :image :url "data:image/png;base64,aGk="}]"#,
            r#"[{:type :text, :text "[image 1: image/png, 2 bytes]"} {:type :text, :text "[image 1: image/png, 2 bytes]"}]"#,
            1,
        );
        check(
            r#"{:type "resource" :resource {:uri "x://1" :blob "aGk=" :mimeType "application/zip"}}"#,
            r#"{:type "resource", :resource {:type :text, :text "[x://1: application/zip, 2 bytes: contents that are not shown]"}}"#,
            0,
        );
        let one = |n: usize| format!(r#"{{:type :image :url "data:image/png;base64,{n:04}"}}"#);
        let many: String = (0..12).map(one).collect();
        let (_, images) = apart(read_data(&format!("[{many}]")).unwrap());
        assert_eq!(images.len(), MOST_IMAGES);
    }
}
