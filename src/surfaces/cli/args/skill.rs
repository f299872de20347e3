//! Arguments of `skill`.

use clap::Args;

use super::Home;

/// Prints the playbook of the build kit, the skill with which coding agents build flows
///
/// It is the text that the kit's MCP server gives as its instructions, as the prompt `build-a-flow` and as the resource
/// `flowstone://playbook`. With --write it is written to `.agents/skills` and `.claude/skills` of the project, where Codex,
/// Claude Code and similar agents load it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone skill
  flowstone skill --write")]
pub struct Skill {
    /// Write it where coding agents load skills from
    #[arg(long)]
    pub write: bool,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
