//! `:notify` of a wait: notifies those who may answer, with links for the answers.

use flowstone_flow::step::{StepContext, StepError, WaitNotice};
use flowstone_lang::value::Value;
use serde_json::Value as Json;

use super::approval::{Links, actions};
use crate::fields::Fields;
use crate::notify::{self, Message, data};

const PLACE: &str = ":notify";

/// Rejects a notification that cannot be sent, before the wait is opened.
pub(super) fn check(cx: &StepContext, fields: Fields<'_>) -> Result<(), StepError> {
    let Some(config) = fields.map("notify")? else {
        return Ok(());
    };
    message(cx, config).map(|_| ())
}

fn message(cx: &StepContext, config: &Value) -> Result<Message, StepError> {
    let fields = Fields::nested(PLACE, config)?;
    fields.only(notify::KEYS)?;
    Message::read(cx, fields)
}

/// Sends the notification.
pub(super) async fn send(
    cx: &StepContext,
    fields: Fields<'_>,
    notice: &WaitNotice,
) -> Result<Value, StepError> {
    let Some(config) = fields.map("notify")? else {
        return Ok(Value::Nil);
    };
    let links = Links {
        wait: &notice.wait,
        token: &notice.token,
    };
    let mut urls = serde_json::Map::new();
    for action in actions(fields)? {
        if let Some(name) = crate::json::name_text(&action) {
            let url = links.to(cx, fields, &name)?;
            urls.insert(name, Json::String(url));
        }
    }
    let approval = links.to(cx, fields, "approve")?;
    let rejection = links.to(cx, fields, "reject")?;
    let own = [
        ("action-urls", Json::Object(urls)),
        ("approval-url", Json::String(approval.clone())),
        ("approvalUrl", Json::String(approval)),
        ("rejection-url", Json::String(rejection.clone())),
        ("rejectionUrl", Json::String(rejection)),
        ("run-id", Json::String(cx.run_id().to_string())),
        ("wait-id", Json::String(notice.wait.clone())),
        ("wait-key", Json::String(notice.key.clone())),
    ];
    let data = data(cx, Fields::nested(PLACE, config)?, own)?;
    let message = message(cx, config)?.rewritten(today);
    message.send(cx, &data).await
}

/// Older flows write `{approvalUrl}`, current ones `{{approval-url}}`.
fn today(value: &Value) -> Value {
    match value {
        Value::Text(text) if text.as_str().contains("Url}") => {
            let mut text = text.as_str().to_owned();
            for name in ["approvalUrl", "rejectionUrl"] {
                let (old, new) = (format!("{{{name}}}"), format!("{{{{{name}}}}}"));
                if !text.contains(&new) {
                    text = text.replace(&old, &new);
                }
            }
            Value::from(text)
        }
        Value::Map(map) => Value::map(map.iter().map(|(key, it)| (key.clone(), today(it)))),
        Value::Vector(items) => Value::vector(items.iter().map(today)),
        other => other.clone(),
    }
}
