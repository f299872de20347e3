//! A disk that fills up while `:files` writes: `/dev/full` refuses each write, as a full disk does.
//!
//! Files are first written under a temporary name, so links to `/dev/full` with such names simulate a full disk.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::project::Project;

/// Number of temporary names to block: tests in parallel use up some of them.
const NAMES: usize = 60_000;

/// Makes writing to a folder fail, until the links are removed.
fn fill(folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    for number in 0..NAMES {
        let name = folder.join(format!("tmp-{}-{number}", std::process::id()));
        symlink("/dev/full", name).expect("a link");
    }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_symlink())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Removes the links, and returns the other files.
fn clear(folder: &Path) -> Vec<PathBuf> {
    let (links, others): (Vec<_>, Vec<_>) = entries(folder).into_iter().partition(|it| is_link(it));
    for link in links {
        fs::remove_file(link).expect("a link");
    }
    others
}

fn tree(project: &Project) {
    project.write("tree/a.txt", b"a\n");
    project.write("tree/b/c.txt", b"c\n");
}

/// Runs a flow while writing to a folder fails, returns the files there, and resumes the run afterwards.
fn survives(project: &Project, folder: &Path, body: &str, expected: &str) -> Vec<PathBuf> {
    fill(folder);
    let error = project.run(body).expect_err("no space");
    assert_eq!(error.code(), "E0606", "{error}");
    let hint = error.hint().unwrap_or_default();
    assert!(hint.contains("runs resume"), "{hint}");
    let others = clear(folder);
    assert_eq!(project.resume_all(), [expected]);
    others
}

#[test]
fn a_file_without_space_on_the_disk_is_not_in_the_changeset() {
    let project = Project::new();
    tree(&project);
    // The object of `"new\n"` is `ab/abcdef...`.
    let hash = flowstone_engine::codec::digest_bytes(b"new\n");
    let folder = project
        .path()
        .join(".flowstone/trees/objects")
        .join(&hash[..2]);
    let others = survives(
        &project,
        &folder,
        "(let [draft (flow/step :files :draft {:op :init-changeset :source {:type :dir :path \"tree\"}})]
           (flow/step :files :write {:op :write-file :changeset draft :path \"new.txt\" :content \"new\\n\"})
           (mapv (juxt :path :status) (:files (flow/step :files :diff {:op :diff :changeset draft}))))",
        "[[\"new.txt\" :added]]",
    );
    assert!(others.is_empty(), "half written: {others:?}");
}

#[test]
fn a_folder_without_space_on_the_disk_is_not_created() {
    let project = Project::new();
    tree(&project);
    let records = project.path().join(".flowstone/trees/materialized");
    fill(&records);
    let body = "(:files (flow/step :files :out {:op :materialize :source {:type :dir :path \"tree\"} :to \"out\"}))";
    let error = project.run(body).expect_err("no space");
    assert_eq!(error.code(), "E0606", "{error}");
    let left: Vec<_> = entries(project.path())
        .into_iter()
        .filter(|it| it.to_string_lossy().contains("out"))
        .collect();
    assert!(left.is_empty(), "half written: {left:?}");
    assert!(clear(&records).is_empty());
    assert_eq!(project.resume_all(), ["2"]);
    assert!(project.path().join("out/b/c.txt").is_file());
}
