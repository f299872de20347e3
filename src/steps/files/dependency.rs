//! The Clojure files of a dependency: a revision of a git repository.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use flowstone_flow::dependencies::{Revision, is_code};

use super::error::FilesError;
use super::git::{self, Repository};
use super::manifest::Kind;
use super::objects::Objects;
use super::process::Limit;
use super::snapshot::Limits;

/// How long git may take.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum size of a repository at the revision.
const LIMITS: Limits = Limits {
    files: 20_000,
    bytes: 256 << 20,
    file_bytes: 4 << 20,
};

/// A file: its path below the folder of the namespaces, and its content.
pub type CodeFile = (String, Vec<u8>);

/// Returns the Clojure files of a revision in the order of their paths. It is fetched unless it was before.
///
/// # Errors
/// When git fails, or the revision is too large.
pub fn code_of(
    revision: &Revision,
    project: &Path,
    home: &Path,
) -> Result<Vec<CodeFile>, FilesError> {
    let trees = home.join("trees");
    let objects = Objects::new(trees.join("objects"));
    let repository = Repository {
        repo: revision.repo.clone(),
        reference: revision.commit.clone(),
        base: project.to_path_buf(),
        header: None,
        connection: None,
        timeout: TIMEOUT,
        limits: LIMITS,
    };
    // The settings of the project name the server, so no permission is needed.
    let mut limit = Limit::new(TIMEOUT);
    limit.guard.net = std::sync::Arc::new(flowstone_flow::permission::NetAllow {
        any: true,
        ..Default::default()
    });
    let (manifest, _) = git::snapshot(&repository, &trees, &objects, &limit)?;
    let mut files = Vec::new();
    for entry in manifest.entries().filter(|entry| entry.kind == Kind::File) {
        let Ok(path) = Path::new(&entry.path).strip_prefix(&revision.root) else {
            continue;
        };
        let is_plain = path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let path = PathBuf::from(path).to_string_lossy().replace('\\', "/");
        if is_plain && is_code(&path) {
            files.push((path, objects.get(&entry.hash)?));
        }
    }
    files.sort();
    Ok(files)
}
