//! The tools that a project has for graph agents: functions, marked flows and MCP servers.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::builtin::{self, Builtin};
use super::spec::{Audience, GraphSpec, McpServer, Mode, Overrides, Source, ToolRef};

/// The tools that a project has.
#[derive(Debug, Clone, Default)]
pub struct Known {
    pub functions: BTreeMap<String, FunctionTool>,
    /// The servers by id.
    pub servers: BTreeMap<String, Server>,
}

/// A function or flow of the project.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionTool {
    pub name: String,
    pub body: FunctionBody,
    /// JSON Schema of the input, with `properties`.
    pub input_schema: Json,
    /// Whether agents may call it.
    pub agent_tool: bool,
    pub description: String,
    pub mode: Mode,
    pub exposed_to: Audience,
}

/// The implementation of a function tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionBody {
    /// A Clojure function, as text.
    Code(String),
    /// A flow of the project, as a child run.
    Flow { slug: String },
}

/// A registered MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub id: String,
    pub name: String,
    pub reach: Reach,
    /// The registration's overrides of tools, by name. They only narrow.
    pub overrides: BTreeMap<String, Overrides>,
}

/// The address of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// A connection of the project's settings.
    Connection { name: String, is_program: bool },
    /// A URL, with the name of the secret that is sent as a bearer token.
    Address { url: String, secret: Option<String> },
}

/// A tool as a spec may use it: with the narrowest settings of the project and the spec.
#[derive(Debug, Clone)]
pub struct Tool<'a> {
    pub name: &'a str,
    pub origin: Origin<'a>,
    pub mode: Mode,
    pub exposed_to: Audience,
}

/// The source of a tool.
#[derive(Debug, Clone)]
pub enum Origin<'a> {
    Builtin(&'static Builtin),
    Function(&'a FunctionTool),
    Mcp(&'a Server),
}

/// The reason why a spec cannot use a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// The project has no such tool.
    Unknown,
    /// The function exists, but is not marked as a tool.
    Unmarked,
}

impl Known {
    /// Returns the tool of a reference.
    ///
    /// # Errors
    /// When the spec cannot use it.
    pub fn tool<'a>(
        &'a self,
        spec: &GraphSpec,
        reference: &'a ToolRef,
    ) -> Result<Tool<'a>, Missing> {
        let (origin, mode, exposed_to, overrides) = match reference.source {
            Source::Builtin => {
                let tool = builtin::find(&reference.name).ok_or(Missing::Unknown)?;
                (
                    Origin::Builtin(tool),
                    tool.mode,
                    tool.exposed_to,
                    Vec::new(),
                )
            }
            Source::Function => {
                let tool = self
                    .functions
                    .get(&reference.name)
                    .ok_or(Missing::Unknown)?;
                if !tool.agent_tool {
                    return Err(Missing::Unmarked);
                }
                (
                    Origin::Function(tool),
                    tool.mode,
                    tool.exposed_to,
                    Vec::new(),
                )
            }
            Source::Mcp => {
                let id = reference.server_id.as_deref().unwrap_or_default();
                let server = self.servers.get(id).ok_or(Missing::Unknown)?;
                let listed = spec.tools.mcp_servers.iter().find(|it| it.server_id == id);
                let of_spec =
                    listed.and_then(|it: &McpServer| it.tool_overrides.get(&reference.name));
                let overrides = [server.overrides.get(&reference.name), of_spec];
                let overrides = overrides.into_iter().flatten().copied().collect();
                (
                    Origin::Mcp(server),
                    Mode::ReadOnly,
                    Audience::EndUser,
                    overrides,
                )
            }
        };
        let own = Overrides {
            mode_override: reference.mode_override,
            exposed_to_override: reference.exposed_to_override,
        };
        let (mode, exposed_to) = narrowed(mode, exposed_to, overrides.iter().chain([&own]));
        Ok(Tool {
            name: &reference.name,
            origin,
            mode,
            exposed_to,
        })
    }
}

/// Applies overrides, which only narrow: approval is required if any override requires it, and the narrowest audience
/// remains.
fn narrowed<'a>(
    mode: Mode,
    exposed_to: Audience,
    overrides: impl Iterator<Item = &'a Overrides>,
) -> (Mode, Audience) {
    overrides.fold((mode, exposed_to), |(mode, exposed_to), given| {
        (
            given.mode_override.map_or(mode, |it| it.max(mode)),
            given
                .exposed_to_override
                .map_or(exposed_to, |it| it.min(exposed_to)),
        )
    })
}

impl Tool<'_> {
    /// Returns the source in the form of events.
    pub fn source(&self) -> Source {
        match self.origin {
            Origin::Builtin(_) => Source::Builtin,
            Origin::Function(_) => Source::Function,
            Origin::Mcp(_) => Source::Mcp,
        }
    }

    /// Tells whether a caller may see the tool.
    pub fn is_seen_by(&self, caller: Audience) -> bool {
        caller == Audience::DeveloperOnly || self.exposed_to == Audience::EndUser
    }
}

/// Returns a schema with `properties`, which providers require.
pub fn with_properties(schema: Option<&Json>) -> Json {
    let mut members = match schema {
        Some(Json::Object(members)) => members.clone(),
        _ => Map::new(),
    };
    members.entry("type").or_insert_with(|| json!("object"));
    members.entry("properties").or_insert_with(|| json!({}));
    Json::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: Option<Mode> = Some(Mode::ReadWrite);
    const READ: Option<Mode> = Some(Mode::ReadOnly);

    fn check(mode: Mode, given: &[Option<Mode>], expected: Mode) {
        let overrides: Vec<Overrides> = given
            .iter()
            .map(|mode_override| Overrides {
                mode_override: *mode_override,
                exposed_to_override: None,
            })
            .collect();
        let (found, _) = narrowed(mode, Audience::EndUser, overrides.iter());
        assert_eq!(found, expected, "{mode:?} {given:?}");
    }

    #[test]
    fn no_override_lets_a_tool_that_writes_run_unasked() {
        check(Mode::ReadWrite, &[READ], Mode::ReadWrite);
        check(Mode::ReadOnly, &[WRITE], Mode::ReadWrite);
        check(Mode::ReadOnly, &[WRITE, READ], Mode::ReadWrite);
        check(Mode::ReadOnly, &[None, READ], Mode::ReadOnly);
    }

    #[test]
    fn the_narrowest_audience_remains() {
        let narrow = Overrides {
            mode_override: None,
            exposed_to_override: Some(Audience::DeveloperOnly),
        };
        let wide = Overrides {
            exposed_to_override: Some(Audience::EndUser),
            ..narrow
        };
        let (_, found) = narrowed(
            Mode::ReadOnly,
            Audience::EndUser,
            [&narrow, &wide].into_iter(),
        );
        assert_eq!(found, Audience::DeveloperOnly);
        let (_, found) = narrowed(Mode::ReadOnly, Audience::DeveloperOnly, [&wide].into_iter());
        assert_eq!(found, Audience::DeveloperOnly);
    }

    #[test]
    fn a_schema_has_properties() {
        assert_eq!(
            with_properties(None),
            json!({"type": "object", "properties": {}})
        );
        let kept = json!({"type": "object", "properties": {"a": {}}});
        assert_eq!(with_properties(Some(&kept)), kept);
    }
}
