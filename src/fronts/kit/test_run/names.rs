//! The names of tools: those that a flow's text says before it runs, and how an expectation finds one of them.

use flowstone_flow::flow::{Flow, name_of};
use flowstone_flow::tools;
use flowstone_lang::value::Value;
use flowstone_model::json::items;

/// What comes between the name of a server and that of its tool.
const SEPARATOR: &str = "__";
/// Maximum number of forms of a flow that are read.
const MOST_FORMS: usize = 100_000;

/// A tool by all its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The name for models, or the id of the step.
    pub name: String,
    /// The names on its MCP server and of the packaged step.
    pub ids: Vec<String>,
}

/// What a name finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    None,
    One(String),
    /// Sorted.
    Several(Vec<String>),
}

/// Finds the tool of a name: by its exact name, then by its other names, then by what follows `__` in its name.
pub fn find(given: &str, tools: &[Named]) -> Match {
    let suffix = format!("{SEPARATOR}{given}");
    let rules: [&dyn Fn(&Named) -> bool; 3] = [
        &|tool| tool.name == given,
        &|tool| tool.ids.iter().any(|id| id == given),
        &|tool| tool.name.ends_with(&suffix),
    ];
    for rule in rules {
        let found = tools.iter().filter(|tool| rule(tool));
        let mut names: Vec<String> = found.map(|tool| tool.name.clone()).collect();
        names.sort();
        names.dedup();
        match names.len() {
            0 => {}
            1 => return Match::One(names.remove(0)),
            _ => return Match::Several(names),
        }
    }
    Match::None
}

/// Returns the tools that the text of a flow names: those of its agents and models, and its steps.
pub fn known(flow: &Flow) -> Vec<Named> {
    let mut known = Known {
        flow,
        tools: Vec::new(),
    };
    for step in flow.packaged.iter().filter(|step| step.is_agent()) {
        known.of_config(&step.defaults);
    }
    let functions = flow.functions.iter();
    let functions = functions.map(|function| function.code.clone());
    let mut open: Vec<Value> = functions.chain([flow.body.clone()]).collect();
    let mut count = 0;
    while let Some(form) = open.pop() {
        count += 1;
        if count > MOST_FORMS {
            break;
        }
        if let Some(parts) = step_call(&form) {
            known.step(&parts);
        }
        open.extend(parts_of(&form));
    }
    known.tools
}

/// Returns the parts of a form that may be forms.
fn parts_of(form: &Value) -> Vec<Value> {
    match form {
        Value::List(list) => list.iter().cloned().collect(),
        Value::Map(map) => {
            let entries = map.iter();
            entries
                .flat_map(|(key, value)| [key.clone(), value.clone()])
                .collect()
        }
        Value::Vector(_) | Value::Set(_) => items(form).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Returns the arguments of a call of `flow/step`.
fn step_call(form: &Value) -> Option<Vec<Value>> {
    let Value::List(list) = form else {
        return None;
    };
    let mut parts = list.iter();
    let head = parts.next()?;
    let is_step = head.as_symbol().is_some() && head.to_string() == "flow/step";
    is_step.then(|| parts.cloned().collect())
}

struct Known<'a> {
    flow: &'a Flow,
    tools: Vec<Named>,
}

impl Known<'_> {
    fn add(&mut self, name: &str, ids: Vec<String>) {
        match self.tools.iter_mut().find(|tool| tool.name == name) {
            Some(tool) => {
                let new = ids.into_iter().filter(|id| !tool.ids.contains(id));
                let new: Vec<String> = new.collect();
                tool.ids.extend(new);
            }
            None => self.tools.push(Named {
                name: name.to_owned(),
                ids,
            }),
        }
    }

    fn step(&mut self, parts: &[Value]) {
        let kind = parts.first().and_then(name_of).unwrap_or_default();
        let kind = kind.trim_start_matches(':').to_owned();
        let packaged = self.flow.packaged_step(&kind).cloned();
        let id = parts.get(1).filter(|id| id.as_map().is_none());
        let id = id.and_then(name_of);
        match (&packaged, id) {
            (Some(step), _) => {
                let name = step.tool_name.to_string();
                self.add(&name, vec![step.id.to_string()]);
            }
            (None, Some(id)) => self.add(id.trim_start_matches(':'), Vec::new()),
            (None, None) => {}
        }
        if let Some(config) = parts.iter().find(|part| part.as_map().is_some()) {
            self.of_config(config);
        }
    }

    /// Adds the tools of an agent or a model.
    fn of_config(&mut self, config: &Value) {
        let flow = self.flow;
        let (envelope, _) = tools::read(flow, config, true);
        for id in envelope.steps.iter().chain(&envelope.agents) {
            if let Some(step) = flow.packaged_step(id) {
                self.add(&step.tool_name, vec![step.id.to_string()]);
            }
        }
        for name in tools::tool_names(flow, &envelope) {
            self.add(&name, Vec::new());
        }
        for id in &envelope.mcp {
            let Some((adapter, tool)) = tools::mcp::find(flow, id) else {
                continue;
            };
            let all = adapter.allow_tools.iter().flatten().map(|tool| &**tool);
            let only = tool.into_iter();
            let named: Vec<&str> = match tool {
                Some(_) => only.collect(),
                None => all.collect(),
            };
            for tool in named {
                self.add(&adapter.model_name(tool), vec![tool.to_owned()]);
            }
        }
        for called in &envelope.flows {
            let name = tools::flows::model_name(called);
            self.add(&name, vec![called.to_string()]);
        }
        for key in ["client-tools", "http-tools", "platform-tools"] {
            for tool in config.get(key).and_then(items).unwrap_or_default() {
                if let Some(name) = tool.get("name").and_then(name_of) {
                    self.add(&name, Vec::new());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, ids: &[&str]) -> Named {
        Named {
            name: name.to_owned(),
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        }
    }

    #[test]
    fn an_exact_name_comes_before_others() {
        let tools = [
            named("slack__SEND_MESSAGE", &["SEND_MESSAGE"]),
            named("SEND_MESSAGE", &[]),
        ];
        let one = |name: &str| Match::One(name.to_owned());
        assert_eq!(find("SEND_MESSAGE", &tools), one("SEND_MESSAGE"));
        assert_eq!(
            find("SEND_MESSAGE", &tools[..1]),
            one("slack__SEND_MESSAGE")
        );
        assert_eq!(find("send_message", &tools), Match::None);
        assert_eq!(find("MESSAGE", &tools), Match::None);
    }

    #[test]
    fn two_of_a_rule_are_ambiguous() {
        let tools = [named("b__x", &[]), named("a__x", &[]), named("c", &["y"])];
        let both = Match::Several(vec!["a__x".to_owned(), "b__x".to_owned()]);
        assert_eq!(find("x", &tools), both);
        assert_eq!(find("y", &tools), Match::One("c".to_owned()));
    }
}
