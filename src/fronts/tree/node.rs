//! A tree with resolved references, and its two written forms: the data of its flow, and the JSON of documents.

use flowstone_lang::value::Value;
use flowstone_model::json::from_json_with_string_keys;
use serde_json::{Map, Value as Json, json};

/// A tree file that has passed its checks.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// The `name` of the wrapper, or of the root node.
    pub name: String,
    pub description: Option<String>,
    pub dialect: Dialect,
    pub root: Node,
    /// The initial value of `$VAR`.
    pub var: Map<String, Json>,
    /// The value of `$CONST`.
    pub constants: Map<String, Json>,
}

/// The form of a tree file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// A wrapper with `name`, `version`, `tree` and `state` of `var` and `const`.
    Wrapper,
    /// The same wrapper with `state` of `local` and `global`.
    LocalGlobal,
    /// The file is the root node; the node's own `state` is used.
    Bare,
}

/// A node of a tree. `retries` is the number of attempts after the first one.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    Composite {
        kind: Composite,
        name: String,
        retries: u32,
        children: Vec<Node>,
    },
    Action {
        name: String,
        retries: u32,
        steps: Vec<Step>,
    },
    /// A reference back to an enclosing node. Ticking it fails.
    Cycle { reference: String },
}

/// The rule by which the results of children decide the result of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Composite {
    Parallel,
    Selector,
    Sequence,
}

impl Composite {
    /// All rules, with the names that files use.
    pub const NAMES: &[(Composite, &str)] = &[
        (Composite::Parallel, "parallel"),
        (Composite::Selector, "selector"),
        (Composite::Sequence, "sequence"),
    ];

    /// Returns the name that files use.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(kind, _)| *kind == self);
        found.map_or("sequence", |(_, name)| name)
    }
}

/// One step of an action, with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A condition that the driver evaluates.
    Evaluate(String),
    /// Work for the driver.
    Instruct(String),
}

/// Returns the short name of a tree that has some name.
pub(super) fn slug_of(name: &str) -> String {
    let mut slug = String::new();
    let mut is_gap = false;
    for letter in name.to_lowercase().chars() {
        let fits = matches!(letter, 'a'..='z' | '0'..='9' | '_' | '-');
        match fits {
            true => slug.push(letter),
            false if is_gap => {}
            false => slug.push('-'),
        }
        is_gap = !fits;
    }
    match slug.trim_matches('-') {
        "" => "tree".to_owned(),
        slug => slug.to_owned(),
    }
}

impl Tree {
    /// Returns the short name of runs and flows: lower-case letters, digits, `-` and `_`.
    pub fn slug(&self) -> String {
        slug_of(&self.name)
    }

    /// Returns the nodes in the form of run documents.
    pub fn document(&self) -> Json {
        document_node(&self.root.value())
    }

    /// Returns the data that the flow of the tree passes to `flow.tree`.
    pub fn value(&self) -> Value {
        let scope =
            |scope: &Map<String, Json>| from_json_with_string_keys(&Json::Object(scope.clone()));
        Value::map([
            (Value::keyword("root"), self.root.value()),
            (Value::keyword("var"), scope(&self.var)),
            (Value::keyword("const"), scope(&self.constants)),
        ])
    }
}

impl Node {
    /// Returns the node's name; for a cycle, its reference.
    pub fn name(&self) -> &str {
        match self {
            Node::Composite { name, .. } | Node::Action { name, .. } => name,
            Node::Cycle { reference } => reference,
        }
    }

    fn value(&self) -> Value {
        let text = |text: &str| Value::from(text);
        let (kind, name, retries, (list, items)) = match self {
            Node::Cycle { reference } => {
                return Value::map([
                    (Value::keyword("type"), text("ref")),
                    (Value::keyword("ref"), text(reference)),
                ]);
            }
            Node::Composite {
                kind,
                name,
                retries,
                children,
            } => {
                let children = Value::vector(children.iter().map(Node::value));
                (kind.name(), name, *retries, ("children", children))
            }
            Node::Action {
                name,
                retries,
                steps,
            } => {
                let steps = Value::vector(steps.iter().map(Step::value));
                ("action", name, *retries, ("steps", steps))
            }
        };
        let mut entries = vec![
            (Value::keyword("type"), text(kind)),
            (Value::keyword("name"), text(name)),
        ];
        if retries > 0 {
            entries.push((Value::keyword("retries"), Value::Int(i64::from(retries))));
        }
        entries.push((Value::keyword(list), items));
        Value::map(entries)
    }
}

impl Step {
    fn value(&self) -> Value {
        let (key, text) = match self {
            Step::Evaluate(text) => ("evaluate", text),
            Step::Instruct(text) => ("instruct", text),
        };
        Value::map([(Value::keyword(key), Value::from(text.as_str()))])
    }
}

/// Returns a node, as a flow's data has it, in the shape of run documents: steps with `kind`, and `retries` only where
/// there are any.
pub(super) fn document_node(node: &Value) -> Json {
    let text = |key: &str| {
        let found = node.get(key).and_then(Value::as_str);
        Json::from(found.unwrap_or_default())
    };
    let list = |key: &str, of: fn(&Value) -> Json| -> Json {
        let items = node.get(key).and_then(flowstone_model::json::items);
        Json::Array(items.unwrap_or_default().iter().map(of).collect())
    };
    let mut json = match node.get("type").and_then(Value::as_str) {
        Some("ref") => return json!({"type": "ref", "ref": text("ref")}),
        Some("action") => {
            json!({"type": "action", "name": text("name"), "steps": list("steps", document_step)})
        }
        _ => json!({
            "type": text("type"), "name": text("name"), "children": list("children", document_node),
        }),
    };
    if let Some(Value::Int(retries)) = node.get("retries") {
        json["retries"] = json!(retries);
    }
    json
}

fn document_step(step: &Value) -> Json {
    match (step.get("evaluate"), step.get("instruct")) {
        (Some(text), _) => json!({"kind": "evaluate", "expression": text.as_str()}),
        (None, text) => {
            json!({"kind": "instruct", "instruction": text.and_then(Value::as_str)})
        }
    }
}
