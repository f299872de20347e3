//! The rows of `tests/coverage/http.tsv`.

use crate::net::{Net, contains};
use crate::server::{Say, json, reply};

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
    contains(
        &found,
        "`:body-from-ref` sends the contents behind a reference",
    );
    // A response with bytes is stored as bytes.
    let net = Net::new(vec![
        crate::net::typed("image/png", b"\x00\x01\xfe"),
        json("{}"),
    ]);
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
        "`:content-type` needs a body",
    );
    // Text is encoded in the named charset.
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
    // Options of the step override it.
    contains(&requests[1], "POST /b?q=7&r=1 HTTP/1.1\nx-a: 7\nx-b: own\n");
    contains(&requests[1], "\n\nown");
    contains(
        &flow("{:template :u :data {}}"),
        "E0755 the flow has no template `:u`",
    );
    contains(
        &net.sent("{:url \"URL\" :data {:a 1}}"),
        "`:data` needs a `:template`",
    );
}

#[test]
fn client_opts() {
    let hop = |to: &str| reply("302 Found", &[&format!("location: {to}")], "");
    let net = Net::new(vec![hop("/1"), hop("/2"), json("{}")]);
    contains(
        &net.body("{:url \"URL\" :client-opts {:max-redirects 1}}"),
        "E0739 http://HOST/ redirects more than 1 times",
    );
    contains(
        &net.body("{:url \"http://169.254.1.1:1\" :retry {:max-attempts 1}}"),
        "E0731",
    );
    // The address is no longer refused, but does not exist.
    contains(&net.body("{:url \"http://169.254.1.1:1\" :timeout \"200ms\" :retry {:max-attempts 1} :client-opts {:allow-link-local true :connect-timeout \"50ms\"}}"), "E073");
    let wrong = net.body("{:url \"URL\" :client-opts {:max-redirect 1}}");
    contains(&wrong, ":max-redirect");
}

#[test]
fn max_response_bytes() {
    let net = Net::new(vec![crate::net::typed("text/plain", "0123456789")]);
    assert_eq!(
        net.body("{:url \"URL\" :client-opts {:max-response-bytes 10}}"),
        "\"0123456789\""
    );
    contains(
        &net.body("{:url \"URL\" :client-opts {:max-response-bytes 9}}"),
        "E0736 the answer of http://HOST/ is larger than 9 bytes",
    );
    let settings = "{:http {:max-response-bytes 5}}";
    let net = Net::with(
        vec![crate::net::typed("text/plain", "0123456789")],
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
    contains(&found, "E0733 http://HOST/ did not answer within 0.1 s");
    let net = Net::new(vec![Say::Hang(
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab".to_vec(),
    )]);
    let found = net.body("{:url \"URL\" :timeout 0.2 :retry {:max-attempts 1}}");
    contains(
        &found,
        "E0733 http://HOST/ did not finish its answer within",
    );
}

#[test]
fn retry() {
    let busy = || reply("503 Service Unavailable", &[], "");
    // A write is retried only if the flow requests it.
    let net = Net::new(vec![busy(), json("1")]);
    assert_eq!(
        net.body("{:url \"URL\" :json {} :retry {:max-attempts 2 :backoff-ms 0}}"),
        "1"
    );
    let net = Net::new(vec![busy(), json("1")]);
    contains(
        &net.body("{:url \"URL\" :json {}}"),
        "E0734 http://HOST/ answered 503 Service Unavailable",
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
fn retry_of_reads() {
    let net = Net::new(vec![
        reply("503 Service Unavailable", &["retry-after: 0"], ""),
        Say::Raw(Vec::new()),
        json("1"),
    ]);
    contains(&net.body("{:url \"URL\" :retry {:backoff-ms 0}}"), "1");
    let net = Net::new(vec![reply("503 Service Unavailable", &[], ""), json("1")]);
    // Without `:retry`, it is retried as well, after a second of the run's clock.
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
        // If the server does not send its own time, the clock of the run decides.
        "retry-after: Sun, 01 Mar 2026 00:00:30 GMT",
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
    // With an idempotency key, a write is retried.
    let net = Net::new(vec![reply("503 Service Unavailable", &[], ""), json("1")]);
    assert_eq!(
        net.body("{:url \"URL\" :json {} :idempotency-key \"k\"}"),
        "1"
    );
}

#[test]
fn auto_search_index() {
    let net = Net::new(vec![crate::net::typed("text/plain", "a rare marmot")]);
    let found = |options: &str, persist: &str, name: &str| {
        let stored = net.take(
            "(:uri r)",
            &format!(
                "{{:url \"URL\" {options} :persist {{:type :blob :filename \"{name}\" {persist}}}}}"
            ),
        );
        let uri = stored.trim_matches('"');
        let row = net.project.block_on(net.project.engine.live_resource(uri));
        row.expect("it is stored").search
    };
    let search = |words: &str| {
        net.eval(&format!(
            "(mapv :title (:results (flow/step :search :find {{:query \"{words}\" :targets [:resources]}})))"
        ))
    };
    let entry = found(":auto-search-index? true", "", "shown.txt").expect("an entry");
    assert!(!entry.without_contents);
    assert_eq!(search("marmot"), "[\"shown.txt\"]");
    let entry = found(":auto-search-index? false", "", "hidden.txt").expect("an entry");
    assert!(entry.without_contents);
    assert_eq!(search("marmot"), "[\"shown.txt\"]");
    assert_eq!(search("hidden"), "[\"hidden.txt\"]");
    // The options of `:search-index` are stored, and win.
    let entry = found(
        ":auto-search-index? false",
        ":search-index {:tags [:zoo] :contents true}",
        "tagged.txt",
    );
    let entry = entry.expect("an entry");
    assert_eq!(
        (entry.without_contents, entry.tags),
        (false, vec!["zoo".to_owned()])
    );
    assert_eq!(found("", "", "plain.txt"), None);
    // Tables and keys do not have contents to index.
    let json = Net::new(vec![json("[{\"n\":1}]")]);
    contains(
        &json.take("r", "{:url \"URL\" :auto-search-index? true :persist {:type :table :table \"t\" :rows-path [:body]}}"),
        ":count 1",
    );
    contains(
        &json.take(
            "r",
            "{:url \"URL\" :auto-search-index? false :persist {:type :kv :key \"k\"}}",
        ),
        "result/kv/k",
    );
    contains(
        &net.body("{:url \"URL\" :auto-search-index? true}"),
        "E0738 `:auto-search-index?` is for what `:persist` stores",
    );
    contains(
        &net.body("{:url \"URL\" :auto-search-index? 1 :persist {:type :blob}}"),
        ":auto-search-index?",
    );
}
