//! `flowstone tokens` against a server.

use serde_json::{Value, json};

use super::Remote;
use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::report::Report;
use crate::cli::tokens::{Expiry, TokensCommand, TokensCreate, TokensList, list_table};
use crate::json::ok;

pub(super) fn perform(remote: &Remote, command: &TokensCommand) -> Result<Exit, Report> {
    match command {
        TokensCommand::Create(args) => create(remote, args),
        TokensCommand::List(args) => list(remote, args),
        TokensCommand::Revoke(args) => {
            remote.delete(&["tokens", &args.id], &[])?;
            match args.json {
                true => output::json(&json!({"ok": true, "revoked": args.id})),
                false => output::note(&format!("the token {} is revoked", args.id)),
            }
            Ok(Exit::Completed)
        }
    }
}

fn create(remote: &Remote, args: &TokensCreate) -> Result<Exit, Report> {
    let scopes: Vec<&str> = args.scopes.iter().map(|right| right.0.name()).collect();
    let mut body = json!({
        "name": args.name,
        "kind": args.kind.0.name(),
        "scopes": scopes,
        "flows": args.flows,
        "labels": args.labels,
        "resources": args.resources,
        "jobTypes": args.job_types,
        "roles": args.roles,
    });
    if let Some(workspace) = &args.workspace {
        body["workspace"] = json!(workspace);
    }
    if let Some(subject) = &args.subject {
        body["subject"] = json!(subject);
    }
    match args.expires {
        None => {}
        Some(Expiry::Never) => body["expires"] = json!("never"),
        Some(Expiry::After(ttl)) => body["expires"] = json!(format!("{}ms", ttl.as_millis())),
    }
    let created = remote.post(&["tokens"], &body)?;
    if args.json {
        output::json(&ok(created));
        return Ok(Exit::Completed);
    }
    output::data(created["token"].as_str().unwrap_or_default());
    output::note("this is shown once; store it where only its user can read it");
    Ok(Exit::Completed)
}

fn list(remote: &Remote, args: &TokensList) -> Result<Exit, Report> {
    let listed = remote.get(&["tokens"], &[])?;
    if args.json {
        output::json(&ok(listed));
        return Ok(Exit::Completed);
    }
    let tokens = listed["tokens"].as_array().cloned().unwrap_or_default();
    list_table(tokens.iter().map(row).collect());
    Ok(Exit::Completed)
}

fn row(token: &Value) -> Vec<String> {
    let text = |name: &str| token[name].as_str().unwrap_or_default().to_owned();
    let list = |name: &str| {
        let items = token[name].as_array().into_iter().flatten();
        items.filter_map(Value::as_str).collect::<Vec<_>>()
    };
    let limits = ["flows", "labels", "resources", "jobTypes"]
        .map(list)
        .concat();
    let or = |name: &str, other: &str| token[name].as_str().unwrap_or(other).to_owned();
    vec![
        text("id"),
        text("name"),
        text("kind"),
        list("scopes").join(" "),
        match limits.is_empty() {
            true => "-".to_owned(),
            false => limits.join(" "),
        },
        match token["revokedAt"].is_string() {
            true => "revoked".to_owned(),
            false => or("expiresAt", "never"),
        },
        or("usedAt", "-"),
    ]
}
