//! Events of a run's feed in the form in which they are sent: a name, a number, and data as JSON.

use serde_json::{Map, Value as Json, json};

use crate::ids::RunId;
use crate::json::{compact, to_exact_json};
use flowstone_lang::value::{Object, Value};

/// An event of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedEvent {
    /// The number of the event in the run, counted from 1 without gaps.
    pub seq: i64,
    /// The position in the project; only in the feed of a project.
    pub position: Option<i64>,
    /// The name of the event, such as `step.completed`.
    pub name: &'static str,
    pub at_ms: i64,
    pub run: RunId,
    /// The slug of the flow.
    pub flow: String,
    /// The fields of this kind of event. Numbers that [`Json`] cannot hold are marked as [`to_exact_json`] marks them,
    /// so write it with [`FeedEvent::text`] or [`compact`].
    pub data: Map<String, Json>,
}

impl FeedEvent {
    /// Returns the event as one object, without its name and position: the data of a server-sent event.
    pub fn to_json(&self) -> Json {
        let mut fields = Map::new();
        fields.insert("seq".to_owned(), json!(self.seq));
        fields.insert("run".to_owned(), json!(self.run.as_str()));
        fields.insert("flow".to_owned(), json!(self.flow));
        fields.insert("at".to_owned(), instant(self.at_ms));
        fields.extend(self.data.clone());
        Json::Object(fields)
    }

    /// Returns [`FeedEvent::to_json`] as text on one line.
    pub fn text(&self) -> String {
        compact(&self.to_json())
    }
}

/// Returns milliseconds since 1970 as an ISO 8601 string.
pub fn instant(millis: i64) -> Json {
    let instant = Value::Object(std::rc::Rc::new(Object::Inst(millis)));
    to_exact_json(&instant).unwrap_or(Json::Null)
}
