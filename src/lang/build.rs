//! Writes the index of the library: for each file of `stdlib/` its namespace and the range of each of its definitions.
//! The files are included unchanged; a definition is compiled when it is first used.

#![expect(
    clippy::disallowed_methods,
    reason = "this runs at build time; the rules are for the language"
)]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let folder =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../stdlib");
    println!("cargo::rerun-if-changed={}", folder.display());
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = Vec::new();
    find(&folder, &mut files);
    files.sort();
    let mut index = String::from("&[\n");
    let mut methods = std::collections::BTreeSet::new();
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let text = fs::read_to_string(file).expect("a file of the library is readable");
        write_source(&mut index, &folder, file, &text);
        if relative(&folder, file).starts_with("host") {
            methods.extend(methods_of_types(&text));
        }
    }
    index.push_str("]\n");
    let methods = format!("&{:?}\n", methods.into_iter().collect::<Vec<_>>());
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("methods.rs");
    fs::write(out, methods).expect("the folder for output is writable");
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("library.rs");
    fs::write(out, index).expect("the folder for output is writable");
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "clj") {
            files.push(path);
        }
    }
}

fn relative<'a>(folder: &Path, file: &'a Path) -> &'a Path {
    file.strip_prefix(folder)
        .expect("files are found in the folder")
}

fn write_source(index: &mut String, folder: &Path, file: &Path, text: &str) {
    let relative = relative(folder, file);
    let mut header = 0..0;
    let mut rows = String::new();
    for form in forms(text) {
        let names = names(&text[form.clone()]);
        if names.is_empty() && header.is_empty() {
            header = form;
            continue;
        }
        for name in names {
            let _ = writeln!(
                rows,
                "        Definition {{ name: {name:?}, start: {}, end: {} }},",
                form.start, form.end
            );
        }
    }
    // `(ns name ...)`, or `(in-ns 'name)` in the other files of a namespace.
    let namespace = words(&text[header.clone()])
        .nth(1)
        .expect("a file of the library starts with its namespace");
    let namespace = namespace.trim_start_matches('\'');
    let full = file.canonicalize().expect("a file that was read exists");
    let _ = writeln!(
        index,
        "    LibrarySource {{\n        namespace: {namespace:?},\n        file: {:?},\n        \
         text: include_str!({:?}),\n        header: ({}, {}),\n        definitions: &[\n{rows}        ],\n    }},",
        relative.to_string_lossy(),
        full.to_string_lossy(),
        header.start,
        header.end
    );
}

/// Returns the names of the methods that a file's types define: those whose first parameter is `this`.
fn methods_of_types(text: &str) -> Vec<String> {
    let found = text.match_indices(" [this").filter_map(|(at, _)| {
        let start = text[..at].rfind(|char: char| char.is_whitespace() || char == '(')?;
        let is_method = text.as_bytes()[start] == b'(';
        is_method.then(|| text[start + 1..at].to_owned())
    });
    found.filter(|name| !name.is_empty()).collect()
}

/// Returns the ranges of the top-level forms.
fn forms(text: &str) -> Vec<std::ops::Range<usize>> {
    let bytes = text.as_bytes();
    let mut forms = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'(' => {
                let end = end_of_form(bytes, at);
                forms.push(at..end);
                at = end;
            }
            b';' => at = end_of_line(bytes, at),
            _ => at += 1,
        }
    }
    forms
}

fn end_of_line(bytes: &[u8], at: usize) -> usize {
    bytes[at..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(bytes.len(), |length| at + length)
}

/// Returns the end of the form whose opening bracket is at `at`.
fn end_of_form(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b'"' => at = end_of_text(bytes, at),
            b';' => at = end_of_line(bytes, at),
            b'\\' => at += 1,
            _ => {}
        }
        at += 1;
    }
    panic!("a form of the library is not closed");
}

/// Returns the index of the closing quote.
fn end_of_text(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at
}

/// Returns the names that a form defines: `(defn name ...)`, or the name that a `(defmethod name ...)` extends.
fn names(form: &str) -> Vec<String> {
    let mut words = words(form);
    let head = words.next().unwrap_or_default();
    if !(head.starts_with("def") || head.starts_with("extend")) {
        return Vec::new();
    }
    let Some(name) = words.next() else {
        return Vec::new();
    };
    match head.as_str() {
        // The macros of `host/mutable.clj` also define types; each type of the host names its package.
        _ if form.contains("^{:package ") => vec![format!("->{name}"), name],
        "defrecord" | "deftype" => {
            vec![format!("->{name}"), format!("map->{name}"), name]
        }
        "defprotocol" => {
            let methods = form[1..]
                .match_indices('(')
                .filter_map(|(at, _)| self::words(&form[at + 1..]).next());
            std::iter::once(name).chain(methods).collect()
        }
        // Implementations belong to the functions of their protocol.
        "extend-protocol" => {
            let methods = form
                .match_indices("\n  (")
                .filter_map(|(at, _)| self::words(&form[at + 3..]).next());
            std::iter::once(name).chain(methods).collect()
        }
        _ => vec![name],
    }
}

/// Returns the leading words inside a form, without metadata.
fn words(form: &str) -> impl Iterator<Item = String> {
    let bytes = form.as_bytes();
    let mut at = 1;
    std::iter::from_fn(move || {
        loop {
            while at < bytes.len() && (bytes[at].is_ascii_whitespace() || bytes[at] == b',') {
                at += 1;
            }
            if at < bytes.len() && bytes[at] == b'^' {
                at += 1;
                at = if bytes[at] == b'{' {
                    end_of_form(bytes, at)
                } else {
                    end_of_word(bytes, at)
                };
                continue;
            }
            let end = end_of_word(bytes, at);
            if end == at {
                return None;
            }
            let word = form[at..end].to_owned();
            at = end;
            return Some(word);
        }
    })
}

fn end_of_word(bytes: &[u8], at: usize) -> usize {
    bytes[at..]
        .iter()
        .position(|byte| byte.is_ascii_whitespace() || b"()[]{}\",;".contains(byte))
        .map_or(bytes.len(), |length| at + length)
}
