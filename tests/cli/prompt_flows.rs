//! Flows and runs at the prompt, with its input from a pipe.

use crate::program::{Ran, Scratch};

const GREET: &str = r#"{:slug :greet
 :invocations {:default {:inputs [{:name :n :type :number :required true}]}}
 :functions [{:id :double :language :clojure :code '(fn [{:keys [n]}] (* 2 n))}]
 :flow '(let [input (flow/input)
              twice (flow/step :function :twice {:ref :double :input {:n (:n input)}})]
          (flow/step :function :last {:code '(fn [{:keys [n]}] {:total (inc n)}) :input {:n twice}}))}"#;

const ASKS: &str = r#"{:slug :asks
 :flow '(let [answer (flow/step :wait :approval {:key "go"})]
          {:answer answer})}"#;

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{}");
    scratch.write("flows/greet.edn", GREET);
    scratch.write("flows/asks.edn", ASKS);
    scratch
}

fn talk(scratch: &Scratch, input: &str) -> Ran {
    scratch.run_with(&["repl"], input)
}

#[test]
fn a_flow_is_loaded_run_and_looked_at() {
    let scratch = project();
    let ran = talk(
        &scratch,
        "(:inputs (flow/load \"flows/greet.edn\"))\n\
         (flow/run :greet {:n 20})\n\
         (map (juxt :flow :status) (flow/runs :limit 5))\n\
         (map (juxt :path :type :status :result) (:steps (flow/show)))\n\
         (:result (flow/show nil \"twice\"))\n\
         (map :slug (flow/flows))\n",
    );
    assert_eq!(
        ran.ok(),
        "[{:name :n, :type :number, :required true}]\n\
         {:total 41}\n\
         ([:greet :completed])\n\
         ([\"twice\" :function :done 40] [\"last\" :function :done {:total 41}])\n\
         40\n\
         (:asks :greet)\n"
    );
}

#[test]
fn wrong_arguments_are_refused_with_suggestions() {
    let scratch = project();
    for (form, code, hint) in [
        (
            "(flow/run :greet {:n 1} :wach true)",
            "E1550",
            "did you mean `:watch`?",
        ),
        ("(flow/run :greet {:n 1} :watch)", "E1550", "has no value"),
        ("(flow/runs :status :nope)", "E1550", "nope"),
        ("(flow/run :gret)", "E0400", "did you mean `greet`?"),
        ("(flow/run :greet {})", "E0420", "inputs: n"),
        ("(flow/show)", "E1553", "(flow/runs) lists them"),
        ("(flow/show \"nothing\")", "E05", "nothing"),
        (
            "(pr-str (flow/pmap (fn [_] (flow/runs)) [1 2]))",
            "E0517",
            "",
        ),
    ] {
        let ran = talk(&scratch, &format!("{form}\n"));
        assert_eq!(ran.code, Some(1), "{form}: {}", ran.out);
        assert!(
            ran.err.contains(code) && ran.err.contains(hint),
            "{form}: {}",
            ran.err
        );
    }
}

#[test]
fn a_failed_run_is_the_error_of_its_flow() {
    let scratch = project();
    scratch.write(
        "flows/fails.edn",
        "{:slug :fails :flow '(throw (ex-info \"too much\" {:limit 3}))}",
    );
    let ran = talk(&scratch, "(flow/run :fails)\n");
    assert!(
        ran.err.contains("too much") && ran.err.contains("flows/fails.edn:1"),
        "{}",
        ran.err
    );
    let ran = talk(
        &scratch,
        "(def caught (try (flow/run :fails) (catch Exception e (ex-data e))))\n\
         [(:limit caught) (= (:run caught) (:id (first (flow/runs))))]\n",
    );
    assert_eq!(ran.ok(), "#'user/caught\n[3 true]\n");
}

#[test]
fn waits_are_answered_by_functions() {
    let scratch = project();
    let ran = talk(&scratch, "(flow/run :asks)\n");
    assert!(ran.err.contains("E1551"), "{}", ran.err);
    let ran = talk(
        &scratch,
        "(map (juxt :key :state :flow) (flow/waits))\n\
         (:key (flow/wait \"go\"))\n\
         (flow/answer \"go\" {:n 7})\n\
         (count (flow/waits))\n\
         (flow/signal \"later\" 1)\n\
         (map :payload (flow/waits :signals true))\n",
    );
    assert_eq!(
        ran.ok(),
        "([\"go\" :open :asks])\n\"go\"\n{:answer {:n 7}}\n0\n:kept\n(1)\n"
    );
}

#[test]
fn runs_are_forked_replayed_compared_and_moved() {
    let scratch = project();
    let ran = talk(
        &scratch,
        "(flow/run :greet {:n 20})\n\
         (def first-run (:id (first (flow/runs))))\n\
         (:answered (flow/replay first-run))\n\
         (flow/fork first-run :at :last :set {\"twice\" 100})\n\
         (map (juxt :path :difference) (:steps (flow/diff first-run (:id (first (flow/runs))))))\n\
         (count (flow/events first-run))\n\
         (count (flow/import (flow/export first-run) :new-id true))\n\
         (flow/cancel first-run)\n",
    );
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines[0], "{:total 41}", "{} {}", ran.out, ran.err);
    assert_eq!(lines[2..4], ["2", "{:total 101}"]);
    assert!(
        lines[4].contains("[\"last\" \"different request\"]"),
        "{}",
        lines[4]
    );
    assert_eq!(lines[6], "1");
    assert!(
        ran.err.contains("is already completed") || ran.err.contains("E05"),
        "{}",
        ran.err
    );
}

#[test]
fn the_next_steps_are_told_without_performing_them() {
    let scratch = project();
    let ran = talk(
        &scratch,
        "(map (juxt :path :type :request) (flow/next :asks))\n\
         (count (flow/runs))\n",
    );
    assert_eq!(ran.ok(), "([\"approval\" :wait {:key \"go\"}])\n0\n");
}

#[test]
fn each_step_is_stopped_at_and_decided_about() {
    let scratch = project();
    scratch.write(
        "flows/three.edn",
        r#"{:slug :three
 :flow '(let [a (flow/step :function :a {:code '(fn [{:keys [x]}] x) :input {:x 1}})
              b (flow/step :function :b {:code '(fn [{:keys [x]}] x) :input {:x 2}})
              c (flow/step :function :c {:code '(fn [{:keys [x]}] (* 10 x)) :input {:x 3}})]
          [a b c])}"#,
    );
    let ran = talk(
        &scratch,
        "(flow/debug :three)\ngo\nuse {:n 5}\nchange {:input {:x 4}}\ngo\n(flow/replay)\n",
    );
    assert!(
        ran.out.starts_with("[1 {:n 5} 40]\n"),
        "{} {}",
        ran.out,
        ran.err
    );
    assert!(ran.err.contains("● step 2: b :function"), "{}", ran.err);
    assert!(ran.out.contains(":answered 3"), "{} {}", ran.out, ran.err);
    let ran = talk(
        &scratch,
        "(flow/debug :three)\nskip\nskip\nback :b\nuse 8\nrun\n(mapv :status (flow/runs :limit 2))\n",
    );
    assert_eq!(
        ran.out, "[nil 8 30]\n[:completed :terminated]\n",
        "{}",
        ran.err
    );
    // A run that was left keeps what was decided.
    let ran = talk(
        &scratch,
        "(flow/debug :three)\nuse 7\nchange {:input {:x 9}}\nleave\n",
    );
    assert!(ran.err.contains("(flow/resume"), "{}", ran.err);
    let ran = talk(&scratch, "(flow/resume (:id (first (flow/runs))))\n");
    assert_eq!(ran.ok(), "[7 9 30]\n");
}
