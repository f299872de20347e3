//! The generated pages match the code. `UPDATE_EXPECT=1` rewrites them.

use std::collections::BTreeSet;
use std::path::Path;

use expect_test::expect_file;

use crate::program::Scratch;
use crate::tidy::{files, root, text};

#[test]
fn reference_pages_are_up_to_date() {
    let scratch = Scratch::new();
    scratch.run(&["reference", "pages"]).ok();
    expect_file!["../../docs/reference/commands.md"].assert_eq(&scratch.read("pages/commands.md"));
    expect_file!["../../docs/reference/steps.md"].assert_eq(&scratch.read("pages/steps.md"));
    expect_file!["../../docs/reference/agents-openapi.json"]
        .assert_eq(&scratch.read("pages/agents-openapi.json"));
    expect_file!["../../docs/reference/openapi.json"]
        .assert_eq(&scratch.read("pages/openapi.json"));
}

#[test]
fn each_step_type_has_a_schema() {
    let scratch = Scratch::new();
    scratch.run(&["reference", "pages"]).ok();
    compare_folder(&scratch, "schemas");
}

/// Compares a folder of generated files with the one under `docs/reference`, or rewrites that one.
fn compare_folder(scratch: &Scratch, folder: &str) {
    let is_update = std::env::var_os("UPDATE_EXPECT").is_some();
    let kept_folder = root().join("docs/reference").join(folder);
    let written = names_in(&scratch.path().join("pages").join(folder));
    let kept = names_in(&kept_folder);
    let mut different: BTreeSet<&String> = kept.difference(&written).collect();
    if is_update {
        std::fs::create_dir_all(&kept_folder).expect("it can be made");
        for name in &different {
            std::fs::remove_file(kept_folder.join(name)).expect("it is there");
        }
    }
    for name in &written {
        let text = scratch.read(&format!("pages/{folder}/{name}"));
        let place = kept_folder.join(name);
        if std::fs::read_to_string(&place).ok().as_ref() != Some(&text) {
            different.insert(name);
            if is_update {
                std::fs::write(place, text).expect("it can be written");
            }
        }
    }
    assert!(
        is_update || different.is_empty(),
        "docs/reference/{folder} is stale, UPDATE_EXPECT=1 rewrites it: {different:?}"
    );
}

/// Returns the names of a folder's files; none if there is no such folder.
fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries
        .map(|entry| entry.expect("a file").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
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
    "branch-taken*",
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
fn each_namespace_has_a_page_and_each_name_an_example() {
    let scratch = Scratch::new();
    scratch.run(&["reference", "pages"]).ok();
    compare_folder(&scratch, "functions");
    let mut without_example = Vec::new();
    for file in names_in(&scratch.path().join("pages/functions")) {
        let page = scratch.read(&format!("pages/functions/{file}"));
        let namespace = file.trim_end_matches(".md");
        if ["README", "flow", "flow.graph"].contains(&namespace) {
            continue;
        }
        for entry in page.split("\n## ").skip(1) {
            let name = entry.lines().next().unwrap_or("");
            if !INTERNAL.contains(&name) && !entry.contains("\n;=> ") {
                without_example.push(format!("{namespace}/{name}"));
            }
        }
    }
    assert!(without_example.is_empty(), "{without_example:?}");
}

#[test]
fn the_list_of_errors_is_up_to_date() {
    const AREAS: &[(&[&str], &str)] = &[
        (&["E01"], "Reading"),
        (&["E02"], "Compiling"),
        (&["E03"], "Running the language"),
        (&["E04"], "Flow definitions and inputs"),
        (&["E05"], "Runs and their journal"),
        (&["E06"], "Stores, tables, values"),
        (&["E07"], "Steps"),
        (&["E08"], "Language models"),
        (&["E09"], "The command line"),
        (&["E10", "E11"], "The server"),
        (&["E120", "E121", "E122"], "Behaviour trees"),
        (&["E123", "E124", "E125"], "Graph agents"),
        (
            &["E126", "E127", "E128", "E129", "E130", "E131", "E132"],
            "Agents and the agents API",
        ),
        (&["E14"], "The registry and installations"),
        (&["E151", "E152", "E153", "E154"], "The build kit"),
        (&["E146", "E147", "E148"], "Databases, SSH, mail"),
        (&["E149", "E150"], "Checks and imports"),
        (&["E155", "E157", "E159"], "Prompt, editors, tests"),
        (&["E16"], "Shared code"),
    ];
    // The longest prefix decides.
    let area_of = |code: &str| {
        let rows = AREAS.iter().flat_map(|(prefixes, area)| {
            let prefixes = prefixes.iter().filter(|prefix| code.starts_with(**prefix));
            prefixes.map(move |prefix| (prefix.len(), *area))
        });
        rows.max().map(|(_, area)| area)
    };
    let pages: Vec<(String, String)> = files("docs/errors", &[".md"])
        .iter()
        .filter(|page| !page.ends_with("README.md"))
        .map(|page| {
            let code = page.file_stem().unwrap_or_default().to_string_lossy();
            let page = text(page);
            let title = page.lines().next().unwrap_or("");
            let title = title.trim_start_matches(&format!("# {code}: "));
            (code.clone().into_owned(), title.to_owned())
        })
        .collect();
    let without_area: Vec<_> = pages
        .iter()
        .filter(|(code, _)| area_of(code).is_none())
        .collect();
    assert!(without_area.is_empty(), "{without_area:?}");
    let mut list = "# Errors\n\nEach error has a code; each code has a page.\n".to_owned();
    for (_, area) in AREAS {
        list.push_str(&format!("\n## {area}\n\n"));
        for (code, title) in pages
            .iter()
            .filter(|(code, _)| area_of(code) == Some(*area))
        {
            list.push_str(&format!("- [{code}]({code}.md): {title}\n"));
        }
    }
    expect_file!["../../docs/errors/README.md"].assert_eq(&list);
}
