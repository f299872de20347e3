//! The coverage page: each section of the reference has rows, each row that works has a test, and each such test a row.
//!
//! `tests/coverage/<name>.tsv` has the rows: `section TAB row TAB status TAB test TAB note`. A test is a function in
//! `tests/steps/rows/<name>.rs`, or `file::function` with the file from `tests/`. The reference itself is not part of
//! the project: `tests/coverage/sections.txt` lists its sections.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use expect_test::expect_file;

use super::tree::{files, none, root, text};

/// What a row may be: tested as the reference has it, tested as ours where that differs, not there, of a hosted product
/// only. In the order of the summary's columns.
const STATUSES: &[&str] = &["done", "differs", "missing", "hosted"];

/// Where the sections of the reference are listed: `section TAB title`, in the order of the reference.
const SECTIONS: &str = "tests/coverage/sections.txt";

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

    /// Tells whether the row names a test. One that is missing may: its test shows what happens instead.
    fn is_tested(&self) -> bool {
        match self.status.as_str() {
            "done" | "differs" => true,
            "missing" => !self.test.is_empty(),
            _ => false,
        }
    }
}

#[test]
fn each_section_has_rows() {
    let rows = rows();
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for (section, title) in sections() {
        if title.is_empty() {
            problems.push(format!("{SECTIONS}: the section `{section}` has no title"));
        }
        if !rows.iter().any(|row| row.section == section) {
            problems.push(format!(
                "{SECTIONS}: no row belongs to `{section}`, {title}"
            ));
        }
        if !seen.insert(section.clone()) {
            problems.push(format!("{SECTIONS}: `{section}` is there twice"));
        }
    }
    none(problems);
}

#[test]
fn each_row_is_well_formed() {
    let sections = sections();
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for row in rows() {
        if !STATUSES.contains(&row.status.as_str()) {
            problems.push(format!("{}: no status `{}`", row.place(), row.status));
        }
        if !sections.iter().any(|(section, _)| *section == row.section) {
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

/// Writes the page: a summary, then the sections in their order.
fn page(rows: &[Row]) -> String {
    let sections = sections();
    let mut out = "# Coverage\n\nEach row of the flow reference, section by section, and the test that shows it.\n\n\
                   | status | meaning |\n|---|---|\n\
                   | `done` | works as the reference has it |\n\
                   | `differs` | works, as the note says |\n\
                   | `missing` | does not work; the note says what happens instead |\n\
                   | `hosted` | means something in a hosted product only |\n"
        .to_owned();
    summary(&mut out, &sections, rows);
    for (section, title) in &sections {
        let _ = write!(
            out,
            "\n## {section}: {title}\n\n| row | status | test | note |\n|---|---|---|---|\n"
        );
        for row in rows.iter().filter(|row| row.section == *section) {
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
    }
    out
}

/// Writes how many rows of each section have each status.
fn summary(out: &mut String, sections: &[(String, String)], rows: &[Row]) {
    let _ = write!(
        out,
        "\n| section | {} |\n|---|{}\n",
        STATUSES.join(" | "),
        "---:|".repeat(STATUSES.len())
    );
    let mut line = |name: &str, is_meant: &dyn Fn(&Row) -> bool| {
        let counts = STATUSES.iter().map(|status| {
            let count = rows
                .iter()
                .filter(|row| row.status == *status && is_meant(row));
            match count.count() {
                0 => String::new(),
                count => count.to_string(),
            }
        });
        let counts: Vec<String> = counts.collect();
        let _ = writeln!(out, "| {name} | {} |", counts.join(" | "));
    };
    for (section, title) in sections {
        line(&format!("{section}: {title}"), &|row| {
            row.section == *section
        });
    }
    line("all", &|_| true);
}

/// Reads the list of sections: name and title.
fn sections() -> Vec<(String, String)> {
    let mut sections = Vec::new();
    for line in text(SECTIONS).lines().filter(|line| !line.starts_with('#')) {
        let (section, title) = line.split_once('\t').unwrap_or((line, ""));
        sections.push((section.trim().to_owned(), title.trim().to_owned()));
    }
    sections
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
