//! Redirects: their targets, and which parts of a request are sent there.
//!
//! Redirects are followed here rather than by the client below, so that each hop is checked, and credentials for one
//! host never go to another.

use reqwest::{Method, Url};

use super::client::{Request, host};
use super::error::HttpError;

/// The hops of one request.
#[derive(Default)]
pub(super) struct Hops {
    asked: Vec<(Method, Url)>,
}

/// Headers that describe a request, and say nothing of who sends it or on whose behalf. Others are for the first server only.
const PLAIN: &[&str] = &[
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "content-encoding",
    "content-language",
    "content-type",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "range",
    "user-agent",
];

impl Hops {
    /// Returns the checked target of a redirect; `None` if the answer is final.
    pub(super) fn next(
        &mut self,
        request: &Request,
        response: &reqwest::Response,
    ) -> Result<Option<Url>, HttpError> {
        if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(None);
        }
        let Some(location) = response.headers().get("location") else {
            return Ok(None);
        };
        let bad = |what: String| HttpError::BadRedirect {
            host: host(&request.url),
            what,
        };
        let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
        let shown = crate::shown_url::without_password(&location);
        let next = request
            .url
            .join(&location)
            .map_err(|error| bad(format!("to `{shown}`, which is not an address ({error})")))?;
        if !matches!(next.scheme(), "http" | "https") {
            return Err(bad(format!("to `{shown}`, which is not HTTP")));
        }
        if request.url.scheme() == "https" && next.scheme() == "http" {
            return Err(bad(format!("to `{shown}`, from https down to http")));
        }
        self.asked
            .push((request.method.clone(), request.url.clone()));
        if self.asked.len() > request.limits.max_redirects {
            return Err(bad(format!(
                "more than {} times",
                request.limits.max_redirects
            )));
        }
        let method = method_after(request, response.status().as_u16());
        if self.asked.contains(&(method, next.clone())) {
            return Err(bad(format!("in a circle, back to `{}`", next.path())));
        }
        Ok(Some(next))
    }

    /// Changes the request to that of the next hop.
    pub(super) fn follow(&self, request: &mut Request, next: Url, status: u16) {
        let method = method_after(request, status);
        if method != request.method {
            request.method = method;
            request.body = None;
            request
                .headers
                .retain(|(name, _)| !name.to_ascii_lowercase().starts_with("content-"));
        }
        if request.url.origin() != next.origin() {
            request.secret_headers.clear();
            request
                .headers
                .retain(|(name, _)| PLAIN.contains(&name.to_ascii_lowercase().as_str()));
        }
        request.url = next;
    }
}

/// Returns the method of the next hop: as in browsers, a submitted form is not sent again.
fn method_after(request: &Request, status: u16) -> Method {
    match (status, &request.method) {
        (303, method) if *method != Method::HEAD => Method::GET,
        (301 | 302, method) if *method == Method::POST => Method::GET,
        (_, method) => method.clone(),
    }
}
