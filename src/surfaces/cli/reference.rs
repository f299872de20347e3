//! `flowstone reference DIR`: generates the pages about commands, steps and functions.

mod names;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use flowstone_flow::step::{
    COMMON, Effect, Field, Operation, Operations, Step, StepSpec, config_schema,
};

use super::App;
use super::args::{Cli, Reference};
use super::exit::Exit;
use super::output;
use super::report::Report;
use crate::http::{agents_document, document};
use crate::json::type_name;

const NOTE: &str =
    "<!-- Written by `flowstone reference docs/reference`; change the code, not this page. -->";

/// Writes all pages.
pub fn run(args: &Reference, app: &dyn App) -> Exit {
    let names = names::all(&app.session());
    let mut pages = vec![
        ("commands.md".to_owned(), commands()),
        ("steps.md".to_owned(), steps(&app.steps())),
        (
            "agents-openapi.json".to_owned(),
            format!("{:#}", agents_document()),
        ),
        ("openapi.json".to_owned(), format!("{:#}", document())),
    ];
    pages.extend(names::pages(&names));
    pages.extend(schemas(&app.steps()));
    for (name, text) in pages {
        if let Err(error) = write(&args.folder, &name, &text) {
            let path = args.folder.join(&name);
            let report =
                Report::error("E0909", format!("cannot write {}: {error}", path.display()));
            output::failure(&report, false);
            return Exit::Failed;
        }
    }
    Exit::Completed
}

fn write(folder: &Path, name: &str, text: &str) -> std::io::Result<()> {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap_or(folder))?;
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    fs::write(path, lines.join("\n") + "\n")
}

/// Returns the JSON Schema of each step type, with its path.
fn schemas(steps: &[Box<dyn Step>]) -> Vec<(String, String)> {
    let specs = steps.iter().map(|step| step.spec());
    specs
        .map(|spec| {
            let path = format!("schemas/{}.json", spec.kind);
            (path, format!("{:#}", config_schema(spec)))
        })
        .collect()
}

fn commands() -> String {
    let mut out = format!("# Commands\n\n{NOTE}\n");
    let mut command = Cli::whole().color(clap::ColorChoice::Never).term_width(100);
    command.build();
    describe_command(&mut out, &mut command, "flowstone");
    out
}

fn describe_command(out: &mut String, command: &mut clap::Command, call: &str) {
    let help = command.render_long_help();
    let _ = writeln!(out, "\n## {call}\n\n```text\n{help}```");
    let mut inner: Vec<&mut clap::Command> = command
        .get_subcommands_mut()
        .filter(|command| !command.is_hide_set() && command.get_name() != "help")
        .collect();
    inner.sort_by_key(|command| command.get_name().to_owned());
    for command in inner {
        let call = format!("{call} {}", command.get_name());
        describe_command(out, command, &call);
    }
}

fn steps(steps: &[Box<dyn Step>]) -> String {
    let mut specs: Vec<&StepSpec> = steps.iter().map(|step| step.spec()).collect();
    specs.sort_by_key(|spec| spec.kind);
    let mut out = format!("# Steps\n\n{NOTE}\n\n");
    out.push_str(
        "`(flow/step :type :id {config})` performs a step. A key that is not listed is an error.\n",
    );
    for spec in &specs {
        describe_step(&mut out, spec);
    }
    out.push_str("\n## Options of every step\n\n");
    describe_fields(&mut out, COMMON);
    out
}

/// Returns the page of a step type.
pub fn step_page(spec: &StepSpec) -> String {
    let mut out = String::new();
    describe_step(&mut out, spec);
    out.push_str("\nOptions of every step: ");
    let names: Vec<String> = COMMON
        .iter()
        .map(|field| format!("`:{}`", field.name))
        .collect();
    out.push_str(&names.join(" "));
    out.push('\n');
    out
}

/// Returns the page of an operation of a step type.
pub fn operation_page(spec: &StepSpec, operation: &Operation) -> String {
    let mut out = format!(
        "## :{} :{}\n\n{}\n\n",
        spec.kind, operation.name, operation.doc
    );
    let takes = |field: &&Field| {
        operation.needs.contains(&field.name) || operation.takes.contains(&field.name)
    };
    let fields: Vec<Field> = spec
        .fields
        .iter()
        .filter(takes)
        .map(|field| Field {
            required: operation.needs.contains(&field.name),
            ..*field
        })
        .collect();
    describe_fields(&mut out, &fields);
    let _ = writeln!(out, "\nGives `{}`.", operation.gives);
    let name = format!(":{}", operation.name);
    let examples: Vec<&str> = spec
        .examples
        .iter()
        .filter(|example| example.contains(&name))
        .copied()
        .collect();
    if !examples.is_empty() {
        let _ = writeln!(out, "\n```clojure\n{}\n```", examples.join("\n\n"));
    }
    out
}

fn describe_step(out: &mut String, spec: &StepSpec) {
    let _ = writeln!(out, "\n## :{}\n\n{}\n", spec.kind, spec.doc);
    if !spec.aliases.is_empty() {
        let names: Vec<String> = spec
            .aliases
            .iter()
            .map(|name| format!("`:{name}`"))
            .collect();
        let _ = writeln!(out, "Also written {}.\n", names.join(", "));
    }
    let effect = match spec.effect {
        Effect::Pure => "computed from its config alone",
        Effect::Read => "reads something outside; may be repeated",
        Effect::OwnStore => "changes the project's own stores, exactly once",
        Effect::External => "changes something outside; the intent is on disk before it starts",
        Effect::Steps => "performs other steps, each of which is journaled",
    };
    let _ = writeln!(out, "Effect: {effect}.\n");
    if let Some(operations) = &spec.operations {
        describe_operations(out, operations);
    }
    describe_fields(out, spec.fields);
    if !spec.examples.is_empty() {
        let _ = writeln!(out, "\n```clojure\n{}\n```", spec.examples.join("\n\n"));
    }
}

fn describe_operations(out: &mut String, operations: &Operations) {
    let names = |names: &[&str]| -> String {
        let names: Vec<String> = names.iter().map(|name| format!("`:{name}`")).collect();
        names.join(" ")
    };
    let _ = writeln!(
        out,
        "| `:{}` | | needs | takes | gives |\n|---|---|---|---|---|",
        operations.key
    );
    for operation in operations.all {
        let _ = writeln!(
            out,
            "| `:{}` | {} | {} | {} | `{}` |",
            operation.name,
            operation.doc.replace('|', "\\|"),
            names(operation.needs),
            names(operation.takes),
            operation.gives.replace('|', "\\|"),
        );
    }
    out.push('\n');
}

fn describe_fields(out: &mut String, fields: &[Field]) {
    if fields.is_empty() {
        out.push_str("No options of its own.\n");
        return;
    }
    out.push_str("| key | type | |\n|---|---|---|\n");
    for field in fields {
        let mut doc = field.doc.replace('|', "\\|");
        if !field.aliases.is_empty() {
            let names: Vec<String> = field.aliases.iter().map(|it| format!("`:{it}`")).collect();
            let _ = write!(doc, " Also: {}.", names.join(", "));
        }
        if field.required {
            doc.push_str(" Required.");
        }
        if let Some(default) = field.default {
            let _ = write!(doc, " Default `{default}`.");
        }
        let _ = writeln!(
            out,
            "| `:{}` | {} | {doc} |",
            field.name,
            type_name(&field.type_)
        );
    }
}
