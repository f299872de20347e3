use crate::project::Project;
use flowstone_engine::codec::decode;
use flowstone_engine::json::from_json;
use serde_json::json;

fn wait(config: &str) -> String {
    format!("(let [r (flow/step :wait :ok {config})] r)")
}

#[test]
fn a_sleep_is_as_long_as_it_says() {
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
fn an_answer_must_fit() {
    let project = Project::new();
    project.eval(&wait(
        "{:key \"k\" :actions [:approve :reject] :validation {:required [:by]}}",
    ));
    let refused = project.answer("k", &decode("{:action :maybe}").expect("EDN"));
    assert!(
        refused.contains(":by is missing")
            && refused.contains("[:action] should be one of :approve, :reject, is :maybe"),
        "{refused}"
    );
    // From JSON: the action is a keyword all the same.
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
fn nobody_answers() {
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
fn what_is_wrong_is_said() {
    let project = Project::new();
    for (config, expected) in [
        (
            "{:timeout \"31d\"}",
            "E0762 `:timeout` of a wait is at most 30 days, not \"31d\" | write it as in \"24h\" or \"30d\"",
        ),
        (
            "{:default-value 1}",
            "E0762 `:default-value` means nothing when `:on-timeout` is `:fail` | add `:on-timeout :continue`",
        ),
        (
            "{:validation [:mapp]}",
            "E0762 `:validation` is not a schema: `mapp` is not a schema type; did you mean `:map`? | as in `{:required [:action]}` or `[:map [:amount :int]]`",
        ),
        (
            "{:notify {:channels {}}}",
            "E0762 `:wait` cannot use `:notify` yet | send the message with an `:http` step before the wait",
        ),
    ] {
        assert_eq!(project.eval(&wait(config)), expected, "{config}");
    }
}
