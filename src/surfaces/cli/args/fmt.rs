//! Arguments of `flowstone fmt`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Formats flow files and other Clojure source
///
/// Changes only the blanks between forms: indentation, blank lines, spaces at line ends, and where closing brackets are.
/// Comments stay, and a program reads as before. A file with an unbalanced bracket is left as it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone fmt flows/
  flowstone fmt --check flows/ lib/
  flowstone fmt --stdin < flows/orders.edn")]
pub struct Fmt {
    /// Files, or folders with files ending in .clj, .cljc or .edn
    #[arg(required_unless_present = "stdin", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// Change nothing, list the files that would change, and exit with 1 if there are any
    #[arg(long)]
    pub check: bool,

    /// Format standard input to standard output
    #[arg(long, conflicts_with = "paths")]
    pub stdin: bool,

    /// Print the files as one JSON object
    #[arg(long)]
    pub json: bool,
}
