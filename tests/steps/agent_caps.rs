//! The limits of an agent's loop hold whatever the model does: scripted models that behave as badly as possible.

use flowstone_engine::ports::RunFilter;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::agent::STEPS;
use crate::project::Project;

/// Turns of a model that never stops, and of one that answers in the wrong form.
const TURNS: &[&str] = &[
    r#"{:tool-calls [{:name "no_such_tool" :arguments {}}]}"#,
    r#"{:tool-calls [{:name "math_add" :arguments {:a 1 :b 2}}]}"#,
    r#"{:tool-calls [{:name "math_add" :arguments "{\"a\": 1, \"b\""}]}"#,
    r#"{:tool-calls [{:name "math_add" :arguments {:a "one"}}]}"#,
    r#"{:tool-calls [{:name "math_fail" :arguments {}}]}"#,
    r#"{:tool-calls [{:name "math_add" :arguments {:a 1 :b 2}} {:name "math_add" :arguments {:a 1 :b 2}} {:name "math_fail" :arguments {}} {:name "gone" :arguments {}}]}"#,
    r#"{:tool-calls [{:name "sums_more" :arguments {:what "a"}} {:name "sums_more" :arguments {:what "b"}}]}"#,
    r#""""#,
    r#""Not yet.""#,
    r#""{\"total\": \"three\"}""#,
];

/// One agent: its options, and the script of its model.
#[derive(Clone, Debug)]
struct Case {
    is_llm: bool,
    tools: &'static str,
    hook: &'static str,
    output: &'static str,
    repair: i64,
    turns: i64,
    calls: i64,
    repeated: i64,
    /// Zero means no budget.
    budget: i64,
    script: Vec<&'static str>,
}

fn cases() -> impl Strategy<Value = Case> {
    let hooks = [
        "",
        ":after-tool-call (fn [_] {:tools {}})",
        ":before-tool-call (fn [{:keys [tools]}] {:tools (dissoc tools :math_add)})",
        ":after-tool-call (fn [_] (throw (ex-info \"no\" {})))",
    ];
    let tools = [
        "",
        ":steps [:math/add]",
        ":steps [:math/add :math/fail] :agents [:sums/more]",
        ":steps [:math/add] :require {:tool-names [\"math_add\"]}",
    ];
    let outputs = [
        "",
        ":output {:format :json :schema [:map [:total :int]]}",
        ":expect {:contains [\"never\"]}",
    ];
    (
        any::<bool>(),
        select(tools.to_vec()),
        select(hooks.to_vec()),
        select(outputs.to_vec()),
        0..3_i64,
        (1..5_i64, 1..6_i64, 1..4_i64),
        select(vec![0, 1, 150, 2_000]),
        subsequence(TURNS.to_vec(), 1..=4),
    )
        .prop_map(
            |(is_llm, tools, hook, output, repair, (turns, calls, repeated), budget, script)| {
                Case {
                    is_llm,
                    tools,
                    hook: if is_llm { "" } else { hook },
                    output,
                    repair: if output.is_empty() { 0 } else { repair },
                    turns,
                    calls,
                    repeated,
                    budget: if is_llm { 0 } else { budget },
                    script,
                }
            },
        )
}

/// An agent that the outer one may call: without its own limits, it would take 20 turns.
const MORE: &str = ":agents [{:id :sums/more :description \"More.\" :objective \"Add.\" :instructions \"Go on and on.\" :input-schema [:map [:what :string]] :connection :ai :tools {:steps [:math/add]}}]";

impl Case {
    fn settings(&self) -> String {
        // A model that gets more requests than this has run away, and its script fails.
        let turns: Vec<&str> = self.script.iter().copied().cycle().take(60).collect();
        let (turns, add) = (turns.join(" "), TURNS[1]);
        format!(
            "{{:connections {{:ai {{:backend :scripted :script {{:scripts [{{:when \"Go on and on.\" :turns [{}]}}] :turns [{turns}]}}}}}}}}",
            [add; 60].join(" ")
        )
    }

    fn body(&self) -> String {
        let Case {
            tools,
            hook,
            output,
            turns,
            calls,
            repeated,
            repair,
            ..
        } = self;
        let caps = format!(
            ":max-iterations {turns} :max-tool-calls {calls} :max-repeated-tool-calls {repeated}"
        );
        let repair = match repair {
            0 => String::new(),
            repair => format!(":repair {repair}"),
        };
        let step = match self.is_llm {
            true => format!(
                "(flow/step :llm :a {{:connection :ai :prompt \"Do it.\" :tools {{:mode :execute {tools} {caps}}} {output} {repair}}})"
            ),
            false => {
                let budget = match self.budget {
                    0 => String::new(),
                    budget => format!(":max-tokens-budget {budget}"),
                };
                format!(
                    "(flow/step :agent :a {{:connection :ai :objective \"Do it.\" :tools {{{tools}}} {caps} {budget} {hook} {output} {repair}}})"
                )
            }
        };
        format!("{{:slug :caps {STEPS} {MORE} :flow '{step}}}")
    }
}

/// Counts the turns of the outer agent and its performed calls, and returns how the run ended.
fn count(case: &Case) -> (i64, i64, String) {
    let project = Project::with(&case.settings());
    let ended = project.eval(&case.body());
    let (mut turns, mut calls) = (0, 0);
    project.block_on(async {
        let runs = project.engine.list_runs(RunFilter::default()).await;
        let run = &runs.expect("runs")[0].id;
        let shown = project.engine.show_run(run).await.expect("a run");
        for step in &shown.steps {
            // The calls of a nested agent are one level deeper.
            match step.path.matches('/').count() {
                1 if step.path.contains("/turn") => turns += 1,
                1 => calls += 1,
                _ => {}
            }
        }
    });
    (turns, calls, ended)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_cap_holds_whatever_the_model_does(case in cases()) {
        let (turns, calls, ended) = count(&case);
        prop_assert!(!ended.contains("E0825"), "the script ran out: {ended}");
        prop_assert!(!ended.contains("E0575") && !ended.contains("engine:"), "{ended}");
        prop_assert!(turns >= 1, "{ended}");
        prop_assert!(turns <= case.turns + 1 + case.repair, "{turns} turns: {ended}");
        prop_assert!(calls <= case.calls, "{calls} calls: {ended}");
    }
}

/// Creates a project whose model plays these turns, and repeats the last one as often as necessary.
fn scripted(turns: &str, again: &str, scripts: &str) -> Project {
    Project::with(&format!(
        "{{:connections {{:ai {{:backend :scripted :script {{:scripts [{scripts}] :turns [{turns} {}]}}}}}}}}",
        [again; 60].join(" ")
    ))
}

#[test]
fn turns_and_calls_are_counted() {
    let case = Case {
        is_llm: false,
        tools: ":steps [:math/add] :agents [:sums/more]",
        hook: "",
        output: "",
        repair: 0,
        turns: 2,
        calls: 5,
        repeated: 3,
        budget: 0,
        script: vec![TURNS[1], TURNS[6]],
    };
    let (turns, calls, ended) = count(&case);
    assert_eq!((turns, calls), (3, 3), "{ended}");
}

const GONE: &str = r#"{:tool-calls [{:name "x" :arguments {}}]}"#;
const ADD: &str = r#"{:tool-calls [{:name "math_add" :arguments {:a 1 :b 2}}] :usage {:prompt-tokens 90 :completion-tokens 10}}"#;

/// Runs an agent in such a project, and evaluates a body with its result as `r`.
fn over(project: &Project, fields: &str, body: &str) -> String {
    project.eval(&format!(
        "{{:slug :caps {STEPS} {MORE} :flow '(let [r (flow/step :agent :a {{:connection :ai :objective \"Go.\" {fields}}})] {body})}}"
    ))
}

const ENDED: &str = "[(:iterations r) (:finish-reason r) (:content r) (:warnings r)]";

#[test]
fn turns_without_tools_count() {
    let warning = "the agent ended without an answer (max-iterations): the model still called tools in its last turn";
    let expected = format!("[4 \"max-iterations\" \"\" [\"{warning}\"]]");
    let project = scripted("", GONE, "");
    let fields = ":max-iterations 3 :max-tool-calls 5";
    assert_eq!(over(&project, fields, ENDED), expected);
    // A hook removes the tools.
    let hook =
        ":tools {:steps [:math/add]} :after-tool-call (fn [_] {:tools {}}) :max-iterations 3";
    assert_eq!(over(&project, hook, ENDED), expected);
    assert_eq!(over(&scripted("", ADD, ""), hook, ENDED), expected);
    // An answer with a schema is requested, and the model calls a tool instead.
    let form = ":tools {:steps [:math/add]} :output {:format :json :schema [:map [:n :int]]} :max-iterations 3";
    for turn in [GONE, ADD] {
        let project = scripted("\"Prose.\"", turn, "");
        assert_eq!(over(&project, form, ENDED), expected);
    }
}

#[test]
fn refused_calls_count() {
    let many = format!("{{:tool-calls [{}]}}", r#"{:name "x"}"#.repeat(4));
    let project = scripted(&many, "\"Done.\"", "");
    let body = "[(:finish-reason r) (:content r) (mapv #(subs (:error (:result %)) 0 15) (:tool-calls r))]";
    assert_eq!(
        over(
            &project,
            ":tools {:steps [:math/add]} :max-tool-calls 2",
            body
        ),
        "[\"max-tool-calls\" \"Done.\" [\"there is no too\" \"there is no too\" \"not performed: \" \"not performed: \"]]"
    );
}

#[test]
fn a_budget_applies_to_called_agents() {
    let nested = format!(
        "{{:when \"Go on and on.\" :turns [{}]}}",
        [ADD; 60].join(" ")
    );
    let call = r#"{:tool-calls [{:name "sums_more" :arguments {:what "a"}}] :usage {:prompt-tokens 90 :completion-tokens 10}}"#;
    let two = r#"{:tool-calls [{:name "sums_more" :arguments {:what "a"}} {:name "sums_more" :arguments {:what "b"}}] :usage {:prompt-tokens 90 :completion-tokens 10}}"#;
    let fields = ":tools {:agents [:sums/more]} :max-tokens-budget 700";
    let body = "[(:tokens-used r) (:finish-reason r) (mapv :result (:tool-calls r))]";
    // The remaining budget goes to a single called agent, or in equal parts to several.
    let project = scripted("", call, &nested);
    assert_eq!(
        over(&project, fields, body),
        "[700 \"token-budget\" [\"\"]]"
    );
    let project = scripted("", two, &nested);
    assert_eq!(
        over(&project, fields, body),
        "[700 \"token-budget\" [\"\" \"\"]]"
    );
    // The journal's budget is also checked between turns.
    let cost = ":tools {:agents [:sums/more]} :cost {:budget {:max-tokens-total 700}}";
    let project = scripted("", call, &nested);
    assert_eq!(over(&project, cost, body), "[700 \"cost-budget\" [\"\"]]");
    let refused = over(&project, cost, body);
    assert!(refused.starts_with("E0852"), "{refused}");
    // A failed agent's tokens count as well.
    let failing = format!(
        "{{:when \"Go on and on.\" :turns [{ADD} {ADD} {{:error {{:kind :bad-request :message \"no\"}}}}]}}"
    );
    let project = scripted(call, "\"Done.\"", &failing);
    assert_eq!(
        over(
            &project,
            ":tools {:agents [:sums/more]}",
            "[(:tokens-used r) (:content r)]"
        ),
        "[300 \"Done.\"]"
    );
}
