//! `flow/call-flow` as data: its fields. The engine performs it.

use flowstone_lang::value::Value;
use flowstone_model::names::name_of;

use crate::ports::ParentClose;
use crate::spec::{Effect, Field, FieldType, StepSpec};

/// The step type that `flow/call-flow` stands for.
pub const KIND: &str = "call-flow";
/// What `flow/call-flow` takes as arguments, and not among its options.
pub const ARGUMENTS: &[&str] = &["flow-slug", "input"];
/// What `flow/call-flow` takes as options that are often given: its own, and some of every step's.
pub const OPTIONS: &[&str] = &[
    "id",
    "on-error",
    "parent-close-policy",
    "priority",
    "retry",
    "timeout",
    "version",
    "workflow-id",
];
/// Where a flow that is called is looked for.
pub const WHERE: &str = "a flow is found by the name of its file or by its `:slug`: beside the flow that calls \
     it, or in the project's `flows` folder";

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
            "The flow: the name of its file, or its `:slug`. Looked for beside the flow that asks, then in the \
             project's `flows` folder, then in the project's folder.",
        ),
        Field::optional("input", FieldType::Map, "What the child is given."),
        Field::optional(
            "parent-close-policy",
            FieldType::OneOf(&["abandon", "request-cancel", "terminate"]),
            "What happens to the child when this run ends before it: it continues, is cancelled, or is terminated.",
        )
        .or(":request-cancel"),
        Field::optional(
            "priority",
            FieldType::Int,
            "Higher starts first; the one of this run where it is left out.",
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
            "A name of your own for the child; no other run may have it.",
        ),
    ],
    examples: &[
        "(flow/step :call-flow :receipt {:flow-slug :send-receipt :input {:order 7} :timeout \"10m\"})",
    ],
    effect: Effect::OwnStore,
};

/// Returns what becomes of the child of a call when its parent ends first.
pub fn close(config: &Value) -> ParentClose {
    let name = config.get("parent-close-policy").and_then(name_of);
    name.and_then(|name| ParentClose::from_name(&name))
        .unwrap_or_default()
}
