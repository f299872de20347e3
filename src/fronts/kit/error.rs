//! The one shape of the kit's errors: `{code, message, retryable, next_step?, details?}`, with a constructor for each code.

use flowstone_engine::EngineError;
use flowstone_model::ports::StoreError;
use flowstone_project::registry::RegistryError;
use serde_json::{Value as Json, json};

/// Maximum number of characters of a message about an argument.
const MOST_TEXT: usize = 2_000;

/// The name of an error of the kit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KitCode {
    ApprovalDenied,
    ApprovalRequired,
    BindingMissing,
    CheckFailed,
    ConnectionNotReady,
    FlowArchived,
    Internal,
    InvalidArguments,
    LimitExceeded,
    NoEvent,
    NoRevision,
    NoTrace,
    NotFound,
    NotRemovable,
    OutOfScope,
    PermissionDenied,
    RecursionRefused,
    RefusedInTest,
    RevisionConflict,
    TestRunIncomplete,
    Timeout,
    ToolDisabled,
    Unauthorized,
    UnknownTool,
}

impl KitCode {
    /// Returns the name in answers.
    pub fn name(self) -> &'static str {
        match self {
            KitCode::ApprovalDenied => "approval_denied",
            KitCode::ApprovalRequired => "approval_required",
            KitCode::BindingMissing => "binding_missing",
            KitCode::CheckFailed => "check_failed",
            KitCode::ConnectionNotReady => "connection_not_ready",
            KitCode::FlowArchived => "flow_archived",
            KitCode::Internal => "internal",
            KitCode::InvalidArguments => "invalid_arguments",
            KitCode::LimitExceeded => "limit_exceeded",
            KitCode::NoEvent => "no_event",
            KitCode::NoRevision => "no_revision",
            KitCode::NoTrace => "no_trace",
            KitCode::NotFound => "not_found",
            KitCode::NotRemovable => "not_removable",
            KitCode::OutOfScope => "out_of_scope",
            KitCode::PermissionDenied => "permission_denied",
            KitCode::RecursionRefused => "recursion_refused",
            KitCode::RefusedInTest => "refused_in_test",
            KitCode::RevisionConflict => "revision_conflict",
            KitCode::TestRunIncomplete => "test_run_incomplete",
            KitCode::Timeout => "timeout",
            KitCode::ToolDisabled => "tool_disabled",
            KitCode::Unauthorized => "unauthorized",
            KitCode::UnknownTool => "unknown_tool",
        }
    }

    /// Returns the status of an answer over HTTP.
    pub fn status(self) -> u16 {
        match self {
            KitCode::InvalidArguments | KitCode::BindingMissing => 400,
            KitCode::Unauthorized => 401,
            KitCode::ApprovalDenied
            | KitCode::ApprovalRequired
            | KitCode::OutOfScope
            | KitCode::PermissionDenied
            | KitCode::RecursionRefused
            | KitCode::RefusedInTest
            | KitCode::ToolDisabled => 403,
            KitCode::NotFound | KitCode::UnknownTool => 404,
            KitCode::ConnectionNotReady
            | KitCode::FlowArchived
            | KitCode::NoRevision
            | KitCode::NoTrace
            | KitCode::NotRemovable
            | KitCode::RevisionConflict => 409,
            KitCode::CheckFailed => 422,
            KitCode::LimitExceeded => 429,
            KitCode::Internal => 500,
            KitCode::NoEvent | KitCode::TestRunIncomplete | KitCode::Timeout => 504,
        }
    }

    /// Tells whether the identical call may succeed later.
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            KitCode::ApprovalRequired
                | KitCode::LimitExceeded
                | KitCode::NoEvent
                | KitCode::TestRunIncomplete
                | KitCode::Timeout
        )
    }
}

/// When a call is repeated for which something has to be removed first.
const RETRY_FULL_S: u64 = 60;

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq)]
pub struct KitError {
    pub code: KitCode,
    pub message: String,
    pub retryable: bool,
    pub next_step: Option<String>,
    pub details: Option<Json>,
}

impl KitError {
    fn new(code: KitCode, message: impl Into<String>) -> KitError {
        KitError {
            code,
            message: message.into(),
            retryable: code.is_retryable(),
            next_step: None,
            details: None,
        }
    }

    /// Says what to do next. Each error that is retryable needs it.
    #[must_use]
    pub fn next(mut self, step: impl Into<String>) -> KitError {
        self.next_step = Some(step.into());
        self
    }

    #[must_use]
    pub fn with(mut self, details: Json) -> KitError {
        self.details = Some(details);
        self
    }

    /// An argument at a path (a JSON Pointer, empty for all of them) is not what is expected there.
    pub fn invalid(
        path: impl Into<String>,
        expected: impl Into<String>,
        message: impl Into<String>,
    ) -> KitError {
        let (path, expected) = (path.into(), expected.into());
        KitError::new(KitCode::InvalidArguments, shortened(message.into()))
            .with(json!({"path": shortened(path), "expected": shortened(expected)}))
    }

    /// The door names no flow.
    pub fn binding_missing() -> KitError {
        KitError::new(
            KitCode::BindingMissing,
            "the kit is not open for a flow, and this tool works on one",
        )
        .next(
            "ask the person to name the flow: the header `X-Flowstone-Flow`, the address `/mcp/kit/SLUG`, or `--flow SLUG`",
        )
    }

    pub fn unauthorized(message: impl Into<String>) -> KitError {
        KitError::new(KitCode::Unauthorized, message)
            .next("send `Authorization: Bearer TOKEN` or `Authorization: ApiKey TOKEN`")
    }

    pub fn permission_denied(message: impl Into<String>) -> KitError {
        KitError::new(KitCode::PermissionDenied, message)
    }

    /// The person who was asked declined.
    pub fn approval_denied(tool: &str) -> KitError {
        KitError::new(
            KitCode::ApprovalDenied,
            format!("the person declined this call of `{tool}`"),
        )
        .next("ask the person what should be different; do not repeat the same call")
    }

    /// A person has to agree first. Details: `approval_id`, `digest`, `url`, `command`, `expires_at`.
    pub fn approval_required(tool: &str, details: Json) -> KitError {
        KitError::new(
            KitCode::ApprovalRequired,
            format!("a person has to approve this call of `{tool}` first"),
        )
        .next("give the person the command or the address of `details`, wait, then repeat the identical call once")
        .with(details)
    }

    /// A person has to agree to a call in a run, and has not, or to something else: the flow has another revision since.
    pub fn not_agreed(tool: &str, has_asked: bool) -> KitError {
        let error = KitError::new(
            KitCode::ApprovalRequired,
            match has_asked {
                true => format!(
                    "what a person approved about `{tool}` is not what it would do now: the flow has changed"
                ),
                false => format!("a person has to approve this call of `{tool}` first"),
            },
        );
        error.next(match has_asked {
            true => "look at the flow again, then repeat the call: the person is asked again",
            false => "an agent with `:tools {:kit [...]}` asks a person; a `:kit` step in the body of a flow needs `:kit {:permissions {...}}` in flowstone.edn",
        })
    }

    /// The process ended during a call, which is not made again.
    pub fn interrupted(tool: &str) -> KitError {
        KitError::new(
            KitCode::Timeout,
            format!("the process ended during this call of `{tool}`: it may have been made"),
        )
        .next("look whether it was made, and repeat the call only if it was not")
    }

    pub fn tool_disabled(tool: &str) -> KitError {
        KitError::new(
            KitCode::ToolDisabled,
            format!("the tool `{tool}` is not enabled here"),
        )
        .next(format!(
            "the person can enable it: `:kit {{:enable [:{tool}]}}` in flowstone.edn"
        ))
    }

    /// A part of a flow that this tool must not change.
    pub fn out_of_scope(path: impl Into<String>, message: impl Into<String>) -> KitError {
        KitError::new(KitCode::OutOfScope, message).with(json!({"path": path.into()}))
    }

    pub fn refused_in_test(tool: &str) -> KitError {
        KitError::new(
            KitCode::RefusedInTest,
            format!("`{tool}` changes something, and a run of kind test may not"),
        )
    }

    pub fn recursion_refused() -> KitError {
        KitError::new(
            KitCode::RecursionRefused,
            "a test does not start tests: the caller is part of one",
        )
    }

    /// Also for what belongs to another flow or workspace.
    pub fn not_found(message: impl Into<String>) -> KitError {
        KitError::new(KitCode::NotFound, message)
    }

    /// `near` is the tool that was probably meant.
    pub fn unknown_tool(name: &str, near: Option<&str>) -> KitError {
        let error = KitError::new(
            KitCode::UnknownTool,
            format!("the kit has no tool `{name}`"),
        );
        match near {
            Some(near) => error.next(format!("call `{near}`")),
            None => error.next("list the tools"),
        }
    }

    /// The base of a commit is not the newest revision. Details as in the specification of the kit.
    pub fn revision_conflict(message: impl Into<String>, details: Json) -> KitError {
        KitError::new(KitCode::RevisionConflict, message)
            .next("read the flow again, apply the change to the current revision, and commit with its id as `base_revision_id`")
            .with(details)
    }

    pub fn no_revision(slug: &str) -> KitError {
        KitError::new(
            KitCode::NoRevision,
            format!("the flow `{slug}` has no committed revision"),
        )
        .next("call `commit_revision` with the flow's text first")
    }

    pub fn no_trace() -> KitError {
        KitError::new(
            KitCode::NoTrace,
            "there is no trace: this session has made no test run, and no run calls",
        )
        .next("call `test_run` first")
    }

    pub fn connection_not_ready(integration: &str, details: Json) -> KitError {
        KitError::new(
            KitCode::ConnectionNotReady,
            format!("the connection for `{integration}` is not ready"),
        )
        .next("call `request_connection`, and let the person complete it")
        .with(details)
    }

    pub fn not_removable(message: impl Into<String>) -> KitError {
        KitError::new(KitCode::NotRemovable, message)
    }

    pub fn flow_archived(slug: &str) -> KitError {
        KitError::new(
            KitCode::FlowArchived,
            format!("the flow `{slug}` is archived"),
        )
        .next(format!(
            "the person can end that with `flowstone flows archive {slug} --undo`"
        ))
    }

    /// The text of a flow has errors; `problems` are those that `flowstone check --json` prints.
    pub fn check_failed(message: impl Into<String>, problems: Vec<Json>) -> KitError {
        KitError::new(KitCode::CheckFailed, message)
            .next("correct the places in `details.problems`, and commit again")
            .with(json!({"problems": problems}))
    }

    /// `retry_after_s` is also the header `Retry-After`.
    pub fn limit_exceeded(message: impl Into<String>, retry_after_s: u64) -> KitError {
        KitError::new(KitCode::LimitExceeded, message)
            .next(format!("repeat the call in {retry_after_s} s"))
            .with(json!({"retry_after_s": retry_after_s}))
    }

    /// A limit that time does not lift; `next` says what makes room.
    pub fn full(message: impl Into<String>, next: impl Into<String>) -> KitError {
        KitError::limit_exceeded(message, RETRY_FULL_S).next(next)
    }

    /// A failure of the platform. What failed goes to the log; the caller gets the id of the request only.
    pub fn internal(why: &dyn std::fmt::Display) -> KitError {
        tracing::error!(target: "flowstone::kit", error = %why, "a tool of the kit failed");
        KitError::new(KitCode::Internal, "internal error")
    }

    /// Details: `trace_id`, `test_id`, `verdict: "failed"`, `tools`.
    pub fn test_run_incomplete(message: impl Into<String>, details: Json) -> KitError {
        KitError::new(KitCode::TestRunIncomplete, message)
            .next("look at the trace with `query_spans`, then repeat the call")
            .with(details)
    }

    pub fn no_event(seconds: u64) -> KitError {
        KitError::new(
            KitCode::NoEvent,
            format!("no event came within {seconds} s"),
        )
        .next("make the event happen while the call waits, and repeat it")
    }

    pub fn timeout(tool: &str, ms: u64) -> KitError {
        KitError::new(
            KitCode::Timeout,
            format!("`{tool}` did not finish within {} s", ms / 1000),
        )
        .next("repeat the call")
    }

    /// Returns the object that every door answers.
    pub fn to_json(&self) -> Json {
        let mut error = json!({
            "code": self.code.name(),
            "message": self.message,
            "retryable": self.retryable,
        });
        if let Some(step) = &self.next_step {
            error["next_step"] = json!(step);
        }
        if let Some(details) = &self.details {
            error["details"] = details.clone();
        }
        error
    }
}

/// Cuts a text that repeats a long argument.
fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MOST_TEXT) {
        text.truncate(end);
        text.push('…');
    }
    text
}

impl From<StoreError> for KitError {
    fn from(error: StoreError) -> KitError {
        KitError::internal(&error)
    }
}

impl From<EngineError> for KitError {
    fn from(error: EngineError) -> KitError {
        KitError::internal(&error)
    }
}

impl From<RegistryError> for KitError {
    fn from(error: RegistryError) -> KitError {
        let message = error.to_string();
        match &error {
            RegistryError::NoFlow { slug, .. } | RegistryError::NotReleased { slug } => {
                KitError::no_revision(slug)
            }
            RegistryError::NoVersion { .. } => KitError::not_found(message),
            RegistryError::Conflict(conflict) => {
                let base = conflict.base.as_ref().map(|row| &row.revision);
                let head = conflict.head.as_ref();
                KitError::revision_conflict(
                    message,
                    json!({
                        "base_revision_id": base,
                        "current_revision_id": head.map(|row| &row.revision),
                        "current_version": head.map(|row| row.number),
                        "changed": conflict.changed,
                    }),
                )
            }
            RegistryError::NoBase { head, .. } => {
                KitError::revision_conflict(message, json!({"current_version": head}))
            }
            RegistryError::Archived { slug } => KitError::flow_archived(slug),
            RegistryError::CheckFailed { slug, problems } => {
                let problems = problems.iter();
                let problems = problems.map(|it| super::revision::finding(slug, it));
                KitError::check_failed(message, problems.collect())
            }
            RegistryError::NothingBefore { slug, .. } => KitError::no_revision(slug),
            RegistryError::DeployKey { .. } => KitError::permission_denied(message),
            RegistryError::Files(_)
            | RegistryError::NotText { .. }
            | RegistryError::MainTaken { .. } => {
                KitError::invalid("/delta", "texts by paths, with `flow.edn`", message)
            }
            RegistryError::OtherSlug { slug, .. } => KitError::out_of_scope(
                "/delta/set/parameters/files/flow.edn",
                format!("{message}: the kit works on `{slug}` only"),
            ),
            RegistryError::BadReference { .. } => {
                KitError::invalid("/base_revision_id", "the id of a revision", message)
            }
            RegistryError::TooLong { what, .. } => {
                KitError::invalid(format!("/{what}"), "a shorter text", message)
            }
            RegistryError::Unpushed { .. }
            | RegistryError::Occupied { .. }
            | RegistryError::Unwritable { .. }
            | RegistryError::Store(_) => KitError::internal(&error),
        }
    }
}
