//! `changelog-writer.edn` on a repository that the test makes: what it publishes is read back with plain git.

use std::path::Path;
use std::process::Command;

use expect_test::expect_file;
use flowstone_lang::value::Value;

use super::{data, project};

fn git(folder: &Path, env: &[(&str, &str)], args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs(env.iter().copied())
        .output()
        .expect("git");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {complaints}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Makes the repository that `history.edn` describes, the oldest commit first: who, when, what, and the file that it
/// writes. The second is a release.
fn repository(folder: &Path, history: &str) {
    std::fs::create_dir_all(folder).expect("a folder");
    git(folder, &[], &["init", "--quiet"]);
    let text = |value: &Value, at: i64| {
        let item = value
            .as_vector()
            .and_then(|items| items.get(usize::try_from(at).ok()?).cloned());
        item.and_then(|item| item.as_str().map(str::to_owned))
            .expect("a text")
    };
    let history = data(history);
    for (number, commit) in history.as_vector().expect("commits").iter().enumerate() {
        let [who, when, what, file, content] = [0, 1, 2, 3, 4].map(|at| text(commit, at));
        std::fs::write(folder.join(&file), content).expect("a file");
        git(folder, &[], &["add", "--all"]);
        let mail = format!("{}@example.com", who.to_lowercase());
        let env = [
            ("GIT_AUTHOR_NAME", who.as_str()),
            ("GIT_AUTHOR_EMAIL", mail.as_str()),
            ("GIT_AUTHOR_DATE", when.as_str()),
            ("GIT_COMMITTER_NAME", who.as_str()),
            ("GIT_COMMITTER_EMAIL", mail.as_str()),
            ("GIT_COMMITTER_DATE", when.as_str()),
        ];
        git(folder, &env, &["commit", "--quiet", "-m", &what]);
        if number == 1 {
            git(folder, &[], &["tag", "v0.1.0"]);
        }
    }
}

#[test]
fn history_becomes_a_commit_on_a_branch() {
    let scratch = project();
    let work = scratch.path().join("harbour");
    repository(&work, &scratch.read("flows/changelog-writer/history.edn"));
    let bare = scratch.path().join("harbour.git");
    git(
        scratch.path(),
        &[],
        &["clone", "--quiet", "--bare", "harbour", "harbour.git"],
    );
    let input = format!(
        "{{:repo \"file://{}\" :since \"v0.1.0\" :version \"0.2.0\"}}",
        bare.display()
    );
    let shown = scratch
        .run(&[
            "run",
            "flows/changelog-writer.edn",
            "--quiet",
            "--input",
            &input,
        ])
        .ok();
    let commit = git(&bare, &[], &["rev-parse", "changelog"]);
    assert!(shown.contains(commit.trim()), "{shown}");
    assert_eq!(
        git(&bare, &[], &["log", "--format=%s", "main..changelog"]),
        "changelog: 0.2.0\n"
    );
    assert_eq!(
        git(&bare, &[], &["diff", "--name-only", "main", "changelog"]),
        "CHANGELOG.md\n"
    );
    let written = git(&bare, &[], &["show", "changelog:CHANGELOG.md"]);
    expect_file!["../../flows/changelog-writer/expected.md"].assert_eq(&written);
    // Nothing is new after the last commit.
    let input = format!("{{:repo \"file://{}\" :since \"main\"}}", bare.display());
    let shown = scratch
        .run(&[
            "run",
            "flows/changelog-writer.edn",
            "--quiet",
            "--input",
            &input,
        ])
        .ok();
    assert!(
        shown.contains(":published? false") || shown.contains("\"published?\": false"),
        "{shown}"
    );
}
