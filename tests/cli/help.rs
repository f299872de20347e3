//! Help, usage errors, completions.

use crate::program::Scratch;
use crate::tidy::tree::text;

/// Returns the commands that do something: those of the generated reference that have no commands below them.
fn commands() -> Vec<String> {
    let page = text("docs/reference/commands.md");
    let all: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## flowstone "))
        .collect();
    let has_commands = |name: &str| {
        let prefix = format!("{name} ");
        all.iter().any(|other| other.starts_with(&prefix))
    };
    let last = all.iter().filter(|name| !has_commands(name));
    last.map(|name| (*name).to_owned()).collect()
}

#[test]
fn each_command_shows_an_example() {
    let scratch = Scratch::new();
    let commands = commands();
    assert!(commands.len() > 60, "{commands:?}");
    let mut problems = Vec::new();
    for command in commands {
        let args: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = scratch.run(&args).ok();
        let examples = help
            .split_once("Example")
            .map_or("", |(_, examples)| examples);
        if !examples.contains(&format!("flowstone {command}")) {
            problems.push(command);
        }
    }
    assert!(problems.is_empty(), "without an example: {problems:?}");
}

#[test]
fn help_names_every_command() {
    let help = Scratch::new().run(&["--help"]).ok();
    for command in commands() {
        let first = command.split(' ').next().unwrap_or_default();
        assert!(help.contains(&format!("  {first} ")), "{command}: {help}");
    }
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    let scratch = Scratch::new();
    for args in [
        &["rnu"][..],
        &["run"],
        &["run", "a.edn", "--inptu", "{}"],
        &["runs", "resume"],
        &["runs", "resume", "r1", "--all"],
        &["eval", "--deadline", "soon", "1"],
    ] {
        let ran = scratch.run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.out.is_empty(), "{args:?}: {ran:?}");
    }
    assert!(scratch.run(&["chekc"]).err.contains("'check'"));
}

#[test]
fn an_option_of_another_command_is_suggested_by_its_name_here() {
    let scratch = Scratch::new();
    for args in [
        &["run", "a.edn", "--deadline", "5s"][..],
        &["run", "a.edn", "--deadline=5s"],
    ] {
        let ran = scratch.run(args);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains("'--timeout'"), "{args:?}: {ran:?}");
    }
    // Commands without a limit of time have nothing to suggest.
    let list = scratch.run(&["runs", "list", "--deadline", "5s"]);
    assert!(!list.err.contains("--timeout"), "{list:?}");
}

#[test]
fn completions_are_printed_for_each_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = Scratch::new().run(&["completions", shell]).ok();
        assert!(script.contains("flowstone"), "{shell}");
    }
}
