//! `:diff`, `:materialize` and `:capture`: exchanging changes with other tools.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::changeset::{project, with_draft};
use crate::project::Project;

/// Runs steps and writes the text of the result to a file.
fn diff_of(project: &Project, body: &str) -> String {
    let shown = with_draft(
        project,
        &format!("(do {body} (:diff (flow/step :files :diff {{:op :diff :changeset draft}})))"),
    );
    let text = flowstone_engine::codec::decode(&shown).unwrap_or_else(|_| panic!("{shown}"));
    text.as_str().expect("a diff").to_owned()
}

fn tool(folder: &Path, program: &str, args: &[&str]) -> String {
    let out = Command::new(program)
        .current_dir(folder)
        .args(args)
        .env(
            "GIT_CEILING_DIRECTORIES",
            folder.parent().expect("a folder"),
        )
        .output()
        .expect("the program is there");
    assert!(
        out.status.success(),
        "{program} {args:?}: {}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Returns the contents of a folder: paths, contents, and which files are executable.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>, bool)> {
    fn walk(root: &Path, folder: &Path, found: &mut Vec<(String, Vec<u8>, bool)>) {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            let name = path
                .strip_prefix(root)
                .expect("inside")
                .display()
                .to_string();
            let kind = entry.file_type().expect("a kind");
            if kind.is_dir() {
                walk(root, &path, found);
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).expect("a link");
                found.push((name, target.display().to_string().into_bytes(), false));
            } else {
                let bytes = fs::read(&path).expect("a file");
                found.push((name, bytes, is_executable(&path)));
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, folder, &mut found);
    found.sort();
    found
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).expect("a file").permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    false
}

const EDITS: &str = r#"
    (flow/step :files :e1 {:op :replace :changeset draft :path "a.txt" :old "two\n" :new "TWO\n2b\n"})
    (flow/step :files :e2 {:op :write-file :changeset draft :path "dir/new file.txt" :content "no end"})
    (flow/step :files :e3 {:op :delete-file :changeset draft :path "gone.txt"})
    (flow/step :files :e4 {:op :move-file :changeset draft :from "old.txt" :to "moved/new.txt"})
    (flow/step :files :e5 {:op :replace :changeset draft :path "moved/new.txt" :old "c\n" :new "C\n"})
    (flow/step :files :e6 {:op :write-file :changeset draft :path "empty" :content ""})
    (flow/step :files :e7 {:op :replace :changeset draft :path "noend.txt" :old "last" :new "last\n"})
    (flow/step :files :e8 {:op :write-file :changeset draft :path "q\"uote.txt" :content "q\n"})"#;

fn edited() -> Project {
    project(&[
        ("a.txt", "one\ntwo\nthree\n"),
        ("gone.txt", "gone\n"),
        ("old.txt", "a\nb\nc\nd\ne\nf\ng\n"),
        ("noend.txt", "first\nlast"),
        ("same.txt", "same\n"),
    ])
}

#[test]
fn a_diff_applies_with_git_and_with_patch() {
    let project = edited();
    let diff = diff_of(&project, EDITS);
    let out = with_draft(
        &project,
        &format!(
            "(do {EDITS} (:path (flow/step :files :out {{:op :materialize :changeset draft :to \"out\"}})))"
        ),
    );
    assert_eq!(out, "\"out\"");
    let expected = contents(&project.path().join("out"));
    for tool_ in ["git", "patch"] {
        let copy = project.path().join(format!("with-{tool_}"));
        fs::create_dir(&copy).expect("a folder");
        for (path, bytes, _) in contents(&project.path().join("tree")) {
            fs::write(copy.join(path), bytes).expect("a file");
        }
        fs::write(project.path().join("it.diff"), &diff).expect("a file");
        match tool_ {
            "git" => tool(
                &copy,
                "git",
                &["apply", "--whitespace=nowarn", "../it.diff"],
            ),
            _ => tool(&copy, "patch", &["-p1", "-s", "-i", "../it.diff"]),
        };
        assert_eq!(contents(&copy), expected, "{tool_}: {diff}");
    }
}

#[test]
fn a_diff_states_the_status_of_each_file() {
    let project = edited();
    let shown = with_draft(
        &project,
        &format!("(do {EDITS} (:files (flow/step :files :diff {{:op :diff :changeset draft}})))"),
    );
    assert_eq!(
        shown,
        r#"[{:path "a.txt" :status :modified :added 2 :removed 1} {:path "dir/new file.txt" :status :added :added 1 :removed 0} {:path "empty" :status :added :added 0 :removed 0} {:path "gone.txt" :status :deleted :added 0 :removed 1} {:path "moved/new.txt" :status :renamed :added 1 :removed 1 :from "old.txt"} {:path "noend.txt" :status :modified :added 1 :removed 1} {:path "q\"uote.txt" :status :added :added 1 :removed 0}]"#
    );
    let shown = with_draft(
        &project,
        &format!(
            "(do {EDITS} (:diff (flow/step :files :diff {{:op :diff :changeset draft :paths [\"a.txt\" \"moved\"] :context 0}})))"
        ),
    );
    let text = flowstone_engine::codec::decode(&shown).expect("text");
    let text = text.as_str().expect("text");
    let plain: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("index "))
        .collect();
    assert_eq!(
        plain.join("\n"),
        "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -2 +2,2 @@\n-two\n+TWO\n+2b\n\
         diff --git a/old.txt b/moved/new.txt\nsimilarity index 85%\nrename from old.txt\nrename to moved/new.txt\n--- a/old.txt\n+++ b/moved/new.txt\n@@ -3 +3 @@\n-c\n+C"
    );
}

#[test]
fn a_diff_of_binary_files_applies_with_git() {
    let project = project(&[("a.txt", "one\n")]);
    let bytes: Vec<u8> = (0..2000_u32)
        .map(|it| (it * it % 251).to_le_bytes()[0])
        .collect();
    let tree = project.path().join("tree");
    fs::write(tree.join("change.bin"), &bytes).expect("a file");
    fs::write(tree.join("gone.bin"), [0, 1, 2]).expect("a file");
    let diff = diff_of(
        &project,
        r#"(flow/step :files :e1 {:op :write-file :changeset draft :path "change.bin" :content (byte-array [0 255 7])})
           (flow/step :files :e2 {:op :write-file :changeset draft :path "new.bin" :content (byte-array (map (fn [n] (mod (* n n) 127)) (range 300)))})
           (flow/step :files :e3 {:op :delete-file :changeset draft :path "gone.bin"})"#,
    );
    fs::write(project.path().join("it.diff"), &diff).expect("a file");
    tool(&tree, "git", &["apply", "../it.diff"]);
    let found = contents(&tree);
    let paths: Vec<&str> = found.iter().map(|(path, ..)| path.as_str()).collect();
    assert_eq!(paths, ["a.txt", "change.bin", "new.bin"]);
    assert_eq!(found[1].1, [0, 255, 7]);
    assert_eq!(found[2].1[299], (299 * 299 % 127) as u8);
    // And the other way round.
    tool(&tree, "git", &["apply", "-R", "../it.diff"]);
    assert_eq!(fs::read(tree.join("change.bin")).expect("a file"), bytes);
    assert_eq!(fs::read(tree.join("gone.bin")).expect("a file"), [0, 1, 2]);
}

#[test]
fn a_diff_can_be_applied_by_apply_edit() {
    let project = edited();
    let shown = with_draft(
        &project,
        &format!(
            "(do {EDITS}
               (let [diff (:diff (flow/step :files :diff {{:op :diff :changeset draft}}))
                     other (flow/step :files :other {{:op :init-changeset :source (:source draft)}})
                     done (flow/step :files :apply {{:op :apply-edit :changeset other :patch diff}})
                     again (:diff (flow/step :files :again {{:op :diff :changeset other}}))]
                 [(count (:files done)) (= diff again)]))"
        ),
    );
    assert_eq!(shown, "[7 true]");
}

#[cfg(unix)]
#[test]
fn changes_in_a_materialized_folder_are_captured() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let project = project(&[
        ("a.txt", "one\n"),
        ("b.txt", "two\nthree\n"),
        ("run.sh", "#!/bin/sh\n"),
        ("dir/same.txt", "same\n"),
        (".gitignore", "*.log\n"),
    ]);
    let tree = project.path().join("tree");
    symlink("a.txt", tree.join("link")).expect("a link");
    symlink("/etc/passwd", tree.join("out")).expect("a link");
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
    };
    mode(&tree.join("run.sh"), 0o755);
    // Through the folder first.
    let shown = with_draft(
        &project,
        r#"(let [one (flow/step :files :one {:op :write-file :changeset draft :path "new/n.txt" :content "new\n"})
                 out (flow/step :files :out {:op :materialize :changeset draft})]
             (flow/step :wait :go {:key "go"})
             (flow/step :files :two {:op :write-file :changeset draft :path "other.txt" :content "by somebody else\n"})
             (let [taken (flow/step :files :taken {:op :capture :changeset draft :path (:path out)})
                   list (flow/step :files :list {:op :list :changeset draft})
                   again (flow/step :files :again {:op :capture :changeset draft :path (:path out)})]
               [(:files out) (:skipped out) (:files taken) (:skipped taken) (map :path (:entries list)) (count (:files again))]))"#,
    );
    assert!(shown.starts_with("waiting"), "{shown}");
    let runs = fs::read_dir(project.path().join(".flowstone/materialized")).expect("a folder");
    let run = runs.flatten().next().expect("of the run").path();
    let out = fs::read_dir(run)
        .expect("a folder")
        .flatten()
        .next()
        .expect("one")
        .path();
    assert!(is_executable(&out.join("run.sh")));
    assert_eq!(
        fs::read_link(out.join("link")).expect("a link"),
        Path::new("a.txt")
    );
    assert!(fs::symlink_metadata(out.join("out")).is_err());
    fs::write(out.join("a.txt"), "ONE\n").expect("a file");
    fs::rename(out.join("b.txt"), out.join("dir/c.txt")).expect("a file");
    fs::write(out.join("noise.log"), "noise").expect("a file");
    fs::write(out.join("made.txt"), "made\n").expect("a file");
    mode(&out.join("run.sh"), 0o644);
    symlink("/etc", out.join("etc")).expect("a link");
    fs::create_dir_all(out.join(".git")).expect("a folder");
    fs::write(out.join(".git/config"), "x").expect("a file");
    fs::write(out.join("git~1"), "x").expect("a file");
    let shown = project.answer("go", &flowstone_lang::value::Value::Nil);
    assert_eq!(
        shown,
        r#"[7 [{:path "out" :why "it is a link that points out of the tree"}] [{:path "a.txt" :status :modified} {:path "dir/c.txt" :status :renamed :from "b.txt"} {:path "made.txt" :status :added} {:path "run.sh" :status :modified}] [{:path "etc" :why "it is a link that points out of the tree"} {:path "git~1" :why "its name is not safe on disk"}] (".gitignore" "a.txt" "dir/c.txt" "dir/same.txt" "link" "made.txt" "new/n.txt" "other.txt" "out" "run.sh") 0]"#
    );
}

#[test]
fn materialize_keeps_other_files_of_the_folder() {
    let project = project(&[("a.txt", "one\n")]);
    fs::create_dir_all(project.path().join("full")).expect("a folder");
    fs::write(project.path().join("full/mine.txt"), "mine").expect("a file");
    fs::create_dir_all(project.path().join("empty")).expect("a folder");
    #[cfg(unix)]
    std::os::unix::fs::symlink("/tmp", project.path().join("link")).expect("a link");
    let to = |to: &str, more: &str| {
        with_draft(
            &project,
            &format!(
                "(select-keys (flow/step :files :out {{:op :materialize :changeset draft :to \"{to}\" {more}}}) [:path :files])"
            ),
        )
    };
    assert_eq!(to("empty", ""), r#"{:path "empty" :files 1}"#);
    assert_eq!(to("new/deep", ""), r#"{:path "new/deep" :files 1}"#);
    assert_eq!(to("full", ""), r#"{:path "full" :files 1}"#);
    assert_eq!(to("full", ":overwrite? true"), r#"{:path "full" :files 1}"#);
    assert_eq!(
        fs::read_to_string(project.path().join("full/mine.txt")).expect("a file"),
        "mine"
    );
    // The same, from another run.
    assert_eq!(to("empty", ""), r#"{:path "empty" :files 1}"#);
    assert!(
        to("full/a.txt", "")
            .starts_with("E0787 nothing was written to `full/a.txt`: a part of it is a file")
    );
    #[cfg(unix)]
    assert!(
        to("link/x", "")
            .starts_with("E0787 nothing was written to `link/x`: a part of it is a link")
    );
    for path in ["..", "../x", "/tmp/x", ".git", ".flowstone/x", "/", ""] {
        let shown = to(path, ":overwrite? true");
        let expected = if path.is_empty() { "E0770 " } else { "E0960 " };
        assert!(shown.starts_with(expected), "{path}: {shown}");
    }
    // No other file is left.
    let names: Vec<String> = fs::read_dir(project.path())
        .expect("a folder")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("new-") || name.contains("old-"))
        .collect();
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn files_changed_on_both_sides_are_not_captured() {
    let project = project(&[("a.txt", "one\n")]);
    let shown = with_draft(
        &project,
        r#"(let [out (flow/step :files :out {:op :materialize :changeset draft :to "out"})]
             (flow/step :wait :go {:key "go"})
             (flow/step :files :two {:op :write-file :changeset draft :path "a.txt" :content "theirs\n"})
             (flow/step :files :taken {:op :capture :changeset draft :path "out"}))"#,
    );
    assert!(shown.starts_with("waiting"), "{shown}");
    fs::write(project.path().join("out/a.txt"), "ours\n").expect("a file");
    let shown = project.answer("go", &flowstone_lang::value::Value::Nil);
    assert!(
        shown.starts_with("E0615 `a.txt` was changed in the changeset since the folder was made"),
        "{shown}"
    );
}

#[test]
fn only_folders_of_the_project_are_captured() {
    let project = project(&[("a.txt", "one\n")]);
    for (path, expected) in [
        ("/etc", "E0960 "),
        ("..", "E0960 "),
        ("nowhere", "E0773 "),
        ("a\\u0000b", "E0725 "),
    ] {
        let shown = with_draft(
            &project,
            &format!("(flow/step :files :it {{:op :capture :changeset draft :path \"{path}\"}})"),
        );
        assert!(shown.starts_with(expected), "{path}: {shown}");
    }
}

#[test]
fn a_folder_is_captured_again_and_again() {
    let project = project(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let capture = |id: &str| {
        format!("(flow/step :files :{id} {{:op :capture :changeset draft :path \"out\"}})")
    };
    let wait = |key: &str| format!("(flow/step :wait :{key} {{:key \"{key}\"}})");
    let shown = with_draft(
        &project,
        &format!(
            r#"(let [out (flow/step :files :out {{:op :materialize :changeset draft :to "out"}})
                     _ {} one {} _ {} two {}]
                 [(:files one) (:files two) (:files (flow/step :files :d {{:op :diff :changeset draft}}))])"#,
            wait("w1"),
            capture("c1"),
            wait("w2"),
            capture("c2")
        ),
    );
    assert!(shown.starts_with("waiting"), "{shown}");
    let out = project.path().join("out");
    fs::write(out.join("a.txt"), "ONE\n").expect("a file");
    fs::write(out.join("made.txt"), "made\n").expect("a file");
    let nil = flowstone_lang::value::Value::Nil;
    project.answer("w1", &nil);
    // Both changes are reverted, and another file is changed.
    fs::write(out.join("a.txt"), "one\n").expect("a file");
    fs::remove_file(out.join("made.txt")).expect("a file");
    fs::write(out.join("b.txt"), "TWO\n").expect("a file");
    assert_eq!(
        project.answer("w2", &nil),
        r#"[[{:path "a.txt" :status :modified} {:path "made.txt" :status :added}] [{:path "a.txt" :status :modified} {:path "b.txt" :status :modified} {:path "made.txt" :status :deleted}] [{:path "b.txt" :status :modified :added 1 :removed 1}]]"#
    );
}

#[test]
fn writing_to_a_folder_of_the_project_is_an_external_effect() {
    use flowstone_flow::step::Effect;
    let steps = flowstone_project::all_steps();
    let files = steps.iter().find(|step| step.spec().kind == "files");
    let files = files.expect("it is there");
    for (config, effect) in [
        ("{:op :materialize :source \"x\"}", Effect::Read),
        (
            "{:op :materialize :source \"x\" :to \"out\"}",
            Effect::External,
        ),
        (
            "{:op \"materialize\" :source \"x\" :to \"out\"}",
            Effect::External,
        ),
        ("{:op :list :source \"x\"}", Effect::Read),
        ("{:op :publish :changeset \"x\"}", Effect::External),
        ("{:op :write-file :changeset \"x\"}", Effect::OwnStore),
    ] {
        let value = flowstone_engine::codec::decode(config).expect("EDN");
        assert_eq!(files.effect(&value), effect, "{config}");
        // After a crash, the step finds its own changes.
        assert!(files.repeats_safely(&value), "{config}");
    }
}
