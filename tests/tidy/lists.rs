//! Lists are explicit and sorted: a table of contents that merges well.

use std::path::Path;

use super::tree::{files, none, root, text};

/// Lists that are checked: the file, or a folder of files, and how the list begins.
const LISTS: &[(&str, &str)] = &[
    ("Cargo.toml", "members = ["),
    ("src/lang/core", "const FNS: &[Native] = &["),
    ("src/steps/lib.rs", "-> Vec<Box<dyn Step>> {\n    vec!["),
    ("src/steps/llm.rs", "PROVIDERS: &["),
];

#[test]
fn lists_are_sorted() {
    let mut problems = Vec::new();
    for (place, start) in LISTS {
        let places = match Path::new(place).extension() {
            Some(_) => vec![place.into()],
            None => files(place, &[".rs"]),
        };
        let mut is_found = false;
        for path in places.into_iter().filter(|path| root().join(path).exists()) {
            let text = text(&path);
            let Some((_, after)) = text.split_once(start) else {
                continue;
            };
            is_found = true;
            // Rows that stand in the list itself, not as constants below it, are in the order of their subject.
            if after.trim_start().starts_with("Native {") {
                continue;
            }
            let entries = entries(after.split(']').next().unwrap_or(""));
            // Plainly, or as the names stand in the language: `pr-str` before `print`.
            let key = |entry: &str| entry.replace('_', "-");
            let unsorted = entries
                .windows(2)
                .find(|pair| pair[0] > pair[1] && key(&pair[0]) > key(&pair[1]));
            if let Some(pair) = unsorted {
                problems.push(format!(
                    "{}: `{}` stands after `{}`",
                    path.display(),
                    pair[1],
                    pair[0]
                ));
            }
        }
        if !is_found {
            problems.push(format!("{place}: no list begins with `{start}`"));
        }
    }
    none(problems);
}

#[test]
fn each_kind_of_step_is_listed() {
    let list = text("src/steps/lib.rs");
    let missing = files("src/steps", &[".rs"])
        .into_iter()
        .filter(|path| path.components().count() == 3 && !path.ends_with("lib.rs"))
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .filter(|name| !list.contains(&format!("mod {name};")))
        .map(|name| format!("src/steps/lib.rs does not mention {name}"))
        .collect();
    none(missing);
}

/// A step type that is in no list is no step type, and nothing else would notice.
#[test]
fn each_step_type_is_offered() {
    let lists = [
        ("src/steps", "src/steps/lib.rs", "fn all()"),
        ("src/project", "src/project/lib.rs", "fn steps()"),
        ("src/engine", "src/engine/open.rs", "fn builtin()"),
    ];
    let mut problems = Vec::new();
    for (folder, file, list) in lists {
        let text = text(file);
        let (_, list) = text.split_once(list).expect("the list is there");
        let (list, _) = list.split_once("\n}").expect("it ends");
        for path in files(folder, &[".rs"]) {
            let code = super::tree::text(&path);
            let (code, _) = code.split_once("#[cfg(test)]").unwrap_or((&code, ""));
            let types = code
                .lines()
                .filter_map(|line| line.strip_prefix("impl Step for "));
            for name in types.filter_map(|line| line.split_whitespace().next()) {
                // `Watched` wraps another type in crash tests.
                if name != "Watched" && !list.contains(name) {
                    let path = path.display();
                    problems.push(format!("{path}: `{name}` is not in the list of {file}"));
                }
            }
        }
    }
    none(problems);
}

/// Returns what stands between the commas, without comments.
fn entries(list: &str) -> Vec<String> {
    list.lines()
        .map(|line| line.split("//").next().unwrap_or(""))
        .collect::<String>()
        .split(',')
        .map(|entry| entry.trim().trim_matches('"').to_owned())
        .filter(|entry| !entry.is_empty())
        .collect()
}
