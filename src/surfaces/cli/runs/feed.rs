//! `flowstone runs feed`: prints the numbered events of a run, as the server sends them.

use std::time::Duration;

use clap::Args;
use flowstone_engine::{Engine, EngineError, FeedState};
use serde_json::Value;

use super::ask;
use crate::cli::args::Home;
use crate::cli::exit::Exit;
use crate::cli::interrupt::Interrupt;
use crate::cli::report::Report;
use crate::cli::rows::text;
use crate::cli::{App, output};
use crate::json::feed_event_json;

/// How often Ctrl-C is checked for while nothing happens.
const CHECK_EVERY: Duration = Duration::from_millis(150);
/// Maximum number of events that are read at a time.
const PAGE: usize = 500;

/// Prints the events of a run: its steps, turns, tool calls, waits and its end
///
/// Events are numbered from 1 without gaps, also over the passes of `flow/continue-as-new`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs feed r3
  flowstone runs feed r3 --follow --json | jq .event
  flowstone runs feed r3 --since 120")]
pub struct RunsFeed {
    /// The run's id, or the beginning of the id
    pub id: String,

    /// Keep printing events until the run ends
    #[arg(long, short)]
    pub follow: bool,

    /// Only events after this number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub since: i64,

    #[command(flatten)]
    pub home: Home,

    /// Print each event as one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Prints the events.
pub(super) fn run(args: &RunsFeed, app: &dyn App) -> Result<Exit, Report> {
    let interrupt = Interrupt::listen();
    ask(app, &args.home, async |engine| {
        follow(engine, args, &interrupt).await
    })
}

async fn follow(
    engine: &Engine,
    args: &RunsFeed,
    interrupt: &Interrupt,
) -> Result<Exit, EngineError> {
    let run = engine.find_run(&args.id).await?.id;
    let feeds = engine.feeds();
    let mut news = feeds.watch(&run);
    let mut reader = feeds.follow(&run, args.since).with_input();
    loop {
        news.mark_seen();
        let missing = || EngineError::NoSuchRun {
            run: run.to_string(),
        };
        let page = reader.page(PAGE).await?.ok_or_else(missing)?;
        for event in &page.events {
            print(&feed_event_json(event), args.json);
        }
        match page.state {
            FeedState::More => {}
            FeedState::Gone => {
                return Err(EngineError::Pruned {
                    run: run.to_string(),
                });
            }
            FeedState::Ended => return Ok(Exit::Completed),
            FeedState::Open if !args.follow => return Ok(Exit::Completed),
            FeedState::Open if interrupt.is_set() => return Ok(Exit::Interrupted),
            // Either there is news, or Ctrl-C is checked again.
            FeedState::Open => {
                let _ = tokio::time::timeout(CHECK_EVERY, news.changed()).await;
            }
        }
    }
}

/// Prints an event, as the API answers it.
pub fn print(event: &Value, as_json: bool) {
    if as_json {
        output::json_line(event);
        return;
    }
    let line = format!(
        "{:>5}  {}  {:<14} {}",
        event["seq"].as_i64().unwrap_or_default(),
        text(event, "at"),
        text(event, "event"),
        text(event, "path")
    );
    output::data(line.trim_end());
}
