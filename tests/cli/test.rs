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
