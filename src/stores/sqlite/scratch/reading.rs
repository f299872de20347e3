//! The ports of a layer: what the layer has, over what the project has.

use std::cmp::Ordering;

use flowstone_model::blob::BlobHash;
use flowstone_model::changeset::{Overlay, Referenced};
use flowstone_model::ids::RunId;
use flowstone_model::kv::KvEntry;
use flowstone_model::ports::{
    BlobRow, BlobWriter, Blobs, Changesets, Kv, PortFuture, ResourcePage, ResourceQuery,
    ResourceRow, Resources, StoreError, StoredBlob, Tables,
};
use flowstone_model::resource::{ResourceKind, SearchEntry};
use flowstone_model::table::csv::{CsvSource, ExportCsv, ExportedCsv, StageCsv, StagedCsv};
use flowstone_model::table::{TableName, TableOp, TableQuery};

use super::super::{blob, changeset, kv, resource, stopped, table};
use super::{Layer, State, full};

impl Kv for Layer {
    fn get(&self, key: &str, now_ms: i64) -> PortFuture<'_, Option<String>> {
        let finding = self.entry(key, now_ms);
        Box::pin(async move { Ok(finding.await?.map(|entry| entry.value)) })
    }

    fn entry(&self, key: &str, now_ms: i64) -> PortFuture<'_, Option<KvEntry>> {
        let key = key.to_owned();
        Box::pin(async move {
            {
                let state = self.lock();
                if state.keys.contains(&key) {
                    return kv::entry(&state.db, &key, now_ms);
                }
            }
            self.whole.kv.entry(&key, now_ms).await
        })
    }

    fn list_keys(&self, prefix: &str, limit: usize, now_ms: i64) -> PortFuture<'_, Vec<String>> {
        let prefix = prefix.to_owned();
        Box::pin(async move {
            let hidden = self
                .lock()
                .keys
                .iter()
                .filter(|key| key.starts_with(&prefix))
                .count();
            let of_project = self
                .whole
                .kv
                .list_keys(&prefix, limit.saturating_add(hidden), now_ms);
            let of_project = of_project.await?;
            let state = self.lock();
            let mut keys = kv::list_keys(&state.db, &prefix, limit, now_ms)?;
            keys.extend(
                of_project
                    .into_iter()
                    .filter(|key| !state.keys.contains(key)),
            );
            keys.sort();
            keys.truncate(limit);
            Ok(keys)
        })
    }
}

impl Tables for Layer {
    fn names(&self) -> PortFuture<'_, Vec<String>> {
        Box::pin(async move {
            let mut names = self.whole.tables.names().await?;
            names.extend(table::names(&self.lock().db)?);
            names.sort();
            names.dedup();
            Ok(names)
        })
    }

    fn query(&self, query: TableQuery) -> PortFuture<'_, String> {
        Box::pin(async move {
            match self.has_table(asked_table(&query))? {
                true => self.work(move |db| table::query(db, &query)).await,
                false => self.whole.tables.query(query).await,
            }
        })
    }

    fn apply(&self, op: TableOp, now_ms: i64) -> PortFuture<'_, String> {
        Box::pin(self.change_table(op, now_ms))
    }

    fn stage(&self, ask: StageCsv) -> PortFuture<'_, StagedCsv> {
        Box::pin(async move {
            if let CsvSource::Blob(hash) = &ask.source {
                let bytes = Blobs::get(self, hash).await?;
                self.put(bytes).await?;
            }
            let folder = self.blobs.clone();
            let staging = tokio::task::spawn_blocking(move || table::csv::stage(&folder, &ask));
            let staged = staging.await.map_err(stopped)??;
            self.check_room(0)?;
            Ok(staged)
        })
    }

    /// The text may be stored as a blob, so the layer makes it.
    fn export(&self, ask: ExportCsv) -> PortFuture<'_, ExportedCsv> {
        Box::pin(async move {
            self.take_tables(vec![ask.table.name.clone()], None, None)
                .await?;
            if !self.has_table(&ask.table.name)? {
                // The project's error knows the names of its tables.
                return self.whole.tables.export(ask).await;
            }
            let folder = self.blobs.clone();
            let exported = self
                .work(move |db| table::csv::export(db, &folder, &ask))
                .await?;
            self.check_room(0)?;
            Ok(exported)
        })
    }
}

fn asked_table(query: &TableQuery) -> &TableName {
    match query {
        TableQuery::Rows(rows) => &rows.table.name,
        TableQuery::Row { table, .. } | TableQuery::Schema { table } => &table.name,
        TableQuery::Aggregate(aggregate) => &aggregate.table.name,
    }
}

impl Blobs for Layer {
    fn put(&self, bytes: Vec<u8>) -> PortFuture<'_, BlobHash> {
        let stored = self
            .check_room(bytes.len() as u64)
            .and_then(|()| blob::put(&self.blobs, &bytes));
        Box::pin(std::future::ready(stored))
    }

    fn begin(&self) -> PortFuture<'_, Box<dyn BlobWriter>> {
        let begun = blob::incoming::begin(&self.blobs).map(|begun| {
            let bounded = Bounded {
                writer: Box::new(begun),
                room: self.room(),
                most_bytes: self.most_bytes,
            };
            Box::new(bounded) as Box<dyn BlobWriter>
        });
        Box::pin(std::future::ready(begun))
    }

    fn get(&self, hash: &BlobHash) -> PortFuture<'_, Vec<u8>> {
        match blob::get(&self.blobs, hash) {
            Err(StoreError::Rejected { .. }) => self.whole.blobs.get(hash),
            answer => Box::pin(std::future::ready(answer)),
        }
    }

    fn part(&self, hash: &BlobHash, start: u64, length: usize) -> PortFuture<'_, Vec<u8>> {
        match blob::part(&self.blobs, hash, start, length) {
            Err(StoreError::Rejected { .. }) => self.whole.blobs.part(hash, start, length),
            answer => Box::pin(std::future::ready(answer)),
        }
    }

    fn find(&self, uri: &str) -> PortFuture<'_, Option<BlobRow>> {
        let found = {
            let state = self.lock();
            blob::find(&state.db, uri)
                .and_then(|found| Ok((found, resource::find(&state.db, uri, i64::MIN)?)))
        };
        match found {
            Ok((None, None)) => self.whole.blobs.find(uri),
            // The layer may have removed it.
            Ok((found, _)) => Box::pin(std::future::ready(Ok(found))),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

/// A blob that may not become larger than the room that its layer had when it began.
struct Bounded {
    writer: Box<dyn BlobWriter>,
    room: u64,
    /// Maximum size of the layer.
    most_bytes: u64,
}

impl BlobWriter for Bounded {
    fn write(&mut self, bytes: &[u8]) -> PortFuture<'_, ()> {
        match self.room.checked_sub(bytes.len() as u64) {
            Some(room) => {
                self.room = room;
                self.writer.write(bytes)
            }
            None => Box::pin(std::future::ready(Err(full(self.most_bytes)))),
        }
    }

    fn finish(self: Box<Self>) -> PortFuture<'static, StoredBlob> {
        self.writer.finish()
    }
}

impl Changesets for Layer {
    fn overlay(&self, id: &str) -> PortFuture<'_, Option<Overlay>> {
        let found = changeset::overlay(&self.lock().db, id);
        match found {
            Ok(None) => self.whole.changesets.overlay(id),
            found => Box::pin(std::future::ready(found)),
        }
    }

    fn referenced(&self) -> PortFuture<'_, Referenced> {
        self.whole.changesets.referenced()
    }
}

impl Resources for Layer {
    fn find(&self, uri: &str, now_ms: i64) -> PortFuture<'_, Option<ResourceRow>> {
        let uri = uri.to_owned();
        Box::pin(async move {
            if let Some(own) = resource::find(&self.lock().db, &uri, now_ms)? {
                return Ok(Some(own));
            }
            let found = self.whole.resources.find(&uri, now_ms).await?;
            Ok(found.filter(|row| !self.lock().has_removed(row)))
        })
    }

    fn list(&self, query: ResourceQuery) -> PortFuture<'_, ResourcePage> {
        Box::pin(async move {
            let of_project = self.whole.resources.list(query.clone()).await?;
            let state = self.lock();
            let own = resource::list(&state.db, &query)?;
            merged(&state, &query, (own, of_project))
        })
    }

    fn register(&self, blob: BlobRow, now_ms: i64) -> PortFuture<'_, ()> {
        let done = self.change(|db| resource::register(db, &blob, now_ms));
        Box::pin(std::future::ready(done))
    }

    fn delete(&self, uri: &str, now_ms: i64) -> PortFuture<'_, bool> {
        let uri = uri.to_owned();
        Box::pin(async move {
            self.take_resource(&uri, now_ms).await?;
            self.change(|db| resource::delete(db, &uri, now_ms))
        })
    }

    fn describe(&self, uri: &str, search: Option<SearchEntry>) -> PortFuture<'_, bool> {
        let uri = uri.to_owned();
        Box::pin(async move {
            self.take_resource(&uri, i64::MIN).await?;
            self.change(|db| resource::describe(db, &uri, search.as_ref()))
        })
    }

    fn needed_by(&self, uri: &str) -> PortFuture<'_, Vec<RunId>> {
        self.whole.resources.needed_by(uri)
    }
}

impl Layer {
    /// Copies the record of a registered resource that is about to change.
    async fn take_resource(&self, uri: &str, now_ms: i64) -> Result<(), StoreError> {
        if resource::find(&self.lock().db, uri, now_ms)?.is_some() {
            return Ok(());
        }
        let found = self.whole.resources.find(uri, now_ms).await?;
        let Some(row) = found.filter(|row| row.gone.is_none()) else {
            return Ok(());
        };
        let created_ms = row.created_ms;
        match row.into_blob() {
            Some(blob) => self.change(|db| resource::keep(db, &blob, created_ms)),
            None => Ok(()),
        }
    }
}

impl State {
    /// Tells whether the layer has removed a resource of the project.
    fn has_removed(&self, row: &ResourceRow) -> bool {
        let name = row.name.as_deref().unwrap_or_default();
        row.kind == ResourceKind::Kv && self.keys.contains(name)
    }
}

/// Returns one page of two lists in the same order. The page ends where the first of them that has more ends.
fn merged(
    state: &State,
    query: &ResourceQuery,
    (own, of_project): (ResourcePage, ResourcePage),
) -> Result<ResourcePage, StoreError> {
    let place = |row: &ResourceRow| resource::Place::of(query.sort, row);
    let ends = [&own, &of_project].into_iter().filter_map(|page| {
        let next = page.next.clone()?;
        Some((place(page.rows.last()?), next))
    });
    let end = ends.min_by(|(one, _), (other, _)| resource::order(query.sort, one, other));
    let mut rows = own.rows;
    for row in of_project.rows {
        let is_replaced = resource::find(&state.db, &row.uri, query.now_ms)?.is_some();
        if !is_replaced && !state.has_removed(&row) {
            rows.push(row);
        }
    }
    rows.sort_by(|one, other| resource::order(query.sort, &place(one), &place(other)));
    if let Some((end, _)) = &end {
        rows.retain(|row| resource::order(query.sort, &place(row), end) != Ordering::Greater);
    }
    let page = ResourcePage::cut(rows, query.limit.max(1), |last| {
        resource::position(query.sort, last)
    });
    let next = page.next.or(end.map(|(_, next)| next));
    Ok(ResourcePage { next, ..page })
}
