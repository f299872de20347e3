//! The diagnostic log of the program: silent unless an environment variable enables it.

use std::io;

use tracing_subscriber::EnvFilter;

use super::output;

/// The variable with the filter: a level such as `debug`, or directives such as `flowstone_steps=trace,hyper=debug`.
const WHAT: &str = "FLOWSTONE_LOG";
/// The variable that other programs use for the same, read where the first one is not set.
const USUAL: &str = "RUST_LOG";
/// The variable with the format: `text` or `json`.
const FORMAT: &str = "FLOWSTONE_LOG_FORMAT";

/// Starts the log on standard error if the variable is set.
pub fn start() {
    let set = |name| Some((name, std::env::var(name).ok()?));
    let Some((name, asked)) = set(WHAT).or_else(|| set(USUAL)) else {
        return;
    };
    let Some(filter) = filter(&asked) else {
        output::note(&format!(
            "warning: {name} is ignored: expected a level (error, warn, info, debug, trace) or directives such as \
             `flowstone_steps=trace`, got `{asked}`"
        ));
        return;
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(Visible::default)
        .with_ansi(output::notes_show_color())
        .with_target(true);
    match std::env::var(FORMAT).as_deref() {
        Ok("json") => log.json().flatten_event(true).init(),
        Ok("text") | Err(_) => log.init(),
        Ok(other) => {
            log.init();
            output::note(&format!(
                "warning: {FORMAT} is ignored: expected `text` or `json`, got `{other}`"
            ));
        }
    }
}

/// Standard error with control sequences escaped. An event is written when it is complete.
#[derive(Default)]
struct Visible {
    event: Vec<u8>,
}

impl io::Write for Visible {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.event.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Visible {
    fn drop(&mut self) {
        output::log(&String::from_utf8_lossy(&self.event));
    }
}

/// Parses the filter. A level alone applies to Flowstone; its libraries must be named.
fn filter(asked: &str) -> Option<EnvFilter> {
    let asked = asked.trim();
    let is_level = asked.parse::<tracing::level_filters::LevelFilter>().is_ok();
    let directives = match is_level {
        true => format!("warn,flowstone={asked}"),
        false => asked.to_owned(),
    };
    EnvFilter::try_new(directives).ok()
}

#[cfg(test)]
mod tests {
    use super::filter;

    #[test]
    fn a_level_alone_is_about_flowstone() {
        let shown = |asked: &str| filter(asked).map(|filter| filter.to_string());
        assert_eq!(shown("debug").as_deref(), Some("flowstone=debug,warn"));
        assert_eq!(shown("hyper=trace").as_deref(), Some("hyper=trace"));
        assert_eq!(shown("a=b=c"), None);
    }
}
