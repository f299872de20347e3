//! Removes secrets from recordings: those that were looked up, those that servers issued, and the values of headers,
//! fields and parameters that usually hold secrets.

use flowstone_flow::ports::Secret;
use flowstone_flow::redact as engine;
pub(super) use flowstone_flow::redact::SECRET;
use memchr::memmem;
use reqwest::Url;
use serde_json::Value as Json;

use super::file::RecordedRequest;

/// Names of headers that hold credentials.
const HEADERS: &[&str] = &[
    "api-key",
    "authorization",
    "cookie",
    "proxy-authorization",
    "set-cookie",
    "x-amz-security-token",
    "x-api-key",
    "x-goog-api-key",
];
/// Endings of the names of other headers that hold credentials.
const ENDINGS: &[&str] = &["-api-key", "-password", "-secret", "-signature", "-token"];

/// Fields of bodies and queries that hold secrets.
const FIELDS: &[&str] = &[
    "access_token",
    "api_key",
    "apikey",
    "client_assertion",
    "client_secret",
    "id_token",
    "password",
    "refresh_token",
    "x-amz-security-token",
    "x-amz-signature",
    "x-goog-signature",
];

/// Query parameters that hold secrets, in addition to the fields above.
const PARAMETERS: &[&str] = &["auth", "auth_token", "secret", "sig", "signature", "token"];

/// Removes known secrets from requests and responses.
pub(super) struct Redactor {
    known: engine::Redactor,
}

impl Redactor {
    /// Creates a redactor that finds the secrets in each form in which requests contain them.
    pub(super) fn new(secrets: &[Secret]) -> Redactor {
        Redactor {
            known: engine::Redactor::new(secrets),
        }
    }

    /// Removes the secrets from consecutive chunks, even if a secret spans two of them.
    pub(super) fn parts(&self, parts: &mut [Vec<u8>]) {
        self.known.parts(parts);
    }

    pub(super) fn bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.known.bytes(bytes)
    }

    pub(super) fn text(&self, text: &str) -> String {
        self.known.text(text.to_owned())
    }

    /// Removes the secrets from headers, and replaces the value of each header that holds credentials.
    pub(super) fn headers(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        let clean = |(name, value): &(String, String)| {
            let name = name.to_ascii_lowercase();
            let is_secret = HEADERS.contains(&name.as_str())
                || ENDINGS.iter().any(|ending| name.ends_with(ending));
            let value = match is_secret {
                true => SECRET.to_owned(),
                false => self.text(value),
            };
            (name, value)
        };
        headers.iter().map(clean).collect()
    }

    /// Removes the secrets from an address, its user and password, and the values of parameters that hold secrets.
    pub(super) fn url(&self, text: &str) -> String {
        let Ok(mut url) = Url::parse(text) else {
            return self.text(text);
        };
        // These fail only for addresses that can have neither.
        if url.password().is_some() {
            url.set_password(None).ok();
            url.set_username("").ok();
        }
        let has_secret = url.query_pairs().any(|(name, _)| is_parameter(&name));
        if has_secret {
            let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
            let pairs = pairs
                .into_iter()
                .map(|(name, value)| match is_parameter(&name) {
                    true => (name, SECRET.to_owned()),
                    false => (name, value),
                });
            let pairs: Vec<_> = pairs.collect();
            url.query_pairs_mut().clear().extend_pairs(pairs);
        }
        // The placeholder stays readable.
        self.text(url.as_str()).replace("%5Bsecret%5D", SECRET)
    }

    /// Removes the secrets from a request, and replaces its varying texts.
    pub(super) fn request(
        &self,
        asked: RecordedRequest,
        varying: &[(String, &'static str)],
    ) -> RecordedRequest {
        let plain = Redactor::for_texts(varying);
        let pass = |text: &str| Redactor::replaced(&plain, text.as_bytes().to_vec());
        let lossy = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let headers = self.headers(&asked.headers);
        RecordedRequest {
            method: asked.method,
            url: lossy(pass(&self.url(&asked.url))),
            headers: headers
                .into_iter()
                .map(|(name, value)| (name, lossy(pass(&value))))
                .collect(),
            body: Redactor::replaced(&plain, self.bytes(asked.body)),
        }
    }

    fn for_texts(varying: &[(String, &'static str)]) -> Vec<(Vec<u8>, &'static str)> {
        let long = varying.iter().filter(|(text, _)| text.len() >= 8);
        long.map(|(text, name)| (text.as_bytes().to_vec(), *name))
            .collect()
    }

    fn replaced(texts: &[(Vec<u8>, &'static str)], bytes: Vec<u8>) -> Vec<u8> {
        texts.iter().fold(bytes, |bytes, (text, name)| {
            let mut clean = Vec::with_capacity(bytes.len());
            let mut from = 0;
            for at in memmem::find_iter(&bytes, text) {
                clean.extend_from_slice(&bytes[from..at]);
                clean.extend_from_slice(name.as_bytes());
                from = at + text.len();
            }
            clean.extend_from_slice(&bytes[from..]);
            clean
        })
    }
}

fn is_parameter(name: &str) -> bool {
    is_field(name) || PARAMETERS.contains(&name.to_ascii_lowercase().as_str())
}

fn is_field(name: &str) -> bool {
    FIELDS.contains(&name.to_ascii_lowercase().as_str())
}

/// Returns the values of a body's secret fields, such as a token that a server issued.
pub(super) fn secrets_in(body: &[u8]) -> Vec<Secret> {
    let mut found = Vec::new();
    match serde_json::from_slice::<Json>(body) {
        Ok(json) => collect(&json, &mut found),
        Err(_) if body.len() < 1 << 16 && body.contains(&b'=') => {
            let pairs = Url::parse("http://x/").map(|mut url| {
                url.set_query(std::str::from_utf8(body).ok());
                url.query_pairs().into_owned().collect::<Vec<_>>()
            });
            let pairs = pairs.unwrap_or_default().into_iter();
            let secret = pairs.filter(|(name, _)| is_field(name));
            found.extend(secret.map(|(_, value)| Secret::new(value)));
        }
        Err(_) => {}
    }
    found
}

fn collect(json: &Json, found: &mut Vec<Secret>) {
    match json {
        Json::Object(map) => {
            for (name, value) in map {
                match value {
                    Json::String(text) if is_field(name) => found.push(Secret::new(text.as_str())),
                    value => collect(value, found),
                }
            }
        }
        Json::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}
