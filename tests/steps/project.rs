//! A project in a scratch folder, in which flows run as they do for a user, on a simulated clock.

use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use flowstone_engine::codec::encode;
use flowstone_engine::diagnostic::Severity;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::ports::{Clock as _, Durability, RunFilter, Secret, Secrets, SimulatedClock};
use flowstone_engine::{Engine, EngineConfig, EngineError, ExecuteOptions, StartOptions};
use flowstone_flow::flow::LoadedFlow;
use flowstone_flow::permission::Permissions;
use flowstone_lang::value::Value;

use crate::world::this_machine;

/// The start of the clock, 2026-03-01T00:00:00Z.
pub const START: i64 = 1_772_323_200_000;

/// Secrets that the test defines.
struct Known(Vec<(String, String)>);

impl Secrets for Known {
    fn find(&self, name: &str) -> Option<Secret> {
        let found = self.0.iter().find(|(it, _)| it == name)?;
        Some(Secret::new(found.1.as_str()))
    }
}

pub struct Project {
    folder: tempfile::TempDir,
    pub engine: Engine,
    pub clock: Arc<SimulatedClock>,
    runtime: tokio::runtime::Runtime,
}

impl Project {
    pub fn new() -> Project {
        Project::with("{}")
    }

    /// Creates a project with these settings.
    pub fn with(settings: &str) -> Project {
        Project::with_files(&[("flowstone.edn", settings)])
    }

    /// Creates a project with these files, such as its settings and `.env`.
    pub fn with_files(files: &[(&str, &str)]) -> Project {
        let folder = tempfile::tempdir().expect("a scratch folder");
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        Project::at(folder, None)
    }

    /// Creates a project with these settings and these secrets, which are not available after a reopening.
    pub fn with_secrets(settings: &str, secrets: &[(&str, &str)]) -> Project {
        let folder = tempfile::tempdir().expect("a scratch folder");
        std::fs::write(folder.path().join("flowstone.edn"), settings).expect("a file");
        let known = secrets
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let known = Known(known.collect());
        let names: Vec<String> = known.0.iter().map(|(name, _)| name.clone()).collect();
        Project::with_secret_names(folder, Some(Arc::new(known)), &names)
    }

    /// Returns the folder of the project.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    fn at(folder: tempfile::TempDir, secrets: Option<Arc<dyn Secrets>>) -> Project {
        Project::with_secret_names(folder, secrets, &[])
    }

    /// The same with these names of secrets, which may be sent to servers on this machine.
    fn with_secret_names(
        folder: tempfile::TempDir,
        secrets: Option<Arc<dyn Secrets>>,
        known: &[String],
    ) -> Project {
        let clock = Arc::new(SimulatedClock::starting_at(START));
        let root = folder.path().to_owned();
        let home = root.join(".flowstone");
        let settings = flowstone_steps::settings::load(&root).expect("good settings");
        let own = flowstone_steps::secrets::ProjectSecrets::load(&root, &settings);
        let permissions = flowstone_steps::permissions::of_project(&settings, &root, &home);
        let dotenv = std::fs::read_to_string(root.join(".env")).unwrap_or_default();
        let names = dotenv
            .lines()
            .filter_map(|line| Some(line.split_once('=')?.0.trim()));
        let permissions = Permissions {
            command: this_machine(names.chain(known.iter().map(String::as_str))),
            ..permissions.expect("good settings")
        };
        let stores = flowstone_stores::open(&home, &flowstone_stores::Options::default());
        let stores = stores.expect("a database");
        let engine = Engine::open(EngineConfig {
            persist: Some(Rc::new(flowstone_steps::persist::PersistResult)),
            library: flowstone_steps::sandbox::register,
            secrets: secrets.unwrap_or_else(|| Arc::new(own.expect("good secrets"))),
            vault: Arc::new(flowstone_stores::vault::ProjectVault::new(&home, None)),
            settings,
            permissions: Arc::new(permissions),
            clock: clock.clone(),
            random: Arc::new(Mutex::new(7)),
            durability: Durability::Relaxed,
            ..EngineConfig::for_tests(&root, stores, flowstone_project::all_steps())
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        Project {
            folder,
            engine,
            clock,
            runtime,
        }
    }

    /// Closes the project and opens it again, as a new process does.
    pub fn reopen(self) -> Project {
        let Project {
            folder,
            engine,
            clock,
            runtime,
        } = self;
        drop(engine);
        drop(runtime);
        let project = Project::at(folder, None);
        project.clock.advance(clock.now_ms() - START);
        project
    }

    /// Returns the folder of the project.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file of the project.
    pub fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.folder.path().join(path);
        let folder = path.parent().expect("it is in the project");
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }

    /// Runs a flow body, and returns its outcome.
    pub fn run(&self, body: &str) -> Result<RunOutcome, EngineError> {
        self.run_on(body, Value::map([]))
    }

    /// Runs a flow body with an input, and returns its outcome.
    pub fn run_on(&self, body: &str, input: Value) -> Result<RunOutcome, EngineError> {
        self.runtime.block_on(async {
            let path = self.folder.path().join("flow.edn");
            std::fs::write(&path, body).expect("the scratch folder can be written");
            let session = self.engine.session();
            let checked = self.engine.check(&session, &path, "flow.edn");
            let problems: Vec<&str> = checked
                .findings
                .iter()
                .map(|finding| finding.message.as_str())
                .collect();
            let loaded = checked
                .loaded
                .unwrap_or_else(|| panic!("{body}: {problems:?}"));
            let start = StartOptions::with_input(input);
            let run = self.engine.start(&loaded, start).await?;
            self.engine
                .execute(&run, Rc::new(NoObserver), ExecuteOptions::default())
                .await
        })
    }

    /// Answers a wait and resumes the runs that waited for it.
    pub fn answer(&self, target: &str, payload: &Value) -> String {
        self.runtime.block_on(async {
            if let Err(error) = self.engine.complete_wait(target, payload, true).await {
                return format!("refused: {error}");
            }
            match self.resume().await {
                outcomes if outcomes.is_empty() => "kept".to_owned(),
                outcomes => outcomes.join("\n"),
            }
        })
    }

    /// Waits for a future of the engine.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Returns the journals of all runs, as text.
    pub fn everything_kept(&self) -> String {
        self.runtime.block_on(async {
            let runs = self.engine.list_runs(RunFilter::default()).await;
            let mut text = String::new();
            for run in runs.expect("runs") {
                let entries = self.engine.stores().journal.load(&run.id).await;
                text.push_str(&format!("{:?}", entries.expect("a journal")));
            }
            text
        })
    }

    /// Resumes every run that can be resumed.
    pub fn resume_all(&self) -> Vec<String> {
        self.runtime.block_on(self.resume())
    }

    async fn resume(&self) -> Vec<String> {
        let outcomes = self
            .engine
            .resume_all(Rc::new(NoObserver), ExecuteOptions::default())
            .await;
        let outcomes = outcomes.expect("the runs can be listed");
        outcomes
            .into_iter()
            .map(|(_, outcome)| shown(outcome))
            .collect()
    }

    /// Reads a flow file.
    pub fn load(&self, text: &str) -> LoadedFlow {
        let path = self.folder.path().join("loaded.edn");
        std::fs::write(&path, text).expect("the scratch folder can be written");
        let session = self.engine.session();
        let checked = self.engine.check(&session, &path, "loaded.edn");
        let loaded = checked.loaded;
        loaded.unwrap_or_else(|| panic!("{:?}", checked.findings))
    }

    /// Returns the findings of `check` for a flow file, one a line: code, message and hints.
    pub fn check(&self, text: &str) -> String {
        let path = self.folder.path().join("checked.edn");
        std::fs::write(&path, text).expect("the scratch folder can be written");
        let session = self.engine.session();
        let checked = self.engine.check(&session, &path, "checked.edn");
        let lines = checked.findings.iter().map(|finding| {
            let hints: String = finding
                .hints
                .iter()
                .map(|hint| format!(" | {hint}"))
                .collect();
            format!("{} {}{hints}", finding.code, finding.message)
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Returns the errors that `check` finds in a flow file, one a line, without warnings.
    pub fn errors(&self, text: &str) -> String {
        let path = self.folder.path().join("checked.edn");
        std::fs::write(&path, text).expect("the scratch folder can be written");
        let session = self.engine.session();
        let checked = self.engine.check(&session, &path, "checked.edn");
        let errors = checked.findings.iter();
        let errors = errors.filter(|finding| finding.severity == Severity::Error);
        let lines = errors.map(|finding| format!("{} {}", finding.code, finding.message));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Runs a flow body and returns its result as text, or its error.
    pub fn eval(&self, body: &str) -> String {
        shown(self.run(body))
    }

    /// Reads a blob of the project.
    pub fn blob(&self, uri: &str) -> Option<(String, Vec<u8>)> {
        self.runtime.block_on(async {
            let blobs = &self.engine.stores().blobs;
            let row = blobs.find(uri).await.expect("the database can be read")?;
            let bytes = blobs.get(&row.hash).await.expect("the blob is there");
            Some((row.content_type.unwrap_or_default(), bytes))
        })
    }
}

/// Returns the outcome of a run as one line.
pub fn shown(outcome: Result<RunOutcome, EngineError>) -> String {
    match outcome {
        Ok(RunOutcome::Completed(value)) => {
            encode(&value).unwrap_or_else(|error| format!("unwritable: {error}"))
        }
        Ok(RunOutcome::Failed(failure)) => {
            let exception = &failure.exception;
            let hints: String = exception
                .hints
                .iter()
                .map(|hint| format!(" | {hint}"))
                .collect();
            format!("{} {}{hints}", exception.code, exception.text())
        }
        Ok(RunOutcome::Waiting { reason, waits, .. }) => {
            format!("waiting: {reason} {}", waits.len())
        }
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("engine: {error}"),
    }
}

/// Runs the step configs in one project, in order, and compares their results.
pub fn check_steps(kind: &str, cases: &[(&str, &str)]) {
    let project = Project::new();
    let mut failures = Vec::new();
    for (config, expected) in cases {
        let found = project.eval(&format!(
            "(let [result (flow/step :{kind} :it {config})] result)"
        ));
        if found != *expected {
            failures.push(format!(
                "{config}\n  expected {expected}\n  found    {found}"
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
