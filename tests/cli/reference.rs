//! The generated pages are as the code says. `UPDATE_EXPECT=1` writes them anew.

use std::collections::BTreeSet;

use expect_test::expect_file;

use crate::program::Scratch;
use crate::tidy::{files, root, text};

#[test]
fn reference_pages_are_up_to_date() {
    let scratch = Scratch::new();
    scratch.run(&["reference", "pages"]).ok();
    expect_file!["../../docs/reference/commands.md"].assert_eq(&scratch.read("pages/commands.md"));
    expect_file!["../../docs/reference/functions.md"]
        .assert_eq(&scratch.read("pages/functions.md"));
    expect_file!["../../docs/reference/steps.md"].assert_eq(&scratch.read("pages/steps.md"));
}

#[test]
fn there_is_a_schema_a_step_type() {
    let scratch = Scratch::new();
    scratch.run(&["reference", "pages"]).ok();
    let is_update = std::env::var_os("UPDATE_EXPECT").is_some();
    let folder = root().join("docs/reference/schemas");
    let mut different = Vec::new();
    let mut written = BTreeSet::new();
    let pages = std::fs::read_dir(scratch.path().join("pages/schemas")).expect("schemas");
    for page in pages {
        let name = page
            .expect("a file")
            .file_name()
            .to_string_lossy()
            .into_owned();
        let text = scratch.read(&format!("pages/schemas/{name}"));
        if std::fs::read_to_string(folder.join(&name)).ok().as_ref() != Some(&text) {
            different.push(name.clone());
            if is_update {
                std::fs::create_dir_all(&folder).expect("it can be made");
                std::fs::write(folder.join(&name), text).expect("it can be written");
            }
        }
        written.insert(name);
    }
    for path in files("docs/reference/schemas", &[".json"]) {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !written.contains(&name) {
            different.push(name);
            if is_update {
                std::fs::remove_file(root().join(&path)).expect("it is there");
            }
        }
    }
    let note = "docs/reference/schemas is stale: UPDATE_EXPECT=1 writes it anew";
    assert!(
        is_update || different.is_empty(),
        "{note}: {}",
        different.join(" ")
    );
}

/// Public for macros and for the library itself; not in Clojure, and nobody calls them by name.
const INTERNAL: &[&str] = &[
    "-append",
    "-divide",
    "-files-in",
    "-ordinal",
    "-text-reader",
    "add-method",
    "add-methods",
    "declare-methods",
    "for-step",
    "make-constructor",
    "new-instance",
    "new-multimethod",
    "new-protocol",
    "new-record",
    "new-reified",
    "new-type",
    "no-case",
    "protocol-method",
    "set-field-of",
];

#[test]
fn there_is_a_page_a_name() {
    let scratch = Scratch::new();
    scratch.run(&["reference", "pages"]).ok();
    let is_update = std::env::var_os("UPDATE_EXPECT").is_some();
    let kept: BTreeSet<String> = files("docs/reference/names", &[".md"])
        .iter()
        .map(|path| path.display().to_string().replace("docs/reference/", ""))
        .collect();
    let mut written = BTreeSet::new();
    let mut without_example = Vec::new();
    let mut different = Vec::new();
    let index = scratch.read("pages/names/README.md");
    let links = index.split("](").skip(1);
    let linked = links.map(|rest| format!("names/{}", rest.split(')').next().unwrap_or("")));
    for path in linked.chain(["names/README.md".to_owned()]) {
        let page = scratch.read(&format!("pages/{path}"));
        let title = page.lines().next().unwrap_or("").trim_start_matches("# ");
        let (namespace, name) = title.split_once('/').unwrap_or(("", title));
        let needs_example = namespace != "flow" && title != "Names" && !INTERNAL.contains(&name);
        if needs_example && !page.contains(";=> ") {
            without_example.push(title.to_owned());
        }
        let place = root().join("docs/reference").join(&path);
        if std::fs::read_to_string(&place).ok().as_deref() != Some(&*page) {
            different.push(path.clone());
            if is_update {
                std::fs::create_dir_all(place.parent().expect("a folder")).expect("it can be made");
                std::fs::write(&place, page).expect("it can be written");
            }
        }
        written.insert(path);
    }
    for stale in kept.difference(&written) {
        different.push(stale.clone());
        if is_update {
            std::fs::remove_file(root().join("docs/reference").join(stale)).expect("it is there");
        }
    }
    assert!(
        without_example.is_empty(),
        "no example: {}",
        without_example.join(" ")
    );
    let note = "docs/reference/names is stale: UPDATE_EXPECT=1 writes it anew";
    assert!(
        is_update || different.is_empty(),
        "{note}\n{}",
        different.join("\n")
    );
}

#[test]
fn the_list_of_errors_is_up_to_date() {
    const AREAS: &[(&str, &str)] = &[
        ("E01", "Reading"),
        ("E02", "Compiling"),
        ("E03", "Running the language"),
        ("E04", "Flow definitions and inputs"),
        ("E05", "Runs and their journal"),
        ("E06", "Stores, tables, values"),
        ("E07", "Steps"),
        ("E08", "Language models"),
        ("E09", "The command line"),
    ];
    let mut list = "# Errors\n\nEach error has a code; each code has a page.\n".to_owned();
    let pages = files("docs/errors", &[".md"]);
    for (prefix, area) in AREAS {
        list.push_str(&format!("\n## {area}\n\n"));
        for page in &pages {
            let code = page.file_stem().unwrap_or_default().to_string_lossy();
            if code.starts_with(prefix) {
                let page = text(page);
                let title = page.lines().next().unwrap_or("");
                let title = title.trim_start_matches(&format!("# {code}: "));
                list.push_str(&format!("- [{code}]({code}.md): {title}\n"));
            }
        }
    }
    expect_file!["../../docs/errors/README.md"].assert_eq(&list);
}
