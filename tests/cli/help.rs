//! Help, usage errors, completions.

use crate::program::Scratch;

const COMMANDS: &[&[&str]] = &[
    &["check"],
    &["completions"],
    &["eval"],
    &["repl"],
    &["run"],
    &["runs", "cancel"],
    &["runs", "list"],
    &["runs", "resume"],
    &["runs", "show"],
    &["waits", "approve"],
    &["waits", "cancel"],
    &["waits", "complete"],
    &["waits", "event"],
    &["waits", "list"],
    &["waits", "reject"],
    &["waits", "show"],
    &["waits", "signal"],
];

#[test]
fn each_command_shows_an_example() {
    let scratch = Scratch::new();
    for command in COMMANDS {
        let args: Vec<&str> = command.iter().copied().chain(["--help"]).collect();
        let help = scratch.run(&args).ok();
        let call = format!("flowstone {}", command.join(" "));
        assert!(help.contains("Example"), "{call}: {help}");
        assert!(help.contains(&call), "{call}: {help}");
    }
}

#[test]
fn help_names_every_command() {
    let help = Scratch::new().run(&["--help"]).ok();
    for command in COMMANDS {
        assert!(
            help.contains(&format!("  {} ", command[0])),
            "{command:?}: {help}"
        );
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
fn completions_are_printed_for_each_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = Scratch::new().run(&["completions", shell]).ok();
        assert!(script.contains("flowstone"), "{shell}");
    }
}
