//! The commits of a repository, through `git log`.
//!
//! A repository on this machine is read in place. Another is fetched with its whole history, into a separate repository
//! of our own.

use std::fs;
use std::path::Path;

use super::error::FilesError;
use super::git::{self, Repository};
use super::process::{Git, Limit};
use super::source::Spec;

/// The selection of commits.
pub(super) struct Question {
    pub limit: usize,
    /// A tag, a branch or a commit: only later commits are listed.
    pub since: Option<String>,
    /// If not empty, only commits that change one of these paths.
    pub paths: Vec<String>,
}

/// A commit of the history.
pub(super) struct Commit {
    pub hash: String,
    pub author: String,
    pub email: String,
    /// The author's date, as ISO 8601 with an offset.
    pub date: String,
    pub subject: String,
    pub body: String,
    /// The changed files; empty for a merge.
    pub files: Vec<String>,
}

/// Returns the commits, newest first, and one more than the limit if there are more.
pub(super) fn read(
    spec: &Spec,
    question: &Question,
    home: &Path,
    limit: &Limit,
) -> Result<Vec<Commit>, FilesError> {
    for path in &question.paths {
        super::path::normal(path)?;
    }
    let (git, tip, is_folder) = match spec {
        Spec::Folder(folder) => (
            Git::new(Some(&folder.path), limit.clone()),
            "HEAD".to_string(),
            true,
        ),
        Spec::Git(repository) => {
            let repository = Repository {
                repo: repository.repo.clone(),
                ..repository.clone()
            };
            git::check(&repository)?;
            match git::local_folder(&repository.base, &repository.repo) {
                Some(folder) => (
                    Git::new(Some(&folder), limit.clone()),
                    repository.reference.clone(),
                    false,
                ),
                None => whole(&repository, home, limit)?,
            }
        }
    };
    if let Some(since) = &question.since {
        let named = Repository {
            repo: "here".into(),
            reference: since.clone(),
            base: Default::default(),
            header: None,
            connection: None,
            timeout: limit.timeout,
            limits: Default::default(),
        };
        git::check(&named)?;
        git::commit_of(&git, since)?;
    }
    let tip = git::commit_of(&git, &tip)?;
    let range = match &question.since {
        Some(since) => format!("{since}..{tip}"),
        None => tip,
    };
    let count = format!("-n{}", question.limit + 1);
    let mut args = vec![
        "log",
        "--no-color",
        "--no-renames",
        "--no-show-signature",
        "--name-only",
        "-z",
        "--format=%x01%H%x00%an%x00%ae%x00%aI%x00%s%x00%b%x02",
        &count,
        &range,
        "--",
    ];
    let literal: Vec<String> = question
        .paths
        .iter()
        .map(|path| format!(":(literal){path}"))
        .collect();
    args.extend(literal.iter().map(String::as_str));
    if is_folder && literal.is_empty() {
        args.push(".");
    }
    let text = git.text("read the history", &args)?;
    Ok(text.split('\u{1}').filter_map(parse).collect())
}

/// Fetches a branch with its whole history.
fn whole(
    repository: &Repository,
    home: &Path,
    limit: &Limit,
) -> Result<(Git, String, bool), FilesError> {
    let cache = git::cache(&home.join("history"), &repository.repo)?;
    fs::create_dir_all(&cache).ok();
    let git = Git::new(Some(&cache), limit.clone()).with_setting(repository.header.clone());
    let _lock = git::prepare(&cache, &git)?;
    let what = format!(
        "fetch the history of {}",
        crate::shown_url::without_password(&repository.repo)
    );
    let target = "refs/flowstone/fetched";
    let one = format!("+{}:{target}", repository.reference);
    let repo = repository.repo.as_str();
    git.text(
        &what,
        &[
            "fetch",
            "--quiet",
            "--force",
            "--no-recurse-submodules",
            "--tags",
            "--",
            repo,
            &one,
            "+refs/heads/*:refs/heads/*",
        ],
    )?;
    Ok((git, target.to_string(), false))
}

fn parse(entry: &str) -> Option<Commit> {
    let (head, files) = entry.rsplit_once('\u{2}')?;
    let mut facts = head.splitn(6, '\0').map(str::to_string);
    let mut next = || facts.next();
    Some(Commit {
        hash: next()?,
        author: next()?,
        email: next()?,
        date: next()?,
        subject: next()?,
        body: next()?.trim_end().to_string(),
        files: files
            .split('\0')
            .map(|file| file.trim_start_matches('\n'))
            .filter(|file| !file.is_empty())
            .map(str::to_string)
            .collect(),
    })
}
