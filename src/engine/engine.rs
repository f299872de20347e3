//! The engine's outside: starting runs, executing them, looking at them, answering their waits.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use flowstone_lang::vm::Coverage;

use crate::bindings::{Bindings, Installed};
use crate::clock::SystemClock;
use crate::diagnostic::Diagnostic;
use crate::disk::{self, SharedCode};
use crate::error::EngineError;
use crate::flow::Checked;
use crate::format::{Formats, ProjectView};
use crate::ids::RunId;
use crate::installation::{InstalledFlow, Namespace};
use crate::limits::Limits;
use crate::natives;
use crate::permission::Permissions;
use crate::ports::{
    AnswerRules, Clock, Durability, Exchanges, NoSecrets, NoTelemetry, NoVault, Random, RunFilter,
    RunRow, Scratch, Secrets, Stores, SystemRandom, Telemetry, Vault, mix,
};
use crate::scoped::scoped;
use crate::sessions::Sessions;
use crate::step::{Persist, Services, Step, real_path};
use crate::trace::TraceOrigin;

/// What an engine is made of.
pub struct EngineConfig {
    /// The folder of our own data, `.flowstone`.
    pub home: PathBuf,
    /// The folder that holds the flows.
    pub project_root: PathBuf,
    pub stores: Stores,
    pub steps: Vec<Box<dyn Step>>,
    /// What `:persist` does; without it, `:persist` is an error.
    pub persist: Option<Rc<dyn Persist>>,
    /// Adds to each session what function code may call beside the language's own.
    pub library: fn(&Session),
    /// Records which branches of flows are taken, for tests.
    pub coverage: Option<Rc<Coverage>>,
    pub secrets: Arc<dyn Secrets>,
    /// Encrypts secret inputs of runs.
    pub vault: Arc<dyn Vault>,
    /// Sees the requests of steps before they are sent: records them, or answers them from a recording.
    pub exchanges: Option<Arc<dyn Exchanges>>,
    /// Takes the spans of runs.
    pub telemetry: Arc<dyn Telemetry>,
    /// The project's settings, a map or nil.
    pub settings: Value,
    /// What the flows of the project may touch.
    pub permissions: Arc<Permissions>,
    /// The bindings that new runs store, and that steps outside of runs use. The code that opens the engine has checked
    /// them.
    pub bindings: Bindings,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub limits: Limits,
    pub durability: Durability,
    /// Formats of other files that flows can call.
    pub formats: Formats,
    /// What the fronts say about answers to their waits.
    pub answer_rules: AnswerRules,
}

impl EngineConfig {
    /// Returns a config for tests and benchmarks: the real clock, full durability and the default limits, no settings, no
    /// secrets, and every permission. The home is `.flowstone` in the project.
    pub fn for_tests(project: &Path, stores: Stores, steps: Vec<Box<dyn Step>>) -> EngineConfig {
        EngineConfig {
            home: project.join(".flowstone"),
            project_root: project.to_owned(),
            stores,
            steps,
            persist: None,
            library: |_| {},
            coverage: None,
            secrets: Arc::new(NoSecrets),
            vault: Arc::new(NoVault),
            exchanges: None,
            telemetry: Arc::new(NoTelemetry),
            settings: Value::Nil,
            permissions: Arc::new(Permissions::everything()),
            bindings: Bindings::default(),
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            limits: Limits::default(),
            durability: Durability::Full,
            formats: &[],
            answer_rules: AnswerRules::default(),
        }
    }
}

/// How a run starts.
#[derive(Debug, Clone)]
pub struct StartOptions {
    pub input: Value,
    /// Which of `:invocations`; `None`: the default one.
    pub invocation: Option<String>,
    /// A name from outside: starting twice with the same one gives the same run.
    pub external_id: Option<String>,
    /// A worker is to execute it, and not this process.
    pub is_left: bool,
    /// As in [`NewRun::started_by`]; `None`: `manual`.
    pub started_by: Option<String>,
    /// Of those that are queued, higher ones begin first. `None`: what the flow says, or 0.
    pub priority: Option<i64>,
    /// After this long it is unwound, with status `timed-out`.
    pub timeout: Option<Duration>,
    /// A key of `:profiles` in the settings; `None`: the profile of this engine.
    pub profile: Option<String>,
    /// The trace of the caller that starts it.
    pub trace: Option<TraceOrigin>,
    /// The installation that it is of.
    pub installation: Option<StartedInstallation>,
}

/// The installation of a run to be.
#[derive(Debug, Clone)]
pub struct StartedInstallation {
    pub flow: InstalledFlow,
    /// Names of connections, by slot.
    pub set: BTreeMap<String, String>,
    /// The values of the setup forms.
    pub setup: Value,
    /// Whether the flow came in a package, so that the project's permissions are not its own.
    pub is_outside: bool,
    /// How many tokens models may use in all its runs together.
    pub max_tokens: Option<i64>,
}

impl StartedInstallation {
    /// Returns the bindings of its runs.
    pub(crate) fn bindings(&self) -> Bindings {
        Bindings {
            set: self.set.clone(),
            is_outside: self.is_outside,
            installation: Some(Installed {
                flow: self.flow.to_string(),
                max_tokens: self.max_tokens,
            }),
            ..Bindings::default()
        }
    }
}

impl StartOptions {
    /// Starts with an input, by the default contract.
    pub fn with_input(input: Value) -> StartOptions {
        StartOptions {
            input,
            invocation: None,
            external_id: None,
            is_left: false,
            started_by: None,
            priority: None,
            timeout: None,
            profile: None,
            trace: None,
            installation: None,
        }
    }
}

/// Runs flows, durably. Lives on one thread, in a current-thread tokio runtime.
pub struct Engine {
    pub(crate) services: Rc<Services>,
    /// Those that runs of the project have: what installations keep is not among them.
    pub(crate) of_runs: Rc<Services>,
    pub(crate) persist: Option<Rc<dyn Persist>>,
    pub(crate) coverage: Option<Rc<Coverage>>,
    pub(crate) library: fn(&Session),
    pub(crate) limits: Limits,
    pub(crate) durability: Durability,
    /// Without any profile.
    pub(crate) settings: Value,
    pub(crate) bindings: Bindings,
    /// The runs that this engine executes at the moment.
    pub(crate) active: RefCell<HashSet<RunId>>,
    /// The scratch layers of dry tests, by the run at the root.
    pub(crate) scratches: RefCell<HashMap<RunId, Weak<Scratch>>>,
    pub(crate) sessions: Sessions,
    /// What new ids of records are made of; nothing: the clock and randomness.
    pub(crate) ids: Option<RecordIds>,
    /// The flows of the registry when they were last read: checks of calls know them.
    pub(crate) registered: RefCell<Rc<BTreeSet<String>>>,
}

/// New ids that a step gives records: a step that is performed again after a crash gives the same.
pub(crate) struct RecordIds {
    pub place: String,
    pub base_ms: i64,
    pub count: std::cell::Cell<u64>,
}

impl Engine {
    /// Returns what a run with these bindings has; a dry test has its changes in a scratch layer.
    pub(crate) fn services_over(
        &self,
        bindings: Bindings,
        scratch: Option<Rc<Scratch>>,
    ) -> Result<Rc<Services>, EngineError> {
        if let Some(installed) = &bindings.installation {
            return self.services_of_installation(installed, &bindings, scratch);
        }
        let of_runs = Services::clone(&self.of_runs);
        let stores = match &scratch {
            Some(scratch) => scoped(&scratch.stores, Namespace::Project),
            None => of_runs.stores.clone(),
        };
        Ok(Rc::new(Services {
            settings: bindings.apply(&self.settings)?,
            profile: bindings.profile,
            is_outside: bindings.is_outside,
            test: bindings.test,
            stores,
            scratch,
            ..of_runs
        }))
    }

    /// Returns the settings without any profile.
    pub(crate) fn unbound_settings(&self) -> &Value {
        &self.settings
    }

    /// Returns what new runs keep of profiles and bindings.
    pub fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// Returns a new id of a record. Later ones sort after earlier ones.
    pub fn new_record_id(&self) -> RunId {
        match &self.ids {
            None => RunId::new(self.now_ms(), SystemRandom.next()),
            Some(ids) => {
                let number = ids.count.get();
                ids.count.set(number + 1);
                let place = format!("{}/{number}", ids.place);
                let bits = place
                    .bytes()
                    .fold(0, |seed, byte| mix(seed ^ u64::from(byte)));
                RunId::new(ids.base_ms, bits)
            }
        }
    }

    /// Returns the step types, in the order they were given.
    pub fn steps(&self) -> &[Box<dyn Step>] {
        &self.services.steps
    }

    pub fn stores(&self) -> &Stores {
        &self.services.stores
    }

    /// Returns what one run may take.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the folder of the project.
    pub fn project_root(&self) -> &Path {
        &self.services.project_root
    }

    /// Returns the folder of the project's data.
    pub fn home(&self) -> &Path {
        &self.services.home
    }

    /// Returns a session in which the `flow` namespace is known.
    pub fn session(&self) -> Session {
        let session = Session::new();
        natives::install(&session);
        (self.library)(&session);
        if let Some(coverage) = &self.coverage {
            session.world().measure(coverage.clone());
        }
        session
    }

    /// Returns the folders with code that flows of the project share.
    pub fn shared_code(&self) -> SharedCode {
        SharedCode::of(&self.services.project_root, &self.services.settings)
    }

    /// Leaves the sessions that are kept for later runs to the end of the process, which frees their memory faster than
    /// their destructors do.
    pub fn leave_sessions_to_process(&self) {
        self.sessions.leak();
    }

    /// Reads a flow file with all that can be known without running it. Places lie in the session's sources.
    pub fn check(&self, session: &Session, path: &Path, name: &str) -> Checked {
        let registered = self.registered.borrow().clone();
        let project = disk::InProject {
            root: &self.services.project_root,
            settings: &self.services.settings,
            formats: self.services.formats,
            registered: Some(&registered),
        };
        let mut checked =
            disk::check_in(session, path, name, (&self.services.steps, Some(project)));
        if let Some(loaded) = &mut checked.loaded {
            let root = real_path(&self.services.project_root);
            loaded.is_outside = !real_path(path).starts_with(root);
        }
        checked
    }

    /// As [`Engine::check`], for a text that is in no file of the project.
    pub fn check_text(&self, session: &Session, text: &str) -> Checked {
        let place = (&*self.services.project_root, self.services.formats);
        disk::check_text(session, text, place, &self.services.steps)
    }

    /// As [`Engine::check_to_run`], for a text that was made from another format; `name` is what errors call it.
    pub fn check_made(&self, session: &Rc<Session>, text: &str, name: &str) -> Checked {
        let services = &self.services;
        let mut checked = disk::check_made(
            session,
            (text, name),
            (&services.project_root, services.formats),
            &services.steps,
        );
        let body = checked.body.take().filter(|_| !checked.has_errors());
        if let (Some(body), Some(loaded)) = (body, &checked.loaded) {
            self.sessions
                .keep(&loaded.program.hash, session, &loaded.flow, body);
        }
        checked
    }

    /// As [`Engine::check`], for a file that is to be run: the next run of it need not read and compile it again.
    pub fn check_to_run(&self, session: &Rc<Session>, path: &Path, name: &str) -> Checked {
        let mut checked = self.check(session, path, name);
        let body = checked.body.take().filter(|_| !checked.has_errors());
        if let (Some(body), Some(loaded)) = (body, &checked.loaded) {
            self.sessions
                .keep(&loaded.program.hash, session, &loaded.flow, body);
        }
        checked
    }

    /// Returns what a format may read of the project.
    pub fn view(&self) -> ProjectView<'_> {
        self.services.view()
    }

    /// As [`Engine::check`], for a file that a flow calls, which may have another format.
    pub async fn check_called(&self, session: &Rc<Session>, path: &Path, name: &str) -> Checked {
        let services = &self.services;
        let root = &services.project_root;
        let found = disk::formats::recognized(root, path.to_owned(), services.formats);
        let Some(found) = found else {
            return self.check(session, path, name);
        };
        match found.format.compile(self.view(), path).await {
            Ok(compiled) => {
                let mut checked = self.check_made(session, &compiled.text, &compiled.file);
                if let Some(loaded) = &mut checked.loaded {
                    loaded.is_outside = !real_path(path).starts_with(real_path(root));
                }
                checked
            }
            Err(error) => {
                let finding = Diagnostic::error(error.code, error.message);
                Checked::failed(match error.hint {
                    Some(hint) => finding.hint(hint),
                    None => finding,
                })
            }
        }
    }

    /// Returns the time by the engine's clock.
    pub fn now_ms(&self) -> i64 {
        self.services.clock.now_ms()
    }

    /// Returns a run.
    ///
    /// # Errors
    /// When there is no such run, or the store cannot be read.
    pub async fn run(&self, run: &RunId) -> Result<RunRow, EngineError> {
        self.run_row(run).await
    }

    /// Returns runs, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_runs(&self, filter: RunFilter) -> Result<Vec<RunRow>, EngineError> {
        Ok(self.services.stores.runs.list(filter).await?)
    }

    /// Returns the permissions of a flow of the project.
    pub fn permissions_of(&self, slug: &str) -> flowstone_flow::permission::Allow {
        self.services.permissions.of_flow(slug)
    }

    /// Returns the project's settings, a map or nil.
    pub fn settings(&self) -> &Value {
        &self.services.settings
    }

    /// Returns what looks secrets up.
    pub fn secrets(&self) -> &dyn Secrets {
        &*self.services.secrets
    }

    /// Returns the flow files of the project.
    pub fn flow_files(&self) -> Vec<PathBuf> {
        disk::files_of(&self.services.project_root)
    }

    pub(crate) async fn run_row(&self, run: &RunId) -> Result<RunRow, EngineError> {
        let row = self.services.stores.runs.find(run).await?;
        row.ok_or_else(|| EngineError::NoSuchRun {
            run: run.to_string(),
        })
    }

    pub(crate) fn activate(&self, run: &RunId) -> Result<Active<'_>, EngineError> {
        if !self.active.borrow_mut().insert(run.clone()) {
            return Err(EngineError::Held {
                run: run.to_string(),
                owner: "this one".to_owned(),
            });
        }
        self.services.stores.runs.executes(run, true);
        Ok(Active {
            engine: self,
            run: run.clone(),
        })
    }
}

/// Keeps a run marked as executed.
pub(crate) struct Active<'a> {
    engine: &'a Engine,
    run: RunId,
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.engine.active.borrow_mut().remove(&self.run);
        self.engine.services.stores.runs.executes(&self.run, false);
    }
}
