//! The one place where concrete stores, steps and the prompt meet.

use std::rc::Rc;
use std::sync::Arc;

use flowstone_engine::SystemClock;
use flowstone_engine::crash_test::World;
use flowstone_engine::ports::{Exchanges, NoTelemetry, Secrets, Stores, SystemRandom};
use flowstone_engine::server_secrets::ServerSecrets;
use flowstone_engine::trust;
use flowstone_engine::{Engine, EngineConfig, Interactive, Limits};
use flowstone_flow::dependencies::Revision;
use flowstone_flow::flow::Flow;
use flowstone_flow::natives;
use flowstone_flow::permission::{Permissions, TrustedFlow};
use flowstone_flow::step::{Gate, LocalFuture, Step, StepError};
use flowstone_fronts::{ANSWER_RULES, FORMATS};
use flowstone_lang::session::Session;
use flowstone_lang::value::{Result as Evaluated, Signal, Value};
use flowstone_project::connections;
use flowstone_project::connections::{
    ConnectionReport, ConnectionTest, LoginNote, LoginOptions, LoginReport, PriceReport,
};
use flowstone_project::search::Embedder;
use flowstone_repl::{Assist, Body, Console, Evaluator, Repl};
use flowstone_steps::files::dependency;
use flowstone_steps::llm::prices;
use flowstone_steps::recording::{
    RecordedSecrets, Recorder, RecordingError, ReplayedSecrets, Replayer,
};
use flowstone_steps::{embedder, permissions, sandbox, secrets, settings};
use flowstone_stores::vault::ProjectVault;
use flowstone_stores::{Options, Spans};
use flowstone_surfaces::cli::{
    App, Around, Desk, ExchangesWith, Open, Person, Progress, Project, Prompt, Report, Runtime,
    Waiting, Words, lost_terminal, of_store_error,
};
use flowstone_surfaces::telemetry;

/// Flowstone with everything plugged in.
pub struct Flowstone;

impl App for Flowstone {
    fn stores(&self, project: &Project, open: Open) -> Result<Stores, Report> {
        stores(
            project,
            &Options {
                must_exist: open == Open::Existing,
                telemetry: Spans::to(telemetry::port()),
                ..Options::default()
            },
        )
    }

    fn engine(&self, project: &Project, stores: Stores) -> Result<Engine, Report> {
        Ok(Engine::open(self.config(project, stores)?))
    }

    fn open_test(&self, project: &Project, world: &World) -> Result<Engine, Report> {
        let options = Options {
            probe: Some(world.points.clone()),
            ..Options::default()
        };
        let config = self.config(project, stores(project, &options)?)?;
        Ok(Engine::open(EngineConfig {
            steps: world.watch(config.steps),
            clock: world.clock.clone(),
            random: world.random(),
            coverage: Some(world.coverage.clone()),
            telemetry: Arc::new(NoTelemetry),
            ..config
        }))
    }

    fn embedder<'a>(&self, engine: &'a Engine) -> Result<Option<Box<dyn Embedder + 'a>>, Report> {
        let logins = (engine.home(), || engine.now_ms());
        let embedder = embedder::of_project(engine.settings(), engine.secrets(), logins);
        let embedder = embedder.map_err(|message| Report::error("E0709", message))?;
        Ok(embedder.map(|embedder| Box::new(embedder) as Box<dyn Embedder + 'a>))
    }

    fn dependency(
        &self,
        project: &Project,
        revision: &Revision,
    ) -> Result<Vec<(String, Vec<u8>)>, Report> {
        let files = dependency::code_of(revision, &project.root, &project.home);
        files.map_err(|error| Report::error(error.code().0, error.to_string()).hint(error.hint()))
    }

    fn connections(&self, engine: &Engine, flows: &[&Flow]) -> Vec<ConnectionReport> {
        connections::report(engine, flows)
    }

    fn try_connection<'a>(
        &self,
        engine: &'a Engine,
        flow: &'a Rc<Flow>,
        connection: &'a ConnectionReport,
    ) -> LocalFuture<'a, ConnectionTest> {
        Box::pin(connections::attempt(engine, flow, connection))
    }

    fn login<'a>(
        &self,
        engine: &'a Engine,
        project: &'a Project,
        options: &'a LoginOptions,
        tell: &'a mut dyn FnMut(&LoginNote),
    ) -> LocalFuture<'a, Result<LoginReport, Report>> {
        let gate = self.gate(project);
        Box::pin(async move {
            let done = connections::login(engine, &gate?, options, tell).await;
            done.map_err(of_step)
        })
    }

    fn logout<'a>(
        &self,
        engine: &'a Engine,
        project: &'a Project,
        name: &'a str,
    ) -> LocalFuture<'a, Result<(bool, bool), Report>> {
        let gate = self.gate(project);
        Box::pin(async move {
            let done = connections::logout(engine, &gate?, name).await;
            done.map_err(of_step)
        })
    }

    fn prices(&self, engine: &Engine) -> Result<(String, Vec<PriceReport>), Report> {
        let prices = prices::report(engine.settings());
        let prices = prices.map_err(|message| Report::error("E0751", message))?;
        Ok((prices::as_of().to_owned(), prices))
    }

    fn session(&self) -> Session {
        let session = Session::new();
        natives::install(&session);
        sandbox::register(&session);
        session
    }

    fn plain_session(&self) -> Session {
        let session = Session::new();
        sandbox::register(&session);
        session
    }

    fn permissions(&self, project: &Project) -> Result<Permissions, Report> {
        permissions(&self.settings(project)?, project)
    }

    fn settings(&self, project: &Project) -> Result<Value, Report> {
        settings::load(&project.root).map_err(|error| of_settings(&error))
    }

    fn steps(&self) -> Vec<Box<dyn Step>> {
        let mut steps = flowstone_project::all_steps();
        steps.extend(flowstone_fronts::steps());
        steps.extend(flowstone_engine::builtin());
        steps
    }

    fn repl(&self, prompt: Prompt) -> Result<bool, Report> {
        let runtime = Runtime::start()?;
        let engine = runtime.block_on(async { self.open(&prompt.project, Open::OrMake) })?;
        let session = Rc::new(engine.session());
        let waiting = Waiting::new(prompt.observer());
        let steps = engine.interactive(Rc::clone(&session), waiting.clone(), prompt.interrupt());
        let colored = prompt.colored;
        let words = Rc::new(Words::new(Rc::clone(&session), &engine));
        let assist = Rc::new(Assistant(Rc::clone(&words)));
        let console = Console::open(assist, prompt.history.as_deref(), colored);
        let console = Rc::new(console.map_err(|error| lost_terminal(&error))?);
        let around = Around {
            observer: prompt.observer(),
            interrupt: prompt.interrupt(),
            asker: prompt.asker(),
            person: Rc::new(AtConsole {
                console: Rc::clone(&console),
                progress: prompt.progress(),
            }),
            waiting,
        };
        let mut evaluator = WithSteps {
            prompt,
            runtime: &runtime,
            session: Rc::clone(&session),
            kinds: self.steps(),
            words,
            is_terminal: console.is_terminal(),
            desk: Desk::new(&engine, Rc::clone(&session), around),
            steps,
        };
        let repl = Repl {
            session,
            evaluator: &mut evaluator,
            console,
            colored,
            size: Prompt::size,
            rest: Default::default(),
        };
        let all_well = repl.run().map_err(|error| lost_terminal(&error))?;
        let finished = runtime.block_on(evaluator.steps.finish());
        finished.map_err(|error| Report::error(error.code(), error.to_string()))?;
        Ok(all_well)
    }
}

impl Flowstone {
    /// Returns the permissions of the project itself.
    fn gate(&self, project: &Project) -> Result<Gate, Report> {
        let allow = self.permissions(project)?.of_flow("none");
        Ok(Gate::new(&project.root, allow))
    }

    /// What the engine of a project is made of.
    fn config(&self, project: &Project, stores: Stores) -> Result<EngineConfig, Report> {
        let settings = settings::load(&project.root).map_err(|error| of_settings(&error))?;
        let secrets = secrets::ProjectSecrets::load(&project.root, &settings);
        let secrets = secrets.map_err(|error| of_settings(&error))?;
        let bound = project
            .bindings
            .apply(&settings)
            .map_err(|error| Report::error(error.code(), error.to_string()).hint(error.hint()))?;
        flowstone_steps::connections::check_set(&bound, &project.bindings).map_err(|error| {
            let report = Report::error("E0950", error.message);
            error.hints.into_iter().fold(report, Report::hint)
        })?;
        let outside = exchanges(project, settings, Arc::new(secrets))?;
        let settings = outside.settings;
        Ok(EngineConfig {
            coverage: None,
            home: project.home.clone(),
            project_root: project.root.clone(),
            stores,
            steps: self.steps(),
            persist: Some(Rc::new(flowstone_steps::persist::PersistResult)),
            library: sandbox::register,
            secrets: Arc::new(ServerSecrets::new(
                outside.secrets,
                Arc::new(ProjectVault::of_environment(&project.home)),
                &project.home,
            )),
            vault: Arc::new(ProjectVault::of_environment(&project.home)),
            exchanges: outside.exchanges,
            telemetry: telemetry::port(),
            durability: settings::of_durability(&settings),
            formats: FORMATS,
            answer_rules: ANSWER_RULES,
            limits: limits(&settings, project),
            permissions: Arc::new(permissions(&settings, project)?),
            settings,
            bindings: project.bindings.clone(),
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
        })
    }
}

/// Returns what the flows of a project may touch.
fn permissions(settings: &Value, project: &Project) -> Result<Permissions, Report> {
    let own = permissions::of_project(settings, &project.root, &project.home);
    let here = std::env::current_dir().unwrap_or_else(|_| project.root.clone());
    let mut trusted = Vec::new();
    let unreadable = |error: std::io::Error| {
        let message = format!("the list of trusted flows cannot be used: {error}");
        Report::error("E0962", message)
    };
    for entry in trust::trusted(&project.home).map_err(unreadable)? {
        let allow = permissions::of_rows(&entry.rows, &project.root);
        trusted.push(TrustedFlow {
            slug: entry.slug,
            digest: entry.digest,
            allow: allow.map_err(|error| of_settings(&error))?,
        });
    }
    Ok(Permissions {
        trusted,
        command: project
            .permits
            .rows(&|path| permissions::absolute(&here, path)),
        ..own.map_err(|error| of_settings(&error))?
    })
}

/// Returns what a run may take: a command's options win over the settings.
fn limits(settings: &Value, project: &Project) -> Limits {
    let limits = Limits::of(settings);
    Limits {
        memory: project.max_memory.unwrap_or(limits.memory),
        ..limits
    }
}

/// What lies between a project's steps and the world.
struct Outside {
    settings: Value,
    secrets: Arc<dyn Secrets>,
    exchanges: Option<Arc<dyn Exchanges>>,
}

/// Puts a recording between, where the command asks for that.
fn exchanges(project: &Project, settings: Value, own: Arc<dyn Secrets>) -> Result<Outside, Report> {
    match &project.exchanges {
        ExchangesWith::Servers => Ok(Outside {
            settings,
            secrets: own,
            exchanges: None,
        }),
        ExchangesWith::RecordedServers(folder) => {
            let recorder = Recorder::create(folder, settings::environment(&settings));
            let recorder = Arc::new(recorder.map_err(|error| of_recording(&error))?);
            Ok(Outside {
                settings,
                secrets: Arc::new(RecordedSecrets {
                    own,
                    recorder: recorder.clone(),
                }),
                exchanges: Some(recorder),
            })
        }
        ExchangesWith::Recording(folder) => {
            let replayer = Replayer::open(folder).map_err(|error| of_recording(&error))?;
            let replayer = Arc::new(replayer);
            Ok(Outside {
                settings: settings::with_environment(&settings, replayer.environment()),
                secrets: Arc::new(ReplayedSecrets {
                    own,
                    replayer: replayer.clone(),
                }),
                exchanges: Some(replayer),
            })
        }
    }
}

fn of_recording(error: &RecordingError) -> Report {
    Report::error(error.code(), error.to_string()).hint(error.hint())
}

fn stores(project: &Project, options: &Options) -> Result<Stores, Report> {
    // Settings that cannot be read are reported where they are needed.
    let settings = settings::load(&project.root).ok();
    let options = Options {
        crashes: settings.map(|settings| Limits::of(&settings).crashes),
        ..options.clone()
    };
    flowstone_stores::open(&project.home, &options).map_err(|error| of_store_error(&error))
}

/// Evaluates what is typed, as a run of its own.
struct WithSteps<'a> {
    prompt: Prompt,
    runtime: &'a Runtime,
    session: Rc<Session>,
    steps: Interactive<'a>,
    desk: Desk<'a>,
    words: Rc<Words>,
    is_terminal: bool,
    /// The step types, for those who ask about them.
    kinds: Vec<Box<dyn Step>>,
}

impl Evaluator for WithSteps<'_> {
    fn begin(&mut self) {
        if self.is_terminal {
            // Completion of ids; without them it completes everything else.
            let runs = self.runtime.block_on(self.desk.recent_runs());
            self.words.set_runs(runs.unwrap_or_default());
        }
        self.prompt.begin();
    }

    fn evaluate(&mut self, body: Body) -> Evaluated<Value> {
        let host = self.prompt.host();
        let value = self
            .runtime
            .block_on(self.steps.eval(host, &self.desk, body));
        self.prompt.end();
        value
    }

    fn report_error(&mut self, signal: &Signal) {
        let page = match signal {
            Signal::Throw(exception) => self.desk.report(exception),
            Signal::Stop(_) => None,
        };
        match page {
            Some(page) => self.prompt.report_page(&page),
            None => self.prompt.report_error(&self.session, signal),
        }
    }

    fn page(&self, value: &Value) -> Option<String> {
        self.prompt.page(&self.desk, value)
    }

    fn describe_step(&self, kind: &str) -> Option<String> {
        self.prompt.describe_step(&self.kinds, kind)
    }
}

/// Helps to type forms.
struct Assistant(Rc<Words>);

impl Assist for Assistant {
    fn complete(&self, text: &str) -> (usize, Vec<String>) {
        let (start, found) = self.0.complete_here(text);
        (start, found.into_iter().map(|it| it.text).collect())
    }

    fn hint(&self, text: &str) -> Option<String> {
        self.0.hint(text)
    }

    fn note(&self, text: &str) {
        self.0.note(text);
    }
}

/// The person at the terminal of a prompt, or the program at the other end of a pipe.
struct AtConsole {
    console: Rc<Console>,
    progress: Progress,
}

impl Person for AtConsole {
    fn ask(&self, question: &str) -> Option<String> {
        self.progress.clear();
        self.console.ask(question)
    }

    fn answers_waits(&self) -> bool {
        self.console.is_terminal()
    }

    fn tell(&self, text: &str) {
        self.progress.tell(text);
    }
}

fn of_step(error: StepError) -> Report {
    let report = Report::error(error.code, error.message);
    error.hints.into_iter().fold(report, Report::hint)
}

fn of_settings(error: &settings::SettingsError) -> Report {
    let report = Report::error(error.code(), error.to_string());
    error.hint().into_iter().fold(report, Report::hint)
}
