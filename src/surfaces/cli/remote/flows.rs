//! `flowstone flows` and `flowstone check` against a server.

use std::fs;
use std::path::Path;

use flowstone_engine::disk::load;
use flowstone_lang::session::Session;
use serde_json::{Value, json};

use super::{Remote, installations, kit, local_only, registry};
use crate::cli::args::{Check, CheckFormat, FlowsCommand, FlowsShow};
use crate::cli::check::{gather, summary};
use crate::cli::exit::Exit;
use crate::cli::flows::{registered, served};
use crate::cli::output;
use crate::cli::report::{Report, Severity, unreadable};
use crate::cli::rows::{list, maybe, text};

pub(super) fn perform(remote: &Remote, command: &FlowsCommand) -> Result<Exit, Report> {
    match command {
        FlowsCommand::List(args) if args.registry => {
            let query = match args.archived {
                true => vec![("archived", "true".to_owned())],
                false => Vec::new(),
            };
            let answer = remote.get(&["registry"], &query)?;
            registered::tell_list(list(&answer, "flows").cloned().collect(), args.json);
        }
        FlowsCommand::List(args) => {
            own_flows(args.paths.is_empty())?;
            let (flows, _) = remote.pages(&["flows"], "flows", &[], 0)?;
            served::tell_list(flows, args.json);
        }
        FlowsCommand::Show(args) => {
            own_flows(args.paths.is_empty())?;
            show(remote, args)?;
        }
        FlowsCommand::Configure(_)
        | FlowsCommand::Install(_)
        | FlowsCommand::Installations(_)
        | FlowsCommand::Pack(_)
        | FlowsCommand::Uninstall(_) => installations::perform(remote, command)?,
        FlowsCommand::Archive(_)
        | FlowsCommand::Diff(_)
        | FlowsCommand::Pull(_)
        | FlowsCommand::Push(_)
        | FlowsCommand::Release(_)
        | FlowsCommand::Rollback(_) => registry::perform(remote, command)?,
        FlowsCommand::Versions(args) => {
            own_flows(args.paths.is_empty())?;
            let registered = match args.programs {
                true => None,
                false => registry::versions(remote, &args.slug)?,
            };
            if let Some(versions) = registered {
                registered::tell_versions(versions, args.json);
                return Ok(Exit::Completed);
            }
            let path = ["flows", &*args.slug, "versions"];
            let (versions, _) = remote.pages(&path, "versions", &[], 0)?;
            served::tell_versions(versions, args.json);
        }
        FlowsCommand::Test(args) => return kit::test(remote, args),
        FlowsCommand::Trust(_) | FlowsCommand::Trusted(_) | FlowsCommand::Untrust(_) => {
            return Err(local_only("`flows trust`, `trusted` and `untrust`"));
        }
    }
    Ok(Exit::Completed)
}

fn show(remote: &Remote, args: &FlowsShow) -> Result<(), Report> {
    if args.text || args.slug.contains('@') {
        registered::tell_version(registry::version(remote, &args.slug)?, args);
        return Ok(());
    }
    let known = registry::known(remote, &args.slug)?;
    let flow = match (remote.get(&["flows", &args.slug], &[]), &known) {
        (Ok(flow), _) => flow,
        (Err(report), None) => return Err(report),
        (Err(_), Some(_)) => json!({"slug": args.slug}),
    };
    served::tell(flow, known, args.json);
    Ok(())
}

/// Refuses paths, because a server has its own flows.
fn own_flows(has_no_paths: bool) -> Result<(), Report> {
    match has_no_paths {
        true => Ok(()),
        false => Err(local_only("`flows` with paths")),
    }
}

/// Checks texts as the flows of a server: each file is sent as a text for the flow with its slug. An argument that is not
/// a file is the slug of a flow that the server checks as it is.
pub(super) fn check(remote: &Remote, args: &Check) -> Result<Exit, Report> {
    if args.against_running {
        return Err(local_only("`check --against-running`"));
    }
    let only_here = [
        (args.fix, "`check --fix`"),
        (args.portable, "`check --portable`"),
        (args.bounds, "`check --bounds`"),
        (args.format == CheckFormat::Sarif, "`check --format sarif`"),
    ];
    if let Some((_, option)) = only_here.iter().find(|(is_given, _)| *is_given) {
        return Err(local_only(option));
    }
    let as_json = args.json || args.format == CheckFormat::Json;
    let (mut reports, mut findings, mut count) = (Vec::new(), Vec::new(), 0);
    for path in &args.paths {
        let mut files = Vec::new();
        let name = path.display().to_string();
        if !path.exists() {
            files.push((name.clone(), None));
        } else {
            let mut found = Vec::new();
            gather(path, &mut found).map_err(|error| unreadable(&name, &error))?;
            for file in found {
                let name = file.display().to_string();
                let text = fs::read_to_string(&file).map_err(|error| unreadable(&name, &error))?;
                files.push((slug(&file, &name, &text)?, Some((name, text))));
            }
        }
        for (slug, sent) in &files {
            count += 1;
            let body = match sent {
                Some((_, text)) => json!({ "source": text }),
                None => json!({}),
            };
            let answer = remote.post(&["flows", slug, "check"], &body)?;
            for finding in list(&answer, "findings") {
                reports.push(report(finding, sent.as_ref()));
                findings.push(finding.clone());
            }
        }
    }
    let is_error = |report: &&Report| report.severity == Severity::Error;
    let errors = reports.iter().filter(is_error).count();
    if as_json {
        output::json(&json!({"ok": errors == 0, "files": count, "findings": findings}));
    } else {
        reports.iter().for_each(output::report);
        output::note(&summary(count, errors, reports.len() - errors));
    }
    Ok(match errors {
        0 => Exit::Completed,
        _ => Exit::Failed,
    })
}

/// Returns the slug of the flow in a file. If the text has errors, it is the name after the first `:slug`, or else the
/// name of the file.
fn slug(file: &Path, name: &str, text: &str) -> Result<String, Report> {
    if let Some(loaded) = load(&Session::new(), file, name).loaded {
        return Ok(loaded.flow.slug.to_string());
    }
    if let Some(slug) = written_slug(text) {
        return Ok(slug.to_owned());
    }
    let stem = file.file_stem().map(|stem| stem.to_string_lossy());
    let stem = stem.ok_or_else(|| Report::error("E0910", format!("{name} has no slug")))?;
    Ok(stem.into_owned())
}

/// Returns the name after the first `:slug` of a text.
fn written_slug(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(":slug")?;
    let name = rest.trim_start().trim_start_matches([':', '"']);
    let is_part = |char: char| char.is_alphanumeric() || char == '-' || char == '_';
    let end = name.find(|char| !is_part(char)).unwrap_or(name.len());
    name.get(..end).filter(|name| !name.is_empty())
}

/// Returns a finding with its place in the text that was sent.
fn report(finding: &Value, sent: Option<&(String, String)>) -> Report {
    let code = maybe(finding, "code").unwrap_or_default();
    let message = text(finding, "message");
    let mut report = match finding["severity"] == Severity::Warning.name() {
        true => Report::warning(&code, message),
        false => Report::error(&code, message),
    };
    let number = |name: &str| {
        finding[name]
            .as_u64()
            .and_then(|it| usize::try_from(it).ok())
    };
    if let (Some(line), Some(column)) = (number("line"), number("column")) {
        report = match sent {
            Some((name, text)) => in_text(report, (name, text), (line, column), finding),
            None => report.note(format!("at {}:{line}:{column}", text(finding, "file"))),
        };
    }
    report.label = maybe(finding, "label").unwrap_or_default();
    let hints = list(finding, "hints").filter_map(Value::as_str);
    report.hints.extend(hints.map(str::to_owned));
    report
}

fn in_text(
    report: Report,
    (name, text): (&str, &str),
    (line, column): (usize, usize),
    finding: &Value,
) -> Report {
    let mut report = report.in_text(name, text, line, column);
    let end_line = finding["end_line"].as_u64();
    let end_column = finding["end_column"].as_u64();
    if let (Some(place), Some(end_column)) = (&mut report.place, end_column) {
        let end = usize::try_from(end_column).unwrap_or(column);
        if end_line == Some(line as u64) && end > column {
            place.length = end - column;
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_errors_has_the_slug_that_it_says() {
        assert_eq!(written_slug("{:slug :a-b :flow '(]"), Some("a-b"));
        assert_eq!(written_slug("{:slug \"c_d\" :flow"), Some("c_d"));
        assert_eq!(written_slug("{:slug }"), None);
        assert_eq!(written_slug("(+ 1 2)"), None);
    }
}
