//! What each side of an installation sees over HTTP.

use serde_json::{Value, json};

use super::installations::ok;
use crate::api::{Api, Reply};
use crate::program::Scratch;

const NOTE: &str = r#"{:slug :note
 :discover {:public true}
 :concurrency {:type :singleton :on-new-version :coexist}
 :invocations {:default {:inputs [{:name :word :type :text :required true}]}}
 :flow '(let [word (:word (flow/input))]
          (flow/step :kv :keep {:operation :set :key "last" :value word})
          (flow/step :table :row {:op :insert :table "notes" :rows [{:word word}]})
          (flow/step :wait :go {:key (str "go-" word) :approval {:actions [:approve :reject]} :timeout "1h"})
          {:said word})}"#;

/// An author and two installers in one home.
struct Home {
    api: Api,
    author: String,
    acme: String,
    beta: String,
}

impl Home {
    fn open(scratch: &Scratch) -> Home {
        scratch.write("flows/note.edn", NOTE);
        ok(&scratch.run(&["flows", "push", "note"]));
        ok(&scratch.run(&["flows", "release", "note"]));
        let token = |name: &str, more: &[&str]| {
            let scopes = ["read", "run", "edit", "approve"]
                .map(|it| ["--scope", it])
                .concat();
            let args = [&["tokens", "create", "--name", name], &*scopes, more].concat();
            ok(&scratch.run(&args))
        };
        let home = Home {
            author: token("author", &[]),
            acme: token("acme", &["--workspace", "acme"]),
            beta: token("beta", &["--workspace", "beta"]),
            api: Api::serve(scratch),
        };
        for token in [&home.acme, &home.beta] {
            let new = json!({"slug": "note", "name": "main"});
            let made = home.api.post_as(token, "/api/v1/installations", &new);
            assert_eq!(made.status, 201, "{made:?}");
        }
        home
    }

    /// Starts a run of an installation, and returns its id once it waits.
    fn start(&self, token: &str, word: &str) -> String {
        let body = json!({"installation": "main", "input": {"word": word}, "wait": "60s"});
        let started = self.api.post_as(token, "/api/v1/flows/note/runs", &body);
        assert_eq!(started.json()["status"], "waiting", "{started:?}");
        started.json()["id"].as_str().expect("an id").to_owned()
    }

    fn get(&self, token: &str, path: &str) -> Reply {
        self.api.get_as(token, path)
    }
}

fn items(reply: &Reply, name: &str) -> Vec<Value> {
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()[name].as_array().expect("a list").clone()
}

#[test]
fn spans_of_an_installation_are_the_authors() {
    let scratch = Scratch::new();
    let home = Home::open(&scratch);
    let run = home.start(&home.acme, "zebra");
    let spans = |token: &str, query: &Value| {
        let reply = home.api.post_as(token, "/api/spans/query", query);
        items(&reply, "spans")
    };
    let of_trace =
        json!({"filtering": {"conditions": [{"field": "trace_id", "value": run.as_str()}]}});
    for query in [&of_trace, &json!({})] {
        // The author gets all of the run, also what the installer gave it.
        let all = spans(&home.author, query);
        assert!(all.len() > 3, "{all:?}");
        assert_eq!(all.iter().filter(|it| it["parent_id"].is_null()).count(), 1);
        assert!(json!(all).to_string().contains("zebra"), "{all:?}");
        assert_eq!(spans(&home.beta, query), [] as [Value; 0]);
        // The installer gets the span of the run, without what the author's flow did.
        let own = spans(&home.acme, query);
        assert_eq!(own.len(), 1, "{own:?}");
        assert_eq!(own[0]["span_type"], "workflow");
        assert_eq!(
            (&own[0]["attributes"], &own[0]["events"]),
            (&json!({}), &json!([]))
        );
        assert_eq!(own[0]["trace_id"], all[0]["trace_id"]);
    }
    // A filter does not tell the installer what the span does not show.
    let condition = json!({"field": "content", "operator": "contains", "value": "zebra"});
    let by_content = json!({"filtering": {"conditions": [condition]}});
    assert_eq!(spans(&home.acme, &by_content), [] as [Value; 0]);
    assert_ne!(spans(&home.author, &by_content), [] as [Value; 0]);
    // Runs that a run calls are steps of the author's flow.
    let of_kind = json!({"field": "span_type", "value": "task"});
    let tasks = json!({"filtering": {"conditions": [of_kind]}});
    assert_eq!(spans(&home.acme, &tasks), [] as [Value; 0]);
}

#[test]
fn each_side_sees_what_is_its_own_and_nothing_else() {
    let scratch = Scratch::new();
    let home = Home::open(&scratch);
    let run = home.start(&home.acme, "zebra");
    let at = |rest: &str| format!("/api/v1/runs/{run}{rest}");
    // The record of the run.
    let own = home.get(&home.acme, &at("")).json();
    assert_eq!(own["input"]["word"], "zebra", "{own}");
    assert_eq!(own["flow"], "note@acme/main");
    let known = home.get(&home.author, &at("")).json();
    assert_eq!(known["status"], "waiting", "{known}");
    assert_eq!(known["version"], 1);
    assert_eq!(
        (&known["input"], &known["waitReason"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(home.get(&home.beta, &at("")).status, 404);
    // Steps, journal and spans.
    assert_eq!(home.get(&home.author, &at("/journal")).status, 200);
    assert_eq!(home.get(&home.author, &at("?step=keep")).status, 200);
    for token in [&home.acme, &home.beta] {
        assert_eq!(home.get(token, &at("/journal")).status, 404);
        assert_eq!(home.get(token, &at("?step=keep")).status, 404);
    }
    assert_eq!(home.get(&home.beta, &at("/spans")).status, 404);
    let spans = items(&home.get(&home.acme, &at("/spans")), "spans");
    assert!(spans.len() <= 1, "{spans:?}");
    // Feeds, exports and comparisons are for those who see both sides.
    for path in ["/feed", "/export", "/events"] {
        for token in [&home.author, &home.acme, &home.beta] {
            assert_eq!(home.get(token, &at(path)).status, 404, "{path}");
        }
        assert_eq!(home.api.get(&at("/feed")).status, 200);
    }
    // Lists.
    for (token, count) in [(&home.author, 1), (&home.acme, 1), (&home.beta, 0)] {
        assert_eq!(items(&home.get(token, "/api/v1/runs"), "runs").len(), count);
        let full = items(&home.get(token, "/api/v1/runs?full=true"), "runs");
        let has_input = full.iter().any(|run| run.to_string().contains("zebra"));
        assert_eq!(has_input, *token == home.acme, "{full:?}");
    }
    for (token, count) in [(&home.author, 0), (&home.acme, 1), (&home.beta, 0)] {
        let found = items(&home.get(token, "/api/v1/runs?text=zebra"), "runs");
        assert_eq!(found.len(), count, "{found:?}");
        let listed = items(&home.get(token, "/api/v1/installations"), "installations");
        assert_eq!(
            listed.len(),
            usize::from(*token != home.author),
            "{listed:?}"
        );
    }
    // Waits and approvals.
    let waits = items(&home.get(&home.acme, "/api/v1/waits"), "waits");
    assert_eq!(waits.len(), 1, "{waits:?}");
    let wait = waits[0]["id"].as_str().expect("an id").to_owned();
    for token in [&home.author, &home.beta] {
        assert_eq!(items(&home.get(token, "/api/v1/waits"), "waits").len(), 0);
        assert_eq!(
            home.get(token, &format!("/api/v1/waits/{wait}")).status,
            404
        );
        let approve = format!("/api/v1/waits/{wait}/approve");
        assert_eq!(home.api.post_as(token, &approve, &json!({})).status, 404);
        let cancel = home.api.post_as(token, &at("/cancel"), &json!({}));
        assert_eq!(cancel.status, 404, "{cancel:?}");
    }
    let approve = format!("/api/v1/waits/{wait}/approve");
    assert_eq!(
        home.api.post_as(&home.acme, &approve, &json!({})).status,
        200
    );
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while home.get(&home.acme, &at("")).json()["status"] != "completed" {
        assert!(std::time::Instant::now() < end, "it does not end");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(
        home.get(&home.acme, &at("")).json()["result"]["said"],
        "zebra"
    );
    assert_eq!(
        home.get(&home.author, &at("")).json()["result"],
        Value::Null
    );
}

#[test]
fn tables_keys_and_search_of_an_installation_are_the_installers() {
    let scratch = Scratch::new();
    let home = Home::open(&scratch);
    home.start(&home.acme, "zebra");
    home.start(&home.beta, "yak");
    let key =
        "/api/v1/resources/content?uri=res://v1/ws/local/result/kv/installation:acme:main:last";
    let own = home.get(&home.acme, key);
    assert_eq!(own.status, 200, "{own:?}");
    assert!(own.body.contains("zebra"), "{own:?}");
    for token in [&home.author, &home.beta] {
        let other = home.get(token, key);
        assert_eq!(other.status, 404, "{other:?}");
    }
    // A table is neither there by its number nor by its name in the flow.
    let kept = [
        "resources",
        "table",
        "query",
        "installation/acme/main/notes",
    ];
    let kept = scratch.json_of(&kept).to_string();
    assert!(kept.contains("zebra"), "{kept}");
    for name in ["1", "2", "3", "4", "notes"] {
        let path = format!("/api/v1/tables/{name}/rows");
        for token in [&home.author, &home.beta] {
            let seen = home.get(token, &path);
            assert!(!seen.body.contains("zebra"), "{name}: {seen:?}");
        }
    }
    for (token, own) in [
        (&home.author, ""),
        (&home.acme, "zebra"),
        (&home.beta, "yak"),
    ] {
        for path in [
            "/api/v1/resources",
            "/api/v1/search?q=zebra&hydrate=true",
            "/api/v1/search?q=yak&hydrate=true",
            "/api/v1/search?q=notes",
        ] {
            let found = home.get(token, path);
            assert_eq!(found.status, 200, "{path}: {found:?}");
            // The query itself is part of an answer.
            let hits = found.json();
            let hits = hits.get("hits").or(hits.get("resources")).cloned();
            let text = hits.unwrap_or_default().to_string();
            for word in ["zebra", "yak", "installation/acme", "installation/beta"] {
                let of = match word {
                    "installation/acme" => "zebra",
                    "installation/beta" => "yak",
                    word => word,
                };
                assert!(of == own || !text.contains(word), "{path} {word}: {text}");
            }
        }
    }
}

#[test]
fn flows_connections_and_other_installations_are_not_there_for_an_installer() {
    let scratch = Scratch::new();
    let home = Home::open(&scratch);
    for path in [
        "/api/v1/flows/note",
        "/api/v1/registry/note",
        "/api/v1/connections",
    ] {
        assert_eq!(home.get(&home.acme, path).status, 404, "{path}");
    }
    assert_eq!(
        items(&home.get(&home.acme, "/api/v1/flows"), "flows").len(),
        0
    );
    assert_eq!(
        items(&home.get(&home.acme, "/api/v1/registry"), "flows").len(),
        0
    );
    let plain = json!({"input": {"word": "ox"}});
    let started = home
        .api
        .post_as(&home.acme, "/api/v1/flows/note/runs", &plain);
    assert_eq!(started.status, 404, "{started:?}");
    for name in ["other", "beta/main"] {
        let body = json!({"installation": name, "input": {"word": "ox"}});
        let started = home
            .api
            .post_as(&home.acme, "/api/v1/flows/note/runs", &body);
        assert_eq!(started.problem(), "404 E1440", "{started:?}");
    }
    let path = "/api/v1/installations/main";
    assert_eq!(home.get(&home.author, path).problem(), "404 E1440");
    let wide = home.get(&home.acme, "/api/v1/installations/main?workspace=beta");
    assert_eq!(wide.problem(), "404 E1440");
}
