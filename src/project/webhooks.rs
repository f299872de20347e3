//! Connections that send events: `:webhook` of a connection in `flowstone.edn`, and the event that a request is.
//!
//! `{:connections {:gh {:webhook {:type :github :secret-ref :gh-hook}}}}` receives at `/api/hooks/gh`. Nothing here verifies a
//! request; a proof only has names of secrets.

use flowstone_engine::interfaces::Received;
use flowstone_engine::proofs::Proven;
use flowstone_flow::proof::Proof;
use flowstone_lang::value::Value;
use flowstone_model::codec::digest_bytes;
use flowstone_model::names::name_of;
use serde_json::Value as Json;

/// The systems whose events are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    Github,
    Stripe,
    Slack,
    /// Any other that signs its requests with a shared secret.
    Signed,
}

impl Sender {
    pub fn name(self) -> &'static str {
        match self {
            Sender::Github => "github",
            Sender::Stripe => "stripe",
            Sender::Slack => "slack",
            Sender::Signed => "webhook",
        }
    }
}

/// A connection with `:webhook`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookConnection {
    pub name: String,
    pub sender: Sender,
    pub proof: Proof,
    /// Where the name of the event is, for other senders.
    event: Place,
    id: Option<Place>,
}

/// A value of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Header(String),
    /// A JSON Pointer into the body.
    Body(String),
}

/// An event as a request says it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedEvent {
    pub id: String,
    /// The name, below the connection.
    pub name: String,
    pub payload: Json,
}

/// Returns the connections with `:webhook`, by name; for one whose settings are wrong, what is wrong.
pub fn webhooks(settings: &Value) -> Vec<(String, Result<WebhookConnection, String>)> {
    let connections = settings.get("connections").and_then(Value::as_map);
    let entries = connections.into_iter().flat_map(|map| map.iter());
    let mut found: Vec<(String, Result<WebhookConnection, String>)> = entries
        .filter_map(|(name, connection)| {
            let name = name_of(name)?.to_string();
            let read = read(&name, connection.get("webhook")?);
            Some((name, read))
        })
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

fn read(name: &str, webhook: &Value) -> Result<WebhookConnection, String> {
    const KEYS: &[&str] = &[
        "algo",
        "event",
        "header",
        "id",
        "secret-ref",
        "separator",
        "signature-format",
        "signature-header",
        "signature-prefix",
        "signed-message",
        "timestamp-header",
        "timestamp-max-skew-ms",
        "type",
    ];
    let keys = webhook.as_map().into_iter().flat_map(|map| map.iter());
    let mut keys = keys.filter_map(|(key, _)| name_of(key));
    if let Some(other) = keys.find(|key| !KEYS.contains(&&**key)) {
        return Err(format!("`:webhook` has no key `:{other}`"));
    }
    let kind = webhook.get("type").and_then(name_of);
    let sender = match kind.as_deref() {
        Some("github") => Sender::Github,
        Some("stripe") => Sender::Stripe,
        Some("slack") => Sender::Slack,
        Some("hmac-sha256" | "signature" | "standard-webhooks") => Sender::Signed,
        _ => {
            return Err(
                "`:webhook` needs `:type`: :github, :stripe, :slack, :hmac-sha256, :standard-webhooks or :signature"
                    .to_owned(),
            );
        }
    };
    let proof = Proof::read(webhook).map_err(|why| why.replace("`:auth`", "`:webhook`"))?;
    Ok(WebhookConnection {
        name: name.to_owned(),
        sender,
        proof,
        event: place(webhook, "event")?.unwrap_or(Place::Body("/type".to_owned())),
        id: place(webhook, "id")?,
    })
}

fn place(webhook: &Value, key: &str) -> Result<Option<Place>, String> {
    let Some(given) = webhook.get(key) else {
        return Ok(None);
    };
    let text = |name: &str| {
        given
            .get(name)
            .and_then(Value::as_str)
            .map(|it| it.to_string())
    };
    match (text("header"), text("body")) {
        (Some(header), None) => Ok(Some(Place::Header(header.to_ascii_lowercase()))),
        (None, Some(pointer)) if pointer.starts_with('/') => Ok(Some(Place::Body(pointer))),
        _ => Err(format!(
            "`:{key}` of `:webhook` takes {{:header \"X-Event\"}} or {{:body \"/type\"}}"
        )),
    }
}

impl WebhookConnection {
    /// Returns the event of a request that was proven.
    ///
    /// # Errors
    /// A message that says what the request lacks.
    pub fn event_of(&self, received: &Received, proven: &Proven) -> Result<ReceivedEvent, String> {
        let payload = body_of(received)?;
        let at = |place: &Place| match place {
            Place::Header(name) => received.header(name).map(str::to_owned),
            Place::Body(pointer) => payload.pointer(pointer).and_then(text_of),
        };
        let body = |pointer: &str| at(&Place::Body(pointer.to_owned()));
        let name = match self.sender {
            Sender::Github => at(&Place::Header("x-github-event".to_owned())),
            Sender::Stripe => body("/type"),
            Sender::Slack => {
                body("/event/type").or_else(|| body("/command").map(|_| "command".to_owned()))
            }
            Sender::Signed => at(&self.event),
        };
        let name = name.filter(|name| is_event_name(name));
        let name = name.ok_or("the request does not name its event")?;
        let own = match self.sender {
            Sender::Stripe => body("/id"),
            Sender::Slack => body("/event_id"),
            // The header with the id of a delivery is not signed.
            Sender::Github => None,
            Sender::Signed => match (&self.id, &self.proof) {
                (Some(id), _) => at(id),
                (None, Proof::StandardWebhooks { .. }) => {
                    received.header("webhook-id").map(str::to_owned)
                }
                (None, _) => None,
            },
        };
        let own = own.map(|own| digest_bytes(own.as_bytes()));
        let signed = proven
            .signed
            .as_ref()
            .map(|signed| digest_bytes(signed.as_bytes()));
        let id = own
            .or(signed)
            .unwrap_or_else(|| digest_bytes(&received.body));
        Ok(ReceivedEvent {
            id: format!("evt_{}", id.get(..32).unwrap_or(&id)),
            name,
            payload,
        })
    }
}

/// Returns the body: JSON, or a form whose member `payload` may be JSON.
fn body_of(received: &Received) -> Result<Json, String> {
    if let Ok(json) = serde_json::from_slice(&received.body) {
        return Ok(json);
    }
    let is_form = received
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
    let text = std::str::from_utf8(&received.body).ok().filter(|_| is_form);
    let text = text.ok_or("the body is neither JSON nor a form")?;
    let pairs = text.split('&').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        Some((decoded(name)?, Json::String(decoded(value)?)))
    });
    let members: serde_json::Map<String, Json> = pairs.collect();
    let payload = members.get("payload").and_then(Json::as_str);
    let payload = payload.and_then(|text| serde_json::from_str(text).ok());
    Ok(payload.unwrap_or(Json::Object(members)))
}

/// Decodes a part of a form.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

fn text_of(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Tells whether a name can be a part of the key of an event.
pub fn is_event_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !name.is_empty() && name.len() <= 120 && name.bytes().all(is_plain)
}
