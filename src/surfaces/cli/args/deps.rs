//! Arguments of `flowstone deps`.

use clap::Args;

use super::Home;

/// Fetches the shared code that flowstone.edn names under `:deps`, and checks its digests
///
/// A folder is used where it is. The Clojure files of a git revision are copied into .flowstone/deps, if they have the digest that
/// flowstone.edn has. Without a digest there, nothing is copied, and the digest is printed. No other command fetches anything.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone deps
  flowstone deps --json")]
pub struct Deps {
    #[command(flatten)]
    pub home: Home,

    /// Print the dependencies as one JSON object
    #[arg(long)]
    pub json: bool,
}
