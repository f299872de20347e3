//! `:materialize` into an existing folder, and `:write-out`: unrelated files stay unchanged.

use std::fs;

use crate::changeset::{project, with_draft};
use crate::project::Project;

fn read(project: &Project, path: &str) -> Option<String> {
    fs::read_to_string(project.path().join(path)).ok()
}

/// Writes a changeset back, and returns the result without the list of files that were left out.
fn written(project: &Project, edits: &str, options: &str) -> String {
    with_draft(
        project,
        &format!(
            "(do {edits} (dissoc (flow/step :files :out {{:op :materialize :changeset draft {options}}}) :skipped))"
        ),
    )
}

const WRITE: &str =
    r#"(flow/step :files :w {:op :write-file :changeset draft :path "digest.md" :content "x"})"#;

#[test]
fn overwriting_keeps_files_unknown_to_the_changeset() {
    let project = project(&[
        (".gitignore", "*.env\n"),
        ("notes.md", "notes\n"),
        ("secret.env", "KEY=1\n"),
        (".git/config", "[core]\n"),
    ]);
    fs::create_dir(project.path().join("tree/empty")).expect("a folder");
    assert_eq!(
        written(&project, WRITE, ":to \"tree\" :overwrite? true"),
        r#"{:path "tree" :files 3 :written 1 :removed 0}"#
    );
    assert_eq!(read(&project, "tree/digest.md").as_deref(), Some("x"));
    assert_eq!(
        read(&project, "tree/secret.env").as_deref(),
        Some("KEY=1\n")
    );
    assert_eq!(
        read(&project, "tree/.git/config").as_deref(),
        Some("[core]\n")
    );
    assert!(project.path().join("tree/empty").is_dir());
}

#[test]
fn a_source_is_written_back_to_its_own_folder() {
    let project = project(&[
        ("a.txt", "one\n"),
        ("old/gone.txt", "gone\n"),
        ("old/stays/b.txt", "b\n"),
        ("moved.txt", "moved\n"),
    ]);
    let edits = r#"(flow/step :files :a {:op :replace :changeset draft :path "a.txt" :old "one" :new "two"})
        (flow/step :files :b {:op :delete-file :changeset draft :path "old/gone.txt"})
        (flow/step :files :c {:op :delete-file :changeset draft :path "old/stays/b.txt"})
        (flow/step :files :d {:op :move-file :changeset draft :from "moved.txt" :to "new/deep/moved.txt"})"#;
    assert_eq!(
        written(&project, edits, ":to \"tree\""),
        r#"{:path "tree" :files 2 :written 2 :removed 3}"#
    );
    assert_eq!(read(&project, "tree/a.txt").as_deref(), Some("two\n"));
    assert_eq!(
        read(&project, "tree/new/deep/moved.txt").as_deref(),
        Some("moved\n")
    );
    for gone in ["old", "moved.txt"] {
        assert!(!project.path().join("tree").join(gone).exists(), "{gone}");
    }
    let names: Vec<_> = fs::read_dir(project.path().join("tree"))
        .expect("a folder")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn the_project_is_written_back_to_itself() {
    let project = Project::new();
    project.write("notes.md", b"notes\n");
    project.write("mine.env", b"KEY=1\n");
    project.write(".gitignore", b"*.env\n");
    let found = project.eval(
        r#"(let [draft (flow/step :files :draft {:op :init-changeset :source {:type :dir :path "."}})]
             (flow/step :files :w {:op :write-file :changeset draft :path "notes.md" :content "more\n"})
             (:path (flow/step :files :out {:op :materialize :changeset draft :to "."})))"#,
    );
    assert_eq!(found, "\".\"");
    assert_eq!(read(&project, "notes.md").as_deref(), Some("more\n"));
    assert_eq!(read(&project, "mine.env").as_deref(), Some("KEY=1\n"));
    assert!(project.path().join(".flowstone").is_dir());
}

#[test]
fn conflicting_files_are_named_and_nothing_is_written() {
    let project = project(&[("a.txt", "one\n"), ("b.txt", "two\n"), ("c.txt", "three\n")]);
    project.write("out/a.txt", b"theirs\n");
    project.write("out/c.txt", b"theirs too\n");
    project.write("out/keep.txt", b"keep\n");
    let found = written(&project, "", ":to \"out\"");
    assert!(
        found.starts_with("E0787 nothing was written to `out`: 2 files are there with other content: `a.txt`, `c.txt`"),
        "{found}"
    );
    assert!(found.contains(":overwrite? true"), "{found}");
    assert_eq!(read(&project, "out/b.txt"), None);
    assert_eq!(
        written(&project, "", ":to \"out\" :overwrite? true"),
        r#"{:path "out" :files 3 :written 3 :removed 0}"#
    );
    assert_eq!(read(&project, "out/a.txt").as_deref(), Some("one\n"));
    assert_eq!(read(&project, "out/keep.txt").as_deref(), Some("keep\n"));
    // Now the record covers all files.
    let edit = r#"(flow/step :files :a {:op :replace :changeset draft :path "a.txt" :old "one" :new "1"})"#;
    assert_eq!(
        written(&project, edit, ":to \"out\""),
        r#"{:path "out" :files 3 :written 1 :removed 0}"#
    );
}

#[test]
fn changes_since_the_source_was_read_are_kept() {
    let project = project(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let found = with_draft(
        &project,
        r#"(do (flow/step :files :a {:op :write-file :changeset draft :path "a.txt" :content "mine\n"})
               (flow/step :files :b {:op :delete-file :changeset draft :path "b.txt"})
               (flow/step :wait :go {:key "go"})
               (flow/step :files :out {:op :materialize :changeset draft :to "tree"}))"#,
    );
    assert!(found.starts_with("waiting"), "{found}");
    project.write("tree/a.txt", b"theirs\n");
    project.write("tree/b.txt", b"theirs\n");
    let found = project.answer("go", &flowstone_lang::value::Value::Nil);
    assert!(
        found.starts_with("E0787 ") && found.contains("`a.txt`, `b.txt`"),
        "{found}"
    );
    assert_eq!(read(&project, "tree/b.txt").as_deref(), Some("theirs\n"));
}

/// A process that was killed between two renames leaves some files new, some old, and one temporary file.
#[test]
fn an_interrupted_merge_is_completed() {
    let project = project(&[("a.txt", "1\n"), ("b.txt", "1\n"), ("gone.txt", "1\n")]);
    let found = with_draft(
        &project,
        r#"(do (flow/step :files :a {:op :write-file :changeset draft :path "a.txt" :content "2\n"})
               (flow/step :files :b {:op :write-file :changeset draft :path "b.txt" :content "2\n"})
               (flow/step :files :c {:op :delete-file :changeset draft :path "gone.txt"})
               (flow/step :wait :go {:key "go"})
               (flow/step :files :out {:op :materialize :changeset draft :to "tree"}))"#,
    );
    assert!(found.starts_with("waiting"), "{found}");
    project.write("tree/a.txt", b"2\n");
    fs::remove_file(project.path().join("tree/gone.txt")).expect("a file");
    let found = project.answer("go", &flowstone_lang::value::Value::Nil);
    assert_eq!(
        found,
        r#"{:path "tree" :files 2 :skipped [] :written 1 :removed 0}"#
    );
    assert_eq!(read(&project, "tree/b.txt").as_deref(), Some("2\n"));
}

#[cfg(unix)]
#[test]
fn links_and_folders_in_the_way_are_refused() {
    use std::os::unix::fs::symlink;
    let project = project(&[("sub/x.txt", "x\n"), ("file", "f\n")]);
    let outside = tempfile::tempdir().expect("a folder");
    project.write("linked/keep", b"");
    symlink(outside.path(), project.path().join("linked/sub")).expect("a link");
    let found = written(&project, "", ":to \"linked\" :overwrite? true");
    assert!(
        found.starts_with("E0787 nothing was written to `linked`: `sub` there is a link"),
        "{found}"
    );
    assert!(
        fs::read_dir(outside.path())
            .expect("a folder")
            .next()
            .is_none()
    );
    project.write("folder/file/theirs.txt", b"theirs\n");
    let found = written(&project, "", ":to \"folder\" :overwrite? true");
    assert!(
        found.starts_with("E0787 nothing was written to `folder`: `file` there is a folder"),
        "{found}"
    );
    assert_eq!(read(&project, "folder/sub/x.txt"), None);
    // Files that the changeset itself removes are not a conflict.
    let edits = r#"(flow/step :files :a {:op :delete-file :changeset draft :path "file"})
        (flow/step :files :b {:op :delete-file :changeset draft :path "sub/x.txt"})
        (flow/step :files :c {:op :write-file :changeset draft :path "file/inner.txt" :content "i\n"})
        (flow/step :files :d {:op :write-file :changeset draft :path "sub" :content "s\n"})"#;
    assert_eq!(
        written(&project, edits, ":to \"tree\""),
        r#"{:path "tree" :files 2 :written 2 :removed 2}"#
    );
    assert_eq!(
        read(&project, "tree/file/inner.txt").as_deref(),
        Some("i\n")
    );
    assert_eq!(read(&project, "tree/sub").as_deref(), Some("s\n"));
}

#[cfg(unix)]
#[test]
fn permissions_of_a_replaced_file_stay() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = project(&[("key", "one\n")]);
    let place = project.path().join("tree/key");
    fs::set_permissions(&place, fs::Permissions::from_mode(0o600)).expect("permissions");
    let edit =
        r#"(flow/step :files :a {:op :write-file :changeset draft :path "key" :content "two\n"})"#;
    written(&project, edit, ":to \"tree\"");
    let mode = fs::metadata(&place).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    project.eval(r#"(flow/step :files :o {:op :write-out :path "tree/key" :content "three" :overwrite? true})"#);
    let mode = fs::metadata(&place).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(read(&project, "tree/key").as_deref(), Some("three"));
}

#[test]
fn unrelated_files_are_not_captured() {
    let project = project(&[("a.txt", "one\n")]);
    project.write("out/theirs.txt", b"theirs\n");
    project.write("out/worked-on.txt", b"before\n");
    let found = with_draft(
        &project,
        r#"(let [out (flow/step :files :out {:op :materialize :changeset draft :to "out"})]
             (flow/step :wait :go {:key "go"})
             (:files (flow/step :files :taken {:op :capture :changeset draft :path "out"})))"#,
    );
    assert!(found.starts_with("waiting"), "{found}");
    project.write("out/a.txt", b"ONE\n");
    project.write("out/worked-on.txt", b"after\n");
    assert_eq!(
        project.answer("go", &flowstone_lang::value::Value::Nil),
        r#"[{:path "a.txt" :status :modified} {:path "worked-on.txt" :status :added}]"#
    );
}

#[test]
fn one_file_is_written_out() {
    let project = Project::new();
    project.write("reports/old.md", b"old\n");
    let out = |config: &str| {
        project.eval(&format!(
            "(flow/step :files :o {{:op :write-out {config}}})"
        ))
    };
    assert_eq!(
        out(r##":path "reports/2026/new.md" :content "# New\n""##),
        r#"{:path "reports/2026/new.md" :size 6}"#
    );
    assert_eq!(
        read(&project, "reports/2026/new.md").as_deref(),
        Some("# New\n")
    );
    // Writing the same again changes nothing, as after a crash.
    assert_eq!(
        out(r##":path "reports/2026/new.md" :content "# New\n""##),
        r#"{:path "reports/2026/new.md" :size 6}"#
    );
    let refused = out(r#":path "reports/old.md" :content "new""#);
    assert!(
        refused.starts_with("E0787 `reports/old.md` already exists with other content")
            && refused.contains(":overwrite? true"),
        "{refused}"
    );
    assert_eq!(
        out(r#":path "reports/old.md" :content "new" :overwrite? true"#),
        r#"{:path "reports/old.md" :size 3}"#
    );
    assert_eq!(read(&project, "reports/old.md").as_deref(), Some("new"));
    assert_eq!(
        project.eval(
            r#"(let [b (flow/step :function :b {:code '(fn [_] "stored") :persist {:type :blob}})]
                 (flow/step :files :o {:op :write-out :path "blob.txt" :content b}))"#
        ),
        r#"{:path "blob.txt" :size 6}"#
    );
    for (path, code) in [
        ("../x", "E0960"),
        ("/tmp/x", "E0960"),
        (".git/config", "E0960"),
        (".flowstone/x", "E0960"),
        ("reports", "E0787"),
        ("reports/old.md/x", "E0787"),
        ("", "E0770"),
    ] {
        let found = out(&format!(":path \"{path}\" :content \"x\" :overwrite? true"));
        assert!(found.starts_with(code), "{path}: {found}");
    }
    let names = fs::read_dir(project.path().join("reports"))
        .expect("a folder")
        .count();
    assert_eq!(names, 2);
}

#[cfg(unix)]
#[test]
fn nothing_is_written_out_through_a_link() {
    use std::os::unix::fs::symlink;
    let project = Project::new();
    let outside = tempfile::tempdir().expect("a folder");
    symlink(outside.path(), project.path().join("folder")).expect("a link");
    fs::write(outside.path().join("theirs"), "theirs").expect("a file");
    symlink(outside.path().join("theirs"), project.path().join("file")).expect("a link");
    for path in ["folder/x", "file"] {
        let found = project.eval(&format!(
            "(flow/step :files :o {{:op :write-out :path \"{path}\" :content \"x\" :overwrite? true}})"
        ));
        assert!(found.starts_with("E0787 "), "{path}: {found}");
    }
    assert_eq!(
        fs::read_to_string(outside.path().join("theirs")).expect("a file"),
        "theirs"
    );
}
