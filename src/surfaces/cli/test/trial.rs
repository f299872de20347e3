//! One test, and many at once: each runs in a thread of its own, and their results keep their order.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use flowstone_engine::crash_test::{Case, Correction};
use flowstone_lang::vm::CoveredArm;

use super::super::report::Report;
use super::super::{App, stack};
use super::code;
use super::flow::{self, Tested};
use super::suite::Suite;
use super::{Test, overridden};

/// What a test is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A case of a flow: the one with this index in a file, or the flow without input.
    Flow {
        flow: PathBuf,
        suite: Option<PathBuf>,
        idx: usize,
    },
    /// A file with tests of `clojure.test`.
    Code(PathBuf),
}

/// A test to perform.
#[derive(Debug)]
pub struct Trial {
    pub subject: Subject,
    /// The name of the case.
    pub case: Option<String>,
    /// Why it is not performed.
    pub skip: Option<String>,
}

/// The result of a test.
#[derive(Debug)]
pub struct Ended {
    /// The file that is tested: a flow, or one with tests of `clojure.test`.
    pub file: String,
    /// The name of the case, or of the test in the file.
    pub case: Option<String>,
    pub verdict: Verdict,
    pub took: Duration,
    /// The object about it for programs.
    pub json: serde_json::Value,
    /// What the test reached of the flow.
    pub reached: Reached,
    /// The file of the case, and the number of the case there.
    pub source: Option<(PathBuf, usize)>,
    /// What the case would have to expect instead, with `--update`.
    pub corrections: Vec<Correction>,
}

/// What a test reached of a flow.
#[derive(Debug, Default)]
pub struct Reached {
    /// The ids of the steps of the flow's text.
    pub declared: Vec<String>,
    /// The ids of those that were called.
    pub called: Vec<String>,
    /// The branches of the flow's text.
    pub arms: Vec<CoveredArm>,
}

/// What a test found.
#[derive(Debug)]
pub enum Verdict {
    Passed,
    /// It ended, but not as expected.
    Failed(Vec<Report>),
    /// It could not be performed.
    NotTried(Box<Report>),
    Skipped(String),
}

impl Ended {
    /// Tells whether nothing is wrong.
    pub fn is_well(&self) -> bool {
        matches!(self.verdict, Verdict::Passed | Verdict::Skipped(_))
    }

    /// Returns the name of the test: the file, and the case.
    pub fn name(&self) -> String {
        named(&self.file, self.case.as_deref())
    }
}

fn named(file: &str, case: Option<&str>) -> String {
    match case {
        Some("test") | None => file.to_owned(),
        Some(case) => format!("{file}: {case}"),
    }
}

impl Trial {
    /// Returns the name of the test: the file, and the case.
    pub fn name(&self) -> String {
        named(&self.file().display().to_string(), self.case.as_deref())
    }

    /// Returns the file that is tested.
    pub fn file(&self) -> &Path {
        match &self.subject {
            Subject::Flow { flow, .. } => flow,
            Subject::Code(file) => file,
        }
    }

    /// Tells whether the test is shown in detail if it is the only one.
    pub fn is_alone(&self) -> bool {
        matches!(self.subject, Subject::Flow { .. }) && self.skip.is_none()
    }

    /// Tests the case of a flow, and shows its progress.
    ///
    /// # Errors
    /// When the test cannot be performed.
    pub fn flow(&self, args: &Test, app: &dyn App) -> Result<Tested, Report> {
        self.tested((args, app), args.quiet || args.json, false)
    }

    fn tested(
        &self,
        (args, app): (&Test, &dyn App),
        is_quiet: bool,
        records: bool,
    ) -> Result<Tested, Report> {
        let Subject::Flow { flow, suite, idx } = &self.subject else {
            unreachable!("only cases of flows are tested so");
        };
        let (case, replay) = match suite {
            None => (Case::default(), None),
            Some(file) => {
                let named = Suite::read(file, Some(flow))?.cases.into_iter().nth(*idx);
                match named {
                    Some(named) => (named.case, named.replay),
                    None => {
                        let message = format!("{} changed during the test", file.display());
                        return Err(Report::error(super::NOT_A_SUITE, message));
                    }
                }
            }
        };
        let trial = flow::Trial {
            args,
            file: flow,
            case: overridden(args, case)?,
            replay: replay.as_deref(),
            records,
            is_quiet,
        };
        flow::whole(trial, app)
    }

    /// Performs the test. A file with several tests has several results.
    fn perform(&self, args: &Test, app: &dyn App, records: bool) -> Vec<Ended> {
        let started = Instant::now();
        let file = self.file().display().to_string();
        let source = match &self.subject {
            Subject::Flow { suite, idx, .. } => suite.clone().map(|suite| (suite, *idx)),
            Subject::Code(_) => None,
        };
        let ended = |verdict, json, reached| Ended {
            file: file.clone(),
            case: self.case.clone(),
            verdict,
            took: started.elapsed(),
            json,
            reached,
            source: source.clone(),
            corrections: Vec::new(),
        };
        if let Some(why) = &self.skip {
            let json = serde_json::json!({"ok": true, "flow": file, "skipped": why});
            return vec![ended(
                Verdict::Skipped(why.clone()),
                json,
                Reached::default(),
            )];
        }
        match &self.subject {
            Subject::Code(path) => code::perform(path, args, app),
            Subject::Flow { .. } => match self.tested((args, app), true, records) {
                Err(report) => {
                    let json = not_tried(&file, &report);
                    vec![ended(
                        Verdict::NotTried(Box::new(report)),
                        json,
                        Reached::default(),
                    )]
                }
                Ok(tested) => {
                    let verdict = match tested.problems.is_empty() {
                        true => Verdict::Passed,
                        false => Verdict::Failed(tested.problems),
                    };
                    let called = tested.outcome.steps.into_iter();
                    let reached = Reached {
                        declared: tested.declared,
                        called: called.map(|step| step.id).collect(),
                        arms: tested.arms,
                    };
                    vec![Ended {
                        corrections: tested.corrections,
                        ..ended(verdict, tested.json, reached)
                    }]
                }
            },
        }
    }
}

/// Returns the object about a test that could not be performed.
pub fn not_tried(file: &str, report: &Report) -> serde_json::Value {
    use super::super::report::Shown as _;
    serde_json::json!({"ok": false, "flow": file, "error": report.to_json()})
}

/// Performs tests.
pub struct Trials<'a> {
    pub args: &'a Test,
    pub app: &'static dyn App,
    /// Whether recordings of cases are made again.
    pub records: bool,
}

impl Trials<'_> {
    /// Performs tests side by side, and returns their results in order.
    pub fn perform(&self, trials: &[&Trial]) -> Vec<Ended> {
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<(usize, Vec<Ended>)>> = Mutex::default();
        let bar = super::format::bar(self.args, trials.len());
        let worker = || {
            loop {
                let at = next.fetch_add(1, Ordering::SeqCst);
                let Some(trial) = trials.get(at) else {
                    return;
                };
                let mut ended = trial.perform(self.args, self.app, self.records);
                for ended in &mut ended {
                    add_case(ended);
                }
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                done.push((at, ended));
                bar.inc(1);
            }
        };
        let most = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.args.jobs.unwrap_or(most).clamp(1, trials.len().max(1));
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // Without a thread, the others perform its tests.
                let _ = stack::spawn_scoped(scope, worker);
            }
            worker();
        });
        bar.finish_and_clear();
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(at, _)| *at);
        done.into_iter().flat_map(|(_, ended)| ended).collect()
    }
}

/// Adds the name of the case, and the time that it took, to the object about a test.
fn add_case(ended: &mut Ended) {
    if let Some(case) = &ended.case {
        ended.json["case"] = case.as_str().into();
    }
    ended.json["took_ms"] = u64::try_from(ended.took.as_millis())
        .unwrap_or(u64::MAX)
        .into();
}
