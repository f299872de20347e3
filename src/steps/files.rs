//! `:files`: source trees that a flow can list, read and search, and changesets based on them.
//!
//! A source (a folder, a git commit) becomes an immutable tree before anything is read from it, so all operations of a
//! run on one tree see the same bytes. The store keeps edits in a changeset, in one transaction with the step's journal
//! row. The operations are in `op`; the work is in the modules beside it, on plain data, on threads that may block.

mod apply;
mod capture;
mod change_request;
pub mod dependency;
mod difference;
mod draft;
mod edit;
pub mod error;
mod folder;
pub mod git;
mod history;
mod known;
pub mod manifest;
mod merge;
mod needle;
pub mod objects;
mod op;
mod packs;
pub mod patch;
pub mod path;
mod place;
mod process;
pub mod publish;
mod reach;
pub mod search;
pub mod snapshot;
mod source;
mod spec;
mod sweep;
mod temporary;
mod tree;
mod value;
mod verify;
pub mod view;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flowstone_flow::flow::Flow;
use flowstone_flow::permission::PlannedNeed;
use flowstone_flow::ports::StoreError;
use flowstone_flow::step::{
    Effect, HomeSweep, HomeSwept, HomeVerified, LocalFuture, Outcome, Retry, Services, Step,
    StepContext, StepError, StepSpec,
};
use flowstone_lang::value::Value;

pub use difference::{Hunks, unified};

use crate::fields::Fields;
use crate::operation::choose;
use error::FilesError;
use manifest::Manifest;
pub use process::Limit;
use spec::SPEC;

/// The `:files` step.
#[derive(Default)]
pub struct Files {
    /// The most recently used trees. A tree never changes, so this only saves decoding.
    recent: RefCell<VecDeque<(String, Arc<Manifest>)>>,
}

impl Step for Files {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn sweep<'a>(
        &'a self,
        services: &'a Services,
        sweep: HomeSweep,
    ) -> LocalFuture<'a, Result<HomeSwept, StoreError>> {
        Box::pin(async move {
            Ok(HomeSwept {
                contents: sweep::sweep(services, sweep).await?,
                folders: temporary::sweep(services, sweep).await?,
            })
        })
    }

    fn verify<'a>(
        &'a self,
        services: &'a Services,
    ) -> LocalFuture<'a, Result<HomeVerified, StoreError>> {
        Box::pin(verify::verify(services))
    }

    /// A folder of the project is a change outside; a temporary folder belongs to the run.
    fn effect(&self, config: &Value) -> Effect {
        let fields = Fields::new(config);
        let op = fields.name("op").ok().flatten();
        match SPEC.operations.and_then(|all| all.find(op.as_deref()?)) {
            Some(found) if found.name == "materialize" && fields.has("to") => Effect::External,
            Some(found) => found.effect,
            None => SPEC.effect,
        }
    }

    /// After a crash, publishing finds its own commit or open change request, and a folder is recognised as the step's
    /// own.
    fn repeats_safely(&self, _config: &Value) -> bool {
        true
    }

    fn needs(&self, _: &Flow, _: &Value, config: &Value) -> Vec<PlannedNeed> {
        crate::needs::of_files(config)
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            // The contents of a changeset are stored.
            let config = cx.without_secrets(config);
            let fields = Fields::new(&config);
            let op = choose(&SPEC, fields)?.name;
            let call = Call {
                files: self,
                cx,
                fields,
            };
            match op {
                "apply-edit" => op::apply_edit::run(call).await,
                "capture" => op::capture::run(call).await,
                "delete-file" => op::delete_file::run(call).await,
                "diff" => op::diff::run(call).await,
                "history" => op::history::run(call).await,
                "init-changeset" => op::init_changeset::run(call).await,
                "list" => op::list::run(call).await,
                "materialize" => op::materialize::run(call).await,
                "move-file" => op::move_file::run(call).await,
                "open-change-request" => op::open_change_request::run(call).await,
                "publish" => op::publish::run(call).await,
                "read" => op::read::run(call).await,
                "replace" => op::replace::run(call).await,
                "replace-lines" => op::replace_lines::run(call).await,
                "resolve-source" => op::resolve_source::run(call).await,
                "search" => op::search::run(call).await,
                "write-file" => op::write_file::run(call).await,
                "write-out" => op::write_out::run(call).await,
                other => unreachable!("`:op :{other}` is listed but not implemented"),
            }
        })
    }
}

/// The operation of a step.
#[derive(Clone, Copy)]
struct Call<'a> {
    files: &'a Files,
    cx: &'a StepContext,
    fields: Fields<'a>,
}

/// Runs blocking work on a separate thread. If the step is dropped, the work is interrupted.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce(Arc<AtomicBool>) -> Result<T, FilesError> + Send + 'static,
) -> Result<T, StepError> {
    let cancel = CancelOnDrop(Arc::default());
    let cancelled = Arc::clone(&cancel.0);
    match tokio::task::spawn_blocking(move || work(cancelled)).await {
        Ok(result) => Ok(result?),
        Err(error) => Err(StepError::new(
            "E0779",
            "cancelled",
            format!("the work on the files was stopped: {error}"),
        )),
    }
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl From<FilesError> for StepError {
    fn from(error: FilesError) -> StepError {
        let (code, kind) = error.code();
        let retry = if error.is_transient() {
            Retry::Backoff
        } else {
            Retry::Never
        };
        let step = StepError::new(code, kind, error.to_string())
            .hint(error.hint())
            .retry(retry);
        let step = match error.path() {
            Some(path) => step.with("path", path),
            None => step,
        };
        match error.files() {
            Some(files) => {
                let files = files.iter().map(|it| Value::from(it.as_str()));
                step.with("files", Value::vector(files))
            }
            None => step,
        }
    }
}
