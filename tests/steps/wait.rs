use crate::project::Project;
use flowstone_engine::codec::decode;
use flowstone_engine::json::from_json;
use serde_json::json;

fn wait(config: &str) -> String {
    format!("(let [r (flow/step :wait :ok {config})] r)")
}

#[test]
fn a_sleep_lasts_as_long_as_configured() {
    let project = Project::new();
    for (config, expected) in [
        ("{}", "{:slept-seconds 1}"),
        ("{:seconds 30}", "{:slept-seconds 30}"),
        ("{:millis 1500}", "{:slept-seconds 1.5}"),
        ("{:duration \"5m\"}", "{:slept-seconds 300}"),
        (
            "{:seconds 1 :millis 1}",
            "E0766 `:sleep` takes one of `:millis` and `:seconds`, not both",
        ),
        (
            "{:seconds -1}",
            "E0766 `:seconds` is not a length of time: -1 | give a number of 0 or more, or text such as \"10s\"",
        ),
        (
            "{:duration \"400d\"}",
            "E0766 `:duration` is longer than a year | a schedule starts runs far ahead",
        ),
    ] {
        assert_eq!(
            project.eval(&format!("(let [r (flow/step :sleep :zz {config})] r)")),
            expected,
            "{config}"
        );
    }
}

#[test]
fn a_wait_is_answered() {
    let project = Project::new();
    assert_eq!(
        project.eval(&wait("{:key \"k\"}")),
        "waiting: `ok` waits for an answer 1"
    );
    let project = project.reopen();
    assert_eq!(
        project.answer("k", &decode("{:action :approve :by \"ada\"}").expect("EDN")),
        "{:action :approve :by \"ada\"}"
    );
}

#[test]
fn an_answer_must_match_the_validation() {
    let project = Project::new();
    project.eval(&wait(
        "{:key \"k\" :actions [:approve :reject] :validation {:required [:by]}}",
    ));
    let refused = project.answer("k", &decode("{:action :maybe}").expect("EDN"));
    assert!(
        refused.contains(":by is missing")
            && refused.contains("at [:action]: should be one of :approve, :reject, but is :maybe"),
        "{refused}"
    );
    // In JSON the action is a string, and still becomes a keyword.
    let answer = from_json(&json!({"action": "approve", "by": "ada"}));
    assert_eq!(
        project.answer("k", &answer),
        "{:action :approve :by \"ada\"}"
    );
}

#[test]
fn an_early_answer_is_kept() {
    let project = Project::new();
    assert_eq!(
        project.answer("early", &decode("{:n 1}").expect("EDN")),
        "kept"
    );
    assert_eq!(project.eval(&wait("{:key \"early\"}")), "{:n 1}");
}

#[test]
fn an_unanswered_wait_times_out() {
    let project = Project::new();
    project.eval(&wait(
        "{:key \"a\" :timeout \"1h\" :on-timeout :continue :default-value {:action :reject}}",
    ));
    project.clock.advance(3_600_000);
    assert_eq!(project.resume_all(), ["{:action :reject}"]);
    project.eval(&wait("{:key \"b\" :timeout 60}"));
    project.clock.advance(60_000);
    let outcome = project.resume_all().remove(0);
    assert!(outcome.starts_with('E'), "{outcome}");
}

#[test]
fn the_project_limits_the_timeout_of_waits() {
    let project = Project::with("{:waits {:max-timeout \"30d\"}}");
    assert_eq!(
        project.eval(&wait("{:timeout \"31d\"}")),
        "E0762 `:timeout` of a wait is at most \"30d\" in this project, not \"31d\" | `:waits {:max-timeout ...}` of flowstone.edn says so"
    );
    assert!(
        project
            .eval(&wait("{:timeout \"30d\"}"))
            .starts_with("waiting")
    );
    assert!(
        Project::new()
            .eval(&wait("{:timeout \"90d\"}"))
            .starts_with("waiting")
    );
}

#[test]
fn an_approval_offers_actions_and_takes_keywords() {
    let project = Project::new();
    let answer = |json: serde_json::Value| project.answer("k", &from_json(&json));
    for (config, answers) in [
        (
            "{:key \"k\" :approval {}}",
            [("approve", "{:action :approve}"), ("maybe", "refused")],
        ),
        (
            "{:key \"k\" :actions [\"yes\" no]}",
            [(":yes", "{:action :yes}"), ("approve", "refused")],
        ),
        (
            "{:key \"k\" :approval {:actions [:ship :hold]} :validation {:required [:action]}}",
            [("hold", "{:action :hold}"), ("no", "refused")],
        ),
    ] {
        let config = config.replace(" no]", " 'no]");
        let [(good, value), (bad, _)] = answers;
        let asked = project.eval(&wait(&config));
        assert!(asked.starts_with("waiting"), "{config}: {asked}");
        assert!(answer(json!({"action": bad})).starts_with("refused"));
        assert_eq!(answer(json!({"action": good})), value, "{config}");
    }
}

#[test]
fn invalid_configs_are_refused() {
    let project = Project::new();
    for (config, expected) in [
        (
            "{:default-value 1}",
            "E0762 `:default-value` means nothing when `:on-timeout` is `:fail` | add `:on-timeout :continue`",
        ),
        (
            "{:validation [:mapp]}",
            "E0762 `:validation` is not a schema: `mapp` is not a schema type; did you mean `:map`? | as in `{:required [:action]}` or `[:map [:amount :int]]`",
        ),
        (
            "{:key \"a\" :signal-key \"b\"}",
            "E0762 `:signal-key` is another name of `:key`; give one",
        ),
        (
            "{:key \"\"}",
            "E0762 `:key` is empty | leave it out for a key of the wait's own",
        ),
        ("{:roles [1]}", "E0762 `:roles` holds names, not 1"),
        ("{:actions [[]]}", "E0762 `:actions` holds names, not []"),
        (
            "{:notify {:channels {}}}",
            "E0716 `:channels` holds no channel | add `:http` or `:email`",
        ),
        (
            "{:notify {:channels {:ui {}}}}",
            "E0716 there is no channel `:ui` | messages go by `:http` or `:email`, through a connection",
        ),
        (
            "{:notify {:channels {:http {:url \"https://example.com\"}}}}",
            "E0716 `:channels :http` takes no `:url` | address and auth are those of its `:connection`",
        ),
        (
            "{:notify {:channels {:http {:path \"/a\"}}}}",
            "E0716 `:channels :http` needs a `:connection`",
        ),
        (
            "{:notify {:to \"ada\"}}",
            "E0726 `:notify` has no key `:to` | it takes `:channels` `:data` `:template`",
        ),
        (
            "{:notify {}}",
            "E0716 a message needs `:channels` or a `:template` | as in `:channels {:http {:connection :chat :path \"/messages\" :json {:text \"...\"}}}`",
        ),
        (
            "{:event {:key \"a\"}}",
            "E0717 `:event` needs the name of the event | as in `:event {:name \"orders.callback\" :key {:path [:order-id]}}`",
        ),
        (
            "{:source :webhook}",
            "E0717 `:source` needs the name of the event | as in `:event {:name \"orders.callback\" :key {:path [:order-id]}}`",
        ),
        (
            "{:event {:name \"e\" :key {:path [:a]}}}",
            "E0717 an event with a key in its payload needs the `:key` that it is compared with | add `:key` to the wait, such as the id of the order",
        ),
        (
            "{:key \"k\" :event {:name \"e\" :key {:path [:a]}} :event-key-path [:b]}",
            "E0717 the key of the event is given twice",
        ),
        (
            "{:key \"k\" :event {:name \"e\" :key {:path []}}}",
            "E0717 the path to the event's key is empty",
        ),
        (
            "{:event {:name \"e\"} :event-name \"f\"}",
            "E0717 `:event-name` is another spelling of `:event {:name ...}`; give one",
        ),
        (
            "{:approval {:template \"{base}/x\"}}",
            "E0718 `:approval :template` names `{base}`, which is not there | there are `{action}` `{base-url}` `{token}` `{wait-id}` `{workspace-id}`, and what `:params` holds",
        ),
        (
            "{:approval {:template \"{token\"}}",
            "E0718 `:approval :template` has a `{` without its `}`",
        ),
        (
            "{:actions [:yes] :approval {:actions [:no]}}",
            "E0718 `:actions` and `:approval {:actions ...}` say different things | one of them is enough",
        ),
        (
            "{:webhook {:path \"../up\"}}",
            "E0719 `:webhook :path` cannot be \"../up\" | as in \"orders/callback\"",
        ),
        (
            "{:webhook {:auth {:type :none}}}",
            "E0719 `:webhook :auth` has no type `:none` | there are `:api-key` `:basic` `:bearer` `:github` `:hmac-sha256` `:ip-allowlist` `:signature` `:slack` `:standard-webhooks` `:stripe`",
        ),
        (
            "{:webhook {:auth {:type :bearer}}}",
            "E0719 `:webhook :auth` of type `:bearer` needs `:secret-ref`",
        ),
        (
            "{:webhook {:auth {:type :bearer :token \"x\"}}}",
            "E0726 `:webhook :auth` has no key `:token` | it takes `:secret-ref` `:type`",
        ),
    ] {
        assert_eq!(project.eval(&wait(config)), expected, "{config}");
    }
}
