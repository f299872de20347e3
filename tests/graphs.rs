//! A project with graph agents on a running server, and what clients of it read.

use serde_json::{Value, json};

use crate::api::{Api, Event, Reply};
use crate::program::Scratch;

/// Where the addresses of graph agents begin.
pub const BASE: &str = "/v1/default";

/// Models that follow scripts, by words of the system prompt.
pub const SETTINGS: &str = r#"{:allow {:net ["127.0.0.1"]}
 :connections {:ai {:backend :scripted :models ["test/small"] :script {:scripts [
  {:when "CLASSIFY" :turns ["billing"]}
  {:when "CALL" :turns [{:tool-calls [{:name "lookup" :arguments {:id 1}} {:name "lookup" :arguments {:id 2}}]} "called"]}
  {:when "WRITE" :turns [{:tool-calls [{:name "cancel" :arguments {:user "u1"}} {:name "lookup" :arguments {:id 1}}]} "cancelled"]}
  {:when "TWICE" :turns [{:tool-calls [{:name "cancel" :arguments {:user "a"}} {:name "cancel" :arguments {:user "b"}}]} "both"]}
  {:when "ASK" :turns [{:tool-calls [{:name "interrupt" :arguments {:reason "which one?" :data {:options [1 2]}}}]} "thanks"]}
  {:when "SEARCH" :turns [{:tool-calls [{:name "search" :arguments {:q "x"}}]} "found"]}
  {:when "LOOP" :turns [{:tool-calls [{:name "lookup" :arguments {:id 1}}]} {:tool-calls [{:name "lookup" :arguments {:id 1}}]} {:tool-calls [{:name "lookup" :arguments {:id 1}}]} "late"]}
  {:when "SLOW" :turns [{:content "late" :latency-ms 1500}]}
  {:when "FAIL" :turns [{:error {:kind :refused :message "no"}}]}
  {:turns ["hello"]}]}}}}"#;

/// A server of a project.
pub struct Graphs {
    pub scratch: Scratch,
    pub api: Api,
}

impl Graphs {
    /// Serves a project with two functions: `lookup` reads, `cancel` asks.
    pub fn serve() -> Graphs {
        let scratch = Scratch::new();
        scratch.write("flowstone.edn", SETTINGS);
        let api = Api::serve(&scratch);
        let graphs = Graphs { scratch, api };
        graphs.function(&json!({
            "name": "lookup", "code": "(fn [{:keys [id]}] {:id id :plan \"pro\"})",
            "agent_tool": true, "agent_tool_description": "Looks up an account.", "agent_tool_exposed_to": "end_user",
            "input_schema": {"type": "object", "properties": {"id": {"type": "integer"}}},
        }));
        graphs.function(&json!({
            "name": "cancel", "code": "(fn [{:keys [user]}] {:cancelled user})",
            "agent_tool": true, "agent_tool_mode": "read_write",
        }));
        graphs
    }

    #[track_caller]
    fn function(&self, body: &Value) {
        let created = self.post("/functions", body);
        assert_eq!(created.status, 201, "{created:?}");
    }

    pub fn get(&self, path: &str) -> Reply {
        self.api.get(&format!("{BASE}{path}"))
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.api.post(&format!("{BASE}{path}"), body)
    }

    pub fn post_as(&self, token: &str, path: &str, body: &Value) -> Reply {
        self.api.post_as(token, &format!("{BASE}{path}"), body)
    }

    pub fn get_as(&self, token: &str, path: &str) -> Reply {
        self.api.get_as(token, &format!("{BASE}{path}"))
    }

    /// Makes a request as the owner.
    pub fn send(&self, method: &str, path: &str, body: &Value) -> Reply {
        let authorization = format!("authorization: Bearer {}", self.api.token);
        let headers = [authorization.as_str(), "content-type: application/json"];
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        self.api
            .request(&format!("{method} {BASE}{path}"), &headers, &body)
    }

    /// Stores an agent, with further members.
    #[track_caller]
    pub fn agent(&self, name: &str, spec: &Value, more: Value) {
        let mut body = json!({"name": name, "graph_spec": spec});
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        let created = self.post("/agents", &body);
        assert_eq!(created.status, 201, "{created:?}");
    }

    /// Starts a run and returns the beginning of its addresses.
    #[track_caller]
    pub fn start(&self, agent: &str, input: &Value) -> String {
        let started = self.post(&format!("/agents/{agent}/runs"), &json!({"input": input}));
        assert_eq!(started.status, 201, "{started:?}");
        let started = started.json();
        assert_eq!(started["status"], "queued");
        format!(
            "/agents/{agent}/runs/{}",
            started["run_id"].as_str().expect("an id")
        )
    }

    /// Returns the events of a run up to one of a kind, or to its end.
    pub fn until(&self, run: &str, kind: &str) -> Vec<Event> {
        let mut found = Vec::new();
        for event in self.api.follow(&format!("{BASE}{run}/events"), None) {
            let is_last = event.name == kind;
            found.push(event);
            if is_last {
                break;
            }
        }
        found
    }

    /// Returns the events of a run to its end.
    pub fn events(&self, run: &str) -> Vec<Event> {
        self.until(run, "")
    }

    /// Waits for the pause of a run, and returns its token.
    pub fn paused(&self, run: &str) -> String {
        let events = self.until(run, "run_paused");
        let last = events.last().expect("the run pauses");
        assert_eq!(last.name, "run_paused", "{events:?}");
        let token = last.data["payload"]["approval_token"].as_str();
        token.expect("a token").to_owned()
    }

    pub fn run(&self, run: &str) -> Value {
        self.get(run).json()["run"].clone()
    }

    /// Creates a token of a kind.
    pub fn token(&self, kind: &str, options: &[&str]) -> String {
        let args = [
            &["tokens", "create", "--name", kind, "--kind", kind],
            options,
        ]
        .concat();
        self.scratch.run(&args).ok().trim_end().to_owned()
    }
}

/// Returns the names of events.
pub fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

/// Returns the data of the events of a kind.
pub fn data<'a>(events: &'a [Event], kind: &str) -> Vec<&'a Value> {
    let found = events.iter().filter(|event| event.name == kind);
    found.map(|event| &event.data).collect()
}

/// Returns a node that asks a model with a script.
pub fn llm(script: &str, tools: &[Value]) -> Value {
    json!({
        "type": "llm", "model": "test/small", "system_prompt": script, "input_template": "{{ input.message }}",
        "output_key": "reply", "tools": tools,
    })
}

/// Returns a reference to a function.
pub fn function(name: &str) -> Value {
    json!({"source": "function", "name": name})
}

/// Returns a spec of one node and an end.
pub fn one(node: Value, tools: Value) -> Value {
    json!({
        "spec_version": "1", "entry": "work",
        "nodes": {"work": node, "done": {"type": "end", "output_template": "{{ state.reply }}"}},
        "edges": [{"from": "work", "to": "done"}],
        "tools": tools,
    })
}

/// Returns a spec of one model node that may call functions.
pub fn calling(script: &str, names: &[&str]) -> Value {
    let tools: Vec<Value> = names.iter().map(|name| function(name)).collect();
    one(llm(script, &tools), json!({"functions": names}))
}

/// Returns a spec with limits.
pub fn limited(mut spec: Value, limits: Value) -> Value {
    spec["limits"] = limits;
    spec
}
