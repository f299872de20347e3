//! Errors of `ssh`, and of the commands that it runs.

use std::time::Duration;

use flowstone_flow::ports::ExchangeError;
use flowstone_flow::step::{Retry, StepError};

use crate::http::error::HttpError;

#[derive(Debug, thiserror::Error)]
pub(super) enum SshError {
    #[error(transparent)]
    Refused(HttpError),
    #[error(transparent)]
    Exchange(Box<ExchangeError>),
    #[error("`ssh` cannot be started: {cause}")]
    NoProgram { cause: String },
    #[error(
        "the key of {place} is not the one that is known: it changed, or another machine answers"
    )]
    KeyChanged { place: String },
    #[error("the key of {place} is not known")]
    KeyUnknown { place: String },
    #[error("{place} refuses the login: {cause}")]
    Login { place: String, cause: String },
    #[error("{place} cannot be reached: {cause}")]
    Unreachable { place: String, cause: String },
    #[error("the connection to {place} was lost: {cause}")]
    Lost { place: String, cause: String },
    #[error("the command on {place} did not end within {} s", limit.as_secs_f64())]
    TimedOut { place: String, limit: Duration },
    #[error("the output of the command on {place} is larger than {limit} bytes")]
    TooLarge { place: String, limit: usize },
    #[error("the command on {place} ended with {exit}{}", last_line(stderr))]
    Exit {
        place: String,
        exit: i32,
        stderr: String,
    },
    #[error("{message}")]
    Files { message: String },
}

/// Returns the last line of an error output, for a message.
fn last_line(stderr: &str) -> String {
    let line = stderr
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty());
    line.map_or_else(String::new, |line| {
        let line: String = line.chars().take(300).collect();
        format!(": {line}")
    })
}

impl SshError {
    fn code(&self) -> (&'static str, &'static str, Retry) {
        match self {
            SshError::Refused(_) | SshError::Exchange(_) => ("E1477", "unavailable", Retry::Never),
            SshError::KeyChanged { .. } | SshError::KeyUnknown { .. } => {
                ("E1476", "untrusted", Retry::Never)
            }
            SshError::Login { .. } => ("E1477", "unauthorized", Retry::Never),
            SshError::Unreachable { .. } => ("E1477", "unavailable", Retry::Backoff),
            SshError::Lost { .. } => ("E1477", "in-doubt", Retry::Never),
            SshError::TimedOut { .. } => ("E1478", "timeout", Retry::Never),
            SshError::Exit { .. } => ("E1479", "exit", Retry::Never),
            SshError::TooLarge { .. } => ("E1480", "too-large", Retry::Never),
            SshError::NoProgram { .. } | SshError::Files { .. } => {
                ("E1481", "unavailable", Retry::Never)
            }
        }
    }

    fn hint(&self) -> &'static str {
        match self {
            SshError::Refused(_) | SshError::Exchange(_) => "",
            SshError::KeyChanged { .. } => {
                "ask the administrator of the machine whether its key is a new one; only then replace it in the list of known hosts"
            }
            SshError::KeyUnknown { .. } => {
                "compare the output of `ssh-keyscan` with what the administrator of the machine says, and put it into a file that `:known-hosts` of the connection names"
            }
            SshError::Login { .. } => {
                "check the user in the connection's `:base-url`, and the key that its `:auth` names"
            }
            SshError::Unreachable { .. } => {
                "check the address of the connection, the network, and that the machine runs"
            }
            SshError::Lost { .. } => "the command may have been executed, or may still run there",
            SshError::TimedOut { .. } => {
                "raise `:timeout`; the command may still run there. Start long work in the background, and let it call back to a `:wait`"
            }
            SshError::TooLarge { .. } => {
                "raise `:max-output-bytes`, or let the command write into a file there"
            }
            SshError::Exit { .. } => {
                "the error's data has `:exit`, `:stdout` and `:stderr`; `:ok-exit-codes` says which codes are fine"
            }
            SshError::NoProgram { .. } => "install OpenSSH's client",
            SshError::Files { .. } => "the folder for temporary files must be writable",
        }
    }
}

impl From<SshError> for StepError {
    fn from(error: SshError) -> StepError {
        match error {
            SshError::Refused(error) => error.into(),
            SshError::Exchange(error) => HttpError::Exchange(error).into(),
            error => {
                let (code, kind, retry) = error.code();
                StepError::new(code, kind, error.to_string())
                    .hint(error.hint())
                    .retry(retry)
            }
        }
    }
}
