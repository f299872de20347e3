//! `:defer-tools` of an agent: tools whose descriptions and schemas the model gets when it asks for them.
//!
//! The model finds them with `tool_search`, and those that are found are offered from the next turn on. The search is
//! pure: it depends on the tools and the query alone.

use std::rc::Rc;

use flowstone_flow::diagnostic::nearest;
use flowstone_flow::flow::name_of;
use flowstone_flow::step::{FieldType, StepError};
use flowstone_lang::reader::read_data;
use flowstone_lang::value::Value;
use serde_json::json;

use super::notes::facts;
use super::tool::{Tool, ToolKind, ToolStep};
use super::tools::Shape;
use crate::json::items;

/// The form of `:defer-tools`.
pub(super) const FIELD: FieldType =
    FieldType::Either(&[FieldType::Bool, FieldType::List(&FieldType::Name)]);
/// The tool that finds tools.
pub(super) const SEARCH: &str = "tool_search";
/// Maximum number of tools that a search loads.
const MOST_FOUND: usize = 5;
/// Maximum number of names in the prompt.
const MOST_NAMES: usize = 60;
/// The step of a search returns what was found.
const CODE: &str = "(fn [input] {:tools (:tools input)})";

/// Returns the names of the tools to defer. `always`: names of tools that another option uses.
///
/// # Errors
/// E1304 when a name is not that of a tool that can be deferred.
pub(super) fn names(
    given: Option<&Value>,
    tools: &[Tool],
    always: &[Rc<str>],
) -> Result<Vec<Rc<str>>, StepError> {
    let is_free = |tool: &&Tool| !tool.kind.is_own();
    let free: Vec<Rc<str>> = tools
        .iter()
        .filter(is_free)
        .map(|tool| tool.name.clone())
        .collect();
    let chosen = match given {
        None | Some(Value::Bool(false)) => return Ok(Vec::new()),
        Some(Value::Bool(true)) => free,
        Some(given) => {
            let names = items(given).unwrap_or_default();
            let names: Vec<Rc<str>> = names.iter().filter_map(name_of).collect();
            if let Some(unknown) = names.iter().find(|name| !free.contains(name)) {
                return Err(unknown_tool(unknown, &free));
            }
            names
        }
    };
    let chosen = chosen.into_iter();
    Ok(chosen.filter(|name| !always.contains(name)).collect())
}

fn unknown_tool(name: &str, free: &[Rc<str>]) -> StepError {
    let message = format!("`:defer-tools` names `{name}`, which is not a tool of the agent");
    let error = StepError::config("E1304", message);
    match nearest(name, free.iter().map(|name| &**name)) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None if free.is_empty() => error.hint("it has no tools that can be deferred"),
        None => error.hint(format!("there are: {}", free.join(", "))),
    }
}

/// Returns the part of the system prompt about deferred tools.
pub(super) fn notice(names: &[Rc<str>]) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    let shown: Vec<&str> = names.iter().take(MOST_NAMES).map(|name| &**name).collect();
    let rest = names.len() - shown.len();
    let rest = match rest {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    Some(format!(
        "More tools can be loaded. Find them with `{SEARCH}`; those that it finds can be called in your next turn: {}{rest}.",
        shown.join(", ")
    ))
}

/// Returns the tool that finds deferred tools.
///
/// # Errors
/// E0836 when its schema cannot be made.
pub(super) fn tool(tools: &[Tool], names: &[Rc<str>]) -> Result<Tool, StepError> {
    let known: Vec<Known> = tools
        .iter()
        .filter(|tool| names.contains(&tool.name))
        .map(Known::of)
        .collect();
    let parameters = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": "Words for what the tool should do, or its name."},
        },
        "required": ["query"],
        "additionalProperties": false,
    });
    let bad = |error: String| {
        StepError::config(
            "E0836",
            format!("the schema of `{SEARCH}` is wrong: {error}"),
        )
    };
    let shape = Shape::new(SEARCH, &parameters).map_err(bad)?;
    let code = read_data(CODE).map_err(|error| bad(error.to_string()))?;
    Ok(Tool {
        name: SEARCH.into(),
        step: SEARCH.into(),
        kind: ToolKind::Search,
        description: format!(
            "Finds tools by words for what they do, and loads up to {MOST_FOUND} of them."
        ),
        parameters,
        ops: Vec::new(),
        call: Rc::new(move |given| {
            let arguments = shape.read(given)?;
            let query = arguments.get("query").and_then(Value::as_str);
            let found = found(&known, query.unwrap_or_default());
            let found = found.into_iter().map(Known::value);
            let input = facts([("tools", Value::vector(found))]);
            Ok(ToolStep {
                kind: "function".into(),
                config: facts([("code", code.clone()), ("input", input)]),
            })
        }),
        mutates: Rc::new(|_| false),
        needs_approval: Rc::new(|_| false),
        answer: Rc::new(|_, value| value),
    })
}

/// Returns the names in the result of a search.
pub(super) fn loaded(result: &Value) -> Vec<Rc<str>> {
    let tools = result.get("tools").and_then(items).unwrap_or_default();
    let names = tools.iter().filter_map(|tool| name_of(tool.get("name")?));
    names.collect()
}

/// A tool that can be found.
struct Known {
    name: Rc<str>,
    description: String,
    /// The words of the name and of the description, in lower case.
    in_name: Vec<String>,
    in_description: Vec<String>,
}

impl Known {
    fn of(tool: &Tool) -> Known {
        let about = [tool.description.as_str(), &tool.ops.join(" ")].join(" ");
        Known {
            name: tool.name.clone(),
            in_name: words(&tool.name),
            in_description: words(&about),
            description: tool.description.clone(),
        }
    }

    fn value(&self) -> Value {
        facts([
            ("name", Value::from(&*self.name)),
            ("description", Value::from(self.description.as_str())),
        ])
    }

    /// Returns how well the tool fits; 0 if not at all. A word fits one that begins with it, so `invoice` finds
    /// `invoices`.
    fn score(&self, query: &[String]) -> usize {
        let fits = |words: &[String], word: &str| {
            let is_like = |known: &String| {
                known.starts_with(word) || (known.len() > 3 && word.starts_with(known.as_str()))
            };
            words.iter().any(is_like)
        };
        let score = |word: &String| {
            // Short words of a sentence, such as `of`, say nothing about a tool.
            let in_description = word.len() > 2 && fits(&self.in_description, word);
            2 * usize::from(fits(&self.in_name, word)) + usize::from(in_description)
        };
        query.iter().map(score).sum()
    }
}

fn found<'k>(known: &'k [Known], query: &str) -> Vec<&'k Known> {
    let exact = known.iter().find(|it| *it.name == *query.trim());
    if let Some(exact) = exact {
        return vec![exact];
    }
    let query = words(query);
    let scored = known.iter().map(|it| (it.score(&query), it));
    let mut scored: Vec<(usize, &Known)> = scored.filter(|(score, _)| *score > 0).collect();
    // The order of equal ones is that of the tools.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let found = scored.into_iter().take(MOST_FOUND);
    found.map(|(_, it)| it).collect()
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|char: char| !char.is_alphanumeric());
    let words = words.filter(|word| word.chars().count() > 1);
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: &str, description: &str) -> Known {
        Known {
            name: name.into(),
            in_name: words(name),
            in_description: words(description),
            description: description.to_owned(),
        }
    }

    #[test]
    fn the_best_fitting_tools_are_found() {
        let known = [
            known("crm_contact", "Looks up a customer by e-mail."),
            known("crm_invoice", "Lists the invoices of a customer."),
            known("weather", "Tells the weather of a place."),
            known("mail_send", "Sends an e-mail."),
        ];
        for (query, expected) in [
            ("invoices of a customer", vec!["crm_invoice", "crm_contact"]),
            ("weather", vec!["weather"]),
            ("mail", vec!["mail_send", "crm_contact"]),
            ("crm_contact", vec!["crm_contact"]),
            ("translate", vec![]),
            ("", vec![]),
        ] {
            let names: Vec<&str> = found(&known, query).iter().map(|it| &*it.name).collect();
            assert_eq!(names, expected, "{query}");
        }
    }
}
