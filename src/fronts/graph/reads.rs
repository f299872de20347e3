//! Reads of `state` before anything has written there.

use std::collections::BTreeSet;

use super::shape::{Issue, Position};
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
        references(id, node, &mut |key, at| {
            if written.contains(key) {
                return;
            }
            let mut later = chain.iter().skip(idx);
            if let Some(writer) = later.find(|later| writes(spec, later) == Some(key)) {
                let message = format!(
                    "reads `state.{key}` before the node `{writer}` writes it, so the input must have `{key}`"
                );
                found.push(at.issue(message));
            }
        });
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

/// Calls a function with each key of `state` that the templates of a node read, and its position.
fn references(id: &str, node: &Node, each: &mut dyn FnMut(&str, &Position<'_>)) {
    let nodes = Position::Member(&Position::Root, "nodes");
    let node_at = Position::Member(&nodes, id);
    let mut keys = |text: &str, at: &Position<'_>| {
        for tag in template::tags(text).0 {
            let reference = template::reference(tag).unwrap_or_default();
            if let ["state", key, ..] = reference[..] {
                each(key, at);
            }
        }
    };
    let mut text = |name: &str, text: &str| keys(text, &Position::Member(&node_at, name));
    match node {
        Node::Llm(node) => {
            text("system_prompt", &node.system_prompt);
            text("input_template", &node.input_template);
        }
        Node::Tool(node) => {
            let args = Position::Member(&node_at, "args_template");
            for (name, value) in &node.args_template {
                template::texts(value, &Position::Member(&args, name), &mut keys);
            }
        }
        Node::End(node) => text("output_template", &node.output_template),
    }
}
