//! Escapes of a pattern: the meaning of a `\` and the letters after it.

use super::parse::{Escape, Flags, Parsed, Parser};
use super::property;
use super::tree::{Assert, Node, Set, negated};

impl Parser {
    /// Parses the escape at the current position, other than `\p`.
    pub(super) fn escape(&mut self, in_class: bool) -> Parsed<Escape> {
        let start = self.source.at;
        if start + 1 >= self.source.length {
            return Err(self
                .source
                .wrong_at(start, "a `\\` ends the pattern")
                .hint("write `\\\\` for a backslash"));
        }
        let char = self.source.skip();
        if let Some(set) = self.class_escape(char) {
            return Ok(Escape::Node(Node::Set(set)));
        }
        let code = match char {
            '0' => self.octal(start)?,
            'N' => {
                return Err(self
                    .source
                    .wrong_at(start, "characters by name, `\\N{...}`, are not supported")
                    .hint("write the character itself, or its code: `\\x{1F600}`"));
            }
            'a' => 7,
            'c' => self.control(start)?,
            'e' => 0x1B,
            'f' => 0x0C,
            'n' => 0x0A,
            'r' => 0x0D,
            't' => 0x09,
            'u' => self.unicode(start)?,
            'x' => self.hexadecimal(start)?,
            char if !char.is_ascii_alphanumeric() => u32::from(char),
            char if in_class => return Err(self.unknown(start, char, true)),
            char => return self.position(start, char).map(Escape::Node),
        };
        Ok(Escape::Char(code))
    }

    /// Returns the set of characters of an escape's letter.
    fn class_escape(&self, char: char) -> Option<Set> {
        let is_unicode = self.flags.has(Flags::UNICODE_CLASSES);
        let set = match char.to_ascii_lowercase() {
            'd' => property::digits(is_unicode),
            'h' => property::horizontal_space(),
            's' => property::space(is_unicode),
            'v' => property::vertical_space(),
            'w' => property::word(is_unicode),
            _ => return None,
        };
        Some(if char.is_ascii_uppercase() {
            negated(set)
        } else {
            set
        })
    }

    /// Parses an escape that stands for a position, a reference or more than a character.
    fn position(&mut self, start: usize, char: char) -> Parsed<Node> {
        Ok(match char {
            '1'..='9' => self.reference(char),
            'A' => Node::Assert(Assert::Start),
            'B' => Node::Assert(Assert::NoWord(self.flags.words())),
            'G' => Node::Assert(Assert::LastMatch),
            'R' => Node::LineBreak,
            'X' => Node::Grapheme,
            'Z' => Node::Assert(Assert::EndOfText(self.flags.lines())),
            'b' => {
                let at = self.source.at;
                if (0..3)
                    .map(|idx| self.source.get(at + idx))
                    .eq("{g}".chars())
                {
                    self.source.at += 3;
                    return Ok(Node::Assert(Assert::GraphemeBoundary));
                }
                Node::Assert(Assert::Word(self.flags.words()))
            }
            'k' => self.named_reference(start)?,
            'z' => Node::Assert(Assert::End),
            _ => return Err(self.unknown(start, char, false)),
        })
    }

    fn unknown(&self, start: usize, char: char, in_class: bool) -> super::RegexError {
        let place = if in_class { " in a class `[...]`" } else { "" };
        let error = self
            .source
            .wrong_at(start, format!("`\\{char}` means nothing{place}"));
        error.hint(match char {
            'Q' | 'E' => "`\\E` ends a quotation that `\\Q` begins".to_owned(),
            '1'..='9' | 'A' | 'B' | 'G' | 'R' | 'X' | 'Z' | 'b' | 'k' | 'z' => {
                format!("write it outside of the class: `(?:[...]|\\{char})`")
            }
            'K' => "put what comes before into a look-behind, `(?<=...)`".to_owned(),
            'g' => "a group is referred to by `\\1` or `\\k<name>`".to_owned(),
            'y' | 'm' | 'M' => "the bounds of words are `\\b`".to_owned(),
            char => format!("a letter needs no `\\`: `{char}`"),
        })
    }

    /// Parses a reference to a group: a further digit belongs to it if that many groups have begun.
    fn reference(&mut self, first: char) -> Node {
        let mut group = first.to_digit(10).unwrap_or_default() as usize;
        while let Some(digit) = self.peek().to_digit(10) {
            let longer = group * 10 + digit as usize;
            if self.groups < longer {
                break;
            }
            group = longer;
            self.read();
        }
        Node::Reference {
            group,
            fold: self.flags.fold(),
        }
    }

    fn named_reference(&mut self, start: usize) -> Parsed<Node> {
        if self.read() != '<' {
            return Err(self
                .source
                .wrong_at(start, "`\\k` needs the name of a group")
                .hint("write `\\k<name>`"));
        }
        let name = self.group_name()?;
        let Some((_, group)) = self.names.iter().find(|(known, _)| *known == name) else {
            return Err(self.source.wrong_at(
                start,
                format!("there is no group named `{name}` before this place"),
            ));
        };
        Ok(Node::Reference {
            group: *group,
            fold: self.flags.fold(),
        })
    }

    fn octal(&mut self, start: usize) -> Parsed<u32> {
        let mut code = None;
        for _ in 0..3 {
            let at = self.source.at;
            let digit = self.read().to_digit(8);
            let longer = digit.map(|digit| code.unwrap_or(0) * 8 + digit);
            match longer {
                Some(longer) if longer <= 0o377 => code = Some(longer),
                _ => {
                    self.source.at = at;
                    break;
                }
            }
        }
        code.ok_or_else(|| {
            self.source
                .wrong_at(start, "`\\0` needs octal digits after it")
                .hint("`\\00` is the character zero")
        })
    }

    fn hexadecimal(&mut self, start: usize) -> Parsed<u32> {
        let wrong = |parser: &Parser| {
            parser
                .source
                .wrong_at(start, "`\\x` needs two hexadecimal digits, or more in `{}`")
        };
        let first = self.read();
        if let Some(high) = first.to_digit(16) {
            let low = self.read().to_digit(16).ok_or_else(|| wrong(self))?;
            return Ok(high * 16 + low);
        }
        if first != '{' || !self.peek().is_ascii_hexdigit() {
            return Err(wrong(self));
        }
        let mut code = 0;
        loop {
            match self.read() {
                '}' => return Ok(code),
                char => code = code * 16 + char.to_digit(16).ok_or_else(|| wrong(self))?,
            }
            if code > 0x0010_FFFF {
                return Err(self
                    .source
                    .wrong_at(start, "no character has such a high code")
                    .hint("codes end at 10FFFF"));
            }
        }
    }

    /// Parses four digits, and those of a second escape that forms a surrogate pair with the first.
    fn unicode(&mut self, start: usize) -> Parsed<u32> {
        let high = self.four_digits(start)?;
        if !(0xD800..0xDC00).contains(&high) {
            return Ok(high);
        }
        let at = self.source.at;
        if self.read() == '\\' && self.read() == 'u' {
            let low = self.four_digits(start)?;
            if (0xDC00..0xE000).contains(&low) {
                return Ok(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
            }
        }
        self.source.at = at;
        Ok(high)
    }

    fn four_digits(&mut self, start: usize) -> Parsed<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let Some(digit) = self.read().to_digit(16) else {
                return Err(self
                    .source
                    .wrong_at(start, "`\\u` needs four hexadecimal digits")
                    .hint("longer codes are written `\\x{1F600}`"));
            };
            code = code * 16 + digit;
        }
        Ok(code)
    }

    fn control(&mut self, start: usize) -> Parsed<u32> {
        if self.source.is_at_end() {
            let error = self.source.wrong_at(start, "`\\c` needs a letter after it");
            return Err(error);
        }
        Ok(u32::from(self.read()) ^ 64)
    }
}
