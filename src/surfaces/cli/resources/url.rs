//! `flowstone resources url`: creates and checks signed links.

use serde_json::json;

use super::ask_engine;
use crate::cli::args::ResourcesUrl;
use crate::cli::exit::Exit;
use crate::cli::report::Report;
use crate::cli::{App, Open, output};
use crate::json::{instant, resource_json};

/// Creates a link, or checks one.
pub(super) fn run(args: &ResourcesUrl, app: &dyn App) -> Result<Exit, Report> {
    if args.check {
        return check(args, app);
    }
    let (url, expires_ms) = ask_engine(app, &args.output, Open::Existing, async |engine| {
        engine.link(&args.uri, args.ttl).await
    })?;
    if args.output.json {
        output::json(&json!({"ok": true, "url": url, "expiresAt": instant(expires_ms)}));
    } else {
        output::data(&url);
    }
    Ok(Exit::Completed)
}

fn check(args: &ResourcesUrl, app: &dyn App) -> Result<Exit, Report> {
    let (row, expires_ms) = ask_engine(app, &args.output, Open::Existing, async |engine| {
        engine.check_link(&args.uri).await
    })?;
    let until = instant(expires_ms);
    if args.output.json {
        output::json(&json!({"ok": true, "resource": resource_json(&row), "expiresAt": until}));
    } else {
        let until = flowstone_engine::codec::instant(expires_ms);
        output::data(&format!("{} until {until}", row.uri));
    }
    Ok(Exit::Completed)
}
