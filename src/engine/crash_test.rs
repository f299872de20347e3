//! Tests of flows: a run in a home of its own, on a clock that skips time, with prepared answers.
//!
//! A test process may be ended at a crash point: around each commit, and around each effect outside. A second
//! process resumes what the first left, and [`compare`] reports whether the result differs from that of an undisturbed
//! test. Everything is attached to ports: the engine itself does not know that it is tested.

mod case;
mod compare;
mod corrections;
mod effects;
mod expected;
mod observed;
mod play;
mod points;
mod uses;
mod watched;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

pub use case::Case;
pub use compare::{Comparison, compare};
pub use corrections::{Correction, corrections, ends_as_expected};
pub use effects::{Doubt, EffectLine, read_effects};
pub use expected::unexpected;
pub use play::{CalledStep, TestOutcome, play};
pub use points::Points;
pub use uses::{Unused, Uses, unused};

use flowstone_lang::vm::Coverage;

use crate::error::EngineError;
use crate::ports::{Random, SimulatedClock};
use crate::step::Step;

/// The time at which tests begin: 2030-01-01, midnight in UTC.
const BEGINNING_MS: i64 = 1_893_456_000_000;
/// The file in the home to which each effect is written and synced as it happens.
const EFFECTS: &str = "effects.log";
/// The file in the home that counts the processes of the test.
const PROCESSES: &str = "processes.log";

/// The environment of a flow under test. The code that opens the engine takes clock, randomness and probe from here,
/// and has its steps watched.
pub struct World {
    pub case: Rc<Case>,
    pub clock: Arc<SimulatedClock>,
    pub points: Arc<Points>,
    /// Records which branches of the flow are taken.
    pub coverage: Rc<Coverage>,
    random: Arc<Mutex<u64>>,
    home: PathBuf,
}

impl World {
    /// Prepares a world over a home folder, with a crash at a point if one is given.
    pub fn new(case: Case, home: &Path, crash_at: Option<u64>) -> World {
        case.noted.keep_in(home);
        World {
            case: Rc::new(case),
            clock: Arc::new(SimulatedClock::starting_at(BEGINNING_MS)),
            points: Arc::new(Points::new(crash_at)),
            coverage: Rc::default(),
            random: Arc::new(Mutex::new(0)),
            home: home.to_owned(),
        }
    }

    /// Returns the home folder of the test.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the same randomness for each test of a flow.
    pub fn random(&self) -> Arc<dyn Random> {
        self.random.clone()
    }

    /// Wraps steps so that their effects are recorded, answered from the case, and surrounded by crash points.
    pub fn watch(&self, steps: Vec<Box<dyn Step>>) -> Vec<Box<dyn Step>> {
        let log = Rc::new(effects::Log::new(self.home.join(EFFECTS)));
        steps
            .into_iter()
            .map(|step| -> Box<dyn Step> {
                Box::new(watched::Watched {
                    step,
                    case: self.case.clone(),
                    points: self.points.clone(),
                    log: log.clone(),
                })
            })
            .collect()
    }

    /// Gives the processes of a test different randomness, so that no two draw the same numbers.
    fn reseed(&self, process: u64) {
        let mut seed = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        *seed = process << 32;
    }
}

/// Why a test did not end.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    #[error("{0}")]
    BadCase(String),
    #[error("the flow waits, and nobody answers: {reason}")]
    Unanswered { reason: String, path: String },
    #[error("{path} cannot be used: {detail}")]
    Unusable { path: String, detail: String },
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl TestError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            TestError::BadCase(_) => "E0580",
            TestError::Unanswered { .. } => "E0581",
            TestError::Unusable { .. } => "E0582",
            TestError::Engine(error) => error.code(),
        }
    }

    /// Returns a hint.
    pub fn hint(&self) -> Option<String> {
        match self {
            TestError::BadCase(_) => {
                Some("a case is a map such as {:input {...} :mock {...} :answers {...}}".to_owned())
            }
            TestError::Unanswered { path, .. } => Some(format!(
                "give the answer beforehand: --answer '{path}={{:action :approve}}', or '*=...' for all"
            )),
            TestError::Unusable { .. } | TestError::Engine(_) => None,
        }
    }
}
