//! The language inside another program: functions in Rust, data, limits, several sessions.

mod data;
#[cfg(feature = "edn-rs")]
mod edn_rs;
mod functions;
mod limits;
mod sessions;

use flowstone_embed::{Failure, Session, Value};

/// Returns a value in printed form, or code and message of a failure.
fn shown(session: &Session, result: Result<Value, Failure>) -> String {
    match result {
        Ok(value) => session.show(&value),
        Err(failure) => {
            let diagnostic = failure.diagnostic();
            format!("{} {}", diagnostic.code, diagnostic.message)
                .trim()
                .to_owned()
        }
    }
}
