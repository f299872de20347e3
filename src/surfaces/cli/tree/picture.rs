//! A tree as a picture in SVG: one line for each node, with its state in colour and in words.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::show::{Shown, View};

const LINE: usize = 36;
const INDENT: usize = 28;
const BOX: usize = 26;
const MARGIN: usize = 12;
/// Estimated width of a character at the size of the text.
const LETTER: usize = 8;
/// Names beyond this number of characters are cut.
const NAME_MAX: usize = 60;

/// Draws a document, or the nodes of a tree file as `{"tree": ...}`.
pub(super) fn svg(document: &Json) -> String {
    let mut body = String::new();
    // The lines of the nodes around the next one, by depth.
    let mut around: Vec<usize> = Vec::new();
    let (mut line, mut width) = (0, 0);
    View::of(document).each(&mut |node| {
        around.truncate(node.depth);
        if let Some(parent) = around.last() {
            edge(&mut body, (*parent, line), node.depth);
        }
        width = width.max(drawn(&mut body, node, line));
        around.push(line);
        line += 1;
    });
    let height = line * LINE + 2 * MARGIN;
    let width = width + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"13\">\n{body}</svg>"
    )
}

/// Draws the edge from the box of a parent to that of its child.
fn edge(body: &mut String, (parent, child): (usize, usize), depth: usize) {
    let x = MARGIN + (depth - 1) * INDENT + INDENT / 2;
    let from = MARGIN + parent * LINE + BOX;
    let to = MARGIN + child * LINE + BOX / 2;
    let end = MARGIN + depth * INDENT;
    let _ = writeln!(
        body,
        "  <path d=\"M{x} {from} V{to} H{end}\" fill=\"none\" stroke=\"#888\"/>"
    );
}

/// Draws a node, and returns where it ends on the right.
fn drawn(body: &mut String, node: &Shown<'_>, line: usize) -> usize {
    let (x, y) = (MARGIN + node.depth * INDENT, MARGIN + line * LINE);
    let mut label = format!("{} {}", node.kind, cut(node.name));
    if !node.state.is_empty() {
        label.push_str(&format!(" ({})", node.state.join(", ")));
    }
    let width = label.chars().count() * LETTER + 2 * LETTER;
    let fill = match node.status {
        Some("success") => "#cfeacf",
        Some("failure") => "#f4cccc",
        _ => "#f4f4f4",
    };
    let (stroke, thick) = match node.is_open {
        true => ("#d6338a", 3),
        false => ("#666", 1),
    };
    let (text_x, text_y) = (x + LETTER, y + BOX - 8);
    let label = escaped(&label);
    let _ = writeln!(
        body,
        "  <rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{BOX}\" rx=\"5\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"{thick}\"/>\n  <text x=\"{text_x}\" y=\"{text_y}\">{label}</text>"
    );
    x + width
}

fn cut(name: &str) -> String {
    match name.char_indices().nth(NAME_MAX) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    }
}

/// Writes a text as XML, without characters that XML does not have.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}
