//! `flowstone reference DIR`: pages about commands, steps and functions, written from the data beside the code.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use clap::CommandFactory;
use flowstone_engine::step::{COMMON, Effect, Field, FieldType, Step, StepSpec};
use flowstone_lang::library;
use flowstone_lang::session::Session;
use flowstone_lang::value::{Native, Symbol, Value, Var};
use flowstone_lang::vm::NoHost;

use super::App;
use super::args::{Cli, Reference};
use super::exit::Exit;
use super::output;
use super::pretty::pretty;
use super::report::Report;

const NOTE: &str =
    "<!-- Written by `flowstone reference docs/reference`; change the code, not this page. -->";

/// Writes all pages.
pub fn run(args: &Reference, app: &dyn App) -> Exit {
    let pages = [
        ("commands.md", commands()),
        ("functions.md", functions()),
        ("steps.md", steps(&app.steps())),
    ];
    for (name, text) in pages {
        if let Err(error) = write(&args.folder, name, &text) {
            let path = args.folder.join(name);
            let report =
                Report::error("E0909", format!("cannot write {}: {error}", path.display()));
            output::failure(&report, false);
            return Exit::Failed;
        }
    }
    Exit::Completed
}

fn write(folder: &Path, name: &str, text: &str) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    fs::write(folder.join(name), lines.join("\n") + "\n")
}

fn commands() -> String {
    let mut out = format!("# Commands\n\n{NOTE}\n");
    let mut command = Cli::command()
        .color(clap::ColorChoice::Never)
        .term_width(100);
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

fn functions() -> String {
    let mut out = format!("# Functions and macros\n\n{NOTE}\n");
    // The session lives as long as its vars are looked at: it takes their values along.
    let session = Session::new();
    for (namespace, vars) in vars(&session) {
        let _ = writeln!(out, "\n## {namespace}");
        for (name, var) in vars {
            let _ = writeln!(out, "\n### {name}\n");
            match var.root() {
                Some(Value::Native(native)) => describe_native(&mut out, native),
                _ => describe_var(&mut out, &name, &var),
            }
        }
    }
    out
}

fn describe_native(out: &mut String, native: &Native) {
    let _ = writeln!(out, "```clojure\n{}\n```\n\n{}", native.usage, native.doc);
    describe_examples(out, native.examples.iter().copied());
}

/// Describes what is written in the language itself, by its metadata.
fn describe_var(out: &mut String, name: &str, var: &Var) {
    let items = |value: Option<Value>| match value {
        Some(Value::List(list)) => list.iter().cloned().collect(),
        Some(Value::Vector(vector)) => vector.iter().cloned().collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    let usage: Vec<String> = items(var.meta_entry("arglists"))
        .iter()
        .map(|arglist| without_brackets(&pretty(arglist)))
        .map(|arglist| format!("({name} {arglist})").replace(" )", ")"))
        .collect();
    if !usage.is_empty() {
        let _ = writeln!(out, "```clojure\n{}\n```\n", usage.join("\n"));
    }
    if let Some(Value::Text(doc)) = var.meta_entry("doc") {
        let lines: Vec<&str> = doc.lines().map(str::trim).collect();
        let _ = writeln!(out, "{}", lines.join("\n"));
    }
    let examples = items(var.meta_entry("examples"));
    let examples: Vec<(String, String)> = examples
        .iter()
        .filter_map(|example| {
            let example = example.as_vector()?;
            Some((pretty(example.get(0)?), pretty(example.get(1)?)))
        })
        .collect();
    describe_examples(
        out,
        examples.iter().map(|(left, right)| (&**left, &**right)),
    );
}

/// Takes the outer brackets of a vector away.
fn without_brackets(text: &str) -> String {
    let inside = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    inside.unwrap_or(text).to_owned()
}

fn describe_examples<'a>(out: &mut String, examples: impl Iterator<Item = (&'a str, &'a str)>) {
    let shown: String = examples
        .map(|(expression, value)| format!("{expression}\n;=> {value}\n"))
        .collect();
    if !shown.is_empty() {
        let _ = write!(out, "\n```clojure\n{shown}```\n");
    }
}

/// Returns the public vars of the library, by namespace and name, after defining all of it.
fn vars(session: &Session) -> BTreeMap<String, BTreeMap<String, Rc<Var>>> {
    let world = session.world();
    let mut vm = session.vm(Box::new(NoHost::default()));
    for source in library::SOURCES {
        for definition in source.definitions {
            let (namespace, name) = (Symbol::new(source.namespace), Symbol::new(definition.name));
            // What cannot be defined alone is found by the library's own tests.
            let _ = world.loader().load_definition(&mut vm, namespace, name);
        }
    }
    let mut all: BTreeMap<String, BTreeMap<String, Rc<Var>>> = BTreeMap::new();
    for (name, namespace) in world.namespaces.borrow().iter() {
        for (symbol, var) in namespace.mappings() {
            let is_documented =
                matches!(var.root(), Some(Value::Native(_))) || var.meta_entry("doc").is_some();
            if var.namespace == *name && !var.is_private.get() && is_documented {
                let vars = all.entry(name.to_string()).or_default();
                vars.insert(symbol.to_string(), var);
            }
        }
    }
    all
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
        Effect::Read => "looks at something outside; repeated freely",
        Effect::OwnStore => "changes the project's own stores, exactly once",
        Effect::External => "changes something outside; the intent is on disk before it starts",
    };
    let _ = writeln!(out, "Effect: {effect}.\n");
    describe_fields(out, spec.fields);
    if !spec.examples.is_empty() {
        let _ = writeln!(out, "\n```clojure\n{}\n```", spec.examples.join("\n\n"));
    }
}

fn describe_fields(out: &mut String, fields: &[Field]) {
    if fields.is_empty() {
        out.push_str("No options of its own.\n");
        return;
    }
    out.push_str("| key | type | |\n|---|---|---|\n");
    for field in fields {
        let mut doc = field.doc.replace('|', "\\|");
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

fn type_name(field: &FieldType) -> String {
    match field {
        FieldType::Any => "any".to_owned(),
        FieldType::Text => "string".to_owned(),
        FieldType::Name => "keyword or string".to_owned(),
        FieldType::Int => "integer".to_owned(),
        FieldType::Number => "number".to_owned(),
        FieldType::Bool => "boolean".to_owned(),
        FieldType::Map => "map".to_owned(),
        FieldType::Items => "vector, list or set".to_owned(),
        FieldType::Duration => "duration".to_owned(),
        FieldType::Function => "function".to_owned(),
        FieldType::OneOf(names) => {
            let names: Vec<String> = names.iter().map(|name| format!("`:{name}`")).collect();
            names.join(", ")
        }
        FieldType::Either(types) => {
            let names: Vec<String> = types.iter().map(type_name).collect();
            names.join(" or ")
        }
    }
}
