//! `flowstone eval`: a plain program, without runs.

use std::fs;
use std::io::Read;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use flowstone_lang::session::Session;
use flowstone_lang::value::{Phase, PrintOptions, Result, Signal, Stop, Symbol, Value};
use flowstone_lang::vm::Vm;
use serde_json::json;

use super::App;
use super::args::Eval;
use super::exit::Exit;
use super::interrupt::{Interrupt, Printing};
use super::output;
use super::program::{Grants, ProgramHost};
use super::report::{Report, unreadable};
use super::stack;
use crate::json::error_json;

/// A text to evaluate.
struct Text {
    name: String,
    text: String,
    /// Whether to print the value: an expression's is printed, a program's is not.
    is_expression: bool,
}

/// Evaluates the text, and prints its value if it is an expression.
pub fn run(args: &Eval, app: &dyn App) -> Exit {
    let text = match read(&args.source) {
        Ok(text) => text,
        Err(report) => {
            output::failure(&report, args.json);
            return Exit::Failed;
        }
    };
    let grants = Grants {
        files: args.allow_files,
        paths: args.paths.clone(),
        fuel: args.fuel,
        deadline: args.deadline,
        memory: args.limits.max_memory,
    };
    // What it holds is freed with the process, which is faster.
    let session = ManuallyDrop::new(app.plain_session());
    session.set_features(args.features.iter().cloned());
    session.defer_host_names();
    let host = ProgramHost::new(grants, Interrupt::listen());
    let mut vm = session.vm(Box::new(host));
    vm.set_native_stack_limit(stack::limit());
    set_args(&session, &args.args);
    set_data_readers(&session, &mut vm, &args.paths);
    let printed = session
        .eval_text(&mut vm, &text.name, &text.text)
        .and_then(|value| print(&mut vm, value, &text, args.json).map_err(while_printing));
    // The host buffers the program's output, which must appear before our own.
    drop(vm);
    match printed {
        Ok(Some(line)) => {
            let _printing = Printing::begin();
            output::data(&line);
            Exit::Completed
        }
        Ok(None) => Exit::Completed,
        Err(Signal::Stop(stop)) if let Some(exit) = asked_for(&stop) => exit,
        Err(signal) => {
            let (report, exit) = describe(&session, &signal);
            match &signal {
                Signal::Throw(exception) if args.json => {
                    output::json(&json!({"ok": false, "error": error_json(&report, exception)}));
                }
                _ => output::failure(&report, args.json),
            }
            exit
        }
    }
}

/// Defines the functions with which `data_readers.clj` and `data_readers.cljc` in the folders of --path read tags.
fn set_data_readers(session: &Session, vm: &mut Vm, paths: &[PathBuf]) {
    let files = paths
        .iter()
        .flat_map(|path| ["data_readers.clj", "data_readers.cljc"].map(|name| path.join(name)));
    let mut readers = Vec::new();
    for text in files.filter_map(|file| fs::read_to_string(file).ok()) {
        // Read as code, which may contain reader conditionals.
        let Ok(tags) = session.eval_text(vm, "data_readers", &format!("(quote {text}\n)")) else {
            continue;
        };
        let entries = tags.as_map().map(|map| map.iter()).into_iter().flatten();
        readers.extend(entries.filter_map(|(tag, function)| {
            let function = function.as_symbol()?;
            let home = session
                .world()
                .namespace(Symbol::new(&function.namespace()?));
            let var = home.intern(Symbol::new(&function.name()));
            Some((tag.clone(), Value::Var(var)))
        }));
    }
    if !readers.is_empty() {
        let var = session.world().core.intern(Symbol::new("*data-readers*"));
        var.set_root(Value::map(readers));
    }
}

/// Returns the exit that `System/exit` requested. As with any process, only its lowest byte is visible.
fn asked_for(stop: &Stop) -> Option<Exit> {
    match stop {
        Stop::Exit(status) => Some(Exit::Status(status.to_le_bytes()[0])),
        _ => None,
    }
}

/// Returns the text to print for the value, if any.
fn print(vm: &mut Vm, value: Value, text: &Text, as_json: bool) -> Result<Option<String>> {
    if as_json {
        let value = vm.print(&value, PrintOptions::READABLE)?;
        return Ok(Some(format!("{:#}", json!({"ok": true, "value": value}))));
    }
    if value.is_nil() || !text.is_expression {
        // A lazy value of a program is still realised, as printing would do.
        return Ok(None);
    }
    vm.print(&value, PrintOptions::READABLE).map(Some)
}

/// Notes that the result was being printed: a lazy one is realised only then.
pub fn while_printing(signal: Signal) -> Signal {
    if let Signal::Throw(exception) = &signal {
        let mut origin = exception.origin.borrow_mut();
        origin.phase.get_or_insert(Phase::Print);
    }
    signal
}

/// Reports what stopped a program, and returns the exit code.
pub fn describe(session: &Session, signal: &Signal) -> (Report, Exit) {
    match signal {
        Signal::Throw(exception) => {
            let sources = session.world().sources.borrow();
            (Report::of_exception(&sources, exception), Exit::Failed)
        }
        Signal::Stop(stop) => {
            let origin = session.world().stopped.take().unwrap_or_default();
            let sources = session.world().sources.borrow();
            let report = match &**stop {
                Stop::OutOfFuel => Report::error("E0901", format!("stopped: {stop}"))
                    .hint("give more with --fuel, or look for a loop that does not end"),
                Stop::Deadline => Report::error("E0902", format!("stopped: {stop}"))
                    .hint("give more time with --deadline, or look for a loop that does not end"),
                Stop::OutOfMemory(_) => Report::error("E0903", format!("stopped: {stop}"))
                    .hint("work on one item at a time instead of keeping them all, or give more with --max-memory"),
                Stop::Cancelled | Stop::Evicted | Stop::Interrupted(_) => {
                    Report::error("E0904", format!("stopped: {stop}"))
                }
                Stop::Exit(_) => Report::error("E0904", format!("stopped: {stop}"))
                    .hint("press Ctrl-D to leave the prompt"),
            };
            let exit = match &**stop {
                Stop::Interrupted(_) if Interrupt::listen().is_set() => Exit::Interrupted,
                Stop::Cancelled => Exit::Cancelled,
                _ => Exit::Failed,
            };
            (report.stopped_at(&sources, &origin), exit)
        }
    }
}

fn set_args(session: &Session, args: &[String]) {
    let items = args.iter().map(|arg| Value::text(arg.as_str()));
    let value = match args.is_empty() {
        true => Value::Nil,
        false => Value::list(items),
    };
    let var = session
        .world()
        .core
        .intern(Symbol::new("*command-line-args*"));
    var.set_root(value);
}

/// Decides whether an argument is a file, standard input or an expression.
fn read(source: &str) -> Result<Text, Report> {
    let path = Path::new(source);
    let is_named_like_a_file = path
        .extension()
        .is_some_and(|ending| ["clj", "cljc", "edn"].iter().any(|known| ending == *known))
        && !source.contains(char::is_whitespace);
    if source == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| unreadable("standard input", &error))?;
        return Ok(Text {
            name: "<stdin>".to_owned(),
            text,
            is_expression: false,
        });
    }
    if is_named_like_a_file || path.is_file() {
        let text = fs::read_to_string(path).map_err(|error| unreadable(source, &error))?;
        return Ok(Text {
            name: source.to_owned(),
            text,
            is_expression: false,
        });
    }
    Ok(Text {
        name: "<eval>".to_owned(),
        text: source.to_owned(),
        is_expression: true,
    })
}
