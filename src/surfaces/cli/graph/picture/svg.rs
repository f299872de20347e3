//! A flow as a picture in SVG: from top to bottom, with the arms of branches side by side.
//!
//! Each part is laid out as a block with an entry at the middle of its top and an exit at the middle of its bottom.

use std::fmt::Write as _;

use console::measure_text_width;
use flowstone_flow::outline::{Arm, Part};

use super::{Route, lines};

/// Width of a character at the size of the text.
const LETTER: i64 = 8;
const LINE: i64 = 18;
const PADDING: i64 = 10;
/// Space between a part and the next one, and between arms.
const GAP: i64 = 28;
const MARGIN: i64 = 16;
/// Maximum number of characters in a line.
const WIDEST: usize = 44;

const EDGE: &str = "#888";
/// Colours of a box: its face, and its border.
type Colors = (&'static str, &'static str);
const FACE: Colors = ("#f4f4f4", "#666");
/// Of steps that a run has not reached.
const UNREACHED: Colors = ("#ffffff", "#bbb");

/// A part with its extent from the middle of its top, relative to which it is drawn.
struct Block {
    left: i64,
    right: i64,
    height: i64,
    draw: Vec<Item>,
}

enum Item {
    Line {
        from: (i64, i64),
        to: (i64, i64),
        has_head: bool,
    },
    Box {
        top: i64,
        left: i64,
        size: (i64, i64),
        style: Style,
        lines: Vec<String>,
    },
    Diamond {
        center: (i64, i64),
        size: (i64, i64),
        text: String,
    },
    Text {
        at: (i64, i64),
        text: String,
    },
}

#[derive(Clone, Copy)]
enum Style {
    Face(Colors),
    Frame,
    Bar,
}

/// Draws a flow.
pub fn svg(title: &str, parts: &[Part], route: &Route) -> String {
    let mut blocks = vec![label(&["start".to_owned()], FACE)];
    blocks.extend(parts.iter().map(|part| block(part, route)));
    blocks.push(label(&["end".to_owned()], FACE));
    let whole = stacked(blocks);
    let half = (whole.left.max(whole.right)).max(width(title) / 2);
    let total = 2 * half + 2 * MARGIN;
    let height = whole.height + 2 * MARGIN + GAP;
    let mut body = String::new();
    let middle = half + MARGIN;
    let _ = writeln!(
        body,
        "  <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>",
        MARGIN + 12,
        escaped(title)
    );
    for item in &whole.draw {
        item.write(&mut body, (middle, MARGIN + GAP));
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{total}\" height=\"{height}\" viewBox=\"0 0 {total} {height}\" \
         font-family=\"monospace\" font-size=\"13\">\n  <defs><marker id=\"arrow\" markerWidth=\"9\" markerHeight=\"9\" refX=\"8\" \
         refY=\"4\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"{EDGE}\"/></marker></defs>\n  <rect width=\"100%\" \
         height=\"100%\" fill=\"#fff\"/>\n{body}</svg>"
    )
}

fn block(part: &Part, route: &Route) -> Block {
    match part {
        Part::Step(step) => {
            let face = match (route.taken(step), route.is_of_run) {
                (Some(taken), _) => taken.state.colors(),
                (None, true) => UNREACHED,
                (None, false) => FACE,
            };
            label(&lines(step, route), face)
        }
        Part::Branch { test, arms } => beside(diamond(test), arms, route, None),
        Part::Together { what, arms } => beside(bar(what, 0), arms, route, Some(what)),
        Part::Repeat { what, parts } => framed(what, parts, route),
    }
}

/// A box with lines of text.
fn label(lines: &[String], face: Colors) -> Block {
    let lines: Vec<String> = lines.iter().map(|line| cut(line)).collect();
    let wide = lines.iter().map(|line| width(line)).max().unwrap_or(0) + 2 * PADDING;
    let high = i64::try_from(lines.len()).unwrap_or(1) * LINE + PADDING;
    boxed((wide / 2 + 1, high), Style::Face(face), lines)
}

fn bar(what: &str, least: i64) -> Block {
    let text = cut(what);
    let half = (width(&text) / 2 + PADDING).max(least);
    boxed((half, LINE + 4), Style::Bar, vec![text])
}

fn boxed((half, height): (i64, i64), style: Style, lines: Vec<String>) -> Block {
    Block {
        left: half,
        right: half,
        height,
        draw: vec![Item::Box {
            top: 0,
            left: -half,
            size: (2 * half, height),
            style,
            lines,
        }],
    }
}

fn diamond(test: &str) -> Block {
    let text = cut(test);
    let (half, height) = (width(&text) / 2 + 2 * PADDING + 8, 44);
    Block {
        left: half,
        right: half,
        height,
        draw: vec![Item::Diamond {
            center: (0, height / 2),
            size: (half, height / 2),
            text,
        }],
    }
}

/// Puts blocks below each other, with arrows between them.
fn stacked(blocks: Vec<Block>) -> Block {
    let mut whole = Block {
        left: 0,
        right: 0,
        height: 0,
        draw: Vec::new(),
    };
    for (idx, block) in blocks.into_iter().enumerate() {
        if idx > 0 {
            let (from, to) = (whole.height, whole.height + GAP);
            whole.draw.push(arrow((0, from), (0, to)));
            whole.height = to;
        }
        whole.left = whole.left.max(block.left);
        whole.right = whole.right.max(block.right);
        whole.add(block.draw, (0, whole.height));
        whole.height += block.height;
    }
    whole
}

/// Puts arms side by side below a head. Concurrent arms hang on a bar as wide as all of them.
fn beside(head: Block, arms: &[Arm], route: &Route, together: Option<&str>) -> Block {
    let bodies: Vec<(String, Block)> = arms.iter().map(|arm| arm_block(arm, route)).collect();
    let total: i64 = bodies.iter().map(|(_, body)| body.left + body.right).sum();
    let gaps = GAP * (i64::try_from(bodies.len()).unwrap_or(1) - 1).max(0);
    let half = (total + gaps) / 2;
    let deepest = bodies.iter().map(|(_, body)| body.height).max();
    let head = match together {
        Some(what) => bar(what, half),
        None => head,
    };
    let (fork, top) = (head.height + GAP / 2, head.height + 2 * GAP);
    let meet = top + deepest.unwrap_or(0) + GAP / 2;
    let mut whole = Block {
        left: head.left.max(half),
        right: head.right.max(half),
        height: meet,
        draw: vec![line((0, head.height), (0, fork))],
    };
    whole.add(head.draw, (0, 0));
    let (mut at, mut first, mut last) = (-half, 0, 0);
    for (label, body) in bodies {
        let x = at + body.left;
        (first, last) = (x.min(first), x.max(last));
        if body.draw.is_empty() {
            whole.draw.push(line((x, fork), (x, meet)));
        } else {
            whole.draw.push(arrow((x, fork), (x, top)));
            whole.draw.push(line((x, top + body.height), (x, meet)));
        }
        if !label.is_empty() {
            whole.draw.push(Item::Text {
                at: (x, fork + GAP - 6),
                text: label,
            });
        }
        at += body.left + body.right + GAP;
        whole.add(body.draw, (x, top));
    }
    whole.draw.push(line((first, fork), (last, fork)));
    whole.draw.push(line((first, meet), (last, meet)));
    whole
}

/// Returns the label of an arm, and its parts with room for the label.
fn arm_block(arm: &Arm, route: &Route) -> (String, Block) {
    let label = cut(&arm.label);
    let mut body = stacked(arm.parts.iter().map(|part| block(part, route)).collect());
    let least = (width(&label) / 2 + 6).max(14);
    body.left = body.left.max(least);
    body.right = body.right.max(least);
    (label, body)
}

/// Puts parts into a frame.
fn framed(what: &str, parts: &[Part], route: &Route) -> Block {
    let inner = stacked(parts.iter().map(|part| block(part, route)).collect());
    let text = cut(what);
    let (left, right) = (inner.left + PADDING, inner.right + PADDING);
    // The label is above the parts, in the corner.
    let left = left.max(width(&text) + 2 * PADDING);
    let top = LINE + PADDING + GAP / 2;
    let height = inner.height + top + PADDING;
    let mut whole = Block {
        left,
        right,
        height,
        draw: vec![
            Item::Box {
                top: 0,
                left: -left,
                size: (left + right, height),
                style: Style::Frame,
                lines: Vec::new(),
            },
            Item::Text {
                at: (-left + PADDING + width(&text) / 2, LINE),
                text,
            },
            arrow((0, 0), (0, top)),
            line((0, top + inner.height), (0, height)),
        ],
    };
    whole.add(inner.draw, (0, top));
    whole
}

fn line(from: (i64, i64), to: (i64, i64)) -> Item {
    Item::Line {
        from,
        to,
        has_head: false,
    }
}

fn arrow(from: (i64, i64), to: (i64, i64)) -> Item {
    Item::Line {
        from,
        to,
        has_head: true,
    }
}

impl Block {
    fn add(&mut self, items: Vec<Item>, (x, y): (i64, i64)) {
        self.draw
            .extend(items.into_iter().map(|item| item.moved(x, y)));
    }
}

impl Item {
    fn moved(self, x: i64, y: i64) -> Item {
        let by = |(a, b): (i64, i64)| (a + x, b + y);
        match self {
            Item::Line { from, to, has_head } => Item::Line {
                from: by(from),
                to: by(to),
                has_head,
            },
            Item::Box {
                top,
                left,
                size,
                style,
                lines,
            } => Item::Box {
                top: top + y,
                left: left + x,
                size,
                style,
                lines,
            },
            Item::Diamond { center, size, text } => Item::Diamond {
                center: by(center),
                size,
                text,
            },
            Item::Text { at, text } => Item::Text { at: by(at), text },
        }
    }

    fn write(&self, out: &mut String, (x, y): (i64, i64)) {
        match self {
            Item::Line { from, to, has_head } => {
                let head = match has_head {
                    true => " marker-end=\"url(#arrow)\"",
                    false => "",
                };
                let _ = writeln!(
                    out,
                    "  <line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{EDGE}\"{head}/>",
                    from.0 + x,
                    from.1 + y,
                    to.0 + x,
                    to.1 + y
                );
            }
            Item::Box {
                top,
                left,
                size,
                style,
                lines,
            } => write_box(out, (left + x, top + y), *size, *style, lines),
            Item::Diamond {
                center,
                size,
                text: label,
            } => {
                let (cx, cy) = (center.0 + x, center.1 + y);
                let (dx, dy) = *size;
                let _ = writeln!(
                    out,
                    "  <path d=\"M{} {cy}L{cx} {}L{} {cy}L{cx} {}z\" fill=\"#eef3fb\" stroke=\"#667\"/>",
                    cx - dx,
                    cy - dy,
                    cx + dx,
                    cy + dy
                );
                text(out, (cx, cy + 4), label);
            }
            Item::Text { at, text: label } => {
                // A white face keeps a label readable on a line.
                let wide = width(label) + 4;
                let _ = writeln!(
                    out,
                    "  <rect x=\"{}\" y=\"{}\" width=\"{wide}\" height=\"16\" fill=\"#fff\"/>",
                    at.0 + x - wide / 2,
                    at.1 + y - 12
                );
                text(out, (at.0 + x, at.1 + y), label);
            }
        }
    }
}

fn write_box(
    out: &mut String,
    (left, top): (i64, i64),
    (wide, high): (i64, i64),
    style: Style,
    lines: &[String],
) {
    let (fill, stroke, more, first) = match style {
        Style::Face((fill, stroke)) => (fill, stroke, "rx=\"5\"", LINE),
        Style::Frame => ("none", "#999", "rx=\"8\" stroke-dasharray=\"5 4\"", LINE),
        Style::Bar => ("#dde4f0", "#667", "rx=\"1\"", 15),
    };
    let _ = writeln!(
        out,
        "  <rect x=\"{left}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\" fill=\"{fill}\" stroke=\"{stroke}\" {more}/>"
    );
    let mut at = top + first;
    for line in lines {
        text(out, (left + wide / 2, at), line);
        at += LINE;
    }
}

fn text(out: &mut String, (x, y): (i64, i64), text: &str) {
    let text = escaped(text);
    let _ = writeln!(
        out,
        "  <text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{text}</text>"
    );
}

fn width(text: &str) -> i64 {
    i64::try_from(measure_text_width(text)).unwrap_or(0) * LETTER
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(WIDEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
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
