//! Forms that pages send. An error about a form quotes nothing of it: a person may have typed a secret.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};

use crate::http::problem::{Problem, codes};
use crate::http::request::{bytes, decoded};

/// The type of the forms.
const TYPE: &str = "application/x-www-form-urlencoded";
/// Maximum size of a form.
const MAX: usize = 64 << 10;

/// The fields of a form or a query, by name.
pub(in crate::http) type Fields = BTreeMap<String, String>;

/// Tells whether a request has a form.
pub(in crate::http) fn is_form(headers: &HeaderMap) -> bool {
    kind(headers).eq_ignore_ascii_case(TYPE)
}

/// Reads a form that was sent by a page.
///
/// # Errors
/// When the body has another type, is too large, or is malformed.
pub(in crate::http) async fn read(headers: &HeaderMap, body: Body) -> Result<Fields, Problem> {
    if !is_form(headers) {
        let name = kind(headers);
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            codes::MEDIA_TYPE,
            format!("expected a form of type `{TYPE}`, got `{name}`"),
        ));
    }
    let bytes = bytes(body, MAX).await?;
    let text = String::from_utf8(bytes).map_err(|_| Problem::malformed("the form is not UTF-8"))?;
    pairs(&text)
}

/// Reads names and values, each name once. Names that nobody knows are of others: mail programs add some to links.
///
/// # Errors
/// When a name is given twice, or an escape is malformed.
pub(in crate::http) fn pairs(text: &str) -> Result<Fields, Problem> {
    let plain = |text: &str| {
        let malformed = |_| Problem::malformed("a field has a malformed escape");
        decoded(text, true).map_err(malformed)
    };
    let mut found = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if found.insert(plain(name)?, plain(value)?).is_some() {
            return Err(Problem::malformed("a field is given twice"));
        }
    }
    Ok(found)
}

/// Returns the media type of a body, without its parameters.
fn kind(headers: &HeaderMap) -> &str {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim()
}
