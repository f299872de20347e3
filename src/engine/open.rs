//! Opening an engine, with the step types that it performs itself.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use flowstone_lang::session::Session;

use crate::bindings::Bindings;
use crate::child::CallFlow;
use crate::engine::{Engine, EngineConfig, RecordIds};
use crate::installation::Namespace;
use crate::limits::Limits;
use crate::natives::fanout::Fanout;
use crate::ports::Durability;
use crate::redact::Redactors;
use crate::scoped::scoped;
use crate::sessions::Sessions;
use crate::step::{Persist, Services, Step, StepContext};

impl Engine {
    /// Returns an engine over the stores of a project.
    pub fn open(config: EngineConfig) -> Engine {
        let bound = config.bindings.apply(&config.settings);
        let services = Services {
            steps: with_builtin(config.steps),
            stores: config.stores,
            clock: config.clock,
            random: config.random,
            secrets: config.secrets,
            vault: config.vault,
            redactors: Redactors::default(),
            exchanges: config.exchanges,
            telemetry: config.telemetry,
            project_root: config.project_root,
            home: config.home,
            settings: bound.unwrap_or_else(|_| config.settings.clone()),
            profile: config.bindings.profile.clone(),
            permissions: config.permissions,
            is_outside: false,
            test: config.bindings.test,
            scratch: None,
            formats: config.formats,
            answer_rules: config.answer_rules,
            installation: None,
        };
        let of_runs = Services {
            stores: scoped(&services.stores, Namespace::Project),
            ..services.clone()
        };
        Engine {
            services: Rc::new(services),
            of_runs: Rc::new(of_runs),
            persist: config.persist,
            library: config.library,
            coverage: config.coverage,
            limits: config.limits,
            durability: config.durability,
            settings: config.settings,
            bindings: config.bindings,
            active: RefCell::default(),
            scratches: RefCell::default(),
            sessions: Sessions::default(),
            ids: None,
            registered: RefCell::default(),
        }
    }

    /// Returns an engine on the project of a step, with which the step reads and changes records of the project. It executes no
    /// runs. Ids of new records begin with `base_ms` and follow from the place of the step.
    pub fn of_step(cx: &StepContext, base_ms: i64) -> Engine {
        let services = cx.scope().services.clone();
        Engine {
            persist: None,
            library: |_| {},
            coverage: None,
            limits: Limits::of(&services.settings),
            durability: Durability::Full,
            settings: services.settings.clone(),
            bindings: Bindings::default(),
            active: RefCell::default(),
            scratches: RefCell::default(),
            sessions: Sessions::default(),
            ids: Some(RecordIds {
                place: cx.idempotency_key().to_owned(),
                base_ms,
                count: Cell::new(0),
            }),
            registered: RefCell::default(),
            of_runs: services.clone(),
            services,
        }
    }
}

impl Engine {
    /// Returns an engine on the project of a step, as [`Engine::of_step`], which executes runs beside the run of the step: tests.
    pub fn beside_step(cx: &StepContext, base_ms: i64, runs: RunsBesideStep) -> Engine {
        Engine {
            persist: Some(runs.persist),
            library: runs.library,
            ..Engine::of_step(cx, base_ms)
        }
    }
}

/// What an engine needs for runs that a step executes, as in [`EngineConfig`].
pub struct RunsBesideStep {
    /// What `:persist` does.
    pub persist: Rc<dyn Persist>,
    /// Adds to each session what function code may call beside the language's own.
    pub library: fn(&Session),
}

/// Returns the step types that the engine performs itself.
pub fn builtin() -> Vec<Box<dyn Step>> {
    vec![Box::new(CallFlow), Box::new(Fanout)]
}

/// Adds the engine's own step types where the caller has not.
fn with_builtin(mut steps: Vec<Box<dyn Step>>) -> Rc<[Box<dyn Step>]> {
    for own in builtin() {
        if steps.iter().all(|step| step.spec().kind != own.spec().kind) {
            steps.push(own);
        }
    }
    steps.into()
}
