//! The coverage page: each feature has rows, each row that works has a test, and each such test a row.
//!
//! `tests/coverage/<name>.tsv` has the rows: `feature TAB row TAB status TAB test TAB note`. A test is a function in
//! `tests/steps/rows/<name>.rs`, or `file::function` with the file from `tests/`. `tests/coverage/features.txt` lists
//! the features, one a line, in the order of the page.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use expect_test::expect_file;

use super::tree::{files, none, root, text};

/// The statuses of a row, in the order of the summary's columns. The page explains each.
const STATUSES: &[&str] = &["done", "differs", "missing", "hosted"];

/// The file that lists the features, in the order of the page.
const FEATURES: &str = "tests/coverage/features.txt";

struct Row {
    /// The table's name, that of its file.
    table: String,
    feature: String,
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
            self.table, self.feature, self.name
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
fn each_feature_has_rows() {
    let rows = rows();
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for feature in features() {
        if !rows.iter().any(|row| row.feature == feature) {
            problems.push(format!("{FEATURES}: no row belongs to `{feature}`"));
        }
        if !seen.insert(feature.clone()) {
            problems.push(format!("{FEATURES}: `{feature}` is listed twice"));
        }
    }
    none(problems);
}

#[test]
fn each_row_is_well_formed() {
    let features = features();
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for row in rows() {
        if !STATUSES.contains(&row.status.as_str()) {
            problems.push(format!("{}: unknown status `{}`", row.place(), row.status));
        }
        if !features.contains(&row.feature) {
            problems.push(format!(
                "{}: {FEATURES} does not list `{}`",
                row.place(),
                row.feature
            ));
        }
        if row.status != "done" && row.note.is_empty() {
            problems.push(format!("{}: `{}` needs a note", row.place(), row.status));
        }
        if !seen.insert((row.feature.clone(), row.name.clone())) {
            problems.push(format!("{}: listed twice", row.place()));
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

/// Writes the page: a summary, then the features in their order.
fn page(rows: &[Row]) -> String {
    let features = features();
    let mut out = "# Coverage\n\nWhich features of the flow format Flowstone supports, and the test that shows each.\n\n\
                   | status | meaning |\n|---|---|\n\
                   | `done` | works as the flow format specifies |\n\
                   | `differs` | works, as the note says |\n\
                   | `missing` | does not work; the note says what happens instead |\n\
                   | `hosted` | means something in a hosted product only |\n"
        .to_owned();
    summary(&mut out, &features, rows);
    for feature in &features {
        let _ = write!(
            out,
            "\n## {feature}\n\n| row | status | test | note |\n|---|---|---|---|\n"
        );
        for row in rows.iter().filter(|row| row.feature == *feature) {
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

/// Writes how many rows of each feature have each status.
fn summary(out: &mut String, features: &[String], rows: &[Row]) {
    let _ = write!(
        out,
        "\n| feature | {} |\n|---|{}\n",
        STATUSES.join(" | "),
        "---:|".repeat(STATUSES.len())
    );
    let mut line = |name: &str, belongs: &dyn Fn(&Row) -> bool| {
        let counts = STATUSES.iter().map(|status| {
            let count = rows
                .iter()
                .filter(|row| row.status == *status && belongs(row));
            match count.count() {
                0 => String::new(),
                count => count.to_string(),
            }
        });
        let counts: Vec<String> = counts.collect();
        let _ = writeln!(out, "| {name} | {} |", counts.join(" | "));
    };
    for feature in features {
        line(feature, &|row| row.feature == *feature);
    }
    line("all", &|_| true);
}

/// Reads the names of the features.
fn features() -> Vec<String> {
    let text = text(FEATURES);
    let names = text.lines().filter(|line| !line.starts_with('#'));
    names.map(|name| name.trim().to_owned()).collect()
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
            let [feature, name, status, test, ref note @ ..] = cells[..] else {
                panic!(
                    "{}:{}: expected four cells and a note, separated by tabs",
                    path.display(),
                    idx + 1
                );
            };
            rows.push(Row {
                table: table.clone().into_owned(),
                feature: feature.to_owned(),
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
