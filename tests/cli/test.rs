//! `flowstone test`: trials, and a crash at every point of them.

use std::path::Path;

use serde_json::Value;

use crate::program::{Ran, Scratch};
use crate::tidy::{files, root};

/// Syncs cost nothing there, and a killed process does not need them.
const MEMORY: &str = "/dev/shm";

fn test(scratch: &Scratch, args: &[&str]) -> Ran {
    let mut command = scratch.command(&["test"]);
    command.args(args);
    if Path::new(MEMORY).is_dir() {
        command.env("TMPDIR", MEMORY);
    }
    Ran::to_the_end(&mut command)
}

/// Kills a flow everywhere and returns the object about it.
#[track_caller]
fn crash_everywhere(scratch: &Scratch, args: &[&str]) -> Value {
    let ran = test(scratch, &[args, &["--crash-everywhere", "--json"]].concat());
    let told = ran.json();
    assert_eq!(
        (ran.code, &told["ok"]),
        (Some(0), &Value::Bool(true)),
        "{told:#}"
    );
    let crashes = &told["crashes"];
    assert_eq!(crashes["killed"], crashes["resumed"], "{told:#}");
    // Around each commit there are two points; how many commits there are may differ by one or two.
    let killed = crashes["killed"].as_u64().expect("a number");
    let commits = crashes["commits"].as_u64().expect("a number");
    assert!(killed + 4 >= 2 * commits && commits >= 4, "{told:#}");
    told
}

/// Each flow in `flows/` survives a crash at each commit and at each effect, before and after it.
#[test]
fn every_flow_survives_every_crash() {
    let scratch = Scratch::new();
    for file in files("flows", &[""]) {
        let bytes = std::fs::read(root().join(&file)).expect("it is listed");
        scratch.write(&file.display().to_string(), bytes);
    }
    let mut flows = 0;
    for file in files("flows", &[".edn"]) {
        let is_flow = file.components().count() == 2;
        if is_flow {
            crash_everywhere(&scratch, &[&file.display().to_string()]);
            flows += 1;
        }
    }
    assert!(flows >= 4);
}

/// Writes of every kind, a retry, a sleep, a wait, an error that is caught, our own store.
const FLOW: &str = "(let [a (flow/step :http :pay {:url \"https://example.com/pay\" :method :post :json {:n 1}})
      n (:value (flow/step :kv :count {:operation :increment :key \"count\"}))
      b (flow/step :http :keyed {:url \"https://example.com/k\" :method :post :idempotency-key \"k1\"})
      slept (flow/step :sleep :night {:duration \"8h\"})
      d (try (flow/step :http :fails {:url \"https://example.com/f\" :method :post})
             (catch Exception e (:kind (ex-data e))))
      answer (flow/step :wait :approval {:timeout \"7d\"})
      m (:value (flow/step :kv :count {:operation :increment :key \"count\"}))]
  {:pay (:body a) :count [n m] :keyed (:body b) :fails d :answer (:action answer)})";

const MOCKS: &str = "{:pay {:status 200 :body \"paid\"}
 :keyed {:status 200 :body \"kept\"}
 :fails {:mock/error {:kind :denied :message \"no\"}}}";

#[test]
fn a_person_is_asked_about_effects_in_doubt() {
    let scratch = Scratch::new();
    scratch.write("flow.edn", FLOW);
    scratch.write("mocks.edn", MOCKS);
    let args = [
        "flow.edn",
        "--mock",
        "mocks.edn",
        "--answer",
        "approval={:action :approve}",
    ];
    let told = crash_everywhere(&scratch, &args);
    assert_eq!(
        told["result"],
        serde_json::json!({"pay": "paid", "count": [1, 2], "keyed": "kept", "fails": "denied", "answer": "approve"})
    );
    // Of two steps without a key, a crash leaves open before the effect, after it, and until the outcome is kept.
    let (asked, repeated) = (&told["crashes"]["in_doubt"], &told["crashes"]["repeated"]);
    assert!(asked.as_u64() >= Some(6), "{told:#}");
    assert!(repeated.as_u64() >= Some(3), "{told:#}");
}

#[test]
fn time_passes_at_once() {
    let scratch = Scratch::new();
    scratch.write(
        "flow.edn",
        "(let [begun (flow/now-ms)
               answer (flow/step :wait :nobody {:timeout \"7d\" :on-timeout :continue :default-value :none})
               _ (flow/step :sleep :long {:duration \"30d\"})]
           [answer (quot (- (flow/now-ms) begun) 86400000)])",
    );
    let told = test(&scratch, &["flow.edn", "--json"]).json();
    assert_eq!(told["result"], serde_json::json!(["none", 37]), "{told:#}");
    assert_eq!(told["ok"], true);
    // Nothing of it is kept.
    assert!(!scratch.path().join(".flowstone").exists());
}

#[test]
fn external_effects_need_a_mock() {
    let scratch = Scratch::new();
    scratch.write(
        "flow.edn",
        "(flow/step :http :pay {:url \"http://127.0.0.1:9/\" :method :post})",
    );
    let ran = test(&scratch, &["flow.edn", "--quiet"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("E0583") && ran.err.contains(":pay"),
        "{}",
        ran.err
    );
}

/// A temporary folder is the run's own; one of the project is somebody's.
#[test]
fn no_folder_of_the_project_is_written() {
    let scratch = Scratch::new();
    scratch.write("tree/a.txt", "a\n");
    let flow = |to: &str| {
        format!(
            "(:files (flow/step :files :out {{:op :materialize :source {{:type :dir :path \"tree\"}} {to}}}))"
        )
    };
    scratch.write("own.edn", flow(""));
    scratch.write("theirs.edn", flow(":to \"tree-copy\""));
    let ran = test(&scratch, &["own.edn"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let ran = test(&scratch, &["theirs.edn", "--quiet"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("E0583"), "{}", ran.err);
    assert!(!scratch.path().join("tree-copy").exists());
}

#[test]
fn an_answer_that_is_missing_is_named() {
    let scratch = Scratch::new();
    scratch.write(
        "flow.edn",
        "(flow/step :http :pay {:url \"https://example.com\" :method :post :on-error :checkpoint})",
    );
    scratch.write("mocks.edn", "{:pay {:mock/error {:message \"no\"}}}");
    let ran = test(&scratch, &["flow.edn", "--quiet", "--mock", "mocks.edn"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err.contains("E0581") && ran.err.contains("--answer 'pay="),
        "{}",
        ran.err
    );
    let ran = test(
        &scratch,
        &[
            "flow.edn",
            "--quiet",
            "--mock",
            "mocks.edn",
            "--answer",
            "pay={:action :use :value 3}",
            "--json",
        ],
    );
    assert_eq!(ran.json()["result"], 3, "{ran:?}");
}

#[test]
fn a_case_is_checked() {
    let scratch = Scratch::new();
    scratch.write("flow.edn", "1");
    scratch.write("flow/test.edn", "{:inputs {}}");
    let ran = test(&scratch, &["flow.edn"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("E0580") && ran.err.contains(":inputs"),
        "{}",
        ran.err
    );
    scratch.write("flow/test.edn", "{:expect 2}");
    let ran = test(&scratch, &["flow.edn", "--quiet"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err.contains("E0928") && ran.err.contains("expected 2"),
        "{}",
        ran.err
    );
    let ran = test(&scratch, &["flow.edn", "--answer", "approve"]);
    assert!(ran.code == Some(2) && ran.err.contains("E0926"), "{ran:?}");
}

/// One mock and one answer are misspelt, and one mock has more outcomes than the flow asks for.
#[test]
fn mocks_and_answers_that_no_step_uses_are_reported() {
    let scratch = Scratch::new();
    scratch.write(
        "flow.edn",
        "(let [a (flow/step :http :fetch {:url \"https://example.com/\"})
               b (flow/step :wait :ok {:timeout \"1d\" :on-timeout :continue :default-value {:action :none}})]
           [(:body a) (:action b)])",
    );
    let case = |text: &str| scratch.write("flow/test.edn", text);
    case(
        "{:mock {:fetsh {:body 1} :fetch {:mock/each [{:body 1} {:body 2}]} :http {:body 3}} :answers {:okk {} \"*\" {:action :approve}}}",
    );
    let expected = [
        "no step used the entry `:fetsh` of `:mock`",
        "the entry `:fetch` of `:mock` has 2 outcomes under `:mock/each`, and only 1 was used",
        "no wait used the entry `:okk` of `:answers`",
    ];
    let json = test(&scratch, &["flow.edn", "--json"]).json();
    assert_eq!(json["problems"], serde_json::json!(expected), "{json:#}");
    let ran = test(&scratch, &["flow.edn", "--quiet"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let all = expected.iter().copied();
    for expected in all.chain(["E0952", "did you mean `fetch`?", "did you mean `ok`?"]) {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
    // Of each crash, two processes take part; what one of them used is used.
    case("{:mock {:fetch {:body 1}} :answers {:ok {:action :approve}}}");
    crash_everywhere(&scratch, &["flow.edn"]);
    // A run that ends early uses less: only what is probably misspelt is named.
    case(
        "{:mock {:fetch {:mock/error {:message \"no\"}} \"fetch#9\" {:body 1} :later {:body 2}} :answers {:ko {}}}",
    );
    let json = test(&scratch, &["flow.edn", "--json"]).json();
    let problems = json["problems"].as_array().expect("a list");
    assert!(
        problems
            .iter()
            .all(|it| !it.as_str().unwrap_or_default().contains(":later")),
        "{json:#}"
    );
}

#[test]
fn a_misspelt_answer_is_named_beside_the_wait_that_nobody_answers() {
    let scratch = Scratch::new();
    scratch.write(
        "flow.edn",
        "(flow/step :http :pay {:url \"https://example.com\" :method :post :on-error :checkpoint})",
    );
    scratch.write(
        "flow/test.edn",
        "{:mock {:pay {:mock/error {:message \"no\"}}} :answers {:payy {:action :use :value 3}}}",
    );
    let ran = test(&scratch, &["flow.edn", "--quiet"]);
    assert!(
        ran.err.contains("E0581")
            && ran.err.contains(":payy")
            && ran.err.contains("did you mean `pay`?"),
        "{}",
        ran.err
    );
}

/// Edits of a changeset, which end the same wherever the process is killed.
const EDITS: &str = r#"
{:slug :edits
 :flow '(let [files (fn [id config] (flow/step :files id config))
              draft (files :draft {:op :init-changeset :source {:type :dir :path "."}})]
          (files :a {:op :write-file :changeset draft :path "new/a.txt" :content "one\ntwo\nthree\n"})
          (files :b {:op :replace :changeset draft :path "new/a.txt" :old "two" :new "2two2"})
          (files :c {:op :apply-edit :changeset draft :edits [{:path "new/a.txt" :old "one\n" :new "1\none\n"} {:path "b.txt" :new "b\n"}]})
          (files :d {:op :move-file :changeset draft :from "b.txt" :to "new/c.txt"})
          (files :e {:op :replace-lines :changeset draft :path "new/c.txt" :start-line 1 :end-line 0 :content "first"})
          (let [out (files :out {:op :materialize :changeset draft})
                taken (files :taken {:op :capture :changeset draft :path (:path out)})]
            [(:files taken) (:diff (files :diff {:op :diff :changeset draft :paths ["new"]}))]))}
"#;

#[test]
fn a_changeset_survives_every_crash() {
    let scratch = Scratch::new();
    scratch.write("edits.edn", EDITS);
    let told = crash_everywhere(&scratch, &["edits.edn"]);
    let shown = told.to_string();
    assert!(
        shown.contains("2two2") && !shown.contains("2222"),
        "{told:#}"
    );
}

/// Fails for good, after a step was tried twice.
const FAILING: &str = "(do (flow/step :kv :count {:operation :increment :key \"count\"})
    (flow/step :http :pay {:url \"https://example.com/pay\" :method :post :idempotency-key \"k\" :retry {:max-attempts 2}}))";

#[test]
fn a_failure_can_be_expected() {
    let scratch = Scratch::new();
    scratch.write("saga.edn", FAILING);
    let case = |expect: &str| {
        let text = format!(
            "{{:mock {{:pay {{:mock/error {{:kind :denied :message \"no money\"}}}}}} :expect {expect}}}"
        );
        scratch.write("saga/test.edn", text);
        let ran = test(&scratch, &["saga.edn", "--quiet"]);
        (ran.code, ran.err)
    };
    for expect in [
        "{:status :failed}",
        "{:status :failed :error \"no money\"}",
        "{:status \"failed\" :error {:kind :denied :message \"money\" :data {:kind :denied}}}",
    ] {
        let (code, err) = case(expect);
        assert_eq!(code, Some(0), "{expect}: {err}");
    }
    for (expect, told) in [
        ("{:status :cancelled}", "expected it to be cancelled"),
        (
            "{:status :failed :error {:kind :timeout}}",
            "expected :timeout",
        ),
        (
            "{:status :failed :error {:message \"funds\"}}",
            "expected \"funds\" in it",
        ),
        (
            "{:status :completed :result 1}",
            "expected it to be completed",
        ),
    ] {
        let (code, err) = case(expect);
        assert!(code == Some(1) && err.contains(told), "{expect}: {err}");
    }
    case("{:status :failed :error {:kind :denied}}");
    // How often a step was tried is another number after a crash, and no difference.
    crash_everywhere(&scratch, &["saga.edn"]);
}

#[test]
fn a_result_with_a_status_is_a_result() {
    let scratch = Scratch::new();
    scratch.write("a.edn", "(do {:status :failed :why 1})");
    scratch.write("a/test.edn", "{:expect {:status :failed :why 1}}");
    assert_eq!(test(&scratch, &["a.edn", "--quiet"]).code, Some(0));
    scratch.write(
        "a/test.edn",
        "{:expect {:status :completed :result {:status :failed :why 1}}}",
    );
    assert_eq!(test(&scratch, &["a.edn", "--quiet"]).code, Some(0));
}

#[test]
fn folders_are_tested() {
    let scratch = Scratch::new();
    scratch.write("flows/a.edn", "{:slug :a :flow '1}");
    scratch.write("flows/a/test.edn", "{:expect 1}");
    scratch.write("flows/b.edn", "{:slug :b :flow '2}");
    scratch.write("flows/b/test.edn", "{:expect 3}");
    scratch.write("flows/c.edn", "{:slug :c :flow '3}");
    let ran = test(&scratch, &["flows"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.out.contains("flows/a.edn  passed") && ran.out.contains("flows/b.edn  1 problem"),
        "{}",
        ran.out
    );
    assert!(
        ran.err
            .contains("flows/b.edn: the run is completed with 2, expected 3"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("without a case: flows/c.edn"),
        "{}",
        ran.err
    );
    let told = test(&scratch, &["flows", "--json"]).json();
    assert_eq!(
        (told["ok"].as_bool(), told["flows"].as_array().map(Vec::len)),
        (Some(false), Some(2))
    );
    assert_eq!(test(&scratch, &["a", "--quiet"]).code, Some(0));
    assert_eq!(test(&scratch, &["flows", "--input", "{}"]).code, Some(2));
}

/// The rows of what was tested, as `file: case  verdict`.
fn verdicts(ran: &Ran) -> Vec<String> {
    let lines = ran.out.lines().skip(1);
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    words.filter(|line| !line.is_empty()).collect()
}

/// Asks a person about large amounts only.
const REFUND: &str = "{:slug :refund
 :flow '(let [{:keys [order amount]} (flow/input)
              decision (when (> amount 50) (flow/step :wait :approval {:timeout \"3d\"}))]
          (flow/step :table :save {:op :upsert :table \"refunds\" :key-fields [:order]
                                   :rows [{:order order :amount amount}]})
          (flow/step :kv :last {:operation :set :key \"last\" :value order})
          (:action decision :none))}";

#[test]
fn a_file_has_several_cases_with_what_they_share() {
    let scratch = Scratch::new();
    scratch.write("refund.edn", REFUND);
    scratch.write(
        "refund_test.edn",
        "{:answers {:approval {:action :approve}}
          :cases [{:name \"a person approves\" :input {:order \"o-1\" :amount 80} :expect :approve
                   :steps [:approval :save :last]
                   :tables {:refunds [{:order \"o-1\" :amount 80}]} :values {\"last\" \"o-1\"}}
                  {:name \"another answer\" :input {:order \"o-2\" :amount 80} :expect :reject
                   :answers {:approval {:action :reject}} :steps {:approval 1 :save 1}}
                  {:name \"no model here\" :skip \"it costs money\" :input {}}]}",
    );
    let ran = test(&scratch, &["refund.edn", "--quiet"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let expected = [
        "refund.edn: a person approves passed",
        "refund.edn: another answer passed",
        "refund.edn: no model here skipped: it costs money",
    ];
    assert_eq!(verdicts(&ran), expected, "{ran:?}");
    // The file of cases may be named itself, and a folder has it once.
    for named in ["refund_test.edn", "."] {
        let ran = test(&scratch, &[named, "--quiet", "--filter", "person"]);
        let rows = verdicts(&ran);
        assert!(
            rows.len() == 1 && rows[0].ends_with("refund.edn: a person approves passed"),
            "{named}: {ran:?}"
        );
    }
}

#[test]
fn steps_tables_and_values_are_compared() {
    let scratch = Scratch::new();
    scratch.write("refund.edn", REFUND);
    for (expectation, told) in [
        (
            ":steps [:save]",
            "the steps are [:save :last], expected [:save]",
        ),
        (
            ":steps {:save 2}",
            "the step `:save` was called 1 times, expected 2",
        ),
        (
            ":tables {:refunds []}",
            "the table `refunds` has 1 rows, expected 0",
        ),
        (
            ":tables {:refunds [{:amount 2}]}",
            "the table `refunds` has no row {:amount 2}",
        ),
        (
            ":values {\"last\" \"x\"}",
            "the value of the key `last` is \"o-1\", expected \"x\"",
        ),
        (":tool \"submit\"", "no agent called a tool"),
        (":steps 1", "`:steps` is a vector of ids"),
        (":tables []", "`:tables` of a case is a map"),
        (":step [:save]", "did you mean `:steps`?"),
    ] {
        scratch.write(
            "refund/test.edn",
            format!("{{:input {{:order \"o-1\" :amount 5}} {expectation}}}"),
        );
        let ran = test(&scratch, &["refund.edn", "--quiet"]);
        assert!(
            ran.code != Some(0) && ran.err.contains(told),
            "{expectation}: {ran:?}"
        );
    }
}

#[test]
fn files_of_cases_that_cannot_be_used_are_named() {
    let scratch = Scratch::new();
    scratch.write("a.edn", "{:slug :a :flow '1}");
    for (text, told) in [
        ("[1]", "a file of cases is a map, not"),
        ("{:cases {}}", "`:cases` is a vector of cases"),
        ("{:cases [1]}", "a case in `:cases` is a map"),
        ("{:cases [{:name 1}]}", "`:name` of a case is a text"),
        ("{:flow 1 :cases []}", "`:flow` is the path of a flow file"),
        ("{:flow \"none.edn\"}", "none.edn"),
        ("{:expect", "E0101"),
    ] {
        scratch.write("sub/b_test.edn", text);
        let ran = test(&scratch, &["sub/b_test.edn"]);
        let expected = match text.contains(":cases [") || text == "{:cases {}}" {
            true if !text.contains(":flow") => "does not say which flow",
            _ => told,
        };
        assert!(
            ran.code != Some(0) && ran.err.contains(expected),
            "{text}: {ran:?}"
        );
        if !text.contains(":flow") {
            scratch.write("a_test.edn", text);
            let ran = test(&scratch, &["a.edn"]);
            assert!(
                ran.code == Some(2) && ran.err.contains(told),
                "{text}: {ran:?}"
            );
        }
    }
}

#[test]
fn tests_of_clojure_test_are_tests() {
    let scratch = Scratch::new();
    scratch.write("lib/money.clj", "(ns lib.money) (defn cents [x] (* 100 x))");
    scratch.write(
        "money_test.clj",
        "(ns money-test (:require [clojure.test :refer [deftest is testing]] [lib.money :as money]))
         (deftest whole (println \"printed\") (is (= 100 (money/cents 1))))
         (deftest half (testing \"halves\" (is (= 50 (money/cents 1)) \"of one\")))
         (deftest broken (is (throw (ex-info \"no\" {:a 1}))))",
    );
    scratch.write("empty_test.clj", "(ns empty-test)");
    scratch.write("syntax_test.clj", "(ns syntax-test");
    let ran = test(&scratch, &["money_test.clj"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let expected = [
        "money_test.clj: money-test/whole passed",
        "money_test.clj: money-test/half 1 problem",
        "money_test.clj: money-test/broken 1 problem",
    ];
    assert_eq!(verdicts(&ran), expected, "{ran:?}");
    for told in [
        "money_test.clj:3",
        "halves",
        "of one",
        "expected: (= 50 (money/cents 1))",
        "no {:a 1}",
        "printed",
    ] {
        assert!(ran.err.contains(told), "{told}: {}", ran.err);
    }
    let ran = test(&scratch, &[".", "--tap"]);
    for told in [
        "TAP version 14\n1..5\n",
        "not ok 1 - ./empty_test.clj\n  ---\n  message: |\n",
        "has no tests",
        "ok 2 - ./money_test.clj: money-test/whole\n",
        "not ok 5 - ./syntax_test.clj",
    ] {
        assert!(ran.out.contains(told), "{told}: {}", ran.out);
    }
}

#[test]
fn many_tests_run_at_once_and_are_reported_in_order() {
    let scratch = Scratch::new();
    for n in 0..12 {
        scratch.write(&format!("f{n:02}.edn"), format!("{{:slug :f{n:02} :flow '(do (flow/step :kv :k {{:operation :set :key \"k\" :value {n}}}) {n})}}"));
        scratch.write(
            &format!("f{n:02}/test.edn"),
            format!("{{:expect {n} :values {{\"k\" {n}}}}}"),
        );
    }
    scratch.write("f05/test.edn", "{:expect 99}");
    let ran = test(
        &scratch,
        &[".", "--jobs", "4", "--json", "--junit", "report.xml"],
    );
    let told = ran.json();
    let ends: Vec<bool> = told["flows"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it["ok"].as_bool().expect("ok"))
        .collect();
    let expected: Vec<bool> = (0..12).map(|n| n != 5).collect();
    assert_eq!(ends, expected, "{told:#}");
    assert_eq!(told["counts"]["failed"], 1, "{told:#}");
    let xml = scratch.read("report.xml");
    assert!(
        xml.contains("tests=\"12\" failures=\"1\" errors=\"0\" skipped=\"0\"")
            && xml.contains("expected 99"),
        "{xml}"
    );
}

/// A change of the flow is tested without being asked.
#[cfg(unix)]
#[test]
fn changes_are_tested_again() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;
    let scratch = Scratch::new();
    scratch.write("a.edn", "{:slug :a :flow '1}");
    scratch.write("a/test.edn", "{:expect 2}");
    let mut command = scratch.command(&["test", "a.edn", "--watch", "--quiet"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut until = |text: &str| lines.any(|line| line.is_ok_and(|line| line.contains(text)));
    assert!(until("1 problem"));
    scratch.write("a.edn", "{:slug :a :flow '(+ 1 1)}");
    assert!(until("passed"));
    child.kill().expect("it runs");
    child.wait().expect("it ended");
}

#[test]
fn coverage_names_steps_and_branches_that_no_test_reaches() {
    let scratch = Scratch::new();
    scratch.write(
        "flow.edn",
        "{:slug :flow
 :flow '(let [n (:n (flow/input))]
          (when (> n 5)
            (flow/step :kv :large {:operation :set :key \"a\" :value n}))
          (flow/step :kv :always {:operation :set :key \"b\" :value n})
          (case n 1 :one 2 :two :more))}",
    );
    scratch.write(
        "flow_test.edn",
        "{:cases [{:input {:n 1}} {:input {:n 2}}]}",
    );
    let ran = test(&scratch, &["flow.edn", "--coverage"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.out.contains("1 of 2") && ran.out.contains("3 of 5"),
        "{ran:?}"
    );
    for told in [
        "flow.edn: the step :large is never called",
        "flow.edn:3:11: `then` is never taken",
        "`default` is never taken",
    ] {
        assert!(ran.err.contains(told), "{told}: {}", ran.err);
    }
    scratch.write(
        "flow_test.edn",
        "{:cases [{:input {:n 1}} {:input {:n 2}} {:input {:n 9}}]}",
    );
    let told = test(&scratch, &["flow.edn", "--coverage", "--json"]).json();
    let flow = &told["coverage"][0];
    for part in ["steps", "branches"] {
        let all = flow[part].as_array().expect("a list");
        assert!(
            !all.is_empty() && all.iter().all(|it| it["reached"] == true),
            "{told:#}"
        );
    }
}

const SORT: &str = "{:slug :sort
 :requires [{:slot :ai :type :http-api :label \"Model\"}]
 :flow '(:content (flow/step :llm :sort {:connection :ai :prompt (:mail (flow/input))}))}";

#[test]
fn an_evaluation_set_scores_the_results_of_a_flow() {
    let scratch = Scratch::new();
    scratch.write("sort.edn", SORT);
    scratch.write("other.edn", "{:slug :other :flow '{:team \"support\"}}");
    scratch.write(
        "cases.jsonl",
        "{\"name\": \"bill\", \"input\": {\"mail\": \"a\"}, \"expect\": {\"team\": \"billing\"}}
{\"name\": \"outage\", \"input\": {\"mail\": \"b\"}, \"expect\": {\"team\": \"support\"}}
",
    );
    let set = |scorers: &str| {
        let text = format!(
            "{{:flow \"sort.edn\" :repeat 2 :dataset \"cases.jsonl\" :scorers [{scorers}]
               :mock {{:sort {{:content {{:team \"billing\" :reason \"x\"}}}}}}}}"
        );
        scratch.write("sort_eval.edn", text);
    };
    set(
        "{:type :exact :at [:team] :pass 0.5} {:type :schema :schema [:map [:team [:enum \"billing\"]]]}
         {:type :function :name :short :function (fn [{:keys [result]}] (/ 1.0 (inc (count (:reason result)))))}
         {:type :judge :connection :ai :prompt \"Good.\" :mock {:content {:score 80 :reason \"fine\"}}}",
    );
    let told = test(&scratch, &["sort_eval.edn", "--json"]).json();
    let means: Vec<(String, f64)> = told["scores"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| {
            let mean = it["flows"][0]["mean"].as_f64().expect("a mean");
            (it["name"].as_str().expect("a name").to_owned(), mean)
        })
        .collect();
    let expected = [
        ("exact", 0.5),
        ("schema", 1.0),
        ("short", 0.5),
        ("judge", 0.8),
    ];
    let expected = expected.map(|(name, mean)| (name.to_owned(), mean));
    assert_eq!(means, expected, "{told:#}");
    assert_eq!(told["runs"].as_array().map(Vec::len), Some(4), "{told:#}");
    assert_eq!(told["runs"][0]["scores"][3]["reason"], "fine", "{told:#}");
    // Two flows are compared by case: one is right for the bill, the other for the outage.
    let told = test(
        &scratch,
        &[
            "sort_eval.edn",
            "--compare",
            "other.edn",
            "--repeat",
            "1",
            "--json",
        ],
    )
    .json();
    assert_eq!(told["scores"][0]["difference"]["mean"], 0.0, "{told:#}");
    assert_eq!(told["scores"][2]["difference"]["mean"], 0.5, "{told:#}");
    assert_eq!(told["runs"].as_array().map(Vec::len), Some(4), "{told:#}");
    set("{:type :exact :at [:team] :pass 0.8}");
    let ran = test(&scratch, &["sort_eval.edn"]);
    assert!(
        ran.code == Some(1) && ran.err.contains("E1594") && ran.out.contains("0.15 to 0.85"),
        "{ran:?}"
    );
}

#[test]
fn evaluation_sets_are_checked() {
    let scratch = Scratch::new();
    scratch.write("sort.edn", SORT);
    let base = ":flow \"sort.edn\" :mock {:sort {:content 1}} :dataset [{:input {:mail \"a\"}}]";
    for (text, told) in [
        ("[]".to_owned(), "an evaluation set is a map"),
        ("{:dataset []}".to_owned(), "`:flow` is the path"),
        (
            "{:flow \"sort.edn\" :dataset []}".to_owned(),
            "has no cases",
        ),
        (
            "{:flow \"sort.edn\" :dataset 1}".to_owned(),
            "`:dataset` is a vector",
        ),
        (format!("{{{base}}}"), "`:scorers` is a vector"),
        (format!("{{{base} :scorer []}}"), "did you mean `:scorers`?"),
        (
            format!("{{{base} :scorers [{{:type :exakt}}]}}"),
            "`:type` of a scorer is",
        ),
        (
            format!("{{{base} :scorers [{{:type :exact :pass 2}}]}}"),
            "`:pass` is the least mean",
        ),
        (
            format!("{{{base} :scorers [{{:type :schema :schema [:mapp]}}]}}"),
            "`:schema` of a scorer",
        ),
        (
            format!("{{{base} :repeat 0 :scorers [{{:type :exact}}]}}"),
            "`:repeat` is a number",
        ),
        (
            format!("{{{base} :scorers [{{:type :function :function (fn [_] 7)}}]}}"),
            "the scorer `function` returned 7",
        ),
        (
            format!(
                "{{{base} :scorers [{{:type :function :function (fn [_] (throw (ex-info \"no\" {{}})))}}]}}"
            ),
            "the scorer `function`: ExceptionInfo: no",
        ),
        (
            format!("{{{base} :scorers [{{:type :judge :connection :ai}}]}}"),
            "`:prompt` of a judge",
        ),
    ] {
        scratch.write("sort_eval.edn", &text);
        let ran = test(&scratch, &["sort_eval.edn", "--quiet"]);
        assert!(
            ran.code != Some(0) && ran.err.contains(told) && !ran.err.contains("internal"),
            "{text}: {ran:?}"
        );
    }
    scratch.write("a.edn", "{:slug :a :flow '1}");
    assert_eq!(test(&scratch, &["a.edn", "--repeat", "2"]).code, Some(2));
}
