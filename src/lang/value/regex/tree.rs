//! A pattern as a tree, and its properties that are known before matching.
//!
//! Flags are resolved: what a node matches no longer depends on the flags in force where it was written.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

/// A set of characters.
pub(super) type Set = ClassUnicode;

/// The upper bound of an unbounded repetition.
pub(super) const UNBOUNDED: i32 = i32::MAX;

/// Returns the characters from `low` to `high`. Surrogates are left out, since a text cannot contain them.
pub(super) fn range(low: u32, high: u32) -> Set {
    let mut set = Set::empty();
    for (low, high) in [(low, high.min(0xD7FF)), (low.max(0xE000), high)] {
        if let (Some(low), Some(high)) = (char::from_u32(low), char::from_u32(high))
            && low <= high
        {
            set.push(ClassUnicodeRange::new(low, high));
        }
    }
    set
}

/// Returns the characters of several ranges.
pub(super) fn ranges(ranges: &[(u32, u32)]) -> Set {
    let mut set = Set::empty();
    for (low, high) in ranges {
        set.union(&range(*low, *high));
    }
    set
}

/// Returns the union of two sets.
pub(super) fn union(mut one: Set, other: &Set) -> Set {
    one.union(other);
    one
}

/// Returns the characters that are not in the set.
pub(super) fn negated(mut set: Set) -> Set {
    set.negate();
    set
}

/// A part of a pattern.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Empty,
    Char(char),
    Set(Set),
    Concat(Vec<Node>),
    Either(Vec<Node>),
    Group {
        /// The number of a capturing group.
        index: Option<usize>,
        body: Box<Node>,
    },
    Assert(Assert),
    Reference {
        group: usize,
        fold: Fold,
    },
    Look {
        side: Side,
        negated: bool,
        body: Box<Node>,
    },
    Atomic(Box<Node>),
    /// `?`
    Optional {
        body: Box<Node>,
        greed: Greed,
    },
    /// `*`, `+` and `{n,m}`
    Repeat {
        body: Box<Node>,
        min: i32,
        max: i32,
        greed: Greed,
    },
    /// `\X`
    Grapheme,
    /// `\R`
    LineBreak,
}

/// A condition on a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Assert {
    /// `\A`, and `^` without `(?m)`
    Start,
    /// `\z`
    End,
    /// `\Z`, and `$` without `(?m)`: the end, or a line terminator that ends the text
    EndOfText(Lines),
    /// `^` with `(?m)`
    LineStart(Lines),
    /// `$` with `(?m)`
    LineEnd(Lines),
    /// `\b`
    Word(Words),
    /// `\B`
    NoWord(Words),
    /// `\b{g}`
    GraphemeBoundary,
    /// `\G`
    LastMatch,
}

/// The characters that end a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// `\n`, `\r\n`, `\r`, U+0085, U+2028 and U+2029
    Any,
    /// `\n` only: `(?d)`
    Unix,
}

/// The characters that belong to a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    /// Letters, digits and `_`
    Plain,
    /// `\w` as Unicode defines it: `(?U)`
    Unicode,
}

/// How letter case is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    Exact,
    Ascii,
    Unicode,
}

/// The direction of a look-around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Ahead,
    Behind(Lengths),
}

/// The least and the greatest number of characters that a look-behind may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) min: i32,
    pub(super) max: i32,
}

/// The count that a repetition tries first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Greed {
    Greedy,
    Lazy,
    Possessive,
}

/// Java's analysis of a part of a pattern: it determines whether a look-behind is possible, and whether the repetitions
/// of a group are matched one by one without backtracking into them.
#[derive(Clone, Copy)]
pub(super) struct Study {
    min: i32,
    /// Overflows where Java's value does, which decides what counts as bounded.
    max: i32,
    /// Whether there is an obvious maximum. As in Java, one unbounded repetition may be allowed.
    bounded: bool,
    has_endless: bool,
    /// Whether there is only one way to match it.
    fixed: bool,
}

impl Study {
    const NOTHING: Study = Study {
        min: 0,
        max: 0,
        bounded: true,
        has_endless: false,
        fixed: true,
    };

    /// Analyses a part of a pattern.
    pub(super) fn of(node: &Node) -> Study {
        let mut study = Study::NOTHING;
        study.add(node);
        study
    }

    /// Tells whether the part may match without taking a character.
    pub(super) fn may_be_empty(&self) -> bool {
        self.min == 0
    }

    /// Returns the lengths of a look-behind, if they are bounded.
    pub(super) fn lengths(&self) -> Option<Lengths> {
        let max = if self.has_endless {
            UNBOUNDED
        } else {
            self.max
        };
        self.bounded.then_some(Lengths { min: self.min, max })
    }

    fn add(&mut self, node: &Node) {
        match node {
            Node::Empty | Node::Assert(_) | Node::Look { .. } => {}
            Node::Char(_) | Node::Set(_) => self.add_lengths(1, 1),
            Node::LineBreak => self.add_lengths(1, 2),
            Node::Grapheme => {
                self.add_lengths(1, 0);
                self.bounded = false;
            }
            Node::Reference { .. } => self.bounded = false,
            Node::Concat(nodes) => nodes.iter().for_each(|node| self.add(node)),
            Node::Group { body, .. } | Node::Atomic(body) => self.add(body),
            Node::Either(nodes) => self.add_either(nodes.iter().map(Study::of)),
            Node::Optional { body, greed } => match (&**body, greed) {
                (Node::Group { .. }, Greed::Greedy | Greed::Lazy) => {
                    self.add_either([Study::of(body), Study::NOTHING].into_iter());
                }
                _ => {
                    let min = self.min;
                    self.add(body);
                    self.min = min;
                    self.fixed = false;
                }
            },
            Node::Repeat {
                body,
                min,
                max: UNBOUNDED,
                greed: Greed::Greedy,
            } if matches!(**body, Node::Char(_) | Node::Set(_)) => {
                self.add_lengths(*min, UNBOUNDED);
                self.add_endless();
                self.fixed = false;
            }
            Node::Repeat {
                body,
                min,
                max,
                greed,
            } => {
                // Analysed once: calling `is_loop` as well would double the work at each level.
                let study = Study::of(body);
                let is_group = matches!(**body, Node::Group { .. });
                let is_loop = is_group && *greed != Greed::Possessive && !study.fixed;
                self.add_repeat(study, (*min, *max), is_loop);
            }
        }
    }

    fn add_lengths(&mut self, min: i32, max: i32) {
        self.min = self.min.saturating_add(min);
        self.max = self.max.wrapping_add(max);
    }

    fn add_endless(&mut self) {
        self.bounded &= !std::mem::replace(&mut self.has_endless, true);
    }

    fn add_either(&mut self, branches: impl Iterator<Item = Study>) {
        let (mut min, mut max) = (i32::MAX, -1);
        let mut has_endless = false;
        for branch in branches {
            min = min.min(branch.min);
            max = max.max(branch.max);
            self.bounded &= branch.bounded;
            has_endless |= branch.has_endless;
        }
        self.add_lengths(min, max);
        if has_endless {
            self.add_endless();
        }
        self.fixed = false;
    }

    fn add_repeat(&mut self, body: Study, (min, max): (i32, i32), is_loop: bool) {
        self.min = self.min.saturating_add(body.min.saturating_mul(min));
        let most = body.max.wrapping_mul(max).wrapping_add(self.max);
        self.bounded &= body.bounded && !is_loop && most >= self.max;
        self.max = most;
        if body.has_endless || max == UNBOUNDED && body.max != 0 {
            self.add_endless();
        }
        self.fixed &= body.fixed && min == max && !is_loop;
    }
}

/// Tells whether a repetition can backtrack into its earlier rounds. Otherwise each round matches in only one way.
pub(super) fn is_loop(body: &Node, greed: Greed) -> bool {
    match body {
        Node::Group { body, .. } => greed != Greed::Possessive && !is_fixed(body),
        _ => false,
    }
}

/// Tells whether a part of a pattern can match in only one way.
pub(super) fn is_fixed(node: &Node) -> bool {
    Study::of(node).fixed
}

/// Tells whether a part of a pattern contains a capturing group.
pub(super) fn has_captures(node: &Node) -> bool {
    match node {
        Node::Group { index, body } => index.is_some() || has_captures(body),
        Node::Concat(nodes) | Node::Either(nodes) => nodes.iter().any(has_captures),
        Node::Look { body, .. }
        | Node::Atomic(body)
        | Node::Optional { body, .. }
        | Node::Repeat { body, .. } => has_captures(body),
        Node::Empty
        | Node::Char(_)
        | Node::Set(_)
        | Node::Assert(_)
        | Node::Reference { .. }
        | Node::Grapheme
        | Node::LineBreak => false,
    }
}

/// Tells whether a capture may remain although the match backtracked past it.
pub(super) fn keeps_captures(node: &Node) -> bool {
    match node {
        Node::Look { body, .. } | Node::Atomic(body) => has_captures(body),
        Node::Optional {
            body,
            greed: Greed::Possessive,
        } => has_captures(body),
        Node::Repeat { body, greed, .. } if !is_loop(body, *greed) => match &**body {
            Node::Group { body, .. } if *greed != Greed::Possessive => has_captures(body),
            body => has_captures(body),
        },
        Node::Group { body, .. } | Node::Optional { body, .. } | Node::Repeat { body, .. } => {
            keeps_captures(body)
        }
        Node::Concat(nodes) | Node::Either(nodes) => nodes.iter().any(keeps_captures),
        Node::Empty
        | Node::Char(_)
        | Node::Set(_)
        | Node::Assert(_)
        | Node::Reference { .. }
        | Node::Grapheme
        | Node::LineBreak => false,
    }
}
