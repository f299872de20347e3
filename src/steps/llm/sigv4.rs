//! Signature Version 4 of AWS: the headers that authenticate a request.
//!
//! Pure: the time is a parameter. The whole body is signed, so a request is signed last.

use flowstone_flow::ports::Secret;
use reqwest::Url;
use ring::hmac;
use sha2::{Digest, Sha256};

/// The credentials of a signature, and its scope.
#[derive(Clone, Debug)]
pub struct Signer {
    pub access_key_id: Secret,
    pub secret_access_key: Secret,
    /// The token of temporary credentials.
    pub session_token: Option<Secret>,
    pub region: String,
    pub service: String,
}

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

impl Signer {
    /// Returns the headers to add. `headers` are signed too; the address must be the one that is sent.
    pub fn sign(
        &self,
        method: &str,
        url: &Url,
        headers: &[(String, String)],
        body: &[u8],
        now_ms: i64,
    ) -> Vec<(String, String)> {
        let time = time(now_ms);
        let date = &time[..8];
        let mut added = vec![("x-amz-date".to_string(), time.clone())];
        if let Some(token) = &self.session_token {
            added.push(("x-amz-security-token".into(), token.reveal().into()));
        }
        let host = (String::from("host"), host(url));
        let mut signed: Vec<(String, String)> = headers
            .iter()
            .chain([&host])
            .chain(&added)
            .map(|(name, value)| (name.to_ascii_lowercase(), trimmed(value)))
            .collect();
        // A stable sort: values of one name keep their order.
        signed.sort_by(|(a, _), (b, _)| a.cmp(b));
        let (lines, names) = canonical_headers(&signed);
        let request = format!(
            "{method}\n{}\n{}\n{lines}\n{names}\n{}",
            canonical_path(url),
            canonical_query(url),
            hex(&Sha256::digest(body)),
        );
        let scope = format!("{date}/{}/{}/aws4_request", self.region, self.service);
        let text = format!(
            "{ALGORITHM}\n{time}\n{scope}\n{}",
            hex(&Sha256::digest(request.as_bytes()))
        );
        let signature = hex(hmac(self.key(date).as_ref(), text.as_bytes()).as_ref());
        added.push((
            "authorization".into(),
            format!(
                "{ALGORITHM} Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
                self.access_key_id.reveal()
            ),
        ));
        added
    }

    fn key(&self, date: &str) -> hmac::Tag {
        let secret = format!("AWS4{}", self.secret_access_key.reveal());
        let words = [date, &self.region, &self.service, "aws4_request"];
        let first = hmac(secret.as_bytes(), words[0].as_bytes());
        words[1..]
            .iter()
            .fold(first, |key, word| hmac(key.as_ref(), word.as_bytes()))
    }
}

fn hmac(key: &[u8], text: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_string(),
    }
}

/// Removes spaces at the ends, and replaces sequences of spaces by one.
fn trimmed(value: &str) -> String {
    let words: Vec<&str> = value.split_ascii_whitespace().collect();
    words.join(" ")
}

fn canonical_headers(signed: &[(String, String)]) -> (String, String) {
    let mut lines = String::new();
    let mut names: Vec<&str> = Vec::new();
    for (name, value) in signed {
        match names.last() {
            Some(last) if last == name => {
                lines.pop();
                lines.push_str(&format!(",{value}\n"));
            }
            _ => {
                names.push(name);
                lines.push_str(&format!("{name}:{value}\n"));
            }
        }
    }
    (lines, names.join(";"))
}

/// Returns the path as it is sent, percent-encoded once more: all services but one require this.
fn canonical_path(url: &Url) -> String {
    let segments: Vec<String> = url.path().split('/').map(escaped).collect();
    segments.join("/")
}

fn canonical_query(url: &Url) -> String {
    let mut pairs: Vec<(String, String)> = url
        .query_pairs()
        .map(|(name, value)| (escaped(&name), escaped(&value)))
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("&")
}

/// Percent-encodes all characters but letters, digits and `-._~`.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Formats a time as `20150830T123600Z`.
fn time(ms: i64) -> String {
    let instant = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
    instant.strftime("%Y%m%dT%H%M%SZ").to_string()
}
