//! The page on architecture names tests and files that exist.

use super::tree::{files, none, root, text};

const PAGE: &str = "docs/architecture.md";

#[test]
fn each_test_on_the_page_exists() {
    let page = text(PAGE);
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut problems = Vec::new();
    let mut count = 0;
    for (at, mark) in page.match_indices("` in `") {
        let file = page[at + mark.len()..].split('`').next().unwrap_or("");
        if !file.starts_with("tests/") && !file.starts_with("src/") {
            continue;
        }
        if !root().join(file).is_file() {
            problems.push(format!("{PAGE}: no file {file}"));
            continue;
        }
        let code = text(file);
        for name in names_before(&page[..at]) {
            count += 1;
            if !code.contains(&format!("fn {name}(")) {
                problems.push(format!("{PAGE}: no test {name} in {file}"));
            }
        }
    }
    assert!(count > 60, "{count} tests");
    none(problems);
}

#[test]
fn each_file_on_the_page_exists() {
    let page = text(PAGE);
    let known = files("", &[".rs"]);
    let quoted = page.split('`').skip(1).step_by(2);
    let problems = quoted
        .filter(|name| name.ends_with(".rs") && !name.contains(char::is_whitespace))
        .filter(|name| !known.iter().any(|path| path.ends_with(name)))
        .map(|name| format!("{PAGE}: no file {name}"))
        .collect();
    none(problems);
}

/// Returns the names at the end of a text such as ``Held by `a`, `b` and `c``, the last one first.
fn names_before(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = Some(text);
    while let Some((head, name)) = rest.and_then(|rest| rest.rsplit_once('`')) {
        if name.contains('/') {
            break;
        }
        names.push(name);
        let head = head.strip_suffix(" and ").or(head.strip_suffix(", "));
        rest = head.and_then(|head| head.strip_suffix('`'));
    }
    names
}
