//! Compiles a tree to the flow that runs it, as text that a person can read and change.

use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use flowstone_model::codec;
use flowstone_model::duration;
use flowstone_model::json::from_json_with_string_keys;
use serde_json::{Map, Value as Json};

use super::node::{Node, Step, Tree};

/// How long one wait for the driver lasts before it is opened again, if the project allows that long.
const TIMEOUT: &str = "30d";
/// The input with start values of `$VAR`.
pub(super) const VAR_INPUT: &str = "var";
/// The column at which lines are wrapped.
const COLUMNS: usize = 110;

/// Returns the text of the flow that runs a tree. `settings`: those of the project, which may bound how long a wait lasts.
pub fn flow_text(tree: &Tree, settings: &Value) -> String {
    text_of(tree, settings, None)
}

/// As [`flow_text`], for a tree that other flows call. `file`: its path from the project's folder, which the documents of its
/// runs name.
pub(super) fn called_flow_text(tree: &Tree, settings: &Value, file: &str) -> String {
    text_of(tree, settings, Some(file))
}

fn text_of(tree: &Tree, settings: &Value, file: Option<&str>) -> String {
    let slug = flow_slug(tree);
    let name = edn(&Value::from(tree.name.as_str()));
    let description = match &tree.description {
        Some(text) => format!("\n :description {}", edn(&Value::from(text.as_str()))),
        None => String::new(),
    };
    let tree_uri = match file {
        Some(file) => format!(" :default {}", edn(&Value::from(file))),
        None => String::new(),
    };
    let data = data_text(tree, 23);
    let timeout = edn(&Value::from(timeout(settings)));
    format!(
        "{{:slug :{slug}
 :name {name}{description}
 :invocations {{:default {{:inputs [{{:name :gate :type :boolean :default false}}
                                   {{:name :handle :type :string}}
                                   {{:name :tree-uri :type :string{tree_uri}}}
                                   {{:name :from :type :any}}
                                   {{:name :{VAR_INPUT} :type :any}}]}}}}
 :flow '(let [tree (quote {data})
              {{:keys [gate from {VAR_INPUT}]}} (flow.tree/inputs (flow/input))
              tree (flow.tree/with-var tree {VAR_INPUT})]
          (loop [state (flow.tree/start tree {{:gate gate :from from}})]
            (when-some [{{:keys [name data]}} (:event state)]
              (flow/emit name data))
            (if (flow.tree/over? state)
              (flow.tree/result state)
              (recur (flow.tree/answered
                       tree
                       state
                       (flow/step :wait :answer (flow.tree/question state {timeout})))))))}}
"
    )
}

/// Returns the tree in the text of a flow that [`flow_text`] wrote.
pub(super) fn tree_of(text: &str) -> Option<Value> {
    let forms = Session::new().read("tree", text).ok()?;
    let items = |value: &Value| flowstone_model::json::items(value);
    let body = items(forms.first()?.get("flow")?)?.into_iter().nth(1)?;
    let bindings = items(&items(&body)?.into_iter().nth(1)?)?;
    let data = items(bindings.get(1)?)?.into_iter().nth(1)?;
    data.get("root").is_some().then_some(data)
}

/// Tells whether a flow runs a tree: the text of [`flow_text`], also after changes by hand.
pub(super) fn is_of_tree(text: &str) -> bool {
    text.contains("flow.tree/")
}

fn flow_slug(tree: &Tree) -> String {
    let slug = tree.slug();
    match slug.starts_with(|letter: char| letter.is_ascii_lowercase()) {
        true => slug,
        false => format!("tree-{slug}"),
    }
}

fn timeout(settings: &Value) -> String {
    let longest = settings.get("waits").and_then(|it| it.get("max-timeout"));
    let longest = longest.and_then(duration::of_value);
    let usual = duration::of_value(&Value::from(TIMEOUT));
    match longest.filter(|longest| usual.is_some_and(|usual| *longest < usual)) {
        Some(longest) => format!("{}s", longest.as_secs().max(1)),
        None => TIMEOUT.to_owned(),
    }
}

fn data_text(tree: &Tree, column: usize) -> String {
    let gap = " ".repeat(column + 1);
    let root = node_text(&tree.root, column + 7);
    let var = store_text(&tree.var, column + 6);
    let constants = store_text(&tree.constants, column + 8);
    format!("{{:root {root}\n{gap}:var {var}\n{gap}:const {constants}}}")
}

fn node_text(node: &Node, column: usize) -> String {
    let text = |text: &str| edn(&Value::from(text));
    let (kind, name, retries, list, items) = match node {
        Node::Cycle { reference } => {
            return format!("{{:type \"ref\" :ref {}}}", text(reference));
        }
        Node::Composite {
            kind,
            name,
            retries,
            children,
        } => {
            let items: Vec<String> = children
                .iter()
                .map(|child| node_text(child, column + 12))
                .collect();
            (kind.name(), name, *retries, ":children", items)
        }
        Node::Action {
            name,
            retries,
            steps,
        } => {
            let items: Vec<String> = steps.iter().map(step_text).collect();
            ("action", name, *retries, ":steps", items)
        }
    };
    let retries = match retries {
        0 => String::new(),
        retries => format!(" :retries {retries}"),
    };
    let gap = " ".repeat(column + 1);
    let indent = " ".repeat(column + 1 + list.len() + 2);
    let items = items.join(&format!("\n{indent}"));
    format!(
        "{{:type \"{kind}\" :name {}{retries}\n{gap}{list} [{items}]}}",
        text(name)
    )
}

fn step_text(step: &Step) -> String {
    match step {
        Step::Evaluate(text) => format!("{{:evaluate {}}}", edn(&Value::from(text.as_str()))),
        Step::Instruct(text) => format!("{{:instruct {}}}", edn(&Value::from(text.as_str()))),
    }
}

fn store_text(store: &Map<String, Json>, column: usize) -> String {
    let entries: Vec<String> = store
        .iter()
        .map(|(key, value)| {
            let value = edn(&from_json_with_string_keys(value));
            format!("{} {value}", edn(&Value::from(key.as_str())))
        })
        .collect();
    let line = entries.join(" ");
    match column + line.len() < COLUMNS {
        true => format!("{{{line}}}"),
        false => format!("{{{}}}", entries.join(&format!("\n{}", " ".repeat(column)))),
    }
}

fn edn(value: &Value) -> String {
    codec::encode(value).unwrap_or_else(|_| "nil".to_owned())
}
