//! The rows of `tests/coverage/files.tsv`.

use std::fs;
use std::path::Path;
use std::process::Command;

use flowstone_flow::step::Step as _;
use flowstone_steps::files::Files;

use crate::changeset::{project, with_draft};
use crate::project::Project;

/// Creates a project whose folder `tree` has a few files.
fn files() -> Project {
    project(&[
        ("a.txt", "one\ntwo\nTwo\nthree\n"),
        ("dir/b.rs", "fn two() {}\n"),
        ("dir/c.bin", "\0"),
    ])
}

/// Runs a body with a changeset `draft`; `SRC` stands for the folder.
fn eval_in(project: &Project, body: &str) -> String {
    with_draft(project, &body.replace("SRC", "{:type :dir :path \"tree\"}"))
}

/// Compares the results of bodies, each with its own changeset.
#[track_caller]
pub(super) fn check(cases: &[(&str, &str)]) {
    let project = files();
    for (body, expected) in cases {
        let found = eval_in(&project, body);
        match expected.strip_suffix("...") {
            Some(start) => assert!(found.starts_with(start), "{body}: {found}"),
            None => assert_eq!(found, *expected, "{body}"),
        }
    }
}

/// Returns the paths that an operation lists.
pub(super) fn listed(config: &str) -> String {
    format!("(map :path (:entries (flow/step :files :it {config})))")
}

/// Returns the result of reading one file.
pub(super) fn content(config: &str) -> String {
    format!("(:content (first (:files (flow/step :files :it {config}))))")
}

/// Returns the places of matches.
fn found(config: &str) -> String {
    format!("(map (juxt :path :line) (:matches (flow/step :files :it {config})))")
}

/// Returns the content of the changeset's `a.txt` after a step.
pub(super) fn after(config: &str) -> String {
    let read = content(r#"{:op :read :changeset draft :path "a.txt"}"#);
    format!("(do (flow/step :files :edit (assoc {config} :changeset draft)) {read})")
}

#[test]
fn op() {
    check(&[
        (
            "(flow/step :files :it {:op :lits :source SRC})",
            "E0727 `:files` has no operation `:lits` | did you mean `:list`?...",
        ),
        (
            "(flow/step :files :it {:source SRC})",
            "E0711 the `:files` step needs `:op`...",
        ),
        (
            &listed("{:op \"list\" :source SRC :prefix \"a\"}"),
            r#"("a.txt")"#,
        ),
    ]);
}

#[test]
fn op_resolve_source() {
    check(&[
        (
            "(let [it (flow/step :files :it {:op :resolve-source :source SRC})] [(:type it) (:files it) (:bytes it) (:content-type it)])",
            r#"[:resource-ref 3 31 "application/vnd.flowstone.source-tree+json"]"#,
        ),
        (
            "(flow/step :files :it {:op :resolve-source :source (:source draft)})",
            "E0782 this source is resolved already...",
        ),
    ]);
}

#[test]
fn op_init_changeset() {
    check(&[
        (
            "[(:type draft) (subs (:uri draft) 0 44) (:content-type draft) (:files draft)]",
            r#"[:resource-ref "res://v1/ws/local/bundle/changeset/files/cs-" "application/vnd.flowstone.changeset+json" 3]"#,
        ),
        (
            "(flow/step :files :it {:op :init-changeset :source draft})",
            "E0782 `cs-...",
        ),
        (
            "(let [again (flow/step :files :it {:op :init-changeset :source (:source draft)})] (= (:uri again) (:uri draft)))",
            "false",
        ),
    ]);
}

#[test]
fn op_list() {
    check(&[
        (
            "(:entries (flow/step :files :it {:op :list :source SRC}))",
            r#"[{:path "a.txt" :size 18 :kind :file :lines 4} {:path "dir/b.rs" :size 12 :kind :file :lines 1} {:path "dir/c.bin" :size 1 :kind :binary}]"#,
        ),
        (
            &listed("{:op :list :changeset draft}"),
            r#"("a.txt" "dir/b.rs" "dir/c.bin")"#,
        ),
    ]);
}

#[test]
fn op_read() {
    check(&[
        (
            &content(r#"{:op :read :source SRC :path "dir/b.rs"}"#),
            r#""fn two() {}\n""#,
        ),
        (
            &content(r#"{:op :read :changeset draft :path "dir/b.rs"}"#),
            r#""fn two() {}\n""#,
        ),
        (
            &content(r#"{:op :read :source SRC :path "dir/x.rs"}"#),
            "E0771 ...",
        ),
    ]);
}

#[test]
fn op_search() {
    check(&[
        (
            &found(r#"{:op :search :source SRC :query "two"}"#),
            r#"(["a.txt" 2] ["a.txt" 3] ["dir/b.rs" 1])"#,
        ),
        (
            &found(r#"{:op :search :changeset draft :query "three"}"#),
            r#"(["a.txt" 4])"#,
        ),
        (
            &found("{:op :search :source SRC}"),
            "E0727 `:op :search` needs `:query`...",
        ),
    ]);
}

#[test]
fn op_write_file() {
    check(&[(
        r#"(dissoc (flow/step :files :it {:op :write-file :changeset draft :path "n/x.txt" :content "é\n"}) :changeset)"#,
        r#"{:path "n/x.txt" :size 3 :created? true}"#,
    )]);
}

#[test]
fn op_apply_edit() {
    check(&[(
        r#"(:files (flow/step :files :it {:op :apply-edit :changeset draft :patch "--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-one\n+1\n"}))"#,
        r#"[{:path "a.txt" :status :modified :added 1 :removed 1}]"#,
    )]);
}

#[test]
fn op_replace() {
    check(&[(
        r#"(dissoc (flow/step :files :it {:op :replace :changeset draft :path "a.txt" :old "two" :new "2"}) :changeset)"#,
        r#"{:path "a.txt" :size 16 :replaced 1}"#,
    )]);
}

#[test]
fn op_replace_lines() {
    check(&[(
        r#"(dissoc (flow/step :files :it {:op :replace-lines :changeset draft :path "a.txt" :start-line 1 :end-line 4 :content "x"}) :changeset)"#,
        r#"{:path "a.txt" :size 1 :lines 1}"#,
    )]);
}

#[test]
fn op_delete_file() {
    check(&[(
        r#"(dissoc (flow/step :files :it {:op :delete-file :changeset draft :path "a.txt"}) :changeset)"#,
        r#"{:path "a.txt" :deleted? true}"#,
    )]);
}

#[test]
fn op_move_file() {
    check(&[(
        r#"(dissoc (flow/step :files :it {:op :move-file :changeset draft :from "a.txt" :to "b.txt"}) :changeset)"#,
        r#"{:from "a.txt" :to "b.txt"}"#,
    )]);
}

#[test]
fn op_diff() {
    check(&[
        (
            "(flow/step :files :it {:op :diff :changeset draft})",
            r#"{:diff "" :files []}"#,
        ),
        (
            r#"(do (flow/step :files :edit {:op :delete-file :changeset draft :path "dir/b.rs"})
                   (:diff (flow/step :files :it {:op :diff :changeset draft})))"#,
            r#""diff --git a/dir/b.rs b/dir/b.rs\ndeleted file mode 100644\nindex 3f7527ca66a81c1cf3e2632abe86bbc603b9c732..."#,
        ),
    ]);
}

#[test]
fn op_materialize() {
    let project = files();
    let shown = eval_in(
        &project,
        "(let [it (flow/step :files :it {:op :materialize :source SRC})] [(:path it) (:files it) (:skipped it)])",
    );
    let value = flowstone_engine::codec::decode(&shown).unwrap_or_else(|_| panic!("{shown}"));
    let items = value.as_vector().expect("a vector");
    let path = items.get(0).and_then(|it| it.as_str().map(str::to_owned));
    let out = project.path().join(path.expect("a path"));
    assert_eq!(
        fs::read_to_string(out.join("dir/b.rs")).expect("a file"),
        "fn two() {}\n"
    );
    assert!(shown.ends_with(" 3 []]"), "{shown}");
}

#[test]
fn op_capture() {
    let project = files();
    fs::write(project.path().join("tree/new.txt"), "new\n").expect("a file");
    // The changeset contains the new file already, so there is nothing to capture.
    let shown = eval_in(
        &project,
        "(:files (flow/step :files :it {:op :capture :changeset draft :path \"tree\"}))",
    );
    assert_eq!(shown, "[]");
    fs::create_dir_all(project.path().join("other")).expect("a folder");
    fs::write(project.path().join("other/a.txt"), "one\n").expect("a file");
    let shown = eval_in(
        &project,
        "(:files (flow/step :files :it {:op :capture :changeset draft :path \"other\"}))",
    );
    assert_eq!(
        shown,
        r#"[{:path "a.txt" :status :modified} {:path "dir/b.rs" :status :deleted} {:path "dir/c.bin" :status :deleted} {:path "new.txt" :status :deleted}]"#
    );
}

#[test]
fn source() {
    check(&[
        (
            &listed("{:op :list}"),
            "E0781 the step needs `:source` or `:changeset`...",
        ),
        (&listed("{:op :list :source 7}"), "E0712 ..."),
        (
            &listed("{:op :list :source {:type :dir :path \"tree\" :limit 7}}"),
            "E0726 `:source` has no key `:limit`...",
        ),
    ]);
}

#[test]
fn source_as_a_ref() {
    check(&[
        (
            &format!(
                "(let [tree (flow/step :files :tree {{:op :resolve-source :source SRC}})] (= {} {}))",
                listed("{:op :list :source tree}"),
                listed("{:op :list :source (:uri tree)}")
            ),
            "true",
        ),
        (
            &listed("{:op :list :source draft :prefix \"a\"}"),
            r#"("a.txt")"#,
        ),
        (
            &listed("{:op :list :source \"res://v1/ws/local/result/kv/x\"}"),
            "E0782 ...",
        ),
    ]);
}

#[test]
fn source_type() {
    check(&[
        (
            &listed("{:op :list :source {:type :svn :path \".\"}}"),
            "E0782 `:source` has no type `:svn`...",
        ),
        (
            &listed("{:op :list :source {:path \".\"}}"),
            "E0782 `:source` needs `:type`...",
        ),
    ]);
}

#[test]
fn source_dir() {
    check(&[
        (
            &listed("{:op :list :source {:type :dir :path \"tree/dir\"}}"),
            r#"("b.rs" "c.bin")"#,
        ),
        (
            &listed("{:op :list :source {:type :dir :path \"nowhere\"}}"),
            "E0773 ...",
        ),
        (
            &listed("{:op :list :source {:type :dir}}"),
            "E0782 a `:dir` source needs a `:path`...",
        ),
    ]);
}

fn git(folder: &Path, args: &[&str]) {
    let given = [
        "-c",
        "user.name=T",
        "-c",
        "user.email=t@example.com",
        "-c",
        "init.defaultBranch=main",
    ];
    let out = Command::new("git")
        .current_dir(folder)
        .args(given)
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git is there");
    assert!(
        out.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
}

/// Turns the project's folder `tree` into a repository, with a tag before its last commit.
fn repository() -> Project {
    let project = files();
    let tree = project.path().join("tree");
    git(&tree, &["init", "-q"]);
    git(&tree, &["add", "-A"]);
    git(&tree, &["commit", "-qm", "one"]);
    git(&tree, &["tag", "v1"]);
    fs::write(tree.join("a.txt"), "later\n").expect("a file");
    git(&tree, &["commit", "-qam", "two"]);
    project
}

#[test]
fn source_repo() {
    let project = repository();
    let read = content(r#"{:op :read :source {:type :git :repo "tree"} :path "a.txt"}"#);
    assert_eq!(eval_in(&project, &read), r#""later\n""#);
    let read = content(r#"{:op :read :source {:type :git} :path "a.txt"}"#);
    assert!(eval_in(&project, &read).starts_with("E0782 a `:git` source needs a `:repo`"));
}

#[test]
fn source_ref() {
    let project = repository();
    let read = |reference: &str| {
        content(&format!(
            "{{:op :read :source {{:type :git :repo \"tree\" :ref \"{reference}\"}} :path \"a.txt\"}}"
        ))
    };
    assert_eq!(
        eval_in(&project, &read("v1")),
        r#""one\ntwo\nTwo\nthree\n""#
    );
    assert_eq!(eval_in(&project, &read("HEAD")), r#""later\n""#);
    assert!(eval_in(&project, &read("nope")).starts_with("E0777 "));
}

#[test]
fn source_connection() {
    // A secret is sent only to https servers, and the error names a missing connection.
    check(&[
        (
            &listed("{:op :list :source {:type :git :repo \"tree\" :connection :forge}}"),
            "E0782 `:connection` works for https repositories only...",
        ),
        (
            &listed(
                "{:op :list :source {:type :git :repo \"https://example.invalid/x\" :connection :forge}}",
            ),
            "E07...",
        ),
    ]);
}

#[test]
fn changeset() {
    check(&[
        (
            &listed("{:op :list :changeset (:uri draft) :prefix \"a\"}"),
            r#"("a.txt")"#,
        ),
        (
            &listed("{:op :list :changeset (:source draft)}"),
            "E0781 ...",
        ),
        (
            &listed("{:op :list :changeset draft :source SRC}"),
            "E0781 the step takes `:source` or `:changeset`, not both...",
        ),
    ]);
}

#[test]
fn for_agents() {
    let operations = Files::default().spec().operations.expect("operations");
    let wrapped = [
        "capture",
        "history",
        "materialize",
        "open-change-request",
        "publish",
        "resolve-source",
        "write-out",
    ];
    for operation in operations.all {
        assert_eq!(
            operation.for_agents,
            !wrapped.contains(&operation.name),
            "{}",
            operation.name
        );
    }
}

#[test]
fn list_prefix() {
    check(&[
        (
            &listed("{:op :list :source SRC :prefix \"dir/\"}"),
            r#"("dir/b.rs" "dir/c.bin")"#,
        ),
        (
            &listed("{:op :list :source SRC :prefix \"../\"}"),
            "E0770 ...",
        ),
    ]);
}

#[test]
fn list_glob() {
    check(&[
        (
            &listed("{:op :list :source SRC :glob \"*.rs\"}"),
            r#"("dir/b.rs")"#,
        ),
        (
            &listed("{:op :list :source SRC :glob [\"*.txt\" \"dir/*.bin\"]}"),
            r#"("a.txt" "dir/c.bin")"#,
        ),
        (&listed("{:op :list :source SRC :glob \"[\"}"), "E0778 ..."),
    ]);
}

#[test]
fn list_limit() {
    check(&[
        (&listed("{:op :list :source SRC :limit 1}"), r#"("a.txt")"#),
        (
            &listed("{:op :list :source SRC :limit 0}"),
            "E0725 `:limit` must be from 1 to 100000, and is 0...",
        ),
    ]);
}

#[test]
fn list_cursor() {
    check(&[(
        &format!(
            "(let [first-page (flow/step :files :page {{:op :list :source SRC :limit 1}})] {})",
            listed("{:op :list :source SRC :cursor (:next-cursor first-page)}")
        ),
        r#"("dir/b.rs" "dir/c.bin")"#,
    )]);
}

#[test]
fn read_paths() {
    check(&[
        (
            "(map :path (:files (flow/step :files :it {:op :read :source SRC :paths [\"dir/b.rs\" \"a.txt\"]})))",
            r#"("dir/b.rs" "a.txt")"#,
        ),
        (
            "(flow/step :files :it {:op :read :source SRC :paths (vec (repeat 51 \"a.txt\"))})",
            "E0725 `:paths` holds 51 paths, at most 50...",
        ),
    ]);
}

#[test]
fn read_path() {
    check(&[
        (
            &content("{:op :read :source SRC :path \"./a.txt\" :max-chars 3}"),
            r#""one""#,
        ),
        (
            &content("{:op :read :source SRC :path \"a.txt\" :paths [\"a.txt\"]}"),
            "E0727 `:read` takes `:path` or `:paths`, not both...",
        ),
    ]);
}

#[test]
fn read_start_line() {
    check(&[
        (
            &content("{:op :read :source SRC :path \"a.txt\" :start-line 3}"),
            r#""Two\nthree\n""#,
        ),
        (
            &content("{:op :read :source SRC :path \"a.txt\" :start-line 0}"),
            "E0725 ...",
        ),
    ]);
}

#[test]
fn read_end_line() {
    check(&[
        (
            &content("{:op :read :source SRC :path \"a.txt\" :start-line 2 :end-line 2}"),
            r#""two\n""#,
        ),
        (
            &content("{:op :read :source SRC :path \"a.txt\" :end-line \"2\"}"),
            "E0712 ...",
        ),
    ]);
}

#[test]
fn read_max_chars() {
    check(&[(
        "((juxt :content :truncated?) (first (:files (flow/step :files :it {:op :read :source SRC :path \"a.txt\" :max-chars 2}))))",
        r#"["on" true]"#,
    )]);
}

#[test]
fn search_query() {
    check(&[
        (
            &found("{:op :search :source SRC :query \"fn t\"}"),
            r#"(["dir/b.rs" 1])"#,
        ),
        (
            &found("{:op :search :source SRC :query \"\"}"),
            "E0725 `:search` needs a `:query` that is not empty...",
        ),
    ]);
}

#[test]
fn search_regex() {
    check(&[
        (
            &found("{:op :search :source SRC :query \"^t.o$\" :regex? true}"),
            r#"(["a.txt" 2] ["a.txt" 3])"#,
        ),
        (&found("{:op :search :source SRC :query \"^t.o$\"}"), "()"),
        (
            &found("{:op :search :source SRC :query \"(\" :regex? true}"),
            "E0778 ...",
        ),
    ]);
}

#[test]
fn search_case_sensitive() {
    check(&[(
        &found("{:op :search :source SRC :query \"Two\" :case-sensitive? true}"),
        r#"(["a.txt" 3])"#,
    )]);
}

#[test]
fn search_glob() {
    check(&[(
        &found("{:op :search :source SRC :query \"two\" :glob \"*.rs\"}"),
        r#"(["dir/b.rs" 1])"#,
    )]);
}

#[test]
fn search_context() {
    check(&[
        (
            "((juxt :before :after) (first (:matches (flow/step :files :it {:op :search :source SRC :query \"two\" :context 1}))))",
            r#"[["one"] ["Two"]]"#,
        ),
        (
            &found("{:op :search :source SRC :query \"two\" :context 21}"),
            "E0725 `:context` must be from 0 to 20, and is 21...",
        ),
    ]);
}

#[test]
fn search_limit() {
    check(&[(
        "(let [it (flow/step :files :it {:op :search :source SRC :query \"two\" :limit 1})] [(count (:matches it)) (:truncated? it)])",
        "[1 true]",
    )]);
}

#[test]
fn paths() {
    for path in [
        "..",
        "/x",
        "C:/x",
        "a\\\\b",
        "a\\u0000b",
        "x/.git/y",
        ".GIT",
    ] {
        check(&[
            (
                &content(&format!("{{:op :read :source SRC :path \"{path}\"}}")),
                "E0770 ...",
            ),
            (
                &after(&format!(
                    "{{:op :write-file :path \"{path}\" :content \"\"}}"
                )),
                "E0770 ...",
            ),
        ]);
    }
}

#[test]
fn binary_files() {
    check(&[
        (
            "((juxt :content :size :kind) (first (:files (flow/step :files :it {:op :read :source SRC :path \"dir/c.bin\"}))))",
            "[nil 1 :binary]",
        ),
        (&found("{:op :search :source SRC :query \"\\u0000\"}"), "()"),
    ]);
}

#[test]
fn deduplicated() {
    let project = files();
    let resolve = "(:uri (flow/step :files :it {:op :resolve-source :source SRC}))";
    let before = (eval_in(&project, resolve), stored(&project));
    let again = (eval_in(&project, resolve), stored(&project));
    assert_eq!(before, again);
}

/// Returns the total size of the stored contents, in bytes.
fn stored(project: &Project) -> u64 {
    fn size(folder: &Path) -> u64 {
        let inside = fs::read_dir(folder).expect("a folder").flatten();
        inside
            .map(|entry| match entry.path().is_dir() {
                true => size(&entry.path()),
                false => entry.metadata().map_or(0, |it| it.len()),
            })
            .sum()
    }
    size(&project.path().join(".flowstone/trees/objects"))
}
