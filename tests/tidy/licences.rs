//! Dependencies keep to `deny.toml`: allowed licences, one registry, one version of each crate but for those that are listed.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value as Json;

use super::tree::{none, root, text};

#[test]
fn each_crate_has_one_version_but_those_that_are_listed() {
    let lock = text("Cargo.lock");
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let name = field(package, "name").expect("a package has a name");
        let version = field(package, "version").expect("a package has a version");
        versions.entry(name).or_default().insert(version);
    }
    let deny = text("deny.toml");
    let listed: BTreeSet<(&str, &str)> = deny
        .lines()
        .filter_map(|line| line.trim().strip_prefix("{ name = \""))
        .map(|rest| {
            let parts: Vec<&str> = rest.split('"').collect();
            (parts[0], parts[2])
        })
        .collect();
    let mut problems = Vec::new();
    for (name, versions) in &versions {
        let kept = versions
            .iter()
            .filter(|version| !listed.contains(&(*name, **version)))
            .count();
        if versions.len() > 1 && kept > 1 {
            problems.push(format!("{name} has the versions {versions:?}"));
        }
    }
    for (name, version) in listed {
        let is_needed = versions
            .get(name)
            .is_some_and(|versions| versions.len() > 1 && versions.contains(version));
        if !is_needed {
            problems.push(format!(
                "deny.toml lists {name} {version}, which is not a second version"
            ));
        }
    }
    none(problems);
}

#[test]
fn crates_come_from_the_registry() {
    let lock = text("Cargo.lock");
    let sources = lock
        .lines()
        .filter_map(|line| line.strip_prefix("source = "));
    let others: Vec<String> = sources
        .filter(|source| !source.contains("github.com/rust-lang/crates.io-index"))
        .map(str::to_owned)
        .collect();
    none(others);
}

#[test]
fn licences_are_allowed() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(root())
        .output()
        .expect("cargo can be started");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Json = serde_json::from_slice(&output.stdout).expect("the output is JSON");
    let deny = text("deny.toml");
    let list = deny
        .split_once("allow = [")
        .and_then(|(_, rest)| rest.split_once("\n]"))
        .map_or("", |(list, _)| list);
    let allowed: BTreeSet<&str> = list.split('"').skip(1).step_by(2).collect();
    let packages = metadata["packages"].as_array().expect("packages");
    let problems = packages
        .iter()
        .filter(|package| {
            let licence = package["license"].as_str().unwrap_or("");
            !is_allowed(licence, &allowed)
        })
        .map(|package| format!("{}: {}", package["name"], package["license"]))
        .collect();
    none(problems);
}

/// Decides about an SPDX expression: of `OR` (older: `/`) one side is enough, of `AND` both are needed. A licence `or later`
/// is allowed where the licence itself is.
fn is_allowed(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let expression = expression.replace(" / ", " OR ").replace('/', " OR ");
    expression.split(" AND ").all(|part| {
        let part = part.trim().trim_start_matches('(').trim_end_matches(')');
        part.split(" OR ")
            .any(|licence| allowed.contains(licence.trim().trim_end_matches('+')))
    })
}

/// Returns the value of a line such as `name = "value"`.
fn field<'text>(package: &'text str, name: &str) -> Option<&'text str> {
    package
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""))
        .map(|rest| rest.trim_end_matches('"'))
}
