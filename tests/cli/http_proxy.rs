//! A server behind a reverse proxy, as `docs/guide/server.md` sets one up.

use crate::api::Api;
use crate::program::Scratch;

fn project(proxies: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flows/quick.edn", "{:slug :quick :flow '1}");
    let settings = format!("{{:server {{:hosts [\"flows.example.com\"] :proxies [{proxies}]}}}}");
    scratch.write("flowstone.edn", settings);
    scratch
}

/// Sends what a proxy passes on, and returns the status.
fn passed(api: &Api, from: &str, token: &str) -> u16 {
    let head = format!(
        "GET /api/v1/runs HTTP/1.1\r\nhost: flows.example.com\r\nconnection: close\r\n\
         authorization: Bearer {token}\r\nx-forwarded-for: {from}\r\n\r\n"
    );
    api.send(head).status
}

#[test]
fn failed_proofs_count_for_the_sender_that_the_proxy_names() {
    let scratch = project("\"127.0.0.1\"");
    let api = Api::serve(&scratch);
    assert_eq!(passed(&api, "203.0.113.1", &api.token), 200);
    for _ in 0..30 {
        // What a client writes itself is to the left of what the proxy appends.
        assert_eq!(passed(&api, "198.51.100.7, 203.0.113.1", "wrong"), 401);
    }
    assert_eq!(passed(&api, "203.0.113.1", "wrong"), 429);
    assert_eq!(passed(&api, "203.0.113.2", "wrong"), 401);
    assert_eq!(passed(&api, "203.0.113.1", &api.token), 200);
}

#[test]
fn a_sender_cannot_name_itself_without_a_proxy() {
    let scratch = project("");
    let api = Api::serve(&scratch);
    let statuses: Vec<u16> = (0..31)
        .map(|number| passed(&api, &format!("203.0.113.{number}"), "wrong"))
        .collect();
    assert_eq!((statuses[29], statuses[30]), (401, 429));
}

#[test]
fn hosts_and_ids_of_requests_are_those_that_the_proxy_passes_on() {
    let scratch = project("\"127.0.0.0/8\"");
    let api = Api::serve(&scratch);
    let head = |id: &str| {
        format!(
            "GET /healthz HTTP/1.1\r\nhost: flows.example.com\r\nconnection: close\r\nx-request-id: {id}\r\n\r\n"
        )
    };
    assert_eq!(
        api.send(head("from-proxy_1")).header("x-request-id"),
        Some("from-proxy_1")
    );
    assert_ne!(api.send(head("a b")).header("x-request-id"), Some("a b"));
    let other = "GET /healthz HTTP/1.1\r\nhost: other.example.com\r\nconnection: close\r\n\r\n";
    assert_eq!(api.send(other).problem(), "403 E1012");
}
