//! Graph specs in files as flows that other flows and agents call.

use std::path::Path;

use flowstone_flow::format::{
    CompiledFlow, Compiling, FlowContract, FlowFormat, FormatError, ProjectView,
};
use serde_json::Value as Json;

use super::codes;
use super::compile::{Target, compile, slug};
use super::inputs::input_schema;
use super::models::Models;
use super::project::{file_fallback, known_in};
use super::shape::Issue;
use super::spec::{Audience, GraphSpec, SPEC_MAX};
use super::validate::validate;
use crate::json_text;

/// Graph specs: JSON files with `spec_version`, or with `nodes`.
#[derive(Debug)]
pub struct GraphFormat;

impl FlowFormat for GraphFormat {
    fn extensions(&self) -> &'static [&'static str] {
        &["json"]
    }

    fn name_of(&self, _project_root: &Path, path: &Path) -> Option<String> {
        let is_json = path.extension().is_some_and(|it| it == "json");
        let json = is_json.then(|| read(path).ok()).flatten()?;
        is_spec(&json).then(|| slug(&stem(path)))
    }

    fn compile<'a>(&'a self, project: ProjectView<'a>, path: &'a Path) -> Compiling<'a> {
        Box::pin(compiled(project, path))
    }
}

/// Tells whether JSON has the members of a graph spec, valid or not.
pub fn is_spec(json: &Json) -> bool {
    json.get("spec_version").is_some() || json.get("nodes").is_some()
}

async fn compiled(project: ProjectView<'_>, path: &Path) -> Result<CompiledFlow, FormatError> {
    let shown = path.strip_prefix(project.root).unwrap_or(path);
    let shown = shown.display().to_string();
    let json = read(path).map_err(|why| FormatError {
        code: codes::CALLED_INVALID,
        message: format!("the graph spec {shown} cannot be read: {why}"),
        hint: None,
    })?;
    let (spec, report) = validate(&json);
    let Some(spec) = spec else {
        return Err(FormatError {
            code: codes::CALLED_INVALID,
            message: format!(
                "the graph spec {shown} is not valid: {}",
                listed(&report.issues)
            ),
            hint: Some(format!(
                "`flowstone graph validate {shown}` lists all issues"
            )),
        });
    };
    let name = stem(path);
    Ok(CompiledFlow {
        text: text(project, &shown, (&name, &spec, &json)).await?,
        file: format!("{}.edn", slug(&name)),
        contract: contract(&name, &spec, &json),
    })
}

/// Returns the text of the flow of a spec, which keeps the spec for the events of its runs.
async fn text(
    project: ProjectView<'_>,
    shown: &str,
    (name, spec, json): (&str, &GraphSpec, &Json),
) -> Result<String, FormatError> {
    let known = known_in(project, spec).await.map_err(|error| FormatError {
        code: error.code(),
        message: format!("the tools of the graph spec {shown} cannot be read: {error}"),
        hint: None,
    })?;
    let target = Target {
        name,
        caller: Audience::DeveloperOnly,
        known: &known,
        models: &Models::of_settings(project.settings, file_fallback()),
        keeps_spec: Some(json),
    };
    compile(spec, &target).map_err(|issues| FormatError {
        code: codes::CALLED_LACKING,
        message: format!(
            "the graph spec {shown} cannot run in this project: {}",
            listed(&issues)
        ),
        hint: Some(format!(
            "`flowstone graph validate {shown}` shows what the project lacks"
        )),
    })
}

fn contract(name: &str, spec: &GraphSpec, json: &Json) -> FlowContract {
    let own_name = json.get("name").and_then(Json::as_str);
    FlowContract {
        name: own_name.map_or_else(|| slug(name), str::to_owned),
        description: spec.description.clone(),
        input_schema: input_schema(spec),
        result_keys: &[],
    }
}

fn listed(issues: &[Issue]) -> String {
    let texts = issues.iter();
    let texts: Vec<String> = texts
        .map(|issue| format!("{}: {}", issue.place(), issue.message))
        .collect();
    texts.join("; ")
}

fn read(path: &Path) -> Result<Json, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if size.len() > SPEC_MAX as u64 {
        return Err(format!("it has more than {SPEC_MAX} bytes"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    json_text::read(&text).map_err(|error| error.to_string())
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy());
    stem.map_or_else(|| "agent".to_owned(), |stem| stem.into_owned())
}
