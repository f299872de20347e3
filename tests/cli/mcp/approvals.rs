//! Approvals of clients that can open links.

use serde_json::json;

use super::{Client, last_message, stateless, token};
use crate::api::Api;
use crate::program::Scratch;

fn flow(slug: &str, more: &str) -> String {
    format!(
        "{{:slug :{slug} :invocations {{:default {{:inputs []}}}}
           :interfaces {{:mcp [{{:tool-name \"{slug}\" :invocation :default}}]}}
           :flow '(:action (flow/step :wait :ok {{:message \"Pay?\" :approval {{:actions [:approve :reject] {more}}}}}))}}"
    )
}

#[test]
fn a_client_gets_the_link_that_the_wait_shows() {
    let scratch = Scratch::new();
    scratch.write("flows/usual.edn", flow("usual", ""));
    let own = ":template \"https://chat.test/{wait-id}/{action}#{token}\"";
    scratch.write("flows/own.edn", flow("own", own));
    let api = Api::serve(&scratch);
    for (tool, start) in [
        ("usual", format!("http://{}/local/waits/", api.address)),
        ("own", "https://chat.test/".to_owned()),
    ] {
        let headers = [
            "mcp-protocol-version: 2026-07-28",
            "mcp-method: tools/call",
            &format!("mcp-name: {tool}"),
        ];
        let meta = json!({"elicitation": {"url": {}}});
        let params = json!({"name": tool, "arguments": {}, "_meta": meta});
        let asked = last_message(&stateless(&api, &headers, "tools/call", &params));
        let asked = &asked["result"]["inputRequests"]["ok"]["params"];
        assert_eq!(asked["mode"], "url", "{asked}");
        let url = asked["url"].as_str().expect("a link");
        assert!(url.starts_with(&start), "{url}");
        let wait = asked["elicitationId"].as_str().expect("a wait");
        let shown = scratch.json_of(&["waits", "show", wait]);
        assert_eq!(shown["links"]["approve"], url, "{shown}");
    }
}

#[test]
fn a_token_that_may_not_approve_gets_nothing_that_decides() {
    let scratch = Scratch::new();
    scratch.write("flows/pay.edn", flow("pay", ""));
    scratch.write("flowstone.edn", "{:server {:mcp {:elicit-approvals true}}}");
    let api = Api::serve(&scratch);
    let run_only = token(&scratch, &["--scope", "run"]);
    let user = token(&scratch, &["--kind", "user", "--subject", "nora"]);
    for token in [&run_only, &user] {
        let client = Client::begin(
            &api,
            token,
            &json!({"elicitation": {"url": {}, "form": {}}}),
        );
        let reply = client.send(
            "tools/call",
            &json!({"name": "pay", "arguments": {}, "_meta": {"progressToken": 1}}),
        );
        for leaked in ["elicitation/create", "/waits/", "token="] {
            assert!(!reply.body.contains(leaked), "{leaked}: {reply:?}");
        }
        let answer = last_message(&reply)["result"].take();
        let text = answer["content"][0]["text"].as_str().expect("a text");
        let run = answer["_meta"]["runId"].as_str().expect("a run");
        assert!(text.contains("flowstone waits list"), "{text}");
        assert!(text.contains(run), "{text}");
        let shown = api.get(&format!("/api/v1/runs/{run}")).json();
        assert_eq!(shown["status"], "waiting", "{shown}");
    }
}

#[test]
fn the_form_of_a_decision_has_the_fields_of_its_alternatives() {
    let scratch = Scratch::new();
    let flow = "{:slug :book :invocations {:default {:inputs []}}
        :interfaces {:mcp [{:tool-name \"book\" :invocation :default}]}
        :flow '(flow/step :wait :ok {:message \"Who travels?\" :actions [:accept :decline]
                 :validation [:multi {:dispatch :action} [:accept [:map [:name :string]]] [:decline [:map]]]})}";
    scratch.write("flows/book.edn", flow);
    scratch.write("flowstone.edn", "{:server {:mcp {:elicit-approvals true}}}");
    let api = Api::serve(&scratch);
    let headers = [
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: tools/call",
        "mcp-name: book",
    ];
    let meta = json!({"elicitation": {"form": {}}});
    let params = json!({"name": "book", "arguments": {}, "_meta": meta});
    let asked = last_message(&stateless(&api, &headers, "tools/call", &params));
    let form = &asked["result"]["inputRequests"]["ok"]["params"]["requestedSchema"];
    assert_eq!(form["required"], json!(["action"]), "{asked}");
    assert_eq!(
        form["properties"],
        json!({"action": {"type": "string", "enum": ["accept", "decline"]}, "name": {"type": "string"}})
    );
}
