//! Interfaces of installed flows: who reaches them, whose connections and values their runs have, and how they follow
//! upgrades and removal.

use serde_json::{Value, json};

use super::hooks::hmac;
use super::installations::ok;
use crate::api::{Api, Reply};
use crate::program::Scratch;

const SETTINGS: &str = r#"{:connections {:acme-hook {:type :secret :secret-ref :acme-hook :workspace :acme}}
 :setup {:desk {:region "the author's"}}}"#;

/// A flow with an interface of each kind. Its results name the version and the region of the installation.
fn desk(version: i64) -> String {
    format!(
        r#"{{:slug :desk :discover {{:public true}}
 :concurrency {{:type :singleton :on-new-version :coexist}}
 :requires [{{:slot :hook :type :secret :secret-ref :hook :optional true}}
            {{:kind :form :fields [{{:key :region :field-type :text :required true}}]}}]
 :invocations {{:default {{:inputs [{{:name :word :type :text}}]}} :raw {{:inputs []}}}}
 :interfaces
 {{:http [{{:id :ask :invocation :default :path "/ask/{{word}}"}}]
  :webhook [{{:id :paid :invocation :raw :auth {{:type :github :secret-ref :hook}}}}]
  :mcp [{{:tool-name "desk_ask" :invocation :default :description "Asks."}}]}}
 :flow '(str "{version} " (:region (:activation (flow/input))) " " (:word (flow/input)))}}"#
    )
}

fn release(scratch: &Scratch, version: i64) {
    scratch.write("flows/desk.edn", desk(version));
    ok(&scratch.run(&["flows", "push", "desk", "--force"]));
    ok(&scratch.run(&["flows", "release", "desk"]));
}

struct Home {
    scratch: Scratch,
    api: Api,
    author: String,
    acme: String,
    beta: String,
}

impl Home {
    /// Serves a home in which acme has the flow, configured, and beta has it as it was made.
    fn open() -> Home {
        let scratch = Scratch::new();
        scratch.write("flowstone.edn", SETTINGS);
        scratch.write(".env", "HOOK=s0\nACME_HOOK=s1\n");
        release(&scratch, 1);
        let token = |name: &str, more: &[&str]| {
            let scopes = ["read", "run", "edit"].map(|it| ["--scope", it]).concat();
            ok(&scratch.run(&[&["tokens", "create", "--name", name], &*scopes, more].concat()))
        };
        let home = Home {
            author: token("author", &[]),
            acme: token("acme", &["--workspace", "acme"]),
            beta: token("beta", &["--workspace", "beta"]),
            api: Api::serve(&scratch),
            scratch,
        };
        for token in [&home.acme, &home.beta] {
            let new = json!({"slug": "desk", "name": "main"});
            let made = home.api.post_as(token, "/api/v1/installations", &new);
            assert_eq!(made.status, 201, "{made:?}");
        }
        home.configure(&json!({"set": {"hook": "acme-hook"}, "setup": {"region": "EU"}}));
        home
    }

    fn configure(&self, changes: &Value) {
        let path = "/api/v1/installations/main/configure";
        let done = self.api.post_as(&self.acme, path, changes);
        assert_eq!(done.status, 200, "{done:?}");
    }

    fn ask(&self, token: &str, address: &str) -> Reply {
        self.api.post_as(token, address, &json!({"word": "ox"}))
    }

    fn hook(&self, address: &str, secret: &str, body: &str) -> Reply {
        let signature = format!("x-hub-signature-256: sha256={}", hmac(secret, body));
        let headers = [&*signature, "content-type: application/json"];
        self.api.request(&format!("POST {address}"), &headers, body)
    }

    /// Calls a method of MCP in a session of its own.
    fn tools(&self, token: &str, method: &str, params: &Value) -> Value {
        let bearer = format!("authorization: Bearer {token}");
        let send = |headers: &[&str], method: &str, params: &Value| {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let all = [&[&*bearer, "content-type: application/json"], headers].concat();
            self.api.request("POST /mcp", &all, &body.to_string())
        };
        let client = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let begun = send(&[], "initialize", &client);
        let session = begun.header("mcp-session-id").expect("a session");
        let session = format!("mcp-session-id: {session}");
        send(&[&session], method, params).json()
    }
}

const ASK: &str = "/api/flows/desk/installations/acme/main/interfaces/ask";
const PAID: &str = "/api/flows/desk/installations/acme/main/interfaces/paid";

#[test]
fn an_http_interface_of_an_installation_is_its_installers() {
    let home = Home::open();
    let asked = home.ask(&home.acme, ASK);
    assert_eq!(
        (asked.status, asked.json()),
        (200, json!("1 EU ox")),
        "{asked:?}"
    );
    let by_path = "/api/flows/desk/installations/acme/main/http/ask/yak";
    let asked = home.api.post_as(&home.acme, by_path, &json!({}));
    assert_eq!(asked.json(), json!("1 EU yak"), "{asked:?}");
    // The author's own are what they were, and the other side finds nothing.
    let own = home.ask(&home.author, "/api/flows/desk/interfaces/live/ask");
    assert_eq!(own.json(), json!("1 the author's ox"), "{own:?}");
    for token in [&home.author, &home.beta] {
        let refused = home.ask(token, ASK);
        assert_eq!(refused.status, 404, "{refused:?}");
    }
    // What is not there, is of another flow, or lacks something.
    for address in [
        "/api/flows/desk/installations/acme/none/interfaces/ask",
        "/api/flows/desk/installations/acme/main/interfaces/none",
        "/api/flows/other/installations/acme/main/interfaces/ask",
        "/api/flows/desk/installations/main/interfaces/ask",
        "/api/flows/desk/installations/beta/main/interfaces/ask",
    ] {
        for token in [&home.acme, &home.beta] {
            assert_eq!(home.ask(token, address).status, 404, "{address}");
        }
    }
    let runs = home.api.get_as(&home.acme, "/api/v1/runs").json();
    let runs = runs["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert!(runs.iter().all(|run| run["flow"] == "desk@acme/main"));
}

#[test]
fn a_webhook_of_an_installation_has_its_own_secret() {
    let home = Home::open();
    // The secret of the author proves nothing here, and that of the installation nothing there.
    assert_eq!(home.hook(PAID, "s0", "{\"a\":1}").status, 401);
    let taken = home.hook(PAID, "s1", "{\"a\":1}");
    assert_eq!(taken.json()["status"], "completed", "{taken:?}");
    let again = home.hook(PAID, "s1", "{\"a\":1}").json();
    assert_eq!(again["runId"], taken.json()["runId"], "{again}");
    let own = "/api/flows/desk/interfaces/live/paid";
    assert_eq!(home.hook(own, "s1", "{\"a\":2}").status, 401);
    let taken = home.hook(own, "s0", "{\"a\":2}");
    assert_eq!(taken.json()["status"], "completed", "{taken:?}");
    // Without a secret of its own, nobody proves anything.
    home.configure(&json!({"set": {"hook": ""}}));
    for secret in ["s0", "s1", ""] {
        assert_eq!(home.hook(PAID, secret, "{\"a\":3}").status, 503);
    }
    // Its runs do not reach files of the project, so it takes none.
    home.configure(&json!({"set": {"hook": "acme-hook"}}));
    let body = "bytes";
    let signature = format!("x-hub-signature-256: sha256={}", hmac("s1", body));
    let headers = [&*signature, "content-type: application/octet-stream"];
    let refused = home.api.request(&format!("POST {PAID}"), &headers, body);
    assert_eq!(refused.status, 415, "{refused:?}");
}

#[test]
fn tools_of_an_installation_are_offered_in_its_workspace() {
    let home = Home::open();
    let names = |token: &str| {
        let listed = home.tools(token, "tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().expect("tools").clone();
        let names = tools.iter().filter_map(|it| it["name"].as_str());
        let names = names.filter(|it| it.contains("desk_ask"));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(&home.acme), ["main__desk_ask"]);
    assert_eq!(names(&home.author), ["desk_ask"]);
    // It was never configured.
    assert_eq!(names(&home.beta), [""; 0]);
    let call = json!({"name": "main__desk_ask", "arguments": {"word": "ox"}});
    let called = home.tools(&home.acme, "tools/call", &call);
    assert_eq!(
        called["result"]["content"][0]["text"], "1 EU ox",
        "{called}"
    );
    let refused = home.tools(&home.beta, "tools/call", &call);
    assert!(refused["error"].is_object(), "{refused}");
}

#[test]
fn an_upgrade_moves_interfaces_and_removal_ends_them() {
    let home = Home::open();
    release(&home.scratch, 2);
    let asked = || home.ask(&home.acme, ASK);
    assert_eq!(asked().json(), json!("1 EU ox"));
    home.configure(&json!({"upgrade": true}));
    assert_eq!(asked().json(), json!("2 EU ox"));
    home.configure(&json!({"setup": {"region": "US"}}));
    assert_eq!(asked().json(), json!("2 US ox"));
    let bearer = format!("authorization: Bearer {}", home.acme);
    let removed = home
        .api
        .request("DELETE /api/v1/installations/main", &[&bearer], "");
    assert_eq!(removed.status, 204, "{removed:?}");
    assert_eq!(asked().status, 404);
    assert_eq!(home.hook(PAID, "s1", "{}").status, 404);
    let own = home.ask(&home.author, "/api/flows/desk/interfaces/live/ask");
    assert_eq!(own.status, 200, "{own:?}");
}
