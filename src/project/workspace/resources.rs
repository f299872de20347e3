//! What is stored: a list of it, and the beginning or another part of one.

use flowstone_flow::flow::name_of;
use flowstone_flow::step::{NestedRequest, StepContext, StepError};
use flowstone_lang::value::Value;
use flowstone_model::codec;
use flowstone_model::ports::{ResourceQuery, ResourceRow};
use flowstone_model::resource::{PREFIX, ResourceKind, ResourceName};
use flowstone_model::resource_value::value_text;
use flowstone_model::table::ROW_ID;

use super::args::Args;
use super::{facts, instant, maybe_instant, text};
use flowstone_steps::json::items;

const LIMIT: (usize, usize) = (1, 100);
const DEFAULT: usize = 20;
/// How much of a text is read at once.
const CHARS: (usize, usize) = (1, 200_000);
const DEFAULT_CHARS: usize = 20_000;
/// How many rows or files are read at once.
const ROWS: (usize, usize) = (1, 1000);
const DEFAULT_ROWS: usize = 100;

pub(super) async fn list(cx: &StepContext, args: &Args) -> Result<Value, StepError> {
    let query = ResourceQuery {
        kinds: kinds(args)?,
        prefix: args.name("prefix")?.map(|prefix| prefix.to_string()),
        run: args.name("run-id")?.map(|run| run.to_string()),
        text: args.name("query")?.map(|query| query.to_string()),
        after: args.name("cursor")?.map(|cursor| cursor.to_string()),
        limit: args.count("limit", LIMIT)?.unwrap_or(DEFAULT),
        now_ms: cx.now_ms(),
        ..ResourceQuery::default()
    };
    let page = cx.own_stores().resources.list(query).await?;
    let visible = cx.visible(page.rows).await?;
    Ok(facts([
        ("resources", Value::vector(visible.iter().map(about))),
        ("next-cursor", text(page.next.as_deref())),
    ]))
}

fn kinds(args: &Args) -> Result<Vec<ResourceKind>, StepError> {
    let given = match args.get("type") {
        None => return Ok(Vec::new()),
        Some(given) => items(given).unwrap_or_else(|| vec![given.clone()]),
    };
    let known = |value: &Value| {
        let name = name_of(value).unwrap_or_default();
        let name = name.trim_start_matches(':');
        ResourceKind::from_name(name).ok_or_else(|| {
            let names: Vec<&str> = ResourceKind::NAMES.iter().map(|(_, name)| *name).collect();
            args.wrong(format!("there is no type `{name}` of resources"))
                .hint(format!("there are {}", names.join(", ")))
        })
    };
    given.iter().map(known).collect()
}

fn about(row: &ResourceRow) -> Value {
    facts([
        ("uri", Value::from(row.uri.as_str())),
        ("type", Value::keyword(row.kind.name())),
        ("name", text(row.name.as_deref())),
        ("content-type", text(row.content_type.as_deref())),
        (
            "size-bytes",
            row.size.map_or(Value::Nil, |size| Value::Int(size as i64)),
        ),
        ("created-at", instant(row.created_ms)),
        ("expires-at", maybe_instant(row.expires_ms)),
        ("run-id", text(row.run.as_deref())),
        ("step", text(row.path.as_deref())),
    ])
}

/// Tells whether other step types read what is asked for. It follows from the name alone.
pub(super) fn reads_by_steps(config: &Value) -> bool {
    let given = config.get("args").and_then(Value::as_map);
    let mut values = given
        .into_iter()
        .flat_map(|map| map.iter())
        .map(|(_, value)| value);
    values.any(|value| {
        let uri = flowstone_steps::resource::uri(value);
        let named = uri.and_then(|uri| ResourceName::read(&uri));
        matches!(
            named,
            Some(ResourceName::Table(_) | ResourceName::Tree(_) | ResourceName::Changeset(_))
        )
    })
}

pub(super) async fn read(cx: &StepContext, args: &Args) -> Result<Value, StepError> {
    let Some(given) = args.get("uri") else {
        return Err(args.wrong("`resources/read` needs `uri`"));
    };
    // The part before the workspace may be left out.
    let whole = match given {
        Value::Text(name) if !name.starts_with("res://") => {
            Value::from(format!("{PREFIX}{}", name.trim_start_matches('/')))
        }
        other => other.clone(),
    };
    let row = flowstone_steps::resource::find(cx, &whole).await?;
    let (value, total, next) = match row.kind {
        ResourceKind::Table | ResourceKind::Tree | ResourceKind::Changeset => {
            by_step(cx, args, &row).await?
        }
        ResourceKind::Blob | ResourceKind::File => {
            let bytes = match &row.hash {
                Some(hash) => cx.own_stores().blobs.get(hash).await?,
                None => Vec::new(),
            };
            match String::from_utf8(bytes) {
                Ok(text) => part(args, &text)?,
                Err(_) => (Value::Nil, None, None),
            }
        }
        ResourceKind::FlowOutput | ResourceKind::Kv | ResourceKind::StepOutput => {
            let stored = value_text(cx.own_stores(), &row, cx.now_ms())
                .await?
                .unwrap_or_default();
            match codec::decode(&stored) {
                Ok(Value::Text(text)) => part(args, text.as_str())?,
                Ok(value) if stored.len() <= DEFAULT_CHARS => (value, None, None),
                _ => part(args, &stored)?,
            }
        }
    };
    let is_binary = value.is_nil();
    Ok(facts([
        ("resource", about(&row)),
        ("value", value),
        (
            "total",
            total.map_or(Value::Nil, |total| Value::Int(total as i64)),
        ),
        (
            "next-offset",
            next.map_or(Value::Nil, |next| Value::Int(next as i64)),
        ),
        (
            "note",
            match is_binary {
                true => Value::from("these are bytes that are not text"),
                false => Value::Nil,
            },
        ),
    ]))
}

type Part = (Value, Option<usize>, Option<usize>);

/// Returns a part of a text, how long all of it is, and where the next part begins; in characters.
fn part(args: &Args, whole: &str) -> Result<Part, StepError> {
    let most = args.count("max-chars", CHARS)?.unwrap_or(DEFAULT_CHARS);
    let offset = args.count("offset", (0, usize::MAX))?.unwrap_or(0);
    let total = whole.chars().count();
    let shown: String = whole.chars().skip(offset).take(most).collect();
    let end = offset.saturating_add(most);
    Ok((
        Value::from(shown),
        Some(total),
        (end < total).then_some(end),
    ))
}

/// Asks the step type that knows: rows of a table, files of a tree.
async fn by_step(cx: &StepContext, args: &Args, row: &ResourceRow) -> Result<Part, StepError> {
    let limit = args.count("limit", ROWS)?.unwrap_or(DEFAULT_ROWS);
    let offset = args.count("offset", (0, usize::MAX))?.unwrap_or(0);
    let uri = Value::from(row.uri.as_str());
    let number = |number: usize| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    let (kind, config, field) = match row.kind {
        ResourceKind::Table => (
            "table",
            vec![
                ("op", Value::keyword("query")),
                ("table", facts([("uri", uri)])),
                ("sort", Value::vector([Value::keyword(ROW_ID)])),
                (
                    "page",
                    facts([("limit", number(limit)), ("offset", number(offset))]),
                ),
            ],
            "rows",
        ),
        kind => {
            let of = match kind {
                ResourceKind::Tree => "source",
                _ => "changeset",
            };
            (
                "files",
                vec![
                    ("op", Value::keyword("list")),
                    (of, uri),
                    ("limit", number(limit)),
                ],
                "entries",
            )
        }
    };
    let answer = cx
        .perform(NestedRequest::new(kind, "read", facts(config)))
        .await?;
    let found = answer.get(field).and_then(items).unwrap_or_default();
    let next = (found.len() == limit && kind == "table").then(|| offset + limit);
    Ok((Value::vector(found), None, next))
}
