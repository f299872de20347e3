//! An exported workflow as data: its nodes and the connections between them, in an order in which each node comes after those
//! that it gets its input from.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::ImportError;

/// Maximum size of an export in bytes.
pub const MOST_BYTES: usize = 5_000_000;
/// Maximum number of nodes.
pub const MOST_NODES: usize = 500;
/// The connection type of data; others attach models and tools to agents.
const MAIN: &str = "main";

/// A workflow.
#[derive(Debug)]
pub(super) struct Workflow {
    pub name: String,
    pub timezone: Option<String>,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// Connections of other types than data, each as the name of the node that it starts from and its type.
    pub others: BTreeSet<(String, String)>,
}

/// A node.
#[derive(Debug)]
pub(super) struct Node {
    pub name: String,
    /// The type with its package, such as `n8n-nodes-base.httpRequest`.
    pub type_: String,
    pub version: f64,
    pub parameters: Json,
    pub is_disabled: bool,
}

/// A connection that data takes, by the indices of the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    pub from: usize,
    pub output: usize,
    pub to: usize,
}

impl Node {
    /// Returns the type without its package.
    pub(super) fn kind(&self) -> &str {
        self.type_.rsplit('.').next().unwrap_or(&self.type_)
    }

    /// Tells whether it starts the workflow.
    pub(super) fn is_trigger(&self) -> bool {
        matches!(self.kind(), "start" | "webhook" | "cron" | "interval")
            || self.kind().to_ascii_lowercase().ends_with("trigger")
    }
}

/// Reads a workflow.
///
/// # Errors
/// When the text is too large, is not JSON, is not a workflow, or has connections between nodes that do not exist.
pub(super) fn read(text: &str) -> Result<Workflow, ImportError> {
    if text.len() > MOST_BYTES {
        return Err(ImportError::TooLarge {
            what: format!(
                "the file has {} bytes, and an import at most {MOST_BYTES}",
                text.len()
            ),
        });
    }
    let json: Json =
        serde_json::from_str(text).map_err(|error| ImportError::NotJson(error.to_string()))?;
    if json.is_array() {
        return Err(wrong(
            "the file holds a list; export one workflow at a time",
        ));
    }
    let Some(given) = json.get("nodes").and_then(Json::as_array) else {
        return Err(wrong("it has no `nodes`, so it is not a workflow of n8n"));
    };
    if given.len() > MOST_NODES {
        return Err(ImportError::TooLarge {
            what: format!(
                "the workflow has {} nodes, and an import at most {MOST_NODES}",
                given.len()
            ),
        });
    }
    let mut nodes = Vec::new();
    let mut by_name = BTreeMap::new();
    for (idx, node) in given.iter().enumerate() {
        let node = node_of(node, idx)?;
        if by_name.insert(node.name.clone(), idx).is_some() {
            return Err(wrong(format!("two nodes are called `{}`", node.name)));
        }
        nodes.push(node);
    }
    let (edges, others) = edges(json.get("connections").unwrap_or(&Json::Null), &by_name)?;
    let text = |json: &Json| json.as_str().map(str::to_owned);
    Ok(Workflow {
        name: json
            .get("name")
            .and_then(text)
            .unwrap_or_else(|| "Imported workflow".to_owned()),
        timezone: json.pointer("/settings/timezone").and_then(text),
        nodes,
        edges,
        others,
    })
}

fn wrong(what: impl Into<String>) -> ImportError {
    ImportError::NotAWorkflow(what.into())
}

fn node_of(node: &Json, idx: usize) -> Result<Node, ImportError> {
    let text = |key: &str| {
        let text = node
            .get(key)
            .and_then(Json::as_str)
            .filter(|text| !text.is_empty());
        text.map(str::to_owned)
            .ok_or_else(|| wrong(format!("`nodes[{idx}]` needs `{key}`, a text")))
    };
    let parameters = node.get("parameters").cloned();
    Ok(Node {
        name: text("name")?,
        type_: text("type")?,
        version: node
            .get("typeVersion")
            .and_then(Json::as_f64)
            .unwrap_or(1.0),
        parameters: parameters.filter(Json::is_object).unwrap_or(Json::Null),
        is_disabled: node
            .get("disabled")
            .and_then(Json::as_bool)
            .unwrap_or(false),
    })
}

type Edges = (Vec<Edge>, BTreeSet<(String, String)>);

fn edges(connections: &Json, by_name: &BTreeMap<String, usize>) -> Result<Edges, ImportError> {
    let (mut edges, mut others) = (BTreeSet::new(), BTreeSet::new());
    if connections.is_null() {
        return Ok((Vec::new(), others));
    }
    let Some(connections) = connections.as_object() else {
        return Err(wrong("`connections` must be an object"));
    };
    let index = |name: &str| {
        let index = by_name.get(name).copied();
        index.ok_or_else(|| {
            wrong(format!(
                "`connections` names the node `{name}`, which does not exist"
            ))
        })
    };
    for (name, outputs) in connections {
        let from = index(name)?;
        let Some(outputs) = outputs.as_object() else {
            return Err(wrong(format!(
                "`connections` of `{name}` must be an object"
            )));
        };
        for (type_, ports) in outputs {
            if type_ != MAIN {
                others.insert((name.clone(), type_.clone()));
                continue;
            }
            for (output, targets) in ports.as_array().into_iter().flatten().enumerate() {
                for target in targets.as_array().into_iter().flatten() {
                    let Some(to) = target.get("node").and_then(Json::as_str) else {
                        return Err(wrong(format!("a connection of `{name}` has no `node`")));
                    };
                    let to = index(to)?;
                    edges.insert(Edge { from, output, to });
                }
            }
        }
    }
    Ok((edges.into_iter().collect(), others))
}

impl Workflow {
    /// Returns the indices of the nodes that can be reached from `starts`, each after those that lead to it.
    ///
    /// # Errors
    /// When connections lead back to a node.
    pub(super) fn order(&self, starts: &[usize]) -> Result<Vec<usize>, ImportError> {
        let mut reached: BTreeSet<usize> = BTreeSet::new();
        let mut open = starts.to_vec();
        while let Some(node) = open.pop() {
            if reached.insert(node) {
                open.extend(
                    self.edges
                        .iter()
                        .filter(|edge| edge.from == node)
                        .map(|edge| edge.to),
                );
            }
        }
        let mut missing: BTreeMap<usize, usize> = reached.iter().map(|node| (*node, 0)).collect();
        for edge in self
            .edges
            .iter()
            .filter(|edge| reached.contains(&edge.from))
        {
            *missing.entry(edge.to).or_default() += 1;
        }
        let mut order = Vec::new();
        // Among those that can come next, the one that stands first in the file.
        while let Some(node) = missing
            .iter()
            .find(|(_, count)| **count == 0)
            .map(|(node, _)| *node)
        {
            missing.remove(&node);
            order.push(node);
            for edge in self.edges.iter().filter(|edge| edge.from == node) {
                if let Some(count) = missing.get_mut(&edge.to) {
                    *count -= 1;
                }
            }
        }
        match missing.is_empty() {
            true => Ok(order),
            false => Err(ImportError::Cycle(self.cycle(&missing))),
        }
    }

    /// Returns the names of the nodes of a cycle, among nodes of which each has one before it.
    fn cycle(&self, among: &BTreeMap<usize, usize>) -> Vec<String> {
        let before = |node: usize| {
            let edges = self.edges.iter();
            edges
                .filter(|edge| edge.to == node)
                .map(|edge| edge.from)
                .find(|it| among.contains_key(it))
        };
        let mut path: Vec<usize> = Vec::new();
        let mut node = among.keys().next().copied();
        while let Some(at) = node {
            if let Some(from) = path.iter().position(|it| *it == at) {
                let cycle = path[from..]
                    .iter()
                    .rev()
                    .map(|it| self.nodes[*it].name.clone());
                return cycle.collect();
            }
            path.push(at);
            node = before(at);
        }
        Vec::new()
    }
}
