//! The diagnostic log of the program: silent unless an environment variable enables it.

use std::io;

use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::{Context, Filter, Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

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
    if asked.trim().is_empty() {
        return;
    }
    let Some(filter) = filter(&asked) else {
        output::note(&format!(
            "warning: {name} is ignored: expected a level (error, warn, info, debug, trace) or directives such as \
             `flowstone_steps=trace`, got `{asked}`"
        ));
        return;
    };
    let log = tracing_subscriber::fmt::layer()
        .with_writer(Visible::default)
        .with_ansi(output::notes_show_color())
        .with_target(true);
    let all = tracing_subscriber::registry();
    let filter = WithSpans(filter);
    match std::env::var(FORMAT).as_deref() {
        Ok("json") => {
            all.with(log.json().flatten_event(true).with_filter(filter))
                .init();
        }
        Ok("text") | Err(_) => all.with(log.with_filter(filter)).init(),
        Ok(other) => {
            all.with(log.with_filter(filter)).init();
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

/// A filter of events. Our spans pass always, so that each event that passes has the fields of its request, run and step.
struct WithSpans(EnvFilter);

impl WithSpans {
    fn is_ours(metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("flowstone")
    }
}

impl<S: Subscriber> Filter<S> for WithSpans {
    fn enabled(&self, metadata: &Metadata<'_>, cx: &Context<'_, S>) -> bool {
        Self::is_ours(metadata) || Filter::enabled(&self.0, metadata, cx)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        // A filter of spans learns from this call which spans there are.
        let interest = Filter::<S>::callsite_enabled(&self.0, metadata);
        match Self::is_ours(metadata) {
            true => Interest::always(),
            false => interest,
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let hint = Filter::<S>::max_level_hint(&self.0)?;
        Some(match hint == LevelFilter::OFF {
            true => hint,
            // The levels of our spans.
            false => hint.max(LevelFilter::DEBUG),
        })
    }

    fn on_new_span(&self, attrs: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        Filter::on_new_span(&self.0, attrs, id, cx);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, cx: Context<'_, S>) {
        Filter::on_record(&self.0, id, values, cx);
    }

    fn on_enter(&self, id: &Id, cx: Context<'_, S>) {
        Filter::on_enter(&self.0, id, cx);
    }

    fn on_exit(&self, id: &Id, cx: Context<'_, S>) {
        Filter::on_exit(&self.0, id, cx);
    }

    fn on_close(&self, id: Id, cx: Context<'_, S>) {
        Filter::on_close(&self.0, id, cx);
    }
}

/// Parses the filter. A level alone applies to Flowstone; its libraries must be named.
fn filter(asked: &str) -> Option<EnvFilter> {
    let asked = asked.trim();
    let is_level = asked.parse::<LevelFilter>().is_ok();
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
