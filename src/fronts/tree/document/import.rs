//! Imports a document of a run that this project's journal does not have, as a new run.

use flowstone_engine::ids::RunId;
use flowstone_lang::value::Value;
use flowstone_model::json::from_json_with_string_keys;
use serde_json::{Map, Value as Json};

use super::super::compile;
use super::super::driver::{self, Trees};
use super::super::error::TreeError;
use super::super::handle::Handle;
use super::super::node::{Composite, Dialect, Node, Step, Tree};
use super::{SCHEMA_VERSION, read};

/// Maximum depth of the nodes of a document.
const DEPTH_MAX: usize = 48;
const STATUSES: &[&str] = &["complete", "failed", "running"];
const PHASES: &[&str] = &["evaluating", "idle", "performing", "protocol"];

/// Starts a run at the position of a document.
///
/// # Errors
/// [`TreeError::NotFound`] if there is no document, and [`TreeError::BadDocument`] if it is malformed.
pub(in super::super) async fn import(
    trees: &Trees<'_>,
    handle: &Handle,
) -> Result<RunId, TreeError> {
    let missing = || TreeError::NotFound {
        uri: handle.uri.clone(),
    };
    let document = read(trees, handle)?.ok_or_else(missing)?;
    let (tree, from) = parsed(&document).map_err(|why| TreeError::BadDocument {
        uri: handle.uri.clone(),
        why,
    })?;
    let text = compile::flow_text(&tree, trees.engine.settings());
    let tree_uri = document["tree_uri"].as_str().unwrap_or_default();
    let has_gate = document["protocol_accepted"] == Json::Bool(false) || had_gate(&document);
    let input = driver::input(has_gate, &handle.uri, tree_uri, Some(("from", from)));
    let external = trees.external_id(handle);
    let run = trees.begin(&text, input, external, None).await?;
    let Some(run) = run else {
        return Err(missing());
    };
    let position = trees.settle(&run).await?;
    super::write(trees, handle, &position, None).await?;
    Ok(run)
}

fn had_gate(document: &Json) -> bool {
    let trace = document["trace"].as_array();
    trace.is_some_and(|trace| trace.iter().any(|entry| entry["kind"] == "protocol"))
}

/// Reads a document: its tree, and the initial state of the flow.
fn parsed(document: &Json) -> Result<(Tree, Value), String> {
    if document["schema_version"].as_u64() != Some(SCHEMA_VERSION) {
        let found = &document["schema_version"];
        return Err(format!(
            "schema_version is {found}, and this build reads {SCHEMA_VERSION}"
        ));
    }
    let root = node(&document["tree"], 0).map_err(|why| format!("tree: {why}"))?;
    let object = |place: &Json, name: &str| match place {
        Json::Object(members) => Ok(members.clone()),
        Json::Null => Ok(Map::new()),
        _ => Err(format!("{name} must be a map")),
    };
    let one_of = |name: &str, known: &[&str]| match document[name].as_str() {
        Some(text) if known.contains(&text) => Ok(text.to_owned()),
        _ => Err(format!("{name} must be one of {}", known.join(", "))),
    };
    let status = one_of("status", STATUSES)?;
    let phase = one_of("phase", PHASES)?;
    let state = &document["tree"]["state"];
    let tree = Tree {
        name: root.name().to_owned(),
        description: None,
        dialect: Dialect::Bare,
        var: object(&state["var"], "tree.state.var")?,
        constants: object(&document["const"], "const")?,
        root,
    };
    let cursor = document["cursor"].as_str().ok_or("cursor must be a text")?;
    let at = match phase.as_str() {
        "evaluating" | "performing" => Some(open_place(&tree.root, &phase, cursor)?),
        _ => None,
    };
    let data =
        |members: &Map<String, Json>| from_json_with_string_keys(&Json::Object(members.clone()));
    let runtime = &document["runtime"];
    let var = object(&document["var"], "var")?;
    if let Some(key) = super::super::scope::refused_key(&document["var"]) {
        return Err(format!("var has the key `{key}`, which is refused"));
    }
    super::super::scope::check_store(&document["var"]).map_err(|error| error.to_string())?;
    let mut from = vec![
        ("status", Value::from(status.as_str())),
        ("phase", Value::from(phase.as_str())),
        ("cursor", Value::from(cursor)),
        (
            "accepted",
            Value::Bool(document["protocol_accepted"] != Json::Bool(false)),
        ),
        ("var", data(&var)),
        ("node-status", statuses(&runtime["node_status"])?),
        ("step-index", counts(&runtime["step_index"], "step_index")?),
        (
            "retry-count",
            counts(&runtime["retry_count"], "retry_count")?,
        ),
        ("trace", trace(&document["trace"])?),
    ];
    from.extend(at.map(|at| ("at", at)));
    let from = from.into_iter();
    let from = Value::map(from.map(|(key, value)| (Value::keyword(key), value)));
    Ok((tree, from))
}

fn node(json: &Json, depth: usize) -> Result<Node, String> {
    if depth > DEPTH_MAX {
        return Err(format!("is deeper than {DEPTH_MAX} nodes"));
    }
    let text = |key: &str| match json[key].as_str() {
        Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
        _ => Err(format!("a node has no `{key}`")),
    };
    let list = |key: &str| match json[key].as_array() {
        Some(items) if !items.is_empty() => Ok(items.clone()),
        _ => Err(format!("a node has no `{key}`")),
    };
    let kind = text("type")?;
    if kind == "ref" {
        return Ok(Node::Cycle {
            reference: text("ref")?,
        });
    }
    let name = text("name")?;
    let retries = match &json["retries"] {
        Json::Null => 0,
        given => {
            let given = given.as_u64().and_then(|it| u32::try_from(it).ok());
            given
                .filter(|it| *it <= 10_000)
                .ok_or("`retries` must be a whole number to 10000")?
        }
    };
    if kind == "action" {
        let steps = list("steps")?;
        return Ok(Node::Action {
            name,
            retries,
            steps: steps.iter().map(step).collect::<Result<_, _>>()?,
        });
    }
    let composite = Composite::NAMES.iter().find(|(_, known)| *known == kind);
    let (composite, _) = composite.ok_or_else(|| format!("`{kind}` is not a type of node"))?;
    let children = list("children")?;
    Ok(Node::Composite {
        kind: *composite,
        name,
        retries,
        children: children
            .iter()
            .map(|child| node(child, depth + 1))
            .collect::<Result<_, _>>()?,
    })
}

fn step(json: &Json) -> Result<Step, String> {
    match (
        json["kind"].as_str(),
        json["expression"].as_str(),
        json["instruction"].as_str(),
    ) {
        (Some("evaluate"), Some(text), _) => Ok(Step::Evaluate(text.to_owned())),
        (Some("instruct"), _, Some(text)) => Ok(Step::Instruct(text.to_owned())),
        _ => Err("a step has no `kind` with its text".to_owned()),
    }
}

/// Reads the position of the open request: `{"path":[0,1],"step":0}`.
fn open_place(root: &Node, phase: &str, cursor: &str) -> Result<Value, String> {
    let wrong = || format!("cursor `{cursor}` names no step of phase {phase}");
    let parsed: Json = serde_json::from_str(cursor).map_err(|_| wrong())?;
    let path = parsed["path"].as_array().ok_or_else(wrong)?;
    let step = parsed["step"].as_u64().ok_or_else(wrong)?;
    let mut found = root;
    let mut keys = Vec::new();
    for idx in path {
        let idx = idx.as_u64().and_then(|idx| usize::try_from(idx).ok());
        let idx = idx.ok_or_else(wrong)?;
        found = match found {
            Node::Composite { children, .. } => children.get(idx).ok_or_else(wrong)?,
            Node::Action { .. } | Node::Cycle { .. } => return Err(wrong()),
        };
        keys.push(idx.to_string());
    }
    let steps = match found {
        Node::Action { steps, .. } => steps,
        Node::Composite { .. } | Node::Cycle { .. } => return Err(wrong()),
    };
    let idx = usize::try_from(step).map_err(|_| wrong())?;
    match (steps.get(idx), phase) {
        (Some(Step::Evaluate(_)), "evaluating") | (Some(Step::Instruct(_)), "performing") => {}
        _ => return Err(wrong()),
    }
    Ok(Value::map([
        (Value::keyword("path"), Value::from(keys.join("."))),
        (Value::keyword("step"), Value::Int(step.cast_signed())),
    ]))
}

fn statuses(json: &Json) -> Result<Value, String> {
    let wrong = || "runtime.node_status must map paths to success or failure".to_owned();
    let members = json.as_object().ok_or_else(wrong)?;
    let entries = members.iter().map(|(path, status)| match status.as_str() {
        Some(status @ ("success" | "failure")) => {
            Ok((Value::from(path.as_str()), Value::from(status)))
        }
        _ => Err(wrong()),
    });
    Ok(Value::map(entries.collect::<Result<Vec<_>, _>>()?))
}

fn counts(json: &Json, name: &str) -> Result<Value, String> {
    let wrong = || format!("runtime.{name} must map paths to whole numbers");
    let members = json.as_object().ok_or_else(wrong)?;
    let entries = members.iter().map(|(path, count)| {
        let count = count.as_u64().and_then(|it| i64::try_from(it).ok());
        Ok((
            Value::from(path.as_str()),
            Value::Int(count.ok_or_else(wrong)?),
        ))
    });
    Ok(Value::map(entries.collect::<Result<Vec<_>, String>>()?))
}

/// Reads the entries of a trace, whose members are texts.
fn trace(json: &Json) -> Result<Value, String> {
    let wrong = || "trace must be a list of entries with texts".to_owned();
    let entries = json.as_array().ok_or_else(wrong)?;
    let is_entry = |entry: &Json| {
        let members = entry.as_object();
        members.is_some_and(|members| members.values().all(Json::is_string))
    };
    match entries.iter().all(is_entry) {
        true => Ok(flowstone_model::json::from_json(json)),
        false => Err(wrong()),
    }
}
