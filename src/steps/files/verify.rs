//! Checks that the contents of each file of a source tree or changeset match their hash. Changes nothing: a damaged
//! file is set aside by the step that reads it.

use std::collections::HashSet;

use flowstone_flow::blob::BlobHash;
use flowstone_flow::ports::{Flaw, StoreError};
use flowstone_flow::step::{HomeVerified, Services};

use super::manifest::Manifest;
use super::objects::Objects;
use super::sweep::referenced;

/// Maximum number of damaged files that are listed.
const MOST: usize = 100;

/// Checks all referenced manifests and the contents that they refer to.
pub(super) async fn verify(services: &Services) -> Result<HomeVerified, StoreError> {
    let stores = &services.stores;
    let (objects, trees) = referenced(stores, services.clock.now_ms()).await?;
    let mut flaws = Vec::new();
    let mut files: Vec<(String, String)> = Vec::new();
    for tree in trees {
        match read(services, &tree).await? {
            Ok(manifest) => files.extend(
                manifest
                    .entries()
                    .map(|entry| (format!("{} of {tree}", entry.path), entry.hash.clone())),
            ),
            Err(detail) => flaws.push(flaw("tree", &tree, detail)),
        }
    }
    let of_changesets = objects.into_iter();
    files.extend(of_changesets.map(|hash| (format!("{hash} of a changeset"), hash)));
    let mut seen = HashSet::new();
    files.retain(|(_, hash)| !hash.is_empty() && seen.insert(hash.clone()));
    let folder = services.home.join("trees").join("objects");
    let checked = tokio::task::spawn_blocking(move || check(&Objects::new(folder), &files)).await;
    let mut found = checked.map_err(|error| StoreError::Internal(error.to_string()))?;
    flaws.append(&mut found.flaws);
    Ok(HomeVerified { flaws, ..found })
}

/// Returns a manifest, or the reason why it cannot be read.
async fn read(services: &Services, tree: &str) -> Result<Result<Manifest, String>, StoreError> {
    match services.stores.blobs.get(&BlobHash(tree.to_owned())).await {
        Ok(bytes) => Ok(Manifest::decode(&bytes).map_err(|error| error.to_string())),
        Err(error @ (StoreError::Rejected { .. } | StoreError::Damaged { .. })) => {
            Ok(Err(error.to_string()))
        }
        Err(error) => Err(error),
    }
}

fn check(objects: &Objects, files: &[(String, String)]) -> HomeVerified {
    objects.refresh();
    let mut found = HomeVerified::default();
    for (name, hash) in files {
        found.files += 1;
        if found.flaws.len() < MOST
            && let Some(detail) = objects.flaw(hash)
        {
            found.flaws.push(flaw("file", name, detail));
        }
    }
    found
}

fn flaw(what: &'static str, name: &str, detail: String) -> Flaw {
    Flaw {
        what,
        name: name.to_owned(),
        detail,
    }
}
