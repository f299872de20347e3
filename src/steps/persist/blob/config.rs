//! The keys of `:persist {:type :blob}`.

use flowstone_flow::resource::sign::{DEFAULT_TTL, TTL};
use flowstone_flow::resource::{ResourceLimits, SearchEntry, Tier};
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;

use crate::fields::{Fields, listed};
use crate::json::{items, name_text};
use crate::text::{brief, nearest};

/// The keys of the config.
pub(in super::super) const KEYS: &[&str] = &[
    "bucket",
    "content-type",
    "filename",
    "name",
    "search-index",
    "signed-url",
    "tier",
];
/// The bucket that always exists.
const DEFAULT_BUCKET: &str = "default";
/// The step types that stream bytes.
const STREAMING: &[&str] = &["http"];
/// Maximum number of characters of the text for a search index.
const MAX_TEXT: usize = 100_000;
const MAX_TAGS: usize = 100;

/// How to store a blob.
pub(in super::super) struct Blob {
    pub(super) filename: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) tier: Tier,
    pub(super) bucket: Option<String>,
    pub(super) search: Option<SearchEntry>,
    /// The lifetime of a signed link, in seconds.
    pub(super) signed_ttl: Option<i64>,
}

/// Reads the config.
pub(in super::super) fn plan(kind: &str, fields: Fields<'_>) -> Result<Blob, StepError> {
    Ok(Blob {
        filename: filename(fields)?,
        content_type: content_type(fields)?,
        tier: tier(kind, fields)?,
        bucket: bucket(fields)?,
        search: search(fields)?,
        signed_ttl: signed_ttl(fields)?,
    })
}

fn wrong(message: impl Into<String>) -> StepError {
    StepError::config("E0763", message.into())
}

fn tier(kind: &str, fields: Fields<'_>) -> Result<Tier, StepError> {
    let Some(name) = fields.name("tier")? else {
        return Ok(Tier::Retained);
    };
    match Tier::from_name(&name) {
        Some(Tier::Ephemeral) if !STREAMING.contains(&kind) => Err(wrong(format!(
            "`:tier :ephemeral` is for steps that stream, and `:{kind}` does not"
        ))
        .hint("use `:tier :retained`")),
        Some(tier) => Ok(tier),
        None => Err(wrong(format!(
            "`:tier` is `:retained` or `:ephemeral`, not `:{name}`"
        ))),
    }
}

fn filename(fields: Fields<'_>) -> Result<Option<String>, StepError> {
    let given = fields.text("filename")?;
    let name = fields.text("name")?;
    if let (Some(given), Some(name)) = (given, name)
        && given != name
    {
        return Err(wrong("`:filename` and `:name` say different things")
            .hint("`:name` is another name of `:filename`: give one of them"));
    }
    let name = given.or(name);
    let is_bad = |name: &&str| {
        name.is_empty()
            || name.len() > 255
            || [".", ".."].contains(name)
            || name.contains(['/', '\\'])
            || name.contains(char::is_control)
    };
    match name.filter(is_bad) {
        Some(bad) => Err(wrong(format!(
            "`:filename` is a plain name without folders, not {}",
            brief(&Value::from(bad))
        ))),
        None => Ok(name.map(str::to_owned)),
    }
}

fn content_type(fields: Fields<'_>) -> Result<Option<String>, StepError> {
    let Some(given) = fields.text("content-type")? else {
        return Ok(None);
    };
    let essence = given.split(';').next().unwrap_or_default().trim();
    let is_token = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|char| char.is_ascii_alphanumeric() || "!#$&^_.+-".contains(char))
    };
    let is_good = essence
        .split_once('/')
        .is_some_and(|(kind, rest)| is_token(kind) && is_token(rest))
        && !given.contains(char::is_control);
    match is_good {
        true => Ok(Some(given.to_owned())),
        false => Err(wrong(format!(
            "`:content-type` is a media type such as \"text/csv\", not {}",
            brief(&Value::from(given))
        ))),
    }
}

fn bucket(fields: Fields<'_>) -> Result<Option<String>, StepError> {
    let Some(name) = fields.name("bucket")? else {
        return Ok(None);
    };
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
    if name.is_empty() || name.len() > 63 || !name.chars().all(is_plain) {
        return Err(wrong(format!(
            "`:bucket` is a name of letters, digits, `-`, `_` and `.`, not {}",
            brief(&Value::from(&*name))
        )));
    }
    Ok((*name != *DEFAULT_BUCKET).then(|| name.to_string()))
}

fn search(fields: Fields<'_>) -> Result<Option<SearchEntry>, StepError> {
    let Some(given) = fields.get("search-index") else {
        return Ok(None);
    };
    let given = Fields::nested(":persist :search-index", given)?;
    given.only(&["contents", "source-label", "tags", "text"])?;
    let text = given.text("text")?;
    if let Some(long) = text.filter(|text| text.chars().count() > MAX_TEXT) {
        return Err(wrong(format!(
            "`:search-index :text` has at most {MAX_TEXT} characters, but this one has {}",
            long.chars().count()
        )));
    }
    let tags = given.get("tags").map(|tags| {
        items(tags)
            .and_then(|tags| tags.iter().map(name_text).collect::<Option<Vec<_>>>())
            .ok_or_else(|| {
                wrong(format!(
                    "`:search-index :tags` takes names, not {}",
                    brief(tags)
                ))
                .hint("as in `:tags [\"invoice\" :may]`")
            })
    });
    let tags = tags.transpose()?.unwrap_or_default();
    if tags.len() > MAX_TAGS {
        return Err(wrong(format!(
            "`:search-index :tags` takes at most {MAX_TAGS} tags, not {}",
            tags.len()
        )));
    }
    Ok(Some(SearchEntry {
        text: text.map(str::to_owned),
        tags,
        source_label: given.text("source-label")?.map(str::to_owned),
        without_contents: given.bool("contents")? == Some(false),
    }))
}

fn signed_ttl(fields: Fields<'_>) -> Result<Option<i64>, StepError> {
    match fields.get("signed-url") {
        None | Some(Value::Bool(false)) => Ok(None),
        Some(Value::Bool(true)) => Ok(Some(DEFAULT_TTL)),
        Some(given @ Value::Map(_)) => {
            let given = Fields::nested(":persist :signed-url", given)?;
            given.only(&["ttl-seconds"])?;
            let ttl = given.int("ttl-seconds", *TTL.start(), *TTL.end())?;
            Ok(Some(ttl.unwrap_or(DEFAULT_TTL)))
        }
        Some(other) => Err(wrong(format!(
            "`:signed-url` takes true or a map, not {}",
            other.kind()
        ))
        .hint("as in `:signed-url {:ttl-seconds 900}`")),
    }
}

impl Blob {
    /// Rejects a bucket that the project does not have, if the project lists its buckets.
    pub(super) fn check_bucket(
        &self,
        cx: &StepContext,
        limits: &ResourceLimits,
    ) -> Result<(), StepError> {
        let Some(bucket) = &self.bucket else {
            return Ok(());
        };
        if limits.buckets.is_empty() || limits.buckets.contains(bucket) {
            return Ok(());
        }
        tracing::debug!(step = %cx.path(), %bucket, "unknown bucket");
        let known: Vec<&str> = limits.buckets.iter().map(String::as_str).collect();
        let error = wrong(format!("there is no bucket `{bucket}`"));
        Err(match nearest(bucket, known.iter().copied()) {
            Some(near) => error.hint(format!("did you mean `:{near}`?")),
            None => error.hint(format!(
                "flowstone.edn has {} and `:default`",
                listed(&known)
            )),
        })
    }
}
