//! Requests an answer, checks it, and requests another if it can be repaired.

use flowstone_flow::step::{ModelCall, Progress, StepContext, StepError};
use flowstone_lang::value::Value;

use super::ask::ask;
use super::call::{Call, Message, Reply, Role, Usage};
use super::envelope::{dollars, envelope, usage_map};
use super::error::LlmError;
use super::estimate;
use super::output::Wanted;
use super::provider::Endpoint;

/// Returns the step's result.
pub(super) async fn answer(
    cx: &StepContext,
    endpoint: &Endpoint,
    wanted: &Wanted,
    call: &mut Call,
) -> Result<Value, StepError> {
    let mut usage = Usage::default();
    let mut asked = 0;
    loop {
        asked += 1;
        let begun_ms = cx.now_ms();
        let answered = ask(cx, endpoint, call).await;
        report(cx, endpoint, call, (begun_ms, answered.as_ref().ok()));
        let reply = match answered {
            Ok(reply) => reply,
            // Earlier answers are paid for.
            Err(error) if asked > 1 => return Err(error.with("usage", usage_map(usage))),
            Err(error) => return Err(error),
        };
        usage = usage.plus(estimate::usage(call, &reply));
        let paid = |error: StepError| error.with("usage", usage_map(usage));
        refused(endpoint, &reply).map_err(|error| paid(error.into()))?;
        let verdict = judge(cx, endpoint, wanted, &reply, usage, asked).map_err(paid)?;
        let problem = match verdict {
            Verdict::Good(value) => return Ok(value),
            Verdict::Bad(_, error) if asked > wanted.repairs => return Err(paid(error)),
            Verdict::Bad(problem, _) => problem,
        };
        cx.emit(Progress::Again(format!(
            "the answer is not right, asking again: {problem}"
        )));
        call.messages.push(Message {
            opaque: reply.opaque,
            ..Message::text(Role::Assistant, reply.content)
        });
        let form = match wanted.is_data() {
            true => ", with one JSON document and nothing else",
            false => "",
        };
        let ask = format!("That answer is not right: {problem}\nAnswer again{form}.");
        call.messages.push(Message::text(Role::User, ask));
    }
}

/// Reports a call that began at a time to the run's observers; without a reply, it failed.
fn report(
    cx: &StepContext,
    endpoint: &Endpoint,
    call: &Call,
    (begun_ms, reply): (i64, Option<&Reply>),
) {
    let usage = reply.map(|reply| estimate::usage(call, reply));
    let usage = usage.unwrap_or_default();
    cx.emit(Progress::ModelCall(Box::new(ModelCall {
        provider: endpoint.provider.clone(),
        model: endpoint.model.clone(),
        millis: cx.now_ms().saturating_sub(begun_ms).max(0),
        input_tokens: usage.prompt,
        output_tokens: usage.completion,
        usd: reply.and_then(|reply| dollars(endpoint, reply, &usage)),
    })));
}

/// The result of checking a reply.
enum Verdict {
    /// The step's result.
    Good(Value),
    /// The problem, as a message for the model, and the error if no attempt is left.
    Bad(String, StepError),
}

fn judge(
    cx: &StepContext,
    endpoint: &Endpoint,
    wanted: &Wanted,
    reply: &Reply,
    usage: Usage,
    asked: usize,
) -> Result<Verdict, StepError> {
    let result = |content: Value| envelope(endpoint, content, reply, usage, asked);
    if !reply.tool_calls.is_empty() {
        return Ok(Verdict::Good(result(Value::from(reply.content.as_str()))));
    }
    let content = match wanted.take(&reply.content) {
        Ok(content) => content,
        Err(_) if reply.finish_reason == "length" => {
            let content = reply.content.clone();
            return Err(LlmError::CutShort { content }.into());
        }
        Err(problem) => {
            let error = LlmError::BadOutput {
                problem: problem.clone(),
                content: reply.content.clone(),
            };
            return Ok(Verdict::Bad(problem, error.into()));
        }
    };
    match wanted.unexpected(cx, &content)? {
        None => Ok(Verdict::Good(result(content))),
        Some((problem, error)) => Ok(Verdict::Bad(problem, error)),
    }
}

fn refused(endpoint: &Endpoint, reply: &Reply) -> Result<(), LlmError> {
    if reply.finish_reason == "content_filter" {
        let message = match reply.refusal.as_str() {
            "" => "its content filter stopped the answer".to_string(),
            why => format!("its content filter stopped the answer ({why})"),
        };
        return Err(LlmError::Filtered {
            provider: endpoint.provider.clone(),
            message,
        });
    }
    // Text before a refusal is not an answer.
    if reply.finish_reason == "refusal" || !reply.refusal.is_empty() && reply.content.is_empty() {
        return Err(LlmError::Refused {
            message: reply.refusal.clone(),
        });
    }
    Ok(())
}
