//! Requests to interfaces: proven, read into the input of a run, and recognised when they come again.

mod content;

use std::net::IpAddr;

use flowstone_flow::interfaces::{Dedupe, Interface, InterfaceKind};
use flowstone_flow::proof::Proof;
use flowstone_lang::value::Value;

use crate::codec;
use crate::engine::{Engine, StartedInstallation};
use crate::error::EngineError;
use crate::flow::{Flow, Invocation, name_of};
use crate::outside;
use crate::ports::{NewReceipt, PastDelivery};
use crate::proofs::{Presented, Proven, Unproven, verify};
use crate::redact::SECRET;
use crate::sealed;
use content::{Content, Stored};

/// What an input has from its request.
const REQUEST: &str = "flow/request";
/// Bodies above this size are stored.
const BODY_KEPT: usize = 64 << 10;

/// A request to an interface, with the exact bytes of its body.
#[derive(Debug, Clone, Default)]
pub struct Received {
    pub method: String,
    /// As it was sent, without the query.
    pub path: String,
    /// Parameters of the path.
    pub parameters: Vec<(String, String)>,
    /// Decoded, in order.
    pub query: Vec<(String, String)>,
    /// Names are in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    /// The sender, as far as trusted proxies tell.
    pub address: Option<IpAddr>,
    /// Nothing of it may be stored as a file: it is for an installation, whose runs do not reach files of the project.
    pub without_files: bool,
}

/// Why a request starts nothing.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    #[error("the secret `{name}` is not set")]
    Unset { name: String },
    #[error("the request does not prove who sends it")]
    Unproven(Unproven),
    #[error("`{name}` is given twice")]
    Twice { name: String },
    #[error("the flow has no input `{name}`")]
    UnknownInput { name: String, known: Vec<String> },
    #[error("{0}")]
    Malformed(String),
    #[error("a body of type `{0}` cannot be read")]
    MediaType(String),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl Received {
    /// Returns the value of a header that is there once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let value = found.next()?;
        let value = std::str::from_utf8(&value.1).ok()?;
        found.next().is_none().then_some(value)
    }

    /// Answers the question by which Slack finds out whether an address is the receiver's.
    pub fn challenge(&self, proof: &Proof) -> Option<String> {
        if !matches!(proof, Proof::Slack { .. }) {
            return None;
        }
        let json: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        let is_question = json.get("type")?.as_str()? == "url_verification";
        let challenge = json.get("challenge")?.as_str()?;
        is_question.then(|| challenge.to_owned())
    }
}

impl Engine {
    /// Returns the first secret of a proof that is not set, or empty.
    pub fn unset_secret(&self, proof: &Proof) -> Option<String> {
        let mut names = proof.secrets().iter();
        names.find(|name| self.secret_text(name).is_none()).cloned()
    }

    fn secret_text(&self, name: &str) -> Option<String> {
        let profile = self.bindings.profile.as_deref();
        let found = self.services.secrets.find_in(profile, name)?;
        let text = found.reveal().to_owned();
        Some(text).filter(|text| !text.is_empty())
    }

    /// Verifies who sends a request.
    ///
    /// # Errors
    /// When a secret is not set, or the request does not show what it must.
    pub fn prove(&self, proof: &Proof, received: &Received) -> Result<Proven, InterfaceError> {
        self.prove_by(proof, received, |name| self.secret_text(name))
    }

    /// Verifies who sends a request to an interface of an installation, which has secrets of its own: values of its setup form,
    /// and secrets of the connections that are bound to slots of type `:secret`.
    ///
    /// # Errors
    /// As [`Engine::prove`].
    pub fn prove_installed(
        &self,
        (flow, installation): (&Flow, &StartedInstallation),
        proof: &Proof,
        received: &Received,
    ) -> Result<Proven, InterfaceError> {
        self.prove_by(proof, received, |name| {
            self.installed_secret(flow, installation, name)
        })
    }

    fn installed_secret(
        &self,
        flow: &Flow,
        installation: &StartedInstallation,
        name: &str,
    ) -> Option<String> {
        let field = flow.setup.iter().find(|field| *field.name == *name);
        if let Some(field) = field {
            let value = installation.setup.get(&field.name)?.as_str()?;
            return Some(value.to_owned()).filter(|text| !text.is_empty());
        }
        let named = |entry: &Value, key: &str| entry.get(key).and_then(name_of);
        let entries = flow.requires.as_vector()?;
        let entry = entries.iter().find(|entry| {
            named(entry, "type").as_deref() == Some("secret")
                && [named(entry, "secret-ref"), named(entry, "slot")]
                    .iter()
                    .any(|known| known.as_deref() == Some(name))
        })?;
        let bound = installation.set.get(&*named(entry, "slot")?)?;
        let connections = self.services.settings.get("connections")?.as_map()?;
        let mut all = connections.iter();
        let (_, record) = all.find(|(key, _)| name_of(key).is_some_and(|key| *key == **bound))?;
        self.secret_text(&named(record, "secret-ref")?)
    }

    fn prove_by(
        &self,
        proof: &Proof,
        received: &Received,
        find: impl Fn(&str) -> Option<String>,
    ) -> Result<Proven, InterfaceError> {
        let mut secrets = Vec::new();
        for name in proof.secrets() {
            secrets.push(find(name).ok_or_else(|| InterfaceError::Unset { name: name.clone() })?);
        }
        let presented = Presented {
            headers: &received.headers,
            query: &received.query,
            body: &received.body,
            address: received.address,
            now_ms: self.now_ms(),
        };
        verify(proof, &secrets, presented).map_err(InterfaceError::Unproven)
    }

    /// Returns the receipts of a delivery: of what was signed, and of what the sender calls it.
    pub fn receipts(
        &self,
        scope: &str,
        interface: &Interface,
        received: &Received,
        proven: &Proven,
    ) -> Vec<NewReceipt> {
        let now_ms = self.now_ms();
        let until_ms = now_ms.saturating_add(crate::duration::millis(interface.window));
        let digest = codec::digest_bytes(&received.body);
        let signed = proven.signed.as_ref().map(|it| format!("signed {it}"));
        let own = match (&interface.dedupe, &interface.proof) {
            (Some(Dedupe::Header(name)), _) => received.header(name).map(str::to_owned),
            (Some(Dedupe::Path(path)), _) => content::at(received, path),
            (None, Some(Proof::StandardWebhooks { .. })) => {
                received.header("webhook-id").map(str::to_owned)
            }
            (None, _) => None,
        };
        let own = own.map(|own| format!("id {}", codec::digest_bytes(own.as_bytes())));
        let keys = signed.into_iter().chain(own);
        keys.map(|key| NewReceipt {
            scope: scope.to_owned(),
            key,
            digest: digest.clone(),
            until_ms,
        })
        .collect()
    }

    /// Returns an earlier delivery with one of these receipts.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn delivered(
        &self,
        receipts: &[NewReceipt],
    ) -> Result<Option<PastDelivery>, EngineError> {
        let now_ms = self.now_ms();
        for receipt in receipts {
            let queue = &self.services.stores.queue;
            let found = queue.receipt(&receipt.scope, &receipt.key, now_ms).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns the input of a run from a request: parameters of the path, the query and the members of the body by name.
    ///
    /// # Errors
    /// When the body cannot be read, or a name is reserved, there twice or unknown.
    pub async fn interface_input(
        &self,
        flow: &Flow,
        interface: &Interface,
        received: &Received,
    ) -> Result<Value, InterfaceError> {
        let content = content::read(received)?;
        let contract = contract(flow, interface);
        let hidden = interface.proof.as_ref().and_then(Proof::parameter);
        let mut given: Vec<(String, Value)> = Vec::new();
        for (name, text) in &received.parameters {
            add(&mut given, name, Value::from(text.as_str()))?;
        }
        for (name, texts) in grouped(&received.query, hidden) {
            let is_list = contract.is_some_and(|contract| {
                contract
                    .inputs
                    .iter()
                    .any(|input| *input.name == *name && input.multiple)
            });
            let values = texts.iter().map(|text| Value::from(*text));
            let value = match (&texts[..], is_list) {
                (_, true) => Value::vector(values),
                ([only], false) => Value::from(*only),
                _ => {
                    return Err(InterfaceError::Twice {
                        name: name.to_owned(),
                    });
                }
            };
            add(&mut given, name, value)?;
        }
        if received.without_files {
            refuse_files(&content)?;
        }
        let (members, stored) = self.members(content).await?;
        for (name, value) in members {
            add(&mut given, &name, value)?;
        }
        if let (InterfaceKind::Http, Some(contract)) = (interface.kind, contract) {
            refuse_unknown(contract, &given)?;
        }
        let is_kept = interface.keep_raw || received.body.len() > BODY_KEPT;
        let is_kept = is_kept && !received.without_files;
        // A body with a secret would show it to all who may read files.
        let secrets = secrets_of(flow, interface);
        let is_secret = |name: &str| secrets.iter().any(|secret| secret == name);
        let is_kept = is_kept && !given.iter().any(|(name, _)| is_secret(name));
        let kept = match stored {
            None if is_kept && !received.body.is_empty() => {
                Some(content::store(self, "body", None, &received.body).await?)
            }
            stored => stored,
        };
        let request = self.request_of((interface, &secrets), received, kept);
        let entries = given
            .into_iter()
            .map(|(name, value)| (Value::keyword(&name), value));
        Ok(Value::map(
            entries.chain([(Value::keyword(REQUEST), request)]),
        ))
    }

    /// Returns what a body says, as waits and events take it.
    ///
    /// # Errors
    /// When the body cannot be read.
    pub async fn payload(&self, received: &Received) -> Result<Value, InterfaceError> {
        match content::read(received)? {
            Content::Other(value) => Ok(value),
            content => {
                if received.without_files {
                    refuse_files(&content)?;
                }
                let (members, _) = self.members(content).await?;
                let entries = members.into_iter();
                let entries = entries.map(|(name, value)| (Value::keyword(&name), value));
                Ok(Value::map(entries))
            }
        }
    }

    /// Returns what a body gives by name, and the reference of the body if it was stored.
    async fn members(
        &self,
        content: Content,
    ) -> Result<(Vec<(String, Value)>, Stored), EngineError> {
        let named = |name: &str, value: Value| vec![(name.to_owned(), value)];
        match content {
            Content::Nothing => Ok((Vec::new(), None)),
            Content::Members(members) => Ok((members, None)),
            Content::Other(value) => Ok((named("body", value), None)),
            Content::Bytes { bytes, media } => {
                let stored = content::store(self, "body", Some(media), &bytes).await?;
                Ok((named("body", stored.clone()), Some(stored)))
            }
            Content::Parts(parts) => {
                let mut members = Vec::new();
                for part in parts {
                    let value = match part.file {
                        None => Value::from(String::from_utf8_lossy(&part.bytes).as_ref()),
                        Some(file) => content::store(self, &file, part.media, &part.bytes).await?,
                    };
                    members.push((part.name, value));
                }
                Ok((members, None))
            }
        }
    }

    fn request_of(
        &self,
        (interface, secrets): (&Interface, &[String]),
        received: &Received,
        kept: Stored,
    ) -> Value {
        let proof = interface.proof.as_ref();
        let carriers = proof.map(Proof::headers).unwrap_or_default();
        let hidden = proof.and_then(Proof::parameter);
        let headers = received.headers.iter().filter(|(name, _)| {
            let is_secret = matches!(&**name, "authorization" | "cookie")
                || name.starts_with("proxy-")
                || name.starts_with("x-forwarded-");
            !is_secret && !carriers.contains(&&**name)
        });
        let text = |text: &str| Value::from(text);
        let headers = headers.map(|(name, value)| {
            let value = String::from_utf8_lossy(value);
            (text(name), text(&value))
        });
        let query = grouped(&received.query, hidden).into_iter();
        let query = query.map(|(name, values)| {
            let value = match &values[..] {
                _ if secrets.iter().any(|secret| secret == name) => text(SECRET),
                [only] => text(only),
                several => Value::vector(several.iter().map(|value| text(value))),
            };
            (text(name), value)
        });
        let delivery = match &interface.dedupe {
            Some(Dedupe::Header(name)) => received.header(name).map(text),
            Some(Dedupe::Path(path)) => content::at(received, path).map(|it| text(&it)),
            None => received.header("webhook-id").map(text),
        };
        let entries = [
            ("interface", Some(Value::keyword(&interface.id))),
            ("method", Some(text(&received.method.to_ascii_lowercase()))),
            ("path", Some(text(&received.path))),
            ("query", Some(Value::map(query))),
            ("headers", Some(Value::map(headers))),
            ("content-type", received.header("content-type").map(text)),
            ("received-at", Some(text(&codec::instant(self.now_ms())))),
            ("delivery", delivery),
            ("body-ref", kept),
        ];
        let entries = entries
            .into_iter()
            .filter_map(|(key, value)| Some((Value::keyword(key), value?)));
        Value::map(entries)
    }
}

/// Refuses a body that has files.
fn refuse_files(content: &Content) -> Result<(), InterfaceError> {
    match content {
        Content::Bytes { media, .. } => Err(InterfaceError::MediaType(media.clone())),
        Content::Parts(parts) if parts.iter().any(|part| part.file.is_some()) => Err(
            InterfaceError::MediaType("multipart/form-data with files".to_owned()),
        ),
        Content::Parts(_) | Content::Nothing | Content::Members(_) | Content::Other(_) => Ok(()),
    }
}

/// Returns the contract that an interface starts runs by.
fn contract<'a>(flow: &'a Flow, interface: &Interface) -> Option<&'a Invocation> {
    match interface.invocation.as_deref() {
        Some(id) => flow.invocations.iter().find(|it| *it.id == *id),
        None => flow.default_invocation(),
    }
}

/// Returns the names of the inputs that are secrets.
fn secrets_of(flow: &Flow, interface: &Interface) -> Vec<String> {
    let declared = sealed::declared(flow, interface.invocation.as_deref());
    let names = declared.iter().filter_map(|path| name_of(path.first()?));
    names.map(|name| name.to_string()).collect()
}

/// Returns the values of each name of a query, in the order of the names' first place.
fn grouped<'a>(
    query: &'a [(String, String)],
    hidden: Option<&str>,
) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, value) in query {
        if Some(name.as_str()) == hidden {
            continue;
        }
        match found.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) => values.push(value),
            None => found.push((name, vec![value])),
        }
    }
    found
}

fn add(given: &mut Vec<(String, Value)>, name: &str, value: Value) -> Result<(), InterfaceError> {
    let name = name.trim_start_matches(':');
    if outside::is_reserved(name) {
        let name = name.to_owned();
        return Err(EngineError::ReservedInput { name }.into());
    }
    if given.iter().any(|(known, _)| known == name) {
        return Err(InterfaceError::Twice {
            name: name.to_owned(),
        });
    }
    given.push((name.to_owned(), value));
    Ok(())
}

fn refuse_unknown(contract: &Invocation, given: &[(String, Value)]) -> Result<(), InterfaceError> {
    let known = || contract.inputs.iter().map(|input| &*input.name);
    let unknown = given
        .iter()
        .find(|(name, _)| !known().any(|known| known == name));
    match unknown {
        None => Ok(()),
        Some((name, _)) => Err(InterfaceError::UnknownInput {
            name: name.clone(),
            known: known().map(str::to_owned).collect(),
        }),
    }
}
