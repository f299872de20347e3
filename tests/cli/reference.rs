//! The generated pages are as the code says. `UPDATE_EXPECT=1` writes them anew.

use expect_test::expect_file;

use crate::program::Scratch;
use crate::tidy::{files, text};

#[test]
fn reference_pages_are_up_to_date() {
    let scratch = Scratch::new();
    scratch.run(&["reference", "pages"]).ok();
    expect_file!["../../docs/reference/commands.md"].assert_eq(&scratch.read("pages/commands.md"));
    expect_file!["../../docs/reference/functions.md"]
        .assert_eq(&scratch.read("pages/functions.md"));
    expect_file!["../../docs/reference/steps.md"].assert_eq(&scratch.read("pages/steps.md"));
}

#[test]
fn the_list_of_errors_is_up_to_date() {
    const AREAS: &[(&str, &str)] = &[
        ("E01", "Reading"),
        ("E02", "Compiling"),
        ("E03", "Running the language"),
        ("E04", "Flow definitions and inputs"),
        ("E05", "Runs and their journal"),
        ("E06", "Stores, tables, values"),
        ("E07", "Steps"),
        ("E08", "Language models"),
        ("E09", "The command line"),
    ];
    let mut list = "# Errors\n\nEach error has a code; each code has a page.\n".to_owned();
    let pages = files("docs/errors", &[".md"]);
    for (prefix, area) in AREAS {
        list.push_str(&format!("\n## {area}\n\n"));
        for page in &pages {
            let code = page.file_stem().unwrap_or_default().to_string_lossy();
            if code.starts_with(prefix) {
                let page = text(page);
                let title = page.lines().next().unwrap_or("");
                let title = title.trim_start_matches(&format!("# {code}: "));
                list.push_str(&format!("- [{code}]({code}.md): {title}\n"));
            }
        }
    }
    expect_file!["../../docs/errors/README.md"].assert_eq(&list);
}
