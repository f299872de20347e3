//! The playbook: how an agent builds a flow with the kit. One text, which every door delivers byte for byte.

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
