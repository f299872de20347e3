//! The playbook: how an agent builds a flow with the kit. One text, which every door delivers byte for byte.

use flowstone_project::registry::{FlowRegistry, MAIN_FILE, RegistryError};

/// The playbook, in the format of skills: front matter and Markdown.
pub const TEXT: &str = include_str!("playbook/SKILL.md");
/// The name of the skill, of the prompt, and of the folder that clients load.
pub const NAME: &str = "build-a-flow";
/// The resource under which clients of MCP read it.
pub const URI: &str = "flowstone://playbook";
/// What lists show about it.
pub const DESCRIPTION: &str =
    "How to build, test and schedule a flow with the tools of the build kit.";
/// Maximum size, because it is the first thing that a model reads.
pub const MOST_BYTES: usize = 6 << 10;

/// The folders in which Codex and Claude Code look for skills, from the project's folder.
pub const FOLDERS: &[&str] = &[".agents/skills", ".claude/skills"];

/// Maximum number of characters of a flow's text that an agent gets with its instructions.
const MOST_TEXT: usize = 20_000;

/// Returns what an agent of a run gets with its instructions: the playbook, and the flow that it builds.
///
/// # Errors
/// When the registry cannot be read.
pub async fn for_run(registry: &FlowRegistry, slug: &str) -> Result<String, RegistryError> {
    let head = head(registry, slug, MOST_TEXT).await?;
    Ok(format!(
        "{TEXT}\n## The flow\n\nYou are part of a run of the flow `{slug}`, and it is the flow that the tools work on. \
         `annotate_trace` writes to the trace of this run. A person is asked about calls that change something; you get their answer \
         as the result of the call.\n\n{head}"
    ))
}

/// Describes the newest revision of a flow: its id and its text, of which at most `most_chars` characters are shown.
///
/// # Errors
/// When the registry cannot be read.
pub async fn head(
    registry: &FlowRegistry,
    slug: &str,
    most_chars: usize,
) -> Result<String, RegistryError> {
    let head = match registry.pointers(slug).await {
        Ok(found) => found.head,
        Err(RegistryError::NoFlow { .. }) => return Ok(no_flow(slug)),
        Err(error) => return Err(error),
    };
    let files = registry.files(&head).await?;
    let text = files
        .get(MAIN_FILE)
        .map(|bytes| String::from_utf8_lossy(bytes));
    let text = text.unwrap_or_default();
    let text = text.trim_end();
    let (shown, rest) = match text.char_indices().nth(most_chars) {
        Some((end, _)) => (
            &text[..end],
            "\nThe text is longer: `read_config` returns it.\n",
        ),
        None => (text, ""),
    };
    Ok(format!(
        "The newest revision of the flow `{slug}` is `{}` (version {}): its `base_revision_id`.\n\n```clojure\n{shown}\n```\n{rest}",
        head.revision, head.number,
    ))
}

/// Says that a flow has no revision.
pub fn no_flow(slug: &str) -> String {
    format!("The flow `{slug}` does not exist yet in the registry: its first commit creates it.\n")
}

/// Says that the caller may not read a flow, without saying whether it exists.
pub fn unread_flow(slug: &str) -> String {
    format!(
        "The token of this session may not read the text of the flow `{slug}`: it lacks the scope `read`.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::catalog;

    #[test]
    fn the_playbook_is_short_and_names_tools_that_exist() {
        assert!(TEXT.len() <= MOST_BYTES, "{} bytes", TEXT.len());
        assert!(TEXT.starts_with(&format!("---\nname: {NAME}\n")));
        let default = catalog::TOOLS.iter().filter(|tool| tool.default_on);
        for tool in default.map(|tool| tool.name) {
            let is_core = matches!(
                tool,
                "discover_tools"
                    | "request_connection"
                    | "commit_revision"
                    | "test_run"
                    | "annotate_trace"
                    | "create_schedule"
            );
            assert!(!is_core || TEXT.contains(tool), "{tool}");
        }
    }
}
