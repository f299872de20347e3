//! The registry of resources, and the resources that are read from other rows.

use std::cmp::Ordering;

use flowstone_model::blob::{BlobOp, BlobRow};
use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    EntryKind, Gone, PortFuture, ResourcePage, ResourceQuery, ResourceRow, Resources, StoreError,
};
use flowstone_model::resource::{self, PREFIX, ResourceKind, ResourceName, SearchEntry, Tier};

use super::state::State;
use super::{News, Session, Tx, lock, made};
use crate::sqlite::resource::{Place, not_removed, order, place, position};

impl Resources for Session {
    fn find(&self, uri: &str, now_ms: i64) -> PortFuture<'_, Option<ResourceRow>> {
        self.read(|tx| find(tx, uri, now_ms))
    }

    fn list(&self, query: ResourceQuery) -> PortFuture<'_, ResourcePage> {
        self.read(|tx| list(tx, &query))
    }

    fn register(&self, blob: BlobRow, now_ms: i64) -> PortFuture<'_, ()> {
        self.write(News::Some, |tx| {
            register(tx.state, &blob, now_ms);
            Ok(())
        })
    }

    fn delete(&self, uri: &str, now_ms: i64) -> PortFuture<'_, bool> {
        self.write(News::Some, |tx| delete(tx, uri, now_ms))
    }

    fn describe(&self, uri: &str, search: Option<SearchEntry>) -> PortFuture<'_, bool> {
        self.write(News::Some, |tx| {
            let found = find(tx, uri, i64::MIN)?.filter(|row| row.gone.is_none());
            let found = found.and_then(|row| tx.state.resources.get_mut(&row.uri));
            Ok(found.map(|row| row.search = search).is_some())
        })
    }

    fn needed_by(&self, uri: &str) -> PortFuture<'_, Vec<RunId>> {
        self.read(|tx| {
            let runs = tx.state.runs.iter();
            let open = runs.filter(|(_, run)| !run.row.status.is_final());
            let needs = open.filter(|(num, run)| {
                let mut entries = tx.state.entries(**num);
                run.row.input.contains(uri) || entries.any(|(_, it)| it.payload.contains(uri))
            });
            let mut ids: Vec<RunId> = needs.map(|(_, run)| run.row.id.clone()).collect();
            ids.sort_unstable();
            Ok(ids)
        })
    }
}

/// Makes a change and returns its result as EDN text.
pub(super) fn apply(state: &mut State, op: &BlobOp, now_ms: i64) -> String {
    let BlobOp::Register { blob, value } = op;
    register(state, blob, now_ms);
    value.clone()
}

fn register(state: &mut State, blob: &BlobRow, now_ms: i64) {
    let row = ResourceRow {
        uri: blob.uri.clone(),
        kind: blob.kind,
        hash: Some(blob.hash.clone()),
        size: Some(blob.size),
        name: blob.filename.clone(),
        content_type: blob.content_type.clone(),
        tier: blob.tier,
        created_ms: now_ms,
        expires_ms: blob.expires_ms,
        run: blob.run.clone(),
        path: blob.path.clone(),
        bucket: blob.bucket.clone(),
        folder: blob.folder.clone(),
        search: blob.search.clone(),
        gone: None,
    };
    state.resources.insert(blob.uri.clone(), row);
}

/// Registers an imported resource, unless its name is taken.
pub(super) fn keep(state: &mut State, blob: &BlobRow, now_ms: i64) {
    if state.resources.get(&blob.uri).is_none() {
        register(state, blob, now_ms);
    }
}

/// Returns a registered blob that has not been removed, even if it has expired.
pub(super) fn blob(state: &State, uri: &str) -> Option<BlobRow> {
    [uri, &resource::canonical(uri)].iter().find_map(|uri| {
        let row = state.resources.get(&(*uri).to_owned())?;
        row.clone().into_blob()
    })
}

/// Returns a row at a time: an expired resource is gone.
fn at(row: &ResourceRow, now_ms: i64) -> ResourceRow {
    let over = row.expires_ms.filter(|expires_ms| *expires_ms <= now_ms);
    let expired = over.map(|expires_ms| (Gone::Expired, expires_ms));
    ResourceRow {
        gone: row.gone.or(expired),
        ..row.clone()
    }
}

fn find(tx: &Tx<'_>, uri: &str, now_ms: i64) -> Result<Option<ResourceRow>, StoreError> {
    for uri in [uri, &resource::canonical(uri)] {
        if let Some(row) = tx.state.resources.get(&uri.to_owned()) {
            return Ok(Some(at(row, now_ms)));
        }
    }
    let Some(name) = ResourceName::read(uri) else {
        return Ok(None);
    };
    let is = |row: &ResourceRow, kind, uri: String| row.kind == kind && row.uri == uri;
    let rows = match &name {
        ResourceName::File(id) | ResourceName::Tree(id) => {
            let end = format!("/{id}");
            let rows = tx.state.resources.values();
            let rows = rows.filter(|row| {
                matches!(row.kind, ResourceKind::File | ResourceKind::Tree)
                    && row.uri.ends_with(&end)
            });
            rows.map(|row| at(row, now_ms)).collect()
        }
        ResourceName::Kv(key) => {
            let mut rows = keys(tx.state);
            rows.retain(|row| row.name.as_ref() == Some(key) && at(row, now_ms).gone.is_none());
            rows
        }
        ResourceName::Table(table) => {
            let number = table.strip_prefix("tbl_").unwrap_or(table);
            let uri = format!("{PREFIX}result/table/{number}");
            let all = tables(tx)?;
            let named = |row: &&ResourceRow| row.name.as_ref() == Some(table);
            let found = all.iter().find(|row| row.uri == uri);
            found
                .or(all.iter().find(named))
                .cloned()
                .into_iter()
                .collect()
        }
        ResourceName::FlowOutput(run) => {
            let mut rows = flow_outputs(tx.state);
            rows.retain(|row| row.run.as_ref() == Some(run));
            rows
        }
        ResourceName::StepOutput(run, path) => {
            let run = run.split('.').next().unwrap_or(run);
            let mut rows = step_outputs(tx.state, run);
            rows.retain(|row| row.path.as_ref() == Some(path));
            rows
        }
        ResourceName::Changeset(id) => {
            let mut rows = changesets(tx.state);
            let uri = format!("{PREFIX}bundle/changeset/files/{id}");
            rows.retain(|row| is(row, ResourceKind::Changeset, uri.clone()));
            rows
        }
        ResourceName::Other => Vec::new(),
    };
    Ok(rows.into_iter().max_by_key(|row| row.created_ms))
}

/// Returns the row of a resource outside of the registry.
fn elsewhere(kind: ResourceKind, uri: String, created_ms: i64) -> ResourceRow {
    ResourceRow {
        uri,
        kind,
        hash: None,
        size: None,
        name: None,
        content_type: None,
        tier: Tier::Retained,
        created_ms,
        expires_ms: None,
        run: None,
        path: None,
        bucket: None,
        folder: None,
        search: None,
        gone: None,
    }
}

const EDN: &str = "application/edn";

fn keys(state: &State) -> Vec<ResourceRow> {
    let keys = state.kv.iter().map(|(key, kept)| ResourceRow {
        size: Some(kept.entry.value.len() as u64),
        name: Some(key.clone()),
        content_type: Some(EDN.to_owned()),
        expires_ms: kept.entry.expires_ms,
        ..elsewhere(ResourceKind::Kv, resource::kv(key), kept.updated_ms)
    });
    keys.collect()
}

fn tables(tx: &Tx<'_>) -> Result<Vec<ResourceRow>, StoreError> {
    let mut relations = lock(&tx.session.project.relations);
    let registered = crate::sqlite::table::registered(made(&mut relations)?)?;
    let rows = registered.into_iter().map(|(id, name, created_ms)| {
        let uri = format!("{PREFIX}result/table/{id}");
        ResourceRow {
            name: Some(name),
            ..elsewhere(ResourceKind::Table, uri, created_ms)
        }
    });
    Ok(rows.collect())
}

fn flow_outputs(state: &State) -> Vec<ResourceRow> {
    let runs = state.runs.values().map(|run| &run.row);
    let outputs = runs.filter_map(|row| {
        let id = row.id.as_str();
        let created_ms = row.ended_ms.unwrap_or(row.updated_ms);
        Some(ResourceRow {
            size: Some(row.result.as_ref()?.len() as u64),
            name: Some(row.flow.clone()),
            content_type: Some(EDN.to_owned()),
            run: Some(id.to_owned()),
            ..elsewhere(
                ResourceKind::FlowOutput,
                resource::flow_output(id),
                created_ms,
            )
        })
    });
    outputs.collect()
}

fn step_outputs(state: &State, run: &str) -> Vec<ResourceRow> {
    let Some(num) = state.number(&RunId::from_text(run)) else {
        return Vec::new();
    };
    let results = state.entries(num).map(|(_, entry)| entry);
    let results = results.filter(|entry| entry.kind == EntryKind::Result);
    let outputs = results.map(|entry| {
        let uri = resource::step_output(run, &entry.path);
        ResourceRow {
            size: Some(entry.payload.len() as u64),
            name: Some(entry.path.clone()),
            content_type: Some(EDN.to_owned()),
            run: Some(run.to_owned()),
            path: Some(entry.path.clone()),
            ..elsewhere(ResourceKind::StepOutput, uri, entry.at_ms)
        }
    });
    outputs.collect()
}

fn changesets(state: &State) -> Vec<ResourceRow> {
    let changesets = state.changesets.iter().map(|(id, changeset)| {
        let uri = format!("{PREFIX}bundle/changeset/files/{id}");
        elsewhere(ResourceKind::Changeset, uri, changeset.updated_ms)
    });
    changesets.collect()
}

/// Returns all rows of the kinds that a query selects.
fn sources(tx: &Tx<'_>, query: &ResourceQuery) -> Result<Vec<ResourceRow>, StoreError> {
    let is_wanted = |kind: ResourceKind| match query.kinds.is_empty() {
        true => match kind {
            ResourceKind::FlowOutput | ResourceKind::StepOutput => query.run.is_some(),
            _ => true,
        },
        false => query.kinds.contains(&kind),
    };
    let state = &tx.state;
    let own = state.resources.values();
    let own = own.filter(|row| is_wanted(row.kind));
    let mut rows: Vec<ResourceRow> = own.cloned().collect();
    for (kind, _) in ResourceKind::NAMES
        .iter()
        .filter(|(kind, _)| is_wanted(*kind))
    {
        match kind {
            ResourceKind::Kv => rows.extend(keys(state)),
            ResourceKind::Table => rows.extend(tables(tx)?),
            ResourceKind::FlowOutput => rows.extend(flow_outputs(state)),
            ResourceKind::StepOutput => {
                let run = query.run.as_deref().unwrap_or_default();
                let outputs = step_outputs(state, run).into_iter();
                // A stored result of a step has the name of its output: it is listed once.
                let is_stored = |uri: &String| {
                    let stored = state.resources.get(uri);
                    stored.is_some_and(|row| row.run.as_deref() == Some(run))
                };
                rows.extend(outputs.filter(|row| !is_stored(&row.uri)));
            }
            ResourceKind::Changeset => rows.extend(changesets(state)),
            ResourceKind::Blob | ResourceKind::File | ResourceKind::Tree => {}
        }
    }
    Ok(rows)
}

fn list(tx: &Tx<'_>, query: &ResourceQuery) -> Result<ResourcePage, StoreError> {
    let limit = query.limit.max(1);
    let after = query.after.as_ref();
    let after = after.map(|text| place(query.sort, text)).transpose()?;
    let mut rows: Vec<ResourceRow> = sources(tx, query)?
        .iter()
        .map(|row| at(row, query.now_ms))
        .filter(|row| fits(row, query))
        .collect();
    rows.sort_by(|one, other| {
        order(
            query.sort,
            &Place::of(query.sort, one),
            &Place::of(query.sort, other),
        )
    });
    if let Some(after) = after {
        rows.retain(|row| {
            order(query.sort, &Place::of(query.sort, row), &after) == Ordering::Greater
        });
    }
    Ok(ResourcePage::cut(rows, limit, |last| {
        position(query.sort, last)
    }))
}

fn fits(row: &ResourceRow, query: &ResourceQuery) -> bool {
    let path = row.path.as_deref();
    let is_step = |step: &String| {
        path.is_some_and(|path| {
            path == step
                || path.split('#').next() == Some(step)
                || path.ends_with(&format!("/{step}"))
        })
    };
    let has_prefix = |prefix: &String| {
        let whole = match prefix.starts_with("res://") {
            true => resource::canonical(prefix),
            false => format!("{PREFIX}{}", prefix.trim_start_matches('/')),
        };
        row.uri.starts_with(&whole)
    };
    let has_text = |text: &String| {
        let text = text.to_ascii_lowercase();
        let name = row.name.as_deref().unwrap_or_default();
        name.to_ascii_lowercase().contains(&text) || row.uri.to_ascii_lowercase().contains(&text)
    };
    (query.with_gone || row.gone.is_none())
        && query
            .run
            .as_ref()
            .is_none_or(|run| row.run.as_ref() == Some(run))
        && query.step.as_ref().is_none_or(is_step)
        && query.prefix.as_ref().is_none_or(has_prefix)
        && query.tier.is_none_or(|tier| tier == row.tier)
        && query.text.as_ref().is_none_or(has_text)
}

fn delete(tx: &mut Tx<'_>, uri: &str, now_ms: i64) -> Result<bool, StoreError> {
    let Some(row) = find(tx, uri, now_ms)?.filter(|row| row.gone.is_none()) else {
        return Ok(false);
    };
    match (row.kind, &row.hash) {
        (ResourceKind::Kv, _) => {
            let removed = row.name.and_then(|key| tx.state.kv.remove(&key));
            Ok(removed.is_some())
        }
        (_, Some(_)) => {
            let row = tx.state.resources.get_mut(&row.uri);
            let removed = row.map(|row| remove(row, (Gone::Deleted, now_ms)));
            Ok(removed.is_some())
        }
        (kind, None) => Err(not_removed(uri, kind)),
    }
}

/// Removes the contents of a resource; its row stays.
pub(super) fn remove(row: &mut ResourceRow, gone: (Gone, i64)) {
    row.gone = Some(gone);
    row.hash = None;
    row.search = None;
}
