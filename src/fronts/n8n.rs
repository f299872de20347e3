//! Workflows of n8n as flows: `flowstone import n8n`.
//!
//! A node becomes a binding of one `let`, whose value is the one item that the node passes on. What is not taken over is reported,
//! node by node: such a node passes its input on. Nothing is sent anywhere, and no code of the workflow is run.

mod conditions;
mod expression;
mod nodes;
mod starts;
mod workflow;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value as Json;

use expression::edn_text;
use workflow::{Edge, Workflow};

pub use workflow::{MOST_BYTES, MOST_NODES};

/// Why a workflow cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    #[error("it is not JSON: {0}")]
    NotJson(String),
    #[error("{0}")]
    NotAWorkflow(String),
    #[error("{what}")]
    TooLarge { what: String },
    #[error("the connections lead in a circle: {}", .0.join(" → "))]
    Cycle(Vec<String>),
}

impl ImportError {
    pub fn code(&self) -> &'static str {
        match self {
            ImportError::NotJson(_) | ImportError::NotAWorkflow(_) => "E1496",
            ImportError::TooLarge { .. } => "E1497",
            ImportError::Cycle(_) => "E1498",
        }
    }

    /// Returns what to try.
    pub fn hint(&self) -> &'static str {
        match self {
            ImportError::NotJson(_) | ImportError::NotAWorkflow(_) => {
                "download the workflow in n8n: the menu of the editor, Download"
            }
            ImportError::TooLarge { .. } => "split the workflow in n8n, and import the parts",
            ImportError::Cycle(_) => {
                "remove the connection that leads back, import the rest, and repeat the steps in the flow with `for` or `loop`"
            }
        }
    }
}

/// A workflow as a flow.
#[derive(Debug)]
pub struct Imported {
    pub slug: String,
    /// The text of the flow file.
    pub text: String,
    /// What was not taken over as it is.
    pub remarks: Vec<Remark>,
    /// The number of nodes that are in the flow.
    pub nodes: usize,
}

/// Something that was not taken over as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The node; `None` for the workflow as a whole.
    pub node: Option<String>,
    pub text: String,
}

/// Makes a flow of an exported workflow. `slug`: that of the flow, if it is not to be made of the workflow's name.
///
/// # Errors
/// When the text is not a workflow, is too large, or its connections lead in a circle.
pub fn import(text: &str, slug: Option<&str>) -> Result<Imported, ImportError> {
    let workflow = workflow::read(text)?;
    let slug = slug.map_or_else(|| names::slug(&workflow.name), str::to_owned);
    let mut remarks = Vec::new();
    let starts = start_nodes(&workflow, &mut remarks);
    let order = workflow.order(&starts)?;
    let names = names::of(&workflow, &order);
    let mut writer = Writer {
        workflow: &workflow,
        names,
        order,
        skippable: Vec::new(),
        branching: BTreeMap::new(),
        remarks,
        bindings: String::new(),
        slots: BTreeMap::new(),
        templates: Vec::new(),
    };
    writer.unreached();
    writer.others();
    let entries = starts::read(&workflow, &starts, &mut writer.remarks);
    writer.nodes();
    let result = writer.result();
    let text = writer.flow(&slug, &entries, &result);
    Ok(Imported {
        slug,
        text,
        nodes: writer.order.len(),
        remarks: writer.remarks,
    })
}

/// Returns the nodes that a run begins with.
fn start_nodes(workflow: &Workflow, remarks: &mut Vec<Remark>) -> Vec<usize> {
    let nodes = workflow.nodes.iter().enumerate();
    let triggers: Vec<usize> = nodes
        .filter(|(_, node)| node.is_trigger())
        .map(|(idx, _)| idx)
        .collect();
    if !triggers.is_empty() {
        return triggers;
    }
    if !workflow.nodes.is_empty() {
        remarks.push(Remark {
            node: None,
            text: "it has no trigger: the flow begins with the nodes that nothing leads to"
                .to_owned(),
        });
    }
    let is_note = |idx: usize| workflow.nodes[idx].kind() == "stickyNote";
    let has_input = |idx: usize| workflow.edges.iter().any(|edge| edge.to == idx);
    (0..workflow.nodes.len())
        .filter(|idx| !has_input(*idx) && !is_note(*idx))
        .collect()
}

/// Writes the bindings of a flow.
struct Writer<'w> {
    workflow: &'w Workflow,
    /// The symbol of each node.
    names: BTreeMap<usize, String>,
    order: Vec<usize>,
    /// The nodes that a run may skip.
    skippable: Vec<usize>,
    /// The nodes that choose an output, each with how.
    branching: BTreeMap<usize, Branching>,
    remarks: Vec<Remark>,
    bindings: String,
    /// The slots of connections, each with its entry.
    slots: BTreeMap<String, String>,
    templates: Vec<String>,
}

/// How a node chooses its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Branching {
    /// The first output for true, the second for false.
    Condition,
    /// By the number of the output.
    Number,
}

impl Writer<'_> {
    fn remark(&mut self, node: usize, text: impl Into<String>) {
        let remark = Remark {
            node: Some(self.workflow.nodes[node].name.clone()),
            text: text.into(),
        };
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Reports the nodes that no trigger leads to.
    fn unreached(&mut self) {
        for (idx, node) in self.workflow.nodes.iter().enumerate() {
            if !self.order.contains(&idx) && node.kind() != "stickyNote" {
                self.remark(idx, "left out: no trigger leads to it");
            }
        }
    }

    /// Reports connections that data does not take.
    fn others(&mut self) {
        for (name, type_) in &self.workflow.others {
            self.remarks.push(Remark {
                node: Some(name.clone()),
                text: format!("its connection of type `{type_}` is left out: give the agent its model and tools in the flow"),
            });
        }
    }

    fn nodes(&mut self) {
        for node in self.order.clone() {
            let input = self.input(node);
            let code = self.node(node, &input.symbol);
            let code = match input.guard {
                Some(guard) => {
                    self.skippable.push(node);
                    format!(
                        "(if {guard}\n  {}\n  {{:n8n-import/skipped true}})",
                        indented(&code, 2)
                    )
                }
                None => code,
            };
            let name = self.names[&node].clone();
            self.bind(&name, &code);
        }
    }

    fn bind(&mut self, name: &str, code: &str) {
        let indent = name.len() + 1;
        let _ = write!(self.bindings, "\n{name} {}", indented(code, indent));
    }

    /// Adds a line of comment before the next binding.
    fn comment(&mut self, text: &str) {
        for line in text.lines() {
            let _ = write!(self.bindings, "\n;; {}", line.trim_end());
        }
    }

    /// Returns what a node gets, and the condition under which it runs.
    fn input(&mut self, node: usize) -> Input {
        let edges: Vec<Edge> = self
            .workflow
            .edges
            .iter()
            .copied()
            .filter(|edge| edge.to == node)
            .collect();
        let edges: Vec<Edge> = edges
            .into_iter()
            .filter(|edge| self.order.contains(&edge.from))
            .collect();
        if edges.is_empty() || self.workflow.nodes[node].is_trigger() {
            return Input {
                symbol: "input".to_owned(),
                guard: None,
            };
        }
        let sources: Vec<(String, Option<String>)> = edges
            .iter()
            .map(|edge| (self.names[&edge.from].clone(), self.condition(*edge)))
            .collect();
        if let [(symbol, guard)] = &sources[..] {
            return Input {
                symbol: symbol.clone(),
                guard: guard.clone(),
            };
        }
        let name = format!("{}-input", self.names[&node]);
        let is_merge = self.workflow.nodes[node].kind() == "merge";
        if !is_merge {
            self.remark(node, "several nodes lead to it: it runs once, with the input of the first that was not skipped");
        }
        let is_certain = sources.iter().all(|(_, guard)| guard.is_none());
        let mut sources = sources;
        let is_webhook = |edge: &Edge| self.workflow.nodes[edge.from].kind() == "webhook";
        if is_certain && !is_merge && !edges.iter().all(is_webhook) {
            // A schedule gives no input, so what has one came by the webhook.
            for (edge, (_, guard)) in edges.iter().zip(&mut sources) {
                if is_webhook(edge) {
                    *guard = Some("(seq input)".to_owned());
                }
            }
            sources.sort_by_key(|(_, guard)| guard.is_none());
        }
        let code = match is_merge {
            true => {
                let parts = sources.iter().map(|(symbol, guard)| match guard {
                    Some(guard) => format!("(when {guard} {symbol})"),
                    None => symbol.clone(),
                });
                format!("(merge {})", parts.collect::<Vec<_>>().join(" "))
            }
            false => {
                let parts = sources.iter().map(|(symbol, guard)| {
                    format!("{} {symbol}", guard.as_deref().unwrap_or(":else"))
                });
                format!("(cond {})", parts.collect::<Vec<_>>().join("\n      "))
            }
        };
        self.bind(&name, &code);
        Input {
            guard: (!is_certain).then(|| format!("(some? {name})")),
            symbol: name,
        }
    }

    /// Returns the condition under which a connection passes data; `None` if it always does.
    fn condition(&self, edge: Edge) -> Option<String> {
        let from = &self.names[&edge.from];
        let chosen =
            self.branching
                .get(&edge.from)
                .map(|branching| match (branching, edge.output) {
                    (Branching::Condition, 0) => format!("(true? (:branch {from}))"),
                    (Branching::Condition, _) => format!("(false? (:branch {from}))"),
                    (Branching::Number, output) => format!("(= {output} (:branch {from}))"),
                });
        // A skipped node has no branch.
        let runs = self.skippable.contains(&edge.from);
        chosen.or_else(|| runs.then(|| format!("(not (:n8n-import/skipped {from}))")))
    }

    /// Returns the code of the flow's result: the value of the last node that was not skipped.
    fn result(&mut self) -> String {
        let is_last = |node: &usize| {
            let mut edges = self.workflow.edges.iter();
            !edges.any(|edge| edge.from == *node && self.order.contains(&edge.to))
        };
        let mut last: Vec<usize> = self.order.iter().copied().filter(is_last).collect();
        let is_answer = |node: &usize| self.workflow.nodes[*node].kind() != "respondToWebhook";
        let answers = self.order.iter().copied().filter(|node| !is_answer(node));
        // The answer to a webhook is the result, wherever it is given.
        let answers: Vec<usize> = answers.collect();
        last.retain(|node| !answers.contains(node));
        let all: Vec<usize> = answers.into_iter().chain(last).collect();
        let value = |node: &usize| {
            let name = &self.names[node];
            match self.skippable.contains(node) {
                true => format!("(when-not (:n8n-import/skipped {name}) {name})"),
                false => name.clone(),
            }
        };
        match &all[..] {
            [] => "input".to_owned(),
            [only] => value(only),
            many => format!(
                "(or {})",
                many.iter().map(value).collect::<Vec<_>>().join("\n    ")
            ),
        }
    }

    fn flow(&self, slug: &str, entries: &starts::Entries, result: &str) -> String {
        let mut out = String::new();
        let name = self.workflow.name.replace(['\n', '\r'], " ");
        let _ = writeln!(
            out,
            ";; Imported from the n8n workflow {}.",
            edn_text(&name)
        );
        if !self.remarks.is_empty() {
            let _ = writeln!(out, ";;\n;; Not taken over as it is:");
            for remark in &self.remarks {
                let node = remark
                    .node
                    .as_ref()
                    .map_or_else(String::new, |node| format!("{}: ", edn_text(node)));
                let _ = writeln!(out, ";; - {node}{}", remark.text.replace(['\n', '\r'], " "));
            }
        }
        let _ = write!(
            out,
            "{{:slug :{slug}\n :name {}\n :icon :workflow\n",
            edn_text(&self.workflow.name)
        );
        let _ = writeln!(
            out,
            " :concurrency {{:type :singleton :on-new-version :supersede}}"
        );
        let vector = |key: &str, items: Vec<String>| {
            let indent = format!("\n{}", " ".repeat(key.len() + 4));
            format!(" :{key} [{}]\n", items.join(&indent))
        };
        if !self.slots.is_empty() {
            out.push_str(&vector("requires", self.slots.values().cloned().collect()));
        }
        if !self.templates.is_empty() {
            out.push_str(&vector("templates", self.templates.clone()));
        }
        out.push_str(" :invocations {:default {:label \"Run\" :inputs []}}\n");
        let _ = writeln!(
            out,
            " :interfaces {{{}}}",
            entries.interfaces.join("\n              ")
        );
        if !entries.schedules.is_empty() {
            out.push_str(&vector("schedules", entries.schedules.clone()));
        }
        let bindings = format!("input (flow/input){}", self.bindings);
        let body = format!(
            "(quote\n  (let [{}]\n    {}))",
            indented(&bindings, 8),
            indented(result, 4)
        );
        let _ = writeln!(out, " :flow {}}}", indented(&body, 1));
        out
    }
}

struct Input {
    symbol: String,
    guard: Option<String>,
}

/// Returns a text with every line but the first moved to the right.
fn indented(text: &str, by: usize) -> String {
    text.replace('\n', &format!("\n{}", " ".repeat(by)))
}

mod names {
    //! Names of the flow and of its bindings.

    use std::collections::{BTreeMap, BTreeSet};

    use super::Workflow;

    /// Names that the code of an import uses itself.
    const TAKEN: &[&str] = &[
        "and", "assoc", "assoc-in", "case", "cond", "contains", "count", "def", "do", "empty",
        "false", "fn", "for", "get", "get-in", "if", "input", "item", "keyword", "let", "loop",
        "map", "merge", "new", "nil", "not", "or", "quote", "re-find", "recur", "set", "str",
        "throw", "true", "try", "var", "when", "when-not",
    ];

    /// Returns a text as letters, digits and dashes.
    pub(super) fn kebab(text: &str) -> String {
        let mut out = String::new();
        for char in text.chars() {
            match char.is_ascii_alphanumeric() {
                true => out.push(char.to_ascii_lowercase()),
                false if !out.is_empty() && !out.ends_with('-') => out.push('-'),
                false => {}
            }
        }
        let out: String = out.trim_end_matches('-').chars().take(60).collect();
        let out = out.trim_end_matches('-');
        match out.chars().next() {
            None => "node".to_owned(),
            Some(first) if first.is_ascii_digit() => format!("n-{out}"),
            Some(_) => out.to_owned(),
        }
    }

    pub(super) fn slug(name: &str) -> String {
        kebab(name)
    }

    /// Returns a different name for each node.
    pub(super) fn of(workflow: &Workflow, order: &[usize]) -> BTreeMap<usize, String> {
        let mut used: BTreeSet<String> = TAKEN.iter().map(|name| (*name).to_owned()).collect();
        let mut names = BTreeMap::new();
        for node in order {
            let plain = kebab(&workflow.nodes[*node].name);
            let mut name = plain.clone();
            let mut number = 2;
            // Each node may have a second name for its input.
            while used.contains(&name) || used.contains(&format!("{name}-input")) {
                name = match TAKEN.contains(&&*plain) && number == 2 {
                    true => format!("{plain}-node"),
                    false => format!("{plain}-{number}"),
                };
                number += 1;
            }
            used.insert(name.clone());
            used.insert(format!("{name}-input"));
            names.insert(*node, name);
        }
        names
    }
}

/// Returns a member of parameters as a text, if it is one.
fn text<'j>(json: &'j Json, pointer: &str) -> Option<&'j str> {
    json.pointer(pointer)?
        .as_str()
        .filter(|text| !text.is_empty())
}
