//! Each error code has a page, and each page a code.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::tree::{files, none, text};

#[test]
fn codes_and_pages_agree() {
    let used = used_codes();
    let pages: BTreeSet<String> = pages().into_keys().collect();
    let without_page = used
        .iter()
        .filter(|(code, _)| !pages.contains(*code))
        .map(|(code, place)| format!("{place}: docs/errors/{code}.md is missing"));
    let unused = pages
        .iter()
        .filter(|code| !used.contains_key(*code))
        .map(|code| format!("docs/errors/{code}.md: no code says {code}"));
    none(without_page.chain(unused).collect());
}

#[test]
fn pages_begin_with_their_code() {
    let problems = pages()
        .into_iter()
        .filter(|(code, text)| !text.starts_with(&format!("# {code}: ")))
        .map(|(code, _)| format!("docs/errors/{code}.md: the first line is not `# {code}: ...`"))
        .collect();
    none(problems);
}

/// Decisions are made by constants and types: a code or a message that is written out in two places may be changed in
/// one of them.
#[test]
fn codes_and_messages_are_not_compared_as_text() {
    let is_code = |text: &str| {
        let digits = text.strip_prefix("\"E").unwrap_or("");
        let (digits, rest) = digits.split_at(digits.len().min(4));
        digits.len() == 4 && digits.bytes().all(|it| it.is_ascii_digit()) && rest.starts_with('"')
    };
    let mut problems = Vec::new();
    for path in files("src", &[".rs"])
        .into_iter()
        .chain(files("repl", &[".rs"]))
    {
        let text = text(&path);
        let code = text.split("\n#[cfg(test)]").next().unwrap_or("");
        for (idx, line) in code.lines().enumerate() {
            let line = line.trim();
            let compared = ["== ", "!= "].iter().any(|operator| {
                line.match_indices(operator)
                    .any(|(at, _)| is_code(&line[at + operator.len()..]))
            });
            let matched = line.find(" =>").is_some_and(|at| {
                let pattern = &line[..at];
                pattern
                    .match_indices('"')
                    .any(|(at, _)| is_code(&pattern[at..]))
            });
            let searched = [
                "starts_with(\"E0",
                "strip_prefix(\"E0",
                "starts_with(\"E1",
                "strip_prefix(\"E1",
            ]
            .iter()
            .any(|call| line.contains(call));
            let read = [
                ".message.starts_with(",
                ".message.strip_prefix(",
                ".message.contains(",
            ]
            .iter()
            .any(|call| line.contains(call));
            if compared || matched || searched || read {
                problems.push(format!("{}:{}: {line}", path.display(), idx + 1));
            }
        }
    }
    none(problems);
}

/// Returns the pages by their code.
fn pages() -> BTreeMap<String, String> {
    files("docs/errors", &[".md"])
        .into_iter()
        .filter(|path| !path.ends_with("README.md"))
        .filter_map(|path| {
            let code = path.file_stem()?.to_string_lossy().into_owned();
            Some((code, text(&path)))
        })
        .collect()
}

/// Returns the codes in string literals of the sources, each with one place.
fn used_codes() -> BTreeMap<String, String> {
    let mut codes = BTreeMap::new();
    let sources = files("src", &[".rs"])
        .into_iter()
        .chain(files("repl", &[".rs"]))
        .chain(files("stdlib", &[".clj"]));
    for path in sources {
        let text = text(&path);
        for (at, _) in text.match_indices("\"E") {
            let code = text.get(at + 1..at + 6).unwrap_or("");
            let ends = code.len() == 5 && text.get(at + 6..at + 7) == Some("\"");
            if ends && code[1..].bytes().all(|byte| byte.is_ascii_digit()) {
                codes.insert(code.to_owned(), path.display().to_string());
            }
        }
    }
    codes
}
