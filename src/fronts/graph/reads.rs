//! Reads of `state` before anything has written there.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::shape::{Issue, below};
use super::spec::{GraphSpec, Node};
use super::template;

/// Returns a warning for each template that reads a key of `state` which only the same node or a later one writes: a run finds
/// there what the input has, or nothing.
pub(super) fn too_early(spec: &GraphSpec) -> Vec<Issue> {
    let chain = spec.chain();
    let mut found = Vec::new();
    let mut written: BTreeSet<&str> = BTreeSet::new();
    for (idx, id) in chain.iter().enumerate() {
        let Some(node) = spec.nodes.get(*id) else {
            continue;
        };
        let later = chain.iter().skip(idx);
        for (path, reference) in references(id, node) {
            let Some(key) = reference.filter(|key| !written.contains(key.as_str())) else {
                continue;
            };
            let writer = later
                .clone()
                .find(|later| writes(spec, later) == Some(&*key));
            if let Some(writer) = writer {
                let message = format!(
                    "reads `state.{key}` before the node `{writer}` writes it, so the input must have `{key}`"
                );
                found.push(Issue::at(&path, message));
            }
        }
        written.extend(writes(spec, id));
    }
    found
}

/// Returns the key that a node writes.
fn writes<'a>(spec: &'a GraphSpec, id: &str) -> Option<&'a str> {
    match spec.nodes.get(id)? {
        Node::Llm(node) => Some(&node.output_key),
        Node::Tool(node) => Some(&node.output_key),
        Node::End(_) => None,
    }
}

/// Returns the references in the templates of a node with their places: the key of `state`, if they lead there.
fn references(id: &str, node: &Node) -> Vec<(Vec<Json>, Option<String>)> {
    let path = [json!("nodes"), json!(id)];
    let text = |key: &str, text: &str| (below(&path, key), json!(text));
    let templates = match node {
        Node::Llm(node) => vec![
            text("system_prompt", &node.system_prompt),
            text("input_template", &node.input_template),
        ],
        Node::Tool(node) => vec![(
            below(&path, "args_template"),
            Json::Object(node.args_template.clone()),
        )],
        Node::End(node) => vec![text("output_template", &node.output_template)],
    };
    let mut found = Vec::new();
    for (path, value) in &templates {
        template::texts(value, path, &mut |text, path| {
            for tag in template::tags(text).0 {
                let reference = template::reference(tag).unwrap_or_default();
                let key = match reference[..] {
                    ["state", key, ..] => Some(key.to_owned()),
                    _ => None,
                };
                found.push((path.to_vec(), key));
            }
        });
    }
    found
}
