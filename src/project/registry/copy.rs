//! Working copies: the file of a flow in a folder, with the files that it includes.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flowstone_engine::disk;
use flowstone_lang::session::Session;
use flowstone_model::registry::{MAIN_FILE, Manifest, VersionFiles, is_version_path};
use flowstone_model::rooted::Root;

use super::{FlowRegistry, RegistryError, VersionRef, VersionRow, files_of, included};

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
    /// As [`WorkingCopy::replace_by`].
    pub async fn pull(
        &self,
        registry: &FlowRegistry,
        version: &VersionRow,
        is_forced: bool,
    ) -> Result<Vec<String>, RegistryError> {
        let files = registry.files(version).await?;
        let slug = &version.flow.slug;
        let known = match registry.version_at(slug, &self.place).await? {
            Some(number) => {
                let known = registry.version(slug, &VersionRef::Number(number)).await?;
                digest(&included(slug, &registry.files(&known).await?))
            }
            None => None,
        };
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let left_out = self.replace_by(&files, &known, is_forced)?;
        registry.check_out(version, &self.place).await?;
        Ok(left_out)
    }

    /// Replaces the copy by the files of a version. `known`: the contents that nothing is lost with. Returns the paths of files
    /// that the flow does not include, which are not written.
    ///
    /// # Errors
    /// [`RegistryError::Unpushed`] when the copy has changes that no version has, and [`RegistryError::Occupied`] when another
    /// file would be replaced, unless `is_forced`; and when a file cannot be written.
    pub fn replace_by(
        &self,
        files: &VersionFiles,
        known: &[&str],
        is_forced: bool,
    ) -> Result<Vec<String>, RegistryError> {
        let stem = self.path.file_stem().unwrap_or_default();
        let own = included(&stem.to_string_lossy(), files);
        let left_out = files.keys().filter(|path| !own.contains_key(*path));
        let left_out = left_out.cloned().collect();
        if !is_forced {
            let present = self.files();
            let content = present.as_ref().and_then(digest);
            if content.is_some() && content == digest(&own) {
                return Ok(left_out);
            }
            if self.path.exists() && !content.is_some_and(|content| known.contains(&&*content)) {
                let path = self.path.display().to_string();
                return Err(RegistryError::Unpushed { path });
            }
            self.check_free(&own, &present.unwrap_or_default())?;
        }
        self.write(&own)
            .map_err(|error| RegistryError::Unwritable {
                path: self.path.display().to_string(),
                detail: error.to_string(),
            })?;
        Ok(left_out)
    }

    /// Returns the folder of the copy.
    fn folder(&self) -> &Path {
        let folder = self.path.parent();
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or(Path::new("."))
    }

    /// Refuses to replace files that are not those of the present copy.
    fn check_free(
        &self,
        files: &VersionFiles,
        present: &VersionFiles,
    ) -> Result<(), RegistryError> {
        let new = files
            .iter()
            .filter(|(path, _)| *path != MAIN_FILE && !present.contains_key(*path));
        for (path, bytes) in new {
            let place = self.folder().join(path);
            let is_there = place.symlink_metadata().is_ok();
            if is_there && fs::read(&place).ok().as_ref() != Some(bytes) {
                let path = place.display().to_string();
                return Err(RegistryError::Occupied { path });
            }
        }
        Ok(())
    }

    /// Writes files beside the main file. Links are not followed out of its folder.
    fn write(&self, files: &VersionFiles) -> io::Result<()> {
        let folder = self.folder();
        let name = self.path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| io::Error::other("the file has no name"))?;
        if let Some(path) = files.keys().find(|path| !is_version_path(path)) {
            return Err(io::Error::other(format!(
                "`{}` cannot be the path of a file in a version",
                path.escape_debug()
            )));
        }
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

fn digest(files: &VersionFiles) -> Option<String> {
    Some(Manifest::of(files).ok()?.digest())
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
