//! When a flow starts by itself: `:schedules` as data, the ticks of a schedule, and what is done about missed ones.
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

/// What may be wrong with schedules; the flow can be run all the same.
pub const CODES: &[&str] = &["E0460", "E0461", "E0462", "E0463", "E0464"];

/// One of a flow's `:schedules`.
#[derive(Debug, Clone)]
pub struct Schedule {
    pub id: Rc<str>,
    pub label: Option<Rc<str>>,
    /// Which of `:invocations`; `None`: the default one.
    pub invocation: Option<Rc<str>>,
    pub enabled: bool,
    pub timing: Timing,
    /// A map.
    pub input: Value,
    pub catch_up: CatchUp,
    pub span: Span,
}

/// The ticks of a schedule.
#[derive(Debug, Clone)]
pub enum Timing {
    /// Wall-clock times in a zone.
    Cron { cron: Box<Cron>, zone: TimeZone },
    /// At an interval in milliseconds, counted from 1970.
    Every { millis: i64 },
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

/// What to do about the ticks that were missed while no worker ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CatchUp {
    /// Nothing.
    Skip,
    /// The last of them starts a run.
    #[default]
    Latest,
    /// Each starts a run, of the last [`CatchUp::MOST`].
    All,
}

impl CatchUp {
    /// The maximum number of runs that missed ticks start.
    pub const MOST: usize = 100;

    /// All, with their names, sorted.
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
