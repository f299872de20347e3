//! Runs every example of a function.

use flowstone_lang::library;
use flowstone_lang::value::{Example, Symbol, Value};

use super::Runner;

#[test]
fn natives_return_the_results_of_their_examples() {
    let mut runner = Runner::new();
    let mut problems = Vec::new();
    for (name, examples) in natives(&runner) {
        for (expression, expected) in examples {
            runner.in_user();
            let got = runner.run(expression);
            if got != *expected {
                problems.push(format!(
                    "{name}: {expression}\n  says {expected}\n  gives {got}"
                ));
            }
        }
    }
    assert!(
        problems.is_empty(),
        "{} wrong\n{}",
        problems.len(),
        problems.join("\n")
    );
}

#[test]
fn the_library_returns_the_results_of_its_examples() {
    let mut runner = Runner::new();
    let mut problems = Vec::new();
    // Functions of `flow` need a run, and those of `flow.arguments` the namespace `json` of flows: the tests of the engine and
    // `tests/cli/graph_arguments.rs` run their examples.
    let alone = library::SOURCES
        .iter()
        .filter(|source| !["flow", "flow.arguments", "flow.graph"].contains(&source.namespace));
    for source in alone {
        for definition in source.definitions {
            let (namespace, name) = (source.namespace, definition.name);
            runner.in_user();
            let wrong = runner.run(&format!(
                "(do (require '{namespace}) (in-ns '{namespace})
                   (let [pairs (:examples (meta (var {namespace}/{name})))
                         pairs (if (seq? pairs) (second pairs) pairs)]
                     (vec (for [[form expected] pairs
                                :let [got (try (eval form) (catch Throwable e e))]
                                :when (not= got expected)]
                            [form expected got]))))"
            ));
            if wrong != "[]" {
                problems.push(format!("{namespace}/{name}: {wrong}"));
            }
        }
    }
    assert!(
        problems.is_empty(),
        "{} wrong\n{}",
        problems.len(),
        problems.join("\n")
    );
}

/// Returns the list of examples with their actual results.
fn with_results(list: &str) -> String {
    let mut runner = Runner::new();
    let mut out = String::new();
    let mut is_entry = false;
    for line in list.lines() {
        is_entry |= line.starts_with("# ");
        let is_said = [";=> ", "usage: ", "doc: ", "# "]
            .iter()
            .any(|start| line.starts_with(start));
        if !line.starts_with(";=>") {
            out.push_str(line);
            out.push('\n');
        }
        if is_entry && !is_said && !line.is_empty() {
            runner.in_user();
            let got = runner.run(line).replace('\n', " ");
            out.push_str(&format!(";=> {got}\n"));
        }
    }
    out
}

#[test]
fn listed_examples_return_the_listed_results() {
    let list = include_str!("../../../stdlib/examples.txt");
    expect_test::expect_file!["../../../stdlib/examples.txt"].assert_eq(&with_results(list));
}

impl Runner {
    fn in_user(&self) {
        let world = self.session.world();
        let user = world.namespace(Symbol::new("user"));
        world.current.replace(user);
    }
}

/// Returns all natives, by name.
fn natives(runner: &Runner) -> Vec<(String, &'static [Example])> {
    let namespaces = runner.session.world().namespaces.borrow();
    let mut natives: Vec<_> = namespaces
        .values()
        .flat_map(|namespace| namespace.mappings())
        .filter_map(|(_, var)| match var.root() {
            Some(Value::Native(native)) => Some((var.qualified().to_string(), native.examples)),
            _ => None,
        })
        .collect();
    natives.sort_by(|left, right| left.0.cmp(&right.0));
    natives
}
