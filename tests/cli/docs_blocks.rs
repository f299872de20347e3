//! The blocks of the documentation that no command runs: code can be read, settings are accepted, steps have the options that
//! they show, and command lines have theirs. Blocks of `console` and whole flows are the business of [`super::docs`].

use flowstone_lang::session::split_typed;
use flowstone_lang::syntax::Tree;
use serde_json::Value;

use crate::program::Scratch;
use crate::tidy::{files, text};

/// The codes of names that a part of a flow uses and does not define: variables, packaged steps, servers, adapters.
const FROM_OUTSIDE: &[&str] = &["E0204", "E0418", "E0469", "E0830"];
/// The keys of `flowstone.edn`, but for `:flows`, which answers of servers have, too.
const SETTINGS: &[&str] = &[
    "agent",
    "allow",
    "bindings",
    "connections",
    "deps",
    "durability",
    "http",
    "limits",
    "llm-providers",
    "paths",
    "prices",
    "profiles",
    "resources",
    "retention",
    "search",
    "secrets",
    "server",
    "setup",
    "waits",
];

/// A block of a page.
struct Block {
    place: String,
    language: String,
    text: String,
}

/// Returns the blocks of all pages but the generated ones.
fn blocks() -> Vec<Block> {
    let pages = ["README.md".into()]
        .into_iter()
        .chain(files("docs", &[".md"]))
        .filter(|page| !page.starts_with("docs/reference"));
    let mut all: Vec<Block> = Vec::new();
    for page in pages {
        let mut is_inside = false;
        for (idx, line) in text(&page).lines().enumerate() {
            if let Some(language) = line.strip_prefix("```") {
                is_inside = !is_inside;
                if is_inside {
                    all.push(Block {
                        place: format!("{}:{}", page.display(), idx + 1),
                        language: language.to_owned(),
                        text: String::new(),
                    });
                }
            } else if let Some(block) = all.last_mut().filter(|_| is_inside) {
                block.text += line;
                block.text.push('\n');
            }
        }
    }
    all
}

impl Block {
    fn is_code(&self) -> bool {
        ["clojure", "edn"].contains(&&*self.language)
    }

    /// Tells whether the block is of a page about mistakes, which it shows.
    fn shows_mistakes(&self) -> bool {
        let pages = ["docs/errors/", "docs/guide/errors.md"];
        pages.iter().any(|page| self.place.starts_with(page))
    }

    /// Returns the text from its first form on.
    fn code(&self) -> &str {
        let mut rest = self.text.trim_start();
        while rest.starts_with(';') {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
            rest = rest.trim_start();
        }
        rest
    }

    /// Returns the first key, if the block is a map.
    fn first_key(&self) -> Option<&str> {
        let inside = self.code().strip_prefix('{')?.trim_start();
        let key = inside.strip_prefix(':')?;
        key.split(|char: char| char.is_whitespace() || "{[(\"".contains(char))
            .next()
    }
}

/// Returns the errors that `check` finds in a flow, but for those of names from outside.
fn errors_in(flow: &str) -> Vec<String> {
    let scratch = Scratch::new();
    scratch.write("checked.edn", flow);
    let findings = scratch.run(&["check", "checked.edn", "--json"]).json()["findings"].clone();
    let findings = findings.as_array().cloned().unwrap_or_default();
    let told = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    findings
        .iter()
        .filter(|finding| finding["severity"] == "error")
        .filter(|finding| !FROM_OUTSIDE.contains(&&*told(finding, "code")))
        .map(|finding| format!("{} {}", told(finding, "code"), told(finding, "message")))
        .collect()
}

/// Tells whether a block is an entry of a flow.
fn is_entry(code: &str) -> bool {
    let keys = [":functions [", ":mcp [", ":steps [", ":templates ["];
    keys.iter().any(|key| code.starts_with(key)) && !code.contains("...")
}

#[track_caller]
fn none(problems: &[String], checked: usize, least: usize) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    assert!(checked >= least, "only {checked} blocks were checked");
}

#[test]
fn code_in_the_docs_can_be_read() {
    let mut problems = Vec::new();
    let mut checked = 0;
    for block in blocks().iter().filter(|block| block.is_code()) {
        // What cannot be read is shown there.
        let is_about_reading = ["docs/errors/E01", "docs/guide/errors.md"]
            .iter()
            .any(|page| block.place.starts_with(page));
        if is_about_reading {
            continue;
        }
        checked += 1;
        let wrong = match split_typed(&block.text) {
            Ok(_) => continue,
            // `...` stands for code that is left out.
            Err(_) if block.text.contains("...") => !Tree::parse(&block.text).flaws().is_empty(),
            Err(_) => true,
        };
        if wrong {
            problems.push(block.place.clone());
        }
    }
    none(&problems, checked, 500);
}

#[test]
fn settings_in_guides_are_accepted() {
    let mut problems = Vec::new();
    let mut checked = 0;
    for block in blocks().iter().filter(|block| block.is_code()) {
        let is_settings = block.first_key().is_some_and(|key| SETTINGS.contains(&key));
        if !is_settings || block.shows_mistakes() {
            continue;
        }
        checked += 1;
        let scratch = Scratch::new();
        scratch.write("flowstone.edn", &*block.text);
        scratch.write("checked.edn", "{:slug :checked :flow '1}");
        let ran = scratch.run(&["check", "checked.edn"]);
        if ran.code != Some(0) {
            problems.push(format!("{}:\n{}", block.place, ran.err));
        }
    }
    none(&problems, checked, 20);
}

#[test]
fn steps_in_guides_have_the_options_that_they_show() {
    let mut problems = Vec::new();
    let mut checked = 0;
    for block in blocks().iter().filter(|block| block.is_code()) {
        let code = block.code();
        let is_whole = code.starts_with("{:slug :");
        let flow = match code.chars().next() {
            Some(':') if is_entry(code) => format!("{{:slug :checked {code}\n:flow '1}}"),
            Some('(') if code.contains("(flow/step") && !code.contains("...") => {
                format!("{{:slug :checked :flow '(do {code}\n)}}")
            }
            _ => continue,
        };
        if is_whole || block.shows_mistakes() {
            continue;
        }
        checked += 1;
        let errors = errors_in(&flow);
        // The guide of steps shows what a misspelt option says.
        let is_meant = errors.len() == 1 && errors[0].contains("`:mehtod`");
        if !errors.is_empty() && !is_meant {
            problems.push(format!("{}: {}", block.place, errors.join("; ")));
        }
    }
    none(&problems, checked, 30);
}

#[test]
fn json_in_the_docs_can_be_read() {
    let mut problems = Vec::new();
    let mut checked = 0;
    for block in blocks().iter().filter(|block| block.language == "json") {
        checked += 1;
        let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
        let text = block.text.trim();
        // One value, one a line, or entries of an object.
        let can_be_read =
            is_json(text) || text.lines().all(is_json) || is_json(&format!("{{{text}}}"));
        if !can_be_read && !text.contains("...") {
            problems.push(block.place.clone());
        }
    }
    none(&problems, checked, 20);
}

/// Command lines that are not run, because they need a server, a key or a second terminal, have the options that they show.
#[test]
fn command_lines_in_the_docs_have_the_options_that_they_show() {
    let scratch = Scratch::new();
    let mut problems = Vec::new();
    let mut checked = 0;
    for block in blocks() {
        let is_shell = block.language == "sh";
        let is_session = block.language == "text" && block.text.starts_with("$ ");
        if !is_shell && !is_session {
            continue;
        }
        for line in block.text.replace("\\\n", " ").lines() {
            let line = match is_shell {
                true => Some(line),
                false => line.strip_prefix("$ "),
            };
            let Some(args) = line.and_then(arguments) else {
                continue;
            };
            checked += 1;
            let args: Vec<&str> = args.iter().map(String::as_str).chain(["--help"]).collect();
            let ran = scratch.run(&args);
            if ran.code != Some(0) {
                problems.push(format!("{}: {args:?}\n{}", block.place, ran.err));
            }
        }
    }
    none(&problems, checked, 100);
}

/// Returns the arguments of a call of `flowstone` that begins a line, up to the next command or redirection.
fn arguments(line: &str) -> Option<Vec<String>> {
    let rest = line.trim_start().strip_prefix("flowstone ")?;
    let mut args = Vec::new();
    let mut word = String::new();
    let mut is_word = false;
    let mut chars = rest.chars();
    while let Some(char) = chars.next() {
        match char {
            '\'' | '"' => {
                is_word = true;
                word.extend(chars.by_ref().take_while(|it| *it != char));
            }
            '#' if !is_word => break,
            '|' | '>' | '<' | '&' | ';' => break,
            char if char.is_whitespace() => {
                if std::mem::take(&mut is_word) {
                    args.push(std::mem::take(&mut word));
                }
            }
            char => {
                is_word = true;
                word.push(char);
            }
        }
    }
    // `2` of `2>`.
    if is_word && word != "2" {
        args.push(word);
    }
    Some(args)
}
