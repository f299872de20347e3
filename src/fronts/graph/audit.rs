//! The tool calls of a run, in the form of the audit.

use flowstone_engine::codec::digest_bytes;
use flowstone_engine::feed_event::instant;
use serde_json::{Map, Value as Json, json};

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The id from the model, or that of the node.
    pub id: String,
    name: String,
    source: Json,
    node: Option<String>,
    args: Json,
    began_ms: i64,
    /// How long the call waited for a person, in milliseconds.
    paused_ms: i64,
    ended_ms: Option<i64>,
    /// `ok`, `error`, `denied` or `budget`; `None` while the call is in progress.
    pub status: Option<String>,
    error: Option<String>,
    /// The name of the step that performs the call.
    step: String,
    /// The call asks a person for input.
    pub(super) is_interrupt: bool,
}

impl Call {
    pub(super) fn began(at_ms: i64, data: &Json, node: Option<String>) -> Call {
        let text = |key: &str| {
            data.get(key)
                .and_then(Json::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Call {
            id: text("id"),
            name: text("name"),
            source: data.get("source").cloned().unwrap_or(Json::Null),
            node,
            args: data.get("args").cloned().unwrap_or_else(|| json!({})),
            began_ms: at_ms,
            paused_ms: 0,
            ended_ms: None,
            status: None,
            error: None,
            step: text("step"),
            is_interrupt: false,
        }
    }

    /// Tells whether the last part of a path is the step of the call.
    pub(super) fn is_of_step(&self, part: &str) -> bool {
        let rest = part.strip_prefix(self.step.as_str());
        !self.step.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('~'))
    }

    pub(super) fn end(&mut self, at_ms: i64, data: &Json) {
        let text = |key: &str| data.get(key).and_then(Json::as_str).map(str::to_owned);
        self.ended_ms = Some(at_ms);
        self.status = text("status");
        self.error = text("error");
    }

    /// Leaves the time that the call waited for a person out of the duration.
    pub(super) fn paused(&mut self, millis: i64) {
        self.paused_ms += millis.max(0);
    }

    fn millis(&self) -> Option<i64> {
        self.ended_ms
            .map(|ended| (ended - self.began_ms - self.paused_ms).max(0))
    }

    /// Returns the fields that both events of a call share.
    pub(super) fn fields(&self) -> Map<String, Json> {
        let mut fields = Map::new();
        fields.insert("tool_call_id".to_owned(), json!(self.id));
        fields.insert("tool_name".to_owned(), json!(self.name));
        fields.insert("tool_source".to_owned(), self.source.clone());
        fields.insert("args".to_owned(), self.args.clone());
        fields
    }

    /// Returns the additional fields of the end of a call.
    pub(super) fn outcome(&self, data: &Json) -> Map<String, Json> {
        let mut fields = Map::new();
        match &self.error {
            Some(error) => fields.insert("error".to_owned(), json!(error)),
            None => fields.insert(
                "result".to_owned(),
                data.get("result").cloned().unwrap_or(Json::Null),
            ),
        };
        fields.insert("status".to_owned(), json!(self.status));
        fields.insert("duration_ms".to_owned(), json!(self.millis()));
        fields
    }

    /// Returns the row of the audit. It contains the digest of the arguments, not the arguments.
    pub fn row(&self, run: &str) -> Json {
        json!({
            "run_id": run,
            "tool_call_id": self.id,
            "tool_name": self.name,
            "tool_source": self.source,
            "node_id": self.node,
            "args_sha256": digest_bytes(canonical(&self.args).as_bytes()),
            "status": self.status,
            "error": self.error,
            "duration_ms": self.millis(),
            "started_at": instant(self.began_ms),
            "finished_at": self.ended_ms.map_or(Json::Null, instant),
        })
    }
}

/// Returns JSON with sorted keys and without whitespace.
pub fn canonical(value: &Json) -> String {
    match value {
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Json::Object(members) => {
            let mut keys: Vec<&String> = members.keys().collect();
            keys.sort();
            let members: Vec<String> = keys
                .into_iter()
                .map(|key| format!("{}:{}", Json::from(key.as_str()), canonical(&members[key])))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_json_has_sorted_keys_and_no_whitespace() {
        let value = json!({"b": [1, {"d": null, "c": "x y"}], "a": 1.5});
        assert_eq!(
            canonical(&value),
            r#"{"a":1.5,"b":[1,{"c":"x y","d":null}]}"#
        );
    }
}
