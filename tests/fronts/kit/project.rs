//! A project in memory with an open kit.

use std::cell::RefCell;
use std::rc::Rc;

use flowstone_engine::catalog::Catalog;
use flowstone_engine::ids::RunId;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::token::{Scope, Token, TokenKind, TokenLimits};
use flowstone_engine::{Engine, EngineConfig, ExecuteOptions, StartOptions};
use flowstone_flow::flow::Flow;
use flowstone_fronts::kit::{
    self, Called, Consent, KitCall, KitError, Origin, Permissions, catalog,
};
use flowstone_lang::diagnostic::Diagnostic;
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use flowstone_project::connections::ConnectionReport;
use flowstone_project::registry::{DEFAULT_WORKSPACE, FlowRegistry, Target, VersionRef};
use flowstone_project::search::Embedder;
use serde_json::{Value as Json, json};

/// A project and the door that is open for its flow `digest`.
pub struct Project {
    _folder: tempfile::TempDir,
    pub engine: Engine,
    catalog: Catalog,
    token: Token,
    /// The run that calls.
    pub caller: RefCell<Option<RunId>>,
}

struct NoBackend;

impl kit::Backend for NoBackend {
    fn embedder<'a>(&self, _: &'a Engine) -> Result<Option<Box<dyn Embedder + 'a>>, Diagnostic> {
        Ok(None)
    }

    fn connections(&self, _: &Engine, _: &[&Flow]) -> Vec<ConnectionReport> {
        Vec::new()
    }
}

impl Project {
    pub fn new() -> Project {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let stores = flowstone_stores::memory::Memory::new(
            flowstone_stores::memory::MemoryOptions::default(),
        )
        .open();
        let steps = flowstone_project::all_steps();
        let engine = Engine::open(EngineConfig::for_tests(folder.path(), stores, steps));
        Project {
            _folder: folder,
            engine,
            catalog: Catalog::new(Vec::new()),
            token: Token {
                id: "t1".to_owned(),
                name: "tester".to_owned(),
                kind: TokenKind::Owner,
                scopes: vec![Scope::Admin],
                limits: TokenLimits::default(),
                roles: Vec::new(),
                subject: None,
                created_ms: 0,
                expires_ms: None,
                used_ms: None,
                revoked_ms: None,
            },
            caller: RefCell::new(None),
        }
    }

    /// Calls a tool with a person's consent.
    pub async fn try_call(&self, tool: &str, arguments: Json) -> Result<Json, KitError> {
        let origin = Origin {
            run: self.caller.borrow().clone(),
            ..Origin::default()
        };
        let permissions = Permissions::default();
        let (_cancel, cancelled) = tokio::sync::watch::channel(false);
        let cx = KitCall {
            engine: &self.engine,
            catalog: &self.catalog,
            backend: &NoBackend,
            workspace: DEFAULT_WORKSPACE,
            bound: Some("digest"),
            token: &self.token,
            origin: &origin,
            permissions: &permissions,
            cancelled,
            is_for_model: false,
        };
        let checked = |answer: Json| {
            let tool = catalog::find(tool).expect("it was called");
            let schema = jsonschema::validator_for(&(tool.output)()).expect("a schema");
            let wrong = schema.iter_errors(&answer).next().map(|it| it.to_string());
            assert_eq!(wrong, None, "{}: {answer}", tool.name);
            Ok(answer)
        };
        let digest = match kit::call(&cx, tool, arguments.clone(), Consent::Door).await? {
            Called::Done(answer) => return checked(answer),
            Called::Ask(question) => question.digest,
        };
        match kit::call(&cx, tool, arguments, Consent::Given(&digest)).await? {
            Called::Done(answer) => checked(answer),
            Called::Ask(question) => panic!("asked again about {question:?}"),
        }
    }

    pub async fn call(&self, tool: &str, arguments: Json) -> Json {
        let called = self.try_call(tool, arguments).await;
        called.unwrap_or_else(|error| error.to_json())
    }

    /// Commits the first revision of `digest` with this body, and runs it.
    pub async fn run(&self, body: &str) -> RunId {
        let text = format!("{{:slug :digest :flow '{body}}}");
        let made = self
            .call(
                "commit_revision",
                json!({"delta": {"set": {"parameters": {"files": {"flow.edn": text}}}}}),
            )
            .await;
        assert_eq!(made["status"], "committed", "{made}");
        self.run_again().await
    }

    /// Runs the newest revision.
    pub async fn run_again(&self) -> RunId {
        let registry = FlowRegistry::new(self.engine.stores(), self.engine.now_ms());
        let draft = VersionRef::Target(Target::Draft);
        let version = registry.version("digest", &draft).await.expect("a version");
        let session: Rc<Session> = Rc::new(self.engine.session());
        let checked = self.engine.version_flow(&session, &version, None).await;
        let checked = checked.expect("its files");
        let loaded = checked.loaded.expect("a flow");
        let options = StartOptions::with_input(Value::map([]));
        let run = self
            .engine
            .start(&loaded, options)
            .await
            .expect("it starts");
        let outcome = self
            .engine
            .execute(&run, Rc::new(NoObserver), ExecuteOptions::default())
            .await;
        outcome.expect("it is executed");
        run
    }
}
