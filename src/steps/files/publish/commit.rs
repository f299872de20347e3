//! Makes the commit: contents are passed to `git fast-import`, and are compared with the base before.

use std::collections::HashMap;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use super::{Change, Person, Place, Publication, PublishError, TRAILER, scratch};
use crate::files::error::FilesError;
use crate::files::manifest::{Entry, Kind};
use crate::files::objects::{self, Objects};
use crate::files::process::Git;

/// Git's object id of a content.
type Object = String;

/// Makes the commit, or finds the existing one, and returns its hash.
pub(super) fn make(
    publication: &Publication,
    place: &Place,
    base: &str,
    within: (&Git, &Path, &Objects),
) -> Result<String, FilesError> {
    let (git, cache, objects) = within;
    let stored = store(&publication.changes, git, cache, objects)?;
    let listed = listing(git, base)?;
    let mut outdated = Vec::new();
    let mut written = Vec::new();
    for change in &publication.changes {
        let path = format!("{}{}", place.prefix, change.path);
        let there = listed.get(&path);
        let before = change.before.as_ref();
        let is_as_read = match (there, before) {
            (None, None) => true,
            (Some(there), Some(before)) => is_same(there, before, &stored),
            _ => false,
        };
        let is_done = match (there, change.now.as_ref()) {
            (None, None) => true,
            (Some(there), Some(now)) => is_same(there, now, &stored) && there.mode == mode(now),
            _ => false,
        };
        if is_done {
            continue;
        }
        if !is_as_read {
            outdated.push(change.path.clone());
        }
        written.push((path, change.now.as_ref()));
    }
    if !outdated.is_empty() {
        let base = base[..12.min(base.len())].to_string();
        return Err(PublishError::Outdated {
            base,
            paths_: outdated,
        }
        .into());
    }
    if written.is_empty() {
        let why = "the base already has these changes";
        return Err(PublishError::Nothing { why }.into());
    }
    let reference = format!(
        "refs/flowstone/publish/{}",
        &objects::hash(publication.key.as_bytes())[..24]
    );
    let stream = text(
        publication,
        place,
        (git, base, &reference),
        &written,
        &stored,
    )?;
    import(git, cache, &stream, None)?;
    let made = git.text("find the commit", &["rev-parse", "--verify", &reference])?;
    Ok(made.trim().to_string())
}

/// Passes all contents to git, old and new, and returns their object ids by our hashes.
fn store(
    changes: &[Change],
    git: &Git,
    cache: &Path,
    objects: &Objects,
) -> Result<HashMap<String, Object>, FilesError> {
    let mut marked: Vec<String> = Vec::new();
    let mut seen: HashMap<String, Object> = HashMap::new();
    let mut stream = Vec::from(&b"feature done\n"[..]);
    let entries = changes.iter().flat_map(|change| {
        let now = change.now.as_ref().map(|it| (it, &change.path, true));
        let before = change.before.as_ref().map(|it| (it, &change.path, false));
        now.into_iter().chain(before)
    });
    for (entry, path, is_needed) in entries {
        let Some(key) = key(entry) else {
            match is_needed {
                true => return Err(PublishError::NoContent { path: path.clone() }.into()),
                false => continue,
            }
        };
        if seen.contains_key(&key) {
            continue;
        }
        let content = match &entry.target {
            Some(target) => target.clone().into_bytes(),
            None => objects.get(&entry.hash)?,
        };
        marked.push(key.clone());
        seen.insert(key, String::new());
        stream.extend(format!("blob\nmark :{}\ndata {}\n", marked.len(), content.len()).bytes());
        stream.extend(content);
        stream.push(b'\n');
    }
    stream.extend(b"done\n");
    let marks = cache.join(objects::temporary_name());
    import(git, cache, &stream, Some(&marks))?;
    let text = fs::read_to_string(&marks).unwrap_or_default();
    fs::remove_file(&marks).ok();
    // `:1 <object>`
    for line in text.lines() {
        let mark = line.strip_prefix(':').and_then(|line| line.split_once(' '));
        let named = mark.and_then(|(number, object)| {
            let at = number.parse::<usize>().ok()?.checked_sub(1)?;
            Some((marked.get(at)?.clone(), object.to_string()))
        });
        seen.extend(named);
    }
    Ok(seen)
}

/// The key of a content in the dialogue with git; `None` if it has no content.
fn key(entry: &Entry) -> Option<String> {
    match (&entry.target, entry.kind) {
        (Some(target), _) => Some(format!("link {target}")),
        (None, Kind::File | Kind::Binary) => Some(entry.hash.clone()),
        (None, Kind::Large | Kind::Link | Kind::Submodule | Kind::Unreadable | Kind::Folder) => {
            None
        }
    }
}

fn mode(entry: &Entry) -> &'static str {
    match entry.kind {
        Kind::Link => "120000",
        Kind::Submodule => "160000",
        _ if entry.executable => "100755",
        _ => "100644",
    }
}

/// The entry of a commit at a path.
struct There {
    mode: String,
    object: Object,
}

fn is_same(there: &There, entry: &Entry, stored: &HashMap<String, Object>) -> bool {
    match key(entry) {
        Some(key) => {
            stored.get(&key) == Some(&there.object)
                && (there.mode == "120000") == (entry.kind == Kind::Link)
        }
        // A content that was not read cannot be compared, but its kind must be the same.
        None => (there.mode == "160000") == (entry.kind == Kind::Submodule),
    }
}

fn listing(git: &Git, commit: &str) -> Result<HashMap<String, There>, FilesError> {
    let listing = git.bytes(
        "list the commit",
        &["ls-tree", "-r", "-z", "--full-tree", commit],
    )?;
    let lines = listing.split(|byte| *byte == 0);
    Ok(lines
        .filter_map(|line| {
            let line = String::from_utf8_lossy(line);
            let (facts, path) = line.split_once('\t')?;
            let mut facts = facts.split(' ');
            let (mode, _, object) = (facts.next()?, facts.next()?, facts.next()?);
            let there = There {
                mode: mode.to_string(),
                object: object.to_string(),
            };
            Some((path.to_string(), there))
        })
        .collect())
}

/// Writes the commit in the format of `git fast-import`.
fn text(
    publication: &Publication,
    place: &Place,
    onto: (&Git, &str, &str),
    written: &[(String, Option<&Entry>)],
    stored: &HashMap<String, Object>,
) -> Result<Vec<u8>, FilesError> {
    let (git, base, reference) = onto;
    let committer = person(place, git)?;
    let author = publication.author.as_ref().unwrap_or(&committer);
    let below = git.text("read the commit", &["show", "-s", "--format=%ct", base])?;
    let below: i64 = below.trim().parse().unwrap_or(0);
    let seconds = publication
        .started_ms
        .map_or(below + 1, |started| (started / 1000).max(below));
    let message = with_trailer(&publication.message, &publication.key);
    let mut stream = format!(
        "feature done\ncommit {reference}\nauthor {} {seconds} +0000\ncommitter {} {seconds} +0000\ndata {}\n{message}\nfrom {base}\n",
        line(author),
        line(&committer),
        message.len()
    );
    for (path, _) in written.iter().filter(|(_, now)| now.is_none()) {
        stream.push_str(&format!("D {}\n", quoted(path)));
    }
    for (path, now) in written {
        let object = now.and_then(|now| Some((now, stored.get(&key(now)?)?)));
        if let Some((now, object)) = object {
            stream.push_str(&format!("M {} {object} {}\n", mode(now), quoted(path)));
        }
    }
    stream.push_str("\ndone\n");
    Ok(stream.into_bytes())
}

/// Returns the committer from git's own settings.
fn person(place: &Place, git: &Git) -> Result<Person, FilesError> {
    let own = place.folder.as_deref().map(|folder| git.elsewhere(folder));
    let git = own.as_ref().unwrap_or(git);
    let setting = |name: &str| -> Result<Option<String>, FilesError> {
        let found = git.attempt("read the settings", &["config", "--get", name])?;
        let text = found.output.trim().to_string();
        Ok((found.is_done && !text.is_empty()).then_some(text))
    };
    Ok(Person {
        name: setting("user.name")?.unwrap_or_else(|| "Flowstone".into()),
        email: setting("user.email")?.unwrap_or_else(|| "flowstone@localhost".into()),
    })
}

fn line(person: &Person) -> String {
    let plain = |text: &str| text.replace(['<', '>', '\n', '\r', '\0'], "");
    format!("{} <{}>", plain(&person.name), plain(&person.email))
}

/// Adds our trailer to a message, after its other trailers.
fn with_trailer(message: &str, key: &str) -> String {
    let message = message.trim_end();
    let last = message.rsplit_once("\n\n").map(|(_, last)| last);
    let is_trailer = |line: &str| {
        let name = line.split_once(": ").map(|(name, _)| name);
        name.is_some_and(|name| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|it| it.is_ascii_alphanumeric() || it == b'-')
        })
    };
    let gap = match last {
        Some(last) if last.lines().all(is_trailer) => "\n",
        _ => "\n\n",
    };
    format!("{message}{gap}{TRAILER}: {key}\n")
}

fn quoted(path: &str) -> String {
    let mut text = String::from("\"");
    for it in path.chars() {
        match it {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            it => text.push(it),
        }
    }
    text.push('"');
    text
}

fn import(git: &Git, cache: &Path, stream: &[u8], marks: Option<&Path>) -> Result<(), FilesError> {
    let storage = |error: std::io::Error| FilesError::storage(cache, &error);
    let mut file = scratch(cache)?;
    file.write_all(stream)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .map_err(storage)?;
    let marks = marks.map(|marks| format!("--export-marks={}", marks.display()));
    let mut args = vec!["fast-import", "--quiet", "--force", "--done"];
    args.extend(marks.as_deref());
    git.stream("write the commit", &args, file, |output| {
        std::io::copy(output, &mut std::io::sink())
            .map(drop)
            .map_err(storage)
    })
}
