//! Platform actions: what tools of type `soat` (alias `builtin`) do with the records of the project of their agent.
//!
//! Each action is a row of [`ACTIONS`]: its name, the permission that policies decide about, its arguments, and the function that
//! the route of the same operation calls. An action reaches records of one project only.

mod asked;
mod knowledge;
mod stored;
mod tags;

pub use stored::check;

use flowstone_engine::Engine;
use flowstone_engine::token::Scope;
use flowstone_flow::step::LocalFuture;
use flowstone_project::knowledge::Embedder;
use serde_json::{Value as Json, json};

use super::body::{self, Body, Kind, Member, Purpose, texts};
use super::error::ApiError;
use super::generations::{self, Filter, Who};
use super::records::{Record, Records};
use super::sessions::{self, Session};
use super::{actors, agent, documents, sight, tools, traces};

/// The action that starts a generation of another agent.
pub const GENERATE: &str = flowstone_steps::agent::GENERATE;
/// The largest number of records that an action lists.
const LISTED: usize = 100;
/// Members of a new generation that an action cannot set: who is asked, and with which identity, follows from the caller.
const NOT_OF_ACTIONS: &[&str] = &["boundary_policy", "project_id", "stream", "tool_context"];

/// The record that an action is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Subject {
    /// No record, or a new one.
    #[default]
    New,
    Record(Records),
    /// A part of the record that the first id names.
    Part(Records),
    Generation,
    Trace,
}

/// An action with its arguments.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// The id of the project of the API.
    pub project: String,
    /// The ids in the path, as in the route.
    pub ids: Vec<String>,
    pub subject: Subject,
    pub body: Json,
}

impl Given {
    fn id(&self, at: usize) -> &str {
        self.ids.get(at).map_or("", String::as_str)
    }
}

/// What an action is performed with.
#[derive(Clone, Copy)]
pub struct With<'a> {
    pub embedder: Option<&'a dyn Embedder>,
    /// Whose rights limit what the arguments refer to.
    pub who: &'a Who,
}

type Run = for<'a> fn(&'a Engine, &'a Given, With<'a>) -> LocalFuture<'a, Result<Json, ApiError>>;

/// A row of [`ACTIONS`].
pub struct Action {
    pub name: &'static str,
    /// What policies decide about.
    pub permission: &'static str,
    pub scope: Scope,
    /// The type of the record, as in names of resources.
    pub kind: &'static str,
    pub doc: &'static str,
    /// The ids in the path. The last one is that of the subject.
    ids: &'static [Member],
    body: &'static [Member],
    pub subject: Subject,
    run: Run,
}

const AGENT: Member = Member::required("agent_id", Kind::Text, "The agent.");
const TOOL: Member = Member::required("tool_id", Kind::Text, "The tool.");
const DOCUMENT: Member = Member::required("document_id", Kind::Text, "The document.");
const ACTOR: Member = Member::required("actor_id", Kind::Text, "The actor.");
const SESSION: Member = Member::required("session_id", Kind::Text, "The session.");
const TRACE: Member = Member::required("trace_id", Kind::Text, "The trace.");
const PROVIDER: Member = Member::required("ai_provider_id", Kind::Text, "The provider.");
const GENERATION: Member = Member::required("generation_id", Kind::Text, "The generation.");
const PAGE: &[Member] = &[
    Member::optional(
        "limit",
        Kind::Int(1, 100),
        "The number of records; 100 if it is left out.",
    ),
    Member::optional(
        "offset",
        Kind::Int(0, 1_000_000),
        "The number of records before the first.",
    ),
];
const OF_AGENT: &[Member] = &[
    Member::optional("agent_id", Kind::Text, "Only generations of this agent."),
    PAGE[0],
    PAGE[1],
];

const fn read(
    (name, permission, kind): (&'static str, &'static str, &'static str),
    doc: &'static str,
    (ids, subject): (&'static [Member], Subject),
    run: Run,
) -> Action {
    Action {
        name,
        permission,
        scope: Scope::Read,
        kind,
        doc,
        ids,
        body: if ids.is_empty() { PAGE } else { &[] },
        subject,
        run,
    }
}

const fn edit(
    (name, permission, kind): (&'static str, &'static str, &'static str),
    doc: &'static str,
    (ids, subject): (&'static [Member], Subject),
    body: &'static [Member],
    run: Run,
) -> Action {
    Action {
        scope: Scope::Edit,
        body,
        ..read((name, permission, kind), doc, (ids, subject), run)
    }
}

/// As [`edit`], for changes that need the scope `run` only, as their routes.
const fn write(
    names: (&'static str, &'static str, &'static str),
    doc: &'static str,
    of: (&'static [Member], Subject),
    body: &'static [Member],
    run: Run,
) -> Action {
    Action {
        scope: Scope::Run,
        ..edit(names, doc, of, body, run)
    }
}

/// The actions on records other than memories, sorted by name.
const ACTIONS: &[Action] = &[
    write(
        (
            "add-session-message",
            "sessions:AddSessionMessage",
            "session",
        ),
        "Adds a message of the user to a session, without an answer of its agent.",
        (&[AGENT, SESSION], Subject::Record(Records::Sessions)),
        sessions::MESSAGE,
        |engine, given, with| Box::pin(add_message(engine, given, with.who)),
    ),
    write(
        ("create-actor", "actors:CreateActor", "actor"),
        "Creates an actor.",
        (&[], Subject::New),
        actors::CREATE,
        |engine, given, with| {
            Box::pin(async move {
                let (actor, _) = actors::create(engine, with.who, given.body.clone()).await?;
                Ok(actor)
            })
        },
    ),
    edit(
        ("create-agent", "agents:CreateAgent", "agent"),
        "Creates an agent.",
        (&[], Subject::New),
        agent::MEMBERS,
        |engine, given, with| Box::pin(agent::create(engine, with.who, given.body.clone())),
    ),
    write(
        (GENERATE, "agents:CreateAgentGeneration", "agent"),
        "Runs another agent, and returns its answer.",
        (&[AGENT], Subject::Record(Records::Agents)),
        generations::GENERATE,
        |_, _, _| {
            Box::pin(std::future::ready(Err(ApiError::invalid(
                "a generation is started by the step itself",
            ))))
        },
    ),
    write(
        (
            "create-agent-session",
            "sessions:CreateAgentSession",
            "session",
        ),
        "Creates a session of an agent.",
        (&[AGENT], Subject::Record(Records::Agents)),
        sessions::CREATE,
        |engine, given, with| {
            let body = given.body.clone();
            Box::pin(sessions::create(engine, with.who, (given.id(0), body)))
        },
    ),
    edit(
        ("create-document", "documents:CreateDocument", "document"),
        "Creates a document.",
        (&[], Subject::New),
        documents::CREATE,
        |engine, given, _| Box::pin(documents::create(engine, given.body.clone())),
    ),
    edit(
        ("create-tool", "tools:CreateTool", "tool"),
        "Creates a tool.",
        (&[], Subject::New),
        tools::CREATE,
        |engine, given, _| Box::pin(tools::create(engine, given.body.clone())),
    ),
    write(
        ("delete-actor", "actors:DeleteActor", "actor"),
        "Deletes an actor.",
        (&[ACTOR], Subject::Record(Records::Actors)),
        &[],
        |engine, given, _| {
            Box::pin(async move { gone(Records::Actors.delete(engine, given.id(0)).await) })
        },
    ),
    edit(
        ("delete-agent", "agents:DeleteAgent", "agent"),
        "Deletes an agent.",
        (&[AGENT], Subject::Record(Records::Agents)),
        &[],
        |engine, given, _| Box::pin(async move { gone(agent::delete(engine, given.id(0)).await) }),
    ),
    write(
        (
            "delete-agent-session",
            "sessions:DeleteAgentSession",
            "session",
        ),
        "Deletes a session.",
        (&[AGENT, SESSION], Subject::Record(Records::Sessions)),
        &[],
        |engine, given, _| {
            Box::pin(async move {
                let session = Session::find(engine, given.id(0), given.id(1)).await?;
                gone(session.delete(engine).await)
            })
        },
    ),
    edit(
        ("delete-document", "documents:DeleteDocument", "document"),
        "Deletes a document.",
        (&[DOCUMENT], Subject::Record(Records::Documents)),
        &[],
        |engine, given, _| {
            Box::pin(async move { gone(Records::Documents.delete(engine, given.id(0)).await) })
        },
    ),
    edit(
        ("delete-tool", "tools:DeleteTool", "tool"),
        "Deletes a tool that no agent uses.",
        (&[TOOL], Subject::Record(Records::Tools)),
        &[],
        |engine, given, _| Box::pin(async move { gone(tools::delete(engine, given.id(0)).await) }),
    ),
    read(
        ("get-actor", "actors:GetActor", "actor"),
        "Shows an actor.",
        (&[ACTOR], Subject::Record(Records::Actors)),
        |engine, given, _| Box::pin(shown(engine, Records::Actors, given, actors::shown)),
    ),
    read(
        ("get-agent", "agents:GetAgent", "agent"),
        "Shows an agent.",
        (&[AGENT], Subject::Record(Records::Agents)),
        |engine, given, _| Box::pin(shown(engine, Records::Agents, given, agent::shown)),
    ),
    read(
        (
            "get-agent-generation",
            "agents:GetAgentGeneration",
            "generation",
        ),
        "Shows a generation.",
        (&[GENERATION], Subject::Generation),
        |engine, given, _| Box::pin(generations::show(engine, given.id(0))),
    ),
    read(
        ("get-agent-session", "sessions:GetAgentSession", "session"),
        "Shows a session.",
        (&[AGENT, SESSION], Subject::Record(Records::Sessions)),
        |engine, given, _| {
            Box::pin(async move {
                let session = Session::find(engine, given.id(0), given.id(1)).await?;
                session.to_json(engine).await
            })
        },
    ),
    read(
        (
            "get-ai-provider",
            "ai-providers:GetAiProvider",
            "ai-provider",
        ),
        "Shows a provider, without its key.",
        (&[PROVIDER], Subject::Record(Records::Providers)),
        |engine, given, _| {
            Box::pin(shown(
                engine,
                Records::Providers,
                given,
                super::providers::shown,
            ))
        },
    ),
    read(
        ("get-document", "documents:GetDocument", "document"),
        "Shows a document with its text.",
        (&[DOCUMENT], Subject::Record(Records::Documents)),
        |engine, given, _| Box::pin(shown(engine, Records::Documents, given, documents::shown)),
    ),
    read(
        ("get-tool", "tools:GetTool", "tool"),
        "Shows a tool.",
        (&[TOOL], Subject::Record(Records::Tools)),
        |engine, given, _| Box::pin(shown(engine, Records::Tools, given, tools::shown)),
    ),
    read(
        ("get-trace", "traces:GetTrace", "trace"),
        "Shows a trace with its steps.",
        (&[TRACE], Subject::Trace),
        |engine, given, _| Box::pin(traces::show(engine, given.id(0))),
    ),
    read(
        (
            "get-trace-generations",
            "traces:GetTraceGenerations",
            "trace",
        ),
        "Lists the generations of a trace.",
        (&[TRACE], Subject::Trace),
        |engine, given, with| Box::pin(traces::generations(engine, with.who, given.id(0))),
    ),
    read(
        ("get-trace-tree", "traces:GetTraceTree", "trace"),
        "Shows the tree of a trace.",
        (&[TRACE], Subject::Trace),
        |engine, given, with| Box::pin(traces::tree(engine, with.who, given.id(0))),
    ),
    read(
        ("list-actors", "actors:ListActors", "actor"),
        "Lists actors.",
        (&[], Subject::New),
        |engine, given, with| {
            Box::pin(listed(
                (engine, with.who),
                Records::Actors,
                given,
                actors::shown,
            ))
        },
    ),
    Action {
        body: OF_AGENT,
        ..read(
            (
                "list-agent-generations",
                "agents:ListAgentGenerations",
                "generation",
            ),
            "Lists generations, newest first.",
            (&[], Subject::New),
            |engine, given, with| {
                Box::pin(async move {
                    let page = generations::list(engine, with.who, &filter(given)).await?;
                    Ok(json!({"data": page.data, "total": page.total}))
                })
            },
        )
    },
    Action {
        body: PAGE,
        ..read(
            (
                "list-agent-session-messages",
                "sessions:ListAgentSessionMessages",
                "session",
            ),
            "Lists the messages of a session, oldest first.",
            (&[AGENT, SESSION], Subject::Record(Records::Sessions)),
            |engine, given, _| {
                Box::pin(async move {
                    let session = Session::find(engine, given.id(0), given.id(1)).await?;
                    Ok(page(session.messages(engine).await?, given))
                })
            },
        )
    },
    Action {
        body: PAGE,
        ..read(
            (
                "list-agent-sessions",
                "sessions:ListAgentSessions",
                "session",
            ),
            "Lists the sessions of an agent, oldest first.",
            (&[AGENT], Subject::Record(Records::Agents)),
            |engine, given, with| {
                Box::pin(async move {
                    let wanted = (given.id(0), (None, None));
                    let all = sessions::list(engine, with.who, wanted).await?;
                    Ok(page(all, given))
                })
            },
        )
    },
    read(
        ("list-agents", "agents:ListAgents", "agent"),
        "Lists agents.",
        (&[], Subject::New),
        |engine, given, with| {
            Box::pin(listed(
                (engine, with.who),
                Records::Agents,
                given,
                agent::shown,
            ))
        },
    ),
    read(
        (
            "list-ai-providers",
            "ai-providers:ListAiProviders",
            "ai-provider",
        ),
        "Lists providers, without their keys.",
        (&[], Subject::New),
        |engine, given, with| {
            Box::pin(listed(
                (engine, with.who),
                Records::Providers,
                given,
                super::providers::shown,
            ))
        },
    ),
    read(
        ("list-documents", "documents:ListDocuments", "document"),
        "Lists documents, without their texts.",
        (&[], Subject::New),
        |engine, given, with| {
            Box::pin(listed(
                (engine, with.who),
                Records::Documents,
                given,
                documents::listed,
            ))
        },
    ),
    read(
        ("list-tools", "tools:ListTools", "tool"),
        "Lists tools.",
        (&[], Subject::New),
        |engine, given, with| {
            Box::pin(listed(
                (engine, with.who),
                Records::Tools,
                given,
                tools::shown,
            ))
        },
    ),
    read(
        ("list-traces", "traces:ListTraces", "trace"),
        "Lists traces, newest first.",
        (&[], Subject::New),
        |engine, given, with| {
            Box::pin(async move {
                let page = traces::list(engine, with.who, &filter(given)).await?;
                Ok(json!({"data": page.data, "total": page.total}))
            })
        },
    ),
    write(
        ("update-actor", "actors:UpdateActor", "actor"),
        "Changes an actor.",
        (&[ACTOR], Subject::Record(Records::Actors)),
        actors::UPDATE,
        |engine, given, with| {
            let body = given.body.clone();
            Box::pin(actors::update(engine, with.who, (given.id(0), body)))
        },
    ),
    edit(
        ("update-agent", "agents:UpdateAgent", "agent"),
        "Changes an agent.",
        (&[AGENT], Subject::Record(Records::Agents)),
        agent::MEMBERS,
        |engine, given, with| {
            let body = given.body.clone();
            Box::pin(agent::update(engine, with.who, (given.id(0), body)))
        },
    ),
    edit(
        ("update-document", "documents:UpdateDocument", "document"),
        "Changes a document.",
        (&[DOCUMENT], Subject::Record(Records::Documents)),
        documents::UPDATE,
        |engine, given, _| Box::pin(documents::update(engine, given.id(0), given.body.clone())),
    ),
    write(
        ("update-session", "sessions:UpdateSession", "session"),
        "Changes a session.",
        (&[AGENT, SESSION], Subject::Record(Records::Sessions)),
        sessions::UPDATE,
        |engine, given, _| {
            Box::pin(async move {
                let session = Session::find(engine, given.id(0), given.id(1)).await?;
                session.update(engine, given.body.clone()).await
            })
        },
    ),
    edit(
        ("update-tool", "tools:UpdateTool", "tool"),
        "Changes a tool.",
        (&[TOOL], Subject::Record(Records::Tools)),
        tools::UPDATE,
        |engine, given, _| Box::pin(tools::update(engine, given.id(0), given.body.clone())),
    ),
];

async fn shown(
    engine: &Engine,
    kind: Records,
    given: &Given,
    shown: fn(&Record) -> Json,
) -> Result<Json, ApiError> {
    Ok(shown(&kind.get(engine, given.id(0)).await?))
}

async fn listed(
    (engine, who): (&Engine, &Who),
    kind: Records,
    given: &Given,
    shown: fn(&Record) -> Json,
) -> Result<Json, ApiError> {
    let records = sight::listed(engine, who, (kind, Some(&given.project))).await?;
    Ok(page(records.iter().map(shown).collect(), given))
}

fn number(given: &Given, name: &str) -> Option<usize> {
    let number = given.body.get(name).and_then(Json::as_u64)?;
    usize::try_from(number).ok()
}

fn page(all: Vec<Json>, given: &Given) -> Json {
    let total = all.len();
    let part = all
        .into_iter()
        .skip(number(given, "offset").unwrap_or(0))
        .take(number(given, "limit").unwrap_or(LISTED));
    json!({"data": part.collect::<Vec<_>>(), "total": total})
}

fn filter(given: &Given) -> Filter {
    let agent = given.body.get("agent_id").and_then(Json::as_str);
    Filter {
        project: Some(given.project.clone()),
        agent: agent.map(str::to_owned),
        state: None,
        limit: number(given, "limit").unwrap_or(LISTED),
        offset: number(given, "offset").unwrap_or(0),
    }
}

fn gone(deleted: Result<(), ApiError>) -> Result<Json, ApiError> {
    deleted.map(|()| json!({"deleted": true}))
}

async fn add_message(engine: &Engine, given: &Given, who: &Who) -> Result<Json, ApiError> {
    let mut session = Session::find(engine, given.id(0), given.id(1)).await?;
    if session.generates_by_itself() {
        // Its generation would be nested in none, so no depth would limit it.
        return Err(ApiError::conflict(
            "a session with `auto_generate` takes no messages from actions",
        ));
    }
    let draft = session.draft(engine, who, &given.body).await?;
    session.add(engine, &draft).await?;
    Ok(draft.message())
}

/// Returns all actions.
pub fn all() -> impl Iterator<Item = &'static Action> {
    let more = knowledge::ACTIONS.iter().chain(tags::ACTIONS);
    ACTIONS.iter().chain(more)
}

/// Returns the action of a name.
pub fn find(name: &str) -> Option<&'static Action> {
    all().find(|action| action.name == name)
}

impl Action {
    /// Returns the members of its body that it takes.
    fn members(&self) -> impl Iterator<Item = &'static Member> {
        let body = self.body.iter();
        body.filter(|it| !NOT_OF_ACTIONS.contains(&it.name))
    }

    /// Returns the JSON Schema of the arguments.
    pub fn schema(&self) -> Json {
        if !self.name.starts_with("update-") {
            let members = self.ids.iter().chain(self.members());
            return body::schema(members, Purpose::Call);
        }
        let mut schema = body::schema(self.ids, Purpose::Call);
        let mut changes = body::schema(self.members(), Purpose::Change);
        let own = changes["properties"].as_object_mut().map(std::mem::take);
        if let Some(all) = schema["properties"].as_object_mut() {
            all.extend(own.unwrap_or_default());
        }
        schema
    }

    /// Reads arguments for a project.
    ///
    /// # Errors
    /// When one is unknown, missing or of another kind.
    pub fn given(&self, project: &str, arguments: &Json) -> Result<Given, ApiError> {
        let members: Vec<Member> = self.ids.iter().chain(self.members()).copied().collect();
        let is_change = self.name.starts_with("update-");
        let mut body = match is_change {
            true => Body::read_some(arguments.clone(), &members)?,
            false => Body::read(arguments.clone(), &members)?,
        };
        let mut ids = Vec::new();
        for id in self.ids {
            let Some(Json::String(id)) = body.0.remove(id.name) else {
                return Err(ApiError::invalid(format!("`{}` is missing", id.name)));
            };
            ids.push(id);
        }
        // Null removes what is removable.
        if is_change {
            let nulls = arguments.as_object().into_iter().flatten();
            let nulls = nulls.filter(|(_, value)| value.is_null());
            body.0
                .extend(nulls.map(|(name, value)| (name.clone(), value.clone())));
        }
        // New records belong to the project of the agent, whatever the model says.
        if self.subject == Subject::New && self.body.iter().any(|it| it.name == "project_id") {
            body.0.insert("project_id".to_owned(), json!(project));
        }
        Ok(Given {
            project: project.to_owned(),
            ids,
            subject: self.subject,
            body: Json::Object(body.0),
        })
    }

    /// Performs the action, whose own right was checked before.
    ///
    /// # Errors
    /// As the route of the same operation.
    pub async fn perform(
        &self,
        engine: &Engine,
        given: &Given,
        with: With<'_>,
    ) -> Result<Json, ApiError> {
        (self.run)(engine, given, with).await
    }
}

/// Tells whether a tool performs platform actions.
pub fn is_platform(record: &Record) -> bool {
    matches!(record.text("type"), Some("builtin" | "soat"))
}

fn tool_name(record: &Record, action: &str) -> String {
    format!("{}_{action}", record.text("name").unwrap_or_default())
}

/// Returns the names under which models see the actions of a tool.
pub fn names(record: &Record) -> Vec<String> {
    let actions = texts(record.get("actions"));
    actions.iter().map(|it| tool_name(record, it)).collect()
}

/// Returns the actions of a tool as entries of `:platform-tools`.
pub fn entries(record: &Record) -> Vec<Json> {
    let actions = texts(record.get("actions"));
    let actions = actions.iter().filter_map(|name| find(name));
    let entry = |action: &'static Action| {
        let schema = action.schema();
        let mut entry = json!({
            "name": tool_name(record, action.name),
            "action": action.name,
            "description": description(record, action),
            "read-only?": action.scope == Scope::Read,
        });
        if let Some(preset) = preset(record, action) {
            entry["preset"] = preset;
        }
        entry["parameters"] = schema;
        entry
    };
    actions.map(entry).collect()
}

fn description(record: &Record, action: &Action) -> String {
    match record.text("description") {
        Some(own) => format!("{} {own}", action.doc),
        None => action.doc.to_owned(),
    }
}

/// Returns the preset arguments that an action takes: a tool with several actions has presets for all of them.
pub fn preset(record: &Record, action: &Action) -> Option<Json> {
    let given = record.get("preset_parameters").and_then(Json::as_object)?;
    let schema = action.schema();
    let takes = |name: &String| schema["properties"].get(name).is_some();
    let own = given.iter().filter(|(name, _)| takes(name));
    Some(Json::Object(
        own.map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    ))
}

#[cfg(test)]
mod tests;
