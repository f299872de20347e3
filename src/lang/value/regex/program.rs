//! A pattern as instructions for the backtracking machine.

use super::property::{holds, vertical_space};
use super::tree::{
    Assert, Fold, Greed, Lengths, Node, Set, Side, UNBOUNDED, is_fixed, is_loop, keeps_captures,
};

/// A pattern's instructions.
pub(super) struct Program {
    pub(super) code: Vec<Inst>,
    /// The number of slots for starts of groups and counts of loops.
    pub(super) locals: usize,
    /// The number of groups, including the whole match.
    pub(super) groups: usize,
    /// The bytes that a match may begin with, if it cannot be empty.
    pub(super) first: Option<Box<[bool; 256]>>,
    /// Whether a match can only begin at the start of the text.
    pub(super) is_anchored: bool,
}

/// An instruction. The body of an instruction follows it directly, up to `end`.
pub(super) enum Inst {
    Text(Box<str>),
    Set(CharSet),
    Jump(usize),
    /// Two alternatives; the first is tried first.
    Split(usize, usize),
    Assert(Assert),
    GroupStart {
        local: usize,
    },
    GroupEnd {
        local: usize,
        group: usize,
    },
    Reference {
        group: usize,
        fold: Fold,
    },
    Look {
        side: Side,
        negated: bool,
        end: usize,
    },
    Atomic {
        end: usize,
    },
    /// Repeats a character.
    Chars {
        set: CharSet,
        counts: Counts,
    },
    /// Repeats a body that can match in only one way each time.
    Rounds {
        counts: Counts,
        group: Option<usize>,
        end: usize,
    },
    LoopStart {
        count: usize,
        counts: Counts,
        end: usize,
    },
    LoopNext {
        count: usize,
        start: usize,
        counts: Counts,
        body: usize,
    },
    Grapheme,
    /// Ends a body.
    Return,
    /// Ends the body of a look-behind.
    ReturnBehind,
    Match,
}

/// The minimum and maximum number of repetitions, and which is tried first.
#[derive(Clone, Copy)]
pub(super) struct Counts {
    pub(super) min: usize,
    pub(super) max: usize,
    pub(super) greed: Greed,
}

/// A set of characters with a fast test for ASCII.
pub(super) struct CharSet {
    ascii: u128,
    others: Set,
}

impl CharSet {
    fn new(set: &Set) -> CharSet {
        let ascii = (0..128u8)
            .filter(|code| holds(set, char::from(*code)))
            .fold(0, |bits, code| bits | 1 << code);
        CharSet {
            ascii,
            others: set.clone(),
        }
    }

    /// Returns the byte after the character at a byte, if that is in the set.
    pub(super) fn step(&self, text: &str, at: usize) -> Option<usize> {
        match text.as_bytes().get(at) {
            Some(byte) if byte.is_ascii() => (self.ascii >> byte & 1 == 1).then_some(at + 1),
            Some(_) => {
                let char = text[at..].chars().next()?;
                holds(&self.others, char).then_some(at + char.len_utf8())
            }
            None => None,
        }
    }
}

impl Program {
    pub(super) fn new(node: &Node, groups: usize) -> Program {
        let mut writer = Writer {
            code: Vec::new(),
            locals: 0,
        };
        writer.node(node);
        writer.code.push(Inst::Match);
        let mut first = [false; 256];
        // A skipped position captures nothing, which a later match could reveal.
        let is_useful = first_bytes(node, &mut first) && !keeps_captures(node);
        Program {
            code: writer.code,
            locals: writer.locals,
            groups: groups + 1,
            first: is_useful.then(|| Box::new(first)),
            is_anchored: is_anchored(node),
        }
    }
}

fn is_anchored(node: &Node) -> bool {
    match node {
        Node::Assert(Assert::Start) => true,
        Node::Concat(nodes) => nodes.first().is_some_and(is_anchored),
        Node::Group { body, .. } | Node::Atomic(body) => is_anchored(body),
        _ => false,
    }
}

/// Adds the bytes that a node may begin with. Returns whether it takes at least one character.
fn first_bytes(node: &Node, bytes: &mut [bool; 256]) -> bool {
    let mut set_bytes = |set: &Set| {
        let mut buffer = [0; 4];
        for range in set.ranges() {
            let low = range.start().encode_utf8(&mut buffer).as_bytes()[0];
            let high = range.end().encode_utf8(&mut buffer).as_bytes()[0];
            bytes[usize::from(low)..=usize::from(high)].fill(true);
        }
    };
    match node {
        Node::Char(char) => {
            bytes[usize::from(char.encode_utf8(&mut [0; 4]).as_bytes()[0])] = true;
            true
        }
        Node::Set(set) => {
            set_bytes(set);
            true
        }
        Node::LineBreak => {
            set_bytes(&vertical_space());
            true
        }
        Node::Concat(nodes) => nodes.iter().any(|node| first_bytes(node, bytes)),
        Node::Either(nodes) => {
            // Each branch adds its bytes, even after one that may be empty.
            let empty = nodes.iter().filter(|node| !first_bytes(node, bytes));
            empty.count() == 0
        }
        Node::Group { body, .. } | Node::Atomic(body) => first_bytes(body, bytes),
        Node::Repeat { body, min, .. } => first_bytes(body, bytes) && *min > 0,
        Node::Optional { body, .. } => {
            first_bytes(body, bytes);
            false
        }
        Node::Grapheme | Node::Reference { .. } => {
            bytes.fill(true);
            false
        }
        Node::Empty | Node::Assert(_) | Node::Look { .. } => false,
    }
}

struct Writer {
    code: Vec<Inst>,
    locals: usize,
}

impl Writer {
    fn local(&mut self) -> usize {
        self.locals += 1;
        self.locals - 1
    }

    /// Writes an instruction with the end of its body.
    fn with_body(&mut self, end: Inst, body: &Node, inst: impl FnOnce(usize) -> Inst) {
        let at = self.code.len();
        self.code.push(Inst::Return);
        self.node(body);
        self.code.push(end);
        self.code[at] = inst(self.code.len());
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Empty => {}
            Node::Char(char) => self.code.push(Inst::Text(char.to_string().into())),
            Node::Set(set) => self.code.push(Inst::Set(CharSet::new(set))),
            Node::Concat(nodes) => self.concat(nodes),
            Node::Either(nodes) => self.either(nodes),
            Node::Group { index, body } => self.group(*index, body),
            Node::Assert(assert) => self.code.push(Inst::Assert(*assert)),
            Node::Reference { group, fold } => self.code.push(Inst::Reference {
                group: *group,
                fold: *fold,
            }),
            Node::Look {
                side,
                negated,
                body,
            } => {
                let last = match side {
                    Side::Ahead => Inst::Return,
                    Side::Behind(Lengths { .. }) => Inst::ReturnBehind,
                };
                self.with_body(last, body, |end| Inst::Look {
                    side: *side,
                    negated: *negated,
                    end,
                });
            }
            Node::Atomic(body) => self.with_body(Inst::Return, body, |end| Inst::Atomic { end }),
            Node::Optional { body, greed } => self.optional(body, *greed),
            Node::Repeat {
                body,
                min,
                max,
                greed,
            } => {
                let counts = Counts {
                    min: usize::try_from(*min).unwrap_or(0),
                    max: if *max == UNBOUNDED {
                        usize::MAX
                    } else {
                        usize::try_from(*max).unwrap_or(0)
                    },
                    greed: *greed,
                };
                self.repeat(body, counts);
            }
            Node::Grapheme => self.code.push(Inst::Grapheme),
            Node::LineBreak => {
                let at = self.code.len();
                self.code.push(Inst::Split(at + 1, at + 3));
                self.code.push(Inst::Text("\r\n".into()));
                self.code.push(Inst::Jump(at + 4));
                self.code.push(Inst::Set(CharSet::new(&vertical_space())));
            }
        }
    }

    fn concat(&mut self, nodes: &[Node]) {
        let mut text = String::new();
        for node in nodes {
            if let Node::Char(char) = node {
                text.push(*char);
                continue;
            }
            self.text(&mut text);
            self.node(node);
        }
        self.text(&mut text);
    }

    fn text(&mut self, text: &mut String) {
        if !text.is_empty() {
            self.code.push(Inst::Text(std::mem::take(text).into()));
        }
    }

    fn either(&mut self, nodes: &[Node]) {
        let mut jumps = Vec::new();
        for (idx, node) in nodes.iter().enumerate() {
            let split = self.code.len();
            if idx + 1 < nodes.len() {
                self.code.push(Inst::Return);
            }
            self.node(node);
            if idx + 1 < nodes.len() {
                jumps.push(self.code.len());
                self.code.push(Inst::Return);
                self.code[split] = Inst::Split(split + 1, self.code.len());
            }
        }
        let end = self.code.len();
        for jump in jumps {
            self.code[jump] = Inst::Jump(end);
        }
    }

    fn group(&mut self, index: Option<usize>, body: &Node) {
        let Some(group) = index else {
            return self.node(body);
        };
        let local = self.local();
        self.code.push(Inst::GroupStart { local });
        self.node(body);
        self.code.push(Inst::GroupEnd { local, group });
    }

    fn optional(&mut self, body: &Node, greed: Greed) {
        if greed == Greed::Possessive {
            let counts = Counts {
                min: 0,
                max: 1,
                greed,
            };
            return self.with_body(Inst::Return, body, |end| Inst::Rounds {
                counts,
                group: None,
                end,
            });
        }
        let split = self.code.len();
        self.code.push(Inst::Return);
        self.node(body);
        let end = self.code.len();
        self.code[split] = match greed {
            Greed::Lazy => Inst::Split(end, split + 1),
            _ => Inst::Split(split + 1, end),
        };
    }

    fn repeat(&mut self, body: &Node, counts: Counts) {
        match body {
            Node::Char(char) => {
                let set = super::tree::range(u32::from(*char), u32::from(*char));
                let set = CharSet::new(&set);
                self.code.push(Inst::Chars { set, counts });
            }
            Node::Set(set) => {
                let set = CharSet::new(set);
                self.code.push(Inst::Chars { set, counts });
            }
            Node::Group { index, body: inner } if is_loop(body, counts.greed) => {
                self.group_loop(*index, inner, counts);
            }
            Node::Group { index, body: inner }
                if counts.greed != Greed::Possessive && is_fixed(inner) =>
            {
                let group = *index;
                self.with_body(Inst::Return, inner, |end| Inst::Rounds {
                    counts,
                    group,
                    end,
                });
            }
            other => self.with_body(Inst::Return, other, |end| Inst::Rounds {
                counts,
                group: None,
                end,
            }),
        }
    }

    /// Writes the repetition of a group whose rounds the match may backtrack into.
    fn group_loop(&mut self, index: Option<usize>, inner: &Node, counts: Counts) {
        let (count, start) = (self.local(), self.local());
        let at = self.code.len();
        self.code.push(Inst::Return);
        self.code.push(Inst::GroupStart { local: start });
        self.node(inner);
        if let Some(group) = index {
            self.code.push(Inst::GroupEnd {
                local: start,
                group,
            });
        }
        self.code.push(Inst::LoopNext {
            count,
            start,
            counts,
            body: at + 1,
        });
        let end = self.code.len();
        self.code[at] = Inst::LoopStart { count, counts, end };
    }
}
