//! A project with agents of the agents API on a running server, and a model that follows its system prompt.

use serde_json::{Value, json};

use crate::api::{Api, Reply};
use crate::program::Scratch;
use crate::server::{Answer, Request, Server};

const BASE: &str = "/api/v1";

/// A server with a provider, and the model and tool server behind it.
pub struct Agents {
    pub scratch: Scratch,
    pub api: Api,
    pub outside: Server,
    pub provider: String,
}

impl Agents {
    /// Serves a project with a provider whose key is a secret.
    pub fn serve() -> Agents {
        Agents::serve_beside(Server::start(|request, _| answer(request)))
    }

    /// As [`Agents::serve`], with another server of models and tools.
    pub fn serve_beside(outside: Server) -> Agents {
        Agents::serve_with(outside, |_| String::new())
    }

    /// Serves a project whose embedder makes vectors of the words of a text.
    pub fn serve_embedder() -> Agents {
        Agents::serve_with(Server::start(|request, _| answer(request)), |base| {
            format!(r#":search {{:embedder {{:base-url "{base}" :model "words"}}}}"#)
        })
    }

    /// Serves a project with further settings, made of the address of the model.
    fn serve_with(outside: Server, settings: impl Fn(&str) -> String) -> Agents {
        let scratch = Scratch::new();
        let more = settings(&outside.url("/v1"));
        scratch.write(
            "flowstone.edn",
            format!(r#"{{:allow {{:net ["127.0.0.1"]}} {more}}}"#),
        );
        let api = Api::serve(&scratch);
        let mut agents = Agents {
            scratch,
            api,
            outside,
            provider: String::new(),
        };
        let secret = agents.made("/secrets", &json!({"name": "key", "value": "sk-model-key"}));
        agents.provider = agents.made(
            "/ai-providers",
            &json!({"name": "fake", "provider": "openai", "default_model": "fake-1",
                    "base_url": agents.outside.url("/v1"), "secret_id": secret}),
        );
        agents
    }

    /// Ends the server without notice, and starts another on the same project.
    pub fn restart(self) -> Agents {
        let Agents {
            scratch,
            api,
            outside,
            provider,
        } = self;
        api.kill();
        Agents {
            api: Api::serve(&scratch),
            scratch,
            outside,
            provider,
        }
    }

    pub fn get(&self, path: &str) -> Reply {
        self.api.get(&format!("{BASE}{path}"))
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.api.post(&format!("{BASE}{path}"), body)
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

    /// Creates a record, and returns its id.
    #[track_caller]
    pub fn made(&self, path: &str, body: &Value) -> String {
        let created = self.post(path, body);
        assert_eq!(created.status, 201, "{created:?}");
        created.json()["id"].as_str().expect("an id").to_owned()
    }

    /// Creates a client tool.
    #[track_caller]
    pub fn client_tool(&self, name: &str) -> String {
        self.made("/tools", &json!({"name": name, "type": "client"}))
    }

    /// Creates a tool that reads `/lookup`.
    #[track_caller]
    pub fn http_tool(&self, name: &str) -> String {
        let url = self.outside.url("/lookup");
        self.made("/tools", &json!({"name": name, "execute": {"url": url}}))
    }

    /// Creates a tool that is an MCP server.
    #[track_caller]
    pub fn mcp_tool(&self, name: &str, path: &str, more: Value) -> String {
        let mut body = json!({"name": name, "type": "mcp", "mcp": {"url": self.outside.url(path)}});
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        self.made("/tools", &body)
    }

    /// Returns the requests of a method that MCP servers got.
    pub fn mcp_requests(&self, method: &str) -> Vec<Request> {
        let mut requests = self.outside.requests();
        let wanted = format!("\"method\":\"{method}\"");
        requests.retain(|it| it.path.starts_with("/mcp") && it.body.contains(&wanted));
        requests
    }

    /// Creates an agent that follows a script with tools, with further members.
    #[track_caller]
    pub fn agent(&self, script: &str, tools: &[&str], more: Value) -> String {
        let mut body =
            json!({"ai_provider_id": self.provider, "instructions": script, "tool_ids": tools});
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        self.made("/agents", &body)
    }

    /// Runs a generation, and returns the answer.
    #[track_caller]
    pub fn generate(&self, agent: &str, body: &Value) -> Value {
        let answer = self.post(&format!("/agents/{agent}/generate"), body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Submits outputs for a generation.
    pub fn submit(&self, agent: &str, generation: &Value, body: &Value) -> Reply {
        let id = generation["id"].as_str().expect("an id");
        self.post(&format!("/agents/{agent}/generate/{id}/tool-outputs"), body)
    }

    /// Returns the bodies that the model got.
    pub fn turns(&self) -> Vec<Value> {
        let requests = self.outside.requests();
        let turns = requests
            .iter()
            .filter(|it| it.path == "/v1/chat/completions");
        turns
            .map(|it| serde_json::from_str(&it.body).expect("a JSON body"))
            .collect()
    }

    /// Returns the requests that tools made.
    pub fn tool_requests(&self) -> Vec<Request> {
        let mut requests = self.outside.requests();
        requests.retain(|it| !it.path.starts_with("/v1/"));
        requests
    }
}

/// Returns the names of the tools that a turn offers.
pub fn offered(turn: &Value) -> Vec<&str> {
    let tools = turn["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let names = tools.iter().map(|tool| tool["function"]["name"].as_str());
    names.map(|name| name.expect("a name")).collect()
}

/// Returns the error of an answer: status and code.
pub fn error(reply: &Reply) -> String {
    let code = reply.json()["error"]["code"].clone();
    format!("{} {}", reply.status, code.as_str().unwrap_or_default())
}

/// Returns vectors that count the words of each text.
fn embeddings(request: &Request) -> Answer {
    let body: Value = serde_json::from_str(&request.body).expect("a JSON body");
    let texts = body["input"].as_array().expect("texts").iter();
    let vector = |(index, text): (usize, &Value)| {
        let mut counts = vec![0; 256];
        for word in text
            .as_str()
            .unwrap_or_default()
            .to_lowercase()
            .split(|it: char| !it.is_alphanumeric())
        {
            let place = word
                .bytes()
                .fold(7_usize, |sum, byte| sum * 31 % 65_521 + usize::from(byte));
            counts[place % 256] += i32::from(!word.is_empty());
        }
        json!({"index": index, "embedding": counts})
    };
    let data: Vec<Value> = texts.enumerate().map(vector).collect();
    Answer::Json(json!({"data": data}).to_string())
}

/// Answers as an MCP server with two tools; below `/mcp/broken` as one that is out of order.
fn mcp(request: &Request) -> Answer {
    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
    let result = match message["method"].as_str().unwrap_or_default() {
        _ if request.path.ends_with("/broken") => return Answer::Status(500, "out of order"),
        "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                               "serverInfo": {"name": "fake", "version": "1"}}),
        "tools/list" => json!({"tools": [
            {"name": "create_issue", "description": "Creates an issue.",
             "inputSchema": {"type": "object", "required": ["title", "repo"],
                             "properties": {"title": {"type": "string"}, "repo": {"type": "string"}}}},
            {"name": "find", "inputSchema": {"type": "object"}},
        ]}),
        "tools/call" => {
            let text = message["params"]["arguments"].to_string();
            json!({"content": [{"type": "text", "text": text}]})
        }
        "server/discover" => {
            let error = json!({"code": -32601, "message": "Method not found"});
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
            return Answer::Json(body.to_string());
        }
        _ if request.method == "POST" => return Answer::Status(202, ""),
        _ => return Answer::Status(405, ""),
    };
    Answer::Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
}

/// Answers as the model and as the servers of tools.
pub fn answer(request: &Request) -> Answer {
    if request.path.starts_with("/mcp") {
        return mcp(request);
    }
    if request.path == "/v1/embeddings" {
        return embeddings(request);
    }
    if request.path != "/v1/chat/completions" {
        return match request.path.split('?').next() {
            Some("/refuse") => Answer::Status(418, "no tea here"),
            Some("/plain") => Answer::Status(200, "just text"),
            _ => Answer::Json(json!({"found": request.path, "data": {"text": "deep"}}).to_string()),
        };
    }
    let body: Value = serde_json::from_str(&request.body).expect("a JSON body");
    let delta = reply(&body);
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11});
    let choice = json!({"index": 0, "delta": delta, "finish_reason": "stop"});
    Answer::Events(vec![
        json!({"id": "1", "model": "fake-1", "choices": [choice], "usage": usage}).to_string(),
        "[DONE]".to_owned(),
    ])
}

/// Follows the system prompt: a line for each turn, `call NAME JSON` (several with `&`) or `say TEXT`. The last line is repeated.
fn reply(body: &Value) -> Value {
    let messages = body["messages"].as_array().expect("messages");
    let system = messages.iter().find(|it| it["role"] == "system");
    let script = system
        .and_then(|it| it["content"].as_str())
        .unwrap_or("say hello");
    let turn = messages
        .iter()
        .filter(|it| it["role"] == "assistant")
        .count();
    let lines: Vec<&str> = script.lines().collect();
    let line = lines
        .get(turn)
        .or(lines.last())
        .copied()
        .unwrap_or_default();
    if let Some(text) = line.strip_prefix("say ") {
        return json!({"content": text});
    }
    let calls = line.split('&').enumerate().map(|(idx, call)| {
        let call = call.trim().trim_start_matches("call ");
        let (name, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
        let function = json!({"name": name, "arguments": arguments});
        json!({"index": idx, "id": format!("c{turn}.{idx}"), "type": "function", "function": function})
    });
    json!({"content": Value::Null, "tool_calls": calls.collect::<Vec<_>>()})
}
