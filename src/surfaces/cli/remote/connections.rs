//! `flowstone connections` against a server, which uses the connections of its own project.

use serde_json::{Value, json};

use super::{Remote, local_only};
use crate::cli::args::{Bound, ConnectionsList, ConnectionsTest};
use crate::cli::connections::{end_tests, tell_list, tell_test};
use crate::cli::exit::Exit;
use crate::cli::report::Report;
use crate::cli::rows;

/// Refuses options about flows and bindings of this project.
fn plain(has_flows: bool, bound: &Bound) -> Result<(), Report> {
    match (has_flows, bound.profile.is_some() || !bound.set.is_empty()) {
        (true, _) => Err(local_only("`connections` for a flow file")),
        (false, true) => Err(local_only("`connections` with `--profile` or `--set`")),
        (false, false) => Ok(()),
    }
}

pub(super) fn list(remote: &Remote, args: &ConnectionsList) -> Result<Exit, Report> {
    plain(!args.flows.is_empty(), &args.bound)?;
    let answer = remote.get(&["connections"], &[])?;
    let connections = rows::list(&answer, "connections").cloned();
    tell_list(connections.collect(), args.json);
    Ok(Exit::Completed)
}

pub(super) fn test(remote: &Remote, args: &ConnectionsTest) -> Result<Exit, Report> {
    plain(!args.flows.is_empty(), &args.bound)?;
    let body = match &args.name {
        Some(name) => json!({ "name": name }),
        None => json!({}),
    };
    let answer = remote.post(&["connections", "test"], &body)?;
    let tests: Vec<Value> = rows::list(&answer, "connections").cloned().collect();
    if !args.json {
        tests.iter().for_each(tell_test);
    }
    Ok(end_tests(&tests, args.json))
}
