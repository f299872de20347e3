//! `:workspace`, also called `:breyta`: operations on the project that a flow, or its agent, runs in.
//!
//! The engine defines the operations and which of them change something. This module has the rules, and one file for
//! each group of operations, which reads arguments and builds values; it knows nothing of the command line.

mod args;
mod docs;
mod feedback;
mod flows;
mod resources;
mod runs;

use std::rc::Rc;

use flowstone_engine::EngineError;
use flowstone_flow::flow::{Flow, name_of};
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec,
};
use flowstone_flow::workspace::{self, Mutations};
use flowstone_lang::value::Value;
use flowstone_model::diagnostic::{Diagnostic, nearest};

use flowstone_steps::json::items;

pub use docs::error_page;

/// The `:workspace` step.
pub struct Workspace;

const SPEC: StepSpec = StepSpec {
    kind: "workspace",
    operations: None,
    aliases: &["breyta"],
    doc: "Looks at the project's flows, runs, resources and pages of the reference; starts runs, pushes drafts to the registry, keeps notes.\n\n\
        Reads are free. What changes something is allowed by `:mutations`: drafts and feedback by `:draft-only`, runs by \
        `:run-only`, both by `:write`. With `:allow`, only these operations are. Arguments stand in `:args`; those that \
        would say who asks or where (`:workspace-id :actor :auth :token :api-url :allow :mutations`) are left out.",
    fields: FIELDS,
    examples: &[
        "(flow/step :workspace :runs {:op :runs/list :args {:flow-slug :invoice :status :failed :limit 5}})",
        "(flow/step :workspace :page {:op :docs/show :args {:page \"guide/steps\"}})",
        "(flow/step :workspace :start {:op :flows/run :mutations :run-only :args {:flow-slug :invoice :input {:id 7}}})",
    ],
    effect: Effect::Read,
};

const OPS: &[&str] = &[
    "docs/find",
    "docs/show",
    "feedback/send",
    "flows/list",
    "flows/pull",
    "flows/push-draft",
    "flows/run",
    "flows/show",
    "resources/list",
    "resources/read",
    "runs/list",
    "runs/show",
];

const FIELDS: &[Field] = &[
    Field::optional(
        "allow",
        FieldType::List(&FieldType::Name),
        "The allowed operations. Default: all that `:mutations` allows.",
    ),
    Field::optional("args", FieldType::Map, "What the operation is given."),
    Field::optional(
        "mutations",
        FieldType::OneOf(&["draft-only", "none", "run-only", "write"]),
        "What may be changed.",
    )
    .or(":none"),
    Field::required("op", FieldType::OneOf(OPS), "What to do."),
];

impl Step for Workspace {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn effect(&self, config: &Value) -> Effect {
        match op(config).as_deref() {
            Some("flows/push-draft") => Effect::External,
            Some("feedback/send" | "flows/run") => Effect::OwnStore,
            Some("resources/read") if resources::reads_by_steps(config) => Effect::Steps,
            _ => Effect::Read,
        }
    }

    /// Equal texts make one version.
    fn repeats_safely(&self, _config: &Value) -> bool {
        true
    }

    fn remarks(&self, _flow: &Flow, config: &Value) -> Vec<(&'static str, Diagnostic)> {
        let is_literal = |key: &str| {
            config
                .get(key)
                .is_none_or(|given| !matches!(given, Value::List(_) | Value::Symbol(_)))
        };
        if !is_literal("allow") || !is_literal("mutations") || !is_literal("op") {
            return Vec::new();
        }
        match op(config).map(|op| rules(config, &op)) {
            Some(Err(error)) => {
                let finding = Diagnostic::error(error.code, error.message);
                vec![(
                    "op",
                    error.hints.into_iter().fold(finding, Diagnostic::hint),
                )]
            }
            _ => Vec::new(),
        }
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let op = op(&config).unwrap_or_default();
            rules(&config, &op)?;
            let given = config
                .get("args")
                .cloned()
                .unwrap_or_else(|| Value::map([]));
            let args = args::Args::read(&op, &given)?;
            permission(cx, &op)?;
            let value = match &*op {
                "docs/find" => docs::find(&args)?,
                "docs/show" => docs::show(&args)?,
                "feedback/send" => return feedback::send(cx, &args).await.map(Outcome::Commit),
                "flows/list" => flows::list(cx, &args).await?,
                "flows/pull" => flows::pull(cx, &args).await?,
                "flows/push-draft" => flows::push_draft(cx, &args).await?,
                "flows/run" => return flows::run(cx, &args, &config).await.map(Outcome::Child),
                "flows/show" => flows::show(cx, &args).await?,
                "resources/list" => resources::list(cx, &args).await?,
                "resources/read" => resources::read(cx, &args).await?,
                "runs/list" => runs::list(cx, &args).await?,
                _ => runs::show(cx, &args).await?,
            };
            Ok(Outcome::Value(value))
        })
    }
}

/// Returns the pages of the documentation by name, with their texts.
pub fn pages() -> &'static [(&'static str, &'static str)] {
    &docs::PAGES
}

/// Performs an operation that looks at the documentation: `docs/find` or `docs/show`.
///
/// # Errors
/// When an argument is wrong, or there is no such page.
pub fn documentation(op: &str, given: &Value) -> Result<Value, StepError> {
    let args = args::Args::read(op, given)?;
    match op {
        "docs/find" => docs::find(&args),
        _ => docs::show(&args),
    }
}

/// Checks that the flow may see the parts of the project that an operation shows, which steps reach directly here.
fn permission(cx: &StepContext, op: &str) -> Result<(), StepError> {
    match op {
        "flows/list" | "flows/pull" | "flows/show" | "runs/list" | "runs/show" => {
            cx.gate().read(cx.project_root()).map(drop)
        }
        "flows/push-draft" => cx.gate().write(cx.project_root()).map(drop),
        _ => Ok(()),
    }
}

fn op(config: &Value) -> Option<Rc<str>> {
    name_of(config.get("op")?)
}

/// Checks that an operation is allowed.
fn rules(config: &Value, op: &str) -> Result<(), StepError> {
    let allow = config.get("allow").and_then(items);
    let mut allowed = Vec::new();
    for item in allow.iter().flatten() {
        let name = name_of(item).unwrap_or_default();
        let name = name.trim_start_matches(':');
        if workspace::find(name).is_none() {
            let error = StepError::config(
                "E0838",
                format!("`:allow` names `:{name}`, and the workspace has no such operation"),
            );
            return Err(match nearest(name, OPS.iter().copied()) {
                Some(near) => error.hint(format!("did you mean `:{near}`?")),
                None => error,
            });
        }
        allowed.push(name.to_owned());
    }
    let denied = |message: String| StepError::new("E0838", "denied", message);
    if allow.is_some() && allowed.iter().all(|name| name != op) {
        let allowed: Vec<String> = allowed.iter().map(|name| format!("`:{name}`")).collect();
        return Err(denied(format!("`:{op}` is not allowed here"))
            .hint(format!("allowed are {}", allowed.join(", "))));
    }
    let mutations = config
        .get("mutations")
        .and_then(Mutations::of)
        .unwrap_or_default();
    match workspace::refusal(op, mutations) {
        None => Ok(()),
        Some(needed) => Err(denied(format!(
            "`:{op}` changes something, and `:mutations` is `:{}`",
            mutations.name()
        ))
        .hint(format!("it needs {needed}"))),
    }
}

/// Converts an error of the engine to an error of the step.
fn of_engine(error: EngineError) -> StepError {
    let kind = match &error {
        EngineError::Store(error) => return error.clone().into(),
        EngineError::NoSuchRun { .. } | EngineError::Resource(_) => "not-found",
        _ => "invalid",
    };
    let step_error = StepError::new(error.code(), kind, error.to_string());
    match error.hint() {
        Some(hint) => step_error.hint(hint),
        None => step_error,
    }
}

/// Builds a map of the entries that have a value.
fn facts<'k>(entries: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
    let entries = entries.into_iter().filter(|(_, value)| !value.is_nil());
    Value::map(entries.map(|(key, value)| (Value::keyword(key), value)))
}

fn text(given: Option<&str>) -> Value {
    given.map_or(Value::Nil, Value::from)
}

/// Formats an instant for JSON.
fn instant(millis: i64) -> Value {
    Value::from(flowstone_model::codec::instant(millis))
}

fn maybe_instant(millis: Option<i64>) -> Value {
    millis.map_or(Value::Nil, instant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operations_are_those_of_the_engine() {
        let names: Vec<&str> = workspace::OPERATIONS.iter().map(|op| op.name).collect();
        assert_eq!(names, OPS);
    }
}
