//! The coverage page: each row of the tables of the reference has a test of its own, and each such test a row.
//!
//! `tests/coverage/<name>.tsv` has the rows: `section TAB row TAB status TAB test TAB note`. A test is a function in
//! `tests/steps/rows/<name>.rs`, or `file::function` with the file from `tests/`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use expect_test::expect_file;

use super::tree::{files, none, root, text};

/// What a row may be: tested as the reference has it, tested as ours where that differs, of a hosted product only.
const STATUSES: &[&str] = &["done", "differs", "hosted"];

/// Titles of the sections of the reference.
const SECTIONS: &[(&str, &str)] = &[
    ("b.5", "calls of packaged steps"),
    ("c.1", "options of every step"),
    ("c.1.1", ":retry"),
    ("c.2", ":http"),
    ("c.3", ":llm"),
    ("c.4.1", ":agent"),
    ("c.4.2", "which tools an agent may get"),
    ("c.4.3", "the result of :agent"),
    ("c.4.4", "hooks of :agent"),
    ("c.4.5", "inputs of :agent"),
    ("c.4.6", "memory of :agent"),
    ("c.4.7", "cost of :agent"),
    ("c.4.8", "evaluation of :agent"),
    ("c.4.9", "approval in :agent"),
    ("c.4.10", "trace of :agent"),
    ("c.5", ":files"),
    ("c.6", ":table"),
    ("c.8", ":function"),
    ("c.9", ":kv"),
    ("c.10", ":search"),
    ("c.12", ":sleep"),
    ("c.13", ":notify"),
    ("c.15", ":workspace and :breyta, a tool of agents"),
    ("c.16", "packaged steps"),
    ("c.17", "named agents"),
    ("c.18", "steps outside a flow"),
    ("d.1", ":persist"),
    ("d.1.1", ":persist, blobs"),
    ("d.1.2", ":persist, key-value pairs"),
    ("d.1.3", ":persist, tables"),
    ("d.2", "size of results"),
    ("e.1", "resources"),
    ("e.2", "templates"),
    ("g.1", "providers of models"),
    ("g.2", "structured output"),
    ("g.3", "the :tools envelope"),
    ("g.5", ":mcp"),
    ("z.3", "options of every step, our own"),
    ("z.4", ":files, our own"),
    ("z.5", ":table, our own"),
    ("z.7", "models and schemas, our own"),
    ("z.8", "templates, our own"),
    ("z.9", "names and keys, our own"),
    ("z.10", "limits, our own"),
];

struct Row {
    /// The table's name, that of its file.
    table: String,
    section: String,
    name: String,
    status: String,
    test: String,
    note: String,
}

impl Row {
    /// Returns the file of the test, and its function.
    fn test(&self) -> (String, &str) {
        match self.test.rsplit_once("::") {
            Some((file, function)) => (format!("tests/{file}"), function),
            None => (format!("tests/steps/rows/{}.rs", self.table), &self.test),
        }
    }

    fn place(&self) -> String {
        format!(
            "tests/coverage/{}.tsv, {} {}",
            self.table, self.section, self.name
        )
    }

    fn is_tested(&self) -> bool {
        matches!(self.status.as_str(), "done" | "differs")
    }
}

#[test]
fn each_row_is_well_formed() {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for row in rows() {
        if !STATUSES.contains(&row.status.as_str()) {
            problems.push(format!("{}: no status `{}`", row.place(), row.status));
        }
        if !SECTIONS.iter().any(|(section, _)| *section == row.section) {
            problems.push(format!("{}: no section `{}`", row.place(), row.section));
        }
        if row.status != "done" && row.note.is_empty() {
            problems.push(format!("{}: `{}` needs a note", row.place(), row.status));
        }
        if !seen.insert((row.section.clone(), row.name.clone())) {
            problems.push(format!("{}: twice", row.place()));
        }
    }
    none(problems);
}

#[test]
fn each_row_has_its_test() {
    let mut problems = Vec::new();
    for row in rows().iter().filter(|row| row.is_tested()) {
        let (file, function) = row.test();
        let known = match root().join(&file).exists() {
            true => tests(&text(&file)),
            false => Vec::new(),
        };
        if !known.iter().any(|name| name == function) {
            problems.push(format!("{}: no test `{function}` in {file}", row.place()));
        }
    }
    none(problems);
}

#[test]
fn each_test_of_a_row_has_its_row() {
    let rows = rows();
    let mut problems = Vec::new();
    for path in files("tests/steps/rows", &[".rs"]) {
        let file = path.display().to_string().replace('\\', "/");
        for function in tests(&text(&path)) {
            let is_named = |row: &Row| row.test() == (file.clone(), function.as_str());
            match rows.iter().find(|row| is_named(row)) {
                None => problems.push(format!("{file}: no row names the test `{function}`")),
                Some(row) if !row.is_tested() => problems.push(format!(
                    "{}: `{}`, but {file} has its test",
                    row.place(),
                    row.status
                )),
                Some(_) => {}
            }
        }
    }
    none(problems);
}

#[test]
fn the_page_of_coverage_is_up_to_date() {
    expect_file!["../../docs/reference/coverage.md"].assert_eq(&page(&rows()));
}

/// Writes the page. There are no counts in it: pages of two branches merge.
fn page(rows: &[Row]) -> String {
    let mut out = "# Coverage\n\nEach row of the tables of the flow reference, and the test that shows it. `done`: as the \
                   reference has it. `differs`:\nworks, as the note says. `hosted`: means something in a hosted product \
                   only.\n"
        .to_owned();
    let mut section = ("", "");
    for row in rows {
        if (row.table.as_str(), row.section.as_str()) != section {
            section = (&row.table, &row.section);
            let title = SECTIONS.iter().find(|(name, _)| *name == row.section);
            let title = title.map_or("", |(_, title)| title);
            let _ = write!(
                out,
                "\n## {}: {} {title}\n\n| row | status | test | note |\n|---|---|---|---|\n",
                row.table, row.section
            );
        }
        let (file, function) = row.test();
        let test = match row.is_tested() {
            true => format!("[{function}](../../{file})"),
            false => String::new(),
        };
        let _ = writeln!(
            out,
            "| {} | {} | {test} | {} |",
            code(&row.name),
            row.status,
            row.note.replace('|', "\\|")
        );
    }
    out
}

fn code(name: &str) -> String {
    format!("`{}`", name.replace('|', "\\|"))
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for path in files("tests/coverage", &[".tsv"]) {
        let table = path.file_stem().unwrap_or_default().to_string_lossy();
        for (idx, line) in text(&path).lines().enumerate() {
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            let cells: Vec<&str> = line.split('\t').map(str::trim).collect();
            let [section, name, status, test, ref note @ ..] = cells[..] else {
                panic!("{}:{}: four cells and a note", path.display(), idx + 1);
            };
            rows.push(Row {
                table: table.clone().into_owned(),
                section: section.to_owned(),
                name: name.to_owned(),
                status: status.to_owned(),
                test: test.to_owned(),
                note: note.join(" "),
            });
        }
    }
    rows
}

/// Returns the names of the test functions of a file.
fn tests(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line == "#[test]" || line.starts_with("#[tokio::test") {
            is_test = true;
            continue;
        }
        let function = line
            .strip_prefix("async ")
            .unwrap_or(line)
            .strip_prefix("fn ");
        if let Some(rest) = function
            && std::mem::take(&mut is_test)
        {
            names.push(rest.split('(').next().unwrap_or("").to_owned());
        }
    }
    names
}
