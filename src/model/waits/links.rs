//! Links by which a person decides a wait in a browser.

use flowstone_lang::value::Value;

use crate::json::name_text;
use crate::resource::segment;
use crate::text::printed;

/// The default template of a link.
const TEMPLATE: &str = "{base-url}/{workspace-id}/waits/{wait-id}/{action}?token={token}";
/// The workspace in links if the settings name none.
const WORKSPACE: &str = "local";
/// Variables of a template in addition to its own parameters.
pub const VARIABLES: &[&str] = &["action", "base-url", "token", "wait-id", "workspace-id"];

/// The template of a wait's links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkTemplate {
    pub text: String,
    /// Further variables of the template.
    pub params: Vec<(String, String)>,
}

/// The values for the links of a wait.
#[derive(Debug, Clone, Copy)]
pub struct LinkTarget<'a> {
    /// The address of the server, if one is known.
    pub base: Option<&'a str>,
    /// The settings of the project.
    pub settings: &'a Value,
    pub wait: &'a str,
    pub token: &'a str,
}

impl Default for LinkTemplate {
    fn default() -> LinkTemplate {
        LinkTemplate {
            text: TEMPLATE.to_owned(),
            params: Vec::new(),
        }
    }
}

impl LinkTemplate {
    /// Returns the template in the details of a wait.
    pub fn of(details: &Value) -> LinkTemplate {
        let show = details.get("show").unwrap_or(details);
        let approval = show.get("approval");
        let text = approval.and_then(|it| it.get("template"));
        let params = approval.and_then(|it| it.get("params"));
        let params = params.and_then(Value::as_map).map(|params| {
            let text = |value: &Value| name_text(value).unwrap_or_else(|| printed(value));
            let params = params.iter();
            params
                .filter_map(|(name, value)| Some((name_text(name)?, text(value))))
                .collect()
        });
        LinkTemplate {
            text: text
                .and_then(Value::as_str)
                .map_or_else(|| TEMPLATE.to_owned(), |text| text.to_string()),
            params: params.unwrap_or_default(),
        }
    }

    /// Returns the link that chooses an action; `None` if it needs the address of a server and none is known.
    pub fn link(&self, target: LinkTarget<'_>, action: &str) -> Option<String> {
        if target.base.is_none() && self.text.contains("{base-url}") {
            return None;
        }
        let server = target.settings.get("server");
        let workspace = server.and_then(|server| server.get("workspace-id"));
        let workspace = workspace.and_then(Value::as_str).unwrap_or(WORKSPACE);
        let action = segment(action);
        let known = [
            ("action", &*action),
            ("base-url", target.base.unwrap_or_default()),
            ("token", target.token),
            ("wait-id", target.wait),
            ("workspace-id", workspace),
        ];
        let own = self.params.iter().map(|(name, text)| (&**name, &**text));
        Some(filled(&self.text, &own.chain(known).collect::<Vec<_>>()))
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
    use super::*;
    use crate::codec;

    #[test]
    fn replaced_values_are_not_expanded_again() {
        assert_eq!(filled("a{x}b{y}c", &[("x", "{y}"), ("y", "2")]), "a{y}b2c");
        assert_eq!(filled("plain", &[]), "plain");
    }

    #[test]
    fn a_link_needs_an_address_only_where_its_template_has_one() {
        let settings = codec::decode("{:server {:workspace-id \"acme\"}}").expect("EDN");
        let target = |base| LinkTarget {
            base,
            settings: &settings,
            wait: "w1",
            token: "t1",
        };
        let usual = LinkTemplate::of(&Value::Nil);
        assert_eq!(usual.link(target(None), "approve"), None);
        assert_eq!(
            usual
                .link(target(Some("https://x.test")), "ask/why")
                .as_deref(),
            Some("https://x.test/acme/waits/w1/ask%2Fwhy?token=t1")
        );
        let own = codec::decode(
            "{:show {:approval {:template \"https://{host}/{wait-id}#{token}\" :params {:host \"chat.test\"}}}}",
        );
        let own = LinkTemplate::of(&own.expect("EDN"));
        assert_eq!(
            own.link(target(None), "approve").as_deref(),
            Some("https://chat.test/w1#t1")
        );
    }
}
