//! Runs an expression: all outputs for an input, within a budget.

use serde_json::{Map, Value as Json};

use super::functions;
use super::order::compare;
use super::parse::{Expression, Fold, Operator, number};
use super::paths;

/// Why a run ends early.
#[derive(Debug, Clone)]
pub(super) enum Stop {
    /// An error that the filter can catch.
    Error(Json),
    /// The budget is used up.
    Budget,
}

impl Stop {
    pub(super) fn error(message: impl Into<String>) -> Stop {
        Stop::Error(Json::String(message.into()))
    }

    pub(super) fn message(self) -> String {
        match self {
            Stop::Error(Json::String(text)) => text,
            Stop::Error(other) => other.to_string(),
            Stop::Budget => "the jq filter needs too much time or memory".to_owned(),
        }
    }
}

/// A run of a filter.
pub(super) struct Run {
    left: usize,
    variables: Vec<(String, Json)>,
}

pub(super) type Outputs = Result<Vec<Json>, Stop>;

/// Returns what a value costs: one for each value in it, and one for each 16 bytes of text.
fn weight(value: &Json) -> usize {
    1 + match value {
        Json::Null | Json::Bool(_) | Json::Number(_) => 0,
        Json::String(text) => text.len() / 16,
        Json::Array(items) => items.iter().map(weight).sum(),
        Json::Object(members) => {
            let of = |(key, value): (&String, &Json)| key.len() / 16 + weight(value);
            members.iter().map(of).sum()
        }
    }
}

impl Run {
    pub(super) fn new(budget: usize) -> Run {
        Run {
            left: budget,
            variables: Vec::new(),
        }
    }

    /// Takes from the budget.
    pub(super) fn spend(&mut self, units: usize) -> Result<(), Stop> {
        self.left = self.left.checked_sub(units).ok_or(Stop::Budget)?;
        Ok(())
    }

    /// Returns a copy of a value, for its price.
    pub(super) fn copy(&mut self, value: &Json) -> Result<Json, Stop> {
        self.spend(weight(value))?;
        Ok(value.clone())
    }

    /// Returns the outputs of an expression.
    pub(super) fn outputs(&mut self, expression: &Expression, input: &Json) -> Outputs {
        self.spend(1)?;
        match expression {
            Expression::Identity => Ok(vec![self.copy(input)?]),
            Expression::Descend => {
                let mut found = Vec::new();
                self.descend(input, &mut found)?;
                Ok(found)
            }
            Expression::Literal(value) => Ok(vec![self.copy(value)?]),
            Expression::Variable(name) => self.variable(name).map(|value| vec![value]),
            Expression::Text(parts) => self.text(parts, input),
            Expression::Array(None) => Ok(vec![Json::Array(Vec::new())]),
            Expression::Array(Some(items)) => Ok(vec![Json::Array(self.outputs(items, input)?)]),
            Expression::Object(entries) => self.object(entries, input),
            Expression::Negate(value) => self.each(value, input, |_, value| match value.as_f64() {
                Some(value) => Ok(vec![number(-value)]),
                None => Err(Stop::error(format!("cannot negate {}", kind(&value)))),
            }),
            Expression::At(value, key) => self.at(value, key, input),
            Expression::Slice(value, start, end) => self.slice(value, (start, end), input),
            Expression::Each(value) => self.each(value, input, |_, value| items(value)),
            Expression::Try(body, caught) => match (self.outputs(body, input), caught) {
                (Err(Stop::Error(_)), None) => Ok(Vec::new()),
                (Err(Stop::Error(error)), Some(caught)) => self.outputs(caught, &error),
                (outputs, _) => outputs,
            },
            Expression::Binary(operator, left, right) => self.binary(*operator, left, right, input),
            Expression::If(cases, otherwise) => self.condition(cases, otherwise.as_deref(), input),
            Expression::Bind(value, name, body) => self.bind(value, (name, body), input),
            Expression::Fold(fold) => self.fold(fold, input),
            Expression::Assign(how, of, by) => paths::assign(self, *how, (of, by), input),
            Expression::Call(name, args) => functions::call(self, name, args, input),
        }
    }

    fn variable(&mut self, name: &str) -> Result<Json, Stop> {
        let known = self.variables.iter().rev().find(|(it, _)| it == name);
        let value = known.map(|(_, value)| value.clone()).unwrap_or(Json::Null);
        self.spend(weight(&value))?;
        Ok(value)
    }

    /// Gives each output of an expression to a function, and returns the outputs of all.
    pub(super) fn each(
        &mut self,
        expression: &Expression,
        input: &Json,
        mut then: impl FnMut(&mut Run, Json) -> Outputs,
    ) -> Outputs {
        let mut all = Vec::new();
        for value in self.outputs(expression, input)? {
            let more = then(self, value)?;
            self.spend(more.len())?;
            all.extend(more);
        }
        Ok(all)
    }

    fn descend(&mut self, value: &Json, found: &mut Vec<Json>) -> Result<(), Stop> {
        found.push(self.copy(value)?);
        match value {
            Json::Array(items) => items.iter().try_for_each(|item| self.descend(item, found)),
            Json::Object(members) => members.values().try_for_each(|it| self.descend(it, found)),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Ok(()),
        }
    }

    fn text(&mut self, parts: &[Expression], input: &Json) -> Outputs {
        let mut texts = vec![String::new()];
        for part in parts {
            let values = self.outputs(part, input)?;
            let mut longer = Vec::new();
            for text in &texts {
                for value in &values {
                    let joined = format!("{text}{}", plain(value));
                    self.spend(joined.len() / 16 + 1)?;
                    longer.push(joined);
                }
            }
            texts = longer;
        }
        Ok(texts.into_iter().map(Json::String).collect())
    }

    fn object(&mut self, entries: &[(Expression, Expression)], input: &Json) -> Outputs {
        let mut made = vec![Map::new()];
        for (key, value) in entries {
            let keys = self.outputs(key, input)?;
            let values = self.outputs(value, input)?;
            let mut larger = Vec::new();
            for members in &made {
                for key in &keys {
                    let Json::String(key) = key else {
                        return Err(Stop::error(format!("{} cannot be a key", kind(key))));
                    };
                    for value in &values {
                        self.spend(members.len() + weight(value))?;
                        let mut members = members.clone();
                        members.insert(key.clone(), value.clone());
                        larger.push(members);
                    }
                }
            }
            made = larger;
        }
        Ok(made.into_iter().map(Json::Object).collect())
    }

    fn at(&mut self, value: &Expression, key: &Expression, input: &Json) -> Outputs {
        let keys = self.outputs(key, input)?;
        // The input itself is not copied.
        if let Expression::Identity = value {
            let mut found = Vec::new();
            for key in &keys {
                let part = part(input, key)?;
                found.push(self.copy(part)?);
            }
            return Ok(found);
        }
        self.each(value, input, |run, value| {
            let mut found = Vec::new();
            for key in &keys {
                let part = part(&value, key)?;
                found.push(run.copy(part)?);
            }
            Ok(found)
        })
    }

    fn slice(
        &mut self,
        value: &Expression,
        (start, end): (&Option<Box<Expression>>, &Option<Box<Expression>>),
        input: &Json,
    ) -> Outputs {
        let mut edge = |edge: &Option<Box<Expression>>| -> Result<Option<f64>, Stop> {
            let Some(edge) = edge else { return Ok(None) };
            let found = self.outputs(edge, input)?.into_iter().next();
            Ok(found.and_then(|value| value.as_f64()))
        };
        let (start, end) = (edge(start)?, edge(end)?);
        self.each(value, input, |_, value| match value {
            Json::Null => Ok(vec![Json::Null]),
            Json::Array(items) => {
                let range = range(items.len(), start, end);
                Ok(vec![Json::Array(items[range].to_vec())])
            }
            Json::String(text) => {
                let chars: Vec<char> = text.chars().collect();
                let range = range(chars.len(), start, end);
                Ok(vec![Json::String(chars[range].iter().collect())])
            }
            other => Err(Stop::error(format!("cannot slice {}", kind(&other)))),
        })
    }

    fn binary(
        &mut self,
        operator: Operator,
        left: &Expression,
        right: &Expression,
        input: &Json,
    ) -> Outputs {
        match operator {
            Operator::Pipe => self.each(left, input, |run, value| run.outputs(right, &value)),
            Operator::Comma => {
                let mut all = self.outputs(left, input)?;
                all.extend(self.outputs(right, input)?);
                Ok(all)
            }
            Operator::Otherwise => {
                let mut found = match self.outputs(left, input) {
                    Ok(found) => found,
                    Err(Stop::Error(_)) => Vec::new(),
                    Err(stop) => return Err(stop),
                };
                found.retain(is_true);
                match found.is_empty() {
                    true => self.outputs(right, input),
                    false => Ok(found),
                }
            }
            Operator::Or | Operator::And => self.each(left, input, |run, value| {
                if is_true(&value) == (operator == Operator::Or) {
                    return Ok(vec![Json::Bool(operator == Operator::Or)]);
                }
                run.each(right, input, |_, value| {
                    Ok(vec![Json::Bool(is_true(&value))])
                })
            }),
            _ => {
                let rights = self.outputs(right, input)?;
                self.each(left, input, |run, left| {
                    let mut made = Vec::new();
                    for right in &rights {
                        made.push(run.combine(operator, &left, right)?);
                    }
                    Ok(made)
                })
            }
        }
    }

    /// Calculates with two values, or compares them.
    pub(super) fn combine(
        &mut self,
        operator: Operator,
        left: &Json,
        right: &Json,
    ) -> Result<Json, Stop> {
        let order = compare(left, right);
        Ok(Json::Bool(match operator {
            Operator::Equal => order.is_eq(),
            Operator::Unequal => order.is_ne(),
            Operator::Less => order.is_lt(),
            Operator::LessEqual => order.is_le(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterEqual => order.is_ge(),
            _ => return self.arithmetic(operator, left, right),
        }))
    }

    /// Adds two values, as `+` and `add` do.
    pub(super) fn add(&mut self, left: &Json, right: &Json) -> Result<Json, Stop> {
        self.arithmetic(Operator::Add, left, right)
    }

    fn arithmetic(&mut self, operator: Operator, left: &Json, right: &Json) -> Result<Json, Stop> {
        if let (Some(left), Some(right)) = (left.as_f64(), right.as_f64()) {
            return of_numbers(operator, left, right);
        }
        self.spend(weight(left) + weight(right))?;
        match (operator, left, right) {
            (Operator::Add, Json::Null, other) | (Operator::Add, other, Json::Null) => {
                Ok(other.clone())
            }
            (Operator::Add, Json::String(left), Json::String(right)) => {
                Ok(Json::String(format!("{left}{right}")))
            }
            (Operator::Add, Json::Array(left), Json::Array(right)) => {
                Ok(Json::Array([left.as_slice(), right].concat()))
            }
            (Operator::Add, Json::Object(left), Json::Object(right)) => {
                let members = left.iter().chain(right);
                let members = members.map(|(key, value)| (key.clone(), value.clone()));
                Ok(Json::Object(members.collect()))
            }
            (Operator::Subtract, Json::Array(left), Json::Array(right)) => {
                self.spend(left.len().saturating_mul(right.len()))?;
                let kept = left.iter().filter(|item| !right.contains(item));
                Ok(Json::Array(kept.cloned().collect()))
            }
            (Operator::Multiply, Json::String(text), Json::Number(count))
            | (Operator::Multiply, Json::Number(count), Json::String(text)) => {
                self.repeat(text, count.as_f64().unwrap_or(0.0))
            }
            (Operator::Divide, Json::String(text), Json::String(separator)) => {
                Ok(functions::split(text, separator))
            }
            (_, left, right) => Err(Stop::error(format!(
                "cannot calculate with {} and {}",
                kind(left),
                kind(right)
            ))),
        }
    }

    fn repeat(&mut self, text: &str, count: f64) -> Result<Json, Stop> {
        if count <= 0.0 {
            return Ok(Json::Null);
        }
        let count = count.ceil() as usize;
        self.spend(text.len().saturating_mul(count) / 16)?;
        Ok(Json::String(text.repeat(count)))
    }

    fn condition(
        &mut self,
        cases: &[(Expression, Expression)],
        otherwise: Option<&Expression>,
        input: &Json,
    ) -> Outputs {
        let Some(((condition, then), rest)) = cases.split_first() else {
            return match otherwise {
                Some(otherwise) => self.outputs(otherwise, input),
                None => Ok(vec![self.copy(input)?]),
            };
        };
        self.each(condition, input, |run, value| match is_true(&value) {
            true => run.outputs(then, input),
            false => run.condition(rest, otherwise, input),
        })
    }

    fn bind(
        &mut self,
        value: &Expression,
        (name, body): (&str, &Expression),
        input: &Json,
    ) -> Outputs {
        self.each(value, input, |run, value| {
            run.variables.push((name.to_owned(), value));
            let outputs = run.outputs(body, input);
            run.variables.pop();
            outputs
        })
    }

    fn fold(&mut self, fold: &Fold, input: &Json) -> Outputs {
        let mut state = self
            .outputs(&fold.first, input)?
            .pop()
            .unwrap_or(Json::Null);
        let mut made = Vec::new();
        for item in self.outputs(&fold.items, input)? {
            self.variables.push((fold.name.clone(), item));
            let step = self.step(fold, &state);
            self.variables.pop();
            let (next, outputs) = step?;
            state = next;
            made.extend(outputs);
        }
        match fold.each {
            Some(_) => Ok(made),
            None => Ok(vec![state]),
        }
    }

    /// Returns the next state, and the outputs for it.
    fn step(&mut self, fold: &Fold, state: &Json) -> Result<(Json, Vec<Json>), Stop> {
        let next = self.outputs(&fold.next, state)?.pop().unwrap_or(Json::Null);
        let outputs = match &fold.each {
            Some(each) => self.outputs(each, &next)?,
            None => Vec::new(),
        };
        Ok((next, outputs))
    }
}

fn of_numbers(operator: Operator, left: f64, right: f64) -> Result<Json, Stop> {
    let divides = matches!(operator, Operator::Divide | Operator::Remainder);
    if divides && right == 0.0 {
        return Err(Stop::error("cannot divide by zero"));
    }
    Ok(number(match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        _ => left.trunc() % right.trunc(),
    }))
}

/// Tells whether a condition holds for a value: everything but null and false.
pub(super) fn is_true(value: &Json) -> bool {
    !matches!(value, Json::Null | Json::Bool(false))
}

/// Returns the type of a value, with an article.
pub(super) fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}

/// Returns a string as it is, and anything else as JSON.
pub(super) fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the items of an array, or the values of an object.
pub(super) fn items(value: Json) -> Outputs {
    match value {
        Json::Array(items) => Ok(items),
        Json::Object(members) => Ok(members.into_iter().map(|(_, value)| value).collect()),
        other => Err(Stop::error(format!("cannot iterate over {}", kind(&other)))),
    }
}

/// Returns the part of a value under a key.
pub(super) fn part<'a>(value: &'a Json, key: &Json) -> Result<&'a Json, Stop> {
    const NOTHING: &Json = &Json::Null;
    match (value, key) {
        (Json::Object(members), Json::String(name)) => Ok(members.get(name).unwrap_or(NOTHING)),
        (Json::Array(items), Json::Number(at)) => {
            let at = at.as_f64().unwrap_or(f64::NAN).floor();
            let idx = index(items.len(), at);
            Ok(idx.and_then(|idx| items.get(idx)).unwrap_or(NOTHING))
        }
        (Json::Null, Json::String(_) | Json::Number(_)) => Ok(NOTHING),
        (value, key) => Err(Stop::error(format!(
            "cannot index {} with {key}",
            kind(value)
        ))),
    }
}
fn index(length: usize, at: f64) -> Option<usize> {
    let at = if at < 0.0 { at + length as f64 } else { at };
    (at >= 0.0).then_some(at as usize)
}

fn range(length: usize, start: Option<f64>, end: Option<f64>) -> std::ops::Range<usize> {
    let edge = |at: Option<f64>, usual: usize| match at {
        None => usual,
        Some(at) => index(length, at).unwrap_or(0).min(length),
    };
    let start = edge(start.map(f64::floor), 0);
    start..edge(end.map(f64::ceil), length).max(start)
}
