//! From tokens to an expression.

use serde_json::{Number, Value as Json};

use super::functions;
use super::lex::{Part, Token, tokens};
use super::paths::Assignment;

/// An expression: for each input it gives any number of outputs.
#[derive(Debug, Clone)]
pub(super) enum Expression {
    Identity,
    /// All values below, and the input itself.
    Descend,
    Literal(Json),
    Variable(String),
    /// A string with interpolations.
    Text(Vec<Expression>),
    Array(Option<Box<Expression>>),
    Object(Vec<(Expression, Expression)>),
    Negate(Box<Expression>),
    /// A part of a value, by a key or a number.
    At(Box<Expression>, Box<Expression>),
    Slice(
        Box<Expression>,
        Option<Box<Expression>>,
        Option<Box<Expression>>,
    ),
    Each(Box<Expression>),
    /// Without errors; they are the inputs of the second part, if there is one.
    Try(Box<Expression>, Option<Box<Expression>>),
    Binary(Operator, Box<Expression>, Box<Expression>),
    If(Vec<(Expression, Expression)>, Option<Box<Expression>>),
    Bind(Box<Expression>, String, Box<Expression>),
    /// Items, their name, the first state, the next state, and the output for each.
    Fold(Box<Fold>),
    /// New values at the places of the first expression.
    Assign(Assignment, Box<Expression>, Box<Expression>),
    Call(String, Vec<Expression>),
}

/// `reduce` or `foreach`.
#[derive(Debug, Clone)]
pub(super) struct Fold {
    pub items: Expression,
    pub name: String,
    pub first: Expression,
    pub next: Expression,
    /// The output for each state; `reduce` gives the last state only.
    pub each: Option<Expression>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Pipe,
    Comma,
    Otherwise,
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// The operators by how tightly they bind, the loosest first.
const LEVELS: &[&[(&str, Operator)]] = &[
    &[("|", Operator::Pipe)],
    &[(",", Operator::Comma)],
    &[("//", Operator::Otherwise)],
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
        ("<", Operator::Less),
        ("<=", Operator::LessEqual),
        (">", Operator::Greater),
        (">=", Operator::GreaterEqual),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[
        ("*", Operator::Multiply),
        ("/", Operator::Divide),
        ("%", Operator::Remainder),
    ],
];
/// The level of an operand that may hold no comma, as in an object.
const NO_COMMA: usize = 2;
/// The level of operands of assignments.
const ASSIGNED: usize = 3;
const ASSIGNMENTS: &[(&str, Assignment)] = &[
    ("=", Assignment::Set),
    ("|=", Assignment::Update),
    ("+=", Assignment::Calculate(Operator::Add)),
    ("-=", Assignment::Calculate(Operator::Subtract)),
    ("*=", Assignment::Calculate(Operator::Multiply)),
    ("/=", Assignment::Calculate(Operator::Divide)),
    ("%=", Assignment::Calculate(Operator::Remainder)),
    ("//=", Assignment::Otherwise),
];
/// Maximum number of tokens: chains of paths and pipes are evaluated one within the other.
const PARTS_MAX: usize = 400;
/// Maximum depth of an expression.
const DEEPEST: usize = 60;

/// Reads a filter.
pub(super) fn read(text: &str) -> Result<Expression, String> {
    let tokens = tokens(text)?;
    if tokens.len() > PARTS_MAX {
        return Err(format!("the jq filter has more than {PARTS_MAX} parts"));
    }
    let mut parser = Parser {
        tokens,
        at: 0,
        depth: 0,
        variables: Vec::new(),
    };
    parser.whole()
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    depth: usize,
    variables: Vec<String>,
}

type Read = Result<Expression, String>;

impl Parser {
    fn whole(&mut self) -> Read {
        let read = self.pipe()?;
        match self.tokens.get(self.at) {
            None => Ok(read),
            Some(_) => Err(self.unexpected("the end")),
        }
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(found)) if *found == sign)
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is_it = self.is_sign(sign);
        self.at += usize::from(is_it);
        is_it
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is_it = matches!(self.peek(), Some(Token::Word(found)) if found == word);
        self.at += usize::from(is_it);
        is_it
    }

    fn needs(&mut self, sign: &str) -> Result<(), String> {
        match self.takes(sign) {
            true => Ok(()),
            false => Err(self.unexpected(&format!("`{sign}`"))),
        }
    }

    fn needs_word(&mut self, word: &str) -> Result<(), String> {
        match self.takes_word(word) {
            true => Ok(()),
            false => Err(self.unexpected(&format!("`{word}`"))),
        }
    }

    fn unexpected(&self, wanted: &str) -> String {
        match self.tokens.get(self.at) {
            None => format!("the jq filter ends where {wanted} was expected"),
            Some((place, token)) => {
                let found = match token {
                    Token::Field(name) => format!(".{name}"),
                    Token::Word(name) | Token::Format(name) => name.clone(),
                    Token::Variable(name) => format!("${name}"),
                    Token::Number(number) => number.to_string(),
                    Token::Text(_) => "a string".to_owned(),
                    Token::Sign(sign) => (*sign).to_owned(),
                };
                format!(
                    "{wanted} was expected at character {place} of the jq filter, found `{found}`"
                )
            }
        }
    }

    fn pipe(&mut self) -> Read {
        self.level(0)
    }

    fn level(&mut self, level: usize) -> Read {
        self.depth += 1;
        if self.depth > DEEPEST * LEVELS.len() {
            return Err("the jq filter is nested too deeply".to_owned());
        }
        let read = match LEVELS.get(level) {
            None => self.postfix(),
            // A long pipe is a list, so that its length is not its depth.
            Some(operators) if level == 0 => self.pipeline(operators),
            Some(operators) if level == ASSIGNED => self.assignment(level, operators),
            Some(operators) => self.binary(level, operators),
        };
        self.depth -= 1;
        read
    }

    fn pipeline(&mut self, operators: &[(&str, Operator)]) -> Read {
        let left = self.level(1)?;
        if self.takes_word("as") {
            let Some(Token::Variable(name)) = self.peek().cloned() else {
                return Err(self.unexpected("a variable"));
            };
            self.at += 1;
            self.needs("|")?;
            self.variables.push(name.clone());
            let body = self.pipe()?;
            self.variables.pop();
            return Ok(Expression::Bind(Box::new(left), name, Box::new(body)));
        }
        match self.operator(operators) {
            None => Ok(left),
            Some(operator) => {
                let right = self.pipe()?;
                Ok(Expression::Binary(
                    operator,
                    Box::new(left),
                    Box::new(right),
                ))
            }
        }
    }

    fn binary(&mut self, level: usize, operators: &[(&str, Operator)]) -> Read {
        let mut left = self.level(level + 1)?;
        while let Some(operator) = self.operator(operators) {
            // `//` groups to the right.
            let next = if operator == Operator::Otherwise {
                level
            } else {
                level + 1
            };
            let right = self.level(next)?;
            left = Expression::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn assignment(&mut self, level: usize, operators: &[(&str, Operator)]) -> Read {
        let left = self.binary(level, operators)?;
        let Some(Token::Sign(sign)) = self.peek() else {
            return Ok(left);
        };
        let Some((_, assignment)) = ASSIGNMENTS.iter().find(|(known, _)| known == sign) else {
            return Ok(left);
        };
        self.at += 1;
        let right = self.binary(level, operators)?;
        Ok(Expression::Assign(
            *assignment,
            Box::new(left),
            Box::new(right),
        ))
    }

    fn operator(&mut self, operators: &[(&str, Operator)]) -> Option<Operator> {
        let name = match self.peek()? {
            Token::Sign(sign) => *sign,
            Token::Word(word) => word.as_str(),
            Token::Field(_)
            | Token::Variable(_)
            | Token::Number(_)
            | Token::Text(_)
            | Token::Format(_) => return None,
        };
        let found = operators.iter().find(|(known, _)| *known == name)?.1;
        self.at += 1;
        Some(found)
    }

    fn postfix(&mut self) -> Read {
        let mut value = self.term()?;
        loop {
            value = match self.peek().cloned() {
                Some(Token::Field(name)) => {
                    self.at += 1;
                    at(value, literal(name))
                }
                Some(Token::Sign("?")) => {
                    self.at += 1;
                    Expression::Try(Box::new(value), None)
                }
                Some(Token::Sign("[")) => self.bracket(value)?,
                Some(Token::Sign(".")) => {
                    self.at += 1;
                    match self.peek().cloned() {
                        Some(Token::Text(parts)) => {
                            self.at += 1;
                            at(value, self.text(parts)?)
                        }
                        Some(Token::Sign("[")) => self.bracket(value)?,
                        _ => return Err(self.unexpected("a field")),
                    }
                }
                _ => return Ok(value),
            };
        }
    }

    fn bracket(&mut self, value: Expression) -> Read {
        self.needs("[")?;
        if self.takes("]") {
            return Ok(Expression::Each(Box::new(value)));
        }
        if self.takes(":") {
            let end = self.pipe()?;
            self.needs("]")?;
            return Ok(Expression::Slice(
                Box::new(value),
                None,
                Some(Box::new(end)),
            ));
        }
        let start = self.pipe()?;
        if self.takes(":") {
            let end = match self.is_sign("]") {
                true => None,
                false => Some(Box::new(self.pipe()?)),
            };
            self.needs("]")?;
            return Ok(Expression::Slice(
                Box::new(value),
                Some(Box::new(start)),
                end,
            ));
        }
        self.needs("]")?;
        Ok(at(value, start))
    }

    fn term(&mut self) -> Read {
        let Some((place, token)) = self.tokens.get(self.at).cloned() else {
            return Err(self.unexpected("an expression"));
        };
        self.at += 1;
        match token {
            Token::Number(number) => Ok(Expression::Literal(Json::Number(number))),
            Token::Text(parts) => self.text(parts),
            Token::Field(name) => Ok(at(Expression::Identity, literal(name))),
            Token::Variable(name) if self.variables.contains(&name) => {
                Ok(Expression::Variable(name))
            }
            Token::Variable(name) => Err(format!(
                "the jq filter has no variable `${name}` at character {place}"
            )),
            Token::Word(word) => self.word(&word),
            Token::Format(name) => self.format(&name),
            Token::Sign(sign) => self.sign(sign),
        }
    }

    fn sign(&mut self, sign: &str) -> Read {
        match sign {
            ".." => Ok(Expression::Descend),
            "." => match self.peek().cloned() {
                Some(Token::Text(parts)) => {
                    self.at += 1;
                    Ok(at(Expression::Identity, self.text(parts)?))
                }
                _ => Ok(Expression::Identity),
            },
            "-" => Ok(Expression::Negate(Box::new(self.postfix()?))),
            "(" => {
                let inner = self.pipe()?;
                self.needs(")")?;
                Ok(inner)
            }
            "[" if self.takes("]") => Ok(Expression::Array(None)),
            "[" => {
                let inner = self.pipe()?;
                self.needs("]")?;
                Ok(Expression::Array(Some(Box::new(inner))))
            }
            "{" => self.object(),
            _ => {
                self.at -= 1;
                Err(self.unexpected("an expression"))
            }
        }
    }

    fn object(&mut self) -> Read {
        let mut entries = Vec::new();
        while !self.takes("}") {
            if !entries.is_empty() {
                self.needs(",")?;
            }
            let key = match self.peek().cloned() {
                Some(Token::Word(name)) => Some(literal(name)),
                Some(Token::Variable(name)) => {
                    self.at += 1;
                    entries.push((literal(name.clone()), Expression::Variable(name)));
                    continue;
                }
                Some(Token::Text(parts)) => Some(self.text(parts)?),
                Some(Token::Sign("(")) => None,
                _ => return Err(self.unexpected("a key")),
            };
            self.at += 1;
            let key = match key {
                Some(key) => key,
                None => {
                    let key = self.pipe()?;
                    self.needs(")")?;
                    key
                }
            };
            let value = match self.takes(":") {
                true => self.level(NO_COMMA)?,
                false => at(Expression::Identity, key.clone()),
            };
            entries.push((key, value));
        }
        Ok(Expression::Object(entries))
    }

    fn text(&mut self, parts: Vec<Part>) -> Read {
        let mut read = Vec::new();
        for part in parts {
            read.push(match part {
                Part::Literal(text) => literal(text),
                Part::Inner(tokens) => Parser {
                    tokens,
                    at: 0,
                    depth: self.depth,
                    variables: self.variables.clone(),
                }
                .whole()?,
            });
        }
        match read.len() {
            1 => Ok(read.remove(0)),
            _ => Ok(Expression::Text(read)),
        }
    }

    /// Reads what follows `@name`: a string whose interpolations have this format, or nothing.
    fn format(&mut self, name: &str) -> Read {
        let format = self.call(name)?;
        let Some(Token::Text(parts)) = self.peek().cloned() else {
            return Ok(format);
        };
        self.at += 1;
        let formatted = |part: Expression| match part {
            Expression::Literal(_) => part,
            inner => Expression::Binary(Operator::Pipe, Box::new(inner), Box::new(format.clone())),
        };
        Ok(match self.text(parts)? {
            Expression::Text(parts) => Expression::Text(parts.into_iter().map(formatted).collect()),
            text => text,
        })
    }

    fn word(&mut self, word: &str) -> Read {
        match word {
            "true" => Ok(Expression::Literal(Json::Bool(true))),
            "false" => Ok(Expression::Literal(Json::Bool(false))),
            "null" => Ok(Expression::Literal(Json::Null)),
            "if" => self.condition(),
            "try" => {
                let body = Box::new(self.postfix()?);
                let caught = match self.takes_word("catch") {
                    true => Some(Box::new(self.postfix()?)),
                    false => None,
                };
                Ok(Expression::Try(body, caught))
            }
            "reduce" | "foreach" => self.fold(word == "foreach"),
            name => self.call(name),
        }
    }

    fn condition(&mut self) -> Read {
        let mut cases = Vec::new();
        loop {
            let condition = self.pipe()?;
            self.needs_word("then")?;
            cases.push((condition, self.pipe()?));
            if self.takes_word("elif") {
                continue;
            }
            let otherwise = match self.takes_word("else") {
                true => Some(Box::new(self.pipe()?)),
                false => None,
            };
            self.needs_word("end")?;
            return Ok(Expression::If(cases, otherwise));
        }
    }

    fn fold(&mut self, is_each: bool) -> Read {
        let items = self.postfix()?;
        self.needs_word("as")?;
        let Some(Token::Variable(name)) = self.peek().cloned() else {
            return Err(self.unexpected("a variable"));
        };
        self.at += 1;
        self.needs("(")?;
        let first = self.pipe()?;
        self.needs(";")?;
        self.variables.push(name.clone());
        let next = self.pipe()?;
        let each = match (is_each, is_each && self.takes(";")) {
            (true, true) => Some(self.pipe()?),
            (true, false) => Some(Expression::Identity),
            (false, _) => None,
        };
        self.variables.pop();
        self.needs(")")?;
        Ok(Expression::Fold(Box::new(Fold {
            items,
            name,
            first,
            next,
            each,
        })))
    }

    fn call(&mut self, name: &str) -> Read {
        let mut args = Vec::new();
        if self.takes("(") {
            args.push(self.pipe()?);
            while self.takes(";") {
                args.push(self.pipe()?);
            }
            self.needs(")")?;
        }
        match functions::is_known(name, args.len()) {
            true => Ok(Expression::Call(name.to_owned(), args)),
            false => Err(format!("there is no jq function `{name}/{}`", args.len())),
        }
    }
}

fn at(value: Expression, key: Expression) -> Expression {
    Expression::At(Box::new(value), Box::new(key))
}

fn literal(text: String) -> Expression {
    Expression::Literal(Json::String(text))
}

/// Returns a number as JSON; a whole number without a fraction.
pub(super) fn number(value: f64) -> Json {
    match value.fract() == 0.0 && value.abs() < 9e15 {
        true => Json::from(value as i64),
        false => Number::from_f64(value).map_or(Json::Null, Json::Number),
    }
}
