//! The rows of `tests/coverage/common.tsv` that no engine test covers.

use flowstone_engine::ports::RunFilter;

use crate::project::Project;

/// Returns the result of a body, in a new project.
fn eval(body: &str) -> String {
    Project::new().eval(body)
}

#[test]
fn type_() {
    assert_eq!(
        eval("(:slept-seconds (flow/step :sleep :a {:type :sleep :millis 1}))"),
        "0.001"
    );
    let wrong = eval("(let [config {:type :kv :millis 1}] (flow/step :sleep :a config))");
    assert!(
        wrong.starts_with(
            "E0712 `:type` of a `:sleep` step must be `:sleep`, as the step type says"
        ),
        "{wrong}"
    );
}

#[test]
fn title() {
    let project = Project::new();
    project.eval("(flow/step :kv :a {:title \"Looks it up\" :operation :get :key \"k\"})");
    let runs = project.block_on(project.engine.list_runs(RunFilter::default()));
    let run = &runs.expect("runs")[0].id;
    let shown = project
        .block_on(project.engine.show_run(run))
        .expect("a run");
    assert_eq!(shown.steps[0].title.as_deref(), Some("Looks it up"));
    let wrong = eval("(flow/step :sleep :a {:title 5})");
    assert!(
        wrong.starts_with("E0712 `:title` of a `:sleep` step must be a string, not 5 (an integer)"),
        "{wrong}"
    );
}

#[test]
fn timeout_as_a_duration() {
    for timeout in ["10", "\"10s\"", "\"1m30s\"", "0.5", "\"500ms\""] {
        let body = format!(
            "(:exists? (flow/step :kv :a {{:timeout {timeout} :operation :exists :key \"k\"}}))"
        );
        assert_eq!(eval(&body), "false", "{timeout}");
    }
    for timeout in ["\"soon\"", ":long", "-1"] {
        let body =
            format!("(flow/step :kv :a {{:timeout {timeout} :operation :exists :key \"k\"}})");
        let wrong = eval(&body);
        assert!(
            wrong.starts_with("E0712 `:timeout` of a `:kv` step must be seconds or a duration"),
            "{timeout}: {wrong}"
        );
    }
}

#[test]
fn on_error_fail() {
    let throws = ":input {} :code '(fn [_] (throw (ex-info \"no luck\" {:why 1})))";
    assert_eq!(
        eval(&format!(
            "(flow/step :function :a {{:on-error :fail {throws}}})"
        )),
        eval(&format!("(flow/step :function :a {{{throws}}})")),
    );
    assert_eq!(
        eval(&format!(
            "(:why (ex-data (try (flow/step :function :a {{:on-error :fail {throws}}}) (catch Exception e e))))"
        )),
        "1"
    );
    let wrong = eval(&format!(
        "(flow/step :function :a {{:on-error :stop {throws}}})"
    ));
    assert!(
        wrong.starts_with(
            "E0712 `:on-error` of a `:function` step must be one of `:checkpoint`, `:fail`, `:skip`"
        ),
        "{wrong}"
    );
}

#[test]
fn persist() {
    assert_eq!(
        eval(
            "(do (flow/step :function :a {:input {} :code '(fn [_] {:n 1}) :persist {:type :kv :key \"kept\"}})
                 (:value (flow/step :kv :b {:operation :get :key \"kept\"})))"
        ),
        "{:n 1}"
    );
    let wrong = eval("(flow/step :function :a {:input {} :code '(fn [_] 1) :persist true})");
    assert!(
        wrong.starts_with("E0712 `:persist` of a `:function` step must be a map, not true"),
        "{wrong}"
    );
}

/// Steps that send something take templates; others refuse them.
#[test]
fn template_and_data() {
    let found = eval("(flow/step :sleep :a {:template :welcome :data {}})");
    assert!(
        found.starts_with("E0710 a `:sleep` step has no option `:"),
        "{found}"
    );
    let found = eval("(flow/step :notify :a {:template :welcome :data {}})");
    assert!(
        found.contains("welcome") && !found.starts_with("E0710"),
        "{found}"
    );
}

/// Only steps that call models have providers.
#[test]
fn provider_opts() {
    let found = eval("(flow/step :sleep :a {:provider-opts {}})");
    assert!(
        found.starts_with("E0710 a `:sleep` step has no option `:provider-opts`"),
        "{found}"
    );
    let found =
        eval("(flow/step :llm :a {:connection :none :prompt \"x\" :provider-opts {:top_p 1}})");
    assert!(!found.starts_with("E0710"), "{found}");
}

/// The repair of a model's answer is configured in `:output`, beside its schema.
#[test]
fn expect_repair() {
    let found = eval("(flow/step :sleep :a {:millis 1 :expect {:repair 1}})");
    assert!(
        found.starts_with("E0715 `:expect` has no option `:repair`"),
        "{found}"
    );
}

#[test]
fn unknown_key() {
    assert_eq!(
        eval("(flow/step :sleep :a {:milis 1})"),
        "E0710 a `:sleep` step has no option `:milis` | did you mean `:millis`?"
    );
    // The same holds inside an option.
    let found = eval("(flow/step :sleep :a {:millis 1 :retry {:max-attemps 2}})");
    assert!(
        found.contains("`:retry` has no option `:max-attemps` | did you mean `:max-attempts`?"),
        "{found}"
    );
}
