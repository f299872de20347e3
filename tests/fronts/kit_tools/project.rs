//! A project whose flows are in the registry, and calls of the kit's tools.

use std::cell::Cell;
use std::rc::Rc;

use flowstone_engine::catalog::Catalog;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{RunRow, RunStatus, Stores};
use flowstone_engine::{Engine, EngineConfig};
use flowstone_flow::flow::Flow;
use flowstone_flow::step::{Effect, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec};
use flowstone_fronts::kit;
use flowstone_fronts::kit::context::{Backend, KitCall, Origin};
use flowstone_fronts::kit::permission::Permissions;
use flowstone_fronts::kit::schema;
use flowstone_fronts::kit::tool::Tool;
use flowstone_fronts::kit::tools::test_run;
use flowstone_lang::diagnostic::Diagnostic;
use flowstone_lang::value::Value;
use flowstone_model::registry::MAIN_FILE;
use flowstone_model::token::{Scope, Token, TokenKind, TokenLimits};
use flowstone_project::connections::{self, ConnectionReport};
use flowstone_project::registry::{Base, DEFAULT_WORKSPACE, FlowRegistry, NewCommit};
use flowstone_project::search::Embedder;
use flowstone_stores::memory::{Memory, MemoryOptions};
use serde_json::{Value as Json, json};
use tokio::sync::watch;

/// The slug of the flow under test.
pub const SLUG: &str = "mail";

/// A project with scripted models.
pub struct Project {
    pub folder: tempfile::TempDir,
    /// The folder of the database, if the project has one.
    pub database: Option<tempfile::TempDir>,
    pub engine: Engine,
    pub stores: Stores,
    pub token: Token,
    /// How often the step `:send` was performed.
    pub sent: Rc<Cell<u32>>,
    /// Set when the caller of a tool leaves.
    pub leave: watch::Sender<bool>,
}

struct Known;

/// A step that changes something outside: it counts what was sent.
struct Send(Rc<Cell<u32>>);

const SEND: StepSpec = StepSpec {
    kind: "send",
    operations: None,
    aliases: &[],
    doc: "Sends something.",
    fields: &[],
    examples: &[],
    effect: Effect::External,
};

impl Step for Send {
    fn spec(&self) -> &'static StepSpec {
        &SEND
    }

    fn run<'a>(
        &'a self,
        _cx: &'a StepContext,
        _config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        self.0.set(self.0.get() + 1);
        Box::pin(std::future::ready(Ok(Outcome::Value(Value::from("sent")))))
    }
}

impl Backend for Known {
    fn embedder<'a>(
        &self,
        _engine: &'a Engine,
    ) -> Result<Option<Box<dyn Embedder + 'a>>, Diagnostic> {
        Ok(None)
    }

    fn connections(&self, engine: &Engine, flows: &[&Flow]) -> Vec<ConnectionReport> {
        connections::report(engine, flows)
    }
}

impl Project {
    /// A project with these turns of its model, as EDN.
    pub fn with(turns: &str) -> Project {
        let stores = Memory::new(MemoryOptions::default()).open();
        Project::over(stores, turns)
    }

    pub fn over(stores: Stores, turns: &str) -> Project {
        let text = format!(
            "{{:allow {{:net [\"127.0.0.1\"]}}
              :connections {{:ai {{:backend :scripted :models [\"test/small\"] :script {{:turns [{turns}]}}}}}}}}"
        );
        Project::set(stores, &text)
    }

    /// A project with these settings.
    pub fn set(stores: Stores, text: &str) -> Project {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let settings = flowstone_model::codec::decode(text).expect("settings");
        let sent = Rc::new(Cell::new(0));
        let mut steps = flowstone_project::all_steps();
        steps.extend(flowstone_fronts::steps());
        steps.push(Box::new(Send(sent.clone())));
        let config = EngineConfig::for_tests(folder.path(), stores.clone(), steps);
        let engine = Engine::open(EngineConfig {
            settings,
            persist: Some(Rc::new(flowstone_steps::persist::PersistResult)),
            ..config
        });
        Project {
            folder,
            database: None,
            engine,
            stores,
            sent,
            token: token(&[Scope::Edit, Scope::Read, Scope::Run]),
            leave: watch::channel(false).0,
        }
    }

    /// Commits the text of a flow.
    pub async fn commit(&self, slug: &str, text: &str) {
        let registry = FlowRegistry::new(&self.stores, self.engine.now_ms());
        let files = [(MAIN_FILE.to_owned(), text.as_bytes().to_vec())];
        let new = NewCommit {
            base: Base::Any,
            ..NewCommit::of(slug, files.into())
        };
        registry.commit(new).await.expect("it is committed");
    }

    /// Calls `test_run`. An error is the object that doors answer.
    pub async fn test(&self, arguments: Json) -> Json {
        self.call(&test_run::TOOL, arguments).await
    }

    /// Calls a tool, without asking anybody. An error is the object that doors answer.
    pub async fn call(&self, tool: &Tool, arguments: Json) -> Json {
        self.call_on(SLUG, tool, arguments).await
    }

    /// As [`Project::call`], with another flow.
    pub async fn call_on(&self, slug: &str, tool: &Tool, arguments: Json) -> Json {
        let catalog = Catalog::new(Vec::new());
        let origin = Origin::default();
        let permissions =
            Permissions::of_settings(self.engine.settings(), &self.token).expect("permissions");
        let call = KitCall {
            engine: &self.engine,
            catalog: &catalog,
            backend: &Known,
            workspace: DEFAULT_WORKSPACE,
            bound: Some(slug),
            token: &self.token,
            origin: &origin,
            permissions: &permissions,
            cancelled: self.leave.subscribe(),
            is_for_model: true,
        };
        let Json::Object(given) = &arguments else {
            panic!("arguments are an object");
        };
        let checked = schema::check(tool, given);
        if let Err(error) = checked.and_then(|()| kit::may_change(&call, tool, given)) {
            return error.to_json();
        }
        match (tool.call)(&call, given.clone()).await {
            Ok(answer) => {
                let schema = jsonschema::validator_for(&(tool.output)()).expect("a schema");
                let errors: Vec<String> = schema
                    .iter_errors(&answer)
                    .map(|it| it.to_string())
                    .collect();
                assert_eq!(errors, [] as [String; 0], "{answer}");
                answer
            }
            Err(error) => error.to_json(),
        }
    }

    /// Returns `asked` if a person would be asked about a call; otherwise the code of its error.
    pub async fn question(&self, tool: &Tool, arguments: Json) -> String {
        let catalog = Catalog::new(Vec::new());
        let (origin, permissions) = (Origin::default(), Permissions::default());
        let call = KitCall {
            engine: &self.engine,
            catalog: &catalog,
            backend: &Known,
            workspace: DEFAULT_WORKSPACE,
            bound: Some(SLUG),
            token: &self.token,
            origin: &origin,
            permissions: &permissions,
            cancelled: self.leave.subscribe(),
            is_for_model: true,
        };
        match kit::question(&call, tool.name, arguments).await {
            Ok(Some(_)) => "asked".to_owned(),
            Ok(None) => "free".to_owned(),
            Err(error) => error.code.name().to_owned(),
        }
    }

    pub async fn run(&self, answer: &Json) -> RunRow {
        let id = answer["test_id"]
            .as_str()
            .or(answer["details"]["test_id"].as_str());
        let id = RunId::from_text(id.expect("a test"));
        self.engine.run(&id).await.expect("the run")
    }

    /// Returns the runs that are not over.
    pub async fn open_runs(&self) -> Vec<RunRow> {
        let mut runs = self
            .engine
            .list_runs(Default::default())
            .await
            .expect("runs");
        runs.retain(|run| !run.status.is_final());
        runs
    }

    /// Executes a flow as an ordinary run.
    pub async fn start(&self, text: &str) -> RunId {
        let checked = self.engine.check_text(&self.engine.session(), text);
        let loaded = checked.loaded.expect("a flow");
        let options = flowstone_engine::StartOptions::with_input(Value::map([]));
        self.engine.start(&loaded, options).await.expect("a run")
    }

    pub async fn status(&self, run: &RunId) -> RunStatus {
        self.engine.run(run).await.expect("the run").status
    }
}

pub fn token(scopes: &[Scope]) -> Token {
    Token {
        id: "t1".to_owned(),
        name: "test".to_owned(),
        kind: TokenKind::Service,
        scopes: scopes.to_vec(),
        limits: TokenLimits::default(),
        roles: Vec::new(),
        subject: None,
        created_ms: 0,
        expires_ms: None,
        used_ms: None,
        revoked_ms: None,
    }
}

/// Runs a test on the kind of runtime that an engine needs.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

/// Returns a flow with an agent that has the tools `slack__send` (`send`), `crm__send` (`note`), `look` and `break`.
pub fn agent(options: &str) -> String {
    flow(&format!(
        "(flow/step :agent :writer {{:connection :ai :instructions \"Write.\" :objective \"Write.\"
            :tools {{:steps [:slack/send :crm/note :crm/look :crm/break]}} {options}}})"
    ))
}

/// Returns a flow with the packaged steps of [`agent`].
pub fn flow(body: &str) -> String {
    let step = |id: &str, tool: &str, code: &str| {
        format!(
            "{{:id :{id} :type :function :tool {{:name \"{tool}\"}} :description \"x\"
               :input-schema [:map [:to {{:optional true}} :string]] :defaults {{:code '(fn [input] {code})}}}}"
        )
    };
    let steps = [
        step("slack/send", "slack__send", "{:sent (:to input)}"),
        step("crm/note", "crm__note", "{:noted true}"),
        step("crm/look", "look", "{:found []}"),
        step(
            "crm/break",
            "break",
            "(throw (ex-info \"out of order\" {}))",
        ),
    ];
    format!(
        "{{:slug :{SLUG} :requires [{{:slot :ai :type :http-api :backend :scripted}}]
          :steps [{}]
          :flow '{body}}}",
        steps.join("\n")
    )
}

/// A turn of the model that calls tools.
pub fn calls(names: &[&str]) -> String {
    let call = |name: &&str| format!("{{:name \"{name}\" :arguments {{:to \"a\"}}}}");
    let calls: Vec<String> = names.iter().map(call).collect();
    format!("{{:tool-calls [{}]}}", calls.join(" "))
}

pub fn expecting(tool: &str) -> Json {
    json!({"inputs": {}, "expectations": {"terminal_tool": tool}})
}
