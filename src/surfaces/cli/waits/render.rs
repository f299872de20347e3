//! A wait as text and as JSON. Neither contains its token.

use flowstone_engine::codec;
use flowstone_engine::ports::WaitRow;
use flowstone_engine::waits::{accepts, actions, roles};
use flowstone_fronts::tree::is_of_driver;
use flowstone_lang::value::Value;

/// Returns the command that answers a wait.
pub fn how_to_answer(wait: &WaitRow) -> String {
    if is_of_driver(wait) {
        return format!("{}: flowstone tree next {}", wait.key, wait.run);
    }
    let details = codec::decode(&wait.details).unwrap_or(Value::Nil);
    let offered = actions(&details);
    let role = roles(&details)
        .first()
        .map_or_else(String::new, |role| format!(" --as NAME --role {role}"));
    let offers = |action: &str| offered.iter().any(|known| known == action);
    let usual = offered.first().map_or("approve", |action| action.as_str());
    if !accepts(&details, &format!("{{:action :{usual}}}")) {
        let form = details
            .get("validation")
            .and_then(|form| codec::encode(form).ok());
        let form = form.unwrap_or_else(|| "what it asks for".to_owned());
        return format!(
            "{}: flowstone waits complete {} --value EDN{role}, with a value that fits {form}",
            wait.key, wait.id
        );
    }
    let verb = match offered.first() {
        Some(_) if offers("approve") && offers("reject") => "approve|reject".to_owned(),
        Some(_) if offers("approve") => "approve".to_owned(),
        _ => "complete".to_owned(),
    };
    let validation = details.get("validation").filter(|it| !it.is_nil());
    let value = match (&*verb, offered.first(), validation) {
        ("complete", Some(action), _) => format!(" --value '{{:action :{action}}}'"),
        ("complete", None, Some(_)) => " --value VALUE".to_owned(),
        ("complete", None, None) => " --value '{:action :approve}'".to_owned(),
        _ => String::new(),
    };
    let wanted = match validation.map(codec::encode) {
        Some(Ok(form)) if !form.contains('\n') => format!("  (VALUE as {form})"),
        _ => String::new(),
    };
    let wanted = if value.ends_with("VALUE") {
        &*wanted
    } else {
        ""
    };
    format!(
        "{}: flowstone waits {verb} {}{value}{role}{wanted}",
        wait.key, wait.id
    )
}
