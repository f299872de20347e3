//! Questions that a server asks a person in the middle of a call, and the answers to them.
//!
//! A question is plain data: it is journaled, and passed between threads. Its form is a Malli schema made of the
//! requested schema, whose properties are plain fields.

use std::collections::BTreeMap;

use flowstone_flow::flow::name_of;
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;
use rmcp::model::{ElicitRequestParams, InputRequest, InputRequiredResult};
use serde_json::{Map, Value as Json, json};

use crate::json::{from_json, items, to_json};

/// The answers that a person chooses from.
pub(super) const ACTIONS: [&str; 3] = ["accept", "decline", "cancel"];
/// The entry of the answer for a property that is called `action`.
const ACTION: &str = "action";
const OWN_ACTION: &str = "action-value";
/// Parts of names of fields that are for secrets.
const SECRET: &[&str] = &[
    "apikey",
    "credential",
    "passphrase",
    "password",
    "passwd",
    "pin",
    "privatekey",
    "secret",
    "token",
];

/// A question of a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    /// The name under which the server gets the answer.
    pub id: String,
    pub message: String,
    pub mode: Mode,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Mode {
    /// A form with this JSON Schema.
    Form(Json),
    /// An address that the person opens.
    Url(String),
}

/// The questions of a call, and how it is continued.
#[derive(Debug, Clone)]
pub(super) struct Asks {
    pub questions: Vec<Question>,
    pub resume: Resume,
}

/// How a call is continued with the answers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Resume {
    /// The call waits in this process under this name: the older handshake.
    Open(String),
    /// The request is repeated with the state that the server gave.
    Repeat(Option<String>),
}

/// The answers by the ids of their questions, as the protocol writes them.
pub(super) type Answers = BTreeMap<String, Json>;

impl Question {
    /// Reads a question; an error names what a person cannot answer here.
    pub(super) fn of(id: &str, params: &ElicitRequestParams) -> Result<Question, String> {
        let (message, mode) = match params {
            ElicitRequestParams::FormElicitationParams {
                message,
                requested_schema,
                ..
            } => {
                let schema = serde_json::to_value(requested_schema).unwrap_or_else(|_| json!({}));
                (message, Mode::Form(schema))
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                let is_web = reqwest::Url::parse(url)
                    .is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
                if !is_web {
                    return Err("a visit of an address that is not of the web".to_owned());
                }
                (message, Mode::Url(url.clone()))
            }
            _ => return Err("an answer of an unknown kind".to_owned()),
        };
        Ok(Question {
            id: id.to_owned(),
            message: message.clone(),
            mode,
        })
    }

    fn to_value(&self) -> Value {
        let question = match &self.mode {
            Mode::Form(schema) => {
                json!({"id": self.id, "message": self.message, "mode": "form", "schema": schema})
            }
            Mode::Url(url) => {
                json!({"id": self.id, "message": self.message, "mode": "url", "url": url})
            }
        };
        from_json(&question)
    }

    fn from_value(value: &Value) -> Option<Question> {
        let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
        let mode = match &*name_of(value.get("mode")?)? {
            "form" => Mode::Form(to_json(value.get("schema")?).ok()?),
            "url" => Mode::Url(text("url")?),
            _ => return None,
        };
        Some(Question {
            id: text("id")?,
            message: text("message")?,
            mode,
        })
    }

    /// Tells whether another question asks for the same.
    pub(super) fn is_like(&self, other: &Question) -> bool {
        self.message == other.message && self.mode == other.mode
    }

    /// Returns `:validation` of the wait: the fields are only needed to accept.
    pub(super) fn validation(&self) -> Value {
        let case = |action: &str, fields: Vec<Value>| {
            let map = [Value::keyword("map")].into_iter().chain(fields);
            Value::vector([Value::keyword(action), Value::vector(map)])
        };
        let [accept, decline, cancel] = ACTIONS;
        Value::vector([
            Value::keyword("multi"),
            Value::map([(Value::keyword("dispatch"), Value::keyword(ACTION))]),
            case(accept, self.fields()),
            case(decline, Vec::new()),
            case(cancel, Vec::new()),
        ])
    }

    fn properties(&self) -> impl Iterator<Item = (&String, &Json)> {
        let schema = match &self.mode {
            Mode::Form(schema) => schema.get("properties").and_then(Json::as_object),
            Mode::Url(_) => None,
        };
        schema.into_iter().flatten()
    }

    fn fields(&self) -> Vec<Value> {
        let required = match &self.mode {
            Mode::Form(schema) => schema.get("required").and_then(Json::as_array),
            Mode::Url(_) => None,
        };
        let is_required = |name: &str| {
            let mut required = required.into_iter().flatten();
            required.any(|it| it.as_str() == Some(name))
        };
        let field = |(name, schema): (&String, &Json)| {
            let notes = notes(schema, is_required(name));
            Value::vector([key_of(name), from_json(&notes), kind_of(schema)])
        };
        self.properties().map(field).collect()
    }

    /// Returns what the person is warned of.
    pub(super) fn warning(&self, server: &str) -> String {
        match &self.mode {
            Mode::Url(_) => format!(
                "The address comes from {server}. Open it only if you trust that server, and check the address before you enter anything."
            ),
            Mode::Form(_) => {
                let asks = self.properties().find(|(name, _)| is_secret(name));
                let asks = asks.map(|(name, _)| {
                    format!(" The field `{name}` looks like one, and a server must not ask for it by a form.")
                });
                format!(
                    "The answer is sent to {server} and stays in the journal. Do not enter passwords, keys or other secrets.{}",
                    asks.unwrap_or_default()
                )
            }
        }
    }

    /// Returns a person's answer as the protocol writes it.
    pub(super) fn answer(&self, given: &Value) -> Json {
        let action = given.get(ACTION).and_then(name_of);
        let action = action.filter(|it| ACTIONS.contains(&&**it));
        let action = action.as_deref().unwrap_or("cancel");
        let is_form = matches!(self.mode, Mode::Form(_));
        if action != "accept" || !is_form {
            return json!({"action": action});
        }
        let entry = |(name, _): (&String, &Json)| {
            let value = given.as_map()?.get(&key_of(name))?;
            let value = to_json(value).ok().filter(|it| !it.is_null())?;
            Some((name.clone(), value))
        };
        let content: Map<String, Json> = self.properties().filter_map(entry).collect();
        json!({"action": action, "content": content})
    }
}

/// Returns the key of a property in the answer of a person.
fn key_of(name: &str) -> Value {
    Value::keyword(match name {
        ACTION => OWN_ACTION,
        name => name,
    })
}

fn is_secret(name: &str) -> bool {
    let words = name.chars().filter(|it| it.is_ascii_alphanumeric());
    let name: String = words.map(|it| it.to_ascii_lowercase()).collect();
    SECRET.iter().any(|secret| match *secret {
        "pin" => name == "pin" || name.ends_with("pincode"),
        secret => name.contains(secret),
    })
}

/// Returns the properties of an entry.
fn notes(schema: &Json, is_required: bool) -> Json {
    let mut notes = Map::new();
    if !is_required {
        notes.insert("optional".to_owned(), Json::Bool(true));
    }
    let text = |key: &str| schema.get(key).and_then(Json::as_str);
    if let Some(title) = text("title") {
        notes.insert("title".to_owned(), json!(title));
    }
    let titles = titles(schema);
    let parts = [
        text("description").map(str::to_owned),
        text("format").map(|format| format!("Format: {format}.")),
        (!titles.is_empty()).then(|| titles.join(", ")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if !parts.is_empty() {
        notes.insert("description".to_owned(), json!(parts.join(" ")));
    }
    if let Some(default) = schema.get("default").filter(|it| !it.is_null()) {
        notes.insert("default".to_owned(), default.clone());
    }
    Json::Object(notes)
}

/// Returns the choices of a property with their values and titles.
fn choices(schema: &Json) -> Option<Vec<(&Json, Option<&str>)>> {
    if let Some(values) = schema.get("enum").and_then(Json::as_array) {
        let names = schema.get("enumNames").and_then(Json::as_array);
        let name = |idx: usize| names.and_then(|names| names.get(idx)?.as_str());
        let named = values.iter().enumerate();
        return Some(named.map(|(idx, value)| (value, name(idx))).collect());
    }
    let of = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(*key));
    let of = of.and_then(Json::as_array)?.iter();
    of.map(choice_of).collect()
}

fn choice_of(it: &Json) -> Option<(&Json, Option<&str>)> {
    Some((it.get("const")?, it.get("title").and_then(Json::as_str)))
}

fn titles(schema: &Json) -> Vec<String> {
    let inner = schema.get("items").unwrap_or(schema);
    let choices = choices(inner).unwrap_or_default();
    let titled = choices.into_iter().filter_map(|(value, title)| {
        let (value, title) = (value.as_str()?, title?);
        (value != title).then(|| format!("{value}: {title}"))
    });
    titled.collect()
}

fn kind_of(schema: &Json) -> Value {
    let word = Value::keyword;
    if let Some(choices) = choices(schema) {
        let values = choices.into_iter().map(|(value, _)| from_json(value));
        return Value::vector([word("enum")].into_iter().chain(values));
    }
    let bounds = |least: &str, most: &str| {
        let bound = |from: &str, to: &str| {
            let bound = schema.get(from).filter(|it| it.is_number())?;
            Some((word(to), from_json(bound)))
        };
        Value::map(bound(least, "min").into_iter().chain(bound(most, "max")))
    };
    let kind = schema.get("type").and_then(Json::as_str);
    match kind.unwrap_or_default() {
        "string" => Value::vector([word("string"), bounds("minLength", "maxLength")]),
        "integer" => Value::vector([word("int"), bounds("minimum", "maximum")]),
        "number" => Value::vector([word("number"), bounds("minimum", "maximum")]),
        "boolean" => word("boolean"),
        "array" => {
            let item = schema.get("items").map_or_else(|| word("any"), kind_of);
            Value::vector([word("vector"), bounds("minItems", "maxItems"), item])
        }
        _ => word("any"),
    }
}

impl Asks {
    /// Reads the result of a call that needs answers.
    ///
    /// # Errors
    /// What the server asks for that a person cannot answer here.
    pub(super) fn of(result: &InputRequiredResult) -> Result<Asks, String> {
        let requests = result.input_requests.iter().flatten();
        let questions = requests.map(|(id, request)| match request {
            InputRequest::Elicitation(request) => Question::of(id, &request.params),
            InputRequest::CreateMessage(_) => Err("an answer of a model".to_owned()),
            InputRequest::ListRoots(_) => Err("a list of folders".to_owned()),
            _ => Err("more input".to_owned()),
        });
        Ok(Asks {
            questions: questions.collect::<Result<_, _>>()?,
            resume: Resume::Repeat(result.request_state.clone()),
        })
    }

    /// Returns the value of a call that waits for answers.
    pub(super) fn to_value(&self) -> Value {
        let resume = match &self.resume {
            Resume::Open(name) => json!({"open": name}),
            Resume::Repeat(Some(state)) => json!({"state": state}),
            Resume::Repeat(None) => json!({}),
        };
        let questions = self.questions.iter().map(Question::to_value);
        Value::map([
            (Value::keyword("questions"), Value::vector(questions)),
            (Value::keyword("resume"), from_json(&resume)),
        ])
    }

    /// Reads the value of a call that waits for answers; `None` if it has a result.
    pub(super) fn from_value(value: &Value) -> Option<Asks> {
        let resume = resume_of(value.get("resume")?);
        let questions = value.get("questions").and_then(items)?;
        let questions = questions.iter().map(Question::from_value);
        Some(Asks {
            questions: questions.collect::<Option<_>>()?,
            resume,
        })
    }
}

/// Reads `:resume`.
pub(super) fn resume_of(given: &Value) -> Resume {
    let text = |key: &str| Some(given.get(key)?.as_str()?.to_owned());
    match text("open") {
        Some(name) => Resume::Open(name),
        None => Resume::Repeat(text("state")),
    }
}

/// Reads `:answers` of the operation `:answer`: a map from ids to answers.
///
/// # Errors
/// E1299 when an answer has another form.
pub(super) fn answers(given: &Value) -> Result<Answers, StepError> {
    let wrong = |id: &str| {
        StepError::config("E1299", format!("the answer `{id}` of `:answers` needs an `:action`: `:accept`, `:decline` or `:cancel`"))
            .hint("such as `{\"q1\" {:action :accept :content {:name \"Ada\"}}}`")
    };
    let mut all = Answers::new();
    let entries = given.as_map().into_iter().flat_map(|map| map.iter());
    for (key, answer) in entries {
        let id = name_of(key).unwrap_or_default();
        let action = answer.get(ACTION).and_then(name_of);
        let action = action.filter(|it| ACTIONS.contains(&&**it));
        let action = action.ok_or_else(|| wrong(&id))?;
        let mut written = json!({"action": &*action});
        if let Some(content) = answer.get("content").filter(|it| !it.is_nil()) {
            written["content"] = to_json(content).map_err(|_| wrong(&id))?;
        }
        all.insert(id.to_string(), written);
    }
    Ok(all)
}
