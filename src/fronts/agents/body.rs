//! Bodies of requests: JSON objects with known members, each of a kind.
//!
//! In a new record null is the same as absent; in a change it removes the member. A number or a truth value where a text is due is taken as text, because clients on a command line
//! cannot tell them apart.

use flowstone_engine::diagnostic::nearest;
use serde_json::{Map, Value as Json, json};

use super::error::ApiError;

/// What a member may be.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Text,
    /// A text that is not blank and has no control characters, such as a name or a path.
    Name,
    OneOf(&'static [&'static str]),
    /// A whole number in a range.
    Int(i64, i64),
    /// A number in a range.
    Number(f64, f64),
    Flag,
    Texts,
    Object,
    /// An object whose values are texts.
    Tags,
    /// A list of objects.
    Objects,
    /// A text or an object.
    TextOrObject,
    Any,
}

/// A member of a body.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    pub name: &'static str,
    pub kind: Kind,
    /// What it is for, for the API's document.
    pub doc: &'static str,
    pub is_needed: bool,
}

impl Member {
    pub const fn optional(name: &'static str, kind: Kind, doc: &'static str) -> Member {
        Member {
            name,
            kind,
            doc,
            is_needed: false,
        }
    }

    pub const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Member {
        Member {
            is_needed: true,
            ..Member::optional(name, kind, doc)
        }
    }

    /// A member of a change that every record has, so null does not remove it.
    pub const fn kept(name: &'static str, kind: Kind, doc: &'static str) -> Member {
        Member::required(name, kind, doc)
    }
}

/// The members of a body.
#[derive(Debug, Clone, Default)]
pub struct Body(pub Map<String, Json>);

impl Body {
    /// Reads a body that needs its required members.
    ///
    /// # Errors
    /// When it is not an object, a member is not known, missing, or of another kind.
    pub fn read(json: Json, members: &[Member]) -> Result<Body, ApiError> {
        let body = Body::read_some(json, members)?;
        let missing = members
            .iter()
            .find(|member| member.is_needed && !body.0.contains_key(member.name));
        match missing {
            Some(member) => Err(ApiError::invalid(format!("`{}` is missing", member.name))),
            None => Ok(body),
        }
    }

    /// Reads a body whose members are changes.
    ///
    /// # Errors
    /// As for [`Body::read`], apart from missing members.
    pub fn read_some(json: Json, members: &[Member]) -> Result<Body, ApiError> {
        let Json::Object(given) = json else {
            return Err(ApiError::invalid("the body must be a JSON object"));
        };
        let mut body = Map::new();
        for (name, value) in given {
            let Some(member) = members.iter().find(|member| member.name == name) else {
                return Err(unknown(&name, members));
            };
            if !value.is_null() {
                let value = member.kind.take(&name, value)?;
                body.insert(name, value);
            }
        }
        Ok(Body(body))
    }

    /// Reads a body whose members are changes of a record. Null remains: it removes the member, as if the record had been made
    /// without it (`made` are the members of a new one).
    ///
    /// # Errors
    /// As for [`Body::read_some`], and for a null where a new record needs the member.
    pub fn read_changes(json: Json, members: &[Member], made: &[Member]) -> Result<Body, ApiError> {
        let removed = json.as_object().into_iter().flatten();
        let removed: Vec<String> = removed
            .filter(|(_, value)| value.is_null())
            .map(|(name, _)| name.clone())
            .collect();
        let mut body = Body::read_some(json, members)?;
        for name in removed {
            if made.iter().any(|it| it.is_needed && it.name == name) {
                let message = format!("`{name}` is needed, so it cannot be removed with null");
                return Err(ApiError::invalid(message));
            }
            body.0.insert(name, Json::Null);
        }
        Ok(body)
    }

    /// Makes these changes in the members of a record.
    pub fn change(self, members: &mut Map<String, Json>) {
        for (name, value) in self.0 {
            match value {
                Json::Null => members.remove(&name),
                value => members.insert(name, value),
            };
        }
    }

    pub fn get(&self, name: &str) -> Option<&Json> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Json::as_str)
    }

    pub fn texts(&self, name: &str) -> Vec<String> {
        texts(self.get(name))
    }

    pub fn int(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Json::as_i64)
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).and_then(Json::as_bool)
    }

    pub fn items(&self, name: &str) -> &[Json] {
        let items = self.get(name).and_then(Json::as_array);
        items.map_or(&[], Vec::as_slice)
    }
}

/// What a schema of members is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The arguments of a model: what it leaves out is left out.
    Call,
    /// A change: null removes a member, and none is required.
    Change,
    /// A new record: null is the same as absent.
    New,
}

/// Returns the JSON Schema of an object with these members.
pub fn schema<'a>(members: impl IntoIterator<Item = &'a Member>, purpose: Purpose) -> Json {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for member in members {
        let mut schema = match member.is_needed || purpose == Purpose::Call {
            true => member.kind.schema(),
            false => nullable(member.kind.schema()),
        };
        schema["description"] = json!(member.doc);
        properties.insert(member.name.to_owned(), schema);
        if member.is_needed && purpose != Purpose::Change {
            required.push(member.name);
        }
    }
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Returns a schema that takes null, too.
pub fn nullable(mut schema: Json) -> Json {
    match schema.get("type").cloned() {
        Some(Json::Array(mut several)) => {
            several.push(json!("null"));
            schema["type"] = Json::Array(several);
        }
        Some(one) => schema["type"] = json!([one, "null"]),
        // Without a type, any value is taken.
        None => {}
    }
    if let Some(Json::Array(names)) = schema.get_mut("enum") {
        names.push(Json::Null);
    }
    schema
}

/// Returns the texts of a list; none for anything else.
pub fn texts(list: Option<&Json>) -> Vec<String> {
    let items = list.and_then(Json::as_array).into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

fn unknown(name: &str, members: &[Member]) -> ApiError {
    let near = nearest(name, members.iter().map(|member| member.name));
    ApiError::invalid(match near {
        Some(near) => format!("`{name}` is not a field of this request; did you mean `{near}`?"),
        None => format!("`{name}` is not a field of this request"),
    })
}

impl Kind {
    fn take(self, name: &str, value: Json) -> Result<Json, ApiError> {
        let value = match (self, value) {
            (Kind::Text | Kind::Name | Kind::OneOf(_), Json::Number(number)) => {
                Json::String(number.to_string())
            }
            (Kind::Text | Kind::Name | Kind::OneOf(_), Json::Bool(flag)) => {
                Json::String(flag.to_string())
            }
            (_, value) => value,
        };
        let tags = value.as_object().filter(|_| matches!(self, Kind::Tags));
        let mut tags = tags.into_iter().flatten();
        if let Some((tag, _)) = tags.find(|(_, tag)| !tag.is_string()) {
            return Err(ApiError::invalid(format!(
                "`{name}.{tag}` must be a string"
            )));
        }
        let is_text = |items: &Vec<Json>| items.iter().all(Json::is_string);
        let is_object = |items: &Vec<Json>| items.iter().all(Json::is_object);
        let fits = match self {
            Kind::Text => value.is_string(),
            Kind::Name => value.as_str().is_some_and(is_name),
            Kind::OneOf(names) => value.as_str().is_some_and(|it| names.contains(&it)),
            Kind::Int(least, most) => value
                .as_i64()
                .is_some_and(|it| (least..=most).contains(&it)),
            Kind::Number(least, most) => value
                .as_f64()
                .is_some_and(|it| (least..=most).contains(&it)),
            Kind::Flag => value.is_boolean(),
            Kind::Texts => value.as_array().is_some_and(is_text),
            Kind::Object | Kind::Tags => value.is_object(),
            Kind::Objects => value.as_array().is_some_and(is_object),
            Kind::TextOrObject => value.is_string() || value.is_object(),
            Kind::Any => true,
        };
        match fits {
            true => Ok(value),
            false => Err(ApiError::invalid(format!(
                "`{name}` must be {}, got {}",
                self.expected(),
                found(&value)
            ))),
        }
    }

    /// Returns the JSON Schema of a member of this kind.
    pub fn schema(self) -> Json {
        match self {
            Kind::Text => json!({"type": "string"}),
            Kind::Name => json!({"type": "string", "minLength": 1}),
            Kind::OneOf(names) => json!({"type": "string", "enum": names}),
            Kind::Int(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
            Kind::Number(least, most) => {
                json!({"type": "number", "minimum": least, "maximum": most})
            }
            Kind::Flag => json!({"type": "boolean"}),
            Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Kind::Object => json!({"type": "object"}),
            Kind::Tags => {
                json!({"type": "object", "additionalProperties": {"type": "string"}})
            }
            Kind::Objects => json!({"type": "array", "items": {"type": "object"}}),
            Kind::TextOrObject => json!({"type": ["string", "object"]}),
            Kind::Any => json!({}),
        }
    }

    fn expected(self) -> String {
        match self {
            Kind::Text => "a string".to_owned(),
            Kind::Name => "a string that is not blank, without control characters".to_owned(),
            Kind::OneOf(names) => format!("one of {}", names.join(", ")),
            Kind::Int(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Number(least, most) => format!("a number from {least} to {most}"),
            Kind::Flag => "true or false".to_owned(),
            Kind::Texts => "a list of strings".to_owned(),
            Kind::Object => "an object".to_owned(),
            Kind::Tags => "an object with strings".to_owned(),
            Kind::Objects => "a list of objects".to_owned(),
            Kind::TextOrObject => "a string or an object".to_owned(),
            Kind::Any => "any value".to_owned(),
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && !text.chars().any(char::is_control)
}

fn found(value: &Json) -> String {
    match value {
        Json::Null => "null".to_owned(),
        Json::Bool(_) | Json::Number(_) => format!("`{value}`"),
        Json::String(text) if text.len() <= 80 => format!("`{}`", text.escape_debug()),
        Json::String(_) => "a long string".to_owned(),
        Json::Array(_) => "a list".to_owned(),
        Json::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBERS: &[Member] = &[
        Member::required("name", Kind::Name, "The name."),
        Member::optional("count", Kind::Int(1, 9), "How many."),
        Member::optional("tags", Kind::Texts, "Tags."),
    ];

    #[track_caller]
    fn check(body: Json, expected: &str) {
        let found = match Body::read(body, MEMBERS) {
            Ok(body) => Json::Object(body.0).to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn scalars_are_texts_and_null_is_absent() {
        check(json!({"name": 42, "count": null}), r#"{"name":"42"}"#);
        check(json!({"name": true}), r#"{"name":"true"}"#);
    }

    #[test]
    fn null_removes_what_a_record_can_be_without() {
        let read = |body: Json| Body::read_changes(body, MEMBERS, MEMBERS);
        let mut members = json!({"name": "a", "count": 1, "tags": []});
        let members = members.as_object_mut().expect("an object");
        read(json!({"count": null, "tags": ["x"]}))
            .expect("changes")
            .change(members);
        assert_eq!(json!(members), json!({"name": "a", "tags": ["x"]}));
        let refused = read(json!({"name": null})).expect_err("it is needed");
        assert_eq!(
            refused.to_string(),
            "`name` is needed, so it cannot be removed with null"
        );
    }

    #[test]
    fn what_does_not_fit_is_named() {
        check(json!({}), "`name` is missing");
        check(json!([]), "the body must be a JSON object");
        check(
            json!({"name": "a", "cuont": 1}),
            "`cuont` is not a field of this request; did you mean `count`?",
        );
        check(
            json!({"name": "a", "count": 10}),
            "`count` must be a whole number from 1 to 9, got `10`",
        );
        check(
            json!({"name": " "}),
            "`name` must be a string that is not blank, without control characters, got ` `",
        );
        check(
            json!({"name": "a\u{0}b"}),
            "`name` must be a string that is not blank, without control characters, got `a\\0b`",
        );
        check(
            json!({"name": "a", "tags": "x"}),
            "`tags` must be a list of strings, got `x`",
        );
    }
}
