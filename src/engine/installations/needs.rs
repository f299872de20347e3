//! What a flow needs from its installer: the slots and the setup values of `:requires`.

use flowstone_lang::value::Value;

use crate::codec;
use crate::flow::{Flow, name_of};

/// What the installer has to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeedKind {
    /// A connection.
    Slot,
    /// A value of a setup form.
    Value,
    /// A worker that executes jobs.
    Worker,
}

impl NeedKind {
    pub fn name(self) -> &'static str {
        match self {
            NeedKind::Slot => "connection",
            NeedKind::Value => "value",
            NeedKind::Worker => "worker",
        }
    }
}

/// Something that a flow needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    pub kind: NeedKind,
    pub name: String,
    /// The label in the flow.
    pub label: Option<String>,
    /// All that a person agrees to: equal texts are the same need, whatever else the flow says of it.
    pub text: String,
    pub is_optional: bool,
    /// The author provides it.
    pub is_of_author: bool,
}

/// Keys of a slot that decide where requests go and with what.
const DECISIVE: &[&str] = &[
    "type",
    "backend",
    "backends",
    "base-url",
    "auth",
    "oauth",
    "scopes",
    "secret-ref",
    "headers",
    "allow-hosts",
    "allow-link-local",
];

/// Returns what a flow needs, in the order in which it says so.
pub fn needs(flow: &Flow) -> Vec<Need> {
    let entries = flow.requires.as_vector().into_iter();
    let entries = entries.flat_map(|entries| entries.iter());
    let mut all: Vec<Need> = entries.filter_map(of_entry).collect();
    all.extend(flow.setup.iter().map(|field| {
        let name = field.name.to_string();
        Need {
            kind: NeedKind::Value,
            label: None,
            text: format!("value {name} ({})", field.type_),
            is_optional: !field.required || !field.default.is_nil(),
            is_of_author: false,
            name,
        }
    }));
    all
}

fn of_entry(entry: &Value) -> Option<Need> {
    let text = |key: &str| Some(entry.get(key).and_then(name_of)?.to_string());
    let is = |key: &str, value: bool| entry.get(key) == Some(&Value::Bool(value));
    let kind = match text("kind").as_deref() {
        Some("form") => return None,
        Some("worker") => NeedKind::Worker,
        _ => NeedKind::Slot,
    };
    let name = text("slot").or_else(|| text("id"))?;
    let facts = DECISIVE.iter().filter_map(|key| {
        let value = entry.get(key).filter(|value| !value.is_nil())?;
        Some(format!(":{key} {}", codec::canonical(value).ok()?))
    });
    let facts: Vec<String> = facts.collect();
    Some(Need {
        kind,
        label: text("label"),
        text: match facts.is_empty() {
            true => format!("{} {name}", kind.name()),
            false => format!("{} {name} ({})", kind.name(), facts.join(" ")),
        },
        is_optional: is("optional", true) || is("required", false) || kind == NeedKind::Worker,
        is_of_author: text("provided-by").as_deref() == Some("author"),
        name,
    })
}
