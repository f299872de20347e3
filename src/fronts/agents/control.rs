//! Loop control as requests give it: choices of tools, rules for steps and stop conditions, checked against the tools of an agent.

use serde_json::{Map, Value as Json, json};

use super::body::{Body, Kind, Member, texts};
use super::error::ApiError;
use super::ids;

/// A tool that an agent may use: its id, and the names under which models see it; the id of a tool that the server adds is
/// empty. `github_*` stands for all names that begin so.
#[derive(Debug, Clone)]
pub struct Named {
    pub id: String,
    pub names: Vec<String>,
}

/// The tools of an agent.
#[derive(Debug, Clone, Default)]
pub struct Known(pub Vec<Named>);

/// The loop control of a generation, which keeps that of the agent that it started with.
#[derive(Debug, Clone, Default)]
pub struct Control {
    pub known: Known,
    /// `active_tool_ids` and `tool_choice` of the agent.
    pub own: Body,
}

/// The members of an agent that hold until a request overrides them.
pub const HELD: [&str; 2] = ["active_tool_ids", "tool_choice"];

impl Control {
    /// Returns it as the input of a run has it.
    pub fn to_json(&self) -> Json {
        let tools = self.known.0.iter();
        let tools: Vec<Json> = tools
            .map(|tool| json!({"id": tool.id, "names": tool.names}))
            .collect();
        json!({"tools": tools, "own": self.own.0})
    }

    /// Reads the loop control of a run; nothing if the run has none, because an earlier version started it.
    pub fn of_json(json: &Json) -> Option<Control> {
        let named = |tool: &Json| Named {
            id: tool["id"].as_str().unwrap_or_default().to_owned(),
            names: texts(tool.get("names")),
        };
        let tools = json.get("tools")?.as_array()?;
        let own = json.get("own").and_then(Json::as_object).cloned();
        Some(Control {
            known: Known(tools.iter().map(named).collect()),
            own: Body(own.unwrap_or_default()),
        })
    }

    /// Checks that what a request overrides goes together with what the agent sets.
    ///
    /// # Errors
    /// When it does not.
    pub fn check_overrides(&self, given: &Body) -> Result<(), ApiError> {
        let both = HELD.into_iter().filter_map(|name| {
            let value = given.get(name).or_else(|| self.own.get(name))?;
            Some((name.to_owned(), value.clone()))
        });
        self.known.options(&Body(both.collect())).map(|_| ())
    }
}

const RULE: &[Member] = &[
    Member::optional("active_tool_ids", Kind::Texts, "The tools of the step."),
    Member::required(
        "step",
        Kind::Int(1, 10_000),
        "The number of the step, counted from 1.",
    ),
    Member::optional(
        "tool_choice",
        Kind::TextOrObject,
        "How the model selects tools in the step.",
    ),
];
const DEFAULTS: &[Member] = &[
    Member::optional(
        "active_tool_ids",
        Kind::Texts,
        "The tools of all later steps.",
    ),
    Member::optional(
        "tool_choice",
        Kind::TextOrObject,
        "How the model selects tools in all later steps.",
    ),
];
const STOP: &[Member] = &[
    Member::required("tool_name", Kind::Text, "The name of the tool."),
    Member::required(
        "type",
        Kind::OneOf(&["hasToolCall"]),
        "The kind of the condition.",
    ),
];
const CHOICE: &[Member] = &[
    Member::optional("name", Kind::Text, "The name of the tool."),
    Member::optional("tool_name", Kind::Text, "The name of the tool."),
    Member::required("type", Kind::OneOf(&["tool"]), "`tool`."),
];

impl Known {
    fn has_name(&self, name: &str) -> bool {
        self.0.iter().any(|tool| {
            let mut names = tool.names.iter();
            names.any(|it| match it.strip_suffix('*') {
                Some(prefix) => name.starts_with(prefix),
                None => it == name,
            })
        })
    }

    /// Returns the names of the tools that the agent has without naming their ids: they are offered in every step.
    fn automatic(&self) -> impl Iterator<Item = String> {
        let tools = self.0.iter().filter(|tool| tool.id.is_empty());
        tools.flat_map(|tool| tool.names.clone())
    }

    /// Returns the names of tools by their ids.
    fn names_of(&self, ids: &[String], at: &str) -> Result<Vec<String>, ApiError> {
        let mut names = Vec::new();
        for id in ids {
            let key = ids::key_of(id);
            let tool = self.0.iter().find(|tool| ids::key_of(&tool.id) == key);
            let tool = tool.ok_or_else(|| {
                ApiError::invalid(format!(
                    "`{at}` has `{id}`, which `tool_ids` of the agent lacks"
                ))
            })?;
            names.extend(tool.names.iter().cloned());
        }
        Ok(names)
    }

    fn choice(&self, given: &Json, at: &str) -> Result<Json, ApiError> {
        if let Some(text) = given.as_str() {
            return match text {
                "auto" | "required" | "none" => Ok(json!(text)),
                other => Err(ApiError::invalid(format!(
                    "`{at}` must be auto, required, none or {{\"type\": \"tool\", \"tool_name\": ...}}, got `{other}`"
                ))),
            };
        }
        let body = Body::read(given.clone(), CHOICE)?;
        let (own, other) = (body.text("tool_name"), body.text("name"));
        if own.is_some() && other.is_some() && own != other {
            let message = format!("`{at}` names one tool in `tool_name` and another in `name`");
            return Err(ApiError::invalid(message));
        }
        let name = own.or(other);
        let name = name.ok_or_else(|| ApiError::invalid(format!("`{at}.tool_name` is missing")))?;
        match self.has_name(name) {
            true => Ok(json!({"tool": name})),
            false => Err(ApiError::invalid(format!(
                "`{at}` names the tool `{name}`, which the agent lacks"
            ))),
        }
    }

    /// Reads `tool_choice` and `active_tool_ids`, as options of the step.
    fn rule(&self, body: &Body, at: &str) -> Result<Map<String, Json>, ApiError> {
        let mut rule = Map::new();
        if let Some(choice) = body.get("tool_choice") {
            let choice = self.choice(choice, &format!("{at}tool_choice"))?;
            rule.insert("tool-choice".to_owned(), choice);
        }
        let ids = body.texts("active_tool_ids");
        if body.get("active_tool_ids").is_some() {
            let mut names = self.names_of(&ids, &format!("{at}active_tool_ids"))?;
            if !names.is_empty() {
                names.extend(self.automatic());
            }
            rule.insert("active-tools".to_owned(), json!(names));
        }
        let named = rule.get("tool-choice").and_then(|it| it.get("tool"));
        let active = texts(rule.get("active-tools"));
        if let Some(named) = named.and_then(Json::as_str)
            && !active.is_empty()
            && !active.iter().any(|it| match it.strip_suffix('*') {
                Some(prefix) => named.starts_with(prefix),
                None => it == named,
            })
        {
            return Err(ApiError::invalid(format!(
                "`{at}tool_choice` names `{named}`, which `{at}active_tool_ids` leaves out"
            )));
        }
        Ok(rule)
    }

    fn rules(&self, given: &[Json]) -> Result<Vec<Json>, ApiError> {
        let rule = |(idx, given): (usize, &Json)| {
            let body = Body::read(given.clone(), RULE)?;
            let mut rule = self.rule(&body, &format!("step_rules[{idx}]."))?;
            rule.insert("step".to_owned(), json!(body.int("step")));
            Ok(Json::Object(rule))
        };
        given.iter().enumerate().map(rule).collect()
    }

    /// Returns the loop control of a record or a request, as options of the `:agent` step.
    ///
    /// # Errors
    /// When a part is malformed, or names a tool that the agent lacks.
    pub fn options(&self, body: &Body) -> Result<Map<String, Json>, ApiError> {
        let mut options = self.rule(body, "")?;
        if body.get("step_rules").is_some() {
            let rules = self.rules(body.items("step_rules"))?;
            options.insert("step-rules".to_owned(), Json::Array(rules));
        }
        if body.get("stop_conditions").is_some() {
            let mut stops = Vec::new();
            for given in body.items("stop_conditions") {
                let stop = Body::read(given.clone(), STOP)?;
                let name = stop.text("tool_name").unwrap_or_default();
                if !self.has_name(name) {
                    return Err(ApiError::invalid(format!(
                        "`stop_conditions` names the tool `{name}`, which the agent lacks"
                    )));
                }
                stops.push(json!({"tool": name}));
            }
            options.insert("stop-when".to_owned(), Json::Array(stops));
        }
        Ok(options)
    }

    /// Returns what a submission of outputs changes, as the payload of the wait has it.
    ///
    /// # Errors
    /// As for [`Known::options`].
    pub fn submitted(&self, body: &Body) -> Result<Map<String, Json>, ApiError> {
        let mut payload = self.rule(body, "")?;
        if body.get("step_rules").is_some() {
            let rules = self.rules(body.items("step_rules"))?;
            payload.insert("step-rules".to_owned(), Json::Array(rules));
        }
        if let Some(given) = body.get("defaults") {
            let given = Body::read(given.clone(), DEFAULTS)?;
            let rule = self.rule(&given, "defaults.")?;
            payload.insert("defaults".to_owned(), Json::Object(rule));
        }
        Ok(payload)
    }
}
