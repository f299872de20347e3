//! Questions that an MCP server asks in the middle of a call: a generation pauses for them as for client tools.
//!
//! Each question is an open `:wait` of the run. Answers show it as a call whose arguments are the question, and its output is the
//! answer: `{action, content?}`.

use flowstone_engine::ports::{Target, WaitRow, WaitState};
use flowstone_engine::waits::Caller;
use flowstone_engine::{Answering, Engine, EngineError, codec};
use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;
use flowstone_model::json::from_json;
use flowstone_model::schema;
use serde_json::{Value as Json, json};

use super::body::{Body, Kind, Member};
use super::error::ApiError;
use super::wording;

/// The type of the action that a generation with questions requires.
pub const TYPE: &str = "answer_questions";
/// The id of the step that waits for an answer.
const STEP: &str = "question";
const ACCEPT: &str = "accept";
/// The field of an answer for a property that is called `action`.
const OWN_ACTION: &str = "action-value";

const ANSWER: &[Member] = &[
    Member::required(
        "action",
        Kind::OneOf(&[ACCEPT, "cancel", "decline"]),
        "What the person does.",
    ),
    Member::optional("content", Kind::Object, "The fields of the form."),
];

/// Tells whether a wait is for the answer to a question of a server.
pub fn is_question(wait: &WaitRow) -> bool {
    let last = wait.path.rsplit('/').next().unwrap_or_default();
    let is_it = last.split('#').next() == Some(STEP);
    is_it && wait.state == WaitState::Open
}

/// Returns a question as a call whose id is that of the wait.
pub fn call(wait: &WaitRow) -> Json {
    let details = codec::decode(&wait.details).unwrap_or(Value::Nil);
    let shown = details.get("show");
    let of = |key: &str| shown?.get("data")?.get(key)?.as_str().map(str::to_owned);
    let message = shown.and_then(|shown| shown.get("message")?.as_str());
    let mut asked = json!({"message": message.map(wording::of_message)});
    if let Some(schema) = form(&details) {
        asked["schema"] = schema;
    }
    for key in ["url", "warning"] {
        if let Some(text) = of(key) {
            asked[key] = json!(wording::of_message(&text));
        }
    }
    json!({"tool-call-id": wait.id, "name": tool(&wait.path), "arguments": asked})
}

/// Returns the name of the tool whose call asks, from the path of the wait: `generation/NAME#2/question`.
fn tool(path: &str) -> &str {
    let mut parts = path.rsplit('/');
    let name = parts.nth(1).unwrap_or_default();
    name.split('#').next().unwrap_or_default()
}

/// Returns the JSON Schema of the fields of a form; nothing if it has no fields.
fn form(details: &Value) -> Option<Json> {
    let fields = case(details.get("validation")?)?;
    let mut found = schema::to_json_schema(&schema::parse(&fields).ok()?);
    let properties = found.get_mut("properties")?.as_object_mut()?;
    if let Some(own) = properties.remove(OWN_ACTION) {
        properties.insert("action".to_owned(), own);
    }
    if properties.is_empty() {
        return None;
    }
    if let Some(required) = found.get_mut("required").and_then(Json::as_array_mut) {
        for name in required.iter_mut().filter(|it| *it == OWN_ACTION) {
            *name = json!("action");
        }
    }
    Some(found)
}

/// Returns what an accepted answer must be, in the schema of a wait: the part `[:accept ...]`.
fn case(schema: &Value) -> Option<Value> {
    let items = flowstone_model::json::items(schema)?;
    match &items[..] {
        [first, second] if name_of(first).as_deref() == Some(ACCEPT) => Some(second.clone()),
        items => items.iter().find_map(case),
    }
}

/// Answers questions. `outputs` are pairs of an id and an answer, one for each question.
///
/// # Errors
/// When an answer is malformed, or its fields do not fit the question: that question and those after it stay open.
pub async fn answer(
    engine: &Engine,
    waits: &[WaitRow],
    outputs: &[(String, Json)],
    caller: &Caller,
) -> Result<(), ApiError> {
    let mut payloads = Vec::new();
    for (id, output) in outputs {
        payloads.push((id, payload(id, output)?));
    }
    for (id, payload) in payloads {
        let wait = waits.iter().find(|wait| wait.id == *id);
        let digest = wait.map(|wait| wait.digest.clone());
        let how = Answering {
            caller: caller.clone(),
            digest: digest.filter(|digest| !digest.is_empty()),
            ..Answering::default()
        };
        let answered = engine.answer_waits(Target::Name(id.clone()), &payload, how);
        match answered.await {
            Ok(_) => {}
            Err(EngineError::BadAnswer { problems }) => {
                return Err(ApiError::invalid(format!(
                    "the output of the call `{id}` does not fit the question: {}",
                    problems.join("; ")
                )));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Returns an answer as the wait takes it.
fn payload(id: &str, output: &Json) -> Result<Value, ApiError> {
    let at = |error: ApiError| ApiError::invalid(format!("the output of the call `{id}`: {error}"));
    let body = Body::read(output.clone(), ANSWER).map_err(at)?;
    let action = body.text("action").unwrap_or_default();
    let content = body.get("content").and_then(Json::as_object);
    if content.is_some() && action != ACCEPT {
        return Err(at(ApiError::invalid(
            "`content` belongs to the action `accept`",
        )));
    }
    let fields = content.into_iter().flatten().map(|(name, value)| {
        let name = match name.as_str() {
            "action" => OWN_ACTION,
            name => name,
        };
        (Value::keyword(name), from_json(value))
    });
    let own = (Value::keyword("action"), Value::keyword(action));
    Ok(Value::map(fields.chain([own])))
}

#[cfg(test)]
mod tests {
    use flowstone_lang::reader::read_data;

    use super::*;

    #[test]
    fn the_tool_is_named_in_the_path() {
        assert_eq!(tool("generation/trips_book/question"), "trips_book");
        assert_eq!(tool("generation/trips_book#2/question#1"), "trips_book");
    }

    #[test]
    fn the_form_is_the_schema_of_an_accepted_answer() {
        let details = "{:validation [:and [:map [:action [:enum :accept :decline]]]
            [:multi {:dispatch :action} [:accept [:map [:name [:string {:min 2}]] [:action-value {:optional true} :boolean]]]
                                        [:decline [:map]]]]}";
        let details = read_data(details).expect("data");
        let form = form(&details).expect("a form");
        assert_eq!(form["required"], json!(["name"]));
        assert_eq!(
            form["properties"]["name"],
            json!({"type": "string", "minLength": 2})
        );
        assert_eq!(form["properties"]["action"], json!({"type": "boolean"}));
        let link = read_data("{:validation [:multi [:accept [:map]] [:decline [:map]]]}");
        assert_eq!(super::form(&link.expect("data")), None);
    }

    #[test]
    fn an_answer_needs_an_action() {
        for (output, expected) in [
            (
                json!("yes"),
                "the output of the call `w`: the body must be a JSON object",
            ),
            (
                json!({"content": {}}),
                "the output of the call `w`: `action` is missing",
            ),
            (
                json!({"action": "decline", "content": {"a": 1}}),
                "the output of the call `w`: `content` belongs to the action `accept`",
            ),
        ] {
            let error = payload("w", &output).expect_err("it is refused");
            assert_eq!(error.to_string(), expected);
        }
    }
}
