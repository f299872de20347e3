//! The parser of Java's regex syntax.

use super::RegexError;
use super::fold;
use super::source::Source;
use super::tree::{
    Assert, Fold, Greed, Lines, Node, Set, Side, Study, UNBOUNDED, Words, negated, ranges,
};

pub(super) type Parsed<T> = Result<T, RegexError>;

/// Maximum nesting of groups.
const DEPTH: usize = 200;

/// The flags in force at a place of a pattern.
#[derive(Clone, Copy)]
pub(super) struct Flags(u8);

impl Flags {
    pub(super) const IGNORE_CASE: u8 = 1;
    pub(super) const MULTI_LINE: u8 = 2;
    pub(super) const DOT_ALL: u8 = 4;
    pub(super) const UNIX_LINES: u8 = 8;
    pub(super) const UNICODE_CASE: u8 = 16;
    pub(super) const COMMENTS: u8 = 32;
    pub(super) const UNICODE_CLASSES: u8 = 64;

    pub(super) fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    /// Returns how a pattern's character is compared under these flags.
    pub(super) fn fold(self) -> Fold {
        match (self.has(Self::IGNORE_CASE), self.has(Self::UNICODE_CASE)) {
            (false, _) => Fold::Exact,
            (true, false) => Fold::Ascii,
            (true, true) => Fold::Unicode,
        }
    }

    pub(super) fn lines(self) -> Lines {
        if self.has(Self::UNIX_LINES) {
            Lines::Unix
        } else {
            Lines::Any
        }
    }

    pub(super) fn words(self) -> Words {
        if self.has(Self::UNICODE_CLASSES) {
            Words::Unicode
        } else {
            Words::Plain
        }
    }
}

/// A parsed pattern.
pub(super) struct Pattern {
    pub(super) node: Node,
    /// The number of capturing groups.
    pub(super) groups: usize,
    /// The named groups and their numbers.
    pub(super) names: Vec<(String, usize)>,
}

pub(super) struct Parser {
    pub(super) source: Source,
    pub(super) flags: Flags,
    pub(super) groups: usize,
    pub(super) names: Vec<(String, usize)>,
    depth: usize,
}

/// Parses a pattern.
///
/// # Errors
/// When Java refuses the pattern, or part of it is not supported.
pub(super) fn parse(pattern: &str) -> Parsed<Pattern> {
    let mut parser = Parser {
        source: Source::new(pattern),
        flags: Flags(0),
        groups: 0,
        names: Vec::new(),
        depth: 0,
    };
    let node = parser.alternatives()?;
    if !parser.source.is_at_end() {
        return Err(parser
            .source
            .wrong_at(parser.source.at, "this `)` has no opening `(`")
            .hint("escape it, `\\)`, to match it literally"));
    }
    Ok(Pattern {
        node,
        groups: parser.groups,
        names: parser.names,
    })
}

impl Parser {
    pub(super) fn peek(&mut self) -> char {
        self.source.peek(self.flags)
    }

    pub(super) fn read(&mut self) -> char {
        self.source.read(self.flags)
    }

    pub(super) fn next(&mut self) -> char {
        self.source.next(self.flags)
    }

    /// Counts a group or class that is nested in another.
    pub(super) fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth <= DEPTH {
            return Ok(());
        }
        Err(self.source.wrong_at(
            self.source.at,
            format!("more than {DEPTH} groups or classes are nested here"),
        ))
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    fn alternatives(&mut self) -> Parsed<Node> {
        let mut branches = vec![self.sequence()?];
        while self.peek() == '|' {
            self.next();
            branches.push(self.sequence()?);
        }
        match branches.len() {
            1 => Ok(branches.remove(0)),
            _ => Ok(Node::Either(branches)),
        }
    }

    fn sequence(&mut self) -> Parsed<Node> {
        let mut nodes = Vec::new();
        loop {
            let node = match self.peek() {
                '(' => {
                    nodes.extend(self.group()?);
                    continue;
                }
                '[' => Node::Set(self.class(true)?),
                '\\' if matches!(self.source.get(self.source.at + 1), 'p' | 'P') => {
                    self.source.at += 1;
                    Node::Set(self.property()?)
                }
                '^' | '$' | '.' => self.symbol(),
                '|' | ')' => break,
                char @ ('?' | '*' | '+') => {
                    return Err(self
                        .source
                        .wrong_at(
                            self.source.at,
                            format!("there is nothing before `{char}` to repeat"),
                        )
                        .hint(format!("escape it, `\\{char}`, to match it literally")));
                }
                '\0' if self.source.is_at_end() => break,
                _ => {
                    self.atom(&mut nodes)?;
                    match nodes.pop() {
                        Some(node) => node,
                        None => Node::Empty,
                    }
                }
            };
            let node = self.repeated(node)?;
            nodes.push(node);
        }
        Ok(match nodes.len() {
            0 => Node::Empty,
            1 => nodes.remove(0),
            _ => Node::Concat(nodes),
        })
    }

    fn symbol(&mut self) -> Node {
        let char = self.peek();
        self.next();
        let is_multi_line = self.flags.has(Flags::MULTI_LINE);
        let lines = self.flags.lines();
        match (char, is_multi_line) {
            ('^', true) => Node::Assert(Assert::LineStart(lines)),
            ('^', false) => Node::Assert(Assert::Start),
            ('$', true) => Node::Assert(Assert::LineEnd(lines)),
            ('$', false) => Node::Assert(Assert::EndOfText(lines)),
            _ if self.flags.has(Flags::DOT_ALL) => Node::Set(negated(Set::empty())),
            _ => Node::Set(negated(match lines {
                Lines::Unix => ranges(&[(10, 10)]),
                Lines::Any => ranges(&[(10, 10), (13, 13), (0x85, 0x85), (0x2028, 0x2029)]),
            })),
        }
    }

    /// Parses literal characters up to the next element of another kind, or a single escape. A repetition that follows
    /// applies to the last node.
    fn atom(&mut self, nodes: &mut Vec<Node>) -> Parsed<()> {
        let start = nodes.len();
        let mut last = self.source.at;
        let mut char = self.peek();
        loop {
            let count = nodes.len() - start;
            match char {
                '*' | '+' | '?' | '{' => {
                    if count > 1 {
                        // The repetition applies to the last character only.
                        self.source.at = last;
                        nodes.pop();
                    }
                    break;
                }
                '$' | '.' | '^' | '(' | '[' | '|' | ')' => break,
                '\\' => {
                    if matches!(self.source.get(self.source.at + 1), 'p' | 'P') {
                        break;
                    }
                    last = self.source.at;
                    match self.escape(false)? {
                        Escape::Char(code) => nodes.push(self.literal(code)),
                        Escape::Node(node) if count == 0 => {
                            nodes.push(node);
                            return Ok(());
                        }
                        Escape::Node(_) => {
                            self.source.at = last;
                            break;
                        }
                    }
                    char = self.peek();
                }
                '\0' if self.source.is_at_end() => break,
                literal => {
                    last = self.source.at;
                    nodes.push(self.literal(u32::from(literal)));
                    char = self.next();
                }
            }
        }
        if nodes.len() == start {
            nodes.push(Node::Empty);
        }
        Ok(())
    }

    /// Returns the node of a literal character under the flags.
    fn literal(&self, code: u32) -> Node {
        let Some(char) = char::from_u32(code) else {
            return Node::Set(Set::empty());
        };
        if self.flags.fold() == Fold::Exact {
            return Node::Char(char);
        }
        let set = fold::single(char, self.flags.fold());
        match set.ranges() {
            [only] if only.start() == only.end() => Node::Char(char),
            _ => Node::Set(set),
        }
    }

    /// Parses a group with its repetition; returns `None` if it only changes flags.
    fn group(&mut self) -> Parsed<Option<Node>> {
        let open = self.source.at;
        self.enter()?;
        let flags = self.flags;
        let node = if self.next() == '?' {
            match self.special_group(open)? {
                Some(node) => node,
                None => {
                    self.leave();
                    return Ok(None);
                }
            }
        } else {
            self.capturing(open)?
        };
        self.flags = flags;
        self.leave();
        self.repeated(node).map(Some)
    }

    fn capturing(&mut self, open: usize) -> Parsed<Node> {
        self.groups += 1;
        let index = Some(self.groups);
        let body = Box::new(self.body(open)?);
        Ok(Node::Group { index, body })
    }

    /// Parses the content of a group, and its `)`.
    fn body(&mut self, open: usize) -> Parsed<Node> {
        let body = self.alternatives()?;
        if self.read() == ')' {
            return Ok(body);
        }
        Err(self.source.wrong_at(open, "this `(` is never closed").hint(
            "close the group with `)`, or escape the parenthesis, `\\(`, to match it literally",
        ))
    }

    /// Parses a group that begins with `(?`.
    fn special_group(&mut self, open: usize) -> Parsed<Option<Node>> {
        let kind = self.source.skip();
        let plain = |body| Node::Group {
            index: None,
            body: Box::new(body),
        };
        Ok(Some(match kind {
            ':' => plain(self.body(open)?),
            '=' | '!' => Node::Look {
                side: Side::Ahead,
                negated: kind == '!',
                body: Box::new(self.body(open)?),
            },
            '>' => Node::Atomic(Box::new(self.body(open)?)),
            '<' => {
                let char = self.read();
                if char == '=' || char == '!' {
                    self.look_behind(open, char == '!')?
                } else {
                    self.source.at -= 1;
                    let name = self.group_name()?;
                    if self.names.iter().any(|(known, _)| *known == name) {
                        return Err(self
                            .source
                            .wrong(format!("there is already a group named `{name}`"))
                            .hint("give each group a different name"));
                    }
                    self.names.push((name, self.groups + 1));
                    self.capturing(open)?
                }
            }
            _ => {
                self.source.at -= 1;
                self.read_flags(open)?;
                match self.read() {
                    ')' => return Ok(None),
                    ':' => plain(self.body(open)?),
                    _ => return Err(self.unknown_group(open)),
                }
            }
        }))
    }

    fn look_behind(&mut self, open: usize, negated: bool) -> Parsed<Node> {
        let body = self.body(open)?;
        let Some(lengths) = Study::of(&body).lengths() else {
            return Err(self
                .source
                .wrong_at(open, "this look-behind has no obvious maximum length")
                .hint("repeat with an upper bound inside of it, `{0,100}` for `*`, or take the text into the match"));
        };
        let side = Side::Behind(lengths);
        Ok(Node::Look {
            side,
            negated,
            body: Box::new(body),
        })
    }

    fn unknown_group(&self, open: usize) -> RegexError {
        let error = self
            .source
            .wrong_at(open, "unknown kind of group after `(?`");
        match (self.source.get(open + 2), self.source.get(open + 3)) {
            ('P', '<') => error.hint("a named group is written `(?<name>...)`"),
            ('P', _) => error.hint("a reference to a named group is written `\\k<name>`"),
            ('#', _) => error.hint("comments are written `# ...` up to the line end, under `(?x)`"),
            ('(', _) => error.hint("conditions are not supported; write the alternatives out"),
            ('R' | '0'..='9' | '&', _) => error.hint("a pattern cannot call itself"),
            ('|', _) => error.hint("branch resets are not supported; number the groups by their order"),
            _ => error.hint(
                "groups are `(?:...)`, `(?<name>...)`, `(?=...)`, `(?!...)`, `(?<=...)`, `(?<!...)`, `(?>...)`; flags are `(?idmsuxU)`",
            ),
        }
    }

    /// Parses a group's name and the `>` after it.
    pub(super) fn group_name(&mut self) -> Parsed<String> {
        let start = self.source.at;
        let mut name = String::new();
        let mut char = self.read();
        while char.is_ascii_alphanumeric() {
            name.push(char);
            char = self.read();
        }
        if !name.starts_with(|char: char| char.is_ascii_alphabetic()) {
            let error = self.source.wrong_at(
                start,
                "the name of a group begins with a letter from a to z",
            );
            return Err(error);
        }
        if char != '>' {
            return Err(self
                .source
                .wrong("the name of a group ends with `>`")
                .hint("names are letters and digits, without `_` and `-`"));
        }
        Ok(name)
    }

    fn read_flags(&mut self, open: usize) -> Parsed<()> {
        let mut char = self.peek();
        let mut is_on = true;
        loop {
            let (on, off) = match char {
                'i' => (Flags::IGNORE_CASE, Flags::IGNORE_CASE),
                'm' => (Flags::MULTI_LINE, Flags::MULTI_LINE),
                's' => (Flags::DOT_ALL, Flags::DOT_ALL),
                'd' => (Flags::UNIX_LINES, Flags::UNIX_LINES),
                'u' => (Flags::UNICODE_CASE, Flags::UNICODE_CASE),
                'x' => (Flags::COMMENTS, Flags::COMMENTS),
                'U' => (
                    Flags::UNICODE_CLASSES | Flags::UNICODE_CASE,
                    Flags::UNICODE_CLASSES | Flags::UNICODE_CASE,
                ),
                'c' => {
                    return Err(self
                        .source
                        .wrong_at(
                            open,
                            "the flag `c` (canonical equivalence) is not supported",
                        )
                        .hint("write out each form of the letter that may occur"));
                }
                '-' if is_on => {
                    is_on = false;
                    char = self.next();
                    continue;
                }
                _ => return Ok(()),
            };
            if is_on {
                self.flags.0 |= on;
            } else {
                self.flags.0 &= !off;
            }
            char = self.next();
        }
    }

    /// Parses the repetition of a node, if there is one.
    fn repeated(&mut self, node: Node) -> Parsed<Node> {
        let body = Box::new(node);
        let (min, max) = match self.peek() {
            '?' => {
                self.next();
                let greed = self.greed();
                return Ok(Node::Optional { body, greed });
            }
            '*' => {
                self.next();
                (0, UNBOUNDED)
            }
            '+' => {
                self.next();
                (1, UNBOUNDED)
            }
            '{' => self.counts()?,
            _ => return Ok(*body),
        };
        let greed = self.greed();
        Ok(Node::Repeat {
            body,
            min,
            max,
            greed,
        })
    }

    fn greed(&mut self) -> Greed {
        let greed = match self.peek() {
            '?' => Greed::Lazy,
            '+' => Greed::Possessive,
            _ => return Greed::Greedy,
        };
        self.next();
        greed
    }

    /// Parses `{n}`, `{n,}` or `{n,m}`.
    fn counts(&mut self) -> Parsed<(i32, i32)> {
        let open = self.source.at;
        if !self.source.get(open + 1).is_ascii_digit() {
            return Err(self
                .source
                .wrong_at(open, "`{` begins a repetition such as `{2}` or `{2,5}`")
                .hint("escape it, `\\{`, to match it literally; for `{,3}` write `{0,3}`"));
        }
        let mut char = self.source.skip();
        let min = self.count(open, &mut char)?;
        let max = if char == ',' {
            char = self.read();
            if char == '}' {
                UNBOUNDED
            } else {
                self.count(open, &mut char)?
            }
        } else {
            min
        };
        if char != '}' {
            let error = self
                .source
                .wrong_at(open, "this repetition is never closed with `}`");
            return Err(error);
        }
        if max < min {
            let error = self.source.wrong_at(
                open,
                format!("the repetition `{{{min},{max}}}` ends before it begins"),
            );
            return Err(error.hint("the smaller number comes first"));
        }
        Ok((min, max))
    }

    fn count(&mut self, open: usize, char: &mut char) -> Parsed<i32> {
        let mut count: i32 = 0;
        while let Some(digit) = char.to_digit(10) {
            count = count
                .checked_mul(10)
                .and_then(|count| count.checked_add_unsigned(digit))
                .ok_or_else(|| {
                    self.source
                        .wrong_at(open, "the number of this repetition is too large")
                })?;
            *char = self.read();
        }
        Ok(count)
    }
}

/// The meaning of an escape.
pub(super) enum Escape {
    /// A character by its code, which may be a surrogate.
    Char(u32),
    Node(Node),
}
