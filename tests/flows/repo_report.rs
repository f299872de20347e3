//! `repo-report.edn`, on a small folder and on this repository.

use std::process::Command;

use expect_test::expect_file;

use super::project;
use crate::program::Scratch;
use crate::tidy::root;

#[test]
fn a_folder_is_reported_on() {
    let scratch = project();
    let report = scratch
        .run(&[
            "run",
            "flows/repo-report.edn",
            "--input",
            "@flows/repo-report/input.json",
        ])
        .ok();
    expect_file!["../../flows/repo-report/expected.md"].assert_eq(&report);
}

#[test]
fn a_git_repository_is_reported_on() {
    let scratch = project();
    let sample = scratch.path().join("flows/repo-report/sample");
    for args in [
        &["init", "--quiet"][..],
        &["add", "."],
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.com",
            "commit",
            "--quiet",
            "-m",
            "all",
        ],
    ] {
        let status = Command::new("git").args(args).current_dir(&sample).status();
        assert!(status.is_ok_and(|status| status.success()), "git {args:?}");
    }
    let input = format!("{{\"path\": \"file://{}\", \"top\": 3}}", sample.display());
    let report = scratch
        .run(&["run", "flows/repo-report.edn", "--input", &input])
        .ok();
    let expected = scratch.read("flows/repo-report/expected.md");
    let tables = |text: &str| text.split_once("\n").map(|(_, rest)| rest.to_owned());
    assert_eq!(tables(&report), tables(&expected));
}

/// The counts of the first README command, against `git ls-files` and `wc -l`.
#[test]
fn counts_of_this_repository_are_right() {
    let scratch = Scratch::new();
    let ls = git(&["ls-files", "--cached", "--others", "--exclude-standard"]);
    let mut counted = (0, 0, 0);
    for file in ls.lines() {
        // A file that is deleted but not yet committed is listed and not there.
        let Ok(bytes) = std::fs::read(root().join(file)) else {
            continue;
        };
        let ends = bytes.iter().filter(|byte| **byte == b'\n').count();
        let last = usize::from(bytes.last().is_some_and(|byte| *byte != b'\n'));
        let lines = if bytes.contains(&0) { 0 } else { ends + last };
        counted = (counted.0 + 1, counted.1 + lines, counted.2 + bytes.len());
        scratch.write(file, bytes);
    }
    let report = scratch
        .run(&[
            "run",
            "flows/repo-report.edn",
            "--input",
            "{\"path\": \".\"}",
        ])
        .ok();
    let (files, lines, bytes) = counted;
    let expected = format!("{files} files, {lines} lines, {bytes} bytes.");
    assert!(report.contains(&expected), "{expected}\n{report}");
}

fn git(args: &[&str]) -> String {
    let output = Command::new("git").args(args).current_dir(root()).output();
    let output = output.expect("git runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
