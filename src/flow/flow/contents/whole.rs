//! The keys of a definition, as data for editors. The checks use the rows of the entries, and the definition's reader.

use super::rows;
use crate::step::{Field, FieldType};

/// Every key that a definition may have, sorted. Entries of `:invocations` are keyed by their id, and have
/// [`INVOCATION`].
pub const DEFINITION: &[Field] = &[
    field(
        "agents",
        FieldType::Items,
        "The agents that steps call by keyword.",
    ),
    field(
        "concurrency",
        FieldType::Keys(CONCURRENCY),
        "Whether runs of the flow may overlap, and what happens to them when the flow changes.",
    ),
    field(
        "deploy-key-required",
        FieldType::Any,
        "Kept for other programs; without effect here.",
    ),
    field(
        "description",
        FieldType::Text,
        "A description for people and models.",
    ),
    field(
        "discover",
        FieldType::Any,
        "Kept for other programs; without effect here.",
    ),
    Field::required("flow", FieldType::Any, "The code of the flow, quoted."),
    field(
        "functions",
        FieldType::List(&FieldType::Keys(rows::FUNCTION)),
        "Functions that steps call by keyword.",
    ),
    field("icon", FieldType::Any, "The icon that people see."),
    field(
        "interfaces",
        FieldType::Keys(INTERFACES),
        "How the flow is started from outside.",
    ),
    field(
        "invocations",
        FieldType::Map,
        "What a run takes: each invocation has an id and its inputs.",
    ),
    field(
        "limits",
        FieldType::Map,
        "Limits of its runs: how many, how often, and in which order.",
    ),
    field(
        "llm-providers",
        FieldType::Any,
        "The older name of connections for models.",
    ),
    field(
        "marketplace",
        FieldType::Any,
        "Kept for other programs; without effect here.",
    ),
    field(
        "mcp",
        FieldType::Items,
        "Servers of the Model Context Protocol whose tools agents use.",
    ),
    field("name", FieldType::Text, "The name that people see."),
    field(
        "namespaces",
        FieldType::Items,
        "Shared namespaces that the flow requires, as in `[shop.money :as money]`.",
    ),
    field(
        "publish-media",
        FieldType::Any,
        "Kept for other programs; without effect here.",
    ),
    field(
        "requires",
        FieldType::List(&FieldType::Either(&[
            FieldType::Keys(rows::CONNECTION),
            FieldType::Keys(rows::FORM),
        ])),
        "The connections, forms and workers that the flow needs, each in a slot.",
    ),
    field(
        "schedules",
        FieldType::Items,
        "When runs start by themselves.",
    ),
    Field::required("slug", FieldType::Name, "The permanent name of the flow."),
    field(
        "steps",
        FieldType::Items,
        "Packaged steps: steps with a schema, a description and prepared config.",
    ),
    field(
        "tags",
        FieldType::Items,
        "Words by which people find the flow.",
    ),
    field(
        "templates",
        FieldType::List(&FieldType::Keys(rows::TEMPLATE)),
        "Texts with variables, which steps use by keyword.",
    ),
    field(
        "triggers",
        FieldType::List(&FieldType::Keys(rows::TRIGGER)),
        "Schedules, webhooks and events that start runs.",
    ),
];

/// The keys of an entry of `:invocations`.
pub const INVOCATION: &[Field] = rows::INVOCATION;

const INTERFACES: &[Field] = &[
    field(
        "http",
        FieldType::List(&FieldType::Keys(rows::HTTP)),
        "Addresses of the server that start a run and answer with its result.",
    ),
    field(
        "manual",
        FieldType::List(&FieldType::Keys(rows::MANUAL)),
        "Runs that people start.",
    ),
    field(
        "mcp",
        FieldType::List(&FieldType::Keys(rows::MCP)),
        "Tools, prompts and resources for clients of the Model Context Protocol.",
    ),
    field(
        "webhook",
        FieldType::List(&FieldType::Keys(rows::WEBHOOK)),
        "Addresses that accept deliveries of other systems.",
    ),
];

const CONCURRENCY: &[Field] = &[
    field(
        "key-field",
        FieldType::Name,
        "The input by which runs are told apart.",
    ),
    field(
        "on-conflict",
        FieldType::OneOf(&["cancel-running", "queue", "reject"]),
        "What happens to a run that finds another one of its key.",
    ),
    field(
        "on-new-version",
        FieldType::OneOf(&["coexist", "drain", "supersede"]),
        "What happens to running runs when the flow changes.",
    ),
    field(
        "type",
        FieldType::OneOf(&["keyed", "singleton"]),
        "Whether one run at a time, or one for each key.",
    ),
];

const fn field(name: &'static str, type_: FieldType, doc: &'static str) -> Field {
    Field::optional(name, type_, doc)
}

#[cfg(test)]
mod tests {
    use super::{CONCURRENCY, DEFINITION, INTERFACES};
    use crate::definition::KEYS;
    use crate::flow::contents::rows;
    use crate::ports::{OnConflict, OnNewVersion};
    use crate::step::{Field, FieldType};

    fn names(fields: &[Field]) -> Vec<&'static str> {
        fields.iter().map(|field| field.name).collect()
    }

    #[test]
    fn every_key_of_a_definition_is_described() {
        assert_eq!(names(DEFINITION), KEYS);
        assert_eq!(names(INTERFACES), rows::INTERFACES);
    }

    #[test]
    fn choices_are_those_of_the_reader() {
        let choices = |name: &str| match CONCURRENCY
            .iter()
            .find(|field| field.name == name)
            .map(|field| field.type_)
        {
            Some(FieldType::OneOf(names)) => names.to_vec(),
            _ => Vec::new(),
        };
        let conflict: Vec<&str> = OnConflict::NAMES.iter().map(|(_, name)| *name).collect();
        let version: Vec<&str> = OnNewVersion::NAMES.iter().map(|(_, name)| *name).collect();
        assert_eq!(
            (choices("on-conflict"), choices("on-new-version")),
            (conflict, version)
        );
    }
}
