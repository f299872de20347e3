//! Taking runs out of the stores into an archive, and archives into the stores.

use std::collections::{BTreeSet, HashMap};

use super::{Archive, ArchiveError, ArchivedBlob, ArchivedRun, ArchivedWait};
use crate::bindings::Bindings;
use crate::disk;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::flow;
use crate::ids::RunId;
use crate::ports::{
    Import, ImportedRun, ImportedWait, Parent, Program, RunFilter, RunRow, StoreError, WaitFilter,
    WaitRow,
};
use crate::resource::uris_in;
use crate::sealed;

/// How an archive is taken in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Give the runs new ids.
    pub new_id: bool,
}

/// What was taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The run that was exported, then the runs it called.
    pub runs: Vec<RunId>,
    /// Whether there is nothing left to do for the first of them.
    pub is_over: bool,
}

impl Engine {
    /// Returns a run as an archive; with `children`, also the runs it called, and theirs. The run may be under
    /// way: the archive then has what was journaled so far.
    ///
    /// # Errors
    /// When there is no such run, its journal was removed, or something cannot be read.
    pub async fn export_run(&self, run: &RunId, children: bool) -> Result<Archive, EngineError> {
        let mut archive = Archive::default();
        let mut uris = BTreeSet::new();
        let mut rows = vec![self.run_row(run).await?];
        let mut at = 0;
        while let Some(row) = rows.get(at).cloned() {
            at += 1;
            if children {
                rows.extend(self.children(&row.id).await?);
            }
            if row.pruned_ms.is_some() && row.id == *run {
                return Err(EngineError::Pruned {
                    run: row.id.to_string(),
                });
            }
            self.take_program(&mut archive, &row).await?;
            let taken = self.take_run(row).await?;
            find_uris(&taken, &mut uris);
            archive.runs.push(taken);
        }
        for uri in uris {
            archive.blobs.extend(self.take_blob(&uri).await?);
        }
        Ok(archive)
    }

    async fn children(&self, run: &RunId) -> Result<Vec<RunRow>, EngineError> {
        let filter = RunFilter {
            parent: Some(run.clone()),
            ..RunFilter::default()
        };
        let mut rows = self.services.stores.runs.list(filter).await?;
        rows.reverse();
        Ok(rows)
    }

    async fn take_program(&self, archive: &mut Archive, row: &RunRow) -> Result<(), EngineError> {
        if archive.programs.contains_key(&row.program) {
            return Ok(());
        }
        let program = self.services.stores.runs.program(&row.program).await?;
        let program = program.ok_or_else(|| EngineError::BadProgram {
            run: row.id.to_string(),
            detail: "it is missing".to_owned(),
        })?;
        archive.programs.insert(row.program.clone(), program);
        Ok(())
    }

    /// Takes what belongs to a run. In this order: what happens meanwhile leaves a wait open that the journal
    /// knows the answer of, never a wait that is closed without one.
    async fn take_run(&self, row: RunRow) -> Result<ArchivedRun, EngineError> {
        let stores = &self.services.stores;
        let filter = WaitFilter {
            run: Some(row.id.clone()),
            all: true,
            ..WaitFilter::default()
        };
        let waits = stores.waits.list(filter).await?;
        let entries = stores.journal.load(&row.id).await?;
        let sealed = sealed::left_out(&row)?;
        Ok(ArchivedRun {
            row: RunRow {
                sealed,
                executing: false,
                held: false,
                ..row
            },
            entries,
            waits: waits.into_iter().map(without_token).collect(),
        })
    }

    /// Returns the blob behind a name; none where it is no blob, or was removed.
    async fn take_blob(&self, uri: &str) -> Result<Option<ArchivedBlob>, EngineError> {
        let blobs = &self.services.stores.blobs;
        let Some(row) = blobs.find(uri).await? else {
            return Ok(None);
        };
        match blobs.get(&row.hash).await {
            Ok(bytes) => Ok(Some(ArchivedBlob { row, bytes })),
            Err(StoreError::Rejected {
                kind: "not-found", ..
            }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Adds the runs of an archive to the stores, all or none. Runs that are not over are held: their effects
    /// may go on elsewhere, so that nobody executes them before somebody says so with [`Engine::execute`].
    ///
    /// # Errors
    /// When a run of that id is there, or the stores refuse.
    pub async fn import_runs(
        &self,
        archive: Archive,
        options: ImportOptions,
    ) -> Result<Imported, EngineError> {
        let ids = self.ids_for(&archive, options).await?;
        let stores = &self.services.stores;
        let now_ms = self.services.clock.now_ms();
        let mut resources = Vec::with_capacity(archive.blobs.len());
        for blob in archive.blobs {
            stores.blobs.put(blob.bytes).await?;
            resources.push(blob.row);
        }
        let mut runs = Vec::with_capacity(archive.runs.len());
        for run in archive.runs {
            let program = archive.programs.get(&run.row.program).cloned();
            let program = program.ok_or_else(|| ArchiveError::Damaged {
                detail: format!("the program of the run {} is missing", run.row.id),
            })?;
            let row = renamed(run.row, &ids);
            let waits = run.waits.into_iter();
            let row = self.of_outside(row, &program)?;
            runs.push(ImportedRun {
                waits: waits.map(|wait| self.with_token(wait, &row)).collect(),
                program,
                entries: run.entries,
                row,
            });
        }
        let imported = Imported {
            runs: runs.iter().map(|run| run.row.id.clone()).collect(),
            is_over: runs.iter().all(|run| run.row.status.is_final()),
        };
        let import = Import {
            runs,
            resources,
            now_ms,
        };
        stores.runs.import(import).await?;
        Ok(imported)
    }

    /// Notes that a run is of a flow that the project does not have: it starts without permissions here.
    fn of_outside(&self, row: RunRow, program: &Program) -> Result<RunRow, EngineError> {
        let own = disk::named(&self.services.project_root, &row.flow).ok();
        // What it includes belongs to it.
        let own = own.and_then(|path| disk::load(&self.session(), &path, &row.flow).loaded);
        let own = own.and_then(|own| own.flow.digest.clone());
        let bindings = Bindings {
            is_outside: own.is_none() || own.as_deref() != flow::program_digest(program).as_deref(),
            ..Bindings::decode(row.bindings.as_deref())?
        };
        Ok(RunRow {
            bindings: bindings.encode(),
            ..row
        })
    }

    /// Returns the ids that the runs get, by those they have.
    async fn ids_for(
        &self,
        archive: &Archive,
        options: ImportOptions,
    ) -> Result<HashMap<RunId, RunId>, EngineError> {
        let mut ids = HashMap::new();
        for run in &archive.runs {
            let id = run.row.id.clone();
            if options.new_id {
                if !run.row.status.is_final() {
                    let run = id.to_string();
                    return Err(ArchiveError::KeepsId { run }.into());
                }
                let created_ms = run.row.created_ms;
                let new = RunId::new(created_ms, self.services.random.next());
                ids.insert(id, new);
            } else {
                if self.services.stores.runs.find(&id).await?.is_some() {
                    let run = id.to_string();
                    return Err(ArchiveError::Taken { run }.into());
                }
                ids.insert(id.clone(), id);
            }
        }
        Ok(ids)
    }

    fn with_token(&self, wait: ArchivedWait, row: &RunRow) -> ImportedWait {
        let random = &self.services.random;
        let id = RunId::new(wait.opened_ms, random.next());
        let row = WaitRow {
            id: format!("w{id}"),
            run: row.id.clone(),
            flow: row.flow.clone(),
            path: wait.path,
            digest: crate::waits::shown_digest(&wait.key, &wait.details),
            key: wait.key,
            state: wait.state,
            deadline_ms: wait.deadline_ms,
            details: wait.details,
            payload: wait.payload,
            opened_ms: wait.opened_ms,
            ending: wait.ending,
            decided_by: wait.decided_by,
            decided_ms: wait.decided_ms,
            event: wait.event,
            webhook: wait.webhook,
        };
        let token = format!("{:016x}{:016x}", random.next(), random.next());
        ImportedWait { row, token }
    }
}

fn without_token(wait: WaitRow) -> ArchivedWait {
    ArchivedWait {
        path: wait.path,
        key: wait.key,
        state: wait.state,
        deadline_ms: wait.deadline_ms,
        details: wait.details,
        payload: wait.payload,
        opened_ms: wait.opened_ms,
        ending: wait.ending,
        decided_by: wait.decided_by,
        decided_ms: wait.decided_ms,
        event: wait.event,
        webhook: wait.webhook,
    }
}

/// Returns the row as it is stored here.
fn renamed(row: RunRow, ids: &HashMap<RunId, RunId>) -> RunRow {
    let new = |id: &RunId| ids.get(id).unwrap_or(id).clone();
    let id = new(&row.id);
    // A copy under another name is a run of its own, with a trace of its own.
    let (origin, trace) = if id == row.id {
        (row.origin, row.trace)
    } else {
        (Some(row.id), None)
    };
    RunRow {
        id,
        origin,
        trace,
        started_by: "import".to_owned(),
        held: !row.status.is_final(),
        parent: row.parent.map(|parent| Parent {
            run: new(&parent.run),
            root: new(&parent.root),
            ..parent
        }),
        ..row
    }
}

/// Collects the names of resources in all that a run says.
fn find_uris(run: &ArchivedRun, uris: &mut BTreeSet<String>) {
    let row = &run.row;
    let of_row = [Some(&row.input), row.result.as_ref(), row.error.as_ref()];
    let of_waits = run
        .waits
        .iter()
        .flat_map(|wait| [Some(&wait.details), wait.payload.as_ref()]);
    let texts = of_row.into_iter().chain(of_waits).flatten();
    for text in texts.chain(run.entries.iter().map(|entry| &entry.payload)) {
        uris.extend(uris_in(text).map(str::to_owned));
    }
}
