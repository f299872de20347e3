//! Opening an engine, with the step types that it performs itself.

use std::cell::RefCell;
use std::rc::Rc;

use crate::child::CallFlow;
use crate::engine::{Engine, EngineConfig};
use crate::natives::fanout::Fanout;
use crate::redact::Redactors;
use crate::sessions::Sessions;
use crate::step::{Services, Step};

impl Engine {
    /// Returns an engine over the stores of a project.
    pub fn open(config: EngineConfig) -> Engine {
        let bound = config.bindings.apply(&config.settings);
        Engine {
            services: Rc::new(Services {
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
                formats: config.formats,
            }),
            persist: config.persist,
            library: config.library,
            limits: config.limits,
            durability: config.durability,
            settings: config.settings,
            bindings: config.bindings,
            active: RefCell::default(),
            sessions: Sessions::default(),
        }
    }
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
