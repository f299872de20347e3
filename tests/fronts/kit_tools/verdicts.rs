//! Each rule of the verdict, by whole runs of flows with scripted models.

use flowstone_fronts::kit::tools::query_spans;
use flowstone_stores::memory::{Memory, MemoryOptions};
use serde_json::{Value as Json, json};

use super::project::{Project, SLUG, agent, calls, expecting, flow, run};

/// A run with the line about it.
struct Case {
    flow: String,
    /// The turns of the model.
    turns: Vec<String>,
    arguments: Json,
    /// Verdict and reason, the tools with `?` after those that have not returned, and the approvals.
    expected: &'static str,
}

fn case(flow: String, turns: &[String], tool: Option<&str>, expected: &'static str) -> Case {
    Case {
        flow,
        turns: turns.to_vec(),
        arguments: tool.map_or_else(|| json!({"inputs": {}}), expecting),
        expected,
    }
}

fn line(answer: &Json) -> String {
    if answer["verdict"].is_null() {
        return answer.to_string();
    }
    let tools = answer["tools"].as_array().expect("tools").iter();
    let tools: Vec<String> = tools
        .map(|tool| {
            assert_eq!(tool["called"], true);
            let mark = if tool["returned"] == true { "" } else { "?" };
            format!("{}{mark}", tool["name"].as_str().expect("a name"))
        })
        .collect();
    let approvals = answer["approvals"].as_array().expect("approvals").iter();
    let approvals: Vec<&str> = approvals.filter_map(Json::as_str).collect();
    let verdict = answer["verdict"].as_str().expect("a verdict");
    let reason = answer["verdict_reason"].as_str().unwrap_or("-");
    let (tools, approvals) = (tools.join(" "), approvals.join(" "));
    format!("{verdict} | {reason} | {tools} | {approvals}")
}

async fn check(cases: Vec<Case>) {
    for case in cases {
        let project = Project::with(&case.turns.join(" "));
        project.commit(SLUG, &case.flow).await;
        let answer = project.test(case.arguments).await;
        assert_eq!(
            line(&answer),
            case.expected,
            "{} {:?}",
            case.flow,
            case.turns
        );
        assert_eq!(project.open_runs().await, [], "{}", case.flow);
    }
}

const APPROVE_SEND: &str = ":approval {:mode :tools :tool-names [\"slack__send\"]}";
const IN_PLACE: &str = ":approval {:mode :tools :tool-names [\"slack__send\"] :resume :in-place}";

/// A turn whose call has arguments of the wrong type.
fn wrong(tool: &str) -> String {
    format!("{{:tool-calls [{{:name \"{tool}\" :arguments {{:to 5}}}}]}}")
}

/// A turn with two calls of `slack__send`, one of which has wrong arguments.
fn both(is_wrong_last: bool) -> String {
    let (first, last) = match is_wrong_last {
        true => ("\"a\"", "5"),
        false => ("5", "\"a\""),
    };
    let call = |to: &str| format!("{{:name \"slack__send\" :arguments {{:to {to}}}}}");
    format!("{{:tool-calls [{} {}]}}", call(first), call(last))
}

fn said() -> String {
    "\"Done.\"".to_owned()
}

#[test]
fn calls_of_a_model_decide() {
    run(check(vec![
        case(
            agent(""),
            &[calls(&["slack__send"]), said()],
            Some("slack__send"),
            "pass | - | slack__send | ",
        ),
        // The part after `__`, and the id of the packaged step.
        case(
            agent(""),
            &[calls(&["slack__send"]), said()],
            Some("send"),
            "pass | - | slack__send | ",
        ),
        case(
            agent(""),
            &[calls(&["slack__send"]), said()],
            Some("slack/send"),
            "pass | - | slack__send | ",
        ),
        case(
            agent(""),
            &[calls(&["look", "slack__send"]), said()],
            Some("send"),
            "pass | - | look slack__send | ",
        ),
        case(
            agent(""),
            &[calls(&["look"]), calls(&["slack__send"]), said()],
            Some("send"),
            "pass | - | look slack__send | ",
        ),
        case(
            agent(""),
            &[calls(&["look"]), said()],
            Some("send"),
            "incomplete | terminal tool 'send' never ran | look | ",
        ),
        case(
            agent(""),
            &[said()],
            Some("unheard_of"),
            "incomplete | terminal tool 'unheard_of' never ran |  | ",
        ),
        case(
            agent(""),
            &[calls(&["slack__send"]), said()],
            None,
            "unconfirmed | no terminal_tool expectation provided | slack__send | ",
        ),
        case(
            agent(""),
            &[said()],
            None,
            "unconfirmed | no terminal_tool expectation provided |  | ",
        ),
    ]));
}

#[test]
fn errors_of_tools_fail_a_test() {
    run(check(vec![
        case(
            agent(""),
            &[calls(&["break"]), said()],
            Some("break"),
            "failed | tool 'break' returned an error | break | ",
        ),
        case(
            agent(""),
            &[calls(&["break"]), calls(&["slack__send"]), said()],
            Some("send"),
            "failed | tool 'break' returned an error | break slack__send | ",
        ),
        case(
            agent(""),
            &[calls(&["break"]), said()],
            None,
            "failed | tool 'break' returned an error | break | ",
        ),
        // A call that a limit or the flow prevented is not an error of the tool.
        case(
            agent(":max-tool-calls 1"),
            &[calls(&["look", "slack__send"]), said()],
            Some("look"),
            "pass | - | look slack__send? | ",
        ),
        case(
            agent(":before-each-call (fn [_] {:refuse \"not today\"})"),
            &[calls(&["slack__send"]), said()],
            Some("send"),
            "unconfirmed | terminal tool 'send' ran but did not return output | slack__send? | ",
        ),
        // A tool that does not exist.
        case(
            agent(""),
            &[calls(&["slack_send"]), said()],
            Some("send"),
            "failed | tool 'slack_send' returned an error | slack_send | ",
        ),
    ]));
}

#[test]
fn wrong_arguments_and_errors_of_flows_fail_a_test() {
    run(check(vec![
        // Wrong arguments, before and after a call of the same tool that returns.
        case(
            agent(""),
            &[wrong("slack__send"), calls(&["slack__send"]), said()],
            Some("send"),
            "failed | tool 'slack__send' returned an error | slack__send | ",
        ),
        case(
            agent(""),
            &[calls(&["slack__send"]), wrong("slack__send"), said()],
            Some("send"),
            "failed | tool 'slack__send' returned an error | slack__send | ",
        ),
        case(
            agent(""),
            &[both(false), said()],
            Some("send"),
            "failed | tool 'slack__send' returned an error | slack__send | ",
        ),
        case(
            agent(""),
            &[both(true), said()],
            Some("send"),
            "failed | tool 'slack__send' returned an error | slack__send | ",
        ),
        case(
            agent(""),
            &[wrong("slack__send"), said()],
            Some("send"),
            "failed | tool 'slack__send' returned an error | slack__send | ",
        ),
        case(
            flow("(do (flow/step :slack/send {:to \"a\"}) (throw (ex-info \"late\" {})))"),
            &[],
            Some("send"),
            "failed | the run failed: late | slack__send | ",
        ),
        case(
            flow("(do (flow/step :crm/break {:to \"a\"}) 1)"),
            &[],
            None,
            "failed | tool 'break' returned an error | break | ",
        ),
        // An error that the flow handles is an error of the tool all the same.
        case(
            flow("(try (flow/step :crm/break {:to \"a\"}) (catch Exception e :handled))"),
            &[],
            Some("break"),
            "failed | tool 'break' returned an error | break | ",
        ),
    ]));
}

#[test]
fn approvals_pause_a_test() {
    let waiting =
        "unconfirmed | terminal tool 'send' is waiting for approval | slack__send? | slack__send";
    run(check(vec![
        case(
            agent(APPROVE_SEND),
            &[calls(&["slack__send"])],
            Some("send"),
            waiting,
        ),
        case(
            agent(IN_PLACE),
            &[calls(&["slack__send"])],
            Some("send"),
            waiting,
        ),
        // What returned before counts, although the run was paused later.
        case(
            agent(APPROVE_SEND),
            &[calls(&["crm__note"]), calls(&["slack__send"])],
            Some("note"),
            "pass | - | crm__note slack__send? | slack__send",
        ),
        case(
            agent(IN_PLACE),
            &[calls(&["look"]), calls(&["slack__send"])],
            Some("note"),
            "incomplete | terminal tool 'note' never ran | look slack__send? | slack__send",
        ),
        case(
            flow("(flow/step :send :ship {:confirm true})"),
            &[],
            Some("ship"),
            "unconfirmed | terminal tool 'ship' is waiting for approval | ship? | ship",
        ),
    ]));
}

#[test]
fn waits_pause_a_test_at_once() {
    run(check(vec![
        case(
            flow(
                "(do (flow/step :slack/send {:to \"a\"}) (flow/step :wait :pause {:key \"k\" :timeout \"2h\"}))",
            ),
            &[],
            Some("send"),
            "pass | - | slack__send | ",
        ),
        case(
            flow(
                "(do (flow/step :wait :pause {:key \"k\" :timeout \"2h\"}) (flow/step :slack/send {:to \"a\"}))",
            ),
            &[],
            Some("send"),
            "incomplete | terminal tool 'send' never ran |  | ",
        ),
        // A call whose result comes from outside.
        case(
            flow(
                "(flow/step :agent :writer {:connection :ai :objective \"x\" :client-tools [{:name \"ask\"}]})",
            ),
            &[calls(&["ask"])],
            Some("ask"),
            "unconfirmed | terminal tool 'ask' is waiting for approval | ask? | ",
        ),
    ]));
}

#[test]
fn steps_of_a_flow_are_tools_too() {
    run(check(vec![
        case(
            flow("(flow/step :send :ship {})"),
            &[],
            Some("ship"),
            "pass | - | ship | ",
        ),
        case(
            flow(
                "(do (flow/step :slack/send {:to \"a\"}) (flow/step :crm/look {:to \"a\"}) (flow/step :slack/send {:to \"b\"}))",
            ),
            &[],
            Some("slack__send"),
            "pass | - | slack__send look | ",
        ),
        // A step that only computes is not a tool.
        case(
            flow("(flow/step :function :sum {:code '(fn [_] 3)})"),
            &[],
            Some("sum"),
            "incomplete | terminal tool 'sum' never ran |  | ",
        ),
        // Attempts of one request are one call.
        case(
            flow(
                "(flow/step :function :sum {:code '(fn [_] 3) :retry {:max-attempts 2 :backoff-ms 1}})",
            ),
            &[],
            None,
            "unconfirmed | no terminal_tool expectation provided |  | ",
        ),
    ]));
}

#[test]
fn the_answer_says_what_the_model_and_the_flow_said() {
    run(async {
        let project = Project::with(&format!("{} \"All sent.\"", calls(&["slack__send"])));
        project.commit(SLUG, &agent("")).await;
        let answer = project.test(expecting("send")).await;
        assert_eq!(answer["output"], "All sent.", "{answer}");
        let resolved = json!({"harness": "flowstone", "model": "scripted", "provider": "scripted",
                              "connection_mode": "own"});
        assert_eq!(answer["resolved"], resolved, "{answer}");
        let run = project.run(&answer).await;
        let trace = run.in_trace().trace.to_string();
        assert_eq!(answer["trace_id"], json!(trace), "{answer}");
        assert_eq!(trace.len(), 32);
        assert_eq!((&*run.flow, &*run.started_by), (SLUG, "test"));
        assert!(answer.get("dry").is_none());
        // The text before the last calls is the last one if the run ends with calls.
        let project = Project::with(&format!(
            "{{:content \"On it.\" {}",
            calls(&["slack__send"]).trim_start_matches('{')
        ));
        project.commit(SLUG, &agent(APPROVE_SEND)).await;
        let answer = project.test(expecting("send")).await;
        assert_eq!(answer["output"], "On it.", "{answer}");
        for (body, output) in [("\"text\"", "text"), ("{:a 1}", "{\"a\":1}"), ("nil", "")] {
            let project = Project::with("");
            project.commit(SLUG, &flow(body)).await;
            let answer = project.test(json!({"inputs": {}})).await;
            assert_eq!(answer["output"], output, "{answer}");
            assert_eq!(answer["resolved"]["connection_mode"], "none", "{answer}");
        }
    });
}

#[test]
fn a_model_that_did_not_answer_is_named() {
    run(async {
        let settings = "{:allow {:net [\"127.0.0.1\"]}
            :connections {:ai {:backend :openai :model \"gpt-test\" :base-url \"http://127.0.0.1:9/v1\" :auth {:type :none}}}}";
        let step = |kind: &str, more: &str| {
            format!(
                "{{:slug :mail :flow '(flow/step :{kind} :ask {{:connection :ai :retry {{:max-attempts 1}} {more}}})}}"
            )
        };
        for (text, model) in [
            (step("llm", ":prompt \"x\""), "gpt-test"),
            (
                step("llm", ":prompt \"x\" :model \"gpt-other\""),
                "gpt-other",
            ),
            (step("agent", ":objective \"x\""), "gpt-test"),
        ] {
            let stores = Memory::new(MemoryOptions::default()).open();
            let project = Project::set(stores, settings);
            project.commit(SLUG, &text).await;
            let answer = project.test(json!({"inputs": {}})).await;
            assert_eq!(answer["verdict"], "failed", "{answer}");
            let resolved = json!({"harness": "flowstone", "model": model, "provider": "openai",
                                  "connection_mode": "own"});
            assert_eq!(answer["resolved"], resolved, "{text} {answer}");
            let filter = json!({"filtering": {"conditions": [
                {"field": "trace_id", "value": answer["trace_id"]},
                {"field": "span_type", "value": "chat"},
            ]}});
            let spans = project.call(&query_spans::TOOL, filter).await;
            let span = &spans["spans"][0];
            assert_eq!(span["span_name"], format!("chat {model}"), "{spans:#}");
            assert_eq!(
                span["attributes"]["gen_ai.request.model"], model,
                "{spans:#}"
            );
            assert_eq!(
                span["attributes"]["gen_ai.provider.name"], "openai",
                "{spans:#}"
            );
        }
    });
}

#[test]
fn a_trace_is_named_by_its_id() {
    run(async {
        let project = Project::with("");
        let asked = |value: &str| {
            let filter =
                json!({"filtering": {"conditions": [{"field": "trace_id", "value": value}]}});
            project.call(&query_spans::TOOL, filter)
        };
        assert_eq!(asked("zz").await["code"], "invalid_arguments");
        assert_eq!(asked("0af7651916cd43dd8448eb211c80319c").await["count"], 0);
        assert_eq!(asked("0dkp3v8w2m5xq7za").await["count"], 0);
        let window = json!({"windowing": {"oldest": "2026-01-31T09:30:00"}});
        let refused = project.call(&query_spans::TOOL, window).await;
        assert_eq!(refused["details"]["path"], "/windowing/oldest", "{refused}");
    });
}

#[test]
fn an_expectation_is_found_before_anything_runs() {
    run(async {
        let project = Project::with("");
        let text = flow("(do (flow/step :send :a__ship {}) (flow/step :send :b__ship {}))");
        project.commit(SLUG, &text).await;
        let answer = project.test(expecting("ship")).await;
        assert_eq!(answer["code"], "invalid_arguments", "{answer}");
        let expected =
            json!({"path": "/expectations/terminal_tool", "expected": "one of a__ship, b__ship"});
        assert_eq!(answer["details"], expected, "{answer}");
        assert_eq!(project.sent.get(), 0);
        let answer = project.test(expecting("b__ship")).await;
        assert_eq!(answer["verdict"], "pass", "{answer}");
    });
}
