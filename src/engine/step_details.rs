//! One step with all that it was asked for. The journal keeps the beginning of a request; the whole of it is
//! found by replaying the run, in which nothing is performed.

use crate::engine::Engine;
use crate::error::EngineError;
use crate::execute::{Script, WholeRequest, dry_run};
use crate::ids::RunId;
use crate::outcome::FailurePlace;
use crate::ports::{RunRow, WaitRow};
use crate::report::StepReport;

/// One step of a run.
#[derive(Debug, Clone)]
pub struct StepDetails {
    pub step: StepReport,
    /// Its config with the defaults, as EDN text; the kept beginning where the run cannot be replayed.
    pub request: Option<String>,
    /// Whether that is all of it.
    pub is_whole: bool,
    /// Where the flow asks for it.
    pub place: Option<FailurePlace>,
    /// What it waited for.
    pub waits: Vec<WaitRow>,
}

impl Engine {
    /// Returns one step of a run, by its path.
    ///
    /// # Errors
    /// When there is no such run or step, or it cannot be read.
    pub async fn show_step(&self, run: &RunId, path: &str) -> Result<StepDetails, EngineError> {
        let mut report = self.show_run(run).await?;
        let at = report.steps.iter().position(|step| step.path == path);
        let Some(at) = at else {
            return Err(EngineError::NoSuchStep {
                run: run.to_string(),
                step: path.to_owned(),
                steps: report.steps.iter().map(|step| step.path.clone()).collect(),
            });
        };
        let step = report.steps.swap_remove(at);
        let questions = format!("{path}?");
        let is_of_step = |wait: &WaitRow| wait.path == path || wait.path.starts_with(&questions);
        report.waits.retain(is_of_step);
        let asked = self.asked(&report.row, path).await;
        Ok(StepDetails {
            is_whole: asked.is_some(),
            request: match &asked {
                Some(asked) => Some(asked.request.clone()),
                None => step.request.clone(),
            },
            place: asked.and_then(|asked| asked.place).map(|place| *place),
            waits: report.waits,
            step,
        })
    }

    /// Replays a run to find out what it asks for at a path. Nothing where that cannot be done.
    async fn asked(&self, row: &RunRow, path: &str) -> Option<WholeRequest> {
        let stores = &self.services.stores;
        let program = stores.runs.program(&row.program).await.ok()??;
        if program.engine_abi != crate::flow::ENGINE_ABI || row.pruned_ms.is_some() {
            return None;
        }
        let entries = stores.journal.load(&row.id).await.ok()?;
        let script = Script {
            wanted: Some(path.to_owned()),
            ..self.script(row, program, entries).ok()?
        };
        dry_run(self, script).await.ok()?.asked
    }
}
