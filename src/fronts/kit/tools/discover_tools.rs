//! `discover_tools`: for each use case, the best thing of the project to build it with, and whether it can be used.

use flowstone_model::token::Scope;
use serde_json::{Value as Json, json};

use crate::kit::context::KitCall;
use crate::kit::discovery::{
    Candidate, Catalogue, Integration, Integrations, Kind, LEAST_COVERAGE, State, bound_flow,
    reads_like_an_event, shapes,
};
use crate::kit::schema::object;
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};

pub const TOOL: Tool = Tool {
    name: "discover_tools",
    description: "Finds what to build a flow with: step types, packaged steps, flows, connections and tools of MCP servers of \
                  this project. Give one short use case for each thing that the flow has to do. Each answer has the best \
                  tool with its schema and an example call, and the state of its connection: anything but `ready` needs \
                  `request_connection` first. What starts a flow is found by `discover_triggers`.",
    input: || {
        shapes::input(
            "One thing that the flow has to do, such as `send a message to Slack`.",
            "Where to look.",
        )
    },
    output,
    bound: &[Bound::Flow, Bound::Workspace],
    read_only: true,
    permission: Permission::Allow,
    scope: Scope::Read,
    timeout_ms: 15_000,
    timeout_of: None,
    default_on: true,
    wrapper: None,
    in_test: InTest::Answered,
    call: |cx, arguments| Box::pin(discover(cx, arguments)),
};

fn output() -> Json {
    let tool = object(
        json!({
            "type": {"enum": ["step", "packaged", "flow", "mcp"]},
            "name": {"type": "string"},
            "description": {"type": "string"},
            "input_schema": {"type": "object"},
            "connection": {"type": "string"},
            "example": {"type": "string"},
        }),
        &["type", "name", "description", "input_schema", "example"],
    );
    shapes::output(("tool", tool), "name", false)
}

async fn discover(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let own = bound_flow(cx).await?;
    let integrations = Integrations::of(cx, own.as_deref());
    let catalogue = Catalogue::read(cx, &integrations).await?;
    let provider = arguments.get("provider").and_then(Json::as_str);
    let provider = provider.filter(|name| *name != "all");
    let limit = shapes::alternatives(&arguments);
    let use_cases = arguments["use_cases"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let mut found = Vec::new();
    for use_case in use_cases.iter().filter_map(Json::as_str) {
        let ranked = catalogue.find(use_case).into_iter();
        let ranked =
            ranked.filter(|(it, _)| provider.is_none_or(|name| it.kind.provider() == name));
        let ranked: Vec<_> = ranked.collect();
        let best = ranked
            .first()
            .filter(|(_, ranked)| ranked.coverage >= LEAST_COVERAGE);
        let best = best.map(|(candidate, _)| *candidate);
        let rest = ranked.iter().skip(usize::from(best.is_some())).take(limit);
        found.push(Capability {
            use_case,
            best,
            alternatives: rest.map(|(candidate, _)| *candidate).collect(),
            connection: best.and_then(|it| integrations.find(it.connection.as_ref()?)),
        });
    }
    Ok(answer(&found, &integrations))
}

/// What was found for a use case.
struct Capability<'a> {
    use_case: &'a str,
    best: Option<&'a Candidate>,
    alternatives: Vec<&'a Candidate>,
    connection: Option<&'a Integration>,
}

impl Capability<'_> {
    fn state(&self) -> State {
        self.connection
            .map_or(State::Ready, |connection| connection.state)
    }

    fn note(&self) -> Option<&'static str> {
        if reads_like_an_event(self.use_case) {
            return Some(
                "this reads like an event that starts the flow: call `discover_triggers` for it",
            );
        }
        match self.best {
            None => Some(
                "nothing of the project does this: see the alternatives, or call the service with an `http` step",
            ),
            Some(_) => None,
        }
    }

    fn shown(&self) -> Json {
        let alternatives = self.alternatives.iter();
        let connection = self.best.map(|_| {
            json!({
                "state": self.state().name(),
                "slug": self.connection.map(|connection| &connection.slug),
            })
        });
        json!({
            "use_case": self.use_case,
            "integration": self.best.map(|best| &best.integration),
            "tool": self.best.map(Candidate::tool),
            "alternatives": alternatives.map(|it| it.alternative()).collect::<Vec<_>>(),
            "connection": connection,
            "note": self.note(),
        })
    }

    fn is_ready(&self) -> bool {
        self.best.is_some() && self.state() == State::Ready
    }

    fn plan(&self) -> Option<String> {
        let best = self.best?;
        Some(match best.kind {
            Kind::Flow => format!("{}: call the flow `{}`", self.use_case, best.name),
            Kind::Mcp => format!(
                "{}: call the tool `{}` of `{}`",
                self.use_case, best.name, best.integration
            ),
            Kind::Packaged => format!("{}: use the packaged step `:{}`", self.use_case, best.name),
            Kind::Step => format!(
                "{}: use a `:{}` step",
                self.use_case,
                best.name.split(' ').next().unwrap_or_default()
            ),
        })
    }
}

fn answer(found: &[Capability<'_>], integrations: &Integrations) -> Json {
    let used = |slug: &str| {
        found.iter().any(|it| {
            it.connection
                .is_some_and(|connection| connection.slug == slug)
        })
    };
    let connections: Vec<Json> = integrations
        .0
        .iter()
        .filter(|integration| used(&integration.slug))
        .map(Integration::shown)
        .collect();
    let missing: Vec<&str> = integrations
        .0
        .iter()
        .filter(|integration| used(&integration.slug) && integration.state != State::Ready)
        .map(|integration| &*integration.slug)
        .collect();
    let mut plan: Vec<String> = missing
        .iter()
        .map(|slug| {
            format!("request the connection `{slug}`, and stop until the person has completed it")
        })
        .collect();
    plan.extend(found.iter().filter_map(Capability::plan));
    plan.push("commit the flow with `commit_revision`, then try it with `test_run`".to_owned());
    let mut notes = Vec::new();
    if found.iter().any(|it| it.best.is_none()) {
        notes
            .push("some use cases have no tool: say them in other words, or split them".to_owned());
    }
    json!({
        "capabilities": found.iter().map(Capability::shown).collect::<Vec<_>>(),
        "connections": connections,
        "guidance": {
            "plan_steps": plan,
            "pitfalls": [
                "the keys of a step's config are keywords with hyphens: `:max-tokens`",
                "a secret never belongs in the text of a flow: name a connection",
                "`test_run` really acts unless `dry` is true",
            ],
        },
        "ready": found.iter().all(Capability::is_ready),
        "notes": notes,
    })
}
