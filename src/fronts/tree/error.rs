//! Errors of trees: a tree cannot be read, or a request about its run is refused. Nothing has changed then.

use flowstone_engine::EngineError;

/// An error of a tree file, or of a request about the run of a tree.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TreeError {
    #[error("the tree file {name} has {}:\n  {}", counted(problems), problems.join("\n  "))]
    BadTree { name: String, problems: Vec<String> },
    #[error("Could not load tree at {uri}: {why}")]
    Unreadable { uri: String, why: String },
    #[error("`{uri}` is not a handle of a run: {why}")]
    BadHandle { uri: String, why: String },
    #[error("the document {uri} cannot be the handle of a run for this token")]
    FileRefused { uri: String },
    #[error("Execution not found: {uri}")]
    NotFound { uri: String },
    #[error("Execution already exists: {uri}")]
    Exists { uri: String },
    #[error("Execution is not in {wanted} phase (current: {current})")]
    WrongPhase {
        wanted: &'static str,
        current: String,
    },
    #[error("the cursor `{given}` is stale: the open request has the cursor `{open}`")]
    StaleCursor { given: String, open: String },
    #[error("cannot think: no action in flight")]
    NothingOpen,
    #[error("`{path}` is not a path in {store}: {why}")]
    BadPath {
        /// `$VAR` or `$CONST`.
        store: &'static str,
        path: String,
        why: String,
    },
    #[error("{what} has {size} bytes, and may have at most {most}")]
    TooLarge {
        what: &'static str,
        size: usize,
        most: usize,
    },
    #[error(
        "the document {uri} differs from its run {run}: the document is at {document}, the run is at {journal}"
    )]
    Differs {
        uri: String,
        run: String,
        document: String,
        journal: String,
    },
    #[error("{uri} is not a document of a tree's run: {why}")]
    BadDocument { uri: String, why: String },
    #[error("the run {run} has ended ({status}), so its $VAR cannot be written")]
    Over { run: String, status: String },
    #[error("the run {run} is being executed by another process, and has no open request yet")]
    Busy { run: String },
    #[error("the run {run} is not the run of a behaviour tree")]
    NotTree { run: String },
    #[error("the document {uri} cannot be written: {why}")]
    Unwritable { uri: String, why: String },
    #[error("the argument `{name}` {why}")]
    Argument { name: &'static str, why: String },
    #[error("there is no argument `{name}`")]
    UnknownArgument { name: String },
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl TreeError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            TreeError::BadTree { .. } => "E1200",
            TreeError::Unreadable { .. } => "E1201",
            TreeError::BadHandle { .. } => "E1202",
            TreeError::NotFound { .. } => "E1203",
            TreeError::Exists { .. } => "E1204",
            TreeError::WrongPhase { .. } => "E1205",
            TreeError::StaleCursor { .. } => "E1206",
            TreeError::NothingOpen => "E1207",
            TreeError::BadPath { .. } => "E1208",
            TreeError::TooLarge { .. } => "E1209",
            TreeError::Differs { .. } => "E1210",
            TreeError::BadDocument { .. } => "E1211",
            TreeError::Over { .. } => "E1212",
            TreeError::Busy { .. } => "E1213",
            TreeError::NotTree { .. } => "E1214",
            TreeError::Unwritable { .. } => "E1215",
            TreeError::Argument { .. } => "E1216",
            TreeError::UnknownArgument { .. } => "E1217",
            TreeError::FileRefused { .. } => "E1219",
            TreeError::Engine(error) => error.code(),
        }
    }

    /// Returns what to try, in the words of the command line.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            TreeError::BadTree { .. } => {
                "correct the file; `flowstone tree check FILE` lists all problems"
            }
            TreeError::Unreadable { .. } => "name a .yaml, .yml or .json file of the project",
            TreeError::BadHandle { .. } => {
                "use `file:///absolute/path.json` below the project's folder, `memory://NAME` or `run://NAME`"
            }
            TreeError::FileRefused { .. } => {
                "use `run://NAME` or `memory://NAME`; `file://` needs a token of kind `service` with the scope `edit`, or the owner's"
            }
            TreeError::NotFound { .. } => "start it with `flowstone tree start FILE HANDLE`",
            TreeError::Exists { .. } => {
                "continue it with `flowstone tree next HANDLE`, or choose another handle"
            }
            TreeError::WrongPhase { .. } | TreeError::StaleCursor { .. } => {
                "get the open request with `flowstone tree next HANDLE`"
            }
            TreeError::NothingOpen => {
                "get a request of the tree with `flowstone tree next HANDLE` first"
            }
            TreeError::BadPath { .. } => {
                "write keys separated by dots, such as `tests.passed` or `items.0`"
            }
            TreeError::TooLarge { .. } => "write large results to a file, and store its path",
            TreeError::Differs { .. } => {
                "move the document away; the next request writes it from the run"
            }
            TreeError::Over { .. } => "start the tree again with `flowstone tree reset HANDLE`",
            TreeError::Busy { run } => {
                return Some(format!("look at it with `flowstone runs show {run}`"));
            }
            TreeError::Argument { .. }
            | TreeError::UnknownArgument { .. }
            | TreeError::BadDocument { .. }
            | TreeError::NotTree { .. }
            | TreeError::Unwritable { .. }
            | TreeError::Engine(_) => return None,
        };
        Some(hint.to_owned())
    }
}

/// The commands of hints, with the tools of drivers that do the same.
pub const TOOLS_OF_COMMANDS: &[(&str, &str)] = &[
    ("`flowstone tree next HANDLE`", "`next_step`"),
    ("`flowstone tree reset HANDLE`", "`reset_execution`"),
    ("`flowstone tree start FILE HANDLE`", "`start_execution`"),
];

fn counted(problems: &[String]) -> String {
    match problems.len() {
        1 => "1 problem".to_owned(),
        count => format!("{count} problems"),
    }
}
