//! `:persist {:type :blob}` of an answer: its body is streamed into the blob store, and is never in memory as a whole.
//!
//! The result is a host object that only [`crate::persist`] opens. It names a blob that nothing refers to yet; if it is
//! dropped, the file is found and removed like any other without a name.

use std::time::Duration;

use flowstone_flow::ports::StoredBlob;
use flowstone_flow::resource::media::{self, Format};
use flowstone_flow::resource::{ResourceLimits, Tier};
use flowstone_flow::step::{Progress, StepContext, StepError};
use flowstone_lang::value::{HostObject, Object, Value};

use super::client::Incoming;
use super::decode::ResponseAs;
use super::error::{Answer, header};
use super::settings::Usual;
use crate::fields::Fields;

/// Default timeout of a large answer.
const HOURS: Duration = Duration::from_secs(3 * 3600);
/// Default idle timeout of a large answer.
const IDLE: Duration = Duration::from_secs(60);
/// Progress is reported each time after this many bytes.
const REPORT_EVERY: u64 = 4 << 20;

/// The destination of an answer's body.
pub(super) struct Target {
    most: u64,
    /// Whether the body is streamed to the store; otherwise it is read first, and must match `:response-as`.
    pub is_raw: bool,
}

impl Target {
    /// Tells whether the bytes of a body are stored unseen: if nothing may check or change them first.
    pub(super) fn of(cx: &StepContext, fields: Fields<'_>) -> Result<Option<Target>, StepError> {
        let Some(persist) = fields.map("persist")? else {
            return Ok(None);
        };
        let persist = Fields::nested(":persist", persist)?;
        let is_blob = persist.name("type")?.as_deref() == Some("blob");
        let is_seen = ["expect", "parser-fn", "review"]
            .iter()
            .any(|key| fields.has(key));
        let (is_raw, format) = match fields.name("response-as")?.as_deref() {
            None | Some("auto" | "bytes" | "text") => (true, None),
            Some("json") => (false, Some(Format::Json)),
            Some("jsonl") => (false, Some(Format::JsonLines)),
            Some(_) => return Ok(None),
        };
        if !is_blob || is_seen {
            return Ok(None);
        }
        if let Some(format) = format {
            let name = persist.text("filename")?.or(persist.text("name")?);
            let by_name = name.and_then(media::of_name);
            let wanted = persist.text("content-type")?.or(by_name);
            if wanted.is_some_and(|wanted| Format::of(wanted) != Some(format)) {
                return Ok(None);
            }
        }
        let tier = persist.name("tier")?;
        let tier = tier.and_then(|tier| Tier::from_name(&tier));
        let limits = ResourceLimits::of(cx.settings());
        let most = limits.max_blob(tier.unwrap_or_default());
        Ok(Some(Target { most, is_raw }))
    }

    /// Raises the size limit to that of a blob, unless another one is set.
    pub(super) fn widen(&self, usual: &mut Usual) {
        if !self.is_raw {
            return;
        }
        usual.limits.max_bytes = match usual.has_max_bytes {
            true => usual.limits.max_bytes.min(self.most),
            false => self.most,
        };
        if !usual.has_timeout {
            usual.limits.timeout = HOURS;
        }
    }

    /// Stores the body of an answer.
    ///
    /// # Errors
    /// When it is too large, late or cut off, or the store fails: nothing is kept then.
    pub(super) async fn store(
        &self,
        cx: &StepContext,
        mut incoming: Incoming,
    ) -> Result<Value, StepError> {
        incoming.fits()?;
        let total = header(&incoming.headers, "content-length").and_then(|it| it.parse().ok());
        let mut writer = cx.own_stores().blobs.begin().await?;
        let (mut done, mut reported) = (0, 0);
        while let Some(chunk) = incoming.next(Some(IDLE)).await? {
            writer.write(&chunk).await?;
            done += chunk.len() as u64;
            if done - reported >= REPORT_EVERY {
                reported = done;
                cx.emit(Progress::Count { done, total });
            }
        }
        let stored = StoredBody {
            blob: writer.finish().await?,
            content_type: header(&incoming.headers, "content-type").map(str::to_owned),
            filename: header(&incoming.headers, "content-disposition").and_then(filename),
        };
        Ok(Object::HostObject(Box::new(stored)).into())
    }
}

/// Tells whether a body is text that every JSON parser accepts.
pub(super) fn is_utf8(body: &[u8]) -> bool {
    let text = std::str::from_utf8(body).unwrap_or_default();
    !text.is_empty() && !text.starts_with('\u{feff}')
}

/// Stores the bytes of a JSON answer unchanged. A wrong content type of the server is corrected.
pub(super) async fn keep(
    cx: &StepContext,
    answer: &Answer,
    wanted: ResponseAs,
) -> Result<Value, StepError> {
    let mut writer = cx.own_stores().blobs.begin().await?;
    writer.write(&answer.body).await?;
    let declared = answer.header("content-type");
    let (format, usual) = match wanted {
        ResponseAs::JsonLines => (Format::JsonLines, "application/x-ndjson"),
        _ => (Format::Json, "application/json"),
    };
    let declared = declared.filter(|declared| Format::of(declared) == Some(format));
    let stored = StoredBody {
        blob: writer.finish().await?,
        content_type: Some(declared.unwrap_or(usual).to_owned()),
        filename: answer.header("content-disposition").and_then(filename),
    };
    Ok(Object::HostObject(Box::new(stored)).into())
}

/// The body of an answer in the blob store.
pub(crate) struct StoredBody {
    pub blob: StoredBlob,
    pub content_type: Option<String>,
    pub filename: Option<String>,
}

impl StoredBody {
    /// Returns the stored body in `:body` of a step's value, if there is one.
    pub(crate) fn of(body: &Value) -> Option<&StoredBody> {
        match body {
            Value::Object(object) => match &**object {
                Object::HostObject(host) => host.downcast(),
                _ => None,
            },
            _ => None,
        }
    }
}

impl HostObject for StoredBody {
    fn class_name(&self) -> &'static str {
        "flowstone.StoredBody"
    }

    fn text(&self) -> String {
        format!("a body of {} bytes", self.blob.size)
    }
}

/// Returns the server's name for the content, without folders.
fn filename(disposition: &str) -> Option<String> {
    let mut plain = None;
    for part in disposition.split(';').skip(1) {
        let Some((name, value)) = part.split_once('=') else {
            continue;
        };
        let value = value.trim();
        match name.trim().to_ascii_lowercase().as_str() {
            // Percent-encoded, after the charset and the language.
            "filename*" => {
                let encoded = value.rsplit('\'').next().unwrap_or_default();
                let decoded = format!("name={}", encoded.replace('+', "%2B"));
                let name = reqwest::Url::parse(&format!("http://name/?{decoded}")).ok()?;
                let found = name.query_pairs().next().map(|(_, name)| name.into_owned());
                if let Some(found) = found.as_deref().and_then(clean) {
                    return Some(found);
                }
            }
            "filename" => plain = clean(value.trim_matches('"')),
            _ => {}
        }
    }
    plain
}

fn clean(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last.chars().filter(|it| !it.is_control()).collect();
    let name = name.trim_matches([' ', '.']);
    let is_good = !name.is_empty() && name.len() <= 200;
    is_good.then(|| name.to_owned())
}
