//! `:http` against hostile or broken servers: a clear error each time, soon, with bounded memory, and without
//! half-written results.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::net::{Net, contains};
use crate::server::{Say, json, reply};

/// Returns the bytes of a head and a body.
fn raw(head: &str, body: &[u8]) -> Say {
    Say::Raw(headed(head, body))
}

fn headed(head: &str, body: &[u8]) -> Vec<u8> {
    [head.replace('\n', "\r\n").as_bytes(), b"\r\n\r\n", body].concat()
}

/// Returns one complete block of a gzip stream that expands to about a million zeros.
fn zeros() -> Vec<u8> {
    let mut deflate = flate2::Compress::new(flate2::Compression::fast(), false);
    let mut out = Vec::with_capacity(64 << 10);
    deflate
        .compress_vec(&vec![0; 1 << 20], &mut out, flate2::FlushCompress::Full)
        .unwrap();
    out
}

const GZIP: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff";

/// Sends a request with and without `:persist`: the error begins with `expected`, comes soon, and leaves nothing
/// behind.
#[track_caller]
fn refused(say: &dyn Fn() -> Say, options: &str, expected: &str) {
    for persist in ["", ":persist {:type :blob}"] {
        let net = Net::new(vec![say()]);
        let before = Instant::now();
        let found = net.take(
            "r",
            &format!("{{:url \"URL\" {options} {persist} :retry {{:max-attempts 1}}}}"),
        );
        assert!(
            found.starts_with(expected),
            "{persist}\nexpected {expected}\nfound {found}"
        );
        let took = before.elapsed();
        assert!(took < Duration::from_secs(20), "{expected}: {took:?}");
        net.keeps_no_blob();
        // The connection was closed, so an endless server does not get a second request.
        assert!(net.server.requests().len() == 1);
    }
}

#[test]
fn endless_responses_are_cut_off() {
    let block = vec![0; 1 << 20];
    let chunk = [b"100000\r\n".as_slice(), &block, b"\r\n"].concat();
    let endless = |head: &str, block: &[u8]| {
        let (head, block) = (headed(head, b""), block.to_vec());
        move || Say::Endless(head.clone(), block.clone())
    };
    let large = "E0736 the answer of http://HOST/ is larger than 3000000 bytes";
    let most = ":client-opts {:max-response-bytes 3000000}";
    // With a content length, in chunks, and until the server closes.
    let said = endless("HTTP/1.1 200 OK\ncontent-length: 10737418240", &block);
    refused(&said, most, large);
    refused(
        &said,
        "",
        "E0736 the answer of http://HOST/ is larger than 52428800 bytes",
    );
    refused(
        &endless("HTTP/1.1 200 OK\ntransfer-encoding: chunked", &chunk),
        most,
        large,
    );
    refused(
        &endless("HTTP/1.1 200 OK\ncontent-type: text/plain", &block),
        most,
        large,
    );
    refused(
        &endless("HTTP/1.1 200 OK\ncontent-type: application/json", b"["),
        most,
        large,
    );
    refused(
        &endless(
            "HTTP/1.1 200 OK\ncontent-type: text/event-stream",
            b"data: 1\n\n",
        ),
        most,
        large,
    );
    // The body of an error is read only as far as it is shown.
    refused(
        &endless("HTTP/1.1 500 No", &block),
        "",
        "E0734 http://HOST/ answered 500",
    );
    // The content length of HEAD is that of the response to GET, and is not limited.
    let net = Net::new(vec![raw(
        "HTTP/1.1 200 OK\ncontent-length: 10737418240",
        b"",
    )]);
    let head = net.take("[(:status r) (:body r)]", "{:url \"URL\" :method :head}");
    assert_eq!(head, "[200 nil]");
}

#[test]
fn compressed_responses_are_limited_by_their_decompressed_size() {
    let large = "E0736 the answer of http://HOST/ is larger than 3000000 bytes";
    let most = ":client-opts {:max-response-bytes 3000000}";
    // A gigabyte, compressed to about one megabyte.
    let bomb = [GZIP, &zeros().repeat(1024)].concat();
    assert!(bomb.len() < 5 << 20, "{}", bomb.len());
    let head = format!(
        "HTTP/1.1 200 OK\ncontent-encoding: gzip\ncontent-length: {}",
        bomb.len()
    );
    refused(&|| raw(&head, &bomb), most, large);
    refused(
        &|| raw(&head, &bomb),
        "",
        "E0736 the answer of http://HOST/ is larger than 52428800 bytes",
    );
    let failed = head.replace("200 OK", "500 No");
    refused(
        &|| raw(&failed, &bomb),
        "",
        "E0734 http://HOST/ answered 500",
    );
    // A gzip header without gzip, gzip without the header, and a truncated stream.
    let head = "HTTP/1.1 200 OK\nconnection: close\ncontent-encoding: gzip";
    refused(
        &|| raw(head, b"plain text"),
        "",
        "E0735 http://HOST/ sent an answer that is not well formed: ",
    );
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&[b'a'; 5000]).unwrap();
    let packed = packed.finish().unwrap();
    refused(
        &|| raw(head, &packed[..packed.len() - 8]),
        "",
        "E0735 http://HOST/ closed the connection before",
    );
    let net = Net::new(vec![raw(head, &packed)]);
    assert_eq!(net.take("(count (:body r))", "{:url \"URL\"}"), "5000");
}

#[test]
fn malformed_heads_are_refused() {
    let many = "x-a: b\n".repeat(10_000);
    let long = "a".repeat(10 << 20);
    for (say, expected) in [
        (
            raw(&format!("HTTP/1.1 200 OK\n{many}x: y"), b""),
            "E0735 http://HOST/ does not answer in HTTP (",
        ),
        (
            raw(&format!("HTTP/1.1 200 OK\nx-a: {long}"), b""),
            "E0735 http://HOST/ does not answer in HTTP (",
        ),
        (
            Say::Endless(b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'a'; 1 << 16]),
            "E0735 http://HOST/ does not answer in HTTP (",
        ),
        (
            Say::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), b"a: b\r\n".to_vec()),
            "E0735 http://HOST/ does not answer in HTTP (",
        ),
        (
            raw("HTTP/1.1 200 OK\ncontent-length: -1", b"abc"),
            "E0735 http://HOST/ does not answer in HTTP (",
        ),
        (
            raw(
                "HTTP/1.1 200 OK\ncontent-length: 3\ncontent-length: 5",
                b"abcde",
            ),
            "E0735 http://HOST/ does not answer in HTTP (",
        ),
        (
            raw(
                "HTTP/1.1 200 OK\ncontent-length: 99999999999999999999999",
                b"a",
            ),
            "E0735 http://HOST/ does not answer in HTTP (",
        ),
        (
            raw("HTTP/1.1 20x OK", b""),
            "E0735 http://HOST/ does not answer in HTTP (",
        ),
        (
            raw("HTTP/9.9 200 OK", b""),
            "E0735 http://HOST/ does not answer in HTTP (",
        ),
        (
            raw("HTTP/1.1 200 OK\nbad header", b""),
            "E0735 http://HOST/ does not answer in HTTP (",
        ),
        (
            Say::Raw(vec![0xff; 4096]),
            "E0735 http://HOST/ does not answer in HTTP (",
        ),
    ] {
        refused(&|| say.clone(), ":timeout 10", expected);
    }
    // Endless interim responses are read until the timeout of the step.
    let more = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
    refused(
        &|| Say::Endless(Vec::new(), more.clone()),
        ":timeout \"300ms\"",
        "E0733 http://HOST/ did not answer within 0.3 s",
    );
}

#[test]
fn incomplete_bodies_are_refused() {
    let chunked = "HTTP/1.1 200 OK\ncontent-type: text/plain\ntransfer-encoding: chunked";
    let cut = "E0735 http://HOST/ closed the connection before its answer was complete (status 200, 3 bytes received)";
    for (say, expected) in [
        (raw(chunked, b"5\r\nhel"), cut),
        (raw(chunked, b"3\r\nhel\r\n"), cut),
        (raw("HTTP/1.1 200 OK\ncontent-length: 5", b"hel"), cut),
        (
            raw(chunked, b"3\r\nhel\r\nzz\r\n"),
            "E0735 http://HOST/ sent an answer that is not well formed: ",
        ),
        (
            raw(chunked, b"fffffffffffffffff\r\nhel"),
            "E0735 http://HOST/ sent an answer that is not well formed: ",
        ),
        (
            Say::Hang(headed(chunked, b"3\r\nhel\r\n")),
            "E0733 http://HOST/ did not finish its answer within 0.3 s",
        ),
        (
            Say::Hang(Vec::new()),
            "E0733 http://HOST/ did not answer within 0.3 s",
        ),
    ] {
        refused(&|| say.clone(), ":timeout \"300ms\"", expected);
    }
    // Bytes beyond the content length are dropped.
    let net = Net::new(vec![
        raw("HTTP/1.1 200 OK\ncontent-length: 3", b"abcHTTP/1.1 200 OK"),
        json("1"),
    ]);
    assert_eq!(net.body("{:url \"URL\"}"), "\"abc\"");
    assert_eq!(net.body("{:url \"URL\"}"), "1");
}

#[test]
fn invalid_texts_are_refused() {
    let typed = |kind: &str, body: &[u8]| {
        Net::new(vec![reply(
            "200 OK",
            &[&format!("content-type: {kind}")],
            body,
        )])
    };
    for (kind, body, expected) in [
        (
            "text/plain",
            b"caf\xe9".as_slice(),
            "E0737 the answer of http://HOST/ is not text: it is not valid UTF-8, from byte 3 on",
        ),
        (
            "application/json",
            b"{\"a\": \"\xff\"}",
            "E0737 the answer of http://HOST/ is not text: it is not valid UTF-8, from byte 7 on",
        ),
        (
            "application/json",
            b"{\"a\": 1,\n \"b\": }",
            "E0737 the answer of http://HOST/ is not JSON: expected value at line 2 column 7",
        ),
        (
            "application/json",
            b"{} x",
            "E0737 the answer of http://HOST/ is not JSON: trailing characters at line 1 column 4",
        ),
        (
            "application/xml",
            b"<a><b></a>",
            "E0737 the answer of http://HOST/ is not XML: ",
        ),
        (
            "application/edn",
            b"{:a #=(x)}",
            "E0737 the answer of http://HOST/ is not EDN: ",
        ),
        (
            "application/yaml",
            b"a: [1, 2",
            "E0737 the answer of http://HOST/ is not YAML: ",
        ),
    ] {
        let found = typed(kind, body).body("{:url \"URL\"}");
        assert!(
            found.starts_with(expected),
            "{kind}\nexpected {expected}\nfound {found}"
        );
    }
    let deep = "[".repeat(200_000);
    contains(
        &typed("application/json", deep.as_bytes()).body("{:url \"URL\"}"),
        "E0737",
    );
    contains(
        &typed("application/edn", deep.as_bytes()).body("{:url \"URL\"}"),
        "E0737",
    );
    contains(
        &typed("application/yaml", deep.as_bytes()).body("{:url \"URL\"}"),
        "E0737",
    );
    contains(
        &typed("application/xml", "<a>".repeat(200_000).as_bytes()).body("{:url \"URL\"}"),
        "E0737",
    );
    // Entities that expand to large texts, or refer to files.
    let laughs = "<!DOCTYPE l [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;\"><!ENTITY f SYSTEM \"file:///etc/passwd\">]><l>&b;&f;</l>";
    contains(
        &typed("application/xml", laughs.as_bytes()).body("{:url \"URL\"}"),
        "E0737",
    );
    let aliases: String = (1..30)
        .map(|it| format!("a{it}: &a{it} [*a{0}, *a{0}, *a{0}]\n", it - 1))
        .collect();
    let aliases = format!("a0: &a0 [1, 2, 3]\n{aliases}");
    contains(
        &typed("application/yaml", aliases.as_bytes()).body("{:url \"URL\"}"),
        "E0737",
    );
}

#[test]
fn tls_to_a_plain_port_is_reported() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = port.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in port.incoming() {
            let mut stream = stream.unwrap();
            let _part = stream.read(&mut [0; 4096]).unwrap();
            stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\nplain")
                .unwrap();
        }
    });
    let net = Net::quiet();
    let found = net.body(&format!(
        "{{:url \"https://{host}\" :timeout 5 :retry {{:max-attempts 1}}}}"
    ));
    let found = found.replace(&host, "HOST");
    assert_eq!(
        found,
        "E0744 HOST cannot be trusted: it does not speak TLS on this port | if the server speaks plain HTTP, write http:// in the address"
    );
}

/// Notations of this machine and of a cloud's metadata service.
const INSIDE: &[&str] = &[
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f.1",
    "0177.0.0.1",
    "0",
    "localhost",
    "LOCALHOST.",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:0:0]",
    "[::ffff:0.0.0.0]",
    "[::]",
    "[64:ff9b::7f00:1]",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "[::ffff:169.254.169.254]",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "metadata.google.internal",
    "10.0.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "[fd12::1]",
];

/// Starts a local proxy that answers for any address, as a stand-in for the network outside.
fn outside(say: Say, settings: &str) -> Net {
    Net::with(
        vec![say],
        &[(
            "flowstone.edn",
            &format!("{{:http {{:proxy \"URL\" {settings}}}}}"),
        )],
    )
}

#[test]
fn a_redirect_cannot_reach_a_more_private_zone() {
    for inside in INSIDE {
        let place = format!("http://{inside}:1/secret");
        let net = outside(reply("302 Found", &[&format!("location: {place}")], ""), "");
        let found = net.body("{:url \"http://93.184.216.34/\" :retry {:max-attempts 1}}");
        assert!(found.starts_with("E0731 "), "{inside}: {found}");
        assert_eq!(net.server.requests().len(), 1, "{inside}");
    }
    for (place, expected) in [
        (
            "file:///etc/passwd",
            "E0739 http://93.184.216.34/ redirects to `file:///etc/passwd`, which is not HTTP",
        ),
        ("gopher://127.0.0.1:1/", "E0739"),
        ("data:text/plain,x", "E0739"),
        ("http://", "E0739"),
        ("http://me:pw@127.0.0.1:1/", "E0731"),
        ("//127.0.0.1:1/", "E0731"),
        (
            "/again",
            "E0739 http://93.184.216.34/ redirects in a circle, back to `/again`",
        ),
    ] {
        let net = outside(reply("302 Found", &[&format!("location: {place}")], ""), "");
        let found = net.body("{:url \"http://93.184.216.34/\" :retry {:max-attempts 1}}");
        assert!(found.starts_with(expected), "{place}: {found}");
        assert!(!found.contains("pw"), "{found}");
    }
    // Each redirect leads to the next, without end.
    let hops: Vec<Say> = (0..60)
        .map(|at| reply("302 Found", &[&format!("location: /{at}")], ""))
        .collect();
    let net = Net::new(hops);
    contains(
        &net.body("{:url \"URL\"}"),
        "E0739 http://HOST/ redirects more than 10 times",
    );
    assert_eq!(net.server.requests().len(), 11);
}

#[test]
fn deny_private_keeps_flows_out_of_private_networks() {
    for inside in INSIDE {
        let net = Net::with(
            vec![json("1")],
            &[("flowstone.edn", "{:http {:deny-private true}}")],
        );
        let found = net.body(&format!(
            "{{:url \"http://{inside}:1/\" :timeout 2 :retry {{:max-attempts 1}}}}"
        ));
        assert!(found.starts_with("E0731 "), "{inside}: {found}");
        // The same through a proxy.
        let net = outside(json("1"), ":deny-private true");
        let found = net.body(&format!(
            "{{:url \"http://{inside}:1/\" :retry {{:max-attempts 1}}}}"
        ));
        assert!(found.starts_with("E0731 "), "{inside} by proxy: {found}");
        assert_eq!(net.server.requests().len(), 0, "{inside}");
    }
    let ask = |settings: &str| {
        let settings = format!("{{:http {{{settings}}}}}");
        Net::with(vec![json("1")], &[("flowstone.edn", &settings)]).body("{:url \"URL\"}")
    };
    contains(
        &ask(":deny-private true"),
        "is this machine or in a private network, which the settings refuse | if this is intended, allow it in flowstone.edn: {:http {:allow-hosts [\"127.0.0.1\"]}}",
    );
    for allowed in ["127.0.0.1", "127.0.0.0/8", "::ffff:127.0.0.1"] {
        let found = ask(&format!(
            ":deny-private true :allow-hosts [\"10.0.0.0/8\" \"{allowed}\"]"
        ));
        assert_eq!(found, "1", "{allowed}");
    }
    contains(
        &ask(":deny-private true :allow-hosts [\"*.internal\" \"10.0.0.0/8\"]"),
        "E0731",
    );
    // A flow cannot override it.
    let net = Net::with(
        vec![json("1")],
        &[("flowstone.edn", "{:http {:deny-private true}}")],
    );
    contains(
        &net.body("{:url \"URL\" :client-opts {:allow-link-local true}}"),
        "E0731",
    );
    contains(
        &net.body("{:url \"URL\" :client-opts {:allow-hosts [\"127.0.0.1\"]}}"),
        "E0",
    );
    assert_eq!(net.server.requests().len(), 0);
}

#[test]
fn a_proxy_sees_the_request() {
    let net = outside(json("1"), "");
    assert_eq!(
        net.body("{:url \"http://93.184.216.34/a?b=c\" :headers {:x-a 1}}"),
        "1"
    );
    let seen = net.server.requests().remove(0);
    assert!(
        seen.starts_with("GET http://93.184.216.34/a?b=c HTTP/1.1\n"),
        "{seen}"
    );
    contains(&seen, "x-a: 1");
    // HTTPS asks the proxy for a tunnel, without credentials for the target.
    let net = Net::with(
        vec![reply("403 Forbidden", &[], "")],
        &[
            (
                "flowstone.edn",
                "{:http {:proxy \"URL\"} :allow {:secrets {:t [\"93.184.216.34\"]}}}",
            ),
            (".env", "T=s3cret-token"),
        ],
    );
    let found = net.body("{:url \"https://93.184.216.34/a\" :auth {:type :bearer :secret-ref :t} :retry {:max-attempts 1}}");
    contains(&found, "E0732 https://93.184.216.34/a cannot be reached: ");
    let seen = net.server.requests().remove(0);
    assert!(
        seen.starts_with("CONNECT 93.184.216.34:443 HTTP/1.1\n"),
        "{seen}"
    );
    assert!(!seen.contains("s3cret"), "{seen}");
}

#[test]
fn a_proxy_of_a_step_sees_no_secret() {
    let proxied = |auth: &str, config: &str| {
        let settings = format!(
            "{{:allow {{:net [\"*\"] :secrets {{:t [\"93.184.216.34\"]}}}} :connections {{:crm {{:base-url \"http://93.184.216.34\" {auth}}}}}}}"
        );
        let files = [
            ("flowstone.edn", settings.as_str()),
            (".env", "T=s3cret-token"),
        ];
        let net = Net::with(vec![json("1")], &files);
        let found = net.body(&format!(
            "{{{config} :client-opts {{:proxy \"URL\"}} :retry {{:max-attempts 1}}}}"
        ));
        (found, net.server.requests())
    };
    for auth in [
        ":auth {:type :bearer :secret-ref :t}",
        ":auth {:type :basic :username \"me\" :secret-ref :t}",
        ":auth {:type :api-key :header \"x-mine\" :secret-ref :t}",
        ":auth {:type :api-key :query \"key\" :secret-ref :t}",
    ] {
        for (of_connection, config) in [
            (auth, ":connection :crm".to_owned()),
            ("", format!(":connection :crm {auth}")),
            ("", format!(":url \"http://93.184.216.34/\" {auth}")),
        ] {
            let (found, seen) = proxied(of_connection, &config);
            assert!(found.starts_with("E1140 "), "{auth} {config}: {found}");
            assert!(seen.is_empty(), "{auth} {config}: {seen:?}");
        }
    }
    let (found, seen) = proxied(":headers {:x-own \"1\"}", ":connection :crm");
    assert!(found.starts_with("E1140 ") && seen.is_empty(), "{found}");
    // A request with neither may use the proxy, and a tunnel hides both.
    assert_eq!(proxied("", ":connection :crm").0, "1");
    let auth = ":auth {:type :bearer :secret-ref :t}";
    let (_, seen) = proxied("", &format!(":url \"https://93.184.216.34/\" {auth}"));
    let tunnel = seen.first().expect("the proxy is asked for a tunnel");
    assert!(tunnel.starts_with("CONNECT 93.184.216.34:443 "), "{tunnel}");
    assert!(!tunnel.contains("s3cret"), "{tunnel}");
}

#[test]
fn no_cut_shows_the_beginning_of_a_secret() {
    const KEY: &str = "sk-live-4711-abcdefghijklmnopqrstuvwxyz";
    let settings = "{:connections {:api {:base-url \"URL\" :auth {:type :bearer :secret-ref :t}}}}";
    let env = format!("T={KEY}");
    // The message contains 200 characters, the preview 500, and the error's data 64 KiB.
    for start in [200, 500, (64 << 10) - "…".len()] {
        for within in [7, 20, KEY.len() - 1] {
            let body = format!(
                "{}{KEY} tail {}",
                "x".repeat(start - within),
                "y".repeat(70_000)
            );
            let files = [("flowstone.edn", settings), (".env", env.as_str())];
            let net = Net::with(vec![reply("401 Unauthorized", &[], &body)], &files);
            let found = net.eval(
                "(try (flow/step :http :it {:connection :api :path \"/\"}) (catch Exception e [(ex-message e) (pr-str (ex-data e))]))",
            );
            contains(&found, "[secret]");
            let kept = net.project.everything_kept();
            for text in [&found, &kept] {
                let at = text.find("sk-liv").map(|at| &text[at..]);
                assert!(
                    at.is_none(),
                    "{start} {within}: {:?}",
                    at.map(|it| &it[..40])
                );
            }
        }
    }
}

#[test]
fn a_step_cannot_set_headers_that_follow_from_the_request() {
    for name in [
        "Host",
        "host",
        "content-length",
        "Transfer-Encoding",
        "connection",
        "upgrade",
    ] {
        let net = Net::new(vec![json("1")]);
        let found = net.body(&format!(
            "{{:url \"URL\" :headers {{\"{name}\" \"other.example\"}}}}"
        ));
        assert!(found.starts_with("E0738 "), "{name}: {found}");
        assert!(net.server.requests().is_empty(), "{name}");
    }
}

#[test]
fn credentials_stay_with_their_server() {
    for (auth, proof) in [
        (":auth {:type :bearer :secret-ref :t}", "authorization: "),
        (
            ":auth {:type :basic :username \"me\" :secret-ref :t}",
            "authorization: ",
        ),
        (
            ":auth {:type :api-key :header \"x-mine\" :secret-ref :t}",
            "x-mine: ",
        ),
        (
            ":headers {:authorization \"Bearer own\"}",
            "authorization: ",
        ),
        (":headers {:cookie \"a=b\"}", "cookie: "),
    ] {
        for status in ["301", "302", "303", "307", "308"] {
            let other = crate::server::Server::start(vec![json("1")]);
            let net = Net::with(
                vec![
                    reply(&format!("{status} Moved"), &["location: /here"], ""),
                    reply(
                        &format!("{status} Moved"),
                        &[&format!("location: {}/there", other.url)],
                        "",
                    ),
                ],
                &[(".env", "T=s3cret-token")],
            );
            assert_eq!(net.body(&format!("{{:url \"URL\" {auth}}}")), "1");
            let asked = net.server.requests();
            assert_eq!(asked.len(), 2);
            assert!(
                asked.iter().all(|it| it.contains(proof)),
                "{auth} {status}: {asked:?}"
            );
            let there = other.requests().remove(0);
            assert!(!there.contains(proof), "{auth} {status}: {there}");
            assert!(!net.project.everything_kept().contains("s3cret-token"));
        }
    }
}
