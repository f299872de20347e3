//! Installations on a server.

use flowstone_engine::codec;
use flowstone_engine::installation::InstallationName;
use flowstone_engine::registry::DEFAULT_WORKSPACE;
use serde_json::{Value, json};

use super::{Remote, local_only};
use crate::cli::args::{FlowsCommand, FlowsConfigure, FlowsInstall};
use crate::cli::flows::installed::{
    changes, tell_configured, tell_installed, tell_list, tell_uninstalled,
};
use crate::cli::report::Report;
use crate::cli::rows::{list, text};

pub(super) fn perform(remote: &Remote, command: &FlowsCommand) -> Result<(), Report> {
    match command {
        FlowsCommand::Configure(args) => configure(remote, args)?,
        FlowsCommand::Install(args) => tell_installed(install(remote, args)?, args.json),
        FlowsCommand::Installations(args) => {
            let only = args.workspace.iter();
            let query: Vec<(&str, String)> = only.map(|it| ("workspace", it.clone())).collect();
            let answer = remote.get(&["installations"], &query)?;
            tell_list(list(&answer, "installations").cloned().collect(), args.json);
        }
        FlowsCommand::Uninstall(args) => {
            let query = place(&args.name);
            let query: Vec<(&str, String)> =
                query.map(|it| ("workspace", it)).into_iter().collect();
            remote.delete(&["installations", &args.name.name], &query)?;
            tell_uninstalled(&args.name, args.json);
        }
        FlowsCommand::Pack(_) => return Err(local_only("`flows pack`")),
        _ => {}
    }
    Ok(())
}

/// Returns the workspace of a name; nothing where it is the usual one, which a server takes from the token.
fn place(name: &InstallationName) -> Option<String> {
    let workspace = name.workspace.clone();
    Some(workspace).filter(|workspace| workspace != DEFAULT_WORKSPACE)
}

fn install(remote: &Remote, args: &FlowsInstall) -> Result<Value, Report> {
    let is_slug = !args.source.contains(['/', ':', '.']);
    if !is_slug || args.digest.is_some() {
        return Err(local_only("`flows install` of a package"));
    }
    let mut body = json!({"slug": args.source});
    if let Some(name) = &args.name {
        body["name"] = json!(name);
    }
    if args.workspace != DEFAULT_WORKSPACE {
        body["workspace"] = json!(args.workspace);
    }
    remote.post(&["installations"], &body)
}

fn configure(remote: &Remote, args: &FlowsConfigure) -> Result<(), Report> {
    let path = ["installations", &*args.name.name];
    if args.check {
        let query = place(&args.name);
        let query: Vec<(&str, String)> = query.map(|it| ("workspace", it)).into_iter().collect();
        let shown = remote.get(&path, &query)?;
        let problem = &shown["problem"];
        if problem.is_object() {
            let code = ["E1443", "E1444", "E1445", "E1448"];
            let code = code.into_iter().find(|code| problem["code"] == *code);
            let report = Report::error(code.unwrap_or("E1443"), text(problem, "message"));
            return Err(report.hint("`flowstone explain` with the code says what to do"));
        }
        tell_configured(shown, args.json);
        return Ok(());
    }
    let changes = changes(args)?;
    let mut body = json!({"set": changes.set, "values": "edn"});
    if let Some(setup) = &changes.setup {
        let setup = codec::encode(setup)
            .map_err(|error| Report::error("E0941", format!("`--setup` is not data: {error}")))?;
        body["setup"] = json!(setup);
    }
    if let Some(is_on) = changes.auto_upgrade {
        body["autoUpgrade"] = json!(is_on);
    }
    if let Some(most) = changes.max_tokens {
        body["maxTokens"] = json!(most);
    }
    if changes.upgrade {
        body["upgrade"] = json!(true);
    }
    if let Some(workspace) = place(&args.name) {
        body["workspace"] = json!(workspace);
    }
    let path = ["installations", &*args.name.name, "configure"];
    tell_configured(remote.post(&path, &body)?, args.json);
    Ok(())
}
