//! The differences between two runs: flow, input, steps by their paths, and the end.

use std::collections::BTreeMap;

use flowstone_lang::value::Value;

use super::diff::unified;
use crate::codec;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::flow::program_files;
use crate::ids::RunId;
use crate::outcome::decode_failure;
use crate::ports::{Entry, EntryKind, RunRow};

/// The differences between two runs.
#[derive(Debug, Clone)]
pub struct RunDiff {
    pub a: RunRow,
    pub b: RunRow,
    /// If the flows differ: each text that differs, as a unified diff.
    pub flow: Option<Vec<String>>,
    /// The inputs, as EDN text, if they differ.
    pub input: Option<(String, String)>,
    /// All steps of both runs, in the order of the first run; then those of the second alone.
    pub steps: Vec<StepDiff>,
    /// The ends, if they differ.
    pub end: Option<(String, String)>,
}

/// One path in two runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepDiff {
    pub path: String,
    pub verdict: StepVerdict,
    pub a: Option<StepSide>,
    pub b: Option<StepSide>,
}

/// A step in one of the runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepSide {
    /// The step type.
    pub what: String,
    digest: String,
    /// The beginning of the request, as EDN text.
    pub request: Option<String>,
    /// Its value or its error as EDN text; `None` while it is in progress.
    pub end: Option<String>,
    pub failed: bool,
}

/// How a step of one run compares with that of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepVerdict {
    Same,
    /// The requests differ.
    Request,
    /// The requests are equal, but the results differ.
    Result,
    OnlyA,
    OnlyB,
}

impl StepVerdict {
    /// Returns the name of the verdict, which is stable.
    pub fn name(self) -> &'static str {
        match self {
            StepVerdict::Same => "same",
            StepVerdict::Request => "different request",
            StepVerdict::Result => "different result",
            StepVerdict::OnlyA => "only in the first",
            StepVerdict::OnlyB => "only in the second",
        }
    }
}

impl RunDiff {
    /// Tells whether the runs are equal.
    pub fn is_same(&self) -> bool {
        let same_steps = self
            .steps
            .iter()
            .all(|step| step.verdict == StepVerdict::Same);
        self.flow.is_none() && self.input.is_none() && self.end.is_none() && same_steps
    }
}

impl Engine {
    /// Compares two runs by their journals. Times, random numbers and log lines are ignored.
    ///
    /// # Errors
    /// When one does not exist, its journal was removed, or it cannot be read.
    pub async fn compare_runs(&self, a: &RunId, b: &RunId) -> Result<RunDiff, EngineError> {
        let (a, b) = (self.whole_row(a).await?, self.whole_row(b).await?);
        let journal = &self.services.stores.journal;
        let steps = compare(journal.load(&a.id).await?, journal.load(&b.id).await?);
        let flow = match a.program == b.program && a.flow == b.flow {
            true => None,
            false => Some(self.compare_programs(&a, &b).await?),
        };
        let input = (a.input != b.input).then(|| (a.input.clone(), b.input.clone()));
        let ends = (end_of(&a), end_of(&b));
        Ok(RunDiff {
            flow,
            input,
            steps,
            end: (ends.0 != ends.1).then_some(ends),
            a,
            b,
        })
    }

    async fn whole_row(&self, run: &RunId) -> Result<RunRow, EngineError> {
        let row = self.run_row(run).await?;
        match row.pruned_ms {
            None => Ok(row),
            Some(_) => Err(EngineError::Pruned {
                run: run.to_string(),
            }),
        }
    }

    async fn compare_programs(&self, a: &RunRow, b: &RunRow) -> Result<Vec<String>, EngineError> {
        let (name_a, a) = self.files_of(a).await?;
        let (name_b, b) = self.files_of(b).await?;
        let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let text = |files: &BTreeMap<String, String>, name: &String| {
            files.get(name).cloned().unwrap_or_default()
        };
        let differences = names.into_iter().map(|name| {
            let (one, other) = (text(&a, name), text(&b, name));
            let named = |main: &str| match &**name {
                "" => main.to_owned(),
                name => name.to_owned(),
            };
            unified(&named(&name_a), &named(&name_b), &one, &other)
        });
        Ok(differences.filter(|text| !text.is_empty()).collect())
    }

    /// Returns the name of a run's flow file, and the texts of its flow.
    async fn files_of(
        &self,
        row: &RunRow,
    ) -> Result<(String, BTreeMap<String, String>), EngineError> {
        let program = self.services.stores.runs.program(&row.program).await?;
        Ok(program.as_ref().and_then(program_files).unwrap_or_default())
    }
}

fn compare(a: Vec<Entry>, b: Vec<Entry>) -> Vec<StepDiff> {
    let (order_a, mut a) = sides(a);
    let (order_b, mut b) = sides(b);
    let only_b = order_b.into_iter().filter(|path| !a.contains_key(path));
    let paths: Vec<String> = order_a.iter().cloned().chain(only_b).collect();
    paths
        .into_iter()
        .map(|path| {
            let (a, b) = (a.remove(&path), b.remove(&path));
            let verdict = match (&a, &b) {
                (Some(a), Some(b)) if a.what != b.what || a.digest != b.digest => {
                    StepVerdict::Request
                }
                (Some(a), Some(b)) if a.end != b.end => StepVerdict::Result,
                (Some(_), Some(_)) => StepVerdict::Same,
                (Some(_), None) => StepVerdict::OnlyA,
                (None, _) => StepVerdict::OnlyB,
            };
            StepDiff {
                path,
                verdict,
                a,
                b,
            }
        })
        .collect()
}

/// Returns the paths of steps in order, with their states.
fn sides(entries: Vec<Entry>) -> (Vec<String>, BTreeMap<String, StepSide>) {
    let mut order = Vec::new();
    let mut sides: BTreeMap<String, StepSide> = BTreeMap::new();
    for entry in entries {
        let ends = match entry.kind {
            EntryKind::Result => Some(false),
            EntryKind::Error => Some(true),
            EntryKind::Intent | EntryKind::Timer | EntryKind::Signal => None,
            EntryKind::Begin
            | EntryKind::Cost
            | EntryKind::Draft
            | EntryKind::Note
            | EntryKind::Log
            | EntryKind::Reuse => continue,
        };
        let side = sides.entry(entry.path.clone()).or_insert_with(|| {
            order.push(entry.path.clone());
            StepSide {
                what: entry.what.clone(),
                digest: entry.digest.clone(),
                request: None,
                end: None,
                failed: false,
            }
        });
        if entry.request.is_some() {
            side.request = entry.request;
        }
        if let Some(failed) = ends {
            side.failed = failed;
            side.end = Some(entry.payload);
        }
    }
    (order, sides)
}

/// Describes how a run ended, or its current state.
fn end_of(row: &RunRow) -> String {
    let status = row.status.name();
    let error = row.error.as_deref().and_then(decode_failure);
    match (&row.result, error) {
        (Some(result), _) => format!("{status}: {result}"),
        (None, Some(failure)) => {
            let exception = failure.exception;
            let message = format!("{} {}", exception.code, exception.text());
            format!("{status}: {}", message.trim_start())
        }
        (None, None) => status.to_owned(),
    }
}

/// Returns the end of a step as text: its value as EDN, or the message of its error. `end`: the stored value or error.
pub fn shown_end(end: Option<&str>, is_failed: bool) -> String {
    match end {
        None => "(not over)".to_owned(),
        Some(text) if is_failed => match codec::decode(text) {
            Ok(Value::Exception(exception)) => exception.display_text().to_owned(),
            _ => text.to_owned(),
        },
        Some(text) => text.to_owned(),
    }
}
