//! A project in a scratch folder, with its engine over a database or in memory.

use std::path::PathBuf;

use flowstone_engine::ports::Stores;
use flowstone_engine::{Engine, EngineConfig};
use flowstone_fronts::tree::{TreeError, Trees, Written, tools};
use serde_json::{Value as Json, json};

/// A scratch project and its engine.
pub struct Project {
    pub folder: tempfile::TempDir,
    pub engine: Engine,
    written: Written,
}

impl Project {
    /// A project over a store in memory, with these files.
    pub fn with(files: &[(&str, &str)]) -> Project {
        Project::over(
            flowstone_stores::memory::Memory::new(
                flowstone_stores::memory::MemoryOptions::default(),
            )
            .open(),
            files,
        )
    }

    pub fn over(stores: Stores, files: &[(&str, &str)]) -> Project {
        let folder = tempfile::tempdir().expect("a scratch folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            let parent = path.parent().expect("a file has a folder");
            std::fs::create_dir_all(parent).expect("the folder is writable");
            std::fs::write(path, text).expect("the folder is writable");
        }
        let steps = flowstone_project::all_steps();
        let engine = Engine::open(EngineConfig {
            answer_rules: flowstone_fronts::ANSWER_RULES,
            ..EngineConfig::for_tests(folder.path(), stores, steps)
        });
        let written = Written::new();
        Project {
            folder,
            engine,
            written,
        }
    }

    /// Calls a tool; an error is its message.
    pub async fn call(&self, tool: &str, arguments: Json) -> Result<Json, TreeError> {
        let trees = Trees::new(&self.engine, "test", None).remembering(&self.written);
        let tool = tools::find(tool).expect("a tool");
        let arguments = arguments.as_object().expect("an object").clone();
        tools::call(&trees, tool, &arguments).await
    }

    /// Calls a tool for a run; its other arguments are given.
    pub async fn on(&self, uri: &str, tool: &str, mut arguments: Json) -> Json {
        arguments["trace_output"] = json!(uri);
        match self.call(tool, arguments).await {
            Ok(answer) => answer,
            Err(error) => json!({"error": error.to_string(), "code": error.code()}),
        }
    }

    /// Calls a tool for a run, as a process that has not written its document.
    pub async fn as_other(&self, uri: &str, tool: &str, mut arguments: Json) -> Json {
        arguments["trace_output"] = json!(uri);
        let trees = Trees::new(&self.engine, "test", None);
        let tool = tools::find(tool).expect("a tool");
        let arguments = arguments.as_object().expect("an object").clone();
        tools::call(&trees, tool, &arguments)
            .await
            .expect("an answer")
    }

    /// Returns the id of the run of a handle.
    pub async fn run_of(&self, uri: &str) -> flowstone_engine::ids::RunId {
        let trees = Trees::new(&self.engine, "test", None);
        let handle = trees.handle(uri).expect("a handle");
        trees.run(&handle).await.expect("a run")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn uri(&self, name: &str) -> String {
        let folder = std::fs::canonicalize(self.folder.path()).expect("it is there");
        format!("file://{}", folder.join(name).display())
    }
}

/// Runs a test on the kind of runtime that an engine needs.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, test);
}
