//! Values over HTTP and MCP keep their digits and their kind.

use serde_json::{Value, json};

use crate::api::{Api, Reply};
use crate::program::Scratch;

const MONEY: &str = r#"{:slug :money
  :interfaces {:http [{:id :pay :path "/pay" :invocation :default}]
               :mcp [{:tool-name "money" :invocation :default}]}
  :invocations {:default {:inputs []}}
  :flow '(do (flow/step :function :one {:code '(fn [_] {:d 1.50M})})
             {:d 1.50M :in {"k" [-2.50M {:n 123456789012345678901234567890}]}})}"#;
const OWN: &str = r#"{:slug :own
  :interfaces {:http [{:id :own :path "/own" :invocation :default}]}
  :invocations {:default {:inputs []}}
  :flow '{:status 200 :headers {"X-Price" 1.50M} :body {:d 1.50M}}}"#;
const VIEW: &str = r#"{:slug :view
  :interfaces {:mcp [{:tool-name "view" :invocation :default}]}
  :invocations {:default {:inputs []}}
  :flow '{:breyta.viewer/kind :json :breyta.viewer/value {:d 1.50M}}}"#;
const ASK: &str = r#"{:slug :ask
  :flow '(flow/step :wait :ok {:key "go" :message "Pay?" :data {:d 1.50M}})}"#;
const WORK: &str = "{:slug :work :flow '(flow/step :job :order {:op :submit :job-type :image :payload {:d 1.50M}})}";

#[track_caller]
fn exact(reply: &Reply) {
    assert!(matches!(reply.status, 200..=202), "{reply:?}");
    assert!(reply.body.contains("1.50"), "{reply:?}");
    assert!(!reply.body.contains("u0001"), "{reply:?}");
}

#[test]
fn numbers_of_every_answer_keep_their_digits() {
    let scratch = Scratch::new();
    for (name, text) in [
        ("money", MONEY),
        ("own", OWN),
        ("view", VIEW),
        ("ask", ASK),
        ("work", WORK),
    ] {
        scratch.write(&format!("flows/{name}.edn"), text);
    }
    let api = Api::serve(&scratch);
    let start = |flow: &str| {
        api.post(
            &format!("/api/v1/flows/{flow}/runs"),
            &json!({"wait": "60s"}),
        )
    };
    let run = start("money");
    exact(&run);
    let all = r#""result":{"d":1.50,"in":{"k":[-2.50,{"n":123456789012345678901234567890}]}}"#;
    assert!(run.body.contains(all), "{run:?}");
    let id = run.json()["id"].as_str().expect("an id").to_owned();
    let (waiting, working) = (start("ask"), start("work"));
    let waits = waiting.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!((waiting.status, working.status), (202, 200));
    for path in [
        format!("/api/v1/runs/{id}"),
        format!("/api/v1/runs/{id}?full=true"),
        format!("/api/v1/runs/{id}?step=one"),
        format!("/api/v1/runs/{id}/journal"),
        format!("/api/v1/waits?run={waits}"),
        "/api/v1/waits".to_owned(),
        "/api/v1/jobs".to_owned(),
    ] {
        exact(&api.get(&path));
    }
    exact(&api.post(
        "/api/v1/jobs/claim",
        &json!({"types": ["image"], "worker": "w"}),
    ));
    exact(&api.post("/http/pay", &json!({})));
    let own = api.post("/http/own", &json!({}));
    assert_eq!(
        (&*own.body, own.header("x-price")),
        (r#"{"d":1.50}"#, Some("1.50"))
    );
}

#[test]
fn numbers_of_tool_results_keep_their_digits() {
    let scratch = Scratch::new();
    scratch.write("flows/money.edn", MONEY);
    scratch.write("flows/view.edn", VIEW);
    let api = Api::serve(&scratch);
    let run = api
        .post("/api/v1/flows/money/runs", &json!({"wait": "60s"}))
        .json();
    for (tool, arguments) in [
        ("money", json!({})),
        ("view", json!({})),
        ("workspace_runs_show", json!({"id": run["id"]})),
    ] {
        let reply = super::mcp::call_of(&api, tool, &arguments);
        exact(&reply);
        let result = super::mcp::last_message(&reply)["result"].take();
        assert_eq!(result["isError"], false, "{tool} {result}");
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains(r#""d": 1.50"#), "{tool} {result}");
    }
}

/// A value that JSON cannot hold, as an input and as the language prints it.
const VALUE: &str = r##"{:k :a/b :s #{1} :r 1/3 :c \a :d 1.50M :n 2N :i {1 :one "x" [:y]} :at #inst "2026-01-01T00:00:00.000Z" :no nil}"##;
const ECHO: &str =
    "{:slug :echo :flow '(let [v (:v (flow/input))] (if (= \"other\" v) \"other\" (pr-str v)))}";
const ANSWER: &str = r#"{:slug :answer :flow '(pr-str (flow/step :wait :w {:key "go"}))}"#;
const REVIEW: &str = r#"{:slug :review
  :flow '(pr-str (:value (flow/step :wait :w {:key "go" :approval {:actions [:approve :edit]}})))}"#;
const EVENT: &str = r#"{:slug :event :flow '(pr-str (:v (flow/step :wait :w {:event {:name "paid" :key {:path [:id]}} :key "o-1"})))}"#;
const DONE: &str = "{:slug :done :flow '(let [job (flow/step :job :order {:op :submit :job-type :image :payload 1})]
  (pr-str (:result (flow/step :job :made {:op :await :job-id (:job-id job)}))))}";
const FLOWS: [(&str, &str); 5] = [
    ("echo", ECHO),
    ("answer", ANSWER),
    ("event", EVENT),
    ("review", REVIEW),
    ("done", DONE),
];

/// A project whose commands go to its stores, or to a server.
struct Place<'a> {
    scratch: &'a Scratch,
    server: Vec<&'a str>,
}

impl Place<'_> {
    fn ask(&self, args: &[&str]) -> Value {
        self.scratch.json_of(&[&self.server[..], args].concat())
    }

    /// Returns the result of a run, once it has ended.
    fn result(&self, run: &Value) -> String {
        let id = run.as_str().expect("a run");
        let ended = self.scratch.run(&["runs", "watch", id]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let shown = self.scratch.json_of(&["runs", "show", id]);
        shown["result"]
            .as_str()
            .unwrap_or_else(|| panic!("{shown}"))
            .to_owned()
    }

    fn begin(&self, flow: &str) -> Value {
        let run = self.ask(&["run", &format!("flows/{flow}.edn")]);
        assert_eq!(run["status"], "waiting", "{run}");
        run["run"].clone()
    }

    /// Returns what flows got from each command that takes a value.
    fn received(&self) -> Vec<(&'static str, String)> {
        let input = format!("{{:v {VALUE}}}");
        let mut all = Vec::new();
        let run = self.ask(&["run", "flows/echo.edn", "--input", &input]);
        all.push(("run --input", self.result(&run["run"])));
        let set = format!("input.v={VALUE}");
        let first = self.ask(&["run", "flows/echo.edn", "--input", "{:v \"other\"}"]);
        let first = first["run"].as_str().expect("a run").to_owned();
        let fork = self.ask(&["runs", "fork", &first, "--set", &set]);
        all.push(("runs fork --set", self.result(&fork["run"])));
        for (flow, command) in [
            ("answer", ["waits", "complete"]),
            ("answer", ["waits", "signal"]),
            ("review", ["waits", "approve"]),
        ] {
            let run = self.begin(flow);
            self.ask(&[&command[..], &["go", "--value", VALUE]].concat());
            all.push((command[1], self.result(&run)));
        }
        let run = self.begin("event");
        let payload = format!("{{:id \"o-1\" :v {VALUE}}}");
        self.ask(&["waits", "event", "paid", "--value", &payload]);
        all.push(("waits event", self.result(&run)));
        for way in ["jobs complete --result", "jobs complete --many"] {
            let run = self.begin("done");
            let claimed = self.ask(&["jobs", "claim", "--type", "image", "--worker", "w"]);
            let job = &claimed["jobs"][0];
            let (id, lease) = (&job["id"], &job["lease"]["token"]);
            let id_text = id.as_str().expect("a job");
            let lease_text = lease.as_str().expect("a lease");
            let ends = format!("[{{:id {id} :lease {lease} :result {VALUE}}}]");
            self.scratch.write("ends.edn", ends);
            match way {
                "jobs complete --many" => self.ask(&["jobs", "complete", "--many", "ends.edn"]),
                _ => self.ask(&[
                    "jobs", "complete", id_text, "--lease", lease_text, "--result", VALUE,
                ]),
            };
            if self.server.is_empty() {
                self.scratch.run(&["runs", "resume", "--all"]);
            }
            all.push((way, self.result(&run)));
        }
        all
    }
}

#[test]
fn a_server_gets_the_values_that_a_command_is_given() {
    let (here, there) = (Scratch::new(), Scratch::new());
    for scratch in [&here, &there] {
        for (name, text) in FLOWS {
            scratch.write(&format!("flows/{name}.edn"), text);
        }
    }
    let local = Place {
        scratch: &here,
        server: Vec::new(),
    };
    let api = Api::serve(&there);
    let base = format!("http://{}", api.address);
    let remote = Place {
        scratch: &there,
        server: vec!["--server", &base],
    };
    let expected = local.received();
    for (command, received) in &expected {
        assert_eq!(received, &expected[0].1, "{command}");
    }
    for part in [
        ":k :a/b", ":s #{1}", ":r 1/3", r":c \a", ":d 1.50M", ":n 2N", "1 :one", "#inst", ":no nil",
    ] {
        assert!(expected[0].1.contains(part), "{part} {expected:?}");
    }
    assert_eq!(remote.received(), expected);

    there.write("many.edn", format!("[{{:v {VALUE}}}]"));
    let many = remote.ask(&["run", "flows/echo.edn", "--many", "many.edn"]);
    assert_eq!(remote.result(&many["runs"][0]["id"]), expected[0].1);
    for (body, code) in [
        (json!({"input": "{:a", "values": "edn"}), "400 E1016"),
        (json!({"input": "1 2", "values": "edn"}), "400 E1016"),
        (json!({"input": {"v": 1}, "values": "edn"}), "400 E1016"),
        (json!({"input": {"v": 1}, "values": "xml"}), "400 E1016"),
    ] {
        assert_eq!(
            api.post("/api/v1/flows/echo/runs", &body).problem(),
            code,
            "{body}"
        );
    }
}
