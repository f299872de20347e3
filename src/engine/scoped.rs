//! The stores as the runs of one namespace have them: an installation, or the project without its installations.
//!
//! Every table and key that a step names is placed in the namespace here, in one place for reads and one for changes, so no step
//! type has to know of installations. What is of another namespace does not exist.

use std::sync::Arc;

use crate::blob::BlobHash;
use crate::ids::RunId;
use crate::installation::Namespace;
use crate::kv::{KvEntry, KvOp};
use crate::ports::{
    BlobRow, BlobWriter, Blobs, Embedded, Kv, PortFuture, Refreshed, ResourcePage, ResourceQuery,
    ResourceRow, Resources, SearchDoc, SearchHit, SearchIndex, SearchTarget, StoreError, StoreOp,
    Stores, Tables, Unembedded, VectorQuery, WordQuery,
};
use crate::resource::{ResourceKind, ResourceName, SearchEntry};
use crate::table::csv::{ExportCsv, ExportedCsv, StageCsv, StagedCsv};
use crate::table::{JoinSource, TableName, TableOp, TableQuery, TableTarget};

/// Returns the stores as runs of a namespace have them.
pub(crate) fn scoped(stores: &Stores, namespace: Namespace) -> Stores {
    let scoped = Arc::new(Scoped {
        whole: stores.clone(),
        namespace,
    });
    Stores {
        kv: scoped.clone(),
        tables: scoped.clone(),
        blobs: scoped.clone(),
        resources: scoped.clone(),
        search: scoped,
        ..stores.clone()
    }
}

/// Places the names in a change in a namespace. `stores` are the whole ones.
///
/// # Errors
/// When a name is of another namespace.
pub(crate) async fn placed(
    stores: &Stores,
    namespace: Namespace,
    mut op: StoreOp,
) -> Result<StoreOp, StoreError> {
    let scoped = Scoped {
        whole: stores.clone(),
        namespace,
    };
    match &mut op {
        StoreOp::Kv(op) => scoped.place_key(key_of(op))?,
        StoreOp::Table(op) => match &mut **op {
            TableOp::Create(create) => create.name = scoped.table_name(&create.name)?,
            TableOp::Join(join) => {
                for side in [&mut join.left, &mut join.right] {
                    if let JoinSource::Table(table) = &mut side.source {
                        scoped.place_table(table).await?;
                    }
                }
                scoped.place_table(&mut join.into).await?;
            }
            op => scoped.place_table(table_of(op)).await?,
        },
        StoreOp::Blob(_) | StoreOp::Changeset(_) | StoreOp::Job(_) => {}
    }
    Ok(op)
}

fn key_of(op: &mut KvOp) -> &mut String {
    match op {
        KvOp::Set(set) => &mut set.key,
        KvOp::Delete { key } | KvOp::Increment { key, .. } | KvOp::Append { key, .. } => key,
    }
}

/// Returns the only table of a change other than a creation and a join.
fn table_of(op: &mut TableOp) -> &mut TableTarget {
    match op {
        TableOp::Write(write) => &mut write.table,
        TableOp::Delete { table, .. } => table,
        TableOp::UpdateCell(update) => &mut update.table,
        TableOp::FormatCell(format) => &mut format.table,
        TableOp::SetColumn(set) => &mut set.table,
        TableOp::Recompute(recompute) => &mut recompute.table,
        TableOp::Import(import) => &mut import.table,
        TableOp::Join(join) => &mut join.into,
        TableOp::Create(_) => unreachable!("a table that is created has a name of its own"),
    }
}

#[derive(Clone)]
struct Scoped {
    whole: Stores,
    namespace: Namespace,
}

impl Scoped {
    fn table_name(&self, name: &str) -> Result<String, StoreError> {
        let placed = self.namespace.table(name);
        placed.ok_or_else(|| no_table(name))
    }

    fn place_key(&self, key: &mut String) -> Result<(), StoreError> {
        *key = self
            .namespace
            .key(key)
            .ok_or_else(|| StoreError::Rejected {
                code: "E1457",
                kind: "not-found",
                message: format!("the key \"{key}\" is kept for an installation"),
                hint: Some(
                    "keys that begin with `installation:` belong to installations".to_owned(),
                ),
            })?;
        Ok(())
    }

    async fn place_table(&self, table: &mut TableTarget) -> Result<(), StoreError> {
        match &mut table.name {
            TableName::Name(name) => *name = self.table_name(name)?,
            TableName::Id(id) => {
                let id = *id;
                let uri = format!("{}result/table/{id}", crate::resource::PREFIX);
                let row = self.whole.resources.find(&uri, 0).await?;
                // A number that no table has is reported by the store.
                if row.is_some_and(|row| !self.has_table(&row)) {
                    return Err(no_table(&format!("tbl_{id}")));
                }
            }
        }
        Ok(())
    }

    fn has_table(&self, row: &ResourceRow) -> bool {
        Namespace::of_table(row.name.as_deref().unwrap_or_default()) == self.namespace
    }

    /// Tells whether a resource is of this namespace.
    async fn has(&self, row: &ResourceRow) -> Result<bool, StoreError> {
        match row.kind {
            ResourceKind::Kv => {
                let key = row.name.as_deref().unwrap_or_default();
                Ok(Namespace::of_key(key) == self.namespace)
            }
            ResourceKind::Table => Ok(self.has_table(row)),
            ResourceKind::Blob
            | ResourceKind::Changeset
            | ResourceKind::File
            | ResourceKind::FlowOutput
            | ResourceKind::StepOutput
            | ResourceKind::Tree => self.has_run(row.run.as_deref()).await,
        }
    }

    /// Tells whether what a run made is of this namespace. What no run made is of the project.
    async fn has_run(&self, run: Option<&str>) -> Result<bool, StoreError> {
        let found = match run {
            Some(run) => self.whole.runs.find(&RunId::from_text(run)).await?,
            None => None,
        };
        let made_in = found.map_or(Namespace::Project, |run| Namespace::of_flow(&run.flow));
        Ok(made_in == self.namespace)
    }

    async fn visible(&self, hits: Vec<SearchHit>) -> Result<Vec<SearchHit>, StoreError> {
        let mut visible = Vec::new();
        for hit in hits {
            let is_visible = match hit.target {
                SearchTarget::Runs => self.has_run(Some(&hit.id)).await?,
                SearchTarget::Resources => match self.whole.resources.find(&hit.id, 0).await? {
                    Some(row) => self.has(&row).await?,
                    None => self.namespace == Namespace::Project,
                },
                // Those of the home are not an installation's.
                SearchTarget::Flows | SearchTarget::Connections | SearchTarget::Knowledge => {
                    self.namespace == Namespace::Project
                }
            };
            if is_visible {
                visible.push(hit);
            }
        }
        Ok(visible)
    }
}

/// Tells whether the last part of a table's name is its number.
fn is_number(table: &str) -> bool {
    let number = table.strip_prefix("tbl_").unwrap_or(table);
    number.bytes().all(|byte| byte.is_ascii_digit())
}

fn no_table(name: &str) -> StoreError {
    StoreError::Rejected {
        code: "E0620",
        kind: "not-found",
        message: format!("there is no table `{name}`"),
        hint: None,
    }
}

impl Kv for Scoped {
    fn get(&self, key: &str, now_ms: i64) -> PortFuture<'_, Option<String>> {
        let key = self.namespace.key(key);
        Box::pin(async move {
            match key {
                Some(key) => self.whole.kv.get(&key, now_ms).await,
                None => Ok(None),
            }
        })
    }

    fn entry(&self, key: &str, now_ms: i64) -> PortFuture<'_, Option<KvEntry>> {
        let key = self.namespace.key(key);
        Box::pin(async move {
            match key {
                Some(key) => self.whole.kv.entry(&key, now_ms).await,
                None => Ok(None),
            }
        })
    }

    fn list_keys(&self, prefix: &str, limit: usize, now_ms: i64) -> PortFuture<'_, Vec<String>> {
        let own = self.namespace.keys();
        let prefix = format!("{own}{prefix}");
        Box::pin(async move {
            if !own.is_empty() {
                let keys = self.whole.kv.list_keys(&prefix, limit, now_ms).await?;
                let names = keys.into_iter().map(|key| key[own.len()..].to_owned());
                return Ok(names.collect());
            }
            // Keys of installations may lie among those of the project.
            let keys = self.whole.kv.list_keys(&prefix, usize::MAX, now_ms);
            let mut keys = keys.await?;
            keys.retain(|key| Namespace::of_key(key) == Namespace::Project);
            keys.truncate(limit);
            Ok(keys)
        })
    }
}

impl Tables for Scoped {
    fn names(&self) -> PortFuture<'_, Vec<String>> {
        Box::pin(async move {
            let own = self.namespace.tables();
            let names = self.whole.tables.names().await?.into_iter();
            let names = names.filter(|name| Namespace::of_table(name) == self.namespace);
            Ok(names.map(|name| name[own.len()..].to_owned()).collect())
        })
    }

    fn query(&self, mut query: TableQuery) -> PortFuture<'_, String> {
        Box::pin(async move {
            let table = match &mut query {
                TableQuery::Rows(rows) => &mut rows.table,
                TableQuery::Row { table, .. } | TableQuery::Schema { table } => table,
                TableQuery::Aggregate(aggregate) => &mut aggregate.table,
            };
            self.place_table(table).await?;
            self.whole.tables.query(query).await
        })
    }

    fn apply(&self, op: TableOp, now_ms: i64) -> PortFuture<'_, String> {
        Box::pin(async move {
            let op = StoreOp::Table(Box::new(op));
            match placed(&self.whole, self.namespace.clone(), op).await? {
                StoreOp::Table(op) => self.whole.tables.apply(*op, now_ms).await,
                _ => Err(StoreError::Internal(
                    "a change of a table became another".to_owned(),
                )),
            }
        })
    }

    fn stage(&self, ask: StageCsv) -> PortFuture<'_, StagedCsv> {
        self.whole.tables.stage(ask)
    }

    fn export(&self, mut ask: ExportCsv) -> PortFuture<'_, ExportedCsv> {
        Box::pin(async move {
            self.place_table(&mut ask.table).await?;
            self.whole.tables.export(ask).await
        })
    }
}

impl Blobs for Scoped {
    fn put(&self, bytes: Vec<u8>) -> PortFuture<'_, BlobHash> {
        self.whole.blobs.put(bytes)
    }

    fn begin(&self) -> PortFuture<'_, Box<dyn BlobWriter>> {
        self.whole.blobs.begin()
    }

    fn get(&self, hash: &BlobHash) -> PortFuture<'_, Vec<u8>> {
        self.whole.blobs.get(hash)
    }

    fn part(&self, hash: &BlobHash, start: u64, length: usize) -> PortFuture<'_, Vec<u8>> {
        self.whole.blobs.part(hash, start, length)
    }

    fn find(&self, uri: &str) -> PortFuture<'_, Option<BlobRow>> {
        let uri = uri.to_owned();
        Box::pin(async move {
            match self.whole.blobs.find(&uri).await? {
                Some(row) if self.has_run(row.run.as_deref()).await? => Ok(Some(row)),
                _ => Ok(None),
            }
        })
    }
}

impl Resources for Scoped {
    fn find(&self, uri: &str, now_ms: i64) -> PortFuture<'_, Option<ResourceRow>> {
        let mut uri = uri.to_owned();
        Box::pin(async move {
            let placed = match ResourceName::read(&uri) {
                Some(ResourceName::Kv(key)) => match self.namespace.key(&key) {
                    Some(key) => Some(crate::resource::kv(&key)),
                    None => return Ok(None),
                },
                Some(ResourceName::Table(name)) if !is_number(&name) => {
                    let name = self.namespace.table(&name);
                    let Some(name) = name else {
                        return Ok(None);
                    };
                    let name = crate::resource::escaped(&name);
                    Some(format!("{}result/table/{name}", crate::resource::PREFIX))
                }
                _ => None,
            };
            uri = placed.unwrap_or(uri);
            match self.whole.resources.find(&uri, now_ms).await? {
                Some(row) if self.has(&row).await? => Ok(Some(row)),
                _ => Ok(None),
            }
        })
    }

    fn list(&self, query: ResourceQuery) -> PortFuture<'_, ResourcePage> {
        Box::pin(async move {
            let page = self.whole.resources.list(query).await?;
            let mut rows = Vec::new();
            for row in page.rows {
                if self.has(&row).await? {
                    rows.push(row);
                }
            }
            Ok(ResourcePage { rows, ..page })
        })
    }

    fn register(&self, blob: BlobRow, now_ms: i64) -> PortFuture<'_, ()> {
        self.whole.resources.register(blob, now_ms)
    }

    fn delete(&self, uri: &str, now_ms: i64) -> PortFuture<'_, bool> {
        let uri = uri.to_owned();
        Box::pin(async move {
            match Resources::find(self, &uri, now_ms).await? {
                Some(row) => self.whole.resources.delete(&row.uri, now_ms).await,
                None => Ok(false),
            }
        })
    }

    fn describe(&self, uri: &str, search: Option<SearchEntry>) -> PortFuture<'_, bool> {
        let uri = uri.to_owned();
        Box::pin(async move {
            match Resources::find(self, &uri, 0).await? {
                Some(row) => self.whole.resources.describe(&row.uri, search).await,
                None => Ok(false),
            }
        })
    }

    fn needed_by(&self, uri: &str) -> PortFuture<'_, Vec<RunId>> {
        self.whole.resources.needed_by(uri)
    }
}

impl SearchIndex for Scoped {
    fn refresh(&self, most: usize) -> PortFuture<'_, Refreshed> {
        self.whole.search.refresh(most)
    }

    fn versions(&self, target: SearchTarget) -> PortFuture<'_, Vec<(String, String)>> {
        self.whole.search.versions(target)
    }

    fn put(
        &self,
        target: SearchTarget,
        docs: Vec<SearchDoc>,
        gone: Vec<String>,
    ) -> PortFuture<'_, ()> {
        self.whole.search.put(target, docs, gone)
    }

    fn by_words(&self, query: WordQuery) -> PortFuture<'_, Vec<SearchHit>> {
        Box::pin(async move {
            let hits = self.whole.search.by_words(query).await?;
            self.visible(hits).await
        })
    }

    fn unembedded(
        &self,
        model: &str,
        targets: &[SearchTarget],
        limit: usize,
    ) -> PortFuture<'_, (Vec<Unembedded>, u64)> {
        self.whole.search.unembedded(model, targets, limit)
    }

    fn embed(&self, model: &str, texts: Vec<Embedded>) -> PortFuture<'_, ()> {
        self.whole.search.embed(model, texts)
    }

    fn by_vector(&self, query: VectorQuery) -> PortFuture<'_, Vec<SearchHit>> {
        Box::pin(async move {
            let hits = self.whole.search.by_vector(query).await?;
            self.visible(hits).await
        })
    }

    fn indexed(&self, target: SearchTarget, id: &str) -> PortFuture<'_, Option<SearchDoc>> {
        self.whole.search.indexed(target, id)
    }

    fn forget(&self, uri: Option<String>) -> PortFuture<'_, u64> {
        self.whole.search.forget(uri)
    }
}
