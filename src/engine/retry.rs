//! When a failed step is tried again.

use std::time::Duration;

use flowstone_lang::value::Value;

use crate::duration;
use crate::flow::name_of;
use crate::step::{Effect, Retry, StepError};

/// `:retry` of a step, with our defaults.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Policy {
    pub max_attempts: u32,
    initial_ms: f64,
    coefficient: f64,
    max_interval_ms: f64,
    jitter: f64,
    /// Kinds of error; `None`: whatever says that it may help.
    retry_on: Option<Vec<String>>,
}

const KEYS: &[&str] = &[
    "backoff-ms",
    "coefficient",
    "initial-interval-ms",
    "jitter",
    "max-attempts",
    "max-interval-ms",
    "retry-on",
];

impl Policy {
    /// Reads the policy of a step. Without one, reads are tried three times, and what may have changed something
    /// outside only where an idempotency key makes that safe.
    pub(crate) fn of(config: &Value, effect: Effect) -> Result<Policy, StepError> {
        let has_key = config
            .get("idempotency-key")
            .is_some_and(|key| !key.is_nil());
        let mut policy = Policy {
            max_attempts: match effect {
                Effect::Read => 3,
                Effect::External if has_key => 3,
                Effect::External | Effect::OwnStore | Effect::Pure => 1,
            },
            initial_ms: 1000.0,
            coefficient: 2.0,
            max_interval_ms: 60_000.0,
            jitter: 0.2,
            retry_on: None,
        };
        let Some(given) = config.get("retry").filter(|given| !given.is_nil()) else {
            return Ok(policy);
        };
        check_keys(given)?;
        policy.max_attempts = 3;
        if let Some(value) = given.get("max-attempts") {
            let attempts = value.as_int().and_then(|number| u32::try_from(number).ok());
            policy.max_attempts = attempts
                .filter(|attempts| (1..=1000).contains(attempts))
                .ok_or_else(|| wrong("max-attempts", "a number from 1 to 1000"))?;
        }
        let initial = given
            .get("initial-interval-ms")
            .or_else(|| given.get("backoff-ms"));
        if let Some(value) = initial {
            policy.initial_ms = millis("initial-interval-ms", value)?;
        }
        if let Some(value) = given.get("max-interval-ms") {
            policy.max_interval_ms = millis("max-interval-ms", value)?;
        }
        if let Some(value) = given.get("coefficient") {
            policy.coefficient = number(value)
                .filter(|factor| (1.0..=100.0).contains(factor))
                .ok_or_else(|| wrong("coefficient", "a number from 1 to 100"))?;
        }
        if let Some(value) = given.get("jitter") {
            policy.jitter = number(value)
                .filter(|jitter| (0.0..=1.0).contains(jitter))
                .ok_or_else(|| wrong("jitter", "a number from 0 to 1"))?;
        }
        if let Some(value) = given.get("retry-on").filter(|value| !value.is_nil()) {
            policy.retry_on = Some(kinds(value)?);
        }
        Ok(policy)
    }

    /// Returns how long to wait after attempt number `attempt` failed; `None` where it is not tried again.
    /// `random` decides the jitter.
    pub(crate) fn delay(&self, attempt: u32, error: &StepError, random: u64) -> Option<Duration> {
        if attempt >= self.max_attempts {
            return None;
        }
        let may_help = match &self.retry_on {
            Some(kinds) => kinds.iter().any(|kind| kind == error.kind),
            None => error.retry != Retry::Never,
        };
        if !may_help {
            return None;
        }
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let plain = (self.initial_ms * self.coefficient.powi(exponent)).min(self.max_interval_ms);
        // Spread evenly over the interval from `1 - jitter` to `1 + jitter` of the plain delay.
        let spread = (random >> 11) as f64 / (1_u64 << 53) as f64 * 2.0 - 1.0;
        let delay = Duration::from_millis((plain * (1.0 + self.jitter * spread)).max(0.0) as u64);
        match error.retry {
            Retry::After(least) => Some(delay.max(least)),
            Retry::Never | Retry::Backoff => Some(delay),
        }
    }
}

fn check_keys(given: &Value) -> Result<(), StepError> {
    let Some(map) = given.as_map() else {
        return Err(wrong("", "a map"));
    };
    for (key, _) in map.iter() {
        let name = name_of(key).unwrap_or_default();
        if !KEYS.contains(&&*name) {
            let error = StepError::config("E0713", format!("`:retry` has no option `:{name}`"));
            return Err(
                match crate::diagnostic::nearest(&name, KEYS.iter().copied()) {
                    Some(near) => error.hint(format!("did you mean `:{near}`?")),
                    None => error,
                },
            );
        }
    }
    Ok(())
}

fn wrong(key: &str, expected: &str) -> StepError {
    let what = match key {
        "" => "`:retry`".to_owned(),
        key => format!("`:{key}` of `:retry`"),
    };
    StepError::config("E0713", format!("{what} must be {expected}"))
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(int) => Some(*int as f64),
        Value::Float(float) => Some(*float),
        _ => None,
    }
}

fn millis(key: &str, value: &Value) -> Result<f64, StepError> {
    duration::of_millis_value(value)
        .map(|duration| duration::millis(duration) as f64)
        .ok_or_else(|| wrong(key, "milliseconds"))
}

fn kinds(value: &Value) -> Result<Vec<String>, StepError> {
    let items: Vec<&Value> = match value {
        Value::Set(set) => set.iter().collect(),
        Value::Vector(vector) => vector.iter().collect(),
        Value::List(list) => list.iter().collect(),
        _ => return Err(wrong("retry-on", "a set of keywords")),
    };
    let names: Option<Vec<String>> = items
        .into_iter()
        .map(|item| name_of(item).map(|name| name.to_string()))
        .collect();
    names.ok_or_else(|| wrong("retry-on", "a set of keywords"))
}
