//! `flowstone resources table`: the operations of the `:table` step on the command line. One file per subcommand.
//!
//! Each subcommand builds the config of a step and lets the engine perform it, so that selection, errors and results
//! are those of the step.

mod aggregate;
mod export;
mod get_row;
mod import;
mod materialize_join;
mod query;
mod recompute;
mod render;
mod schema;
mod set_column;
mod update_cell;
mod update_cell_format;

use std::path::PathBuf;

use flowstone_engine::Direct;
use flowstone_flow::step::StepError;
use flowstone_lang::value::{Exception, Value};

use super::ask;
use crate::cli::args::{Home, ResourcesTable, TableCommand, TableRow, TableTarget};
use crate::cli::exit::Exit;
use crate::cli::report::Report;
use crate::cli::{App, Open, input, output};

/// Why a subcommand failed, with the exit code.
struct Refused {
    report: Report,
    exit: Exit,
}

impl From<Report> for Refused {
    fn from(report: Report) -> Refused {
        // An argument cannot be parsed.
        let is_unread = Exception::READER_CODES.contains(&&*report.code)
            || [input::NOT_JSON, input::NOT_ONE].contains(&&*report.code);
        let exit = if is_unread { Exit::Usage } else { Exit::Failed };
        Refused { report, exit }
    }
}

impl From<StepError> for Refused {
    fn from(error: StepError) -> Refused {
        let exit = match error.kind {
            "bad-config" => Exit::Usage,
            _ => Exit::Failed,
        };
        let report = Report::error(error.code, error.message);
        let report = error.hints.into_iter().fold(report, Report::hint);
        Refused { report, exit }
    }
}

/// Performs the command.
pub fn run(args: &ResourcesTable, app: &dyn App) -> Exit {
    let (done, as_json) = match &args.command {
        TableCommand::Aggregate(args) => (aggregate::run(args, app), args.target.json),
        TableCommand::Export(args) => (export::run(args, app), args.target.json),
        TableCommand::GetRow(args) => (get_row::run(args, app), args.target.json),
        TableCommand::Import(args) => (import::run(args, app), args.target.json),
        TableCommand::MaterializeJoin(args) => (materialize_join::run(args, app), args.json),
        TableCommand::Query(args) => (query::run(args, app), args.target.json),
        TableCommand::Recompute(args) => (recompute::run(args, app), args.target.json),
        TableCommand::Schema(args) => (schema::run(args, app), args.target.json),
        TableCommand::SetColumn(args) => (set_column::run(args, app), args.target.json),
        TableCommand::UpdateCell(args) => (update_cell::run(args, app), args.target.json),
        TableCommand::UpdateCellFormat(args) => {
            (update_cell_format::run(args, app), args.target.json)
        }
    };
    match done {
        Ok(()) => Exit::Completed,
        Err(refused) => {
            output::failure(&refused.report, as_json);
            refused.exit
        }
    }
}

/// The config of a step under construction.
struct Config(Vec<(Value, Value)>);

impl Config {
    fn of(op: &str) -> Config {
        Config(Vec::new()).with("op", Value::keyword(op))
    }

    /// Starts a config with the table and its partitions.
    fn on(op: &str, target: &TableTarget) -> Config {
        Config::of(op).with("table", table(target))
    }

    fn with(mut self, key: &str, value: Value) -> Config {
        self.0.push((Value::keyword(key), value));
        self
    }

    /// Adds a value given as EDN or JSON.
    fn read(self, key: &str, given: Option<&String>) -> Result<Config, Report> {
        match given {
            None => Ok(self),
            Some(given) => Ok(self.with(key, input::read(given, &format!("--{key}"))?)),
        }
    }

    /// Adds a list, or a single value.
    fn listed(self, key: &str, given: Option<&String>) -> Result<Config, Report> {
        let Some(given) = given else {
            return Ok(self);
        };
        let value = input::read(given, &format!("--{key}"))?;
        let value = match value {
            Value::Symbol(_) | Value::Text(_) | Value::Keyword(_) | Value::Map(_) => {
                Value::vector([word(value)])
            }
            value => value,
        };
        Ok(self.with(key, value))
    }

    fn names(self, key: &str, names: &[String]) -> Config {
        match names {
            [] => self,
            names => self.with(
                key,
                Value::vector(names.iter().map(|name| Value::from(name.trim()))),
            ),
        }
    }

    fn int(self, key: &str, given: Option<i64>) -> Config {
        match given {
            None => self,
            Some(int) => self.with(key, Value::Int(int)),
        }
    }

    fn text(self, key: &str, given: Option<&str>) -> Config {
        match given {
            None => self,
            Some(text) => self.with(key, Value::from(text)),
        }
    }

    fn row(self, row: &TableRow) -> Result<Config, Report> {
        self.int("row-id", row.row_id).read("key", row.key.as_ref())
    }

    fn value(self) -> Value {
        Value::map(self.0)
    }
}

/// Reads a single word as a string, so that it needs no quotes within those of the shell.
fn word(value: Value) -> Value {
    match &value {
        Value::Symbol(symbol) => Value::from(symbol.parts().to_string()),
        _ => value,
    }
}

fn table(target: &TableTarget) -> Value {
    if target.partition_keys.is_empty() {
        return Value::from(target.table.as_str());
    }
    let keys = target
        .partition_keys
        .iter()
        .map(|key| Value::from(key.as_str()));
    let partitions = match target.partition_keys.as_slice() {
        [key] => (Value::keyword("key"), Value::from(key.as_str())),
        _ => (Value::keyword("keys"), Value::vector(keys)),
    };
    let key = if target.table.starts_with("res://") {
        "ref"
    } else {
        "table"
    };
    Value::map([
        (Value::keyword(key), Value::from(target.table.as_str())),
        (Value::keyword("partitions"), Value::map([partitions])),
    ])
}

/// Performs a step through the engine.
fn perform(app: &dyn App, home: &Home, open: Open, config: Config) -> Result<Value, Refused> {
    perform_in(app, home, open, (config, None))
}

/// Performs a step that may use the files of a folder.
fn perform_in(
    app: &dyn App,
    home: &Home,
    open: Open,
    (config, folder): (Config, Option<PathBuf>),
) -> Result<Value, Refused> {
    let direct = Direct {
        kind: "table",
        config: config.value(),
        folder,
    };
    ask(app, home, open, async |engine| {
        Ok(engine.perform(direct).await)
    })?
    .map_err(Refused::from)
}
