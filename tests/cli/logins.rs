//! `flowstone connections login`, and requests with the tokens of logins, against an authorization server on this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flowstone_flow::codec::digest_bytes;
use serde_json::{Value as Json, json};

use crate::api::{Api, Reply};
use crate::program::{Ran, Scratch};
use crate::server::{Answer, Request, Server, reply};

/// An authorization server, and the API and MCP server that it protects.
#[derive(Default)]
struct State {
    /// The number of the newest token; older ones are refused.
    token: usize,
    seconds: i64,
    refreshes: usize,
    denies_refresh: bool,
    /// Errors of the token endpoint before it gives tokens.
    errors: Vec<&'static str>,
    polls: Vec<Instant>,
    challenge: String,
    registered: usize,
    revoked: usize,
    /// Whether the server is without a description.
    is_silent: bool,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<State>>);

impl Shared {
    fn get(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics with it")
    }
}

fn field(request: &Request, name: &str) -> String {
    let found = request.body.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (key == name).then(|| value.to_owned())
    });
    found.unwrap_or_default()
}

fn hex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(byte).collect()
}

fn data(status: &str, json: &Json) -> Answer {
    reply(
        status,
        &["content-type: application/json"],
        json.to_string(),
    )
}

fn token(state: &mut State, request: &Request) -> Answer {
    let refused = |code: &str| {
        let description = "no\u{7}luck";
        data(
            "400 Bad Request",
            &json!({"error": code, "error_description": description}),
        )
    };
    let grant = field(request, "grant_type");
    match grant.as_str() {
        "refresh_token" => {
            let own = format!("refresh-text-{}", state.token);
            if state.denies_refresh || field(request, "refresh_token") != own {
                return refused("invalid_grant");
            }
            state.refreshes += 1;
        }
        "authorization_code" => {
            let digest = hex(&digest_bytes(field(request, "code_verifier").as_bytes()));
            if field(request, "code") != "good-code"
                || URL_SAFE_NO_PAD.encode(digest) != state.challenge
            {
                return refused("invalid_grant");
            }
        }
        _ => {
            state.polls.push(Instant::now());
            if !state.errors.is_empty() {
                return refused(state.errors.remove(0));
            }
        }
    }
    state.token += 1;
    data(
        "200 OK",
        &json!({
            "access_token": format!("access-text-{}", state.token),
            "refresh_token": format!("refresh-text-{}", state.token),
            "token_type": "Bearer",
            "expires_in": state.seconds,
        }),
    )
}

fn answer(shared: &Shared, request: &Request) -> Answer {
    let mut state = shared.get();
    let base = format!("http://{}", request.header("host").unwrap_or_default());
    let path = request.path.split('?').next().unwrap_or_default();
    match path {
        "/.well-known/oauth-authorization-server" if !state.is_silent => data(
            "200 OK",
            &json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "device_authorization_endpoint": format!("{base}/device"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "revocation_endpoint": format!("{base}/revoke"),
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            }),
        ),
        "/resource" if !state.is_silent => data(
            "200 OK",
            &json!({
                "resource": format!("{base}/api"),
                "authorization_servers": [base],
                "scopes_supported": ["read", "write"],
            }),
        ),
        "/register" => {
            state.registered += 1;
            data("201 Created", &json!({"client_id": "registered-client"}))
        }
        "/device" => data(
            "200 OK",
            &json!({
                "device_code": "device-code-text",
                "user_code": "WDJB-MJHT",
                "verification_uri": format!("{base}/enter"),
                "expires_in": 60,
                "interval": 1,
            }),
        ),
        "/token" => token(&mut state, request),
        "/revoke" => {
            state.revoked += 1;
            data("200 OK", &json!({}))
        }
        _ => {
            let own = format!("Bearer access-text-{}", state.token);
            if state.token == 0 || request.header("authorization") != Some(&own) {
                let challenge = format!(
                    "www-authenticate: Bearer resource_metadata=\"{base}/resource\", scope=\"read\""
                );
                return reply("401 Unauthorized", &[&challenge], "");
            }
            drop(state);
            protected(path, request)
        }
    }
}

/// The API, the model and the MCP server behind the token.
fn protected(path: &str, request: &Request) -> Answer {
    let message: Json = serde_json::from_str(&request.body).unwrap_or_default();
    let result = |result: Json| {
        data(
            "200 OK",
            &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
        )
    };
    match (path, message["method"].as_str().unwrap_or_default()) {
        ("/mcp", "initialize") => result(json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        })),
        ("/mcp", "tools/list") => {
            result(json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}))
        }
        ("/mcp", "tools/call") => result(json!({"content": [{"type": "text", "text": "hi"}]})),
        ("/mcp", "server/discover") => data(
            "200 OK",
            &json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"}}),
        ),
        ("/mcp", _) => reply("202 Accepted", &[], ""),
        ("/model/embeddings", _) => {
            let texts = message["input"].as_array().map_or(0, Vec::len);
            let rows: Vec<Json> = (0..texts)
                .map(|idx| json!({"index": idx, "embedding": [1, 0]}))
                .collect();
            data("200 OK", &json!({"data": rows}))
        }
        ("/model/chat/completions", _) => {
            let delta =
                json!({"choices": [{"delta": {"content": "one"}, "finish_reason": "stop"}]});
            Answer::Events(vec![delta.to_string(), "[DONE]".to_owned()])
        }
        // A server that repeats the token must not bring it into the journal.
        _ => data(
            "200 OK",
            &json!({"ok": true, "echo": request.header("authorization")}),
        ),
    }
}

const SETTINGS: &str = r#"{:connections {:crm {:base-url "URL/api" :auth {:type :oauth}}
               :tools {:backend :mcp :base-url "URL/mcp" :auth {:type :oauth :issuer "URL" :client-id "own"}}
               :ai {:backend :openai-chat :base-url "URL/model" :auth {:type :oauth :issuer "URL" :client-id "own"}}}
 :search {:embedder {:connection :ai :model "m"}}
 :allow {:net ["127.0.0.1"]}
 :profiles {:other {:connections {:crm {:base-url "URL/other" :auth {:type :oauth}}}}}}"#;

const CRM: &str = r#"{:slug :crm :flow '(:body (flow/step :http :get {:connection :crm}))}"#;
const TOOLS: &str = r#"{:slug :tools :mcp [{:id :f/all :connection :tools}]
 :flow '(:content (flow/step :mcp :echo {:adapter :f/all :tool "echo"}))}"#;
const FIND: &str = r#"{:slug :find :flow
 '(do (flow/step :function :keep {:code '(fn [_] "Soup and bread.") :persist {:type :blob :filename "menu.md"}})
      (mapv :title (:results (flow/step :search :it {:targets [:resources] :query "lunch" :mode :semantic}))))}"#;
const AI: &str = r#"{:slug :ai :flow '(:content (flow/step :llm :ask {:connection :ai :model "m" :prompt "p"}))}"#;

fn begin() -> (Server, Shared, Scratch) {
    let shared = Shared::default();
    shared.get().seconds = 3600;
    let inner = shared.clone();
    let server = Server::start(move |request, _| answer(&inner, request));
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS.replace("URL", &server.url("")));
    for (name, flow) in [("crm", CRM), ("tools", TOOLS), ("ai", AI), ("find", FIND)] {
        scratch.write(&format!("flows/{name}.edn"), flow);
    }
    (server, shared, scratch)
}

/// Starts a login, and returns the link that it prints.
fn start(scratch: &Scratch, name: &str, options: &[&str]) -> (Child, String) {
    let args = [&["connections", "login", name], options].concat();
    let mut child = scratch
        .command(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut reader = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut text = String::new();
    while !text.contains("/authorize?") {
        let got = reader.read_line(&mut text).expect("text");
        assert!(got > 0, "no link: {text}");
    }
    // The rest is read so that the program never waits for us.
    std::thread::spawn(move || reader.read_to_end(&mut Vec::new()));
    let link = text.lines().find(|line| line.contains("/authorize?"));
    (child, link.unwrap_or_default().trim().to_owned())
}

fn parameter(link: &str, name: &str) -> String {
    let query = link.split_once('?').map_or("", |(_, query)| query);
    let found = query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (key == name).then(|| value.replace("%3A", ":").replace("%2F", "/"))
    });
    found.unwrap_or_default()
}

/// Comes back from the login page as a browser, and returns the page that is shown.
fn come_back(link: &str, query: &str) -> String {
    let redirect = parameter(link, "redirect_uri");
    let rest = redirect.strip_prefix("http://").expect(link);
    let (host, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("somebody listens");
    write!(
        stream,
        "GET /{path}?{query} HTTP/1.1\r\nhost: {host}\r\n\r\n"
    )
    .expect("sent");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("a page");
    page
}

/// Logs in with a browser.
fn log_in(scratch: &Scratch, shared: &Shared, name: &str) {
    let (child, link) = start(scratch, name, &[]);
    shared.get().challenge = parameter(&link, "code_challenge");
    assert_eq!(parameter(&link, "code_challenge_method"), "S256");
    let query = format!("code=good-code&state={}", parameter(&link, "state"));
    let page = come_back(&link, &query);
    assert!(page.contains("200 OK"), "{page}");
    let out = child.wait_with_output().expect("an end");
    let out = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.contains("logged in"), "{out}");
}

fn run(scratch: &Scratch, name: &str) -> Ran {
    scratch.run(&["run", &format!("flows/{name}.edn")])
}

fn login_of(scratch: &Scratch, name: &str) -> Json {
    let json = scratch.json_of(&["connections", "list"]);
    let all = json["connections"].as_array().expect("a list").clone();
    let found = all.into_iter().find(|it| it["name"] == name);
    found.expect(name)["login"].clone()
}

/// Returns the bytes of all files of the project's data except the logins.
fn kept(scratch: &Scratch) -> String {
    let mut text = String::new();
    let mut folders = vec![scratch.path().join(".flowstone")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            match entry.path() {
                path if path.ends_with("logins") => {}
                path if path.is_dir() => folders.push(path),
                path => text += &String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()),
            }
        }
    }
    text
}

#[test]
fn a_login_with_a_browser_is_kept_used_and_ended() {
    let (_server, shared, scratch) = begin();
    let ran = run(&scratch, "crm");
    assert!(
        ran.err.contains("E1314") && ran.err.contains("flowstone connections login crm"),
        "{ran:?}"
    );
    assert_eq!(login_of(&scratch, "crm")["state"], "needs-login");
    log_in(&scratch, &shared, "crm");
    assert_eq!(shared.get().registered, 1);
    let ran = run(&scratch, "crm").ok();
    assert!(ran.contains(":ok true"), "{ran}");
    assert!(!ran.contains("access-text"), "{ran}");
    assert!(!kept(&scratch).contains("access-text"));
    assert!(!kept(&scratch).contains("refresh-text"));
    let login = login_of(&scratch, "crm");
    assert_eq!(login["state"], "logged-in");
    assert_eq!(login["renewed"], true);
    assert!(login["expiresAt"].is_string(), "{login}");
    let words = scratch.run(&["connections", "list"]).ok();
    assert!(words.contains("logged in"), "{words}");
    let test = scratch.run(&["connections", "test", "crm"]).ok();
    assert!(test.contains("works"), "{test}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let files = std::fs::read_dir(scratch.path().join(".flowstone/logins")).expect("logins");
        for file in files.flatten() {
            let mode = file.metadata().expect("a file").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{:?} {mode:o}", file.path());
        }
    }
    // The login is for one address.
    let other = scratch.run(&["run", "flows/crm.edn", "--profile", "other"]);
    assert!(other.err.contains("E1314"), "{other:?}");
    let ended = scratch.run(&["connections", "logout", "crm"]).ok();
    assert_eq!(ended, "crm: logged out\n");
    assert_eq!(shared.get().revoked, 1);
    assert!(run(&scratch, "crm").err.contains("E1314"));
}

#[test]
fn a_login_with_a_code_waits_as_the_server_says() {
    let (_server, shared, scratch) = begin();
    shared.get().errors = vec!["authorization_pending", "slow_down"];
    let ran = scratch.run(&["connections", "login", "crm", "--device"]);
    assert!(
        ran.err.contains("/enter") && ran.err.contains("WDJB-MJHT"),
        "{ran:?}"
    );
    assert!(ran.ok().contains("logged in"));
    let polls = shared.get().polls.clone();
    assert_eq!(polls.len(), 3);
    let gap = polls[2].duration_since(polls[1]).as_secs_f64();
    assert!(gap >= 5.9, "{gap}");
    for (error, code) in [("access_denied", "E1316"), ("expired_token", "E1318")] {
        shared.get().errors = vec![error];
        let ran = scratch.run(&["connections", "login", "crm", "--device"]);
        assert!(ran.err.contains(code), "{ran:?}");
        assert!(!ran.err.contains('\u{7}'), "{ran:?}");
    }
}

#[test]
fn an_answer_that_does_not_fit_is_refused() {
    let (_server, shared, scratch) = begin();
    let answers = [
        ("code=good-code&state=wrong", "E1317"),
        ("code=good-code", "E1317"),
        ("state=STATE", "E1317"),
        (
            "state=STATE&code=good-code&iss=https://evil.example",
            "E1317",
        ),
        ("state=STATE&error=access_denied", "E1316"),
        ("state=STATE&code=wrong", "E1316"),
    ];
    for (query, code) in answers {
        let (child, link) = start(&scratch, "crm", &["--json"]);
        shared.get().challenge = parameter(&link, "code_challenge");
        // Other requests of a browser do not count.
        let icon = link.replace("%2Fcallback", "%2Ffavicon.ico");
        assert!(come_back(&icon, "").contains("404"), "{icon}");
        come_back(&link, &query.replace("STATE", &parameter(&link, "state")));
        let out = child.wait_with_output().expect("an end");
        let out = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.contains(code), "{query}: {out}");
    }
    assert_eq!(login_of(&scratch, "crm")["state"], "needs-login");
    let late = scratch.run(&["connections", "login", "crm", "--timeout", "1s"]);
    assert!(late.err.contains("E1318"), "{late:?}");
    shared.get().is_silent = true;
    let silent = scratch.run(&["connections", "login", "crm"]);
    assert!(silent.err.contains("E1315"), "{silent:?}");
}

#[test]
fn an_expired_token_is_renewed_once_by_many_processes() {
    let (_server, shared, scratch) = begin();
    shared.get().seconds = 1;
    log_in(&scratch, &shared, "crm");
    shared.get().seconds = 3600;
    std::thread::sleep(std::time::Duration::from_millis(1200));
    let running: Vec<Child> = (0..4)
        .map(|_| {
            scratch
                .command(&["steps", "run", "http", "{:connection :crm}"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the program starts")
        })
        .collect();
    for child in running {
        Ran::of(child).ok();
    }
    assert_eq!(shared.get().refreshes, 1);
}

#[test]
fn a_refused_token_is_renewed_and_a_refused_renewal_needs_a_login() {
    let (server, shared, scratch) = begin();
    for name in ["crm", "tools", "ai"] {
        log_in(&scratch, &shared, name);
        // What was kept is the newest refresh token, but another access token.
        let file = std::fs::read_dir(scratch.path().join(".flowstone/logins"))
            .expect("logins")
            .flatten()
            .map(|entry| entry.path())
            .find(|path| {
                let text = path.to_string_lossy();
                text.ends_with(".json") && text.contains(&format!("/{name}-"))
            });
        let file = file.expect("a login");
        let text = std::fs::read_to_string(&file).expect("a login");
        std::fs::write(&file, text.replace("access-text-", "refused-text-")).expect("written");
        let before = shared.get().refreshes;
        let out = run(&scratch, name).ok();
        let expected = [("crm", ":ok true"), ("tools", "hi"), ("ai", "one")];
        assert!(
            expected
                .iter()
                .any(|(it, text)| *it == name && out.contains(text)),
            "{out}"
        );
        assert!(!out.contains("access-text"), "{out}");
        assert_eq!(shared.get().refreshes, before + 1, "{name}");
        assert!(!kept(&scratch).contains("refused-text"));
    }
    assert!(
        server
            .requests()
            .iter()
            .any(|it| it.body.contains("client_id=own"))
    );
    // Each later login has made the earlier ones old.
    shared.get().denies_refresh = true;
    let ran = run(&scratch, "crm");
    assert!(
        ran.err.contains("E1314")
            && ran.err.contains("no luck")
            && ran.err.contains("connections login crm"),
        "{ran:?}"
    );
    assert_eq!(login_of(&scratch, "crm")["state"], "needs-login");
    let test = scratch.run(&["connections", "test", "crm"]);
    assert!(test.out.contains("FAILS"), "{test:?}");
}

#[test]
fn the_authorization_server_needs_permission_as_any_server() {
    let (server, shared, scratch) = begin();
    let other = Shared::default();
    let inner = other.clone();
    let elsewhere = Server::start(move |request, _| answer(&inner, request));
    scratch.write(
        "flowstone.edn",
        format!(
            "{{:connections {{:crm {{:base-url \"{}\" :auth {{:type :oauth :client-id \"own\" :issuer \"{}\"}}}}}}}}",
            server.url("/api"),
            elsewhere.url("")
        ),
    );
    let ran = scratch.run(&["connections", "login", "crm", "--timeout", "1s"]);
    assert!(ran.err.contains("E0960"), "{ran:?}");
    assert!(elsewhere.requests().is_empty());
    assert_eq!(shared.get().token, 0);
    // A step has no login of its own.
    scratch.write(
        "flows/own.edn",
        format!(
            "{{:slug :own :flow '(flow/step :http :get {{:url \"{}\" :auth {{:type :oauth}}}})}}",
            server.url("/api")
        ),
    );
    let own = scratch.run(&["run", "flows/own.edn"]);
    assert!(own.err.contains("E0753"), "{own:?}");
}

#[test]
fn the_embedder_uses_and_renews_the_login_of_its_connection() {
    let (server, shared, scratch) = begin();
    let ran = run(&scratch, "find");
    assert!(
        ran.err.contains("E1314") && ran.err.contains("connections login ai"),
        "{ran:?}"
    );
    log_in(&scratch, &shared, "ai");
    let out = run(&scratch, "find").ok();
    assert!(out.contains("menu.md"), "{out}");
    // The server does not accept this token any more.
    shared.get().token += 1;
    let files = std::fs::read_dir(scratch.path().join(".flowstone/logins")).expect("logins");
    for file in files
        .flatten()
        .filter(|it| it.path().extension().is_some_and(|it| it == "json"))
    {
        let text = std::fs::read_to_string(file.path()).expect("a login");
        std::fs::write(
            file.path(),
            text.replace("refresh-text-1", "refresh-text-2"),
        )
        .expect("written");
    }
    let out = run(&scratch, "find").ok();
    assert!(out.contains("menu.md"), "{out}");
    assert_eq!(shared.get().refreshes, 1);
    let all = kept(&scratch);
    assert!(!all.contains("access-text") && !all.contains("refresh-text"));
    // The token goes to the server of the connection only.
    let settings = SETTINGS.replace("URL", &server.url(""));
    let other = settings.replace(
        ":model \"m\"",
        ":model \"m\" :base-url \"http://localhost:1/v1\"",
    );
    scratch.write("flowstone.edn", other);
    let ran = run(&scratch, "find");
    assert!(ran.err.contains("is not for"), "{ran:?}");
}

/// Sends the form of a page, as a browser does.
fn send_form(api: &Api, path: &str, form: &str) -> Reply {
    let origin = format!("origin: http://{}", api.address);
    let headers = [
        "content-type: application/x-www-form-urlencoded",
        "accept: text/html",
        &*origin,
    ];
    api.request(&format!("POST {path}"), &headers, form)
}

/// Returns the link of a page to another server.
fn link_out(page: &Reply) -> String {
    let (_, rest) = page.body.split_once("href=\"http").expect("a link");
    let (rest, _) = rest.split_once('"').expect("an end");
    format!("http{}", rest.replace("&amp;", "&"))
}

#[test]
fn a_person_logs_in_on_the_page_of_a_request() {
    let (_server, shared, scratch) = begin();
    let api = Api::serve(&scratch);
    let token = format!("authorization: Bearer {}", api.token);
    let headers = [
        &*token,
        "content-type: application/json",
        "x-flowstone-flow: crm",
    ];
    let request = || {
        let arguments = r#"{"integration": "crm"}"#;
        let what = "POST /api/tools/request_connection";
        api.request(what, &headers, arguments).json()
    };
    let pending = request();
    let url = pending["url"].as_str().expect("a link").to_owned();
    let (start, link) = url.split_once("?token=").expect("a token");
    let path = start
        .strip_prefix(&format!("http://{}", api.address))
        .expect("this server");
    let browse = |address: &str| api.request(&format!("GET {address}"), &["accept: text/html"], "");
    let page = browse(&format!("{path}?token={link}"));
    assert!(
        page.status == 200 && page.body.contains("Log in"),
        "{page:?}"
    );
    assert_eq!(shared.get().registered, 0, "looking asks no server");
    let begin = || {
        let page = send_form(&api, path, &format!("token={link}"));
        assert_eq!(page.status, 200, "{page:?}");
        let out = link_out(&page);
        shared.get().challenge = parameter(&out, "code_challenge");
        let redirect = parameter(&out, "redirect_uri");
        assert_eq!(redirect, format!("http://{}/callback", api.address));
        assert!(!out.contains(link), "{out}");
        parameter(&out, "state")
    };
    let come_back = |query: &str| {
        let from = [
            "accept: text/html",
            "sec-fetch-site: cross-site",
            "sec-fetch-mode: navigate",
        ];
        api.request(&format!("GET /callback?{query}"), &from, "")
    };
    // What the authorization server refuses can be tried again with the same link.
    let state = begin();
    let refused = come_back(&format!("state={state}&error=access_denied"));
    assert_eq!(refused.status, 502, "{refused:?}");
    assert!(refused.body.contains("E1316"), "{refused:?}");
    let state = begin();
    let wrong = come_back(&format!("state={state}&code=wrong"));
    assert_eq!(wrong.status, 502, "{wrong:?}");
    assert_eq!(login_of(&scratch, "crm")["state"], "needs-login");
    let (state, other) = (begin(), begin());
    assert_eq!(come_back("state=x&code=good-code").status, 404);
    // The newest challenge is that of the second one.
    let done = come_back(&format!("state={other}&code=good-code"));
    assert_eq!(done.status, 303, "{done:?}");
    let place = done.header("location").expect("a place");
    assert!(!place.contains(link) && !place.contains("good-code"));
    let shown = browse(place);
    assert!(shown.body.contains("You are logged in"), "{shown:?}");
    assert_eq!(login_of(&scratch, "crm")["state"], "logged-in");
    // Answers and the link are used up.
    assert_eq!(
        come_back(&format!("state={other}&code=good-code")).status,
        404
    );
    assert_eq!(
        come_back(&format!("state={state}&code=good-code")).status,
        410
    );
    assert_eq!(browse(&format!("{path}?token={link}")).status, 410);
    assert_eq!(send_form(&api, path, &format!("token={link}")).status, 410);
    assert_eq!(request()["status"], "ready");
    let kept = kept(&scratch);
    assert!(!kept.contains("access-text") && !kept.contains("good-code"));
}
