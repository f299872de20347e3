//! Sizes of files, and what must not stand in them.

use super::tree::{files, none, root, text};

const MAX_LINES: usize = 800;

const TEXT: &[&str] = &[
    ".clj", ".edn", ".json", ".md", ".rs", ".toml", ".yml", "/run", "run",
];

#[test]
fn files_are_of_moderate_size() {
    let problems = files("", &[".rs", ".clj", ".edn"])
        .into_iter()
        .map(|path| (text(&path).lines().count(), path))
        .filter(|(lines, _)| *lines > MAX_LINES)
        .map(|(lines, path)| format!("{}: {lines} lines, at most {MAX_LINES}", path.display()))
        .collect();
    none(problems);
}

#[test]
fn modules_say_what_they_are_for() {
    let problems = ["src", "repl", "benches"]
        .iter()
        .flat_map(|folder| files(folder, &[".rs"]))
        .filter(|path| !text(path).starts_with("//!"))
        .map(|path| format!("{}: does not open with `//!`", path.display()))
        .collect();
    none(problems);
}

#[test]
fn no_file_names_a_place_on_one_machine() {
    // Put together here, so that this file does not name them.
    let places = ["work", "root", "home", "Users"].map(|folder| format!("/{folder}/"));
    let scratch = ["wt", "target-"].map(|name| format!("/{}/{name}", "tmp"));
    let mut problems = Vec::new();
    for path in files("", TEXT) {
        let text = text(&path);
        for (idx, line) in text.lines().enumerate() {
            for place in places.iter().chain(&scratch) {
                if names(line, place) {
                    problems.push(format!("{}:{}: {}", path.display(), idx + 1, line.trim()));
                }
            }
        }
    }
    none(problems);
}

#[test]
fn the_licence_is_named_everywhere() {
    assert!(root().join("LICENSE").is_file());
    let problems = files("", &["Cargo.toml"])
        .into_iter()
        .filter(|path| !text(path).contains("license"))
        .map(|path| format!("{}: no licence", path.display()))
        .collect();
    none(problems);
}

/// Tells whether an absolute path begins with `place` here.
fn names(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|before| before.is_alphanumeric() || "./_-{}*~".contains(before))
    })
}
