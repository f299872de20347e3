//! The connections of a project: which there are, and whether they work. Trying one asks a server something that costs next to nothing, through the steps that flows use.

use std::rc::Rc;
use std::time::{Duration, Instant};

use flowstone_engine::{Direct, Engine};
use flowstone_flow::flow::Flow;
use flowstone_flow::step::{Gate, StepError};
use flowstone_lang::value::Value;

use flowstone_steps::connection_report::{self, ConnectionSources};
use flowstone_steps::llm::PROVIDERS;

pub use flowstone_steps::connection_report::{
    ConnectionReport, ConnectionTest, LoginReport, LoginState, SecretReport, Verdict,
};
pub use flowstone_steps::llm::prices::PriceReport;
use flowstone_steps::oauth::{self, LoginSources};
pub use flowstone_steps::oauth::{BegunLogin, LoginNote, LoginOptions};

/// A server that takes longer is no use.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the slots of flows, what the settings describe, and the providers that the environment knows, in this order.
pub fn report(engine: &Engine, flows: &[&Flow]) -> Vec<ConnectionReport> {
    let around = ConnectionSources {
        settings: engine.settings(),
        profile: engine.bindings().profile.as_deref(),
        secrets: engine.secrets(),
        home: engine.home(),
        now_ms: engine.now_ms(),
    };
    connection_report::report(&around, flows)
}

/// Logs in for a connection. `tell` is called with what a person has to do.
///
/// # Errors
/// E1315 to E1319, and those of the connection's settings.
pub async fn login(
    engine: &Engine,
    gate: &Gate,
    options: &LoginOptions,
    tell: &mut dyn FnMut(&LoginNote),
) -> Result<LoginReport, StepError> {
    oauth::login(
        &login_sources(engine, gate, &|| engine.now_ms()),
        options,
        tell,
    )
    .await
}

/// Deletes the login of a connection. Tells whether there was one, and whether the authorization server has ended it.
///
/// # Errors
/// As [`login`].
pub async fn logout(engine: &Engine, gate: &Gate, name: &str) -> Result<(bool, bool), StepError> {
    oauth::logout(&login_sources(engine, gate, &|| engine.now_ms()), name).await
}

/// Begins a login for a connection whose person comes back to an address of a server of the project.
///
/// # Errors
/// As [`login`].
pub async fn begin_login(
    engine: &Engine,
    name: &str,
    redirect: String,
) -> Result<BegunLogin, StepError> {
    let (gate, now) = (gate_of(engine), || engine.now_ms());
    oauth::begin(&login_sources(engine, &gate, &now), name, redirect).await
}

/// Makes a begun login from the query of the address that its person came back with.
///
/// # Errors
/// As [`login`].
pub async fn finish_login(
    engine: &Engine,
    begun: BegunLogin,
    query: &str,
) -> Result<LoginReport, StepError> {
    let (gate, now) = (gate_of(engine), || engine.now_ms());
    oauth::finish(&login_sources(engine, &gate, &now), begun, query).await
}

/// Returns the permissions of the project for requests that no flow makes.
fn gate_of(engine: &Engine) -> Gate {
    Gate::new(engine.project_root(), engine.permissions_of("none"))
}

fn login_sources<'a>(
    engine: &'a Engine,
    gate: &'a Gate,
    now_ms: &'a dyn Fn() -> i64,
) -> LoginSources<'a> {
    LoginSources {
        settings: engine.settings(),
        profile: engine.bindings().profile.as_deref(),
        secrets: engine.secrets(),
        root: engine.project_root(),
        home: engine.home(),
        gate,
        now_ms,
    }
}

/// Tries a connection, as the flow that names it would use it.
pub async fn attempt(
    engine: &Engine,
    flow: &Rc<Flow>,
    report: &ConnectionReport,
) -> ConnectionTest {
    let begun = Instant::now();
    let found = match question(report) {
        None => Found::untried(report),
        Some(question) => {
            let asked = ask(engine, flow, &report.name, question);
            match tokio::time::timeout(PATIENCE, asked).await {
                Ok(found) => found,
                Err(_) => Found {
                    verdict: Verdict::Fails,
                    detail: format!("no answer within {} s", PATIENCE.as_secs()),
                    code: Some("E0733".to_owned()),
                    hints: vec!["check the address, and that the server runs".to_owned()],
                },
            }
        }
    };
    ConnectionTest {
        name: report.name.clone(),
        verdict: found.verdict,
        millis: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        detail: found.detail,
        code: found.code,
        hints: found.hints,
    }
}

/// What a server is asked.
#[derive(Clone, Copy)]
enum Question {
    /// A few tokens.
    Model,
    /// Its front page.
    Page,
    /// The first message of MCP.
    Mcp,
    /// A statement without a table.
    Database,
    /// A command that does nothing.
    Machine,
}

fn question(report: &ConnectionReport) -> Option<Question> {
    let backend = report.backend.as_deref();
    let is_model = report.kind == "llm-provider"
        || backend.is_some_and(|id| PROVIDERS.iter().any(|it| it.id == id));
    match (is_model, backend, report.kind.as_str()) {
        (true, ..) => Some(Question::Model),
        (false, Some("mcp"), _) if report.base_url.is_some() => Some(Question::Mcp),
        (false, _, "database") if report.base_url.is_some() => Some(Question::Database),
        (false, _, "ssh") if report.base_url.is_some() => Some(Question::Machine),
        (false, _, "http-api") if report.base_url.is_some() => Some(Question::Page),
        _ => None,
    }
}

struct Found {
    verdict: Verdict,
    detail: String,
    code: Option<String>,
    hints: Vec<String>,
}

impl Found {
    fn works(detail: impl Into<String>) -> Found {
        Found {
            verdict: Verdict::Works,
            detail: detail.into(),
            code: None,
            hints: Vec::new(),
        }
    }

    fn untried(report: &ConnectionReport) -> Found {
        let verdict = |is_well| match is_well {
            true => Verdict::Works,
            false => Verdict::Fails,
        };
        if let Some(problem) = &report.problem {
            let is_well = report.is_optional;
            return Found {
                verdict: verdict(is_well),
                ..Found::works(problem.clone())
            };
        }
        if report.backend.as_deref() == Some("mcp") {
            let detail =
                "it has no `:base-url`: a server with a `:command` is started when a flow uses it";
            return Found {
                verdict: Verdict::Untried,
                ..Found::works(detail)
            };
        }
        match (&report.secret, report.kind.as_str()) {
            (Some(secret), "secret") => Found {
                verdict: verdict(secret.is_set || report.is_optional),
                ..Found::works(match secret.is_set {
                    true => format!("it is set ({})", secret.place),
                    false => format!("it is not set ({})", secret.place),
                })
            },
            (_, "http-api") => Found {
                verdict: Verdict::Untried,
                ..Found::works("it has no `:base-url`")
            },
            (_, "smtp") => Found {
                verdict: Verdict::Untried,
                ..Found::works("a mail server is tried by its first message")
            },
            (_, kind) => Found {
                verdict: Verdict::Untried,
                ..Found::works(format!("a connection of type `:{kind}` cannot be tried"))
            },
        }
    }
}

async fn ask(engine: &Engine, flow: &Rc<Flow>, name: &str, question: Question) -> Found {
    let kind = match question {
        Question::Model => "llm",
        Question::Page | Question::Mcp => "http",
        Question::Database => "db",
        Question::Machine => "ssh",
    };
    let direct = Direct {
        kind,
        config: config(name, question),
        folder: None,
    };
    match (engine.perform_for(flow.clone(), direct).await, question) {
        (Ok(answer), Question::Model) => {
            let model = answer.get("model").and_then(Value::as_str);
            Found::works(format!("{} answered", model.unwrap_or("the model")))
        }
        (Ok(answer), Question::Page) => {
            let status = answer.get("status").and_then(Value::as_int).unwrap_or(0);
            Found::works(format!("answered {status}"))
        }
        (Ok(answer), Question::Mcp) => greeted(&answer),
        (Ok(_), Question::Database) => Found::works("answered `select 1`"),
        (Ok(_), Question::Machine) => Found::works("executed `true`"),
        (Err(error), question) => failed(error, question),
    }
}

fn config(name: &str, question: Question) -> Value {
    let key = Value::keyword;
    let text = |text: &str| Value::from(text);
    let connection = (key("connection"), key(name));
    match question {
        Question::Model => Value::map([
            connection,
            (key("prompt"), text("Answer with the word: ok")),
            (key("max-tokens"), Value::Int(16)),
        ]),
        Question::Page => Value::map([
            connection,
            (key("method"), key("get")),
            (key("response-as"), key("bytes")),
        ]),
        Question::Database => Value::map([connection, (key("sql"), text("select 1 as one"))]),
        Question::Machine => Value::map([connection, (key("command"), text("true"))]),
        Question::Mcp => Value::map([
            connection,
            (key("method"), key("post")),
            (key("accept"), text("application/json, text/event-stream")),
            (key("response-as"), key("text")),
            (key("json"), hello()),
        ]),
    }
}

/// The first message of MCP.
fn hello() -> Value {
    flowstone_steps::json::from_json(&serde_json::json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "flowstone", "version": env!("CARGO_PKG_VERSION")},
        },
    }))
}

/// Reads the answer to the first message, which may be an event of a stream.
fn greeted(answer: &Value) -> Found {
    let body = answer
        .get("body")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text.trim()).ok();
    let message = read(body).or_else(|| data.filter_map(read).next());
    let result = message.as_ref().map(|it| &it["result"]);
    match result.filter(|it| it["protocolVersion"].is_string()) {
        Some(result) => {
            let name = result["serverInfo"]["name"]
                .as_str()
                .unwrap_or("the server");
            let version = result["protocolVersion"].as_str().unwrap_or_default();
            Found::works(format!("{name} speaks MCP {version}"))
        }
        None => Found {
            verdict: Verdict::Fails,
            detail: "its answer is not one of MCP".to_owned(),
            code: None,
            hints: vec![
                "the address must be that of an MCP endpoint, such as https://host/mcp".to_owned(),
            ],
        },
    }
}

/// Says what an error means for a connection. A page that is not there was refused by a server that is.
fn failed(error: StepError, question: Question) -> Found {
    let status = error.data.get("status").and_then(Value::as_int);
    let is_there = matches!(status, Some(status) if (400..500).contains(&status)
        && !matches!(status, 401 | 403 | 407 | 429));
    if matches!(question, Question::Page) && is_there {
        return Found::works(format!("answered {}", status.unwrap_or_default()));
    }
    Found {
        verdict: Verdict::Fails,
        detail: error.message,
        code: Some(error.code.to_string()),
        hints: error.hints,
    }
}
