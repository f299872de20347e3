//! `flowstone gc`: removes data that is not kept any longer, and reports how much.

use flowstone_engine::ports::{Removed, Usage};
use flowstone_engine::{GcOptions, GcReport};
use serde_json::{Value, json};

use super::ask;
use crate::cli::args::Gc;
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::report::Report;
use crate::cli::{App, output};

/// Removes the data, and reports what was removed.
pub(super) fn run(args: &Gc, app: &dyn App) -> Result<Exit, Report> {
    if !Project::find(&args.home).home.is_dir() {
        tell(args, &GcReport::default());
        return Ok(Exit::Completed);
    }
    let report = ask(app, &args.home, async |engine| {
        let mut retention = engine.retention();
        retention.journal = args.older_than.or(retention.journal);
        retention.keep_last = args.keep_last.unwrap_or(retention.keep_last);
        retention.max_bytes = args.max_size.or(retention.max_bytes);
        let options = GcOptions {
            retention,
            dry_run: args.dry_run,
            compact: args.compact,
            limit: 0,
        };
        engine.collect_garbage(&options).await
    })?;
    tell(args, &report);
    Ok(Exit::Completed)
}

fn tell(args: &Gc, report: &GcReport) {
    if args.json {
        output::json(&in_json(args, report));
    } else {
        output::data(&describe(args, report));
    }
}

fn describe(args: &Gc, report: &GcReport) -> String {
    let verb = if args.dry_run {
        "would remove"
    } else {
        "removed"
    };
    let mut out = format!(
        "{verb} the journals of {} runs: {} entries, {}\n",
        report.runs.len(),
        report.entries.count,
        size(report.entries.bytes)
    );
    let rows = Removed {
        count: report.forgotten,
        bytes: 0,
    };
    let changesets = Removed {
        count: report.changesets,
        bytes: 0,
    };
    let names = Removed {
        count: report.resources,
        bytes: 0,
    };
    let expired = Removed {
        count: report.expired,
        bytes: 0,
    };
    let signals = Removed {
        count: report.signals,
        bytes: 0,
    };
    let others = [
        ("large values", report.payloads),
        ("rows of runs", rows),
        ("sources of flows", report.programs),
        ("resources that expired", expired),
        ("changesets", changesets),
        ("names of blobs", names),
        ("files of blobs", report.blobs),
        ("contents of source trees", report.contents),
        ("temporary folders of runs", report.folders),
        ("signals that waits took", signals),
    ];
    for (what, removed) in others {
        if removed.count > 0 {
            out.push_str(&format!("{verb} {} {what}", removed.count));
            if removed.bytes > 0 {
                out.push_str(&format!(": {}", size(removed.bytes)));
            }
            out.push('\n');
        }
    }
    out.push_str(&format!("the database takes {}\n", usage(report.after)));
    out
}

fn usage(usage: Usage) -> String {
    format!(
        "{}, {} of it free",
        size(usage.file_bytes),
        size(usage.free_bytes)
    )
}

/// Describes an amount of data.
pub fn size(bytes: u64) -> String {
    match bytes {
        ..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

/// Returns the report as JSON. The names of the fields are stable.
fn in_json(args: &Gc, report: &GcReport) -> Value {
    let removed = |removed: Removed| json!({"count": removed.count, "bytes": removed.bytes});
    let usage =
        |usage: Usage| json!({"fileBytes": usage.file_bytes, "freeBytes": usage.free_bytes});
    let runs: Vec<&str> = report.runs.iter().map(|run| run.as_str()).collect();
    json!({
        "ok": true,
        "dryRun": args.dry_run,
        "runs": runs,
        "entries": removed(report.entries),
        "payloads": removed(report.payloads),
        "rows": report.forgotten,
        "programs": removed(report.programs),
        "expired": report.expired,
        "changesets": report.changesets,
        "resources": report.resources,
        "blobs": removed(report.blobs),
        "contents": removed(report.contents),
        "folders": removed(report.folders),
        "signals": report.signals,
        "bytes": report.bytes(),
        "before": usage(report.before),
        "after": usage(report.after),
    })
}
