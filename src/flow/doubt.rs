//! `:on-doubt`: how to resolve a step that is in doubt because the process ended while it was being performed.

use flowstone_lang::value::Value;
use flowstone_model::names::name_of;

use crate::option_problem::{Wrong, keys};
use crate::step::Effect;

const CODE: &str = "E0454";
const KEYS: &[&str] = &["done", "else", "probe"];

/// The way in which a step in doubt is resolved.
#[derive(Debug, Clone)]
pub enum OnDoubt {
    Resolve(Resolution),
    Probe(Box<Probe>),
}

/// A resolution that needs no probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// A person decides.
    Ask,
    Fail,
    /// The step is performed again, because doing it twice is harmless.
    Retry,
}

/// A check whether the effect has happened.
#[derive(Debug, Clone)]
pub struct Probe {
    /// The config of a step that reads, with its `:type`; or code that returns such a config or the answer itself.
    pub check: Value,
    /// Code that reads the answer out of the step's value.
    pub done: Option<Value>,
    /// The resolution if the probe fails.
    pub otherwise: Resolution,
}

impl OnDoubt {
    /// Returns the resolution for flows without `:on-doubt`.
    pub fn default_for(effect: Effect, has_key: bool) -> OnDoubt {
        OnDoubt::Resolve(match effect {
            Effect::External if !has_key => Resolution::Ask,
            Effect::External | Effect::OwnStore | Effect::Pure | Effect::Read | Effect::Steps => {
                Resolution::Retry
            }
        })
    }

    /// Reads the option. Returns `None` if it is absent.
    pub fn of(given: &Value) -> Result<Option<OnDoubt>, Wrong> {
        if given.is_nil() {
            return Ok(None);
        }
        if let Some(settle) = settle(given) {
            return Ok(Some(OnDoubt::Resolve(settle)));
        }
        if given.as_map().is_none() {
            let message = "`:on-doubt` must be `:ask`, `:fail`, `:retry` or a map with `:probe`";
            return Err(Wrong::new(CODE, "on-doubt", message.to_owned()));
        }
        let map = keys(CODE, "on-doubt", given, KEYS)?;
        let get = |name: &str| map.get(&Value::keyword(name)).filter(|it| !it.is_nil());
        if map.get(&Value::keyword("probe")).is_none() {
            let message = "a map under `:on-doubt` needs a `:probe`".to_owned();
            return Err(Wrong::new(CODE, "on-doubt", message)
                .hint("give a step that checks: `{:probe {:type :http :url ...}}`"));
        }
        let check = get("probe").cloned().unwrap_or(Value::Nil);
        if check.as_map().is_some() && check.get("type").and_then(name_of).is_none() {
            let expected = "the config of a step, with its `:type`";
            return Err(Wrong::value(CODE, "on-doubt", "probe", expected));
        }
        let otherwise = match get("else") {
            None => Resolution::Ask,
            Some(given) => settle(given).ok_or_else(|| {
                Wrong::value(CODE, "on-doubt", "else", "`:ask`, `:fail` or `:retry`")
            })?,
        };
        Ok(Some(OnDoubt::Probe(Box::new(Probe {
            check,
            done: get("done").cloned(),
            otherwise,
        }))))
    }
}

fn settle(given: &Value) -> Option<Resolution> {
    match given {
        Value::Keyword(_) | Value::Text(_) => {}
        _ => return None,
    }
    match name_of(given).as_deref() {
        Some("ask") => Some(Resolution::Ask),
        Some("fail") => Some(Resolution::Fail),
        Some("retry") => Some(Resolution::Retry),
        _ => None,
    }
}
