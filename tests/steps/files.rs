//! `:files` over folders and git repositories.

use std::fs;
use std::path::Path;
use std::process::Command;

use expect_test::{Expect, expect};
use flowstone_lang::value::Value;
use flowstone_steps::files::Files;

use crate::world::{World, wait};

fn project() -> World {
    World::new()
        .file("src/main.rs", "fn main() {\n    // TODO: greet\n}\n")
        .file(
            "src/util/path.rs",
            "pub fn a() {}\n// todo later\npub fn b() {}",
        )
        .file("README.md", "# Title\n\nText\n")
        .file(".gitignore", "target\n*.log\n")
        .file("target/out.txt", "built")
        .file("debug.log", "noise")
        .file("logo.png", b"\x89PNG\0\x01\x02")
        .file(".git/config", "secret")
        .file(".flowstone/db", "ours")
}

#[track_caller]
fn check(world: &World, config: &str, expected: Expect) {
    let shown = wait(world.run(&Files::default(), config));
    expected.assert_eq(&shown);
}

#[test]
fn a_folder_is_listed_without_ignored_files() {
    check(
        &project(),
        "{:op :list :source {:type :dir :path \".\"}}",
        expect![[
            r#"{:entries [{:path ".gitignore" :size 13 :kind :file :lines 2} {:path "README.md" :size 14 :kind :file :lines 3} {:path "logo.png" :size 7 :kind :binary} {:path "src/main.rs" :size 33 :kind :file :lines 3} {:path "src/util/path.rs" :size 41 :kind :file :lines 3}] :next-cursor nil}"#
        ]],
    );
}

#[test]
fn ignored_and_hidden_files_can_be_included() {
    check(
        &project(),
        "{:op :list :source {:type :dir :path \".\" :ignored? true :hidden? false} :glob [\"*.log\" \"target/**\" \".*\"]}",
        expect![[
            r#"{:entries [{:path "debug.log" :size 5 :kind :file :lines 1} {:path "target/out.txt" :size 5 :kind :file :lines 1}] :next-cursor nil}"#
        ]],
    );
}

#[test]
fn a_listing_has_pages() {
    let world = project();
    check(
        &world,
        "{:op :list :source {:type :dir :path \".\"} :prefix \"src/\" :limit 1}",
        expect![[
            r#"{:entries [{:path "src/main.rs" :size 33 :kind :file :lines 3}] :next-cursor "src/main.rs"}"#
        ]],
    );
    check(
        &world,
        "{:op :list :source {:type :dir :path \".\"} :prefix \"src/\" :limit 1 :cursor \"src/main.rs\"}",
        expect![[
            r#"{:entries [{:path "src/util/path.rs" :size 41 :kind :file :lines 3}] :next-cursor nil}"#
        ]],
    );
}

#[test]
fn files_are_read_whole_and_in_part() {
    let world = project();
    check(
        &world,
        "{:op :read :source {:type :dir :path \"src\"} :paths [\"main.rs\" \"./util/path.rs\"]}",
        expect![[
            r#"{:files [{:path "main.rs" :content "fn main() {\n    // TODO: greet\n}\n" :size 33 :lines 3 :truncated? false} {:path "util/path.rs" :content "pub fn a() {}\n// todo later\npub fn b() {}" :size 41 :lines 3 :truncated? false}]}"#
        ]],
    );
    check(
        &world,
        "{:op :read :source {:type :dir :path \".\"} :path \"README.md\" :start-line 2 :end-line 3}",
        expect![[
            r#"{:files [{:path "README.md" :content "\nText\n" :size 14 :lines 3 :truncated? false}]}"#
        ]],
    );
    check(
        &world,
        "{:op :read :source {:type :dir :path \".\"} :path \"README.md\" :max-chars 3}",
        expect![[
            r##"{:files [{:path "README.md" :content "# T" :size 14 :lines 3 :truncated? true}]}"##
        ]],
    );
    check(
        &world,
        "{:op :read :source {:type :dir :path \".\"} :path \"logo.png\"}",
        expect![[
            r#"{:files [{:path "logo.png" :content nil :size 7 :lines 0 :truncated? false :kind :binary}]}"#
        ]],
    );
}

#[test]
fn text_is_searched() {
    let world = project();
    check(
        &world,
        "{:op :search :source {:type :dir :path \".\"} :query \"todo\"}",
        expect![[
            r#"{:matches [{:path "src/main.rs" :line 2 :column 8 :text "    // TODO: greet" :before [] :after []} {:path "src/util/path.rs" :line 2 :column 4 :text "// todo later" :before [] :after []}] :truncated? false}"#
        ]],
    );
    check(
        &world,
        "{:op :search :source {:type :dir :path \".\"} :query \"TODO\" :case-sensitive? true :context 1}",
        expect![[
            r#"{:matches [{:path "src/main.rs" :line 2 :column 8 :text "    // TODO: greet" :before ["fn main() {"] :after ["}"]}] :truncated? false}"#
        ]],
    );
    check(
        &world,
        "{:op :search :source {:type :dir :path \".\"} :query \"fn (?!a)\\\\w\" :regex? true :glob \"**/*.rs\" :limit 1}",
        expect![[
            r#"{:matches [{:path "src/main.rs" :line 1 :column 1 :text "fn main() {" :before [] :after []}] :truncated? true}"#
        ]],
    );
}

#[test]
fn a_resolved_tree_does_not_change() {
    let world = project();
    let files = Files::default();
    wait(async {
        let tree = world
            .value(
                &files,
                "{:op :resolve-source :source {:type :dir :path \".\"}}",
            )
            .await;
        assert_eq!(tree.get("files"), Some(&Value::Int(5)));
        let uri = tree.get("uri").and_then(Value::as_str).unwrap().to_string();
        assert!(
            uri.starts_with("res://v1/ws/local/bundle/source-tree/dir/"),
            "{uri}"
        );
        world.write("README.md", "changed");
        fs::remove_file(world.path().join("src/main.rs")).unwrap();
        let read = format!("{{:op :read :source {uri:?} :paths [\"README.md\" \"src/main.rs\"]}}");
        // A second instance starts with an empty memory.
        let value = world.value(&Files::default(), &read).await;
        let content = |at: usize| {
            value
                .get("files")
                .unwrap()
                .as_vector()
                .unwrap()
                .get(at)
                .unwrap()
                .get("content")
                .cloned()
        };
        assert_eq!(content(0), Some(Value::from("# Title\n\nText\n")));
        assert_eq!(
            content(1),
            Some(Value::from("fn main() {\n    // TODO: greet\n}\n"))
        );
        // Through a reference, and resolved again.
        let now = world
            .value(
                &files,
                "{:op :resolve-source :source {:type :dir :path \".\"}}",
            )
            .await;
        assert_ne!(now.get("uri"), tree.get("uri"));
        let search = format!(
            "{{:op :search :source {{:type :resource-ref :uri {uri:?}}} :query \"greet\"}}"
        );
        let value = world.value(&files, &search).await;
        assert_eq!(value.get("matches").unwrap().as_vector().unwrap().len(), 1);
    });
}

#[test]
fn a_change_within_the_same_instant_and_size_is_detected() {
    let world = World::new().file("a.txt", "one");
    let read = "{:op :read :source {:type :dir :path \".\"} :path \"a.txt\"}";
    wait(async {
        let files = Files::default();
        for text in ["one", "two", "six"] {
            world.write("a.txt", text);
            let value = world.run(&files, read).await;
            assert!(value.contains(text), "{value}");
        }
    });
}

#[test]
fn equal_trees_are_stored_once() {
    let (one, two) = (
        World::new().file("a", "x").file("b/c", "y"),
        World::new().file("b/c", "y").file("a", "x"),
    );
    let resolve = "{:op :resolve-source :source {:type :dir :path \".\"}}";
    let files = Files::default();
    assert_eq!(
        wait(one.run(&files, resolve)),
        wait(two.run(&files, resolve))
    );
}

#[test]
fn invalid_sources_and_options_are_refused() {
    let world = project();
    check(
        &world,
        "{:op :list :source {:type :dir :path \"nowhere\"}}",
        expect![[r#"
            E0773 bad-source: the folder `ROOT/nowhere` cannot be read: it does not exist
              hint: `:path` is relative to the project's folder; check that it exists and may be read"#]],
    );
    check(
        &world,
        "{:op :list :source {:type :dir :path \"README.md\"}}",
        expect![[r#"
            E0773 bad-source: the folder `ROOT/README.md` cannot be read: it is not a folder
              hint: `:path` is relative to the project's folder; check that it exists and may be read"#]],
    );
    check(
        &world,
        "{:op :list :source {:type :dir :pth \".\"}}",
        expect![[r#"
            E0726 bad-config: `:source` has no key `:pth`
              hint: did you mean `:path`?"#]],
    );
    check(
        &world,
        "{:op :lst :source {:type :dir :path \".\"}}",
        expect![[r#"
            E0727 bad-config: `:files` has no operation `:lst`
              hint: did you mean `:list`?
              hint: there are `:apply-edit` `:capture` `:delete-file` `:diff` `:history` `:init-changeset` `:list` `:materialize` `:move-file` `:open-change-request` `:publish` `:read` `:replace` `:replace-lines` `:resolve-source` `:search` `:write-file` `:write-out`"#]],
    );
    check(
        &world,
        "{:op :write-file :source {:type :dir :path \".\"}}",
        expect![[r#"
            E0727 bad-config: `:source` does not apply to `:op :write-file`
              hint: it takes `:changeset` `:path` `:content`"#]],
    );
    check(
        &world,
        "{:op :read :source {:type :dir :path \".\"} :query \"x\" :path \"a\"}",
        expect![[r#"
            E0727 bad-config: `:query` does not apply to `:op :read`
              hint: it takes `:changeset` `:end-line` `:max-chars` `:path` `:paths` `:source` `:start-line`"#]],
    );
    check(
        &world,
        "{:op :read :source {:type :dir :path \".\"} :path \"src/man.rs\"}",
        expect![[r#"
            E0771 not-found: there is no `src/man.rs` in the source
              hint: did you mean `src/main.rs`?
              data: {:path "src/man.rs"}"#]],
    );
    check(
        &world,
        "{:op :read :source {:type :dir :path \".\"} :path \"main.rs\"}",
        expect![[r#"
            E0771 not-found: there is no `main.rs` in the source
              hint: did you mean `src/main.rs`?
              data: {:path "main.rs"}"#]],
    );
    check(
        &world,
        "{:op :read :source {:type :dir :path \".\"} :path \"src\"}",
        expect![[r#"
            E0772 not-readable: `src` is a folder, which cannot be read
              hint: give the path of a file; `:op :list` with `:prefix` lists a folder
              data: {:path "src"}"#]],
    );
    check(
        &world,
        "{:op :search :source {:type :dir :path \".\"} :query \"(\" :regex? true}",
        expect![[r#"
            E0778 bad-pattern: the pattern `(` is not valid: Parsing error at position 1: Opening parenthesis without closing parenthesis
              hint: `:regex? true` takes the syntax of Clojure's #"..."; without it the query is plain text"#]],
    );
    check(
        &world,
        "{:op :list :source {:type :dir :path \".\"} :glob \"[\"}",
        expect![[r#"
            E0778 bad-pattern: the glob `[` is not valid: unclosed character class; missing ']'
              hint: a glob looks like `**/*.rs` or `src/*.{js,ts}`"#]],
    );
    check(
        &world,
        "{:op :list :source \"res://v1/ws/local/result/table/x\"}",
        expect![[r#"
            E0782 bad-config: `res://v1/ws/local/result/table/x` is not the URI of a source tree
              hint: a source is `{:type :dir :path "."}`, `{:type :git :repo "https://..."}`, or what `:op :resolve-source` returned"#]],
    );
    check(
        &world,
        "{:op :list :source {:type :dir :path \".\" :max-files 2}}",
        expect![[r#"
            E0774 too-large: the source has more than 2 files
              hint: name a smaller folder, or raise `:max-files` on the `:source`"#]],
    );
    check(
        &world,
        "{:op :list :source \"res://v1/ws/local/bundle/source-tree/dir/0000000000000000000000000000000000000000000000000000000000000000\"}",
        expect![[r#"
            E0775 bad-source: there is no source tree `0000000000000000000000000000000000000000000000000000000000000000`
              hint: resolve the source again; the tree may have been made in another project folder"#]],
    );
}

#[test]
fn hostile_paths_are_refused() {
    let world = project();
    for path in [
        "..",
        "../x",
        "src/../../x",
        "/etc/passwd",
        "//etc/passwd",
        "C:/x",
        "c:x",
        "src\\\\..\\\\x",
        "a\\u0000b",
        ".git/config",
        "src/.git/x",
        ".GIT/config",
        ".flowstone/db",
    ] {
        let config = format!("{{:op :read :source {{:type :dir :path \".\"}} :path \"{path}\"}}");
        let shown = wait(world.run(&Files::default(), &config));
        assert!(shown.starts_with("E0770 bad-path: "), "{path}: {shown}");
        let config = format!("{{:op :list :source {{:type :dir :path \".\"}} :prefix \"{path}\"}}");
        let shown = wait(world.run(&Files::default(), &config));
        assert!(shown.starts_with("E0770 bad-path: "), "{path}: {shown}");
    }
}

#[cfg(unix)]
#[test]
fn links_are_followed_inside_only() {
    use std::os::unix::fs::symlink;
    let world = World::new().file("a/real.txt", "inside\n");
    let link = |target: &str, at: &str| symlink(target, world.path().join(at)).unwrap();
    link("a/real.txt", "good");
    link("a", "folder");
    link("/etc/passwd", "absolute");
    link("../outside", "up");
    link("circle", "circle");
    link(".git/config", "git");
    let read =
        |path: &str| format!("{{:op :read :source {{:type :dir :path \".\"}} :path \"{path}\"}}");
    check(
        &world,
        &read("good"),
        expect![[
            r#"{:files [{:path "good" :content "inside\n" :size 7 :lines 1 :truncated? false}]}"#
        ]],
    );
    check(
        &world,
        &read("folder/real.txt"),
        expect![[
            r#"{:files [{:path "folder/real.txt" :content "inside\n" :size 7 :lines 1 :truncated? false}]}"#
        ]],
    );
    check(
        &world,
        &read("absolute"),
        expect![[r#"
        E0770 bad-path: the link `absolute` points to `/etc/passwd`, which is outside the source
          hint: only links to files of the same source are followed
          data: {:path "absolute"}"#]],
    );
    check(
        &world,
        &read("up"),
        expect![[r#"
        E0770 bad-path: the link `up` points to `../outside`, which is outside the source
          hint: only links to files of the same source are followed
          data: {:path "up"}"#]],
    );
    check(
        &world,
        &read("circle"),
        expect![[r#"
        E0770 bad-path: the link `circle` leads in a circle
          hint: read the target file of the links directly
          data: {:path "circle"}"#]],
    );
    check(
        &world,
        &read("git"),
        expect![[r#"
        E0770 bad-path: the link `git` points to `.git/config`, which is outside the source
          hint: only links to files of the same source are followed
          data: {:path "git"}"#]],
    );
    check(
        &world,
        "{:op :list :source {:type :dir :path \".\"} :glob [\"good\" \"up\"]}",
        expect![[
            r#"{:entries [{:path "good" :size 10 :kind :link :target "a/real.txt"} {:path "up" :size 10 :kind :link :target "../outside"}] :next-cursor nil}"#
        ]],
    );
}

fn git(folder: &Path, args: &[&str]) -> String {
    let out = Command::new("git")
        .current_dir(folder)
        .args([
            "-c",
            "user.name=T",
            "-c",
            "user.email=t@example.com",
            "-c",
            "init.defaultBranch=main",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8(out.stdout).unwrap().trim().to_string()
}

fn repository() -> World {
    let world = World::new()
        .file("repo/a.txt", "first\n")
        .file("repo/dir/b.bin", b"\0\x01");
    let repo = world.path().join("repo");
    git(&repo, &["init", "-q"]);
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-qm", "one"]);
    git(&repo, &["tag", "v1"]);
    world.write("repo/a.txt", "second\n");
    git(&repo, &["commit", "-qam", "two"]);
    // Not committed, so not part of the source.
    world.write("repo/a.txt", "third\n");
    world.write("repo/new.txt", "new\n");
    world
}

#[test]
fn a_repository_on_this_machine_is_read_as_committed() {
    let world = repository();
    check(
        &world,
        "{:op :list :source {:type :git :repo \"repo\"}}",
        expect![[
            r#"{:entries [{:path "a.txt" :size 7 :kind :file :lines 1} {:path "dir/b.bin" :size 2 :kind :binary}] :next-cursor nil}"#
        ]],
    );
    check(
        &world,
        "{:op :read :source {:type :git :repo \"repo\"} :path \"a.txt\"}",
        expect![[
            r#"{:files [{:path "a.txt" :content "second\n" :size 7 :lines 1 :truncated? false}]}"#
        ]],
    );
    check(
        &world,
        "{:op :read :source {:type :git :repo \"repo\" :ref \"v1\"} :path \"a.txt\"}",
        expect![[
            r#"{:files [{:path "a.txt" :content "first\n" :size 6 :lines 1 :truncated? false}]}"#
        ]],
    );
    check(
        &world,
        "{:op :read :source {:type :git :repo \"repo\" :ref \"nope\"} :path \"a.txt\"}",
        expect![[r#"
            E0777 git: git could not find `nope`: Needed a single revision
              hint: `:ref` takes a branch, a tag, HEAD or a full commit hash"#]],
    );
}

#[test]
fn a_remote_is_fetched() {
    let world = repository();
    let bare = world.path().join("bare.git");
    git(world.path(), &["clone", "-q", "--bare", "repo", "bare.git"]);
    // Like the URL of another host: the repository is not read in place.
    let url = format!("file://localhost{}", bare.display());
    let first = git(&world.path().join("repo"), &["rev-parse", "v1"]);
    let files = Files::default();
    wait(async {
        for (reference, text) in [
            ("HEAD", "second"),
            ("main", "second"),
            ("v1", "first"),
            (first.as_str(), "first"),
            ("HEAD", "second"),
        ] {
            let config = format!(
                "{{:op :read :source {{:type :git :repo {url:?} :ref {reference:?}}} :path \"a.txt\"}}"
            );
            let shown = world.run(&files, &config).await;
            assert!(shown.contains(text), "{reference}: {shown}");
        }
        let config = format!("{{:op :list :source {{:type :git :repo {url:?} :ref \"absent\"}}}}");
        let shown = world.run(&files, &config).await.replace(&url, "URL");
        expect![[r#"
            E0777 git: git could not fetch `absent` of file://localhostROOT/bare.git: couldn't find remote ref absent
              hint: `:ref` takes a branch, a tag, HEAD or a full commit hash"#]].assert_eq(&shown);
    });
}

#[test]
fn options_and_programs_are_refused_as_repositories() {
    let world = World::new();
    for source in [
        "{:type :git :repo \"--upload-pack=touch pwned\"}",
        "{:type :git :repo \"ext::sh -c touch% pwned\"}",
        "{:type :git :repo \"-c\"}",
        "{:type :git :repo \"\"}",
        "{:type :git :repo \"https://example.invalid/x\" :ref \"--output=pwned\"}",
        "{:type :git :repo \"https://example.invalid/x\" :ref \"a b\"}",
        "{:type :git :repo \"https://example.invalid/x\" :ref \"main:refs/heads/x\"}",
        "{:type :git :repo \"https://example.invalid/x\" :ref \"a..b\"}",
    ] {
        let shown = wait(world.run(
            &Files::default(),
            &format!("{{:op :list :source {source}}}"),
        ));
        assert!(shown.starts_with("E0777 git: "), "{source}: {shown}");
    }
    assert!(!world.path().join("pwned").exists());
}

#[test]
fn damaged_contents_are_reported_and_restored() {
    let world = World::new().file("a.txt", "text");
    let files = Files::default();
    let list = "{:op :read :source {:type :dir :path \".\"} :path \"a.txt\"}";
    let tree = wait(world.value(
        &files,
        "{:op :resolve-source :source {:type :dir :path \".\"}}",
    ));
    let objects = world.path().join(".flowstone/trees/objects");
    let object = walk(&objects).pop().unwrap();
    fs::write(&object, "evil").unwrap();
    let uri = tree.get("uri").and_then(Value::as_str).unwrap();
    let read = format!("{{:op :read :source {uri:?} :path \"a.txt\"}}");
    let shown = wait(world.run(&files, &read));
    assert!(
        shown.starts_with("E0775 bad-source: the stored content of the source is damaged"),
        "{shown}"
    );
    assert!(wait(world.run(&files, list)).contains("text"));
    assert!(wait(world.run(&files, &read)).contains("text"));
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(walk(&path)),
            false => found.push(path),
        }
    }
    found
}
