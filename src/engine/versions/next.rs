//! The steps that a flow or a run would perform next. Nothing is performed.

use flowstone_lang::value::Value;

use super::check_journal;
use crate::codec;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::execute::{Changed, DryRunEnd, DryRunReport, NextStep, Purpose, Script, dry_run};
use crate::flow::LoadedFlow;
use crate::ids::RunId;
use crate::outcome::decode_failure;

/// What a flow does next.
#[derive(Debug, Clone)]
pub struct Next {
    pub steps: Vec<NextStep>,
    /// How the flow ends if it requests no further step.
    pub end: String,
}

impl Engine {
    /// Returns the steps that a flow would perform first with an input.
    ///
    /// # Errors
    /// When the input does not fit the flow's contract.
    pub async fn next_of_flow(
        &self,
        loaded: &LoadedFlow,
        invocation: Option<&str>,
        input: &Value,
    ) -> Result<Next, EngineError> {
        let input = self.input_of(&loaded.flow, invocation, input)?;
        let seed = self.services.random.next();
        let script = Script {
            run: RunId::new(self.now_ms(), seed),
            seed,
            program: loaded.program.clone(),
            input,
            secrets: Vec::new(),
            entries: Vec::new(),
            changed: Changed::default(),
            purpose: Purpose::Fit,
            wanted: None,
            with_locals: false,
        };
        Ok(next_of(dry_run(self, script).await?))
    }

    /// Returns the steps that a run would perform next.
    ///
    /// # Errors
    /// When there is no such run, or its journal was removed.
    pub async fn next_of_run(&self, run: &RunId) -> Result<Next, EngineError> {
        let row = self.run_row(run).await?;
        check_journal(&row)?;
        let program = self.program_of(&row).await?;
        let entries = self.services.stores.journal.load(&row.id).await?;
        let script = self.script(&row, program, entries)?;
        Ok(next_of(dry_run(self, script).await?))
    }
}

impl Engine {
    /// Returns the locals that a flow has where a run requests a step: names, and values that are data. Nothing is
    /// performed.
    ///
    /// # Errors
    /// When there is no such run or step, or its journal was removed.
    pub async fn locals_at(&self, run: &RunId, path: &str) -> Result<Value, EngineError> {
        let row = self.run_row(run).await?;
        check_journal(&row)?;
        let program = self.program_of(&row).await?;
        let entries = self.services.stores.journal.load(&row.id).await?;
        let script = Script {
            wanted: Some(path.to_owned()),
            with_locals: true,
            ..self.script(&row, program, entries)?
        };
        let report = dry_run(self, script).await?;
        let Some(locals) = report.locals else {
            // The error names the steps that there are.
            self.show_step(run, path).await?;
            return Ok(Value::map([]));
        };
        let entries = locals.as_map().into_iter().flat_map(|map| map.iter());
        let data = entries.filter_map(|(name, value)| {
            let text = codec::encode(value).ok()?;
            Some((name.clone(), codec::decode(&text).ok()?))
        });
        Ok(Value::map(data.collect::<Vec<_>>()))
    }
}

fn next_of(report: DryRunReport) -> Next {
    let end = match report.end {
        DryRunEnd::Value(text) => format!("the flow returns {text}"),
        DryRunEnd::Error(text) => match decode_failure(&text) {
            Some(failure) => format!("the flow fails: {}", failure.exception.text()),
            None => format!("the flow fails: {text}"),
        },
        DryRunEnd::Open => "the flow waits for a step".to_owned(),
    };
    Next {
        steps: report.next_steps,
        end,
    }
}
