//! `:tools` of a call: the tools that the model may call, and whether they are executed here or by the flow.

use flowstone_flow::flow::name_of;
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;
use serde_json::json;

use super::call::{Tool, ToolChoice};
use super::messages::as_json;
use crate::fields::{Fields, listed};
use crate::{json as convert, schema};

/// Keys of `:tools` that name tools to be executed.
const EXECUTED: &[&str] = &[
    "agents",
    "allowed",
    "breyta",
    "mcp",
    "require",
    "steps",
    "workspace",
];

/// Limits of the loop, which only have an effect if tools are executed.
pub(super) const LIMITS: &[&str] = &[
    "max-iterations",
    "max-repeated-tool-calls",
    "max-tool-calls",
];

/// Tells whether an `:llm` config has tools to be executed, so that the step is a loop of several calls.
pub fn executes(config: &Value) -> bool {
    let has = |map: &Value, key: &str| map.get(key).is_some_and(|it| !it.is_nil());
    if has(config, "available-steps") {
        return true;
    }
    let Some(tools @ Value::Map(_)) = config.get("tools") else {
        return false;
    };
    let is_execute = tools
        .get("mode")
        .and_then(name_of)
        .is_some_and(|mode| &*mode == "execute");
    is_execute || EXECUTED.iter().any(|key| has(tools, key))
}

/// The tools of a call, none of which is executed here.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    pub tools: Vec<Tool>,
    pub choice: ToolChoice,
}

/// Reads the tools that the model may call.
pub(super) fn read(fields: Fields<'_>) -> Result<Definitions, StepError> {
    let limits = |given: Fields<'_>| {
        LIMITS
            .iter()
            .copied()
            .filter(|key| given.has(key))
            .collect()
    };
    let mut unused: Vec<&str> = limits(fields);
    let Some(value) = fields.get("tools") else {
        idle_limits(&unused)?;
        return Ok(Definitions::default());
    };
    let (definitions, chosen) = match value {
        Value::Map(_) => {
            let tools = Fields::nested(":tools", value)?;
            unused.extend(limits(tools));
            idle_limits(&unused)?;
            tools.only(&["choice", "definitions", "mode"])?;
            mode(tools)?;
            (
                tools.get("definitions").and_then(convert::items),
                Choice::read(tools)?,
            )
        }
        list => {
            idle_limits(&unused)?;
            (convert::items(list), Choice::Plain(ToolChoice::Auto))
        }
    };
    let definitions = definitions.ok_or_else(|| {
        unfit("`:tools` takes a vector of definitions, or a map with `:definitions`")
            .hint("`:allowed`, `:steps`, `:agents`, `:mcp` name tools that are executed")
    })?;
    let tools = definitions
        .iter()
        .map(tool)
        .collect::<Result<Vec<_>, _>>()?;
    for (at, tool) in tools.iter().enumerate() {
        if tools[..at].iter().any(|other| other.name == tool.name) {
            return Err(unfit(format!("`:tools` defines `{}` twice", tool.name)));
        }
    }
    let choice = chosen.among(&tools)?;
    if tools.is_empty() && choice == ToolChoice::Required {
        return Err(unfit("`:tools :choice :required` needs a tool to call"));
    }
    Ok(Definitions { tools, choice })
}

fn unfit(message: impl Into<String>) -> StepError {
    StepError::config("E0809", message)
}

fn idle_limits(given: &[&str]) -> Result<(), StepError> {
    if given.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{} needs tools that are executed, but the call has none",
        listed(given)
    );
    Err(StepError::config("E0820", message).hint(
        "name some: `:tools {:mode :execute :allowed [\"files\"]}` or `:available-steps [:files]`",
    ))
}

fn mode(tools: Fields<'_>) -> Result<(), StepError> {
    match tools.name("mode")?.as_deref() {
        None | Some("return") => Ok(()),
        Some(other) => Err(unfit(format!("`:tools` has no `:mode :{other}`")).hint(
            "`:execute` runs the tools in a loop, `:return` hands the model's calls to the flow",
        )),
    }
}

/// `:choice`, before the tools are known.
enum Choice {
    Plain(ToolChoice),
    /// The name of a tool.
    Named(String),
}

impl Choice {
    fn read(tools: Fields<'_>) -> Result<Choice, StepError> {
        if let Some(given @ Value::Map(_)) = tools.get("choice") {
            let given = Fields::nested(":choice", given)?;
            given.only(&["tool"])?;
            if let Some(name) = given.name("tool")? {
                return Ok(Choice::Named(name.to_string()));
            }
        }
        Ok(Choice::Plain(match tools.name("choice")?.as_deref() {
            None | Some("auto") => ToolChoice::Auto,
            Some("required") => ToolChoice::Required,
            Some("none") => ToolChoice::None,
            Some(other) => {
                return Err(unfit(format!("`:tools` has no `:choice :{other}`"))
                    .hint("there are `:auto`, `:required`, `:none` and `{:tool \"name\"}`"));
            }
        }))
    }

    fn among(self, tools: &[Tool]) -> Result<ToolChoice, StepError> {
        match self {
            Choice::Plain(choice) => Ok(choice),
            Choice::Named(name) => {
                let found = tools.iter().position(|tool| tool.name == name);
                let idx = found.ok_or_else(|| {
                    unfit(format!(
                        "`:choice` names the tool `{name}`, which `:tools` does not define"
                    ))
                })?;
                Ok(ToolChoice::Tool(idx))
            }
        }
    }
}

fn tool(definition: &Value) -> Result<Tool, StepError> {
    let fields = Fields::nested("a definition of :tools", definition)?;
    fields.only(&[
        "description",
        "input-schema",
        "name",
        "parameters",
        "params",
    ])?;
    let name = fields
        .name("name")?
        .ok_or_else(|| unfit("a definition of `:tools` needs a `:name`"))?;
    let fits = !name.is_empty()
        && name.len() <= 64
        && name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it));
    if !fits {
        return Err(unfit(format!("`{name}` cannot be the name of a tool"))
            .hint("use up to 64 letters, digits, `_` and `-`"));
    }
    let form = ["input-schema", "parameters", "params"]
        .iter()
        .find_map(|key| fields.get(key));
    let parameters = match form {
        None => json!({"type": "object", "properties": {}}),
        Some(form @ Value::Map(_)) => as_json(":parameters", form)?,
        Some(form) => {
            let parsed = schema::parse(form).map_err(|error| {
                StepError::config("E0815", format!("the schema of the tool `{name}`: {error}"))
            })?;
            schema::to_json_schema(&parsed)
        }
    };
    Ok(Tool {
        name: name.to_string(),
        description: fields.text("description")?.map(str::to_string),
        parameters,
    })
}
