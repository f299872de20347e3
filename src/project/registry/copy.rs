//! Working copies: the file of a flow in a folder, with the files that it includes.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flowstone_engine::disk;
use flowstone_lang::session::Session;
use flowstone_model::registry::{MAIN_FILE, Manifest, VersionFiles};
use flowstone_model::rooted::Root;

use super::{FlowRegistry, RegistryError, VersionRef, VersionRow, files_of};

/// The file of a flow in a folder.
#[derive(Debug, Clone)]
pub struct WorkingCopy {
    path: PathBuf,
    place: String,
}

impl WorkingCopy {
    /// Returns the working copy with a main file, which need not exist.
    pub fn at(path: &Path) -> WorkingCopy {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let folder = folder.canonicalize().unwrap_or(folder);
        let place = path
            .file_name()
            .map_or(folder.clone(), |name| folder.join(name));
        WorkingCopy {
            path: path.to_owned(),
            place: place.display().to_string(),
        }
    }

    /// Returns the name under which the registry remembers the version of the copy.
    pub fn place(&self) -> &str {
        &self.place
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the files of the copy; `None` if there is no flow that can be read.
    fn files(&self) -> Option<VersionFiles> {
        let name = self.path.display().to_string();
        let checked = disk::load(&Session::new(), &self.path, &name);
        files_of(&checked.loaded?).ok()
    }

    /// Replaces the copy by a version, and records that. The main file is written last.
    ///
    /// # Errors
    /// [`RegistryError::Unpushed`] when the copy has changes that no version has, unless `is_forced`; and when a file cannot be
    /// written.
    pub async fn pull(
        &self,
        registry: &FlowRegistry,
        version: &VersionRow,
        is_forced: bool,
    ) -> Result<(), RegistryError> {
        let files = registry.files(version).await?;
        let slug = &version.flow.slug;
        let known = match registry.version_at(slug, &self.place).await? {
            Some(number) => {
                let known = VersionRef::Number(number);
                Some(registry.version(slug, &known).await?.content)
            }
            None => None,
        };
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        self.replace_by(&files, &known, is_forced)?;
        registry.check_out(version, &self.place).await
    }

    /// Replaces the copy by files. `known`: the contents that nothing is lost with.
    ///
    /// # Errors
    /// [`RegistryError::Unpushed`] when the copy has another content, unless `is_forced`; and when a file cannot be written.
    pub fn replace_by(
        &self,
        files: &VersionFiles,
        known: &[&str],
        is_forced: bool,
    ) -> Result<(), RegistryError> {
        if self.path.exists() && !is_forced {
            let digest = |files: &VersionFiles| Some(Manifest::of(files).ok()?.digest());
            let content = self.files().and_then(|files| digest(&files));
            if content.is_some() && content == digest(files) {
                return Ok(());
            }
            if !content.is_some_and(|content| known.contains(&&*content)) {
                let path = self.path.display().to_string();
                return Err(RegistryError::Unpushed { path });
            }
        }
        self.write(files)
            .map_err(|error| RegistryError::Unwritable {
                path: self.path.display().to_string(),
                detail: error.to_string(),
            })
    }

    /// Writes files beside the main file. Links are not followed out of its folder.
    fn write(&self, files: &VersionFiles) -> io::Result<()> {
        let folder = self
            .path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let name = self.path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| io::Error::other("the file has no name"))?;
        fs::create_dir_all(folder)?;
        let root = Root::open(folder)?;
        let others = files.iter().filter(|(path, _)| *path != MAIN_FILE);
        for (path, bytes) in others {
            if let Some((folder, _)) = path.rsplit_once('/') {
                root.make_folders(folder)?;
            }
            write_file(&root, path, bytes)?;
        }
        let main = files.get(MAIN_FILE).map(Vec::as_slice).unwrap_or_default();
        write_file(&root, name, main)
    }
}

/// Replaces a file at once.
fn write_file(root: &Root, path: &str, bytes: &[u8]) -> io::Result<()> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let beside = match folder.is_empty() {
        true => format!(".{name}.new"),
        false => format!("{folder}/.{name}.new"),
    };
    // One that a crash left.
    let _ = root.remove(&beside);
    let mut file = root.create(&beside, 0o644)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    root.rename(&beside, path)
}
