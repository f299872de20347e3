//! A statement with everything that its execution needs: plain data.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use flowstone_flow::ports::Secret;

use super::cell::Cell;
use super::error::DbError;
use crate::socket::Address;

/// A statement, its parameters, and the limits of its answer.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    pub sql: String,
    pub params: Vec<Cell>,
    pub is_read_only: bool,
    pub limits: Limits,
    /// Set when the statement is about to be sent.
    pub is_sent: Arc<AtomicBool>,
}

/// The limits of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub rows: usize,
    pub bytes: u64,
    pub time: Duration,
}

/// A database on a server, and who asks.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub address: Address,
    pub user: String,
    pub password: Option<Secret>,
    pub database: String,
}

/// Counts rows and bytes of an answer while it arrives.
pub(crate) struct Meter {
    limits: Limits,
    rows: usize,
    bytes: u64,
}

impl Meter {
    pub(crate) fn new(limits: Limits) -> Meter {
        Meter {
            limits,
            rows: 0,
            bytes: 0,
        }
    }

    /// Admits one more row.
    pub(crate) fn row(&mut self, cells: &[Cell]) -> Result<(), DbError> {
        self.rows += 1;
        if self.rows > self.limits.rows {
            return Err(DbError::TooManyRows {
                limit: self.limits.rows,
            });
        }
        self.bytes += cells.iter().map(|cell| cell.size() + 8).sum::<u64>();
        match self.bytes > self.limits.bytes {
            true => Err(DbError::TooLarge {
                limit: self.limits.bytes,
            }),
            false => Ok(()),
        }
    }
}

impl Query {
    /// Checks that there is one value for each placeholder.
    pub(crate) fn check_count(&self, placeholders: usize) -> Result<(), DbError> {
        check_count(self.params.len(), placeholders)
    }
}

/// Checks that there is one value for each placeholder.
pub(crate) fn check_count(given: usize, placeholders: usize) -> Result<(), DbError> {
    match given == placeholders {
        true => Ok(()),
        false => Err(DbError::Parameter(format!(
            "the statement has {}, and `:params` has {}",
            counted(placeholders, "placeholder"),
            counted(given, "value"),
        ))),
    }
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
