//! The tokens of a filter.

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// `.name`
    Field(String),
    /// A name of a function, or a word of the language.
    Word(String),
    /// `$name`
    Variable(String),
    Number(serde_json::Number),
    Text(Vec<Part>),
    /// An operator or a bracket.
    Sign(&'static str),
    /// `@name`
    Format(String),
}

/// A part of a string.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Literal(String),
    /// The tokens of `\(...)`.
    Inner(Vec<(usize, Token)>),
}

/// The signs, the longest first.
const SIGNS: &[&str] = &[
    "//=", "|=", "+=", "-=", "*=", "/=", "%=", "==", "!=", "<=", ">=", "//", "..", "=", "<", ">",
    "+", "-", "*", "/", "%", "|", ",", ".", "[", "]", "(", ")", "{", "}", ":", ";", "?",
];

/// Cuts a text into tokens, each with the number of its first character, from 1.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, String> {
    let chars: Vec<char> = text.chars().collect();
    let mut lexer = Lexer { chars, at: 0 };
    lexer.until(None, 0)
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
}

/// Strings within interpolations within strings are not nested deeper.
const DEEPEST: usize = 8;

fn is_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn name(&mut self) -> String {
        let begun = self.at;
        while self.peek(0).is_some_and(is_name) {
            self.at += 1;
        }
        self.chars[begun..self.at].iter().collect()
    }

    /// Reads to the end, or to a bracket that closes an interpolation.
    fn until(&mut self, end: Option<char>, depth: usize) -> Result<Vec<(usize, Token)>, String> {
        if depth > DEEPEST {
            return Err("the jq filter is nested too deeply".to_owned());
        }
        let mut tokens = Vec::new();
        let mut open = 0;
        while let Some(char) = self.peek(0) {
            if char.is_whitespace() {
                self.at += 1;
                continue;
            }
            if char == '#' {
                while self.peek(0).is_some_and(|char| char != '\n') {
                    self.at += 1;
                }
                continue;
            }
            match char {
                '(' => open += 1,
                ')' if open == 0 && end == Some(')') => {
                    self.at += 1;
                    return Ok(tokens);
                }
                ')' => open -= 1,
                _ => {}
            }
            let place = self.at + 1;
            tokens.push((place, self.token(char, depth)?));
        }
        match end {
            None => Ok(tokens),
            Some(_) => Err("the jq filter ends within a string".to_owned()),
        }
    }

    fn token(&mut self, char: char, depth: usize) -> Result<Token, String> {
        let next = self.peek(1);
        let begins_name = |char: char| char.is_ascii_alphabetic() || char == '_';
        if char == '"' {
            return self.text(depth).map(Token::Text);
        }
        if char.is_ascii_digit() || (char == '.' && next.is_some_and(|it| it.is_ascii_digit())) {
            return self.number();
        }
        if char == '.' && next.is_some_and(begins_name) {
            self.at += 1;
            return Ok(Token::Field(self.name()));
        }
        if char == '$' && next.is_some_and(begins_name) {
            self.at += 1;
            return Ok(Token::Variable(self.name()));
        }
        if begins_name(char) {
            return Ok(Token::Word(self.name()));
        }
        if char == '@' && next.is_some_and(begins_name) {
            self.at += 1;
            return Ok(Token::Format(format!("@{}", self.name())));
        }
        let is_here = |sign: &&&str| {
            sign.chars()
                .enumerate()
                .all(|(idx, it)| self.peek(idx) == Some(it))
        };
        match SIGNS.iter().find(is_here) {
            Some(sign) => {
                self.at += sign.len();
                Ok(Token::Sign(sign))
            }
            None => Err(format!(
                "the jq filter has `{char}` at character {}",
                self.at + 1
            )),
        }
    }

    fn number(&mut self) -> Result<Token, String> {
        let begun = self.at;
        while let Some(char) = self.peek(0) {
            let is_exponent = matches!(char, 'e' | 'E');
            let is_sign = matches!(char, '+' | '-') && matches!(self.chars[self.at - 1], 'e' | 'E');
            if !(char.is_ascii_digit() || char == '.' || is_exponent || is_sign) {
                break;
            }
            self.at += 1;
        }
        let text: String = self.chars[begun..self.at].iter().collect();
        let whole = if text.starts_with('.') {
            format!("0{text}")
        } else {
            text
        };
        let number = serde_json::from_str(&whole);
        number.map(Token::Number).map_err(|_| {
            format!(
                "`{whole}` at character {} of the jq filter is not a number",
                begun + 1
            )
        })
    }

    fn text(&mut self, depth: usize) -> Result<Vec<Part>, String> {
        let mut parts = Vec::new();
        // The raw literal, which JSON unescapes.
        let mut raw = String::new();
        self.at += 1;
        loop {
            match (self.peek(0), self.peek(1)) {
                (None, _) => return Err("the jq filter ends within a string".to_owned()),
                (Some('"'), _) => {
                    self.at += 1;
                    parts.push(literal(&raw)?);
                    return Ok(parts);
                }
                (Some('\\'), Some('(')) => {
                    self.at += 2;
                    parts.push(literal(&raw)?);
                    raw.clear();
                    parts.push(Part::Inner(self.until(Some(')'), depth + 1)?));
                }
                (Some('\\'), Some(escaped)) => {
                    raw.extend(['\\', escaped]);
                    self.at += 2;
                }
                (Some(char), _) => {
                    raw.push(char);
                    self.at += 1;
                }
            }
        }
    }
}

fn literal(raw: &str) -> Result<Part, String> {
    let raw = raw
        .replace('\n', "\\n")
        .replace('\t', "\\t")
        .replace('\r', "\\r");
    serde_json::from_str(&format!("\"{raw}\""))
        .map(Part::Literal)
        .map_err(|_| "a string of the jq filter has an escape that JSON does not have".to_owned())
}
