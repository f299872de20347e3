use flowstone_engine::outcome::RunOutcome;

use crate::project::{Project, check_steps};

#[test]
fn functions_compute() {
    check_steps(
        "function",
        &[
            (
                "{:input {:a 1} :code '(fn [{:keys [a]}] {:b (inc a)})}",
                "{:b 2}",
            ),
            ("{:input {:a 1} :code \"(fn [x] (+ 1 (:a x)))\"}", "2"),
            ("{:code '(fn [x] (sort (keys x)))}", "(:flow/ctx :step/ctx)"),
            (
                "{:code '(fn [x] [(:step-id (:step/ctx x)) (string? (:workflow-id (:flow/ctx x)))])}",
                "[\"it\" true]",
            ),
            ("{:code '(fn [_] (map inc [1 2]))}", "(2 3)"),
        ],
    );
}

#[test]
fn invalid_configs_are_refused() {
    check_steps(
        "function",
        &[
            (
                "{}",
                "E0760 `:function` needs `:code` or `:ref` | `:code '(fn [input] ...)`, or `:ref :id` of one of the flow's `:functions`",
            ),
            (
                "{:code '(fn [x] x) :ref :a}",
                "E0760 `:function` takes `:code` or `:ref`, not both",
            ),
            (
                "{:code '(fn [x] x) :load [:doc]}",
                "E0761 `:load` names :doc, which `:input` does not have | name a key of `:input` whose value is a reference",
            ),
            (
                "{:input {:doc 7} :code '(fn [x] x) :load [:doc]}",
                "E0761 not a reference: 7 | give the value of a step that has `:persist {:type :blob}`, or its `:uri`",
            ),
            (
                "{:input {:doc \"res://v1/ws/local/result/blob/x\"} :code '(fn [x] x) :load [:doc]}",
                "E0761 there is no blob `res://v1/ws/local/result/blob/x` | it belongs to another project, or was removed when nothing mentioned it any more: `flowstone resources list` shows what there is",
            ),
        ],
    );
}

/// Runs a flow that fails, and returns the text that its error points at.
fn pointed_at(flow: &str) -> String {
    let project = Project::new();
    let Ok(RunOutcome::Failed(failure)) = project.run(flow) else {
        panic!("the flow should fail: {flow}");
    };
    let session = failure.session.expect("it failed just now");
    let sources = session.world().sources.borrow();
    let span = failure.exception.span();
    let source = sources.get(span.source).expect("a source");
    format!(
        "{}: {}",
        source.name,
        &source.text[span.start as usize..span.end as usize]
    )
}

#[test]
fn an_error_points_into_the_code() {
    let quoted = "(let [r (flow/step :function :f {:code '(fn [x] (let [y 1] (+ y :k)))})] r)";
    assert_eq!(pointed_at(quoted), "flow.edn: :k");
    let by_reference = "{:slug :b :name \"b\" :concurrency {:type :singleton :on-new-version :coexist} :invocations {}
        :functions [{:id :f :language :clojure :code '(fn [x] (inc \"s\"))} {:id :g :language :clojure :code \"(fn [x] (inc nil))\"}]
        :flow '(let [r (flow/step :function :f {:ref :ID})] r)}";
    assert_eq!(
        pointed_at(&by_reference.replace(":ID", ":f")),
        "flow.edn: \"s\""
    );
    assert_eq!(
        pointed_at(&by_reference.replace(":ID", ":g")),
        "<function :g>: nil"
    );
}
