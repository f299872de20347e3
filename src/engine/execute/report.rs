//! Reports of a flow while it is executed: log lines and its own events. Each is reported once, and not again on
//! replay.

use flowstone_lang::value::{Result as Evaluated, Value};

use super::Executor;
use super::branch::Branch;
use crate::codec;
use crate::flow::name_of;
use crate::observer::RunEvent;

impl Executor<'_> {
    pub(super) fn log(
        &self,
        branch: &Branch,
        level: &Value,
        message: &Value,
        data: Value,
    ) -> Evaluated<Value> {
        let level = name_of(level).unwrap_or_else(|| "info".into()).to_string();
        let message = match message {
            Value::Text(text) => text.to_string(),
            other => codec::encode(other).unwrap_or_else(|_| other.kind().to_owned()),
        };
        let record = Value::map([
            (Value::keyword("level"), Value::from(level.as_str())),
            (Value::keyword("message"), Value::from(message.as_str())),
            (Value::keyword("data"), data.clone()),
        ]);
        if self.shared.record_line(branch, "flow/log", &record)? {
            self.emit(&RunEvent::Log {
                level,
                message,
                data,
            });
        }
        Ok(Value::Nil)
    }

    pub(super) fn emitted(&self, branch: &Branch, name: &Value, data: Value) -> Evaluated<Value> {
        let name = name_of(name).unwrap_or_default().to_string();
        let record = Value::map([
            (Value::keyword("name"), Value::from(name.as_str())),
            (Value::keyword("data"), data.clone()),
        ]);
        if self.shared.record_line(branch, "flow/emit", &record)? {
            self.emit(&RunEvent::Emitted { name, data });
        }
        Ok(Value::Nil)
    }
}
