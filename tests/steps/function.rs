use crate::project::check_steps;

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
fn what_is_wrong_is_said() {
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
                "E0761 this is no reference: 7 | give the value of a step that has `:persist {:type :blob}`, or its `:uri`",
            ),
            (
                "{:input {:doc \"res://v1/ws/local/result/blob/x\"} :code '(fn [x] x) :load [:doc]}",
                "E0761 there is no blob `res://v1/ws/local/result/blob/x` | it was deleted, belongs to another project, or is a table or key, which their own steps read",
            ),
        ],
    );
}
