//! How `:files` keeps the contents of trees, and searches many of them.

use std::fs;
use std::path::PathBuf;

use flowstone_engine::{GcOptions, GcReport};

use crate::project::Project;

fn files(project: &Project, count: usize, content: impl Fn(usize) -> String) {
    for number in 0..count {
        let path = format!("tree/part-{}/{number:04}.txt", number / 50);
        project.write(&path, content(number).as_bytes());
    }
}

fn resolve(project: &Project) -> String {
    let shown = project.eval(
        "(:uri (flow/step :files :tree {:op :resolve-source :source {:type :dir :path \"tree\"}}))",
    );
    shown.trim_matches('"').to_owned()
}

fn packs(project: &Project) -> Vec<PathBuf> {
    let folder = project.path().join(".flowstone/trees/objects/packs");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn gc(project: &Project, dry_run: bool) -> GcReport {
    let options = GcOptions {
        dry_run,
        ..GcOptions::default()
    };
    let report = project.block_on(project.engine.collect_garbage(&options));
    report.expect("a report")
}

fn delete(project: &Project, uri: &str) {
    let now_ms = 0;
    let resources = &project.engine.stores().resources;
    let deleted = project.block_on(resources.delete(uri, now_ms));
    assert!(deleted.expect("the store works"), "{uri}");
}

fn search(project: &Project, uri: &str, config: &str) -> String {
    project.eval(&format!(
        "(let [it (flow/step :files :find (merge {{:op :search :source \"{uri}\"}} {config}))]
           [(mapv (juxt :path :line :column :text) (:matches it)) (:truncated? it)])"
    ))
}

#[test]
fn contents_go_with_the_last_that_names_them() {
    let project = Project::new();
    files(&project, 30, |number| format!("first {number}\n"));
    let first = resolve(&project);
    let draft = project.eval(&format!(
        "(let [draft (flow/step :files :draft {{:op :init-changeset :source \"{first}\"}})]
           (flow/step :files :write {{:op :write-file :changeset draft :path \"note.txt\" :content \"kept\\n\"}})
           (:uri draft))"
    ));
    files(&project, 30, |number| format!("second {number}\n"));
    let second = resolve(&project);
    assert_eq!(packs(&project).len(), 2);
    // Young ones stay, whatever refers to them.
    delete(&project, &second);
    assert_eq!(gc(&project, false).contents.count, 0);
    // So long that every file is old.
    project.clock.advance(10 * 365 * 86_400_000);
    let counted = gc(&project, true).contents;
    assert_eq!(counted.count, 30);
    assert_eq!(packs(&project).len(), 2);
    assert_eq!(gc(&project, false).contents, counted);
    assert_eq!(packs(&project).len(), 1);
    // The changeset keeps its own file and all of its tree.
    let read = project.eval(&format!(
        "(mapv :content (:files (flow/step :files :read {{:op :read :changeset {draft} :paths [\"note.txt\" \"part-0/0007.txt\"]}})))"
    ));
    assert_eq!(read, r#"["kept\n" "first 7\n"]"#);
    assert_eq!(gc(&project, false).contents.count, 0);
    // What was removed is stored anew.
    assert_eq!(resolve(&project), second);
    let found = search(&project, &second, "{:query \"second 7\"}");
    assert_eq!(found, r#"[[["part-0/0007.txt" 1 1 "second 7"]] false]"#);
}

#[test]
fn a_pack_that_is_damaged_is_named_and_mends_itself() {
    let project = Project::new();
    files(&project, 30, |number| format!("number {number}\n"));
    let tree = resolve(&project);
    let [pack] = &packs(&project)[..] else {
        panic!("one pack")
    };
    let mut bytes = fs::read(pack).expect("a pack");
    bytes[0] ^= 1;
    fs::write(pack, &bytes).expect("a pack");
    let shown = search(&project, &tree, "{:query \"number\"}");
    assert!(shown.contains("E0775"), "{shown}");
    assert_eq!(resolve(&project), tree);
    let shown = search(&project, &tree, "{:query \"number 2\" :limit 100}");
    assert!(
        shown.contains("part-0/0002.txt") && shown.ends_with("false]"),
        "{shown}"
    );
}

#[test]
fn many_files_are_searched_in_their_order() {
    let project = Project::new();
    files(&project, 700, |number| match number % 3 {
        0 => format!("one\r\nTwo {number}\r\nthree"),
        1 => String::new(),
        _ => format!("one\nnothing {number}\n"),
    });
    let tree = resolve(&project);
    let all = search(&project, &tree, "{:query \"two\" :limit 10000}");
    let expected: Vec<String> = (0..700)
        .filter(|number| number % 3 == 0)
        .map(|number| {
            format!(
                "[\"part-{}/{number:04}.txt\" 2 1 \"Two {number}\"]",
                number / 50
            )
        })
        .collect();
    let mut expected_in_order = expected.clone();
    expected_in_order.sort();
    assert_eq!(all, format!("[[{}] false]", expected_in_order.join(" ")));
    let some = search(&project, &tree, "{:query \"two\" :limit 3}");
    assert_eq!(
        some,
        format!("[[{}] true]", expected_in_order[..3].join(" "))
    );
}

#[test]
fn patterns_are_tried_line_by_line() {
    let project = Project::new();
    project.write(
        "tree/a.txt",
        b"alpha beta\r\nbeta\n\ngamma (x) \xff beta\nlast alpha",
    );
    let tree = resolve(&project);
    for (query, expected) in [
        ("^beta$", r#"[["a.txt" 2 1 "beta"]]"#),
        ("\\\\Abeta\\\\z", r#"[["a.txt" 2 1 "beta"]]"#),
        ("(?-m)^beta$", r#"[["a.txt" 2 1 "beta"]]"#),
        (
            "beta(?=\\\\s|$)",
            r#"[["a.txt" 1 7 "alpha beta"] ["a.txt" 2 1 "beta"] ["a.txt" 4 13 "gamma (x) � beta"]]"#,
        ),
        ("(?i)LAST\\\\s+(\\\\w+)", r#"[["a.txt" 5 1 "last alpha"]]"#),
        ("beta\\\\s*beta", "[]"),
        ("alpha[^z]*gamma", "[]"),
        ("beta\\n", "[]"),
        ("^$", r#"[["a.txt" 3 1 ""]]"#),
        (
            "(a)lph\\\\1",
            r#"[["a.txt" 1 1 "alpha beta"] ["a.txt" 5 6 "last alpha"]]"#,
        ),
    ] {
        let shown = search(
            &project,
            &tree,
            &format!("{{:query \"{query}\" :regex? true}}"),
        );
        assert_eq!(shown, format!("[{expected} false]"), "{query}");
    }
    let shown = search(&project, &tree, "{:query \"GAMMA (X)\"}");
    assert_eq!(shown, r#"[[["a.txt" 4 1 "gamma (x) � beta"]] false]"#);
    let shown = search(&project, &tree, "{:query \"GAMMA\" :case-sensitive? true}");
    assert_eq!(shown, "[[] false]");
    // What explodes elsewhere is linear here, and what is too large is refused.
    project.write("tree/b.txt", "a".repeat(50_000).as_bytes());
    let tree = resolve(&project);
    let shown = search(&project, &tree, "{:query \"(a+)+b\" :regex? true}");
    assert_eq!(shown, "[[] false]");
    for query in ["(a{1000}){1000}", "\\\\w{5000}{50}", "(a(?=a)+)+b(", "["] {
        let shown = search(
            &project,
            &tree,
            &format!("{{:query \"{query}\" :regex? true}}"),
        );
        assert!(shown.contains("E0778"), "{query}: {shown}");
    }
}
