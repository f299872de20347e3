//! Templates: text with `{{ root.path }}`, where the root is `input` or `state`. They contain no expressions and no
//! code.
//!
//! Here a template is parsed and checked. A run renders it with `flow.graph/render` of the library, which parses it by the same
//! rules.

use serde_json::Value as Json;

use super::shape::{Issue, Position, shown};

/// The roots with which a path may begin.
pub const ROOTS: &[&str] = &["input", "state"];

/// A reference in a template: its parts, the root first.
pub type Reference<'a> = Vec<&'a str>;

/// Returns the texts between `{{` and `}}`, trimmed, and whether a `{{` is never closed.
pub fn tags(template: &str) -> (Vec<&str>, bool) {
    let mut tags = Vec::new();
    let mut rest = template;
    while let Some((_, after)) = rest.split_once("{{") {
        let Some((tag, after)) = after.split_once("}}") else {
            return (tags, true);
        };
        tags.push(tag.trim());
        rest = after;
    }
    (tags, false)
}

/// Returns the parts of a tag.
///
/// # Errors
/// When the tag is not a reference.
pub fn reference(tag: &str) -> Result<Reference<'_>, String> {
    let parts: Vec<&str> = tag.split('.').collect();
    let is_part = |part: &&str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    if !parts.iter().all(is_part) {
        let tag = shown(&Json::from(tag));
        return Err(format!(
            "expected a path such as `input.message` between {{{{ and }}}}, got {tag}"
        ));
    }
    match parts.first() {
        Some(root) if ROOTS.contains(root) => Ok(parts),
        _ => Err(format!(
            "unknown root `{}` of the template path `{tag}`: expected `input` or `state`",
            parts.first().unwrap_or(&"")
        )),
    }
}

/// Calls a function with each text in a value and its position.
pub fn texts<'a>(value: &'a Json, at: &Position<'_>, each: &mut dyn FnMut(&'a str, &Position<'_>)) {
    match value {
        Json::String(text) => each(text, at),
        Json::Array(items) => {
            for (idx, item) in items.iter().enumerate() {
                texts(item, &Position::Item(at, idx), each);
            }
        }
        Json::Object(members) => {
            for (key, item) in members {
                texts(item, &Position::Member(at, key), each);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// Adds the problems of a template, and returns its references.
pub fn check<'a>(
    template: &'a str,
    at: &Position<'_>,
    issues: &mut Vec<Issue>,
    warnings: &mut Vec<Issue>,
) -> Vec<Reference<'a>> {
    let (tags, is_open) = tags(template);
    if is_open {
        warnings.push(at.issue("`{{` is not closed by `}}`, so it stays as text"));
    }
    let mut references = Vec::new();
    for tag in tags {
        match reference(tag) {
            Ok(reference) => references.push(reference),
            Err(message) => issues.push(at.issue(message)),
        }
    }
    references
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_input_and_state_are_references() {
        assert_eq!(reference("input"), Ok(vec!["input"]));
        assert_eq!(
            reference("state.items.0.name"),
            Ok(vec!["state", "items", "0", "name"])
        );
        for wrong in [
            "",
            "env.HOME",
            "input.",
            "input..a",
            "state.a + 1",
            "input[0]",
            "#if input.a",
        ] {
            assert!(reference(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_open_tag_is_a_warning_and_a_wrong_root_an_issue() {
        let (mut issues, mut warnings) = (Vec::new(), Vec::new());
        let found = check(
            "{{ input.a }} {{secrets.b}} {{ input",
            &Position::Root,
            &mut issues,
            &mut warnings,
        );
        assert_eq!(found, [["input", "a"]]);
        assert!(
            issues[0].message.contains("unknown root `secrets`"),
            "{issues:?}"
        );
        assert_eq!(warnings.len(), 1);
    }
}
