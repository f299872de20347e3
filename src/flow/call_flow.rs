//! `flow/call-flow` as data: its fields. The engine performs it.

use std::rc::Rc;

use flowstone_lang::value::Value;
use flowstone_model::names::name_of;

use crate::ports::ParentClose;
use crate::spec::{Effect, Field, FieldType, StepSpec};

/// The step type that `flow/call-flow` stands for.
pub const KIND: &str = "call-flow";
/// The arguments of `flow/call-flow` that are fields of the step but not options.
pub const ARGUMENTS: &[&str] = &["flow-slug", "input"];
/// The options of `flow/call-flow` that a message lists: its own, and some that every step has.
pub const OPTIONS: &[&str] = &[
    "describe",
    "id",
    "installation-id",
    "on-error",
    "parent-close-policy",
    "priority",
    "retry",
    "timeout",
    "total-timeout",
    "version",
    "workflow-id",
];
/// Where a called flow is searched for.
pub const WHERE: &str = "a flow is found by the name of its file or by its `:slug`: beside the flow that calls \
     it, or in the project's `flows` folder; a graph spec or a behaviour tree also by its path";

/// The step type of a child run.
pub static SPEC: StepSpec = StepSpec {
    kind: KIND,
    operations: None,
    aliases: &[],
    doc: "Runs another flow of the project as a run of its own, and returns its output. `(flow/call-flow slug input \
          opts)` is the short form.",
    fields: &[
        Field::required(
            "flow-slug",
            FieldType::Name,
            "The flow: the name of its file, or its `:slug`. Searched for beside the flow that calls it, then in the \
             project's `flows` folder, then in the project's folder. A graph spec (`.json`) or a behaviour tree (`.yaml`, \
             `.json`) is called in the same way, or by its path: `\"agents/support.json\"`.",
        ),
        Field::optional(
            "describe",
            FieldType::Bool,
            "Returns `:name`, `:description` and `:input-schema` (a JSON Schema) of the flow, and starts no run.",
        ),
        Field::optional("input", FieldType::Map, "The input of the child run."),
        Field::optional(
            "installation-id",
            FieldType::Name,
            "The name of an installation of the flow in the workspace of this run, `monthly` or `acme/monthly`: the child runs \
             its version, with its connections, setup values, tables and keys.",
        ),
        Field::optional(
            "parent-close-policy",
            FieldType::OneOf(&["abandon", "request-cancel", "terminate"]),
            "What happens to the child run if this run ends first: it continues, is cancelled, or is terminated.",
        )
        .or(":request-cancel"),
        Field::optional(
            "priority",
            FieldType::Int,
            "Runs with a higher priority start first. Default: the priority of this run.",
        ),
        Field::optional(
            "version",
            FieldType::Any,
            "The hash of the program to run, as in `program` of `runs show --json`; 0 or `:latest` for the file as \
             it is now.",
        ),
        Field::optional(
            "workflow-id",
            FieldType::Text,
            "Your own unique name for the child run.",
        ),
    ],
    examples: &[
        "(flow/step :call-flow :receipt {:flow-slug :send-receipt :input {:order 7} :timeout \"10m\"})",
        "(flow/step :call-flow :support {:flow-slug \"agents/support.json\" :input {:message \"Hi\"}})",
    ],
    effect: Effect::OwnStore,
};

/// Tells whether a call asks for a description of the flow instead of a run.
pub fn describes(config: &Value) -> bool {
    config.get("describe").is_some_and(Value::is_truthy)
}

/// Returns the name of the installation that a call names.
pub fn installation(config: &Value) -> Option<Rc<str>> {
    config.get("installation-id").and_then(name_of)
}

/// Returns what happens to the child run of a call if its parent ends first.
pub fn close(config: &Value) -> ParentClose {
    let name = config.get("parent-close-policy").and_then(name_of);
    name.and_then(|name| ParentClose::from_name(&name))
        .unwrap_or_default()
}
