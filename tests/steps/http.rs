//! `:http` against a local server.

use expect_test::{Expect, expect};
use flowstone_flow::step::{Effect, Step};
use flowstone_steps::guard::is_refused;
use flowstone_steps::http::Http;

use crate::server::{Say, Server, json, reply};
use crate::world::{World, edn, wait};

/// Performs one request, with `URL` in its config replaced, and returns the outcome.
#[track_caller]
fn check(world: &World, answers: Vec<Say>, config: &str, expected: Expect) {
    let shown = wait(async {
        let server = Server::start(answers);
        let shown = world.run(&Http, &config.replace("URL", &server.url)).await;
        server.clean(&shown)
    });
    expected.assert_eq(&shown);
}

/// Performs one request, and returns when it may be retried.
fn retry_of(world: &World, answers: Vec<Say>, config: &str) -> String {
    let shown = wait(async {
        let server = Server::start(answers);
        world.run(&Http, &config.replace("URL", &server.url)).await
    });
    let line = shown
        .lines()
        .find_map(|line| line.trim().strip_prefix("retry: "));
    line.unwrap_or("never").to_owned()
}

/// Performs one request, and returns what was sent.
#[track_caller]
fn sent(world: &World, config: &str, expected: Expect) {
    let shown = wait(async {
        let server = Server::start(vec![reply("204 No Content", &[], "")]);
        let config = config.replace("URL", &server.url);
        let outcome = world.run(&Http, &config).await;
        let requests = server.requests();
        requests
            .first()
            .cloned()
            .unwrap_or(outcome)
            .replace("\r\n", "\n")
    });
    expected.assert_eq(&shown);
}

#[test]
fn bodies_are_read_by_their_type() {
    let world = World::new();
    check(
        &world,
        vec![json(r#"{"html_url": "x", "n": [1, 2.5, null]}"#)],
        "{:url \"URL/a\"}",
        expect![[
            r#"{:status 200 :headers {:connection "close" :content-length "38" :content-type "application/json"} :body {:html_url "x" :n [1 2.5 nil]}}"#
        ]],
    );
    let text =
        |kind: &str, body: &str| vec![reply("200 OK", &[&format!("content-type: {kind}")], body)];
    let quiet = "{:url \"URL\" :include-headers false}";
    check(
        &world,
        text("application/problem+json; charset=utf-8", "[1]"),
        quiet,
        expect!["{:status 200 :body [1]}"],
    );
    check(
        &world,
        text("application/x-ndjson", "{\"a\":1}\n\n{\"a\":2}\n"),
        quiet,
        expect!["{:status 200 :body [{:a 1} {:a 2}]}"],
    );
    check(
        &world,
        text(
            "text/event-stream",
            "event: x\ndata: 1\ndata: 2\n\n: ping\n\ndata: 3\n\n",
        ),
        quiet,
        expect![[
            r#"{:status 200 :body [{:event "x" :data "1\n2" :id nil} {:event nil :data "3" :id nil}]}"#
        ]],
    );
    check(
        &world,
        text("application/edn", "{:a #{1}}"),
        quiet,
        expect!["{:status 200 :body {:a #{1}}}"],
    );
    check(
        &world,
        text("text/html", "<p>"),
        quiet,
        expect![[r#"{:status 200 :body "<p>"}"#]],
    );
    check(
        &world,
        vec![reply(
            "200 OK",
            &["content-type: text/plain; charset=latin1"],
            b"caf\xe9",
        )],
        quiet,
        expect![[r#"{:status 200 :body "café"}"#]],
    );
    check(
        &world,
        vec![reply("200 OK", &[], "plain")],
        quiet,
        expect![[r#"{:status 200 :body "plain"}"#]],
    );
    check(
        &world,
        vec![reply("204 No Content", &[], "")],
        quiet,
        expect!["{:status 204 :body nil}"],
    );
    check(
        &world,
        text("application/json", "{}"),
        "{:url \"URL\" :include-headers [:content-type] :response-as :text}",
        expect![[r#"{:status 200 :headers {:content-type "application/json"} :body "{}"}"#]],
    );
}

#[test]
fn bytes_are_stored() {
    let world = World::new();
    check(
        &world,
        vec![reply(
            "200 OK",
            &["content-type: image/png"],
            b"\x89PNG\xff",
        )],
        "{:url \"URL\" :include-headers false}",
        expect![[r#"{:status 200 :body #flowstone/bytes "89504e47ff"}"#]],
    );
}

#[test]
fn requests_contain_the_configured_parts() {
    let world = World::new();
    sent(
        &world,
        "{:url \"URL/a?x=1\" :query {:q \"a b&c\" :n [1 2] :skip nil} :headers {:x-one \"1\" \"X-Two\" 2} :accept :json}",
        expect![[r#"
            GET /a?x=1&q=a+b%26c&n=1&n=2 HTTP/1.1
            x-one: 1
            x-two: 2
            accept: application/json
            user-agent: flowstone/0.1.0
            accept-encoding: gzip
            host: HOST

        "#]],
    );
    sent(
        &world,
        "{:url \"URL/a\" :json {:a [1 :b]} :headers {:Accept \"x/y\"}}",
        expect![[r#"
            POST /a HTTP/1.1
            accept: x/y
            content-type: application/json
            idempotency-key: run1/test
            user-agent: flowstone/0.1.0
            accept-encoding: gzip
            host: HOST
            content-length: 13

            {"a":[1,"b"]}"#]],
    );
    sent(
        &world,
        "{:url \"URL/a\" :method :put :body \"héllo\"}",
        expect![[r#"
            PUT /a HTTP/1.1
            content-type: text/plain; charset=utf-8
            idempotency-key: run1/test
            accept: */*
            user-agent: flowstone/0.1.0
            accept-encoding: gzip
            host: HOST
            content-length: 6

            héllo"#]],
    );
    sent(
        &world,
        "{:url \"URL/a\" :form {:a \"1 2\" :b \"&\"} :headers {:idempotency-key \"mine\"}}",
        expect![[r#"
            POST /a HTTP/1.1
            idempotency-key: mine
            content-type: application/x-www-form-urlencoded
            accept: */*
            user-agent: flowstone/0.1.0
            accept-encoding: gzip
            host: HOST
            content-length: 11

            a=1+2&b=%26"#]],
    );
    sent(
        &world,
        "{:url \"URL/a\" :multipart [{:name :meta :content {:a 1}} {:name \"file\" :filename \"a\\\"b.txt\" :content-type \"text/plain\" :content \"hi\"}]}",
        expect![[r#"
            POST /a HTTP/1.1
            content-type: multipart/form-data; boundary=flowstone-2b3223ffd5801ae0110e69c0747c4e28
            idempotency-key: run1/test
            accept: */*
            user-agent: flowstone/0.1.0
            accept-encoding: gzip
            host: HOST
            content-length: 327

            --flowstone-2b3223ffd5801ae0110e69c0747c4e28
            Content-Disposition: form-data; name="meta"
            Content-Type: application/json

            {"a":1}
            --flowstone-2b3223ffd5801ae0110e69c0747c4e28
            Content-Disposition: form-data; name="file"; filename="a%22b.txt"
            Content-Type: text/plain

            hi
            --flowstone-2b3223ffd5801ae0110e69c0747c4e28--
        "#]],
    );
}

#[test]
fn secrets_are_sent_and_never_recorded() {
    let world = World::new().secret("my-token", "s3cret");
    sent(
        &world,
        "{:url \"URL/a\" :auth {:type :bearer :secret-ref :my-token}}",
        expect![[r#"
            GET /a HTTP/1.1
            authorization: Bearer s3cret
            accept: */*
            user-agent: flowstone/0.1.0
            accept-encoding: gzip
            host: HOST

        "#]],
    );
    sent(
        &world,
        "{:url \"URL/a\" :auth {:type :api-key :header \"X-Key\" :secret-ref :my-token}}",
        expect![[r#"
            GET /a HTTP/1.1
            x-key: s3cret
            accept: */*
            user-agent: flowstone/0.1.0
            accept-encoding: gzip
            host: HOST

        "#]],
    );
    sent(
        &world,
        "{:url \"URL/a\" :auth {:type :api-key :query \"key\" :secret-ref :my-token}}",
        expect![[r#"
            GET /a?key=s3cret HTTP/1.1
            accept: */*
            user-agent: flowstone/0.1.0
            accept-encoding: gzip
            host: HOST

        "#]],
    );
    sent(
        &world,
        "{:url \"URL/a\" :auth {:type :basic :username \"me\" :secret-ref :my-token}}",
        expect![[r#"
            GET /a HTTP/1.1
            authorization: Basic bWU6czNjcmV0
            accept: */*
            user-agent: flowstone/0.1.0
            accept-encoding: gzip
            host: HOST

        "#]],
    );
    sent(
        &world,
        "{:url \"URL/a\" :auth {:type :bearer :secret-ref :your-token}}",
        expect![[r#"
            E0752 missing-secret: the secret `your-token` is not set
              hint: set YOUR_TOKEN in the environment, or in `.env` beside the flows
              hint: or say where it is in flowstone.edn: {:secrets {:your-token {:env "..."}}}"#]],
    );
    sent(
        &world,
        "{:url \"URL/a\" :auth {:type :bearer :token \"abc\"}}",
        expect![[r#"
            E0753 bad-config: `:auth` holds a secret itself, under `:token`
              hint: name it instead, `:secret-ref :my-token`, and set MY_TOKEN in the environment or in `.env`"#]],
    );
    sent(
        &world,
        "{:url \"URL/a\" :auth {:type :google-service-account :secret-ref :my-token}}",
        expect![[r#"
            E0753 bad-config: `:auth` needs `:scopes`
              hint: as in `:scopes ["https://www.googleapis.com/auth/spreadsheets.readonly"]`"#]],
    );
}

#[test]
fn secrets_are_redacted_in_every_encoding() {
    let world = World::new().secret("t", "p&ss wörd");
    for auth in [
        "{:type :basic :username \"me\" :secret-ref :t}",
        "{:type :api-key :query \"k\" :secret-ref :t}",
    ] {
        let config = format!("{{:url \"http://127.0.0.1:1/\" :auth {auth}}}");
        wait(world.run(&Http, &config));
    }
    expect![[r#"
        p&ss wörd
        bWU6cCZzcyB3w7ZyZA==
        p&ss wörd
        p%26ss+w%C3%B6rd"#]]
    .assert_eq(&world.hidden.borrow().join("\n"));
}

#[test]
fn connection_settings_override_those_of_the_flow() {
    wait(async {
        let server = Server::start(vec![json("{}")]);
        let world = World::new()
            .secret("crm-token", "s3cret")
            .settings(&format!(
                "{{:connections {{:crm {{:base-url \"{}/v2/\" :headers {{:x-team \"a\"}}}}}}}}",
                server.url
            ))
            .requires("[{:slot :crm :type :http-api :label \"CRM\" :base-url \"https://nowhere.invalid\" :auth {:type :bearer}}]");
        world
            .value(&Http, "{:connection :crm :path \"/users\" :query {:a 1}}")
            .await;
        let request = server.requests().remove(0);
        assert!(
            request.starts_with("GET /v2/users?a=1 HTTP/1.1\n"),
            "{request}"
        );
        assert!(
            request.contains("\nauthorization: Bearer s3cret"),
            "{request}"
        );
        assert!(request.contains("\nx-team: a"), "{request}");
        // The secret stays with its server.
        let other = Server::start(vec![json("{}")]);
        world
            .value(
                &Http,
                &format!("{{:connection :crm :url \"{}\"}}", other.url),
            )
            .await;
        assert!(!other.requests()[0].contains("s3cret"));
        let shown = world.run(&Http, "{:connection :crn :path \"/\"}").await;
        assert!(
            shown.starts_with(
                "E0750 bad-config: there is no connection `:crn`\n  hint: did you mean `:crm`?"
            ),
            "{shown}"
        );
    });
}

#[test]
fn a_template_shapes_the_request() {
    let world = World::new().template(
        "{:id :create :type :http-request :request {:url \"{{base}}/items\" :method :post :json {:title \"{{item.title}}\" :n 1}}}",
    );
    sent(
        &world,
        "{:template :create :data {:base \"URL\" :item {:title \"A \\\"b\\\"\"}}}",
        expect![[r#"
            POST /items HTTP/1.1
            content-type: application/json
            idempotency-key: run1/test
            accept: */*
            user-agent: flowstone/0.1.0
            accept-encoding: gzip
            host: HOST
            content-length: 25

            {"title":"A \"b\"","n":1}"#]],
    );
    sent(
        &world,
        "{:template :creat :data {}}",
        expect![[r#"
        E0755 bad-config: the flow has no template `:creat`
          hint: did you mean `:create`?"#]],
    );
}

#[test]
fn an_error_status_includes_the_message_of_the_server() {
    let world = World::new();
    let url = "{:url \"URL/a\"}";
    check(
        &world,
        vec![reply(
            "404 Not Found",
            &["content-type: application/json"],
            r#"{"message": "no such item"}"#,
        )],
        url,
        expect![[r#"
            E0734 not-found: http://HOST/a answered 404 Not Found: {"message": "no such item"}
              hint: check the address
              data: {:url "http://HOST/a" :method "GET" :status 404 :body {:message "no such item"} :headers {:connection "close" :content-length "27" :content-type "application/json"} :preview "{\"message\": \"no such item\"}"}"#]],
    );
    check(
        &world,
        vec![reply("500 Internal Server Error", &[], "oops")],
        url,
        expect![[r#"
            E0734 unavailable: http://HOST/a answered 500 Internal Server Error: oops
              retry: later
              hint: the server has a problem; `:retry {:max-attempts 3}` tries again
              data: {:url "http://HOST/a" :method "GET" :status 500 :body "oops" :headers {:connection "close" :content-length "4"} :preview "oops"}"#]],
    );
    check(
        &world,
        vec![reply("429 Too Many Requests", &["retry-after: 7"], "")],
        url,
        expect![[r#"
            E0734 rate-limited: http://HOST/a answered 429 Too Many Requests
              retry: after 7s
              hint: the server limits the rate of requests; `:retry` waits as long as it asks for
              data: {:url "http://HOST/a" :method "GET" :status 429 :headers {:connection "close" :content-length "0" :retry-after "7"}}"#]],
    );
    for (headers, words) in [
        // The clock of the server decides, whatever the local one says.
        (
            [
                "date: Wed, 21 Oct 2015 07:28:00 GMT",
                "retry-after: Wed, 21 Oct 2015 07:30:30 GMT",
            ],
            "after 150s",
        ),
        (
            [
                "date: Wed, 21 Oct 2015 07:28:00 GMT",
                "retry-after: Wed, 21 Oct 2015 07:00:00 GMT",
            ],
            "after 0ns",
        ),
        (
            // By the local clock, this instant has passed.
            ["x: y", "retry-after: Wed, 21 Oct 2015 07:30:30 GMT"],
            "after 0ns",
        ),
        (["x: y", "retry-after: 86401"], "after 86401s"),
        (["x: y", "retry-after: soon"], "later"),
        (["x: y", "retry-after: -1"], "later"),
    ] {
        let answers = vec![reply("503 Service Unavailable", &headers, "")];
        assert_eq!(retry_of(&world, answers, url), words, "{headers:?}");
    }
    check(
        &world,
        vec![reply("401 Unauthorized", &[], "")],
        url,
        expect![[r#"
            E0734 unauthorized: http://HOST/a answered 401 Unauthorized
              hint: check the secret that `:auth` or the connection names
              data: {:url "http://HOST/a" :method "GET" :status 401 :headers {:connection "close" :content-length "0"}}"#]],
    );
}

#[test]
fn incomplete_responses_are_reported() {
    let world = World::new();
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"half\":".to_vec();
    check(
        &world,
        vec![Say::Raw(head.clone())],
        "{:url \"URL\"}",
        expect![[r#"
            E0735 cut-off: http://HOST/ closed the connection before its answer was complete (status 200, 8 bytes received)
              retry: later
              hint: the server or a proxy stopped in the middle; try again
              data: {:url "http://HOST/" :method "GET" :status 200 :preview "{\"half\":…"}"#]],
    );
    check(
        &World::new().timeout(1000).stop_clock(),
        vec![Say::Hang(head)],
        "{:url \"URL\"}",
        expect![[r#"
            E0733 timeout: http://HOST/ did not finish its answer within 0.9 s
              retry: later
              hint: raise `:timeout`, or ask for less
              data: {:url "http://HOST/" :method "GET" :status 200 :preview "{\"half\":…"}"#]],
    );
    check(
        &World::new().timeout(200).stop_clock(),
        vec![Say::Hang(Vec::new())],
        "{:url \"URL\"}",
        expect![[r#"
            E0733 timeout: http://HOST/ did not answer within 0.2 s
              retry: later
              hint: raise `:timeout`, or ask for less
              data: {:url "http://HOST/" :method "GET"}"#]],
    );
    check(
        &world,
        vec![Say::Raw(Vec::new())],
        "{:url \"URL\"}",
        expect![[r#"
            E0735 cut-off: http://HOST/ closed the connection without an answer
              retry: later
              hint: the server or a proxy stopped in the middle; try again
              data: {:url "http://HOST/" :method "GET"}"#]],
    );
    check(
        &world,
        vec![Say::Raw(b"SSH-2.0-OpenSSH\r\n".to_vec())],
        "{:url \"URL\"}",
        expect![[r#"
            E0735 cut-off: http://HOST/ does not answer in HTTP (invalid HTTP version parsed)
              retry: later
              hint: the server or a proxy stopped in the middle; try again
              data: {:url "http://HOST/" :method "GET"}"#]],
    );
    check(
        &world,
        vec![json("{\"a\": ")],
        "{:url \"URL\"}",
        expect![[r#"
            E0737 bad-response: the answer of http://HOST/ is not JSON: EOF while parsing a value at line 1 column 6
              hint: `:response-as :text` or `:bytes` takes the answer as it is
              data: {:url "http://HOST/" :method "GET" :status 200 :preview "{\"a\": "}"#]],
    );
    check(
        &world,
        vec![reply("200 OK", &["content-type: text/plain"], b"caf\xe9")],
        "{:url \"URL\"}",
        expect![[r#"
            E0737 bad-response: the answer of http://HOST/ is not text: it is not valid UTF-8, from byte 3 on
              hint: `:response-as :text` or `:bytes` takes the answer as it is
              data: {:url "http://HOST/" :method "GET" :status 200 :preview "caf�"}"#]],
    );
    check(
        &world,
        vec![json("{\"abcdefgh\": 1}")],
        "{:url \"URL\" :client-opts {:max-response-bytes 5}}",
        expect![[r#"
            E0736 too-large: the answer of http://HOST/ is larger than 5 bytes
              hint: raise `:client-opts {:max-response-bytes n}`, or keep it out of line with `:persist {:type :blob}`
              data: {:url "http://HOST/" :method "GET" :status 200}"#]],
    );
}

#[test]
fn impossible_requests_are_refused() {
    let world = World::new();
    for (config, expected) in [
        (
            "{}",
            expect![[r#"
            E0738 bad-config: the request has no address
              hint: give it a `:url`, or a `:connection` and a `:path`"#]],
        ),
        (
            "{:url \"nonsense\"}",
            expect![[r#"
            E0730 bad-url: `nonsense` is not a valid address: relative URL without a base
              hint: an address looks like https://host/path"#]],
        ),
        (
            "{:url \"file:///etc/passwd\"}",
            expect![[r#"
            E0730 bad-url: `file:///etc/passwd` is not a valid address: `file:` is not HTTP
              hint: an address looks like https://host/path"#]],
        ),
        (
            "{:url \"http://me:pw@127.0.0.1:1/x\"}",
            expect![[r#"
                E0732 unavailable: http://127.0.0.1:1/x cannot be reached: Connection refused (os error 111)
                  retry: later
                  hint: check the address, the network, and that the server runs
                  data: {:url "http://127.0.0.1:1/x" :method "GET"}"#]],
        ),
        (
            "{:url \"http://nowhere.invalid/\"}",
            expect![[r#"
                E0732 unavailable: http://nowhere.invalid/ cannot be reached: ...
                  retry: later
                  hint: check the address, the network, and that the server runs
                  data: {:url "http://nowhere.invalid/" :method "GET"}"#]],
        ),
        (
            "{:url \"http://127.0.0.1:1\" :json 1 :form {:a 1}}",
            expect!["E0738 bad-config: a request has one body, and this has `:form` `:json`"],
        ),
        (
            "{:url \"http://127.0.0.1:1\" :body {:a 1}}",
            expect![[r#"
                E0738 bad-config: `:body` takes text or bytes, not a map
                  hint: `:json` sends data"#]],
        ),
        (
            "{:url \"http://127.0.0.1:1\" :response-as :toml}",
            expect![[r#"
                E0728 bad-config: `:response-as` has no `:toml`
                  hint: there are `:auto` `:bytes` `:edn` `:json` `:jsonl` `:sse` `:text` `:xml` `:yaml`; `:text` with a `:parser-fn` reads any other format"#]],
        ),
        (
            "{:url \"http://127.0.0.1:1\" :client-opts {:max-bytes 1}}",
            expect![[r#"
                E0726 bad-config: `:client-opts` has no key `:max-bytes`
                  hint: it takes `:allow-link-local` `:connect-timeout` `:max-redirects` `:max-response-bytes` `:proxy`"#]],
        ),
        (
            "{:url \"http://127.0.0.1:1\" :headers {\"a b\" 1}}",
            expect![[r#"
                E0738 bad-request: the name of the header `a b` is not valid
                  hint: the reference page on `:http` lists what a request may hold
                  data: {:url "http://127.0.0.1:1/" :method "GET"}"#]],
        ),
        (
            "{:url \"http://127.0.0.1:1\" :body-from-ref \"res://v1/ws/local/x\"}",
            expect![[r#"
                E0761 not-found: there is no blob `res://v1/ws/local/x`
                  hint: it belongs to another project, or was removed when nothing mentioned it any more: `flowstone resources list` shows what there is"#]],
        ),
    ] {
        let shown = wait(world.run(&Http, config));
        // The message of the system's resolver varies.
        let shown = match shown.split_once("cannot be reached: ") {
            Some((start, rest)) if start.contains("nowhere") => format!(
                "{start}cannot be reached: ...\n{}",
                rest.split_once('\n').unwrap().1
            ),
            _ => shown,
        };
        expected.assert_eq(&shown);
    }
}

#[test]
fn redirects_are_followed_with_care() {
    wait(async {
        let world = World::new().secret("t", "s3cret");
        let other = Server::start(vec![json("\"there\"")]);
        let first = Server::start(vec![reply(
            "302 Found",
            &[&format!("location: {}/x", other.url)],
            "",
        )]);
        let config = format!(
            "{{:url {:?} :method :post :json {{:a 1}} :include-headers false :headers {{\"X-Tenant\" \"acme\" \"Accept\" \"text/x\"}} :auth {{:type :api-key :secret-ref :t}}}}",
            first.url
        );
        assert_eq!(
            world.run(&Http, &config).await,
            "{:status 200 :body \"there\"}"
        );
        assert!(first.requests()[0].contains("x-api-key: s3cret"));
        let request = other.requests().remove(0);
        assert!(request.starts_with("GET /x HTTP/1.1\n"), "{request}");
        assert!(
            !request.contains("s3cret") && !request.contains("content-type"),
            "{request}"
        );
        // Headers that say more than what is asked for are for the first server, too.
        assert!(
            !request.contains("acme") && request.contains("text/x"),
            "{request}"
        );
    });
    let world = World::new();
    let to = |place: &str| vec![reply("301 Moved", &[&format!("location: {place}")], "")];
    check(
        &world,
        ["/1", "/2", "/3", "/4"].map(to).concat(),
        "{:url \"URL\" :client-opts {:max-redirects 3}}",
        expect![[r#"
            E0739 bad-redirect: http://HOST/ redirects more than 3 times
              hint: ask for the final address directly
              data: {:url "http://HOST/" :method "GET"}"#]],
    );
    check(
        &world,
        to("/again"),
        "{:url \"URL\" :client-opts {:max-redirects 3}}",
        expect![[r#"
            E0739 bad-redirect: http://HOST/ redirects in a circle, back to `/again`
              hint: ask for the final address directly
              data: {:url "http://HOST/" :method "GET"}"#]],
    );
    check(
        &world,
        to("http://169.254.169.254/latest/meta-data"),
        "{:url \"URL\"}",
        expect![[r#"
            E0731 denied: 169.254.169.254 is a link-local or metadata address, which is refused
              hint: if this is intended, allow it in flowstone.edn, `:allow {:net ["169.254.169.254"]}`, and set `:client-opts {:allow-link-local true}` on the step
              data: {:url "http://HOST/" :method "GET"}"#]],
    );
    check(
        &world,
        to("file:///etc/passwd"),
        "{:url \"URL\"}",
        expect![[r#"
            E0739 bad-redirect: http://HOST/ redirects to `file:///etc/passwd`, which is not HTTP
              hint: ask for the final address directly
              data: {:url "http://HOST/" :method "GET"}"#]],
    );
}

#[test]
fn metadata_and_link_local_addresses_are_refused() {
    for address in [
        "169.254.169.254",
        "169.254.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fe80::1",
        "febf::1",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "::169.254.169.254",
    ] {
        assert!(is_refused(address.parse().unwrap()), "{address}");
    }
    for address in [
        "127.0.0.1",
        "::1",
        "10.0.0.1",
        "192.168.1.1",
        "1.1.1.1",
        "2606:4700::1111",
        "0.0.0.0",
        "::",
        "fd00::1",
    ] {
        assert!(!is_refused(address.parse().unwrap()), "{address}");
    }
    let world = World::new();
    for url in [
        "http://169.254.169.254/",
        "http://[fe80::1]/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://[::ffff:a9fe:a9fe]/",
    ] {
        let shown = wait(world.run(&Http, &format!("{{:url {url:?}}}")));
        assert!(shown.starts_with("E0731 denied: "), "{url}: {shown}");
    }
}

#[test]
fn only_requests_without_side_effects_count_as_reads() {
    let effect = |config: &str| Http.effect(&edn(config));
    assert_eq!(effect("{:url \"x\"}"), Effect::Read);
    assert_eq!(effect("{:url \"x\" :method :get}"), Effect::Read);
    assert_eq!(effect("{:url \"x\" :method :post}"), Effect::External);
    assert_eq!(effect("{:url \"x\" :json {}}"), Effect::External);
    assert_eq!(effect("{:template :t}"), Effect::External);
}
