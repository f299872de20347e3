//! Replays past runs with an edited flow: a regression test made of real runs.

use crate::engine::Engine;
use crate::error::EngineError;
use crate::execute::{Changed, Difference, DryRunEnd, Purpose, Resolution, Script, dry_run};
use crate::flow::{LoadedFlow, coerce_input};
use crate::outcome::decode_failure;
use crate::ports::{RunFilter, RunRow, RunStatus};

/// The options of a backtest.
#[derive(Debug, Clone, Default)]
pub struct BacktestOptions {
    pub runs: RunFilter,
    /// Only runs that were started since then.
    pub since_ms: Option<i64>,
    /// Perform reads and model calls that no journal answers.
    pub live: bool,
}

/// The replay of one run with the edited flow.
#[derive(Debug, Clone)]
pub struct Backtest {
    pub row: RunRow,
    /// The requests that differ, in order.
    pub differences: Vec<Difference>,
    /// Number of steps answered from the journal.
    pub answered: usize,
    /// How the run ended, as text or EDN.
    pub recorded: String,
    /// How it would end; `None` if that depends on calls that were not made.
    pub now: Option<String>,
}

impl Backtest {
    /// Tells whether the run would make the same requests and end the same.
    pub fn is_same(&self) -> bool {
        self.differences.is_empty() && self.now.as_ref() == Some(&self.recorded)
    }

    /// Tells whether it would end differently, as far as that is known.
    pub fn ends_differently(&self) -> bool {
        self.now.as_ref().is_some_and(|now| *now != self.recorded)
    }

    /// Tells whether the end depends on recorded answers to changed requests.
    pub fn is_assumed(&self) -> bool {
        let assumed = |met: &Difference| met.answer == Resolution::Assumed;
        self.differences.iter().any(assumed)
    }

    /// Returns the verdict as one word.
    pub fn verdict(&self) -> &'static str {
        match (self.is_same(), self.ends_differently(), &self.now) {
            (true, _, _) => "same",
            (false, true, _) => "different end",
            (false, false, None) => "unknown",
            (false, false, Some(_)) if self.is_assumed() => "same end, assumed",
            (false, false, Some(_)) => "same end",
        }
    }
}

/// The replays of many runs.
#[derive(Debug, Clone, Default)]
pub struct BacktestSummary {
    pub tests: Vec<Backtest>,
    /// Runs that could not be replayed, with the reason.
    pub skipped: Vec<(RunRow, EngineError)>,
}

impl Engine {
    /// Replays past runs of a flow with an edited one. Equal requests are answered from the journals; nothing is
    /// written.
    ///
    /// # Errors
    /// When the runs cannot be listed.
    pub async fn backtest(
        &self,
        edited: &LoadedFlow,
        options: BacktestOptions,
    ) -> Result<BacktestSummary, EngineError> {
        let mut filter = options.runs;
        filter
            .flow
            .get_or_insert_with(|| edited.flow.slug.to_string());
        if filter.statuses.is_empty() {
            filter.statuses = vec![RunStatus::Completed, RunStatus::Failed];
        }
        let mut summary = BacktestSummary::default();
        for row in self.services.stores.runs.list(filter).await? {
            if options.since_ms.is_some_and(|since| row.created_ms < since) {
                break;
            }
            match self.backtest_one(&row, edited, options.live).await {
                Ok(test) => summary.tests.push(test),
                Err(error) => summary.skipped.push((row, error)),
            }
        }
        Ok(summary)
    }

    async fn backtest_one(
        &self,
        row: &RunRow,
        edited: &LoadedFlow,
        live: bool,
    ) -> Result<Backtest, EngineError> {
        let program = self.program_of(row).await?;
        let old = self.flow_of(row, &program)?;
        let entries = self.services.stores.journal.load(&row.id).await?;
        super::check_journal(row)?;
        let (input, secrets) = self.input_of_row(row)?;
        let script = Script {
            run: row.id.clone(),
            seed: row.seed,
            program: edited.program.clone(),
            input: coerce_input(&edited.flow, row.invocation.as_deref(), &input)?,
            secrets,
            entries,
            changed: Changed::between(&old, &edited.flow),
            purpose: Purpose::Differences { live },
            wanted: None,
            with_locals: false,
        };
        let dry_run_report = dry_run(self, script).await?;
        let failure = |text: &str| match decode_failure(text) {
            Some(failure) => format!("failed: {}", failure.exception.text()),
            None => format!("failed: {text}"),
        };
        let recorded = match (&row.status, &row.result, &row.error) {
            (RunStatus::Completed, Some(result), _) => result.clone(),
            (_, _, Some(error)) => failure(error),
            (status, _, _) => status.name().to_owned(),
        };
        let now = match &dry_run_report.end {
            DryRunEnd::Value(text) => Some(text.clone()),
            DryRunEnd::Error(text) => Some(failure(text)),
            DryRunEnd::Open => None,
        };
        // The compensation of a failed run follows its end.
        let mut dry_run_report = dry_run_report;
        dry_run_report
            .differences
            .retain(|met| !met.is_compensation());
        // The flow ended without this step: its branch lost a race, in which the step may or may not have begun.
        if now.is_some() && old.body == edited.flow.body {
            let is_lost =
                |met: &Difference| met.recorded.is_none() && met.answer == Resolution::Stopped;
            dry_run_report.differences.retain(|met| !is_lost(met));
        }
        Ok(Backtest {
            row: row.clone(),
            differences: dry_run_report.differences,
            answered: dry_run_report.answered,
            recorded,
            now,
        })
    }
}
