//! The rows of `tests/coverage/function.tsv`.

use crate::project::{Project, check_steps};

/// Runs a flow with functions, and returns its result or the findings.
fn with_functions(body: &str) -> String {
    let project = Project::new();
    let text = format!(
        "{{:slug :fns :concurrency {{:type :singleton :on-new-version :coexist}}
          :functions [{{:id :total :language :clojure :code \"(fn [{{:keys [rows]}}] (reduce + rows))\"}}]
          :flow '{body}}}"
    );
    let findings = project.check(&text);
    match findings.is_empty() {
        true => project.eval(&text),
        false => findings,
    }
}

#[test]
fn code() {
    check_steps(
        "function",
        &[
            (
                "{:input {:a 1} :code '(fn [{:keys [a]}] {:b (inc a)})}",
                "{:b 2}",
            ),
            ("{:input {:a 1} :code (fn [x] (:a x))}", "1"),
        ],
    );
    let project = Project::new();
    let wrong = project.eval("(flow/step :function :f {:code '(fn [x] (nope x))})");
    assert!(wrong.contains("nope"), "{wrong}");
    let step = project
        .eval("(flow/step :function :f {:code '(fn [x] (flow/step :sleep :s {:seconds 1}))})");
    assert!(step.starts_with('E'), "{step}");
}

#[test]
fn code_as_a_string() {
    check_steps(
        "function",
        &[("{:input {:a 1} :code \"(fn [x] (inc (:a x)))\"}", "2")],
    );
    let wrong = Project::new().eval("(flow/step :function :f {:code \"(fn [x]\"})");
    assert!(wrong.starts_with('E'), "{wrong}");
}

#[test]
fn ref_() {
    let total = "(flow/step :function :f {:ref :total :input {:rows [1 2 3]}})";
    assert_eq!(with_functions(total), "6");
    let near = with_functions("(flow/step :function :f {:ref :totl :input {:rows []}})");
    assert!(near.contains("totl") && near.contains(":total"), "{near}");
}

#[test]
fn code_and_ref() {
    check_steps(
        "function",
        &[
            (
                "{:code '(fn [x] x) :ref :a}",
                "E0760 `:function` takes `:code` or `:ref`, not both",
            ),
            (
                "{}",
                "E0760 `:function` needs `:code` or `:ref` | `:code '(fn [input] ...)`, or `:ref :id` of one of the flow's `:functions`",
            ),
        ],
    );
}

#[test]
fn input() {
    let project = Project::new();
    for literal in ["[1]", "\"x\"", "#{1}", "7"] {
        let found = project.check(&format!(
            "(flow/step :function :f {{:input {literal} :code '(fn [x] x)}})"
        ));
        assert!(
            found.starts_with("E0712 `:input` of a `:function` step must be a map"),
            "{literal}: {found}"
        );
    }
    let computed = project.eval("(flow/step :function :f {:input (vec [1]) :code '(fn [x] x)})");
    assert!(computed.starts_with("E0712 "), "{computed}");
}

#[test]
fn input_left_out() {
    check_steps(
        "function",
        &[("{:code '(fn [x] (dissoc x :flow/ctx :step/ctx))}", "{}")],
    );
}

#[test]
fn load() {
    let project = Project::new();
    let stored = |value: &str, persist: &str| {
        format!(
            "(flow/step :function :make {{:code '(fn [_] {value}) :persist {{:type :blob {persist}}}}})"
        )
    };
    let back = |given: &str| {
        format!(
            "(flow/step :function :back {{:input {{:doc {given}}} :load [:doc] :code '(fn [i] (:doc i))}})"
        )
    };
    // By content type, in every form that a reference can have.
    let json = ":content-type \"application/json\"";
    let cases = [
        ("{:a #{1}}", "", "{:a #{1}}"),
        ("\"text\"", "", "\"text\""),
        ("{:a [1 {:b nil}]}", json, "{:a [1 {:b nil}]}"),
        ("\"{\\\"k\\\": 1}\"", json, "{:k 1}"),
        (
            "\"a,b\\n1,2\"",
            ":content-type \"text/csv\"",
            "\"a,b\\n1,2\"",
        ),
    ];
    for (value, persist, expected) in cases {
        for form in [
            "r",
            "(:uri r)",
            "(:ref r)",
            "(:blob-ref r)",
            "{:ref (:uri r)}",
            "{:blob-ref r}",
        ] {
            let body = format!("(let [r {}] {})", stored(value, persist), back(form));
            assert_eq!(project.eval(&body), expected, "{value} {form}");
        }
    }
    let bytes = format!(
        "(let [r {}] (flow/step :function :back {{:input {{:doc r}} :load [:doc] :code '(fn [i] (alength (:doc i)))}}))",
        stored("\"abc\"", ":content-type \"image/png\"")
    );
    assert_eq!(project.eval(&bytes), "3");
    let broken = format!("(let [r {}] {})", stored("\"{\"", json), back("r"));
    assert!(
        project.eval(&broken).starts_with("E0761 the blob `res://"),
        "{broken}"
    );
    let missing =
        project.eval("(flow/step :function :f {:input {} :load [:doc] :code '(fn [i] i)})");
    assert!(missing.starts_with("E0761 `:load` names :doc"), "{missing}");
}

#[test]
fn persist() {
    let project = Project::new();
    let kinds = project.eval(
        "(let [b (flow/step :function :b {:code '(fn [_] {:n 1}) :persist {:type :blob}})
               k (flow/step :function :k {:code '(fn [_] {:n 1}) :persist {:type :kv :key \"n\"}})
               t (flow/step :function :t {:code '(fn [_] [{:n 1}]) :persist {:type :table :table \"n\"}})]
           (mapv :type [b k t]))",
    );
    assert_eq!(kinds, "[:resource-ref :resource-ref :resource-ref]");
    let ephemeral = project.eval(
        "(flow/step :function :b {:code '(fn [_] 1) :persist {:type :blob :tier :ephemeral}})",
    );
    assert!(
        ephemeral.starts_with("E0763 `:tier :ephemeral` is for steps that stream"),
        "{ephemeral}"
    );
}

#[test]
fn step_ctx() {
    check_steps(
        "function",
        &[(
            "{:code '(fn [x] (:step/ctx x))}",
            "{:step-id \"it\" :step-type :function :path \"it\"}",
        )],
    );
}

#[test]
fn flow_ctx() {
    check_steps(
        "function",
        &[(
            "{:code '(fn [x] (let [c (:flow/ctx x)] [(= (:run-id c) (:workflow-id c)) (string? (:flow-slug c))]))}",
            "[true true]",
        )],
    );
}

#[test]
fn type_code() {
    let project = Project::new();
    let text = "(flow/step :code :f {:input {:a 1} :code '(fn [x] (:a x))})";
    assert_eq!(project.eval(text), "1");
    // This is an older name: `check` reports the new one, and where it is.
    let found = |text: &str| {
        let path = project.path().join("checked.edn");
        project.write("checked.edn", format!("\n  {text}").as_bytes());
        let session = project.engine.session();
        let steps = flowstone_project::all_steps();
        let checked = flowstone_engine::disk::check(&session, &path, "checked.edn", &steps);
        let sources = session.world().sources.borrow();
        let shown = checked.findings.iter().map(|it| {
            let source = sources.get(it.span.source).expect("a source");
            let at = source.line_column(it.span.start);
            let words = format!("{} {} | {}", it.code, it.message, it.hints.join(" | "));
            format!("{}:{} {:?} {words}", at.line, at.column, it.severity)
        });
        shown.collect::<Vec<_>>()
    };
    assert_eq!(
        found(text),
        [
            "2:14 Warning E0655 the step type `:code` is an old name of `:function` | write `:function`, which is the same step"
        ]
    );
    assert_eq!(found(&text.replace(":code :f", ":function :f")), [""; 0]);
}
