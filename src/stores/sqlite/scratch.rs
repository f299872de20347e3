//! Scratch layers: a database and a folder of blobs of their own, over the stores of a project.
//!
//! A layer begins empty. What a change is about (a table, a key, a changeset, the index of memories) is copied into it first, and from then on the layer
//! answers for it; everything else is read from the project. Numbers of new tables begin far above those of the project, so copies
//! keep theirs. Nothing of a layer is in the project's database: its file needs no durability, and its folder is removed with it.

mod reading;
mod searching;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowstone_model::changeset::ChangesetOp;
use flowstone_model::kv::KvOp;
use flowstone_model::ports::{
    PortFuture, Scratch, ScratchChanges, ScratchLayers, StoreError, StoreOp, Stores,
};
use flowstone_model::private;
use flowstone_model::table::{TableName, TableOp, TableQuery, TableTarget};
use rusqlite::Connection;

use super::failure::{failed, rejected, with_hint};
use super::snapshot::Snapshot;
use super::{BLOBS, Sqlite, blob, changeset, kv, open, table};

/// The name of the database in the folder of a layer.
const FILE: &str = "scratch.db";

/// Work that reads a database.
pub(crate) type Reading = Box<dyn FnOnce(&Connection) -> Result<(), StoreError> + Send>;

/// The database of a project's tables, from which layers copy.
pub(crate) trait Base: Send + Sync {
    /// Runs work in a transaction that reads the database.
    fn aside(&self, work: Reading) -> PortFuture<'_, ()>;
}

impl Base for Sqlite {
    fn aside(&self, work: Reading) -> PortFuture<'_, ()> {
        self.read_aside(|db| {
            let _snapshot = Snapshot::begin(db)?;
            work(db)
        })
    }
}

/// Opens layers over a project.
pub(crate) struct Layers<B>(pub(crate) Arc<B>);

impl<B: Base + 'static> ScratchLayers for Layers<B> {
    fn open(&self, whole: &Stores, folder: &Path, most_bytes: u64) -> Result<Scratch, StoreError> {
        private::make_folder(folder).map_err(|error| StoreError::of_file(folder, &error))?;
        let kept = Folder(folder.to_owned());
        let file = folder.join(FILE);
        private::create(&file).map_err(|error| StoreError::of_file(&file, &error))?;
        let db = open::for_scratch(&file, most_bytes.cast_signed())?;
        table::prepare_for_copies(&db)?;
        let state = State {
            db,
            keys: HashSet::new(),
            has_knowledge: false,
        };
        let layer = Arc::new(Layer {
            whole: whole.clone(),
            base: self.0.clone(),
            blobs: folder.join(BLOBS),
            state: Arc::new(Mutex::new(state)),
            folder: kept,
            most_bytes,
        });
        let stores = Stores {
            kv: layer.clone(),
            tables: layer.clone(),
            blobs: layer.clone(),
            resources: layer.clone(),
            changesets: layer.clone(),
            search: layer.clone(),
            ..whole.clone()
        };
        Ok(Scratch {
            stores,
            changes: layer,
            folder: folder.to_owned(),
        })
    }
}

/// A layer.
struct Layer {
    /// The stores of the project.
    whole: Stores,
    base: Arc<dyn Base>,
    /// The folder of the layer's blobs, beside its database.
    blobs: PathBuf,
    state: Arc<Mutex<State>>,
    folder: Folder,
    /// Maximum size of the database, and of the folder with everything in it.
    most_bytes: u64,
}

/// The data of a layer.
struct State {
    db: Connection,
    /// The keys that the layer answers for, also those that it has removed.
    keys: HashSet<String>,
    /// Whether the layer answers for the index of documents and memories.
    has_knowledge: bool,
}

/// A folder that is removed on drop.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, folder = %self.0.display(), "a scratch layer cannot be removed");
        }
    }
}

impl ScratchChanges for Layer {
    fn perform(&self, op: StoreOp, now_ms: i64) -> PortFuture<'_, String> {
        Box::pin(async move {
            match op {
                StoreOp::Kv(op) => self.change_key(op, now_ms).await,
                StoreOp::Table(op) => self.change_table(*op, now_ms).await,
                StoreOp::Blob(op) => {
                    self.check_room(0)?;
                    self.change(|db| blob::apply(db, &op, now_ms))
                }
                StoreOp::Changeset(op) => self.change_changeset(op, now_ms).await,
                // Workers outside would perform it.
                StoreOp::Job(_) => Err(StoreError::Internal(
                    "a scratch layer has no jobs".to_owned(),
                )),
            }
        })
    }
}

impl Layer {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change of the layer's database, all or nothing.
    fn change<T>(
        &self,
        change: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        in_transaction(&self.lock().db, change).map_err(|error| self.or_full(error))
    }

    /// As [`Layer::change`], for work that may take long: on another thread.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let state = self.state.clone();
        let working = tokio::task::spawn_blocking(move || {
            let state = state.lock().unwrap_or_else(PoisonError::into_inner);
            in_transaction(&state.db, work)
        });
        let worked = working.await.map_err(super::stopped)?;
        worked.map_err(|error| self.or_full(error))
    }

    async fn change_key(&self, op: KvOp, now_ms: i64) -> Result<String, StoreError> {
        let key = crate::kv::key(&op).to_owned();
        if !self.lock().keys.contains(&key) {
            let entry = self.whole.kv.entry(&key, now_ms).await?;
            let mut state = self.lock();
            // Another branch of the run may have been faster.
            if !state.keys.contains(&key) {
                if let Some(entry) = &entry {
                    in_transaction(&state.db, |db| kv::store(db, &key, entry, now_ms))
                        .map_err(|error| self.or_full(error))?;
                }
                state.keys.insert(key);
            }
        }
        self.change(|db| kv::apply(db, &op, now_ms))
    }

    async fn change_table(&self, op: TableOp, now_ms: i64) -> Result<String, StoreError> {
        let tables = table::tables_of(&op);
        let operation = match &op {
            TableOp::Join(join) => join.op_id.clone(),
            _ => None,
        };
        let changed = match &op {
            TableOp::SetColumn(set) => Some(set.table.name.clone()),
            _ => None,
        };
        self.take_tables(tables.clone(), operation, changed).await?;
        let changed = self.work(move |db| table::apply(db, &op, now_ms)).await;
        match changed {
            Err(error) if error.code() == NO_TABLE => Err(self.no_table(error, tables).await),
            changed => changed,
        }
    }

    /// Returns the error about a table that neither the layer nor the project has: the project's knows the names of its tables.
    async fn no_table(&self, error: StoreError, tables: Vec<TableName>) -> StoreError {
        for name in tables {
            if self.has_table(&name).unwrap_or(true) {
                continue;
            }
            let table = TableTarget::from(name);
            let asked = self.whole.tables.query(TableQuery::Schema { table });
            if let Err(of_project) = asked.await {
                return of_project;
            }
        }
        error
    }

    fn has_table(&self, name: &TableName) -> Result<bool, StoreError> {
        table::has(&self.lock().db, name)
    }

    /// Copies those of some tables, the record of a join, and the tables with a lookup in one whose columns change, that the
    /// layer does not have.
    async fn take_tables(
        &self,
        mut tables: Vec<TableName>,
        operation: Option<String>,
        looked_up: Option<TableName>,
    ) -> Result<(), StoreError> {
        {
            let state = self.lock();
            let mut missing = Vec::new();
            for name in tables {
                if !table::has(&state.db, &name)? {
                    missing.push(name);
                }
            }
            tables = missing;
        }
        if tables.is_empty() && operation.is_none() && looked_up.is_none() {
            return Ok(());
        }
        let state = self.state.clone();
        let work = move |from: &Connection| {
            let state = state.lock().unwrap_or_else(PoisonError::into_inner);
            in_transaction(&state.db, |to| {
                if let Some(id) = &operation {
                    table::copy_operation(from, to, id)?;
                }
                if let Some(name) = &looked_up {
                    table::copy_dependents(from, to, name)?;
                }
                tables
                    .iter()
                    .try_for_each(|name| table::copy(from, to, name))
            })
        };
        let copied = self.base.aside(Box::new(work)).await;
        copied.map_err(|error| self.or_full(error))
    }

    async fn change_changeset(&self, op: ChangesetOp, now_ms: i64) -> Result<String, StoreError> {
        self.check_room(0)?;
        let id = match &op {
            ChangesetOp::Open(new) => &new.id,
            ChangesetOp::Edit(edit) => &edit.id,
        };
        let own = changeset::overlay(&self.lock().db, id)?;
        let known = match own {
            Some(_) => None,
            None => self.whole.changesets.overlay(id).await?,
        };
        if let Some(known) = known {
            // Another branch of the run may have been faster.
            self.change(|db| match changeset::has(db, id)? {
                true => Ok(()),
                false => changeset::keep(db, &known, now_ms),
            })?;
        }
        self.change(|db| changeset::apply(db, &op, now_ms))
    }

    /// Refuses more contents than a layer may have.
    fn check_room(&self, more: u64) -> Result<(), StoreError> {
        match self.room() >= more {
            true => Ok(()),
            false => Err(full(self.most_bytes)),
        }
    }

    /// Returns how many bytes may be added to the folder.
    fn room(&self) -> u64 {
        self.most_bytes.saturating_sub(size_of(&self.folder.0))
    }

    /// Replaces the error about a full disk, which is what the limit of the layer's database looks like.
    fn or_full(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Full { .. } => full(self.most_bytes),
            error => error,
        }
    }
}

/// The code of the error about a table that does not exist.
const NO_TABLE: &str = "E0620";

fn in_transaction<T>(
    db: &Connection,
    change: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let transaction = db.unchecked_transaction().map_err(failed)?;
    let answer = change(&transaction)?;
    transaction.commit().map_err(failed)?;
    Ok(answer)
}

fn full(most_bytes: u64) -> StoreError {
    let message = format!(
        "the scratch layer of the dry test is full: it holds at most {} KiB of what the test writes, with copies of the \
         tables that it changes",
        most_bytes >> 10
    );
    with_hint(
        rejected("E0648", "too-large", message),
        "test with less data, or with smaller tables",
    )
}

/// Returns the size of the files in a folder, in bytes. Links are not followed.
fn size_of(folder: &Path) -> u64 {
    let mut bytes = 0;
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => open.push(entry.path()),
                Ok(found) => bytes += found.len(),
                Err(_) => {}
            }
        }
    }
    bytes
}
