//! `flowstone test --update`: expectations are written back, and answers recorded again.

use crate::program::{Ran, Scratch};
use crate::server::{Answer, Server};

fn update(scratch: &Scratch, args: &[&str]) -> Ran {
    Ran::to_the_end(&mut scratch.command(&[&["test", "--update", "--quiet"], args].concat()))
}

#[test]
fn missed_expectations_are_written_into_their_file() {
    let scratch = Scratch::new();
    scratch.write(
        "a.edn",
        "{:slug :a
 :flow '(do (flow/step :kv :keep {:operation :set :key \"last\" :value (:n (flow/input))})
            {:n (* 2 (:n (flow/input)))})}",
    );
    let before = "; Cases of a.
{:expect {:n 2} ; for all
 :cases [{:name \"one\" :input {:n 1}}
         {:name \"two\" :input {:n 2} :expect {:n 3}, :steps [:old] ; two steps
          :values {\"last\" 0 \"other\" nil}}
         {:name \"skipped\" :skip \"later\" :input {:n 3}}
         {:name \"four\" :input {:n 4}}]}
";
    scratch.write("a_test.edn", before);
    let ran = update(&scratch, &["a.edn", "--filter", "one"]);
    assert_eq!((ran.code, &*scratch.read("a_test.edn")), (Some(0), before));
    let ran = update(&scratch, &["a.edn"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.err.contains("updated 4 expectations in a_test.edn"),
        "{ran:?}"
    );
    assert_eq!(
        scratch.read("a_test.edn"),
        "; Cases of a.
{:expect {:n 2} ; for all
 :cases [{:name \"one\" :input {:n 1}}
         {:name \"two\" :input {:n 2} :expect {:n 4}, :steps [:keep] ; two steps
          :values {\"last\" 2, \"other\" nil}}
         {:name \"skipped\" :skip \"later\" :input {:n 3}}
         {:name \"four\" :input {:n 4}
          :expect {:n 8}}]}
"
    );
}

#[test]
fn a_case_without_expectations_gets_the_result() {
    let scratch = Scratch::new();
    scratch.write("a.edn", "{:slug :a :flow '{:n (:n (flow/input))}}");
    scratch.write("a/test.edn", "{:input {:n 1}}\n");
    assert_eq!(update(&scratch, &["."]).code, Some(0));
    assert_eq!(
        scratch.read("a/test.edn"),
        "{:input {:n 1}\n :expect {:n 1}}\n"
    );
}

#[test]
fn a_failure_is_never_written_as_the_expectation() {
    let scratch = Scratch::new();
    scratch.write("a.edn", "{:slug :a :flow '(throw (ex-info \"no\" {}))}");
    scratch.write("a_test.edn", "{:expect 1}");
    let ran = update(&scratch, &["a.edn"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(scratch.read("a_test.edn"), "{:expect 1}");
    // Its message is, where a failure is expected.
    scratch.write("a_test.edn", "{:expect {:status :failed :error \"yes\"}}");
    let ran = update(&scratch, &["a.edn"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        scratch.read("a_test.edn"),
        "{:expect {:status :failed, :error \"no\"}}"
    );
}

#[test]
fn cases_that_are_not_edn_and_scores_are_refused() {
    let scratch = Scratch::new();
    scratch.write("a.edn", "{:slug :a :flow '1}");
    scratch.write("cases.json", "{\"expect\": 2}");
    let ran = update(&scratch, &["a.edn", "--case", "cases.json"]);
    assert!(ran.code == Some(1) && ran.err.contains("E1595"), "{ran:?}");
    assert_eq!(scratch.read("cases.json"), "{\"expect\": 2}");
    scratch.write("a_eval.edn", "{:flow \"a.edn\" :cases [] :scorers []}");
    let ran = update(&scratch, &["a_eval.edn"]);
    assert!(ran.code == Some(2) && ran.err.contains("E0926"), "{ran:?}");
    let ran = update(&scratch, &["a.edn", "--input", "1"]);
    assert!(
        ran.code == Some(2) && ran.err.contains("--input"),
        "{ran:?}"
    );
}

#[test]
fn answers_are_recorded_again_with_live() {
    let server =
        Server::start(|request, _| Answer::Json(format!("{{\"path\": \"{}\"}}", request.path)));
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{:allow {:net [\"127.0.0.1\"]}}");
    let flow = |path: &str| {
        format!(
            "{{:slug :a :flow '(:body (flow/step :http :page {{:url \"{}\"}}))}}",
            server.url(path)
        )
    };
    let cases = "{:cases [{:replay \"answers\" :expect {:path \"/old\"}}]}";
    scratch.write("a_test.edn", cases);
    scratch.write("a.edn", flow("/old"));
    assert_eq!(update(&scratch, &["a.edn", "--live"]).code, Some(0));
    assert_eq!(server.requests().len(), 1);
    scratch.write("a.edn", flow("/new"));
    // Without `--live`, nothing is sent.
    assert_eq!(update(&scratch, &["a.edn"]).code, Some(1));
    assert_eq!(server.requests().len(), 1);
    let ran = update(&scratch, &["a.edn", "--live"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(server.requests().len(), 2);
    assert_eq!(scratch.read("a_test.edn"), cases.replace("/old", "/new"));
    let ran = Ran::to_the_end(&mut scratch.command(&["test", "a.edn"]));
    assert_eq!((ran.code, server.requests().len()), (Some(0), 2), "{ran:?}");
    // Two cases that would replace one recording are refused.
    scratch.write(
        "a_test.edn",
        "{:replay \"answers\" :cases [{:name \"a\"} {:name \"b\"}]}",
    );
    let ran = update(&scratch, &["a.edn", "--live"]);
    assert!(ran.code == Some(2) && ran.err.contains("E1595"), "{ran:?}");
}
