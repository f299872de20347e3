//! One way to the screen: text reaches it through `output` of the command line and through the prompt's `print` alone.

use super::tree::{files, none, text};

/// Who may write to standard output and standard error, and why.
const WRITERS: &[(&str, &str)] = &[
    ("repl/lib.rs", "the prompt: shows values through `visible`"),
    ("src/surfaces/cli/completions.rs", "a generated script"),
    ("src/surfaces/cli/output.rs", "the one way"),
    (
        "src/surfaces/cli/program.rs",
        "what a program prints is its own",
    ),
    (
        "src/surfaces/mcp/stdio.rs",
        "messages of a protocol, for a program",
    ),
];

/// How a stream is reached.
const STREAMS: &[&str] = &[
    "stdout()",
    "stderr()",
    "::stdout)",
    "::stderr)",
    "print!(",
    "println!(",
    "eprint!(",
    "eprintln!(",
    "Term::buffered",
];

#[test]
fn only_the_writers_of_the_screen_reach_it() {
    let mut problems = Vec::new();
    for path in ["src", "repl"].iter().flat_map(|it| files(it, &[".rs"])) {
        let name = path.to_string_lossy().replace('\\', "/");
        let is_build = name.ends_with("build.rs") || name.starts_with("src/embed/examples/");
        if is_build || WRITERS.iter().any(|(writer, _)| *writer == name) {
            continue;
        }
        for (idx, line) in text(&path).lines().enumerate() {
            // Whether it is a terminal, and how large, may be asked anywhere.
            let is_question = line.contains(".is_terminal()") || line.contains(".size_checked()");
            let is_comment = line.trim_start().starts_with("//");
            if STREAMS.iter().any(|it| line.contains(it)) && !is_question && !is_comment {
                problems.push(format!("{name}:{}: {}", idx + 1, line.trim()));
            }
        }
    }
    none(problems);
}

#[test]
fn live_lines_show_cleaned_text() {
    let mut problems = Vec::new();
    for path in files("src/surfaces", &[".rs"]) {
        for (idx, line) in text(&path).lines().enumerate() {
            let sets = line.contains(".set_message(") || line.contains(".set_prefix(");
            if sets && !line.contains("one_line(") {
                problems.push(format!("{}:{}: {}", path.display(), idx + 1, line.trim()));
            }
        }
    }
    none(problems);
}
