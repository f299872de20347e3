//! The port for files of other systems that are compiled to flows: graph specs and behaviour trees.
//!
//! `flow/call-flow`, the tools of agents and the checks of flows find such a file like a flow file. What a format is, is
//! known only to the crate that has it; this module knows no format and no engine.

use std::fmt::Debug;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;

use flowstone_lang::value::Value;
use serde_json::Value as Json;

use crate::ids::RunId;
use crate::ports::Stores;

/// The formats of a program, in the order in which they are tried.
pub type Formats = &'static [&'static dyn FlowFormat];

/// The result of compiling a file.
pub type Compiling<'a> = Pin<Box<dyn Future<Output = Result<CompiledFlow, FormatError>> + 'a>>;

/// A format of files that are compiled to flows.
pub trait FlowFormat: Debug {
    /// Returns the extensions of its files, without the dot.
    fn extensions(&self) -> &'static [&'static str];

    /// Returns the name under which flows call a file; `None` if the file has another format. A file of this format with
    /// errors in it has a name, too.
    fn name_of(&self, project_root: &Path, path: &Path) -> Option<String>;

    /// Returns the names that the store may keep for a run which people know under a name of this format.
    fn run_names(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }

    /// Returns the name that the store keeps for a run which took the place of another one: of the first run of a name, and
    /// the number of the later one, from 2.
    fn later_name(&self, _name: &str, _first: &RunId, _number: u32) -> Option<String> {
        None
    }

    /// Compiles a file.
    ///
    /// # Errors
    /// Everything that is wrong with the file, and what the project lacks for it. The message names the file.
    fn compile<'a>(&'a self, project: ProjectView<'a>, path: &'a Path) -> Compiling<'a>;
}

/// The parts of a project that a format may read.
#[derive(Clone, Copy)]
pub struct ProjectView<'a> {
    /// The folder of the project.
    pub root: &'a Path,
    /// The project's settings, a map or nil.
    pub settings: &'a Value,
    pub stores: &'a Stores,
}

/// A flow that was made of a file of another format.
#[derive(Debug, Clone)]
pub struct CompiledFlow {
    /// The text of the flow.
    pub text: String,
    /// The name that errors in the text give the file.
    pub file: String,
    pub contract: FlowContract,
}

/// What a caller has to know about a flow.
#[derive(Debug, Clone)]
pub struct FlowContract {
    pub name: String,
    pub description: Option<String>,
    /// JSON Schema of the input: an object with `properties`.
    pub input_schema: Json,
    /// The keys of a result that are of use to a model; empty if the whole result is.
    pub result_keys: &'static [&'static str],
}

/// Why a file cannot be compiled.
#[derive(Debug, Clone)]
pub struct FormatError {
    pub code: &'static str,
    pub message: String,
    pub hint: Option<String>,
}
