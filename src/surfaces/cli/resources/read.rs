//! `flowstone resources read`: shows the beginning of a resource, according to its type.

use flowstone_engine::json::{items, to_exact_json};
use flowstone_engine::ports::{ResourceRow, StoreError};
use flowstone_engine::resource::ResourceKind;
use flowstone_engine::table::ROW_ID;
use flowstone_engine::{Direct, Engine, EngineError, codec};
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;
use serde_json::json;

use crate::cli::args::ResourcesRead;
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::outcome::of_engine_error;
use crate::cli::pretty::pretty;
use crate::cli::report::Report;
use crate::cli::runtime::Runtime;
use crate::cli::{App, Open, output};
use crate::json::resource_json;

/// Maximum number of characters of a text, unless all of it is requested.
const MAX_CHARS: usize = 20_000;
/// Rows or files per page of a step.
const MOST: usize = 1000;

/// The part of a resource to show.
struct Preview {
    format: &'static str,
    shown: Shown,
    /// The total number of lines or items, if known.
    total: Option<usize>,
    is_cut: bool,
}

enum Shown {
    Text(String),
    Data(Value),
    Json(serde_json::Value),
    /// Bytes that are not text: how many there are.
    Binary(usize),
}

/// Shows the resource.
pub(super) fn run(args: &ResourcesRead, app: &dyn App) -> Result<Exit, Report> {
    let output = &args.one.output;
    let (row, preview) = Runtime::start()?.block_on(async {
        let engine = app.open(&Project::find(&output.home), Open::Existing)?;
        let row = engine.live_resource(&args.one.uri).await;
        let row = row.map_err(|error| of_engine_error(&error))?;
        let preview = preview(&engine, &row, args).await?;
        Ok::<_, Report>((row, preview))
    })?;
    if output.json {
        output::json(&preview.to_json(&row));
    } else {
        preview.tell(&row);
    }
    Ok(Exit::Completed)
}

async fn preview(
    engine: &Engine,
    row: &ResourceRow,
    args: &ResourcesRead,
) -> Result<Preview, Report> {
    let limit = match args.full {
        true => usize::MAX,
        false => usize::try_from(args.limit).unwrap_or(usize::MAX),
    };
    if !args.partitions.is_empty() && row.kind != ResourceKind::Table {
        return Err(Report::error("E0942", "`--partition` is for tables")
            .hint(format!("this is a {}", row.kind.name())));
    }
    match row.kind {
        ResourceKind::Table => table(engine, row, &args.partitions, limit).await,
        ResourceKind::Tree => {
            let config = vec![
                ("op", Value::keyword("list")),
                ("source", Value::from(row.uri.as_str())),
            ];
            paged(engine, ("files", config, "entries"), limit).await
        }
        ResourceKind::Changeset => {
            let config = vec![
                ("op", Value::keyword("list")),
                ("changeset", Value::from(row.uri.as_str())),
            ];
            paged(engine, ("files", config, "entries"), limit).await
        }
        ResourceKind::Blob | ResourceKind::File => {
            let bytes = engine.resource_bytes(row).await;
            let bytes = bytes.map_err(|error| of_engine_error(&error))?;
            of_bytes(row, bytes, limit)
        }
        ResourceKind::FlowOutput | ResourceKind::Kv | ResourceKind::StepOutput => {
            let text = engine.resource_value(row).await;
            let text = text.map_err(|error| of_engine_error(&error))?;
            let value =
                codec::decode(&text).map_err(|error| of_engine_error(&EngineError::from(error)))?;
            Ok(of_value(value, limit))
        }
    }
}

/// Reads rows of the given partitions, or of all partitions if the table has any.
async fn table(
    engine: &Engine,
    row: &ResourceRow,
    partitions: &[String],
    limit: usize,
) -> Result<Preview, Report> {
    let of = |keys: Option<Value>| {
        let mut table = vec![(Value::keyword("uri"), Value::from(row.uri.as_str()))];
        if let Some(keys) = keys {
            let keys = Value::map([(Value::keyword("keys"), keys)]);
            table.push((Value::keyword("partitions"), keys));
        }
        let config = vec![
            ("op", Value::keyword("query")),
            ("table", Value::map(table)),
            ("sort", Value::vector([Value::keyword(ROW_ID)])),
        ];
        ("table", config, "rows")
    };
    if !partitions.is_empty() {
        let keys = partitions.iter().map(|key| Value::from(key.as_str()));
        return paged(engine, of(Some(Value::vector(keys))), limit).await;
    }
    match paged(engine, of(None), limit).await {
        // The table has partitions, and none was named.
        Err(report) if report.code == StoreError::PARTITION => {
            paged(engine, of(Some(Value::keyword("all"))), limit).await
        }
        done => done,
    }
}

/// Reads pages from a step until there is enough.
async fn paged(
    engine: &Engine,
    (kind, config, field): (&'static str, Vec<(&str, Value)>, &'static str),
    limit: usize,
) -> Result<Preview, Report> {
    let mut found: Vec<Value> = Vec::new();
    let mut cursor = None;
    loop {
        let count = (limit - found.len()).min(MOST);
        let page = [("limit", Value::from(count))];
        let next = cursor.take().map(|cursor| ("cursor", cursor));
        let page: Vec<(&str, Value)> = page.into_iter().chain(next).collect();
        // A table query has its page options in a separate map.
        let page = match kind {
            "table" => {
                let mode = ("mode", Value::keyword("cursor"));
                vec![("page", keyed(page.into_iter().chain([mode])))]
            }
            _ => page,
        };
        let config = keyed(config.iter().cloned().chain(page));
        let direct = Direct {
            kind,
            config,
            folder: None,
        };
        let answer = engine.perform(direct).await;
        let answer = answer.map_err(|error| of_step_error(&error))?;
        found.extend(answer.get(field).and_then(items).unwrap_or_default());
        let page = answer.get("page").unwrap_or(&answer);
        cursor = page
            .get("next-cursor")
            .filter(|next| !next.is_nil())
            .cloned();
        if cursor.is_none() || found.len() >= limit {
            break;
        }
    }
    Ok(Preview {
        format: field,
        shown: Shown::Data(Value::vector(found)),
        total: None,
        is_cut: cursor.is_some(),
    })
}

fn keyed<'a>(entries: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let entries = entries.into_iter();
    Value::map(entries.map(|(key, value)| (Value::keyword(key), value)))
}

fn of_step_error(error: &StepError) -> Report {
    let report = Report::error(error.code, error.message.clone());
    error
        .hints
        .iter()
        .fold(report, |report, hint| report.hint(hint.clone()))
}

/// Reads a blob according to its content type. Contents that do not parse are shown as text or bytes.
fn of_bytes(row: &ResourceRow, bytes: Vec<u8>, limit: usize) -> Result<Preview, Report> {
    let length = bytes.len();
    let Ok(text) = String::from_utf8(bytes) else {
        return Ok(Preview {
            format: "binary",
            shown: Shown::Binary(length),
            total: None,
            is_cut: true,
        });
    };
    let content_type = row.content_type.as_deref().unwrap_or_default();
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    if kind == "application/edn"
        && let Ok(value) = codec::decode(&text)
    {
        return Ok(of_value(value, limit));
    }
    let is_json = kind == "application/json" || kind.ends_with("+json");
    if is_json && let Ok(json) = serde_json::from_str(&text) {
        return Ok(of_json(json, limit));
    }
    Ok(of_text(&text, limit))
}

fn of_value(value: Value, limit: usize) -> Preview {
    match &value {
        Value::Text(text) => return of_text(text.as_str(), limit),
        Value::Map(_) => {}
        value => {
            if let Some(found) = items(value) {
                let total = found.len();
                return Preview {
                    format: "edn",
                    shown: Shown::Data(Value::vector(found.into_iter().take(limit))),
                    total: Some(total),
                    is_cut: total > limit,
                };
            }
        }
    }
    Preview {
        format: "edn",
        shown: Shown::Data(value),
        total: None,
        is_cut: false,
    }
}

fn of_json(json: serde_json::Value, limit: usize) -> Preview {
    let (shown, total) = match json {
        serde_json::Value::Array(items) => {
            let total = items.len();
            let first = items.into_iter().take(limit).collect();
            (serde_json::Value::Array(first), Some(total))
        }
        json => (json, None),
    };
    Preview {
        format: "json",
        shown: Shown::Json(shown),
        total,
        is_cut: total.is_some_and(|total| total > limit),
    }
}

fn of_text(text: &str, limit: usize) -> Preview {
    let total = text.lines().count();
    let end = match limit {
        usize::MAX => text.len(),
        limit => {
            let lines: usize = text.split_inclusive('\n').take(limit).map(str::len).sum();
            let most = text.char_indices().nth(MAX_CHARS);
            most.map_or(lines, |(most, _)| lines.min(most))
        }
    };
    Preview {
        format: "text",
        shown: Shown::Text(text[..end].to_owned()),
        total: Some(total),
        is_cut: end < text.len(),
    }
}

impl Preview {
    /// Returns it as JSON. The names of the fields are stable.
    fn to_json(&self, row: &ResourceRow) -> serde_json::Value {
        let value = match &self.shown {
            Shown::Text(text) => json!(text),
            Shown::Data(value) => to_exact_json(value).unwrap_or_else(|_| json!(pretty(value))),
            Shown::Json(json) => json.clone(),
            Shown::Binary(_) => serde_json::Value::Null,
        };
        json!({
            "ok": true,
            "resource": resource_json(row),
            "format": self.format,
            "value": value,
            "total": self.total,
            "truncated": self.is_cut,
        })
    }

    fn tell(&self, row: &ResourceRow) {
        match &self.shown {
            Shown::Text(text) => output::data(text),
            Shown::Data(value) => match items(value) {
                Some(items) => items.iter().for_each(|item| output::data(&pretty(item))),
                None => output::data(&pretty(value)),
            },
            Shown::Json(json) => output::json(json),
            Shown::Binary(length) => output::note(&format!(
                "{length} bytes that are not text: `flowstone resources get {} --out FILE` writes them to a file",
                row.uri
            )),
        }
        if self.is_cut && !matches!(self.shown, Shown::Binary(_)) {
            let of = self
                .total
                .map_or_else(String::new, |total| format!(", of {total}"));
            output::note(&format!(
                "this is the beginning{of}: `--limit N` or `--full` shows more"
            ));
        }
    }
}
