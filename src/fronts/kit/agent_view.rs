//! The one agent step of a flow's body as JSON, and changes of it written back into the text.
//!
//! Only literal values are in the view: `:inputs {:draft draft}` is code, and is neither shown nor changed. Whatever a change
//! does not touch stays as it is in the text, comments and layout included.

use std::ops::Range;

use flowstone_lang::reader::read_data;
use flowstone_lang::syntax::{NodeId, NodeKind, Tree};
use flowstone_lang::value::Value;
use flowstone_model::json::to_json;
use serde_json::{Map, Value as Json};

use super::error::KitError;

/// Why a text has no view of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoView {
    /// The text is not the map of a flow, or its body has another number of agent steps.
    NotOne { count: usize },
    /// The config of the step is not a map in the text.
    Computed,
}

/// Returns the literal settings of the agent step, with names such as `max_iterations`.
///
/// # Errors
/// When the body does not have exactly one agent step with a map.
pub fn read(text: &str) -> Result<Map<String, Json>, NoView> {
    let tree = Tree::parse(text);
    let config = config(&tree, text)?;
    let entries = entries(&tree, config).into_iter();
    let literal = entries.filter_map(|(key, value)| {
        let json = literal(&tree, text, value)?;
        Some((json_name(tree.text(text, key))?, json))
    });
    Ok(literal.collect())
}

/// Returns settings as the view has them: `instructions` may be given as `{"agents_md": text}`.
pub fn plain(agent: Json) -> Json {
    let Json::Object(mut members) = agent else {
        return agent;
    };
    if let Some(Json::Object(inner)) = members.get("instructions")
        && inner.len() == 1
        && let Some(text) = inner.get("agents_md").cloned()
    {
        members.insert("instructions".to_owned(), text);
    }
    Json::Object(members)
}

/// Finds the config of the one agent step.
fn config(tree: &Tree, text: &str) -> Result<NodeId, NoView> {
    let none = NoView::NotOne { count: 0 };
    let top = tree.forms(None).next().map(|id| tree.bare(id));
    let top = top.filter(|id| tree.node(*id).kind == NodeKind::Map);
    let body = entries(tree, top.ok_or(none)?)
        .into_iter()
        .find(|(key, _)| tree.text(text, *key) == ":flow")
        .map(|(_, value)| tree.node(value).range())
        .ok_or(none)?;
    let is_agent = |id: &NodeId| {
        let second = tree.form(*id, 1).map(|it| tree.text(text, it));
        tree.head(text, *id) == Some("flow/step") && second == Some(":agent")
    };
    let inside = |range: Range<usize>| body.start <= range.start && range.end <= body.end;
    let steps = tree.all().filter(|(_, node)| inside(node.range()));
    let steps: Vec<NodeId> = steps.map(|(id, _)| id).filter(is_agent).collect();
    let [step] = steps[..] else {
        return Err(NoView::NotOne { count: steps.len() });
    };
    let config = tree.form(step, 3);
    let config = config.filter(|id| tree.node(*id).kind == NodeKind::Map);
    config.ok_or(NoView::Computed)
}

/// Returns the keys and values of a map.
fn entries(tree: &Tree, map: NodeId) -> Vec<(NodeId, NodeId)> {
    let forms: Vec<NodeId> = tree.forms(Some(map)).collect();
    let pairs = forms.chunks_exact(2);
    pairs.map(|pair| (pair[0], pair[1])).collect()
}

/// Returns the name of a keyword in JSON.
fn json_name(keyword: &str) -> Option<String> {
    let name = keyword.strip_prefix(':')?;
    (!name.is_empty()).then(|| name.replace('-', "_"))
}

/// Returns the keyword of a name in JSON.
fn keyword(name: &str) -> String {
    format!(":{}", name.replace('_', "-"))
}

/// Returns the value of a literal; `None` if it is code.
fn literal(tree: &Tree, text: &str, id: NodeId) -> Option<Json> {
    if !is_literal(tree, text, id) {
        return None;
    }
    to_json(&read_data(tree.text(text, id)).ok()?)
        .ok()
        .map(renamed)
}

fn renamed(json: Json) -> Json {
    match json {
        Json::Object(members) => {
            let members = members.into_iter();
            let renamed = members.map(|(name, it)| (name.replace('-', "_"), renamed(it)));
            Json::Object(renamed.collect())
        }
        Json::Array(items) => items.into_iter().map(renamed).collect(),
        plain => plain,
    }
}

fn is_literal(tree: &Tree, text: &str, id: NodeId) -> bool {
    match tree.node(id).kind {
        NodeKind::Text | NodeKind::Number | NodeKind::Keyword => true,
        NodeKind::Symbol => matches!(tree.text(text, id), "true" | "false" | "nil"),
        NodeKind::Vector | NodeKind::Map | NodeKind::Set => {
            let mut forms = tree.forms(Some(id));
            forms.all(|form| is_literal(tree, text, form))
        }
        _ => false,
    }
}

/// Writes the settings that differ between two views into a text. `at` is the place of the view in the arguments.
///
/// # Errors
/// `out_of_scope` for a setting that is code, or a flow without a view; `invalid_arguments` for a name that is not that of a
/// keyword.
pub fn write(
    text: &str,
    was: &Map<String, Json>,
    is: &Map<String, Json>,
    at: &str,
) -> Result<String, KitError> {
    let mut text = text.to_owned();
    let gone = was.keys().filter(|name| !is.contains_key(*name));
    for name in gone {
        text = without(&text, name).map_err(|why| no_view(why, at))?;
    }
    for (name, value) in is {
        if was.get(name) != Some(value) {
            check_name(name, at)?;
            check_names(value, &format!("{at}/{name}"))?;
            text = with(&text, (name, value), at)?;
        }
    }
    Ok(text)
}

/// Checks the names in a value: they are written into the text as keywords.
fn check_names(value: &Json, at: &str) -> Result<(), KitError> {
    match value {
        Json::Object(members) => members.iter().try_for_each(|(name, inner)| {
            check_name(name, at)?;
            check_names(inner, &format!("{at}/{name}"))
        }),
        Json::Array(items) => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(idx, item)| check_names(item, &format!("{at}/{idx}")))
        }
        _ => Ok(()),
    }
}

fn check_name(name: &str, at: &str) -> Result<(), KitError> {
    match is_name(name) {
        true => Ok(()),
        false => Err(KitError::invalid(
            format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")),
            "a name of letters, digits, `_` and `-`, such as `max_iterations`",
            format!("`{name}` cannot be the name of a setting"),
        )),
    }
}

fn no_view(why: NoView, at: &str) -> KitError {
    let message = match why {
        NoView::NotOne { count } => format!(
            "the flow's body has {count} agent steps, and `agent` changes the only one: change `files` instead"
        ),
        NoView::Computed => {
            "the config of the agent step is code, not a map: change `files` instead".to_owned()
        }
    };
    KitError::out_of_scope(at, message)
}

/// Returns the text with one setting.
fn with(text: &str, (name, value): (&str, &Json), at: &str) -> Result<String, KitError> {
    let tree = Tree::parse(text);
    let config = config(&tree, text).map_err(|why| no_view(why, at))?;
    let found = entries(&tree, config)
        .into_iter()
        .find(|(key, _)| json_name(tree.text(text, *key)).as_deref() == Some(name));
    if let Some((_, old)) = found {
        if !is_literal(&tree, text, old) {
            return Err(KitError::out_of_scope(
                format!("{at}/{name}"),
                format!("`{name}` is computed by the flow's code: change `files` instead"),
            ));
        }
        let like = read_data(tree.text(text, old)).ok();
        let written = edn(value, like.as_ref());
        return Ok(spliced(text, tree.node(old).range(), &written));
    }
    let written = format!("{} {}", keyword(name), edn(value, None));
    let node = tree.node(config);
    let parts: Vec<NodeId> = tree.forms(Some(config)).collect();
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
        let at = node.start as usize + node.open as usize;
        return Ok(spliced(text, at..at, &written));
    };
    let is_tall = text[node.range()].contains('\n') || parts.len() > 2;
    let end = tree.node(*last).end as usize;
    let start = tree.node(*first).start as usize;
    let column = text[..start]
        .rsplit('\n')
        .next()
        .map_or(0, |line| line.chars().count());
    let written = match is_tall {
        true => format!("\n{}{written}", " ".repeat(column)),
        false => format!(" {written}"),
    };
    Ok(spliced(text, end..end, &written))
}

/// Returns the text without a setting.
fn without(text: &str, name: &str) -> Result<String, NoView> {
    let tree = Tree::parse(text);
    let config = config(&tree, text)?;
    let found = entries(&tree, config)
        .into_iter()
        .find(|(key, _)| json_name(tree.text(text, *key)).as_deref() == Some(name));
    let Some((key, value)) = found else {
        return Ok(text.to_owned());
    };
    let parts: Vec<NodeId> = tree.parts(Some(config)).collect();
    let place = parts.iter().position(|part| *part == key).unwrap_or(0);
    let before = place.checked_sub(1).map(|at| parts[at]);
    let blank = before.filter(|id| tree.node(*id).kind == NodeKind::Blank);
    let is_after_comment = place >= 2 && tree.node(parts[place - 2]).kind == NodeKind::Comment;
    let start = match blank {
        Some(blank) if !is_after_comment => tree.node(blank).start,
        _ => tree.node(key).start,
    };
    let range = start as usize..tree.node(value).end as usize;
    Ok(spliced(text, range, ""))
}

fn spliced(text: &str, range: Range<usize>, new: &str) -> String {
    [&text[..range.start], new, &text[range.end..]].concat()
}

/// Returns JSON as EDN. Texts become keywords where `like`, the value before, has keywords.
fn edn(value: &Json, like: Option<&Value>) -> String {
    match value {
        Json::Null => "nil".to_owned(),
        Json::Bool(flag) => flag.to_string(),
        Json::Number(number) => number.to_string(),
        Json::String(text) => match like {
            Some(Value::Keyword(_)) if is_name(text) => format!(":{text}"),
            _ => quoted(text),
        },
        Json::Array(items) => {
            let old = like.and_then(Value::as_vector);
            let first = old.and_then(|old| old.iter().next().cloned());
            let items = items.iter().map(|item| edn(item, first.as_ref()));
            format!("[{}]", items.collect::<Vec<_>>().join(" "))
        }
        Json::Object(members) => {
            let members = members.iter().map(|(name, inner)| {
                let key = keyword(name);
                let old = like.and_then(|like| like.get(key.trim_start_matches(':')));
                format!("{key} {}", edn(inner, old))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(" "))
        }
    }
}

/// Tells whether a text can be the name of a keyword.
fn is_name(text: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || "-_.*+!?".contains(char);
    let mut parts = text.split('/');
    parts.clone().count() <= 2
        && parts.all(|part| {
            part.starts_with(|char: char| char.is_ascii_alphabetic()) && part.chars().all(is_part)
        })
}

/// Returns a text as a literal. Line breaks stay line breaks, so that long instructions can be read.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            '\n' | '\t' => out.push(char),
            control if control.is_control() => {
                out += &format!("\\u{:04x}", u32::from(control));
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
    out
}
