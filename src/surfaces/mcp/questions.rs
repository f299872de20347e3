//! The open waits of a run as questions to the client: forms for data, links for decisions.
//!
//! A client whose token may not approve gets nothing that decides: people do, elsewhere. With a token that may approve, a
//! decision is made on the page behind a link, and only if the project allows it, in a form.

use std::collections::HashSet;

use flowstone_engine::ids::RunId;
use flowstone_engine::json::{from_json, to_json};
use flowstone_engine::ports::{Target, WaitRow};
use flowstone_engine::token::{Scope, TokenKind};
use flowstone_engine::waits::{Answering, actions, is_approval, roles};
use flowstone_engine::{EngineError, codec};
use flowstone_flow::schema;
use flowstone_lang::value::Value;
use serde_json::{Map, Value as Json, json};

use super::peer::{Request, Unanswered, refused};
use super::protocol::RpcError;
use crate::http::{EngineContext, Problem};

/// The key in the `:data` of a wait for a request to the client.
const OWN: &str = "mcp/request";
/// The requests that a wait may contain, with the required capability of the client.
const METHODS: &[(&str, &str)] = &[
    ("elicitation/create", "elicitation"),
    ("roots/list", "roots"),
    ("sampling/createMessage", "sampling"),
];

/// The questions of one request that the client has seen.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// Waits that are decided on a page; the client has received their links.
    linked: HashSet<String>,
}

/// The result of asking the questions of a run.
#[derive(Debug)]
pub(super) enum QuestionsOutcome {
    Answered,
    /// The client must repeat its request with answers to these.
    Repeat(Json),
    /// People decide on a web page.
    Elsewhere,
    /// Nobody on this connection can answer.
    Nobody,
}

/// A question to the client.
struct Question {
    method: &'static str,
    params: Json,
    how: How,
}

/// The use of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// The fields of a form are the payload of the wait.
    Form,
    /// The fields of a form are a decision.
    Decision,
    /// The whole answer is the payload.
    Whole,
    /// It is not used: the decision is made on a page.
    Link,
}

/// The question of a wait.
enum Wanted {
    Question(Question),
    /// Only a client with this capability could answer.
    Capability(&'static str),
    Nothing,
}

/// Asks the client the questions of a run.
///
/// # Errors
/// When only a client with other capabilities could answer. The run is then cancelled.
pub(super) async fn ask(
    rq: &Request,
    run: &RunId,
    (waits, seen): (&[WaitRow], &mut Questions),
) -> Result<QuestionsOutcome, RpcError> {
    let mut open = Vec::new();
    let mut lacking = Map::new();
    for wait in waits {
        if seen.linked.contains(&wait.id) {
            continue;
        }
        match wanted(rq, wait).await? {
            Wanted::Question(question) => open.push((wait, question)),
            Wanted::Capability(name) => {
                lacking.insert(name.to_owned(), json!({}));
            }
            Wanted::Nothing => {}
        }
    }
    if open.is_empty() {
        if !lacking.is_empty() {
            cancel(rq, run).await?;
            return Err(RpcError::capability(&Json::Object(lacking)));
        }
        return Ok(match seen.linked.is_empty() {
            true => QuestionsOutcome::Nobody,
            false => QuestionsOutcome::Elsewhere,
        });
    }
    if rq.era.is_stateless() {
        let requests = open.iter().map(|(wait, question)| {
            let request = json!({"method": question.method, "params": question.params});
            (key_of(wait, waits), request)
        });
        let requests: Map<String, Json> = requests.collect();
        return Ok(QuestionsOutcome::Repeat(Json::Object(requests)));
    }
    let mut is_answered = false;
    for (wait, question) in &open {
        let answer = rq.ask(question.method, &question.params).await;
        is_answered |= match answer {
            Ok(answer) => take(rq, wait, (question.how, &answer), seen).await?,
            Err(Unanswered::Gone | Unanswered::Late | Unanswered::Refused) => false,
        };
    }
    Ok(match (is_answered, seen.linked.is_empty()) {
        (true, _) => QuestionsOutcome::Answered,
        (false, false) => QuestionsOutcome::Elsewhere,
        (false, true) => QuestionsOutcome::Nobody,
    })
}

/// Stores the answers of a repeated request. Answers to unknown questions are ignored.
///
/// # Errors
/// When the store cannot be read.
pub(super) async fn take_all(
    rq: &Request,
    waits: &[WaitRow],
    answers: &Map<String, Json>,
) -> Result<Questions, RpcError> {
    let mut seen = Questions::default();
    for wait in waits {
        let Some(answer) = answers.get(&key_of(wait, waits)) else {
            continue;
        };
        if let Wanted::Question(question) = wanted(rq, wait).await? {
            take(rq, wait, (question.how, answer), &mut seen).await?;
        }
    }
    Ok(seen)
}

/// Returns the questions of waits as requests to the client, by step. Returns `None` if only a client with other
/// capabilities could answer: the run is then cancelled.
///
/// # Errors
/// When the store cannot be read or written.
pub(super) async fn requests(
    rq: &Request,
    run: &RunId,
    waits: &[WaitRow],
) -> Result<Option<Map<String, Json>>, RpcError> {
    let (mut found, mut is_lacking) = (Map::new(), false);
    for wait in waits {
        match wanted(rq, wait).await? {
            Wanted::Question(question) => {
                let request = json!({"method": question.method, "params": question.params});
                found.insert(key_of(wait, waits), request);
            }
            Wanted::Capability(_) => is_lacking = true,
            Wanted::Nothing => {}
        }
    }
    if found.is_empty() && is_lacking {
        cancel(rq, run).await?;
        return Ok(None);
    }
    Ok(Some(found))
}

/// Returns the name of a question: its step, or the whole path if several steps have that name.
fn key_of(wait: &WaitRow, all: &[WaitRow]) -> String {
    let name = |wait: &WaitRow| wait.path.rsplit('/').next().unwrap_or_default().to_owned();
    let own = name(wait);
    match all.iter().filter(|other| name(other) == own).count() {
        1 => own,
        _ => wait.path.clone(),
    }
}

/// The reason for cancelling a run whose questions the client cannot answer.
pub(super) const UNANSWERABLE: &str = "the client cannot answer what the run asks it";

async fn cancel(rq: &Request, run: &RunId) -> Result<(), RpcError> {
    let run = run.clone();
    let cancelled = rq
        .server
        .ask(async move |cx: &EngineContext| cx.engine.request_cancel(&run, UNANSWERABLE).await);
    cancelled.await.map_err(|problem| refused(&problem))
}

/// Returns the question of a wait to the client.
async fn wanted(rq: &Request, wait: &WaitRow) -> Result<Wanted, RpcError> {
    // Values stay on their thread, but this future may continue on another one.
    let about = About::of(wait);
    if let Some((method, params)) = about.own {
        let known = METHODS.iter().find(|(known, _)| *known == method);
        return Ok(match known {
            Some((method, capability)) if rq.can(capability) => Wanted::Question(Question {
                method,
                params,
                how: How::Whole,
            }),
            Some((_, capability)) => Wanted::Capability(capability),
            None => Wanted::Nothing,
        });
    }
    let message = about.message;
    if !about.is_approval {
        return Ok(match about.form {
            Some(form) if rq.can("elicitation.form") => form_question(message, form, How::Form),
            _ => Wanted::Nothing,
        });
    }
    // A link and a form decide, also in the hands of a model. Users of an app start runs; they do not approve them.
    let is_user = matches!(rq.caller.token.kind, TokenKind::User | TokenKind::Anon);
    if is_user || !rq.caller.token.has(Scope::Approve) {
        return Ok(Wanted::Nothing);
    }
    if rq.can("elicitation.url")
        && let Some(url) = link(rq, wait, about.actions.first()).await?
    {
        let params = json!({
            "mode": "url", "message": message, "url": url, "elicitationId": wait.id,
        });
        return Ok(Wanted::Question(Question {
            method: "elicitation/create",
            params,
            how: How::Link,
        }));
    }
    let may_decide =
        rq.server.settings.elicit_approvals && !about.has_roles && rq.can("elicitation.form");
    if !may_decide || about.actions.is_empty() {
        return Ok(Wanted::Nothing);
    }
    let mut form = json!({
        "type": "object",
        "properties": {"action": {"type": "string", "enum": about.actions}},
        "required": ["action"],
    });
    add_alternatives(&mut form, &about.schema);
    Ok(form_question(message, form, How::Decision))
}

fn form_question(message: String, form: Json, how: How) -> Wanted {
    Wanted::Question(Question {
        method: "elicitation/create",
        params: json!({"mode": "form", "message": message, "requestedSchema": form}),
        how,
    })
}

/// The parts of a wait's details that determine the question.
struct About {
    /// A request to the client from the flow itself, with its parameters.
    own: Option<(String, Json)>,
    message: String,
    is_approval: bool,
    has_roles: bool,
    actions: Vec<String>,
    /// The schema of a form for the payload, if a form can hold it.
    form: Option<Json>,
    /// The JSON Schema of the payload, or null.
    schema: Json,
}

impl About {
    fn of(wait: &WaitRow) -> About {
        let details = codec::decode(&wait.details).unwrap_or(Value::Nil);
        let shown = details.get("show").cloned().unwrap_or(Value::Nil);
        let inside = |key: &str| details.get(key).or_else(|| shown.get(key)).cloned();
        let is_approval = is_approval(&details);
        let own = inside("data")
            .and_then(|data| own_request(&data))
            .filter(|_| !is_approval);
        let text = |key: &str| {
            let value = inside(key)?;
            value.as_str().map(|text| text.to_string())
        };
        let message = text("message").or_else(|| text("title"));
        let schema = details.get("validation").filter(|it| !it.is_nil());
        let schema = schema.and_then(|form| schema::parse(form).ok());
        let form = schema.map(|schema| schema::to_json_schema(&schema));
        let schema = form.clone().unwrap_or_default();
        About {
            own,
            message: message.unwrap_or_else(|| format!("`{}` of `{}` asks", wait.path, wait.flow)),
            is_approval,
            has_roles: !roles(&details).is_empty(),
            actions: actions(&details),
            form: form.and_then(as_form),
            schema,
        }
    }
}

/// Reads a request to the client that a flow has defined.
fn own_request(data: &Value) -> Option<(String, Json)> {
    let request = data.as_map()?.iter().find(|(key, _)| {
        let name = key.to_string();
        name.trim_start_matches(':').trim_matches('"') == OWN
    })?;
    let request = to_json(request.1).ok()?;
    let params = request.get("params").cloned().unwrap_or_else(|| json!({}));
    Some((request.get("method")?.as_str()?.to_owned(), params))
}

/// Converts a schema to that of a form: an object of plain fields. Returns `None` if it is more complex.
fn as_form(schema: Json) -> Option<Json> {
    let properties = schema.get("properties")?.as_object()?;
    if properties.is_empty() || !properties.values().all(is_plain) {
        return None;
    }
    let mut form = json!({"type": "object", "properties": properties});
    if let Some(required) = schema.get("required") {
        form["required"] = required.clone();
    }
    Some(form)
}

fn is_plain(field: &Json) -> bool {
    let kind = field.get("type").and_then(Json::as_str).unwrap_or_default();
    let is_choice = field.get("enum").is_some() || field.get("oneOf").is_some();
    let is_list = kind == "array" && field["items"].get("enum").is_some();
    is_choice || is_list || ["string", "number", "integer", "boolean"].contains(&kind)
}

/// Adds the fields of the payload's alternatives to the form of a decision. Which of them are needed depends on the
/// action, so the wait itself judges the answer.
fn add_alternatives(form: &mut Json, schema: &Json) {
    let all = schema.get("allOf").and_then(Json::as_array);
    let all = all.map_or_else(|| std::slice::from_ref(schema), Vec::as_slice);
    let cases = all.iter().filter_map(|part| part.get("anyOf")?.as_array());
    let fields = cases
        .flatten()
        .filter_map(|case| case.get("properties")?.as_object());
    for (name, field) in fields.flatten().filter(|(_, field)| is_plain(field)) {
        if name != "action" {
            form["properties"][name] = field.clone();
        }
    }
}

/// Returns the link to the page of the decision; `None` if the address of the server is unknown.
async fn link(
    rq: &Request,
    wait: &WaitRow,
    action: Option<&String>,
) -> Result<Option<String>, RpcError> {
    let Some(action) = action.cloned() else {
        return Ok(None);
    };
    let wait = wait.clone();
    let made = rq
        .server
        .ask(async move |cx: &EngineContext| cx.engine.wait_link(&wait, &action).await);
    made.await.map_err(|problem| refused(&problem))
}

/// Stores an answer of the client. Returns whether the wait has ended.
async fn take(
    rq: &Request,
    wait: &WaitRow,
    (how, answer): (How, &Json),
    seen: &mut Questions,
) -> Result<bool, RpcError> {
    let action = answer
        .get("action")
        .and_then(Json::as_str)
        .unwrap_or_default();
    let is_accepted = action == "accept";
    match how {
        How::Link => {
            if is_accepted {
                seen.linked.insert(wait.id.clone());
            }
            Ok(false)
        }
        How::Whole if answer.is_object() => complete(rq, wait, (answer, false)).await,
        How::Form if is_accepted && answer["content"].is_object() => {
            complete(rq, wait, (&answer["content"], false)).await
        }
        How::Decision if is_accepted && answer["content"].is_object() => {
            complete(rq, wait, (&answer["content"], true)).await
        }
        How::Form if action == "decline" => decline(rq, wait).await,
        How::Whole | How::Form | How::Decision => Ok(false),
    }
}

/// Completes a wait. If the wait refuses the answer, it stays open.
async fn complete(
    rq: &Request,
    wait: &WaitRow,
    (payload, is_decision): (&Json, bool),
) -> Result<bool, RpcError> {
    let (id, payload) = (wait.id.clone(), payload.clone());
    let how = Answering {
        caller: rq.caller.decides(),
        // An answer of a program never counts as the decision of a person.
        is_unattended: !is_decision,
        digest: Some(wait.digest.clone()).filter(|digest| !digest.is_empty()),
        ..Answering::default()
    };
    let answered = rq
        .server
        .ask(async move |cx: &EngineContext| {
            let payload = from_json(&payload);
            let answered = cx.engine.answer_waits(Target::Name(id), &payload, how);
            Ok::<_, Problem>(answered.await)
        })
        .await
        .map_err(|problem| refused(&problem))?;
    match answered {
        Ok(_) => Ok(true),
        Err(EngineError::AlreadyDecided(_)) => Ok(true),
        Err(error) => {
            tracing::info!(
                wait = wait.id,
                code = error.code(),
                "an answer was not taken"
            );
            Ok(false)
        }
    }
}

/// Cancels a wait that the person declined to answer: its step fails.
async fn decline(rq: &Request, wait: &WaitRow) -> Result<bool, RpcError> {
    let id = wait.id.clone();
    let how = Answering {
        caller: rq.caller.decides(),
        is_unattended: true,
        ..Answering::default()
    };
    let cancelled = rq.server.ask(async move |cx: &EngineContext| {
        let cancelled = cx.engine.cancel_wait(&id, Some("declined"), how).await;
        Ok::<_, Problem>(cancelled.is_ok())
    });
    cancelled.await.map_err(|problem| refused(&problem))
}
