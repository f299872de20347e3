//! The answers of people to paused runs.

use flowstone_engine::json::from_json;
use flowstone_engine::ports::{RunRow, Target, WaitRow};
use flowstone_engine::{Answering, Caller, Engine, EngineError, Remark, codec};
use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;
use flowstone_model::json::items;
use flowstone_model::waits::{WaitEnding, actions};
use serde_json::{Map, Value as Json, json};

use super::codes;
use super::error::{GraphError, Status};
use super::runs::{open_waits, status};
use super::shape::{self, Issue, Member, Shape};

/// The answer of a person to a paused run.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    token: Option<String>,
    said: Said,
}

#[derive(Debug, Clone, PartialEq)]
enum Said {
    Approved(bool),
    Input(Json),
}

/// What the caller of a resume may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// Everything: the owner of the project, and those with the scope `approve`.
    Decide,
    /// Only the answer to an `interrupt`: a caller that started the run.
    Input,
}

/// What a paused run asks for.
enum Asked {
    Approval,
    /// An answer under the key `:input`.
    Input,
    /// The value of a wait in a run that a call started.
    Value,
    /// What to do about a step whose outcome is unknown, or that failed.
    Step {
        actions: Vec<String>,
    },
}

impl Asked {
    fn by(wait: &WaitRow, is_own: bool) -> Result<Asked, EngineError> {
        let details = codec::decode(&wait.details)?;
        let actions = actions(&details);
        let asks_for_input = || {
            let schema = details.get("validation").and_then(items)?;
            let mut rows = schema
                .iter()
                .skip(1)
                .filter_map(|row| name_of(items(row)?.first()?));
            Some(rows.any(|name| &*name == "input"))
        };
        Ok(match details.get("question") {
            Some(_) => Asked::Step { actions },
            None if !actions.is_empty() => Asked::Approval,
            None if is_own || asks_for_input() == Some(true) => Asked::Input,
            None => Asked::Value,
        })
    }
}

/// Returns the payload of a pause that the flow of the agent did not ask for: a question about a step, or a wait of the run
/// `child` that a call started. It has what may be known about the call.
pub(super) fn about_step(
    wait: &WaitRow,
    child: Option<&str>,
    call: Map<String, Json>,
) -> Option<Json> {
    let details = codec::decode(&wait.details).ok()?;
    let question = details.get("question").and_then(name_of);
    if question.is_none() && child.is_none() {
        return None;
    }
    let mut payload = call;
    if let Some(question) = question {
        payload.insert("question".to_owned(), json!(&*question));
    }
    let message = details
        .get("message")
        .or(details.get("show").and_then(|show| show.get("message")));
    payload.insert("reason".to_owned(), json!(message.and_then(Value::as_str)));
    if let Some(child) = child {
        payload.insert("child_run_id".to_owned(), json!(child));
    }
    let actions = actions(&details);
    if !actions.is_empty() {
        payload.insert("actions".to_owned(), json!(actions));
    }
    payload.insert("approval_token".to_owned(), json!(wait.id));
    Some(Json::Object(payload))
}

const RESUME: Shape = Shape::Object(&[
    Member::optional(
        "approval_token",
        Shape::Text(256),
        "The token of `run_paused`.",
    ),
    Member::optional("approved", Shape::Bool, "Whether the call may run."),
    Member::optional(
        "input",
        Shape::Any,
        "What an `interrupt` asks for, or the action for a step in doubt: `{\"action\": \"retry\"}`.",
    ),
    Member::optional("reason", Shape::Text(10_000), "Why the call may not run."),
]);

impl Answer {
    /// Reads the body of a resume.
    ///
    /// # Errors
    /// When it is not valid.
    pub fn read(body: &Json) -> Result<Answer, GraphError> {
        let mut issues = Vec::new();
        shape::check(&RESUME, body, &mut issues);
        let token = body
            .get("approval_token")
            .and_then(Json::as_str)
            .map(str::to_owned);
        let approved = body.get("approved").and_then(Json::as_bool);
        let said = match (approved, body.get("input")) {
            (Some(_), None) if token.is_none() => {
                issues.push(Issue::at(
                    &[json!("approval_token")],
                    "`approval_token` is missing",
                ));
                None
            }
            (Some(approved), None) => Some(Said::Approved(approved)),
            (None, Some(input)) => Some(Said::Input(input.clone())),
            (None, None) | (Some(_), Some(_)) => {
                if issues.is_empty() {
                    issues.push(Issue::at(
                        &[],
                        "expected `approved` with `approval_token`, or `input`",
                    ));
                }
                None
            }
        };
        match said {
            Some(said) if issues.is_empty() => Ok(Answer { token, said }),
            Some(_) | None => Err(GraphError::invalid(
                codes::MALFORMED,
                "the body is not valid",
                &issues,
            )),
        }
    }
}

/// Answers the wait of a paused run, and returns the new state.
///
/// # Errors
/// When the run is not paused, the token is not that of the pause, the answer is of the wrong kind, or the caller may not decide.
pub async fn resume(
    engine: &Engine,
    row: &RunRow,
    answer: &Answer,
    (caller, rights): (Caller, Rights),
) -> Result<&'static str, GraphError> {
    if rights == Rights::Input && matches!(answer.said, Said::Approved(_)) {
        return Err(not_allowed("a call is approved"));
    }
    let open = open_waits(engine, &row.id).await?;
    let wait = match &answer.token {
        Some(token) => match open.iter().find(|wait| wait.id == *token) {
            Some(wait) => Some(wait),
            None => return Err(wrong_token(engine, row, (token, &open)).await?),
        },
        None => open.first(),
    };
    let Some(wait) = wait.filter(|_| !row.status.is_final()) else {
        return Err(not_paused(row));
    };
    let is_own = wait.run == row.id;
    let asked = Asked::by(wait, is_own)?;
    if rights == Rights::Input && (!is_own || matches!(asked, Asked::Step { .. })) {
        return Err(not_allowed("a question about a step is answered"));
    }
    let how = Answering {
        caller,
        ..Answering::default()
    };
    match (&answer.said, asked) {
        (Said::Approved(approved), Asked::Approval) => {
            let remark = Remark::default();
            engine.decide_wait(&wait.id, *approved, remark, how).await
        }
        (Said::Input(input), Asked::Input) => {
            let payload = Value::map([(Value::keyword("input"), from_json(input))]);
            let target = Target::Name(wait.id.clone());
            engine.answer_waits(target, &payload, how).await
        }
        (Said::Input(input), Asked::Value) => {
            let target = Target::Name(wait.id.clone());
            engine.answer_waits(target, &from_json(input), how).await
        }
        (Said::Input(input), Asked::Step { actions }) => {
            let (action, remark) = chosen(input, &actions)?;
            engine.choose(&wait.id, &action, remark, how).await
        }
        (Said::Approved(_), Asked::Input | Asked::Value) => {
            return Err(wrong_kind("the run asks for `input`, not for an approval"));
        }
        (Said::Input(_), Asked::Approval) => {
            return Err(wrong_kind("the run asks for an approval, not for `input`"));
        }
        (Said::Approved(_), Asked::Step { actions }) => return Err(no_action(&actions)),
    }
    .map_err(decided)?;
    Ok(match status(engine, &engine.run(&row.id).await?).await? {
        // The wait is answered; a worker continues the run.
        "running" => "queued",
        status => status,
    })
}

/// Returns the error for a token of no open wait.
async fn wrong_token(
    engine: &Engine,
    row: &RunRow,
    (token, open): (&str, &[WaitRow]),
) -> Result<GraphError, GraphError> {
    let all = engine.all_waits_below(&row.id).await?;
    if let Some(wait) = all.iter().find(|wait| wait.id == token) {
        return Ok(over(wait.ending));
    }
    Ok(match open.is_empty() {
        true => not_paused(row),
        false => GraphError::new(
            Status::Forbidden,
            codes::NOT_PAUSED,
            "the approval token is not that of this pause",
        ),
    })
}

fn not_paused(row: &RunRow) -> GraphError {
    let error = format!("the run `{}` is not paused", row.id);
    GraphError::new(Status::Conflict, codes::NOT_PAUSED, error)
}

/// Returns the action that an answer chooses, with its value and reason.
fn chosen(input: &Json, actions: &[String]) -> Result<(String, Remark), GraphError> {
    let action = input.as_str().or_else(|| input.get("action")?.as_str());
    let action = action.unwrap_or_default().trim_start_matches(':');
    if !actions.iter().any(|known| known == action) {
        return Err(no_action(actions));
    }
    let remark = Remark {
        text: input
            .get("reason")
            .and_then(Json::as_str)
            .map(str::to_owned),
        value: input.get("value").map(from_json),
        ..Remark::default()
    };
    Ok((action.to_owned(), remark))
}

fn no_action(actions: &[String]) -> GraphError {
    let error = format!(
        "the run asks about a step: expected `input` with an `action`, one of {}",
        actions.join(", ")
    );
    wrong_kind(&error)
}

fn not_allowed(what: &str) -> GraphError {
    let error =
        format!("{what} by the owner of the project, with a token that has the scope `approve`");
    GraphError::new(Status::Forbidden, codes::NOT_ALLOWED, error)
}

fn wrong_kind(error: &str) -> GraphError {
    GraphError::new(Status::BadRequest, codes::MALFORMED, error)
}

/// Of two simultaneous answers, only one is accepted.
fn decided(error: EngineError) -> GraphError {
    match error {
        EngineError::AlreadyDecided(decided) => over(decided.ending),
        error => error.into(),
    }
}

/// Returns the error for an answer to a pause that is over. `ending`: how it ended; `None` if its run ended first.
fn over(ending: Option<WaitEnding>) -> GraphError {
    let error = match ending {
        Some(WaitEnding::Answered) => "the approval token was used before",
        Some(WaitEnding::TimedOut) => "the pause is over: nobody answered it in time",
        Some(WaitEnding::Cancelled) | None => {
            "the pause is over: it was cancelled before an answer"
        }
    };
    GraphError::new(Status::Conflict, codes::NOT_PAUSED, error)
}
