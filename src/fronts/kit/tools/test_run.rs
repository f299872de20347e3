//! `test_run`: runs the newest revision of the bound flow once, and says what it did.

use std::rc::Rc;
use std::time::Duration;

use flowstone_engine::ids::RunId;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::test_runs::{Evidence, LONGEST, TestEnd, TestRefusal, TestRun, TestStart};
use flowstone_engine::{EngineError, Interrupt, TestMode};
use flowstone_flow::definition::{Flow, InputError, coerce_input};
use flowstone_flow::flow::LoadedFlow;
use flowstone_lang::session::Session;
use flowstone_model::codec;
use flowstone_model::diagnostic::Severity;
use flowstone_model::json::{from_json, to_json};
use flowstone_model::registry::{RunVersion, Target};
use flowstone_model::token::Scope;
use flowstone_project::flow_files::text_findings;
use flowstone_project::registry::{VersionFiles, VersionRef, VersionRow};
use serde_json::{Value as Json, json};

use crate::kit::context::KitCall;
use crate::kit::error::KitError;
use crate::kit::schema::{object, text};
use crate::kit::test_run::names::{self, Match};
use crate::kit::test_run::resolved::resolved;
use crate::kit::test_run::scope;
use crate::kit::test_run::verdict::{Expected, Shown, Verdict, verdict};
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};
use crate::kit::{delta, revision, unconfirmed};

/// The input of conversations, which every flow may be tested with.
const MESSAGES: &str = "messages";
/// Maximum number of characters of the output.
const MOST_OUTPUT: usize = 20_000;
/// How long before its own limit a call ends its test, so that the answer arrives in time.
const MARGIN: Duration = Duration::from_secs(1);
/// After this long, a test that was in the way is probably over.
const RETRY_S: u64 = 30;

pub const TOOL: Tool = Tool {
    name: "test_run",
    description: "Runs the newest revision of the flow once, headless, and returns what it did with a verdict. THIS REALLY \
                  ACTS: messages are sent and records are written, unless `dry` is true, which changes nothing that lasts. \
                  `delta` tries a change in memory without committing it. `expectations.terminal_tool` is the tool whose call \
                  must have returned for the verdict `pass`. The test ends at the first wait or approval, and after 120 s.",
    input,
    output,
    bound: &[Bound::Flow, Bound::Session, Bound::Workspace],
    read_only: false,
    permission: Permission::Ask,
    scope: Scope::Run,
    timeout_ms: 120_000,
    timeout_of: None,
    default_on: true,
    wrapper: None,
    in_test: InTest::Recursion,
    check: Some(|cx, arguments| Box::pin(check(cx, arguments))),
    call: |cx, arguments| Box::pin(call(cx, arguments)),
};

fn input() -> Json {
    object(
        json!({
            "inputs": {
                "type": "object",
                "description": "The input of the run: `messages`, and the inputs that the flow declares in its `:default` invocation.",
                "additionalProperties": true,
            },
            "delta": delta::schema(),
            "expectations": object(
                json!({"terminal_tool": text("The tool that the run must call, by its whole name or by what follows `__`.")}),
                &[],
            ),
            "dry": {
                "type": "boolean",
                "default": false,
                "description": "Whether changes outside are left out, and changes of tables, keys and files are seen by the test only. Reads and models are real.",
            },
        }),
        &["inputs"],
    )
}

fn output() -> Json {
    let flag = || json!({"type": "boolean"});
    object(
        json!({
            "output": {"type": "string"},
            "tools": {
                "type": "array",
                "items": object(
                    json!({"name": {"type": "string"}, "called": flag(), "returned": flag()}),
                    &["name", "called", "returned"],
                ),
            },
            "approvals": {"type": "array", "items": {"type": "string"}},
            "resolved": object(
                json!({
                    "harness": {"type": "string"},
                    "model": {"type": ["string", "null"]},
                    "provider": {"type": ["string", "null"]},
                    "connection_mode": {"enum": ["own", "author", "environment", "none"]},
                }),
                &["harness", "model", "provider", "connection_mode"],
            ),
            "trace_id": {"type": "string"},
            "test_id": {"type": "string"},
            "verdict": {"enum": ["pass", "failed", "incomplete", "unconfirmed"]},
            "verdict_reason": {"type": ["string", "null"]},
            "dry": flag(),
        }),
        &[
            "output",
            "tools",
            "approvals",
            "resolved",
            "trace_id",
            "test_id",
            "verdict",
            "verdict_reason",
        ],
    )
}

async fn check(cx: &KitCall<'_>, arguments: &Arguments) -> Result<(), KitError> {
    test_of(cx, arguments).await.map(drop)
}

/// What a call tests.
struct Test {
    loaded: LoadedFlow,
    inputs: Json,
    /// The tool that is expected, as it is named in the flow.
    known: Option<String>,
}

async fn test_of(cx: &KitCall<'_>, arguments: &Arguments) -> Result<Test, KitError> {
    let loaded = prepared(cx, arguments.get("delta")).await?;
    let inputs = checked_inputs(&loaded.flow, &arguments["inputs"])?;
    coerce_input(&loaded.flow, None, &from_json(&inputs)).map_err(|error| wrong_input(&error))?;
    let known = match expected_name(arguments) {
        Some(given) => expected_tool(&loaded.flow, given)?,
        None => None,
    };
    unconfirmed::check(cx, &loaded.flow).await?;
    Ok(Test {
        loaded,
        inputs,
        known,
    })
}

/// Returns the tool that a call expects, as it names it.
fn expected_name(arguments: &Arguments) -> Option<&str> {
    arguments.get("expectations")?["terminal_tool"].as_str()
}

async fn call(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let Test {
        loaded,
        inputs,
        known,
    } = test_of(cx, &arguments).await?;
    let given = expected_name(&arguments);
    let is_dry = arguments.get("dry").and_then(Json::as_bool) == Some(true);
    let stop = Interrupt::new();
    let start = TestStart {
        input: from_json(&inputs),
        mode: match is_dry {
            true => TestMode::Dry,
            false => TestMode::Live,
        },
        trace: None,
        limit: LONGEST.saturating_sub(MARGIN),
        stop: stop.clone(),
    };
    let watched = async {
        cx.cancellation().await;
        stop.trigger();
        std::future::pending::<()>().await;
    };
    let tested = tokio::select! {
        tested = cx.engine.run_test(&loaded, start, Rc::new(NoObserver)) => tested,
        () = watched => return Err(KitError::internal(&"a test was left")),
    };
    let tested = tested.map_err(|refusal| refused(&loaded.flow.slug, refusal))?;
    cx.note_test(&tested.row.id).await?;
    let expected = given.map(|given| Expected {
        given,
        known: known.as_deref(),
    });
    let connections = cx.backend.connections(cx.engine, &[&loaded.flow]);
    let settings = cx.engine.settings();
    let model = tested.evidence.model.as_ref();
    let resolved = resolved(model, (&loaded.flow, settings), &connections);
    let mut answer = judged(&tested, expected, resolved)?;
    if is_dry {
        answer["dry"] = json!(true);
    }
    Ok(answer)
}

/// Returns the flow to be tested: the newest revision, with a delta.
async fn prepared(cx: &KitCall<'_>, given: Option<&Json>) -> Result<LoadedFlow, KitError> {
    let slug = cx.flow()?;
    let registry = cx.registry();
    match registry.find(slug).await? {
        None => return Err(KitError::no_revision(slug)),
        Some(row) if row.archived_ms.is_some() => return Err(KitError::flow_archived(slug)),
        Some(_) => {}
    }
    let head = registry
        .version(slug, &VersionRef::Target(Target::Draft))
        .await?;
    let files = registry.files(&head).await?;
    cx.engine.read_registered().await?;
    let committed = checked_flow(cx, &head, &files)?;
    let Some(given) = given else {
        return Ok(committed);
    };
    let changed = delta::apply(&files, given, "/delta")?;
    let flow = checked_flow(cx, &head, &changed)?;
    match scope::changed(&committed.flow, &flow.flow) {
        None => Ok(flow),
        Some(key) => Err(KitError::out_of_scope(
            "/delta/set/parameters/files",
            format!(
                "the delta of a test cannot change `:{key}`: commit a revision that does, or leave it as it is"
            ),
        )),
    }
}

/// Returns the flow that files make.
fn checked_flow(
    cx: &KitCall<'_>,
    head: &VersionRow,
    files: &VersionFiles,
) -> Result<LoadedFlow, KitError> {
    let slug = &head.flow.slug;
    let texts = files.iter().map(|(path, bytes)| {
        let text = String::from_utf8(bytes.clone());
        text.map(|text| (path.clone(), text))
    });
    let texts: Result<_, _> = texts.collect();
    let texts = texts.map_err(|error| KitError::internal(&error))?;
    let session: Session = cx.engine.session();
    let checked = cx.engine.check_version(&session, slug, &texts);
    let is_wrong = checked.has_errors();
    let Some(mut loaded) = checked.loaded.filter(|_| !is_wrong) else {
        let findings = text_findings(&session, checked.findings);
        let errors = findings.iter().filter(|it| it.severity == Severity::Error);
        let problems: Vec<Json> = errors.map(|it| revision::finding(slug, it)).collect();
        let message = format!("the flow `{slug}` cannot be run as it is");
        return Err(KitError::check_failed(message, problems));
    };
    loaded.version = Some(RunVersion {
        number: head.number,
        target: Some(Target::Draft),
    });
    Ok(loaded)
}

/// Checks which inputs are given. Their values are checked by the flow's contract.
fn checked_inputs(flow: &Flow, inputs: &Json) -> Result<Json, KitError> {
    let given = inputs.as_object().cloned().unwrap_or_default();
    let contract = flow.default_invocation();
    let declared = contract.map(|contract| {
        let names = contract.inputs.iter().map(|input| input.name.to_string());
        names.collect::<Vec<_>>()
    });
    for name in given.keys() {
        let is_known = match &declared {
            Some(declared) => name == MESSAGES || declared.contains(name),
            None => name == MESSAGES,
        };
        if !is_known {
            let mut names = vec![MESSAGES.to_owned()];
            names.extend(declared.unwrap_or_default());
            return Err(KitError::invalid(
                format!("/inputs/{name}"),
                format!("one of {}", names.join(", ")),
                format!("the flow has no input `{name}`"),
            ));
        }
    }
    let is_message = |message: &Json| message["role"].is_string();
    let is_list = |messages: &Json| {
        let messages = messages.as_array();
        messages.is_some_and(|messages| messages.iter().all(is_message))
    };
    let is_declared = declared
        .as_ref()
        .is_some_and(|names| names.iter().any(|it| it == MESSAGES));
    if given
        .get(MESSAGES)
        .is_some_and(|it| !is_declared && !is_list(it))
    {
        return Err(KitError::invalid(
            "/inputs/messages",
            "a list of messages such as {\"role\": \"user\", \"content\": \"Hello\"}",
            "`messages` must be a list of messages",
        ));
    }
    let needs_some = contract.is_some_and(|contract| contract.inputs.iter().any(|it| it.required));
    if given.is_empty() && needs_some {
        let names = declared.unwrap_or_default().join(", ");
        return Err(KitError::invalid(
            "/inputs",
            format!("at least one of {names}"),
            "the flow needs inputs",
        ));
    }
    Ok(Json::Object(given))
}

/// Returns the tool that an expectation names, if the text of the flow says so.
fn expected_tool(flow: &Flow, given: &str) -> Result<Option<String>, KitError> {
    match names::find(given, &names::known(flow)) {
        Match::None => Ok(None),
        Match::One(name) => Ok(Some(name)),
        Match::Several(names) => Err(KitError::invalid(
            "/expectations/terminal_tool",
            format!("one of {}", names.join(", ")),
            format!("`{given}` may be any of the tools {}", names.join(", ")),
        )),
    }
}

fn refused(slug: &str, refusal: TestRefusal) -> KitError {
    match refusal {
        TestRefusal::Busy { .. } => KitError::limit_exceeded(
            format!("a test of the flow `{slug}` is running, and a flow has one at a time"),
            RETRY_S,
        ),
        TestRefusal::TooMany => {
            KitError::limit_exceeded("the project has as many running tests as it may", RETRY_S)
        }
        TestRefusal::Engine(EngineError::Input(error)) => wrong_input(&error),
        TestRefusal::Engine(error) => error.into(),
    }
}

/// Returns the error about inputs that the contract of the flow does not allow.
fn wrong_input(error: &InputError) -> KitError {
    let (path, expected) = match error {
        InputError::WrongType { name, expected, .. } => {
            (format!("/inputs/{name}"), expected.clone())
        }
        InputError::Missing { names } => ("/inputs".to_owned(), names.join(", ")),
        _ => ("/inputs".to_owned(), error.hint()),
    };
    KitError::invalid(path, expected, error.to_string())
}

/// Returns the answer about a test that was run.
///
/// # Errors
/// `test_run_incomplete` when it did not end by itself.
fn judged(tested: &TestRun, expected: Option<Expected<'_>>, resolved: Json) -> Answer {
    let run = &tested.row.id;
    let trace = tested.row.in_trace().trace.to_string();
    let evidence = &tested.evidence;
    let (failure, is_paused) = match &tested.end {
        TestEnd::Completed => (None, false),
        TestEnd::Failed { code, message } => (Some((&**code, &**message)), false),
        TestEnd::Paused => (None, true),
        TestEnd::TimedOut => {
            let seconds = LONGEST.as_secs();
            let message = format!("the test did not end within {seconds} s, and was cancelled");
            return Err(incomplete(message, (run, &trace), evidence));
        }
        TestEnd::Stopped => {
            let message = "the test was cancelled before it ended".to_owned();
            return Err(incomplete(message, (run, &trace), evidence));
        }
        TestEnd::EndedByOthers { reason } => {
            let message = format!("the test was ended by others: {reason}");
            return Err(incomplete(message, (run, &trace), evidence));
        }
    };
    let shown = Shown {
        tools: &evidence.tools,
        failure,
        is_paused: is_paused || evidence.has_open_calls,
    };
    let (verdict, reason) = verdict(shown, expected);
    Ok(json!({
        "output": output_of(tested),
        "tools": tools_of(evidence),
        "approvals": evidence.approvals,
        "resolved": resolved,
        "trace_id": trace,
        "test_id": run.as_str(),
        "verdict": verdict.name(),
        "verdict_reason": reason,
    }))
}

fn incomplete(message: String, (run, trace): (&RunId, &str), evidence: &Evidence) -> KitError {
    KitError::test_run_incomplete(
        message,
        json!({
            "trace_id": trace,
            "test_id": run.as_str(),
            "verdict": Verdict::Failed.name(),
            "tools": tools_of(evidence),
        }),
    )
}

fn tools_of(evidence: &Evidence) -> Vec<Json> {
    let tools = evidence.tools.iter();
    tools
        .map(|tool| json!({"name": tool.name, "called": true, "returned": tool.has_returned}))
        .collect()
}

/// Returns the last text of a model, or else the result of the flow as text.
fn output_of(tested: &TestRun) -> String {
    let text = tested.evidence.text.clone().unwrap_or_else(|| {
        let result = tested.row.result.as_deref();
        let value = result.and_then(|text| codec::decode(text).ok());
        match value {
            None => String::new(),
            Some(value) if value.is_nil() => String::new(),
            Some(value) => match value.as_str() {
                Some(text) => text.to_owned(),
                None => to_json(&value).map_or_else(
                    |_| codec::encode(&value).unwrap_or_default(),
                    |json| json.to_string(),
                ),
            },
        }
    });
    match text.char_indices().nth(MOST_OUTPUT) {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    }
}
