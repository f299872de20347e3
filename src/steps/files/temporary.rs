//! Removes what `:materialize` left behind: temporary folders of ended runs, and records of folders that do not exist
//! any more.
//!
//! The folder of a run that has not ended stays, however long the run waits: it may still capture from it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flowstone_flow::ids::RunId;
use flowstone_flow::ports::{Removed, StoreError};
use flowstone_flow::step::{HomeSweep, Services};

use super::folder::{Record, Records};

/// Returns the parent of all temporary folders, in the project's home. It has one folder for each run.
pub(super) fn folders(home: &Path) -> PathBuf {
    home.join("materialized")
}

/// Returns the records that say which tree was written to which folder.
pub(super) fn records(home: &Path, project: &Path) -> Records {
    Records {
        folder: home.join("trees").join("materialized"),
        project: project.to_path_buf(),
    }
}

/// Removes temporary folders and records that are older than the limit of `sweep`.
pub(super) async fn sweep(services: &Services, sweep: HomeSweep) -> Result<Removed, StoreError> {
    let home = services.home.clone();
    let mut going = Vec::new();
    for folder in entries(&folders(&home)) {
        if is_over(services, &folder, sweep.older_than_ms).await? {
            going.push(folder);
        }
    }
    let records = records(&home, &services.project_root);
    let work = move || remove(&going, &records, sweep);
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(removed)) => Ok(removed),
        Ok(Err(error)) => Err(StoreError::Disk {
            path: folders(&home).display().to_string(),
            detail: error.to_string(),
        }),
        Err(error) => Err(StoreError::Internal(error.to_string())),
    }
}

/// Tells whether the run of a folder ended before an instant. For an unknown run, the age of the folder decides.
async fn is_over(services: &Services, folder: &Path, before_ms: i64) -> Result<bool, StoreError> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let run = services.stores.runs.find(&RunId::from_text(name)).await?;
    Ok(match run {
        Some(run) => run.status.is_final() && run.ended_ms.unwrap_or(run.updated_ms) < before_ms,
        None => is_old(folder, before_ms),
    })
}

fn is_old(path: &Path, before_ms: i64) -> bool {
    let before = UNIX_EPOCH + Duration::from_millis(u64::try_from(before_ms).unwrap_or(0));
    let modified = |path: &Path| -> Option<SystemTime> { path.metadata().ok()?.modified().ok() };
    modified(path).is_some_and(|modified| modified < before)
}

fn remove(going: &[PathBuf], records: &Records, sweep: HomeSweep) -> std::io::Result<Removed> {
    let mut all = Removed::default();
    for folder in going {
        all.count += entries(folder).len() as u64;
        all.bytes += size(folder);
        if !sweep.dry_run {
            fs::remove_dir_all(folder)?;
        }
    }
    for place in entries(&records.folder) {
        let is_orphan = Record::at(&place)
            .and_then(|record| record.place(records))
            .is_some_and(|folder| !folder.exists());
        // The record is written just before its folder, so a young record may not have one yet.
        if is_orphan && !sweep.dry_run && is_old(&place, sweep.older_than_ms) {
            fs::remove_file(&place)?;
        }
    }
    Ok(all)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    found.map(|entry| entry.path()).collect()
}

/// Returns the total size of the files in a folder, in bytes. Links are not followed.
fn size(folder: &Path) -> u64 {
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
