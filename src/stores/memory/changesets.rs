//! Changesets of `:files` in memory.

use flowstone_model::changeset::{ChangesetEdit, ChangesetOp, Overlay, Referenced};
use flowstone_model::ports::{Changesets, PortFuture, StoreError};

use super::Session;
use super::state::{Changeset, State};
use crate::sqlite::changeset::{exists, raced, unknown};

impl Changesets for Session {
    fn overlay(&self, id: &str) -> PortFuture<'_, Option<Overlay>> {
        self.read(|tx| {
            let found = tx.state.changesets.get(&id.to_owned());
            Ok(found.map(|changeset| Overlay {
                id: id.to_owned(),
                base: changeset.base.clone(),
                source: changeset.source.clone(),
                revision: changeset.revision,
                changes: changeset.changes(),
            }))
        })
    }

    fn referenced(&self) -> PortFuture<'_, Referenced> {
        self.read(|tx| {
            let changesets = || tx.state.changesets.values();
            let files = changesets().flat_map(|it| it.paths.values());
            let files = files.filter_map(|(_, now, _)| now.as_ref());
            let objects = files.map(|file| file.hash.clone());
            Ok(Referenced {
                objects: sorted(objects.filter(|hash| !hash.is_empty())),
                trees: sorted(changesets().map(|changeset| changeset.base.clone())),
            })
        })
    }
}

fn sorted(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut texts: Vec<String> = texts.collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

/// Makes a change and returns its result as EDN text.
pub(super) fn apply(
    state: &mut State,
    op: &ChangesetOp,
    now_ms: i64,
) -> Result<String, StoreError> {
    match op {
        ChangesetOp::Open(new) => {
            if state.changesets.get(&new.id).is_some() {
                return Err(exists(&new.id));
            }
            let changeset = Changeset {
                base: new.base.clone(),
                source: new.source.clone(),
                revision: 0,
                updated_ms: now_ms,
                paths: std::collections::BTreeMap::new(),
            };
            state.changesets.insert(new.id.clone(), changeset);
            Ok(new.answer.clone())
        }
        ChangesetOp::Edit(edit) => change(state, edit, now_ms),
    }
}

fn change(state: &mut State, edit: &ChangesetEdit, now_ms: i64) -> Result<String, StoreError> {
    let Some(changeset) = state.changesets.get(&edit.id) else {
        return Err(unknown(&edit.id));
    };
    for change in &edit.changes {
        if let Some(other) = race(changeset, edit.seen, &change.path) {
            return Err(raced(edit.on_race, other));
        }
    }
    if edit.changes.is_empty() {
        return Ok(edit.answer.clone());
    }
    if let Some(changeset) = state.changesets.get_mut(&edit.id) {
        changeset.revision += 1;
        changeset.updated_ms = now_ms;
        for change in &edit.changes {
            let now = (
                changeset.revision,
                change.now.clone(),
                change.moved_from.clone(),
            );
            changeset.paths.insert(change.path.clone(), now);
        }
    }
    Ok(edit.answer.clone())
}

/// Returns a path that was changed after a revision, and equals a given path, contains it, or is below it.
fn race<'a>(changeset: &'a Changeset, seen: i64, path: &str) -> Option<&'a str> {
    let is_inside = |inner: &str, outer: &str| {
        let rest = inner.strip_prefix(outer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let changed = changeset.paths.iter().filter(|(_, it)| it.0 > seen);
    let mut changed = changed.map(|(changed, _)| &**changed);
    changed.find(|changed| is_inside(changed, path) || is_inside(path, changed))
}
