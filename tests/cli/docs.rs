//! The commands in the documentation are run, and print what it says.

use std::path::Path;
use std::process::Command;

use crate::program::{Ran, Scratch};
use crate::tidy::{files, root, text};

/// One `$` line of a page, with the output lines below it.
struct Shown {
    page: String,
    line: usize,
    command: String,
    output: Vec<String>,
}

#[test]
fn commands_in_the_docs_work() {
    let pages = ["README.md".into()]
        .into_iter()
        .chain(files("docs", &[".md"]))
        .filter(|page| !page.starts_with("docs/reference"));
    let mut problems = Vec::new();
    for page in pages {
        let scratch = project(&text(&page));
        for shown in commands(&page.display().to_string(), &text(&page)) {
            problems.extend(check(&scratch, &shown));
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// A guide's flows are right; those of error pages are not, which is what they show.
#[test]
fn flows_in_guides_are_right() {
    let guides = files("docs/guide", &[".md"]).into_iter();
    let mut problems = Vec::new();
    for page in ["README.md".into()].into_iter().chain(guides) {
        let text = text(&page);
        let blocks = text.split("```clojure\n{:slug :").skip(1);
        for block in blocks {
            let block = block.split("```").next().unwrap_or("");
            // A flow that needs other files is checked when the page's own commands run it.
            let needs_files = block.contains("#flow/include") || block.contains(":namespaces");
            let is_run = needs_files && text.contains("$ flowstone run");
            if page.ends_with("errors.md") || block.contains("...") || is_run {
                continue;
            }
            let scratch = project(&text);
            scratch.write("checked.edn", format!("{{:slug :{block}"));
            let ran = scratch.run(&["check", "checked.edn"]);
            if ran.code != Some(0) {
                problems.push(format!("{}:\n{}", page.display(), ran.err));
            }
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// Returns a folder with the flows of the repository and those of a page.
fn project(page: &str) -> Scratch {
    let scratch = Scratch::new();
    for file in files("flows", &[""])
        .into_iter()
        .chain(files("docs/guide", &[".md"]))
    {
        let bytes = std::fs::read(root().join(&file)).expect("it is listed");
        scratch.write(&file.display().to_string(), bytes);
    }
    for block in page.split("```clojure\n").skip(1) {
        let block = block.split("```").next().unwrap_or("");
        if let Some(rest) = block.strip_prefix("{:slug :") {
            let slug = rest.split_whitespace().next().unwrap_or("flow");
            scratch.write(&format!("{slug}.edn"), block);
        }
    }
    for block in page.split("```json\n").skip(1) {
        let block = block.split("```").next().unwrap_or("");
        if block.contains("\"spec_version\"") {
            scratch.write("agent.json", block);
        }
    }
    scratch
}

fn commands(page: &str, text: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut inside = false;
    for (idx, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            all.push(Shown {
                page: page.to_owned(),
                line: idx + 1,
                command: command.to_owned(),
                output: Vec::new(),
            });
        } else if let Some(shown) = all.last_mut().filter(|_| inside && line != "^C") {
            shown.output.push(line.trim().to_owned());
        }
    }
    all
}

/// Runs a command and returns what is wrong with it.
fn check(scratch: &Scratch, shown: &Shown) -> Option<String> {
    let command = shown
        .command
        .replace("cargo run --release --", "flowstone")
        .replace("./target/release/flowstone", "flowstone");
    let place = format!("{}:{}: {}", shown.page, shown.line, shown.command);
    if command.starts_with("cargo ") || command.starts_with("./") {
        let script = command
            .strip_prefix("./")
            .and_then(|rest| rest.split(' ').next());
        let is_there = script.is_none_or(|script| root().join(script).is_file());
        return (!is_there).then(|| format!("{place}: there is no such file"));
    }
    let ran = shell(scratch, &with_ids(scratch, &command));
    let all = format!("{}{}", ran.out, ran.err);
    // Pages about what is wrong with a command line show that; elsewhere a usage error is a mistake of the page.
    let is_usage = ran.code == Some(2) && shown.page.starts_with("docs/errors/E09");
    if !matches!(ran.code, Some(0 | 1 | 3)) && !is_usage {
        return Some(format!("{place}: exit code {:?}\n{all}", ran.code));
    }
    let missing = shown.output.iter().find(|line| !all.contains(&***line))?;
    Some(format!("{place}: does not print `{missing}` but\n{all}"))
}

/// Puts the newest run, or the first open wait, where a page says ID.
fn with_ids(scratch: &Scratch, command: &str) -> String {
    let (list, field) = match () {
        () if !command.contains(" ID") => return command.to_owned(),
        () if command.contains("flowstone waits ") => ("waits", "waits"),
        () => ("runs", "runs"),
    };
    let json = scratch.run(&[list, "list", "--json"]).json();
    let id = json[field][0]["id"].as_str().unwrap_or("ID").to_owned();
    command.replace(" ID", &format!(" {id}"))
}

fn shell(scratch: &Scratch, command: &str) -> Ran {
    let program = Path::new(env!("CARGO_BIN_EXE_flowstone"));
    let folder = program.parent().expect("it is in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut bounded = Command::new("timeout");
    bounded
        .args(["30", "sh", "-c", command])
        .current_dir(scratch.path())
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("HOME", scratch.path())
        .env_remove("FLOWSTONE_HOME");
    Ran::to_the_end(&mut bounded)
}
