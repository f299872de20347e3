//! Character classes: `[...]` with ranges, unions, intersections and negations.

use super::fold;
use super::parse::{Escape, Parsed, Parser};
use super::tree::{Node, Set, negated, union};

/// The state of a class that is being parsed.
#[derive(Default)]
struct Class {
    /// The characters that are written singly. They are added last, even to an intersection before them.
    singles: Option<Set>,
    /// Whether `singles` still have to be added.
    is_waiting: bool,
    whole: Option<Set>,
    /// The set that was added last.
    last: Option<Set>,
}

impl Class {
    fn add(&mut self, set: Set) {
        self.whole = Some(match self.whole.take() {
            Some(whole) => union(whole, &set),
            None => set.clone(),
        });
        self.last = Some(set);
    }

    fn add_single(&mut self, set: Set) {
        self.singles = Some(match self.singles.take() {
            Some(singles) => union(singles, &set),
            None => set,
        });
        self.is_waiting = true;
    }

    fn is_empty(&self) -> bool {
        self.whole.is_none() && !self.is_waiting
    }

    /// Adds the pending singles. Like a class of their own, they count as the set that was added last.
    fn add_singles(&mut self) {
        if !std::mem::take(&mut self.is_waiting) {
            return;
        }
        let singles = self.singles.clone().unwrap_or_else(Set::empty);
        match self.whole.take() {
            Some(whole) => self.whole = Some(union(whole, &singles)),
            None => self.add(singles),
        }
    }
}

impl Parser {
    /// Parses a class from its `[` on, or from after `&&`, where the `]` belongs to the surrounding class.
    pub(super) fn class(&mut self, is_bracketed: bool) -> Parsed<Set> {
        let open = self.source.at;
        let mut class = Class::default();
        let mut char = self.next();
        let is_negated = char == '^' && self.source.get(self.source.at - 1) == '[';
        if is_negated {
            char = self.next();
        }
        loop {
            match char {
                '[' => {
                    let inner = self.nested()?;
                    class.add(inner);
                    char = self.peek();
                    continue;
                }
                '&' => {
                    if self.next() == '&' {
                        self.intersection(&mut class)?;
                        char = self.peek();
                        continue;
                    }
                    self.source.at -= 1;
                }
                '\0' if self.source.is_at_end() => {
                    return Err(self
                        .source
                        .wrong_at(open, "this `[` is never closed")
                        .hint("close the class with `]`, or escape the bracket, `\\[`, to match it literally; a `]` right after `[` is a member"));
                }
                ']' if !class.is_empty() => {
                    if is_bracketed {
                        self.next();
                    }
                    class.add_singles();
                    let set = class.whole.unwrap_or_else(Set::empty);
                    return Ok(if is_negated { negated(set) } else { set });
                }
                _ => {}
            }
            self.member(&mut class)?;
            char = self.peek();
        }
    }

    fn nested(&mut self) -> Parsed<Set> {
        self.enter()?;
        let set = self.class(true);
        self.leave();
        set
    }

    /// Parses the operand of `&&`.
    fn intersection(&mut self, class: &mut Class) -> Parsed<()> {
        let mut right: Option<Set> = None;
        let mut char = self.next();
        while char != ']' && char != '&' {
            self.enter()?;
            let more = if char == '[' {
                self.class(true)
            } else {
                self.source.at -= 1;
                self.class(false)
            };
            self.leave();
            let more = more?;
            right = Some(match right {
                Some(right) => union(right, &more),
                None => more,
            });
            char = self.peek();
        }
        class.add_singles();
        if let Some(right) = &right {
            class.last = Some(right.clone());
        }
        match (class.whole.take(), right) {
            (None, None) => Err(self
                .source
                .wrong("`&&` has nothing on either side")
                .hint("escape it, `\\&`, to match it literally")),
            (None, right) => {
                class.whole = right;
                Ok(())
            }
            (Some(mut whole), _) => {
                if let Some(last) = &class.last {
                    whole.intersect(last);
                }
                class.whole = Some(whole);
                Ok(())
            }
        }
    }

    /// Parses a character, a range or an escape of a class.
    fn member(&mut self, class: &mut Class) -> Parsed<()> {
        let start = self.source.at;
        let low = if self.peek() == '\\' {
            if matches!(self.source.get(self.source.at + 1), 'p' | 'P') {
                self.source.at += 1;
                let set = self.property()?;
                class.add(set);
                return Ok(());
            }
            // `\v` is a single character at the beginning of a range.
            let is_range = self.source.get(self.source.at + 2) == '-';
            match self.bound(is_range)? {
                Escape::Char(code) => code,
                Escape::Node(Node::Set(set)) => {
                    class.add(set);
                    return Ok(());
                }
                Escape::Node(_) => unreachable!("a class holds sets and characters only"),
            }
        } else {
            let char = self.peek();
            self.next();
            u32::from(char)
        };
        if self.peek() != '-' || matches!(self.source.get(self.source.at + 1), '[' | ']') {
            class.add_single(match char::from_u32(low) {
                Some(char) => fold::single(char, self.flags.fold()),
                None => Set::empty(),
            });
            return Ok(());
        }
        let high = if self.next() == '\\' {
            match self.bound(true)? {
                Escape::Char(code) => Some(code),
                Escape::Node(_) => None,
            }
        } else {
            let char = self.peek();
            self.next();
            Some(u32::from(char))
        };
        match high {
            Some(high) if high >= low => {
                class.add(fold::span(low, high, self.flags.fold()));
                Ok(())
            }
            _ => Err(self
                .source
                .wrong_at(start, "this range of characters ends before it begins")
                .hint("to match `-` literally, write it first, last, or as `\\-`")),
        }
    }

    /// Parses an escape that may begin or end a range.
    fn bound(&mut self, is_range: bool) -> Parsed<Escape> {
        if is_range && self.source.get(self.source.at + 1) == 'v' {
            self.source.at += 2;
            return Ok(Escape::Char(0x0B));
        }
        self.escape(true)
    }
}
