//! What of tables, flows, events and jobs an installer reaches over HTTP.

use serde_json::{Value, json};

use super::installations::ok;
use crate::api::{Api, Reply};
use crate::program::Scratch;

/// An author and two installers, each with a token that may do everything but administrate.
struct Home {
    api: Api,
    author: String,
    acme: String,
    beta: String,
}

impl Home {
    /// Opens a home with released flows, which both installers install as `main-SLUG`.
    fn open(scratch: &Scratch, flows: &[(&str, &str)]) -> Home {
        for (slug, body) in flows {
            scratch.write(&format!("flows/{slug}.edn"), public(slug, body));
            ok(&scratch.run(&["flows", "push", slug]));
            ok(&scratch.run(&["flows", "release", slug]));
        }
        let token = |name: &str, more: &[&str]| {
            let scopes = ["read", "run", "edit", "work"]
                .map(|it| ["--scope", it])
                .concat();
            ok(&scratch.run(&[&["tokens", "create", "--name", name], &*scopes, more].concat()))
        };
        let home = Home {
            author: token("author", &[]),
            acme: token("acme", &["--workspace", "acme"]),
            beta: token("beta", &["--workspace", "beta"]),
            api: Api::serve(scratch),
        };
        for (slug, _) in flows {
            for token in [&home.acme, &home.beta] {
                let new = json!({"slug": slug, "name": format!("main-{slug}")});
                let made = home.api.post_as(token, "/api/v1/installations", &new);
                assert_eq!(made.status, 201, "{made:?}");
            }
        }
        home
    }

    /// Starts a run and returns it once it waits or has ended.
    fn start(&self, token: &str, slug: &str, input: &Value) -> Value {
        let mut body = json!({"input": input, "wait": "60s"});
        if token != self.author {
            body["installation"] = json!(format!("main-{slug}"));
        }
        let path = format!("/api/v1/flows/{slug}/runs");
        let started = self.api.post_as(token, &path, &body);
        assert!(started.status < 300, "{started:?}");
        started.json()
    }

    fn get(&self, token: &str, path: &str) -> Reply {
        self.api.get_as(token, path)
    }

    fn run(&self, id: &Value) -> Value {
        let id = id.as_str().expect("an id");
        self.api.get(&format!("/api/v1/runs/{id}")).json()
    }
}

fn public(slug: &str, body: &str) -> String {
    format!(
        "{{:slug :{slug} :discover {{:public true}}\n \
         :concurrency {{:type :singleton :on-new-version :coexist}}\n \
         :invocations {{:default {{:inputs [{{:name :word :type :text}}]}}}}\n :flow '{body}}}\n"
    )
}

const ROW: &str = r#"(do (flow/step :table :row {:op :insert :table "notes" :rows [{:word (:word (flow/input))}]}) nil)"#;

#[test]
fn tables_are_read_by_number_and_by_name_and_hints_name_no_others() {
    let scratch = Scratch::new();
    let home = Home::open(&scratch, &[("note", ROW)]);
    for (token, word) in [
        (&home.author, "ox"),
        (&home.acme, "zebra"),
        (&home.beta, "yak"),
    ] {
        home.start(token, "note", &json!({"word": word}));
    }
    let listed = home.get(&home.acme, "/api/v1/resources?types=table").json();
    let uri = listed["resources"][0]["uri"].as_str().expect("a table");
    let number = uri.rsplit('/').next().expect("a number");
    let name = "installation%2Facme%2Fmain-note%2Fnotes";
    let content = format!("/api/v1/resources/content?uri={uri}");
    let mut paths = vec![content];
    for table in [number, name] {
        paths.push(format!("/api/v1/tables/{table}/rows"));
    }
    for path in &paths {
        for token in [&home.acme, &home.api.token] {
            let seen = home.get(token, path);
            assert_eq!(seen.status, 200, "{path}: {seen:?}");
            assert!(seen.body.contains("zebra"), "{path}: {seen:?}");
        }
        for token in [&home.author, &home.beta] {
            let seen = home.get(token, path);
            assert_eq!(seen.status, 404, "{path}: {seen:?}");
            for hidden in ["zebra", "acme/main", "beta"] {
                let is_asked = path.contains("acme") && hidden == "acme/main";
                assert!(is_asked || !seen.body.contains(hidden), "{path}: {seen:?}");
            }
        }
    }
    for (token, status) in [(&home.acme, 200), (&home.beta, 404)] {
        let path = format!("/api/v1/tables/{name}/query");
        let found = home.api.post_as(token, &path, &json!({"select": ["word"]}));
        assert_eq!(found.status, status, "{found:?}");
    }
    // A table that does not exist: the hint of the store has the tables of the same namespace only.
    let missing = [
        "resources",
        "table",
        "query",
        "installation/acme/main-note/none",
    ];
    let told = scratch.run(&missing).err;
    assert!(told.contains("installation/acme/main-note/notes"), "{told}");
    assert!(!told.contains("beta"), "{told}");
    let told = scratch.run(&["resources", "table", "query", "zzz"]).err;
    assert!(told.contains("there are `notes`"), "{told}");
    // Dots stay refused.
    for path in ["/api/v1/tables/..%2Fruns/rows", "/api/v1/runs/a%2Fb"] {
        assert_eq!(home.get(&home.acme, path).status, 400, "{path}");
    }
}

#[test]
fn a_token_that_names_its_tables_learns_no_other_names() {
    let scratch = Scratch::new();
    let home = Home::open(&scratch, &[("note", ROW)]);
    home.start(&home.author, "note", &json!({"word": "ox"}));
    let args = [
        "tokens",
        "create",
        "--name",
        "t",
        "--scope",
        "read",
        "--resource",
        "result/table/or",
    ];
    let limited = ok(&scratch.run(&args));
    let missing = home.get(&limited, "/api/v1/tables/orders/rows");
    assert_eq!(missing.problem(), "404 E0620");
    assert!(!missing.body.contains("notes"), "{missing:?}");
}

#[test]
fn an_explicit_default_workspace_is_that_of_the_home() {
    let scratch = Scratch::new();
    let home = Home::open(&scratch, &[("note", ROW)]);
    home.start(&home.author, "note", &json!({"word": "ox"}));
    let args = [
        "tokens",
        "create",
        "--name",
        "d",
        "--scope",
        "read",
        "--scope",
        "run",
        "--workspace",
        "default",
    ];
    let explicit = ok(&scratch.run(&args));
    for path in [
        "/api/v1/tables/notes/rows",
        "/api/v1/connections",
        "/api/v1/signals",
    ] {
        let plain = home.get(&home.author, path);
        assert_eq!(plain.status, 200, "{plain:?}");
        assert_eq!(home.get(&explicit, path).body, plain.body, "{path}");
    }
}

#[test]
fn the_text_of_a_flow_is_in_no_error_of_an_installer_who_may_not_read_it() {
    let scratch = Scratch::new();
    let body = r#"(let [hidden-plan 7] (throw (ex-info "no luck" {:n hidden-plan})))"#;
    let home = Home::open(&scratch, &[("boom", body)]);
    let run = home.start(&home.acme, "boom", &json!({}));
    assert_eq!(run["status"], "failed", "{run}");
    assert!(run.to_string().contains("no luck"), "{run}");
    assert!(run["error"]["place"]["line"].is_number(), "{run}");
    let id = run["id"].as_str().expect("an id");
    let mut shown = vec![run.to_string()];
    for path in ["", "?full=true", "?values=edn", "/spans"] {
        let seen = home.get(&home.acme, &format!("/api/v1/runs/{id}{path}"));
        assert_eq!(seen.status, 200, "{seen:?}");
        shown.push(seen.body);
    }
    shown.push(home.get(&home.acme, "/api/v1/runs?full=true").body);
    for text in shown {
        assert!(!text.contains("hidden-plan"), "{text}");
    }
    assert!(home.run(&run["id"]).to_string().contains("hidden-plan"));
    // A person who installs it from the home may read it.
    let install = [
        "flows",
        "install",
        "boom",
        "--as",
        "open",
        "--workspace",
        "acme",
    ];
    ok(&scratch.run(&install));
    let body = json!({"installation": "open", "input": {}, "wait": "60s"});
    let open = home
        .api
        .post_as(&home.acme, "/api/v1/flows/boom/runs", &body);
    assert!(open.body.contains("hidden-plan"), "{open:?}");
}

const PAID: &str =
    r#"(flow/step :wait :w {:key "k" :event {:name "paid" :key {:path [:order]}} :timeout "1h"})"#;

#[test]
fn events_and_signals_reach_waits_of_the_own_workspace_only() {
    let scratch = Scratch::new();
    let home = Home::open(&scratch, &[("paid", PAID)]);
    let tokens = [&home.author, &home.acme, &home.beta];
    let start = || tokens.map(|token| home.start(token, "paid", &json!({}))["id"].clone());
    let is_open = |id: &Value| home.run(id)["status"] == "waiting";
    let runs = start();
    let paid = json!({"name": "paid", "payload": {"order": "k"}});
    for token in [&home.acme, &home.author] {
        let answered = home.api.post_as(token, "/api/v1/events", &paid);
        let waits = answered.json()["waits"].as_array().expect("waits").len();
        assert_eq!(waits, 1, "{answered:?}");
    }
    assert!(is_open(&runs[2]), "the wait of another workspace is open");
    // The operator reaches what is left.
    let answered = home.api.post("/api/v1/events", &paid);
    assert_eq!(
        answered.json()["waits"].as_array().map(Vec::len),
        Some(1),
        "{answered:?}"
    );
    // Signals of the author reach its own wait.
    let runs = start();
    let signal = json!({"key": "k", "value": 1});
    let answered = home.api.post_as(&home.author, "/api/v1/signals", &signal);
    assert_eq!(
        answered.json()["completed"],
        json!([runs[0]]),
        "{answered:?}"
    );
    assert!(is_open(&runs[1]) && is_open(&runs[2]));
}

#[test]
fn early_events_and_signals_are_for_waits_of_the_own_workspace_only() {
    let scratch = Scratch::new();
    let home = Home::open(&scratch, &[("paid", PAID)]);
    let early = |by: &str| json!({"name": "early", "key": "e", "payload": {"from": by}});
    for (token, by) in [(&home.author, "author"), (&home.acme, "acme")] {
        let kept = home.api.post_as(token, "/api/v1/events", &early(by));
        assert_eq!(kept.json()["kept"], true, "{kept:?}");
        // The same name against repetition is another one in another workspace.
        let signal = json!({"key": "k", "value": {"from": by}, "dedup": "d"});
        let kept = home.api.post_as(token, "/api/v1/signals", &signal);
        assert_eq!(kept.json()["kept"], true, "{kept:?}");
        let again = home.api.post_as(token, "/api/v1/signals", &signal);
        assert_eq!(again.json()["deduped"], true, "{again:?}");
        let listed = home.get(token, "/api/v1/signals").json();
        let signals = listed["signals"].as_array().expect("signals");
        assert_eq!(signals.len(), 2, "{listed}");
        assert!(
            signals.iter().all(|it| it["payload"]["from"] == by),
            "{listed}"
        );
    }
    let later = r#"(flow/step :wait :w {:key "e" :event {:name "early"} :timeout "1h"})"#;
    scratch.write("flows/later.edn", public("later", later));
    // The signals first: beta has sent none.
    for (token, by) in [(&home.acme, "acme"), (&home.author, "author")] {
        let run = home.start(token, "paid", &json!({}));
        assert_eq!(run["status"], "completed", "{run}");
        assert_eq!(run["result"]["from"], by, "{run}");
    }
    assert_eq!(
        home.start(&home.beta, "paid", &json!({}))["status"],
        "waiting"
    );
    ok(&scratch.run(&["flows", "push", "later"]));
    ok(&scratch.run(&["flows", "release", "later"]));
    let new = json!({"slug": "later", "name": "main-later"});
    for token in [&home.acme, &home.beta] {
        let made = home.api.post_as(token, "/api/v1/installations", &new);
        assert_eq!(made.status, 201, "{made:?}");
    }
    assert_eq!(
        home.start(&home.beta, "later", &json!({}))["status"],
        "waiting"
    );
    let run = home.start(&home.acme, "later", &json!({}));
    assert_eq!(run["result"]["from"], "acme", "{run}");
    let body = json!({"input": {}, "target": "live", "wait": "60s"});
    let own = home
        .api
        .post_as(&home.author, "/api/v1/flows/later/runs", &body);
    assert_eq!(own.json()["result"]["from"], "author", "{own:?}");
}

#[test]
fn workers_reach_jobs_of_their_own_workspace_only() {
    let scratch = Scratch::new();
    let body =
        "(flow/step :job :j {:op :submit :job-type :paint :payload {:word (:word (flow/input))}})";
    let home = Home::open(&scratch, &[("paint", body)]);
    let words = [
        (&home.acme, "zebra"),
        (&home.beta, "yak"),
        (&home.author, "ox"),
    ];
    for (token, word) in words {
        home.start(token, "paint", &json!({"word": word}));
    }
    let all = home.api.get("/api/v1/jobs").json();
    assert_eq!(all["jobs"].as_array().map(Vec::len), Some(3), "{all}");
    for (token, word) in words {
        let listed = home.get(token, "/api/v1/jobs").json();
        let listed = listed["jobs"].as_array().expect("jobs");
        assert_eq!(listed.len(), 1, "{listed:?}");
        assert_eq!(listed[0]["payload"]["word"], word, "{listed:?}");
        let claim = json!({"types": ["paint"], "worker": "w", "max": 10});
        let claimed = home.api.post_as(token, "/api/v1/jobs/claim", &claim).json();
        let jobs = claimed["jobs"].as_array().expect("jobs");
        assert_eq!(jobs.len(), 1, "{claimed}");
        assert_eq!(jobs[0]["payload"]["word"], word, "{claimed}");
        let path = format!(
            "/api/v1/jobs/{}/complete",
            jobs[0]["id"].as_str().expect("an id")
        );
        let end = json!({"lease": jobs[0]["lease"]["token"], "result": {}});
        for (other, _) in words.iter().filter(|(_, known)| *known != word) {
            assert_eq!(home.api.post_as(other, &path, &end).status, 404);
        }
        assert_eq!(home.api.post_as(token, &path, &end).status, 200);
    }
}

#[test]
fn a_start_of_an_installation_names_no_version() {
    let scratch = Scratch::new();
    let home = Home::open(&scratch, &[("note", ROW)]);
    for more in [json!({"version": 1}), json!({"target": "live"})] {
        let mut body = json!({"installation": "main-note", "input": {"word": "ox"}});
        let members = more.as_object().expect("an object").clone();
        body.as_object_mut().expect("an object").extend(members);
        let refused = home
            .api
            .post_as(&home.acme, "/api/v1/flows/note/runs", &body);
        assert_eq!(refused.status, 400, "{refused:?}");
    }
}
