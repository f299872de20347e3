//! Changesets of `:files`, in real flows over the real store.

use std::fs;

use crate::project::Project;

/// Creates a project with some files.
pub fn project(files: &[(&str, &str)]) -> Project {
    let project = Project::new();
    for (path, content) in files {
        let path = project.path().join("tree").join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    }
    project
}

/// Runs steps on a changeset over the folder `tree`, and returns the result of the body.
pub fn with_draft(project: &Project, body: &str) -> String {
    project.eval(&format!(
        "(let [files (fn [id op config] (flow/step :files id (assoc config :op op)))
               draft (flow/step :files :draft {{:op :init-changeset :source {{:type :dir :path \"tree\"}}}})]
           {body})"
    ))
}

#[test]
fn written_files_are_listed_read_and_searched() {
    let project = project(&[("a.txt", "one\n"), ("dir/b.txt", "two\n")]);
    let shown = with_draft(
        &project,
        r#"(let [one (flow/step :files :one {:op :write-file :changeset draft :path "dir/new.txt" :content "three\n"})
                 two (flow/step :files :two {:op :write-file :changeset (:changeset one) :path "a.txt" :content "ONE\n"})
                 list (flow/step :files :list {:op :list :changeset draft})
                 read (flow/step :files :read {:op :read :source (:uri draft) :paths ["a.txt" "dir/new.txt"]})
                 found (flow/step :files :search {:op :search :changeset (:uri draft) :query "e" :prefix "dir/"})
                 base (flow/step :files :base {:op :read :source (:source draft) :path "a.txt"})]
             [(dissoc one :changeset) (dissoc two :changeset) (= (:changeset one) (:uri draft))
              (map (juxt :path :size :kind :lines) (:entries list))
              (map :content (:files read))
              (map (juxt :path :line) (:matches found))
              (map :content (:files base))])"#,
    );
    assert_eq!(
        shown,
        r#"[{:path "dir/new.txt" :size 6 :created? true} {:path "a.txt" :size 4 :created? false} true (["a.txt" 4 :file 1] ["dir/b.txt" 4 :file 1] ["dir/new.txt" 6 :file 1]) ("ONE\n" "three\n") (["dir/new.txt" 1]) ("one\n")]"#
    );
    assert_eq!(
        fs::read_to_string(project.path().join("tree/a.txt")).expect("a file"),
        "one\n"
    );
}

const A: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";

/// Performs steps on a changeset in order, and returns their results without the changeset's name.
fn check(files: &[(&str, &str)], cases: &[(&str, &str)]) {
    let project = project(files);
    let mut wrong = Vec::new();
    for (config, expected) in cases {
        let found = with_draft(
            &project,
            &format!(
                "(let [it (flow/step :files :it (assoc {config} :changeset draft))
                       list (flow/step :files :list {{:op :list :changeset draft}})
                       paths (filterv (fn [path] (not= path \"a.txt\")) (map :path (:entries list)))
                       read (if (some (fn [entry] (= \"a.txt\" (:path entry))) (:entries list))
                              (:content (first (:files (flow/step :files :read {{:op :read :changeset draft :path \"a.txt\"}})))))]
                   [(dissoc it :changeset) read paths])"
            ),
        );
        if found != *expected {
            wrong.push(format!(
                "{config}\n  expected {expected}\n  found    {found}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn text_is_replaced_if_it_occurs_once() {
    check(
        &[("a.txt", "one\ntwo\none\n")],
        &[
            (
                r#"{:op :replace :path "a.txt" :old "two" :new "2"}"#,
                r#"[{:path "a.txt" :size 10 :replaced 1} "one\n2\none\n" []]"#,
            ),
            (
                r#"{:op :replace :path "a.txt" :old "one" :new "1" :all? true}"#,
                r#"[{:path "a.txt" :size 8 :replaced 2} "1\ntwo\n1\n" []]"#,
            ),
            (
                r#"{:op :replace :path "a.txt" :old "one" :new "1"}"#,
                "E0784 `:old` occurs 2 times in `a.txt`, in lines 1, 3 | include more of the surrounding lines in `:old`, or replace all with `:all? true`",
            ),
            (
                r#"{:op :replace :path "a.txt" :old "twoo" :new "2"}"#,
                "E0784 `:old` is not in `a.txt`; line 2 is similar to its first one: `two` | spaces and line ends count: look at the lines around 2 with `:op :read`",
            ),
            (
                r#"{:op :replace :path "a.txt" :old "" :new "2"}"#,
                "E0725 `:old` is empty | give the text to replace; `:op :replace-lines` inserts lines",
            ),
            (
                r#"{:op :replace :path "b.txt" :old "one" :new "2"}"#,
                "E0771 there is no `b.txt` in the source | did you mean `a.txt`?",
            ),
        ],
    );
}

#[test]
fn lines_are_replaced_inserted_and_removed() {
    check(
        &[("a.txt", "one\ntwo\nthree")],
        &[
            (
                r#"{:op :replace-lines :path "a.txt" :start-line 2 :end-line 2 :content "2\n2b"}"#,
                r#"[{:path "a.txt" :size 14 :lines 4} "one\n2\n2b\nthree" []]"#,
            ),
            (
                r#"{:op :replace-lines :path "a.txt" :start-line 1 :end-line 0 :content "zero\n"}"#,
                r#"[{:path "a.txt" :size 18 :lines 4} "zero\none\ntwo\nthree" []]"#,
            ),
            (
                r#"{:op :replace-lines :path "a.txt" :start-line 4 :end-line 3 :content "four"}"#,
                r#"[{:path "a.txt" :size 18 :lines 4} "one\ntwo\nthree\nfour" []]"#,
            ),
            (
                r#"{:op :replace-lines :path "a.txt" :start-line 1 :end-line 2 :content ""}"#,
                r#"[{:path "a.txt" :size 5 :lines 1} "three" []]"#,
            ),
            (
                r#"{:op :replace-lines :path "a.txt" :start-line 2 :end-line 9 :content ""}"#,
                "E0785 `a.txt` has 3 lines, but `:end-line` is 9 | lines are counted from 1; `:end-line` one below `:start-line` puts lines in before it",
            ),
            (
                r#"{:op :replace-lines :path "a.txt" :start-line 3 :end-line 1 :content ""}"#,
                "E0785 `a.txt` has 3 lines, but `:end-line` 1 is before `:start-line` 3 | lines are counted from 1; `:end-line` one below `:start-line` puts lines in before it",
            ),
        ],
    );
}

#[test]
fn files_are_deleted_and_moved() {
    check(
        &[("a.txt", "one\n"), ("dir/b.txt", "b\n")],
        &[
            (
                r#"{:op :delete-file :path "a.txt"}"#,
                r#"[{:path "a.txt" :deleted? true} nil ["dir/b.txt"]]"#,
            ),
            (
                r#"{:op :move-file :from "dir/b.txt" :to "dir/c/d.txt"}"#,
                r#"[{:from "dir/b.txt" :to "dir/c/d.txt"} "one\n" ["dir/c/d.txt"]]"#,
            ),
            (
                r#"{:op :move-file :from "dir/b.txt" :to "dir"}"#,
                r#"[{:from "dir/b.txt" :to "dir"} "one\n" ["dir"]]"#,
            ),
            (
                r#"{:op :move-file :from "dir/b.txt" :to "a.txt"}"#,
                "E0789 there is a `a.txt` already | delete it first, or choose another path",
            ),
            (
                r#"{:op :move-file :from "a.txt" :to "dir"}"#,
                "E0783 `dir` cannot be written: it is a folder | files are written in folders of the tree, never through links; `:op :list` shows what is there",
            ),
            (
                r#"{:op :move-file :from "dir/b.txt" :to "a.txt/b"}"#,
                "E0783 `a.txt/b` cannot be written: `a.txt` is a file, not a folder | files are written in folders of the tree, never through links; `:op :list` shows what is there",
            ),
            (
                r#"{:op :delete-file :path "dir"}"#,
                "E0772 `dir` is a folder, which cannot be read | give the path of a file; `:op :list` with `:prefix` lists a folder",
            ),
        ],
    );
}

/// Returns a patch as a string literal of the flow language.
fn patch(text: &str) -> String {
    format!("{{:op :apply-edit :patch {text:?}}}")
}

#[test]
fn patches_apply_to_several_files_or_to_none() {
    let whole = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n@@ -7,2 +7,3 @@\n seven\n eight\n+nine\n\
        diff --git a/new.txt b/new.txt\nnew file mode 100755\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n\
        diff --git a/old.txt b/old.txt\ndeleted file mode 100644\n--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n\
        diff --git a/from.txt b/to.txt\nsimilarity index 100%\nrename from from.txt\nrename to to.txt\n";
    let moved = "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n five\n-six\n+SIX\n";
    let wrong = "--- a/from.txt\n+++ b/from.txt\n@@ -1 +1 @@\n-from\n+FROM\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-2\n+TWO\n three\n";
    check(
        &[("a.txt", A), ("old.txt", "old\n"), ("from.txt", "from\n")],
        &[
            (
                &patch(whole),
                r#"[{:files [{:path "a.txt" :status :modified :added 2 :removed 1} {:path "new.txt" :status :added :added 2 :removed 0} {:path "old.txt" :status :deleted :added 0 :removed 1} {:path "to.txt" :status :renamed :added 0 :removed 0 :from "from.txt"}]} "one\nTWO\nthree\nfour\nfive\nsix\nseven\neight\nnine\n" ["new.txt" "to.txt"]]"#,
            ),
            // The hunk matches elsewhere than its header says.
            (
                &patch(moved),
                r#"[{:files [{:path "a.txt" :status :modified :added 1 :removed 1}]} "one\ntwo\nthree\nfour\nfive\nSIX\nseven\neight\n" ["from.txt" "old.txt"]]"#,
            ),
            (
                &patch(wrong),
                "E0786 hunk 1 of `a.txt` (@@ -1,3 +1,3 @@) does not apply: line 2 is `two` where it has `2` | no file was changed; read the file again and make a patch for its current content",
            ),
            (
                &patch("--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n"),
                "E0786 line 3 of the patch: the hunk `@@ -1,3 +1,3 @@` declares 3 old and 3 new lines, but has 2 and 2 | nothing was changed; a diff as `git diff` writes it is understood",
            ),
            (
                &patch("--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n three\n"),
                "E0786 line 7 of the patch: it is outside of any hunk: the numbers of lines in the `@@` above are too small | nothing was changed; a diff as `git diff` writes it is understood",
            ),
            (
                &patch("hello"),
                "E0786 line 1 of the patch: it contains no file: a diff has lines such as `--- a/x`, `+++ b/x` and `@@ -1,2 +1,3 @@` | nothing was changed; a diff as `git diff` writes it is understood",
            ),
            (
                &patch("--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n"),
                "E0789 there is a `a.txt` already | delete it first, or choose another path",
            ),
            (
                &patch("--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"),
                "E0786 the patch does not apply to `a.txt`: it deletes the file, but leaves 7 lines | no file was changed; read the file again and make a patch for its current content",
            ),
            (
                &patch(
                    "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n",
                ),
                "E0786 line 2 of the patch: a diff cannot create or change links | nothing was changed; a diff as `git diff` writes it is understood",
            ),
            (
                &patch("--- a/../x\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n"),
                "E0770 `../x` is not a path inside the source: `..` would leave the source | use a path as `:list` returns it, such as `src/main.rs`",
            ),
            (
                r#"{:op :apply-edit :edits [{:path "a.txt" :old "two" :new "2"} {:path "a.txt" :old "2\nthree" :new "3"} {:path "n.txt" :new "n"}]}"#,
                r#"[{:files [{:path "a.txt" :status :modified :added 2 :removed 3} {:path "n.txt" :status :added :added 1 :removed 0}]} "one\n3\nfour\nfive\nsix\nseven\neight\n" ["from.txt" "n.txt" "old.txt"]]"#,
            ),
            (
                r#"{:op :apply-edit :edits [{:path "from.txt" :old "from" :new "2"} {:path "a.txt" :old "zwei" :new "3"}]}"#,
                "E0784 `:old` is not in `a.txt` | spaces and line ends count: look at the file with `:op :read`",
            ),
            (
                r#"{:op :apply-edit}"#,
                "E0727 `:apply-edit` needs either `:patch` or `:edits` | `:patch` is a unified diff, `:edits` a vector of {:path :old :new}",
            ),
        ],
    );
}

#[test]
fn outside_and_reserved_paths_are_refused() {
    let project = project(&[("a.txt", "one\n"), ("dir/b.txt", "two\n")]);
    let long = "x".repeat(256);
    let deep = "d/".repeat(2100) + "x";
    for path in [
        "",
        ".",
        "..",
        "../x",
        "dir/../../x",
        "/etc/passwd",
        "//etc/passwd",
        "C:/x",
        "c:x",
        "dir\\\\..\\\\x",
        "a\\u0000b",
        ".git/config",
        "dir/.git",
        ".GIT/config",
        ".Git",
        ".git./config",
        ".git /config",
        ".git::$INDEX_ALLOCATION/config",
        "git~1/config",
        "GIT~2",
        ".g\\u200cit/config",
        ".flowstone/flowstone.db",
        ".flowstone./x",
        "dir/",
        &long,
        &deep,
    ] {
        for config in [
            format!("{{:op :write-file :path \"{path}\" :content \"x\"}}"),
            format!("{{:op :move-file :from \"a.txt\" :to \"{path}\"}}"),
            format!("{{:op :apply-edit :edits [{{:path \"{path}\" :new \"x\"}}]}}"),
            format!("{{:op :delete-file :path \"{path}\"}}"),
        ] {
            let shown = with_draft(
                &project,
                &format!("(flow/step :files :it (assoc {config} :changeset draft))"),
            );
            assert!(shown.starts_with("E0770 "), "{config}: {shown}");
        }
    }
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_links() {
    let project = project(&[("real/a.txt", "one\n")]);
    let link = |target: &str, at: &str| {
        std::os::unix::fs::symlink(target, project.path().join("tree").join(at)).expect("a link");
    };
    link("real", "folder");
    link("real/a.txt", "file");
    link("/etc", "out");
    for (config, expected) in [
        (
            r#"{:op :write-file :path "folder/a.txt" :content "x"}"#,
            "E0783 `folder/a.txt` cannot be written: `folder` is a link, not a folder",
        ),
        (
            r#"{:op :write-file :path "out/passwd" :content "x"}"#,
            "E0783 `out/passwd` cannot be written: `out` is a link, not a folder",
        ),
        (
            r#"{:op :write-file :path "file" :content "x"}"#,
            "E0783 `file` cannot be written: it is a link",
        ),
        (
            r#"{:op :replace :path "file" :old "one" :new "x"}"#,
            "E0772 `file` is a link",
        ),
        (
            r#"{:op :replace :path "folder/a.txt" :old "one" :new "x"}"#,
            "E0783 `folder/a.txt` cannot be written: `folder` is a link, not a folder",
        ),
        (
            r#"{:op :delete-file :path "out/passwd"}"#,
            "E0783 `out/passwd` cannot be written: `out` is a link, not a folder",
        ),
    ] {
        let shown = with_draft(
            &project,
            &format!("(flow/step :files :it (assoc {config} :changeset draft))"),
        );
        assert!(shown.starts_with(expected), "{config}: {shown}");
    }
}

#[test]
fn bytes_and_blobs_are_written_up_to_the_size_limit() {
    let project = project(&[("a.txt", "one\n")]);
    let shown = with_draft(
        &project,
        r#"(let [one (flow/step :files :one {:op :write-file :changeset draft :path "b.bin" :content (byte-array [0 1 2 255])})
                 blob (flow/step :function :blob {:code (quote (fn [_] "from a blob")) :persist {:type :blob :filename "x.txt"}})
                 two (flow/step :files :two {:op :write-file :changeset draft :path "c.txt" :content blob})
                 list (flow/step :files :list {:op :list :changeset draft :glob ["*.bin" "c.txt"]})]
             (map (juxt :path :size :kind) (:entries list)))"#,
    );
    assert_eq!(shown, r#"(["b.bin" 4 :binary] ["c.txt" 11 :file])"#);
    for (content, expected) in [
        ("{:a 1}", "E0780 `:content` takes text or bytes, not a map"),
        ("7", "E0780 `:content` takes text or bytes, not "),
        (
            "(apply str (repeat 1048577 \"sixteen letters!\"))",
            "E0788 the content of `x` has 16777232 bytes, but at most 16777216 can be written",
        ),
    ] {
        let shown = with_draft(
            &project,
            &format!(
                "(flow/step :files :it {{:op :write-file :changeset draft :path \"x\" :content {content}}})"
            ),
        );
        assert!(shown.starts_with(expected), "{content}: {shown}");
    }
}

#[test]
fn an_invalid_changeset_is_named() {
    let project = project(&[("a.txt", "one\n")]);
    for (config, expected) in [
        (
            r#"{:op :write-file :changeset "x" :path "a" :content ""}"#,
            "E0781 `\"x\"` is not a changeset | give what `:op :init-changeset` returned, or its `:uri`",
        ),
        (
            r#"{:op :write-file :changeset {:type :resource-ref :uri "res://v1/ws/local/bundle/source-tree/dir/00"} :path "a" :content ""}"#,
            "E0781 `res://v1/ws/local/bundle/source-tree/dir/00` is not a changeset | give what `:op :init-changeset` returned, or its `:uri`",
        ),
        (
            r#"{:op :diff :changeset "res://v1/ws/local/bundle/changeset/files/cs-0"}"#,
            "E0781 there is no changeset `cs-0` | `:op :init-changeset` makes one; it may have been made in another project folder",
        ),
        (
            r#"{:op :list :changeset "res://v1/ws/local/bundle/changeset/files/cs-0" :source {:type :dir :path "."}}"#,
            "E0781 the step takes `:source` or `:changeset`, not both | a changeset includes its source",
        ),
        (
            r#"{:op :list}"#,
            "E0781 the step needs `:source` or `:changeset` | `:source {:type :dir :path \".\"}` is the project's folder; `:changeset` takes what `:op :init-changeset` returned",
        ),
    ] {
        let shown = project.eval(&format!("(let [it (flow/step :files :it {config})] it)"));
        assert_eq!(shown, expected, "{config}");
    }
}

#[test]
fn concurrent_branches_lose_no_edit() {
    let project = project(&[("a.txt", A)]);
    let shown = with_draft(
        &project,
        r#"(let [edit (fn [old] (fn [] (flow/step :files :edit {:op :replace :changeset draft :path "a.txt" :old old :new (str "<" old ">")})))
                 write (fn [n] (fn [] (flow/step :files :write {:op :write-file :changeset draft :path (str "n/" n) :content (str n)})))
                 done (flow/all [(edit "one") (edit "two") (edit "three") (edit "four") (write 1) (write 2)])
                 read (flow/step :files :read {:op :read :changeset draft :path "a.txt"})
                 list (flow/step :files :list {:op :list :changeset draft})]
             [(:content (first (:files read))) (map :path (:entries list))])"#,
    );
    assert_eq!(
        shown,
        r#"["<one>\n<two>\n<three>\n<four>\nfive\nsix\nseven\neight\n" ("a.txt" "n/1" "n/2")]"#
    );
}

#[test]
fn a_replay_does_not_edit_again() {
    let project = project(&[("a.txt", "x")]);
    let body = r#"(let [one (flow/step :files :one {:op :replace :changeset draft :path "a.txt" :old "x" :new "xx"})
                        go (flow/wait :go {})
                        two (flow/step :files :two {:op :replace :changeset draft :path "a.txt" :old "xx" :new "xxx"})
                        read (flow/step :files :read {:op :read :changeset draft :path "a.txt"})]
                    (:content (first (:files read))))"#;
    let shown = with_draft(
        &project,
        &body.replace("(flow/wait :go {})", "(flow/step :wait :go {:key \"go\"})"),
    );
    assert!(shown.starts_with("waiting: "), "{shown}");
    let project = project.reopen();
    assert_eq!(
        project.answer("go", &flowstone_lang::value::Value::Nil),
        "\"xxx\""
    );
}
