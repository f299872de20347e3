//! The rows of `tests/coverage/wait.tsv` that no other test shows.

use flowstone_engine::codec::decode;
use flowstone_engine::json::from_json;
use serde_json::json;

use crate::net::{Net, contains};
use crate::project::Project;
use crate::server::reply;

fn wait(config: &str) -> String {
    format!("(let [r (flow/step :wait :ok {config})] r)")
}

fn answer(project: &Project, key: &str, payload: &str) -> String {
    project.answer(key, &decode(payload).expect("EDN"))
}

#[test]
fn key() {
    let project = Project::new();
    contains(&project.eval(&wait("{:key :order-1}")), "waiting");
    assert_eq!(answer(&project, "order-1", "{:n 1}"), "{:n 1}");
}

#[test]
fn no_key() {
    let project = Project::new();
    contains(&project.eval(&wait("{}")), "waiting");
    let waits = project.block_on(project.engine.list_waits(Default::default()));
    let wait = waits.expect("waits").remove(0);
    assert_eq!(wait.key, format!("{}/ok", wait.run));
    assert_eq!(answer(&project, &wait.key, "5"), "5");
}

#[test]
fn timeout() {
    for (timeout, seconds) in [
        ("", 86_400),
        (":timeout 60", 60),
        (":timeout \"2h\"", 7_200),
    ] {
        let project = Project::new();
        let body = wait(&format!(
            "{{:on-timeout :continue :default-value :late {timeout}}}"
        ));
        contains(&project.eval(&body), "waiting");
        project.clock.advance(seconds * 1000 - 1);
        assert!(
            project
                .resume_all()
                .iter()
                .all(|it| it.starts_with("waiting")),
            "{timeout}"
        );
        project.clock.advance(1);
        assert_eq!(project.resume_all(), [":late"], "{timeout}");
    }
}

#[test]
fn on_timeout_fail() {
    let project = Project::new();
    let body = "(try (flow/step :wait :ok {:key \"k\" :timeout 1})
                  (catch Exception e (select-keys (ex-data e) [:kind :key :timeout])))";
    contains(&project.eval(body), "waiting");
    project.clock.advance(1000);
    let found = project.resume_all().remove(0);
    contains(&found, ":kind :timeout");
    contains(&found, ":key \"k\"");
    contains(&found, ":timeout");
}

#[test]
fn default_value() {
    let project = Project::new();
    let body = wait(
        "{:timeout 1 :on-timeout :continue :default-value {:action :reject :reason :timeout}}",
    );
    project.eval(&body);
    project.clock.advance(1000);
    assert_eq!(project.resume_all(), ["{:action :reject :reason :timeout}"]);
    contains(&project.eval(&wait("{:default-value 1}")), "E0762");
}

#[test]
fn validation() {
    for schema in ["{:required [:amount]}", "[:map [:amount :int]]"] {
        let project = Project::new();
        project.eval(&wait(&format!("{{:key \"k\" :validation {schema}}}")));
        contains(&answer(&project, "k", "{:other 1}"), "refused");
        assert_eq!(answer(&project, "k", "{:amount 5}"), "{:amount 5}");
    }
}

#[test]
fn key_from_the_run() {
    let project = Project::new();
    let body = wait("{:key (str \"agent-\" (:workflow-id (:flow/ctx (flow/input))))}");
    contains(&project.eval(&body), "waiting");
    let waits = project.block_on(project.engine.list_waits(Default::default()));
    let wait = waits.expect("waits").remove(0);
    assert_eq!(wait.key, format!("agent-{}", wait.run));
}

#[test]
fn actions_are_keywords() {
    let project = Project::new();
    project.eval(&wait(
        "{:key \"k\" :approval {:actions [:approve :reject]}}",
    ));
    assert_eq!(
        project.answer("k", &from_json(&json!({"action": "approve"}))),
        "{:action :approve}"
    );
}

#[test]
fn several_waits_of_a_key() {
    let project = Project::new();
    project.eval(&wait("{:key \"k\"}"));
    project.eval(&wait("{:key \"k\"}"));
    assert_eq!(answer(&project, "k", "7"), "7\n7");
}

#[test]
fn early_signal() {
    let project = Project::new();
    assert_eq!(answer(&project, "k", "{:n 1}"), "kept");
    assert_eq!(project.eval(&wait("{:key \"k\"}")), "{:n 1}");
}

#[test]
fn notify_by_a_template() {
    let net = Net::with(
        vec![reply("204 No Content", &[], "")],
        &[(
            "flowstone.edn",
            "{:connections {:chat {:base-url \"URL\"}}}",
        )],
    );
    let text = "{:slug :a :templates [{:id :ask :type :notification
          :channels {:http {:connection :chat :path \"/m\" :json {:text \"Pay {{amount}} for {{order}}?\"}}}}]
        :flow '(flow/step :wait :ok {:key \"k\" :notify {:template :ask :data {:amount 5 :order \"o-1\"}}})}";
    contains(&net.eval(text), "waiting");
    contains(&net.server.requests()[0], "Pay 5 for o-1?");
}

#[test]
fn links_of_an_approval() {
    let net = Net::with(
        vec![reply("204 No Content", &[], "")],
        &[(
            "flowstone.edn",
            "{:connections {:chat {:base-url \"URL\"}} :server {:url \"https://flows.test\"}}",
        )],
    );
    let body = "(flow/step :wait :ok {:key \"k\"
        :approval {:template \"{base-url}/go/{team}/{action}?t={token}\" :params {:team \"red\"}}
        :notify {:channels {:http {:connection :chat :path \"/m\" :json {:text \"{{approval-url}}\"}}}}})";
    contains(&net.eval(body), "waiting");
    contains(
        &net.server.requests()[0],
        "https://flows.test/go/red/approve?t=",
    );
}
