//! Several connections of one call: the next one is asked when one cannot answer.
//!
//! Every connection is checked before the first is asked, so a wrong one is found before it is needed. An attempt at the
//! step asks each connection at most once; further attempts follow from the step's `:retry`, which the engine applies.

use std::time::Duration;

use flowstone_flow::flow::name_of;
use flowstone_flow::retry::Policy;
use flowstone_flow::step::{Effect, Progress, Retry, StepContext, StepError};
use flowstone_lang::value::Value;

use super::provider;
use crate::fields::{Fields, listed};
use crate::json::items;
use crate::rendered::merged;

/// The code of a list of connections that cannot be used.
const CODE: &str = "E1310";

/// Maximum number of connections of one call.
const MOST: usize = 8;

/// Maximum wait that a provider may request before another connection is asked instead.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fields that belong to one server, and would be sent to the others as well.
const OF_ONE: &[&str] = &[
    "api-version",
    "auth",
    "base-url",
    "deployment",
    "previous-response-id",
];

/// Returns the names of the connections, if a config has a list of them.
///
/// # Errors
/// E1310 if the list is empty, too long, names a connection twice, or the config has a field that belongs to one server.
pub(super) fn names(config: &Value) -> Result<Option<Vec<String>>, StepError> {
    let Some(list) = config.get("connection").and_then(items) else {
        return Ok(None);
    };
    let names: Option<Vec<String>> = list
        .iter()
        .map(|it| name_of(it).map(|name| name.to_string()))
        .collect();
    let names = names.ok_or_else(|| {
        unfit("`:connection` takes a name, or a vector of names").hint("as in `[:main :spare]`")
    })?;
    if names.is_empty() || names.len() > MOST {
        let message = format!(
            "`:connection` takes 1 to {MOST} connections, not {}",
            names.len()
        );
        return Err(unfit(message));
    }
    if let Some((_, twice)) = (names.iter().enumerate()).find(|(at, it)| names[..*at].contains(it))
    {
        return Err(unfit(format!("`:connection` names `:{twice}` twice")));
    }
    let fields = Fields::new(config);
    let fixed: Vec<&str> = (OF_ONE.iter().copied())
        .filter(|key| names.len() > 1 && fields.has(key))
        .collect();
    match fixed.is_empty() {
        true => Ok(Some(names)),
        false => Err(unfit(format!(
            "{} belongs to one server, but `:connection` names {}",
            listed(&fixed),
            names.len()
        ))
        .hint("set it in each connection of flowstone.edn")),
    }
}

fn unfit(message: impl Into<String>) -> StepError {
    StepError::config(CODE, message)
}

/// Returns the config for each connection: with one name, and only its provider's entry of `:provider-opts`.
pub(super) fn configs(
    cx: &StepContext,
    config: &Value,
    names: &[String],
) -> Result<Vec<Value>, StepError> {
    let mut configs = Vec::new();
    let mut providers = Vec::new();
    for name in names {
        let one = merged(
            config,
            &Value::map([(Value::keyword("connection"), Value::keyword(name))]),
        );
        let endpoint = provider::choose(cx, Fields::new(&one))?;
        super::refuse_unsupported(Fields::new(&one), &endpoint)?;
        configs.push(with_options_of(one, &endpoint.provider));
        providers.push(endpoint.provider);
    }
    let options = config.get("provider-opts").and_then(Value::as_map);
    for name in options
        .into_iter()
        .flat_map(|it| it.iter())
        .filter_map(|(key, _)| name_of(key))
    {
        if !providers.iter().any(|it| **it == *name) {
            return Err(unfit(format!(
                "`:provider-opts` is for `:{name}`, and no connection of the step is for that provider"
            )));
        }
    }
    Ok(configs)
}

fn with_options_of(config: Value, provider: &str) -> Value {
    let Some(options) = config.get("provider-opts").and_then(Value::as_map) else {
        return config;
    };
    let own = options
        .iter()
        .filter(|(key, _)| name_of(key).is_some_and(|it| *it == *provider));
    let own = Value::map(own.map(|(key, value)| (key.clone(), value.clone())));
    merged(
        &config,
        &Value::map([(Value::keyword("provider-opts"), own)]),
    )
}

/// What remains to be done after connections have failed.
#[derive(Default)]
pub(super) struct Failures {
    failed: Vec<Value>,
    /// The retry of the step if no connection answers.
    retry: Option<Retry>,
}

impl Failures {
    /// Notes the error of a connection. Returns the error if no other connection should be asked in this attempt.
    ///
    /// # Errors
    /// The error, with the failures before it.
    pub(super) fn note(
        &mut self,
        cx: &StepContext,
        config: &Value,
        (name, next): (&str, Option<&str>),
        error: StepError,
    ) -> Result<(), StepError> {
        let moves = moves_on(&error) && !waits_first(cx, config, &error);
        let Some(next) = next.filter(|_| moves) else {
            let error = match (moves_on(&error), self.retry) {
                (true, Some(earlier)) => {
                    let retry = sooner(earlier, error.retry);
                    error.retry(retry)
                }
                _ => error,
            };
            let failed = std::mem::take(&mut self.failed);
            return Err(match failed.is_empty() {
                true => error,
                false => error.with("failed-connections", Value::vector(failed)),
            }
            .with("connection", Value::keyword(name)));
        };
        self.retry = Some(self.retry.map_or(error.retry, |it| sooner(it, error.retry)));
        cx.emit(Progress::Again(format!(
            "`:{name}` cannot answer ({}): asking `:{next}`",
            error.message
        )));
        let text = |text: &str| Value::from(text);
        self.failed.push(Value::map([
            (Value::keyword("connection"), Value::keyword(name)),
            (Value::keyword("code"), text(error.code)),
            (Value::keyword("kind"), Value::keyword(error.kind)),
            (Value::keyword("message"), text(&error.message)),
        ]));
        Ok(())
    }

    /// Adds to an answer which connection gave it, and which ones failed before.
    pub(super) fn answered(self, name: &str, answer: &Value) -> Value {
        let facts = answer.as_map().into_iter().flat_map(|map| map.iter());
        let mut facts: Vec<(Value, Value)> = facts
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        facts.push((Value::keyword("connection"), Value::keyword(name)));
        if !self.failed.is_empty() {
            facts.push((
                Value::keyword("failed-connections"),
                Value::vector(self.failed),
            ));
        }
        Value::map(facts)
    }
}

/// Tells whether another server may answer: for temporary errors, and where the account has no credit. A request that
/// is wrong, a refused key and a refused answer end the step.
fn moves_on(error: &StepError) -> bool {
    error.retry != Retry::Never || error.kind == "no-credit"
}

/// Tells whether a limit on the rate is short enough to wait for: the step's next attempt asks the same connection.
fn waits_first(cx: &StepContext, config: &Value, error: &StepError) -> bool {
    let is_short = match error.retry {
        Retry::After(wait) => wait <= PATIENCE,
        Retry::Backoff => true,
        Retry::Never => false,
    };
    let policy = Policy::of(config, Effect::Read);
    let is_last = policy.is_ok_and(|it| it.delay(cx.attempt(), error, 0).is_none());
    error.kind == "rate-limited" && is_short && !is_last
}

fn sooner(one: Retry, other: Retry) -> Retry {
    match (one, other) {
        (Retry::Never, it) | (it, Retry::Never) => it,
        (Retry::Backoff, _) | (_, Retry::Backoff) => Retry::Backoff,
        (Retry::After(one), Retry::After(other)) => Retry::After(one.min(other)),
    }
}
