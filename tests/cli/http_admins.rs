//! Tokens with the scope `admin` that reach only a part of the project.

use serde_json::{Value, json};

use crate::api::Api;
use crate::program::Scratch;

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flows/pay.edn", "{:slug :pay :tags [:money] :flow '1}");
    scratch.write("flows/nap.edn", "{:slug :nap :flow '1}");
    scratch
}

fn token(scratch: &Scratch, options: &[&str]) -> String {
    let args = [&["tokens", "create", "--name", "test"], options].concat();
    scratch.run(&args).ok().trim_end().to_owned()
}

fn id_of(token: &str) -> &str {
    token.split('_').nth(1).expect("an id")
}

fn delete(api: &Api, token: &str, path: &str) -> u16 {
    let header = format!("authorization: Bearer {token}");
    api.request(&format!("DELETE {path}"), &[&header], "")
        .status
}

/// What limits an administrator, and a limit beside it.
const DIMENSIONS: &[(&str, &str, &str, &str)] = &[
    ("--flow", "flows", "pay", "nap"),
    ("--label", "labels", "money", "night"),
    ("--resource", "resources", "reports/", "files/"),
    ("--job-type", "jobTypes", "image", "video"),
];

#[test]
fn a_limited_administrator_sees_revokes_and_creates_tokens_within_its_limits_only() {
    let scratch = project();
    let api = Api::serve(&scratch);
    for (option, member, own, other) in DIMENSIONS {
        let admin = token(&scratch, &["--scope", "admin", option, own]);
        let (within, outside) = (
            token(&scratch, &["--scope", "read", option, own]),
            token(&scratch, &["--scope", "read", option, other]),
        );
        let unlimited = token(&scratch, &["--scope", "read"]);
        let listed = api.get_as(&admin, "/api/v1/tokens").json();
        let listed = listed["tokens"].as_array().expect("tokens").iter();
        let mut listed: Vec<&str> = listed.filter_map(|it| it["id"].as_str()).collect();
        let mut expected = [id_of(&admin), id_of(&within)];
        listed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(listed, expected, "{option}");
        for wider in [&outside, &unlimited, &api.token] {
            let path = format!("/api/v1/tokens/{}", id_of(wider));
            assert_eq!(delete(&api, &admin, &path), 404, "{option}");
            assert_eq!(api.get_as(wider, "/api/v1/openapi.json").status, 200);
        }
        let path = format!("/api/v1/tokens/{}", id_of(&within));
        assert_eq!(delete(&api, &admin, &path), 204, "{option}");
        let create = |limits: &[&str]| {
            let body = json!({"name": "new", "scopes": ["read"], (*member): limits});
            api.post_as(&admin, "/api/v1/tokens", &body).status
        };
        assert_eq!(create(&[own]), 201, "{option}");
        for wider in [&[*other][..], &[own, other], &[]] {
            assert_eq!(create(wider), 422, "{option} {wider:?}");
        }
    }
}

#[test]
fn no_token_is_created_for_more_than_its_creator_may_do() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let by_flow = token(&scratch, &["--scope", "admin", "--flow", "pay"]);
    let person = token(
        &scratch,
        &["--kind", "user", "--subject", "ada", "--scope", "admin"],
    );
    let all = token(&scratch, &["--scope", "admin"]);
    let status = |by: &str, body: Value| {
        let created = api.post_as(by, "/api/v1/tokens", &body);
        match created.status {
            201 => "created".to_owned(),
            _ => created.problem(),
        }
    };
    for (by, body) in [
        (
            &by_flow,
            json!({"name": "n", "scopes": ["read"], "flows": ["pay"], "resources": ["res://"]}),
        ),
        (
            &by_flow,
            json!({"name": "n", "kind": "user", "subject": "ada"}),
        ),
        (
            &by_flow,
            json!({"name": "n", "kind": "owner", "flows": ["pay"]}),
        ),
        (
            &by_flow,
            json!({"name": "n", "scopes": ["approve"], "flows": ["pay"], "roles": ["treasurer"]}),
        ),
        (&person, json!({"name": "n", "scopes": ["read"]})),
        (
            &person,
            json!({"name": "n", "kind": "user", "subject": "bob"}),
        ),
        (&person, json!({"name": "ada", "kind": "anon"})),
        (&all, json!({"name": "n", "kind": "owner"})),
        (
            &all,
            json!({"name": "n", "scopes": ["approve"], "roles": ["treasurer"]}),
        ),
    ] {
        assert_eq!(status(by, body.clone()), "422 E1002", "{body}");
    }
    for (by, body) in [
        (
            &by_flow,
            json!({"name": "n", "kind": "user", "subject": "ada", "flows": ["pay"]}),
        ),
        (
            &person,
            json!({"name": "n", "kind": "user", "subject": "ada"}),
        ),
        (&all, json!({"name": "n", "scopes": ["admin"]})),
        (
            &api.token,
            json!({"name": "n", "scopes": ["approve"], "roles": ["treasurer"]}),
        ),
    ] {
        assert_eq!(status(by, body.clone()), "created", "{body}");
    }
}

#[test]
fn a_token_for_a_person_reaches_no_runs_beyond_the_limits_of_who_created_it() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let wide = token(&scratch, &["--kind", "user", "--subject", "ada"]);
    let nap = api
        .post_as(&wide, "/api/v1/flows/nap/runs", &json!({"wait": "60s"}))
        .json();
    let nap = format!("/api/v1/runs/{}", nap["id"].as_str().expect("an id"));
    let by_owner = api.post("/api/v1/flows/pay/runs", &json!({})).json();
    let by_owner = format!("/api/v1/runs/{}", by_owner["id"].as_str().expect("an id"));
    let admin = token(&scratch, &["--scope", "admin", "--flow", "pay"]);
    let made = |subject: &str| {
        let body = json!({"name": "n", "kind": "user", "subject": subject, "flows": ["pay"]});
        let made = api.post_as(&admin, "/api/v1/tokens", &body).json();
        made["token"].as_str().expect("a token").to_owned()
    };
    let (ada, owner) = (made("ada"), made("owner"));
    assert_eq!(api.get_as(&wide, &nap).status, 200);
    assert_eq!(api.get_as(&ada, &nap).problem(), "404 E0502");
    assert_eq!(api.get_as(&ada, "/api/v1/runs").json()["runs"], json!([]));
    // A person called like the owner's token has not started the owner's runs.
    assert_eq!(api.get_as(&owner, &by_owner).problem(), "404 E0502");
}

#[test]
fn a_limited_administrator_tests_no_connections_and_changes_nothing_that_all_agents_share() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let admin = token(&scratch, &["--scope", "admin", "--flow", "pay"]);
    let tested = api.post_as(&admin, "/api/v1/connections/test", &json!({}));
    assert_eq!(tested.problem(), "404 E1014");
    for path in ["functions", "agents", "mcp-servers"] {
        let body = json!({"name": "x", "code": "(fn [x] x)", "graph_spec": {}, "url": "http://127.0.0.1:9/"});
        let created = api.post_as(&admin, &format!("/v1/default/{path}"), &body);
        assert_eq!(created.status, 404, "{path} {created:?}");
    }
}

#[test]
fn the_command_line_shows_a_limited_administrator_the_same() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let admin = token(&scratch, &["--scope", "admin", "--flow", "pay"]);
    let file = scratch.write("admin.token", &admin);
    let url = format!("http://{}", api.address);
    let at = [
        "--server",
        &url,
        "--token-file",
        file.to_str().expect("a path"),
        "tokens",
    ];
    let listed = scratch.json_of(&[&at[..], &["list"]].concat());
    let listed: Vec<&str> = listed["tokens"]
        .as_array()
        .expect("tokens")
        .iter()
        .filter_map(|it| it["id"].as_str())
        .collect();
    assert_eq!(listed, [id_of(&admin)]);
    let refused = scratch.run(&[&at[..], &["revoke", id_of(&api.token)]].concat());
    assert!(refused.err.contains("E1003"), "{}", refused.err);
    let wider = scratch.run(&[&at[..], &["create", "--name", "n", "--scope", "read"]].concat());
    assert!(wider.err.contains("E1002"), "{}", wider.err);
}
