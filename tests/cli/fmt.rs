//! `flowstone fmt`.

use serde_json::json;

use crate::program::Scratch;

const ROUGH: &str = "(defn f [x]\n    (+ x\n1)\n  )\n\n\n\n(f 1)   ";
const LAID_OUT: &str = "(defn f [x]\n  (+ x\n     1))\n\n(f 1)\n";

#[test]
fn files_and_folders_are_formatted_once() {
    let scratch = Scratch::new();
    scratch.write("lib/a.clj", ROUGH);
    scratch.write("lib/deep/b.edn", "{:a 1\n:b 2}");
    scratch.write("lib/notes.txt", ROUGH);
    scratch.write("lib/.hidden/c.clj", ROUGH);
    let ran = scratch.run(&["fmt", "lib"]);
    assert_eq!(ran.ok(), "formatted lib/a.clj\nformatted lib/deep/b.edn\n");
    assert_eq!(scratch.read("lib/a.clj"), LAID_OUT);
    assert_eq!(scratch.read("lib/deep/b.edn"), "{:a 1\n :b 2}\n");
    assert_eq!(scratch.read("lib/notes.txt"), ROUGH);
    assert_eq!(scratch.read("lib/.hidden/c.clj"), ROUGH);
    let again = scratch.run(&["fmt", "lib"]);
    assert!(
        again.err.contains("2 files: nothing to change"),
        "{}",
        again.err
    );
    assert_eq!(again.ok(), "");
}

#[test]
fn check_changes_nothing_and_fails_if_something_would_change() {
    let scratch = Scratch::new();
    scratch.write("a.clj", ROUGH);
    scratch.write("b.clj", LAID_OUT);
    let ran = scratch.run(&["fmt", "--check", "a.clj", "b.clj"]);
    assert_eq!((ran.code, &*ran.out), (Some(1), "would format a.clj\n"));
    assert_eq!(scratch.read("a.clj"), ROUGH);
    scratch.run(&["fmt", "--check", "b.clj"]).ok();
    let ran = scratch.run(&["fmt", "--check", "--json", "a.clj", "b.clj"]);
    let shown = ran.json();
    assert_eq!((ran.code, &shown["ok"]), (Some(1), &json!(false)));
    assert_eq!(
        (&shown["files"], &shown["changed"]),
        (&json!(2), &json!(["a.clj"]))
    );
}

#[test]
fn an_unbalanced_file_is_refused_with_its_place_and_left_as_it_is() {
    let scratch = Scratch::new();
    scratch.write("a.clj", "(a)\n  (b [c)\n");
    scratch.write("b.clj", ROUGH);
    let ran = scratch.run(&["fmt", "a.clj", "b.clj"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("E1570") && ran.err.contains("a.clj:2:6"),
        "{}",
        ran.err
    );
    assert_eq!(scratch.read("a.clj"), "(a)\n  (b [c)\n");
    assert_eq!(scratch.read("b.clj"), LAID_OUT);
    let ran = scratch.run(&["fmt", "--json", "a.clj"]);
    let finding = &ran.json()["findings"][0];
    assert_eq!(
        (&finding["code"], &finding["line"]),
        (&json!("E1570"), &json!(2))
    );
    let ran = scratch.run(&["fmt", "missing.clj"]);
    assert!(
        ran.code == Some(1) && ran.err.contains("missing.clj"),
        "{}",
        ran.err
    );
}

#[test]
fn standard_input_is_formatted_to_standard_output() {
    let scratch = Scratch::new();
    let ran = scratch.run_with(&["fmt", "--stdin"], ROUGH);
    assert_eq!(ran.ok(), LAID_OUT);
    let ran = scratch.run_with(&["fmt", "--stdin", "--check"], ROUGH);
    assert_eq!((ran.code, &*ran.out), (Some(1), ""));
    let ran = scratch.run_with(&["fmt", "--stdin"], "(a");
    assert!(
        ran.code == Some(1) && ran.out.is_empty() && ran.err.contains("<stdin>:1:1"),
        "{}",
        ran.err
    );
}

#[cfg(unix)]
#[test]
fn permissions_and_links_stay() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let scratch = Scratch::new();
    scratch.write("real.clj", ROUGH);
    let real = scratch.path().join("real.clj");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).expect("it is ours");
    symlink("real.clj", scratch.path().join("link.clj")).expect("a link");
    scratch.run(&["fmt", "link.clj"]).ok();
    assert_eq!(scratch.read("real.clj"), LAID_OUT);
    let mode = std::fs::metadata(&real)
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    assert!(scratch.path().join("link.clj").is_symlink());
}
