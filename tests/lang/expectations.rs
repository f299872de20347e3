//! Thousands of expressions compared with the results of Clojure on the JVM. `expectations/generate.clj` describes the
//! origin of the stored results; `expectations/differences.edn` lists the differences and their reasons.

#![expect(
    clippy::disallowed_methods,
    reason = "the stored answers are files, read on several threads"
)]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use flowstone_lang::reader::read_all_data;
use flowstone_lang::session::Session;
use flowstone_lang::value::{PrintOptions, Signal, Value};
use flowstone_lang::vm::Vm;

use super::budget::Budget;

/// How often an expression is granted 20,000 instructions.
const REFILLS: u32 = 50;

/// As in `generate.clj`: the classes whose messages are compared.
const MESSAGE_MATTERS: &[&str] = &[
    "ExceptionInfo",
    "ArithmeticException",
    "Exception",
    "AssertionError",
    "Error",
];

#[test]
fn expressions_return_the_results_of_clojure() {
    let differences = differences();
    let files = stored();
    assert!(files.len() > 2, "the stored answers are missing");
    let checks: Vec<_> = files
        .into_iter()
        .map(|file| thread::spawn(move || check(&file)))
        .collect();
    let mut rows = 0;
    let mut differing: Vec<(String, String)> = Vec::new();
    for check in checks {
        let checked = check.join().expect("no check panics");
        rows += checked.rows;
        differing.extend(checked.differing);
    }
    let unlisted: Vec<&str> = differing
        .iter()
        .filter(|(expression, _)| !differences.contains_key(expression))
        .map(|(_, shown)| shown.as_str())
        .collect();
    let passing: Vec<&str> = differences
        .keys()
        .filter(|listed| {
            !differing
                .iter()
                .any(|(expression, _)| expression == *listed)
        })
        .map(String::as_str)
        .collect();
    assert!(
        unlisted.is_empty() && passing.is_empty(),
        "of {rows} expressions {} differ without a reason\n{}\n\n{} are listed as different and are not\n{}",
        unlisted.len(),
        unlisted.join("\n"),
        passing.len(),
        passing.join("\n")
    );
    assert!(
        differing.len() * 100 <= rows,
        "more than one in a hundred differs"
    );
}

/// The results of one file.
struct Checked {
    rows: usize,
    /// Each expression with another result, and how the difference is shown.
    differing: Vec<(String, String)>,
}

fn check(file: &Path) -> Checked {
    let text = fs::read_to_string(file).expect("a stored answer is readable");
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let budget = Budget::default();
    let session = Session::new();
    let mut vm = session.vm(Box::new(budget.clone()));
    let mut differing = Vec::new();
    let mut rows = 0;
    for line in text.lines() {
        let (expression, expected) = line.split_once('\t').expect("a tab follows the expression");
        budget.refills.set(REFILLS);
        budget.printed.borrow_mut().clear();
        let mut got = without_identities(&outcome(&session, &mut vm, expression));
        let printed = without_identities(&budget.printed.borrow());
        if !printed.is_empty() {
            got.push('\t');
            got.push_str(&shown(&mut vm, &Value::from(printed.as_str())).unwrap_or_default());
        }
        rows += 1;
        if got != expected {
            differing.push((
                expression.to_owned(),
                format!("{name}: {expression}\n  Clojure {expected}\n  here    {got}"),
            ));
        }
    }
    Checked { rows, differing }
}

fn outcome(session: &Session, vm: &mut Vm, expression: &str) -> String {
    let result = session
        .eval_text(vm, "<expectation>", expression)
        .and_then(|value| shown(vm, &value));
    match result {
        Ok(shown) => shown,
        Err(Signal::Stop(stop)) => format!("stopped: {stop}"),
        Err(Signal::Throw(exception)) => {
            let class = exception.class.0.name;
            // Known functions are checked when a form is analysed, before anything has run.
            let class = match exception.code {
                "E0206" => "ArityException",
                _ => class,
            };
            match &exception.message {
                Some(message) if MESSAGE_MATTERS.contains(&class) => {
                    format!("! {class}: {}", message.replace(['\n', '\t'], " "))
                }
                _ => format!("! {class}"),
            }
        }
    }
}

/// As in `generate.clj`: values printed with an identity become `#object`, generated symbols get the number 0, and all
/// is on one line.
fn without_identities(shown: &str) -> String {
    let shown = without_numbers(shown)
        .replace(['\n', '\r'], "⏎")
        .replace('\t', "⇥")
        .replace('\0', "␀");
    let mut rest = shown.as_str();
    let mut left = String::new();
    while let Some(at) = ["#object[", "#function["]
        .iter()
        .filter_map(|mark| rest.find(mark))
        .min()
    {
        let Some(end) = rest[at..].find(']') else {
            break;
        };
        left.push_str(&rest[..at]);
        left.push_str("#object");
        rest = &rest[at + end + 1..];
    }
    left + rest
}

fn without_numbers(shown: &str) -> String {
    let mut left = String::new();
    let mut rest = shown;
    while let Some(at) = rest.find("__") {
        let (before, after) = rest.split_at(at + 2);
        left.push_str(before);
        rest = after.trim_start_matches(|char: char| char.is_ascii_digit());
        if rest.len() < after.len() {
            left.push('0');
        }
    }
    left + rest
}

fn shown(vm: &mut Vm, value: &Value) -> Result<String, Signal> {
    let options = PrintOptions {
        length: Some(100),
        ..PrintOptions::READABLE
    };
    vm.print(value, options)
}

/// The expressions that are known to differ, with their reasons.
fn differences() -> HashMap<String, String> {
    let text = fs::read_to_string(folder().join("differences.edn")).expect("the list is readable");
    let groups = read_all_data(&text).expect("the list is EDN");
    let mut found = HashMap::new();
    for group in groups {
        let reason = group.get("reason").and_then(Value::as_str).unwrap_or("");
        assert!(
            reason.len() > 15,
            "a group of differences has no reason: {group:?}"
        );
        let Some(Value::Vector(expressions)) = group.get("expressions") else {
            panic!("a group of differences has no expressions: {reason}");
        };
        for expression in expressions.iter() {
            let expression = expression.as_str().expect("expressions are texts");
            found.insert(expression.to_owned(), reason.to_owned());
        }
    }
    found
}

fn stored() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder().join("stored"))
        .expect("there are stored answers")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "tsv"))
        .collect();
    files.sort();
    files
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lang/expectations")
}
