//! `:auth {:type :google-service-account}`: a signed assertion of identity, exchanged for a token.
//!
//! The secret is the JSON key of a service account. Neither the key nor the token is ever a value; tokens are kept in
//! memory until shortly before they expire.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use flowstone_flow::codec::digest_bytes;
use flowstone_flow::ports::Secret;
use flowstone_flow::step::{StepContext, StepError};
use reqwest::{Method, Url};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::Deserialize;

use super::body::Body;
use super::client::{self, Limits, Request};
use super::error::HttpError;
use super::route::Route;
use super::settings::Usual;
use crate::connections::Proof;

/// The lifetime of an assertion.
const HOUR_S: i64 = 3600;
/// Tokens that expire sooner than this are not used.
const MARGIN_MS: i64 = 60_000;
const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKENS: &str = "https://oauth2.googleapis.com/token";

/// The required fields of a key file.
#[derive(Deserialize)]
struct Key {
    client_email: String,
    private_key: String,
    private_key_id: Option<String>,
    token_uri: Option<String>,
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    expires_in: Option<i64>,
}

struct Token {
    text: String,
    until_ms: i64,
}

/// Tokens by the digest of key and scopes.
static TOKENS_KEPT: LazyLock<Mutex<HashMap<String, Token>>> = LazyLock::new(Mutex::default);

/// Returns the header with the token.
///
/// # Errors
/// When the secret is not a key, or the server returns no token for it.
pub(super) async fn proof(
    cx: &StepContext,
    secret: &Secret,
    scopes: &[String],
    usual: &Usual,
) -> Result<Proof, StepError> {
    if cx
        .exchanges()
        .is_some_and(|exchanges| exchanges.is_replay())
    {
        // A replay sends nothing and needs no token.
        let nothing = "Bearer [secret]".to_owned();
        return Ok(Proof::Header("authorization".to_owned(), nothing));
    }
    let key = read(secret)?;
    cx.hide(&Secret::new(key.private_key.as_str()));
    let scope = scopes.join(" ");
    let name = digest_bytes(format!("{}\n{scope}", secret.reveal()).as_bytes());
    let kept = {
        let kept = TOKENS_KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let token = kept.get(&name);
        token
            .filter(|token| cx.now_ms() < token.until_ms - MARGIN_MS)
            .map(|token| token.text.clone())
    };
    let token = match kept {
        Some(token) => token,
        None => {
            let token = exchange(cx, &key, &scope, usual).await?;
            let text = token.text.clone();
            let mut kept = TOKENS_KEPT.lock().unwrap_or_else(PoisonError::into_inner);
            kept.retain(|_, token| cx.now_ms() < token.until_ms);
            kept.insert(name, token);
            text
        }
    };
    cx.hide(&Secret::new(token.as_str()));
    Ok(Proof::Header(
        "authorization".to_owned(),
        format!("Bearer {token}"),
    ))
}

fn read(secret: &Secret) -> Result<Key, StepError> {
    // An unreadable key is still a secret: the cause may quote it.
    serde_json::from_str(secret.reveal()).map_err(|_| {
        wrong("the secret is not the JSON key of a service account")
            .hint("it holds `client_email` and `private_key`; name its file in flowstone.edn: {:secrets {:my-key {:file \"key.json\"}}}")
    })
}

async fn exchange(
    cx: &StepContext,
    key: &Key,
    scope: &str,
    usual: &Usual,
) -> Result<Token, StepError> {
    let address = key.token_uri.as_deref().unwrap_or(TOKENS);
    let url = Url::parse(address)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .ok_or_else(|| wrong("the `token_uri` of the service account's key is not an address"))?;
    let statement = statement(key, scope, address, cx.now_ms() / 1000)?;
    cx.hide(&Secret::new(statement.as_str()));
    let form = [("grant_type", GRANT.to_owned()), ("assertion", statement)];
    let body = Body::form(&form.map(|(name, value)| (name.to_owned(), value)));
    let host = client::host(&url);
    let answer = client::send(Request {
        method: Method::POST,
        url,
        headers: vec![("content-type".to_owned(), body.content_type)],
        secret_headers: Vec::new(),
        body: Some(body.bytes),
        is_secret: true,
        redactor: Some(cx.redactor()),
        limits: Limits {
            timeout: super::timeout(cx, Duration::from_secs(30)),
            max_bytes: 1 << 20,
            max_redirects: 0,
        },
        // Not recorded: the exchange contains nothing but secrets.
        route: Route {
            exchanges: None,
            ..usual.route.clone()
        },
        sent_ms: Some(cx.now_ms()),
        trace_parent: None,
        login: None,
    })
    .await?;
    if answer.status >= 400 {
        let status = answer.status;
        let answer = Box::new(answer);
        let error = StepError::from(HttpError::Status {
            host,
            status,
            answer,
        });
        return Err(StepError {
            message: format!("no token for the service account: {}", error.message),
            ..error
        });
    }
    let granted: Granted = serde_json::from_slice(&answer.body).map_err(|_| {
        StepError::new(
            "E0747",
            "bad-response",
            format!("{host} answered without an `access_token`"),
        )
    })?;
    let seconds = granted.expires_in.unwrap_or(HOUR_S).clamp(0, 24 * HOUR_S);
    Ok(Token {
        text: granted.access_token,
        until_ms: cx.now_ms() + seconds * 1000,
    })
}

/// Returns the signed assertion: the identity, the audience, the scopes and the lifetime.
fn statement(key: &Key, scope: &str, audience: &str, now_s: i64) -> Result<String, StepError> {
    let head = serde_json::json!({"alg": "RS256", "typ": "JWT", "kid": key.private_key_id});
    let claims = serde_json::json!({
        "iss": key.client_email, "scope": scope, "aud": audience,
        "iat": now_s, "exp": now_s + HOUR_S,
    });
    let part = |json: &serde_json::Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let signed = format!("{}.{}", part(&head), part(&claims));
    let pair = key_pair(&key.private_key)?;
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(
        &RSA_PKCS1_SHA256,
        &SystemRandom::new(),
        signed.as_bytes(),
        &mut signature,
    )
    .map_err(|_| wrong("the service account's key cannot sign"))?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// Reads an RSA key in PEM format, as in key files.
fn key_pair(pem: &str) -> Result<RsaKeyPair, StepError> {
    let bad =
        || wrong("the `private_key` of the service account's key is not an RSA key in PEM format");
    let inner = |kind: &str| {
        let (_, rest) = pem.split_once(&format!("-----BEGIN {kind}-----"))?;
        let (text, _) = rest.split_once(&format!("-----END {kind}-----"))?;
        let text: String = text.split_whitespace().collect();
        STANDARD.decode(text).ok()
    };
    if let Some(der) = inner("PRIVATE KEY") {
        return RsaKeyPair::from_pkcs8(&der).map_err(|_| bad());
    }
    let der = inner("RSA PRIVATE KEY").ok_or_else(bad)?;
    RsaKeyPair::from_der(&der).map_err(|_| bad())
}

fn wrong(message: &str) -> StepError {
    StepError::config("E0747", message)
}
