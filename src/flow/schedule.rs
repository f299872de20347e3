//! Schedules that start runs of a flow: `:schedules` as data, their ticks, and the handling of missed ticks.
//!
//! Pure: the caller passes the current time.

mod cron;
mod ticks;
pub(crate) mod zones;

use std::fmt;
use std::rc::Rc;

use flowstone_lang::value::{Span, Value};
use jiff::tz::TimeZone;

pub use cron::{Cron, CronError};

/// Codes of errors in schedules, which do not prevent a flow from being run.
pub const CODES: &[&str] = &["E0460", "E0461", "E0462", "E0463", "E0464"];

/// An entry of a flow's `:schedules`.
#[derive(Debug, Clone)]
pub struct Schedule {
    pub id: Rc<str>,
    pub label: Option<Rc<str>>,
    /// The name of an invocation; `None`: the default one.
    pub invocation: Option<Rc<str>>,
    pub enabled: bool,
    pub timing: Timing,
    /// A map.
    pub input: Value,
    pub catch_up: CatchUp,
    pub span: Span,
}

/// The rule by which the ticks of a schedule are computed.
#[derive(Debug, Clone)]
pub enum Timing {
    /// Wall-clock times in a zone.
    Cron { cron: Box<Cron>, zone: TimeZone },
    /// At an interval in milliseconds, counted from 1970.
    Every { millis: i64 },
}

impl Timing {
    /// Reads a cron expression of exactly five fields in UTC, without short forms and time zones.
    ///
    /// # Errors
    /// A message that states what is wrong, with the field.
    pub fn utc(text: &str) -> Result<Timing, CronError> {
        let text = text.trim();
        let refused = |message: String, hint: &str| CronError {
            field: None,
            message,
            hint: Some(hint.to_owned()),
        };
        if text.starts_with('@') {
            let message = format!("expected a cron expression of five fields, got `{text}`");
            return Err(refused(message, "for example `0 * * * *` for each hour"));
        }
        if text.contains('=') {
            let message = format!("`{text}` sets a variable, and times are always in UTC");
            return Err(refused(
                message,
                "give five fields only, with the hour in UTC",
            ));
        }
        let cron = Box::new(Cron::parse(text)?);
        let zone = TimeZone::UTC;
        Ok(Timing::Cron { cron, zone })
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Timing::Cron { cron, zone } => {
                write!(out, "{} {}", cron.text(), zone.iana_name().unwrap_or("UTC"))
            }
            Timing::Every { millis } => write!(out, "every {} s", *millis as f64 / 1000.0),
        }
    }
}

/// The handling of ticks that were missed while no worker was running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CatchUp {
    /// Missed ticks start no run.
    Skip,
    /// The latest missed tick starts a run.
    #[default]
    Latest,
    /// Each missed tick starts a run, up to the latest [`CatchUp::MOST`].
    All,
}

impl CatchUp {
    /// The maximum number of runs that missed ticks start.
    pub const MOST: usize = 100;

    /// Returns all variants with their names, sorted.
    pub const NAMES: &'static [(CatchUp, &'static str)] = &[
        (CatchUp::All, "all"),
        (CatchUp::Latest, "latest"),
        (CatchUp::Skip, "skip"),
    ];

    pub fn from_name(name: &str) -> Option<CatchUp> {
        Self::NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(policy, _)| *policy)
    }
}
