//! `flowstone resources table materialize-join`: joins two tables into a third.

use flowstone_lang::value::Value;

use super::render::{facts, show};
use super::{Config, Refused, perform, word};
use crate::cli::args::TableJoin;
use crate::cli::report::Report;
use crate::cli::{App, Open, input};

/// Joins them.
pub(super) fn run(args: &TableJoin, app: &dyn App) -> Result<(), Refused> {
    let config = Config::of("materialize-join")
        .with("left", side(&args.left, "--left")?)
        .with("right", side(&args.right, "--right")?)
        .listed("on", Some(&args.on))?
        .with("into", side(&args.into, "--into")?)
        .read("project", args.project.as_ref())?
        .text("join-type", args.join_type.as_deref())
        .text("op-id", args.op_id.as_deref());
    let done = perform(app, &args.home, Open::Existing, config)?;
    show(args.json, &done, || {
        facts(
            &done,
            &[
                "rows-written",
                "rows-inserted",
                "rows-updated",
                "row-count",
                "uri",
            ],
        )
    });
    Ok(())
}

/// Reads the name of a table, or a map with further options.
fn side(given: &str, option: &str) -> Result<Value, Report> {
    if given.starts_with("res://") {
        return Ok(named(Value::from(given)));
    }
    let value = word(input::read(given, option)?);
    Ok(match value {
        Value::Text(_) => named(value),
        value => value,
    })
}

fn named(name: Value) -> Value {
    Value::map([(Value::keyword("table"), name)])
}
