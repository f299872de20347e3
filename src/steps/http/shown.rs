//! Addresses and bodies for messages: without secrets, and not too long.

use flowstone_flow::redact::cut;
use reqwest::Url;

/// Maximum number of characters of an address.
const LONGEST_URL: usize = 400;
/// Maximum number of characters of a body.
const LONGEST_BODY: usize = 200;

/// Returns an address without user and password, and without the values of query parameters with secret-like names.
pub fn url(url: &Url) -> String {
    let mut bare = url.clone();
    // These only fail for addresses without a host, which have no user either.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    bare.set_fragment(None);
    bare.set_query(None);
    let mut shown = String::from(bare);
    if let Some(query) = url.query() {
        let pairs = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, value)) if !value.is_empty() && is_secret(name) => format!("{name}=..."),
            _ => pair.to_owned(),
        });
        shown.push('?');
        shown.push_str(&pairs.collect::<Vec<_>>().join("&"));
    }
    cut(&shown, LONGEST_URL)
}

/// Returns the beginning of a body on one line; `None` if there is no body or it is not text.
pub fn beginning(body: &[u8]) -> Option<String> {
    let start = &body[..body.len().min(8 * LONGEST_BODY)];
    let start = match std::str::from_utf8(start) {
        Ok(text) => text,
        // A truncated character.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return None,
    };
    let words: Vec<&str> = start.split_whitespace().collect();
    let line: String = words.join(" ");
    let is_text = !line.is_empty() && !line.chars().any(char::is_control);
    is_text.then(|| cut(&line, LONGEST_BODY))
}

/// Tells whether the name of a query parameter suggests a secret.
fn is_secret(name: &str) -> bool {
    const WHOLE: &[&str] = &[
        "auth",
        "authorization",
        "code",
        "key",
        "pass",
        "session",
        "sessionid",
        "sid",
        "sig",
    ];
    const PARTS: &[&str] = &[
        "accesskey",
        "apikey",
        "credential",
        "jwt",
        "passw",
        "privatekey",
        "pwd",
        "secret",
        "signature",
        "token",
    ];
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|char| char.to_ascii_lowercase())
        .collect();
    WHOLE.contains(&plain.as_str()) || PARTS.iter().any(|part| plain.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out_of_addresses() {
        for (given, expected) in [
            ("https://example.com", "https://example.com/"),
            (
                "http://127.0.0.1:8899/a/b?x=1&y=#top",
                "http://127.0.0.1:8899/a/b?x=1&y=",
            ),
            ("https://ada:pw@example.com/x", "https://example.com/x"),
            ("https://ghp_token@example.com/x", "https://example.com/x"),
            (
                "https://e.com/?q=a&api_key=k1&access_token=t&X-Amz-Signature=s&page=2",
                "https://e.com/?q=a&api_key=...&access_token=...&X-Amz-Signature=...&page=2",
            ),
            (
                "https://e.com/?key=1&keyword=2&sig=3&author=4",
                "https://e.com/?key=...&keyword=2&sig=...&author=4",
            ),
            (
                "https://e.com/?client%5Fsecret=1",
                "https://e.com/?client%5Fsecret=...",
            ),
        ] {
            assert_eq!(url(&Url::parse(given).expect("a URL")), expected);
        }
        let long = format!("https://e.com/{}", "x".repeat(1000));
        assert_eq!(url(&Url::parse(&long).expect("a URL")).chars().count(), 401);
    }

    #[test]
    fn the_beginning_of_a_body_is_a_line() {
        let shown = |body: &[u8]| beginning(body);
        assert_eq!(
            shown(b"{\n  \"error\": \"no\"\n}"),
            Some("{ \"error\": \"no\" }".into())
        );
        assert_eq!(shown(b""), None);
        assert_eq!(shown(b" \n"), None);
        assert_eq!(shown(b"\x89PNG\x00\xff"), None);
        assert_eq!(shown(b"a\x00b"), None);
        let long = "é".repeat(5000);
        assert_eq!(
            shown(long.as_bytes()),
            Some(format!("{}…", "é".repeat(200)))
        );
    }
}
