//! The gallery of mistakes: common errors and their messages. `docs/guide/errors.md` is generated from it, with the
//! real output; `UPDATE_EXPECT=1` rewrites it.

mod mistakes;

use expect_test::expect_file;
use serde_json::Value;

use crate::program::{Ran, Scratch};
use mistakes::SECTIONS;

/// The text above the gallery.
const INTRO: &str = include_str!("gallery/intro.md");
/// What each program is called.
const PROGRAM: &str = "program.clj";

/// Mistakes of one kind.
pub(super) struct Section {
    pub title: &'static str,
    pub mistakes: &'static [Mistake],
}

/// One mistake.
pub(super) struct Mistake {
    pub title: &'static str,
    pub source: &'static str,
    /// One sentence, or two.
    pub why: &'static str,
    /// Other files beside the program, by name.
    pub files: &'static [(&'static str, &'static str)],
    /// What is put before the program's name.
    pub args: &'static [&'static str],
}

impl Mistake {
    /// A mistake of one file.
    pub(super) const fn new(
        title: &'static str,
        source: &'static str,
        why: &'static str,
    ) -> Mistake {
        Mistake {
            title,
            source,
            why,
            files: &[],
            args: &[],
        }
    }

    fn run(&self, options: &[&str]) -> Ran {
        let scratch = Scratch::new();
        scratch.write(PROGRAM, self.source);
        for (name, text) in self.files {
            scratch.write(name, text);
        }
        let args: Vec<&str> = ["eval"]
            .iter()
            .chain(options)
            .chain(self.args)
            .copied()
            .chain([PROGRAM])
            .collect();
        scratch.run(&args)
    }
}

fn all() -> impl Iterator<Item = &'static Mistake> {
    SECTIONS.iter().flat_map(|section| section.mistakes)
}

#[test]
fn the_page_of_errors_is_up_to_date() {
    let mut page = INTRO.to_owned();
    for section in SECTIONS {
        page.push_str(&format!("\n### {}\n", section.title));
        for mistake in section.mistakes {
            let ran = mistake.run(&[]);
            let shown = ran.err.trim_end();
            page.push_str(&format!(
                "\n#### {}\n\n```clojure\n{}\n```\n\n```text\n{shown}\n```\n\n{}{}\n",
                mistake.title,
                mistake.source.trim_end(),
                mistake.why,
                link(&ran.err),
            ));
        }
    }
    expect_file!["../../docs/guide/errors.md"].assert_eq(&page);
}

/// Returns a link to the page of the code that an output begins with.
fn link(shown: &str) -> String {
    let code = shown.strip_prefix("error[").and_then(|rest| rest.get(..5));
    code.map_or_else(String::new, |code| {
        format!(" See [{code}](../errors/{code}.md).")
    })
}

#[test]
fn each_mistake_has_place_caret_reason_hint_and_code() {
    let mut problems = Vec::new();
    for mistake in all() {
        let ran = mistake.run(&[]);
        let mut need = |holds: bool, what: &str| {
            if !holds {
                problems.push(format!("{}: {what}\n{}", mistake.title, ran.err));
            }
        };
        let lines: Vec<&str> = ran.err.lines().collect();
        let thrown = mistake.source.contains("(throw ");
        need(ran.code == Some(1), "does not fail");
        need(thrown || ran.err.starts_with("error[E0"), "has no code");
        need(
            lines.iter().any(|line| line.contains("--> ")),
            "has no place",
        );
        need(
            lines
                .iter()
                .any(|line| line.contains("| ") && line.contains('^')),
            "has no caret",
        );
        need(
            thrown || lines.iter().any(|line| line.starts_with("  hint: ")),
            "has no hint",
        );
        for host in ["java.", "clojure.lang", "::", "panicked", ".rs:", "__auto"] {
            need(!ran.err.contains(host), &format!("shows {host}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn json_carries_what_the_text_says() {
    for mistake in all() {
        let (text, mut json) = (mistake.run(&[]), mistake.run(&["--json"]));
        // What the program printed itself comes before.
        json.out = json.out[json.out.find('{').unwrap_or(0)..].to_owned();
        let json = json.json();
        let error = &json["error"];
        assert_eq!(json["ok"], false, "{}", mistake.title);
        let word = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| error[key].as_u64().unwrap_or_default();
        let place = format!(
            "--> {}:{}:{}",
            word("file"),
            number("line"),
            number("column")
        );
        let message = word("message").replace('\n', "\n  ");
        let mut told = vec![message, word("label"), word("code"), place];
        for list in ["hints", "notes"] {
            let items = error[list].as_array().cloned().unwrap_or_default();
            told.extend(items.iter().filter_map(Value::as_str).map(str::to_owned));
        }
        for list in ["related", "causes"] {
            let items = error[list].as_array().cloned().unwrap_or_default();
            told.extend(
                items
                    .iter()
                    .filter_map(|item| item["message"].as_str().map(str::to_owned)),
            );
        }
        told.extend(error["data"].as_str().map(str::to_owned));
        for part in told {
            assert!(
                text.err.contains(&part),
                "{}: {part}\n{}",
                mistake.title,
                text.err
            );
        }
        assert!(
            (number("end_line"), number("end_column")) > (number("line"), number("column")),
            "{}: {error:#}",
            mistake.title
        );
        assert!(!word("phase").is_empty(), "{}", mistake.title);
    }
}
