//! `flow/call-flow`: a step that starts a run of another flow. The executor waits for it.
//!
//! The child's id is made of the place that asks for it, so that a crash after it was started makes no second one.

mod called;
mod installed;

use std::time::Duration;

use flowstone_lang::session::Session;
use flowstone_lang::value::Value;

use crate::bindings::Bindings;
use crate::call_flow;
use crate::duration;
use crate::engine::StartedInstallation;
use crate::error::EngineError;
use crate::flow::{self, Flow, LoadedFlow, activated, coerce_input, name_of};
use crate::ids::RunId;
use crate::limits::Limits;
use crate::ports::{NewRun, Parent, RunRow, mix};
use crate::registry::Target;
use crate::sealed;
use crate::spans::send_ends;
use crate::start;
use crate::step::{Effect, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec};
use crate::trace::TraceOrigin;
use called::Named;

/// Starts a child run.
pub(crate) struct CallFlow;

impl Step for CallFlow {
    fn spec(&self) -> &'static StepSpec {
        &call_flow::SPEC
    }

    fn effect(&self, config: &Value) -> Effect {
        match call_flow::describes(config) {
            true => Effect::Read,
            false => call_flow::SPEC.effect,
        }
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            if call_flow::describes(&config) {
                return called::describe(cx, &config).await.map(Outcome::Value);
            }
            let run = start(cx, &config).await?;
            Ok(Outcome::Child(run))
        })
    }
}

/// Starts a run of a flow below the run of a step, as `flow/call-flow` does with the same config. Its id follows from
/// the place of the step: asked again after a crash, it is the same run.
///
/// # Errors
/// When there is no such flow, it does not take the input, or does not take another run.
pub async fn start(cx: &StepContext, config: &Value) -> Result<RunId, StepError> {
    let started = find(cx).await?;
    if let Some(id) = started {
        return Ok(id);
    }
    let parent = parent(cx).await?;
    let slug = called::slug_of(config);
    if let Some(named) = call_flow::installation(config) {
        let (loaded, installation) = installed::find(cx, (&slug, &named), config).await?;
        let place = Place::of_installation(cx, &loaded.flow, &installation);
        return start_in(cx, (parent, place), loaded, config).await;
    }
    let loaded = load(cx, &parent, &slug, config.get("version")).await?;
    let place = Place::of_caller(cx, &parent, &loaded.flow);
    start_in(cx, (parent, place), loaded, config).await
}

/// As [`start`], for a flow that is loaded. `config` has the other fields of `flow/call-flow`.
///
/// # Errors
/// When it does not take the input, or does not take another run.
pub async fn start_loaded(
    cx: &StepContext,
    loaded: LoadedFlow,
    config: &Value,
) -> Result<RunId, StepError> {
    let started = find(cx).await?;
    match started {
        Some(id) => Ok(id),
        None => {
            let parent = parent(cx).await?;
            let place = Place::of_caller(cx, &parent, &loaded.flow);
            start_in(cx, (parent, place), loaded, config).await
        }
    }
}

/// What a child run has from where it runs: in the place of its caller, or in an installation.
struct Place {
    /// The name of the flow that the run has.
    name: String,
    bindings: Option<String>,
    /// The settings with the values of setup forms.
    settings: Value,
}

impl Place {
    fn of_caller(cx: &StepContext, parent: &RunRow, flow: &Flow) -> Place {
        Place {
            name: match cx.installation() {
                Some(installation) => installation.flow.calling(&flow.slug).to_string(),
                None => flow.slug.to_string(),
            },
            bindings: parent.bindings.clone(),
            settings: cx.settings().clone(),
        }
    }

    fn of_installation(cx: &StepContext, flow: &Flow, installation: &StartedInstallation) -> Place {
        let bindings = Bindings {
            // A test stays one in everything that it starts.
            test: cx.scope().services.test,
            ..installation.bindings()
        };
        Place {
            name: installation.flow.to_string(),
            bindings: bindings.encode(),
            settings: start::setup_settings(flow, installation.setup.clone()),
        }
    }
}

/// Returns the id of the run that an attempt of a step starts below its own run.
pub fn child_id(idempotency_key: &str, attempt: u32) -> RunId {
    RunId::derived(&place(idempotency_key, attempt))
}

fn place(idempotency_key: &str, attempt: u32) -> String {
    format!("{idempotency_key}#{attempt}")
}

/// Returns the run that the step has started, if a crash came after its start.
async fn find(cx: &StepContext) -> Result<Option<RunId>, StepError> {
    let id = child_id(cx.idempotency_key(), cx.attempt());
    Ok(cx.own_stores().runs.find(&id).await?.map(|_| id))
}

async fn parent(cx: &StepContext) -> Result<RunRow, StepError> {
    let parent = cx.own_stores().runs.find(cx.run_id()).await?;
    parent.ok_or_else(|| StepError::new("E0500", "store", "the run itself is missing"))
}

async fn start_in(
    cx: &StepContext,
    (parent, whose): (RunRow, Place),
    loaded: LoadedFlow,
    config: &Value,
) -> Result<RunId, StepError> {
    let place = place(cx.idempotency_key(), cx.attempt());
    let id = RunId::derived(&place);
    let depth = parent.parent.as_ref().map_or(0, |above| above.depth) + 1;
    let most = Limits::of(cx.settings()).depth;
    if depth > most {
        let message = format!("flows call flows more than {most} deep");
        return Err(StepError::new("E0547", "too-deep", message)
            .hint("a flow that calls itself needs an end; a long loop is `flow/continue-as-new`"));
    }
    let slug = loaded.flow.slug.clone();
    let given = config.get("input").unwrap_or(&Value::Nil);
    let input = coerce_input(&loaded.flow, None, given);
    let input = input.and_then(|input| activated(&loaded.flow, &whose.settings, input));
    let input = input.map_err(|error| {
        let message = format!("the flow `{slug}` does not take this input: {error}");
        StepError::config(error.code(), message).hint(error.hint())
    })?;
    let text = sealed_input(cx, &loaded.flow, &input)?;
    let external_id = config.get("workflow-id").and_then(name_of);
    let run = NewRun {
        id: id.clone(),
        external_id: external_id.as_deref().map(str::to_owned),
        program: loaded.program,
        flow: whose.name,
        input: text,
        seed: place
            .bytes()
            .fold(parent.seed, |seed, byte| mix(seed ^ u64::from(byte))),
        now_ms: cx.now_ms(),
        invocation: None,
        key: None,
        priority: config
            .get("priority")
            .and_then(Value::as_int)
            .unwrap_or(parent.priority),
        bindings: whose.bindings,
        started_by: "call".to_owned(),
        origin: None,
        // A test is executed by its caller as a whole.
        is_taken: cx.scope().services.test.is_some(),
        version: loaded.version,
        trace: cx.span_of_step().map(TraceOrigin::Parent),
        deadline_ms: timeout(config).map(|timeout| cx.now_ms() + timeout),
        parent: Some(Parent {
            root: match &parent.parent {
                Some(above) => above.root.clone(),
                None => parent.id.clone(),
            },
            run: parent.id,
            depth,
            close: call_flow::close(config),
        }),
    };
    let now_ms = run.now_ms;
    let started = start::admit(cx.own_stores(), &loaded.flow, &input, run).await;
    let started = started.map_err(refused)?;
    send_ends(&cx.scope().services, &started.replaced, now_ms).await?;
    let created = started.run;
    if created == id {
        return Ok(id);
    }
    let name = external_id.unwrap_or_default();
    let message = format!("the run {created} has the `:workflow-id` \"{name}\"");
    Err(StepError::new("E0549", "conflict", message).hint("give each child a name of its own"))
}

/// Returns the text of an input as it is stored, with its secrets encrypted.
fn sealed_input(cx: &StepContext, flow: &Flow, input: &Value) -> Result<String, StepError> {
    let vault = &*cx.scope().services.vault;
    sealed::seal(vault, (flow, None), input, &cx.redactor()).map_err(|error| {
        let refused = StepError::config(error.code(), error.to_string());
        match error.hint() {
            Some(hint) => refused.hint(hint),
            None => refused,
        }
    })
}

/// Says why the flow does not take another run.
fn refused(error: EngineError) -> StepError {
    let kind = match &error {
        EngineError::Store(error) => return error.clone().into(),
        EngineError::NoKey { .. } => "bad-config",
        _ => "conflict",
    };
    let refused = StepError::new(error.code(), kind, error.to_string());
    match error.hint() {
        Some(hint) => refused.hint(hint),
        None => refused,
    }
}

fn timeout(config: &Value) -> Option<i64> {
    let timeout: Duration = config.get("timeout").and_then(duration::of_value)?;
    Some(duration::millis(timeout))
}

/// Finds the program of the child.
async fn load(
    cx: &StepContext,
    parent: &RunRow,
    slug: &str,
    version: Option<&Value>,
) -> Result<LoadedFlow, StepError> {
    let of = |named| called::named(cx, parent, (slug, named));
    let checked = match version {
        None | Some(Value::Nil) => called::program(cx, parent, slug).await?,
        Some(Value::Keyword(name)) if name.is("latest") => {
            called::program(cx, parent, slug).await?
        }
        Some(Value::Int(0)) => of(Named::Target(Target::Draft)).await?,
        Some(Value::Keyword(name)) if name.is("draft") => of(Named::Target(Target::Draft)).await?,
        Some(Value::Keyword(name)) if name.is("live") => of(Named::Target(Target::Live)).await?,
        Some(Value::Int(number)) if *number > 0 => of(Named::Number(*number)).await?,
        Some(Value::Text(hash)) => match cx.own_stores().runs.program(hash).await? {
            Some(program) => flow::reload(&Session::new(), &program),
            None => {
                let message = format!("no run was started with the program \"{}\"", &***hash);
                return Err(StepError::new("E0545", "not-found", message)
                    .hint("`flowstone runs show RUN --json` has the hash of a run's program"));
            }
        },
        Some(other) => {
            let message = format!(
                "`:version` is a number, `:live`, `:draft`, `:latest` or the hash of a program, not {}",
                other.kind()
            );
            return Err(StepError::config("E0712", message));
        }
    };
    called::usable(slug, checked)
}
