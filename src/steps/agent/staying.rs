//! The order of several connections in an agent's next turn.
//!
//! Once a connection has answered, it is asked first, so that one conversation does not change models from turn to turn
//! and its provider's prompt cache is used.

use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;

use crate::json::items;

/// Moves the connection that answered the last turn to the front of a turn's connections. Those before it follow at the
/// end.
pub(super) fn stay(config: &mut [(Value, Value)], answered: Option<&Value>) {
    let Some(answered) = answered.and_then(name_of) else {
        return;
    };
    let key = Value::keyword("connection");
    let Some((_, connection)) = config.iter_mut().find(|(it, _)| *it == key) else {
        return;
    };
    let Some(mut names) = items(connection) else {
        return;
    };
    let at = names
        .iter()
        .position(|it| name_of(it).is_some_and(|name| name == answered));
    names.rotate_left(at.unwrap_or(0));
    *connection = Value::vector(names);
}
