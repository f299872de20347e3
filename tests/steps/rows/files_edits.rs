//! The rows of `tests/coverage/files.tsv` about changes.

use super::files::{after, check, content, listed};

#[test]
fn write_file_path() {
    check(&[
        (
            &after("{:op :write-file :path \"./a.txt\" :content \"x\"}"),
            r#""x""#,
        ),
        (
            &after("{:op :write-file :path \"../a.txt\" :content \"x\"}"),
            "E0770 ...",
        ),
        (
            &after("{:op :write-file :content \"x\"}"),
            "E0727 `:op :write-file` needs `:path`...",
        ),
    ]);
}

#[test]
fn write_file_content() {
    check(&[
        (
            &after("{:op :write-file :path \"a.txt\" :content \"\"}"),
            r#""""#,
        ),
        (
            &after("{:op :write-file :path \"a.txt\" :content (byte-array [120 10])}"),
            r#""x\n""#,
        ),
        (
            &after("{:op :write-file :path \"a.txt\" :content [1]}"),
            "E0780 `:content` takes text or bytes...",
        ),
    ]);
}

#[test]
fn replace_path() {
    check(&[
        (
            &after("{:op :replace :path \"dir/b.rs\" :old \"two\" :new \"x\"}"),
            r#""one\ntwo\nTwo\nthree\n""#,
        ),
        (
            &after("{:op :replace :path \"dir/c.bin\" :old \"two\" :new \"x\"}"),
            "E0772 ...",
        ),
    ]);
}

#[test]
fn replace_old() {
    check(&[
        (
            &after("{:op :replace :path \"a.txt\" :old \"one\\ntwo\" :new \"x\"}"),
            r#""x\nTwo\nthree\n""#,
        ),
        (
            &after("{:op :replace :path \"a.txt\" :old \"o\" :new \"x\"}"),
            "E0784 `:old` occurs 3 times in `a.txt`, in lines 1, 2, 3...",
        ),
    ]);
}

#[test]
fn replace_new() {
    check(&[
        (
            &after("{:op :replace :path \"a.txt\" :old \"two\\n\" :new \"\"}"),
            r#""one\nTwo\nthree\n""#,
        ),
        (
            &after("{:op :replace :path \"a.txt\" :old \"two\"}"),
            "E0727 `:op :replace` needs `:new`...",
        ),
    ]);
}

#[test]
fn replace_all() {
    check(&[(
        &after("{:op :replace :path \"a.txt\" :old \"o\" :new \"0\" :all? true}"),
        r#""0ne\ntw0\nTw0\nthree\n""#,
    )]);
}

#[test]
fn replace_lines_path() {
    check(&[(
        &after("{:op :replace-lines :path \"b\" :start-line 1 :end-line 1 :content \"\"}"),
        "E0771 ...",
    )]);
}

#[test]
fn replace_lines_start_line() {
    check(&[
        (
            &after("{:op :replace-lines :path \"a.txt\" :start-line 4 :end-line 4 :content \"x\"}"),
            r#""one\ntwo\nTwo\nx""#,
        ),
        (
            &after("{:op :replace-lines :path \"a.txt\" :start-line 6 :end-line 5 :content \"x\"}"),
            "E0785 ...",
        ),
    ]);
}

#[test]
fn replace_lines_end_line() {
    check(&[
        (
            &after("{:op :replace-lines :path \"a.txt\" :start-line 1 :end-line 3 :content \"x\"}"),
            r#""x\nthree\n""#,
        ),
        (
            &after("{:op :replace-lines :path \"a.txt\" :start-line 1 :end-line 5 :content \"x\"}"),
            "E0785 ...",
        ),
    ]);
}

#[test]
fn replace_lines_content() {
    check(&[
        (
            &after(
                "{:op :replace-lines :path \"a.txt\" :start-line 2 :end-line 3 :content \"x\\ny\"}",
            ),
            r#""one\nx\ny\nthree\n""#,
        ),
        (
            &after("{:op :replace-lines :path \"a.txt\" :start-line 2 :end-line 3 :content 7}"),
            "E0780 `:content` takes a string...",
        ),
    ]);
}

#[test]
fn apply_edit_patch() {
    check(&[
        (
            &after(
                r#"{:op :apply-edit :patch "--- a/a.txt\n+++ b/a.txt\n@@ -9,2 +9,2 @@\n-two\n+2\n Two\n"}"#,
            ),
            r#""one\n2\nTwo\nthree\n""#,
        ),
        (&after(r#"{:op :apply-edit :patch "nothing"}"#), "E0786 ..."),
    ]);
}

#[test]
fn apply_edit_edits() {
    check(&[
        (
            &after(
                r#"{:op :apply-edit :edits [{:path "a.txt" :old "one" :new "1"} {:path "a.txt" :old "1\ntwo" :new "12"}]}"#,
            ),
            r#""12\nTwo\nthree\n""#,
        ),
        (
            &after(r#"{:op :apply-edit :edits [{:path "a.txt" :old "one"}]}"#),
            "E0711 `:edits 0` of a `:files` step needs `:new`...",
        ),
        (
            &after(r#"{:op :apply-edit :edits []}"#),
            "E0725 `:edits` is empty...",
        ),
    ]);
}

#[test]
fn apply_edit_all_or_nothing() {
    check(&[(
        &format!(
            r#"(do (try (flow/step :files :edit {{:op :apply-edit :changeset draft :edits [{{:path "a.txt" :old "one" :new "1"}} {{:path "dir/b.rs" :old "three" :new "3"}}]}})
                     (catch Exception e nil))
                   {})"#,
            content(r#"{:op :read :changeset draft :path "a.txt"}"#)
        ),
        r#""one\ntwo\nTwo\nthree\n""#,
    )]);
}

#[test]
fn delete_file_path() {
    check(&[
        (
            &format!(
                "(do (flow/step :files :edit {{:op :delete-file :changeset draft :path \"dir/b.rs\"}}) {})",
                listed("{:op :list :changeset draft}")
            ),
            r#"("a.txt" "dir/c.bin")"#,
        ),
        (
            "(flow/step :files :edit {:op :delete-file :changeset draft :path \"b\"})",
            "E0771 ...",
        ),
    ]);
}

#[test]
fn move_file_from() {
    check(&[
        (
            &format!(
                "(do (flow/step :files :edit {{:op :move-file :changeset draft :from \"a.txt\" :to \"dir/a.txt\"}}) {})",
                listed("{:op :list :changeset draft}")
            ),
            r#"("dir/a.txt" "dir/b.rs" "dir/c.bin")"#,
        ),
        (
            "(flow/step :files :edit {:op :move-file :changeset draft :from \"x\" :to \"y\"})",
            "E0771 ...",
        ),
    ]);
}

#[test]
fn move_file_to() {
    check(&[
        (
            "(flow/step :files :edit {:op :move-file :changeset draft :from \"a.txt\" :to \"dir/b.rs\"})",
            "E0789 ...",
        ),
        (
            "(flow/step :files :edit {:op :move-file :changeset draft :from \"a.txt\" :to \"dir\"})",
            "E0783 ...",
        ),
        (
            "(flow/step :files :edit {:op :move-file :changeset draft :from \"a.txt\" :to \".git/a\"})",
            "E0770 ...",
        ),
    ]);
}

/// Returns the paths of a difference after two edits.
fn differences(config: &str) -> String {
    format!(
        "(do (flow/step :files :e1 {{:op :replace :changeset draft :path \"a.txt\" :old \"two\" :new \"2\"}})
             (flow/step :files :e2 {{:op :delete-file :changeset draft :path \"dir/b.rs\"}})
             (flow/step :files :it {config}))"
    )
}

#[test]
fn diff_changeset() {
    check(&[
        (
            &format!(
                "(map (juxt :path :status) (:files {}))",
                differences("{:op :diff :changeset draft}")
            ),
            r#"(["a.txt" :modified] ["dir/b.rs" :deleted])"#,
        ),
        (
            "(flow/step :files :it {:op :diff})",
            "E0727 `:op :diff` needs `:changeset`...",
        ),
    ]);
}

#[test]
fn diff_paths() {
    check(&[
        (
            &format!(
                "(map :path (:files {}))",
                differences("{:op :diff :changeset draft :paths [\"dir\"]}")
            ),
            r#"("dir/b.rs")"#,
        ),
        (
            &differences("{:op :diff :changeset draft :paths [\"..\"]}"),
            "E0770 ...",
        ),
    ]);
}

#[test]
fn diff_context() {
    check(&[(
        &format!(
            "(let [it {}] (mapv (fn [line] (subs line 0 1)) (drop 4 (clojure.string/split-lines (:diff it)))))",
            differences("{:op :diff :changeset draft :paths [\"a.txt\"] :context 1}")
        ),
        r#"["@" " " "-" "+" " "]"#,
    )]);
}

#[test]
fn materialize_to() {
    check(&[
        (
            "(:path (flow/step :files :it {:op :materialize :source SRC :to \"out/here\"}))",
            r#""out/here""#,
        ),
        (
            "(:path (flow/step :files :it {:op :materialize :source SRC :to \"tree\"}))",
            r#""tree""#,
        ),
        (
            "(:path (flow/step :files :it {:op :materialize :source SRC :to \"../out\"}))",
            "E0960 ...",
        ),
    ]);
}

#[test]
fn materialize_overwrite() {
    check(&[
        (
            "(do (flow/step :files :it {:op :write-out :path \"twice/a.txt\" :content \"theirs\"})
                 (flow/step :files :it {:op :materialize :source SRC :to \"twice\"}))",
            "E0787 nothing was written to `twice`: a file is there with other content: `a.txt`...",
        ),
        (
            "(do (flow/step :files :it {:op :materialize :source SRC :to \"again\"})
                 (:path (flow/step :files :it {:op :materialize :source SRC :to \"again\" :overwrite? true})))",
            "\"again\"",
        ),
        (
            "(flow/step :files :it {:op :materialize :source SRC :to \"../out\" :overwrite? true})",
            "E0960 ...",
        ),
        (
            "(flow/step :files :it {:op :materialize :source SRC :overwrite? 1})",
            "E0712 ...",
        ),
    ]);
}

#[test]
fn op_write_out() {
    check(&[
        (
            "(flow/step :files :it {:op :write-out :path \"notes/new.md\" :content \"new\"})",
            r#"{:path "notes/new.md" :size 3}"#,
        ),
        (
            "(flow/step :files :it {:op :write-out :path \"tree/a.txt\" :content \"new\"})",
            "E0787 `tree/a.txt` already exists with other content...",
        ),
        (
            "(flow/step :files :it {:op :write-out :path \"tree/a.txt\" :content \"new\" :overwrite? true})",
            r#"{:path "tree/a.txt" :size 3}"#,
        ),
        (
            "(flow/step :files :it {:op :write-out :path \"../a.txt\" :content \"new\"})",
            "E0960 ...",
        ),
        (
            "(flow/step :files :it {:op :write-out :content \"new\"})",
            "E0727 `:op :write-out` needs `:path`...",
        ),
    ]);
}

#[test]
fn capture_changeset() {
    check(&[(
        "(flow/step :files :it {:op :capture :path \"tree\"})",
        "E0727 `:op :capture` needs `:changeset`...",
    )]);
    check(&[(
        &format!(
            "(do (flow/step :files :edit {{:op :delete-file :changeset draft :path \"a.txt\"}})
                 (flow/step :files :it {{:op :capture :changeset draft :path \"tree\"}})
                 {})",
            listed("{:op :list :changeset draft :glob \"*.txt\"}")
        ),
        r#"("a.txt")"#,
    )]);
}

#[test]
fn capture_path() {
    check(&[
        (
            "(flow/step :files :it {:op :capture :changeset draft :path \"nowhere\"})",
            "E0773 ...",
        ),
        (
            "(flow/step :files :it {:op :capture :changeset draft :path \"/\"})",
            "E0960 ...",
        ),
    ]);
}
