//! What a server keeps of a run, besides its steps: the events of `runs feed`, the spans of `runs spans`, and the file
//! of `runs export`.

use std::thread;

use flowstone_engine::archive::Archive;

use super::{PAGE, Remote, local_only};
use crate::cli::args::{RunsExport, RunsSpans};
use crate::cli::exit::Exit;
use crate::cli::interrupt::Interrupt;
use crate::cli::outcome::of_engine_error;
use crate::cli::report::Report;
use crate::cli::rows::list;
use crate::cli::runs::feed::RunsFeed;
use crate::cli::runs::{events, export, feed, spans};

/// Prints the events of a run. With `--follow`, asks for more until the run ends.
pub(super) fn feed(remote: &Remote, args: &RunsFeed) -> Result<Exit, Report> {
    let interrupt = Interrupt::listen();
    let mut since = args.since;
    loop {
        let query = [
            ("full", "true".to_owned()),
            ("limit", PAGE.to_string()),
            ("since_seq", since.to_string()),
        ];
        let page = remote.get(&["runs", &args.id, "feed"], &query)?;
        for event in list(&page, "events") {
            since = event["seq"].as_i64().unwrap_or(since);
            feed::print(event, args.json);
        }
        let is_full = !page["next"].is_null();
        if !is_full && (page["ended"] == true || !args.follow) {
            return Ok(Exit::Completed);
        }
        if interrupt.is_set() {
            return Ok(Exit::Interrupted);
        }
        if !is_full {
            thread::sleep(events::LOOK_EVERY);
        }
    }
}

pub(super) fn spans(remote: &Remote, args: &RunsSpans) -> Result<Exit, Report> {
    if args.send {
        return Err(local_only("`runs spans --send`"));
    }
    let shown = remote.get(&["runs", &args.id, "spans"], &[])?;
    spans::tell(&shown["spans"], args);
    Ok(Exit::Completed)
}

pub(super) fn export(remote: &Remote, args: &RunsExport) -> Result<Exit, Report> {
    let query = [("children", args.children.to_string())];
    let text = remote.bytes(&["runs", &args.id, "export"], &query)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let archive = Archive::read(&text).map_err(|error| of_engine_error(&error.into()))?;
    export::store(&archive, text, args)
}
