//! Errors of logins. None of them quotes a token.

use std::path::Path;

use flowstone_flow::permission::Host;
use flowstone_flow::step::StepError;

const NO_LOGIN: &str = "E1314";
const NO_SERVER: &str = "E1315";
const REFUSED: &str = "E1316";
const BAD_REDIRECT: &str = "E1317";
const TOO_LATE: &str = "E1318";
const NOT_KEPT: &str = "E1319";

/// Maximum number of characters that are quoted from a server.
const QUOTED: usize = 200;

/// Returns a server's text for a message: short, on one line.
pub(super) fn quoted(text: &str) -> String {
    let plain = |char: char| match char.is_control() {
        true => ' ',
        false => char,
    };
    text.chars().take(QUOTED).map(plain).collect()
}

fn login_hint(error: StepError, name: &str) -> StepError {
    error.hint(format!("run `flowstone connections login {name}`"))
}

pub(super) fn not_logged_in(name: &str) -> StepError {
    let message = format!("nobody is logged in for the connection `:{name}`");
    login_hint(StepError::new(NO_LOGIN, "denied", message), name)
        .hint("a login is for the connection's `:base-url` as it was then")
}

pub(super) fn expired(name: &str) -> StepError {
    let message = format!("the login of the connection `:{name}` has ended");
    login_hint(StepError::new(NO_LOGIN, "denied", message), name)
}

pub(super) fn refresh_refused(name: &str, why: &str) -> StepError {
    let message = format!(
        "the authorization server does not renew the login of the connection `:{name}`: {why}"
    );
    login_hint(StepError::new(NO_LOGIN, "denied", message), name)
}

pub(super) fn other_host(name: &str, host: &Host) -> StepError {
    let message = format!("the login of the connection `:{name}` is not for {host}");
    StepError::new(NO_LOGIN, "denied", message)
        .hint("a token is sent only to the server of the connection's `:base-url`")
}

/// The authorization server, or its description, cannot be used.
pub(super) fn no_server(why: impl Into<String>) -> StepError {
    StepError::new(NO_SERVER, "bad-response", why)
}

/// The authorization server refuses.
pub(super) fn refused(what: &str, why: &str) -> StepError {
    StepError::new(REFUSED, "denied", format!("{what}: {why}"))
}

pub(super) fn bad_redirect(why: &str) -> StepError {
    let message = format!("the browser came back with an answer that does not fit: {why}");
    StepError::new(BAD_REDIRECT, "denied", message)
        .hint("begin again, and use the link that is shown then")
}

pub(super) fn too_late(why: impl Into<String>) -> StepError {
    StepError::new(TOO_LATE, "timeout", why).hint("begin again; `--timeout 15m` waits longer")
}

pub(super) fn not_kept(path: &Path, why: &dyn std::fmt::Display) -> StepError {
    let message = format!("the login in {} cannot be used: {why}", path.display());
    StepError::new(NOT_KEPT, "unavailable", message)
}

pub(super) fn no_door(why: &dyn std::fmt::Display) -> StepError {
    let message = format!("nothing can listen for the browser on 127.0.0.1: {why}");
    StepError::new(BAD_REDIRECT, "unavailable", message)
        .hint("name another port with `--port`, or use `--device`")
}
