//! Behaviour trees in files as flows that other flows and agents call.

use std::path::Path;

use flowstone_engine::ids::RunId;
use flowstone_flow::format::{
    CompiledFlow, Compiling, FlowContract, FlowFormat, FormatError, ProjectView,
};
use serde_json::{Map, Value as Json, json};

use super::compile::{VAR_INPUT, called_flow_text};
use super::elsewhere::check_folders;
use super::file::Files;
use super::find::is_tree;
use super::handle;
use super::node::{Tree, slug_of};

/// A called tree cannot be run.
const CALLED: &str = "E1218";
/// The keys of a tree's result that say how it went.
const RESULT_KEYS: &[&str] = &["status", "var"];

/// Behaviour trees: YAML and JSON files whose root, or whose `tree`, is a node.
#[derive(Debug)]
pub struct TreeFormat;

impl FlowFormat for TreeFormat {
    fn extensions(&self) -> &'static [&'static str] {
        &["yaml", "yml", "json"]
    }

    fn name_of(&self, project_root: &Path, path: &Path) -> Option<String> {
        let mut files = Files::below(project_root).ok()?;
        let path = files.path_of(&absolute(path), "").ok()?;
        let json = files.get(&path).ok()?;
        let name = json["name"].as_str().unwrap_or("tree");
        is_tree(&mut files, &path).then(|| slug_of(name))
    }

    fn run_names(&self, name: &str) -> Vec<String> {
        handle::names_of(name)
    }

    fn later_name(&self, name: &str, first: &RunId, number: u32) -> Option<String> {
        Some(handle::later(name, first, number))
    }

    fn compile<'a>(&'a self, project: ProjectView<'a>, path: &'a Path) -> Compiling<'a> {
        Box::pin(async move { compiled(project, path) })
    }
}

fn compiled(project: ProjectView<'_>, path: &Path) -> Result<CompiledFlow, FormatError> {
    let shown = path.strip_prefix(project.root).unwrap_or(path);
    let checked =
        check_folders((project.root, project.settings), &absolute(path)).map_err(|error| {
            FormatError {
                code: CALLED,
                message: format!(
                    "the behaviour tree {} cannot be run: {error}",
                    shown.display()
                ),
                hint: error.hint(),
            }
        })?;
    let tree = checked.tree;
    Ok(CompiledFlow {
        text: called_flow_text(&tree, project.settings, &shown.to_string_lossy()),
        file: format!("{}.edn", tree.slug()),
        contract: FlowContract {
            name: tree.slug(),
            description: tree.description.clone(),
            input_schema: input_schema(&tree),
            result_keys: RESULT_KEYS,
        },
    })
}

/// Returns the schema of what a caller of a tree gives: start values of `$VAR`.
fn input_schema(tree: &Tree) -> Json {
    let values: Map<String, Json> = tree
        .var
        .iter()
        .map(|(key, value)| {
            (
                key.clone(),
                json!({"description": format!("Default: {value}")}),
            )
        })
        .collect();
    json!({
        "type": "object",
        "properties": {
            VAR_INPUT: {
                "type": "object",
                "description": "Start values of $VAR, instead of those in the tree file.",
                "properties": values,
            },
        },
        "additionalProperties": false,
    })
}

fn absolute(path: &Path) -> std::path::PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
