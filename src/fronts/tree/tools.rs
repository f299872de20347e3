//! The twelve tools for driving trees, as data, and the call of a tool by its name.

use std::path::PathBuf;

use serde_json::{Map, Value as Json};

use super::driver::{Answer, Start, Trees};
use super::error::TreeError;
use crate::json_text::{self, JsonTextError};

/// A tool for agents that drive trees.
#[derive(Debug)]
pub struct Tool {
    pub name: &'static str,
    pub title: &'static str,
    pub doc: &'static str,
    /// Whether it makes no change that its caller could see.
    pub reads: bool,
    pub params: &'static [Param],
}

/// An argument of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    pub name: &'static str,
    pub kind: ParamKind,
    pub doc: &'static str,
    pub is_required: bool,
}

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    Text,
    Boolean,
    /// A whole number, 0 or greater.
    Index,
    OneOf(&'static [&'static str]),
    /// Any JSON value.
    Any,
}

const fn param(name: &'static str, kind: ParamKind, doc: &'static str) -> Param {
    Param {
        name,
        kind,
        doc,
        is_required: false,
    }
}

const fn needed(name: &'static str, kind: ParamKind, doc: &'static str) -> Param {
    Param {
        name,
        kind,
        doc,
        is_required: true,
    }
}

const TRACE_OUTPUT: Param = needed(
    "trace_output",
    ParamKind::Text,
    "The handle of the run: `file:///absolute/path.json` below the project's folder, `memory://NAME`, or `run://NAME`.",
);
const EXPECTED: Param = param(
    "expected_cursor",
    ParamKind::Text,
    "The `cursor` of the request that this answers. If another request is open by now, nothing is recorded.",
);
const NOTE: Param = param(
    "note",
    ParamKind::Text,
    "One sentence about why, with the values that decided. Recorded in the trace.",
);
const VAR_PATH: &str =
    "Keys separated by dots, such as `tests.passed`. Without it, the whole store is returned.";

/// The names of the arguments of `submit`.
pub const STATUSES: &[&str] = &["success", "failure", "running"];

/// All tools, by name.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "const_read",
        title: "Read $CONST",
        doc: "Reads `$CONST`, which the tree file sets and nothing changes.",
        reads: true,
        params: &[TRACE_OUTPUT, param("path", ParamKind::Text, VAR_PATH)],
    },
    Tool {
        name: "eval",
        title: "Answer an evaluate request",
        doc: "Answers the open `evaluate` request. `true` moves on to the action's next step, `false` fails the action.",
        reads: false,
        params: &[
            TRACE_OUTPUT,
            needed(
                "result",
                ParamKind::Boolean,
                "Whether the expression holds.",
            ),
            NOTE,
            EXPECTED,
        ],
    },
    Tool {
        name: "get_execution",
        title: "Get the run",
        doc: "Returns status, phase, cursor, stores, bookkeeping and trace of a run. Shows nothing that was not visited.",
        reads: true,
        params: &[TRACE_OUTPUT],
    },
    Tool {
        name: "next_step",
        title: "Get the next request",
        doc: "Returns the request to answer next: `evaluate`, `instruct`, or the end as `{status: done}` or `{status: \
              failure}`. While a request is open, returns it again.",
        reads: false,
        params: &[TRACE_OUTPUT],
    },
    Tool {
        name: "read_trace",
        title: "Read the trace",
        doc: "Returns the entries of the trace, oldest first: one for each decision.",
        reads: true,
        params: &[
            TRACE_OUTPUT,
            param(
                "from",
                ParamKind::Index,
                "The index of the first entry, counted from 0.",
            ),
            param("to", ParamKind::Index, "The index after the last entry."),
        ],
    },
    Tool {
        name: "reset_execution",
        title: "Reset the run",
        doc: "Begins the tree again: the trace is empty, the stores are as at the start, and the protocol has to be \
              accepted again.",
        reads: false,
        params: &[TRACE_OUTPUT],
    },
    Tool {
        name: "resume_execution",
        title: "Resume a run",
        doc: "Confirms that a run can be driven, and returns its status and phase. The tree file is not needed. A document of \
              another project becomes a run of this one.",
        reads: false,
        params: &[TRACE_OUTPUT],
    },
    Tool {
        name: "start_execution",
        title: "Start a tree",
        doc: "Starts the tree of a file as a new run. Fails if the handle is taken; `next_step` continues an existing run.",
        reads: false,
        params: &[
            needed(
                "tree_uri",
                ParamKind::Text,
                "The tree file: `file:///absolute/path.yaml`, or a path from the project's folder.",
            ),
            TRACE_OUTPUT,
            param(
                "gate",
                ParamKind::Boolean,
                "Whether the first request asks to accept the protocol. Default: true.",
            ),
        ],
    },
    Tool {
        name: "submit",
        title: "Answer an instruct request",
        doc: "Answers the open `instruct` request. `success` moves on, `failure` fails the action, `running` records that \
              the work continues.",
        reads: false,
        params: &[
            TRACE_OUTPUT,
            needed("status", ParamKind::OneOf(STATUSES), "How the work went."),
            NOTE,
            EXPECTED,
        ],
    },
    Tool {
        name: "think",
        title: "Record a thought",
        doc: "Adds a thought about the open request to the trace. Changes nothing else.",
        reads: false,
        params: &[
            TRACE_OUTPUT,
            needed(
                "thought",
                ParamKind::Text,
                "One line, such as what was found.",
            ),
        ],
    },
    Tool {
        name: "var_read",
        title: "Read $VAR",
        doc: "Reads `$VAR`. A place that nothing was written to is null.",
        reads: true,
        params: &[TRACE_OUTPUT, param("path", ParamKind::Text, VAR_PATH)],
    },
    Tool {
        name: "var_write",
        title: "Write $VAR",
        doc: "Writes a value to `$VAR`. A text is read as JSON if it is JSON, and is kept as text otherwise.",
        reads: false,
        params: &[
            TRACE_OUTPUT,
            needed(
                "path",
                ParamKind::Text,
                "Keys separated by dots, such as `tests.passed`.",
            ),
            needed("value", ParamKind::Any, "The value to write."),
        ],
    },
];

/// Returns the tool with a name.
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

impl Tool {
    /// Returns the JSON Schema of the arguments.
    pub fn schema(&self) -> Json {
        let properties = self.params.iter().map(|param| {
            let mut schema = match param.kind {
                ParamKind::Text => serde_json::json!({"type": "string", "minLength": 1}),
                ParamKind::Boolean => serde_json::json!({"type": "boolean"}),
                ParamKind::Index => serde_json::json!({"type": "integer", "minimum": 0}),
                ParamKind::OneOf(names) => serde_json::json!({"type": "string", "enum": names}),
                ParamKind::Any => serde_json::json!({}),
            };
            schema["description"] = Json::from(param.doc);
            (param.name.to_owned(), schema)
        });
        let properties: Map<String, Json> = properties.collect();
        let required = self.params.iter().filter(|param| param.is_required);
        let required: Vec<&str> = required.map(|param| param.name).collect();
        serde_json::json!({
            "type": "object", "properties": properties, "required": required,
            "additionalProperties": false,
        })
    }

    fn check(&self, arguments: &Map<String, Json>) -> Result<(), TreeError> {
        let is_known = |name: &str| self.params.iter().any(|param| param.name == name);
        if let Some(name) = arguments.keys().find(|name| !is_known(name)) {
            return Err(TreeError::UnknownArgument {
                name: name.chars().take(64).collect(),
            });
        }
        self.params
            .iter()
            .try_for_each(|param| param.check(arguments))
    }
}

impl Param {
    fn check(&self, arguments: &Map<String, Json>) -> Result<(), TreeError> {
        let wrong = |why: String| TreeError::Argument {
            name: self.name,
            why,
        };
        // Clients of some languages send null for an argument that is left out.
        let is_absent = |given: &&Json| given.is_null() && self.kind != ParamKind::Any;
        let Some(given) = arguments.get(self.name).filter(|it| !is_absent(it)) else {
            return match self.is_required {
                true => Err(wrong("is missing".to_owned())),
                false => Ok(()),
            };
        };
        let (fits, expected) = match self.kind {
            ParamKind::Text => {
                let fits = given.as_str().is_some_and(|text| !text.is_empty());
                (fits, "a text that is not empty".to_owned())
            }
            ParamKind::Boolean => (given.is_boolean(), "true or false".to_owned()),
            ParamKind::Index => (given.as_u64().is_some(), "a whole number from 0".to_owned()),
            ParamKind::OneOf(names) => {
                let fits = given.as_str().is_some_and(|text| names.contains(&text));
                (fits, format!("one of {}", names.join(", ")))
            }
            ParamKind::Any => (true, String::new()),
        };
        match fits {
            true => Ok(()),
            false => Err(wrong(format!("must be {expected}"))),
        }
    }
}

/// Calls a tool, and returns its result.
///
/// # Errors
/// When an argument is invalid or the request is refused. Nothing has changed then.
pub async fn call(
    trees: &Trees<'_>,
    tool: &Tool,
    arguments: &Map<String, Json>,
) -> Result<Json, TreeError> {
    tool.check(arguments)?;
    let given = |name: &str| arguments.get(name);
    let text = |name: &str| given(name).and_then(Json::as_str);
    let owned = |name: &str| text(name).map(str::to_owned);
    let handle = trees.handle(text("trace_output").unwrap_or_default())?;
    let (handle, expected) = (&handle, text("expected_cursor"));
    let flag = |name: &str| given(name).and_then(Json::as_bool);
    match tool.name {
        "const_read" => trees.constants(handle, text("path")).await,
        "eval" => {
            let answer = Answer::Eval {
                result: flag("result").unwrap_or_default(),
                note: owned("note"),
            };
            trees.answer(handle, &answer, expected).await
        }
        "get_execution" => trees.execution(handle).await,
        "next_step" => trees.next(handle).await,
        "read_trace" => {
            let place = |name: &str| given(name).and_then(Json::as_u64);
            trees.trace(handle, place("from"), place("to")).await
        }
        "reset_execution" => trees.reset(handle).await,
        "resume_execution" => trees.resume(handle).await,
        "start_execution" => {
            let tree_uri = owned("tree_uri").unwrap_or_default();
            let start = Start {
                path: tree_path(&tree_uri)?,
                tree_uri,
                handle: handle.clone(),
                gate: flag("gate").unwrap_or(true),
            };
            Ok(trees.start(&start).await?.0)
        }
        "submit" => {
            let answer = Answer::Submit {
                status: owned("status").unwrap_or_default(),
                note: owned("note"),
            };
            trees.answer(handle, &answer, expected).await
        }
        "think" => {
            let thought = owned("thought").unwrap_or_default();
            trees.answer(handle, &Answer::Think { thought }, None).await
        }
        "var_read" => trees.var(handle, text("path")).await,
        _ => {
            let answer = Answer::VarWrite {
                path: owned("path").unwrap_or_default(),
                value: parsed(given("value").unwrap_or(&Json::Null))?,
            };
            trees.answer(handle, &answer, None).await
        }
    }
}

/// Returns the value of `var_write`: a text that is JSON is parsed.
///
/// # Errors
/// [`TreeError::Argument`] for a text with an integer of more than 64 bits, with a member that is there twice, or that is nested
/// too deeply.
pub fn parsed(value: &Json) -> Result<Json, TreeError> {
    let refused = |why: String| TreeError::Argument { name: "value", why };
    match value.as_str().map(json_text::read) {
        Some(Ok(json)) => Ok(json),
        Some(Err(JsonTextError::Syntax(why))) if why.contains("recursion limit") => Err(refused(
            "cannot be stored: it is JSON nested more than 128 deep".to_owned(),
        )),
        Some(Err(JsonTextError::Syntax(_))) => Ok(value.clone()),
        Some(Err(error)) => Err(refused(format!("cannot be stored: {error}"))),
        None => Ok(value.clone()),
    }
}

/// Returns the path of a tree file from its URI.
///
/// # Errors
/// [`TreeError::Unreadable`] for a scheme other than `file://`.
pub fn tree_path(uri: &str) -> Result<PathBuf, TreeError> {
    match uri.split_once("://") {
        None => Ok(PathBuf::from(uri)),
        Some(("file", path)) => {
            let path = path.strip_prefix("localhost").unwrap_or(path);
            Ok(PathBuf::from(super::check::decoded(path)))
        }
        Some((scheme, _)) => Err(TreeError::Unreadable {
            uri: uri.to_owned(),
            why: format!("references to {scheme}:// are off"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_that_is_nested_too_deeply_is_refused_and_not_kept_as_text() {
        let nested = |depth: usize| json!(format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
        assert!(parsed(&nested(100)).is_ok_and(|value| value.is_array()));
        let refused = parsed(&nested(200)).expect_err("too deep").to_string();
        assert!(refused.contains("more than 128 deep"), "{refused}");
        assert_eq!(parsed(&json!("plain")).ok(), Some(json!("plain")));
    }
}
