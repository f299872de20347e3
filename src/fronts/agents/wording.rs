//! Messages of steps in the words of the API: with its fields in place of the options of a step, and with the ids of tools in place
//! of the names that they have in the flow.

use super::records::Records;

/// What messages call options of the step, and the fields of the API that set them.
const FIELDS: &[(&str, &str)] = &[
    ("active-tools", "active_tool_ids"),
    ("client-tools", "tool_ids"),
    ("http-tools", "tool_ids"),
    ("knowledge", "knowledge_config"),
    ("max-iterations", "max_steps"),
    ("mcp-tools", "tool_ids"),
    ("output", "output_schema"),
    ("platform-tools", "tool_ids"),
    ("stop-when", "stop_conditions"),
    ("tools", "tool_ids"),
];
/// The beginnings of the names of tools in flows; the rest is the key of the tool.
const NAMES: &[&str] = &["agents/tool-", "mcp-"];
/// Number of characters of the key of a record, at least.
const KEY: usize = 16;

/// Returns a message of a step in the words of the API.
pub fn of_message(message: &str) -> String {
    let parts = message.split('`').enumerate();
    let parts: Vec<String> = parts
        .map(|(idx, part)| match option(part).filter(|_| idx % 2 == 1) {
            Some(name) => field(name),
            None => part.to_owned(),
        })
        .collect();
    NAMES
        .iter()
        .fold(parts.join("`"), |text, name| with_ids(&text, name))
}

/// Returns the name of an option in a quotation: `tool-choice` of `:tool-choice`.
fn option(quoted: &str) -> Option<&str> {
    let name = quoted.strip_prefix(':')?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'/');
    (!name.is_empty() && name.bytes().all(is_plain)).then_some(name)
}

fn field(option: &str) -> String {
    let known = FIELDS.iter().find(|(name, _)| *name == option);
    match known {
        Some((_, field)) => (*field).to_owned(),
        None if NAMES.iter().any(|name| option.starts_with(name)) => option.to_owned(),
        None => option.replace('-', "_"),
    }
}

/// Replaces names of tools, which begin with `name`, by ids.
fn with_ids(text: &str, name: &str) -> String {
    let mut parts = text.split(name);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_key = |char: &char| char.is_ascii_digit() || char.is_ascii_lowercase();
        match part.chars().take_while(is_key).count() >= KEY {
            true => {
                if out.ends_with(':') {
                    out.pop();
                }
                out.push_str(Records::Tools.prefix());
            }
            false => out.push_str(name),
        }
        out.push_str(part);
    }
    out
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_step_are_fields_of_the_api() {
        for (message, expected) in [
            (
                "`:tool-choice` requires a call",
                "`tool_choice` requires a call",
            ),
            (
                "an entry of `:http-tools` needs a `:url`",
                "an entry of `tool_ids` needs a `url`",
            ),
            ("`:output` asks for data", "`output_schema` asks for data"),
            (
                "give `:allow {:net [\"a\"]}`",
                "give `:allow {:net [\"a\"]}`",
            ),
            ("a :b `c`:d `e`", "a :b `c`:d `e`"),
        ] {
            assert_eq!(of_message(message), expected);
        }
    }

    #[test]
    fn names_of_tools_in_flows_are_their_ids() {
        let key = "06h0a1b2c3d4e5f6g7h8j9kamb";
        for (message, expected) in [
            (
                format!("the connection `:mcp-{key}` fails"),
                format!("the connection `tool_{key}` fails"),
            ),
            (
                format!("the adapter :agents/tool-{key}, which"),
                format!("the adapter tool_{key}, which"),
            ),
            (
                "the server mcp-one".to_owned(),
                "the server mcp-one".to_owned(),
            ),
        ] {
            assert_eq!(of_message(&message), expected);
        }
    }
}
