//! The built-in tools of graph agents, as data: one row a tool. They are implemented by `flow.graph` of the library.

use serde_json::{Value as Json, json};

use super::spec::{Audience, Mode};

/// A built-in tool.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    pub name: &'static str,
    /// Other names that specs use.
    pub aliases: &'static [&'static str],
    pub doc: &'static str,
    pub mode: Mode,
    pub exposed_to: Audience,
    /// The function of `flow.graph` that implements it; `None` for the tool that asks a person.
    pub function: Option<&'static str>,
    /// The properties of the arguments, and those that are required. `row|values` requires an argument that has two names:
    /// that of this project's steps, and that of published specs.
    pub arguments: fn() -> (Json, &'static [&'static str]),
}

/// The name of the tool that asks a person.
pub const INTERRUPT: &str = "interrupt";

/// All built-in tools, sorted by name.
pub const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "auth_user_lookup",
        aliases: &[],
        doc: "Reads a person from the table `users` by id or email.",
        mode: Mode::ReadOnly,
        exposed_to: Audience::DeveloperOnly,
        function: Some("user-lookup"),
        arguments: || {
            (
                json!({
                    "user_id": {"type": "string", "description": "The id of the person."},
                    "id": {"type": "string", "description": "The same as `user_id`."},
                    "email": {"type": "string", "description": "The address, if the id is not known."},
                }),
                &[],
            )
        },
    },
    Builtin {
        name: "delete_row",
        aliases: &[],
        doc: "Deletes a row of a table.",
        mode: Mode::ReadWrite,
        exposed_to: Audience::DeveloperOnly,
        function: Some("delete-row"),
        arguments: || {
            (
                json!({"table": table(), "key": key(), "id": id()}),
                &["table", "key|id"],
            )
        },
    },
    Builtin {
        name: "delete_storage",
        aliases: &[],
        doc: "Deletes the value that is stored under a path.",
        mode: Mode::ReadWrite,
        exposed_to: Audience::DeveloperOnly,
        function: Some("delete-storage"),
        arguments: || (json!({"path": path(), "key": other_path()}), &["path|key"]),
    },
    Builtin {
        name: "insert_row",
        aliases: &[],
        doc: "Adds a row to a table. A row with the same key is refused.",
        mode: Mode::ReadWrite,
        exposed_to: Audience::DeveloperOnly,
        function: Some("insert-row"),
        arguments: of_new_row,
    },
    Builtin {
        name: INTERRUPT,
        aliases: &[],
        doc: "Pauses the run until a person answers, and returns the answer.",
        mode: Mode::ReadOnly,
        exposed_to: Audience::EndUser,
        function: None,
        arguments: || {
            (
                json!({
                    "reason": {"type": "string", "description": "The question."},
                    "data": {"description": "What the person should see."},
                }),
                &["reason"],
            )
        },
    },
    Builtin {
        name: "query_table",
        aliases: &["select_rows"],
        doc: "Reads rows of a table.",
        mode: Mode::ReadOnly,
        exposed_to: Audience::EndUser,
        function: Some("query-table"),
        arguments: || {
            (
                json!({
                    "table": table(),
                    "where": {
                        "description": "Cells that must be equal, or a list of {column, op, value} with an op such as =, !=, <, <=, >, >=, in, like.",
                        "anyOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}],
                    },
                    "filter": same_as("where", "object"),
                    "select": {"type": "array", "items": {"type": "string"}, "description": "The columns; all if left out."},
                    "sort": {"type": "array", "description": "Columns, or {column, direction} with asc or desc."},
                    "limit": {"type": "integer", "description": "Maximum number of rows, at most 1000. Default 100."},
                    "offset": {"type": "integer", "description": "Number of rows to skip."},
                }),
                &["table"],
            )
        },
    },
    Builtin {
        name: "read_storage",
        aliases: &[],
        doc: "Reads the value that is stored under a path, or a resource by its res:// name.",
        mode: Mode::ReadOnly,
        exposed_to: Audience::EndUser,
        function: Some("read-storage"),
        arguments: || (json!({"path": path(), "key": other_path()}), &["path|key"]),
    },
    Builtin {
        name: "update_row",
        aliases: &[],
        doc: "Changes cells of an existing row of a table.",
        mode: Mode::ReadWrite,
        exposed_to: Audience::DeveloperOnly,
        function: Some("update-row"),
        arguments: || {
            (
                json!({
                    "table": table(),
                    "key": key(),
                    "id": id(),
                    "values": row(),
                    "patch": same_as("values", "object"),
                }),
                &["table", "key|id", "values|patch"],
            )
        },
    },
    Builtin {
        name: "upsert_row",
        aliases: &[],
        doc: "Adds a row to a table, or changes the row with the same key.",
        mode: Mode::ReadWrite,
        exposed_to: Audience::DeveloperOnly,
        function: Some("upsert-row"),
        arguments: of_new_row,
    },
    Builtin {
        name: "write_storage",
        aliases: &[],
        doc: "Stores a value under a path.",
        mode: Mode::ReadWrite,
        exposed_to: Audience::DeveloperOnly,
        function: Some("write-storage"),
        arguments: || {
            (
                json!({
                    "path": path(),
                    "key": other_path(),
                    "content": {"description": "The value."},
                    "content_base64": {"type": "string", "description": "Bytes as base64, in place of `content`."},
                    "content_type": {"type": "string", "description": "The media type of `content_base64`."},
                }),
                &["path|key", "content|content_base64"],
            )
        },
    },
];

/// Returns the arguments of a tool that stores a row.
fn of_new_row() -> (Json, &'static [&'static str]) {
    (
        json!({
            "table": table(),
            "row": row(),
            "values": same_as("row", "object"),
            "key": key_columns(),
        }),
        &["table", "row|values"],
    )
}

fn table() -> Json {
    json!({"type": "string", "description": "The name of the table."})
}

fn key() -> Json {
    json!({"type": "object", "description": "The cells that identify the row."})
}

fn key_columns() -> Json {
    json!({"type": "array", "items": {"type": "string"}, "description": "The columns that identify a row, for a new table."})
}

fn row() -> Json {
    json!({"type": "object", "description": "Cells by column."})
}

fn id() -> Json {
    json!({"description": "The cell `id` of the row, in place of `key`."})
}

fn path() -> Json {
    json!({"type": "string", "description": "The path."})
}

fn other_path() -> Json {
    same_as("path", "string")
}

/// Returns the schema of an argument that is another name of one.
fn same_as(name: &str, kind: &str) -> Json {
    json!({"type": kind, "description": format!("The same as `{name}`.")})
}

impl Builtin {
    /// Returns the JSON Schema of the arguments.
    pub fn schema(&self) -> Json {
        let (properties, required) = (self.arguments)();
        // Providers accept no alternatives here; the call itself is refused without one of them.
        let required: Vec<&&str> = required.iter().filter(|it| !it.contains('|')).collect();
        json!({"type": "object", "properties": properties, "required": required})
    }

    /// Returns the required arguments, each with its names.
    pub fn required(&self) -> Vec<Vec<&'static str>> {
        let (_, required) = (self.arguments)();
        required.iter().map(|it| it.split('|').collect()).collect()
    }
}

/// Returns a built-in tool by one of its names.
pub fn find(name: &str) -> Option<&'static Builtin> {
    BUILTINS
        .iter()
        .find(|tool| tool.name == name || tool.aliases.contains(&name))
}

/// Returns the first name of a built-in tool; any other name as it is.
pub fn canonical(name: &str) -> &str {
    find(name).map_or(name, |tool| tool.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_tools_are_sorted_and_have_properties() {
        assert!(BUILTINS.is_sorted_by_key(|tool| tool.name));
        for tool in BUILTINS {
            let schema = tool.schema();
            for name in tool.required().concat() {
                assert!(
                    schema["properties"][name].is_object(),
                    "{} {name}",
                    tool.name
                );
            }
            assert_eq!(tool.function.is_none(), tool.name == INTERRUPT);
        }
        assert_eq!(canonical("select_rows"), "query_table");
    }

    #[test]
    fn tools_that_write_are_for_developers() {
        let mut writing = BUILTINS.iter().filter(|tool| tool.mode == Mode::ReadWrite);
        assert!(writing.all(|tool| tool.exposed_to == Audience::DeveloperOnly));
    }
}
