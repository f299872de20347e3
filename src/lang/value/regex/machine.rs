//! The machine that backtracks as Java does: backtracking undoes captures, except those of a group that can match in
//! only one way, of a look-around, and of an atomic group.

use std::cell::Cell;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use super::fold;
use super::program::{CharSet, Counts, Inst, Program};
use super::property::{holds, with_word_sets};
use super::tree::{Assert, Fold, Greed, Lengths, Lines, Side, Words};
use super::{Groups, Mode, STEP_LIMIT, TooManySteps};
use crate::value::meter;

/// Maximum number of entries on the backtracking stack.
const STACK_LIMIT: usize = 2_000_000;

type Group = Option<(usize, usize)>;
type Outcome<T> = Result<T, TooManySteps>;

/// An entry of the backtracking stack: what to do when the match backtracks.
enum Back {
    /// Tries the alternative.
    Choice {
        code: usize,
        at: usize,
    },
    /// Enters a loop's body once more.
    Enter {
        code: usize,
        at: usize,
        count: usize,
        rounds: usize,
    },
    Local {
        local: usize,
        old: usize,
    },
    Group {
        group: usize,
        old: Group,
    },
    /// Gives up one character of a greedy repetition.
    Fewer {
        code: usize,
        low: usize,
        at: usize,
    },
    /// Takes one more character with a lazy repetition.
    More {
        code: usize,
        at: usize,
        rounds: usize,
    },
    /// Gives up one round of a repeated group.
    FewerRounds {
        code: usize,
        at: usize,
        group: usize,
        old: Group,
        is_kept: bool,
    },
    MoreRounds {
        code: usize,
        at: usize,
        rounds: usize,
    },
    /// Does nothing while backtracking; if the match succeeds, the group is set to this, whatever set it since.
    Keep {
        group: usize,
        value: Group,
    },
}

/// The parameters of a search in a text.
pub(super) struct Machine<'a> {
    program: &'a Program,
    text: &'a str,
    groups: Vec<Group>,
    locals: Vec<usize>,
    stack: Vec<Back>,
    steps: usize,
    limit: usize,
    /// The end of the previous match.
    last: usize,
    mode: Mode,
    /// Whether the result depends on where the text ends, as Java's matchers report it.
    has_hit_end: Cell<bool>,
}

impl<'a> Machine<'a> {
    pub(super) fn new(program: &'a Program, text: &'a str, last: usize, mode: Mode) -> Self {
        Machine {
            program,
            text,
            groups: vec![None; program.groups],
            locals: vec![usize::MAX; program.locals],
            stack: Vec::new(),
            steps: 0,
            limit: STEP_LIMIT.saturating_add(text.len().saturating_mul(16)),
            last,
            mode,
            has_hit_end: Cell::new(false),
        }
    }

    /// Returns the first match that starts at byte `from` or, if the mode allows it, later.
    pub(super) fn search(mut self, from: usize) -> Outcome<Option<Groups>> {
        self.find_match(from)
    }

    /// Tells whether a search from byte `from` on depends on where the text ends.
    pub(super) fn hits_end(mut self, from: usize) -> Outcome<bool> {
        let is_found = self.find_match(from)?.is_some();
        let has_passed_all = !is_found && self.mode == Mode::Find && !self.program.is_anchored;
        Ok(has_passed_all || self.has_hit_end.get())
    }

    fn find_match(&mut self, from: usize) -> Outcome<Option<Groups>> {
        let mut start = from;
        loop {
            if self.mode == Mode::Find {
                start = match self.candidate(start) {
                    Some(start) => start,
                    None => return Ok(None),
                };
            }
            if let Some(end) = self.run(0, start, usize::MAX)? {
                self.groups[0] = Some((start, end));
                return Ok(Some(std::mem::take(&mut self.groups)));
            }
            if self.mode != Mode::Find || start >= self.text.len() {
                return Ok(None);
            }
            start += self.char_at(start).map_or(1, char::len_utf8);
        }
    }

    /// Returns the next position at which a match may begin.
    fn candidate(&self, start: usize) -> Option<usize> {
        if self.program.is_anchored {
            return (start == 0).then_some(0);
        }
        match &self.program.first {
            Some(first) => {
                let rest = &self.text.as_bytes()[start..];
                let ahead = rest.iter().position(|byte| first[usize::from(*byte)])?;
                Some(start + ahead)
            }
            None => Some(start),
        }
    }

    fn char_at(&self, at: usize) -> Option<char> {
        self.text[at..].chars().next()
    }

    fn char_before(&self, at: usize) -> Option<char> {
        self.text[..at].chars().next_back()
    }

    fn pay(&mut self, steps: usize) -> Outcome<()> {
        self.steps += steps;
        if self.steps > self.limit || self.stack.len() > STACK_LIMIT {
            return Err(TooManySteps);
        }
        // The language's machine detects the stop itself.
        meter::spend(u32::try_from(steps).unwrap_or(u32::MAX)).map_err(|_| TooManySteps)
    }

    fn push(&mut self, back: Back) {
        self.stack.push(back);
    }

    fn set_group(&mut self, group: usize, value: Group) {
        let old = std::mem::replace(&mut self.groups[group], value);
        self.push(Back::Group { group, old });
    }

    fn set_local(&mut self, local: usize, value: usize) {
        let old = std::mem::replace(&mut self.locals[local], value);
        self.push(Back::Local { local, old });
    }

    /// Runs a body to its end, and returns the position in the text there. Discards its alternatives.
    fn run(&mut self, code: usize, at: usize, behind: usize) -> Outcome<Option<usize>> {
        let base = self.stack.len();
        let program = self.program;
        let (mut code, mut at) = (code, at);
        loop {
            self.pay(1)?;
            let next = match &program.code[code] {
                Inst::Text(text) => self.literal(text, at).map(|at| (code + 1, at)),
                Inst::Set(set) => self.step(set, at).map(|at| (code + 1, at)),
                Inst::Jump(to) => Some((*to, at)),
                Inst::Split(first, second) => {
                    self.push(Back::Choice { code: *second, at });
                    Some((*first, at))
                }
                Inst::Assert(assert) => self.holds(*assert, at).then_some((code + 1, at)),
                Inst::GroupStart { local } => {
                    self.set_local(*local, at);
                    Some((code + 1, at))
                }
                Inst::GroupEnd { local, group } => {
                    self.set_group(*group, Some((self.locals[*local], at)));
                    Some((code + 1, at))
                }
                Inst::Reference { group, fold } => {
                    self.reference(*group, *fold, at).map(|at| (code + 1, at))
                }
                Inst::Look { side, negated, end } => {
                    let is_found = self.look_around(*side, code + 1, at)?;
                    (is_found != *negated).then_some((*end, at))
                }
                Inst::Atomic { end } => {
                    let found = self.run(code + 1, at, usize::MAX)?;
                    found.map(|at| (*end, at))
                }
                Inst::Chars { counts, .. } => self.chars(code, *counts, at)?,
                Inst::Rounds { counts, .. } => self.rounds(code, *counts, at)?,
                Inst::LoopStart { counts, .. } => Some(self.loop_start(code, *counts, at)),
                Inst::LoopNext { counts, .. } => Some(self.loop_next(code, *counts, at)),
                Inst::Grapheme => self.grapheme(at).map(|at| (code + 1, at)),
                Inst::Return => return Ok(Some(self.succeed(base, at))),
                Inst::ReturnBehind if at == behind => return Ok(Some(self.succeed(base, at))),
                Inst::Match if self.mode != Mode::Whole || at == self.text.len() => {
                    return Ok(Some(self.succeed(base, at)));
                }
                Inst::ReturnBehind | Inst::Match => None,
            };
            (code, at) = match next {
                Some(next) => next,
                None => match self.go_back(base)? {
                    Some(next) => next,
                    None => return Ok(None),
                },
            };
        }
    }

    /// Returns the byte after a literal text, if it is there.
    fn literal(&self, text: &str, at: usize) -> Option<usize> {
        let rest = &self.text.as_bytes()[at..];
        if rest.starts_with(text.as_bytes()) {
            return Some(at + text.len());
        }
        if text.as_bytes().starts_with(rest) {
            self.has_hit_end.set(true);
        }
        None
    }

    /// Returns the byte after a character, if it is in a set.
    fn step(&self, set: &CharSet, at: usize) -> Option<usize> {
        let next = set.step(self.text, at);
        if next.is_none() {
            self.note_end(at);
        }
        next
    }

    fn grapheme(&self, at: usize) -> Option<usize> {
        self.note_end(at);
        let grapheme = self.text[at..].graphemes(true).next()?;
        Some(at + grapheme.len())
    }

    /// Records that the result depends on whether the text continues here.
    fn note_end(&self, at: usize) {
        if at == self.text.len() {
            self.has_hit_end.set(true);
        }
    }

    /// Discards the alternatives of a body that matched.
    fn succeed(&mut self, base: usize, at: usize) -> usize {
        while self.stack.len() > base {
            if let Some(Back::Keep { group, value }) = self.stack.pop() {
                self.groups[group] = value;
            }
        }
        at
    }

    /// Undoes everything since the last choice, and takes its next alternative.
    fn go_back(&mut self, base: usize) -> Outcome<Option<(usize, usize)>> {
        while self.stack.len() > base {
            self.pay(1)?;
            let Some(back) = self.stack.pop() else { break };
            match back {
                Back::Choice { code, at } => return Ok(Some((code, at))),
                Back::Local { local, old } => self.locals[local] = old,
                Back::Group { group, old } => self.groups[group] = old,
                Back::Keep { .. } => {}
                Back::Enter {
                    code,
                    at,
                    count,
                    rounds,
                } => {
                    self.set_local(count, rounds);
                    return Ok(Some((code, at)));
                }
                Back::Fewer { code, low, at } => {
                    let at = at - self.char_before(at).map_or(1, char::len_utf8);
                    if at > low {
                        self.push(Back::Fewer { code, low, at });
                    }
                    return Ok(Some((code, at)));
                }
                Back::FewerRounds {
                    code,
                    at,
                    group,
                    old,
                    is_kept,
                } => {
                    self.groups[group] = old;
                    if is_kept {
                        self.push(Back::Keep { group, value: old });
                    }
                    return Ok(Some((code, at)));
                }
                Back::More { code, at, rounds } => {
                    if let Some(next) = self.one_more(code, at, rounds) {
                        return Ok(Some(next));
                    }
                }
                Back::MoreRounds { code, at, rounds } => {
                    if let Some(next) = self.round_more(code, at, rounds)? {
                        return Ok(Some(next));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Matches a repeated character or set.
    fn chars(&mut self, code: usize, counts: Counts, at: usize) -> Outcome<Option<(usize, usize)>> {
        let program = self.program;
        let Inst::Chars { set, .. } = &program.code[code] else {
            return Ok(None);
        };
        let mut at = at;
        for _ in 0..counts.min {
            match self.step(set, at) {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
        if counts.greed == Greed::Lazy {
            let rounds = counts.min;
            self.push(Back::More { code, at, rounds });
            return Ok(Some((code + 1, at)));
        }
        let low = at;
        let mut rounds = counts.min;
        while rounds < counts.max {
            match self.step(set, at) {
                Some(next) => at = next,
                None => break,
            }
            rounds += 1;
        }
        self.pay((rounds - counts.min) / 4)?;
        if counts.greed == Greed::Greedy && at > low {
            self.push(Back::Fewer {
                code: code + 1,
                low,
                at,
            });
        }
        Ok(Some((code + 1, at)))
    }

    fn one_more(&mut self, code: usize, at: usize, rounds: usize) -> Option<(usize, usize)> {
        let Inst::Chars { set, counts } = &self.program.code[code] else {
            return None;
        };
        if rounds >= counts.max {
            return None;
        }
        let at = self.step(set, at)?;
        let rounds = rounds + 1;
        self.push(Back::More { code, at, rounds });
        Some((code + 1, at))
    }

    /// Matches a repeated body.
    fn rounds(
        &mut self,
        code: usize,
        counts: Counts,
        at: usize,
    ) -> Outcome<Option<(usize, usize)>> {
        let Inst::Rounds { group, end, .. } = self.program.code[code] else {
            return Ok(None);
        };
        if let Some(group) = group {
            let old = self.groups[group];
            self.push(Back::Group { group, old });
        }
        let mut at = at;
        for _ in 0..counts.min {
            let Some(next) = self.round(code, group, at)? else {
                return Ok(None);
            };
            at = next;
        }
        if counts.greed == Greed::Lazy {
            let rounds = counts.min;
            self.push(Back::MoreRounds { code, at, rounds });
            return Ok(Some((end, at)));
        }
        let mut rounds = counts.min;
        while rounds < counts.max {
            let old = group.map(|group| self.groups[group]);
            let Some(next) = self.run(code + 1, at, usize::MAX)? else {
                break;
            };
            if next <= at {
                break;
            }
            if counts.greed == Greed::Greedy {
                self.push(match (group, old) {
                    (Some(group), Some(old)) => Back::FewerRounds {
                        code: end,
                        at,
                        group,
                        old,
                        is_kept: rounds > counts.min,
                    },
                    _ => Back::Choice { code: end, at },
                });
            }
            if let Some(group) = group {
                self.groups[group] = Some((at, next));
            }
            at = next;
            rounds += 1;
        }
        if let Some(group) = group
            && rounds > counts.min
        {
            let value = self.groups[group];
            self.push(Back::Keep { group, value });
        }
        Ok(Some((end, at)))
    }

    fn round(&mut self, code: usize, group: Option<usize>, at: usize) -> Outcome<Option<usize>> {
        let found = self.run(code + 1, at, usize::MAX)?;
        if let (Some(group), Some(next)) = (group, found) {
            self.groups[group] = Some((at, next));
        }
        Ok(found)
    }

    fn round_more(
        &mut self,
        code: usize,
        at: usize,
        rounds: usize,
    ) -> Outcome<Option<(usize, usize)>> {
        let Inst::Rounds { counts, group, end } = self.program.code[code] else {
            return Ok(None);
        };
        if rounds >= counts.max {
            return Ok(None);
        }
        let Some(next) = self.run(code + 1, at, usize::MAX)? else {
            return Ok(None);
        };
        if next <= at {
            return Ok(None);
        }
        if let Some(group) = group {
            self.groups[group] = Some((at, next));
        }
        self.push(Back::MoreRounds {
            code,
            at: next,
            rounds: rounds + 1,
        });
        Ok(Some((end, next)))
    }

    fn loop_start(&mut self, code: usize, counts: Counts, at: usize) -> (usize, usize) {
        let Inst::LoopStart { count, end, .. } = self.program.code[code] else {
            return (code + 1, at);
        };
        let body = code + 1;
        if counts.min == 0 {
            if counts.max == 0 {
                return (end, at);
            }
            if counts.greed == Greed::Lazy {
                self.push(Back::Enter {
                    code: body,
                    at,
                    count,
                    rounds: 1,
                });
                return (end, at);
            }
            self.push(Back::Choice { code: end, at });
        }
        self.set_local(count, 1);
        (body, at)
    }

    fn loop_next(&mut self, code: usize, counts: Counts, at: usize) -> (usize, usize) {
        let Inst::LoopNext {
            count, start, body, ..
        } = self.program.code[code]
        else {
            return (code + 1, at);
        };
        let done = self.locals[count];
        // An empty round ends the loop.
        if at == self.locals[start] {
            return (code + 1, at);
        }
        if done < counts.min {
            self.set_local(count, done + 1);
            return (body, at);
        }
        if done >= counts.max {
            return (code + 1, at);
        }
        if counts.greed == Greed::Lazy {
            self.push(Back::Enter {
                code: body,
                at,
                count,
                rounds: done + 1,
            });
            return (code + 1, at);
        }
        self.push(Back::Choice { code: code + 1, at });
        self.set_local(count, done + 1);
        (body, at)
    }

    fn look_around(&mut self, side: Side, code: usize, at: usize) -> Outcome<bool> {
        let Lengths { min, max } = match side {
            Side::Ahead => return Ok(self.run(code, at, usize::MAX)?.is_some()),
            Side::Behind(lengths) => lengths,
        };
        let mut start = at;
        for length in 0..=max {
            if length >= min && self.run(code, start, at)?.is_some() {
                return Ok(true);
            }
            match self.char_before(start) {
                Some(char) => start -= char.len_utf8(),
                None => break,
            }
        }
        Ok(false)
    }

    fn reference(&self, group: usize, fold: Fold, at: usize) -> Option<usize> {
        let (start, end) = (*self.groups.get(group)?)?;
        let wanted = &self.text[start..end];
        let rest = &self.text[at..];
        if rest.len() < wanted.len() {
            self.has_hit_end.set(true);
        }
        if fold == Fold::Exact {
            return rest.starts_with(wanted).then_some(at + wanted.len());
        }
        let mut found = rest.chars();
        let is_same = wanted.chars().all(|wanted| {
            found
                .next()
                .is_some_and(|found| fold::same(wanted, found, fold))
        });
        is_same.then(|| self.text.len() - found.as_str().len())
    }

    fn holds(&self, assert: Assert, at: usize) -> bool {
        let (before, after) = (self.char_before(at), self.char_at(at));
        if !matches!(assert, Assert::Start | Assert::LastMatch) {
            self.note_end(at);
        }
        match assert {
            Assert::Start => at == 0,
            Assert::End => after.is_none(),
            Assert::EndOfText(lines) => {
                let is_end = self.is_end_of_text(lines, at);
                // With more text, the last line break would no longer be at the end.
                self.has_hit_end.set(is_end || self.has_hit_end.get());
                is_end
            }
            Assert::LineStart(Lines::Unix) => {
                after.is_some() && matches!(before, None | Some('\n'))
            }
            Assert::LineStart(Lines::Any) => match before {
                _ if after.is_none() => false,
                None => true,
                Some('\r') => after != Some('\n'),
                Some(before) => is_terminator(before),
            },
            Assert::LineEnd(Lines::Unix) => matches!(after, None | Some('\n')),
            Assert::LineEnd(Lines::Any) => match after {
                None => true,
                Some('\n') => before != Some('\r'),
                Some(after) => is_terminator(after),
            },
            Assert::Word(words) => self.is_word_bound(words, at),
            Assert::NoWord(words) => !self.is_word_bound(words, at),
            Assert::GraphemeBoundary => GraphemeCursor::new(at, self.text.len(), true)
                .is_boundary(self.text, 0)
                .unwrap_or(true),
            Assert::LastMatch => at == self.last,
        }
    }

    fn is_end_of_text(&self, lines: Lines, at: usize) -> bool {
        match (lines, &self.text[at..]) {
            (_, "") => true,
            (Lines::Unix, rest) => rest == "\n",
            (Lines::Any, "\r\n") => true,
            (Lines::Any, "\n") => self.char_before(at) != Some('\r'),
            (Lines::Any, rest) => {
                let mut rest = rest.chars();
                rest.next().is_some_and(is_terminator) && rest.next().is_none()
            }
        }
    }

    fn is_word_bound(&self, words: Words, at: usize) -> bool {
        let before = at - self.char_before(at).map_or(0, char::len_utf8);
        let left = at > 0 && self.is_in_word(words, before);
        left != self.is_in_word(words, at)
    }

    /// Tells whether the character at a byte belongs to a word; a combining mark does if the letter before it does.
    fn is_in_word(&self, words: Words, at: usize) -> bool {
        let Some(char) = self.char_at(at) else {
            return false;
        };
        if char.is_ascii() {
            return char.is_ascii_alphanumeric() || char == '_';
        }
        with_word_sets(|sets| {
            let is_letter = match words {
                Words::Plain => holds(&sets.letters_and_digits, char),
                Words::Unicode => holds(&sets.unicode_words, char),
            };
            let is_mark = || holds(&sets.marks, char);
            let base = || {
                let mut before = self.text[..at].chars().rev();
                before.find(|char| !holds(&sets.marks, *char))
            };
            is_letter
                || is_mark() && base().is_some_and(|base| holds(&sets.letters_and_digits, base))
        })
    }
}

fn is_terminator(char: char) -> bool {
    matches!(char, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
