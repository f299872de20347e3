//! `:http-tools`: requests to servers as tools, described by an address and a JSON Schema.
//!
//! The arguments of a call fill the `{name}` parts of the address; the rest is the query of a GET or HEAD request, and the JSON
//! body of any other. What `:preset` gives is hidden from the model, and the model cannot replace it.

use std::rc::Rc;

use flowstone_flow::flow::name_of;
use flowstone_flow::step::{Field, FieldType, StepError};
use flowstone_lang::value::Value;
use serde_json::{Map as JsonMap, Value as Json, json};

use super::super::notes::facts;
use super::super::tool::{Tool, ToolKind, ToolStep};
use super::arguments::Shape;
use super::shown::within;
use crate::fields::Fields;
use crate::json::{from_json, items, to_json};

/// The keys of an entry of `:http-tools`.
pub(crate) const TOOL: &[Field] = &[
    Field::optional(
        "auth",
        FieldType::Map,
        "`{:type :bearer :secret-ref :name}`, as in an `:http` step.",
    ),
    Field::optional(
        "description",
        FieldType::Text,
        "What the model reads about the tool.",
    ),
    Field::optional(
        "headers",
        FieldType::Map,
        "Headers to send. They are in the journal: credentials belong into `:auth`.",
    ),
    Field::optional("method", FieldType::OneOf(METHODS), "Default `:post`."),
    Field::required("name", FieldType::Text, "The name for the model."),
    Field::optional(
        "parameters",
        FieldType::Map,
        "JSON Schema of the arguments.",
    ),
    Field::optional(
        "preset",
        FieldType::Map,
        "Arguments that the model neither sees nor changes.",
    ),
    Field::required(
        "url",
        FieldType::Text,
        "The address. `{id}` in its path or query is the argument `id`, encoded.",
    ),
];

const METHODS: &[&str] = &["delete", "get", "head", "options", "patch", "post", "put"];
const KEYS: &[&str] = &[
    "auth",
    "description",
    "headers",
    "method",
    "name",
    "parameters",
    "preset",
    "url",
];

/// Returns the tools of `:http-tools`.
///
/// # Errors
/// E1283: when an entry is wrong.
pub(crate) fn of(given: &Value, most: usize) -> Result<Vec<Tool>, StepError> {
    let given = items(given).ok_or_else(|| wrong("`:http-tools` takes a vector of maps"))?;
    given.iter().map(|entry| tool(entry, most)).collect()
}

fn wrong(message: impl Into<String>) -> StepError {
    StepError::config("E1283", message)
}

/// The request that calls of a tool make.
struct Request {
    url: String,
    method: Rc<str>,
    headers: Option<Value>,
    auth: Option<Value>,
    preset: JsonMap<String, Json>,
}

fn tool(entry: &Value, most: usize) -> Result<Tool, StepError> {
    let fields = Fields::nested("an entry of `:http-tools`", entry)?;
    fields.only(KEYS)?;
    let needed = |key: &str| {
        let text = fields.text(key)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| wrong(format!("an entry of `:http-tools` needs a `:{key}`")))
    };
    let (name, url) = (needed("name")?, needed("url")?);
    check_address(name, url)?;
    let method = fields.name("method")?.unwrap_or_else(|| "post".into());
    let method: Rc<str> = method.to_ascii_lowercase().into();
    if !METHODS.contains(&&*method) {
        return Err(wrong(format!(
            "the tool `{name}` has the unknown method `{method}`"
        ))
        .hint(format!("there are {}", METHODS.join(", "))));
    }
    let preset = preset(fields.map("preset")?)?;
    let given = parameters(fields.map("parameters")?)?;
    let shape = Shape::with_preset(name, &given, &preset).map_err(|error| {
        wrong(format!(
            "`:parameters` of `{name}` are not a JSON Schema: {error}"
        ))
    })?;
    let parameters = shape.shown().clone();
    let request = Request {
        url: url.to_owned(),
        method: method.clone(),
        headers: fields.map("headers")?.cloned(),
        auth: fields.map("auth")?.cloned(),
        preset,
    };
    let is_read = is_read(&method);
    Ok(Tool {
        name: name.into(),
        step: name.into(),
        kind: ToolKind::Http,
        description: fields.text("description")?.unwrap_or_default().to_owned(),
        parameters,
        ops: Vec::new(),
        call: Rc::new(move |given| {
            let given = without_preset(given, &request.preset);
            // Its server reads the names as the model wrote them.
            request.step(shape.read_json_as_named(&given)?)
        }),
        mutates: Rc::new(move |_| !is_read),
        needs_approval: Rc::new(|_| false),
        answer: Rc::new(move |_, value| {
            within(value.get("body").cloned().unwrap_or(Value::Nil), most)
        }),
    })
}

fn is_read(method: &str) -> bool {
    matches!(method, "get" | "head")
}

/// Returns the preset arguments of a tool.
///
/// # Errors
/// E1283: when they are not data.
pub(crate) fn preset(given: Option<&Value>) -> Result<JsonMap<String, Json>, StepError> {
    let Some(given) = given else {
        return Ok(JsonMap::new());
    };
    match to_json(given) {
        Ok(Json::Object(members)) => Ok(members),
        Ok(_) | Err(_) => Err(wrong("`:preset` takes a map of data")),
    }
}

/// Returns the schema of all arguments.
///
/// # Errors
/// E1283: when it is not data.
pub(crate) fn parameters(given: Option<&Value>) -> Result<Json, StepError> {
    let schema = match given.map(to_json) {
        None => json!({"type": "object", "properties": {}}),
        Some(Ok(schema)) => schema,
        Some(Err(error)) => return Err(wrong(format!("`:parameters` are not data: {error}"))),
    };
    Ok(schema)
}

/// Returns arguments without those that are preset: what a model writes there does not count, also where a schema takes no others.
pub(crate) fn without_preset(given: &Value, preset: &JsonMap<String, Json>) -> Value {
    let Some(map) = given.as_map() else {
        return given.clone();
    };
    let own = map
        .iter()
        .filter(|(key, _)| name_of(key).is_none_or(|name| !preset.contains_key(&*name)));
    Value::map(own.map(|(key, value)| (key.clone(), value.clone())))
}

/// Refuses an address whose host depends on arguments.
fn check_address(name: &str, url: &str) -> Result<(), StepError> {
    let host = url
        .split_once("://")
        .map(|(_, rest)| rest.split(['/', '?', '#']).next());
    match host.flatten().filter(|host| !host.is_empty()) {
        Some(host) if !host.contains('{') => Ok(()),
        Some(_) => Err(wrong(format!(
            "the host of the tool `{name}` depends on an argument"
        ))
        .hint("`{name}` may be in the path and in the query of an address")),
        None => Err(
            wrong(format!("`{url}` of the tool `{name}` is not an address"))
                .hint("it begins with http:// or https://"),
        ),
    }
}

impl Request {
    fn step(&self, arguments: Json) -> Result<ToolStep, StepError> {
        let mut arguments = match arguments {
            Json::Object(members) => members,
            _ => JsonMap::new(),
        };
        arguments.extend(self.preset.clone());
        let url = filled(&self.url, &mut arguments)?;
        let mut config = vec![
            ("url", Value::from(url)),
            ("method", Value::keyword(&self.method)),
            ("response-as", Value::keyword("text")),
        ];
        match is_read(&self.method) {
            true if arguments.is_empty() => {}
            true => config.push(("query", from_json(&Json::Object(as_query(arguments))))),
            false => {
                config.push(("json", from_json(&Json::Object(arguments))));
                // A call in doubt is reported to the model; nothing is sent twice.
                config.push(("on-doubt", Value::keyword("fail")));
            }
        }
        config.extend(self.headers.clone().map(|headers| ("headers", headers)));
        config.extend(self.auth.clone().map(|auth| ("auth", auth)));
        Ok(ToolStep {
            kind: "http".into(),
            config: facts(config),
        })
    }
}

/// Returns arguments as a query: lists repeat their name, objects are JSON.
fn as_query(arguments: JsonMap<String, Json>) -> JsonMap<String, Json> {
    let plain = |value: Json| match value {
        Json::Object(_) => Json::String(value.to_string()),
        other => other,
    };
    let arguments = arguments.into_iter().filter(|(_, value)| !value.is_null());
    let query = arguments.map(|(name, value)| match value {
        Json::Array(items) => (name, Json::Array(items.into_iter().map(plain).collect())),
        value => (name, plain(value)),
    });
    query.collect()
}

/// Fills the `{name}` parts of an address, and removes their arguments.
fn filled(url: &str, arguments: &mut JsonMap<String, Json>) -> Result<String, StepError> {
    let mut out = String::new();
    let mut used = Vec::new();
    let mut rest = url;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        let text = match arguments.get(name) {
            None | Some(Json::Null) => {
                return Err(StepError::new(
                    "E0837",
                    "invalid",
                    format!("the argument `{name}` is missing: the address of the tool needs it"),
                ));
            }
            Some(Json::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        // A part of dots would lead to another address.
        if matches!(text.as_str(), "." | ".." | "") {
            return Err(StepError::new(
                "E0837",
                "invalid",
                format!("the argument `{name}` cannot be `{text}`: it is a part of an address"),
            ));
        }
        out.push_str(before);
        out.push_str(&encoded(&text));
        used.push(name.to_owned());
        rest = after;
    }
    out.push_str(rest);
    for name in used {
        arguments.remove(&name);
    }
    Ok(out)
}

fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Returns the addresses of `:http-tools`, as far as they are written out.
pub(crate) fn addresses(config: &Value) -> Vec<String> {
    let entries = config.get("http-tools").and_then(items).unwrap_or_default();
    let urls = entries.iter().filter_map(|entry| entry.get("url"));
    urls.filter_map(|url| name_of(url).map(|url| url.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, arguments: Json, expected: &str) {
        let mut arguments = arguments.as_object().cloned().unwrap_or_default();
        let found = match filled(url, &mut arguments) {
            Ok(url) => format!("{url} {}", Json::Object(arguments)),
            Err(error) => error.message,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn arguments_fill_the_address_encoded_and_are_removed() {
        let url = "https://x.example/users/{userId}/posts?q={q}";
        check(
            url,
            json!({"userId": "a/b c", "q": 7, "more": true}),
            "https://x.example/users/a%2Fb%20c/posts?q=7 {\"more\":true}",
        );
        check(
            url,
            json!({"q": 7}),
            "the argument `userId` is missing: the address of the tool needs it",
        );
        check(
            url,
            json!({"userId": "..", "q": 7}),
            "the argument `userId` cannot be `..`: it is a part of an address",
        );
    }

    #[test]
    fn the_host_depends_on_no_argument() {
        for (url, is_good) in [
            ("https://x.example/{a}", true),
            ("https://{a}.example/", false),
            ("/{a}", false),
        ] {
            assert_eq!(check_address("t", url).is_ok(), is_good, "{url}");
        }
    }

    #[test]
    fn preset_arguments_are_not_in_the_schema() {
        let schema = from_json(&json!({"type": "object", "required": ["a", "b"],
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}));
        let preset = json!({"b": 1}).as_object().cloned().unwrap_or_default();
        assert_eq!(
            *Shape::with_preset("t", &parameters(Some(&schema)).expect("data"), &preset)
                .expect("a schema")
                .shown(),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}})
        );
    }
}
