//! The channel `:email` of messages: what is sent, checked before anything is.
//!
//! Texts of a flow's data become parts of headers and addresses here. Whatever would begin another header, or another
//! recipient, is refused.

use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;
use jiff::Timestamp;
use lettre::Address;
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message as Mail, MultiPart, SinglePart};
use sha2::{Digest as _, Sha256};

use super::smtp::{self, Letter};
use crate::connections;
use crate::fields::Fields;

/// The keys of the channel.
const KEYS: &[&str] = &[
    "bcc",
    "cc",
    "connection",
    "from",
    "html",
    "reply-to",
    "subject",
    "text",
    "to",
];

const PLACE: &str = ":channels :email";

/// Maximum number of recipients of one message.
const RECIPIENTS_MAX: usize = 100;

pub(super) fn wrong(message: impl Into<String>) -> StepError {
    StepError::config("E1482", message)
}

/// Rejects a channel that cannot be used, before it is rendered.
pub(super) fn check(cx: &StepContext, channel: &Value) -> Result<(), StepError> {
    let fields = Fields::nested(PLACE, channel)?;
    fields.only(KEYS)?;
    for key in ["connection", "from", "subject", "to"] {
        if !fields.has(key) {
            return Err(wrong(format!("`{PLACE}` needs `:{key}`")).hint(
                "as in `{:connection :mail :from \"flows@example.com\" :to \"ada@example.com\" :subject \"...\" :text \"...\"}`",
            ));
        }
    }
    if !fields.has("text") && !fields.has("html") {
        return Err(wrong(format!("`{PLACE}` needs `:text` or `:html`")));
    }
    let name = fields.name("connection")?.unwrap_or_default();
    let connection = connections::find(cx, &name)?;
    smtp::check(&connection, &name)
}

/// Sends a rendered channel, and returns its facts.
pub(super) async fn send(cx: &StepContext, channel: &Value) -> Result<Value, StepError> {
    let fields = Fields::nested(PLACE, channel)?;
    let (letter, id) = letter(cx, fields)?;
    let name = fields.name("connection")?.unwrap_or_default();
    let connection = connections::find(cx, &name)?;
    let count = letter.to.len();
    let status = smtp::send(cx, &connection, letter).await?;
    let keyword = Value::keyword;
    Ok(Value::map([
        (keyword("sent?"), Value::Bool(true)),
        (keyword("status"), Value::Int(i64::from(status))),
        (keyword("recipients"), Value::from(count)),
        (keyword("message-id"), Value::from(id)),
    ]))
}

/// Makes the letter, and its id.
fn letter(cx: &StepContext, fields: Fields<'_>) -> Result<(Letter, String), StepError> {
    let from = one(fields, "from")?.ok_or_else(|| wrong(format!("`{PLACE}` needs `:from`")))?;
    let to = many(fields, "to")?;
    let (cc, bcc) = (many(fields, "cc")?, many(fields, "bcc")?);
    let all: Vec<Address> = [&to, &cc, &bcc]
        .into_iter()
        .flatten()
        .map(|mailbox| mailbox.email.clone())
        .collect();
    if to.is_empty() || all.len() > RECIPIENTS_MAX {
        let count = all.len();
        return Err(wrong(format!(
            "a message has from 1 to {RECIPIENTS_MAX} recipients, not {count}"
        )));
    }
    let subject = line(fields, "subject")?.unwrap_or_default();
    // The same for each attempt, so that who gets it twice can tell.
    let digest = Sha256::digest(cx.idempotency_key().as_bytes());
    let digits: String = digest[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let id = format!("<{digits}@{}>", from.email.domain());
    let now = Timestamp::from_millisecond(cx.now_ms()).unwrap_or(Timestamp::UNIX_EPOCH);
    let mut mail = Mail::builder()
        .from(from.clone())
        .subject(subject)
        .message_id(Some(id.clone()))
        .date(now.into());
    for mailbox in to {
        mail = mail.to(mailbox);
    }
    for mailbox in cc {
        mail = mail.cc(mailbox);
    }
    if let Some(mailbox) = one(fields, "reply-to")? {
        mail = mail.reply_to(mailbox);
    }
    let part = |key: &str, type_: ContentType| {
        let text = fields.text(key)?.map(str::to_owned);
        Ok::<_, StepError>(text.map(|text| SinglePart::builder().header(type_).body(text)))
    };
    let built = match (
        part("text", ContentType::TEXT_PLAIN)?,
        part("html", ContentType::TEXT_HTML)?,
    ) {
        (Some(text), Some(html)) => {
            mail.multipart(MultiPart::alternative().singlepart(text).singlepart(html))
        }
        (Some(part), None) | (None, Some(part)) => mail.singlepart(part),
        (None, None) => return Err(wrong(format!("`{PLACE}` needs `:text` or `:html`"))),
    };
    let mail = built.map_err(|error| wrong(format!("the message cannot be written: {error}")))?;
    let letter = Letter {
        from: from.email,
        to: all,
        text: mail.formatted(),
        content: crate::json::to_json(fields.map)
            .map(|content| content.to_string().into_bytes())
            .unwrap_or_default(),
    };
    Ok((letter, id))
}

/// Reads a text that becomes a header: one line without control characters.
fn line<'a>(fields: Fields<'a>, key: &str) -> Result<Option<&'a str>, StepError> {
    let Some(text) = fields.text(key)? else {
        return Ok(None);
    };
    check_line(key, text)?;
    Ok(Some(text))
}

fn check_line(key: &str, text: &str) -> Result<(), StepError> {
    match text.chars().any(char::is_control) {
        true => Err(wrong(format!(
            "`{PLACE} :{key}` has a line break or another control character"
        ))
        .hint("a header is one line; text from outside could begin another header there")),
        false => Ok(()),
    }
}

fn mailbox(key: &str, text: &str) -> Result<Mailbox, StepError> {
    check_line(key, text)?;
    let found: Option<Mailbox> = text.trim().parse().ok();
    found
        .filter(|found| found.email.to_string().is_ascii())
        .ok_or_else(|| {
            wrong(format!(
                "`{PLACE} :{key}` has `{text}`, which is not one address of ASCII"
            ))
            .hint("write `ada@example.com` or `Ada <ada@example.com>`; several go into a vector")
        })
}

fn one(fields: Fields<'_>, key: &str) -> Result<Option<Mailbox>, StepError> {
    let text = fields.text(key)?;
    text.map(|text| mailbox(key, text)).transpose()
}

fn many(fields: Fields<'_>, key: &str) -> Result<Vec<Mailbox>, StepError> {
    let texts = fields.texts(key)?;
    texts.iter().map(|text| mailbox(key, text)).collect()
}
