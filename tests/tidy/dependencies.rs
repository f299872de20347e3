//! A dependency that nothing uses is taken out.

use super::tree::{files, none, text};

const CRATES: &[(&str, &[&str])] = &[
    ("", &["src/app.rs", "src/lib.rs", "src/main.rs"]),
    ("repl", &["repl"]),
    ("src/engine", &["src/engine"]),
    ("src/lang", &["src/lang"]),
    ("src/steps", &["src/steps"]),
    ("src/stores", &["src/stores"]),
    ("src/surfaces", &["src/surfaces"]),
];

#[test]
fn every_dependency_is_used() {
    let mut problems = Vec::new();
    for (folder, sources) in CRATES {
        let manifest = text(format!("{folder}/Cargo.toml").trim_start_matches('/'));
        let code: String = sources
            .iter()
            .flat_map(|source| match source.ends_with(".rs") {
                true => vec![source.into()],
                false => files(source, &[".rs"]),
            })
            .map(text)
            .collect();
        for name in dependencies(&manifest) {
            let module = match name {
                "md-5" => "md5".to_owned(),
                _ => name.replace('-', "_"),
            };
            let used = [
                format!("{module}::"),
                format!("use {module} "),
                format!("use {module};"),
            ];
            if !used.iter().any(|used| code.contains(used)) {
                problems.push(format!("{folder}/Cargo.toml: nothing uses {name}"));
            }
        }
    }
    none(problems);
}

#[test]
fn every_version_is_used() {
    let table = text("Cargo.toml");
    let table = table.split("[workspace.lints").next().unwrap_or("");
    let manifests: String = files("", &["Cargo.toml"]).iter().map(text).collect();
    let names = table.lines().filter_map(|line| {
        let (name, rest) = line.split_once(" = ")?;
        let is_dependency = rest.starts_with('"') || rest.starts_with('{');
        (is_dependency
            && !["resolver", "version", "edition", "rust-version", "license"].contains(&name))
        .then_some(name)
    });
    let unused = names
        .filter(|name| {
            let forms = [
                format!("{name}.workspace = true"),
                format!("{name} = {{ workspace = true"),
            ];
            !forms.iter().any(|form| manifests.contains(form))
        })
        .map(|name| format!("Cargo.toml: no crate takes {name}"))
        .collect();
    none(unused);
}

fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let section = manifest
        .split_once("[dependencies]")
        .map_or("", |(_, after)| after);
    let section = section.split("\n[").next().unwrap_or("");
    section
        .lines()
        .filter_map(|line| line.split(['.', ' ']).next())
        .filter(|name| !name.is_empty())
}
