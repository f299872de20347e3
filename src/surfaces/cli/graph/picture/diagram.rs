//! A flow in the languages of Mermaid and Graphviz.

use std::fmt::Write as _;

use flowstone_flow::outline::{Arm, Part};

use super::{Route, State, lines};

/// The states of steps that have colours.
const STATES: &[State] = &[State::Done, State::Open, State::Failed];

/// A node, and what is written on the edge that leaves it.
type End = (usize, String);

/// The nodes and edges of a flow.
#[derive(Default)]
struct Graph {
    nodes: Vec<Node>,
    /// From, to, and the label.
    edges: Vec<(usize, usize, String)>,
    /// The frames of repetitions: their labels, and the nodes inside.
    frames: Vec<(String, Vec<usize>)>,
}

struct Node {
    lines: Vec<String>,
    shape: Shape,
    state: Option<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Terminal,
    Step,
    Choice,
    Bar,
}

impl Graph {
    fn of(parts: &[Part], route: &Route) -> Graph {
        let mut graph = Graph::default();
        let start = graph.node(vec!["start".to_owned()], Shape::Terminal, None);
        let ends = graph.sequence(parts, vec![(start, String::new())], route);
        let end = graph.node(vec!["end".to_owned()], Shape::Terminal, None);
        graph.join(ends, end);
        graph
    }

    fn node(&mut self, lines: Vec<String>, shape: Shape, state: Option<State>) -> usize {
        self.nodes.push(Node {
            lines,
            shape,
            state,
        });
        self.nodes.len() - 1
    }

    fn join(&mut self, ends: Vec<End>, to: usize) {
        let edges = ends.into_iter().map(|(from, label)| (from, to, label));
        self.edges.extend(edges);
    }

    /// Adds parts after some ends, and returns the ends after them.
    fn sequence(&mut self, parts: &[Part], mut ends: Vec<End>, route: &Route) -> Vec<End> {
        for part in parts {
            ends = self.part(part, ends, route);
        }
        ends
    }

    fn part(&mut self, part: &Part, ends: Vec<End>, route: &Route) -> Vec<End> {
        match part {
            Part::Step(step) => {
                let state = route.taken(step).map(|taken| taken.state);
                let node = self.node(lines(step, route), Shape::Step, state);
                self.join(ends, node);
                vec![(node, String::new())]
            }
            Part::Branch { test, arms } => {
                let node = self.node(vec![test.clone()], Shape::Choice, None);
                self.join(ends, node);
                self.arms(node, arms, route)
            }
            Part::Together { what, arms } => {
                let node = self.node(vec![what.clone()], Shape::Bar, None);
                self.join(ends, node);
                let ends = self.arms(node, arms, route);
                let bar = self.node(vec!["joined".to_owned()], Shape::Bar, None);
                self.join(ends, bar);
                vec![(bar, String::new())]
            }
            Part::Repeat { what, parts } => {
                let first = self.nodes.len();
                let ends = self.sequence(parts, ends, route);
                let inside = (first..self.nodes.len()).collect();
                self.frames.push((what.clone(), inside));
                ends
            }
        }
    }

    fn arms(&mut self, node: usize, arms: &[Arm], route: &Route) -> Vec<End> {
        let mut ends = Vec::new();
        for arm in arms {
            ends.extend(self.sequence(&arm.parts, vec![(node, arm.label.clone())], route));
        }
        ends
    }
}

/// Draws a flow in the language of Mermaid.
pub fn mermaid(title: &str, parts: &[Part], route: &Route) -> String {
    let graph = Graph::of(parts, route);
    let mut out = format!("---\ntitle: {}\n---\nflowchart TD\n", quoted(title));
    for (idx, node) in graph.nodes.iter().enumerate() {
        let text: Vec<String> = node.lines.iter().map(|line| entities(line)).collect();
        let text = text.join("<br/>");
        let (open, close) = match node.shape {
            Shape::Terminal => ("([", "])"),
            Shape::Step => ("[", "]"),
            Shape::Choice => ("{", "}"),
            Shape::Bar => ("[[", "]]"),
        };
        let _ = writeln!(out, "  n{idx}{open}\"{text}\"{close}");
    }
    for (number, (what, nodes)) in graph.frames.iter().enumerate() {
        let _ = writeln!(out, "  subgraph f{number} [\"{}\"]", entities(what));
        for node in nodes {
            let _ = writeln!(out, "    n{node}");
        }
        out.push_str("  end\n");
    }
    for (from, to, label) in &graph.edges {
        let _ = match label.is_empty() {
            true => writeln!(out, "  n{from} --> n{to}"),
            false => writeln!(out, "  n{from} -->|\"{}\"| n{to}", entities(label)),
        };
    }
    for state in STATES {
        let with = graph.nodes.iter().enumerate();
        let with = with.filter(|(_, node)| node.state == Some(*state));
        let nodes: Vec<String> = with.map(|(idx, _)| format!("n{idx}")).collect();
        if !nodes.is_empty() {
            let (fill, stroke) = state.colors();
            let (name, nodes) = (state.name(), nodes.join(","));
            let _ = writeln!(out, "  classDef {name} fill:{fill},stroke:{stroke}");
            let _ = writeln!(out, "  class {nodes} {name}");
        }
    }
    out
}

/// Draws a flow in the language of Graphviz.
pub fn dot(title: &str, parts: &[Part], route: &Route) -> String {
    let graph = Graph::of(parts, route);
    let mut out = format!(
        "digraph flow {{\n  label={};\n  labelloc=t;\n  node [fontname=\"monospace\" shape=box style=\"rounded,filled\" \
         fillcolor=\"#f4f4f4\"];\n",
        quoted(title)
    );
    for (idx, node) in graph.nodes.iter().enumerate() {
        let label = quoted(&node.lines.join("\n"));
        let shape = match node.shape {
            Shape::Terminal => " shape=ellipse",
            Shape::Step => "",
            Shape::Choice => " shape=diamond style=filled",
            Shape::Bar => " shape=box style=filled",
        };
        let colors = node.state.map_or_else(String::new, |state| {
            let (fill, stroke) = state.colors();
            format!(" fillcolor=\"{fill}\" color=\"{stroke}\"")
        });
        let _ = writeln!(out, "  n{idx} [label={label}{shape}{colors}];");
    }
    for (number, (what, nodes)) in graph.frames.iter().enumerate() {
        let nodes: Vec<String> = nodes.iter().map(|node| format!("n{node};")).collect();
        let _ = writeln!(
            out,
            "  subgraph cluster_{number} {{ label={}; style=dashed; {} }}",
            quoted(what),
            nodes.join(" ")
        );
    }
    for (from, to, label) in &graph.edges {
        let _ = match label.is_empty() {
            true => writeln!(out, "  n{from} -> n{to};"),
            false => writeln!(out, "  n{from} -> n{to} [label={}];", quoted(label)),
        };
    }
    out.push_str("}\n");
    out
}

/// Writes a text as a string of Graphviz or YAML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            char if char.is_control() => out.push(' '),
            char => out.push(char),
        }
    }
    out + "\""
}

/// Writes a text for a label of Mermaid, in which some characters have a meaning.
fn entities(text: &str) -> String {
    let mut out = String::new();
    for char in text.chars() {
        match char {
            '"' | '#' | '&' | '<' | '>' | '`' | '|' | '\\' => {
                let _ = write!(out, "#{};", u32::from(char));
            }
            char if char.is_control() => out.push(' '),
            char => out.push(char),
        }
    }
    out
}
