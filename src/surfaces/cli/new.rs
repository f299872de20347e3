//! `flowstone init` and `flowstone new`: the first files of a project and of a flow.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flowstone_flow::flow::is_identifier;
use serde_json::json;

use super::args::{FlowKind, Init, New};
use super::exit::Exit;
use super::output;
use super::report::Report;
use crate::json::ok;

/// The code of a file that exists already, or cannot be written.
const NOT_WRITTEN: &str = "E0957";
/// The code of a name that no flow can have.
const NOT_A_SLUG: &str = "E0405";
/// The slug in the texts of this folder.
const PLACEHOLDER: &str = "my-flow";

const SETTINGS: &str = include_str!("new/flowstone.edn");
/// Tells clj-kondo about the names that every flow has. It loads settings from folders like this one by itself.
const KONDO: (&str, &str) = (
    ".clj-kondo/flowstone/flowstone/config.edn",
    include_str!("new/kondo.edn"),
);
const IGNORED: &[&str] = &[".flowstone/", ".env"];

/// Returns the texts of a flow and of its test.
fn texts(kind: FlowKind) -> (&'static str, &'static str) {
    match kind {
        FlowKind::Agent => (
            include_str!("new/agent.edn"),
            include_str!("new/agent.test.edn"),
        ),
        FlowKind::AgentApproval => (
            include_str!("new/agent-approval.edn"),
            include_str!("new/agent-approval.test.edn"),
        ),
        FlowKind::Approval => (
            include_str!("new/approval.edn"),
            include_str!("new/approval.test.edn"),
        ),
        FlowKind::Hello => (
            include_str!("new/hello.edn"),
            include_str!("new/hello.test.edn"),
        ),
        FlowKind::Http => (
            include_str!("new/http.edn"),
            include_str!("new/http.test.edn"),
        ),
        FlowKind::Schedule => (
            include_str!("new/schedule.edn"),
            include_str!("new/schedule.test.edn"),
        ),
    }
}

/// Performs `flowstone init`.
pub fn init(args: &Init) -> Exit {
    ended(project(args), args.json)
}

/// Performs `flowstone new`.
pub fn run(args: &New) -> Exit {
    ended(flow(args), args.json)
}

fn ended(done: Result<(), Report>, as_json: bool) -> Exit {
    match done {
        Ok(()) => Exit::Completed,
        Err(report) => {
            output::failure(&report, as_json);
            Exit::Failed
        }
    }
}

fn project(args: &Init) -> Result<(), Report> {
    // Names in this folder are shown without `./`.
    let folder: &Path = match args.folder == Path::new(".") {
        true => Path::new(""),
        false => &args.folder,
    };
    let (text, test) = texts(FlowKind::Hello);
    let (text, test) = (named(text, "hello"), named(test, "hello"));
    let files = [
        ("flowstone.edn", SETTINGS),
        ("flows/hello.edn", &text),
        ("flows/hello/test.edn", &test),
        KONDO,
    ];
    let mut made = Vec::new();
    let mut kept = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        match write_new(&path, text) {
            Ok(()) => made.push(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => kept.push(path),
            Err(error) => return Err(not_written(&path, &error)),
        }
    }
    let ignore = folder.join(".gitignore");
    match add_lines(&ignore, IGNORED).map_err(|error| not_written(&ignore, &error))? {
        true => made.push(ignore),
        false => kept.push(ignore),
    }
    if args.json {
        output::json(&ok(json!({"written": made, "kept": kept})));
        return Ok(());
    }
    tell("wrote", &made);
    tell("kept", &kept);
    let place = match folder.as_os_str().is_empty() {
        true => String::new(),
        false => format!("cd {} && ", folder.display()),
    };
    output::note(&format!(
        "run it: {place}flowstone run flows/hello.edn --input '{{\"who\": \"Ada\"}}'\ntest it: {place}flowstone test flows"
    ));
    Ok(())
}

fn flow(args: &New) -> Result<(), Report> {
    if !is_identifier(&args.slug) {
        let message = format!("`{}` cannot be a slug", args.slug);
        return Err(Report::error(NOT_A_SLUG, message)
            .hint("a slug consists of letters, digits, `-` and `_`, and begins with a letter"));
    }
    let (text, test) = texts(args.kind);
    let file = args.folder.join(format!("{}.edn", args.slug));
    let case = args.folder.join(&args.slug).join("test.edn");
    let present = [&file, &case].into_iter().find(|path| path.exists());
    if let Some(path) = present {
        let error = io::Error::from(io::ErrorKind::AlreadyExists);
        return Err(not_written(path, &error));
    }
    for (path, text) in [(&file, text), (&case, test)] {
        write_new(path, &named(text, &args.slug)).map_err(|error| not_written(path, &error))?;
    }
    if args.json {
        output::json(&ok(json!({"written": [file, case], "kept": []})));
        return Ok(());
    }
    let needed = match args.kind {
        FlowKind::Agent | FlowKind::AgentApproval => {
            "a connection `:ai` in flowstone.edn, such as {:connections {:ai {:backend :anthropic}}}; `flowstone docs show guide/tutorial` has one that needs no key"
        }
        FlowKind::Http => {
            "a connection `:api` in flowstone.edn, such as {:connections {:api {:base-url \"https://api.example.com\"}}}"
        }
        FlowKind::Approval | FlowKind::Hello | FlowKind::Schedule => "",
    };
    let shown = file.display().to_string();
    tell("wrote", &[file, case]);
    if !needed.is_empty() {
        output::note(&format!("it needs {needed}"));
    }
    output::note(&format!("test it: flowstone test {shown}"));
    Ok(())
}

/// Puts a slug into a text of this folder.
fn named(text: &str, slug: &str) -> String {
    text.replace(PLACEHOLDER, slug)
}

fn tell(done: &str, paths: &[PathBuf]) {
    for path in paths {
        output::data(&format!("{done} {}", path.display()));
    }
}

/// Writes a file that must not exist, and the folders above it.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}

/// Adds lines that a file lacks. Tells whether there were any.
fn add_lines(path: &Path, lines: &[&str]) -> io::Result<bool> {
    let before = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let present: Vec<&str> = before.lines().map(str::trim).collect();
    let missing: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|line| !present.contains(line))
        .collect();
    if missing.is_empty() {
        return Ok(false);
    }
    let end = match before.is_empty() || before.ends_with('\n') {
        true => "",
        false => "\n",
    };
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(format!("{end}{}\n", missing.join("\n")).as_bytes())?;
    Ok(true)
}

fn not_written(path: &Path, error: &io::Error) -> Report {
    let report = |why: &str| {
        Report::error(
            NOT_WRITTEN,
            format!("{} was not written: {why}", path.display()),
        )
    };
    match error.kind() {
        io::ErrorKind::AlreadyExists => report("it exists already")
            .hint("choose another slug or `--folder`, or remove the file"),
        _ => report(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::KONDO;
    use flowstone_flow::natives::USUAL_ALIASES;

    #[test]
    fn clj_kondo_knows_the_names_that_need_no_require() {
        let words: Vec<&str> = KONDO
            .1
            .split(|char: char| char.is_whitespace() || "[]{}".contains(char))
            .collect();
        for (alias, _) in USUAL_ALIASES {
            assert!(words.contains(alias), "{alias}");
        }
        assert!(words.contains(&"flow") && words.contains(&"step"));
        let macros = include_str!("../../../stdlib/flow.clj").split("\n(defmacro ");
        for text in macros.skip(1) {
            let name = text.split_whitespace().next().unwrap_or_default();
            let text = text.split("\n(").next().unwrap_or_default();
            if text.contains("[bindings") {
                assert!(words.contains(&&*format!("flow/{name}")), "{name}");
            }
        }
    }
}
