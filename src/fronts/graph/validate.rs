//! Validates a spec, and reports all problems at once.
//!
//! The shape is checked first. The checks of meaning (edges, templates, tools) then use the well-formed parts, so that
//! one malformed node does not hide the problems of others.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};

use super::reads;
use super::shape::{self, Issue, Position, member};
use super::spec::{GraphSpec, SPEC, SPEC_MAX};
use super::template;

/// The outcome of a validation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Problems that make the spec invalid. Empty if it is valid.
    pub issues: Vec<Issue>,
    /// Problems that the author should know, but that do not make the spec invalid.
    pub warnings: Vec<Issue>,
}

impl Report {
    pub fn is_valid(&self) -> bool {
        self.issues.is_empty()
    }

    /// Returns `{"valid": ..., "issues": [...], "warnings": [...]}`; empty lists are left out.
    pub fn to_json(&self) -> Json {
        let mut members = Map::new();
        members.insert("valid".to_owned(), json!(self.is_valid()));
        for (name, found) in [("issues", &self.issues), ("warnings", &self.warnings)] {
            if !found.is_empty() {
                let list: Vec<Json> = found.iter().map(Issue::to_json).collect();
                members.insert(name.to_owned(), Json::Array(list));
            }
        }
        Json::Object(members)
    }
}

/// Checks a spec, and reads it if it is valid. References to the project (tools, models) are not checked.
pub fn validate(spec: &Json) -> (Option<GraphSpec>, Report) {
    let mut report = Report::default();
    if let Some(length) = too_long(spec) {
        let message = format!("expected a spec of at most {SPEC_MAX} bytes, got {length} bytes");
        report.issues.push(Issue::at(&[], message));
        return (None, report);
    }
    shape::check(&SPEC, spec, &mut report.issues);
    let parts = Parts::of(spec);
    parts.check_edges(&mut report);
    parts.check_templates(&mut report);
    parts.check_tools(&mut report);
    if !report.is_valid() {
        return (None, report);
    }
    match GraphSpec::read(spec) {
        Ok(spec) => {
            warn_of_steps(&spec, &mut report);
            report.warnings.extend(reads::too_early(&spec));
            (Some(spec), report)
        }
        Err(error) => {
            // The shape and the types must agree; a difference is a defect of Flowstone.
            let message = format!("internal error: the spec cannot be read: {error}");
            report.issues.push(Issue::at(&[], message));
            (None, report)
        }
    }
}

/// Returns the length of a spec as text, if that is too long.
fn too_long(spec: &Json) -> Option<usize> {
    // The text is written only if the estimate allows it to be too long.
    let length = (most_bytes(spec) > SPEC_MAX).then(|| spec.to_string().len());
    length.filter(|length| *length > SPEC_MAX)
}

/// Returns an upper limit for the length of a value as text.
fn most_bytes(value: &Json) -> usize {
    // A character of one byte becomes at most `\u0000`; a comma or colon may follow.
    let of_text = |text: &str| 6 * text.len() + 3;
    match value {
        Json::Null | Json::Bool(_) => 6,
        Json::Number(_) => 40,
        Json::String(text) => of_text(text),
        Json::Array(items) => 3 + items.iter().map(most_bytes).sum::<usize>(),
        Json::Object(members) => {
            let members = members.iter();
            let lengths = members.map(|(name, value)| of_text(name) + most_bytes(value));
            3 + lengths.sum::<usize>()
        }
    }
}

fn warn_of_steps(spec: &GraphSpec, report: &mut Report) {
    let visits = i64::try_from(spec.chain().len()).unwrap_or(i64::MAX);
    let most = spec.limits.max_steps;
    if visits > most {
        let path = [json!("limits"), json!("max_steps")];
        let message = format!("a run visits {visits} nodes, so it always fails after {most}");
        report.warnings.push(Issue::at(&path, message));
    }
}

/// The well-formed parts of a spec, which the checks of meaning use.
struct Parts<'a> {
    spec: &'a Json,
    entry: Option<&'a str>,
    nodes: Option<&'a Map<String, Json>>,
    /// Edges as position, from and to.
    edges: Vec<(usize, &'a str, &'a str)>,
}

impl<'a> Parts<'a> {
    fn of(spec: &'a Json) -> Parts<'a> {
        let edges = spec.get("edges").and_then(Json::as_array);
        let text = |edge: &'a Json, key: &str| member(edge.as_object()?, key)?.as_str();
        Parts {
            spec,
            entry: spec.get("entry").and_then(Json::as_str),
            nodes: spec.get("nodes").and_then(Json::as_object),
            edges: edges
                .into_iter()
                .flatten()
                .enumerate()
                .filter_map(|(idx, edge)| Some((idx, text(edge, "from")?, text(edge, "to")?)))
                .collect(),
        }
    }

    fn node(&self, id: &str) -> Option<&'a Json> {
        self.nodes?.get(id)
    }

    /// Returns the nodes that are objects.
    fn nodes(&self) -> impl Iterator<Item = (&'a str, &'a Map<String, Json>)> + use<'a> {
        let nodes = self.nodes.into_iter().flatten();
        nodes.filter_map(|(id, node)| Some((id.as_str(), node.as_object()?)))
    }

    fn kind(&self, id: &str) -> Option<&'a str> {
        member(self.node(id)?.as_object()?, "type")?.as_str()
    }

    fn check_edges(&self, report: &mut Report) {
        let has = |key: &str, is: fn(&Json) -> bool| self.spec.get(key).is_some_and(is);
        if !has("nodes", Json::is_object) || !has("edges", Json::is_array) {
            // Everything else would follow from that.
            return;
        }
        let issues = &mut report.issues;
        if let Some(entry) = self.entry.filter(|entry| self.node(entry).is_none()) {
            let message = format!("there is no node `{entry}`");
            issues.push(Issue::at(&[json!("entry")], message));
        }
        let mut next: BTreeMap<&str, &str> = BTreeMap::new();
        for (idx, from, to) in &self.edges {
            let at = |end: &str| vec![json!("edges"), json!(idx), json!(end)];
            for (end, id) in [("from", from), ("to", to)] {
                if self.node(id).is_none() {
                    issues.push(Issue::at(&at(end), format!("there is no node `{id}`")));
                }
            }
            if self.kind(from) == Some("end") {
                let message = format!("the end node `{from}` cannot have an outgoing edge");
                issues.push(Issue::at(&at("from"), message));
            }
            if let Some(other) = next.get(from) {
                let message = format!(
                    "the node `{from}` has an edge to `{other}` already: expected at most one outgoing edge"
                );
                issues.push(Issue::at(&at("from"), message));
                continue;
            }
            next.insert(from, to);
        }
        self.check_cycles(&next, issues);
        self.check_reach(&next, report);
    }

    /// Each cycle is reported once. A node has one successor, so a cycle is a walk that returns to one of its nodes.
    fn check_cycles(&self, next: &BTreeMap<&str, &str>, issues: &mut Vec<Issue>) {
        let mut done: BTreeSet<&str> = BTreeSet::new();
        for start in next.keys() {
            let mut walk: Vec<&str> = Vec::new();
            let mut at = Some(*start);
            while let Some(id) = at {
                if !done.insert(id) {
                    // The node belongs to this walk or to an earlier one.
                    if let Some(first) = walk.iter().position(|seen| *seen == id) {
                        let cycle = [&walk[first..], &[id]].concat().join(" -> ");
                        let message = format!("the edges form a cycle: {cycle}");
                        issues.push(Issue::at(&[json!("edges")], message));
                    }
                    break;
                }
                walk.push(id);
                at = next.get(id).copied();
            }
        }
    }

    fn check_reach(&self, next: &BTreeMap<&str, &str>, report: &mut Report) {
        let Some(entry) = self.entry.filter(|entry| self.node(entry).is_some()) else {
            return;
        };
        let mut reached: BTreeSet<&str> = BTreeSet::new();
        let mut at = entry;
        loop {
            if !reached.insert(at) {
                // A cycle is a separate issue.
                break;
            }
            let Some(to) = next.get(at) else {
                if self.kind(at).is_some_and(|kind| kind != "end") {
                    let path = [json!("nodes"), json!(at)];
                    let message = format!(
                        "the node `{at}` is not an end node and has no outgoing edge, so no `end` is reached from `{entry}`"
                    );
                    report.issues.push(Issue::at(&path, message));
                }
                break;
            };
            if self.node(to).is_none() {
                break;
            }
            at = to;
        }
        for id in self.nodes.into_iter().flat_map(Map::keys) {
            if !reached.contains(id.as_str()) {
                let path = [json!("nodes"), json!(id)];
                let message = format!("the node `{id}` is not reached from `{entry}`");
                report.warnings.push(Issue::at(&path, message));
            }
        }
    }

    fn check_templates(&self, report: &mut Report) {
        let written: BTreeSet<&str> = self
            .nodes()
            .filter_map(|(_, node)| member(node, "output_key")?.as_str())
            .collect();
        let nodes_at = Position::Member(&Position::Root, "nodes");
        for (id, node) in self.nodes() {
            let node_at = Position::Member(&nodes_at, id);
            for field in [
                "system_prompt",
                "input_template",
                "output_template",
                "args_template",
            ] {
                let Some(value) = member(node, field) else {
                    continue;
                };
                let at = Position::Member(&node_at, field);
                template::texts(value, &at, &mut |text, at| {
                    check_template(text, at, &written, report);
                });
            }
        }
    }

    fn check_tools(&self, report: &mut Report) {
        let allowed = Allowed::of(self.spec);
        let nodes_at = Position::Member(&Position::Root, "nodes");
        for (id, node) in self.nodes() {
            let node_at = Position::Member(&nodes_at, id);
            if let Some(tool) = member(node, "tool_ref") {
                let at = Position::Member(&node_at, "tool_ref");
                allowed.check(tool, &at, &mut report.issues);
            }
            let tools_at = Position::Member(&node_at, "tools");
            let mut names: Vec<&str> = Vec::new();
            let tools = member(node, "tools").and_then(Json::as_array);
            for (idx, tool) in tools.into_iter().flatten().enumerate() {
                let at = Position::Item(&tools_at, idx);
                allowed.check(tool, &at, &mut report.issues);
                let Some(name) = tool.get("name").and_then(Json::as_str) else {
                    continue;
                };
                if names.contains(&name) {
                    let message = format!(
                        "the node lists two tools called `{name}`, and a model knows tools by their names"
                    );
                    report.issues.push(at.issue(message));
                }
                names.push(name);
            }
        }
    }
}

fn check_template(text: &str, at: &Position<'_>, written: &BTreeSet<&str>, report: &mut Report) {
    let found = template::check(text, at, &mut report.issues, &mut report.warnings);
    for reference in found {
        if let ["state", key, ..] = reference[..]
            && key != "human_input"
            && !written.contains(key)
        {
            let message = format!("no node writes `state.{key}`, so the input must have `{key}`");
            report.warnings.push(at.issue(message));
        }
    }
}

/// The tools of the top-level block.
struct Allowed<'a> {
    builtin: Vec<&'a str>,
    functions: Vec<&'a str>,
    /// Tool names, by server.
    mcp: Vec<(&'a str, Vec<&'a str>)>,
}

impl<'a> Allowed<'a> {
    fn of(spec: &'a Json) -> Allowed<'a> {
        let tools = spec.get("tools");
        let names = |value: Option<&'a Json>| -> Vec<&'a str> {
            let items = value.and_then(Json::as_array).into_iter().flatten();
            items.filter_map(Json::as_str).collect()
        };
        let servers = tools
            .and_then(|it| it.get("mcp_servers"))
            .and_then(Json::as_array);
        Allowed {
            builtin: names(tools.and_then(|it| it.get("builtin"))),
            functions: names(tools.and_then(|it| it.get("functions"))),
            mcp: servers
                .into_iter()
                .flatten()
                .filter_map(|server| {
                    let id = server.get("server_id").and_then(Json::as_str)?;
                    Some((id, names(server.get("tools"))))
                })
                .collect(),
        }
    }

    fn check(&self, tool: &Json, at: &Position<'_>, issues: &mut Vec<Issue>) {
        let text = |key: &str| tool.get(key).and_then(Json::as_str);
        let (Some(source), Some(name)) = (text("source"), text("name")) else {
            return;
        };
        let (is_listed, place) = match source {
            "builtin" => (
                is_builtin_listed(&self.builtin, name),
                "tools.builtin".to_owned(),
            ),
            "function" => (self.functions.contains(&name), "tools.functions".to_owned()),
            "mcp" => {
                let Some(id) = text("server_id") else {
                    return;
                };
                let mut servers = self.mcp.iter();
                let is_listed = servers.any(|(known, tools)| *known == id && tools.contains(&name));
                (
                    is_listed,
                    format!("tools.mcp_servers for the server `{id}`"),
                )
            }
            _ => return,
        };
        if !is_listed {
            let message = format!("the tool `{name}` is not listed in {place}");
            issues.push(at.issue(message));
        }
    }
}

/// A built-in tool may be listed under any of its names.
fn is_builtin_listed(listed: &[&str], name: &str) -> bool {
    let same = super::builtin::canonical(name);
    listed
        .iter()
        .any(|known| super::builtin::canonical(known) == same)
}
