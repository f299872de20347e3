//! The rows of `tests/coverage/agent.tsv` about the loop: its result, hooks, inputs, approval, required tools.

use serde_json::{Value as Json, json};

use crate::agent::{Bench, STEPS, calls, says};
use crate::server::Say;

const ADD: &str = "{\"a\":1,\"b\":2}";

/// Two turns: a valid and a failing call, and then an answer.
fn adds() -> Vec<Say> {
    vec![
        calls(&[("c1", "math_add", ADD), ("c2", "math_fail", "{}")]),
        says("It is 3."),
    ]
}

/// Runs an agent that may add, and evaluates a body with its result as `r`.
#[track_caller]
fn over(turns: Vec<Say>, fields: &str, body: &str) -> String {
    bench_over(turns, fields, body).1
}

fn bench_over(turns: Vec<Say>, fields: &str, body: &str) -> (Bench, String) {
    let bench = Bench::with(STEPS, turns);
    let says_tools = fields.starts_with(":tools ");
    let tools = match says_tools {
        true => "",
        false => ":tools {:steps [:math/add :math/fail]}",
    };
    let found = bench.run(&format!(
        "(let [r (flow/step :agent :a {{:connection :ai :objective \"Add.\" {tools} {fields}}})] {body})"
    ));
    (bench, found)
}

#[test]
fn result_content() {
    assert_eq!(over(adds(), "", "(:content r)"), "\"It is 3.\"");
}

#[test]
fn result_content_as_data() {
    let turns = vec![says("{\"sum\": 3}")];
    assert_eq!(over(turns, ":output :json", "(:content r)"), "{:sum 3}");
}

#[test]
fn result_tool_calls() {
    assert_eq!(
        over(
            adds(),
            "",
            "(mapv #(dissoc % :duration-ms) (:tool-calls r))"
        ),
        "[{:tool-call-id \"c1\" :name \"math_add\" :arguments {:a 1 :b 2} :result {:sum 3} :success true} \
          {:tool-call-id \"c2\" :name \"math_fail\" :arguments {} :result {:error \"no more\" :kind :threw} :success false}]"
    );
    let durations = over(
        adds(),
        "",
        "(every? #(and (int? %) (>= % 0)) (map :duration-ms (:tool-calls r)))",
    );
    assert_eq!(durations, "true");
}

#[test]
fn result_tool_call_stats() {
    assert_eq!(
        over(
            adds(),
            "",
            "(dissoc (:tool-call-stats r) :total-duration-ms)"
        ),
        "{:call-count 2 :success-count 1 :error-count 1}"
    );
    let sum = "(= (:total-duration-ms (:tool-call-stats r)) (reduce + (map :duration-ms (:tool-calls r))))";
    assert_eq!(over(adds(), "", sum), "true");
}

#[test]
fn result_usage() {
    assert_eq!(
        over(adds(), "", "(:usage r)"),
        "{:prompt-tokens 20 :completion-tokens 10 :total-tokens 30}"
    );
}

#[test]
fn result_tokens_used() {
    assert_eq!(over(adds(), "", "(:tokens-used r)"), "30");
}

#[test]
fn result_model() {
    assert_eq!(over(adds(), "", "(:model r)"), "\"m-1\"");
}

#[test]
fn result_provider() {
    assert_eq!(over(adds(), "", "(:provider r)"), ":openai");
}

#[test]
fn result_finish_reason() {
    assert_eq!(over(adds(), "", "(:finish-reason r)"), "\"stop\"");
}

#[test]
fn result_iterations() {
    assert_eq!(over(adds(), "", "(:iterations r)"), "2");
}

#[test]
fn result_abort() {
    let fields =
        ":before-tool-call (fn [_] {:abort true :content \"Stop.\" :abort-reason \"too-late\"})";
    assert_eq!(
        over(
            adds(),
            fields,
            "(select-keys r [:content :abort? :abort-reason :finish-reason])"
        ),
        "{:content \"Stop.\" :abort? true :abort-reason \"too-late\" :finish-reason \"too-late\"}"
    );
}

/// Runs an agent with a hook that aborts and returns what it receives under a key.
fn seen(hook: &str, form: &str) -> String {
    let fields = format!("{hook} (fn [seen] {{:abort true :content {form}}})");
    over(adds(), &fields, "(:content r)")
}

#[test]
fn before_tool_call() {
    let fields = ":before-tool-call (fn [{:keys [usage]}] (when (> (:total-tokens usage) 10) {:abort true :content \"Too expensive.\" :abort-reason \"token-budget\"}))";
    let (bench, found) = bench_over(adds(), fields, "[(:content r) (:tool-calls r)]");
    assert_eq!(found, "[\"Too expensive.\" []]");
    assert_eq!(bench.asked().len(), 1);
    let wrong = over(adds(), ":before-tool-call 7", "r");
    assert!(wrong.starts_with("E0712 `:before-tool-call`"), "{wrong}");
}

#[test]
fn after_tool_call() {
    let fields = ":after-tool-call (fn [{:keys [last-results]}] (when (some (complement :success) last-results) {:abort true :abort-reason :failed}))";
    let found = over(
        adds(),
        fields,
        "[(:abort-reason r) (count (:tool-calls r))]",
    );
    assert_eq!(found, "[\"failed\" 2]");
    let wrong = over(adds(), ":after-tool-call 7", "r");
    assert!(wrong.starts_with("E0712 `:after-tool-call`"), "{wrong}");
}

#[test]
fn before_receives() {
    assert_eq!(
        seen(":before-tool-call", "(set (keys seen))"),
        "#{:tool-calls :tools :iteration :usage :proposed-tool-calls}"
    );
    assert_eq!(
        seen(
            ":before-tool-call",
            "[(:iteration seen) (:tool-calls seen) (:usage seen)]"
        ),
        "[1 [] {:prompt-tokens 10 :completion-tokens 5 :total-tokens 15}]"
    );
    assert_eq!(
        seen(":before-tool-call", "(first (:proposed-tool-calls seen))"),
        "{:tool-call-id \"c1\" :name \"math_add\" :arguments {:a 1 :b 2}}"
    );
    assert_eq!(
        seen(":before-tool-call", "(:math_add (:tools seen))"),
        "{:type :math/add :name \"math_add\" :description \"Adds two numbers.\"}"
    );
}

#[test]
fn after_receives() {
    assert_eq!(
        seen(":after-tool-call", "(set (keys seen))"),
        "#{:tool-calls :last-results :tools :iteration :usage}"
    );
    assert_eq!(
        seen(
            ":after-tool-call",
            "[(:iteration seen) (mapv :name (:tool-calls seen)) (mapv :success (:last-results seen))]"
        ),
        "[1 [\"math_add\" \"math_fail\"] [true false]]"
    );
}

#[test]
fn hook_nil() {
    let fields = ":before-tool-call (fn [_] nil) :after-tool-call (fn [_] nil)";
    assert_eq!(over(adds(), fields, "(:content r)"), "\"It is 3.\"");
}

#[test]
fn hook_tools() {
    let fields = ":before-tool-call (fn [{:keys [tools]}] {:tools (dissoc tools :math_fail)})";
    let (bench, found) = bench_over(adds(), fields, "(:result (second (:tool-calls r)))");
    assert_eq!(
        found,
        "{:error \"there is no tool `math_fail`; did you mean `math_add`; there are: math_add\"}"
    );
    let names = |body: &Json| body["tools"].as_array().unwrap().len();
    let asked = bench.asked();
    assert_eq!((names(&asked[0]), names(&asked[1])), (2, 1));
}

#[test]
fn hook_adds_a_tool() {
    let turns = vec![
        calls(&[("c1", "math_add", ADD)]),
        calls(&[("c2", "plus", ADD)]),
        says("It is 3."),
    ];
    let fields = ":tools {:steps [:math/add] :mode :execute} :after-tool-call (fn [{:keys [iteration tools tool-calls]}] \
                  (when (and (pos? iteration) (some #(= \"math_add\" (:name %)) tool-calls)) \
                    {:tools (assoc tools :plus {:type :math/add :name \"plus\"})}))";
    let (bench, found) = bench_over(
        turns,
        fields,
        "(mapv (juxt :name :success) (:tool-calls r))",
    );
    assert_eq!(found, "[[\"math_add\" true] [\"plus\" true]]");
    let asked = bench.asked();
    assert_eq!(asked[1]["tools"][1]["function"]["name"], "plus");
    assert_eq!(
        asked[1]["tools"][1]["function"]["parameters"],
        asked[0]["tools"][0]["function"]["parameters"]
    );
}

#[test]
fn hook_aborts() {
    let fields =
        ":after-tool-call (fn [_] {:abort true :content \"Done.\" :abort-reason \"enough\"})";
    let (bench, found) = bench_over(
        adds(),
        fields,
        "[(:content r) (:abort-reason r) (count (:tool-calls r))]",
    );
    assert_eq!(found, "[\"Done.\" \"enough\" 2]");
    assert_eq!(bench.asked().len(), 1);
}

#[test]
fn hook_throws() {
    let fields =
        ":before-tool-call (fn [_] (throw (ex-info \"oops\" {}))) :after-tool-call (fn [_] 7)";
    assert_eq!(
        over(adds(), fields, "[(:content r) (:warnings r)]"),
        "[\"It is 3.\" [\"`:before-tool-call` failed and is ignored: oops\" \"`:after-tool-call` failed and is ignored: `:after-tool-call` gives an integer\"]]"
    );
}

/// Returns what the model receives for an input.
#[track_caller]
fn received(input: &str, fields: &str) -> Json {
    let bench = Bench::with(STEPS, vec![says("ok")]);
    let found = bench.run(&format!(
        "(:content (flow/step :agent :a {{:connection :ai :objective \"Go.\" :inputs {{:it {input}}} {fields}}}))"
    ));
    assert_eq!(found, "\"ok\"");
    let content = &bench.asked()[0]["messages"][1]["content"];
    let text = match content.as_str() {
        Some(text) => text.to_owned(),
        None => content[0]["text"].as_str().unwrap().to_owned(),
    };
    let (_, inputs) = text.split_once("Inputs:\n").unwrap();
    serde_json::from_str::<Json>(inputs).unwrap()["it"].clone()
}

const TREE: &str = "res://v1/ws/ws-acme/bundle/source-tree/git/source-123";
const CHANGESET: &str = "res://v1/ws/ws-acme/bundle/changeset/files/changeset-123";
const TABLE: &str = "res://v1/ws/ws-acme/bundle/resource/table/incidents";

#[test]
fn input_source_tree() {
    let input = format!(
        "{{:type :resource-ref :uri \"{TREE}\" :content-type \"application/vnd.breyta.source-tree+json\"}}"
    );
    assert_eq!(
        received(&input, ":available-steps [:files]"),
        json!({
            "kind": "source-tree",
            "uri": TREE,
            "content-type": "application/vnd.breyta.source-tree+json",
            "recommended-tool": "files",
            "tool-enabled?": true,
            "access": {
                "tool": "files",
                "read-args": {"source": TREE},
                "common-ops": ["list", "read", "search", "materialize"],
            },
        })
    );
}

#[test]
fn input_changeset() {
    let found = received(&format!("\"{CHANGESET}\""), ":available-steps [:files]");
    assert_eq!(found["kind"], "changeset");
    assert_eq!(found["access"]["read-args"], json!({"source": CHANGESET}));
    assert_eq!(
        found["access"]["write-args"],
        json!({"changeset": CHANGESET})
    );
    assert_eq!(
        found["access"]["common-ops"],
        json!([
            "list",
            "read",
            "search",
            "diff",
            "write-file",
            "apply-edit",
            "replace",
            "replace-lines",
            "delete-file",
            "move-file",
            "materialize",
            "publish",
            "open-change-request"
        ])
    );
}

#[test]
fn input_table() {
    let input = format!("{{:type :resource-ref :uri \"{TABLE}\"}}");
    let found = received(&input, ":available-steps [:table]");
    assert_eq!(found["kind"], "table");
    assert_eq!(found["recommended-tool"], "table");
    assert_eq!(
        found["access"],
        json!({
            "tool": "table",
            "args": {"table": {"ref": TABLE}},
            "common-ops": ["query", "get-row", "aggregate", "schema", "export"],
        })
    );
}

#[test]
fn input_missing_tool() {
    let found = received(&format!("\"{TREE}\""), "");
    assert_eq!(found["tool-enabled?"], false);
    assert_eq!(
        found["missing-tool"],
        json!({
            "tool": "files",
            "name": "files",
            "constraint": "Hydrated inputs recommend the files built-in tool, but it is not enabled for this agent run. Do not invent files tool calls.",
        })
    );
}

#[test]
fn input_long_string() {
    let found = received("(apply str (repeat 12000 \"ab\"))", "");
    let text = found.as_str().unwrap();
    assert!(text.len() < 10_100, "{}", text.len());
    assert!(
        text.ends_with("(14000 more characters)"),
        "{}",
        &text[9_900..]
    );
}

#[test]
fn input_summary() {
    let templates = ":templates [{:id :t :type :llm-prompt :prompt \"{{inputs.it}} {{input-summary.it.kind}} {{input-summary.it.access.tool}}\"}]";
    let bench = Bench::with(templates, vec![says("ok")]);
    bench.run(&format!(
        "(flow/step :agent :a {{:connection :ai :objective \"Go.\" :template :t :inputs {{:it \"{TREE}\"}}}})"
    ));
    assert_eq!(
        bench.asked()[0]["messages"][0]["content"],
        format!("{TREE} source-tree files")
    );
}

#[test]
fn tool_summary() {
    let templates = ":templates [{:id :t :type :llm-prompt :prompt \"{{json tool-summary}}\"}]";
    let bench = Bench::with(&format!("{templates} {STEPS}"), vec![says("ok")]);
    let found = bench.run(&format!(
        "(flow/step :agent :a {{:connection :ai :objective \"Go.\" :template :t :inputs {{:it \"{TABLE}\"}} :available-steps [:files :search] :tools {{:steps [:math/add]}}}})"
    ));
    let asked = bench.asked();
    assert!(!asked.is_empty(), "{found}");
    let summary: Json =
        serde_json::from_str(asked[0]["messages"][0]["content"].as_str().unwrap()).unwrap();
    assert_eq!(summary["enabled-steps"], json!(["files", "search"]));
    assert_eq!(summary["missing"][0]["name"], "table");
    assert_eq!(
        summary["enabled"][2],
        json!({"tool": "math/add", "name": "math_add", "description": "Adds two numbers."})
    );
    assert_eq!(summary["enabled"][0]["tool"], "files");
    assert_eq!(
        summary["enabled"][0]["ops"],
        json!([
            "apply-edit",
            "delete-file",
            "diff",
            "init-changeset",
            "list",
            "move-file",
            "read",
            "replace",
            "replace-lines",
            "search",
            "write-file"
        ])
    );
}

#[test]
fn envelope_mode() {
    let fields = |mode: &str| format!(":tools {{:mode {mode} :steps [:math/add :math/fail]}}");
    assert_eq!(
        over(adds(), &fields(":execute"), "(:content r)"),
        "\"It is 3.\""
    );
    let refused = over(adds(), &fields(":explode"), "r");
    assert!(
        refused.contains("`:mode` of `:tools` cannot be `:explode`"),
        "{refused}"
    );
}

#[test]
fn envelope_max_iterations() {
    let again = || calls(&[("c1", "math_add", ADD)]);
    let fields = ":tools {:steps [:math/add] :max-iterations 1}";
    let found = over(
        vec![again(), says("3")],
        fields,
        "[(:finish-reason r) (:iterations r)]",
    );
    assert_eq!(found, "[\"max-iterations\" 2]");
}

#[test]
fn envelope_max_tool_calls() {
    let fields = ":tools {:steps [:math/add :math/fail] :max-tool-calls 1}";
    let found = over(
        adds(),
        fields,
        "[(:finish-reason r) (mapv :success (:tool-calls r))]",
    );
    assert_eq!(found, "[\"max-tool-calls\" [true false]]");
}

#[test]
fn envelope_max_repeated_tool_calls() {
    let twice = calls(&[("c1", "math_add", ADD), ("c2", "math_add", ADD)]);
    let fields = ":tools {:steps [:math/add] :max-repeated-tool-calls 1}";
    let found = over(
        vec![twice, says("3")],
        fields,
        "[(:finish-reason r) (mapv :success (:tool-calls r))]",
    );
    assert_eq!(found, "[\"stop\" [true false]]");
}

#[test]
fn envelope_vector() {
    let found = over(
        adds(),
        ":tools [:math/add :math/fail]",
        "(mapv :success (:tool-calls r))",
    );
    assert_eq!(found, "[true false]");
}

#[test]
fn errors_are_results() {
    let turns = vec![
        calls(&[
            ("c1", "math_fail", "{}"),
            ("c2", "math_ad", "{}"),
            ("c3", "math_add", "{\"a\":\"x\",\"b\":2}"),
            ("c4", "math_add", "{oops"),
        ]),
        says("No."),
    ];
    let (bench, found) = bench_over(turns, "", "[(:content r) (mapv :success (:tool-calls r))]");
    assert_eq!(found, "[\"No.\" [false false false false]]");
    let messages = bench.asked()[1]["messages"].clone();
    let said: Vec<&str> = (3..7)
        .map(|at| messages[at]["content"].as_str().unwrap())
        .collect();
    for (said, expected) in said.iter().zip([
        "no more",
        "did you mean `math_add`",
        "not of type",
        "the arguments are not JSON",
    ]) {
        assert!(
            said.starts_with("{\"error\":") && said.contains(expected),
            "{said}"
        );
    }
    // Invalid arguments of the model are replaced in the conversation, so that it can be sent.
    assert_eq!(messages[2]["tool_calls"][3]["function"]["arguments"], "{}");
}

/// Required tools: a model that answers at once receives an error, and one that never calls the tool fails the step.
#[track_caller]
fn requires(require: &str, tools: &str) {
    let turns = vec![
        says("3, I guess."),
        calls(&[("c1", "math_add", ADD)]),
        says("It is 3."),
    ];
    let fields = format!(":tools {{{tools} :require {require}}}");
    let (bench, found) = bench_over(turns, &fields, "[(:content r) (count (:tool-calls r))]");
    assert_eq!(found, "[\"It is 3.\" 1]");
    let asked = bench.asked();
    let system = asked[0]["messages"][0]["content"].as_str().unwrap();
    assert!(
        system.contains("Before your last answer you must have called: math_add."),
        "{system}"
    );
    let told = asked[1]["messages"][3]["content"].as_str().unwrap();
    assert_eq!(
        told,
        "Before your last answer you must call: math_add. Do so now."
    );
    let stubborn = vec![says("3"), says("3"), says("3")];
    let failed = over(stubborn, &format!("{fields} :max-iterations 2"), "r");
    assert!(
        failed.starts_with("E0843 the agent ended (max-iterations) without calling math_add"),
        "{failed}"
    );
}

#[test]
fn require_tool_names() {
    requires("{:tool-names [\"math_add\"]}", ":steps [:math/add]");
}

#[test]
fn require_steps() {
    requires("{:steps [:math/add]}", ":steps [:math/add]");
}

#[test]
fn approval() {
    let wrong = over(adds(), ":approval :never", "r");
    assert!(
        wrong.starts_with("E0841 `:approval` has no mode `:never`"),
        "{wrong}"
    );
    let wrong = over(adds(), ":approval {:mode :tools}", "r");
    assert!(
        wrong.starts_with("E0841 `:approval {:mode :tools}` needs `:tool-names`"),
        "{wrong}"
    );
    let off = over(adds(), ":approval false", "(:content r)");
    assert_eq!(off, "\"It is 3.\"");
}

#[test]
fn approval_tools() {
    let fields = ":approval {:mode :tools :tool-names #{\"math_add\"}}";
    let (bench, found) = bench_over(
        adds(),
        fields,
        "[(:abort? r) (:abort-reason r) (:tool-calls r) (:mode (:approval-request r))]",
    );
    assert_eq!(found, "[true \"approval-required\" [] :tools]");
    let system = bench.asked()[0]["messages"][0]["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        system.contains("Calls of math_add need the approval of a person"),
        "{system}"
    );
    // A batch without such a call continues.
    let turns = vec![calls(&[("c1", "math_fail", "{}")]), says("No.")];
    assert_eq!(over(turns, fields, "(:content r)"), "\"No.\"");
}

#[test]
fn approval_request() {
    let fields = ":approval {:mode :tools :tool-names #{\"math_add\"}}";
    let found = over(
        adds(),
        fields,
        "(let [q (:approval-request r)] [(boolean (re-matches #\"approval:1:[0-9a-f]{16}\" (:key q))) (:iteration q) (:actions q) (:mode q)])",
    );
    assert_eq!(
        found,
        "[true 1 [{:tool \"math_add\" :tool-call-id \"c1\" :arguments {:a 1 :b 2}}] :tools]"
    );
}

#[test]
fn approval_again() {
    // As documented: the flow waits under the key of the request, and calls the agent again.
    let mut turns = adds();
    turns.truncate(1);
    turns.extend(adds());
    let bench = Bench::with(STEPS, turns);
    let waiting = bench.run(
        "(let [fields {:connection :ai :objective \"Add.\" :tools {:steps [:math/add :math/fail]}} \
               r (flow/step :agent :fix (assoc fields :approval {:mode :tools :tool-names #{\"math_add\"}}))] \
           (if (:abort? r) \
             (do (flow/step :wait :approve {:key (get-in r [:approval-request :key]) :timeout \"24h\"}) \
                 (:content (flow/step :agent :fix-continue fields))) \
             r))",
    );
    assert!(waiting.starts_with("waiting"), "{waiting}");
    let wait = bench.only_wait();
    assert_eq!(
        bench
            .project
            .answer(&wait, &crate::world::edn("{:ok true}")),
        "\"It is 3.\""
    );
}

#[test]
fn approval_in_place() {
    let fields =
        ":approval {:mode :tools :tool-names #{\"math_add\"} :resume :in-place :timeout \"1h\"}";
    for (answer, calls, told) in [
        ("{:action :approve}", "[true false]", "{\"sum\":3}"),
        (
            "{:action :reject :comment \"not today\"}",
            "[false false]",
            "{\"error\":\"not performed: a person rejected this call: not today\"}",
        ),
    ] {
        let (bench, waiting) = bench_over(
            adds(),
            fields,
            "[(:content r) (mapv :success (:tool-calls r))]",
        );
        assert!(waiting.starts_with("waiting"), "{waiting}");
        assert_eq!(bench.asked().len(), 1);
        let wait = bench.only_wait();
        let found = bench.project.answer(&wait, &crate::world::edn(answer));
        assert_eq!(found, format!("[\"It is 3.\" {calls}]"));
        // The turn before the wait is not requested again.
        assert_eq!(bench.asked().len(), 2);
        assert_eq!(bench.asked()[1]["messages"][3]["content"], told);
    }
    let wrong = over(
        adds(),
        ":approval {:mode :tools :tool-names #{\"x\"} :timeout \"1h\"}",
        "r",
    );
    assert!(
        wrong.starts_with("E0841 `:timeout` of `:approval` is for `:resume :in-place`"),
        "{wrong}"
    );
}
