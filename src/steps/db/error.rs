//! Errors between a flow and a database, named so that a flow and a person can act on them.

use std::time::Duration;

use flowstone_flow::ports::ExchangeError;
use flowstone_flow::step::{Retry, StepError};

use crate::http::error::HttpError;
use crate::http::tls::Fault;
use crate::socket::SocketError;

/// The reason why a statement has no usable answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DbError {
    #[error(transparent)]
    Refused(HttpError),
    #[error("{place} cannot be reached: {cause}")]
    Unreachable { place: String, cause: String },
    #[error("{place} closed the connection: {cause}")]
    Cut { place: String, cause: String },
    #[error("{place} does not speak the protocol of {wanted}: {cause}")]
    Protocol {
        place: String,
        wanted: &'static str,
        cause: String,
    },
    #[error("{place} cannot be trusted: {}", fault.message)]
    Untrusted { place: String, fault: Fault },
    #[error("{place} offers no TLS")]
    NoTls { place: String },
    #[error("{place} refuses the login: {message}")]
    Login { place: String, message: String },
    #[error("{place} refuses the statement: {message}")]
    Statement {
        place: String,
        message: String,
        /// The five characters of SQL, if the database reports them.
        state: String,
        /// The database's own number, if it has one.
        number: Option<i64>,
        detail: Vec<String>,
    },
    #[error("{place} did not answer within {} s", limit.as_secs_f64())]
    TimedOut { place: String, limit: Duration },
    #[error("the answer has more than {limit} rows")]
    TooManyRows { limit: usize },
    #[error("the answer is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("{0}")]
    Unfit(String),
    #[error("the statement may only read, and {0}")]
    ReadOnly(String),
    #[error("{0}")]
    Parameter(String),
    #[error("{place} cannot be opened as a database: {cause}")]
    NoFile { place: String, cause: String },
    #[error("{message}")]
    Config { message: String, hint: String },
    /// A statement that writes was sent, and there was no answer.
    #[error("it is not known whether the statement was executed: {0}")]
    InDoubt(Box<DbError>),
    #[error(transparent)]
    Exchange(Box<ExchangeError>),
}

/// How a flow sees an error of the database.
struct Seen {
    kind: &'static str,
    retry: Retry,
}

impl From<SocketError> for DbError {
    fn from(error: SocketError) -> DbError {
        match error {
            SocketError::Refused(refused) => DbError::Refused(HttpError::Refused(refused)),
            SocketError::Unreachable { place, cause } => DbError::Unreachable { place, cause },
            SocketError::Cut { place, cause } => DbError::Cut { place, cause },
            SocketError::Untrusted { place, fault } => DbError::Untrusted { place, fault },
            SocketError::TooLarge { limit, .. } => DbError::TooLarge { limit },
            SocketError::Wrong { message, hint } => DbError::Config {
                message,
                hint: hint.to_owned(),
            },
        }
    }
}

impl DbError {
    /// Tells whether the statement may have been executed although there is no answer.
    pub(crate) fn leaves_doubt(&self) -> bool {
        matches!(
            self,
            DbError::Cut { .. } | DbError::TimedOut { .. } | DbError::Protocol { .. }
        )
    }

    /// Returns the state that the database reports; for recordings.
    fn seen(state: &str, number: Option<i64>) -> Seen {
        let again = |kind| Seen {
            kind,
            retry: Retry::Backoff,
        };
        let never = |kind| Seen {
            kind,
            retry: Retry::Never,
        };
        match (state.get(..2).unwrap_or_default(), state, number) {
            // Too many connections, lock wait timeout, deadlock, statement timeouts: numbers of MySQL and MariaDB.
            (_, _, Some(1040 | 1203)) => again("unavailable"),
            (_, _, Some(1205 | 1213)) => again("conflict"),
            (_, _, Some(1317 | 1969 | 3024)) => never("timeout"),
            (_, _, Some(1044 | 1142 | 1143 | 1227 | 1370)) => never("denied"),
            (_, "40001" | "40P01" | "55P03", _) => again("conflict"),
            (_, "57014", _) => never("timeout"),
            ("08" | "53", _, _) | (_, "57P01" | "57P02" | "57P03" | "SQLITE_BUSY", _) => {
                again("unavailable")
            }
            (_, "42501", _) => never("denied"),
            ("23", _, _) => never("conflict"),
            _ => never("invalid"),
        }
    }

    fn code(&self) -> (&'static str, &'static str, Retry) {
        match self {
            DbError::Refused(_) | DbError::Exchange(_) | DbError::InDoubt(_) => {
                ("E1465", "unavailable", Retry::Never)
            }
            DbError::Config { .. } => ("E1462", "bad-config", Retry::Never),
            DbError::Parameter(_) => ("E1464", "bad-config", Retry::Never),
            DbError::Unreachable { .. } | DbError::Cut { .. } => {
                ("E1465", "unavailable", Retry::Backoff)
            }
            DbError::Protocol { .. } => ("E1466", "bad-response", Retry::Never),
            DbError::Login { .. } => ("E1467", "unauthorized", Retry::Never),
            DbError::Statement { state, number, .. } => {
                let seen = DbError::seen(state, *number);
                ("E1468", seen.kind, seen.retry)
            }
            DbError::NoFile { .. } => ("E1474", "not-found", Retry::Never),
            DbError::TimedOut { .. } => ("E1469", "timeout", Retry::Backoff),
            DbError::TooManyRows { .. } | DbError::TooLarge { .. } => {
                ("E1470", "too-large", Retry::Never)
            }
            DbError::Unfit(_) => ("E1471", "bad-response", Retry::Never),
            DbError::ReadOnly(_) => ("E1472", "denied", Retry::Never),
            DbError::Untrusted { .. } | DbError::NoTls { .. } => {
                ("E1473", "untrusted", Retry::Never)
            }
        }
    }

    fn hint(&self) -> String {
        match self {
            DbError::Refused(_) | DbError::Exchange(_) => String::new(),
            DbError::Config { hint, .. } => hint.clone(),
            DbError::Parameter(_) => "`:params` has one value for each `?` of the statement".into(),
            DbError::Unreachable { .. } => {
                "check the address of the connection, the network, and that the database runs".into()
            }
            DbError::Cut { .. } => "the database or something before it stopped; try again".into(),
            DbError::Protocol { .. } => {
                "check the port of the connection, and its `:backend`".into()
            }
            DbError::Login { .. } => {
                "check the user in the connection's `:base-url` or `:auth`, and the secret that it names".into()
            }
            DbError::Statement { detail, .. } => detail.first().cloned().unwrap_or_default(),
            DbError::NoFile { .. } => {
                "the path in `:base-url \"sqlite:...\"` is relative to the project's folder".into()
            }
            DbError::TimedOut { .. } => "raise `:timeout`, or ask for less".into(),
            DbError::TooManyRows { .. } => {
                "write `limit` in the statement, or raise `:max-results`".into()
            }
            DbError::TooLarge { .. } => {
                "name the columns that are needed, write `limit`, or raise `:max-bytes`".into()
            }
            DbError::Unfit(_) => "convert the column in the statement: `cast(... as ...)`, and name it with `as`".into(),
            DbError::ReadOnly(_) => {
                "if it is to change something, say `:read-only false`".into()
            }
            DbError::Untrusted { fault, .. } => fault.hint.into(),
            DbError::NoTls { .. } => {
                "turn TLS on at the database; `:tls :off` of the connection in flowstone.edn goes without".into()
            }
            DbError::InDoubt(_) => {
                "look into the database before you run it again".into()
            }
        }
    }
}

impl From<DbError> for StepError {
    fn from(error: DbError) -> StepError {
        match error {
            DbError::Refused(refused) => return StepError::from(refused),
            DbError::Exchange(error) => return StepError::from(HttpError::Exchange(error)),
            DbError::InDoubt(inner) => {
                let message = DbError::InDoubt(inner).to_string();
                return StepError::new("E1465", "in-doubt", message)
                    .hint("look into the database before you run it again");
            }
            _ => {}
        }
        let (code, kind, retry) = error.code();
        let step = StepError::new(code, kind, error.to_string()).retry(retry);
        let step = match error.hint() {
            hint if hint.is_empty() => step,
            hint => step.hint(hint),
        };
        match error {
            DbError::Statement {
                state,
                number,
                detail,
                ..
            } => {
                let step = detail.into_iter().skip(1).fold(step, StepError::hint);
                let step = match state.is_empty() {
                    true => step,
                    false => step.with("sql-state", state),
                };
                match number {
                    Some(number) => step.with("number", number),
                    None => step,
                }
            }
            _ => step,
        }
    }
}
