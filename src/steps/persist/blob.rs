//! `:persist {:type :blob}`: a step's value as a blob, with a reference that has every key that flows look for.

mod config;
mod format;
mod reference;

use flowstone_flow::blob::{BlobOp, BlobRow};
use flowstone_flow::ports::{StoreOp, StoredBlob};
use flowstone_flow::resource::media::{self, Format};
use flowstone_flow::resource::{ResourceLimits, step_output};
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;

use crate::http::store::StoredBody;
use crate::json::name_text;
use crate::kv::encoded;
use crate::persist::code::UNFIT;
use crate::resource;

pub(super) use config::{Blob, KEYS, plan};

/// The bytes to store.
enum Payload {
    Here(Vec<u8>),
    /// A body that was received in parts and is already stored.
    Stored(StoredBlob),
}

impl Payload {
    fn size(&self) -> u64 {
        match self {
            Payload::Here(bytes) => bytes.len() as u64,
            Payload::Stored(blob) => blob.size,
        }
    }
}

/// The content of a step's value to store.
struct Content {
    payload: Payload,
    content_type: String,
    filename: Option<String>,
    /// The keys that remain in the step's value.
    kept: Vec<(&'static str, Value)>,
}

impl Blob {
    /// Stores the value's bytes; the commit registers them.
    pub(super) async fn store(&self, cx: &StepContext, value: Value) -> Result<StoreOp, StepError> {
        let limits = ResourceLimits::of(cx.settings());
        self.check_bucket(cx, &limits)?;
        let content = self.content(cx, &value)?;
        let bytes = content.payload.size();
        let most = limits.max_blob(self.tier);
        if bytes > most {
            return Err(StepError::new(
                UNFIT,
                "too-large",
                format!("the result has {bytes} bytes, but a blob can have at most {most}"),
            )
            .hint("store a smaller result, or raise `:resources :max-retained` in flowstone.edn"));
        }
        let content_type = self.content_type.clone().unwrap_or(content.content_type);
        let filename = self
            .filename
            .clone()
            .or(content.filename)
            .unwrap_or_else(|| format!("{}.{}", cx.step_id(), extension(&content_type)));
        let uri = step_output(&cx.pass_name(), &cx.path().to_string());
        let hash = match content.payload {
            Payload::Here(bytes) => cx.own_stores().blobs.put(bytes).await?,
            Payload::Stored(blob) => blob.hash,
        };
        let blob = BlobRow {
            filename: Some(filename),
            content_type: Some(content_type),
            tier: self.tier,
            expires_ms: limits.expires_ms(self.tier, cx.now_ms()),
            run: Some(cx.run_id().to_string()),
            path: Some(cx.path().to_string()),
            bucket: self.bucket.clone(),
            search: self.search.clone(),
            ..BlobRow::new(uri, hash, bytes)
        };
        let mut facts = reference::facts(&blob);
        if let Some(ttl) = self.signed_ttl {
            facts.push(("url", Value::from(reference::link(cx, &blob.uri, ttl)?)));
        }
        facts.extend(content.kept);
        Ok(StoreOp::Blob(BlobOp::Register {
            value: encoded(&resource::reference(&blob.uri, &facts))?,
            blob: Box::new(blob),
        }))
    }

    fn content(&self, cx: &StepContext, value: &Value) -> Result<Content, StepError> {
        if let (true, Some(body)) = (
            cx.kind() == "http" && value.get("status").is_some(),
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
            if let Some(stored) = StoredBody::of(body) {
                return Ok(Content {
                    payload: Payload::Stored(stored.blob.clone()),
                    content_type: stored
                        .content_type
                        .clone()
                        .unwrap_or_else(|| "application/octet-stream".to_owned()),
                    filename: stored.filename.clone(),
                    kept,
                });
            }
            let media_type = value
                .get("headers")
                .and_then(|headers| header(headers, "content-type"));
            let content = match media_type.as_deref().and_then(Format::of) {
                Some(format @ (Format::Json | Format::JsonLines))
                    if self.wanted().is_none() && format::is_plain(body) =>
                {
                    self.data(cx, body, media_type.as_deref().unwrap_or_default(), format)?
                }
                _ => self.plain(cx, body)?,
            };
            let media_type = media_type.and_then(|media_type| match body {
                // Stored as UTF-8, whatever its original encoding was.
                Value::Text(_) => {
                    let kind = media_type.split(';').next().unwrap_or_default().trim();
                    Some(format!("{kind}; charset=utf-8"))
                }
                Value::Object(_) => Some(media_type),
                _ => None,
            });
            return Ok(Content {
                content_type: media_type.unwrap_or(content.content_type),
                kept,
                ..content
            });
        }
        // A file in the form that our own steps return, such as the CSV of a table.
        if let (Some(Value::Text(text)), Some(content_type)) = (
            value.get("content"),
            value.get("content-type").and_then(Value::as_str),
        ) {
            return Ok(Content {
                payload: Payload::Here(text.as_bytes().to_vec()),
                content_type: content_type.to_owned(),
                filename: value
                    .get("filename")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
                kept: Vec::new(),
            });
        }
        self.plain(cx, value)
    }

    /// Returns the content type that the flow sets, directly or by the file's name.
    fn wanted(&self) -> Option<&str> {
        let by_name = || media::of_name(self.filename.as_deref()?);
        self.content_type.as_deref().or_else(by_name)
    }

    fn plain(&self, cx: &StepContext, value: &Value) -> Result<Content, StepError> {
        let here = |bytes: Vec<u8>, content_type: &str| Content {
            payload: Payload::Here(bytes),
            content_type: content_type.to_owned(),
            filename: None,
            kept: Vec::new(),
        };
        match value {
            Value::Text(text) => {
                let text = text.as_str();
                let by_name = self.filename.as_deref().and_then(media::of_name);
                let by_name = by_name.filter(|kind| format::holds(kind, text));
                let kind = by_name.unwrap_or("text/plain; charset=utf-8");
                Ok(here(text.as_bytes().to_vec(), kind))
            }
            value if let Some(bytes) = value.as_bytes() => {
                let by_name = self.filename.as_deref().and_then(media::of_name);
                Ok(here(bytes.into_owned(), by_name.unwrap_or(media::OCTETS)))
            }
            value => match self.wanted() {
                None => self.data(cx, value, resource::EDN, Format::Edn),
                Some(kind) => match Format::of(kind) {
                    Some(format) => self.data(cx, value, kind, format),
                    None => Err(format::not_data(value, kind)),
                },
            },
        }
    }

    fn data(
        &self,
        cx: &StepContext,
        value: &Value,
        content_type: &str,
        format: Format,
    ) -> Result<Content, StepError> {
        Ok(Content {
            payload: Payload::Here(format::write(cx, value, format)?),
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
    if let Some(extension) = Format::of(content_type).and_then(Format::extension) {
        return extension;
    }
    match media::essence(content_type).as_str() {
        "text/html" => "html",
        "text/markdown" => "md",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "application/pdf" => "pdf",
        kind if kind.starts_with("text/") => "txt",
        _ => "bin",
    }
}
