//! The build kit: tools with which a coding agent builds, tests and schedules a flow.
//!
//! A tool is one row of [`catalog::TOOLS`], with one function. MCP, HTTP and the command line are made from the catalogue, and
//! each of their calls is [`call`]. The flow that a session works on is bound by the person who opens the door, and no argument
//! names another. This module knows nothing of HTTP, MCP and terminals.
//!
//! To add a tool, write `tools/NAME.rs` with `pub const TOOL: Tool`, name it in `tools.rs`, and list it in `catalog.rs`.

pub mod agent_view;
pub mod approval;
pub mod catalog;
pub mod change;
pub mod connectable;
pub mod connecting;
pub mod context;
pub mod delivery;
pub mod delta;
pub mod discovery;
pub mod error;
pub mod event_types;
pub mod flows;
pub mod link;
pub mod page;
pub mod permission;
mod place;
pub mod playbook;
pub mod revision;
pub mod schedule;
pub mod schema;
mod span_approval;
pub mod span_filter;
pub mod span_pages;
mod span_path;
pub mod spans;
mod step;
pub mod subscription;
pub mod test_run;
pub mod tool;
pub mod tools;
pub mod trace_spans;
pub mod trigger;
pub mod unconfirmed;

use std::time::Duration;

use flowstone_model::diagnostic::nearest;
use flowstone_model::token::{Scope, Token, TokenKind};
use serde_json::{Map, Value as Json};

pub use approval::Decider;
pub use context::{Backend, BoundTrace, CancelOnDrop, KitCall, Origin};
pub use error::{KitCode, KitError};
pub use permission::{DoorPermissions, Permissions, Question};
pub use step::KitStep;
pub use tool::{Answer, Arguments, Bound, InTest, Permission, Tool};

/// How much longer a caller waits than what it calls.
pub const GRACE: Duration = Duration::from_secs(10);

/// How a call that somebody has to agree to is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent<'a> {
    /// Nobody can be asked at this door: the question is stored, and the call is refused until a person decided.
    Stored,
    /// The door can ask: [`call`] returns the question.
    Door,
    /// A person agreed to the call with this digest.
    Given(&'a str),
    /// The door can ask, but keeps nothing between the question and the answer: [`call`] returns the question with a state.
    Elicit,
    /// The door repeats the call with the state of its question, and the person agreed.
    Elicited(&'a str),
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Called {
    Done(Json),
    /// A person has to agree. The door asks and calls again with [`Consent::Given`] or [`Consent::Elicited`].
    Ask(Box<Question>),
}

/// Calls a tool. Everything that does not depend on the tool is decided here: whether it exists and is enabled, what the
/// caller may do, what the arguments are, whether a person has to agree, and how long it may take.
///
/// # Errors
/// An error of the kit; those of the platform say nothing about their cause.
pub async fn call(
    cx: &KitCall<'_>,
    name: &str,
    arguments: Json,
    consent: Consent<'_>,
) -> Result<Called, KitError> {
    let (tool, arguments) = admitted(cx, name, arguments)?;
    if let Some(mut question) = asked_about(cx, tool, &arguments).await? {
        match consent {
            Consent::Given(digest) if digest == question.digest => {}
            Consent::Given(_) | Consent::Door => {
                return Ok(Called::Ask(Box::new(question)));
            }
            Consent::Elicited(state) if approval::use_elicited(cx, &question, state).await? => {}
            Consent::Elicit | Consent::Elicited(_) => {
                question.state = Some(approval::elicit(cx, &question).await?);
                return Ok(Called::Ask(Box::new(question)));
            }
            Consent::Stored => approval::use_stored(cx, &question).await?,
        }
    }
    perform(cx, tool, arguments).await.map(Called::Done)
}

/// Returns what a person has to agree to before a call is made; `None` for a call that needs nobody.
///
/// # Errors
/// As [`call`], for what is known before the call is made.
pub async fn question(
    cx: &KitCall<'_>,
    name: &str,
    arguments: Json,
) -> Result<Option<Question>, KitError> {
    let (tool, arguments) = admitted(cx, name, arguments)?;
    asked_about(cx, tool, &arguments).await
}

/// Returns the tool of a call and its checked arguments, if the caller may make such calls.
fn admitted(
    cx: &KitCall<'_>,
    name: &str,
    arguments: Json,
) -> Result<(&'static Tool, Arguments), KitError> {
    let tool = find(cx, name)?;
    may(cx, tool)?;
    let Json::Object(arguments) = arguments else {
        return Err(KitError::invalid(
            "",
            "an object",
            "the arguments must be a JSON object",
        ));
    };
    let arguments = unwrapped(tool, arguments);
    schema::check(tool, &arguments)?;
    may_change(cx, tool, &arguments)?;
    Ok((tool, arguments))
}

async fn asked_about(
    cx: &KitCall<'_>,
    tool: &Tool,
    arguments: &Arguments,
) -> Result<Option<Question>, KitError> {
    match cx.permissions.of(tool) {
        Permission::Allow => Ok(None),
        Permission::Deny => Err(KitError::permission_denied(format!(
            "`{}` is denied here by a setting",
            tool.name
        ))),
        Permission::Ask => {
            if let Some(check) = tool.check {
                check(cx, arguments).await?;
            }
            Question::about(cx, tool, arguments).await.map(Some)
        }
    }
}

fn find(cx: &KitCall<'_>, name: &str) -> Result<&'static Tool, KitError> {
    let Some(tool) = catalog::find(name) else {
        let near = catalog::meant(name).or_else(|| nearest(name, catalog::names()));
        return Err(KitError::unknown_tool(name, near));
    };
    match cx.permissions.is_enabled(tool) {
        true => Ok(tool),
        false => Err(KitError::tool_disabled(name)),
    }
}

/// Tells whether the kit is for the holder of a token: users of an app run its flows, and do not build them.
pub fn is_for(token: &Token) -> bool {
    match token.kind {
        TokenKind::Owner | TokenKind::Service => true,
        TokenKind::Anon | TokenKind::User => false,
    }
}

/// Checks what the caller may do, before the arguments are looked at.
fn may(cx: &KitCall<'_>, tool: &Tool) -> Result<(), KitError> {
    if !is_for(cx.token) {
        let name = &cx.token.name;
        return Err(KitError::permission_denied(format!(
            "`{name}` is the token of a user: the build kit is for those who build flows"
        )));
    }
    cx.check_bound()?;
    if !cx.token.has(tool.scope) {
        let (token, scope) = (&cx.token.name, tool.scope.name());
        return Err(KitError::permission_denied(format!(
            "the token `{token}` lacks the scope `{scope}`"
        )));
    }
    if tool.bound.contains(&Bound::Flow) {
        let slug = cx.flow()?;
        if !cx.reaches_flow(slug) {
            return Err(KitError::not_found(format!("there is no flow `{slug}`")));
        }
    }
    match (cx.origin.is_test, tool.in_test) {
        (true, InTest::Refused) => Err(KitError::refused_in_test(tool.name)),
        (true, InTest::Recursion) => Err(KitError::recursion_refused()),
        (_, _) => Ok(()),
    }
}

/// Checks what the arguments need beside the scope of the tool, before a person is asked: a `delta` changes the flow.
///
/// # Errors
/// `permission_denied`.
pub fn may_change(cx: &KitCall<'_>, tool: &Tool, arguments: &Arguments) -> Result<(), KitError> {
    if !arguments.contains_key("delta") || cx.token.has(Scope::Edit) {
        return Ok(());
    }
    let (name, scope) = (tool.name, tool.scope.name());
    Err(KitError::permission_denied(format!(
        "`{name}` with a `delta` needs the scope `edit` beside `{scope}`"
    )))
}

/// Takes away the one object that some clients wrap the arguments in.
fn unwrapped(tool: &Tool, mut arguments: Map<String, Json>) -> Arguments {
    let count = arguments.len();
    let inner = tool.wrapper.and_then(|name| arguments.get_mut(name));
    match (count, inner) {
        (1, Some(Json::Object(inner))) => std::mem::take(inner),
        _ => arguments,
    }
}

async fn perform(cx: &KitCall<'_>, tool: &Tool, arguments: Arguments) -> Answer {
    let ms = tool.timeout_ms_of(&arguments);
    let limit = Duration::from_millis(ms);
    let mut work = (tool.call)(cx, arguments);
    tokio::select! {
        answer = &mut work => answer,
        // A tool that has its own deadline uses it first, because it can say more.
        () = tokio::time::sleep(limit + GRACE) => Err(KitError::timeout(tool.name, ms)),
        () = cx.cancellation() => match tokio::time::timeout(GRACE, work).await {
            Ok(answer) => answer,
            Err(_) => Err(KitError::timeout(tool.name, ms)),
        },
    }
}
