//! `:approval` and `:actions`: the choices of a wait, and the links for choosing.

use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;

use crate::connections::text_pairs;
use crate::fields::Fields;

/// The default template of a link.
const TEMPLATE: &str = "{base-url}/{workspace-id}/waits/{wait-id}/{action}?token={token}";
/// Variables of a link's template beside its `:params`.
const KNOWN: &[&str] = &["action", "base-url", "token", "wait-id", "workspace-id"];
/// The workspace in links if the settings name none.
const WORKSPACE: &str = "local";

/// Returns the actions that the wait offers, as keywords; `None` if any answer is allowed.
pub(super) fn actions(fields: Fields<'_>) -> Result<Vec<Value>, StepError> {
    let own = super::names(fields, "actions")?;
    let Some(approval) = fields.map("approval")? else {
        return Ok(own);
    };
    let approval = Fields::inside(":approval", approval)?;
    approval.only(&["actions", "params", "template"])?;
    Template::read(approval)?;
    let offered = super::names(approval, "actions")?;
    match (own.is_empty(), offered.is_empty()) {
        (false, false) if own != offered => Err(wrong(
            "`:actions` and `:approval {:actions ...}` say different things",
        )
        .hint("one of them is enough")),
        (false, _) => Ok(own),
        (true, false) => Ok(offered),
        (true, true) => Ok(["approve", "reject"].map(Value::keyword).to_vec()),
    }
}

fn wrong(message: impl Into<String>) -> StepError {
    StepError::config("E0718", message)
}

/// The construction of links.
struct Template {
    text: String,
    params: Vec<(String, String)>,
}

impl Template {
    fn read(approval: Fields<'_>) -> Result<Template, StepError> {
        let params = match approval.map("params")? {
            Some(params) => text_pairs(":approval :params", params)?,
            None => Vec::new(),
        };
        let text = approval.text("template")?.unwrap_or(TEMPLATE).to_owned();
        let mut rest = text.as_str();
        while let Some((_, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else {
                return Err(wrong("`:approval :template` has a `{` without its `}`"));
            };
            if !KNOWN.contains(&name) && !params.iter().any(|(known, _)| known == name) {
                return Err(wrong(format!(
                    "`:approval :template` names `{{{name}}}`, which is not there"
                ))
                .hint(format!(
                    "there are {}, and what `:params` holds",
                    KNOWN
                        .iter()
                        .map(|name| format!("`{{{name}}}`"))
                        .collect::<Vec<_>>()
                        .join(" ")
                )));
            }
            rest = after;
        }
        Ok(Template { text, params })
    }
}

/// The target of a link.
pub(super) struct Links<'a> {
    pub wait: &'a str,
    pub token: &'a str,
}

impl Links<'_> {
    /// Returns the link that chooses an action. In a project without a public URL it is a command instead, without the
    /// token.
    pub(super) fn to(
        &self,
        cx: &StepContext,
        config: Fields<'_>,
        action: &str,
    ) -> Result<String, StepError> {
        let nothing = Value::map([]);
        let approval = Fields::inside(":approval", config.map("approval")?.unwrap_or(&nothing))?;
        let template = Template::read(approval)?;
        let server = cx.settings().get("server");
        let setting = |key: &str| server?.get(key)?.as_str();
        let base = setting("url").map(|url| url.trim_end_matches('/'));
        if base.is_none() && template.text.contains("{base-url}") {
            return Ok(match action {
                "approve" | "reject" => format!("flowstone waits {action} {}", self.wait),
                _ => format!(
                    "flowstone waits complete {} --value '{{:action :{action}}}'",
                    self.wait
                ),
            });
        }
        let workspace = setting("workspace-id").unwrap_or(WORKSPACE);
        let known = [
            ("action", action),
            ("base-url", base.unwrap_or_default()),
            ("token", self.token),
            ("wait-id", self.wait),
            ("workspace-id", workspace),
        ];
        let own = template
            .params
            .iter()
            .map(|(name, text)| (&**name, &**text));
        Ok(filled(
            &template.text,
            &own.chain(known).collect::<Vec<_>>(),
        ))
    }
}

/// Replaces variables of a template in one pass: replaced values are not expanded again.
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        let value = values.iter().find(|(known, _)| *known == name);
        out.push_str(value.map_or("", |(_, value)| value));
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::filled;

    #[test]
    fn a_value_is_not_a_template() {
        assert_eq!(filled("a{x}b{y}c", &[("x", "{y}"), ("y", "2")]), "a{y}b2c");
        assert_eq!(filled("plain", &[]), "plain");
    }
}
