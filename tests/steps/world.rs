//! A project in a scratch folder in which tests perform steps: config text in, outcome text out.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use flowstone_engine::blob::{BlobHash, BlobOp};
use flowstone_engine::changeset::{Overlay, Referenced};
use flowstone_engine::codec;
use flowstone_engine::ids::{RunId, StepPath};
use flowstone_engine::installation::{InstallationName, InstallationRow};
use flowstone_engine::ports::*;
use flowstone_engine::redact::Redactors;
use flowstone_engine::registry::{
    Added, FlowName, FlowRow, Moved, NewRelease, NewVersion, ReleaseRow, Target as FlowTarget,
    VersionFiles, VersionRow,
};
use flowstone_engine::resource::SearchEntry;
use flowstone_engine::table::csv::{ExportCsv, ExportedCsv, StageCsv, StagedCsv};
use flowstone_engine::table::{TableOp, TableQuery};
use flowstone_engine::token::Token;
use flowstone_engine::triggers::{
    DeliveryQuery, EventDelivery, NewDelivery, TriggerKind, TriggerRow,
};
use flowstone_engine::{Limits, SystemClock};
use flowstone_flow::flow::{Flow, Template, name_of};
use flowstone_flow::permission::{Allow, NetAllow, NetRow, Permissions, SecretRow};
use flowstone_flow::step::{
    Cutoff, Gate, Outcome, Progress, Retry, Scope, Services, Step, StepContext, StepError,
    StepRequest,
};
use flowstone_lang::session::Session;
use flowstone_lang::value::heap::HeapBudget;
use flowstone_lang::value::{Span, Value};
use flowstone_steps::permissions;
use tempfile::TempDir;

mod nothing;

use nothing::{Nothing, unused};

pub struct World {
    pub folder: TempDir,
    pub blobs: Arc<MemoryBlobs>,
    secrets: HashMap<String, String>,
    settings: Value,
    flow: Flow,
    /// The timeout of each step, in milliseconds.
    pub timeout: Option<i64>,
    pub is_clock_stopped: bool,
    /// Receives requests before they are sent.
    pub exchanges: Option<Arc<dyn Exchanges>>,
    pub progress: Rc<RefCell<Vec<Progress>>>,
    /// The redactor that the engine applies to everything it records.
    pub hidden: RefCell<Vec<String>>,
}

impl World {
    pub fn new() -> World {
        World {
            folder: TempDir::new().unwrap(),
            blobs: Arc::default(),
            secrets: HashMap::new(),
            settings: edn("{}"),
            flow: Flow::bare("test", Value::Nil),
            timeout: None,
            is_clock_stopped: false,
            exchanges: None,
            progress: Rc::default(),
            hidden: RefCell::default(),
        }
    }

    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> World {
        self.write(path, content);
        self
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn secret(mut self, name: &str, text: &str) -> World {
        self.secrets.insert(name.into(), text.into());
        self
    }

    pub fn settings(mut self, text: &str) -> World {
        self.settings = edn(text);
        self
    }

    pub fn requires(mut self, text: &str) -> World {
        self.flow.requires = edn(text);
        self
    }

    pub fn providers(mut self, text: &str) -> World {
        self.flow.llm_providers = edn(text);
        self
    }

    pub fn template(mut self, text: &str) -> World {
        let body = edn(text);
        let name = |key: &str| name_of(body.get(key).unwrap()).unwrap();
        self.flow.templates.push(Template {
            id: name("id"),
            kind: name("type"),
            body: body.clone(),
            span: Span::NONE,
        });
        self
    }

    pub fn timeout(mut self, ms: i64) -> World {
        self.timeout = Some(ms);
        self
    }

    /// Stops the clock, so that the remaining timeout does not depend on the load of the machine.
    pub fn stop_clock(mut self) -> World {
        self.is_clock_stopped = true;
        self
    }

    /// Performs a step and returns its answer as text.
    pub async fn run(&self, step: &dyn Step, config: &str) -> String {
        match self.perform(step, config).await {
            Ok(outcome) => shown(outcome),
            Err(error) => self.error(&error),
        }
    }

    /// Performs a step and returns its value.
    pub async fn value(&self, step: &dyn Step, config: &str) -> Value {
        match self.perform(step, config).await {
            Ok(Outcome::Value(value)) => value,
            Ok(Outcome::Commit(StoreOp::Blob(BlobOp::Register { value, .. }))) => edn(&value),
            Ok(other) => panic!("{other:?}"),
            Err(error) => panic!("{}", self.error(&error)),
        }
    }

    pub async fn perform(&self, step: &dyn Step, config: &str) -> Result<Outcome, StepError> {
        let clock: Arc<dyn Clock> = match self.is_clock_stopped {
            true => Arc::new(SimulatedClock::standing_at(SystemClock.now_ms())),
            false => Arc::new(SystemClock),
        };
        let deadline_ms = self.timeout.map(|ms| clock.now_ms() + ms);
        let progress = Rc::clone(&self.progress);
        let scope = Scope {
            run: RunId::from_text("run1"),
            flow: Rc::new(self.flow.clone()),
            input: Value::Nil,
            input_secrets: Vec::new(),
            trace: None,
            session: Rc::new(Session::new()),
            gate: Rc::new(Gate::new(self.path(), self.permissions().of_flow("test"))),
            services: Rc::new(Services {
                steps: flowstone_project::all_steps().into(),
                stores: self.stores(),
                clock,
                random: Arc::new(SystemRandom),
                secrets: Arc::new(Known(self.secrets.clone())),
                vault: Arc::new(flowstone_engine::ports::NoVault),
                redactors: Redactors::default(),
                telemetry: Arc::new(NoTelemetry),
                exchanges: self.exchanges.clone(),
                profile: None,
                project_root: self.path().to_path_buf(),
                home: self.path().join(".flowstone"),
                settings: self.settings.clone(),
                permissions: self.permissions(),
                is_outside: false,
                test: None,
                scratch: None,
                formats: &[],
                answer_rules: AnswerRules::default(),
                installation: None,
            }),
            progress: Rc::new(move |_: &StepPath, it| progress.borrow_mut().push(it)),
            revealed: Revealed::default(),
            heap: Rc::new(HeapBudget::new(Limits::default().memory)),
            cutoff: Cutoff::default(),
        };
        let request = StepRequest {
            path: StepPath {
                branch: String::new(),
                step: "test".into(),
                occurrence: 1,
            },
            kind: step.spec().kind,
            attempt: 1,
            idempotency_key: "run1/test".into(),
            deadline_ms,
            pass: 0,
        };
        let scope = Rc::new(scope);
        let cx = StepContext::new(Rc::clone(&scope), request);
        let outcome = step.run(&cx, edn(config)).await;
        let hidden = scope.revealed.all();
        let texts = hidden.iter().map(|secret| secret.reveal().to_string());
        self.hidden.borrow_mut().extend(texts);
        outcome
    }

    /// Returns the permissions of a flow whose flags allow this machine and the secrets of the test.
    fn permissions(&self) -> Arc<Permissions> {
        let home = self.path().join(".flowstone");
        let own = permissions::of_project(&self.settings, self.path(), &home);
        let secrets = self.secrets.keys().map(String::as_str);
        Arc::new(Permissions {
            command: this_machine(secrets),
            ..own.expect("good settings")
        })
    }

    fn stores(&self) -> Stores {
        Stores {
            agenda: Arc::new(Nothing),
            journal: Arc::new(Nothing),
            feed: Arc::new(Nothing),
            live: Arc::new(Nothing),
            runs: Arc::new(Nothing),
            queue: Arc::new(Nothing),
            waits: Arc::new(Nothing),
            jobs: Arc::new(Nothing),
            kv: Arc::new(Nothing),
            tables: Arc::new(Nothing),
            blobs: Arc::clone(&self.blobs) as Arc<dyn Blobs>,
            upkeep: Arc::new(Nothing),
            resources: Arc::new(Nothing),
            changesets: Arc::new(Nothing),
            search: Arc::new(Nothing),
            tokens: Arc::new(Nothing),
            registry: Arc::new(Nothing),
            triggers: Arc::new(Nothing),
            installations: Arc::new(Nothing),
            scratch: Arc::new(Nothing),
        }
    }

    /// Formats an error as text, without parts that differ from run to run.
    fn error(&self, error: &StepError) -> String {
        let mut text = format!("{} {}: {}", error.code, error.kind, error.message);
        match error.retry {
            Retry::Never => {}
            Retry::Backoff => text.push_str("\n  retry: later"),
            Retry::After(wait) => text.push_str(&format!("\n  retry: after {wait:?}")),
        }
        for hint in &error.hints {
            text.push_str(&format!("\n  hint: {hint}"));
        }
        if !error.data.is_nil() {
            text.push_str(&format!(
                "\n  data: {}",
                codec::encode(&error.data).unwrap()
            ));
        }
        text.replace(&self.path().display().to_string(), "ROOT")
    }
}

/// The flags that a user would give: servers on this machine, and these secrets for them.
pub fn this_machine<'a>(secrets: impl Iterator<Item = &'a str>) -> Allow {
    let rows = ["localhost", "127.0.0.1", "::1"].map(|host| NetRow::read(host).unwrap());
    let secrets = secrets.map(|name| SecretRow {
        name: name.to_owned(),
        hosts: rows.to_vec(),
    });
    Allow {
        secrets: secrets.collect(),
        net: Arc::new(NetAllow {
            rows: rows.to_vec(),
            ..NetAllow::default()
        }),
        ..Allow::default()
    }
}

/// Waits for a future on its own runtime.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

pub fn edn(text: &str) -> Value {
    codec::decode(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn shown(outcome: Outcome) -> String {
    match outcome {
        Outcome::Value(value) => codec::encode(&value).unwrap(),
        Outcome::Commit(StoreOp::Blob(BlobOp::Register { value, .. })) => {
            format!("registers {value}")
        }
        other => format!("{other:?}"),
    }
}

struct Known(HashMap<String, String>);

impl Secrets for Known {
    fn find(&self, name: &str) -> Option<Secret> {
        self.0.get(name).map(Secret::new)
    }
}

#[derive(Default)]
pub struct MemoryBlobs(Arc<Mutex<HashMap<String, Vec<u8>>>>);

struct MemoryWriter {
    blobs: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    bytes: Vec<u8>,
}

impl BlobWriter for MemoryWriter {
    fn write(&mut self, bytes: &[u8]) -> PortFuture<'_, ()> {
        self.bytes.extend_from_slice(bytes);
        Box::pin(async { Ok(()) })
    }

    fn finish(self: Box<Self>) -> PortFuture<'static, StoredBlob> {
        let (hash, size) = (codec::digest_bytes(&self.bytes), self.bytes.len() as u64);
        self.blobs.lock().unwrap().insert(hash.clone(), self.bytes);
        let hash = BlobHash(hash);
        Box::pin(async move { Ok(StoredBlob { hash, size }) })
    }
}

impl Blobs for MemoryBlobs {
    fn put(&self, bytes: Vec<u8>) -> PortFuture<'_, BlobHash> {
        let hash = codec::digest_bytes(&bytes);
        self.0.lock().unwrap().insert(hash.clone(), bytes);
        Box::pin(async { Ok(BlobHash(hash)) })
    }

    fn begin(&self) -> PortFuture<'_, Box<dyn BlobWriter>> {
        let writer = MemoryWriter {
            blobs: Arc::clone(&self.0),
            bytes: Vec::new(),
        };
        Box::pin(async { Ok(Box::new(writer) as Box<dyn BlobWriter>) })
    }

    fn get(&self, hash: &BlobHash) -> PortFuture<'_, Vec<u8>> {
        let found = self.0.lock().unwrap().get(&hash.0).cloned();
        Box::pin(async {
            found.ok_or(StoreError::Rejected {
                code: "E0601",
                kind: "not-found",
                message: "no such blob".into(),
                hint: None,
            })
        })
    }

    fn part(&self, _: &BlobHash, _: u64, _: usize) -> PortFuture<'_, Vec<u8>> {
        unused()
    }

    fn find(&self, _uri: &str) -> PortFuture<'_, Option<BlobRow>> {
        Box::pin(async { Ok(None) })
    }
}
