//! Links to the pages of the kit: where a person decides about a call, or completes a request for a connection.
//!
//! A link ends with what it is for, and is signed with the key of the project's links, so nothing about it is stored.

use flowstone_engine::links::KitPage;

use super::context::KitCall;
use super::error::KitError;

/// The addresses of approvals, below the server.
pub const APPROVALS: &str = "/api/tools/approvals";
/// The addresses of requests for connections, below the server.
pub const CONNECTIONS: &str = "/api/tools/connections";

/// Where the login page of an authorization server leads back to. It is the path that `connections login` uses, so that a
/// client that is registered for one is registered for the other.
pub const CALLBACK: &str = "/callback";

/// What a link leads to.
#[derive(Debug, Clone)]
pub enum Linked<T> {
    Open(T),
    /// It was used, or has expired, and why.
    Over(String),
    /// The link is forged, or of another page.
    Nothing,
}

/// Returns the link to a page; `None` where no server is.
pub(super) fn url(
    cx: &KitCall<'_>,
    page: KitPage,
    (id, expires_ms): (&str, i64),
) -> Result<Option<String>, KitError> {
    let Some(base) = cx.origin.base.as_deref().filter(|base| !base.is_empty()) else {
        return Ok(None);
    };
    let path = match page {
        KitPage::Approval => APPROVALS,
        KitPage::Connection => CONNECTIONS,
    };
    let token = cx.engine.kit_token(page, id, expires_ms)?;
    Ok(Some(format!("{base}{path}/{id}?token={token}")))
}
