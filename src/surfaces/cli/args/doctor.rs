//! Arguments of `flowstone doctor`.

use clap::Args;

use super::Home;

/// Examines the project and the machine, and says what would go wrong
///
/// Looks at the settings, the stored data, the flows, the secrets of connections, programs that steps start, and how long a
/// write to the disk takes. Sends nothing and changes nothing. `flowstone connections test` also calls the servers.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone doctor
  flowstone doctor --json")]
pub struct Doctor {
    #[command(flatten)]
    pub home: Home,

    /// Print the findings as one JSON object
    #[arg(long)]
    pub json: bool,
}
