//! A project in memory whose tools are called as a door calls them.

use std::rc::Rc;
use std::sync::Arc;

use flowstone_engine::catalog::Catalog;
use flowstone_engine::observer::{NoObserver, Observer};
use flowstone_engine::ports::{RunFilter, Secret, Secrets, SimulatedClock};
use flowstone_engine::triggers::{MINUTE_MS, TriggerEvent};
use flowstone_engine::worker::{Planner, Watch, WorkerEvent};
use flowstone_engine::{Engine, EngineConfig, ExecuteOptions, StartOptions};
use flowstone_flow::flow::Flow;
use flowstone_fronts::kit::{
    self, Backend, Called, Consent, DoorPermissions, KitCall, KitError, Origin, Permissions,
    Question,
};
use flowstone_lang::diagnostic::Diagnostic;
use flowstone_lang::value::Value;
use flowstone_model::token::{Scope, Token, TokenKind, TokenLimits};
use flowstone_project::connections::ConnectionReport;
use flowstone_project::registry::{Base, FlowRegistry, NewCommit, VersionFiles};
use flowstone_project::search::Embedder;
use flowstone_stores::memory::{Memory, MemoryOptions};
use serde_json::{Value as Json, json};

/// 2026-05-04T09:00:00Z, a Monday.
pub(super) const MONDAY_MS: i64 = 1_777_885_200_000;
pub(super) const SETTINGS: &str = "{:connections {:gh {:webhook {:type :github :secret-ref :gh-hook}}
                                       :shop {:webhook {:type :hmac-sha256 :secret-ref :shop-hook :event {:body \"/kind\"}}}
                                       :unset {:webhook {:type :stripe :secret-ref :nothing}}
                                       :wrong {:webhook {:type :telepathy}}}}";

struct Nobody;

impl Backend for Nobody {
    fn embedder<'a>(&self, _: &'a Engine) -> Result<Option<Box<dyn Embedder + 'a>>, Diagnostic> {
        Ok(None)
    }

    fn connections(&self, _: &Engine, _: &[&Flow]) -> Vec<ConnectionReport> {
        Vec::new()
    }
}

struct Hooks;

impl Secrets for Hooks {
    fn find(&self, name: &str) -> Option<Secret> {
        matches!(name, "gh-hook" | "shop-hook").then(|| Secret::new("s3cret"))
    }
}

struct NoWatch;

impl Watch for NoWatch {
    fn event(&self, _: &WorkerEvent<'_>) {}

    fn observer(&self) -> Rc<dyn Observer> {
        Rc::new(NoObserver)
    }
}

/// A project with a flow `digest`, and another one, `orders`.
pub(super) struct Project {
    _folder: tempfile::TempDir,
    pub(super) clock: Arc<SimulatedClock>,
    pub(super) engine: Rc<Engine>,
    catalog: Catalog,
}

pub(super) fn project() -> Project {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = Arc::new(SimulatedClock::standing_at(MONDAY_MS));
    let stores = Memory::new(MemoryOptions::default()).open();
    let settings = flowstone_lang::reader::read_data(SETTINGS);
    let engine = Engine::open(EngineConfig {
        clock: clock.clone(),
        settings: settings.expect("settings"),
        secrets: Arc::new(Hooks),
        ..EngineConfig::for_tests(folder.path(), stores, Vec::new())
    });
    let project = Project {
        _folder: folder,
        clock,
        engine: Rc::new(engine),
        catalog: Catalog::new(Vec::new()),
    };
    project.commit("digest", "(flow/input)");
    project.commit("orders", "{:total 7}");
    project
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.expect("a runtime").block_on(future)
}

impl Project {
    pub(super) fn commit(&self, slug: &str, body: &str) -> i64 {
        let text = format!("{{:slug :{slug} :flow '{body}}}");
        let files = VersionFiles::from([("flow.edn".to_owned(), text.into_bytes())]);
        let registry = FlowRegistry::new(self.engine.stores(), MONDAY_MS);
        let new = NewCommit {
            base: Base::Any,
            ..NewCommit::of(slug, files)
        };
        block_on(registry.commit(new))
            .expect("added")
            .version()
            .number
    }

    /// Calls a tool for a flow, as somebody whose door asks.
    pub(super) async fn at_door(
        &self,
        (slug, tool): (&str, &str),
        arguments: Json,
        consent: Consent<'_>,
    ) -> Result<Called, KitError> {
        let token = Token {
            id: "t1".to_owned(),
            name: "agent".to_owned(),
            kind: TokenKind::Service,
            scopes: vec![Scope::Edit, Scope::Read, Scope::Run],
            limits: TokenLimits::default(),
            roles: Vec::new(),
            subject: None,
            created_ms: 0,
            expires_ms: None,
            used_ms: None,
            revoked_ms: None,
        };
        let off = [
            "pause_schedule",
            "resume_schedule",
            "pause_subscription",
            "resume_subscription",
            "list_subscriptions",
        ];
        let off: Vec<String> = off.iter().map(|name| (*name).to_owned()).collect();
        let door = DoorPermissions::read(&[], &off).expect("names of tools");
        let (_cancel, cancelled) = tokio::sync::watch::channel(false);
        let cx = KitCall {
            engine: &self.engine,
            catalog: &self.catalog,
            backend: &Nobody,
            workspace: "default",
            bound: Some(slug),
            token: &token,
            origin: &Origin::default(),
            permissions: &Permissions::default().and(&door),
            cancelled,
            is_for_model: false,
        };
        kit::call(&cx, tool, arguments, consent).await
    }

    /// Returns what a person is asked about a call.
    pub(super) async fn asked(&self, slug: &str, tool: &str, arguments: Json) -> Option<Question> {
        match self.at_door((slug, tool), arguments, Consent::Door).await {
            Ok(Called::Ask(question)) => Some(*question),
            _ => None,
        }
    }

    /// Calls a tool for a flow, with the agreement of a person.
    pub(super) async fn called(
        &self,
        slug: &str,
        tool: &str,
        arguments: Json,
    ) -> Result<Json, KitError> {
        let first = self.at_door((slug, tool), arguments.clone(), Consent::Door);
        match first.await? {
            Called::Done(answer) => Ok(answer),
            Called::Ask(question) => {
                let given = Consent::Given(&question.digest);
                match self.at_door((slug, tool), arguments, given).await? {
                    Called::Done(answer) => Ok(answer),
                    Called::Ask(_) => panic!("{tool} asks twice"),
                }
            }
        }
    }

    pub(super) fn call(&self, tool: &str, arguments: Json) -> Json {
        let answer = block_on(self.called("digest", tool, arguments));
        let answer = answer.unwrap_or_else(|error| panic!("{tool}: {}", error.to_json()));
        let output = (kit::catalog::find(tool).expect("a tool").output)();
        let validator = jsonschema::validator_for(&output).expect("a schema");
        let problems: Vec<String> = validator
            .iter_errors(&answer)
            .map(|it| it.to_string())
            .collect();
        assert!(problems.is_empty(), "{tool}: {problems:?} in {answer}");
        answer
    }

    /// Returns the code of a refusal with its path or message.
    pub(super) fn refused(&self, tool: &str, arguments: Json) -> String {
        self.refused_for("digest", tool, arguments)
    }

    pub(super) fn refused_for(&self, slug: &str, tool: &str, arguments: Json) -> String {
        let shown = arguments.to_string();
        let error = block_on(self.called(slug, tool, arguments))
            .expect_err(&shown)
            .to_json();
        let path = error["details"]["path"].as_str().map(str::to_owned);
        let path = path.unwrap_or_else(|| error["message"].to_string());
        format!("{} {path}", error["code"].as_str().unwrap_or_default())
    }

    pub(super) fn schedule(&self, cron: &str) -> Json {
        let data = json!({"event_key": "digest.daily", "schedule": cron});
        self.call("create_schedule", json!({"data": data}))["schedule"].clone()
    }

    pub(super) fn subscribe(&self, connection: &str, key: &str) -> String {
        let data = json!({"event_key": key});
        let arguments = json!({"connection_id": connection, "data": data});
        let created = self.call("create_subscription", arguments);
        created["subscription"]["id"]
            .as_str()
            .expect("an id")
            .to_owned()
    }

    /// A worker's turn, some minutes after nine.
    pub(super) fn turn(&self, minutes: i64) {
        self.clock.set(MONDAY_MS + minutes * MINUTE_MS);
        let mut planner = Planner::new(self.engine.clone(), Vec::new(), Arc::new(NoWatch));
        block_on(planner.turn()).expect("a turn");
    }

    /// Runs the draft of a flow to its end.
    pub(super) async fn run(&self, slug: &str) {
        let registry = FlowRegistry::new(self.engine.stores(), MONDAY_MS);
        let head = registry.version(
            slug,
            &flowstone_project::registry::VersionRef::Target(
                flowstone_project::registry::Target::Draft,
            ),
        );
        let head = head.await.expect("a version");
        let session = Rc::new(self.engine.session());
        let checked = self
            .engine
            .version_flow(&session, &head, None)
            .await
            .expect("readable");
        let loaded = checked.loaded.expect("a flow");
        let run = self
            .engine
            .start(&loaded, StartOptions::with_input(Value::Nil))
            .await
            .expect("it starts");
        let outcome = self
            .engine
            .execute(&run, Rc::new(NoObserver), ExecuteOptions::default());
        outcome.await.expect("it ends");
    }

    /// Delivers an event of a connection, as the server does.
    pub(super) async fn event(
        &self,
        connection: &str,
        name: &str,
        id: &str,
        attributes: Json,
    ) -> Vec<u16> {
        let event = TriggerEvent {
            id: id.to_owned(),
            at_ms: MONDAY_MS,
            attributes,
            depth: 1,
        };
        let key = format!("webhook.{connection}.{name}");
        let found = self.engine.deliver_event(connection, &key, &event).await;
        found
            .expect("delivered")
            .into_iter()
            .map(|it| it.code)
            .collect()
    }

    pub(super) fn runs(&self) -> usize {
        block_on(self.engine.list_runs(RunFilter::default()))
            .expect("runs")
            .len()
    }
}
