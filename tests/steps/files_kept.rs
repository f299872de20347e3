//! Storing the contents of trees, garbage collection, and searching many files.

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
fn contents_are_removed_with_their_last_reference() {
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
    // Young contents stay, whatever refers to them.
    delete(&project, &second);
    assert_eq!(gc(&project, false).contents.count, 0);
    // So far in the future that every file is old.
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
    // Removed contents are stored again.
    assert_eq!(resolve(&project), second);
    let found = search(&project, &second, "{:query \"second 7\"}");
    assert_eq!(found, r#"[[["part-0/0007.txt" 1 1 "second 7"]] false]"#);
}

const DAY: i64 = 86_400_000;

/// Creates a changeset with a file, in a run whose result contains only `of`.
fn draft(project: &Project, name: &str, of: &str) -> String {
    project.eval(&format!(
        "(let [draft (flow/step :files :draft {{:op :init-changeset :source {{:type :dir :path \"tree\"}}}})]
           (flow/step :files :write {{:op :write-file :changeset draft :path \"{name}.txt\" :content \"{name}\\n\"}})
           {of})"
    ))
}

#[test]
fn unreferenced_changesets_are_removed() {
    let project = Project::new();
    files(&project, 3, |number| format!("{number}\n"));
    draft(&project, "nowhere", "nil");
    let stored = [
        ("result", "(:uri draft)"),
        (
            "name",
            "(flow/step :kv :keep {:operation :set :key \"draft\" :value {:it [draft]}})",
        ),
        (
            "table",
            "(flow/step :table :keep {:op :insert :table \"drafts\" :rows [{:it (:uri draft)}]})",
        ),
        (
            "blob",
            "(:uri (flow/step :function :keep {:input {:it draft} :code '(fn [i] i) :persist {:type :blob}}))",
        ),
        (
            "elsewhere",
            "(clojure.string/replace (:uri draft) \"/ws/local/\" \"/ws/acme/\")",
        ),
    ];
    for (name, of) in stored {
        let found = draft(&project, name, of);
        assert!(!found.starts_with('E'), "{name}: {found}");
    }
    let count = || {
        let referenced = project.block_on(project.engine.stores().changesets.referenced());
        referenced.expect("what is there").objects.len()
    };
    // While their runs are kept, all changesets are.
    assert_eq!((gc(&project, false).changesets, count()), (0, 6));
    project.clock.advance(31 * DAY);
    // The changeset of a run that is executing, or has just ended, is kept.
    draft(&project, "young", "nil");
    assert_eq!(gc(&project, true).changesets, 0, "journals are still there");
    assert_eq!((gc(&project, false).changesets, count()), (1, 6));
    let read = project.eval(
        "(let [draft (first (:it (:value (flow/step :kv :of {:operation :get :key \"draft\"}))))]
           (mapv :content (:files (flow/step :files :read {:op :read :changeset draft :paths [\"name.txt\"]}))))",
    );
    assert_eq!(read, "[\"name\\n\"]");
    project.eval("(flow/step :kv :gone {:operation :delete :key \"draft\"})");
    assert_eq!(gc(&project, false).changesets, 0, "it was just read");
    project.clock.advance(31 * DAY);
    assert_eq!(gc(&project, true).changesets, 0);
    assert_eq!((gc(&project, false).changesets, count()), (2, 4));
    assert_eq!((gc(&project, false).changesets, count()), (0, 4));
}

#[test]
fn temporary_folders_are_removed_with_their_runs() {
    let project = Project::new();
    files(&project, 3, |number| format!("{number}\n"));
    let folder = |of: &str| {
        let shown = project.eval(&format!(
            "(:path (flow/step :files :out {{:op :materialize :source {{:type :dir :path \"tree\"}} {of}}}))"
        ));
        project.path().join(shown.trim_matches('"'))
    };
    let records = || {
        let folder = project.path().join(".flowstone/trees/materialized");
        fs::read_dir(folder).map_or(0, Iterator::count)
    };
    let (temporary, own) = (folder(""), folder(":to \"out\""));
    assert_eq!(records(), 2);
    // The folder of a run that has just ended may still be in use.
    assert_eq!(gc(&project, false).folders.count, 0);
    assert!(temporary.is_dir());
    // So far in the future that every file is old.
    project.clock.advance(10 * 365 * DAY);
    let young = folder("");
    let would = gc(&project, true).folders;
    assert_eq!((would.count, would.bytes), (1, 6));
    assert!(temporary.is_dir());
    assert_eq!(gc(&project, false).folders, would);
    assert!(!temporary.is_dir() && young.is_dir() && own.is_dir());
    assert_eq!(records(), 2);
    // The record of a folder of the project is kept until the folder is removed.
    fs::remove_dir_all(&own).expect("it is there");
    project.clock.advance(2 * DAY);
    assert_eq!(gc(&project, false).folders.count, 1);
    assert_eq!(records(), 0);
}

#[test]
fn the_folder_of_an_unfinished_run_stays() {
    let project = Project::new();
    files(&project, 3, |number| format!("{number}\n"));
    let outcome = project.run(
        "(let [out (flow/step :files :out {:op :materialize :source {:type :dir :path \"tree\"}})]
           (flow/step :wait :answer {:key \"answer\" :timeout \"30d\"})
           (:path out))",
    );
    assert!(outcome.is_ok());
    let folders = || {
        let folder = project.path().join(".flowstone/materialized");
        fs::read_dir(folder).map_or(0, Iterator::count)
    };
    project.clock.advance(20 * DAY);
    assert_eq!(gc(&project, false).folders.count, 0);
    assert_eq!(folders(), 1);
}

#[test]
fn a_damaged_pack_is_reported_and_restored() {
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
    // A pattern that takes exponential time elsewhere is linear here, and one that is too large is refused.
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
