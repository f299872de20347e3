//! Limits of runs and evaluations, as options.

use clap::Args;
use flowstone_engine::parse_memory;

/// Options of commands that execute runs.
#[derive(Debug, Clone, Default, Args)]
pub struct RunLimits {
    /// Maximum memory for the values of a run, such as 512MB [default: `:limits :memory` of flowstone.edn, or 512MB]
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub max_memory: Option<usize>,
}
