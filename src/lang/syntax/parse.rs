//! Text to tree, with a stack of its own. A closing delimiter that fits an outer collection closes the inner ones, too.

use crate::reader::is_blank;

use super::{Flaw, FlawKind, Node, NodeId, NodeKind, Tree};

/// Parses a text.
pub(super) fn parse(text: &str) -> Tree {
    let mut parser = Parser {
        text,
        at: 0,
        nodes: Vec::new(),
        flaws: Vec::new(),
        open: Vec::new(),
    };
    while parser.at < text.len() {
        parser.step();
    }
    while !parser.open.is_empty() {
        parser.abandon(text.len());
    }
    parser
        .flaws
        .sort_by_key(|flaw| (flaw.range.start, flaw.range.end));
    Tree {
        nodes: parser.nodes,
        flaws: parser.flaws,
    }
}

/// A collection or prefix that is open.
struct Open {
    id: NodeId,
    /// The number of forms that a prefix still takes.
    wants: u32,
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    nodes: Vec<Node>,
    flaws: Vec<Flaw>,
    open: Vec<Open>,
}

impl Parser<'_> {
    /// Parses one token or delimiter.
    fn step(&mut self) {
        let rest = &self.text[self.at..];
        let Some(char) = rest.chars().next() else {
            return;
        };
        match char {
            char if is_blank(char) => self.leaf(NodeKind::Blank, length_of(rest, is_blank)),
            ';' => self.leaf(NodeKind::Comment, line_length(rest)),
            '(' => self.begin(NodeKind::List, 1),
            '[' => self.begin(NodeKind::Vector, 1),
            '{' => self.begin(NodeKind::Map, 1),
            ')' | ']' | '}' => self.close(char as u8),
            '"' => self.quoted(NodeKind::Text, 1),
            '\\' => self.character(rest),
            '\'' => self.begin(NodeKind::Quote, 1),
            '`' => self.begin(NodeKind::SyntaxQuote, 1),
            '~' if rest.starts_with("~@") => self.begin(NodeKind::UnquoteSplice, 2),
            '~' => self.begin(NodeKind::Unquote, 1),
            '@' => self.begin(NodeKind::Deref, 1),
            '^' => self.begin(NodeKind::Meta, 1),
            '#' => self.dispatch(rest),
            ':' => self.leaf(NodeKind::Keyword, token_length(rest)),
            '0'..='9' => self.leaf(NodeKind::Number, token_length(rest)),
            '+' | '-' if rest[1..].starts_with(|next: char| next.is_ascii_digit()) => {
                self.leaf(NodeKind::Number, token_length(rest));
            }
            _ => self.leaf(NodeKind::Symbol, token_length(rest)),
        }
    }

    fn dispatch(&mut self, rest: &str) {
        match rest.as_bytes().get(1) {
            Some(b'{') => self.begin(NodeKind::Set, 2),
            Some(b'(') => self.begin(NodeKind::Function, 2),
            Some(b'_') => self.begin(NodeKind::Discard, 2),
            Some(b'\'') => self.begin(NodeKind::VarQuote, 2),
            Some(b'^') => self.begin(NodeKind::Meta, 2),
            Some(b'"') => self.quoted(NodeKind::Regex, 2),
            Some(b'!') => self.leaf(NodeKind::Comment, line_length(rest)),
            Some(b'#') => self.leaf(NodeKind::Number, 2 + token_length(&rest[2..])),
            Some(b'?') => {
                let open = if rest.starts_with("#?@") { 3 } else { 2 };
                self.begin(NodeKind::Conditional, open);
            }
            Some(b':') => self.begin(NodeKind::NamespacedMap, 1 + token_length(&rest[1..])),
            _ => match token_length(&rest[1..]) {
                0 => {
                    self.flaw(FlawKind::Unreadable, self.at, self.at + 1);
                    self.leaf(NodeKind::Stray, 1);
                }
                name => self.begin(NodeKind::Tag, 1 + name),
            },
        }
    }

    fn character(&mut self, rest: &str) {
        let Some(first) = rest[1..].chars().next() else {
            self.flaw(FlawKind::Unreadable, self.at, self.at + 1);
            self.leaf(NodeKind::Stray, 1);
            return;
        };
        let first = 1 + first.len_utf8();
        self.leaf(NodeKind::Character, first + token_length(&rest[first..]));
    }

    /// Parses a string or regex.
    fn quoted(&mut self, kind: NodeKind, open: usize) {
        let rest = &self.text.as_bytes()[self.at..];
        let mut length = open;
        while let Some(&byte) = rest.get(length) {
            match byte {
                b'"' => {
                    self.leaf(kind, length + 1);
                    return;
                }
                b'\\' => length += 2,
                _ => length += 1,
            }
        }
        self.flaw(FlawKind::Unclosed, self.at, self.at + open);
        self.leaf_with(kind, rest.len(), false);
    }

    /// Adds a node without parts.
    fn leaf(&mut self, kind: NodeKind, length: usize) {
        self.leaf_with(kind, length, true);
    }

    fn leaf_with(&mut self, kind: NodeKind, length: usize, is_closed: bool) {
        let id = self.push(kind, 0, length);
        self.nodes[id.0 as usize].is_closed = is_closed;
        self.at += length;
        if !kind.is_skipped() && kind != NodeKind::Stray {
            self.complete();
        }
    }

    /// Begins a collection or prefix.
    fn begin(&mut self, kind: NodeKind, length: usize) {
        let id = self.push(kind, length, length);
        self.at += length;
        self.open.push(Open {
            id,
            wants: kind.wants(),
        });
    }

    fn push(&mut self, kind: NodeKind, open: usize, length: usize) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node {
            kind,
            start: self.at as u32,
            end: (self.at + length) as u32,
            open: open as u32,
            is_closed: false,
            parent: self.open.last().map(|open| open.id),
            next: id.0 + 1,
        });
        id
    }

    /// Takes a completed form: prefixes in front of it may be complete now, too.
    fn complete(&mut self) {
        while let Some(open) = self.open.last_mut() {
            if open.wants == 0 {
                return;
            }
            open.wants -= 1;
            if open.wants > 0 {
                return;
            }
            let kind = self.finish(self.at, true);
            if kind == Some(NodeKind::Discard) {
                return;
            }
        }
    }

    /// Ends the innermost open node.
    fn finish(&mut self, end: usize, is_closed: bool) -> Option<NodeKind> {
        let open = self.open.pop()?;
        let next = self.nodes.len() as u32;
        let node = &mut self.nodes[open.id.0 as usize];
        node.end = end as u32;
        node.is_closed = is_closed;
        node.next = next;
        Some(node.kind)
    }

    /// Ends the innermost open node, which is not complete.
    fn abandon(&mut self, end: usize) {
        let Some(open) = self.open.last() else {
            return;
        };
        let node = self.nodes[open.id.0 as usize];
        let kind = match node.kind.is_collection() {
            true => FlawKind::Unclosed,
            false => FlawKind::Lone,
        };
        let start = node.start as usize;
        self.flaw(kind, start, start + node.open as usize);
        self.finish(end, false);
    }

    /// Takes a closing delimiter.
    fn close(&mut self, closer: u8) {
        let fits = |open: &Open| self.nodes[open.id.0 as usize].kind.closer() == Some(closer);
        let Some(depth) = self.open.iter().rposition(fits) else {
            self.flaw(FlawKind::Unopened, self.at, self.at + 1);
            self.leaf(NodeKind::Stray, 1);
            return;
        };
        while self.open.len() > depth + 1 {
            self.abandon(self.at);
        }
        self.at += 1;
        self.finish(self.at, true);
        self.complete();
    }

    fn flaw(&mut self, kind: FlawKind, start: usize, end: usize) {
        self.flaws.push(Flaw {
            kind,
            range: start..end,
        });
    }
}

/// Returns the length of a token: up to the next blank or delimiter.
fn token_length(rest: &str) -> usize {
    length_of(rest, |char| {
        !is_blank(char) && !"()[]{}\";@^`~\\".contains(char)
    })
}

/// Returns the length of a comment: up to the end of its line, without blanks there.
fn line_length(rest: &str) -> usize {
    let line = rest.find(['\n', '\r']).unwrap_or(rest.len());
    // A comma is part of the comment.
    let is_space = |char: char| char != ',' && is_blank(char);
    rest[..line].trim_end_matches(is_space).len()
}

/// Returns the length in bytes of the characters at the start of a text for which `holds`.
fn length_of(rest: &str, holds: impl Fn(char) -> bool) -> usize {
    rest.find(|char| !holds(char)).unwrap_or(rest.len())
}
