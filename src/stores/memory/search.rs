//! The search index: in the database of tables, updated from the rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use flowstone_model::ports::{
    Embedded, PortFuture, Refreshed, ResourceRow, RunStatus, SearchDoc, SearchHit, SearchIndex,
    SearchTarget, StoreError, Unembedded, VectorQuery, WordQuery,
};
use flowstone_model::resource::PREFIX;
use flowstone_model::sealed::split;
use flowstone_model::search::{TEXT_MAX, start_of};

use super::state::{Run, State};
use super::{News, Session, Tx};
use crate::sqlite::search::docs::{self, Ends};
use crate::sqlite::search::fresh::{Registered, RunTexts, changed_tables, resource_doc, run_doc};
use crate::sqlite::search::{ask, vectors};

impl SearchIndex for Session {
    fn refresh(&self, most: usize) -> PortFuture<'_, Refreshed> {
        self.write(News::None, |tx| refresh(tx, most))
    }

    fn versions(&self, target: SearchTarget) -> PortFuture<'_, Vec<(String, String)>> {
        self.relate(|db| docs::versions(db, target))
    }

    fn put(
        &self,
        target: SearchTarget,
        docs: Vec<SearchDoc>,
        gone: Vec<String>,
    ) -> PortFuture<'_, ()> {
        self.write(News::None, |tx| {
            docs::replace(tx.relations()?, target, &docs, &gone)
        })
    }

    fn by_words(&self, query: WordQuery) -> PortFuture<'_, Vec<SearchHit>> {
        self.relate(|db| ask::by_words(db, &query))
    }

    fn unembedded(
        &self,
        model: &str,
        targets: &[SearchTarget],
        limit: usize,
    ) -> PortFuture<'_, (Vec<Unembedded>, u64)> {
        self.write(News::None, |tx| {
            let db = tx.relations()?;
            if !vectors::is_model(db, model)? {
                vectors::take_model(db, model)?;
            }
            vectors::bare(db, targets, limit)
        })
    }

    fn embed(&self, model: &str, texts: Vec<Embedded>) -> PortFuture<'_, ()> {
        self.write(News::None, |tx| {
            vectors::keep(tx.relations()?, model, &texts)
        })
    }

    fn by_vector(&self, query: VectorQuery) -> PortFuture<'_, Vec<SearchHit>> {
        self.relate(|db| vectors::nearest(db, &query))
    }

    fn indexed(&self, target: SearchTarget, id: &str) -> PortFuture<'_, Option<SearchDoc>> {
        self.relate(|db| docs::find(db, target, id))
    }

    fn forget(&self, uri: Option<String>) -> PortFuture<'_, u64> {
        self.write(News::None, |tx| match uri {
            Some(uri) => {
                docs::remove(tx.relations()?, SearchTarget::Resources, &uri)?;
                let row = tx.state.resources.get(&uri);
                Ok(u64::from(row.is_some()))
            }
            None => {
                let count = present(tx.state).count() + tx.state.runs.values().count();
                docs::redo_all(tx.relations()?)?;
                Ok(count as u64)
            }
        })
    }
}

/// Indexes tables, resources and runs that are new or have changed, and removes those that are gone.
fn refresh(tx: &mut Tx<'_>, most: usize) -> Result<Refreshed, StoreError> {
    let (changed, gone) = changed_tables(tx.relations()?)?;
    let mut changed: Vec<(SearchTarget, SearchDoc, Ends)> = changed
        .into_iter()
        .map(|doc| (SearchTarget::Resources, doc, Ends::No))
        .collect();
    let mut gone: Vec<(SearchTarget, String)> = gone
        .into_iter()
        .map(|id| (SearchTarget::Resources, id))
        .collect();
    let resources: Vec<(SearchDoc, Ends)> = present(tx.state)
        .map(|row| (resource(tx.state, row), Ends::No))
        .collect();
    let runs: Vec<(SearchDoc, Ends)> = tx.state.runs.values().map(run).collect();
    let is_table = format!("{PREFIX}result/table/");
    for (target, docs) in [
        (SearchTarget::Resources, resources),
        (SearchTarget::Runs, runs),
    ] {
        let db = tx.relations()?;
        let ids: BTreeSet<&String> = docs.iter().map(|(doc, _)| &doc.id).collect();
        for (id, _) in docs::versions(db, target)? {
            if !ids.contains(&id) && !id.starts_with(&is_table) {
                gone.push((target, id));
            }
        }
        for (doc, ends) in docs {
            if docs::find(db, target, &doc.id)?.as_ref() != Some(&doc) {
                changed.push((target, doc, ends));
            }
        }
    }
    let db = tx.relations()?;
    for (target, id) in &gone {
        docs::remove(db, *target, id)?;
    }
    for (target, doc, ends) in changed.iter().take(most) {
        docs::put(db, *target, doc, *ends)?;
    }
    Ok(Refreshed {
        indexed: changed.len().min(most) as u64,
        left: changed.len().saturating_sub(most) as u64,
    })
}

fn present(state: &State) -> impl Iterator<Item = &ResourceRow> {
    let rows = state.resources.values();
    rows.filter(|row| row.gone.is_none())
}

fn resource(state: &State, row: &ResourceRow) -> SearchDoc {
    let hash = row.hash.clone().unwrap_or_default().0;
    let size = row.size.and_then(|size| i64::try_from(size).ok());
    let found = Registered {
        hash,
        size: size.unwrap_or(0),
        filename: row.name.clone(),
        content_type: row.content_type.clone(),
        search: None,
        folder: row.folder.clone(),
        kind: row.kind.name().to_owned(),
    };
    let contents = || {
        let (_, bytes): &(i64, Arc<Vec<u8>>) = state.blobs.get(&found.hash)?;
        let start = &bytes[..bytes.len().min(TEXT_MAX + 1)];
        Some(start_of(start, TEXT_MAX.min(bytes.len()))?.0)
    };
    let entry = row.search.clone().unwrap_or_default();
    resource_doc(&row.uri, &found, entry, contents)
}

fn run(run: &Run) -> (SearchDoc, Ends) {
    let row = &run.row;
    let tags = [&row.external_id, &row.invocation, &row.key];
    let tags = tags.into_iter().flatten().cloned();
    let status: RunStatus = row.status;
    run_doc(&RunTexts {
        id: row.id.to_string(),
        flow: row.flow.clone(),
        status,
        updated_ms: row.updated_ms,
        tags: tags.chain([row.started_by.clone()]).collect(),
        body: [
            row.error.clone(),
            Some(split(&row.input).shown.to_owned()),
            row.result.clone(),
        ],
    })
}
