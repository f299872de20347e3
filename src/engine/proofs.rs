//! Verifying what callers of an interface show: keys, signatures, times and addresses.
//!
//! The exact bytes of a body are verified before anything reads them. Comparisons take the same time wherever the
//! difference is. A caller learns only that a proof failed; the reason is for the log.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use flowstone_flow::proof::{Algorithm, Encoding, KeyPlace, Proof, Signed};
use ring::{hmac, signature};

/// How far the clock of a sender may be away, for kinds that do not say it.
const SKEW_MS: i64 = 300_000;
/// Timestamps with at least that many digits are milliseconds.
const MILLIS_DIGITS: usize = 13;
/// The fixed beginning of a public key for P-256 in the form that PEM files have.
const P256_HEAD: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// A request, as far as proofs look at it.
#[derive(Debug, Clone, Copy)]
pub struct Presented<'a> {
    /// Names are in lower case; a name may come twice.
    pub headers: &'a [(String, Vec<u8>)],
    /// Decoded.
    pub query: &'a [(String, String)],
    pub body: &'a [u8],
    /// The sender, as far as trusted proxies tell.
    pub address: Option<IpAddr>,
    pub now_ms: i64,
}

/// A caller proved who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proven {
    /// A digest of all that was signed; nothing for kinds that sign nothing.
    pub signed: Option<String>,
}

/// Why a proof failed. Callers are not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unproven {
    /// The header or parameter is not there.
    Missing,
    /// It is there twice.
    Twice,
    /// It cannot be read.
    Malformed,
    /// It is not the right one.
    Wrong,
    /// The time is too long ago, or too far ahead.
    Late,
    /// The address is not allowed.
    Address,
    /// A key of the receiver cannot be used.
    BadKey,
}

impl Unproven {
    /// Returns the word that logs use.
    pub fn name(self) -> &'static str {
        match self {
            Unproven::Missing => "missing",
            Unproven::Twice => "twice",
            Unproven::Malformed => "malformed",
            Unproven::Wrong => "wrong",
            Unproven::Late => "late",
            Unproven::Address => "address",
            Unproven::BadKey => "bad-key",
        }
    }
}

/// Verifies a request. `secrets` are those that the proof names, none of them empty; any of them will do.
///
/// # Errors
/// Why it is not proven.
pub fn verify(
    proof: &Proof,
    secrets: &[String],
    request: Presented<'_>,
) -> Result<Proven, Unproven> {
    let unsigned = Proven { signed: None };
    match proof {
        Proof::ApiKey { place, .. } => {
            let given = match place {
                KeyPlace::Header(name) => header(request, name)?,
                KeyPlace::Query(name) => parameter(request, name)?.as_bytes(),
            };
            is_any(secrets, given).map(|()| unsigned)
        }
        Proof::Bearer { .. } => {
            is_any(secrets, authorization(request, "bearer")?).map(|()| unsigned)
        }
        Proof::Basic { username, .. } => {
            let given = authorization(request, "basic")?;
            let given = STANDARD.decode(given).map_err(|_| Unproven::Malformed)?;
            let full: Vec<String> = secrets
                .iter()
                .map(|secret| format!("{}:{secret}", username.as_deref().unwrap_or_default()))
                .collect();
            is_any(&full, &given).map(|()| unsigned)
        }
        Proof::Signed(signed) => verify_signed(signed, secrets, request),
        Proof::Stripe { .. } => stripe(secrets, request),
        Proof::Slack { .. } => slack(secrets, request),
        Proof::StandardWebhooks { .. } => standard(secrets, request),
        Proof::Addresses { allow } => {
            let address = request.address.ok_or(Unproven::Address)?;
            match allow.iter().any(|network| network.contains(address)) {
                true => Ok(unsigned),
                false => Err(Unproven::Address),
            }
        }
        Proof::None => Ok(unsigned),
    }
}

fn verify_signed(
    signed: &Signed,
    secrets: &[String],
    request: Presented<'_>,
) -> Result<Proven, Unproven> {
    let given = text(header(request, &signed.header)?)?;
    let given = given
        .strip_prefix(&signed.prefix)
        .ok_or(Unproven::Malformed)?;
    let given = match signed.encoding {
        Encoding::Base64 => STANDARD.decode(given).map_err(|_| Unproven::Malformed)?,
        Encoding::Hex => hex(given)?,
    };
    let mut message = Vec::new();
    if let Some(time) = &signed.time {
        let stamp = text(header(request, &time.header)?)?;
        in_time(stamp, request.now_ms, time.skew_ms)?;
        message.extend_from_slice(stamp.as_bytes());
        message.extend_from_slice(time.separator.as_bytes());
    }
    message.extend_from_slice(request.body);
    match signed.algorithm {
        Algorithm::HmacSha256 => {
            let keys = secrets.iter().map(|secret| secret.as_bytes().to_vec());
            any_mac(keys, &message, &[given])
        }
        Algorithm::EcdsaP256 => {
            let mut last = Unproven::Wrong;
            for key in secrets {
                match ecdsa(key, &message, &given) {
                    Ok(()) => return Ok(proven(&message)),
                    Err(error) => last = error,
                }
            }
            Err(last)
        }
    }
}

fn stripe(secrets: &[String], request: Presented<'_>) -> Result<Proven, Unproven> {
    let given = text(header(request, "stripe-signature")?)?;
    let (mut time, mut signatures) = (None, Vec::new());
    for part in given.split(',') {
        let (name, value) = part.trim().split_once('=').ok_or(Unproven::Malformed)?;
        match name {
            "t" if time.is_some() => return Err(Unproven::Twice),
            "t" => time = Some(value),
            "v1" => signatures.push(hex(value)?),
            _ => {}
        }
    }
    let time = time.ok_or(Unproven::Missing)?;
    in_time(time, request.now_ms, SKEW_MS)?;
    let message = [time.as_bytes(), b".", request.body].concat();
    let keys = secrets.iter().map(|secret| secret.as_bytes().to_vec());
    any_mac(keys, &message, &signatures)
}

fn slack(secrets: &[String], request: Presented<'_>) -> Result<Proven, Unproven> {
    let given = text(header(request, "x-slack-signature")?)?;
    let given = hex(given.strip_prefix("v0=").ok_or(Unproven::Malformed)?)?;
    let time = text(header(request, "x-slack-request-timestamp")?)?;
    in_time(time, request.now_ms, SKEW_MS)?;
    let message = [b"v0:", time.as_bytes(), b":", request.body].concat();
    let keys = secrets.iter().map(|secret| secret.as_bytes().to_vec());
    any_mac(keys, &message, &[given])
}

fn standard(secrets: &[String], request: Presented<'_>) -> Result<Proven, Unproven> {
    let id = header(request, "webhook-id")?;
    let time = text(header(request, "webhook-timestamp")?)?;
    let given = text(header(request, "webhook-signature")?)?;
    in_time(time, request.now_ms, SKEW_MS)?;
    let mut signatures = Vec::new();
    for part in given.split(' ').filter(|part| !part.is_empty()) {
        let (version, value) = part.split_once(',').ok_or(Unproven::Malformed)?;
        if version == "v1" {
            signatures.push(STANDARD.decode(value).map_err(|_| Unproven::Malformed)?);
        }
    }
    let message = [id, b".", time.as_bytes(), b".", request.body].concat();
    let mut keys = Vec::new();
    for secret in secrets {
        let text = secret.strip_prefix("whsec_").unwrap_or(secret);
        let key = STANDARD_NO_PAD.decode(text.trim_end_matches('='));
        keys.push(key.map_err(|_| Unproven::BadKey)?);
    }
    any_mac(keys.into_iter(), &message, &signatures)
}

/// Tells whether one of the signatures was made with one of the keys.
fn any_mac(
    keys: impl Iterator<Item = Vec<u8>>,
    message: &[u8],
    signatures: &[Vec<u8>],
) -> Result<Proven, Unproven> {
    if signatures.is_empty() {
        return Err(Unproven::Missing);
    }
    for key in keys {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        if signatures
            .iter()
            .any(|signature| hmac::verify(&key, message, signature).is_ok())
        {
            return Ok(proven(message));
        }
    }
    Err(Unproven::Wrong)
}

fn proven(message: &[u8]) -> Proven {
    Proven {
        signed: Some(crate::codec::digest_bytes(message)),
    }
}

/// Verifies a signature in DER with a public key in PEM, or in base64 of what PEM holds.
fn ecdsa(key: &str, message: &[u8], given: &[u8]) -> Result<(), Unproven> {
    let body: String = key
        .lines()
        .filter(|line| !line.starts_with("-----"))
        .flat_map(|line| line.chars().filter(|char| !char.is_whitespace()))
        .collect();
    let key = STANDARD.decode(body).map_err(|_| Unproven::BadKey)?;
    let point = key.strip_prefix(P256_HEAD).ok_or(Unproven::BadKey)?;
    let key = signature::UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_ASN1, point);
    key.verify(message, given).map_err(|_| Unproven::Wrong)
}

/// Tells whether a text is one of the secrets. Digests are compared, so neither the place of a difference nor the
/// length of a secret shows in the time that this takes.
fn is_any(secrets: &[String], given: &[u8]) -> Result<(), Unproven> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"flowstone/equal");
    let given = hmac::sign(&key, given);
    let mut is_known = false;
    for secret in secrets {
        is_known |= hmac::verify(&key, secret.as_bytes(), given.as_ref()).is_ok();
    }
    match is_known {
        true => Ok(()),
        false => Err(Unproven::Wrong),
    }
}

/// Returns the value of a header that is there once.
fn header<'a>(request: Presented<'a>, name: &str) -> Result<&'a [u8], Unproven> {
    let mut found = request.headers.iter().filter(|(known, _)| known == name);
    let value = found.next().ok_or(Unproven::Missing)?;
    match found.next() {
        None => Ok(&value.1),
        Some(_) => Err(Unproven::Twice),
    }
}

fn parameter<'a>(request: Presented<'a>, name: &str) -> Result<&'a str, Unproven> {
    let mut found = request.query.iter().filter(|(known, _)| known == name);
    let value = found.next().ok_or(Unproven::Missing)?;
    match found.next() {
        None => Ok(&value.1),
        Some(_) => Err(Unproven::Twice),
    }
}

fn authorization<'a>(request: Presented<'a>, scheme: &str) -> Result<&'a [u8], Unproven> {
    let given = text(header(request, "authorization")?)?;
    let (found, rest) = given.split_once(' ').ok_or(Unproven::Malformed)?;
    match found.eq_ignore_ascii_case(scheme) {
        true => Ok(rest.trim().as_bytes()),
        false => Err(Unproven::Malformed),
    }
}

fn text(bytes: &[u8]) -> Result<&str, Unproven> {
    std::str::from_utf8(bytes).map_err(|_| Unproven::Malformed)
}

fn hex(text: &str) -> Result<Vec<u8>, Unproven> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
        _ => None,
    });
    pairs
        .collect::<Option<Vec<u8>>>()
        .filter(|bytes| !bytes.is_empty())
        .ok_or(Unproven::Malformed)
}

/// Checks a timestamp: decimal seconds, or milliseconds if it is long enough.
fn in_time(stamp: &str, now_ms: i64, skew_ms: i64) -> Result<(), Unproven> {
    if stamp.is_empty() || !stamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Unproven::Malformed);
    }
    let number: i64 = stamp.parse().map_err(|_| Unproven::Malformed)?;
    let at_ms = match stamp.len() >= MILLIS_DIGITS {
        true => number,
        false => number.saturating_mul(1000),
    };
    match now_ms.abs_diff(at_ms) <= skew_ms.unsigned_abs() {
        true => Ok(()),
        false => Err(Unproven::Late),
    }
}

#[cfg(test)]
mod tests;
