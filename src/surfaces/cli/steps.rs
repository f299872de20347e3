//! `flowstone steps`: lists and describes step types, and performs single steps.

mod preview;
mod run;

use flowstone_engine::text::nearest;
use flowstone_flow::step::{
    Field, Operation, Step, StepSpec, config_schema, operation_schema, result_schema, tool_schema,
};
use serde_json::{Value as Json, json};

use super::args::{Steps, StepsCommand, StepsList, StepsSchema, StepsShow};
use super::exit::Exit;
use super::report::Report;
use super::table::{Column, table};
use super::{App, output, reference};
use crate::json::{field_json, ok, operation_json, operation_names, spec_json, step_summary_json};

/// Performs the command.
pub fn run(args: &Steps, app: &dyn App) -> Exit {
    let (done, as_json) = match &args.command {
        StepsCommand::List(args) => (list(args, app), args.json),
        StepsCommand::Run(args) => (run::run(args, app), args.show.json),
        StepsCommand::Schema(args) => (schema(args, app), false),
        StepsCommand::Show(args) => (show(args, app), args.json),
    };
    done.unwrap_or_else(|report| {
        output::failure(&report, as_json);
        Exit::Failed
    })
}

/// Returns the specs, sorted by step type.
fn specs(steps: &[Box<dyn Step>]) -> Vec<&'static StepSpec> {
    let mut specs: Vec<&StepSpec> = steps.iter().map(|step| step.spec()).collect();
    specs.sort_by_key(|spec| spec.kind);
    specs
}

/// Finds a step type by the name that was typed.
fn find(steps: &[Box<dyn Step>], typed: &str) -> Result<&'static StepSpec, Report> {
    let name = typed.trim_start_matches(':');
    let specs = specs(steps);
    let is_meant = |spec: &&&StepSpec| spec.kind == name || spec.aliases.contains(&name);
    if let Some(spec) = specs.iter().find(is_meant) {
        return Ok(spec);
    }
    let report = Report::error("E0946", format!("there is no step type `{name}`"));
    Err(match nearest(name, specs.iter().map(|spec| spec.kind)) {
        Some(near) => report.hint(format!("did you mean `{near}`?")),
        None => report.hint("`flowstone steps list` shows what there is"),
    })
}

/// Returns the page of a step type; `None` if the type does not exist.
pub fn describe(steps: &[Box<dyn Step>], typed: &str) -> Option<String> {
    let spec = find(steps, typed).ok()?;
    Some(reference::step_page(spec).trim_start().to_owned())
}

fn find_operation(spec: &StepSpec, typed: &str) -> Result<&'static Operation, Report> {
    let name = typed.trim_start_matches(':');
    let Some(operations) = &spec.operations else {
        let message = format!("a `{}` step has no operations", spec.kind);
        return Err(Report::error("E0947", message).hint("leave the operation out"));
    };
    operations.find(name).ok_or_else(|| {
        let names = operations.all.iter().map(|operation| operation.name);
        let message = format!("a `{}` step has no operation `{name}`", spec.kind);
        let report = Report::error("E0947", message);
        match nearest(name, names.clone()) {
            Some(near) => report.hint(format!("did you mean `{near}`?")),
            None => {
                let names: Vec<&str> = names.collect();
                report.hint(format!("there are {}", names.join(", ")))
            }
        }
    })
}

fn list(args: &StepsList, app: &dyn App) -> Result<Exit, Report> {
    let steps = app.steps();
    let specs = specs(&steps);
    if args.json {
        let steps: Vec<Json> = specs.iter().map(|spec| step_summary_json(spec)).collect();
        output::json(&json!({"ok": true, "steps": steps}));
        return Ok(Exit::Completed);
    }
    let rows = specs.iter().map(|spec| {
        let operations = operation_names(spec).join(" ");
        vec![
            spec.kind.to_owned(),
            first_sentence(spec.doc).to_owned(),
            operations,
        ]
    });
    output::data(&table(
        &[
            Column::Whole("type"),
            Column::Cut("what"),
            Column::Cut("operations"),
        ],
        rows,
    ));
    Ok(Exit::Completed)
}

fn show(args: &StepsShow, app: &dyn App) -> Result<Exit, Report> {
    let steps = app.steps();
    let spec = find(&steps, &args.kind)?;
    let operation = match &args.operation {
        Some(name) => Some(find_operation(spec, name)?),
        None => None,
    };
    match (args.json, operation) {
        (true, None) => output::json(&ok(spec_json(spec))),
        (true, Some(operation)) => {
            let mut object = ok(operation_json(operation));
            object["type"] = json!(spec.kind);
            let fields = spec.fields.iter().filter(|field| takes(operation, field));
            object["fields"] = fields.map(field_json).collect();
            output::json(&object);
        }
        (false, None) => output::whole(reference::step_page(spec).trim_start()),
        (false, Some(operation)) => {
            output::whole(reference::operation_page(spec, operation).trim_start());
        }
    }
    Ok(Exit::Completed)
}

fn schema(args: &StepsSchema, app: &dyn App) -> Result<Exit, Report> {
    let steps = app.steps();
    let spec = find(&steps, &args.kind)?;
    let operation = match &args.operation {
        Some(name) => Some(find_operation(spec, name)?),
        None => None,
    };
    let schema = match operation {
        Some(operation) if args.result => result_schema(operation).ok_or_else(|| {
            let message = format!("the result of `{}` has no schema", operation.name);
            Report::error("E0947", message)
        })?,
        _ if args.tool => tool_schema(spec, operation),
        Some(operation) => operation_schema(spec, operation),
        None => config_schema(spec),
    };
    output::json(&schema);
    Ok(Exit::Completed)
}

fn takes(operation: &Operation, field: &Field) -> bool {
    operation.needs.contains(&field.name) || operation.takes.contains(&field.name)
}

fn first_sentence(doc: &str) -> &str {
    let line = doc.lines().next().unwrap_or(doc);
    line.split_once(". ").map_or(line, |(first, _)| first)
}
