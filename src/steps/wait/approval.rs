//! `:approval` and `:actions`: the choices of a wait, and the links for choosing.

use flowstone_flow::server_file;
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;
use flowstone_model::waits::{LinkTarget, LinkTemplate, VARIABLES};

use crate::connections::text_pairs;
use crate::fields::Fields;

/// Returns the actions that the wait offers, as keywords; `None` if any answer is allowed.
pub(super) fn actions(fields: Fields<'_>) -> Result<Vec<Value>, StepError> {
    let own = super::names(fields, "actions")?;
    let Some(approval) = fields.map("approval")? else {
        return Ok(own);
    };
    let approval = Fields::nested(":approval", approval)?;
    approval.only(&["actions", "params", "template"])?;
    template(approval)?;
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

/// Reads how links are made.
fn template(approval: Fields<'_>) -> Result<LinkTemplate, StepError> {
    let params = match approval.map("params")? {
        Some(params) => text_pairs(":approval :params", params)?,
        None => Vec::new(),
    };
    let usual = LinkTemplate::default();
    let text = approval.text("template")?.map(str::to_owned);
    let text = text.unwrap_or(usual.text);
    let mut rest = text.as_str();
    while let Some((_, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            return Err(wrong("`:approval :template` has a `{` without its `}`"));
        };
        if !VARIABLES.contains(&name) && !params.iter().any(|(known, _)| known == name) {
            return Err(wrong(format!(
                "`:approval :template` names `{{{name}}}`, which is not there"
            ))
            .hint(format!(
                "there are {}, and what `:params` holds",
                VARIABLES
                    .iter()
                    .map(|name| format!("`{{{name}}}`"))
                    .collect::<Vec<_>>()
                    .join(" ")
            )));
        }
        rest = after;
    }
    Ok(LinkTemplate { text, params })
}

/// The target of a link.
pub(super) struct Links<'a> {
    pub wait: &'a str,
    pub token: &'a str,
}

impl Links<'_> {
    /// Returns the link that chooses an action. In a project without a known server it is a command instead, without
    /// the token.
    pub(super) fn to(
        &self,
        cx: &StepContext,
        config: Fields<'_>,
        action: &str,
    ) -> Result<String, StepError> {
        let nothing = Value::map([]);
        let approval = Fields::nested(":approval", config.map("approval")?.unwrap_or(&nothing))?;
        let base = server_file::base(cx.settings(), cx.home());
        let target = LinkTarget {
            base: base.as_deref(),
            settings: cx.settings(),
            wait: self.wait,
            token: self.token,
        };
        let link = template(approval)?.link(target, action);
        Ok(link.unwrap_or_else(|| match action {
            "approve" | "reject" => format!("flowstone waits {action} {}", self.wait),
            _ => format!(
                "flowstone waits complete {} --value '{{:action :{action}}}'",
                self.wait
            ),
        }))
    }
}
