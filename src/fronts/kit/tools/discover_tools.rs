//! `discover_tools`: for each use case, the best thing of the project to build it with, and whether it can be used.

use flowstone_model::token::Scope;
use serde_json::{Value as Json, json};

use crate::kit::context::KitCall;
use crate::kit::discovery::{
    Candidate, Catalogue, Integration, Integrations, Kind, Link, Need, State, left_to_do,
    reads_like_a_time, reads_like_an_event, shapes, shown_missing,
};
use crate::kit::flows::bound_flow;
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
    check: None,
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
    let integrations = Integrations::of(cx, own.as_deref()).await?;
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
        // What starts the flow is no part of what a tool has to do.
        let left = left_to_do(use_case);
        let ranked = catalogue.find(&left).into_iter();
        let ranked =
            ranked.filter(|(it, _)| provider.is_none_or(|name| it.kind.provider() == name));
        let ranked: Vec<_> = ranked.collect();
        let best = ranked.first().filter(|(_, fits)| *fits);
        let best = best.map(|(candidate, _)| *candidate);
        let rest = ranked.iter().skip(usize::from(best.is_some()));
        let rest = rest.map(|(candidate, _)| *candidate);
        found.push(Capability {
            use_case,
            best,
            alternatives: distinct(best, rest, limit),
            link: best.map_or(Link::Free, |it| it.link(&left, &integrations)),
        });
    }
    Ok(answer(&found, &integrations))
}

/// Returns alternatives, each name once.
fn distinct<'a>(
    best: Option<&'a Candidate>,
    rest: impl Iterator<Item = &'a Candidate>,
    limit: usize,
) -> Vec<&'a Candidate> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    let mut kept = Vec::new();
    for candidate in best.into_iter().chain(rest) {
        let name = (&*candidate.integration, &*candidate.name);
        if !seen.contains(&name) {
            seen.push(name);
            kept.push(candidate);
        }
    }
    kept.into_iter()
        .skip(usize::from(best.is_some()))
        .take(limit)
        .collect()
}

/// What was found for a use case.
struct Capability<'a> {
    use_case: &'a str,
    best: Option<&'a Candidate>,
    alternatives: Vec<&'a Candidate>,
    link: Link<'a>,
}

impl Capability<'_> {
    fn note(&self) -> Option<String> {
        let start = match (
            reads_like_an_event(self.use_case),
            reads_like_a_time(self.use_case),
        ) {
            (true, _) => Some("an event starts the flow: call `discover_triggers` for it"),
            (false, true) => Some("a time starts the flow: use `create_schedule` for it"),
            (false, false) => None,
        };
        match (start, self.best, self.link) {
            (Some(start), ..) => Some(start.to_owned()),
            (None, None, _) => Some(match self.alternatives.is_empty() {
                true => "nothing of the project does this: call the service with an `http` step".to_owned(),
                false => "nothing of the project does this: see the alternatives, or call the service with an `http` step".to_owned(),
            }),
            (None, Some(_), Link::Missing { integration, slug: None }) => Some(missing(integration)),
            (None, Some(_), _) => None,
        }
    }

    fn shown(&self) -> Json {
        let alternatives = self.alternatives.iter();
        let connection = self.best.map(|_| {
            json!({
                "state": self.link.state().name(),
                "slug": self.link.slug(),
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
        self.best.is_some() && self.link.state() == State::Ready
    }

    /// Returns what to do for what starts the flow, and with the tool.
    fn plan(&self) -> Vec<String> {
        let use_case = self.use_case;
        let start = if reads_like_an_event(use_case) {
            Some(format!(
                "{use_case}: find the event with `discover_triggers`"
            ))
        } else if reads_like_a_time(use_case) {
            Some(format!(
                "{use_case}: `create_schedule`, once the test has passed"
            ))
        } else {
            None
        };
        start.into_iter().chain(self.plan_of_tool()).collect()
    }

    fn plan_of_tool(&self) -> Option<String> {
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

/// Says what the project lacks for a use case.
fn missing(integration: &str) -> String {
    match integration == Need::Model.integration() {
        true => format!(
            "no model is set up: call `request_connection` with the provider that the person uses: `{integration}` or another, such as `anthropic`"
        ),
        false => format!("the project has no connection of the kind `{integration}`"),
    }
}

fn answer(found: &[Capability<'_>], integrations: &Integrations) -> Json {
    let links = || found.iter().map(|it| it.link);
    let used = |integration: &&Integration| {
        links().any(|link| matches!(link, Link::To(known) if known.slug == integration.slug))
    };
    let mut connections: Vec<Json> = integrations
        .0
        .iter()
        .filter(used)
        .map(Integration::shown)
        .collect();
    for link in links() {
        if let Link::Missing { integration, slug } = link {
            let shown = shown_missing(integration, slug);
            if !connections.contains(&shown) {
                connections.push(shown);
            }
        }
    }
    let missing = connections.iter().filter(|it| it.get("connect").is_some());
    let missing = missing.filter_map(|it| it["integration"].as_str());
    let mut plan: Vec<String> = missing
        .map(|name| {
            format!("request the connection `{name}`, and stop until the person has completed it")
        })
        .collect();
    plan.extend(found.iter().flat_map(Capability::plan));
    plan.push("commit the flow with `commit_revision`, then try it with `test_run`".to_owned());
    let mut notes = Vec::new();
    let is_lost = |it: &Capability<'_>| it.best.is_none() && !left_to_do(it.use_case).is_empty();
    if found.iter().any(is_lost) {
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
