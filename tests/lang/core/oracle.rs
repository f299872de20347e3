//! Expressions with the output of Clojure 1.11: each on one line, followed by `=>` and the result.

use super::Runner;

fn check(cases: &str) {
    let mut runner = Runner::new();
    let mut problems = Vec::new();
    let mut lines = cases
        .lines()
        .filter(|line| !line.starts_with(';') && !line.is_empty());
    while let (Some(expression), Some(expected)) = (lines.next(), lines.next()) {
        let expected = expected.strip_prefix("=> ").expect("a result follows");
        let got = runner.run(expression);
        if got != expected {
            problems.push(format!(
                "{expression}\n  Clojure {expected}\n  gives   {got}"
            ));
        }
    }
    assert!(
        problems.is_empty(),
        "{} differ\n{}",
        problems.len(),
        problems.join("\n")
    );
}

#[test]
fn arrays_and_small_numbers_are_as_in_clojure() {
    check(include_str!("arrays.txt"));
}

#[test]
fn matchers_are_as_in_java() {
    check(include_str!("matchers.txt"));
}

#[test]
fn types_and_class_names_are_as_in_clojure() {
    check(include_str!("types.txt"));
}

#[test]
fn collections_and_sequences_are_as_in_clojure() {
    check(include_str!("sequences.txt"));
}

#[test]
fn pretty_printing_is_as_in_clojure() {
    check(include_str!("pprint.txt"));
}

#[test]
fn generated_expressions_return_the_results_of_clojure() {
    check(include_str!("generated.txt"));
}

#[test]
fn streams_and_printing_by_the_program_are_as_in_clojure() {
    check(include_str!("streams.txt"));
}

#[test]
fn protocols_records_and_their_types_are_as_in_clojure() {
    check(include_str!("protocols.txt"));
}

#[test]
fn names_of_the_host_and_small_functions_are_as_in_clojure() {
    check(include_str!("names.txt"));
}

#[test]
fn host_classes_behave_as_in_java() {
    check(include_str!("host.txt"));
}

#[test]
fn dates_and_times_are_those_of_java_time() {
    check(include_str!("time.txt"));
}
