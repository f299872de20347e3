//! The rows of `tests/coverage/http.tsv`.

use std::path::Path;

use crate::net::{Net, typed};
use crate::server::{Say, json, reply};

#[track_caller]
fn contains(found: &str, words: &str) {
    assert!(found.contains(words), "expected {words}\nfound {found}");
}

#[test]
fn connection() {
    let settings = "{:connections {:crm {:base-url \"URL/v2\" :headers {:x-team \"a\"}}}}";
    let net = Net::with(vec![json("{}")], &[("flowstone.edn", settings)]);
    let sent = net.sent("{:connection :crm :path \"/users\"}");
    contains(&sent, "GET /v2/users HTTP/1.1\n");
    contains(&sent, "\nx-team: a");
    contains(&net.sent("{:connection \"crm\" :path \"x\"}"), "GET /v2/x ");
    contains(
        &net.sent("{:connection :crn}"),
        "E0750 there is no connection `:crn` | did you mean `:crm`?",
    );
    contains(
        &net.sent("{:path \"/x\"}"),
        "E0738 the request has no address",
    );
}

#[test]
fn url() {
    let settings = "{:connections {:crm {:base-url \"http://nowhere.invalid\"}}}";
    let net = Net::with(vec![json("{}")], &[("flowstone.edn", settings)]);
    contains(
        &net.sent("{:url \"URL/a/b?c=1\"}"),
        "GET /a/b?c=1 HTTP/1.1\n",
    );
    contains(
        &net.sent("{:connection :crm :url \"URL/a\"}"),
        "GET /a HTTP/1.1\n",
    );
    contains(&net.sent("{:url \"/a\"}"), "E0730");
    contains(&net.sent("{:url \"ftp://h/a\"}"), "`ftp:` is not HTTP");
    contains(&net.sent("{:url \"http://\"}"), "E0730");
}

#[test]
fn path() {
    let settings = "{:connections {:crm {:base-url \"URL/v2/\"} :bare {:base-url \"URL\"}}}";
    let net = Net::with(vec![json("{}")], &[("flowstone.edn", settings)]);
    for (config, expected) in [
        ("{:connection :crm :path \"/users\"}", "GET /v2/users "),
        (
            "{:connection :crm :path \"users?x=1\"}",
            "GET /v2/users?x=1 ",
        ),
        ("{:connection :crm}", "GET /v2 "),
        ("{:connection :bare :path \"/a b/ä\"}", "GET /a%20b/%C3%A4 "),
        (
            "{:url \"URL\" :path \"/x\"}",
            "E0738 `:url` is the whole address",
        ),
    ] {
        contains(&net.sent(config), expected);
    }
}

#[test]
fn method() {
    let net = Net::quiet();
    for (method, expected) in [
        ("", "GET / "),
        (":method :get", "GET / "),
        (":method :post", "POST / "),
        (":method :put", "PUT / "),
        (":method \"patch\"", "PATCH / "),
        (":method :delete", "DELETE / "),
        (":json {}", "POST / "),
        (":method :put :json {}", "PUT / "),
    ] {
        contains(&net.sent(&format!("{{:url \"URL\" {method}}}")), expected);
    }
    let wrong = net.sent("{:url \"URL\" :method :fetch}");
    contains(&wrong, "`:method`");
}

#[test]
fn query() {
    let net = Net::quiet();
    for (query, expected) in [
        ("{:q \"a b&c=d\"}", "GET /?q=a+b%26c%3Dd "),
        ("{:n [1 2] :skip nil}", "GET /?n=1&n=2 "),
        ("{\"k\" :v :t true :f 1.5}", "GET /?"),
        ("{}", "GET / "),
        ("{:bad {:a 1}}", "`:query` has a map under `bad`"),
    ] {
        contains(
            &net.sent(&format!("{{:url \"URL\" :query {query}}}")),
            expected,
        );
    }
    contains(
        &net.sent("{:url \"URL?a=1#part\" :query {:b 2}}"),
        "GET /?a=1&b=2 ",
    );
}

#[test]
fn headers() {
    let net = Net::quiet();
    let sent = net.sent(
        "{:url \"URL\" :headers {:x-one 1 \"X-Two\" \"b\" :x-nil nil :x-many [\"a\" \"b\"]}}",
    );
    contains(&sent, "x-one: 1\nx-two: b\n");
    contains(&sent, "x-many: a\nx-many: b\n");
    assert!(!sent.contains("x-nil"), "{sent}");
    for (headers, words) in [
        (
            "{\"a b\" 1}",
            "E0738 the name of the header `a b` is not valid",
        ),
        (
            "{:x \"a\\r\\ny: b\"}",
            "E0738 the value of the header `x` is not valid",
        ),
        (
            "{:content-length 3}",
            "E0738 the header `content-length` is not for a flow to say",
        ),
        (
            "{:Transfer-Encoding \"chunked\"}",
            "is not for a flow to say",
        ),
        ("{:x {:a 1}}", "`:headers` has a map under `x`"),
    ] {
        contains(
            &net.sent(&format!("{{:url \"URL\" :headers {headers}}}")),
            words,
        );
    }
}

#[test]
fn json_body() {
    let net = Net::quiet();
    let config = "{:url \"URL\" :json {:a [1 :b nil 2.5] \"c d\" {:e true}}}";
    assert_eq!(
        net.sent_body(config),
        r#"{"a":[1,"b",null,2.5],"c d":{"e":true}}"#
    );
    assert_eq!(net.sent_header("content-type", config), "application/json");
    // It wins over `:body`.
    assert_eq!(net.sent_body("{:url \"URL\" :json [1] :body \"x\"}"), "[1]");
    contains(
        &net.sent("{:url \"URL\" :json {:f inc}}"),
        "E0738 `:json`: ",
    );
    contains(
        &net.sent("{:url \"URL\" :json 1 :form {:a 1}}"),
        "a request has one body, and this has `:form` `:json`",
    );
}

#[test]
fn form() {
    let net = Net::quiet();
    let config = "{:url \"URL\" :form {:a \"1 2\" :b \"&ä\" :c [1 2] :d nil}}";
    assert_eq!(net.sent_body(config), "a=1+2&b=%26%C3%A4&c=1&c=2");
    assert_eq!(
        net.sent_header("content-type", config),
        "application/x-www-form-urlencoded"
    );
    contains(
        &net.sent("{:url \"URL\" :form {:a {:b 1}}}"),
        "`:form` has a map under `a`",
    );
}

#[test]
fn multipart() {
    let net = Net::quiet();
    let config = "{:url \"URL\" :multipart [{:name :a :content \"x\"} {:name :b :content {:c 1}}]}";
    let body = net.sent_body(config);
    contains(&body, "Content-Disposition: form-data; name=\"a\"\n\nx\n");
    contains(
        &body,
        "name=\"b\"\nContent-Type: application/json\n\n{\"c\":1}\n",
    );
    let kind = net.sent_header("content-type", config);
    contains(&kind, "multipart/form-data; boundary=flowstone-");
    let related = config.replace(
        ":multipart [",
        ":content-type \"multipart/related\" :multipart [",
    );
    contains(
        &net.sent_header("content-type", &related),
        "multipart/related; boundary=flowstone-",
    );
    contains(
        &net.sent(&related.replace("multipart/related", "text/plain")),
        "E0738 `text/plain` is not a content type of `:multipart`",
    );
    contains(
        &net.sent("{:url \"URL\" :multipart []}"),
        "E0738 `:multipart` has no part",
    );
    contains(
        &net.sent("{:url \"URL\" :multipart [{:name :a}]}"),
        "E0738 the part `a` needs `:content` or `:from-ref`",
    );
}

#[test]
fn multipart_inline_parts() {
    let net = Net::quiet();
    let body = net.sent_body(
        "{:url \"URL\" :multipart [{:name \"f\\\"\" :filename \"a\\r\\nb.txt\" :content-type \"text/csv\" :content \"1,2\"}]}",
    );
    contains(
        &body,
        "name=\"f%22\"; filename=\"a%0D%0Ab.txt\"\nContent-Type: text/csv\n\n1,2\n",
    );
    let wrong = net.sent("{:url \"URL\" :multipart [{:nam :a}]}");
    contains(&wrong, ":nam");
}

const STORED: &str = "(flow/step :function :made {:code '(fn [_] \"a,b\\n1,2\\n\") :persist {:type :blob :filename \"t.csv\" :content-type \"text/csv\"}})";

#[test]
fn multipart_from_ref() {
    let net = Net::quiet();
    net.eval(&format!(
        "(let [f {STORED}] (flow/step :http :up {{:url \"URL\" :multipart [{{:name :file :from-ref f}} {{:name :again :filename \"u.csv\" :from-ref (:uri f)}}]}}))"
    ));
    let sent = net.server.requests().remove(0).replace("\r\n", "\n");
    contains(
        &sent,
        "name=\"file\"; filename=\"t.csv\"\nContent-Type: text/csv\n\na,b\n1,2\n",
    );
    contains(
        &sent,
        "name=\"again\"; filename=\"u.csv\"\nContent-Type: text/csv\n\na,b",
    );
    contains(
        &net.sent("{:url \"URL\" :multipart [{:name :a :content 1 :from-ref \"res://x\"}]}"),
        "not both",
    );
    contains(
        &net.sent("{:url \"URL\" :multipart [{:name :a :from-ref \"res://v1/ws/local/gone\"}]}"),
        "E0761",
    );
}

#[test]
fn body() {
    let net = Net::quiet();
    assert_eq!(net.sent_body("{:url \"URL\" :body \"héllo\"}"), "héllo");
    assert_eq!(
        net.sent_header("content-type", "{:url \"URL\" :body \"x\"}"),
        "text/plain; charset=utf-8"
    );
    contains(
        &net.sent("{:url \"URL\" :body {:a 1}}"),
        "E0738 `:body` takes text or bytes, not a map | `:json` sends data",
    );
    let found = net.eval(&format!(
        "(let [f {STORED}] (flow/step :http :up {{:url \"URL\" :body f}}))"
    ));
    contains(&found, "`:body-from-ref` sends what a reference stands for");
    // Bytes come from an answer that is bytes.
    let net = Net::new(vec![typed("image/png", b"\x00\x01\xfe"), json("{}")]);
    net.eval("(let [r (flow/step :http :a {:url \"URL\"})] (flow/step :http :b {:url \"URL\" :method :put :body (:body r)}))");
    let sent = net.server.requests().remove(1);
    contains(&sent, "content-type: application/octet-stream");
    contains(&sent, "content-length: 3");
}

#[test]
fn body_from_ref() {
    let net = Net::quiet();
    for reference in [
        "f",
        "(:uri f)",
        "(:ref f)",
        "{:type :resource-ref :uri (:uri f)}",
    ] {
        net.eval(&format!("(let [f {STORED}] (flow/step :http :up {{:url \"URL\" :method :put :body-from-ref {reference}}}))"));
    }
    for sent in net.server.requests() {
        contains(&sent, "PUT / ");
        contains(&sent, "content-type: text/csv");
        contains(&sent, "\n\na,b\n1,2\n");
    }
    assert_eq!(net.server.requests().len(), 4);
    contains(
        &net.sent("{:url \"URL\" :body-from-ref \"res://v1/ws/local/gone\"}"),
        "E0761",
    );
    contains(&net.sent("{:url \"URL\" :body-from-ref 7}"), "E0761");
}

#[test]
fn body_from_ref_sizes() {
    let large = format!(
        "(flow/step :function :made {{:code '(fn [_] (apply str (repeat {} \"0123456789abcdef\"))) :persist {{:type :blob}}}})",
        (10 << 16) + 1
    );
    let send = |net: &Net| {
        net.eval(&format!("(let [f {large}] (flow/step :http :up {{:url \"URL\" :body-from-ref f :include-headers false}}))"))
    };
    contains(
        &send(&Net::quiet()),
        "has 10485776 bytes, and a request takes 10485760 from a reference | raise it in flowstone.edn",
    );
    let settings = "{:http {:max-body-from-ref 20000000}}";
    let net = Net::with(
        vec![reply("204 No Content", &[], "")],
        &[("flowstone.edn", settings)],
    );
    assert_eq!(send(&net), "{:status 204 :body nil}");
}

#[test]
fn content_type() {
    let net = Net::quiet();
    let kind = |config: &str| net.sent_header("content-type", config);
    assert_eq!(
        kind("{:url \"URL\" :body \"<a/>\" :content-type \"application/xml\"}"),
        "application/xml"
    );
    assert_eq!(
        kind("{:url \"URL\" :json {} :content-type \"application/ld+json\"}"),
        "application/ld+json"
    );
    assert_eq!(
        kind("{:url \"URL\" :json {} :headers {:Content-Type \"x/y\"}}"),
        "x/y"
    );
    contains(
        &net.sent("{:url \"URL\" :content-type \"x/y\"}"),
        "`:content-type` is of a body, and there is none",
    );
    // Text is written in the encoding that is named.
    contains(
        &net.sent("{:url \"URL\" :body \"café\" :content-type \"text/plain; charset=iso-8859-1\"}"),
        "content-length: 4",
    );
    contains(
        &net.sent("{:url \"URL\" :body \"→\" :content-type \"text/plain; charset=iso-8859-1\"}"),
        "has characters that iso-8859-1 does not have",
    );
    contains(
        &net.sent("{:url \"URL\" :body \"x\" :content-type \"text/plain; charset=klingon\"}"),
        "the encoding `klingon`",
    );
}

#[test]
fn accept() {
    let net = Net::quiet();
    for (config, expected) in [
        ("", "*/*"),
        (":accept :json", "application/json"),
        (":accept :xml", "application/xml, text/xml"),
        (":accept :text", "text/plain, text/*"),
        (":accept \"image/png\"", "image/png"),
        (":response-as :yaml", "application/yaml, text/yaml"),
        (":accept :json :headers {:accept \"x/y\"}", "x/y"),
    ] {
        let found = net.sent_header("accept", &format!("{{:url \"URL\" {config}}}"));
        assert_eq!(found, expected, "{config}");
    }
    contains(
        &net.sent("{:url \"URL\" :accept :jsn}"),
        "`:accept :jsn` is not known",
    );
}

#[test]
fn response_as() {
    // What the flow says wins over what the server says.
    let net = Net::new(vec![typed("text/plain", "[1 2]")]);
    assert_eq!(
        net.body("{:url \"URL\" :response-as :json}")
            .split(':')
            .next(),
        Some("E0737 the answer of HOST is not JSON")
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
            "E0737 the answer of HOST is not JSON: it is empty | `:response-as :text` or `:bytes` takes the answer as it is",
        ),
        (
            "{\"a\":\n 1,}",
            "E0737 the answer of HOST is not JSON: trailing comma at line 2 column 4 | `:response-as :text` or `:bytes` takes the answer as it is",
        ),
        (
            "[1] x",
            "E0737 the answer of HOST is not JSON: trailing characters at line 1 column 5 | `:response-as :text` or `:bytes` takes the answer as it is",
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
            "it is packed with br",
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
            body.is_empty() || found.contains("E0737 the answer of HOST is not XML: "),
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
        contains(&found, "E0737 the answer of HOST is not YAML: ");
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
fn template_and_data() {
    let net = Net::quiet();
    let flow = |config: &str| {
        net.eval(&format!(
            "{{:slug :s :concurrency {{:type :singleton :on-new-version :supersede}} :templates [{{:id :t :type :http-request :request {{:url \"{{{{base}}}}/a\" :method :put :headers {{:x-a \"{{{{n}}}}\" :x-b \"t\"}} :query {{:q \"{{{{n}}}}\"}} :json {{:n \"{{{{n}}}}\"}}}}}}]
              :flow '(flow/step :http :it {config})}}"
        ))
    };
    flow("{:template :t :data {:base \"URL\" :n 7}}");
    flow(
        "{:template :t :data {:base \"URL\" :n 7} :headers {:x-b \"own\"} :query {:r 1} :body \"own\" :method :post :url \"URL/b\"}",
    );
    let requests = net.server.requests();
    contains(&requests[0], "PUT /a?q=7 HTTP/1.1\nx-a: 7\nx-b: t\n");
    contains(&requests[0], "{\"n\":\"7\"}");
    // What the step says itself wins.
    contains(&requests[1], "POST /b?q=7&r=1 HTTP/1.1\nx-a: 7\nx-b: own\n");
    contains(&requests[1], "\n\nown");
    contains(
        &flow("{:template :u :data {}}"),
        "E0755 the flow has no template `:u`",
    );
    contains(
        &net.sent("{:url \"URL\" :data {:a 1}}"),
        "`:data` is for a `:template`, and there is none",
    );
}

fn with_secret() -> Net {
    Net::with(
        vec![reply("204 No Content", &[], "")],
        &[
            (
                "flowstone.edn",
                "{:connections {:crm {:base-url \"URL\" :auth {:type :bearer :secret-ref :crm-token}}}}",
            ),
            (".env", "MY_TOKEN=s3cr3t-token\nCRM_TOKEN=crm-s3cr3t\n"),
        ],
    )
}

#[test]
fn auth() {
    let net = with_secret();
    let header = |config: &str| net.sent_header("authorization", config);
    assert_eq!(header("{:connection :crm}"), "Bearer crm-s3cr3t");
    // The step's replaces the connection's.
    assert_eq!(
        header("{:connection :crm :auth {:type :bearer :secret-ref :my-token}}"),
        "Bearer s3cr3t-token"
    );
    assert_eq!(header("{:connection :crm :auth {:type :none}}"), "none");
    assert_eq!(
        header("{:url \"URL\" :auth {:type :basic :username \"me\" :secret-ref :my-token}}"),
        "Basic bWU6czNjcjN0LXRva2Vu"
    );
    contains(
        &net.sent("{:url \"URL\" :auth {:type :bearr}}"),
        "E0753 `:auth` has no type `:bearr`",
    );
    contains(
        &net.sent("{:url \"URL\" :auth {:secret-ref :x}}"),
        "does not say its `:type`",
    );
    contains(
        &net.sent("{:url \"URL\" :auth {:type :bearer :scopes [\"a\"] :secret-ref :x}}"),
        "`:auth` has no key `:scopes`",
    );
    contains(
        &net.sent("{:url \"URL\" :auth {:type :bearer :secret-ref :gone}}"),
        "E0752 the secret `gone` is not set",
    );
    assert!(!net.project.everything_kept().contains("s3cr3t"));
}

#[test]
fn auth_bearer() {
    let net = with_secret();
    let config = "{:url \"URL\" :auth {:type :bearer :secret-ref :my-token}}";
    assert_eq!(
        net.sent_header("authorization", config),
        "Bearer s3cr3t-token"
    );
    contains(
        &net.sent("{:url \"URL\" :auth {:type :bearer}}"),
        "`:auth` does not say its `:secret-ref`",
    );
}

#[test]
fn auth_api_key() {
    let net = with_secret();
    let sent = |more: &str| {
        net.sent(&format!(
            "{{:url \"URL\" :auth {{:type :api-key :secret-ref :my-token {more}}}}}"
        ))
    };
    contains(&sent(""), "\nx-api-key: s3cr3t-token\n");
    contains(
        &sent(":header \"Authorization\" :prefix \"Token \""),
        "\nauthorization: Token s3cr3t-token\n",
    );
    contains(&sent(":query \"key\""), "GET /?key=s3cr3t-token ");
    contains(
        &sent(":query \"key\" :header \"x\""),
        "takes `:header` or `:query`, not both",
    );
}

#[test]
fn auth_google_service_account() {
    let net = Net::with(
        vec![
            json(
                "{\"access_token\":\"t0k3n-of-google\",\"expires_in\":3600,\"token_type\":\"Bearer\"}",
            ),
            reply("204 No Content", &[], ""),
        ],
        &[
            (
                "flowstone.edn",
                "{:secrets {:sa {:file \"key.json\"} :bad {:file \"bad.json\"} :odd {:file \"odd.json\"}}}",
            ),
            ("bad.json", "{}"),
            ("odd.json", "not json"),
        ],
    );
    let key = serde_json::json!({
        "type": "service_account", "client_email": "me@project.example", "private_key_id": "k1",
        "private_key": RSA_KEY, "token_uri": format!("{}/token", net.server.url),
    });
    std::fs::write(net.project.folder().join("key.json"), key.to_string()).unwrap();
    let ask = "{:url \"URL/data\" :auth {:type :google-service-account :secret-ref :sa :scopes [\"https://example.com/read\"]}}";
    net.take("r", ask);
    net.take("r", ask);
    let requests = net.server.requests();
    assert_eq!(requests.len(), 3, "the token is asked for once");
    contains(&requests[0], "POST /token HTTP/1.1");
    contains(
        &requests[0],
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=",
    );
    for request in &requests[1..] {
        contains(request, "GET /data ");
        contains(request, "authorization: Bearer t0k3n-of-google");
    }
    let (_, assertion) = requests[0].rsplit_once('=').unwrap();
    let parts: Vec<&str> = assertion.split('.').collect();
    let read = |part: &str| String::from_utf8(base64_url(part)).unwrap();
    assert_eq!(read(parts[0]), r#"{"alg":"RS256","typ":"JWT","kid":"k1"}"#);
    let claims: serde_json::Value = serde_json::from_str(&read(parts[1])).unwrap();
    assert_eq!(claims["iss"], "me@project.example");
    assert_eq!(claims["scope"], "https://example.com/read");
    assert_eq!(
        claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(),
        3600
    );
    assert_eq!(base64_url(parts[2]).len(), 256);
    let kept = net.project.everything_kept();
    assert!(
        !kept.contains("t0k3n") && !kept.contains("PRIVATE"),
        "{kept}"
    );
    contains(
        &net.take("r", &ask.replace(":sa", ":bad")),
        "E0747 the secret is not the JSON key of a service account",
    );
    contains(&net.take("r", &ask.replace(":sa", ":odd")), "E0747");
    contains(
        &net.take(
            "r",
            &ask.replace(":scopes [\"https://example.com/read\"]", ""),
        ),
        "E0753 `:auth` does not say its `:scopes`",
    );
}

fn base64_url(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(text)
        .unwrap()
}

#[test]
fn auth_inline_tokens() {
    let net = with_secret();
    for key in [
        ":token",
        ":secret",
        ":password",
        ":api-key",
        ":value",
        ":key",
    ] {
        let found = net.sent(&format!(
            "{{:url \"URL\" :auth {{:type :bearer {key} \"abc\"}}}}"
        ));
        contains(
            &found,
            &format!("E0753 `:auth` holds a secret itself, under `{key}`"),
        );
        contains(&found, "name it instead, `:secret-ref :my-token`");
    }
}

#[test]
fn client_opts() {
    let hop = |to: &str| reply("302 Found", &[&format!("location: {to}")], "");
    let net = Net::new(vec![hop("/1"), hop("/2"), json("{}")]);
    contains(
        &net.body("{:url \"URL\" :client-opts {:max-redirects 1}}"),
        "E0739 HOST redirects more than 1 times",
    );
    contains(
        &net.body("{:url \"http://169.254.1.1:1\" :retry {:max-attempts 1}}"),
        "E0731",
    );
    // Refused no more, and not there.
    contains(&net.body("{:url \"http://169.254.1.1:1\" :timeout \"200ms\" :retry {:max-attempts 1} :client-opts {:allow-link-local true :connect-timeout \"50ms\"}}"), "E073");
    let wrong = net.body("{:url \"URL\" :client-opts {:max-redirect 1}}");
    contains(&wrong, ":max-redirect");
}

#[test]
fn max_response_bytes() {
    let net = Net::new(vec![typed("text/plain", "0123456789")]);
    assert_eq!(
        net.body("{:url \"URL\" :client-opts {:max-response-bytes 10}}"),
        "\"0123456789\""
    );
    contains(
        &net.body("{:url \"URL\" :client-opts {:max-response-bytes 9}}"),
        "E0736 the answer of HOST is larger than 9 bytes",
    );
    let settings = "{:http {:max-response-bytes 5}}";
    let net = Net::with(
        vec![typed("text/plain", "0123456789")],
        &[("flowstone.edn", settings)],
    );
    contains(&net.body("{:url \"URL\"}"), "larger than 5 bytes");
    assert_eq!(
        net.body("{:url \"URL\" :client-opts {:max-response-bytes 10}}"),
        "\"0123456789\""
    );
}

#[test]
fn timeout() {
    let net = Net::new(vec![Say::Hang(b"HTTP/1.1 200 OK\r\n".to_vec())]);
    let found = net.body("{:url \"URL\" :timeout \"150ms\" :retry {:max-attempts 1}}");
    contains(&found, "E0733 HOST did not answer within 0.1 s");
    let net = Net::new(vec![Say::Hang(
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab".to_vec(),
    )]);
    let found = net.body("{:url \"URL\" :timeout 0.2 :retry {:max-attempts 1}}");
    contains(&found, "E0733 HOST did not finish its answer within");
}

#[test]
fn retry() {
    let busy = || reply("503 Service Unavailable", &[], "");
    // A write is tried again where the flow asks for it.
    let net = Net::new(vec![busy(), json("1")]);
    assert_eq!(
        net.body("{:url \"URL\" :json {} :retry {:max-attempts 2 :backoff-ms 0}}"),
        "1"
    );
    let net = Net::new(vec![busy(), json("1")]);
    contains(
        &net.body("{:url \"URL\" :json {}}"),
        "E0734 HOST answered 503 Service Unavailable",
    );
    let net = Net::new(vec![busy(), json("1")]);
    contains(
        &net.body("{:url \"URL\" :retry {:max-attempts 2 :backoff-ms 0 :retry-on #{:timeout}}}"),
        "E0734",
    );
}

#[test]
fn persist() {
    let net = Net::new(vec![json("{\"items\":[{\"id\":1},{\"id\":2}]}")]);
    let config = |persist: &str| format!("{{:url \"URL\" :persist {persist}}}");
    assert_eq!(net.take("(:status r)", &config("{:type :blob}")), "200");
    contains(
        &net.take(
            "r",
            &config("{:type :table :table \"t\" :rows-path [:body :items]}"),
        ),
        ":count 2",
    );
    contains(
        &net.take("r", &config("{:type :kv :key \"k\"}")),
        "result/kv/k",
    );
    contains(&net.take("r", &config("{:type :blog}")), "E0763");
    assert_eq!(
        net.eval("(let [f (flow/step :http :get {:url \"URL\" :persist {:type :blob}})] (flow/step :function :load {:input {:it f} :load [:it] :code '(fn [in] (:it in))}))"),
        "{:items [{:id 1} {:id 2}]}"
    );
}

#[test]
fn metering() {
    let net = Net::new(vec![json("{}")]);
    assert_eq!(
        net.body(
            "{:url \"URL\" :metering {:unit :request :unit-cost-micros 2000 :label \"call\"}}"
        ),
        "{}"
    );
    contains(&net.project.everything_kept(), "2000");
}

#[test]
fn result() {
    let net = Net::new(vec![reply(
        "201 Created",
        &["content-type: application/json", "x-a: b"],
        "{\"id\":1}",
    )]);
    assert_eq!(
        net.take("r", "{:url \"URL\" :include-headers [:x-a]}"),
        "{:status 201 :headers {:x-a \"b\"} :body {:id 1}}"
    );
    let net = Net::new(vec![reply(
        "404 Not Found",
        &["content-type: application/json"],
        "{\"message\":\"gone\"}",
    )]);
    let caught = net.eval("(try (flow/step :http :it {:url \"URL\"}) (catch Exception e (select-keys (ex-data e) [:kind :status :body])))");
    assert_eq!(
        caught,
        "{:kind :not-found :status 404 :body {:message \"gone\"}}"
    );
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
        "E0735 HOST closed the connection before its answer was complete (status 200, 3 bytes received)",
    );
    contains(
        &net.body("{:url \"URL\" :persist {:type :blob} :retry {:max-attempts 1}}"),
        "E0735",
    );
    nothing_is_kept(&net);
}

/// Nothing of an answer that did not arrive is in the store.
fn nothing_is_kept(net: &Net) {
    let folder = net.project.folder().join(".flowstone/blobs");
    let mut files = Vec::new();
    let mut open = vec![folder];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.path() {
                path if path.is_dir() => open.push(path),
                path if path.file_name() != Path::new(".lock").file_name() => files.push(path),
                _ => {}
            }
        }
    }
    assert!(files.is_empty(), "{files:?}");
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
    // 80 MB, more than a retained blob holds.
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
        "E0736 the answer of HOST is larger than 52428800 bytes",
    );
    nothing_is_kept(&net);
    assert_eq!(
        ask(":ephemeral"),
        "{:size-bytes 83886080 :filename \"a b.zip\" :content-type \"application/zip\"}"
    );
    let limited = net.take("r", "{:url \"URL\" :client-opts {:max-response-bytes 1000000} :persist {:type :blob :tier :ephemeral}}");
    contains(&limited, "larger than 1000000 bytes");
}

#[test]
fn retry_of_reads() {
    let net = Net::new(vec![
        reply("503 Service Unavailable", &["retry-after: 0"], ""),
        Say::Raw(Vec::new()),
        json("1"),
    ]);
    contains(&net.body("{:url \"URL\" :retry {:backoff-ms 0}}"), "1");
    let net = Net::new(vec![reply("503 Service Unavailable", &[], ""), json("1")]);
    // Without `:retry` as well, after a second of the run's clock.
    assert_eq!(net.body("{:url \"URL\"}"), "1");
    assert_eq!(net.server.requests().len(), 2);
    let net = Net::new(vec![reply("404 Not Found", &[], ""), json("1")]);
    contains(&net.body("{:url \"URL\"}"), "E0734");
}

#[test]
fn retry_after() {
    for header in [
        "retry-after: 30",
        "date: Wed, 21 Oct 2015 07:28:00 GMT\r\nretry-after: Wed, 21 Oct 2015 07:28:30 GMT",
    ] {
        let net = Net::new(vec![
            reply("429 Too Many Requests", &[header], ""),
            json("1"),
        ]);
        let before = flowstone_engine::ports::Clock::now_ms(&*net.project.clock);
        assert_eq!(net.body("{:url \"URL\"}"), "1");
        let waited = flowstone_engine::ports::Clock::now_ms(&*net.project.clock) - before;
        assert!((30_000..40_000).contains(&waited), "{waited}");
    }
}

#[test]
fn idempotency_key() {
    let net = Net::quiet();
    let key = |config: &str| net.sent_header("idempotency-key", config);
    assert_eq!(key("{:url \"URL\"}"), "none");
    contains(&key("{:url \"URL\" :json {}}"), "/it");
    assert_eq!(
        key("{:url \"URL\" :json {} :idempotency-key \"mine\"}"),
        "mine"
    );
    assert_eq!(
        key("{:url \"URL\" :json {} :headers {:Idempotency-Key \"other\"}}"),
        "other"
    );
    // With a key, a write is tried again.
    let net = Net::new(vec![reply("503 Service Unavailable", &[], ""), json("1")]);
    assert_eq!(
        net.body("{:url \"URL\" :json {} :idempotency-key \"k\"}"),
        "1"
    );
}

/// Made for this test; it opens nothing.
const RSA_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQDIne9A0vcRZTIN\n\
Iy9VOgUYPzuDwbRrMfyN7qEE2Y95eAghwUr5jgXOIYfndpsH4rl48Lq7KWjedNS3\n\
roV856Ts/UOxbM0NYSnN/xVPfWbznpEOluSiGJcuWCpo3Vs8KHoXDWUoYLPjI9kc\n\
Xv+ONYV4s7FNN1cywjJfTX2GCkIrEPm4SnjvyV4jJPQ/TyQWRhvS7LS2eBFZ0rL5\n\
/kwECgV1tpiVtmB6HhSzrnmSUsWAIGS9Ur20XVe5pR+sNkzmvtgzpvUpcsnAlAoH\n\
NkSy7JpIpmo5O30tRgqvt1kRV/UuNUgBlwHOZnDCE5cdjs2HKA3LQBoxjWGHBrZN\n\
Jof7Ba7VAgMBAAECggEAAaosgpVdlH40+0lCoB/s9pBhGOJMx3jw4hKhW8NxvoMh\n\
pM9lpQrUfys7D/ole4bE8ufN0jYb7ICmr+bZrQ7VCQcUU+QVvYSEDsq3mA3FLW9a\n\
6naTwMlDHpDVD+1fpPD8YQrs6c1c9h0QNP060f4dX0I1I0a6yVfgMsyXUTtDj6I+\n\
0PhaK3JdiRHv8kA12wVRnPuofzyx4NzCKzMQylsVopQFd8ZhTgHwg8gvzFY5xwUT\n\
S6zOd0ZYCduZh7Mw3b6LQ/d2ThSEEMFbmLkDCsAWC2xUhzZpzUjkdzkK7wMOqVRr\n\
jmOUwoFDom51e8OoCAL0JP6FMMn9K6HA5a7UtwrxDwKBgQD5aipbaoNbD6NaCg60\n\
ERuD3jNQdMM4B1tJKJyVBgM9kO1XZC4PDOCr7nQ+dx+AW+aTVWpO31m6ofNnlRrB\n\
0atqtBMpY3sh5fyKE0hmU/60FCymaSynLBej9osWBmNElhdeMHOhYbxTdLAQpl36\n\
u6HmolEFv7x0W3RVYvO8Yk/6PwKBgQDN6e/gu9ynoKkOyFw9OqtasnVhUxyXUHDO\n\
93qrGqSjLa0RRlD4MoTLDJsB0p4mqeea6x2jR84x5+2iI3pdX5KFWAHRy2L+Gwox\n\
YY8MYRDUeD3ZDdR1VTGoLekb3il8tbwN/wxlzCIp/5hxugwfwloQ5zBst97pHLN5\n\
G+kETQFJ6wKBgQDzmX5/RLvAz7hC87nCo0bVd8t0lGYrLfw5qwGsB3BYzFkTVtQp\n\
fPFe24oLjHtm+dttISqwmDLiNtUt4RJ+JROgJvrkHLahuCf8j7LRxs3pAh9N9UFY\n\
kZcRXHYh7+E6lsGCDB6Ti4rNlBV2XZdCkcoiIXyy+b7NgplP4FKgNwFYLwKBgQDG\n\
wAuKNqoHnlova5MkgnGMzH3h38/T+Y+5JURgzQmme1r2NpHGzzQ/rL4dJ0cBeLOV\n\
Y2UrCg7rOrqy6l2crLgHPugasJ6vODhBa7IgN7x/6EOCMwgj7IROmWnMPUZ8GgoW\n\
1FwKEdvT/+ILu5EiQnyenheuiFd/V/WfayIhxZX92wKBgHw4ontrh+t8WipsMXHR\n\
d9S6vPh3cawLIWpvTcARfe+fYhA+3azvIpQ58JQPi4SqKYax3Hsx61gb6gt5dhzt\n\
RIReCiQs5OyDCripiSVsgKcqAiTiGloPCtl3eFC7BbeiBMFpmVKm+yXvBPFMC14g\n\
g4sr8FEU2PbU2MHrRayF4Uyk\n\
-----END PRIVATE KEY-----\n\
";
