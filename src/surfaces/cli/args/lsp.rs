//! Arguments of `flowstone lsp`.

use clap::Args;

use super::Home;

/// Serves an editor: the Language Server Protocol on standard input and output
///
/// Checks flows while they are written, completes and describes names and the keys of steps, and formats. Editors start
/// it; the page `guide/editors` of the manual says how to set them up.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone lsp
  flowstone docs show guide/editors")]
pub struct Lsp {
    #[command(flatten)]
    pub home: Home,

    /// Accepted because many editors pass it; standard input and output are always used
    #[arg(long, hide = true)]
    pub stdio: bool,
}
