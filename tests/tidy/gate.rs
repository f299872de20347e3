//! The way to files, servers, programs and the environment is through the gate: which files of `src/steps` open them, and
//! who asked the gate before.

use super::tree::{files, none, text};

/// What reaches outside of the process.
const OPENERS: &[&str] = &[
    "Client::builder",
    "reqwest::Client::new",
    "Command::new",
    "TcpStream",
    "UdpSocket",
    "env::var",
    "lookup_host",
    "std::env",
    "std::fs",
    "std::process",
    "tokio::fs",
    "tokio::process",
];

/// Files that may open something, and why that is granted. A new step needs no row here: it asks `cx.gate()`, and hands the
/// path or address to one of these.
const GRANTED: &[(&str, &str)] = &[
    ("src/steps/db/sqlite.rs", "the path comes from `cx.gate()`"),
    (
        "src/steps/files",
        "paths come from `cx.gate()`, or lie in the project's own data",
    ),
    (
        "src/steps/guard.rs",
        "resolves names, and checks each address against `cx.gate().net()`",
    ),
    (
        "src/steps/http/pool.rs",
        "makes the clients, with the guard in them",
    ),
    ("src/steps/http/sockets.rs", "counts file handles"),
    (
        "src/steps/mcp/process.rs",
        "starts the program that `cx.gate().program()` granted",
    ),
    (
        "src/steps/mcp/server.rs",
        "hands on what every program sees of the environment",
    ),
    (
        "src/steps/oauth/kept.rs",
        "reads and writes logins in the project's own data",
    ),
    (
        "src/steps/oauth/redirect.rs",
        "listens on 127.0.0.1 for one answer, during `connections login`",
    ),
    (
        "src/steps/permissions.rs",
        "reads the home folder of the user, for rows with `~/`",
    ),
    (
        "src/steps/recording",
        "reads and writes the recording that the command names",
    ),
    (
        "src/steps/secrets.rs",
        "reads secrets; `cx.secret_for()` decides who is sent one",
    ),
    ("src/steps/settings.rs", "reads the project's settings"),
    (
        "src/steps/socket.rs",
        "connects to addresses that the guard has checked",
    ),
    (
        "src/steps/ssh/files.rs",
        "keeps the files of one command in a folder that only this user can enter",
    ),
    (
        "src/steps/ssh/process.rs",
        "starts `ssh`, which `cx.gate().program()` granted, for an address that the guard has checked",
    ),
    ("src/steps/table/csv.rs", "paths come from `cx.gate()`"),
    (
        "src/project/registry/copy.rs",
        "writes the file that a person names for `flows pull`; no step uses it",
    ),
    ("src/project/search/flows.rs", "only its tests write files"),
    (
        "src/project/workspace/docs/build.rs",
        "runs when the program is built",
    ),
];

/// Files that ask the gate on behalf of an opener: each has a call of it.
const ASKERS: &[(&str, &str)] = &[
    ("src/steps/db/target.rs", "gate().read("),
    ("src/steps/db/target.rs", "gate().write("),
    ("src/steps/files/op/capture.rs", "gate().read("),
    ("src/steps/files/op/materialize.rs", "gate().place("),
    ("src/steps/files/op/publish.rs", "gate().write("),
    ("src/steps/files/op/write_out.rs", "gate().place("),
    ("src/steps/files/source.rs", "gate().read("),
    ("src/steps/http/settings.rs", "gate().net()"),
    ("src/steps/http/settings.rs", "gate().proxy("),
    ("src/steps/mcp/server.rs", "gate().program("),
    ("src/steps/ssh/target.rs", "gate().program("),
    ("src/steps/ssh/target.rs", "gate().read("),
    ("src/steps/table/csv.rs", "gate().read("),
];

#[test]
fn steps_reach_outside_through_the_gate() {
    let mut problems = Vec::new();
    let paths = [files("src/project", &[".rs"]), files("src/steps", &[".rs"])];
    for path in paths.concat() {
        let name = path.display().to_string();
        let is_granted = GRANTED.iter().any(|(granted, _)| {
            name == *granted
                || name.starts_with(&format!("{granted}/"))
                || name == format!("{granted}.rs")
        });
        if is_granted {
            continue;
        }
        let text = text(&path);
        for (idx, line) in text
            .lines()
            .enumerate()
            .filter(|(_, it)| !it.trim_start().starts_with("//"))
        {
            for opener in OPENERS.iter().filter(|opener| line.contains(*opener)) {
                let at = idx + 1;
                problems.push(format!(
                    "{name}:{at}: `{opener}` goes past the gate; ask `cx.gate()`, and hand the path or address to what opens it"
                ));
            }
        }
    }
    for (name, call) in ASKERS {
        if !text(name).contains(call) {
            problems.push(format!("{name} does not ask the gate: `{call}` is missing"));
        }
    }
    none(problems);
}

/// Only the gate makes what stands for a permission.
#[test]
fn permissions_are_made_by_the_gate_alone() {
    let mut problems = Vec::new();
    for path in files("src", &[".rs"]) {
        let name = path.display().to_string();
        let text = text(&path);
        let is_gate =
            name.starts_with("src/flow/step/gate") || name.starts_with("src/flow/permission");
        let is_person =
            ["src/engine/direct.rs", "src/surfaces/cli/args/permits.rs"].contains(&&*name);
        if !is_gate && !is_person && text.contains("Allow::everything()") {
            problems.push(format!("{name} allows everything"));
        }
        let is_step = name.starts_with("src/steps/") || name.starts_with("src/project/");
        if is_step && text.contains("own_stores()") && !OWN.contains(&&*name) {
            problems.push(format!("{name} reaches stores without `cx.stores()?`"));
        }
        if is_step && text.contains("scope().services.stores") {
            problems.push(format!("{name} reaches stores around the gate"));
        }
        if !is_gate
            && text.contains("find_in(")
            && name.starts_with("src/steps/")
            && !OUTSIDE.contains(&&*name)
        {
            problems.push(format!(
                "{name} looks a secret up without `cx.secret_for()`"
            ));
        }
    }
    none(problems);
}

/// Where secrets are looked up outside of steps: their places, reports about them, recordings of them.
const OUTSIDE: &[&str] = &[
    "src/steps/connection_report.rs",
    "src/steps/oauth/login.rs",
    "src/steps/recording/secrets.rs",
    "src/steps/secrets.rs",
];

/// Files that store new contents, look up what belongs to their own run, or read resources that `cx.resource` returned.
const OWN: &[&str] = &[
    "src/project/workspace/feedback.rs",
    // Its own run, and whether a flow that it starts is released.
    "src/project/workspace/flows.rs",
    "src/project/workspace/resources.rs",
    "src/steps/files/op/init_changeset.rs",
    "src/steps/files/tree.rs",
    "src/steps/http/store.rs",
    "src/steps/persist/blob.rs",
    "src/steps/resource.rs",
];
