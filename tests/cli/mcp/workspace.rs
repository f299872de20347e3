//! Tools of the workspace that change something.

use serde_json::json;

use super::{Client, token};
use crate::api::Api;
use crate::program::Scratch;

const HELLO: &str = r#"{:slug :hello :invocations {:default {:inputs [{:name :who :type :text}]}}
  :triggers [{:type :event :config {:source :webhook :event-name "order" :invocation :default
                                    :auth {:type :bearer :secret-ref :orders}}}]
  :schedules [{:id :daily :cron "0 6 * * *"}]
  :flow '(str "Hello, " (:who (flow/input)))}"#;
const WORK: &str =
    "{:slug :work :flow '(flow/step :job :order {:op :submit :job-type :image :payload {:n 1}})}";

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write(".env", "ORDERS=s1\n");
    scratch.write("flows/hello.edn", HELLO);
    scratch.write("flows/work.edn", WORK);
    scratch
}

#[test]
fn jobs_are_worked_on_with_their_scope() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let started = api.post("/api/v1/flows/work/runs", &json!({"wait": "60s"}));
    assert_eq!(started.status, 200, "{started:?}");
    let works = token(&scratch, &["--scope", "work"]);
    let client = Client::begin(&api, &works, &json!({}));
    let tools = client.tools();
    assert_eq!(
        tools,
        ["claim", "complete", "fail", "progress"].map(|name| format!("workspace_jobs_{name}"))
    );
    let claim = json!({"types": ["image"], "worker": "agent", "lease": "30s"});
    let claimed = client.call("workspace_jobs_claim", &claim);
    let job = &claimed["structuredContent"]["jobs"][0];
    let (id, lease) = (&job["id"], &job["lease"]["token"]);
    assert_eq!(job["payload"]["n"], 1, "{claimed}");
    let progress = json!({"id": id, "lease": lease, "progress": {"done": 1}});
    let extended = client.call("workspace_jobs_progress", &progress);
    assert_eq!(
        extended["structuredContent"]["cancelRequested"], false,
        "{extended}"
    );
    let wrong = json!({"id": id, "lease": "none", "result": {}});
    let refused = client.call("workspace_jobs_complete", &wrong);
    assert_eq!(refused["isError"], true, "{refused}");
    let done = json!({"id": id, "lease": lease, "result": {"ok": true}});
    let done = client.call("workspace_jobs_complete", &done);
    assert_eq!(done["structuredContent"]["status"], "succeeded", "{done}");
    let owner = Client::owner(&api);
    let shown = owner.call("workspace_jobs_show", &json!({"id": id}));
    assert_eq!(shown["structuredContent"]["result"]["ok"], true, "{shown}");
    // A hint names the tool that does what it says.
    let missing = owner.call("workspace_runs_show", &json!({"id": "none"}));
    let text = missing["content"][0]["text"].as_str().unwrap_or_default();
    assert!(
        text.contains("`workspace_runs_list` shows the runs"),
        "{text}"
    );
}

#[test]
fn drafts_are_versions_and_notes_are_kept() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let edits = token(&scratch, &["--scope", "edit", "--scope", "read"]);
    let client = Client::begin(&api, &edits, &json!({}));
    let draft = HELLO.replace("Hello", "Good morning");
    let kept = client.call(
        "workspace_flows_push_draft",
        &json!({"flow_literal": draft}),
    );
    let version = &kept["structuredContent"]["version"];
    assert_eq!(version["slug"], "hello", "{kept}");
    assert_eq!(
        (&version["version"], &version["author"]),
        (&json!(1), &json!("t")),
        "{kept}"
    );
    // The next one names the version that it was made from.
    let next = draft.replace("morning", "evening");
    let stale = client.call("workspace_flows_push_draft", &json!({"flow_literal": next}));
    assert_eq!(stale["isError"], true, "{stale}");
    let based = json!({"flow_literal": next, "base": 1, "message": "Later"});
    let based = client.call("workspace_flows_push_draft", &based);
    assert_eq!(based["structuredContent"]["status"], "committed", "{based}");
    let first = client.call(
        "workspace_flows_pull",
        &json!({"slug": "hello", "version": 1}),
    );
    assert!(first.to_string().contains("Good morning"), "{first}");
    let pulled = client.call(
        "workspace_flows_pull",
        &json!({"slug": "hello", "source": "draft"}),
    );
    assert!(pulled.to_string().contains("Good evening"), "{pulled}");
    let served = client.call("workspace_flows_pull", &json!({"slug": "hello"}));
    assert_eq!(served["structuredContent"]["source"], HELLO, "{served}");
    let broken = client.call(
        "workspace_flows_push_draft",
        &json!({"flow_literal": "{:slug :x}"}),
    );
    assert_eq!(broken["isError"], true, "{broken}");
    // A released flow is served without a file.
    let released = api.post("/api/v1/registry/hello/release", &json!({"version": 1}));
    assert_eq!(released.status, 200, "{released:?}");
    for source in [
        json!({"slug": "hello"}),
        json!({"slug": "hello", "source": "live"}),
    ] {
        let live = client.call("workspace_flows_pull", &source);
        assert!(live.to_string().contains("Good morning"), "{live}");
    }

    let note =
        json!({"message": "Please greet in Norwegian.", "title": "Language", "flow": "hello"});
    let sent = client.call("workspace_feedback_send", &note);
    assert_eq!(sent["isError"], false, "{sent}");
    let rows = client.call("workspace_tables_rows", &json!({"name": "feedback"}));
    let row = &rows["structuredContent"]["rows"][0];
    assert_eq!(row["message"], "Please greet in Norwegian.", "{rows}");
    assert_eq!((&row["flow"], &row["run"]), (&json!("hello"), &json!(null)));

    // A token that is limited to flows has none of these tools, and no drafts.
    let limited = token(
        &scratch,
        &["--scope", "edit", "--scope", "read", "--flow", "hello"],
    );
    let client = Client::begin(&api, &limited, &json!({}));
    let tools = client.tools();
    assert!(
        !tools
            .iter()
            .any(|tool| tool.contains("draft") || tool.contains("delete")),
        "{tools:?}"
    );
    let hidden = client.call(
        "workspace_flows_pull",
        &json!({"slug": "hello", "source": "draft"}),
    );
    assert_eq!(hidden["isError"], true, "{hidden}");
}

#[test]
fn events_forks_and_files_are_those_of_the_api() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let client = Client::owner(&api);
    let event = json!({"name": "order", "payload": {"who": "Ada"}});
    let published = client.call("workspace_events_publish", &event);
    assert_eq!(published["isError"], false, "{published}");
    let run = &published["structuredContent"]["runs"][0];
    let run = run.as_str().expect("a run").to_owned();
    assert_eq!(scratch.run(&["runs", "watch", &run]).code, Some(0));
    let fork = client.call(
        "workspace_runs_fork",
        &json!({"id": run, "set": {"input.who": "Bob"}}),
    );
    let fork = fork["structuredContent"]["id"]
        .as_str()
        .expect("a fork")
        .to_owned();
    assert_eq!(scratch.run(&["runs", "watch", &fork]).code, Some(0));
    let diff = client.call("workspace_runs_diff", &json!({"id": run, "other": fork}));
    assert_eq!(diff["structuredContent"]["same"], false, "{diff}");

    scratch.write("may.txt", "a,b");
    let stored = scratch.run(&["resources", "upload", "may.txt"]);
    let uri = stored.out.trim_end();
    let link = client.call("workspace_resources_url", &json!({"uri": uri, "ttl": 120}));
    assert!(link["structuredContent"]["url"].is_string(), "{link}");
    let deleted = client.call("workspace_resources_delete", &json!({"uri": uri}));
    assert_eq!(deleted["structuredContent"]["done"], true, "{deleted}");
    let gone = client.call("workspace_resources_read", &json!({"uri": uri}));
    assert_eq!(gone["isError"], true, "{gone}");
}
