//! What policies and boundaries deny stays out of every answer of the agents API: lists, searches, changes, actions of models.

use serde_json::{Value, json};

use super::agents_keys::{key, policy, with};
use crate::agents_api::{Agents, error};

pub const TEXT: &str = "zebra hidden-text";

/// What a statement names to deny some records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Id,
    /// Of documents only.
    Path,
    /// Nothing is denied, but only documents under another path are allowed.
    PathNotAllowed,
    Project,
    Tag,
}

/// A list or a search: its route with the body of a POST, its action with the arguments, and the kind of its records.
struct List {
    route: String,
    body: Value,
    action: &'static str,
    arguments: Value,
    kind: &'static str,
}

/// Records of each kind, of which each statement denies one.
pub struct World {
    pub agents: Agents,
    /// The agent of sessions and generations.
    pub agent: String,
    /// A tool with all actions that list or search.
    tool: String,
    pub other: String,
    /// The kind, and the ids of the record that is shown, of the denied one, and of the one in another project.
    records: Vec<(&'static str, [String; 3])>,
}

pub const KINDS: &[(&str, &str)] = &[
    ("actor", "/actors"),
    ("agent", "/agents"),
    ("ai-provider", "/ai-providers"),
    ("document", "/documents"),
    ("memory", "/memories"),
    ("secret", "/secrets"),
    ("tool", "/tools"),
];

const ACTIONS: &[&str] = &[
    "create-agent-generation",
    "list-actors",
    "list-agent-generations",
    "list-agent-sessions",
    "list-agents",
    "list-ai-providers",
    "list-documents",
    "list-memories",
    "list-tools",
    "list-traces",
    "search-documents",
    "search-knowledge",
];

impl World {
    pub fn serve() -> World {
        let agents = Agents::serve();
        let other = agents.made("/projects", &json!({"name": "other"}));
        let tool = json!({"name": "api", "type": "soat", "actions": ACTIONS});
        let tool = agents.made("/tools", &tool);
        let agent = agents.agent("say answer", &[], json!({}));
        let mut world = World {
            agents,
            agent,
            tool,
            other,
            records: Vec::new(),
        };
        let provider = json!({"name": "p", "provider": "openai", "default_model": "m", "project_id": world.other});
        let foreign = world.agents.made("/ai-providers", &provider);
        for (kind, path) in KINDS {
            let made = ["shown", "hidden", "foreign"].map(|name| {
                let is_foreign = name == "foreign";
                let mut body = body_of(kind, name);
                if is_foreign {
                    body["project_id"] = json!(world.other);
                }
                if *kind == "agent" {
                    let own = (&foreign, &world.agents.provider);
                    body["ai_provider_id"] = json!(if is_foreign { own.0 } else { own.1 });
                }
                world.agents.made(path, &body)
            });
            world.tag(&format!("{path}/{}", made[1]));
            world.records.push((kind, made));
        }
        world.add_parts();
        world
    }

    fn tag(&self, path: &str) {
        let tagged = self
            .agents
            .send("PUT", &format!("{path}/tags"), &json!({"level": "secret"}));
        assert_eq!(tagged.status, 200, "{path}: {tagged:?}");
    }

    /// Adds entries of memories, sessions, generations and their traces.
    fn add_parts(&mut self) {
        for id in self.ids("memory") {
            let path = format!("/memories/{id}/entries");
            self.agents
                .made(&path, &json!({"content": format!("{TEXT} of {id}")}));
        }
        let at = format!("/agents/{}", self.agent);
        let foreign = self.ids("agent")[2].clone();
        let sessions = [&self.agent, &self.agent, &foreign].map(|agent| {
            self.agents
                .made(&format!("/agents/{agent}/sessions"), &json!({}))
        });
        self.tag(&format!("{at}/sessions/{}", sessions[1]));
        let generations = [&self.agent, &self.agent, &foreign].map(|agent| {
            let body = json!({"prompt": "x", "max_call_depth": 0});
            let done = self.agents.generate(agent, &body);
            done["id"].as_str().expect("an id").to_owned()
        });
        self.tag(&format!("/agents/generations/{}", generations[1]));
        let traces = [0, 1, 2].map(|at| generations[at].replace("agt_gen_", "agt_trace_"));
        self.records.push(("session", sessions));
        self.records.push(("generation", generations));
        self.records.push(("trace", traces));
    }

    pub fn ids(&self, kind: &str) -> [String; 3] {
        let mut records = self.records.iter();
        records.find(|it| it.0 == kind).expect("a kind").1.clone()
    }

    /// The statements of a form.
    fn statements(&self, form: Form) -> Value {
        let all = json!({"effect": "Allow", "action": ["*"]});
        let deny = |resource: Value| json!([all, {"effect": "Deny", "action": ["*"], "resource": resource}]);
        match form {
            Form::Id => {
                let names = self.records.iter();
                let names = names.map(|(kind, ids)| format!("soat:*:{kind}:{}", ids[1]));
                deny(names.collect())
            }
            Form::Path => deny(json!(["soat:*:document:/hidden/*"])),
            Form::PathNotAllowed => json!([
                {"effect": "Allow", "action": ["*"], "resource": ["soat:*:document:/shown/*", "soat:*:agent:*", "soat:*:tool:*"]},
            ]),
            Form::Project => deny(json!([format!("soat:{}:*:*", self.other)])),
            Form::Tag => {
                json!([all, {"effect": "Deny", "action": ["*"], "condition": {"StringEquals": {"soat:ResourceTag/level": "secret"}}}])
            }
        }
    }

    /// The index in the ids of a kind of the record that a form denies; nothing if it denies none of the kind.
    fn denied(form: Form, kind: &str) -> Option<usize> {
        match form {
            Form::Id | Form::Tag => Some(1),
            Form::Path | Form::PathNotAllowed => (kind == "document").then_some(1),
            Form::Project => Some(2),
        }
    }

    fn lists(&self) -> Vec<List> {
        let mut lists = Vec::new();
        let mut add =
            |route: &str, body: Value, (action, arguments): (&'static str, Value), kind| {
                lists.push(List {
                    route: route.to_owned(),
                    body,
                    action,
                    arguments,
                    kind,
                });
            };
        for (kind, path) in KINDS {
            let action = ACTIONS
                .iter()
                .find(|it| **it == format!("list-{}", &path[1..]));
            let action = action.copied().unwrap_or_default();
            add(
                &format!("GET {path}?limit=500"),
                Value::Null,
                (action, json!({})),
                kind,
            );
        }
        let of_agent = json!({"agent_id": self.agent});
        let sessions = format!("GET /agents/{}/sessions?limit=500", self.agent);
        add(
            &sessions,
            Value::Null,
            ("list-agent-sessions", of_agent),
            "session",
        );
        let all = || json!({});
        add(
            "GET /agents/generations?limit=500",
            Value::Null,
            ("list-agent-generations", all()),
            "generation",
        );
        add(
            "GET /traces?limit=500",
            Value::Null,
            ("list-traces", all()),
            "trace",
        );
        for query in [
            json!({"query": "zebra", "min_score": 0, "limit": 100}),
            json!({"limit": 100}),
        ] {
            add(
                "POST /knowledge/search",
                query.clone(),
                ("search-knowledge", query.clone()),
                "document",
            );
            add(
                "POST /knowledge/search",
                query.clone(),
                ("search-knowledge", query.clone()),
                "memory",
            );
            add(
                "POST /knowledge/search",
                query.clone(),
                ("search-documents", query),
                "document",
            );
        }
        lists
    }

    /// Checks that an answer has the record that is shown, and not the denied one.
    #[track_caller]
    fn check(&self, form: Form, list: &List, answer: &str) {
        let ids = self.ids(list.kind);
        let place = format!("{form:?} {} {}: {answer}", list.route, list.action);
        let is_allowed =
            form != Form::PathNotAllowed || matches!(list.kind, "agent" | "document" | "tool");
        let has = |id: &str| answer.contains(&format!("id\":\"{id}\""));
        assert_eq!(has(&ids[0]), is_allowed, "{place}");
        if let Some(at) = World::denied(form, list.kind) {
            assert!(!has(&ids[at]), "{place}");
        }
    }
}

fn body_of(kind: &str, name: &str) -> Value {
    match kind {
        "ai-provider" => json!({"name": name, "provider": "openai", "default_model": "m"}),
        "agent" => json!({"name": name, "instructions": "say x"}),
        "document" => {
            json!({"content": format!("{TEXT} {name}"), "path": format!("/{name}/a.txt")})
        }
        "secret" => json!({"name": name, "value": "sk-0123456789"}),
        "tool" => json!({"name": name, "type": "client"}),
        _ => json!({"name": name}),
    }
}

const FORMS: &[Form] = &[
    Form::Id,
    Form::Path,
    Form::PathNotAllowed,
    Form::Project,
    Form::Tag,
];

#[test]
fn a_denied_record_is_in_no_list_and_no_search_of_a_key() {
    let world = World::serve();
    for form in FORMS {
        let id = policy(&world.agents, &world.statements(*form));
        let (_, text) = key(&world.agents, &json!({"name": "k", "policy_ids": [id]}));
        for list in world.lists() {
            let reply = with(&world.agents, &text, &list.route, &list.body);
            let is_open = *form != Form::PathNotAllowed
                || matches!(list.kind, "agent" | "document" | "tool")
                || list.kind == "session"
                || list.route.starts_with("POST");
            assert_eq!(
                reply.status,
                if is_open { 200 } else { 403 },
                "{form:?} {}: {reply:?}",
                list.route
            );
            world.check(*form, &list, &reply.body);
            // The same as an action that the key calls directly.
            if !list.action.is_empty() && *form != Form::Project {
                let call = json!({"action": list.action, "input": list.arguments});
                let route = format!("POST /tools/{}/call", world.tool);
                let called = with(&world.agents, &text, &route, &call);
                world.check(*form, &list, &called.body);
            }
        }
    }
}

#[test]
fn a_denied_record_is_in_no_list_and_no_search_of_a_model_or_of_one_below_it() {
    let world = World::serve();
    let agents = &world.agents;
    let lists: Vec<List> = world
        .lists()
        .into_iter()
        .filter(|it| !it.action.is_empty())
        .collect();
    let calls: Vec<String> = lists
        .iter()
        .map(|it| format!("api_{} {}", it.action, it.arguments))
        .collect();
    let script = format!("call {}\nsay done", calls.join(" & "));
    // Nothing limits the inner agent by itself.
    let inner = agents.agent(&script, &[&world.tool], json!({}));
    let nested = format!(
        "call api_create-agent-generation {}\nsay done",
        json!({"agent_id": inner, "prompt": "x"})
    );
    for form in FORMS.iter().filter(|it| **it != Form::Project) {
        let boundary = json!({"boundary_policy": {"statement": world.statements(*form)}});
        for script in [&script, &nested] {
            let agent = agents.agent(script, &[&world.tool], boundary.clone());
            let before = agents.turns().len();
            let done = agents.generate(&agent, &json!({"prompt": "x"}));
            assert_eq!(done["text"], "done", "{done}");
            let turns = agents.turns();
            let answers = turns[before..].iter().map(|turn| {
                let messages = turn["messages"].as_array().expect("messages").iter();
                let tools = messages.filter(|it| it["role"] == "tool");
                tools
                    .filter_map(|it| it["content"].as_str())
                    .collect::<Vec<_>>()
            });
            let answers = answers.max_by_key(Vec::len).expect("a turn");
            assert_eq!(answers.len(), lists.len(), "{form:?} {answers:?}");
            for (list, answer) in lists.iter().zip(answers) {
                world.check(*form, list, answer);
            }
        }
    }
}

#[test]
fn denied_records_are_not_counted_and_leave_no_gap_in_pages() {
    let world = World::serve();
    let agents = &world.agents;
    for n in 0..6 {
        let level = if n % 2 == 0 { "secret" } else { "open" };
        agents.made("/documents", &json!({"content": "x", "title": n.to_string(), "path": "/n", "tags": {"level": level}}));
        agents.made(
            "/actors",
            &json!({"name": n.to_string(), "tags": {"level": level}}),
        );
    }
    let id = policy(agents, &world.statements(Form::Tag));
    let (_, text) = key(agents, &json!({"name": "k", "policy_ids": [id]}));
    let get = |path: &str| with(agents, &text, &format!("GET {path}"), &Value::Null).json();
    let names = |list: &Value, member: &str| -> Vec<String> {
        let items = list.as_array().expect("a list").iter();
        items
            .map(|it| it[member].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    // The shown one and the one of the other project come first.
    assert_eq!(
        names(&get("/documents?limit=2&offset=2"), "title"),
        ["1", "3"]
    );
    assert_eq!(names(&get("/documents?limit=2&offset=4"), "title"), ["5"]);
    let actors = get("/actors?limit=1&offset=4");
    assert_eq!(
        (&actors["total"], names(&actors["data"], "name")),
        (&json!(5), vec!["5".to_owned()])
    );
    let at = format!("/agents/{}/sessions?limit=1", world.agent);
    assert_eq!(get(&at)["total"], 1);
    let all = agents.get("/agents/generations").json()["total"]
        .as_u64()
        .expect("a number");
    for path in ["/agents/generations?limit=1", "/traces?limit=1"] {
        assert_eq!(get(path)["total"], all - 1, "{path}");
    }
}

/// A route and a body in which `ID` stands for the id of a record of this kind.
type Named = (String, Value, &'static str);

/// Requests with an id in the address.
fn by_address(mine: &str) -> Vec<Named> {
    let get = |path: &str, kind: &'static str| (format!("GET {path}"), Value::Null, kind);
    let mut requests = vec![
        get("/agents/generations/ID", "generation"),
        get("/traces/ID", "trace"),
        get("/traces/ID/tree", "trace"),
        get("/memories/ID/entries", "memory"),
        get("/agents/ID/sessions", "agent"),
        get(&format!("/agents/{mine}/sessions/ID"), "session"),
        get("/projects/ID", "project"),
        (
            "POST /agents/ID/generate".to_owned(),
            json!({"prompt": "x"}),
            "agent",
        ),
        ("POST /tools/ID/call".to_owned(), json!({}), "tool"),
    ];
    for (kind, path) in KINDS {
        requests.push(get(&format!("{path}/ID"), kind));
        requests.push(get(&format!("{path}/ID/tags"), kind));
        requests.push((format!("DELETE {path}/ID"), Value::Null, kind));
        requests.push((format!("PUT {path}/ID/tags"), json!({"a": "b"}), kind));
    }
    for path in [
        "/documents",
        "/agents",
        "/agents/generations",
        "/traces",
        "/projects",
        "/memories",
    ] {
        requests.push(get(&format!("{path}?project_id=ID"), "project"));
    }
    requests
}

/// Requests with an id in the body.
fn by_body(mine: &str) -> Vec<Named> {
    let provider =
        json!({"name": "p", "provider": "openai", "default_model": "m", "secret_id": "ID"});
    let content = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
    let [put, generate, sessions] = [
        format!("PUT /agents/{mine}"),
        format!("POST /agents/{mine}/generate"),
        format!("POST /agents/{mine}/sessions"),
    ];
    let knowledge = |config: Value| json!({"knowledge_config": config});
    let requests = [
        (
            "POST /documents",
            json!({"content": "x", "project_id": "ID"}),
            "project",
        ),
        (
            "POST /knowledge/search",
            json!({"query": "x", "project_id": "ID"}),
            "project",
        ),
        (
            "POST /agents",
            json!({"ai_provider_id": "ID"}),
            "ai-provider",
        ),
        ("POST /ai-providers", provider, "secret"),
        (
            "POST /actors",
            json!({"name": "a", "memory_id": "ID"}),
            "memory",
        ),
        (&put, json!({"tool_ids": ["ID"]}), "tool"),
        (&put, json!({"active_tool_ids": ["ID"]}), "tool"),
        (&put, knowledge(json!({"memory_ids": ["ID"]})), "memory"),
        (&put, knowledge(json!({"document_ids": ["ID"]})), "document"),
        (&put, knowledge(json!({"write_memory_id": "ID"})), "memory"),
        (
            &generate,
            content(json!({"type": "document", "document_id": "ID"})),
            "document",
        ),
        (
            &generate,
            content(json!({"type": "tool_output", "tool_id": "ID"})),
            "tool",
        ),
        (
            &generate,
            json!({"prompt": "x", "project_id": "ID"}),
            "project",
        ),
        (
            &generate,
            json!({"prompt": "x", "active_tool_ids": ["ID"]}),
            "tool",
        ),
        (&sessions, json!({"actor_id": "ID"}), "actor"),
    ];
    let owned = |(route, body, kind): (&str, Value, &'static str)| (route.to_owned(), body, kind);
    requests.into_iter().map(owned).collect()
}

#[test]
fn another_project_is_as_absent_for_a_key_of_a_project() {
    let world = World::serve();
    let agents = &world.agents;
    let own = agents.made("/projects", &json!({"name": "own"}));
    let (_, text) = key(agents, &json!({"name": "k", "project_id": own}));
    let provider = json!({"name": "p", "provider": "openai", "default_model": "m"});
    let provider = with(agents, &text, "POST /ai-providers", &provider).json()["id"].clone();
    let agent = json!({"ai_provider_id": provider, "instructions": "say x"});
    let agent = with(agents, &text, "POST /agents", &agent).json()["id"].clone();
    let mine = agent.as_str().expect("an agent");
    for (route, body, kind) in by_address(mine).into_iter().chain(by_body(mine)) {
        let id = match kind {
            "project" => world.other.clone(),
            kind => world.ids(kind)[2].clone(),
        };
        let (prefix, last) = id.rsplit_once('_').expect("a prefix");
        let absent = format!("{prefix}_{}", last.chars().rev().collect::<String>());
        let ask = |id: &str| {
            let body = body.to_string().replace("ID", id);
            let body: Value = serde_json::from_str(&body).expect("JSON");
            let reply = with(agents, &text, &route.replace("ID", id), &body);
            let error = reply.json()["error"].to_string();
            (reply.status, error.replace(id, "ID"))
        };
        let (found, expected) = (ask(&id), ask(&absent));
        assert_eq!(found, expected, "{route} {body}");
        assert!(matches!(found.0, 400 | 404), "{route} {body}: {found:?}");
    }
}

#[test]
fn a_knowledge_config_reaches_no_record_that_its_caller_may_not_search() {
    let world = World::serve();
    let agents = &world.agents;
    let id = policy(agents, &world.statements(Form::Tag));
    let (_, text) = key(agents, &json!({"name": "k", "policy_ids": [id]}));
    let [shown, hidden, _] = world.ids("document");
    let [memory, secret, _] = world.ids("memory");
    let generate = format!("POST /agents/{}/generate", world.agent);
    let put = format!("PUT /agents/{}", world.agent);
    for (config, is_allowed) in [
        (json!({}), false),
        (json!({"document_paths": ["/"]}), false),
        (json!({"document_ids": [hidden]}), false),
        (json!({"document_ids": [shown, hidden]}), false),
        (json!({"memory_tags": ["*"]}), false),
        (json!({"memory_ids": [secret]}), false),
        (
            json!({"document_ids": [shown], "memory_ids": [memory], "min_score": 0}),
            true,
        ),
    ] {
        for (route, body) in [
            (
                &generate,
                json!({"prompt": "zebra", "knowledge_config": config}),
            ),
            (&put, json!({"knowledge_config": config})),
        ] {
            let reply = with(agents, &text, route, &body);
            assert_eq!(
                reply.status,
                if is_allowed { 200 } else { 403 },
                "{route} {config}: {reply:?}"
            );
        }
    }
    assert!(
        agents
            .turns()
            .iter()
            .all(|turn| !turn.to_string().contains("hidden-text hidden"))
    );
    assert!(
        agents
            .turns()
            .iter()
            .any(|turn| turn.to_string().contains("hidden-text shown"))
    );
}

#[test]
fn what_a_policy_denies_cannot_be_used_by_its_id() {
    let world = World::serve();
    let agents = &world.agents;
    let id = policy(agents, &world.statements(Form::Tag));
    let (_, text) = key(agents, &json!({"name": "k", "policy_ids": [id]}));
    let hidden = |kind: &str| world.ids(kind)[1].clone();
    let named = json!({"name": "a", "external_id": "user-7"});
    let actor = agents.made("/actors", &named);
    world.tag(&format!("/actors/{actor}"));
    for (route, body) in [
        (
            "POST /agents".to_owned(),
            json!({"ai_provider_id": hidden("ai-provider")}),
        ),
        (
            format!("PUT /agents/{}", world.agent),
            json!({"ai_provider_id": hidden("ai-provider")}),
        ),
        (
            format!("POST /agents/{}/sessions", world.agent),
            json!({"actor_id": hidden("actor")}),
        ),
        ("POST /actors".to_owned(), named),
        (
            "POST /ai-providers".to_owned(),
            json!({"name": "p", "provider": "openai", "default_model": "m", "secret_id": hidden("secret")}),
        ),
    ] {
        let reply = with(agents, &text, &route, &body);
        assert_eq!(error(&reply), "403 FORBIDDEN", "{route} {body}: {reply:?}");
    }
}
