//! `:persist` of any step: its value goes to a blob, a key or a table, and a reference takes its place.
//!
//! The store does it in the transaction of the step's journal row, so a result is never stored twice and
//! never lost between the two.

use flowstone_engine::blob::BlobOp;
use flowstone_engine::codec;
use flowstone_engine::kv::{KvOp, KvSet};
use flowstone_engine::ports::StoreOp;
use flowstone_engine::step::{LocalFuture, Persist, StepContext, StepError};
use flowstone_engine::table::{TableOp, WriteMode, WriteRows};
use flowstone_lang::value::{Object, Value};

use crate::fields::Fields;
use crate::json::{items, name_text, to_json};
use crate::kv::{check_key, encoded, ttl};
use crate::resource;
use crate::table::{names, rows, table_name};
use crate::words::{nearest, shown};

/// What `:persist` does.
pub struct PersistResult;

/// A retained blob is no larger than this.
const MAX_BLOB: usize = 50 * 1024 * 1024;

const TYPES: &[(&str, &[&str])] = &[
    ("blob", &["content-type", "filename", "name", "tier"]),
    ("kv", &["key", "metadata", "ttl"]),
    (
        "table",
        &[
            "index-fields",
            "key-fields",
            "name",
            "rows-path",
            "table",
            "write-mode",
        ],
    ),
];
/// Keys of the reference that this build cannot act on.
const LATER: &[&str] = &["bucket", "partitions", "search-index", "signed-url"];

impl Persist for PersistResult {
    fn check(&self, kind: &str, config: &Value) -> Result<(), StepError> {
        plan(kind, config).map(drop)
    }

    fn persist<'a>(
        &'a self,
        cx: &'a StepContext,
        config: &'a Value,
        value: Value,
    ) -> LocalFuture<'a, Result<StoreOp, StepError>> {
        Box::pin(async move {
            match plan(cx.kind(), config)? {
                Plan::Blob(blob) => blob.store(cx, value).await,
                Plan::Key(set) => put(set, &value),
                Plan::Table(write, path) => Ok(StoreOp::Table(TableOp::Write(WriteRows {
                    rows: rows(&found(&value, path.as_ref())?, "the result")?,
                    ..write
                }))),
            }
        })
    }
}

/// A config that was understood.
enum Plan {
    Blob(Blob),
    Key(KvSet),
    /// With the path to the rows, where it is given.
    Table(WriteRows, Option<Value>),
}

fn plan(kind: &str, config: &Value) -> Result<Plan, StepError> {
    let fields = Fields::inside(":persist", config)?;
    let type_ = fields.name("type")?.unwrap_or_default();
    let Some((_, known)) = TYPES.iter().find(|(name, _)| *name == &*type_) else {
        let error = match fields.has("type") {
            true => StepError::config("E0763", format!("`:persist` has no type `:{type_}`")),
            false => StepError::config("E0763", "`:persist` needs `:type`"),
        };
        return Err(match nearest(&type_, TYPES.iter().map(|(name, _)| *name)) {
            Some(near) => error.hint(format!("did you mean `:{near}`?")),
            None => error.hint("there are `:blob`, `:kv` and `:table`"),
        });
    };
    if let Some(later) = LATER.iter().find(|key| fields.has(key)) {
        return Err(
            StepError::config("E0763", format!("`:persist` cannot use `:{later}` yet"))
                .hint("leave it out"),
        );
    }
    fields.only(&[*known, &["type"]].concat())?;
    match &*type_ {
        "blob" => blob(kind, fields).map(Plan::Blob),
        "kv" => key(fields).map(Plan::Key),
        _ => table(fields),
    }
}

fn blob(kind: &str, fields: Fields<'_>) -> Result<Blob, StepError> {
    match fields.name("tier")?.as_deref() {
        None | Some("retained") => {}
        Some("ephemeral") if kind == "http" => {}
        Some("ephemeral") => {
            return Err(StepError::config(
                "E0763",
                format!("`:tier :ephemeral` is for steps that stream, and `:{kind}` does not"),
            )
            .hint("use `:tier :retained`"));
        }
        Some(other) => {
            return Err(StepError::config(
                "E0763",
                format!("`:tier` is `:retained` or `:ephemeral`, not `:{other}`"),
            ));
        }
    }
    let filename = fields.text("filename")?.or(fields.text("name")?);
    if let Some(bad) = filename
        .filter(|name| name.is_empty() || name.len() > 255 || name.contains(['/', '\\', '\0']))
    {
        return Err(StepError::config(
            "E0763",
            format!(
                "`:filename` is a plain name without folders, not {}",
                shown(&Value::from(bad))
            ),
        ));
    }
    Ok(Blob {
        filename: filename.map(str::to_owned),
        content_type: fields.text("content-type")?.map(str::to_owned),
    })
}

fn key(fields: Fields<'_>) -> Result<KvSet, StepError> {
    let Some(key) = fields.get("key").and_then(name_text) else {
        return Err(
            StepError::config("E0763", "`:persist {:type :kv}` needs `:key`")
                .hint("as in `:key \"report:latest\"`"),
        );
    };
    check_key("persist :key", &key)?;
    Ok(KvSet {
        key,
        value: String::new(),
        ttl_seconds: ttl(fields)?,
        metadata: fields.get("metadata").map(encoded).transpose()?,
        if_not_exists: false,
        answer: None,
    })
}

fn table(fields: Fields<'_>) -> Result<Plan, StepError> {
    let Some(table) = fields.get("table").or(fields.get("name")) else {
        return Err(
            StepError::config("E0763", "`:persist {:type :table}` needs `:table`")
                .hint("as in `:table \"orders\"`"),
        );
    };
    let key_fields = names(fields, "key-fields")?;
    let mode = match fields.name("write-mode")?.as_deref() {
        None if key_fields.is_empty() => WriteMode::Insert,
        None | Some("upsert") => WriteMode::Upsert,
        Some("append" | "insert") => WriteMode::Insert,
        Some(other) => {
            return Err(StepError::config(
                "E0763",
                format!("`:write-mode` is `:append` or `:upsert`, not `:{other}`"),
            ));
        }
    };
    let path = fields.get("rows-path").cloned();
    if let Some(path) = path.as_ref().filter(|path| items(path).is_none()) {
        return Err(StepError::config(
            "E0763",
            format!("`:rows-path` is a vector of keys, not {}", path.kind()),
        )
        .hint("as in `:rows-path [:body :items]`"));
    }
    let write = WriteRows {
        table: table_name(table)?,
        rows: Vec::new(),
        mode,
        key_fields,
        index_fields: names(fields, "index-fields")?,
    };
    Ok(Plan::Table(write, path))
}

/// Finds the rows in a step's value: at a path, or where there is no doubt.
fn found(value: &Value, path: Option<&Value>) -> Result<Value, StepError> {
    let Some(path) = path else {
        let rows = value.get("rows").filter(|rows| items(rows).is_some());
        return match (value, rows) {
            (_, Some(rows)) => Ok(rows.clone()),
            (Value::Map(map), None) => {
                let keys: Vec<String> = map.iter().take(12).map(|(key, _)| shown(key)).collect();
                Err(StepError::new(
                    "E0763",
                    "invalid",
                    "the result is a map, and nothing says where its rows are",
                )
                .hint(format!(
                    "add `:rows-path [...]`; the result has {}",
                    keys.join(" ")
                )))
            }
            (value, None) => Ok(value.clone()),
        };
    };
    let mut at = value.clone();
    for (depth, key) in items(path).unwrap_or_default().into_iter().enumerate() {
        let next = match &at {
            Value::Map(map) => map
                .get(&key)
                .or_else(|| map.get(&Value::keyword(key.as_str()?)))
                .cloned(),
            Value::Vector(vector) => key
                .as_int()
                .and_then(|idx| vector.get(usize::try_from(idx).ok()?))
                .cloned(),
            _ => None,
        };
        at = next.ok_or_else(|| {
            let error = StepError::new(
                "E0763",
                "invalid",
                format!(
                    "`:rows-path` leads nowhere: the result has no {} at step {}",
                    shown(&key),
                    depth + 1
                ),
            );
            match at.as_map() {
                Some(map) => error.hint(format!(
                    "there it has {}",
                    map.iter()
                        .take(12)
                        .map(|(key, _)| shown(key))
                        .collect::<Vec<_>>()
                        .join(" ")
                )),
                None => error.hint(format!("there is {}", at.kind())),
            }
        })?;
    }
    Ok(at)
}

fn put(set: KvSet, value: &Value) -> Result<StoreOp, StepError> {
    let uri = format!("{}result/kv/{}", resource::PREFIX, set.key);
    let answer = resource::reference(
        &uri,
        &[
            ("resource-uri", Value::from(uri.as_str())),
            ("ref", resource::reference(&uri, &[])),
            ("key", Value::from(set.key.as_str())),
        ],
    );
    Ok(StoreOp::Kv(KvOp::Set(KvSet {
        value: encoded(value)?,
        answer: Some(encoded(&answer)?),
        ..set
    })))
}

/// How to store a blob.
struct Blob {
    filename: Option<String>,
    content_type: Option<String>,
}

/// What is stored of a step's value.
struct Content {
    bytes: Vec<u8>,
    content_type: String,
    filename: Option<String>,
    /// What stays in the step's value.
    kept: Vec<(&'static str, Value)>,
}

impl Blob {
    async fn store(&self, cx: &StepContext, value: Value) -> Result<StoreOp, StepError> {
        let content = self.content(cx.kind(), &value)?;
        let size = content.bytes.len();
        if size > MAX_BLOB {
            return Err(StepError::new(
                "E0763",
                "too-large",
                format!("the result has {size} bytes, and a blob holds {MAX_BLOB}"),
            )
            .hint("store less of it, or split it over several steps"));
        }
        let content_type = self.content_type.clone().unwrap_or(content.content_type);
        let filename = self
            .filename
            .clone()
            .or(content.filename)
            .unwrap_or_else(|| format!("{}.{}", cx.step_id(), extension(&content_type)));
        let uri = format!(
            "{}result/run/{}/step/{}/output",
            resource::PREFIX,
            cx.run_id(),
            escaped(&cx.path().to_string())
        );
        let size = Value::from(size);
        let facts = [
            ("content-type", Value::from(content_type.as_str())),
            ("size-bytes", size),
            ("filename", Value::from(filename.as_str())),
        ];
        let reference = resource::reference(&uri, &facts);
        let bytes = content.bytes.len() as u64;
        let hash = cx.stores().blobs.put(content.bytes).await?;
        let mut facts = facts.to_vec();
        facts.extend([
            ("resource-uri", Value::from(uri.as_str())),
            ("ref", reference.clone()),
            ("blob-ref", reference),
            ("sha256", Value::from(hash.0.as_str())),
        ]);
        facts.extend(content.kept);
        Ok(StoreOp::Blob(BlobOp::Register {
            hash,
            size: bytes,
            value: encoded(&resource::reference(&uri, &facts))?,
            uri,
            filename: Some(filename),
            content_type: Some(content_type),
        }))
    }

    fn content(&self, kind: &str, value: &Value) -> Result<Content, StepError> {
        if let (true, Some(body)) = (
            kind == "http" && value.get("status").is_some(),
            value.get("body"),
        ) {
            let omitted = [
                ("type", Value::keyword("omitted")),
                ("reason", Value::keyword("persisted")),
            ];
            let omitted = Value::map(omitted.map(|(key, value)| (Value::keyword(key), value)));
            let mut kept = vec![
                ("status", value.get("status").cloned().unwrap_or(Value::Nil)),
                ("body", omitted),
            ];
            if let Some(headers) = value.get("headers") {
                kept.push(("headers", headers.clone()));
            }
            let said = value
                .get("headers")
                .and_then(|headers| header(headers, "content-type"));
            let content = self.plain(body)?;
            let is_text = matches!(body, Value::Text(_) | Value::Object(_));
            return Ok(Content {
                content_type: said.filter(|_| is_text).unwrap_or(content.content_type),
                kept,
                ..content
            });
        }
        // A file as our own steps hand it over, such as the CSV of a table.
        if let (Some(Value::Text(text)), Some(content_type)) = (
            value.get("content"),
            value.get("content-type").and_then(Value::as_str),
        ) {
            return Ok(Content {
                bytes: text.as_bytes().to_vec(),
                content_type: content_type.to_owned(),
                filename: value
                    .get("filename")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
                kept: Vec::new(),
            });
        }
        self.plain(value)
    }

    fn plain(&self, value: &Value) -> Result<Content, StepError> {
        let wants_json = self.content_type.as_deref().is_some_and(|wanted| {
            let kind = wanted.split(';').next().unwrap_or_default().trim();
            kind == "application/json" || kind.ends_with("+json")
        });
        let (bytes, content_type) = match value {
            Value::Text(text) => (text.as_bytes().to_vec(), "text/plain; charset=utf-8"),
            Value::Object(object) if let Object::Bytes(bytes) = &**object => {
                (bytes.to_vec(), "application/octet-stream")
            }
            value if wants_json => {
                let json = to_json(value)
                    .map_err(|error| StepError::new("E0763", "invalid", error.to_string()))?;
                (json.to_string().into_bytes(), "application/json")
            }
            value => {
                let text = codec::encode(value).map_err(|error| {
                    StepError::new(
                        error.code(),
                        "invalid",
                        format!("the result cannot be stored: {error}"),
                    )
                })?;
                (text.into_bytes(), resource::EDN)
            }
        };
        Ok(Content {
            bytes,
            content_type: content_type.to_owned(),
            filename: None,
            kept: Vec::new(),
        })
    }
}

fn header(headers: &Value, name: &str) -> Option<String> {
    let map = headers.as_map()?;
    let found = map
        .iter()
        .find(|(key, _)| name_text(key).is_some_and(|key| key.eq_ignore_ascii_case(name)))?;
    found.1.as_str().map(str::to_owned)
}

fn extension(content_type: &str) -> &'static str {
    match content_type.split(';').next().unwrap_or_default().trim() {
        "application/edn" => "edn",
        "application/json" => "json",
        "text/csv" => "csv",
        "text/html" => "html",
        "text/markdown" => "md",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "application/pdf" => "pdf",
        kind if kind.starts_with("text/") => "txt",
        kind if kind.ends_with("+json") => "json",
        _ => "bin",
    }
}

/// A step path inside a resource name.
fn escaped(path: &str) -> String {
    path.chars().fold(String::new(), |mut out, char| {
        if char.is_ascii_alphanumeric() || "-_./:".contains(char) {
            out.push(char);
        } else {
            let mut bytes = [0; 4];
            for byte in char.encode_utf8(&mut bytes).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
        out
    })
}
