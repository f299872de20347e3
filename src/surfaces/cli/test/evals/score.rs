//! Scorers: each gives a result a number from 0 (bad) to 1 (good).

use flowstone_engine::schema::{self, Schema};
use flowstone_flow::flow::name_of;
use flowstone_lang::session::Session;
use flowstone_lang::value::{Signal, Value};
use flowstone_lang::vm::Vm;

use super::super::super::eval::describe;
use super::super::super::interrupt::Interrupt;
use super::super::super::program::{Grants, ProgramHost};
use super::super::super::report::Report;
use super::super::super::{App, stack};
use super::super::Test;
use super::judge::{self, Judge};
use super::set::{Set, known, malformed};

/// The keys that all scorers have.
const COMMON: &[&str] = &["name", "pass", "type"];

/// What a scorer gave a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// From 0 to 1.
    pub score: f64,
    /// Why, if the scorer says it.
    pub reason: Option<String>,
}

/// A scorer of a set.
pub struct Scorer {
    pub name: String,
    /// The least mean with which the set passes.
    pub pass: Option<f64>,
    how: How,
}

enum How {
    /// The result, or its part at a path, is what the case expects.
    Exact { at: Vec<Value> },
    /// The result, or its part at a path, fits a schema.
    Schema { schema: Box<Schema>, at: Vec<Value> },
    /// A function of `{:input :expect :result}` returns a number from 0 to 1, or a boolean.
    Function(Value),
    /// A model says how good the result is.
    Judge(Judge),
}

/// The scorers of a set, ready in one thread.
pub struct Scorers<'a> {
    pub scorers: Vec<Scorer>,
    session: Session,
    app: &'a dyn App,
}

/// Reads the scorers of a set without their code.
///
/// # Errors
/// When one is malformed.
pub fn read(set: &Set) -> Result<Vec<Scorer>, Report> {
    set.scorers.iter().map(Scorer::of).collect()
}

impl Scorer {
    fn of(value: &Value) -> Result<Scorer, Report> {
        let kind = value.get("type").and_then(name_of).unwrap_or_default();
        let own: &[&str] = match &*kind {
            "exact" => &["at"],
            "schema" => &["at", "schema"],
            "function" => &["function"],
            "judge" => judge::KEYS,
            _ => {
                let message = "`:type` of a scorer is :exact, :schema, :function or :judge";
                return Err(malformed(message));
            }
        };
        let keys: Vec<&str> = COMMON.iter().chain(own).copied().collect();
        known(&format!("a scorer of type :{kind}"), value, &keys)?;
        let at = match value.get("at") {
            None => Vec::new(),
            Some(Value::Vector(path)) => path.iter().cloned().collect(),
            Some(_) => return Err(malformed("`:at` is a path, such as [:content :team]")),
        };
        let how = match &*kind {
            "exact" => How::Exact { at },
            "schema" => {
                let form = value.get("schema").cloned().unwrap_or(Value::Nil);
                let schema = schema::parse(&form)
                    .map_err(|error| malformed(format!("`:schema` of a scorer: {error}")))?;
                How::Schema {
                    schema: Box::new(schema),
                    at,
                }
            }
            "function" => {
                let function = value.get("function").cloned().unwrap_or(Value::Nil);
                if !matches!(function, Value::List(_)) {
                    let message =
                        "`:function` is a function of a map with :input, :expect and :result";
                    return Err(malformed(message)
                        .hint("as in (fn [{:keys [expect result]}] (= expect result))"));
                }
                How::Function(function)
            }
            _ => How::Judge(Judge::of(value)?),
        };
        let name = value.get("name").and_then(name_of).unwrap_or(kind);
        Ok(Scorer {
            name: name.to_string(),
            pass: threshold(value.get("pass"))?,
            how,
        })
    }
}

fn threshold(value: Option<&Value>) -> Result<Option<f64>, Report> {
    match value.map(number) {
        None => Ok(None),
        Some(Some(least)) if (0.0..=1.0).contains(&least) => Ok(Some(least)),
        Some(_) => Err(malformed("`:pass` is the least mean score, from 0 to 1")),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(true) => Some(1.0),
        Value::Bool(false) => Some(0.0),
        Value::Float(number) => Some(*number),
        value => value.to_string().parse().ok(),
    }
}

impl<'a> Scorers<'a> {
    /// Prepares the scorers of a set.
    ///
    /// # Errors
    /// When one is malformed.
    pub fn new(set: &Set, app: &'a dyn App) -> Result<Scorers<'a>, Report> {
        Ok(Scorers {
            scorers: read(set)?,
            session: app.plain_session(),
            app,
        })
    }

    /// Scores the result of a case; a run without one scores 0.
    ///
    /// # Errors
    /// When a scorer fails.
    pub fn score(
        &self,
        args: &Test,
        set: &Set,
        case: usize,
        result: Option<&Value>,
    ) -> Result<Vec<Scored>, Report> {
        let expect = set.written(case, "expect");
        let scores = self.scorers.iter().map(|scorer| {
            let Some(result) = result else {
                return Ok(Scored {
                    score: 0.0,
                    reason: None,
                });
            };
            let score = match &scorer.how {
                How::Exact { at } => f64::from(within(result, at) == within(&expect, at)),
                How::Schema { schema, at } => {
                    let part = within(result, at);
                    let problems = schema::validate(schema, &part);
                    let reason = schema::explain(&problems);
                    return Ok(Scored {
                        score: f64::from(problems.is_empty()),
                        reason: Some(reason).filter(|reason| !reason.is_empty()),
                    });
                }
                How::Function(function) => {
                    let data = Value::map([
                        (Value::keyword("input"), set.written(case, "input")),
                        (Value::keyword("expect"), expect.clone()),
                        (Value::keyword("result"), result.clone()),
                    ]);
                    self.call(&scorer.name, function, data)?
                }
                How::Judge(judge) => {
                    let data = (&set.written(case, "input"), &expect, result);
                    return judge.score((args, self.app), set, data);
                }
            };
            Ok(Scored {
                score,
                reason: None,
            })
        });
        scores.collect()
    }

    fn call(&self, name: &str, function: &Value, data: Value) -> Result<f64, Report> {
        let host = ProgramHost::new(Grants::default(), Interrupt::listen());
        let mut vm = self.session.vm(Box::new(host));
        vm.set_native_stack_limit(stack::limit());
        let called = self.apply(&mut vm, function, data);
        let value = called.map_err(|signal| {
            let mut report = describe(&self.session, &signal).0;
            report.message = format!("the scorer `{name}`: {}", report.message);
            report
        })?;
        match number(&value) {
            Some(score) if (0.0..=1.0).contains(&score) => Ok(score),
            _ => {
                let message = format!("the scorer `{name}` returned {value}");
                Err(malformed(message).hint("a scorer returns a number from 0 to 1, or a boolean"))
            }
        }
    }

    fn apply(&self, vm: &mut Vm, function: &Value, data: Value) -> Result<Value, Signal> {
        let function = self.session.eval(vm, function)?;
        vm.call(&function, &[data])
    }
}

/// Returns the part of a value at a path.
fn within(value: &Value, path: &[Value]) -> Value {
    let mut part = value.clone();
    for key in path {
        let next = match (&part, key) {
            (Value::Vector(items), Value::Int(idx)) => usize::try_from(*idx)
                .ok()
                .and_then(|idx| items.iter().nth(idx).cloned()),
            _ => part.as_map().and_then(|map| map.get(key).cloned()),
        };
        part = next.unwrap_or(Value::Nil);
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_into_maps_and_vectors() {
        let inner = Value::map([(Value::keyword("b"), Value::Int(7))]);
        let value = Value::map([(Value::keyword("a"), Value::vector([Value::Nil, inner]))]);
        let path = [Value::keyword("a"), Value::Int(1), Value::keyword("b")];
        assert_eq!(within(&value, &path), Value::Int(7));
        assert_eq!(
            within(&value, &[Value::keyword("x"), Value::Int(1)]),
            Value::Nil
        );
    }
}
