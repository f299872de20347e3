//! What hints call an action. The layers below name actions by their commands; each surface says its own: the command
//! line a command, the API an address or a member, the MCP server a tool.
//!
//! A hint that another surface has no words for, such as one about starting the server, stays as it is: it is
//! for the keeper of the server.

/// An action as a command or an option, and as an address or a member of the API. `*` is any text without a backtick.
/// The first row that fits wins, so the longer texts come first.
const ACTIONS: &[(&str, &str)] = &[
    ("`--at`", "`at`"),
    ("`--force`", "`force`"),
    ("`--input '*'`", "`{\"input\": *}`"),
    ("`--input`", "`input`"),
    ("`--replace`", "`replace`"),
    ("`--scope`", "`scopes`"),
    ("`--subject`", "`subject`"),
    ("`--upload NAME=FILE`", "`POST /api/v1/resources`"),
    ("`flowstone check`", "`POST /api/v1/flows/{slug}/check`"),
    ("`flowstone flows list`", "`GET /api/v1/flows`"),
    ("`flowstone flows show *`", "`GET /api/v1/flows/*`"),
    ("`flowstone jobs list`", "`GET /api/v1/jobs`"),
    ("`flowstone jobs show *`", "`GET /api/v1/jobs/*`"),
    (
        "`flowstone resources get`",
        "`GET /api/v1/resources?prefix=`",
    ),
    ("`flowstone resources list`", "`GET /api/v1/resources`"),
    ("`flowstone resources url`", "`POST /api/v1/resources/url`"),
    (
        "`flowstone runs cancel * --force`",
        "`POST /api/v1/runs/*/cancel` with `force`",
    ),
    ("`flowstone runs cancel *`", "`POST /api/v1/runs/*/cancel`"),
    (
        "`flowstone runs fork * --at * --flow FILE`",
        "`POST /api/v1/runs/*/fork` with `at` = `*` and `version`",
    ),
    ("`flowstone runs list`", "`GET /api/v1/runs`"),
    ("`flowstone runs resume *`", "`POST /api/v1/runs/*/resume`"),
    ("`flowstone runs resume`", "`POST /api/v1/runs/{id}/resume`"),
    (
        "`flowstone runs show RUN --json`",
        "`GET /api/v1/runs/{id}`",
    ),
    ("`flowstone runs show *`", "`GET /api/v1/runs/*`"),
    ("`flowstone runs show`", "`GET /api/v1/runs/{id}?full`"),
    ("`flowstone runs url`", "`POST /api/v1/runs/{id}/url`"),
    (
        "`flowstone run FILE --new`",
        "`POST /api/v1/flows/{slug}/runs`",
    ),
    ("`flowstone steps list`", "`GET /api/v1/steps`"),
    ("`flowstone tokens list`", "`GET /api/v1/tokens`"),
    (
        "`flowstone waits approve`",
        "`POST /api/v1/waits/{id}/approve`",
    ),
    (
        "`flowstone waits complete ID --value '{:action :*}'`",
        "`POST /api/v1/waits/{id}/complete` with `{\"value\": {\"action\": \"*\"}}`",
    ),
    (
        "`flowstone waits complete ID`",
        "`POST /api/v1/waits/{id}/complete`",
    ),
    ("`flowstone waits list`", "`GET /api/v1/waits`"),
    ("`flowstone waits show`", "`GET /api/v1/waits/{id}`"),
];

/// What the API says in other words than the command line, because it has no such option.
const API_ONLY: &[(&str, &str)] = &[
    (
        "give them with `--setup '*'`, or in flowstone.edn:",
        "the server's flowstone.edn gives them:",
    ),
    (
        "they are given with `--setup`, or under `:setup` in flowstone.edn",
        "they are given under `:setup` in the server's flowstone.edn",
    ),
    (
        "say who you are with `--as NAME --role *`",
        "it takes a token with the role `*`",
    ),
];

/// Returns a hint in the words of the API.
pub fn for_api(hint: &str) -> String {
    reworded(hint, API_ONLY.iter().chain(ACTIONS).copied())
}

/// Returns a hint of the API in the words of the command line.
pub fn for_commands(hint: &str) -> String {
    reworded(hint, ACTIONS.iter().map(|(command, api)| (*api, *command)))
}

/// Returns a hint of the API in the words of a surface whose names for addresses are these.
pub fn for_names<'a>(hint: &str, names: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    reworded(hint, names)
}

fn reworded<'a>(hint: &str, rows: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let rows: Vec<(&str, &str)> = rows.into_iter().collect();
    let mut out = String::new();
    let mut rest = hint;
    while let Some(next) = rest.chars().next() {
        let found = rows
            .iter()
            .find_map(|(from, to)| Some((matched(rest, from)?, *to)));
        match found {
            Some((Match { length, parts }, to)) => {
                out += &filled(to, &parts);
                rest = &rest[length..];
            }
            None => {
                out.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    out
}

/// A pattern at the beginning of a text.
struct Match<'a> {
    /// How many bytes of the text it takes.
    length: usize,
    /// What its stars are.
    parts: Vec<&'a str>,
}

fn matched<'a>(text: &'a str, pattern: &str) -> Option<Match<'a>> {
    let mut literals = pattern.split('*');
    let mut rest = text.strip_prefix(literals.next()?)?;
    let mut parts = Vec::new();
    for literal in literals {
        let end = rest.find(literal)?;
        let part = &rest[..end];
        if part.is_empty() || part.contains('`') {
            return None;
        }
        parts.push(part);
        rest = &rest[end + literal.len()..];
    }
    Some(Match {
        length: text.len() - rest.len(),
        parts,
    })
}

fn filled(template: &str, parts: &[&str]) -> String {
    let mut parts = parts.iter();
    let mut out = String::new();
    for (idx, literal) in template.split('*').enumerate() {
        if idx > 0 {
            out += parts.next().copied().unwrap_or_default();
        }
        out += literal;
    }
    out
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// Commands of the keeper of a project or a server. The API has no address for them.
    const OF_THE_KEEPER: &[&str] = &[
        "flowstone flows trust",
        "flowstone gc",
        "flowstone key rotate",
        "flowstone run ",
        "flowstone runs export",
        "flowstone serve",
        "flowstone steps run",
        "flowstone tree",
    ];

    #[test]
    fn each_surface_says_its_own() {
        let quarantined = "`flowstone runs resume r3` executes it again, `flowstone runs cancel r3 --force` ends it";
        let api = "`POST /api/v1/runs/r3/resume` executes it again, `POST /api/v1/runs/r3/cancel` with `force` ends it";
        assert_eq!(for_api(quarantined), api);
        assert_eq!(for_commands(api), quarantined);
        for (command, api) in [
            (
                "`flowstone runs list` shows the runs",
                "`GET /api/v1/runs` shows the runs",
            ),
            (
                "give them, as in `--input '{\"who\": ...}'`",
                "give them, as in `{\"input\": {\"who\": ...}}`",
            ),
            (
                "answer with `flowstone waits complete ID --value '{:action :approve}'`",
                "answer with `POST /api/v1/waits/{id}/complete` with `{\"value\": {\"action\": \"approve\"}}`",
            ),
        ] {
            assert_eq!(for_api(command), api);
            assert_eq!(for_commands(api), command);
        }
        assert_eq!(
            for_api("the wait is still open; say who you are with `--as NAME --role boss`"),
            "the wait is still open; it takes a token with the role `boss`"
        );
        let names = [("`GET /api/v1/runs/*`", "`workspace_runs_show`")];
        assert_eq!(
            for_names("look at it with `GET /api/v1/runs/r3`", names),
            "look at it with `workspace_runs_show`"
        );
        assert_eq!(for_api("unknown `flowstone é`"), "unknown `flowstone é`");
    }

    /// Returns the source files with the errors that routes answer.
    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("a folder of sources");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths
            .filter(|path| path.extension().is_some_and(|it| it == "rs"))
            .collect()
    }

    #[test]
    fn each_command_that_errors_of_the_engine_name_has_words_of_the_api() {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut files = sources(&src.join("engine/error"));
        files.push(src.join("engine/error.rs"));
        files.push(src.join("flow/definition/inputs.rs"));
        files.push(src.join("model/ports.rs"));
        let (mut missing, mut seen) = (Vec::new(), 0);
        for file in files {
            let code = fs::read_to_string(&file).expect("a source file");
            let lines = code.lines().filter(|it| !it.trim_start().starts_with("//"));
            for line in lines {
                for part in line.split("`flowstone ").skip(1) {
                    let command = part.split('`').next().unwrap_or_default();
                    let command = format!(
                        "flowstone {}",
                        command.replace("{{", "{").replace("}}", "}")
                    );
                    seen += 1;
                    let is_known = for_api(&format!("`{command}`")) != format!("`{command}`")
                        || OF_THE_KEEPER.iter().any(|it| command.starts_with(it));
                    if !is_known {
                        missing.push(format!("{}: {command}", file.display()));
                    }
                }
            }
        }
        assert!(missing.is_empty(), "{}", missing.join("\n"));
        assert!(seen > 20, "{seen}");
    }
}
