//! The whole tree of a run as an outline, with the state of each node.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::{is_composite, one_line};

/// Draws a document.
pub(super) fn outline(document: &Json, run: &str) -> String {
    let text = |key: &str| document[key].as_str().unwrap_or_default();
    let mut out = format!("run {run}: {}, {}\n", text("status"), text("phase"));
    View::of(document).each(&mut |node| {
        let indent = "  ".repeat(node.depth + 1);
        let state = match node.state.is_empty() {
            true => String::new(),
            false => format!(": {}", node.state.join(", ")),
        };
        let _ = writeln!(out, "{indent}{} {}{state}", node.kind, one_line(node.name));
    });
    out.trim_end().to_owned()
}

/// A node as drawings show it.
pub(super) struct Shown<'a> {
    pub kind: &'a str,
    /// The name; that of a cycle is its reference.
    pub name: &'a str,
    pub depth: usize,
    /// `success` or `failure`, once the node has ended.
    pub status: Option<&'a str>,
    pub is_open: bool,
    /// What is known about the node, such as `success` and `1 retried`.
    pub state: Vec<String>,
}

/// The nodes of a document, in the order of the tree.
pub(super) struct View<'a> {
    document: &'a Json,
    open: Option<String>,
}

impl<'a> View<'a> {
    pub fn of(document: &'a Json) -> View<'a> {
        let cursor = document["cursor"].as_str().unwrap_or_default();
        let open: Json = serde_json::from_str(cursor).unwrap_or(Json::Null);
        View {
            document,
            open: path_of(&open["path"]),
        }
    }

    /// Calls a function with each node, parents first.
    pub fn each(&self, draw: &mut dyn FnMut(&Shown<'a>)) {
        self.node(&self.document["tree"], "", 0, draw);
    }

    fn node(&self, node: &'a Json, path: &str, depth: usize, draw: &mut dyn FnMut(&Shown<'a>)) {
        let text = |key: &str| node[key].as_str().unwrap_or_default();
        let kind = text("type");
        let name = match kind {
            "ref" => text("ref"),
            _ => text("name"),
        };
        let status = self.status(path);
        let is_open = self.open.as_deref() == Some(path);
        draw(&Shown {
            kind,
            name,
            depth,
            status,
            is_open,
            state: self.state(path, status, is_open),
        });
        let children = node["children"].as_array().filter(|_| is_composite(kind));
        for (idx, child) in children.into_iter().flatten().enumerate() {
            let path = match path {
                "" => idx.to_string(),
                path => format!("{path}.{idx}"),
            };
            self.node(child, &path, depth + 1, draw);
        }
    }

    fn status(&self, path: &str) -> Option<&'a str> {
        match (path, self.document["status"].as_str()) {
            ("", Some("complete")) => Some("success"),
            ("", Some("failed")) => Some("failure"),
            _ => self.document["runtime"]["node_status"][path].as_str(),
        }
    }

    fn state(&self, path: &str, status: Option<&str>, is_open: bool) -> Vec<String> {
        let runtime = &self.document["runtime"];
        let mut words: Vec<String> = status.map(str::to_owned).into_iter().collect();
        if is_open {
            let step = runtime["step_index"][path].as_u64().unwrap_or(0) + 1;
            words.push(format!("open at step {step}"));
        }
        if let Some(retries) = runtime["retry_count"][path].as_u64() {
            words.push(format!("{retries} retried"));
        }
        words
    }
}

/// Returns the path of a cursor in the form of documents: its parts, separated by points.
fn path_of(path: &Json) -> Option<String> {
    let parts = path.as_array()?.iter();
    let parts: Vec<String> = parts.map(Json::to_string).collect();
    Some(parts.join("."))
}
