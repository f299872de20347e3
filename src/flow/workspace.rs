//! The operations of `:workspace`, by which flows and agents access the project that they run in, and the changes that
//! the operations make.

use flowstone_lang::value::Value;

use flowstone_model::names::name_of;

/// One operation.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// The name without its colon.
    pub name: &'static str,
    /// A description of the operation and its arguments, for models.
    pub about: &'static str,
    /// The kind of change; `None` for operations that only read.
    pub change: Option<Change>,
}

/// The kind of change that an operation makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The operation adds a version to the registry, or a note for the author.
    Draft,
    /// The operation starts a run.
    Run,
}

/// Every operation, sorted.
pub const OPERATIONS: &[Operation] = &[
    read(
        "docs/find",
        "Finds pages of the reference by words. Args: query, limit.",
    ),
    read(
        "docs/show",
        "Shows a page of the reference. Args: page, section.",
    ),
    change(
        "feedback/send",
        Change::Draft,
        "Leaves a note for the authors of the project. Args: message, title, flow_slug.",
    ),
    read(
        "flows/list",
        "Lists the flows. Args: limit (up to 100), cursor.",
    ),
    read(
        "flows/pull",
        "Gives the text of a flow. Args: flow_slug, source (active, live, draft or latest) or version (a number).",
    ),
    change(
        "flows/push-draft",
        Change::Draft,
        "Checks the whole text of a flow and commits it to the registry as the newest version, its draft; what runs stays. \
         Args: flow_literal, base (the version that the text was made from; needed once the flow has versions), message.",
    ),
    change(
        "flows/run",
        Change::Run,
        "Starts a run of a flow and waits for its result. Args: flow_slug, input, target (live or draft) or version (a number).",
    ),
    read(
        "flows/show",
        "Shows what a flow is: inputs, steps, schedules. Args: flow_slug, source (active, live, draft or latest) or version, \
         include_flow_literal.",
    ),
    read(
        "resources/list",
        "Lists stored resources. Args: type, query, limit, cursor.",
    ),
    read(
        "resources/read",
        "Reads a stored resource. Args: uri, max_chars, offset.",
    ),
    read(
        "runs/list",
        "Lists runs, newest first. Args: flow_slug, status, limit, cursor.",
    ),
    read("runs/show", "Shows a run and its steps. Args: run_id."),
];

const fn read(name: &'static str, about: &'static str) -> Operation {
    Operation {
        name,
        about,
        change: None,
    }
}

const fn change(name: &'static str, change: Change, about: &'static str) -> Operation {
    Operation {
        name,
        about,
        change: Some(change),
    }
}

/// Finds an operation by its name without the colon.
pub fn find(name: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.name == name)
}

/// The changes that are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mutations {
    #[default]
    None,
    DraftOnly,
    RunOnly,
    Write,
}

impl Mutations {
    /// Returns the mode of a name.
    pub fn of(value: &Value) -> Option<Mutations> {
        match &*name_of(value)? {
            "none" => Some(Mutations::None),
            "draft-only" => Some(Mutations::DraftOnly),
            "run-only" => Some(Mutations::RunOnly),
            "write" => Some(Mutations::Write),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Mutations::None => "none",
            Mutations::DraftOnly => "draft-only",
            Mutations::RunOnly => "run-only",
            Mutations::Write => "write",
        }
    }

    /// Tells whether a change is allowed.
    pub fn allows(self, change: Change) -> bool {
        match (self, change) {
            (Mutations::Write, _) => true,
            (Mutations::DraftOnly, Change::Draft) | (Mutations::RunOnly, Change::Run) => true,
            (Mutations::None | Mutations::DraftOnly | Mutations::RunOnly, _) => false,
        }
    }
}

/// Returns a description of the modes that an operation needs, if the mode does not allow it.
pub fn refusal(operation: &str, mutations: Mutations) -> Option<&'static str> {
    let change = find(operation)?.change?;
    match (mutations.allows(change), change) {
        (true, _) => None,
        (false, Change::Draft) => Some("`:mutations :draft-only`, or `:write`"),
        (false, Change::Run) => Some("`:mutations :run-only`, or `:write`"),
    }
}
