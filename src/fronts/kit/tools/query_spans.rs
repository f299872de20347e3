//! `query_spans`: spans of runs that the caller reaches, by a filter.
//!
//! A condition on `trace_id` finds its runs by an index. Other queries go through the runs: see [`span_pages`].

use std::collections::HashMap;

use flowstone_engine::ids::RunId;
use flowstone_model::diagnostic::nearest;
use flowstone_model::token::Scope;
use serde_json::{Map, Value as Json, json};

use crate::kit::context::KitCall;
use crate::kit::error::KitError;
use crate::kit::page;
use crate::kit::schema::object;
use crate::kit::span_filter::{self, SpanFilter};
use crate::kit::span_pages;
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};
use crate::kit::trace_spans::{self, LIST, Window};
use crate::kit::trigger::instant_millis;

/// Number of spans of an answer, unless the caller names another: of programs, of models, and within one trace.
const LIMIT: usize = 100;
const LIMIT_OF_MODELS: usize = 50;
const LIMIT_OF_TRACE: usize = 10_000;
const LIMIT_MAX: usize = 1_000;
/// Longer texts are cut for models.
const TEXT_MAX: usize = 500;
/// The members of a span, which `fields` names.
const FIELDS: &[&str] = &[
    "attributes",
    "end_time",
    "events",
    "links",
    "parent_id",
    "span_id",
    "span_kind",
    "span_name",
    "span_type",
    "start_time",
    "status_code",
    "status_message",
    "trace_id",
    "trace_type",
];

pub const TOOL: Tool = Tool {
    name: "query_spans",
    description: "Finds spans of past runs: what each run, agent, model turn, tool call and step got and gave. \
                  `{\"filtering\": {\"conditions\": [{\"field\": \"trace_id\", \"value\": TRACE}]}}` returns a whole trace in \
                  order. Tool calls are named `execute_tool NAME`; a call that returned has `attributes.output`. `fields` \
                  keeps answers short, such as [\"span_name\", \"status_code\", \"attributes.output\"].",
    input,
    output,
    bound: &[Bound::Workspace],
    wrapper: None,
    read_only: true,
    permission: Permission::Allow,
    scope: Scope::Read,
    timeout_ms: 15_000,
    timeout_of: None,
    default_on: true,
    in_test: InTest::Answered,
    check: None,
    call: |cx, arguments| Box::pin(query(cx, arguments)),
};

fn input() -> Json {
    let time = |what: &str| json!({"type": "string", "description": what});
    let mut schema = object(
        json!({
            "filtering": span_filter::schema(),
            "windowing": object(
                json!({
                    "oldest": time("Spans that began at this time or later."),
                    "newest": time("Spans that began before this time."),
                    "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT_OF_TRACE},
                    "next": time("`next` of the page before."),
                    "order": {"enum": ["ascending", "descending"]},
                }),
                &[],
            ),
            "fields": {"type": "array", "maxItems": 50, "items": {"type": "string"},
                "description": "Members of spans, or `attributes.KEY`."},
        }),
        &[],
    );
    schema["$defs"] = json!({(span_filter::DEFINITION): span_filter::condition_schema()});
    schema
}

fn output() -> Json {
    object(
        json!({
            "count": {"type": "integer"},
            "spans": {"type": "array", "items": {"type": "object"}},
            "next": {"type": ["string", "null"]},
        }),
        &["count", "spans", "next"],
    )
}

/// What a query asks for, read as a whole.
struct Query {
    filter: SpanFilter,
    window: Window,
    fields: Option<Vec<String>>,
    /// The traces that the filter needs.
    traces: Option<Vec<String>>,
}

async fn query(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let query = read(cx, &arguments).await?;
    let (found, next) = match &query.traces {
        Some(traces) => trace_spans::of_traces(cx, (&query.window, &query.filter), traces).await?,
        None => span_pages::of_runs(cx, &query.window, &query.filter).await?,
    };
    let is_cut = cx.is_for_model && query.fields.is_none();
    let shown = found
        .into_iter()
        .map(|span| projected(span.json, query.fields.as_deref(), is_cut));
    let shown: Vec<Json> = shown.collect();
    Ok(json!({"count": shown.len(), "spans": shown, "next": next}))
}

async fn read(cx: &KitCall<'_>, arguments: &Arguments) -> Result<Query, KitError> {
    let empty = json!({});
    let filtering = arguments.get("filtering").unwrap_or(&empty);
    let mut filter = SpanFilter::read(filtering, "/filtering")?;
    resolve_traces(cx, &mut filter).await?;
    let window = arguments.get("windowing").unwrap_or(&empty);
    let time = |name: &str| match window.get(name).and_then(Json::as_str) {
        None => Ok(None),
        Some(text) => instant_millis(text).map(Some).ok_or_else(|| {
            KitError::invalid(
                format!("/windowing/{name}"),
                "a time with `Z` or an offset, such as 2026-01-31T09:30:00Z",
                format!("`{text}` is not a time with `Z` or an offset"),
            )
        }),
    };
    let named = filter.traces();
    let is_one = named.as_ref().is_some_and(|(_, is_one)| *is_one);
    let traces = named.map(|(traces, _)| traces.into_iter().map(str::to_owned).collect());
    let (usual, most) = match (is_one, cx.is_for_model) {
        (true, _) => (LIMIT_OF_TRACE, LIMIT_OF_TRACE),
        (false, true) => (LIMIT_OF_MODELS, LIMIT_MAX),
        (false, false) => (LIMIT, LIMIT_MAX),
    };
    let limit = window.get("limit").and_then(Json::as_u64);
    let limit = limit.map_or(usual, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    if limit > most {
        return Err(KitError::invalid(
            "/windowing/limit",
            format!("from 1 to {most}"),
            format!("`limit` must be from 1 to {most} here, got {limit}"),
        ));
    }
    let next = window.get("next").and_then(Json::as_str);
    let next = next.map(|next| page::read_text(next, LIST, "/windowing/next"));
    Ok(Query {
        window: Window {
            oldest_ms: time("oldest")?,
            newest_ms: time("newest")?,
            limit,
            is_ascending: match window.get("order").and_then(Json::as_str) {
                Some(order) => order == "ascending",
                None => is_one,
            },
            next: next.transpose()?,
        },
        fields: fields(arguments)?,
        traces,
        filter,
    })
}

/// Puts every way to write a trace in its form in spans: UUIDs, `0x`, and ids of runs.
async fn resolve_traces(cx: &KitCall<'_>, filter: &mut SpanFilter) -> Result<(), KitError> {
    let mut runs = HashMap::new();
    filter.each_trace(&mut |value| {
        let Some(text) = value.as_str() else { return };
        let plain = text.trim().to_ascii_lowercase();
        let plain = plain.strip_prefix("0x").unwrap_or(&plain).replace('-', "");
        let is_trace = plain.len() == 32 && plain.bytes().all(|it| it.is_ascii_hexdigit());
        match is_trace {
            true => *value = json!(plain),
            false => drop(runs.insert(text.to_owned(), None)),
        }
    });
    for (text, trace) in &mut runs {
        let found = cx
            .engine
            .stores()
            .runs
            .find(&RunId::from_text(text.as_str()))
            .await?;
        *trace = found.map(|row| row.in_trace().trace.to_string());
    }
    let is_id = |text: &str| RunId::read(text.trim()).is_some();
    let wrong = runs
        .iter()
        .find(|(text, trace)| trace.is_none() && !is_id(text));
    if let Some((text, _)) = wrong {
        return Err(KitError::invalid(
            "/filtering",
            "32 hexadecimal digits, a UUID, or the id of a run",
            format!("`{text}` is neither the id of a trace nor of a run"),
        ));
    }
    filter.each_trace(&mut |value| {
        let found = value.as_str().and_then(|text| runs.get(text)?.clone());
        if let Some(trace) = found {
            *value = json!(trace);
        }
    });
    Ok(())
}

fn fields(arguments: &Arguments) -> Result<Option<Vec<String>>, KitError> {
    let Some(given) = arguments.get("fields").and_then(Json::as_array) else {
        return Ok(None);
    };
    let given = given.iter().filter_map(Json::as_str).enumerate();
    let given = given.map(|(number, name)| {
        let is_attribute = name
            .strip_prefix("attributes.")
            .is_some_and(|key| !key.is_empty());
        if is_attribute || FIELDS.contains(&name) {
            return Ok(name.to_owned());
        }
        let near = nearest(name, FIELDS.iter().copied());
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        Err(KitError::invalid(
            format!("/fields/{number}"),
            format!("attributes.KEY, or one of {}", FIELDS.join(", ")),
            format!("spans have no `{name}`{near}"),
        ))
    });
    given.collect::<Result<Vec<String>, KitError>>().map(Some)
}

/// Returns what is shown of a span.
fn projected(mut span: Map<String, Json>, fields: Option<&[String]>, is_cut: bool) -> Json {
    let Some(fields) = fields else {
        if is_cut {
            span.remove("events");
            span.remove("links");
            let mut is_shorter = false;
            span.values_mut().for_each(|value| is_shorter |= cut(value));
            if is_shorter {
                span.insert("truncated".to_owned(), json!(true));
            }
        }
        return Json::Object(span);
    };
    let mut shown = Map::new();
    let whole = ["trace_id", "span_id"];
    let names = whole.into_iter().chain(fields.iter().map(String::as_str));
    for name in names {
        match name.strip_prefix("attributes.") {
            None => {
                let value = span.get(name).cloned().unwrap_or(Json::Null);
                shown.insert(name.to_owned(), value);
            }
            Some(key) => {
                let all = &span["attributes"];
                let flat = all.get(key).map(|value| (vec![key], value));
                let nested = || {
                    let parts: Vec<&str> = key.split('.').collect();
                    let value = parts.iter().try_fold(all, |at, part| at.get(*part))?;
                    Some((parts, value))
                };
                let found = flat.or_else(nested).map(|(parts, it)| (parts, it.clone()));
                let attributes = shown.entry("attributes").or_insert_with(|| json!({}));
                if let Some((parts, value)) = found {
                    insert(attributes, &parts, value);
                }
            }
        }
    }
    Json::Object(shown)
}

/// Inserts a value at a path of objects.
fn insert(into: &mut Json, parts: &[&str], value: Json) {
    match parts {
        [] => {}
        [last] => into[*last] = value,
        [first, rest @ ..] => {
            if !into[*first].is_object() {
                into[*first] = json!({});
            }
            insert(&mut into[*first], rest, value);
        }
    }
}

/// Cuts long texts in a value. Tells whether there was one.
fn cut(value: &mut Json) -> bool {
    match value {
        Json::String(text) => match text.char_indices().nth(TEXT_MAX) {
            Some((end, _)) => {
                text.truncate(end);
                text.push('…');
                true
            }
            None => false,
        },
        Json::Array(items) => cut_all(items.iter_mut()),
        Json::Object(members) => cut_all(members.values_mut()),
        _ => false,
    }
}

fn cut_all<'a>(values: impl Iterator<Item = &'a mut Json>) -> bool {
    let mut is_cut = false;
    values.for_each(|value| is_cut |= cut(value));
    is_cut
}
