//! Packages: the files of one version of a flow in an archive, for other machines.
//!
//! A package is a gzipped tar file or a zip file. It is read strictly and into memory: files with plain relative paths, and
//! nothing else. So nothing in it can lead anywhere, and nothing is written before all of it was checked.

mod tar;
mod zip;

use std::collections::BTreeMap;
use std::io::Read;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use flowstone_lang::session::Session;
use flowstone_model::registry::{MAIN_FILE, MOST_BYTES, MOST_FILES, VersionFiles, is_plain_path};

use super::InstallationError;
use crate::registry::{read_version, texts};

/// Maximum number of bytes of a package, before and after it is unpacked.
pub const MOST: usize = MOST_BYTES;
/// The beginning of a gzipped file.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The beginning of a zip file.
const ZIP: &[u8] = b"PK\x03\x04";

/// Reads the files of a package.
///
/// # Errors
/// When it has links, other paths than plain relative ones, a file twice, too much, or is not a package.
pub fn read(bytes: &[u8]) -> Result<VersionFiles, InstallationError> {
    if bytes.len() > MOST {
        return Err(InstallationError::TooLarge);
    }
    let mut files = Files::default();
    if bytes.starts_with(&GZIP) {
        // One byte more tells a package that is too large from one that just fits; headers take some, too.
        let most = (MOST + MOST_FILES * 2 * tar::BLOCK) as u64;
        let mut unpacked = Vec::new();
        let read = GzDecoder::new(bytes)
            .take(most + 1)
            .read_to_end(&mut unpacked);
        read.map_err(|error| bad(format!("it cannot be unpacked: {error}")))?;
        if unpacked.len() as u64 > most {
            return Err(InstallationError::TooLarge);
        }
        tar::read(&unpacked, &mut files)?;
    } else if bytes.starts_with(ZIP) {
        zip::read(bytes, &mut files)?;
    } else {
        return Err(bad("it is neither a .tar.gz nor a .zip file"));
    }
    files.rooted()
}

/// Reads the files of a tar file, which is not compressed.
///
/// # Errors
/// As [`read`].
pub fn read_tar(bytes: &[u8]) -> Result<VersionFiles, InstallationError> {
    let mut files = Files::default();
    tar::read(bytes, &mut files)?;
    files.rooted()
}

/// Returns the package of some files: the same bytes for the same files.
///
/// # Errors
/// When a path is too long for a package.
pub fn write(files: &VersionFiles) -> Result<Vec<u8>, InstallationError> {
    let plain = tar::write(files)?;
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    std::io::Write::write_all(&mut packed, &plain)
        .and_then(|()| packed.finish())
        .map_err(|error| bad(error.to_string()))
}

/// Returns the slug of the flow in a package.
///
/// # Errors
/// When the main file cannot be read, or its slug is not one.
pub fn slug_of(files: &VersionFiles) -> Result<String, InstallationError> {
    let texts = texts(files)?;
    let session = Session::new();
    let checked = read_version(&session, "flow", &texts);
    let slug = checked.loaded.map(|loaded| loaded.flow.slug.to_string());
    match slug {
        None => Err(bad(format!("its `{MAIN_FILE}` is not a flow"))),
        Some(slug) if slug.contains(['/', '@']) || slug.is_empty() => {
            Err(bad(format!("`{slug}` is not the slug of a flow")))
        }
        Some(slug) => Ok(slug),
    }
}

/// The files that were read so far.
#[derive(Default)]
struct Files {
    files: BTreeMap<String, Vec<u8>>,
    bytes: usize,
}

impl Files {
    /// Adds a file.
    fn add(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), InstallationError> {
        let path = plain(path)?;
        self.bytes += bytes.len();
        if self.bytes > MOST || self.files.len() >= MOST_FILES {
            return Err(InstallationError::TooLarge);
        }
        match self.files.insert(path.clone(), bytes) {
            None => Ok(()),
            Some(_) => Err(bad(format!("it has the file `{path}` twice"))),
        }
    }

    /// Returns how many bytes may still be added.
    fn room(&self) -> usize {
        MOST - self.bytes
    }

    /// Returns the files with the main one at the top. It may lie in a folder with all others.
    fn rooted(self) -> Result<VersionFiles, InstallationError> {
        if self.files.contains_key(MAIN_FILE) {
            return Ok(self.files);
        }
        let folder = self
            .files
            .keys()
            .next()
            .and_then(|path| path.split_once('/'));
        let folder = folder.map(|(folder, _)| format!("{folder}/"));
        let folder = folder.unwrap_or_default();
        let mut rooted = VersionFiles::new();
        for (path, bytes) in self.files {
            match path.strip_prefix(&folder).filter(|_| !folder.is_empty()) {
                Some(rest) => drop(rooted.insert(rest.to_owned(), bytes)),
                None => return Err(no_main()),
            }
        }
        match rooted.contains_key(MAIN_FILE) {
            true => Ok(rooted),
            false => Err(no_main()),
        }
    }
}

fn no_main() -> InstallationError {
    bad(format!("it has no `{MAIN_FILE}` at its top"))
}

/// Returns a path without a leading `./`, if it stays inside the package.
fn plain(path: &str) -> Result<String, InstallationError> {
    let short = path.strip_prefix("./").unwrap_or(path);
    match is_plain_path(short) && !has_drive(short) {
        true => Ok(short.to_owned()),
        false => Err(bad(format!(
            "the path `{}` leads out of it",
            path.escape_debug()
        ))),
    }
}

/// Tells whether another system would read a drive in a path.
fn has_drive(path: &str) -> bool {
    path.as_bytes().get(1) == Some(&b':')
}

fn bad(detail: impl Into<String>) -> InstallationError {
    InstallationError::BadPackage {
        detail: detail.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{MAIN_FILE, VersionFiles, read, write};

    fn flow() -> VersionFiles {
        VersionFiles::from([
            (MAIN_FILE.to_owned(), b"{:slug :a :flow '1}".to_vec()),
            ("parts/b.edn".to_owned(), b"2".to_vec()),
        ])
    }

    #[test]
    fn a_package_has_the_files_it_was_made_of_and_nothing_else() {
        let files = flow();
        let packed = write(&files).expect("packed");
        assert_eq!(packed, write(&files).expect("the same again"));
        assert_eq!(read(&packed).expect("read"), files);
    }

    #[test]
    fn a_damaged_package_is_refused() {
        let packed = write(&flow()).expect("packed");
        for length in [0, 1, 10, packed.len() / 2, packed.len() - 9] {
            assert!(read(&packed[..length]).is_err(), "{length}");
        }
    }
}
