//! The flow files of a project: which there are, what is in them, and what is wrong with a text.

use std::path::{Path, PathBuf};

use flowstone_lang::session::Session;

use flowstone_engine::disk;
use flowstone_flow::flow::{self, Checked, LoadedFlow};
use flowstone_flow::format::Formats;
use flowstone_flow::step::Step;
use flowstone_model::diagnostic::{Diagnostic, Severity};
use flowstone_model::ports::Program;

/// A flow file.
#[derive(Debug)]
pub struct FlowFile {
    pub path: PathBuf,
    /// From the project's folder.
    pub name: String,
    /// What the file holds; `None` where it is no flow that could run.
    pub loaded: Option<LoadedFlow>,
    /// The first thing that is wrong with it.
    pub problem: Option<String>,
}

/// Returns the flow files of a project, in the order of their names. Files that hold something else are left out.
pub fn files(project_root: &Path) -> Vec<FlowFile> {
    let files = disk::files_of(project_root).into_iter();
    let found = files.map(|path| read(project_root, path));
    found
        .filter(|file| match &file.loaded {
            // A bare form, or settings: not what somebody would list as a flow.
            Some(loaded) => loaded.flow.definition.as_map().is_some(),
            None => file.path.starts_with(project_root.join("flows")),
        })
        .collect()
}

/// Finds a flow by the name of its file or by its slug.
///
/// # Errors
/// The name that is nearest, if one is near.
pub fn find(project_root: &Path, slug: &str) -> Result<FlowFile, Option<String>> {
    let found = disk::find(project_root, None, slug)?;
    Ok(read(project_root, found.path))
}

/// Reads one file.
pub fn read(project_root: &Path, path: PathBuf) -> FlowFile {
    let name = path.strip_prefix(project_root).unwrap_or(&path);
    let name = name.display().to_string();
    let checked = disk::load(&Session::new(), &path, &name);
    let worst = checked
        .findings
        .iter()
        .find(|finding| finding.severity == Severity::Error);
    FlowFile {
        problem: worst.map(|finding| format!("{} {}", finding.code, finding.message)),
        loaded: checked.loaded,
        path,
        name,
    }
}

/// Returns the text of the main file of a program.
pub fn text_of(program: &Program) -> Option<String> {
    flow::program_text(program)
}

/// What is wrong with a text, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFinding {
    pub severity: Severity,
    pub code: &'static str,
    pub message: String,
    /// The name of the file, if there is a place.
    pub file: Option<String>,
    /// Counted from 1; 0 where there is no place.
    pub line: usize,
    pub column: usize,
    pub hints: Vec<String>,
}

/// Checks the text of a flow as `check` does a file. Includes and called flows are looked for below the folder of `place`.
pub fn check_text(
    session: &Session,
    text: &str,
    place: (&Path, Formats),
    steps: &[Box<dyn Step>],
) -> (Option<LoadedFlow>, Vec<TextFinding>) {
    let Checked {
        loaded, findings, ..
    } = disk::check_text(session, text, place, steps);
    (loaded, text_findings(session, findings))
}

/// Returns findings with their places in lines and columns.
pub fn text_findings(session: &Session, findings: Vec<Diagnostic>) -> Vec<TextFinding> {
    let sources = session.world().sources.borrow();
    let findings = findings.into_iter().map(|finding| {
        let source = sources.get(finding.span.source);
        let place = source.as_ref().map(|it| it.line_column(finding.span.start));
        TextFinding {
            severity: finding.severity,
            code: finding.code,
            message: finding.message,
            file: source.as_ref().map(|it| it.name.to_string()),
            line: place.map_or(0, |place| place.line as usize),
            column: place.map_or(0, |place| place.column as usize),
            hints: finding.hints,
        }
    });
    findings.collect()
}
