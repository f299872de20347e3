//! The schemas of the answers of the agents API: those of records from the members of their bodies, the others as views make them.

use flowstone_fronts::agents::body::{Member, nullable};
use flowstone_fronts::agents::generations::State;
use flowstone_fronts::agents::pauses::Kind;
use flowstone_fronts::agents::{
    actors, agent, documents, keys, memories, policies, projects, providers, sessions, tools,
};
use serde_json::{Map, Value as Json, json};

/// The form of an answer.
#[derive(Clone, Copy)]
enum Form {
    /// A list as `{data}`.
    Data,
    List,
    One,
    /// `{data, total, limit, offset}`.
    Page,
}

/// The answers of operations whose names do not say it.
const ANSWERS: &[(&str, Form, &str)] = &[
    ("addSessionMessage", Form::One, "MessageOrAnswer"),
    ("callTool", Form::One, "ToolOutput"),
    ("createAgentActor", Form::One, "Actor"),
    ("createAgentGeneration", Form::One, "GenerationAnswer"),
    ("generateSessionResponse", Form::One, "SessionAnswer"),
    ("getAgentGeneration", Form::One, "Generation"),
    ("getTrace", Form::One, "TraceWithSteps"),
    ("getTraceGenerations", Form::One, "TraceGenerations"),
    ("getTraceTree", Form::One, "TraceTree"),
    ("listActors", Form::Page, "Actor"),
    ("listAgentGenerations", Form::Page, "Generation"),
    ("listAgentSessionMessages", Form::Page, "SessionMessage"),
    ("listAgentSessions", Form::Page, "AgentSession"),
    ("listAgents", Form::List, "Agent"),
    ("listAiProviders", Form::List, "AiProvider"),
    ("listApiKeys", Form::List, "ApiKey"),
    ("listDocuments", Form::List, "Document"),
    ("listMemories", Form::List, "Memory"),
    ("listMemoryEntries", Form::List, "MemoryEntry"),
    ("listPolicies", Form::List, "Policy"),
    ("listProjects", Form::List, "Project"),
    ("listSecrets", Form::List, "Secret"),
    ("listTools", Form::Data, "Tool"),
    ("listTraces", Form::Page, "Trace"),
    ("searchKnowledge", Form::One, "KnowledgeResults"),
    ("submitAgentToolOutputs", Form::One, "GenerationAnswer"),
    ("submitSessionToolOutputs", Form::One, "SessionAnswer"),
    ("updateSession", Form::One, "AgentSession"),
];

/// Returns the schema of the answer of an operation.
pub(super) fn of(operation: &str) -> Json {
    if let Some((_, form, name)) = ANSWERS.iter().find(|it| it.0 == operation) {
        let one = reference(name);
        let list = json!({"type": "array", "items": one});
        return match form {
            Form::One => one,
            Form::List => list,
            Form::Data => object(&[("data", list)]),
            Form::Page => object(&[
                ("data", list),
                ("total", count()),
                ("limit", count()),
                ("offset", count()),
            ]),
        };
    }
    if operation.ends_with("Tags") {
        return reference("Tags");
    }
    // `createX`, `getX` and `updateX` answer with the record.
    let noun = operation.trim_start_matches(char::is_lowercase);
    reference(noun)
}

/// Returns the schemas that answers refer to.
pub(super) fn schemas() -> Map<String, Json> {
    let mut all = records();
    for (name, schema) in [
        ("Accepted", accepted()),
        ("Generation", generation()),
        ("GenerationAnswer", answer(None)),
        ("KnowledgeResults", knowledge()),
        ("MemoryEntry", entry()),
        (
            "MessageOrAnswer",
            json!({"anyOf": [reference("SessionMessage"), reference("SessionAnswer")]}),
        ),
        ("RequiredAction", required_action()),
        ("SessionAnswer", answer(Some(nullable_of("AgentMessage")))),
        ("AgentMessage", agent_message()),
        ("SessionMessage", message()),
        (
            "Tags",
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
        ),
        ("ToolCall", tool_call()),
        (
            "ToolOutput",
            json!({"type": "object", "description": "What the tool gave; `output` has it, if it is not an object."}),
        ),
        ("Trace", trace(&[])),
        ("TraceGenerations", trace_generations()),
        (
            "TraceTree",
            trace(&[("children", list_of(reference("TraceTree")))]),
        ),
        ("TraceWithSteps", trace_with_steps()),
    ] {
        all.insert(name.to_owned(), schema);
    }
    all
}

fn reference(name: &str) -> Json {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn nullable_of(name: &str) -> Json {
    json!({"anyOf": [reference(name), {"type": "null"}]})
}

fn list_of(item: Json) -> Json {
    json!({"type": "array", "items": item})
}

fn text() -> Json {
    json!({"type": "string"})
}

fn text_or_null() -> Json {
    nullable(text())
}

fn instant() -> Json {
    json!({"type": "string", "format": "date-time"})
}

fn count() -> Json {
    json!({"type": "integer", "minimum": 0})
}

/// Returns the schema of an object that always has these members.
fn object(members: &[(&str, Json)]) -> Json {
    let required: Vec<&str> = members.iter().map(|it| it.0).collect();
    let properties: Map<String, Json> = members
        .iter()
        .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
        .collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// Adds members that an object may have.
fn with(mut schema: Json, members: &[(&str, Json)]) -> Json {
    for (name, member) in members {
        schema["properties"][*name] = member.clone();
    }
    schema
}

/// A record: the members of its body, those that answers hide, and those that the server adds.
type Of = (
    &'static str,
    &'static [Member],
    &'static [&'static str],
    Vec<(&'static str, Json)>,
);

fn records() -> Map<String, Json> {
    let tags = || {
        (
            "tags",
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
        )
    };
    let project = || ("project_id", text());
    let of: Vec<Of> = vec![
        (
            "Actor",
            actors::CREATE,
            &["auto_create_memory"],
            vec![
                project(),
                tags(),
                ("agent_id", text_or_null()),
                ("type", text_or_null()),
            ],
        ),
        ("Agent", agent::MEMBERS, &[], vec![project(), tags()]),
        (
            "AgentSession",
            sessions::CREATE,
            &[],
            vec![
                project(),
                tags(),
                ("agent_id", text()),
                ("generating_at", nullable(instant())),
                ("last_activity_at", instant()),
                (
                    "problems",
                    json!({"type": "array", "items": session_problem()}),
                ),
                (
                    "status",
                    json!({"type": "string", "enum": ["closed", "expired", "open"]}),
                ),
            ],
        ),
        (
            "AiProvider",
            providers::CREATE,
            &[],
            vec![project(), tags()],
        ),
        (
            "ApiKey",
            keys::CREATE,
            &[],
            vec![
                tags(),
                (
                    "key",
                    json!({"type": "string", "description": "The text of the key, in the answer to its creation only."}),
                ),
                ("key_prefix", text()),
                ("user_id", text()),
            ],
        ),
        (
            "Document",
            documents::CREATE,
            &[],
            vec![project(), tags(), ("size", count())],
        ),
        ("Memory", memories::CREATE, &[], vec![project()]),
        ("Policy", policies::CREATE, &[], vec![tags()]),
        ("Project", projects::CREATE, &[], vec![tags()]),
        (
            "Secret",
            providers::CREATE_SECRET,
            &["value"],
            vec![project(), tags()],
        ),
        ("Tool", tools::CREATE, &[], vec![project(), tags()]),
    ];
    of.into_iter()
        .map(|of| (of.0.to_owned(), record(of)))
        .collect()
}

/// Returns the schema of a record.
fn record((_, members, hidden, more): Of) -> Json {
    let mut schema = object(&[
        ("id", text()),
        ("created_at", instant()),
        ("updated_at", instant()),
    ]);
    for member in members.iter().filter(|it| !hidden.contains(&it.name)) {
        let mut shown = match member.is_needed {
            true => member.kind.schema(),
            false => nullable(member.kind.schema()),
        };
        shown["description"] = json!(member.doc);
        schema["properties"][member.name] = shown;
    }
    with(schema, &more)
}

fn status() -> Json {
    let names: Vec<&str> = State::NAMES.iter().map(|it| it.1).collect();
    json!({"type": "string", "enum": names})
}

fn stop_reason() -> Json {
    let names = [
        json!("depth_limit"),
        json!("end_turn"),
        json!("max_steps"),
        json!("no_executor"),
        json!("stop_condition"),
        json!("stream_response_started"),
        Json::Null,
    ];
    json!({"type": ["string", "null"], "enum": names})
}

fn failure() -> Json {
    nullable(object(&[("code", text()), ("message", text())]))
}

fn tool_call() -> Json {
    object(&[
        ("id", json!({})),
        ("tool_call_id", json!({})),
        ("tool_name", json!({})),
        ("args", json!({})),
    ])
}

fn required_action() -> Json {
    object(&[
        (
            "type",
            json!({"type": "string", "enum": [Kind::Client.action(), Kind::Questions.action()]}),
        ),
        ("generation_id", text()),
        ("agent_id", text()),
        ("tool_calls", list_of(reference("ToolCall"))),
    ])
}

fn generation() -> Json {
    object(&[
        ("id", text()),
        ("project_id", text()),
        ("agent_id", text()),
        ("trace_id", text()),
        ("initiator_generation_id", text_or_null()),
        ("status", status()),
        ("started_at", instant()),
        ("completed_at", nullable(instant())),
        ("last_activity_at", instant()),
        ("stop_reason", stop_reason()),
        ("started_by", object(&[("type", text()), ("id", text())])),
        ("created_at", instant()),
        ("error", failure()),
        ("tool_calls", list_of(reference("ToolCall"))),
        ("required_action", nullable_of("RequiredAction")),
    ])
}

/// Returns the schema of the answer to a request that starts or resumes a generation; in a session with the `message`.
fn answer(message: Option<Json>) -> Json {
    let output = object(&[
        ("model", text_or_null()),
        ("content", text_or_null()),
        ("finish_reason", text()),
    ]);
    let output = with(output, &[("object", json!({}))]);
    let mut members = vec![
        ("id", text()),
        ("generation_id", text()),
        ("agent_id", text()),
        ("trace_id", text()),
        ("status", status()),
        ("stop_reason", stop_reason()),
        ("output", nullable(output)),
        ("required_action", nullable_of("RequiredAction")),
        ("error", failure()),
        ("text", text_or_null()),
        ("tool_calls", list_of(reference("ToolCall"))),
    ];
    members.extend(message.map(|it| ("message", it)));
    object(&members)
}

/// Returns the schema of the answer to a request that does not wait for its generation.
fn accepted() -> Json {
    object(&[
        ("status", json!({"type": "string", "enum": ["accepted"]})),
        ("session_id", text()),
        ("generation_id", text()),
        ("trace_id", text()),
    ])
}

fn agent_message() -> Json {
    object(&[
        ("role", json!({"type": "string", "enum": ["assistant"]})),
        ("content", text_or_null()),
        ("model", text_or_null()),
    ])
}

/// Returns the schema of the reason why the last messages of a session are not answered.
fn session_problem() -> Json {
    object(&[
        (
            "type",
            json!({"type": "string", "enum": ["generation_refused"]}),
        ),
        ("code", text()),
        ("message", text()),
        ("created_at", instant()),
    ])
}

fn message() -> Json {
    let message = object(&[
        (
            "role",
            json!({"type": "string", "enum": ["assistant", "user"]}),
        ),
        ("content", text_or_null()),
        ("document_id", text_or_null()),
        ("created_at", instant()),
    ]);
    with(message, &[("generation_id", text()), ("position", count())])
}

fn entry() -> Json {
    let entry = object(&[
        ("id", text()),
        ("memory_id", text()),
        ("content", text()),
        ("created_at", instant()),
        ("updated_at", instant()),
    ]);
    let action = json!({"type": "string", "enum": ["created", "skipped", "updated"],
                        "description": "The outcome, in the answer to the request that writes the fact."});
    with(entry, &[("action", action), ("source", text_or_null())])
}

fn knowledge() -> Json {
    let found = object(&[
        (
            "source_type",
            json!({"type": "string", "enum": ["document", "memory"]}),
        ),
        ("content", text_or_null()),
        ("created_at", json!({})),
        ("updated_at", json!({})),
    ]);
    let any = || json!({});
    let found = with(
        found,
        &[
            ("score", json!({"type": "number"})),
            ("document_id", text()),
            ("project_id", text()),
            ("path", text_or_null()),
            ("filename", text_or_null()),
            ("title", text_or_null()),
            ("metadata", any()),
            ("tags", any()),
            ("size", count()),
            ("entry_id", text()),
            ("memory_id", text()),
            ("memory_name", text_or_null()),
        ],
    );
    object(&[("results", list_of(found))])
}

fn trace(more: &[(&str, Json)]) -> Json {
    let mut members = vec![
        ("id", text()),
        ("project_id", text()),
        ("agent_id", text()),
        ("generation_id", text()),
        ("parent_trace_id", text_or_null()),
        ("root_trace_id", text_or_null()),
        ("step_count", count()),
        ("created_at", instant()),
    ];
    members.extend(more.iter().cloned());
    object(&members)
}

fn trace_with_steps() -> Json {
    let call = object(&[
        ("tool_name", text()),
        ("args", json!({})),
        ("status", text()),
        ("result", json!({})),
    ]);
    let call = with(call, &[("generation_id", text()), ("trace_id", text())]);
    let step = object(&[
        ("step", count()),
        ("status", text()),
        ("text", text_or_null()),
        ("model", text_or_null()),
        ("total_tokens", json!({"type": ["integer", "null"]})),
        ("duration_ms", json!({"type": ["integer", "null"]})),
        ("tool_calls", list_of(call)),
    ]);
    let problem = object(&[
        ("type", text()),
        ("tool_name", text()),
        ("server", text_or_null()),
        ("message", text_or_null()),
    ]);
    trace(&[("steps", list_of(step)), ("problems", list_of(problem))])
}

fn trace_generations() -> Json {
    object(&[
        ("trace_id", text()),
        ("generation_ids", list_of(text())),
        ("data", list_of(reference("Generation"))),
    ])
}
