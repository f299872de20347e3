//! `:provider :scripted`: responses from a script.

use expect_test::{Expect, expect};
use flowstone_flow::step::Progress;
use flowstone_steps::llm::Llm;

use crate::world::{World, wait};

/// Creates a project whose `:ai` answers from this script.
fn world(script: &str) -> World {
    World::new().settings(&format!(
        "{{:connections {{:ai {{:backend :scripted :script {script}}}}}}}"
    ))
}

/// Performs a call on a script and returns the outcome.
#[track_caller]
fn check(script: &str, config: &str, expected: Expect) {
    expected.assert_eq(&wait(world(script).run(&Llm, config)));
}

#[test]
fn the_number_of_earlier_answers_selects_the_turn() {
    let script = "{:turns [\"First.\" {:content {:n 2} :reasoning \"hm, so\" :finish-reason :stop :usage {:prompt-tokens 3 :completion-tokens 4 :cached-tokens 1}}]}";
    check(
        script,
        "{:connection :ai :prompt \"Hi\"}",
        expect![[
            r#"{:content "First." :usage {:prompt-tokens 0 :completion-tokens 0 :total-tokens 0} :tokens-used 0 :model "scripted" :provider :scripted :finish-reason "stop" :iterations 1}"#
        ]],
    );
    check(
        script,
        "{:connection :ai :messages [{:role :user :content \"Hi\"} {:role :assistant :content \"First.\"} {:role :user :content \"And?\"}] \
          :output {:format :json :schema [:map [:n :int]]}}",
        expect![[
            r#"{:content {:n 2} :usage {:prompt-tokens 3 :completion-tokens 4 :total-tokens 7 :cached-tokens 1} :tokens-used 7 :model "scripted" :provider :scripted :finish-reason "stop" :iterations 1 :reasoning "hm, so"}"#
        ]],
    );
}

#[test]
fn scripted_tool_calls_get_ids_and_may_be_invalid() {
    check(
        "{:turns [{:tool-calls [{:name \"files\" :arguments {:op \"list\"}} {:name \"files\" :arguments \"{oops\"} {:name :table :tool-call-id \"t\"}]}]}",
        "{:connection :ai :prompt \"x\" :tools [{:name \"files\"} {:name \"table\"}]}",
        expect![[
            r#"{:content "" :tool-calls [{:tool-call-id "call_1_1" :name "files" :arguments {:op "list"}} {:tool-call-id "call_1_2" :name "files" :arguments-text "{oops"} {:tool-call-id "t" :name "table" :arguments {}}] :usage {:prompt-tokens 24 :completion-tokens 9 :total-tokens 33} :tokens-used 33 :model "scripted" :provider :scripted :finish-reason "tool_calls" :iterations 1}"#
        ]],
    );
}

#[test]
fn the_messages_select_the_script() {
    let script = "{:scripts [{:when \"security\" :turns [\"safe\"]} {:when \"judge\" :turns [\"good\"]}] :turns [\"else\"]}";
    let content = |config: &str| {
        let value = wait(world(script).value(&Llm, config));
        value.get("content").unwrap().as_str().unwrap().to_string()
    };
    assert_eq!(
        content("{:connection :ai :prompt \"a security scan\"}"),
        "safe"
    );
    assert_eq!(
        content("{:connection :ai :system \"You judge.\" :prompt \"x\"}"),
        "good"
    );
    assert_eq!(content("{:connection :ai :prompt \"x\"}"), "else");
    check(
        "{:scripts [{:when \"security\" :turns [\"safe\"]}]}",
        "{:connection :ai :prompt \"x\"}",
        expect![[r#"
            E0825 no-turn: no script matches this request: it contains none of "security"
              hint: add one without `:when`, for all others
              data: {:request "model scripted\nuser: x"}"#]],
    );
}

#[test]
fn an_exhausted_script_shows_the_request() {
    check(
        "{:turns [\"one\"]}",
        "{:connection :ai :system \"S\" :messages [{:role :user :content \"Hi\"} {:role :assistant :tool-calls [{:tool-call-id \"1\" :name \"add\" :arguments {:a 1}}]} {:role :tool :tool-call-id \"1\" :name \"add\" :content {:sum 2}}] :tools [{:name \"add\"}]}",
        expect![[r#"
            E0825 no-turn: the script has 1 turn, but turn 2 was requested
              hint: a request with n messages of the assistant gets turn n + 1: add one to `:turns`
              data: {:request "model scripted, tools add\nsystem: S\nuser: Hi\nassistant:  [add {\"a\":1}]\ntool: {\"sum\":2}"}"#]],
    );
}

#[test]
fn a_turn_may_expect_its_request() {
    let script = "{:turns [{:content \"ok\" :expect {:user \"please\" :system \"brief\" :tools [\"add\"] :messages 2 :model \"m\"}}]}";
    let config = |system: &str, prompt: &str, rest: &str| {
        format!(
            "{{:connection :ai :model \"m\" :system \"{system}\" :prompt \"{prompt}\" :tools [{{:name \"add\"}}] {rest}}}"
        )
    };
    let says = |config: String| wait(world(script).run(&Llm, &config));
    assert!(says(config("Be brief.", "please", "")).contains(":content \"ok\""));
    for (config, problem) in [
        (
            config("Be long.", "please", ""),
            "expected \"brief\" in the last message of `:system`",
        ),
        (
            config("Be brief.", "now", ""),
            "expected \"please\" in the last message of `:user`",
        ),
        (
            config("Be brief.", "please", "").replace("\"add\"", "\"sub\""),
            "it should offer the tool `add`",
        ),
        (
            config("Be brief.", "please", "").replace("\"m\"", "\"n\""),
            "it should be for `m`, but is for `n`",
        ),
    ] {
        let shown = says(config);
        let wanted =
            format!("E0825 no-turn: the request is not what the turn expects: {problem}\n");
        assert!(shown.starts_with(&wanted), "{shown}");
    }
}

#[test]
fn a_turn_may_fail_as_providers_do() {
    let config = "{:connection :ai :prompt \"x\"}";
    for (error, expected) in [
        (
            ":rate-limited :retry-after-ms 1500",
            "E0804 rate-limited: scripted limits the rate of requests: as the script says\n  retry: after 1.5s\n",
        ),
        (
            ":unavailable :message \"gone\"",
            "E0805 unavailable: scripted cannot answer now (503): gone\n  retry: later\n",
        ),
        (":unauthorized", "E0801 unauthorized: "),
        (":not-found", "E0802 not-found: "),
        (":too-long", "E0803 too-long: "),
        (":no-credit", "E0804 no-credit: "),
        (":content-filter", "E0806 content-filter: "),
        (":refused", "E0806 refused: "),
        (":cut-off", "E0807 cut-off: "),
        (":bad-response", "E0808 bad-response: "),
        (":timeout", "E0812 timeout: "),
        (":bad-request", "E0813 bad-request: "),
    ] {
        let script = format!("{{:turns [{{:error {{:kind {error}}}}}]}}");
        let shown = wait(world(&script).run(&Llm, config));
        assert!(shown.starts_with(expected), "{shown}");
    }
    // Only from the second attempt on.
    let script = "{:turns [{:content \"ok\" :error {:kind :unavailable :times 1}}]}";
    assert!(wait(world(script).run(&Llm, config)).starts_with("E0805"));
}

#[test]
fn scripted_answers_are_streamed_in_pieces() {
    wait(async {
        let world = world(
            "{:turns [{:content \"one two three four five\" :reasoning \"a b\"}] :latency-ms 1 :piece-ms 1}",
        );
        world.value(&Llm, "{:connection :ai :prompt \"x\"}").await;
        let progress = world.progress.borrow();
        let is_call = |it: &&Progress| matches!(it, Progress::ModelCall(_));
        assert_eq!(progress.iter().filter(is_call).count(), 1);
        let shown: Vec<&Progress> = progress.iter().filter(|it| !is_call(it)).collect();
        expect![[r#"
            [
                Status(
                    "asking scripted (scripted)",
                ),
                Thought(
                    "a b",
                ),
                Text(
                    "one two three four ",
                ),
                Text(
                    "five",
                ),
                Spent {
                    tokens: 12,
                    usd: None,
                },
            ]"#]]
        .assert_eq(&format!("{shown:#?}"));
    });
}

#[test]
fn a_script_is_read_from_the_step_or_the_connection() {
    let own = "{:provider :scripted :prompt \"x\" :provider-opts {:scripted {:turns [\"own\"]}}}";
    assert!(wait(World::new().run(&Llm, own)).contains(":content \"own\""));
    let listed =
        World::new().providers("[{:id :fake :family :scripted :script {:turns [\"listed\"]}}]");
    let shown = wait(listed.run(&Llm, "{:provider :fake :prompt \"x\" :model \"m\"}"));
    assert!(
        shown.contains(":content \"listed\"") && shown.contains(":model \"m\" :provider :fake"),
        "{shown}"
    );
    for (script, error) in [
        (
            "{}",
            "E0825 bad-config: `:script` needs `:turns`, the answers in their order",
        ),
        (
            "{:turn [\"x\"]}",
            "E0726 bad-config: `:script` has no key `:turn`",
        ),
        (
            "{:turns \"x\"}",
            "E0825 bad-config: `:script :turns` takes a vector",
        ),
        (
            "{:turns [{:text \"x\"}]}",
            "E0726 bad-config: `a turn of a script` has no key `:text`",
        ),
        (
            "{:turns [{:error {:kind :oops}}]}",
            "E0825 bad-config: `:error` of a turn has no `:kind :oops`",
        ),
        (
            "{:turns [{:tool-calls [{:arguments {}}]}]}",
            "E0825 bad-config: a call of a turn's `:tool-calls` needs a `:name`",
        ),
    ] {
        let shown = wait(world(script).run(&Llm, "{:connection :ai :prompt \"x\"}"));
        assert!(shown.starts_with(error), "{shown}");
    }
    let shown = wait(World::new().run(&Llm, "{:provider :scripted :prompt \"x\"}"));
    assert!(
        shown.starts_with("E0810 bad-config: a `:scripted` provider needs a script"),
        "{shown}"
    );
}
