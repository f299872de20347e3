//! Edited flows and existing runs: checks unfinished runs against an edited flow, replays past runs with it, and forks
//! runs.
//!
//! All of these compare a flow with a journal, see [`crate::execute`]; only forking and adopting a flow write.

mod backtest;
mod fork;
mod next;
mod replay;

pub use backtest::{Backtest, BacktestOptions, BacktestSummary};
pub use fork::{ForkOptions, Setting};
pub use next::Next;
pub use replay::Replayed;

use crate::codec;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::execute::{Changed, Difference, DryRunEnd, DryRunReport, Purpose, Script, dry_run};
use crate::flow::{self, Flow, LoadedFlow};
use crate::ids::RunId;
use crate::ports::{Adoption, Entry, FlowVersion, Program, RunFilter, RunRow, RunStatus};

/// How an unfinished run and an edited flow fit together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The flow is, form by form, the one that the run was started with.
    Same,
    /// Only code that the run has not reached differs.
    Safe,
    /// Something that the run has done differs.
    Conflict(Box<Difference>),
}

impl Verdict {
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Same => "same",
            Verdict::Safe => "safe",
            Verdict::Conflict(_) => "conflict",
        }
    }
}

/// The result of checking an unfinished run against a flow.
#[derive(Debug, Clone)]
pub struct Against {
    pub row: RunRow,
    pub verdict: Verdict,
    /// Paths of the steps that the run is waiting for or performing.
    pub at: Vec<String>,
    /// Number of steps that are answered from its journal.
    pub answered: usize,
}

impl Engine {
    /// Returns the programs of a flow: those of its runs, newest first, after the served one if no run has it.
    ///
    /// # Errors
    /// When the runs cannot be read.
    pub async fn flow_versions(
        &self,
        flow: &str,
        served: Option<&str>,
    ) -> Result<Vec<FlowVersion>, EngineError> {
        let mut versions = self.services.stores.runs.versions(flow).await?;
        let unused = served.filter(|hash| versions.iter().all(|it| it.program != *hash));
        if let Some(hash) = unused {
            let version = FlowVersion {
                program: hash.to_owned(),
                runs: 0,
                open: 0,
                first_ms: 0,
                last_ms: 0,
            };
            versions.insert(0, version);
        }
        Ok(versions)
    }

    /// Checks each unfinished run of a flow against an edited flow, oldest first. Nothing is performed.
    ///
    /// # Errors
    /// When the runs cannot be read.
    pub async fn check_against_running(
        &self,
        edited: &LoadedFlow,
    ) -> Result<Vec<Against>, EngineError> {
        let filter = RunFilter {
            statuses: vec![
                RunStatus::Queued,
                RunStatus::Running,
                RunStatus::Waiting,
                RunStatus::FailedCompensating,
            ],
            flow: Some(edited.flow.slug.to_string()),
            ..RunFilter::default()
        };
        let mut rows = self.services.stores.runs.list(filter).await?;
        rows.reverse();
        let mut all = Vec::new();
        for row in rows {
            all.push(self.against(row, edited).await?);
        }
        Ok(all)
    }

    /// Checks one run against an edited flow.
    ///
    /// # Errors
    /// When the run cannot be read.
    pub async fn against(&self, row: RunRow, edited: &LoadedFlow) -> Result<Against, EngineError> {
        let program = self.program_of(&row).await?;
        let old = self.flow_of(&row, &program)?;
        let entries = self.services.stores.journal.load(&row.id).await?;
        let is_same = same_forms(&old, &edited.flow);
        let mut script = self.script(&row, edited.program.clone(), entries)?;
        script.changed = Changed::between(&old, &edited.flow);
        let dry_run_report = dry_run(self, script).await?;
        let verdict = match (conflict(&dry_run_report), is_same) {
            (_, true) => Verdict::Same,
            (Some(difference), false) => Verdict::Conflict(Box::new(difference)),
            (None, false) => Verdict::Safe,
        };
        Ok(Against {
            row,
            verdict,
            at: dry_run_report.next,
            answered: dry_run_report.answered,
        })
    }

    /// Continues an unfinished run with an edited flow.
    ///
    /// # Errors
    /// When the run is finished or being executed, or the edited flow makes other requests than the run has made.
    /// Nothing is changed then.
    pub async fn adopt(&self, run: &RunId, edited: &LoadedFlow) -> Result<Verdict, EngineError> {
        let row = self.run_row(run).await?;
        if row.status.is_final() {
            return Err(EngineError::Over {
                run: run.to_string(),
                status: row.status.name(),
            });
        }
        if row.flow != *edited.flow.slug {
            return Err(EngineError::OtherFlow {
                run: run.to_string(),
                flow: row.flow,
                given: edited.flow.slug.to_string(),
            });
        }
        let seen = row.program.clone();
        let bindings = edited.bindings_from(row.bindings.as_deref())?;
        let _active = self.activate(run)?;
        let against = self.against(row, edited).await?;
        if let Verdict::Conflict(difference) = &against.verdict {
            return Err(incompatible(run, difference));
        }
        let now_ms = self.services.clock.now_ms();
        let runs = &self.services.stores.runs;
        let adoption = Adoption {
            run: run.clone(),
            seen,
            program: edited.program.clone(),
            bindings,
            now_ms,
        };
        runs.adopt(adoption).await?;
        Ok(against.verdict)
    }

    pub(crate) async fn program_of(&self, row: &RunRow) -> Result<Program, EngineError> {
        if row.program == crate::sessions::INTERACTIVE {
            return Err(EngineError::Interactive {
                run: row.id.to_string(),
            });
        }
        let program = self.services.stores.runs.program(&row.program).await?;
        program.ok_or_else(|| EngineError::BadProgram {
            run: row.id.to_string(),
            detail: "it is missing".to_owned(),
        })
    }

    pub(crate) fn flow_of(&self, row: &RunRow, program: &Program) -> Result<Flow, EngineError> {
        let session = self.session();
        let checked = flow::reload(&session, program);
        let loaded = checked.loaded.ok_or_else(|| EngineError::BadProgram {
            run: row.id.to_string(),
            detail: "it is not a flow".to_owned(),
        })?;
        Ok((*loaded.flow).clone())
    }

    pub(crate) fn script(
        &self,
        row: &RunRow,
        program: Program,
        entries: Vec<Entry>,
    ) -> Result<Script, EngineError> {
        let (input, secrets) = self.input_of_row(row)?;
        Ok(Script {
            run: row.id.clone(),
            seed: row.seed,
            program,
            input,
            secrets,
            entries,
            changed: Changed::default(),
            purpose: Purpose::Fit,
            wanted: None,
            with_locals: false,
        })
    }
}

/// Refuses a run whose journal was removed.
pub(crate) fn check_journal(row: &RunRow) -> Result<(), EngineError> {
    match row.pruned_ms {
        Some(_) => Err(EngineError::Pruned {
            run: row.id.to_string(),
        }),
        None => Ok(()),
    }
}

/// Returns the first request of a run that the flow does not make.
fn conflict(dry_run_report: &DryRunReport) -> Option<Difference> {
    let mut differences = dry_run_report.differences.iter();
    let met = differences.find(|met| !met.is_compensation())?;
    let mut met = met.clone();
    if met.requested.is_none() {
        met.requested = Some(match &dry_run_report.end {
            DryRunEnd::Open if dry_run_report.next.is_empty() => "nothing".to_owned(),
            DryRunEnd::Open => format!("`{}` next, and not this", dry_run_report.next.join("`, `")),
            DryRunEnd::Value(_) => "nothing: the flow returns before it".to_owned(),
            DryRunEnd::Error(_) => "nothing: the flow fails before it".to_owned(),
        });
    }
    Some(met)
}

/// Returns the error for a flow that conflicts with what a run has done.
fn incompatible(run: &RunId, met: &Difference) -> EngineError {
    let text = |side: &Option<String>| side.clone().unwrap_or_else(|| "nothing".to_owned());
    EngineError::Incompatible {
        run: run.to_string(),
        path: met.path.clone(),
        recorded: text(&met.recorded),
        requested: text(&met.requested),
        place: met.place.clone().map(Box::new),
    }
}

fn same_forms(one: &Flow, other: &Flow) -> bool {
    let text = |flow: &Flow| {
        let definition = codec::canonical(&flow.definition);
        let body = codec::canonical(&flow.body);
        definition.and_then(|definition| body.map(|body| (definition, body)))
    };
    match (text(one), text(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
