//! Which names of this server and which pages a request may come from.
//!
//! A page of another site can have a browser send requests to a server on this machine, also under a name that the page's
//! owner points here. Both are refused before anything else is looked at.

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};

use super::problem::{Problem, codes};
use super::settings::ServerSettings;

/// Checks the address and the headers of a request. `is_page` tells whether the address is a page that people open from elsewhere.
///
/// # Errors
/// When the host or the origin is not this server's, or one of the headers is malformed.
pub(super) fn check(
    settings: &ServerSettings,
    (method, uri): (&Method, &Uri),
    headers: &HeaderMap,
    is_page: bool,
) -> Result<(), Problem> {
    single(headers, &header::CONTENT_TYPE, "Content-Type")?;
    let host = single(headers, &header::HOST, "Host")?
        .ok_or_else(|| Problem::malformed("the request has no `Host` header"))?;
    // An address with a host of its own overrides the header.
    let named = uri.authority().map(|it| it.as_str().to_ascii_lowercase());
    if let Some(host) = [Some(host), named]
        .into_iter()
        .flatten()
        .find(|host| !settings.hosts.contains(host))
    {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            codes::HOST,
            format!("this server is not `{host}`"),
        )
        .hint("add the name to `:server {:hosts [...]}` in flowstone.edn, or set `:server {:url ...}`"));
    }
    match single(headers, &header::ORIGIN, "Origin")? {
        Some(origin) if settings.origins.contains(&origin) => Ok(()),
        Some(origin) => Err(foreign(&format!(
            "pages of `{origin}` may not call this server"
        ))),
        None => match single(headers, &SEC_FETCH_SITE, "Sec-Fetch-Site")?.as_deref() {
            Some("cross-site") if !is_opened(method, headers, is_page) => {
                Err(foreign("pages of other sites may not call this server"))
            }
            _ => Ok(()),
        },
    }
}

/// Headers of answers that pages of other origins may read.
const EXPOSED: &str =
    "content-range, etag, idempotent-replayed, location, mcp-session-id, retry-after, x-request-id";
/// Headers that pages of other origins may send.
const SENT: &str = "authorization, content-type, idempotency-key, if-none-match, if-range, last-event-id, mcp-method, \
                    mcp-name, mcp-protocol-version, mcp-session-id, prefer, range, traceparent, tracestate";
/// Methods that pages of other origins may use; the route decides.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
/// For how many seconds a browser may remember what it may send.
const REMEMBERED: &str = "600";

/// Who asks, if that is a page that may read the answer.
#[derive(Debug, Clone)]
pub(super) struct Page {
    origin: HeaderValue,
    /// A browser asks whether it may send a request.
    is_question: bool,
}

impl Page {
    /// Returns the page that a request comes from. Call it only for a request that passed [`check`].
    pub(super) fn of(method: &Method, headers: &HeaderMap) -> Option<Page> {
        let asks = headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        Some(Page {
            origin: headers.get(header::ORIGIN)?.clone(),
            is_question: asks && method == Method::OPTIONS,
        })
    }

    /// Lets the page read an answer. There are no credentials, so a page needs a token of its own.
    pub(super) fn allow(self, headers: &mut HeaderMap) {
        if self.is_question {
            let pairs = [
                (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
                (header::ACCESS_CONTROL_ALLOW_HEADERS, SENT),
                (header::ACCESS_CONTROL_MAX_AGE, REMEMBERED),
            ];
            for (name, value) in pairs {
                headers.insert(name, HeaderValue::from_static(value));
            }
        }
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.origin);
        let exposed = HeaderValue::from_static(EXPOSED);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
}

const SEC_FETCH_SITE: header::HeaderName = header::HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: header::HeaderName = header::HeaderName::from_static("sec-fetch-mode");

/// Tells whether a person opened a page by a link.
fn is_opened(method: &Method, headers: &HeaderMap, is_page: bool) -> bool {
    let mode = headers.get(SEC_FETCH_MODE);
    let is_navigation = mode.is_some_and(|mode| mode == "navigate");
    is_page && is_navigation && (method == Method::GET || method == Method::HEAD)
}

fn foreign(detail: &str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, codes::ORIGIN, detail)
        .hint("list the page's origin in `:server {:origins [...]}` in flowstone.edn")
}

/// Returns the value of a header in lower case.
fn single(
    headers: &HeaderMap,
    name: &header::HeaderName,
    shown: &str,
) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all(name).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return match headers.contains_key(name) {
            true => Err(Problem::malformed(format!(
                "the request has several `{shown}` headers"
            ))),
            false => Ok(None),
        };
    };
    let text = value
        .to_str()
        .map_err(|_| Problem::malformed(format!("the header `{shown}` is not ASCII text")))?;
    Ok(Some(text.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstone_lang::value::Value;

    fn answer(method: Method, is_page: bool, pairs: &[(&'static str, &'static str)]) -> String {
        answer_at("/", method, is_page, pairs)
    }

    fn answer_at(
        target: &'static str,
        method: Method,
        is_page: bool,
        pairs: &[(&'static str, &'static str)],
    ) -> String {
        let address = "127.0.0.1:7373".parse().expect("an address");
        let settings = ServerSettings::of(&Value::Nil, address).expect("settings");
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let uri = Uri::from_static(target);
        match check(&settings, (&method, &uri), &headers, is_page) {
            Ok(()) => "ok".to_owned(),
            Err(problem) => format!("{} {}", problem.status.as_u16(), problem.code),
        }
    }

    #[test]
    fn hosts_and_origins_of_others_are_refused() {
        let host = ("host", "127.0.0.1:7373");
        for (pairs, expected) in [
            (vec![host], "ok"),
            (vec![("host", "LOCALHOST:7373")], "ok"),
            (vec![], "400 E1016"),
            (vec![host, host], "400 E1016"),
            (vec![("host", "localhost")], "403 E1012"),
            (vec![("host", "rebound.example:7373")], "403 E1012"),
            (vec![host, ("origin", "http://localhost:7373")], "ok"),
            (vec![host, ("origin", "http://localhost:7374")], "403 E1013"),
            (
                vec![host, ("origin", "https://localhost:7373")],
                "403 E1013",
            ),
            (vec![host, ("origin", "null")], "403 E1013"),
            (vec![host, ("origin", "http://evil.example")], "403 E1013"),
            (vec![host, ("sec-fetch-site", "same-origin")], "ok"),
            (vec![host, ("sec-fetch-site", "cross-site")], "403 E1013"),
        ] {
            assert_eq!(answer(Method::POST, false, &pairs), expected, "{pairs:?}");
        }
    }

    #[test]
    fn an_address_with_another_host_is_refused_whatever_the_header_says() {
        let pairs = [("host", "127.0.0.1:7373")];
        for (address, expected) in [
            ("http://127.0.0.1:7373/api", "ok"),
            ("http://LOCALHOST:7373/api", "ok"),
            ("http://evil.example/api", "403 E1012"),
            ("http://x@127.0.0.1:7373/api", "403 E1012"),
            ("evil.example:80", "403 E1012"),
        ] {
            let found = answer_at(address, Method::GET, false, &pairs);
            assert_eq!(found, expected, "{address}");
        }
        let types = [pairs[0], ("content-type", "application/json")];
        assert_eq!(answer(Method::POST, false, &types), "ok");
        let types = [types[0], types[1], ("content-type", "text/plain")];
        assert_eq!(answer(Method::POST, false, &types), "400 E1016");
    }

    #[test]
    fn a_link_on_another_site_opens_pages_only() {
        let pairs = [
            ("host", "127.0.0.1:7373"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
        ];
        assert_eq!(answer(Method::GET, true, &pairs), "ok");
        assert_eq!(answer(Method::GET, false, &pairs), "403 E1013");
        assert_eq!(answer(Method::POST, true, &pairs), "403 E1013");
    }
}
