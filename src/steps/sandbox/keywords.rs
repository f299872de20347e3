//! Options that are given as keywords and values, or as one map at the end.

use flowstone_lang::value::{Class, Exception, Result, Value};
use flowstone_lang::vm::Args;

use crate::json::name_text;
use crate::text::{brief, nearest};

/// The options of a call.
pub(super) struct Keywords(Vec<(String, Value)>);

impl Keywords {
    /// Reads the options from argument `from` on.
    ///
    /// # Errors
    /// A name that is not among the known ones, or a keyword without a value.
    pub(super) fn new(args: &Args<'_>, from: usize, known: &[&str]) -> Result<Keywords> {
        let mut rest = args.from(from);
        let mut found = Vec::new();
        while let [first, others @ ..] = rest {
            match (first, others) {
                (Value::Nil, []) => rest = others,
                (Value::Map(map), []) => {
                    for (key, value) in map.iter() {
                        found.push((named(key, known)?, value.clone()));
                    }
                    rest = others;
                }
                (key, [value, others @ ..]) => {
                    found.push((named(key, known)?, value.clone()));
                    rest = others;
                }
                (key, []) => {
                    let message = format!("the option {} has no value", brief(key));
                    return Err(Exception::new(Class::ILLEGAL_ARGUMENT, "E0741", message).into());
                }
            }
        }
        Ok(Keywords(found))
    }

    /// Returns what an option was given as. The last one counts; nil is like none.
    pub(super) fn get(&self, name: &str) -> Option<Value> {
        let found = self.0.iter().rev().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.clone())
            .filter(|value| !value.is_nil())
    }

    /// Tells whether an option is on.
    pub(super) fn flag(&self, name: &str, default: bool) -> bool {
        let found = self.0.iter().rev().find(|(known, _)| known == name);
        found.map_or(default, |(_, value)| value.is_truthy())
    }
}

fn named(key: &Value, known: &[&str]) -> Result<String> {
    let name = name_text(key).unwrap_or_else(|| brief(key));
    if known.contains(&name.as_str()) {
        return Ok(name);
    }
    let message = format!(
        "there is no option {}; there are :{}",
        brief(key),
        known.join(" :")
    );
    let exception = Exception::new(Class::ILLEGAL_ARGUMENT, "E0741", message);
    Err(match nearest(&name, known.iter().copied()) {
        Some(near) => exception.hint(format!("did you mean `:{near}`?")).into(),
        None => exception.into(),
    })
}
