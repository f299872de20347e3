//! A step outside of any run: what the command line does to tables.
//!
//! It is the same step as in a flow, with the same checks; what it changes is changed in one transaction, without a
//! journal row, since nothing will be replayed.

use std::path::PathBuf;
use std::rc::Rc;

use flowstone_flow::config::resolve;
use flowstone_lang::value::Value;
use flowstone_lang::value::heap::HeapBudget;

use crate::blob::BlobOp;
use crate::codec;
use crate::engine::Engine;
use crate::flow::Flow;
use crate::ids::{RunId, StepPath};
use crate::permission::Allow;
use crate::ports::{Revealed, StoreOp};
use crate::step::{Gate, Outcome, Scope, Services, StepContext, StepError, StepRequest};

/// A step to do at once.
pub struct Direct {
    /// The step's type.
    pub kind: &'static str,
    pub config: Value,
    /// The folder whose files the step may use, where that is not the project's.
    pub folder: Option<PathBuf>,
}

impl Engine {
    /// Does a step that belongs to no run, and returns its value.
    ///
    /// # Errors
    /// As the step in a flow; and when it is one that needs a run, such as `:wait`.
    pub async fn perform(&self, direct: Direct) -> Result<Value, StepError> {
        let bare = Rc::new(Flow::bare("direct", Value::Nil));
        // A person typed the step itself: that is its permission.
        let gate = Gate::new(&self.services.project_root, Allow::everything());
        self.perform_behind(Rc::new(gate), bare, direct).await
    }

    /// The same as a flow would have it done: with its slots and providers.
    ///
    /// # Errors
    /// As [`Engine::perform`].
    pub async fn perform_for(&self, flow: Rc<Flow>, direct: Direct) -> Result<Value, StepError> {
        let gate = self.services.gate_of(&flow);
        self.perform_behind(gate, flow, direct).await
    }

    async fn perform_behind(
        &self,
        gate: Rc<Gate>,
        flow: Rc<Flow>,
        direct: Direct,
    ) -> Result<Value, StepError> {
        let Direct {
            kind,
            config,
            folder,
        } = direct;
        let unknown = || StepError::config("E0710", format!("there is no step type `:{kind}`"));
        let step = self
            .services
            .steps
            .iter()
            .find(|step| step.spec().kind == kind)
            .ok_or_else(unknown)?;
        let config = resolve(step.spec(), &config)?;
        let cx = self.direct_context((flow, gate), step.spec().kind, folder);
        let ran = step.run(&cx, config).await;
        match ran.map_err(|error| without_secrets(&cx, error))? {
            Outcome::Value(value) => Ok(cx.without_secrets(value)),
            Outcome::Commit(StoreOp::Table(op)) => {
                let mut op = op;
                cx.redactor().table(&mut op);
                let tables = &self.services.stores.tables;
                let text = tables.apply(*op, self.services.clock.now_ms()).await?;
                decoded(&text)
            }
            // Only put there because it is large: nobody asked for it to be kept.
            Outcome::Commit(StoreOp::Blob(BlobOp::Register { value, .. })) => decoded(&value),
            _ => Err(StepError::config(
                "E0710",
                format!("a `:{kind}` step of this kind is done by flows only"),
            )),
        }
    }

    fn direct_context(
        &self,
        (flow, gate): (Rc<Flow>, Rc<Gate>),
        kind: &'static str,
        folder: Option<PathBuf>,
    ) -> StepContext {
        let own = &self.services;
        let services = Services {
            project_root: folder.unwrap_or_else(|| own.project_root.clone()),
            ..Services::clone(own)
        };
        let run = RunId::new(own.clock.now_ms(), own.random.next());
        let idempotency_key = run.to_string();
        let scope = Scope {
            run,
            gate,
            flow,
            input: Value::map([]),
            input_secrets: Vec::new(),
            trace: None,
            session: Rc::new(self.session()),
            services: Rc::new(services),
            progress: Rc::new(|_, _| {}),
            revealed: Revealed::new(own.redactors.clone()),
            heap: Rc::new(HeapBudget::new(self.limits.memory)),
            cutoff: Default::default(),
        };
        let request = StepRequest {
            path: StepPath {
                branch: String::new(),
                step: kind.to_owned(),
                occurrence: 1,
            },
            kind,
            attempt: 1,
            idempotency_key,
            deadline_ms: None,
            pass: 0,
        };
        StepContext::new(Rc::new(scope), request)
    }
}

/// Returns an error that can be shown.
fn without_secrets(cx: &StepContext, error: StepError) -> StepError {
    let redactor = cx.redactor();
    StepError {
        message: redactor.text(error.message),
        hints: error
            .hints
            .into_iter()
            .map(|hint| redactor.text(hint))
            .collect(),
        data: cx.without_secrets(error.data),
        ..error
    }
}

fn decoded(text: &str) -> Result<Value, StepError> {
    codec::decode(text).map_err(|error| StepError::new(error.code(), "store", error.to_string()))
}
