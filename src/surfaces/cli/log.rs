//! The log for those who look for a mistake in Flowstone or a slow step: silent unless asked for.

use tracing_subscriber::EnvFilter;

/// Says what to log, such as `debug` or `flowstone_engine=trace`.
const VARIABLE: &str = "FLOWSTONE_LOG";

/// Starts the log on standard error where the variable is set.
pub fn start() {
    let Ok(filter) = EnvFilter::try_from_env(VARIABLE) else {
        return;
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(true)
        .init();
}
