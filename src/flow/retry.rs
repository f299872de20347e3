//! The retry policy of a step: whether and when a failed step is tried again.

use std::time::Duration;

use flowstone_lang::value::Value;
use flowstone_model::names::name_of;

use crate::duration;
use crate::option_problem::{Wrong, keys};
use crate::step::{Effect, Retry, StepError};

/// `:retry` of a step, with the defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    pub max_attempts: u32,
    initial_ms: f64,
    coefficient: f64,
    max_interval_ms: f64,
    jitter: f64,
    /// Kinds of errors that are retried; `None`: every error that may be temporary.
    retry_on: Option<Vec<String>>,
}

const CODE: &str = "E0713";
/// Maximum delay that a server may request.
const PATIENCE: Duration = Duration::from_secs(3600);

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
    /// The policy if a flow sets none: reads are tried three times, and steps that may have changed something outside
    /// only if an idempotency key makes that safe.
    fn default_for(effect: Effect, has_key: bool) -> Policy {
        Policy {
            max_attempts: match effect {
                Effect::Read => 3,
                Effect::External if has_key => 3,
                Effect::External | Effect::OwnStore | Effect::Pure | Effect::Steps => 1,
            },
            initial_ms: 1000.0,
            coefficient: 2.0,
            max_interval_ms: 60_000.0,
            jitter: 0.2,
            retry_on: None,
        }
    }

    /// Reads the policy of a step.
    pub fn of(config: &Value, effect: Effect) -> Result<Policy, Wrong> {
        let key = config.get("idempotency-key");
        let mut policy = Policy::default_for(effect, key.is_some_and(|key| !key.is_nil()));
        if let Some(given) = config.get("retry").filter(|given| !given.is_nil()) {
            policy.max_attempts = 3;
            policy.read(given)?;
        }
        Ok(policy)
    }

    /// Rejects a policy with more attempts than a run may make.
    pub fn within(self, most: u32) -> Result<Policy, Wrong> {
        match self.max_attempts > most && self.max_attempts > 3 {
            true => Err(wrong(
                "max-attempts",
                &format!("a number from 1 to {most}, the limit of the run's `:limits :attempts`"),
            )),
            false => Ok(Policy {
                max_attempts: self.max_attempts.min(most),
                ..self
            }),
        }
    }

    /// Reads the keys that a flow sets.
    fn read(&mut self, given: &Value) -> Result<(), Wrong> {
        let map = keys(CODE, "retry", given, KEYS)?;
        let get = |name: &str| map.get(&Value::keyword(name)).filter(|it| !it.is_nil());
        if let Some(value) = get("max-attempts") {
            let attempts = value.as_int().and_then(|number| u32::try_from(number).ok());
            self.max_attempts = attempts
                .filter(|attempts| (1..=1000).contains(attempts))
                .ok_or_else(|| wrong("max-attempts", "a number from 1 to 1000"))?;
        }
        match (get("initial-interval-ms"), get("backoff-ms")) {
            (Some(_), Some(_)) => {
                let message = "`:backoff-ms` of `:retry` is another name of `:initial-interval-ms`";
                return Err(
                    Wrong::new(CODE, "retry", message.to_owned()).hint("remove one of them")
                );
            }
            (Some(value), None) => self.initial_ms = millis("initial-interval-ms", value)?,
            (None, Some(value)) => self.initial_ms = millis("backoff-ms", value)?,
            (None, None) => {}
        }
        if let Some(value) = get("max-interval-ms") {
            self.max_interval_ms = millis("max-interval-ms", value)?;
        }
        if let Some(value) = get("coefficient") {
            self.coefficient = number(value)
                .filter(|factor| (1.0..=100.0).contains(factor))
                .ok_or_else(|| wrong("coefficient", "a number from 1 to 100"))?;
        }
        if let Some(value) = get("jitter") {
            self.jitter = number(value)
                .filter(|jitter| (0.0..=1.0).contains(jitter))
                .ok_or_else(|| wrong("jitter", "a number from 0 to 1"))?;
        }
        if let Some(value) = get("retry-on") {
            self.retry_on = Some(kinds(value)?);
        }
        Ok(())
    }

    /// Returns how long to wait after attempt number `attempt` has failed; `None` if the step is not tried again.
    /// `random` decides the jitter.
    pub fn delay(&self, attempt: u32, error: &StepError, random: u64) -> Option<Duration> {
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
            // The delay that the server requests replaces a shorter one, up to the maximum.
            Retry::After(least) => Some(delay.max(least.min(PATIENCE))),
            Retry::Never | Retry::Backoff => Some(delay),
        }
    }
}

/// Checks the parts of `:retry` that are known.
pub fn check_shape(given: &Value) -> Result<(), Wrong> {
    if given.is_nil() {
        return Ok(());
    }
    Policy::default_for(Effect::Read, false).read(given)
}

fn wrong(key: &str, expected: &str) -> Wrong {
    Wrong::value(CODE, "retry", key, expected)
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(int) => Some(*int as f64),
        Value::Float(float) => Some(*float),
        _ => None,
    }
}

fn millis(key: &str, value: &Value) -> Result<f64, Wrong> {
    duration::of_millis_value(value)
        .map(|duration| duration::millis(duration) as f64)
        .ok_or_else(|| wrong(key, "milliseconds"))
}

fn kinds(value: &Value) -> Result<Vec<String>, Wrong> {
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
