//! The rows of `tests/coverage/flow-functions.tsv`: the functions of the namespace `flow`, polling, child runs,
//! fan-out.

use flowstone_engine::codec::decode;
use flowstone_engine::ports::{Clock as _, RunFilter};

use crate::net::contains;
use crate::project::{Project, START, shown};

fn eval(body: &str) -> String {
    Project::new().eval(body)
}

#[track_caller]
fn each(cases: &[(&str, &str)]) {
    let project = Project::new();
    for (body, expected) in cases {
        assert_eq!(project.eval(body), *expected, "{body}");
    }
}

/// Creates a project with flows that others call.
fn family() -> Project {
    let project = Project::new();
    project.write(
        "flows/double.edn",
        b"{:slug :double :invocations {:default {:inputs [{:name :n :type :number :required true}]}}
           :flow '(* 2 (:n (flow/input)))}",
    );
    project.write(
        "flows/fails.edn",
        b"{:slug :fails :flow '(throw (ex-info \"no ink\" {}))}",
    );
    project
}

#[test]
fn input() {
    let project = Project::new();
    let given = decode("{\"n\" 1}").expect("EDN");
    let found = shown(project.run_on("(flow/input)", given));
    contains(&found, ":n 1");
    contains(&found, ":flow/ctx {");
    assert_eq!(
        project.eval("(let [{:keys [workflow-id run-id flow-slug]} (:flow/ctx (flow/input))] [(= workflow-id run-id) flow-slug])"),
        "[true \"flow\"]"
    );
}

#[test]
fn now_ms() {
    each(&[("(flow/now-ms)", &START.to_string())]);
}

#[test]
fn elapsed() {
    each(&[(
        "(let [t (flow/now-ms)] (flow/step :sleep :a {:seconds 5})
           [(flow/elapsed? t \"5s\") (flow/elapsed? t 5001)])",
        "[true false]",
    )]);
    contains(&eval("(flow/elapsed? 0 :soon)"), "E0301");
}

#[test]
fn backoff() {
    each(&[
        (
            "[(flow/backoff \"10s\" 1) (flow/backoff 300000 7)]",
            "[10000 300000]",
        ),
        (
            "(mapv #(flow/backoff {:type :exponential :base \"1s\" :factor 2 :max \"1m\"} %) [1 2 3 9])",
            "[1000 2000 4000 60000]",
        ),
        (
            "(mapv #(flow/backoff {:type :linear :base \"1s\" :step \"5s\" :max \"10s\"} %) [1 2 3])",
            "[1000 6000 10000]",
        ),
        (
            "(mapv #(flow/backoff {:type :constant :base 200} %) [1 9])",
            "[200 200]",
        ),
    ]);
    contains(&eval("(flow/backoff {:type :cubic} 1)"), "E0442");
}

#[test]
fn slot_bound() {
    let text = "{:slug :a :requires [{:slot :api :type :http-api :optional true}] :flow '(flow/slot-bound? :api)}";
    assert_eq!(eval(text), "false");
    let bound = Project::with("{:connections {:api {:base-url \"http://127.0.0.1:9\"}}}");
    assert_eq!(bound.eval(text), "true");
}

/// Returns the outcome of a poll and its duration in milliseconds. The polled step counts its attempts.
fn polled(opts: &str) -> (String, i64) {
    let project = Project::new();
    let found = project.eval(&format!(
        "(try (:value (flow/poll {opts} (flow/step :kv :count {{:operation :increment :key \"n\"}})))
           (catch Exception e [(ex-message e) (:kind (ex-data e)) (:attempts (ex-data e))]))"
    ));
    (found, project.clock.now_ms() - START)
}

const THIRD: &str = ":return-on (fn [r] (<= 3 (:value r)))";
const NEVER: &str = ":return-on (fn [_] false)";

#[test]
fn poll_interval() {
    let opts = |interval: &str| format!("{{:interval {interval} :max-attempts 9 {THIRD}}}");
    assert_eq!(polled(&opts("\"10s\"")), ("3".to_owned(), 20_000));
    assert_eq!(polled(&opts("250")), ("3".to_owned(), 500));
    let without = polled(&format!("{{:max-attempts 9 {THIRD}}}")).0;
    contains(&without, "flow/poll needs :interval");
}

/// The limits of a hosted product do not apply.
#[test]
fn poll_timeout() {
    let opts = format!("{{:interval \"1m\" :timeout \"150m\" {NEVER}}}");
    let (found, took) = polled(&opts);
    contains(
        &found,
        "polling ended without the wanted result\" :timeout 151",
    );
    assert_eq!(took, 150 * 60_000);
    contains(
        &polled(&format!("{{:interval 1 {NEVER}}}")).0,
        "flow/poll needs :timeout or :max-attempts",
    );
}

#[test]
fn poll_max_attempts() {
    contains(
        &polled(&format!("{{:interval 1 :max-attempts 120 {NEVER}}}")).0,
        ":timeout 120",
    );
}

#[test]
fn poll_return_on() {
    each(&[(
        "(:n (flow/poll {:interval 1 :max-attempts 2 :return-on :done}
                (flow/step :function :f {:code '(fn [_] {:done true :n 5})})))",
        "5",
    )]);
    let throws = polled(
        "{:interval 1 :max-attempts 3 :return-on (fn [_] (throw (ex-info \"job failed\" {:kind :job})))}",
    );
    contains(&throws.0, "\"job failed\" :job");
    contains(
        &polled("{:interval 1 :max-attempts 3}").0,
        "flow/poll needs :return-on",
    );
}

#[test]
fn poll_backoff() {
    let opts =
        |backoff: &str| format!("{{:interval \"1s\" :max-attempts 4 :backoff {backoff} {NEVER}}}");
    assert_eq!(
        polled(&opts("{:type :exponential :factor 3 :max \"5s\"}")).1,
        1000 + 3000 + 5000
    );
    assert_eq!(
        polled(&opts("{:type :linear :step \"2s\"}")).1,
        1000 + 3000 + 5000
    );
    assert_eq!(polled(&opts("{:type :constant}")).1, 3000);
}

#[test]
fn poll_abort_on() {
    let fails = |abort: &str| {
        eval(&format!(
            "(flow/poll {{:interval 1 :max-attempts 3 {abort} :return-on :ok}}
               (let [n (:value (flow/step :kv :count {{:operation :increment :key \"n\"}}))]
                 (if (= n 1) (throw (ex-info \"first\" {{}})) {{:ok n}})))"
        ))
    };
    contains(&fails(""), "first");
    contains(&fails(":abort-on {:error? true}"), "first");
    assert_eq!(fails(":abort-on {:error? false}"), "{:ok 2}");
    let status = eval(
        "(try (flow/poll {:interval 1 :max-attempts 3 :return-on :ok :abort-on {:status #{400}}}
                (flow/step :function :f {:code '(fn [_] {:status 400})}))
           (catch Exception e (ex-data e)))",
    );
    contains(&status, ":kind :aborted");
    contains(&status, ":status 400");
}

#[test]
fn poll_id() {
    let project = Project::new();
    project.eval(&format!(
        "(try (flow/poll {{:id :pause :interval 1 :max-attempts 2 {NEVER}}} (flow/step :function :f {{:code '(fn [_] 1)}}))
           (catch Exception _ nil))"
    ));
    let runs = project.block_on(project.engine.list_runs(RunFilter::default()));
    let run = &runs.expect("runs")[0].id;
    let shown = project.block_on(project.engine.show_run(run));
    let paths: Vec<String> = shown
        .expect("a run")
        .steps
        .iter()
        .map(|step| step.path.to_string())
        .collect();
    assert!(paths.iter().any(|path| path == "pause"), "{paths:?}");
}

#[test]
fn poll_unknown_option() {
    contains(
        &polled(&format!("{{:interval 1 :max-attempts 2 :every 5 {NEVER}}}")).0,
        "flow/poll has no option :every",
    );
}

#[test]
fn call_flow() {
    let project = family();
    for (body, expected) in [
        ("(flow/call-flow :double {:n 21})", "42"),
        (
            "(flow/call-flow \"double\" {:n \"21\"} {:id :twice :timeout \"5s\"})",
            "42",
        ),
        ("(flow/call-flow :fails {} {:on-error :skip})", "nil"),
    ] {
        assert_eq!(project.eval(body), expected, "{body}");
    }
    contains(&project.eval("(flow/call-flow :fails)"), "E0548");
    contains(&project.eval("(flow/call-flow :nothing)"), "E0545");
}

#[test]
fn uuid_and_rand() {
    each(&[
        ("(count (str (flow/uuid)))", "36"),
        ("(let [n (flow/rand)] (and (<= 0 n) (< n 1)))", "true"),
    ]);
}

#[test]
fn all() {
    each(&[(
        "(flow/all [#(:slept-seconds (flow/step :sleep :a {:seconds 2})) (fn [] 1)])",
        "[2 1]",
    )]);
}

#[test]
fn pmap() {
    each(&[
        ("(flow/pmap inc [1 2 3])", "[2 3 4]"),
        (
            "(mapv #(or (:error %) %) (flow/pmap {:max 2 :on-error :collect} #(if (= 2 %) (throw (ex-info \"two\" {})) %) [1 2]))",
            "[1 {:message \"two\" :kind nil :data {}}]",
        ),
    ]);
}

#[test]
fn race() {
    each(&[(
        "(flow/race {:slow #(flow/step :sleep :a {:seconds 9}) :fast (fn [] 1)})",
        "[:fast 1]",
    )]);
}

#[test]
fn flow_let() {
    let project = Project::new();
    assert_eq!(
        project.eval(
            "(flow/let [a (:slept-seconds (flow/step :sleep :a {:seconds 5}))
                        b (:slept-seconds (flow/step :sleep :b {:seconds 5}))
                        c (+ a b)] c)"
        ),
        "10"
    );
    assert_eq!(project.clock.now_ms() - START, 5_000, "side by side");
}

#[test]
fn emit_and_log() {
    each(&[(
        "(do (flow/emit :progress {:n 1}) (flow/log :info \"half\" {:n 1}) 2)",
        "2",
    )]);
}

#[test]
fn continue_as_new() {
    each(&[(
        "(let [n (:n (flow/input) 0)] (if (< n 3) (flow/continue-as-new {:n (inc n)}) n))",
        "3",
    )]);
}

#[test]
fn compensate() {
    let project = Project::new();
    let undone = project.eval(
        "(do (flow/compensate (flow/step :kv :do {:operation :set :key \"it\" :value 1})
                              #(flow/step :kv :undo {:operation :delete :key \"it\"}))
             (throw (ex-info \"no\" {})))",
    );
    contains(&undone, "no");
    assert_eq!(
        project.eval("(:exists? (flow/step :kv :a {:operation :exists :key \"it\"}))"),
        "false"
    );
}

#[test]
fn fanout_items() {
    let project = family();
    let item = |n: i64| format!("{{:type :call-flow :flow-slug :double :input {{:n {n}}}}}");
    let two = format!("[{} {}]", item(2), item(3));
    assert_eq!(
        project.eval(&format!(
            "(flow/step :fanout :all {{:items {two} :max-concurrency 2}})"
        )),
        "[4 6]"
    );
    assert_eq!(
        project.eval(&format!(
            "(flow/step :fanout :all {{:items {two} :transform '(fn [rows] (apply + rows))}})"
        )),
        "10"
    );
    // Items of other types are performed one after another.
    let before = project.clock.now_ms();
    assert_eq!(
        project.eval("(count (flow/step :fanout :all {:items [{:type :sleep :seconds 1} {:type :sleep :seconds 2}]}))"),
        "2"
    );
    assert_eq!(project.clock.now_ms() - before, 3_000);
    contains(
        &project.eval(&format!(
            "(flow/step :fanout :all {{:items [{} {{:type :sleep}}]}})",
            item(1)
        )),
        "E0446",
    );
}

#[test]
fn fanout_on_error() {
    let project = family();
    let run = |policy: &str| {
        project.eval(&format!(
            "(flow/step :fanout :all {{{policy} :items [{{:type :call-flow :flow-slug :double :input {{:n 1}}}}
                                                        {{:type :call-flow :flow-slug :fails}}]}})"
        ))
    };
    contains(&run(""), "no ink");
    contains(&run(":on-error :fail"), "no ink");
    assert_eq!(run(":on-error :continue"), "[2 nil]");
    contains(&run(":on-error :collect"), "[2 {:error {");
}

#[test]
fn fanout_item_options() {
    let project = family();
    let item = |more: &str| {
        project.eval(&format!(
            "(flow/step :fanout :all {{:items [{{:type :call-flow :flow-slug :double :input {{:n 1}} {more}}}]}})"
        ))
    };
    assert_eq!(item(":timeout \"5s\" :parent-close-policy :abandon"), "[2]");
    assert_eq!(item(":parent-close-policy :request-cancel"), "[2]");
    assert_eq!(item(":workflow-id \"order-1\""), "[2]");
}
