//! `flowstone kit` and `flowstone flows test` on a server: its tools at `/api/tools`.

use flowstone_engine::json::{compact, read_exact};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::{Remote, local_only};
use crate::cli::args::{FlowsTest, Kit};
use crate::cli::exit::Exit;
use crate::cli::flows::tested;
use crate::cli::kit::{arguments, exit_of, tell_approvals, tell_decision, tell_tools, wrong};
use crate::cli::output;
use crate::cli::report::Report;

/// The header with the flow that a call works on.
const FLOW: &str = "x-flowstone-flow";

/// Performs `kit`.
pub(super) fn perform(remote: &Remote, args: &Kit) -> Result<Exit, Report> {
    let only_here = [
        (args.yes, "`kit --yes`"),
        (!args.permissions.is_empty(), "`kit --permission`"),
        (!args.enabled.is_empty(), "`kit --enable`"),
        (args.name == "connect", "`kit connect`"),
    ];
    if let Some((_, what)) = only_here.iter().find(|(is_given, _)| *is_given) {
        return Err(local_only(what));
    }
    let as_json = args.json.is_some();
    match &*args.name {
        "list" => told(listed(remote, args, &[])?, |answer| {
            tell_tools(answer, as_json)
        }),
        "approvals" => told(listed(remote, args, &["approvals"])?, |answer| {
            tell_approvals(answer, as_json);
        }),
        "approve" | "deny" => {
            let id = args.decided()?;
            let body = json!({"decision": args.name});
            let path = ["tools", "approvals", id];
            let at = (&path[..], None);
            told(remote.ask_kit(Method::POST, at, Some(&body))?, |answer| {
                tell_decision(answer, id, as_json);
            })
        }
        name => {
            if args.approval.is_some() {
                return Err(wrong("arguments of a tool are given with `--json`"));
            }
            let body = match arguments(args.json.as_deref().unwrap_or("{}"))? {
                Ok(body) => body,
                Err(error) => return told(Err(error.to_json()), output::json),
            };
            let flow = args.flow.as_deref();
            let answer = remote.ask_kit(Method::POST, (&["tools", name][..], flow), Some(&body))?;
            told(answer, output::json)
        }
    }
}

/// Performs `flows test`.
pub(super) fn test(remote: &Remote, args: &FlowsTest) -> Result<Exit, Report> {
    if args.yes {
        return Err(local_only("`flows test --yes`"));
    }
    let body = tested::arguments(args)?;
    let at = (&["tools", tested::TOOL][..], Some(&*args.slug));
    let answer = remote.ask_kit(Method::POST, at, Some(&body))?;
    Ok(tested::tell(answer.as_ref(), args))
}

fn listed(remote: &Remote, args: &Kit, below: &[&str]) -> Result<Result<Value, Value>, Report> {
    let path = [&["tools"][..], below].concat();
    remote.ask_kit(Method::GET, (&path[..], args.flow.as_deref()), None)
}

/// Prints an answer with a function, and an error of the kit as an object.
fn told(answer: Result<Value, Value>, tell: impl FnOnce(&Value)) -> Result<Exit, Report> {
    Ok(match answer {
        Ok(answer) => {
            tell(&answer);
            Exit::Completed
        }
        Err(error) => {
            output::json(&error);
            exit_of(&error)
        }
    })
}

impl Remote {
    /// Sends a request to the kit for a flow, and returns its answer, or its error as an object.
    fn ask_kit(
        &self,
        method: Method,
        (path, flow): (&[&str], Option<&str>),
        body: Option<&Value>,
    ) -> Result<Result<Value, Value>, Report> {
        let mut request = self.request_below(&["api"], (method, path), &[]);
        if let Some(flow) = flow {
            request = request.header(FLOW, flow);
        }
        if let Some(body) = body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(compact(body));
        }
        let (status, bytes) = self.exchange(request)?;
        match read_exact(&bytes) {
            Ok(answer) if status.is_success() => Ok(Ok(answer)),
            // What a server without the kit answers has no member of this name.
            Ok(error) if error["retryable"].is_boolean() => Ok(Err(error)),
            _ => Err(self.failed(status, &bytes)),
        }
    }
}
