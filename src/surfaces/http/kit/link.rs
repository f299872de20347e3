//! What the links to both pages of the kit have in common: links that lead nowhere, and the page after a form.

use std::time::Instant;

use axum::http::StatusCode;
use axum::response::Response;
use flowstone_engine::EngineError;

use crate::http::access::ProofClass;
use crate::http::pages::{FORM_POLICY, form, page};
use crate::http::problem::Problem;
use crate::http::server::{EngineContext, Peer, Shared};
use crate::pages::kit::{self, Done};

/// The way from a page to the root of the server.
pub(super) const ROOT: &str = "../../../";
/// The code of a link that leads nowhere, or nowhere any more.
const NOT_FOUND: &str = "not_found";

/// Shows what was done, if the address has a receipt for one of these actions.
pub(super) async fn receipt(
    server: &Shared,
    id: String,
    (query, actions): (Option<String>, &'static [(&'static str, Done)]),
) -> Result<Response, Problem> {
    let query = form::pairs(query.as_deref().unwrap_or_default())?;
    let html = server
        .ask(async move |cx: &EngineContext| {
            let text = |name: &str| query.get(name).map_or("", String::as_str);
            let action = text("action");
            let signed = (text("expires").parse().unwrap_or(0), text("signature"));
            let is_good = cx.engine.is_receipt(&id, action, signed)?;
            let done = actions
                .iter()
                .find(|(known, _)| is_good && *known == action);
            let root = format!("{ROOT}../");
            Ok::<_, EngineError>(kit::done(&root, done.map(|(_, done)| *done)))
        })
        .await?;
    Ok(page(StatusCode::OK, html, FORM_POLICY))
}

/// The answer to a link that is used or too late.
pub(super) fn over(why: &str) -> Problem {
    Problem::new(StatusCode::GONE, NOT_FOUND, why)
        .hint("ask the program for a new link, if it still needs you")
}

/// The one answer to a wrong id and to a wrong token.
pub(super) fn nothing() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        NOT_FOUND,
        "this link leads nowhere: it is not complete, or not of this server",
    )
    .hint("open the link exactly as the program gave it to you")
}

pub(super) fn refused(server: &Shared, peer: Peer) -> Problem {
    counted(server, peer, nothing())
}

/// Counts a link that was forged; after too many, the answer is that there were too many.
pub(super) fn counted(server: &Shared, Peer(peer): Peer, problem: Problem) -> Problem {
    if problem.code != NOT_FOUND || problem.status != StatusCode::NOT_FOUND {
        return problem;
    }
    server.metrics.refused("link");
    let refused = server
        .failures
        .note(peer.ip(), ProofClass::KitLink, Instant::now());
    refused.unwrap_or(problem)
}
