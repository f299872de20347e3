//! The pages of the build kit: a person enters a secret, or decides about a call, by a link.

use std::sync::Barrier;

use flowstone_engine::resource::sign::Signer;
use serde_json::{Value, json};

use crate::api::{Api, Reply};
use crate::program::Scratch;

const FORM: &str = "content-type: application/x-www-form-urlencoded";
const SETTINGS: &str = r#"{:connections {:billing {:base-url "https://billing.example.com" :auth {:type :bearer :secret-ref :billing-of-the-pages}}}
 :kit {:enable [:list_connections]}}"#;
/// A secret, as a browser sends it.
const SENT: &str = "s3cret-of-a-person%24%22x";
const FLOW: &str =
    "{:slug :digest :flow '(flow/step :function :greet {:code '(fn [_] \"hello <b>\") :input {}})}";

/// Gets a page as a browser does.
fn browse(api: &Api, address: &str) -> Reply {
    let accept = "accept: text/html,application/xhtml+xml,*/*;q=0.8";
    api.request(&format!("GET {address}"), &[accept], "")
}

/// Sends a form as a browser does.
fn send(api: &Api, address: &str, form: &str) -> Reply {
    let origin = format!("origin: http://{}", api.address);
    let headers = [
        FORM,
        &*origin,
        "sec-fetch-site: same-origin",
        "accept: text/html",
    ];
    api.request(&format!("POST {address}"), &headers, form)
}

fn call_as(api: &Api, token: &str, tool: &str, arguments: &Value) -> Reply {
    let token = format!("authorization: Bearer {token}");
    let headers = [
        &*token,
        "content-type: application/json",
        "x-flowstone-flow: digest",
    ];
    let what = format!("POST /api/tools/{tool}");
    api.request(&what, &headers, &arguments.to_string())
}

fn call(api: &Api, tool: &str, arguments: &Value) -> Value {
    let reply = call_as(api, &api.token, tool, arguments);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

fn token(scratch: &Scratch, args: &[&str]) -> String {
    let all = [&["tokens", "create", "--name"], args].concat();
    scratch.run(&all).ok().trim_end().to_owned()
}

/// A link to a page.
#[derive(Debug, Clone)]
struct Link {
    path: String,
    token: String,
}

impl Link {
    /// Reads a link of this server.
    fn read(api: &Api, url: &Value) -> Link {
        let url = url.as_str().expect("a link");
        let below = url.strip_prefix(&format!("http://{}", api.address));
        let (path, token) = below.expect(url).split_once("?token=").expect(url);
        Link {
            path: path.to_owned(),
            token: token.to_owned(),
        }
    }

    fn id(&self) -> &str {
        self.path.rsplit('/').next().expect("an id")
    }

    fn look(&self, api: &Api) -> Reply {
        browse(api, &format!("{}?token={}", self.path, self.token))
    }

    fn send(&self, api: &Api, fields: &str) -> Reply {
        let form = format!("token={}{fields}", self.token);
        send(api, &self.path, &form)
    }
}

/// Requests a connection, and returns the link of its page.
fn request(api: &Api, slug: &str) -> Link {
    // The flow and the project do not describe all of them.
    let pending = call(
        api,
        "request_connection",
        &json!({"integration": "http-api", "slug": slug}),
    );
    assert_eq!(pending["status"], "pending", "{pending}");
    Link::read(api, &pending["url"])
}

/// Returns the bytes of all files of the project's data.
fn kept(scratch: &Scratch) -> String {
    let mut text = String::new();
    let mut folders = vec![scratch.path().join(".flowstone")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => text += &String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()),
            }
        }
    }
    text
}

fn has_headers_of_a_page(reply: &Reply) {
    for (name, value) in [
        ("cache-control", "no-store"),
        (
            "content-security-policy",
            "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        ),
        ("referrer-policy", "same-origin"),
        ("x-frame-options", "deny"),
        ("x-content-type-options", "nosniff"),
        ("content-type", "text/html; charset=utf-8"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{reply:?}");
    }
    for outside in ["<script", "http://", "https://", "<img", "javascript:"] {
        assert!(!reply.body.contains(outside), "{outside} in {}", reply.body);
    }
}

/// The link is over: a plain page says so, and programs get an object.
fn is_over(reply: &Reply) {
    assert_eq!(reply.status, 410, "{reply:?}");
    assert!(reply.body.contains("This is over"), "{reply:?}");
    has_headers_of_a_page(reply);
}

#[test]
fn a_person_enters_a_secret_on_the_page_of_its_request() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    let api = Api::serve_logged(&scratch, "trace");
    let link = request(&api, "billing");
    assert_eq!(
        request(&api, "billing").token,
        link.token,
        "one request, one link"
    );
    let page = link.look(&api);
    assert_eq!(page.status, 200, "{page:?}");
    has_headers_of_a_page(&page);
    for shown in [
        "Connect billing",
        "BILLING_OF_THE_PAGES",
        "type=\"password\"",
        "autocomplete=\"off\"",
        "digest",
        "owner",
    ] {
        assert!(page.body.contains(shown), "no {shown} in {}", page.body);
    }
    // Nothing that cannot be a secret is stored, or shown again.
    let short = link.send(&api, "&secret=tiny%21");
    assert_eq!(short.status, 422, "{short:?}");
    assert!(
        short.body.contains("cannot be a secret") && !short.body.contains("tiny"),
        "{short:?}"
    );
    let stored = link.send(&api, &format!("&secret={SENT}"));
    assert_eq!(stored.status, 303, "{stored:?}");
    let place = stored.header("location").expect("a place").to_owned();
    assert!(!place.contains(&link.token), "{place}");
    let done = browse(&api, &place);
    assert!(
        done.status == 200 && done.body.contains("The secret is stored"),
        "{done:?}"
    );
    let forged = browse(&api, &place.replace("action=stored", "action=logged-in"));
    assert!(forged.body.contains("Nothing to see here"), "{forged:?}");
    assert_eq!(
        scratch.read(".env"),
        "BILLING_OF_THE_PAGES='s3cret-of-a-person$\"x'\n"
    );
    // The running server uses it, and the link is used up.
    let listed = call(&api, "list_connections", &json!({}));
    assert_eq!(listed["connections"][0]["state"], "ready", "{listed}");
    let ready = call(
        &api,
        "request_connection",
        &json!({"integration": "billing"}),
    );
    assert_eq!(ready["status"], "ready", "{ready}");
    is_over(&link.look(&api));
    is_over(&link.send(&api, "&secret=another-value"));
    let by_command = scratch.run_with(&["kit", "connect", link.id()], "another-value\n");
    assert_eq!(by_command.code, Some(1), "{by_command:?}");
    drop(api);
    let log = scratch.read("server.log");
    assert!(log.contains("/api/tools/connections/"), "{log}");
    for kept in [
        &kept(&scratch),
        &log,
        &format!("{stored:?}{done:?}{listed}"),
    ] {
        assert!(!kept.contains("s3cret-of-a-person"));
        assert!(!kept.contains("tiny!"));
    }
    for kept in [&kept(&scratch), &log] {
        assert!(!kept.contains(&link.token), "the link is in no file");
    }
}

#[test]
fn wrong_links_are_alike_and_counted_and_late_ones_are_over() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    let api = Api::serve(&scratch);
    let (one, other) = (request(&api, "billing"), request(&api, "crm"));
    let signer = Signer::open(&scratch.path().join(".flowstone")).expect("the key");
    let end = one.token.split('.').next().expect("an end");
    let later = one.token.replace(end, "9999999999999");
    let ended =
        |purpose: &str, id: &str, end: i64| format!("{end}.{}", signer.sign(purpose, id, end));
    let wrong = [
        format!("{}?token={}", one.path, other.token),
        format!("{}?token={later}", one.path),
        format!("{}?token={end}.", one.path),
        format!("{}?token=", one.path),
        one.path.clone(),
        format!("/api/tools/connections/kcr_0?token={}", one.token),
        format!("/api/tools/approvals/{}?token={}", one.id(), one.token),
        // A link of another kind of page has another signature.
        format!(
            "{}?token={}",
            one.path,
            ended("kit-approval", one.id(), i64::MAX)
        ),
        "/callback?code=x&state=y".to_owned(),
    ];
    for address in &wrong {
        let page = browse(&api, address);
        assert_eq!(page.status, 404, "{address}: {page:?}");
        assert!(page.body.contains("There is nothing here"), "{page:?}");
        has_headers_of_a_page(&page);
    }
    let plain = api.request(&format!("GET {}", wrong[0]), &[], "");
    assert_eq!(plain.problem(), "404 not_found");
    let late = Link {
        token: ended("kit-connection", one.id(), 1_000),
        ..one.clone()
    };
    is_over(&late.look(&api));
    is_over(&late.send(&api, "&secret=another-value"));
    let mut last = 0;
    for number in 0..40 {
        let form = format!("token={end}.{number:064x}&secret=another-value");
        last = send(&api, &one.path, &form).status;
    }
    assert_eq!(last, 429);
    assert_eq!(one.look(&api).status, 200, "the right link passes");
    assert!(!scratch.path().join(".env").exists());
}

#[test]
fn pages_of_others_and_malformed_forms_store_nothing() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    let api = Api::serve(&scratch);
    let link = request(&api, "billing");
    let good = format!("token={}&secret={SENT}", link.token);
    let what = format!("POST {}", link.path);
    for origin in [
        "origin: http://evil.example",
        "origin: null",
        "sec-fetch-site: cross-site",
    ] {
        let reply = api.request(&what, &[FORM, origin], &good);
        assert_eq!(reply.status, 403, "{origin}: {reply:?}");
    }
    // A name that somebody else points at this machine.
    for method in ["GET", "POST"] {
        let length = good.len();
        let path = &link.path;
        let reply = api.send(format!(
            "{method} {path}?token={} HTTP/1.1\r\nhost: rebound.example\r\nconnection: close\r\n{FORM}\r\ncontent-length: {length}\r\n\r\n{good}",
            link.token
        ));
        assert_eq!(reply.status, 403, "{method}: {reply:?}");
    }
    let large = format!("{good}{}", "x".repeat(70 << 10));
    for (headers, body, expected) in [
        (&[FORM][..], &*large, 413),
        (&["content-type: application/json"], "{}", 415),
        (&["content-type: multipart/form-data; boundary=x"], "x", 415),
        (&[FORM], &format!("{good}&secret=again-and-again"), 400),
        (&[FORM], &format!("{good}%zz"), 400),
        (&[FORM], &format!("{good}%ff"), 400),
        (&[FORM], &format!("secret={SENT}"), 404),
    ] {
        for accept in ["accept: text/html", "accept: */*"] {
            let headers = [headers, &[accept]].concat();
            let reply = api.request(&what, &headers, body);
            assert_eq!(reply.status, expected, "{reply:?}");
            assert!(!reply.body.contains("s3cret"), "{reply:?}");
        }
    }
    for method in ["PUT", "DELETE", "PATCH"] {
        let reply = api.request(&format!("{method} {}", link.path), &[], "");
        assert_eq!(reply.status, 405, "{method}: {reply:?}");
    }
    // Neither does looking, whatever the address says.
    let eager = format!("{}?token={}&secret={SENT}", link.path, link.token);
    assert_eq!(browse(&api, &eager).status, 200);
    let opened = ["sec-fetch-site: cross-site", "sec-fetch-mode: navigate"];
    let reply = api.request(&format!("GET {eager}"), &opened, "");
    assert_eq!(reply.status, 200, "a link in a mail opens the page");
    assert!(!scratch.path().join(".env").exists());
}

/// Sends eight forms at once, and returns the statuses, sorted.
fn at_once(send: impl Fn(usize) -> u16 + Sync) -> Vec<u16> {
    let start = Barrier::new(8);
    let mut statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let (start, send) = (&start, &send);
                scope.spawn(move || {
                    start.wait();
                    send(number)
                })
            })
            .collect();
        let ended = threads.into_iter().map(|it| it.join());
        ended.map(|status| status.expect("an answer")).collect()
    });
    statuses.sort_unstable();
    statuses
}

#[test]
fn of_two_secrets_at_once_one_is_stored() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    let api = Api::serve(&scratch);
    let link = request(&api, "billing");
    let statuses = at_once(|number| {
        let status = link.send(&api, &format!("&secret=secret-number-{number}"));
        status.status
    });
    let stored = statuses.iter().filter(|status| **status == 303).count();
    assert_eq!(stored, 1, "{statuses:?}");
    // The others come after it: the link is over, or the secret has a value.
    let others = statuses.iter().filter(|it| [409, 410].contains(*it));
    assert_eq!(others.count(), 7, "{statuses:?}");
    let lines = scratch.read(".env");
    assert_eq!(lines.matches("secret-number-").count(), 1, "{lines}");
}

#[test]
fn a_link_replaces_no_secret_that_is_set() {
    let scratch = Scratch::new();
    scratch.write(".env", "CRM_TOKEN=of-the-owner\n");
    let api = Api::serve(&scratch);
    // The project does not describe this connection, so the program chooses its name.
    let link = request(&api, "crm");
    let page = link.look(&api);
    assert!(
        page.body.contains("does not describe this connection yet"),
        "{page:?}"
    );
    let refused = link.send(&api, "&secret=of-somebody-else");
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.body.contains("has a value already"), "{refused:?}");
    assert_eq!(scratch.read(".env"), "CRM_TOKEN=of-the-owner\n");
}

fn first(text: &str) -> Value {
    json!({"delta": {"set": {"parameters": {"files": {"flow.edn": text}}}}})
}

/// Asks for a commit as an agent, and returns the link of the approval.
fn ask(api: &Api, agent: &str) -> Link {
    ask_for(api, agent, &first(FLOW))
}

fn ask_for(api: &Api, agent: &str, commit: &Value) -> Link {
    let asked = call_as(api, agent, "commit_revision", commit);
    assert_eq!(asked.status, 403, "{asked:?}");
    let error = asked.json();
    assert_eq!(error["code"], "approval_required", "{error}");
    Link::read(api, &error["details"]["url"])
}

/// Returns the page of the approval of an agent with a hostile name.
fn shows_the_call(api: &Api, link: &Link) -> Reply {
    let page = link.look(api);
    assert_eq!(page.status, 200, "{page:?}");
    has_headers_of_a_page(&page);
    for shown in [
        "commit_revision",
        "agent&lt;1&gt;",
        "digest",
        "What changes",
        "+{:slug :digest",
        "hello &lt;b&gt;",
        "&quot;delta&quot;",
        "Approve",
        "Deny",
        "Decide before",
    ] {
        assert!(page.body.contains(shown), "no {shown} in {}", page.body);
    }
    page
}

/// The identical call is another question, with another link. One that changes nothing can be repeated: it is approved once, and
/// denied then.
fn denies_the_identical_call(api: &Api, agent: &str, revision: &Value) -> Link {
    let mut same = first(FLOW);
    same["base_revision_id"] = revision.clone();
    let link = ask_for(api, agent, &same);
    let approve = format!("&decision=approve&access-token={}", api.token);
    let approved = link.send(api, &approve);
    assert_eq!(approved.status, 303, "{approved:?}");
    let made = call_as(api, agent, "commit_revision", &same);
    assert_eq!(made.json()["status"], "no_change", "{made:?}");
    let other = ask_for(api, agent, &same);
    assert_eq!(other.id(), link.id());
    is_over(&link.look(api));
    let denied = other.send(api, &format!("&decision=deny&access-token={}", api.token));
    assert_eq!(denied.status, 303, "{denied:?}");
    let refused = call_as(api, agent, "commit_revision", &same);
    assert_eq!(refused.json()["code"], "approval_denied");
    other
}

#[test]
fn a_person_decides_about_a_call_on_its_page() {
    let scratch = Scratch::new();
    let api = Api::serve_logged(&scratch, "trace");
    let agent = token(
        &scratch,
        &["agent<1>", "--scope", "edit", "--scope", "approve"],
    );
    let reader = token(&scratch, &["reader", "--scope", "read"]);
    let elsewhere = token(
        &scratch,
        &["elsewhere", "--scope", "approve", "--flow", "other"],
    );
    let link = ask(&api, &agent);
    let page = shows_the_call(&api, &link);
    assert!(!page.body.contains(&agent));
    for (form, status, shown) in [
        ("&decision=approve", 403, "is not accepted"),
        ("&decision=approve&access-token=x", 403, "is not accepted"),
        (
            &*format!("&decision=approve&access-token={agent}"),
            403,
            "asked with this access token",
        ),
        (
            &*format!("&decision=approve&access-token={reader}"),
            403,
            "may not decide here",
        ),
        (
            &*format!("&decision=approve&access-token={elsewhere}"),
            403,
            "may not decide here",
        ),
        (
            &*format!("&access-token={}", api.token),
            422,
            "Choose one of the decisions",
        ),
    ] {
        let reply = link.send(&api, form);
        assert_eq!(reply.status, status, "{form}: {reply:?}");
        assert!(reply.body.contains(shown), "{form}: {reply:?}");
        assert!(!reply.body.contains("fst_"), "{reply:?}");
    }
    let forbidden = call_as(&api, &agent, "commit_revision", &first(FLOW));
    assert_eq!(forbidden.json()["code"], "approval_required");
    let approved = link.send(
        &api,
        &format!("&decision=approve&access-token={}", api.token),
    );
    assert_eq!(approved.status, 303, "{approved:?}");
    let place = approved.header("location").expect("a place").to_owned();
    assert!(!place.contains(&link.token), "{place}");
    let done = browse(&api, &place);
    assert!(done.body.contains("The call is approved"), "{done:?}");
    let again = link.send(&api, &format!("&decision=deny&access-token={}", api.token));
    is_over(&again);
    assert!(
        again.body.contains("The call was approved by `owner`"),
        "{again:?}"
    );
    let made = call_as(&api, &agent, "commit_revision", &first(FLOW));
    assert_eq!(made.json()["status"], "committed", "{made:?}");
    is_over(&link.look(&api));
    let other = denies_the_identical_call(&api, &agent, &made.json()["revision"]["id"]);
    drop(api);
    let log = scratch.read("server.log");
    for secret in [&*agent, &*reader, &*link.token, &*other.token] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[test]
fn programs_get_approvals_as_json_and_only_within_reach() {
    let scratch = Scratch::new();
    let api = Api::serve(&scratch);
    let agent = token(&scratch, &["agent", "--scope", "edit"]);
    let elsewhere = token(
        &scratch,
        &["elsewhere", "--scope", "approve", "--flow", "other"],
    );
    let link = ask(&api, &agent);
    let get = |token: &str, accept: &str| {
        let token = format!("authorization: Bearer {token}");
        let address = format!("GET {}?token={}", link.path, link.token);
        api.request(&address, &[&*token, accept], "")
    };
    for accept in ["accept: application/json", "accept: */*", "x-none: 1"] {
        let found = get(&api.token, accept).json();
        assert_eq!(found["id"], link.id(), "{found}");
        assert_eq!(found["status"], "open", "{found}");
    }
    // The link alone shows a program nothing.
    let address = format!("GET {}?token={}", link.path, link.token);
    let bare = api.request(&address, &["accept: application/json"], "");
    assert_eq!(bare.problem(), "401 unauthorized");
    let hidden = get(&elsewhere, "accept: application/json");
    assert_eq!(hidden.problem(), "404 not_found");
    let listed = api.get_as(&elsewhere, "/api/tools/approvals").json();
    assert_eq!(listed["count"], 0, "{listed}");
    let body = json!({"decision": "approve"});
    let refused = api.post_as(&elsewhere, &link.path, &body);
    assert_eq!(refused.problem(), "404 not_found");
    assert_eq!(
        api.post(&link.path, &body).json()["status"],
        "approved",
        "as before"
    );
}

#[test]
fn of_two_decisions_about_a_call_at_once_one_counts() {
    let scratch = Scratch::new();
    let api = Api::serve(&scratch);
    let agent = token(&scratch, &["agent", "--scope", "edit"]);
    let link = ask(&api, &agent);
    let statuses = at_once(|number| {
        let decision = if number % 2 == 0 { "approve" } else { "deny" };
        let form = format!("&decision={decision}&access-token={}", api.token);
        link.send(&api, &form).status
    });
    assert_eq!(statuses, [303, 410, 410, 410, 410, 410, 410, 410]);
}

#[test]
fn pages_of_others_decide_nothing_and_late_links_are_over() {
    let scratch = Scratch::new();
    let api = Api::serve(&scratch);
    let agent = token(&scratch, &["agent", "--scope", "edit"]);
    let link = ask(&api, &agent);
    let good = format!(
        "token={}&decision=approve&access-token={}",
        link.token, api.token
    );
    let what = format!("POST {}", link.path);
    for origin in ["origin: http://evil.example", "origin: null"] {
        let reply = api.request(&what, &[FORM, origin], &good);
        assert_eq!(reply.status, 403, "{origin}: {reply:?}");
    }
    let (path, length) = (&link.path, good.len());
    let rebound = api.send(format!(
        "POST {path} HTTP/1.1\r\nhost: rebound.example\r\nconnection: close\r\n{FORM}\r\ncontent-length: {length}\r\n\r\n{good}"
    ));
    assert_eq!(rebound.status, 403, "{rebound:?}");
    let large = format!("{good}&x={}", "x".repeat(70 << 10));
    assert_eq!(send(&api, &link.path, &large).status, 413);
    let signer = Signer::open(&scratch.path().join(".flowstone")).expect("the key");
    let late = Link {
        token: format!("1000.{}", signer.sign("kit-approval", link.id(), 1_000)),
        ..link.clone()
    };
    let form = format!("&decision=approve&access-token={}", api.token);
    is_over(&late.look(&api));
    is_over(&late.send(&api, &form));
    let open = api.get("/api/tools/approvals").json();
    assert_eq!(open["approvals"][0]["status"], "open", "{open}");
}

/// Requests a connection over MCP, and returns the link.
fn over_mcp(api: &Api, host: &str) -> String {
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "request_connection", "arguments": {"integration": "billing"}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }},
    });
    let body = call.to_string();
    let (token, length) = (&api.token, body.len());
    let reply = api.send(format!(
        "POST /mcp/kit/digest HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\nauthorization: Bearer {token}\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: request_connection\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {length}\r\n\r\n{body}"
    ));
    let answer = reply.json();
    let url = answer["result"]["structuredContent"]["url"].as_str();
    url.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn links_have_the_address_that_the_client_used() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    let api = Api::serve(&scratch);
    let (_, port) = api.address.rsplit_once(':').expect("a port");
    for host in [&*api.address, &format!("localhost:{port}")] {
        let url = over_mcp(&api, host);
        let start = format!("http://{host}/api/tools/connections/kcr_");
        assert!(url.starts_with(&start), "{url}");
    }
    // A program beside the server names it, too.
    let arguments = r#"{"integration": "billing"}"#;
    let by_command = scratch.run(&[
        "kit",
        "request_connection",
        "--flow",
        "digest",
        "--json",
        arguments,
    ]);
    let pending = by_command.json();
    assert_eq!(Link::read(&api, &pending["url"]).look(&api).status, 200);
    drop(api);
    // Nobody serves the project: the command is what is left.
    std::fs::remove_file(scratch.path().join(".flowstone/server.json")).ok();
    let alone = scratch.run(&[
        "kit",
        "request_connection",
        "--flow",
        "digest",
        "--json",
        arguments,
    ]);
    let pending = alone.json();
    assert_eq!(pending["url"], Value::Null, "{pending}");
    assert!(pending["command"].is_string(), "{pending}");
}
