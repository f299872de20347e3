//! Each promise of the page on security is held by a test that exists.

use super::tree::{none, root, text};

#[test]
fn each_promise_names_a_test_that_exists() {
    let page = text("docs/security.md");
    let promised = page
        .split_once("## What is promised")
        .and_then(|(_, rest)| rest.split_once("## What is not promised"))
        .map_or("", |(promised, _)| promised);
    let rows: Vec<&str> = promised
        .lines()
        .filter(|line| line.starts_with("| ") && *line != "| promise | test |")
        .collect();
    assert!(rows.len() > 20, "{} promises", rows.len());
    let problems = rows.iter().filter_map(|row| misfit(row)).collect();
    none(problems);
}

/// Says what is wrong with a row such as ``| promise | `test` in `file` |``.
fn misfit(row: &str) -> Option<String> {
    let (_, last) = row.trim_end_matches([' ', '|']).rsplit_once("| ")?;
    let mut parts = last.split('`').skip(1).step_by(2);
    let (Some(test), Some(file)) = (parts.next(), parts.next()) else {
        return Some(format!("no test and file: {row}"));
    };
    if !root().join(file).is_file() {
        return Some(format!("no file {file}: {row}"));
    }
    let text = text(file);
    let is_there = text
        .split("#[test]\n")
        .skip(1)
        .filter_map(|rest| rest.lines().find(|line| line.contains("fn ")))
        .any(|line| line.contains(&format!("fn {test}()")));
    (!is_there).then(|| format!("no test {test} in {file}"))
}

#[test]
fn the_page_is_linked() {
    for page in ["README.md", "docs/README.md"] {
        assert!(text(page).contains("security.md"), "{page}");
    }
}
