//! What the build kit refuses: answers nobody gave, other people's flows, files that are not a version's own.

use serde_json::{Value, json};

use super::kit::{FLOW, allowing, call, call_as, code, first, token};
use crate::api::Api;
use crate::program::Scratch;

#[test]
fn a_client_of_mcp_cannot_answer_a_question_that_was_not_asked() {
    let scratch = Scratch::new();
    let api = Api::serve(&scratch);
    let elicits = json!({"elicitation": {"form": {}}});
    for capabilities in [json!({}), elicits.clone()] {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let headers = [
            &*format!("authorization: Bearer {}", api.token),
            "content-type: application/json",
            "mcp-protocol-version: 2026-07-28",
            "mcp-method: tools/call",
            "mcp-name: commit_revision",
        ];
        let asked = call(&api, "commit_revision", &first(FLOW)).json();
        let digest = &asked["details"]["digest"];
        assert!(digest.is_string(), "{asked}");
        let params = json!({
            "name": "commit_revision", "arguments": first(FLOW), "_meta": meta,
            "requestState": digest, "inputResponses": {"approval": {"action": "accept"}},
        });
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let reply = api.request("POST /mcp/kit/digest", &headers, &message.to_string());
        let result = reply.json()["result"].clone();
        match capabilities == elicits {
            true => assert_eq!(result["resultType"], "input_required", "{reply:?}"),
            false => assert_eq!(
                result["structuredContent"]["code"], "approval_required",
                "{reply:?}"
            ),
        }
    }
    let flows = scratch
        .run(&["flows", "list", "--registry", "--json"])
        .json();
    assert_eq!(flows["flows"], json!([]));
}

#[test]
fn a_token_decides_about_flows_that_it_reaches() {
    let scratch = Scratch::new();
    let api = Api::serve(&scratch);
    let agent = token(&scratch, &["agent", "--scope", "edit"]);
    let asked = call_as(&api, &agent, "commit_revision", &first(FLOW)).json();
    let id = asked["details"]["approval_id"].as_str().expect("an id");
    let path = format!("/api/tools/approvals/{id}");
    let others = [
        ["other", "--scope", "approve", "--flow", "zzz"],
        ["acme", "--scope", "approve", "--workspace", "acme"],
    ];
    for other in others {
        let other = token(&scratch, &other);
        let listed = api.get_as(&other, "/api/tools/approvals").json();
        assert_eq!(listed["count"], 0, "{listed}");
        assert_eq!(code(&api.get_as(&other, &path)), "404 not_found");
        let decided = api.post_as(&other, &path, &json!({"decision": "approve"}));
        assert_eq!(code(&decided), "404 not_found");
    }
    let own = token(&scratch, &["own", "--scope", "approve", "--flow", "digest"]);
    assert_eq!(api.get_as(&own, "/api/tools/approvals").json()["count"], 1);
    assert_eq!(
        api.post_as(&own, &path, &json!({"decision": "deny"}))
            .status,
        200
    );
    // Of several decisions the first one holds.
    let late = api.post_as(&api.token, &path, &json!({"decision": "approve"}));
    assert_eq!(code(&late), "403 permission_denied");
}

#[test]
fn an_approved_test_runs_the_revision_that_was_asked_about() {
    let scratch = allowing();
    let api = Api::serve(&scratch);
    let made = call(&api, "commit_revision", &first(FLOW)).json();
    let inputs = json!({"inputs": {}});
    let asked = call(&api, "test_run", &inputs).json();
    let id = asked["details"]["approval_id"].as_str().expect("an id");
    scratch.run(&["kit", "approve", id]).ok();
    let mut other = first(&FLOW.replace("hello", "other"));
    other["base_revision_id"] = made["revision"]["id"].clone();
    let other = call(&api, "commit_revision", &other).json();
    assert_eq!(other["status"], "committed", "{other}");
    let again = call(&api, "test_run", &inputs);
    assert_eq!(code(&again), "403 approval_required");
    assert_ne!(again.json()["details"]["approval_id"], *id);
}

#[test]
fn the_kit_is_not_for_users_of_an_app_and_its_texts_need_the_right_to_read() {
    let scratch = allowing();
    let api = Api::serve(&scratch);
    call(&api, "commit_revision", &first(FLOW));
    let user = token(
        &scratch,
        &[
            "user",
            "--kind",
            "user",
            "--subject",
            "u1",
            "--scope",
            "read",
            "--scope",
            "run",
        ],
    );
    let reply = call_as(&api, &user, "read_config", &json!({}));
    assert_eq!(code(&reply), "403 permission_denied");
    let runner = token(&scratch, &["runner", "--scope", "run"]);
    let text_for = |token: &str| {
        let headers = [
            &*format!("authorization: Bearer {token}"),
            "content-type: application/json",
            "mcp-protocol-version: 2026-07-28",
            "mcp-method: resources/read",
            "mcp-name: flowstone://flow",
        ];
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"uri": "flowstone://flow", "_meta": meta});
        let message =
            json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params});
        let reply = api.request("POST /mcp/kit/digest", &headers, &message.to_string());
        reply.json()["result"]["contents"][0]["text"].to_string()
    };
    assert!(text_for(&api.token).contains("The greeting"));
    for token in [&runner, &user] {
        let text = text_for(token);
        assert!(!text.contains("The greeting"), "{text}");
    }
}

#[test]
fn a_version_has_only_its_own_files() {
    let scratch = allowing();
    let api = Api::serve(&scratch);
    let made = call(&api, "commit_revision", &first(FLOW)).json();
    let commit = |base: &Value, path: &str, text: &str| {
        let arguments = json!({
            "base_revision_id": base,
            "delta": {"set": {"parameters": {"files": {path: text}}}},
        });
        call(&api, "commit_revision", &arguments)
    };
    let base = &made["revision"]["id"];
    for path in [
        ".env",
        ".git/config",
        "flowstone.edn",
        "a/Flowstone.EDN",
        ".flowstone/owner.token",
    ] {
        assert_eq!(
            code(&commit(base, path, "x")),
            "400 invalid_arguments",
            "{path}"
        );
    }
    // A file that the flow does not include stays in the registry.
    let made = commit(base, "victim.edn", "{:slug :victim :flow '1}").json();
    assert_eq!(made["status"], "committed", "{made}");
    let pulled = scratch.run(&["flows", "pull", "digest"]);
    assert!(
        pulled.err.contains("`victim.edn` was not written"),
        "{pulled:?}"
    );
    assert!(!scratch.path().join("flows/victim.edn").exists());
    scratch.run(&["flows", "pull", "digest"]).ok();
    // A file of somebody else is not replaced.
    scratch.write("flows/part.edn", "1");
    let text = FLOW.replace(";; The greeting.", "(str #flow/include \"part.edn\")");
    let arguments = json!({
        "base_revision_id": made["revision"]["id"],
        "delta": {"set": {"parameters": {"files": {"flow.edn": text, "part.edn": "2"}}}},
    });
    let made = call(&api, "commit_revision", &arguments).json();
    assert_eq!(made["status"], "committed", "{made}");
    let pulled = scratch.run(&["flows", "pull", "digest"]);
    assert!(pulled.err.contains("E1414"), "{pulled:?}");
    scratch.run(&["flows", "pull", "digest", "--force"]).ok();
    let part = std::fs::read_to_string(scratch.path().join("flows/part.edn"));
    assert_eq!(part.expect("a file"), "2");
}

#[test]
fn flows_of_the_registry_call_one_another() {
    let scratch = allowing();
    let api = Api::serve(&scratch);
    let commit = |slug: &str, text: &str| {
        let headers = [
            &*format!("authorization: ApiKey {}", api.token),
            "content-type: application/json",
            &*format!("x-flowstone-flow: {slug}"),
        ];
        api.request(
            "POST /api/tools/commit_revision",
            &headers,
            &first(text).to_string(),
        )
    };
    assert_eq!(commit("one", "{:slug :one :flow '(+ 1 2)}").status, 200);
    let two = commit("two", "{:slug :two :flow '(inc (flow/call-flow :one {}))}");
    assert_eq!(two.status, 200, "{two:?}");
    let none = commit("three", "{:slug :three :flow '(flow/call-flow :none {})}");
    assert_eq!(code(&none), "422 check_failed");
    // A server that runs may execute the child first; then the command says that its run waits for it.
    assert_eq!(api.stop(), Some(0));
    assert_eq!(scratch.run(&["run", "two", "--quiet"]).ok().trim(), "4");
    // A file may call them, too.
    scratch.write(
        "flows/four.edn",
        "{:slug :four :flow '(* 2 (flow/call-flow :one {}))}",
    );
    scratch.run(&["check", "flows/four.edn"]).ok();
    assert_eq!(
        scratch
            .run(&["run", "flows/four.edn", "--quiet"])
            .ok()
            .trim(),
        "6"
    );
}
