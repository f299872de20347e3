//! Where a project is, and where it keeps what it remembers.

use std::env;
use std::path::{Path, PathBuf};

use flowstone_engine::bindings::Bindings;

use super::args::{Home, Permits, RunLimits};

/// The folder's name inside a project.
const FOLDER: &str = ".flowstone";
/// Names the profile where no option does.
const PROFILE: &str = "FLOWSTONE_PROFILE";
/// The project's settings; also what marks a project.
pub const SETTINGS: &str = "flowstone.edn";

/// The places of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Paths in steps are relative to it and stay inside.
    pub root: PathBuf,
    /// Holds runs, tables and values. Need not exist yet.
    pub home: PathBuf,
    pub exchanges: ExchangesWith,
    /// What new runs keep of profiles.
    pub bindings: Bindings,
    /// Bytes that the values of a run may hold, where the command says so.
    pub max_memory: Option<usize>,
    /// What flows may touch beside what the project allows.
    pub permits: Permits,
}

/// Who answers the requests that steps send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ExchangesWith {
    /// The servers.
    #[default]
    Servers,
    /// The servers, and what they say is written into this folder.
    RecordedServers(PathBuf),
    /// The recording in this folder, and nobody else.
    Recording(PathBuf),
}

impl Project {
    /// Finds the project as [`Project::find`] does, for a command that executes runs.
    pub fn with(args: &Home, limits: &RunLimits, permits: &Permits) -> Project {
        Project {
            max_memory: limits.max_memory,
            permits: permits.clone(),
            ..Project::find(args)
        }
    }

    /// Finds the project of the current folder: this folder or the nearest above it that is marked, not above the
    /// repository it is in. Where none is marked, the current folder is the project.
    pub fn find(args: &Home) -> Project {
        let current = env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let root = match &args.home {
            Some(_) => current,
            None => marked(&current).unwrap_or(&current).to_path_buf(),
        };
        let home = args.home.clone().unwrap_or_else(|| root.join(FOLDER));
        Project {
            root,
            home,
            exchanges: ExchangesWith::default(),
            bindings: Bindings {
                profile: env::var(PROFILE).ok().filter(|name| !name.is_empty()),
                ..Bindings::default()
            },
            max_memory: None,
            permits: Permits::default(),
        }
    }
}

fn marked(folder: &Path) -> Option<&Path> {
    for folder in folder.ancestors() {
        if folder.join(FOLDER).is_dir() || folder.join(SETTINGS).is_file() {
            return Some(folder);
        }
        if folder.join(".git").exists() {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_nearest_marked_folder_is_the_project() {
        let top = tempfile::tempdir().unwrap();
        let deep = top.path().join("a/b/c");
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir(top.path().join(FOLDER)).unwrap();
        assert_eq!(marked(&deep), Some(top.path()));
        fs::write(top.path().join("a/b").join(SETTINGS), "{}").unwrap();
        assert_eq!(marked(&deep), Some(&*top.path().join("a/b")));
    }

    #[test]
    fn the_search_stays_in_the_repository() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("repository/.git")).unwrap();
        fs::create_dir(top.path().join(FOLDER)).unwrap();
        assert_eq!(marked(&top.path().join("repository")), None);
    }
}
