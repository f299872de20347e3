//! One thing that a flow can use, and the connection that it needs for that.

use flowstone_project::search::rank::words;
use serde_json::{Value as Json, json};

use super::need::Need;
use super::state::{Integration, Integrations, State};

/// As much of a description is shown.
const DESCRIPTION: usize = 400;

/// What a candidate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Step,
    Packaged,
    Flow,
    Mcp,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Step => "step",
            Kind::Packaged => "packaged",
            Kind::Flow => "flow",
            Kind::Mcp => "mcp",
        }
    }

    /// Returns the value of `provider` that selects it.
    pub fn provider(self) -> &'static str {
        match self {
            Kind::Step | Kind::Packaged => "steps",
            Kind::Flow => "flows",
            Kind::Mcp => "mcp",
        }
    }
}

/// Something that a flow can use.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub kind: Kind,
    /// The connection, the flow, the server, or the step type that it belongs to.
    pub integration: String,
    pub name: String,
    pub description: String,
    pub input_schema: Json,
    /// The connection that it names.
    pub connection: Option<String>,
    /// The type of the step that performs it; `None` for flows and tools of servers.
    pub step: Option<String>,
    /// It is whatever its connection leads to, and is found by the name of that.
    pub is_connection: bool,
    /// A call, as source text.
    pub example: String,
    /// More of its names.
    pub(super) names: String,
    /// What it is also found by.
    pub(super) also: String,
}

/// The connection that a candidate uses.
#[derive(Debug, Clone, Copy)]
pub enum Link<'a> {
    /// It needs none.
    Free,
    To(&'a Integration),
    /// The project has none. A caller requests this integration; `slug` is what the candidate calls it.
    Missing {
        integration: &'a str,
        slug: Option<&'a str>,
    },
}

impl<'a> Link<'a> {
    pub fn state(self) -> State {
        match self {
            Link::Free => State::Ready,
            Link::To(known) => known.state,
            Link::Missing { .. } => State::NeedsInput,
        }
    }

    pub fn slug(self) -> Option<&'a str> {
        match self {
            Link::Free => None,
            Link::To(known) => Some(&known.slug),
            Link::Missing { slug, .. } => slug,
        }
    }
}

impl Candidate {
    /// Returns the connection that it uses for a use case.
    pub fn link<'a>(&'a self, use_case: &str, integrations: &'a Integrations) -> Link<'a> {
        if let Some(slug) = &self.connection {
            return match integrations.find(slug) {
                Some(known) => Link::To(known),
                None => Link::Missing {
                    integration: slug,
                    slug: Some(slug),
                },
            };
        }
        let step = self.step.as_deref();
        let Some(need) = step.and_then(|step| Need::of_use_case(step, use_case)) else {
            return Link::Free;
        };
        match integrations.best(need) {
            Some(known) => Link::To(known),
            None => Link::Missing {
                integration: need.integration(),
                slug: None,
            },
        }
    }

    /// Tells whether a use case names the connection that this is: it has a word of its slug, or its whole label.
    pub(super) fn is_named_in(&self, said: &[String]) -> bool {
        let slug = words(&self.integration);
        let label = words(&self.names);
        let is_said = |word: &String| said.contains(word);
        let is_labelled = !label.is_empty() && label.iter().all(is_said);
        self.is_connection && (slug.iter().any(is_said) || is_labelled)
    }

    /// Returns the tool of an answer.
    pub fn tool(&self) -> Json {
        let mut tool = json!({
            "type": self.kind.name(),
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
            "example": self.example,
        });
        if let Some(connection) = &self.connection {
            tool["connection"] = json!(connection);
        }
        tool
    }

    /// Returns it as an alternative.
    pub fn alternative(&self) -> Json {
        json!({
            "integration": self.integration,
            "name": self.name,
            "description": self.description,
        })
    }
}

/// Returns the beginning of a description.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(DESCRIPTION) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
