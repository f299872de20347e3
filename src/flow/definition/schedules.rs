//! Reads `:schedules` of a definition, and schedules among the older `:triggers`.

use std::rc::Rc;

use flowstone_lang::value::{Span, Value};
use flowstone_model::names::name_of;
use jiff::tz::TimeZone;

use super::{Flow, FlowReading, coerce_input, is_identifier};
use crate::diagnostic::Diagnostic;
use crate::duration;
use crate::schedule::zones::{zone, zones};
use crate::schedule::{CatchUp, Cron, Schedule, Timing};

/// Every key of a schedule, sorted.
const KEYS: &[&str] = &[
    "catch-up",
    "cron",
    "description",
    "enabled",
    "every",
    "id",
    "input",
    "invocation",
    "label",
    "timezone",
];
/// Minimum interval; for a shorter one, a flow should loop in one run.
const SHORTEST_MS: i64 = 1_000;

/// Reads the schedules, from current and from older keys.
pub(super) fn read(reading: &mut FlowReading<'_>, map: &Value) -> Vec<Schedule> {
    let mut found: Vec<Schedule> = Vec::new();
    for (entry, span) in reading.maps(map, "schedules") {
        known_keys(reading, &entry, span);
        let Some(schedule) = schedule(reading, &entry, span) else {
            continue;
        };
        if found.iter().any(|known| known.id == schedule.id) {
            let message = format!("there are two schedules `:{}`", schedule.id);
            reading.error("E0414", message, span);
        }
        found.push(schedule);
    }
    for (idx, (trigger, span)) in reading.maps(map, "triggers").into_iter().enumerate() {
        if trigger.get("type").and_then(name_of).as_deref() == Some("schedule") {
            found.extend(of_trigger(reading, &trigger, idx, span));
        }
    }
    found
}

/// Checks that the input of each schedule is valid for its invocation.
pub(super) fn check_inputs(flow: &Flow, findings: &mut Vec<Diagnostic>) {
    for schedule in &flow.schedules {
        let Err(error) = coerce_input(flow, schedule.invocation.as_deref(), &schedule.input) else {
            continue;
        };
        let message = format!(
            "the schedule `:{}` cannot start the flow: {error}",
            schedule.id
        );
        findings.push(
            Diagnostic::error("E0464", message)
                .at(schedule.span)
                .hint("give it what the invocation needs, such as `:input {:query \"news\"}`"),
        );
    }
}

fn known_keys(reading: &mut FlowReading<'_>, entry: &Value, span: Span) {
    let Value::Map(entries) = entry else { return };
    for (key, _) in entries.iter() {
        let name = name_of(key).unwrap_or_else(|| "".into());
        if !KEYS.contains(&&*name) {
            let at = reading.key_at(entry, &name).or(span);
            reading.push(
                Diagnostic::error("E0460", format!("unknown key `:{name}` in a schedule"))
                    .at(at)
                    .suggest(&name, KEYS.iter().copied()),
            );
        }
    }
}

fn schedule(reading: &mut FlowReading<'_>, entry: &Value, span: Span) -> Option<Schedule> {
    let id = match entry.get("id") {
        Some(id @ (Value::Keyword(_) | Value::Text(_))) => name_of(id),
        _ => None,
    };
    let Some(id) = id.filter(|id| is_identifier(id)) else {
        reading.push(
            Diagnostic::error("E0460", "a schedule needs an `:id`")
                .at(span)
                .hint("a plain keyword that stays the same, such as `:id :nightly`"),
        );
        return None;
    };
    let timing = timing(reading, entry, span)?;
    rest(reading, entry, id, timing, span)
}

fn of_trigger(
    reading: &mut FlowReading<'_>,
    trigger: &Value,
    idx: usize,
    span: Span,
) -> Option<Schedule> {
    let config = trigger.get("config").cloned().unwrap_or(Value::Nil);
    let id = trigger
        .get("id")
        .and_then(name_of)
        .filter(|id| is_identifier(id))
        .unwrap_or_else(|| format!("trigger-{idx}").into());
    let timing = timing(reading, &config, span)?;
    let mut schedule = rest(reading, &config, id, timing, span)?;
    schedule.label = reading.text(trigger, "label");
    schedule.enabled = trigger.get("enabled") != Some(&Value::Bool(false));
    Some(schedule)
}

/// Reads the keys of a schedule other than its times.
fn rest(
    reading: &mut FlowReading<'_>,
    entry: &Value,
    id: Rc<str>,
    timing: Timing,
    span: Span,
) -> Option<Schedule> {
    let enabled = match entry.get("enabled") {
        None | Some(Value::Nil) => true,
        Some(Value::Bool(enabled)) => *enabled,
        Some(other) => {
            let at = reading.value_at(entry, "enabled");
            let message = format!("`:enabled` must be true or false, not {}", other.kind());
            reading.error("E0460", message, at);
            return None;
        }
    };
    let input = match entry.get("input") {
        None | Some(Value::Nil) => Value::map([]),
        Some(input @ Value::Map(_)) => input.clone(),
        Some(other) => {
            let at = reading.value_at(entry, "input");
            let message = format!("`:input` must be a map, not {}", other.kind());
            reading.error("E0460", message, at);
            return None;
        }
    };
    let catch_up = match entry.get("catch-up").filter(|value| !value.is_nil()) {
        None => CatchUp::default(),
        Some(value) => {
            let name = name_of(value).unwrap_or_else(|| "".into());
            let Some(policy) = CatchUp::from_name(&name) else {
                let names = CatchUp::NAMES.iter().map(|(_, name)| *name);
                let at = reading.value_at(entry, "catch-up");
                reading.push(
                    Diagnostic::error(
                        "E0460",
                        "`:catch-up` must be one of `:all`, `:latest`, `:skip`",
                    )
                    .at(at)
                    .suggest(&name, names),
                );
                return None;
            };
            policy
        }
    };
    Some(Schedule {
        label: reading.text(entry, "label"),
        invocation: entry.get("invocation").and_then(name_of),
        id,
        enabled,
        timing,
        input,
        catch_up,
        span,
    })
}

fn timing(reading: &mut FlowReading<'_>, entry: &Value, span: Span) -> Option<Timing> {
    let has = |key: &str| entry.get(key).is_some_and(|value| !value.is_nil());
    match (has("cron"), has("every")) {
        (true, false) => cron(reading, entry),
        (false, true) => every(reading, entry),
        (both, _) => {
            let message = match both {
                true => "a schedule has a `:cron` or an `:every`, not both",
                false => "a schedule needs a `:cron` or an `:every`",
            };
            reading.push(Diagnostic::error("E0460", message).at(span).hint(
                "`:cron \"0 9 * * MON\"` is nine o'clock each Monday, `:every \"15m\"` four times an hour",
            ));
            None
        }
    }
}

fn cron(reading: &mut FlowReading<'_>, entry: &Value) -> Option<Timing> {
    let text = reading.text(entry, "cron")?;
    let parsed = Cron::parse(&text).map_err(|error| {
        let at = reading.value_at(entry, "cron");
        let mut finding =
            Diagnostic::error("E0461", format!("invalid cron expression: {error}")).at(at);
        if let Some(hint) = error.hint {
            finding = finding.hint(hint);
        }
        reading.push(finding);
    });
    let zone = self::zone_of(reading, entry);
    Some(Timing::Cron {
        cron: Box::new(parsed.ok()?),
        zone: zone?,
    })
}

fn zone_of(reading: &mut FlowReading<'_>, entry: &Value) -> Option<TimeZone> {
    let name = match entry.get("timezone").filter(|value| !value.is_nil()) {
        None => return Some(TimeZone::UTC),
        Some(_) => reading.text(entry, "timezone")?,
    };
    let found = zone(&name);
    if found.is_none() {
        let names: Vec<String> = zones().available().map(|name| name.to_string()).collect();
        let at = reading.value_at(entry, "timezone");
        reading.push(
            Diagnostic::error("E0462", format!("there is no timezone `{name}`"))
                .at(at)
                .suggest(&name, names.iter().map(String::as_str))
                .hint("zones have names such as `Europe/Berlin`, `America/New_York` or `UTC`"),
        );
    }
    found
}

fn every(reading: &mut FlowReading<'_>, entry: &Value) -> Option<Timing> {
    let millis = entry
        .get("every")
        .and_then(duration::of_value)
        .map(duration::millis)
        .filter(|millis| *millis >= SHORTEST_MS);
    if entry.get("timezone").is_some_and(|zone| !zone.is_nil()) {
        let at = reading.key_at(entry, "timezone");
        reading.push(
            Diagnostic::warning("E0463", "`:timezone` has no effect with `:every`")
                .at(at)
                .hint("`:every` counts from 1970, whatever the clocks show; use `:cron` for times of day"),
        );
    }
    let Some(millis) = millis else {
        let at = reading.value_at(entry, "every");
        reading.push(
            Diagnostic::error("E0463", "`:every` must be a duration of at least a second")
                .at(at)
                .hint("such as `\"30s\"`, `\"15m\"` or `\"6h\"`"),
        );
        return None;
    };
    Some(Timing::Every { millis })
}
