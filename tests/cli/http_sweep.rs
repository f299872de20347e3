//! All addresses that list or show something, asked with tokens that do not reach it.

use serde_json::{Value, json};

use crate::api::Api;
use crate::program::Scratch;

/// Stands in everything that the tokens do not reach.
const MARK: &str = "hidden7";

const HIDDEN: &str = r#"{:slug :hidden7 :description "hidden7" :tags [:hidden7]
  :invocations {:default {:inputs []}}
  :schedules [{:id :hidden7 :cron "0 3 * * *" :input {:n "hidden7"}}]
  :interfaces {:mcp [{:tool-name "hidden7" :invocation :default}
                     {:tool-name "hidden7_r" :kind :resource :uri "hidden7://{id}" :invocation :default}
                     {:tool-name "hidden7_p" :kind :prompt :invocation :default}]}
  :flow '(do (flow/step :kv :put {:operation :set :key "hidden7" :value "hidden7"})
             (flow/step :table :write {:op :insert :table "hidden7" :rows [{:a "hidden7"}]})
             (flow/step :job :order {:op :submit :job-type "hidden7" :payload {:n "hidden7"}})
             (flow/step :wait :ask {:key "hidden7" :message "hidden7" :approval {:actions [:approve]} :timeout "1h"}))}"#;

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flows/hidden7.edn", HIDDEN);
    scratch.write("flows/open.edn", "{:slug :open :tags [:open] :flow '1}");
    scratch
}

fn token(scratch: &Scratch, options: &[&str]) -> String {
    let args = [&["tokens", "create", "--name", "test"], options].concat();
    scratch.run(&args).ok().trim_end().to_owned()
}

const LISTS: &[&str] = &[
    "/api/v1/flows",
    "/api/v1/runs",
    "/api/v1/runs?full=true",
    "/api/v1/runs?text=hidden7&full=true",
    "/api/v1/waits?state=all",
    "/api/v1/jobs",
    "/api/v1/jobs?type=hidden7",
    "/api/v1/schedules",
    "/api/v1/resources?all=true",
    "/api/v1/connections",
    "/api/v1/search?q=hidden7",
    "/api/v1/search?q=hidden7&hydrate=true",
    "/api/v1/tokens",
    "/api/v1/tables/hidden7/rows",
    "/v1/default/agents",
    "/v1/default/functions",
    "/v1/default/mcp-servers",
    "/metrics",
];

/// Addresses of one thing. `RUN`, `WAIT` and `JOB` stand for those of the flow that is not reached.
const THINGS: &[&str] = &[
    "GET /api/v1/flows/hidden7",
    "GET /api/v1/flows/hidden7/versions",
    "POST /api/v1/flows/hidden7/check",
    "POST /api/v1/flows/hidden7/runs",
    "GET /api/v1/runs/RUN",
    "GET /api/v1/runs/RUN?full=true",
    "GET /api/v1/runs/RUN?step=ask",
    "GET /api/v1/runs/RUN/journal",
    "GET /api/v1/runs/RUN/events",
    "GET /api/v1/runs/RUN/diff/RUN",
    "POST /api/v1/runs/RUN/cancel",
    "POST /api/v1/runs/RUN/resume",
    "POST /api/v1/runs/RUN/fork",
    "POST /api/v1/runs/RUN/url",
    "GET /api/v1/waits/WAIT",
    "POST /api/v1/waits/WAIT/approve",
    "POST /api/v1/waits/WAIT/reject",
    "POST /api/v1/waits/WAIT/complete",
    "POST /api/v1/waits/WAIT/cancel",
    "GET /api/v1/jobs/JOB",
    "POST /api/v1/schedules/hidden7/hidden7/run",
    "GET /runs/RUN",
];

#[test]
fn nothing_is_listed_shown_or_changed_beyond_the_reach_of_a_token() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let run = api.post("/api/v1/flows/hidden7/runs", &json!({"wait": "60s"}));
    assert_eq!(run.json()["status"], "waiting", "{run:?}");
    let id = |value: &Value| value.as_str().expect("an id").to_owned();
    let run = id(&run.json()["id"]);
    let wait = id(&api.get("/api/v1/waits").json()["waits"][0]["id"]);
    let job = id(&api.get("/api/v1/jobs").json()["jobs"][0]["id"]);
    // What the owner finds shows that the mark is where it could be found.
    let blank = [
        "/api/v1/connections",
        "/api/v1/tokens",
        "/v1/default/agents",
        "/v1/default/functions",
        "/v1/default/mcp-servers",
    ];
    for path in LISTS.iter().filter(|path| !blank.contains(path)) {
        let found = api.get(path);
        assert!(found.body.contains(MARK), "{path} {found:?}");
    }
    let all = ["approve", "edit", "read", "run", "work"]
        .map(|scope| ["--scope", scope])
        .concat();
    let limits: [&[&str]; 4] = [
        &["--flow", "open"],
        &["--label", "open"],
        &["--flow", "hid*", "--label", "open"],
        &["--kind", "user", "--subject", "ada", "--flow", "open"],
    ];
    for limits in limits {
        let own = token(&scratch, &[&all[..], limits].concat());
        for path in LISTS {
            let found = api.get_as(&own, path);
            let hint = found.body.replace("`hidden7`", "");
            assert!(!hint.contains(MARK), "{limits:?} {path} {found:?}");
            assert!(!found.body.contains(&run), "{limits:?} {path} {found:?}");
        }
        for what in THINGS {
            let what = what
                .replace("RUN", &run)
                .replace("WAIT", &wait)
                .replace("JOB", &job);
            let headers = [
                &*format!("authorization: Bearer {own}"),
                "content-type: application/json",
            ];
            let body = if what.starts_with("POST") { "{}" } else { "" };
            let found = api.request(&what, &headers, body);
            assert_eq!(found.status, 404, "{limits:?} {what} {found:?}");
        }
        let claim = json!({"types": ["hidden7"], "worker": "w"});
        let claimed = api.post_as(&own, "/api/v1/jobs/claim", &claim);
        match limits.contains(&"user") {
            true => assert_eq!(claimed.problem(), "403 E1011"),
            false => assert_eq!(claimed.json()["jobs"], json!([])),
        }
        for method in [
            "tools/list",
            "prompts/list",
            "resources/list",
            "resources/templates/list",
        ] {
            let listed = mcp(&api, &own, method);
            assert!(
                !listed.contains(MARK) && !listed.contains(&run),
                "{limits:?} {method} {listed}"
            );
        }
    }
    let now = api.get(&format!("/api/v1/runs/{run}")).json();
    assert_eq!(now["status"], "waiting", "{now}");
}

/// Returns the answer to a request of MCP.
fn mcp(api: &Api, token: &str, method: &str) -> String {
    let params = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let headers = [
        &*format!("authorization: Bearer {token}"),
        "content-type: application/json",
        "mcp-protocol-version: 2026-07-28",
        &*format!("mcp-method: {method}"),
    ];
    let reply = api.request("POST /mcp", &headers, &body.to_string());
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.body
}
