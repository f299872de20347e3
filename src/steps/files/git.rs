//! Git sources, through the `git` command: its credentials, proxies and protocols just work.
//!
//! A repository in a folder on this machine is read in place; any other is fetched, one commit deep, into a bare
//! repository under the project's home. Text of a person never becomes an option of the command, no prompt is ever
//! shown, and each call has a deadline.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flowstone_flow::private;

use super::error::FilesError;
use super::manifest::{Entry, Kind, Manifest};
use super::objects::{self, Objects};
use super::process::{Git, Limit};
use super::snapshot::{Content, Limits};

/// A repository, with the commit to read.
#[derive(Clone)]
pub struct Repository {
    /// An address that git can fetch from, or a folder.
    pub repo: String,
    /// A branch, a tag, `HEAD` or a commit.
    pub reference: String,
    /// The folder that relative paths start from.
    pub base: PathBuf,
    /// A git setting with a secret in its value, which is passed to git in the environment.
    pub header: Option<(String, String)>,
    /// The name of the connection that the header is from.
    pub connection: Option<String>,
    pub timeout: Duration,
    pub limits: Limits,
}

/// Returns the tree of a commit, and the commit's hash.
pub fn snapshot(
    repository: &Repository,
    home: &Path,
    objects: &Objects,
    limit: &Limit,
) -> Result<(Manifest, String), FilesError> {
    check(repository)?;
    let local = local_folder(&repository.base, &repository.repo);
    let (git, commit) = match local {
        Some(folder) => {
            let git = Git::new(Some(&folder), limit.clone());
            let commit = commit_of(&git, &repository.reference)?;
            (git, commit)
        }
        None => fetch(repository, home, limit)?,
    };
    let known = home
        .join("commits")
        .join(format!("{commit}-{}", repository.limits.file_bytes));
    if let Some(manifest) = remembered(&known, objects) {
        return Ok((manifest, commit));
    }
    let manifest = export(&git, &commit, repository.limits, home, objects)?;
    let id = objects.put(&manifest.encode())?;
    if let Err(error) = objects::replace_file(&known, id.as_bytes()) {
        tracing::debug!(%error, "the commit's tree was not cached");
    }
    Ok((manifest, commit))
}

/// Returns the tree of a commit that was exported before, if its contents are still stored.
fn remembered(known: &Path, objects: &Objects) -> Option<Manifest> {
    let id = fs::read_to_string(known).ok()?;
    let manifest = Manifest::decode(&objects.get(id.trim()).ok()?).ok()?;
    let complete = manifest
        .entries()
        .all(|entry| entry.hash.is_empty() || objects.has(&entry.hash, entry.size));
    complete.then_some(manifest)
}

pub(super) fn check(repository: &Repository) -> Result<(), FilesError> {
    let bad = |cause: String| Err(FilesError::BadGitSource { cause });
    let (repo, reference) = (repository.repo.as_str(), repository.reference.as_str());
    if repo.is_empty() || repo.starts_with('-') || repo.contains(|it: char| it.is_control()) {
        return bad(format!(
            "`{}` is not an address of a repository",
            repo.escape_debug()
        ));
    }
    if repo.contains("::") && !repo.contains("://") {
        return bad(format!(
            "`{repo}` names a helper program; only file, git, http, https and ssh are fetched from"
        ));
    }
    let is_odd = |it: char| it.is_control() || it.is_whitespace() || ":?*[\\^~+".contains(it);
    if reference.is_empty()
        || reference.starts_with('-')
        || reference.contains("..")
        || reference.contains(is_odd)
    {
        return bad(format!(
            "`{}` is not a branch, a tag or a commit",
            reference.escape_debug()
        ));
    }
    Ok(())
}

/// Returns the folder that an address names, if it is on this machine.
pub(super) fn local_folder(base: &Path, repo: &str) -> Option<PathBuf> {
    let repo = repo.strip_prefix("file://").unwrap_or(repo);
    if repo.contains("://") {
        return None;
    }
    let folder = base.join(repo);
    folder.is_dir().then_some(folder)
}

pub(super) fn commit_of(git: &Git, reference: &str) -> Result<String, FilesError> {
    let what = format!("find `{reference}`");
    let asked = format!("{reference}^{{commit}}");
    let out = git.text(
        &what,
        &["rev-parse", "--verify", "--end-of-options", &asked],
    )?;
    let commit = out.lines().last().unwrap_or_default().trim().to_string();
    if is_hash(&commit) {
        return Ok(commit);
    }
    Err(FilesError::Git {
        what,
        cause: format!("it answered `{commit}`"),
        is_transient: false,
    })
}

fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the folder of our own repository for an address, and creates it if necessary.
pub(super) fn cache(home: &Path, address: &str) -> Result<PathBuf, FilesError> {
    let cache = home
        .join("git")
        .join(&objects::hash(address.as_bytes())[..24]);
    private::make_folder(&cache).map_err(|error| storage(&cache, &error))?;
    Ok(cache)
}

fn storage(cache: &Path, error: &std::io::Error) -> FilesError {
    FilesError::storage(cache, error)
}

/// Locks our own repository. Only one user at a time, even across processes; git's own lock files would fail instead of
/// waiting.
pub(super) fn lock(cache: &Path) -> Result<File, FilesError> {
    let lock = File::create(cache.join("flowstone.lock"));
    let lock = lock.map_err(|error| storage(cache, &error))?;
    lock.lock().map_err(|error| storage(cache, &error))?;
    Ok(lock)
}

/// Locks our own repository, and creates it if it is missing.
pub(super) fn prepare(cache: &Path, git: &Git) -> Result<File, FilesError> {
    let lock = lock(cache)?;
    if !cache.join("HEAD").is_file() {
        let what = "prepare a folder for the fetch";
        git.text(what, &["init", "--bare", "--quiet", "."])?;
        git.text(what, &["config", "gc.auto", "0"])?;
    }
    Ok(lock)
}

/// Fetches the commit into the cache of this address.
pub(super) fn fetch(
    repository: &Repository,
    home: &Path,
    limit: &Limit,
) -> Result<(Git, String), FilesError> {
    let cache = cache(home, &repository.repo)?;
    let git = Git::new(Some(&cache), limit.clone()).with_setting(repository.header.clone());
    let _lock = prepare(&cache, &git)?;
    let reference = repository.reference.as_str();
    if is_hash(reference)
        && let Ok(commit) = commit_of(&git, reference)
    {
        return Ok((git, commit));
    }
    let what = format!(
        "fetch `{reference}` of {}",
        crate::shown_url::without_password(&repository.repo)
    );
    let fetch = |depth: &[&str], spec: &str| {
        let mut args = vec![
            "fetch",
            "--quiet",
            "--no-tags",
            "--force",
            "--no-recurse-submodules",
        ];
        args.extend(depth);
        args.extend(["--", repository.repo.as_str(), spec]);
        git.text(&what, &args)
    };
    let target = "refs/flowstone/fetched";
    match fetch(&["--depth=1"], &format!("+{reference}:{target}")) {
        Ok(_) => {}
        // Some servers do not return a single commit by its hash; one of all branches contains it then.
        Err(FilesError::Git { .. }) if is_hash(reference) => {
            fetch(&["--unshallow"], "+refs/heads/*:refs/flowstone/heads/*")
                .or_else(|_| fetch(&[], "+refs/heads/*:refs/flowstone/heads/*"))?;
            let commit = commit_of(&git, reference)?;
            return Ok((git, commit));
        }
        Err(error) => return Err(error),
    }
    let commit = commit_of(&git, target)?;
    Ok((git, commit))
}

/// Lists a commit, and stores the contents that are missing.
fn export(
    git: &Git,
    commit: &str,
    limits: Limits,
    home: &Path,
    objects: &Objects,
) -> Result<Manifest, FilesError> {
    let listing = git.bytes(
        "list the commit",
        &["ls-tree", "-r", "-l", "-z", "--full-tree", commit],
    )?;
    let mut files = Vec::new();
    let mut total = 0u64;
    for line in listing
        .split(|byte| *byte == 0)
        .filter(|line| !line.is_empty())
    {
        let file =
            Listed::parse(&String::from_utf8_lossy(line)).ok_or_else(|| FilesError::Git {
                what: "list the commit".into(),
                cause: "its answer has an unknown form".into(),
                is_transient: false,
            })?;
        if files.len() as u64 >= limits.files {
            return Err(FilesError::TooLarge {
                what: "files",
                limit: limits.files,
            });
        }
        if file.wants_content(limits) {
            total += file.entry.size;
            if total > limits.bytes {
                return Err(FilesError::TooLarge {
                    what: "bytes",
                    limit: limits.bytes,
                });
            }
        } else if file.entry.kind == Kind::File {
            files.push(Listed {
                entry: Entry {
                    kind: Kind::Large,
                    ..file.entry
                },
                ..file
            });
            continue;
        }
        files.push(file);
    }
    read_contents(git, &mut files, limits, home, objects)?;
    Ok(Manifest::new(
        files.into_iter().map(|file| file.entry).collect(),
    ))
}

/// One line of `git ls-tree`.
struct Listed {
    entry: Entry,
    object: String,
}

impl Listed {
    /// Reads `mode type object size<TAB>path`.
    fn parse(line: &str) -> Option<Listed> {
        let (facts, path) = line.split_once('\t')?;
        let mut facts = facts.split_whitespace();
        let (mode, kind, object, size) =
            (facts.next()?, facts.next()?, facts.next()?, facts.next()?);
        let kind = match (mode, kind) {
            ("120000", _) => Kind::Link,
            (_, "commit") => Kind::Submodule,
            _ => Kind::File,
        };
        let entry = Entry {
            path: path.to_string(),
            size: size.parse().unwrap_or(0),
            kind,
            hash: String::new(),
            lines: 0,
            executable: mode == "100755",
            target: None,
        };
        Some(Listed {
            entry,
            object: object.to_string(),
        })
    }

    fn wants_content(&self, limits: Limits) -> bool {
        match self.entry.kind {
            Kind::File => self.entry.size <= limits.file_bytes,
            Kind::Link => true,
            Kind::Binary | Kind::Large | Kind::Submodule | Kind::Unreadable | Kind::Folder => false,
        }
    }
}

/// Reads all contents through one `git cat-file --batch`.
fn read_contents(
    git: &Git,
    files: &mut [Listed],
    limits: Limits,
    home: &Path,
    objects: &Objects,
) -> Result<(), FilesError> {
    let what = "read the files of the commit";
    let failed = |cause: String| FilesError::Git {
        what: what.into(),
        cause,
        is_transient: false,
    };
    let wanted: String = files
        .iter()
        .filter(|file| file.wants_content(limits))
        .map(|file| format!("{}\n", file.object))
        .collect();
    // The list is passed as a file: writing it to a pipe could block while git waits for its answers to be read.
    let list = home.join(objects::temporary_name());
    let storage = |error: std::io::Error| FilesError::storage(home, &error);
    private::make_folder(home)
        .and_then(|()| private::write(&list, wanted.as_ref()))
        .map_err(storage)?;
    let input = File::open(&list).map_err(storage);
    fs::remove_file(&list).ok();
    let batch = objects.batch()?;
    git.stream(what, &["cat-file", "--batch"], input?, |output| {
        let mut output = BufReader::new(output);
        for file in files.iter_mut().filter(|file| file.wants_content(limits)) {
            let bytes = next_object(&mut output).map_err(|error| failed(error.to_string()))?;
            if file.entry.kind == Kind::Link {
                file.entry.target = Some(String::from_utf8_lossy(&bytes).into_owned());
            } else {
                let hash = batch.put(&bytes)?;
                Content::of(&bytes, hash).apply(&mut file.entry);
            }
        }
        Ok(())
    })?;
    batch.finish()
}

/// Reads `object type size<LF>content<LF>`.
fn next_object(output: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut header = String::new();
    output.read_line(&mut header)?;
    let size: u64 = header
        .trim_end()
        .rsplit(' ')
        .next()
        .and_then(|size| size.parse().ok())
        .ok_or_else(|| std::io::Error::other(format!("it answered `{}`", header.trim_end())))?;
    let mut bytes = Vec::new();
    output.by_ref().take(size).read_to_end(&mut bytes)?;
    // Skips the line end.
    output.read_exact(&mut [0])?;
    Ok(bytes)
}

/// Returns the address without secrets, so that it still works: a user name is kept unless it is a token.
pub fn address(repo: &str) -> String {
    let bare = crate::shown_url::without_password(repo);
    let (Some((scheme, rest)), Some((_, host))) = (repo.split_once("://"), bare.split_once("://"))
    else {
        return bare;
    };
    let user = rest.strip_suffix(host).unwrap_or_default();
    let name = user.split([':', '@']).next().unwrap_or_default();
    match scheme.starts_with("http") || name.is_empty() {
        true => bare,
        false => format!("{scheme}://{name}@{host}"),
    }
}
