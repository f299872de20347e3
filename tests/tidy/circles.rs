//! No circle of modules: of the modules directly below a crate's root, none imports another that imports it, however
//! long the way, but for the circles that are listed here with their reasons.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{files, none, text};

/// The crates, by their folders.
const FOLDERS: &[&str] = &[
    "repl",
    "src/embed",
    "src/engine",
    "src/flow",
    "src/fronts",
    "src/lang",
    "src/model",
    "src/project",
    "src/steps",
    "src/stores",
    "src/surfaces",
];

/// The circles that exist: the folder of the crate, the modules, and what holds them together.
const CIRCLES: &[(&str, &[&str], &str)] = &[
    (
        "src/lang",
        &["value", "vm"],
        "a function is a value that holds code, and code holds values",
    ),
    (
        "src/steps",
        &["agent", "llm"],
        "an `:llm` step with tools is an agent, and an agent calls models",
    ),
    (
        "src/steps",
        &["connections", "http", "needs", "oauth"],
        "a request is made for a connection, and the token of a connection's login is obtained with requests",
    ),
    (
        "src/surfaces",
        &["cli", "nrepl"],
        "a client of nREPL has the functions of the prompt, and a command starts the server",
    ),
    (
        "src/surfaces",
        &["http", "kit", "mcp"],
        "`/mcp` and `/api/tools` are routes of the server; the tools of the workspace call its other routes, and those of the \
         build kit work with its engines",
    ),
];

/// The modules that each module of a crate imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn modules_import_one_another_in_no_circle_but_those_that_are_listed() {
    let mut problems = Vec::new();
    for folder in FOLDERS {
        let found = circles(&imports(folder));
        for circle in &found {
            let is_listed = CIRCLES
                .iter()
                .any(|(crate_, modules, _)| crate_ == folder && circle.iter().eq(modules.iter()));
            if !is_listed {
                problems.push(format!(
                    "{folder}: {} import one another",
                    circle.join(", ")
                ));
            }
        }
        for (crate_, modules, _) in CIRCLES {
            if crate_ == folder && !found.iter().any(|circle| circle.iter().eq(modules.iter())) {
                problems.push(format!(
                    "{folder}: {} are listed and are not a circle",
                    modules.join(", ")
                ));
            }
        }
    }
    none(problems);
}

#[test]
fn imports_are_found_in_each_form() {
    let names = |text: &str, prefix: &str| named(text, prefix).collect::<Vec<_>>().join(" ");
    let text = "use crate::{a, b::{c, d}, e::f};\nuse crate::g;\nlet h = crate::i::j();";
    assert_eq!(names(text, "crate::"), "a b e g i");
    assert_eq!(names("use super::k::{l, m};", "super::"), "k");
    assert_eq!(names("// crate::n\n$crate::o", "crate::"), "");
}

#[test]
fn a_circle_is_found_however_long_it_is() {
    let imports: Imports = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("e", "e")]
        .into_iter()
        .map(|(from, to)| (from.to_owned(), BTreeSet::from([to.to_owned()])))
        .collect();
    assert_eq!(circles(&imports), [["a", "b", "c"]]);
}

/// Returns which modules below a crate's root each of them imports.
fn imports(folder: &str) -> Imports {
    let paths = files(folder, &[".rs"]);
    let inside: Vec<(Vec<String>, String)> = paths
        .iter()
        .map(|path| {
            let below = path.strip_prefix(folder).expect("listed from there");
            let parts = below.with_extension("");
            let parts = parts.iter().map(|part| part.to_string_lossy().into_owned());
            (parts.collect(), text(path))
        })
        .filter(|(parts, _): &(Vec<String>, String)| {
            let is_apart = ["benches", "examples", "lib", "main", "tests"];
            !is_apart.contains(&parts[0].as_str())
                && parts.last().is_some_and(|last| last != "tests")
        })
        .collect();
    let modules: BTreeSet<&String> = inside.iter().map(|(parts, _)| &parts[0]).collect();
    let mut found = Imports::new();
    for (parts, text) in &inside {
        let text = text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        // A module at the root reaches its neighbours by `super`, too.
        let above = (parts.len() == 1).then(|| named(text, "super::"));
        let names = named(text, "crate::").chain(above.into_iter().flatten());
        let others = names.filter(|name| modules.contains(name) && *name != parts[0]);
        found.entry(parts[0].clone()).or_default().extend(others);
    }
    found
}

/// Returns the names that follow a prefix in code, also in braces.
fn named<'t>(text: &'t str, prefix: &'t str) -> impl Iterator<Item = String> + 't {
    let places = text.match_indices(prefix).filter(|(at, _)| {
        let line = text[..*at].rsplit('\n').next().unwrap_or_default();
        let is_whole =
            !line.ends_with(|before: char| before.is_alphanumeric() || "_:$".contains(before));
        is_whole && !line.trim_start().starts_with("//")
    });
    places.flat_map(move |(at, _)| {
        let rest = &text[at + prefix.len()..];
        match rest.strip_prefix('{') {
            Some(list) => of_list(list),
            None => vec![first(rest)],
        }
    })
}

/// Returns the first names of the items of a list in braces, up to its end.
fn of_list(list: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' | ',' if depth == 0 => {
                found.push(first(list[start..at].trim_start()));
                start = at + 1;
                if letter == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    found
}

/// Returns the name that a text begins with.
fn first(text: &str) -> String {
    text.chars()
        .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
        .collect()
}

/// Returns the circles, each with its modules sorted.
fn circles(imports: &Imports) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<String>> = imports
        .keys()
        .map(|from| (from, reachable(imports, from)))
        .collect();
    let mut found = BTreeSet::new();
    for (from, to) in &reached {
        let back = to.iter().filter(|other| {
            *other != *from && reached.get(*other).is_some_and(|to| to.contains(*from))
        });
        let mut circle: Vec<String> = back.cloned().collect();
        if !circle.is_empty() {
            circle.push((*from).clone());
            circle.sort();
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

/// Returns all modules that a module imports, directly or through others.
fn reachable(imports: &Imports, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(module) = open.pop() {
        for next in imports.get(&module).into_iter().flatten() {
            if found.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    found
}
