//! The whole tree of a run as an outline, with the state of each node.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::is_composite;

/// Draws a document.
pub(super) fn outline(document: &Json, run: &str) -> String {
    let text = |key: &str| document[key].as_str().unwrap_or_default();
    let mut out = format!("run {run}: {}, {}\n", text("status"), text("phase"));
    let open: Json = serde_json::from_str(text("cursor")).unwrap_or(Json::Null);
    let mut drawing = Drawing {
        document,
        open: path_of(&open["path"]),
        out: &mut out,
    };
    drawing.node(&document["tree"], "", 0);
    out.trim_end().to_owned()
}

/// Returns the path of a cursor in the form of documents: its parts, separated by points.
fn path_of(path: &Json) -> Option<String> {
    let parts = path.as_array()?.iter();
    let parts: Vec<String> = parts.map(Json::to_string).collect();
    Some(parts.join("."))
}

struct Drawing<'a> {
    document: &'a Json,
    open: Option<String>,
    out: &'a mut String,
}

impl Drawing<'_> {
    fn node(&mut self, node: &Json, path: &str, depth: usize) {
        let text = |key: &str| node[key].as_str().unwrap_or_default();
        let indent = "  ".repeat(depth + 1);
        let kind = text("type");
        let name = match kind {
            "ref" => text("ref"),
            _ => text("name"),
        };
        let state = self.state(path);
        let _ = writeln!(self.out, "{indent}{kind} {name}{state}");
        if is_composite(kind) {
            for (idx, child) in node["children"]
                .as_array()
                .into_iter()
                .flatten()
                .enumerate()
            {
                let path = match path {
                    "" => idx.to_string(),
                    path => format!("{path}.{idx}"),
                };
                self.node(child, &path, depth + 1);
            }
        }
    }

    /// Describes the state of a node.
    fn state(&self, path: &str) -> String {
        let runtime = &self.document["runtime"];
        let mut words = Vec::new();
        let status = match (path, self.document["status"].as_str()) {
            ("", Some("complete")) => Some("success"),
            ("", Some("failed")) => Some("failure"),
            _ => runtime["node_status"][path].as_str(),
        };
        words.extend(status.map(str::to_owned));
        if self.open.as_deref() == Some(path) {
            let step = runtime["step_index"][path].as_u64().unwrap_or(0) + 1;
            words.push(format!("open at step {step}"));
        }
        if let Some(retries) = runtime["retry_count"][path].as_u64() {
            words.push(format!("{retries} retried"));
        }
        match words.is_empty() {
            true => String::new(),
            false => format!(": {}", words.join(", ")),
        }
    }
}
