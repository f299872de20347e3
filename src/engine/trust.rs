//! The flows from elsewhere that a person trusts: a file in the project's own data.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use flowstone_lang::value::Value;

use crate::codec;
use crate::json::items;

const FILE: &str = "trusted.edn";

/// A flow that is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted {
    pub slug: String,
    /// The hash of its text and of all that it included when it was trusted.
    pub digest: String,
    /// What it may touch: maps as `:allow` takes them, as text.
    pub rows: Vec<String>,
}

/// Returns the flows that are trusted.
///
/// # Errors
/// When the file is there and cannot be read.
pub fn trusted(home: &Path) -> io::Result<Vec<Trusted>> {
    let text = match fs::read_to_string(home.join(FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let value = codec::decode(&text).map_err(io::Error::other)?;
    let entries = items(&value).unwrap_or_default();
    let text = |entry: &Value, key: &str| entry.get(key)?.as_str().map(str::to_owned);
    let read = entries.iter().filter_map(|entry| {
        let rows = entry.get("allow").and_then(items).unwrap_or_default();
        let rows = rows
            .iter()
            .filter_map(|row| row.as_str().map(str::to_owned));
        Some(Trusted {
            slug: text(entry, "flow")?,
            digest: text(entry, "digest")?,
            rows: rows.collect(),
        })
    });
    Ok(read.collect())
}

/// Records flows. What was recorded of other versions of them is kept: runs of these may be under way.
///
/// # Errors
/// When the file cannot be written.
pub fn trust(home: &Path, entries: &[Trusted]) -> io::Result<()> {
    let mut all = trusted(home)?;
    let is_new = |it: &Trusted| {
        let same = |entry: &Trusted| it.slug == entry.slug && it.digest == entry.digest;
        !entries.iter().any(same)
    };
    all.retain(is_new);
    all.extend_from_slice(entries);
    write(home, &all)
}

/// Removes all versions of a flow. Tells whether it was there.
///
/// # Errors
/// When the file cannot be written.
pub fn untrust(home: &Path, slug: &str) -> io::Result<bool> {
    let mut all = trusted(home)?;
    let before = all.len();
    all.retain(|it| it.slug != slug);
    let was_there = all.len() != before;
    if was_there {
        write(home, &all)?;
    }
    Ok(was_there)
}

/// Writes beside and renames, so that a crash leaves the old list or the new one. Nobody else may read it.
fn write(home: &Path, all: &[Trusted]) -> io::Result<()> {
    let keyword = Value::keyword;
    let entries = all.iter().map(|it| {
        let rows = it.rows.iter().map(|row| Value::from(row.as_str()));
        Value::map([
            (keyword("flow"), Value::from(it.slug.as_str())),
            (keyword("digest"), Value::from(it.digest.as_str())),
            (keyword("allow"), Value::vector(rows)),
        ])
    });
    let text = codec::encode(&Value::vector(entries)).map_err(io::Error::other)?;
    fs::create_dir_all(home)?;
    let beside = home.join("trusted.edn.new");
    let mut options = fs::File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options.open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, home.join(FILE))
}
