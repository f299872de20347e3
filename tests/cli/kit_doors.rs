//! What the doors of the build kit have in common: the flow that they name, and the command line as a client of a server.

use serde_json::{Value, json};

use crate::api::Api;
use crate::program::{Ran, Scratch};

/// The arguments of a first commit.
fn commit() -> Value {
    let text = "{:slug :digest :flow '(str \"hello\")}";
    json!({"delta": {"set": {"parameters": {"files": {"flow.edn": text}}}}})
}

fn object(ran: &Ran, exit: i32) -> Value {
    assert_eq!(ran.code, Some(exit), "{}{}", ran.out, ran.err);
    serde_json::from_str(&ran.out).expect("an object")
}

#[test]
fn the_command_line_calls_the_tools_of_a_server() {
    let scratch = Scratch::new();
    scratch.write(
        "flowstone.edn",
        "{:kit {:permissions {:commit_revision :allow}}}",
    );
    scratch.write("change.json", commit().to_string());
    let api = Api::serve(&scratch);
    let base = format!("http://{}", api.address);
    let there = |args: &[&str]| scratch.run(&[&["--server", &*base], args].concat());
    for json in [&[][..], &["--json"]] {
        let list = [&["kit", "list"], json].concat();
        assert_eq!(there(&list).out, scratch.run(&list).out, "{json:?}");
    }
    let commit = [
        "kit",
        "commit_revision",
        "--flow",
        "digest",
        "--json",
        "@change.json",
    ];
    assert_eq!(object(&there(&commit), 0)["status"], "committed");
    let stale = object(&there(&commit), 2);
    assert_eq!(stale["code"], "invalid_arguments");
    let unknown = object(&there(&["kit", "comit_revision"]), 2);
    assert_eq!(unknown["next_step"], "call `commit_revision`");
    // The server cannot ask at this terminal; somebody else decides.
    let asked = there(&["flows", "test", "digest"]);
    assert_eq!(asked.code, Some(3), "{asked:?}");
    assert!(
        asked.err.contains("flowstone kit approve kap_"),
        "{asked:?}"
    );
    let open = there(&["kit", "approvals", "--json"]).json();
    let id = open["approvals"][0]["id"]
        .as_str()
        .expect("an approval")
        .to_owned();
    let approver = ["tokens", "create", "--name", "ann", "--scope", "approve"];
    scratch.write("approver", scratch.run(&approver).ok().trim_end());
    let decided = there(&["--token-file", "approver", "kit", "approve", &id, "--json"]);
    assert_eq!(object(&decided, 0)["status"], "approved");
    let tested = there(&["flows", "test", "digest"]);
    assert_eq!(tested.code, Some(0), "{tested:?}");
    assert!(tested.out.starts_with("unconfirmed"), "{tested:?}");
    let dry = there(&["flows", "test", "digest", "--dry", "--json"]);
    assert_eq!(dry.code, Some(3), "{dry:?}");
    for local in [
        &["kit", "list", "--permission", "test_run=allow"][..],
        &["kit", "query_workflows", "--enable", "query_workflows"],
        &["kit", "connect", "kcr_1"],
        &["flows", "test", "digest", "--yes"],
    ] {
        let refused = there(local);
        let text = format!("{}{}", refused.out, refused.err);
        assert!(text.contains("E1072"), "{local:?} {refused:?}");
    }
}

#[test]
fn a_flow_is_named_by_its_slug() {
    let scratch = Scratch::new();
    let api = Api::serve(&scratch);
    let token = format!("authorization: Bearer {}", api.token);
    for what in [
        "POST /api/tools/list_schedules",
        "POST /api/spans/query",
        "GET /api/tools",
    ] {
        let headers = [
            &*token,
            "content-type: application/json",
            "x-flowstone-flow: Bad Slug!",
        ];
        let refused = api.request(what, &headers, "");
        assert_eq!(refused.status, 400, "{what}");
        assert_eq!(refused.json()["code"], "invalid_arguments", "{what}");
    }
    let refused = scratch.run(&["kit", "list_schedules", "--flow", "Bad Slug!"]);
    assert_eq!(object(&refused, 2)["code"], "invalid_arguments");
    let headers = [
        &*token,
        "content-type: application/json",
        "x-flowstone-flow: digest",
    ];
    let empty = json!({"use_cases": [""]}).to_string();
    let empty = api
        .request("POST /api/tools/discover_tools", &headers, &empty)
        .json();
    let expected = "a text of at least 1 character";
    assert_eq!(empty["details"]["expected"], expected, "{empty}");
    assert_eq!(
        empty["message"],
        "`/use_cases/0` must be a text of at least 1 character, got \"\""
    );
}

#[test]
fn the_list_shows_what_the_caller_may_do() {
    let scratch = Scratch::new();
    scratch.write(
        "flowstone.edn",
        r#"{:kit {:permissions {:commit_revision :allow} :tokens {"ci" {:commit_revision :deny}}}}"#,
    );
    let api = Api::serve(&scratch);
    let token = |name: &str, scope: &str| {
        let create = ["tokens", "create", "--name", name, "--scope", scope];
        scratch.run(&create).ok().trim_end().to_owned()
    };
    let (ci, reader) = (token("ci", "edit"), token("reader", "read"));
    for (token, tool, shown) in [
        (&api.token, "commit_revision", "allow"),
        (&api.token, "annotate_trace", "ask"),
        (&api.token, "request_connection", "human"),
        (&ci, "commit_revision", "deny"),
        (&ci, "create_schedule", "ask"),
        // It lacks the scope.
        (&reader, "create_schedule", "deny"),
        (&reader, "query_spans", "allow"),
    ] {
        let token = format!("authorization: Bearer {token}");
        let listed = api.request("GET /api/tools", &[&token], "").json();
        let mut tools = listed["tools"].as_array().expect("a list").iter();
        let found = tools.find(|it| it["name"] == *tool).expect("the tool");
        assert_eq!(found["permission"], shown, "{token} {tool}");
    }
}
