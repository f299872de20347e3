//! Imports go one way: app, then surfaces, then project, then engine and steps, then flow, then model, then lang. Stores
//! need the model alone, and steps know nothing of the engine.

use super::tree::{files, none, text};

/// Each crate, its folder, and the workspace crates that it may use.
const CRATES: &[(&str, &str, &[&str])] = &[
    ("embed", "src/embed", &["lang"]),
    ("engine", "src/engine", &["flow", "lang", "model"]),
    ("flow", "src/flow", &["lang", "model"]),
    (
        "fronts",
        "src/fronts",
        &["engine", "flow", "lang", "model", "project"],
    ),
    ("lang", "src/lang", &[]),
    ("model", "src/model", &["lang"]),
    (
        "project",
        "src/project",
        &["engine", "flow", "lang", "model", "steps"],
    ),
    ("repl", "repl", &["engine", "lang"]),
    ("steps", "src/steps", &["flow", "lang", "model"]),
    ("stores", "src/stores", &["lang", "model"]),
    (
        "surfaces",
        "src/surfaces",
        &["engine", "flow", "fronts", "lang", "project"],
    ),
];

/// Parts of the language, and the parts that they must not import.
const PARTS: &[(&str, &[&str])] = &[
    ("compiler", &["core", "session"]),
    ("reader", &["compiler", "core", "fiber", "session", "vm"]),
    ("value", &["compiler", "core", "fiber", "reader", "session"]),
    ("vm", &["compiler", "core", "reader", "session"]),
];

#[test]
fn manifests_name_only_the_layers_below() {
    let mut problems = Vec::new();
    for (name, folder, allowed) in CRATES {
        let manifest = text(format!("{folder}/Cargo.toml"));
        let dependencies = section(&manifest, "[dependencies]");
        for other in dependencies.lines().filter_map(ours) {
            if !allowed.contains(&other) {
                problems.push(format!("{folder}/Cargo.toml: {name} must not use {other}"));
            }
        }
    }
    let model = text("src/model/Cargo.toml");
    if section(&model, "[dependencies]").contains("tokio") {
        problems.push("src/model/Cargo.toml: the model waits for nothing".to_owned());
    }
    none(problems);
}

#[test]
fn code_names_only_the_layers_below() {
    let mut problems = Vec::new();
    for (name, folder, allowed) in CRATES {
        for path in files(folder, &[".rs"]) {
            for (idx, line) in code_lines(&text(&path)) {
                for (other, _, _) in CRATES {
                    let used = line.contains(&format!("flowstone_{other}::"));
                    if used && other != name && !allowed.contains(other) {
                        problems.push(format!("{}:{idx}: {name} uses {other}; a crate between them may hand on what you need", path.display()));
                    }
                }
            }
        }
    }
    none(problems);
}

/// What the code of a crate must not name.
const APART: &[(&str, &[&str])] = &[
    (
        "src/flow",
        &[
            "std::fs",
            "std::process",
            "TcpListener",
            "TcpStream",
            "ToSocketAddrs",
            "UdpSocket",
            "tokio::fs",
            "tokio::net",
        ],
    ),
    (
        "src/lang",
        &["std::fs", "std::net", "std::process", "tokio"],
    ),
];

#[test]
fn flows_and_the_language_reach_no_files_or_sockets() {
    let mut problems = Vec::new();
    for (folder, apart) in APART {
        for path in files(folder, &[".rs"]) {
            for (idx, line) in code_lines(&text(&path)) {
                for name in apart.iter().filter(|name| line.contains(**name)) {
                    problems.push(format!("{}:{idx}: names {name}", path.display()));
                }
            }
        }
    }
    none(problems);
}

#[test]
fn parts_of_the_language_import_downwards() {
    let mut problems = Vec::new();
    for path in files("src/lang", &[".rs"]) {
        let inside = path.strip_prefix("src/lang").expect("listed from there");
        let part = inside.iter().next().expect("a file has a name");
        let part = part.to_string_lossy();
        let part = part.trim_end_matches(".rs");
        let Some((_, forbidden)) = PARTS.iter().find(|(name, _)| *name == part) else {
            continue;
        };
        for (idx, line) in code_lines(&text(&path)) {
            for other in *forbidden {
                if mentions(line, &format!("crate::{other}")) {
                    problems.push(format!("{}:{idx}: {part} imports {other}", path.display()));
                }
            }
        }
    }
    none(problems);
}

/// Returns the lines that are not comments, with their numbers.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(idx, line)| (idx + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Tells whether a path occurs in a line, not as the start of a longer name.
fn mentions(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let next = line[at + path.len()..].chars().next();
        !next.is_some_and(|next| next.is_alphanumeric() || next == '_')
    })
}

fn section<'a>(manifest: &'a str, title: &str) -> &'a str {
    let after = manifest.split_once(title).map_or("", |(_, after)| after);
    after.split("\n[").next().unwrap_or("")
}

/// Returns `x` of a line `flowstone-x.workspace = true`.
fn ours(line: &str) -> Option<&str> {
    line.strip_prefix("flowstone-")?.split(['.', ' ']).next()
}
