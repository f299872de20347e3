//! Makes a commit of a changeset and pushes it, with `git`, in a repository of our own: no other index or work tree is
//! touched.
//!
//! Only the changed paths are written over the tree of the base commit, so modes, links and submodules are kept. The
//! last line of the commit message names its request, by which a repetition after a crash finds the commit on the
//! branch. Because its dates do not come from the clock, the repeated commit would be the same.

mod commit;
mod error;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

pub use error::PublishError;

use super::error::FilesError;
use super::git::{self, Repository};
use super::manifest::Entry;
use super::objects::{self, Objects};
use super::process::{Attempt, Git, Limit, failed};
use super::snapshot::Limits;

/// The key of the last line of a commit message.
const TRAILER: &str = "Flowstone-Publish";

/// The changeset to publish.
#[derive(Clone)]
pub struct Publication {
    pub from: From,
    pub branch: String,
    /// The base of the commit: a branch, a tag or a commit. Default: the commit that the changeset was made from.
    pub base: Option<String>,
    pub message: String,
    pub author: Option<Person>,
    /// A text that is the same for every attempt at this step, and unique among steps.
    pub key: String,
    /// The start time of the run, if its id contains one.
    pub started_ms: Option<i64>,
    pub changes: Vec<Change>,
}

/// The origin of the changeset's source.
#[derive(Clone)]
pub enum From {
    Git {
        repo: String,
        commit: String,
        /// The folder that relative paths start from.
        root: PathBuf,
        header: Option<(String, String)>,
    },
    /// A folder, which must be part of a repository's work tree.
    Folder(PathBuf),
}

/// The author of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    pub name: String,
    pub email: String,
}

/// A path that the changeset changes.
#[derive(Clone)]
pub struct Change {
    pub path: String,
    pub before: Option<Entry>,
    pub now: Option<Entry>,
}

/// The result of publishing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    pub branch: String,
    pub commit: String,
    /// The parent of the commit.
    pub base: String,
    /// The address of the repository, without a password.
    pub url: String,
}

/// Makes the commit and pushes it; if that was already done, returns the same result.
pub fn publish(
    publication: &Publication,
    home: &Path,
    objects: &Objects,
    limit: &Limit,
) -> Result<Published, FilesError> {
    check(publication)?;
    let place = Place::find(publication, limit)?;
    let cache = git::cache(home, &place.address)?;
    let git = Git::new(Some(&cache), limit.clone()).with_setting(place.header.clone());
    {
        let _lock = git::prepare(&cache, &git)?;
        if let Some(found) = earlier(publication, &place, &git)? {
            return Ok(found);
        }
    }
    let base = base(publication, &place, home, limit)?;
    let _lock = lock(&cache)?;
    let made = commit::make(publication, &place, &base, (&git, &cache, objects))?;
    push(publication, &place, &git, &made)?;
    Ok(Published {
        branch: publication.branch.clone(),
        commit: made,
        base,
        url: place.shown.clone(),
    })
}

fn lock(cache: &Path) -> Result<File, FilesError> {
    git::lock(cache)
}

/// Rejects names that git would interpret differently, or would reject only after much work.
fn check(publication: &Publication) -> Result<(), FilesError> {
    let branch = publication.branch.as_str();
    let bad = |why: &'static str| {
        Err(PublishError::BadBranch {
            branch: branch.to_string(),
            why,
        })
    };
    let is_odd = |it: char| it.is_control() || it == ' ' || "~^:?*[\\".contains(it);
    let parts_are_odd = branch
        .split('/')
        .any(|part| part.is_empty() || part.starts_with('.') || part.ends_with(".lock"));
    let checked = if branch.starts_with('-') {
        bad("it begins with `-`")
    } else if branch.starts_with("refs/") {
        bad("it is given without `refs/heads/`")
    } else if branch == "HEAD" || branch == "@" {
        bad("it is the name of another reference")
    } else if branch.contains(is_odd) || branch.contains("..") || branch.contains("@{") {
        bad("it holds a character that git refuses")
    } else if parts_are_odd || branch.ends_with('.') || branch.len() > 200 {
        bad("git refuses such a name")
    } else {
        Ok(())
    };
    checked?;
    if publication.changes.is_empty() {
        return Err(PublishError::Nothing {
            why: "the changeset changes nothing",
        }
        .into());
    }
    Ok(())
}

/// The repository that takes the commit.
struct Place {
    /// The address for git: an address, or the path of a folder.
    address: String,
    /// The address for people: as written in the source, without a password.
    shown: String,
    header: Option<(String, String)>,
    /// The source's own folder in the repository, with a slash at the end; empty for the whole repository.
    prefix: String,
    /// The commit that the changeset was made from.
    commit: Option<String>,
    /// The folder with the person's own settings.
    folder: Option<PathBuf>,
}

impl Place {
    fn find(publication: &Publication, limit: &Limit) -> Result<Place, FilesError> {
        match &publication.from {
            From::Git {
                repo,
                commit,
                root,
                header,
            } => {
                let folder = git::local_folder(root, repo);
                let address = match &folder {
                    Some(folder) => folder.display().to_string(),
                    None => repo.clone(),
                };
                Ok(Place {
                    address,
                    shown: git::address(repo),
                    header: header.clone(),
                    prefix: String::new(),
                    commit: Some(commit.clone()),
                    folder,
                })
            }
            From::Folder(path) => Place::containing(path, limit),
        }
    }

    /// Finds the repository whose work tree contains a folder.
    fn containing(path: &Path, limit: &Limit) -> Result<Place, FilesError> {
        let git = Git::new(Some(path), limit.clone());
        let none = |cause: String| PublishError::NoRepository {
            path: path.display().to_string(),
            cause,
        };
        if !path.is_dir() {
            return Err(none("the folder is gone".into()).into());
        }
        let asked = ["rev-parse", "--show-toplevel", "--show-prefix"];
        let found = git.attempt("find the repository", &asked)?;
        let mut lines = found.output.lines();
        let Some(top) = lines.next().filter(|_| found.is_done) else {
            return Err(none(last_line(&found.complaints)).into());
        };
        let head = git.attempt(
            "find the commit",
            &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"],
        )?;
        let commit = head.output.trim().to_string();
        Ok(Place {
            address: top.to_string(),
            shown: top.to_string(),
            header: None,
            prefix: lines.next().unwrap_or_default().to_string(),
            commit: head.is_done.then_some(commit),
            folder: Some(path.to_path_buf()),
        })
    }
}

/// Returns the push address of a repository on this machine.
pub fn remote_of(folder: &Path, limit: &Limit) -> Result<String, FilesError> {
    let git = Git::new(Some(folder), limit.clone());
    let found = git.attempt("find the remote", &["config", "--get", "remote.origin.url"])?;
    let address = found.output.trim().to_string();
    match found.is_done && !address.is_empty() {
        true => Ok(address),
        false => Err(PublishError::NoRepository {
            path: folder.display().to_string(),
            cause: "it has no remote `origin`".into(),
        }
        .into()),
    }
}

/// Finds the commit that an earlier attempt at the same step has pushed.
fn earlier(
    publication: &Publication,
    place: &Place,
    git: &Git,
) -> Result<Option<Published>, FilesError> {
    let branch = format!("refs/heads/{}", publication.branch);
    let what = format!("look at {}", place.shown);
    let listed = git.attempt(&what, &["ls-remote", "--", &place.address, &branch])?;
    if !listed.is_done {
        return Err(remote_failure(&what, &listed));
    }
    if listed.output.trim().is_empty() {
        return Ok(None);
    }
    let seen = "refs/flowstone/published";
    let spec = format!("+{branch}:{seen}");
    let fetched = git.attempt(
        &what,
        &[
            "fetch",
            "--quiet",
            "--no-tags",
            "--force",
            "--no-recurse-submodules",
            "--depth=20",
            "--",
            &place.address,
            &spec,
        ],
    )?;
    if !fetched.is_done {
        return Err(remote_failure(&what, &fetched));
    }
    let log = git.text(&what, &["log", "-20", "--format=%H %P%n%B%x00", seen])?;
    let line = format!("{TRAILER}: {}", publication.key);
    let ours = log
        .split('\0')
        .find(|entry| entry.lines().any(|it| it == line));
    Ok(ours.and_then(|entry| {
        let mut hashes = entry.trim_start().lines().next()?.split(' ');
        Some(Published {
            branch: publication.branch.clone(),
            commit: hashes.next()?.to_string(),
            base: hashes.next().unwrap_or_default().to_string(),
            url: place.shown.clone(),
        })
    }))
}

/// Fetches the parent of our commit.
fn base(
    publication: &Publication,
    place: &Place,
    home: &Path,
    limit: &Limit,
) -> Result<String, FilesError> {
    let Some(reference) = publication.base.as_ref().or(place.commit.as_ref()) else {
        return Err(PublishError::NoRepository {
            path: place.address.clone(),
            cause: "it has no commit yet".into(),
        }
        .into());
    };
    let repository = Repository {
        repo: place.address.clone(),
        reference: reference.clone(),
        base: PathBuf::new(),
        header: place.header.clone(),
        connection: None,
        timeout: limit.timeout,
        limits: Limits::default(),
    };
    git::check(&repository)?;
    match git::fetch(&repository, home, limit) {
        Ok((_, commit)) => Ok(commit),
        Err(FilesError::Git { cause, .. }) if cause.contains("couldn't find remote ref") => {
            Err(PublishError::NoBase {
                base: reference.clone(),
                url: place.shown.clone(),
            }
            .into())
        }
        Err(error) => Err(error),
    }
}

fn push(
    publication: &Publication,
    place: &Place,
    git: &Git,
    commit: &str,
) -> Result<(), FilesError> {
    let what = format!("push to {}", place.shown);
    let spec = format!("{commit}:refs/heads/{}", publication.branch);
    let pushed = git.attempt(
        &what,
        &[
            "push",
            "--porcelain",
            "--no-verify",
            "--recurse-submodules=no",
            "--",
            &place.address,
            &spec,
        ],
    )?;
    if pushed.is_done {
        return Ok(());
    }
    // `!<TAB>from:to<TAB>[remote rejected] (why)`
    let refused = pushed.output.lines().find_map(|line| {
        let (_, why) = line.strip_prefix('!')?.trim().split_once('\t')?;
        Some(why.to_string())
    });
    let url = place.shown.clone();
    let branch = publication.branch.clone();
    match refused {
        None => Err(remote_failure(&what, &pushed)),
        Some(why)
            if ["non-fast-forward", "fetch first", "stale info"]
                .iter()
                .any(|it| why.contains(it)) =>
        {
            Err(PublishError::Diverged { branch, url }.into())
        }
        Some(why) => Err(PublishError::Rejected {
            branch,
            url,
            why: inside_parentheses(&why),
            complaint: complaint_of_the_remote(&pushed.complaints),
        }
        .into()),
    }
}

fn inside_parentheses(text: &str) -> String {
    let inside = text
        .split_once('(')
        .and_then(|(_, rest)| rest.rsplit_once(')'));
    inside.map_or(text, |(inside, _)| inside).to_string()
}

/// Returns the messages that hooks of the other side printed.
fn complaint_of_the_remote(complaints: &str) -> String {
    let lines: Vec<&str> = complaints
        .lines()
        .filter_map(|line| line.strip_prefix("remote:"))
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    flowstone_flow::redact::cut(&lines.join("\n"), 1000)
}

fn last_line(text: &str) -> String {
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    line.unwrap_or("git gave no reason")
        .trim_start_matches("fatal: ")
        .to_string()
}

/// Makes an error of a rejected push.
fn remote_failure(what: &str, attempt: &Attempt) -> FilesError {
    let complaints = attempt.complaints.as_str();
    let is_denied = [
        "Authentication failed",
        "could not read Username",
        "could not read Password",
        "terminal prompts disabled",
        "Permission denied",
        "returned error: 401",
        "returned error: 403",
        "Host key verification failed",
    ]
    .iter()
    .any(|sign| complaints.contains(sign));
    let error = failed(what, complaints);
    match error {
        FilesError::Git { what, cause, .. } if is_denied => {
            PublishError::Denied { what, cause }.into()
        }
        error => error,
    }
}

/// Opens a scratch file next to the repository, which is already unlinked.
fn scratch(cache: &Path) -> Result<File, FilesError> {
    let path = cache.join(objects::temporary_name());
    let file = File::options()
        .create_new(true)
        .read(true)
        .write(true)
        .open(&path)
        .map_err(|error| FilesError::storage(cache, &error))?;
    fs::remove_file(&path).ok();
    Ok(file)
}
