//! PDF documents and sounds in messages: resources of Flowstone's own stores and `data:` addresses, checked before they
//! are sent.
//!
//! Which types a provider takes is known by its wire format. The bytes must be of the type that they are said to have.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flowstone_flow::step::{StepContext, StepError};

use super::call::Part;
use super::family::data_url;
use super::images::Sight;
use crate::fields::{Fields, listed};
use crate::resource;

/// The code of a file that cannot be sent.
const CODE: &str = "E1313";

/// Maximum size of a file, in bytes: what the strictest provider accepts in one request, before Base64.
const MOST_BYTES: usize = 20 << 20;

pub(super) const PDF: &str = "application/pdf";
pub(super) const MP3: &str = "audio/mpeg";
pub(super) const WAV: &str = "audio/wav";

/// Other names of the types.
const ALIASES: &[(&str, &str)] = &[
    ("audio/mp3", MP3),
    ("audio/vnd.wave", WAV),
    ("audio/wave", WAV),
    ("audio/x-wav", WAV),
];

fn unfit(message: impl Into<String>) -> StepError {
    StepError::config(CODE, message)
}

/// Reads a part of the type `:file`.
///
/// # Errors
/// E1313 if the provider does not take such files, the file is too large, or its bytes are of another type.
pub(super) async fn read(
    cx: &StepContext,
    fields: Fields<'_>,
    sight: &Sight<'_>,
) -> Result<Part, StepError> {
    fields.only(&["name", "resource", "type", "url"])?;
    let (kind, bytes, name) = match (fields.get("resource"), fields.text("url")?) {
        (Some(reference), None) => {
            let row = resource::find(cx, reference).await?;
            if row.size.is_some_and(|size| size > MOST_BYTES as u64) {
                return Err(too_large(&row.uri));
            }
            let uri = row.uri;
            let (row, bytes) = resource::bytes(cx, reference).await?;
            (row.content_type.unwrap_or_default(), bytes, uri)
        }
        (None, Some(url)) => {
            let (kind, text) = data_url(url).ok_or_else(|| {
                unfit("the `:url` of a file is a `data:` address")
                    .hint("store the file, and give its reference: `{:type :file :resource ref}`")
            })?;
            let bytes = STANDARD.decode(text.trim()).map_err(|error| {
                unfit(format!(
                    "the `data:` address of a file cannot be decoded: {error}"
                ))
            })?;
            (kind, bytes, "file".to_owned())
        }
        (Some(_), Some(_)) | (None, None) => {
            return Err(unfit("a file needs either a `:resource` or a `:url`"));
        }
    };
    let kind = plain(&kind);
    check(&kind, sight)?;
    if bytes.len() > MOST_BYTES {
        return Err(too_large(&name));
    }
    if !is_of(&kind, &bytes) {
        return Err(unfit(format!("the bytes of `{name}` are not `{kind}`"))
            .hint("store the file again, with its own content type"));
    }
    let name = fields.text("name")?.map_or(name, str::to_owned);
    Ok(Part::File {
        data: STANDARD.encode(&bytes),
        name: file_name(&name, &kind),
        kind,
    })
}

/// Returns a content type without parameters, under its usual name.
fn plain(kind: &str) -> String {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    let alias = ALIASES.iter().find(|(other, _)| *other == kind);
    alias.map_or(kind, |(_, usual)| (*usual).to_owned())
}

/// Rejects a type that the provider does not take.
fn check(kind: &str, sight: &Sight<'_>) -> Result<(), StepError> {
    if sight.files.contains(&kind) {
        return Ok(());
    }
    let message = format!(
        "`{}` of `:{}` does not accept files of type `{kind}`",
        sight.model, sight.provider
    );
    let error = unfit(message);
    Err(match sight.files {
        [] => error.hint(
            "PDF documents can be sent to `:anthropic`, `:openai`, `:openrouter` and `:google`",
        ),
        taken => error.hint(format!("it accepts {}", listed(taken))),
    })
}

fn too_large(name: &str) -> StepError {
    unfit(format!("`{name}` is larger than {MOST_BYTES} bytes")).hint("send a part of it")
}

/// Tells whether bytes begin as a file of this type does.
fn is_of(kind: &str, bytes: &[u8]) -> bool {
    match kind {
        PDF => bytes.starts_with(b"%PDF-"),
        WAV => bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WAVE"),
        MP3 => {
            let is_frame = matches!(bytes, [0xff, second, ..] if second & 0xe0 == 0xe0);
            bytes.starts_with(b"ID3") || is_frame
        }
        _ => false,
    }
}

/// Returns the last part of a name, with the ending of the type.
fn file_name(name: &str, kind: &str) -> String {
    let ending = match kind {
        PDF => ".pdf",
        MP3 => ".mp3",
        _ => ".wav",
    };
    let name = name.rsplit('/').next().unwrap_or_default();
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    let name: String = name
        .chars()
        .map(|it| if fits(it) { it } else { '-' })
        .take(100)
        .collect();
    match name.ends_with(ending) {
        true => name,
        false => format!("{name}{ending}"),
    }
}
