//! Removes contents of source trees that no registered tree and no changeset refers to any more.
//!
//! Contents younger than a day stay, even without a reference: a step may be about to refer to them. Storing contents
//! that exist already makes them young again, under the lock that removing takes exclusively.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flowstone_flow::blob::BlobHash;
use flowstone_flow::ports::{Removed, ResourceQuery, StoreError, Stores};
use flowstone_flow::resource::ResourceKind;
use flowstone_flow::step::{HomeSweep, Services};

use super::manifest::Manifest;
use super::objects::Objects;

/// Number of names that are listed at a time.
const PAGE: usize = 1000;

/// Removes unreferenced contents that are older than the limit of `sweep`.
pub(super) async fn sweep(services: &Services, sweep: HomeSweep) -> Result<Removed, StoreError> {
    let home = services.home.join("trees");
    if !home.join("objects").is_dir() {
        return Ok(Removed::default());
    }
    let stores = &services.stores;
    let (objects, trees) = referenced(stores, sweep.now_ms).await?;
    let mut live: HashSet<String> = objects.into_iter().collect();
    for tree in trees {
        let bytes = match stores.blobs.get(&BlobHash(tree)).await {
            Ok(bytes) => bytes,
            // The manifest itself is gone, so its contents cannot be reached through it.
            Err(StoreError::Rejected { .. }) => continue,
            Err(error) => return Err(error),
        };
        // An unreadable manifest may refer to any contents, so nothing is removed.
        let manifest =
            Manifest::decode(&bytes).map_err(|error| StoreError::Internal(error.to_string()))?;
        live.extend(contents(&manifest));
    }
    let millis = u64::try_from(sweep.older_than_ms).unwrap_or(0);
    let before = UNIX_EPOCH + Duration::from_millis(millis);
    let work = move || {
        let objects = Objects::new(home.join("objects"));
        objects.refresh();
        keep_recent_commits(&home, &objects, before, sweep.dry_run, &mut live);
        objects.sweep(&|hash| live.contains(hash), before, sweep.dry_run)
    };
    let removed = tokio::task::spawn_blocking(work).await;
    match removed {
        Ok(Ok((count, bytes))) => Ok(Removed { count, bytes }),
        Ok(Err(error)) => Err(StoreError::Disk {
            path: services.home.join("trees").display().to_string(),
            detail: error.to_string(),
        }),
        Err(error) => Err(StoreError::Internal(error.to_string())),
    }
}

/// Returns the hashes of the contents that changesets refer to, and of the manifests of changesets and of registered
/// trees.
pub(super) async fn referenced(
    stores: &Stores,
    now_ms: i64,
) -> Result<(Vec<String>, BTreeSet<String>), StoreError> {
    let referenced = stores.changesets.referenced().await?;
    let mut trees: BTreeSet<String> = referenced.trees.into_iter().collect();
    let mut after = None;
    loop {
        let query = ResourceQuery {
            kinds: vec![ResourceKind::Tree],
            limit: PAGE,
            now_ms,
            after,
            ..ResourceQuery::default()
        };
        let page = stores.resources.list(query).await?;
        trees.extend(page.rows.into_iter().filter_map(|row| Some(row.hash?.0)));
        after = page.next;
        if after.is_none() {
            return Ok((referenced.objects, trees));
        }
    }
}

fn contents(manifest: &Manifest) -> impl Iterator<Item = String> {
    let hashes = manifest.entries().map(|entry| entry.hash.clone());
    hashes.filter(|hash| !hash.is_empty())
}

/// Adds the contents of recently read commits to `live`, so that reading them again is cheap. Forgets older commits.
fn keep_recent_commits(
    home: &Path,
    objects: &Objects,
    before: SystemTime,
    dry_run: bool,
    live: &mut HashSet<String>,
) {
    for entry in fs::read_dir(home.join("commits"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let is_old = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .is_ok_and(|modified| modified < before);
        if is_old {
            if !dry_run {
                fs::remove_file(entry.path()).ok();
            }
            continue;
        }
        let id = fs::read_to_string(entry.path()).unwrap_or_default();
        let id = id.trim().to_string();
        let manifest = objects.get(&id).ok();
        if let Some(manifest) = manifest.and_then(|bytes| Manifest::decode(&bytes).ok()) {
            live.extend(contents(&manifest));
            live.insert(id);
        }
    }
}
