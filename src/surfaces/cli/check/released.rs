//! Which files differ from the released version of their flow.

use std::collections::BTreeSet;

use flowstone_engine::catalog::Catalog;

use crate::cli::home::Project;
use crate::cli::runtime::Runtime;
use crate::cli::{App, Open};

/// The database in the home folder of a project.
const DATABASE: &str = "flowstone.db";

/// Returns the slugs of the flows in the registry of a project.
pub(super) fn slugs(app: &dyn App, project: &Project) -> BTreeSet<String> {
    if !project.home.join(DATABASE).is_file() {
        return BTreeSet::new();
    }
    let found = Runtime::start().and_then(|runtime| {
        runtime.block_on(async {
            let engine = app.open(project, Open::Existing)?;
            // A database that cannot be read does not keep files from being checked.
            let _ = engine.read_registered().await;
            Ok(engine.registered().iter().cloned().collect())
        })
    });
    found.unwrap_or_default()
}

/// Notes which files differ from the released version of their flow, given with their slugs and digests. Without a database
/// there are no versions.
pub(super) fn differing(
    app: &dyn App,
    project: &Project,
    files: &[(String, String, Option<String>)],
) -> Vec<String> {
    if files.is_empty() || !project.home.join(DATABASE).is_file() {
        return Vec::new();
    }
    let found = Runtime::start().and_then(|runtime| {
        runtime.block_on(async {
            let engine = app.open(project, Open::Existing)?;
            let catalog = Catalog::new(Vec::new());
            catalog.follow(&engine).await;
            let mut notes = Vec::new();
            for (file, slug, digest) in files {
                let live = catalog.flow(&engine, slug).filter(|live| {
                    let own = live.loaded.flow.digest.as_deref();
                    own != digest.as_deref()
                });
                if let Some(version) = live.and_then(|live| live.loaded.version) {
                    let number = version.number;
                    notes.push(format!(
                        "{file} differs from the released version of `{slug}`, {number}, which schedules and interfaces use"
                    ));
                }
            }
            Ok(notes)
        })
    });
    // A database that cannot be opened does not keep files from being checked.
    found.unwrap_or_default()
}
