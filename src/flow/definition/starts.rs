//! `:concurrency` and `:limits` of a definition: the conditions for the start of a run.
//!
//! Both are static data. Keys are paths into the input of a run after it was converted by its contract. The values are
//! read when a run starts.

use std::rc::Rc;

use flowstone_lang::session::Session;
use flowstone_lang::value::{Span, Value};

use super::reading::{Reading, keywords};
use super::{Flow, Invocation, name_of};
use crate::diagnostic::Diagnostic;
use crate::duration;
use crate::forms::entry_spans;
use crate::limits::{LIMITS, Limit, Limits};
use crate::ports::{OnConflict, OnNewVersion, RateRule};

/// The conditions that a flow sets for the start of its runs.
#[derive(Debug, Clone, Default)]
pub struct Starts {
    pub concurrency: Option<Concurrency>,
    pub limits: Option<StartLimits>,
    /// The priority of runs that are started without one.
    pub priority: i64,
    /// Limits for a single run, if they are lower than the project's.
    pub run: Vec<(&'static Limit, u64)>,
}

/// `:concurrency`.
#[derive(Debug, Clone)]
pub struct Concurrency {
    /// The path of the key in the input. `None`: the whole flow runs one run at a time.
    pub key: Option<Vec<Value>>,
    pub on_new_version: OnNewVersion,
    pub on_conflict: OnConflict,
}

/// `:limits`.
#[derive(Debug, Clone)]
pub struct StartLimits {
    pub key: Option<Vec<Value>>,
    /// A name that several flows may share. `None`: the limit applies to this flow only.
    pub scope: Option<Rc<str>>,
    pub concurrency: Option<u32>,
    pub rate: Option<RateRule>,
}

const CONCURRENCY_KEYS: &[&str] = &["key-field", "on-conflict", "on-new-version", "type"];
const LIMITS_KEYS: &[&str] = &["concurrency", "key", "priority", "rate", "scope"];
const RATE_KEYS: &[&str] = &["max", "per"];

/// Reads both keys.
pub(super) fn read(reading: &mut Reading<'_>, map: &Value, contracts: &[Invocation]) -> Starts {
    let mut starts = Starts {
        concurrency: concurrency(reading, map),
        ..Starts::default()
    };
    limits(reading, map, &mut starts);
    let keyed = starts.concurrency.as_ref().and_then(|it| it.key.as_ref());
    if let Some(path) = keyed {
        let at = part(reading, map, "concurrency", "key-field");
        is_an_input(reading, path, at, contracts);
        schedules_have(reading, map, path);
    }
    if let Some(path) = starts.limits.as_ref().and_then(|it| it.key.as_ref()) {
        let at = part(reading, map, "limits", "key");
        is_an_input(reading, path, at, contracts);
    }
    contradiction(reading, map, &starts);
    starts
}

/// Returns the place of an entry of one of the two maps.
fn part(reading: &Reading<'_>, map: &Value, key: &str, entry: &str) -> Span {
    let inner = map.get(key).cloned().unwrap_or(Value::Nil);
    reading.value_at(&inner, entry)
}

fn concurrency(reading: &mut Reading<'_>, map: &Value) -> Option<Concurrency> {
    let value = map.get("concurrency")?;
    let at = reading.value_at(map, "concurrency");
    if !matches!(value, Value::Map(_)) {
        let message = format!("`:concurrency` must be a map, not {}", value.kind());
        reading.push(
            Diagnostic::error("E0404", message)
                .at(at)
                .hint("for example `{:type :singleton :on-new-version :supersede}`"),
        );
        return None;
    }
    known_keys(reading, value, "E0456", CONCURRENCY_KEYS);
    let is_keyed = choice(
        reading,
        value,
        "type",
        &[(false, "singleton"), (true, "keyed")],
    );
    let on_new_version = choice(reading, value, "on-new-version", OnNewVersion::NAMES);
    let on_conflict = choice(reading, value, "on-conflict", OnConflict::NAMES);
    let key = match (is_keyed.unwrap_or(false), value.get("key-field")) {
        (true, None | Some(Value::Nil)) => {
            reading.error(
                "E0404",
                "`:concurrency {:type :keyed}` needs a `:key-field`",
                at,
            );
            return None;
        }
        (true, Some(field)) => Some(path(
            reading,
            field,
            part(reading, map, "concurrency", "key-field"),
        )?),
        (false, Some(field)) if !field.is_nil() => {
            let at = part(reading, map, "concurrency", "key-field");
            reading.push(
                Diagnostic::error("E0456", "a `:key-field` is for `:type :keyed`")
                    .at(at)
                    .hint("`:singleton` is one run at a time for the whole flow"),
            );
            return None;
        }
        (false, _) => None,
    };
    Some(Concurrency {
        key,
        on_new_version: on_new_version.unwrap_or_default(),
        on_conflict: on_conflict.unwrap_or_default(),
    })
}

fn limits(reading: &mut Reading<'_>, map: &Value, starts: &mut Starts) {
    let Some(value) = map.get("limits").filter(|value| !value.is_nil()) else {
        return;
    };
    let at = reading.value_at(map, "limits");
    if !matches!(value, Value::Map(_)) {
        let message = format!("`:limits` must be a map, not {}", value.kind());
        reading.push(
            Diagnostic::error("E0457", message)
                .at(at)
                .hint("for example `{:concurrency 4 :rate {:max 60 :per \"1m\"} :key :customer}`"),
        );
        return;
    }
    starts.run = of_runs(reading, value);
    let concurrency = value.get("concurrency").and_then(|n| {
        let at = reading.value_at(value, "concurrency");
        count(reading, n, "`:concurrency` of `:limits`", at)
    });
    let rate = value.get("rate").and_then(|rate| {
        let at = reading.value_at(value, "rate");
        self::rate(reading, rate, at)
    });
    let key = value
        .get("key")
        .filter(|key| !key.is_nil())
        .and_then(|key| {
            let at = reading.value_at(value, "key");
            path(reading, key, at)
        });
    match value.get("priority") {
        None => {}
        Some(Value::Int(priority)) => starts.priority = *priority,
        Some(_) => {
            let at = reading.value_at(value, "priority");
            reading.error("E0457", "`:priority` must be a whole number", at);
        }
    }
    let scope = value.get("scope").filter(|scope| !scope.is_nil());
    let name = scope.and_then(|scope| match scope {
        Value::Keyword(_) | Value::Text(_) => name_of(scope),
        _ => None,
    });
    if scope.is_some() && name.is_none() {
        let at = reading.value_at(value, "scope");
        reading.push(
            Diagnostic::error("E0457", "`:scope` must be a keyword or a string")
                .at(at)
                .hint("flows that name the same scope share the limit"),
        );
    }
    // Some key is unknown and was reported. It may be a misspelt limit.
    let belongs_to_another =
        |key: &Value| name_of(key).is_some_and(|it| matches!(&*it, "key" | "scope"));
    let keys = value.as_map().into_iter().flat_map(|map| map.iter());
    if keys.map(|(key, _)| key).all(belongs_to_another) {
        reading.push(
            Diagnostic::error("E0457", "`:limits` limits nothing")
                .at(at)
                .hint("limit the number of runs, `:concurrency 4`, or their rate, `:rate {:max 60 :per \"1m\"}`"),
        );
    }
    if concurrency.is_some() || rate.is_some() {
        starts.limits = Some(StartLimits {
            key,
            scope: name,
            concurrency,
            rate,
        });
    }
}

/// Reads the limits for a single run.
fn of_runs(reading: &mut Reading<'_>, value: &Value) -> Vec<(&'static Limit, u64)> {
    let limits = LIMITS.iter().filter(|limit| limit.is_lowerable_by_flows);
    let mut known = LIMITS_KEYS.to_vec();
    known.extend(limits.clone().map(|limit| limit.key));
    known_keys(reading, value, "E0457", &known);
    let mut read = Vec::new();
    for limit in limits {
        match value.get(limit.key).map(|given| limit.read(given)) {
            None => {}
            Some(Ok(value)) => read.push((limit, value)),
            Some(Err(wrong)) => {
                let at = reading.value_at(value, limit.key);
                reading.error("E0457", wrong, at);
            }
        }
    }
    read
}

/// Finds limits of a flow that are higher than those of the project and so have no effect.
pub fn wider_limits(flow: &Flow, limits: &Limits, session: &Session) -> Vec<Diagnostic> {
    let given = flow.definition.get("limits").cloned();
    let given = given.unwrap_or(Value::Nil);
    let sources = session.world().sources.borrow();
    let wider = flow.starts.run.iter();
    let wider = wider.filter(|(limit, value)| *value > limits.value(limit));
    wider
        .map(|(limit, value)| {
            let key = limit.key;
            let message = format!(
                "`:limits {{:{key} {}}}` has no effect: the limit of the project is {}",
                limit.shown(*value),
                limit.shown(limits.value(limit))
            );
            Diagnostic::warning("E0457", message)
                .at(entry_spans(&sources, &given, &format!(":{key}")).value)
                .hint(
                    "a flow can only lower the limits of the project; flowstone.edn can raise them",
                )
        })
        .collect()
}

fn rate(reading: &mut Reading<'_>, value: &Value, at: Span) -> Option<RateRule> {
    if !matches!(value, Value::Map(_)) {
        let message = format!("`:rate` must be a map, not {}", value.kind());
        reading.push(
            Diagnostic::error("E0457", message)
                .at(at)
                .hint("for example `{:max 60 :per \"1m\"}`"),
        );
        return None;
    }
    known_keys(reading, value, "E0457", RATE_KEYS);
    let per = value.get("per").and_then(duration::of_value);
    let per_ms = per.map(duration::millis).filter(|per| *per > 0);
    if per_ms.is_none() {
        let at = match value.get("per") {
            Some(_) => reading.value_at(value, "per"),
            None => at,
        };
        reading.push(
            Diagnostic::error("E0457", "`:rate` needs a `:per`, a duration")
                .at(at)
                .hint("such as `\"1m\"`, `\"30s\"`, `\"1h\"`, or seconds"),
        );
    }
    let max = match value.get("max") {
        Some(max) => {
            let at = reading.value_at(value, "max");
            count(reading, max, "`:max` of `:rate`", at)
        }
        None => {
            reading.error("E0457", "`:rate` needs a `:max`", at);
            None
        }
    };
    Some(RateRule {
        max: max?,
        per_ms: per_ms?,
    })
}

/// Reads a whole number from 1.
fn count(reading: &mut Reading<'_>, value: &Value, what: &str, at: Span) -> Option<u32> {
    let number = value.as_int().and_then(|number| u32::try_from(number).ok());
    let found = number.filter(|number| *number > 0);
    if found.is_none() {
        let message = format!("{what} must be a whole number from 1");
        reading.error("E0457", message, at);
    }
    found
}

/// Reads a path into the input: a keyword or string, or a vector of keywords, strings and indices.
fn path(reading: &mut Reading<'_>, value: &Value, at: Span) -> Option<Vec<Value>> {
    let key = |part: &Value| match part {
        Value::Keyword(_) => Some(part.clone()),
        Value::Text(text) => Some(Value::keyword(text)),
        _ => None,
    };
    let path = match value {
        Value::Vector(parts) => {
            let parts = parts.iter().enumerate().map(|(idx, part)| match part {
                Value::Int(index) if idx > 0 && *index >= 0 => Some(part.clone()),
                other => key(other),
            });
            parts.collect::<Option<Vec<Value>>>()
        }
        other => key(other).map(|part| vec![part]),
    };
    let found = path.filter(|path| !path.is_empty());
    if found.is_none() {
        reading.push(
            Diagnostic::error("E0456", "this cannot be a key of runs")
                .at(at)
                .hint("name an input, `:user-id`, or a path into one, `[:event :id]`"),
        );
    }
    found
}

fn known_keys(reading: &mut Reading<'_>, map: &Value, code: &'static str, known: &[&str]) {
    let Value::Map(entries) = map else {
        return;
    };
    for (key, _) in entries.iter() {
        let name = name_of(key).unwrap_or_default();
        if !known.contains(&&*name) || !matches!(key, Value::Keyword(_)) {
            let at = entry_spans(reading.sources, map, &format!(":{name}")).key;
            reading.push(
                Diagnostic::error(code, format!("unknown key `:{name}`"))
                    .at(at)
                    .suggest(&name, known.iter().copied())
                    .hint(format!("the keys are {}", keywords(known))),
            );
        }
    }
}

/// Reads one of a few names.
fn choice<T: Copy>(
    reading: &mut Reading<'_>,
    map: &Value,
    key: &str,
    allowed: &[(T, &str)],
) -> Option<T> {
    let found = map.get(key)?;
    let name = name_of(found).unwrap_or_default();
    if let Some((choice, _)) = allowed.iter().find(|(_, known)| *known == &*name) {
        return Some(*choice);
    }
    let names: Vec<&str> = allowed.iter().map(|(_, name)| *name).collect();
    let at = reading.value_at(map, key);
    reading.push(
        Diagnostic::error(
            "E0404",
            format!(
                "`:{key}` of `:concurrency` must be one of {}",
                keywords(&names)
            ),
        )
        .at(at)
        .suggest(&name, names.iter().copied()),
    );
    None
}

/// Warns of a key that is not an input of any contract: every start would fail.
fn is_an_input(reading: &mut Reading<'_>, path: &[Value], at: Span, contracts: &[Invocation]) {
    let name = path.first().and_then(name_of).unwrap_or_default();
    let has = |contract: &Invocation| contract.inputs.iter().any(|input| input.name == name);
    if contracts.is_empty() || contracts.iter().any(has) {
        return;
    }
    let inputs = contracts.iter().flat_map(|contract| &contract.inputs);
    let names: Vec<&str> = inputs.map(|input| &*input.name).collect();
    reading.push(
        Diagnostic::warning("E0458", format!("no invocation has an input `:{name}`"))
            .at(at)
            .suggest(&name, names.iter().copied())
            .hint("the key is read from the input of a run, before the flow does anything"),
    );
}

/// Checks that each schedule sets the key in the input of its runs.
fn schedules_have(reading: &mut Reading<'_>, map: &Value, path: &[Value]) {
    let Some(first) = path.first() else {
        return;
    };
    let schedules = reading.maps(map, "schedules").into_iter();
    let triggers = reading.maps(map, "triggers").into_iter();
    let triggers = triggers
        .filter(|(trigger, _)| trigger.get("type").and_then(name_of).as_deref() == Some("schedule"))
        .map(|(trigger, span)| (trigger.get("config").cloned().unwrap_or(Value::Nil), span));
    let all: Vec<(Value, Span)> = schedules.chain(triggers).collect();
    for (schedule, span) in all {
        let input = schedule.get("input").cloned().unwrap_or(Value::Nil);
        let name = name_of(first).unwrap_or_default();
        if input.get(&name).is_none_or(Value::is_nil) {
            let at = match input {
                Value::Nil => span,
                _ => reading.value_at(&schedule, "input"),
            };
            let message =
                format!("the input of the schedule has no `:{name}`, the key of the flow's runs");
            reading.push(
                Diagnostic::error("E0458", message)
                    .at(at)
                    .hint(format!("add it: `:input {{:{name} ...}}`")),
            );
        }
    }
}

/// Warns of a limit that is never reached.
fn contradiction(reading: &mut Reading<'_>, map: &Value, starts: &Starts) {
    let (Some(concurrency), Some(limits)) = (&starts.concurrency, &starts.limits) else {
        return;
    };
    if concurrency.key.is_some() || limits.scope.is_some() {
        return;
    }
    let Some(limit) = limits.concurrency else {
        return;
    };
    let at = part(reading, map, "limits", "concurrency");
    reading.push(
        Diagnostic::warning(
            "E0459",
            format!("the limit of {limit} runs is never reached: the flow is a `:singleton`"),
        )
        .at(at)
        .hint("remove `:concurrency` from the definition, or make it `:keyed`"),
    );
}
