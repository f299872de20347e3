//! A draft: a new version of a flow in the registry, by the run that pushes it.

use std::collections::BTreeSet;

use flowstone_engine::disk::{self, InProject};
use flowstone_flow::definition::Flow;
use flowstone_flow::flow::LoadedFlow;
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use flowstone_model::diagnostic::Severity;
use flowstone_model::registry::{Added, Base, MAIN_FILE, VersionFiles};

use super::super::args::Args;
use super::super::{facts, of_engine};
use super::registered::{of_registry, registry};
use crate::addresses;
use crate::flow_files::{self as flows, TextFinding, text_findings};
use crate::registry::{DEFAULT_WORKSPACE, FlowRegistry, NewCommit, VersionRef, files_of, texts};

/// How many findings are told.
const TOLD: usize = 10;
/// Maximum number of characters of the step in the name of an author.
const STEP: usize = 100;

/// Adds a version to the registry. What runs stays as it is until somebody releases the version.
pub(in crate::workspace) async fn push_draft(
    cx: &StepContext,
    args: &Args,
) -> Result<Value, StepError> {
    let literal = args.needed_text("flow-literal")?;
    let base = match args.get("base") {
        None => None,
        Some(given) => Some(given.as_int().filter(|base| *base >= 0).ok_or_else(|| {
            args.wrong("`base` of `flows/push-draft` is the number of a version")
        })?),
    };
    let message = args.name("message")?;
    let registry = registry(cx)?;
    let (loaded, findings) = checked(cx, &registry, (literal, base)).await?;
    let loaded = without_errors(args, loaded, &findings)?;
    let slug = loaded.flow.slug.to_string();
    let mut new = NewCommit::of(&slug, files_of(&loaded).map_err(of_registry)?);
    new.author = author(cx);
    new.message = message.as_deref().unwrap_or_default().to_owned();
    // What the run has pushed before is its base.
    new.place = Some(format!("run {}", cx.run_id()));
    let is_known = registry.find(&slug).await.map_err(of_registry)?.is_some();
    new.base = match base {
        Some(0) => Base::Nothing,
        Some(number) => Base::Version(number),
        None if is_known => Base::OfPlace,
        None => Base::Nothing,
    };
    note_addresses(cx, &registry, &loaded.flow, &new.author).await?;
    let added = registry.commit(new).await.map_err(of_registry)?;
    let version = added.version();
    let is_warning = |finding: &&TextFinding| finding.severity != Severity::Error;
    let warnings = findings.iter().filter(is_warning).take(TOLD);
    let warnings: Vec<Value> = warnings.map(|it| Value::from(line(it))).collect();
    let status = match &added {
        Added::New(_) => "committed",
        Added::Unchanged(_) => "no-change",
    };
    Ok(facts([
        ("slug", Value::from(slug)),
        ("source", Value::keyword("draft")),
        ("status", Value::keyword(status)),
        ("version", Value::Int(version.number)),
        ("revision", Value::from(version.revision.as_str())),
        (
            "warnings",
            match warnings.is_empty() {
                true => Value::Nil,
                false => Value::vector(warnings),
            },
        ),
    ]))
}

/// Notes the addresses that the run writes into the flow: no person has confirmed them.
async fn note_addresses(
    cx: &StepContext,
    registry: &FlowRegistry,
    flow: &Flow,
    by: &str,
) -> Result<(), StepError> {
    let slug = &*flow.slug;
    let before = match registry.find(slug).await.map_err(of_registry)? {
        Some(row) => {
            let head = VersionRef::Number(row.head);
            let head = registry.version(slug, &head).await.map_err(of_registry)?;
            let files = registry.files(&head).await.map_err(of_registry)?;
            let texts = texts(&files).map_err(of_registry)?;
            disk::load_version(&Session::new(), slug, &texts).loaded
        }
        None => None,
    };
    let before = before.as_ref().map(|before| &*before.flow);
    let place = (cx.stores()?, cx.now_ms());
    let noted = addresses::note(place, (DEFAULT_WORKSPACE, slug), (before, flow), by);
    noted.await.map_err(of_engine)
}

/// Checks a text with the files that it includes: those of the version that it was made from, or those of the project.
async fn checked(
    cx: &StepContext,
    registry: &FlowRegistry,
    (literal, base): (&str, Option<i64>),
) -> Result<(Option<LoadedFlow>, Vec<TextFinding>), StepError> {
    let session = || {
        let session = Session::new();
        flowstone_flow::natives::install(&session);
        flowstone_steps::sandbox::register(&session);
        session
    };
    let formats = cx.scope().services.formats;
    let place = (cx.project_root(), formats);
    let own = session();
    let (loaded, findings) = flows::check_text(&own, literal, place, cx.steps());
    let Some(loaded) = loaded else {
        return Ok((None, findings));
    };
    let slug = loaded.flow.slug.to_string();
    let mut files = match files_before(registry, &slug, base).await? {
        Some(files) => files,
        None => files_of(&loaded).map_err(of_registry)?,
    };
    files.insert(MAIN_FILE.to_owned(), literal.as_bytes().to_vec());
    let texts = texts(&files).map_err(of_registry)?;
    let flows = registry.flows(true).await.map_err(of_registry)?;
    let registered: BTreeSet<String> = flows.into_iter().map(|row| row.name.slug).collect();
    let project = InProject {
        root: cx.project_root(),
        settings: cx.settings(),
        formats,
        registered: Some(&registered),
    };
    let session = session();
    let checked = disk::check_version(&session, (&slug, &texts), (&cx.steps()[..], project));
    let findings = text_findings(&session, checked.findings);
    Ok((checked.loaded, findings))
}

/// Returns the files of the version that a text was made from, if it has more than the main one.
async fn files_before(
    registry: &FlowRegistry,
    slug: &str,
    base: Option<i64>,
) -> Result<Option<VersionFiles>, StepError> {
    let Some(row) = registry.find(slug).await.map_err(of_registry)? else {
        return Ok(None);
    };
    let number = VersionRef::Number(base.filter(|base| *base > 0).unwrap_or(row.head));
    let version = registry.version(slug, &number).await.map_err(of_registry)?;
    let files = registry.files(&version).await.map_err(of_registry)?;
    Ok((files.len() > 1).then_some(files))
}

/// Returns the flow of a text without errors.
fn without_errors(
    args: &Args,
    loaded: Option<LoadedFlow>,
    findings: &[TextFinding],
) -> Result<LoadedFlow, StepError> {
    let errors = findings.iter().filter(|it| it.severity == Severity::Error);
    let errors: Vec<String> = errors.take(TOLD).map(line).collect();
    let Some(loaded) = loaded.filter(|_| errors.is_empty()) else {
        return Err(StepError::new(
            "E0839",
            "invalid",
            format!("the draft was not kept: {}", errors.join("; ")),
        )
        .hint("correct it and push it again: the whole text of the flow"));
    };
    match loaded.flow.definition.as_map() {
        Some(_) => Ok(loaded),
        None => Err(args.wrong("the draft was not kept: a flow is a map with `:slug` and `:flow`")),
    }
}

/// Returns the author of what a run pushes: the run, and the step or agent of it.
fn author(cx: &StepContext) -> String {
    let path = cx.path().to_string();
    let step: String = path.chars().take(STEP).collect();
    format!("run {}, step {step}", cx.run_id())
}

fn line(finding: &TextFinding) -> String {
    let place = match finding.line {
        0 => String::new(),
        line => format!("{line}:{} ", finding.column),
    };
    let hint = finding
        .hints
        .first()
        .map_or_else(String::new, |hint| format!(" ({hint})"));
    format!("{place}{} {}{hint}", finding.code, finding.message)
}
