//! A secret appears nowhere: not on the screen, not in any file of the home, whatever a run does with it.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::program::{Ran, Scratch};
use crate::server::{Answer, Request, Server};

/// Has what escapes differ in.
const SECRET: &str = "pass\"w0rd\\with/odd%chars<42";
const FAILURE: &str = "denied for pass\"w0rd\\with/odd%chars<42 at all";

fn json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn url(text: &str) -> String {
    let escape = |byte: u8| match byte.is_ascii_alphanumeric() || byte == b'-' {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// What must not be found, by the names of the forms.
fn forms() -> Vec<(&'static str, String)> {
    let base64 = |before: &str| {
        let whole = STANDARD.encode(format!("{before}{SECRET}"));
        let from = (before.len() * 8).div_ceil(6);
        whole[from..whole.len() - 4].to_owned()
    };
    let html = SECRET.replace('<', "&lt;").replace('"', "&quot;");
    let hex = SECRET.bytes().map(|byte| format!("{byte:02x}"));
    vec![
        ("raw", SECRET.to_owned()),
        ("escaped", json(SECRET)),
        ("escaped twice", json(&json(SECRET))),
        ("escaped three times", json(&json(&json(SECRET)))),
        ("in an address", url(SECRET)),
        ("in an address, lower case", url(SECRET).to_lowercase()),
        ("in html", html),
        ("base64", base64("")),
        ("base64 at 1", base64("u")),
        ("base64 at 2", base64("us")),
        ("hexadecimal", hex.collect()),
    ]
}

fn files_below(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => files_below(&path, found),
            false => found.push((path.display().to_string(), fs::read(&path).expect("a file"))),
        }
    }
}

/// Fails where one of the forms is in what was printed, or in a file of the home.
#[track_caller]
fn no_leak(scratch: &Scratch, ran: &Ran, row: &str) {
    let mut places = vec![
        ("standard output".to_owned(), ran.out.clone().into_bytes()),
        ("standard error".to_owned(), ran.err.clone().into_bytes()),
    ];
    files_below(&scratch.path().join(".flowstone"), &mut places);
    for (place, bytes) in places {
        for (name, form) in forms() {
            let at = bytes
                .windows(form.len())
                .position(|part| part == form.as_bytes());
            if let Some(at) = at {
                let around = &bytes[at.saturating_sub(80)..(at + form.len() + 40).min(bytes.len())];
                let around = String::from_utf8_lossy(around);
                panic!("{row}: the secret is in {place}, {name}: {around}");
            }
        }
    }
}

/// Answers with the secret, in many forms.
fn echo(request: &Request, _: usize) -> Answer {
    let text = json(SECRET);
    match request.path.as_str() {
        "/fail" => Answer::Status(400, FAILURE),
        "/v1/chat/completions" => {
            let (first, second) = SECRET.split_at(9);
            let piece = |text: &str| {
                format!(
                    r#"{{"choices":[{{"delta":{{"content":"{}"}}}}]}}"#,
                    json(text)
                )
            };
            let end = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#.to_owned();
            Answer::Events(vec![
                piece("it is "),
                piece(first),
                piece(second),
                end,
                "[DONE]".to_owned(),
            ])
        }
        _ => {
            let forms = forms().into_iter().map(|(name, form)| match name {
                "base64" => STANDARD.encode(SECRET),
                "base64 at 1" => STANDARD.encode(format!("u{SECRET}")),
                "base64 at 2" => STANDARD.encode(format!("us{SECRET}")),
                _ => form,
            });
            let forms: Vec<String> = forms.map(|form| json(&form)).collect();
            let all = forms.join("\",\"");
            let basic = STANDARD.encode(format!("user:{SECRET}"));
            Answer::Json(format!(
                r#"{{"rows":[{{"id":1,"token":"{text}","basic":"{basic}"}}],"all":["{all}"],"{text}":1}}"#
            ))
        }
    }
}

/// Runs a flow whose body may use `token`, the secret input, and the connection `:crm` with the secret.
fn run(server: &Server, body: &str, extra: &[&str]) -> (Scratch, Ran) {
    let scratch = Scratch::new();
    scratch.write(
        "flowstone.edn",
        format!(
            "{{:connections {{:crm {{:base-url \"{}\" :auth {{:type :bearer :secret-ref :crm-token}}}}}}}}",
            server.url("")
        ),
    );
    let flow = |slug: &str, body: &str| {
        format!(
            "{{:slug :{slug} :concurrency {{:type :singleton}}
 :requires [{{:slot :crm :type :http-api}}]
 :invocations {{:default {{:inputs [{{:name :token :type :secret :required true}} {{:name :n :type :number}}]}}}}
 :flow '(let [{{:keys [token n]}} (flow/input)] {body})}}"
        )
    };
    scratch.write("main.edn", flow("main", body));
    let child = "(flow/step :function :a {:input {:t token :n n} :code '(fn [x] x)})";
    scratch.write("flows/child.edn", flow("child", child));
    // A child that does not declare its input as a secret.
    scratch.write(
        "flows/plain.edn",
        "{:slug :plain :concurrency {:type :singleton} :flow '(let [t (:t (flow/input))] {:length (count t) :t t})}",
    );
    scratch.write("input.json", format!("{{\"token\": \"{}\"}}", json(SECRET)));
    let args = [&["run", "main.edn", "--input", "@input.json"], extra].concat();
    let mut command = scratch.command(&args);
    command
        .env("CRM_TOKEN", SECRET)
        .env("GROQ_API_KEY", SECRET)
        .env("GROQ_BASE_URL", server.url("/v1"))
        .env("GROQ_MODEL", "small")
        .env("FLOWSTONE_LOG", "debug");
    let ran = Ran::to_the_end(&mut command);
    (scratch, ran)
}

/// What a run may do with a secret: a name, and the body of a flow.
const ROWS: &[(&str, &str)] = &[
    (
        "result",
        "{:t token (str \"key \" token) [token] :s #{token}}",
    ),
    ("keyword", "{(keyword token) 1}"),
    ("bytes", "{:b (.getBytes token)}"),
    ("json text", "(json/write-str {:t token})"),
    (
        "printed",
        "(do (print (subs token 0 8)) (print (subs token 8)) (println) (prn token) {:t token})",
    ),
    (
        "logged",
        "(do (flow/log :info (str \"with \" token) {:t token}) {:t token})",
    ),
    ("emitted", "(do (flow/emit :seen {:t token}) {:t token})"),
    (
        "thrown",
        "(throw (ex-info (str \"bad \" token) {:t token}))",
    ),
    (
        "function",
        "(flow/step :function :a {:input {:t token} :code '(fn [x] {:t (str (:t x) \"!\")})})",
    ),
    (
        "function that prints",
        "(flow/step :function :a {:input {:t token} :code '(fn [x] (println \"printed\" (:t x)) (prn x) {:t (:t x)})})",
    ),
    (
        "function that throws",
        "(flow/step :function :a {:input {:t token} :code '(fn [x] (throw (ex-info (str \"no \" (:t x)) x)))})",
    ),
    (
        "kv",
        "(do (flow/step :kv :a {:operation :set :key \"k\" :value {:t token}}) (flow/step :kv :b {:operation :get :key \"k\"}))",
    ),
    (
        "kv, appended",
        "(do (flow/step :kv :a {:operation :append :key \"k\" :value token}) (flow/step :kv :b {:operation :get :key \"k\"}))",
    ),
    (
        "table",
        "(do (flow/step :table :a {:op :insert :table \"t\" :rows [{:id 1 :token token :data {:t token}}]}) (flow/step :table :b {:op :query :table \"t\"}))",
    ),
    (
        "http, json",
        "(flow/step :http :a {:connection :crm :path \"/json\"})",
    ),
    (
        "http, text",
        "(flow/step :http :a {:connection :crm :path \"/json\" :response-as :text})",
    ),
    (
        "http, bytes",
        "(flow/step :http :a {:connection :crm :path \"/json\" :response-as :bytes})",
    ),
    (
        "http, error",
        "(flow/step :http :a {:connection :crm :path \"/fail\"})",
    ),
    (
        "http, sent",
        "(flow/step :http :a {:connection :crm :method :post :path \"/json\" :query {:q token} :headers {\"X-Token\" (str \"a\" (count token))} :json {:t token}})",
    ),
    (
        "http, blob",
        "(flow/step :http :a {:connection :crm :path \"/json\" :persist {:type :blob}})",
    ),
    (
        "http, blob of json",
        "(flow/step :http :a {:connection :crm :path \"/json\" :response-as :json :persist {:type :blob :filename \"a.json\"}})",
    ),
    (
        "http, kv",
        "(flow/step :http :a {:connection :crm :path \"/json\" :persist {:type :kv :key \"k\"}})",
    ),
    (
        "http, table",
        "(flow/step :http :a {:connection :crm :path \"/json\" :response-as :json :persist {:type :table :table \"t\" :rows-path [:body :rows]}})",
    ),
    (
        "function, blob",
        "(flow/step :function :a {:input {:t token} :code '(fn [x] x) :persist {:type :blob}})",
    ),
    (
        "model",
        "(flow/step :llm :a {:connection :groq :prompt (str \"Say \" token)})",
    ),
    ("child", "(flow/call-flow :child {:token token})"),
    (
        "child without a contract",
        "(flow/call-flow :plain {:t token})",
    ),
    (
        "next pass",
        "(if (= n 2) {:t token :n n} (flow/continue-as-new {:token token :n (inc (or n 0))}))",
    ),
    (
        "branches",
        "(flow/pmap (fn [i] (flow/step :function :a {:input {:t token :i i} :code '(fn [x] x)})) [1 2 3])",
    ),
    (
        "caught",
        "(try (flow/step :http :a {:connection :crm :path \"/fail\"}) (catch :default e {:m (ex-message e) :d (ex-data e)}))",
    ),
    (
        "skipped",
        "{:r (flow/step :http :a {:connection :crm :path \"/fail\" :on-error :skip}) :t token}",
    ),
    (
        "retried",
        "(flow/step :function :a {:input {:t token} :code '(fn [x] (throw (ex-info (str \"no \" (:t x)) {}))) :retry {:max-attempts 2}})",
    ),
    (
        "waits",
        "(flow/step :wait :a {:timeout \"1s\" :on-timeout :continue :message (str \"for \" token) :data {:t token}})",
    ),
    (
        "title",
        "(flow/step :function :a {:title (str \"With \" token) :input {:t token} :code '(fn [x] x)})",
    ),
];

#[test]
fn no_step_writes_a_secret_down() {
    let server = Server::start(echo);
    let mut checked = 0;
    for (row, body) in ROWS {
        let (scratch, ran) = run(&server, body, &["--json"]);
        no_leak(&scratch, &ran, row);
        let told = format!("{}{}", ran.out, ran.err);
        // In JSON, bytes are Base64. Stored values appear by their name only.
        let is_hidden = told.contains("[secret]") || told.contains("W3NlY3JldF0") || {
            let mut files = Vec::new();
            files_below(&scratch.path().join(".flowstone"), &mut files);
            files
                .iter()
                .any(|(_, bytes)| bytes.windows(8).any(|part| part == b"[secret]"))
        };
        assert!(is_hidden, "{row}: {told}");
        // Nothing that could not be read was written instead.
        for code in ["E0500", "E0513", "E0501"] {
            assert!(!told.contains(code), "{row}: {told}");
        }
        checked += forms().len();
    }
    assert!(checked >= 120, "{checked}");
    let sent = server.requests();
    let model = sent
        .iter()
        .filter(|request| request.path.ends_with("/completions"));
    let mut asked = 0;
    for request in model {
        asked += 1;
        let has_secret = forms()
            .iter()
            .any(|(_, form)| request.body.contains(form.as_str()));
        assert!(
            !has_secret && request.body.contains("Say [secret]"),
            "{}",
            request.body
        );
    }
    assert!(asked > 0);
    // What a flow sends somewhere itself is sent as it is.
    let posted = sent
        .iter()
        .any(|request| request.body.contains(&json(SECRET)));
    assert!(posted);
}

#[test]
fn a_resumed_run_has_its_secrets() {
    let server = Server::start(echo);
    let body = "(do (flow/step :wait :go {:timeout \"5m\"})
                    (:status (flow/step :http :a {:connection :crm :method :post :path \"/json\" :json {:later token}})))";
    let (scratch, ran) = run(&server, body, &[]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    no_leak(&scratch, &ran, "waiting");
    let id = scratch.json_of(&["runs", "list"])["runs"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let wait = scratch.json_of(&["waits", "list"])["waits"][0]["id"]
        .as_str()
        .expect("a wait")
        .to_owned();
    let mut command = scratch.command(&["waits", "complete", &wait, "--value", "1"]);
    let done = Ran::to_the_end(command.env("CRM_TOKEN", SECRET));
    no_leak(&scratch, &done, "completed");
    let done = scratch.run(&["runs", "resume", &id]);
    no_leak(&scratch, &done, "resumed");
    assert!(done.out.contains("200"), "{done:?}");
    let expected = format!("{{\"later\":\"{}\"}}", json(SECRET));
    assert!(
        server
            .requests()
            .iter()
            .any(|request| request.body == expected)
    );
    for args in [
        &["runs", "show", &id, "--full"][..],
        &["runs", "show", &id, "--json"],
        &["runs", "list", "--json"],
        &["runs", "events", &id],
        &["runs", "replay", &id],
        &["runs", "diff", &id, &id, "--all"],
        &["search", "pass"],
    ] {
        let ran = scratch.run(args);
        no_leak(&scratch, &ran, &args.join(" "));
    }
    assert!(
        scratch
            .run(&["runs", "replay", &id])
            .ok()
            .contains("the same end")
    );
    assert!(
        scratch
            .run(&["runs", "show", &id])
            .ok()
            .contains("input   {:token \"[secret]\"}")
    );
}
