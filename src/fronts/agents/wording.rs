//! Messages of steps in the words of the API: with its fields in place of the options of a step.

/// What messages call options of the step, and the fields of the API that set them.
const FIELDS: &[(&str, &str)] = &[
    ("`:active-tools`", "`active_tool_ids`"),
    ("`:knowledge`", "`knowledge_config`"),
    ("`:max-iterations`", "`max_steps`"),
    ("`:output`", "`output_schema`"),
    ("`:parameters`", "`parameters`"),
    ("`:step-rules`", "`step_rules`"),
    ("`:stop-when`", "`stop_conditions`"),
    ("`:tool-choice`", "`tool_choice`"),
];

/// Returns a message of a step in the words of the API.
pub fn of_message(message: &str) -> String {
    let fields = FIELDS.iter();
    fields.fold(message.to_owned(), |text, (option, field)| {
        text.replace(option, field)
    })
}

/// Returns the message of a failure. That of a refused connection says who may allow it.
pub fn of_failure(message: &str, kind: Option<&str>) -> String {
    let message = of_message(message);
    match kind == Some("denied") && message.contains("connect to") {
        true => format!(
            "{message}; `:allow {{:net [...]}}` of the server's flowstone.edn names the hosts that it may reach"
        ),
        false => message,
    }
}
