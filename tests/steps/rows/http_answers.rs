//! The rows of `tests/coverage/http.tsv` on how responses are read and stored.

use crate::net::{Net, contains, typed};
use crate::server::{Say, json, reply};

#[test]
fn response_as() {
    // The flow's setting wins over the server's header.
    let net = Net::new(vec![typed("text/plain", "[1 2]")]);
    assert_eq!(
        net.body("{:url \"URL\" :response-as :json}")
            .split(": ")
            .next(),
        Some("E0737 the answer of http://HOST/ is not JSON")
    );
    assert_eq!(net.body("{:url \"URL\" :response-as :edn}"), "[1 2]");
    assert_eq!(
        net.body("{:url \"URL\" :response-as \"text\"}"),
        "\"[1 2]\""
    );
    let wrong = net.body("{:url \"URL\" :response-as :toml}");
    contains(&wrong, "`:response-as`");
}

#[test]
fn response_as_auto() {
    for (kind, body, expected) in [
        ("application/json; charset=utf-8", "[1]", "[1]"),
        ("application/problem+json", "{\"a\":1}", "{:a 1}"),
        ("application/x-ndjson", "1\n2\n", "[1 2]"),
        (
            "text/event-stream",
            "data: x\n\n",
            "[{:event nil :data \"x\" :id nil}]",
        ),
        ("application/edn", "#{1}", "#{1}"),
        (
            "application/atom+xml",
            "<a/>",
            "{:tag :a :attrs nil :content nil}",
        ),
        (
            "text/xml",
            "<a>b</a>",
            "{:tag :a :attrs nil :content [\"b\"]}",
        ),
        ("application/yaml", "a: 1", "{:a 1}"),
        ("text/html", "<p>", "\"<p>\""),
        ("image/svg+xml", "<svg/>", "\"<svg/>\""),
        ("text/plain; charset=latin1", "a", "\"a\""),
        ("image/png", "a", "#flowstone/bytes \"61\""),
    ] {
        let net = Net::new(vec![typed(kind, body)]);
        assert_eq!(net.body("{:url \"URL\"}"), expected, "{kind}");
        assert_eq!(
            net.body("{:url \"URL\" :response-as :auto}"),
            expected,
            "{kind}"
        );
    }
    let net = Net::new(vec![reply("200 OK", &[], "plain")]);
    assert_eq!(net.body("{:url \"URL\"}"), "\"plain\"");
    let net = Net::new(vec![
        reply("200 OK", &[], "\u{1}\u{ff}".as_bytes()),
        reply("200 OK", &[], b"\xff\xfe\xfd"),
    ]);
    net.body("{:url \"URL\"}");
    assert_eq!(net.body("{:url \"URL\"}"), "#flowstone/bytes \"fffefd\"");
}

#[test]
fn response_as_json() {
    let cases = [
        (
            "{\"aB\":[1,null,true,1.5,\"x\"]}",
            "{:aB [1 nil true 1.5 \"x\"]}",
        ),
        ("\u{feff}[]", "[]"),
        ("12345678901234567890", "12345678901234567890N"),
        (
            "",
            "E0737 the answer of http://HOST/ is not JSON: it is empty | `:response-as :text` or `:bytes` takes the answer as it is",
        ),
        (
            "{\"a\":\n 1,}",
            "E0737 the answer of http://HOST/ is not JSON: trailing comma at line 2 column 4 | `:response-as :text` or `:bytes` takes the answer as it is",
        ),
        (
            "[1] x",
            "E0737 the answer of http://HOST/ is not JSON: trailing characters at line 1 column 5 | `:response-as :text` or `:bytes` takes the answer as it is",
        ),
    ];
    for (body, expected) in cases {
        let net = Net::new(vec![typed("text/plain", body)]);
        assert_eq!(
            net.body("{:url \"URL\" :response-as :json}"),
            expected,
            "{body}"
        );
    }
    let deep = "[".repeat(100_000);
    contains(
        &Net::new(vec![json(&deep)]).body("{:url \"URL\"}"),
        "recursion limit exceeded",
    );
}

#[test]
fn response_as_jsonl() {
    let net = Net::new(vec![
        typed("text/plain", "{\"a\":1}\r\n\n[2]\n"),
        typed("text/plain", "1\n{\n"),
    ]);
    assert_eq!(
        net.body("{:url \"URL\" :response-as :jsonl}"),
        "[{:a 1} [2]]"
    );
    contains(
        &net.body("{:url \"URL\" :response-as :jsonl}"),
        "is not JSON: in its line 2, EOF",
    );
}

#[test]
fn response_as_sse() {
    let stream = ": hello\nevent: a\ndata: 1\ndata: 2\nid: 7\n\ndata: {\"x\":1}\r\n\r\n";
    let net = Net::new(vec![typed("text/plain", stream)]);
    assert_eq!(
        net.body("{:url \"URL\" :response-as :sse}"),
        r#"[{:event "a" :data "1\n2" :id "7"} {:event nil :data "{\"x\":1}" :id nil}]"#
    );
}

#[test]
fn response_as_text() {
    for (kind, body, expected) in [
        ("application/json", "{}".as_bytes(), "\"{}\""),
        ("text/plain; charset=iso-8859-1", b"caf\xe9", "\"café\""),
        ("text/plain; charset=\"windows-1252\"", b"\x80", "\"€\""),
        ("text/plain", b"\xff\xfea\x00", "\"a\""),
        ("text/plain; charset=utf-16le", b"a\x00", "\"a\""),
        ("text/plain", b"", "\"\""),
    ] {
        let net = Net::new(vec![typed(kind, body)]);
        assert_eq!(
            net.body("{:url \"URL\" :response-as :text}"),
            expected,
            "{kind}"
        );
    }
    for (kind, body, words) in [
        (
            "text/plain",
            b"ab\xff".as_slice(),
            "it is not valid UTF-8, from byte 2 on",
        ),
        (
            "text/plain; charset=klingon",
            b"a",
            "its encoding `klingon` is not known",
        ),
        (
            "text/plain\r\ncontent-encoding: br",
            b"a",
            "it is compressed with br",
        ),
    ] {
        contains(
            &Net::new(vec![typed(kind, body)]).body("{:url \"URL\" :response-as :text}"),
            words,
        );
    }
}

#[test]
fn response_as_bytes() {
    let net = Net::new(vec![json("[1]")]);
    assert_eq!(
        net.body("{:url \"URL\" :response-as :bytes}"),
        "#flowstone/bytes \"5b315d\""
    );
    assert_eq!(
        net.take("(count (:body r))", "{:url \"URL\" :response-as :bytes}"),
        "3"
    );
}

#[test]
fn response_as_edn() {
    let net = Net::new(vec![
        typed("text/plain", "{:a #{1} :b #inst \"2026-01-01\"}"),
        typed("text/plain", "{:a\n  )"),
    ]);
    assert_eq!(
        net.body("{:url \"URL\" :response-as :edn}"),
        "{:a #{1} :b #inst \"2026-01-01T00:00:00.000Z\"}"
    );
    let wrong = net.body("{:url \"URL\" :response-as :edn}");
    contains(&wrong, "is not EDN");
    contains(&wrong, "line 2, column 3");
}

#[test]
fn response_as_xml() {
    let feed = "<?xml version=\"1.0\"?>\n<!DOCTYPE feed>\n<!-- c --><feed a=\"1 &amp; 2\" xml:lang='de'>\n  <x:b/>t &lt;&#33;<![CDATA[<c>]]>\n  <d>  </d>\n</feed>";
    let expected = r#"{:tag :feed :attrs {:a "1 & 2" :xml:lang "de"} :content [{:tag :x:b :attrs nil :content nil} "t <!<c>\n  " {:tag :d :attrs nil :content nil}]}"#;
    assert_eq!(
        Net::new(vec![typed("text/plain", feed)]).body("{:url \"URL\" :response-as :xml}"),
        expected
    );
    let latin = b"<?xml version='1.0' encoding='iso-8859-1'?><a>\xe9</a>";
    assert_eq!(
        Net::new(vec![typed("application/xml", latin)])
            .take("(-> r :body :content first)", "{:url \"URL\"}"),
        "\"é\""
    );
    let deep = "<a>".repeat(100_000);
    let many = format!(
        "<a {}/>",
        (0..2000).map(|at| format!("x{at}='' ")).collect::<String>()
    );
    for (body, words) in [
        ("<a><b></a>", "line 1, column 7"),
        ("<a>", "it ends before `a` is closed"),
        ("<a/><b/>", "it has two root elements"),
        ("<a/>x", "there is text outside its root element"),
        ("", ""),
        ("  ", "it has no element"),
        ("<a b='1' b='2'/>", "`a` has two attributes `b`"),
        ("<a>&nbsp;</a>", "the entity `&nbsp;` is not defined"),
        ("<a b='&x;'/>", "line 1"),
        (
            "<!DOCTYPE a [<!ENTITY b \"bbbb\"><!ENTITY c \"&b;&b;\">]><a>&c;</a>",
            "it declares entities, which is refused",
        ),
        (
            "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><a>&x;</a>",
            "it declares entities, which is refused",
        ),
        (
            "<!DOCTYPE a SYSTEM \"http://127.0.0.1:1/x.dtd\"><a>&x;</a>",
            "the entity `&x;` is not defined",
        ),
        (deep.as_str(), "it is nested deeper than 64 levels"),
        ("<1a/>", "`1a` is not a name"),
        ("<a>\n<b c=></b></a>", "line 2"),
    ] {
        let found =
            Net::new(vec![typed("text/plain", body)]).body("{:url \"URL\" :response-as :xml}");
        contains(&found, words);
        assert!(
            body.is_empty() || found.contains("E0737 the answer of http://HOST/ is not XML: "),
            "{found}"
        );
    }
    assert_eq!(
        Net::new(vec![typed("text/xml", many)]).take("(-> r :body :attrs count)", "{:url \"URL\"}"),
        "2000"
    );
}

#[test]
fn response_as_yaml() {
    let cases = [
        (
            "a: 1\nb: [x, 'y', \"z\\n\"]\nc:\n  - ~\n  - true\n  - 1.5\n  - 0x1f\n  - 2026-01-01\n",
            r#"{:a 1 :b ["x" "y" "z\n"] :c [nil true 1.5 31 "2026-01-01"]}"#,
        ),
        ("1: a\ntrue: b\n", r#"{1 "a" true "b"}"#),
        (
            "base: &b {x: 1, y: 2}\nown:\n  <<: *b\n  y: 3\n",
            "{:base {:x 1 :y 2} :own {:x 1 :y 3}}",
        ),
        (
            "a: !!str 1\nb: !!binary aGk=\nc: !mine x\n",
            r#"{:a "1" :b #flowstone/bytes "6869" :c "x"}"#,
        ),
        (
            "text: |\n  a\n  b\nfolded: >-\n  a\n  b\n",
            r#"{:text "a\nb\n" :folded "a b"}"#,
        ),
        (
            "n: 12345678901234567890\ni: -.inf\ne: 1e3\nno: no\n",
            r#"{:n 12345678901234567890N :i ##-Inf :e 1000.0 :no "no"}"#,
        ),
        ("---\n", "nil"),
        ("- &a [1]\n- *a\n", "[[1] [1]]"),
    ];
    for (body, expected) in cases {
        let net = Net::new(vec![typed("text/plain", body)]);
        assert_eq!(
            net.body("{:url \"URL\" :response-as :yaml}"),
            expected,
            "{body}"
        );
    }
    let laughs: String = (1..12)
        .map(|at| {
            let before = format!("*a{}, ", at - 1).repeat(9);
            format!("a{at}: &a{at} [{}]\n", before.trim_end_matches(", "))
        })
        .collect();
    let laughs = format!("a0: &a0 lol\n{laughs}");
    let (deep, blocks) = ("[".repeat(100_000), "- ".repeat(1000));
    for (body, words) in [
        ("a: [1", "line "),
        (
            "a: 1\na: 2\n",
            "a map has the same key twice (line 2, column 4)",
        ),
        ("a: *nope", "line 1"),
        ("&a [*a]", "an alias names what is not complete"),
        ("a: 1\n---\nb: 2\n", "it holds several documents"),
        ("<<: 1", "`<<` takes maps"),
        ("!!int x", "`x` is not what its tag says"),
        (laughs.as_str(), "its aliases come to too much"),
        (deep.as_str(), "recursion limit exceeded"),
        (blocks.as_str(), "it is nested deeper than 128 levels"),
    ] {
        let found =
            Net::new(vec![typed("text/plain", body)]).body("{:url \"URL\" :response-as :yaml}");
        contains(&found, "E0737 the answer of http://HOST/ is not YAML: ");
        contains(&found, words);
    }
}

#[test]
fn include_headers() {
    let net = Net::new(vec![reply("200 OK", &["x-a: 1", "x-a: 2", "x-b: 3"], "")]);
    let headers = |config: &str| net.take("(select-keys (:headers r) [:x-a :x-b])", config);
    assert_eq!(headers("{:url \"URL\"}"), "{:x-a \"1, 2\" :x-b \"3\"}");
    assert_eq!(
        headers("{:url \"URL\" :include-headers true}"),
        "{:x-a \"1, 2\" :x-b \"3\"}"
    );
    assert_eq!(
        headers("{:url \"URL\" :include-headers [:X-B \"gone\"]}"),
        "{:x-b \"3\"}"
    );
    assert_eq!(
        net.take(
            "(contains? r :headers)",
            "{:url \"URL\" :include-headers false}"
        ),
        "false"
    );
}

#[test]
fn parser_fn() {
    let net = Net::new(vec![typed("application/json", "{\"a\":1}")]);
    assert_eq!(
        net.body("{:url \"URL\" :parser-fn '(fn [text] (count text))}"),
        "7"
    );
    assert_eq!(
        net.body("{:url \"URL\" :parser-fn (fn [it] (:a it)) :response-as :json}"),
        "1"
    );
    contains(
        &net.body("{:url \"URL\" :parser-fn '(fn [it] (throw (ex-info \"no\" {})))}"),
        "no",
    );
    contains(&net.body("{:url \"URL\" :parser-fn :nope}"), "E0705");
}

#[test]
fn json_keys() {
    let net = Net::new(vec![json(
        "{\"html_url\":1,\"camelCase\":{\"a b\":2},\"\":3}",
    )]);
    assert_eq!(
        net.take("(get-in r [:body :html_url])", "{:url \"URL\"}"),
        "1"
    );
    assert_eq!(
        net.take(
            "(get-in r [:body :camelCase (keyword \"a b\")])",
            "{:url \"URL\"}"
        ),
        "2"
    );
}

#[test]
fn binary_bodies() {
    let net = Net::new(vec![typed("image/png", b"\x89PNG\x00\xff")]);
    assert_eq!(
        net.take(
            "[(:body r) (:size-bytes r) (:content-type r)]",
            "{:url \"URL\" :persist {:type :blob}}"
        ),
        "[{:type :omitted :reason :persisted} 6 \"image/png\"]"
    );
    let uri = net.take("(:uri r)", "{:url \"URL\" :persist {:type :blob}}");
    let (kind, bytes) = net.project.blob(uri.trim_matches('"')).expect("stored");
    assert_eq!(
        (kind.as_str(), bytes.as_slice()),
        ("image/png", b"\x89PNG\x00\xff".as_slice())
    );
}

/// Parsed JSON is stored as the server sent it, and sent as it was stored.
#[test]
fn json_is_stored_as_json() {
    let text = "{ \"id\": 1.0, \"firstName\": \"Ada\" }";
    let stored = |answer: Say, config: &str| {
        let net = Net::new(vec![answer]);
        let uri = net.take("(:uri r)", &format!("{{:url \"URL\" {config}}}"));
        match net.project.blob(uri.trim_matches('"')) {
            Some((kind, bytes)) => format!("{kind} {}", String::from_utf8_lossy(&bytes)),
            None => uri,
        }
    };
    let json = || typed("application/json", text);
    let odd = || typed("text/plain", text);
    let blob = ":persist {:type :blob}";
    let compact = r#"application/json {"id":1.0,"firstName":"Ada"}"#;
    for (answer, config, expected) in [
        (
            json(),
            format!(":response-as :json {blob}"),
            format!("application/json {text}"),
        ),
        (
            odd(),
            format!(":response-as :json {blob}"),
            format!("application/json {text}"),
        ),
        (json(), blob.to_owned(), format!("application/json {text}")),
        (
            json(),
            format!(":response-as :json :expect {{:contains [:body]}} {blob}"),
            compact.to_owned(),
        ),
        (
            json(),
            format!(":parser-fn (fn [text] {{:size (count text)}}) {blob}"),
            "application/json {\"size\":33}".to_owned(),
        ),
        (
            json(),
            format!(":parser-fn (fn [text] {{:kind :short}}) {blob}"),
            "application/edn {:kind :short}".to_owned(),
        ),
        (
            json(),
            ":response-as :json :persist {:type :blob :filename \"a.edn\"}".to_owned(),
            "application/edn {:id 1.0 :firstName \"Ada\"}".to_owned(),
        ),
        (
            typed("application/x-ndjson", "{\"a\": 1}\n2\n"),
            format!(":response-as :jsonl {blob}"),
            "application/x-ndjson {\"a\": 1}\n2\n".to_owned(),
        ),
        (
            typed("text/html", "<p>"),
            format!(":response-as :json {blob}"),
            "E0737".to_owned(),
        ),
    ] {
        let found = stored(answer, &config);
        assert!(found.starts_with(&expected), "{config}: {found}");
    }
    let net = Net::new(vec![json(), typed("text/plain", "ok")]);
    net.eval(
        "(let [r (flow/step :http :get {:url \"URL\" :response-as :json :persist {:type :blob}})]
           (flow/step :http :put {:url \"URL\" :method :put :body-from-ref r}))",
    );
    let sent = net.server.requests().pop().expect("a request");
    contains(&sent, "content-type: application/json");
    contains(&sent, text);
}

#[test]
fn truncated_body() {
    let cut = || {
        Say::Raw(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nabc"
                .to_vec(),
        )
    };
    let net = Net::new(vec![cut()]);
    contains(
        &net.body("{:url \"URL\" :retry {:max-attempts 1}}"),
        "E0735 http://HOST/ closed the connection before its answer was complete (status 200, 3 bytes received)",
    );
    contains(
        &net.body("{:url \"URL\" :persist {:type :blob} :retry {:max-attempts 1}}"),
        "E0735",
    );
    net.keeps_no_blob();
}

#[test]
fn omitted_body() {
    let net = Net::new(vec![typed("text/plain", "hello")]);
    let take = "(select-keys r [:status :body :size-bytes])";
    let expected = "{:status 200 :body {:type :omitted :reason :persisted} :size-bytes 5}";
    for more in [
        "",
        ":response-as :text",
        ":response-as :bytes",
        ":expect {:fn (fn [r] (= \"hello\" (:body r)))}",
    ] {
        let found = net.take(
            take,
            &format!("{{:url \"URL\" {more} :persist {{:type :blob}}}}"),
        );
        assert_eq!(found, expected, "{more}");
    }
}

#[test]
fn streaming_to_storage() {
    // 80 MB, which is more than a retained blob can hold.
    let large = || {
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/zip\r\ncontent-disposition: attachment; filename=\"../a b.zip\"\r\nconnection: close\r\n\r\n";
        Say::Zeros(head.to_vec(), 80 << 20)
    };
    let net = Net::new(vec![large()]);
    let ask = |tier: &str| {
        net.take(
            "(select-keys r [:size-bytes :filename :content-type])",
            &format!("{{:url \"URL\" :response-as :bytes :persist {{:type :blob :tier {tier}}}}}"),
        )
    };
    contains(
        &ask(":retained"),
        "E0736 the answer of http://HOST/ is larger than 52428800 bytes",
    );
    net.keeps_no_blob();
    assert_eq!(
        ask(":ephemeral"),
        "{:size-bytes 83886080 :filename \"a b.zip\" :content-type \"application/zip\"}"
    );
    let limited = net.take("r", "{:url \"URL\" :client-opts {:max-response-bytes 1000000} :persist {:type :blob :tier :ephemeral}}");
    contains(&limited, "larger than 1000000 bytes");
}
