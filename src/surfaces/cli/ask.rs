//! The input of a run: the values given on the command line, and those that a person types at the terminal.

use std::io::{self, BufRead, IsTerminal as _};

use flowstone_engine::diagnostic::nearest;
use flowstone_engine::sealed::is_secret;
use flowstone_engine::{Engine, Limits};
use flowstone_flow::flow::{ACTIVATION, Flow, Input, InputError, name_of};
use flowstone_lang::value::Value;

use super::report::{Report, Severity};
use super::{input, output};

/// A flow, and the invocation whose inputs are asked for.
type Whose<'a> = (&'a Flow, Option<&'a str>);

/// How many times the same field is asked for.
const TRIES: usize = 5;

/// Reads the arguments `--input` and `--setup` into one input. `most` is the maximum size of each, in bytes.
///
/// # Errors
/// When one of them cannot be read.
pub fn given(given: Option<&str>, setup: Option<&str>, most: u64) -> Result<Value, Report> {
    let whole = match given {
        None => Value::map([]),
        Some(text) => input::read_within(text, "--input", most)?,
    };
    with_setup_within(whole, setup, most)
}

/// Adds the values of `--setup` to an input.
///
/// # Errors
/// When they cannot be read.
pub fn with_setup(whole: Value, setup: Option<&str>) -> Result<Value, Report> {
    with_setup_within(whole, setup, Limits::default().input)
}

fn with_setup_within(whole: Value, setup: Option<&str>, most: u64) -> Result<Value, Report> {
    let Some(setup) = setup else {
        return Ok(whole);
    };
    let values = input::read_within(setup, "--setup", most)?;
    if values.as_map().is_none() {
        let message = format!("`--setup` takes a map, not {}", values.kind());
        return Err(Report::error("E0421", message).hint("as in `--setup '{:region \"EU\"}'`"));
    }
    Ok(with(&whole, ACTIVATION, values))
}

/// Warns about setup values in the input that no form of the flow declares.
pub fn note_unknown_setup(flow: &Flow, input: &Value) {
    let brought = input.get(ACTIVATION).unwrap_or(&Value::Nil);
    for report in unknown_setup(flow, brought, "`--setup`") {
        output::report(&report);
    }
}

/// Returns a warning for each setup value that no form of the flow declares. Messages call their source `place`.
pub fn unknown_setup(flow: &Flow, values: &Value, place: &str) -> Vec<Report> {
    let mut reports = Vec::new();
    for (key, _) in values.as_map().into_iter().flat_map(|map| map.iter()) {
        let name = name_of(key).unwrap_or_default();
        let names = || flow.setup.iter().map(|field| &*field.name);
        if name.contains('/') || names().any(|known| *known == *name) {
            continue;
        }
        let message = format!("the flow declares no setup value `{name}`, which {place} gives");
        let mut report = Report::error("E0429", message);
        report.severity = Severity::Warning;
        reports.push(match nearest(&name, names()) {
            Some(near) => report.hint(format!("did you mean `{near}`?")),
            None => report.hint("declare it in a form of the flow's `:requires`"),
        });
    }
    reports
}

/// Asks the person at the terminal for required inputs that were not given. Without a terminal, returns the input
/// unchanged.
pub fn missing(engine: &Engine, (flow, invocation): Whose<'_>, input: Value) -> Value {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return input;
    }
    let mut input = input;
    for _ in 0..TRIES {
        let (names, fields, is_setup) = match engine.input_of(flow, invocation, &input) {
            Err(InputError::Missing { names }) => {
                let contract = match invocation {
                    Some(id) => flow.invocations.iter().find(|it| &*it.id == id),
                    None => flow.default_invocation(),
                };
                let fields = contract.map(|it| &it.inputs[..]).unwrap_or_default();
                (names, fields, false)
            }
            Err(InputError::MissingSetup { names, .. }) => (names, &flow.setup[..], true),
            _ => return input,
        };
        let mut values = match is_setup {
            true => input.get(ACTIVATION).cloned().unwrap_or(Value::Nil),
            false => input.clone(),
        };
        for field in fields
            .iter()
            .filter(|field| names.iter().any(|it| **it == *field.name))
        {
            let Some(value) = ask(field) else {
                return input;
            };
            values = with(&values, &field.name, value);
        }
        input = match is_setup {
            true => with(&input, ACTIVATION, values),
            false => values,
        };
    }
    input
}

/// Asks for one value until it has the field's type. Returns `None` at the end of the input.
fn ask(field: &Input) -> Option<Value> {
    for _ in 0..TRIES {
        output::note_part(&format!("{}: ", question(field)));
        let Some(line) = answer(is_secret(field)) else {
            output::note("");
            return None;
        };
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        match field.coerced(read(field, text)) {
            Ok(value) => return Some(value),
            Err(error) => output::note(&error.to_string()),
        }
    }
    None
}

/// Reads a line from the terminal. Returns `None` at the end of the input. Secrets are not echoed.
fn answer(is_secret: bool) -> Option<String> {
    if is_secret {
        return output::read_hidden();
    }
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line),
    }
}

/// Asks the person at the terminal for secrets by their names. Returns none without a terminal, or if one of them is
/// not given.
pub fn secrets(names: &[String]) -> Option<Value> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    let mut given = Vec::new();
    for name in names {
        output::note_part(&format!("{name} (secret): "));
        let text = answer(true).filter(|text| !text.trim().is_empty())?;
        given.push((Value::from(name.as_str()), Value::from(text.trim())));
    }
    Some(Value::map(given))
}

fn question(field: &Input) -> String {
    let label = field.label.as_deref().unwrap_or(&field.name);
    let options: Vec<String> = field
        .options
        .iter()
        .filter_map(|option| name_of(option.get("value").unwrap_or(option)))
        .map(|name| name.to_string())
        .collect();
    match (options.is_empty(), &*field.type_) {
        (false, _) => format!("{label} ({})", options.join(", ")),
        (true, "text" | "string" | "textarea") => label.to_owned(),
        (true, type_) => format!("{label} ({type_})"),
    }
}

/// Parses data if the field takes data; otherwise returns the text.
fn read(field: &Input, text: &str) -> Value {
    let takes_data = field.multiple || matches!(&*field.type_, "any" | "json" | "list");
    let data = takes_data
        .then(|| input::read(text, "the answer").ok())
        .flatten();
    data.unwrap_or_else(|| Value::from(text))
}

fn with(map: &Value, key: &str, value: Value) -> Value {
    let key = Value::keyword(key);
    let entries = map.as_map().into_iter().flat_map(|map| map.iter());
    let others = entries.filter(|(known, _)| **known != key);
    let others = others.map(|(key, value)| (key.clone(), value.clone()));
    Value::map(others.chain([(key.clone(), value)]).collect::<Vec<_>>())
}
