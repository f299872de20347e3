//! Decisions about versions of flows: whether one is added, and where `live` moves.

use crate::ports::{RegistryAnswer, StoreError};
use crate::registry::{
    Added, Base, FlowName, FlowRow, Manifest, MoveTo, Moved, NewRelease, NewVersion,
    RegistryRefusal, ReleaseKind, ReleaseRow, VersionFiles, VersionRow, revision_id,
};

/// The rows of the registry, inside a transaction.
pub trait RegistryRows {
    fn registered(&mut self, flow: &FlowName) -> Result<Option<FlowRow>, StoreError>;

    /// Adds or replaces the row of a flow.
    fn write_registered(&mut self, row: &FlowRow) -> Result<(), StoreError>;

    fn version(&mut self, flow: &FlowName, number: i64) -> Result<Option<VersionRow>, StoreError>;

    fn write_version(&mut self, row: &VersionRow) -> Result<(), StoreError>;

    /// Stores files under their hashes, and their manifest under its digest, unless they are stored. `like`: the content
    /// that they are probably similar to.
    fn write_files(
        &mut self,
        manifest: &Manifest,
        files: &VersionFiles,
        like: Option<&str>,
    ) -> Result<(), StoreError>;

    /// Returns the release log, oldest line first.
    fn release_log(&mut self, flow: &FlowName) -> Result<Vec<ReleaseRow>, StoreError>;

    fn write_release(&mut self, flow: &FlowName, row: &ReleaseRow) -> Result<(), StoreError>;

    fn version_at(&mut self, flow: &FlowName, place: &str) -> Result<Option<i64>, StoreError>;

    fn set_version_at(
        &mut self,
        flow: &FlowName,
        place: &str,
        number: i64,
    ) -> Result<(), StoreError>;
}

/// Adds a version, if its base is the head and its content differs from it.
pub fn add_version(
    rows: &mut impl RegistryRows,
    new: &NewVersion,
) -> Result<RegistryAnswer<Added>, StoreError> {
    let manifest = match Manifest::of(&new.files) {
        Ok(manifest) => manifest,
        Err(error) => return Ok(Err(RegistryRefusal::Files(error))),
    };
    let content = manifest.digest();
    let found = rows.registered(&new.flow)?;
    if found.as_ref().is_some_and(|row| row.archived_ms.is_some()) {
        return Ok(Err(RegistryRefusal::Archived));
    }
    let head = match &found {
        Some(row) => Some(known_version(rows, &row.name, row.head)?),
        None => None,
    };
    if let Some(head) = head.as_ref().filter(|head| head.content == content) {
        if let Some(place) = &new.place {
            rows.set_version_at(&new.flow, place, head.number)?;
        }
        return Ok(Ok(Added::Unchanged(head.clone())));
    }
    if let Some(refusal) = stale(rows, new, head.as_ref())? {
        return Ok(Err(refusal));
    }
    let like = head.as_ref().map(|head| &*head.content);
    rows.write_files(&manifest, &new.files, like)?;
    let who = (&*new.author, &*new.message);
    let parent = head.as_ref().map(|head| &*head.revision);
    let row = VersionRow {
        flow: new.flow.clone(),
        number: head.as_ref().map_or(1, |head| head.number + 1),
        revision: revision_id(&content, parent, who, new.now_ms),
        content,
        parent: head.map(|head| head.number),
        author: new.author.clone(),
        message: new.message.clone(),
        created_ms: new.now_ms,
    };
    rows.write_version(&row)?;
    let flow = FlowRow {
        head: row.number,
        updated_ms: new.now_ms,
        ..found.unwrap_or(FlowRow {
            name: new.flow.clone(),
            head: row.number,
            live: None,
            created_ms: new.now_ms,
            updated_ms: new.now_ms,
            archived_ms: None,
        })
    };
    rows.write_registered(&flow)?;
    if let Some(place) = &new.place {
        rows.set_version_at(&new.flow, place, row.number)?;
    }
    Ok(Ok(Added::New(row)))
}

/// Returns why a new version does not follow the head, if it does not.
fn stale(
    rows: &mut impl RegistryRows,
    new: &NewVersion,
    head: Option<&VersionRow>,
) -> Result<Option<RegistryRefusal>, StoreError> {
    let base = match new.base {
        Base::Any => return Ok(None),
        Base::Nothing => None,
        Base::Version(number) => Some(number),
        Base::OfPlace => {
            let place = new.place.as_deref().unwrap_or_default();
            let found = rows.version_at(&new.flow, place)?;
            if let (None, Some(head)) = (found, head) {
                let head = Box::new(head.clone());
                return Ok(Some(RegistryRefusal::NoBase { head }));
            }
            // A registry that lost its versions, or another one: the copy's number means nothing there.
            found.filter(|_| head.is_some())
        }
    };
    let is_head = base == head.map(|head| head.number);
    Ok((!is_head).then(|| RegistryRefusal::Stale {
        base,
        head: head.map(|head| Box::new(head.clone())),
    }))
}

/// Moves `live`, and adds a line to the release log.
pub fn move_live(
    rows: &mut impl RegistryRows,
    release: &NewRelease,
) -> Result<RegistryAnswer<Moved>, StoreError> {
    let Some(flow) = rows.registered(&release.flow)? else {
        return Ok(Err(RegistryRefusal::NoFlow));
    };
    if flow.archived_ms.is_some() {
        return Ok(Err(RegistryRefusal::Archived));
    }
    let log = rows.release_log(&release.flow)?;
    let version = match release.to {
        MoveTo::Head => flow.head,
        MoveTo::Version(number) => number,
        MoveTo::Before => match before_live(&log) {
            Some(number) => number,
            None => return Ok(Err(RegistryRefusal::NothingBefore { live: flow.live })),
        },
    };
    if rows.version(&release.flow, version)?.is_none() {
        return Ok(Err(RegistryRefusal::NoVersion { number: version }));
    }
    if flow.live == Some(version) {
        return Ok(Ok(Moved::Already(version)));
    }
    let row = ReleaseRow {
        seq: log.last().map_or(1, |last| last.seq + 1),
        kind: release.kind,
        version,
        before: flow.live,
        author: release.author.clone(),
        note: release.note.clone(),
        at_ms: release.now_ms,
    };
    rows.write_release(&release.flow, &row)?;
    rows.write_registered(&FlowRow {
        live: Some(version),
        updated_ms: release.now_ms,
        ..flow
    })?;
    Ok(Ok(Moved::Done(row)))
}

/// Returns the version that was released before the live one. A rollback takes back what was released after its target,
/// so that a second rollback goes further back.
pub fn before_live(log: &[ReleaseRow]) -> Option<i64> {
    let mut released: Vec<i64> = Vec::new();
    for line in log {
        let earlier = released.iter().rposition(|number| *number == line.version);
        match (line.kind, earlier) {
            (ReleaseKind::Rollback, Some(idx)) => released.truncate(idx + 1),
            (ReleaseKind::Rollback, None) | (ReleaseKind::Release, _) => {
                released.push(line.version);
            }
        }
    }
    released.pop();
    released.pop()
}

/// Archives a flow, or ends that.
pub fn archive(
    rows: &mut impl RegistryRows,
    flow: &FlowName,
    archived_ms: Option<i64>,
) -> Result<RegistryAnswer<FlowRow>, StoreError> {
    let Some(mut row) = rows.registered(flow)? else {
        return Ok(Err(RegistryRefusal::NoFlow));
    };
    // The time of the first archiving is kept.
    if row.archived_ms.is_some() != archived_ms.is_some() {
        row.archived_ms = archived_ms;
        row.updated_ms = archived_ms.unwrap_or(row.updated_ms);
        rows.write_registered(&row)?;
    }
    Ok(Ok(row))
}

/// Returns a version that the row of a flow names.
fn known_version(
    rows: &mut impl RegistryRows,
    flow: &FlowName,
    number: i64,
) -> Result<VersionRow, StoreError> {
    let found = rows.version(flow, number)?;
    found.ok_or_else(|| StoreError::Damaged {
        path: "flowstone.db".to_owned(),
        detail: format!("version {number} of the flow `{flow}` is missing"),
    })
}

#[cfg(test)]
mod tests {
    use super::before_live;
    use crate::registry::{ReleaseKind, ReleaseRow};

    fn log(moves: &[(ReleaseKind, i64)]) -> Vec<ReleaseRow> {
        let moves = moves.iter().zip(1..);
        let rows = moves.map(|((kind, version), seq)| ReleaseRow {
            seq,
            kind: *kind,
            version: *version,
            before: None,
            author: String::new(),
            note: String::new(),
            at_ms: 0,
        });
        rows.collect()
    }

    #[test]
    fn a_second_rollback_goes_further_back() {
        use ReleaseKind::{Release, Rollback};
        let mut moves = vec![(Release, 1), (Release, 2), (Release, 5)];
        assert_eq!(before_live(&log(&moves)), Some(2));
        moves.push((Rollback, 2));
        assert_eq!(before_live(&log(&moves)), Some(1));
        moves.push((Rollback, 1));
        assert_eq!(before_live(&log(&moves)), None);
        moves.push((Release, 6));
        assert_eq!(before_live(&log(&moves)), Some(1));
        // A rollback to a version that was never released.
        moves.push((Rollback, 4));
        assert_eq!(before_live(&log(&moves)), Some(6));
        assert_eq!(before_live(&[]), None);
    }
}
