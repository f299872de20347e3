//! The input of a graph agent as a JSON Schema: what its templates read.
//!
//! A spec declares no input, and a template that finds nothing ends the run. So every member that a template reads is
//! required, except those that an earlier node may have written to `state`.

use serde_json::{Map, Value as Json, json};

use super::shape::Position;
use super::spec::{GraphSpec, Node};
use super::template::{self, Reference};

/// The key of `state` that an `interrupt` writes.
const HUMAN_INPUT: &str = "human_input";

/// Returns the schema of the input of a spec's runs.
pub fn input_schema(spec: &GraphSpec) -> Json {
    let mut read = Read::default();
    let mut written = vec![HUMAN_INPUT];
    for id in spec.chain() {
        let Some(node) = spec.nodes.get(id) else {
            continue;
        };
        for template in templates(node) {
            for tag in template::tags(template).0 {
                if let Ok(reference) = template::reference(tag) {
                    read.take(&reference, &written);
                }
            }
        }
        match node {
            Node::Llm(node) => written.push(&node.output_key),
            Node::Tool(node) => written.push(&node.output_key),
            Node::End(_) => {}
        }
    }
    read.schema()
}

fn templates(node: &Node) -> Vec<&str> {
    match node {
        Node::Llm(node) => vec![&node.system_prompt, &node.input_template],
        Node::Tool(node) => {
            let mut found = Vec::new();
            for value in node.args_template.values() {
                template::texts(value, &Position::Root, &mut |text, _| found.push(text));
            }
            found
        }
        Node::End(node) => vec![&node.output_template],
    }
}

/// The members of the input that templates read.
#[derive(Default)]
struct Read {
    properties: Map<String, Json>,
    /// A template inserts the whole input.
    is_open: bool,
}

impl Read {
    fn take(&mut self, reference: &Reference<'_>, written: &[&str]) {
        let (root, key, inner) = match reference.as_slice() {
            [root] => (*root, None, None),
            [root, key] => (*root, Some(*key), None),
            [root, key, inner, ..] => (*root, Some(*key), Some(*inner)),
            [] => return,
        };
        let Some(key) = key else {
            self.is_open |= root == "input";
            return;
        };
        if root == "state" && written.contains(&key) {
            return;
        }
        let is_idx = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let kind = match inner {
            None => "string",
            Some(inner) if is_idx(inner) => "array",
            Some(_) => "object",
        };
        let known = self.properties.get(key).and_then(|it| it["type"].as_str());
        // A path into a value says more about it than its insertion as text.
        if known.is_none_or(|known| known == "string") {
            self.properties
                .insert(key.to_owned(), json!({"type": kind}));
        }
    }

    fn schema(self) -> Json {
        let required: Vec<&String> = self.properties.keys().collect();
        let mut schema = json!({"type": "object", "properties": {}});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if !self.is_open {
            schema["additionalProperties"] = json!(false);
        }
        schema["properties"] = Json::Object(self.properties);
        schema
    }
}
