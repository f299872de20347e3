//! The folders of a project: where it is, and where its data is.

use std::env;
use std::path::{Path, PathBuf};

use flowstone_flow::bindings::Bindings;

use super::args::{Home, Permits, RunLimits};

/// The folder's name inside a project.
const FOLDER: &str = ".flowstone";
/// The environment variable with the profile, used if no option names one.
const PROFILE: &str = "FLOWSTONE_PROFILE";
/// The file with the project's settings. A folder that contains it is a project.
pub const SETTINGS: &str = "flowstone.edn";

/// The folders and options of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The root of the paths in steps, which stay inside.
    pub root: PathBuf,
    /// The folder of runs, tables and values. May not exist yet.
    pub home: PathBuf,
    pub exchanges: ExchangesWith,
    /// The profile and bindings that new runs store.
    pub bindings: Bindings,
    /// Maximum memory for the values of a run, in bytes, if the command line sets one.
    pub max_memory: Option<usize>,
    /// Permissions beyond what the project allows.
    pub permits: Permits,
}

/// Where the answers to requests of steps come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ExchangesWith {
    /// The real servers.
    #[default]
    Servers,
    /// The real servers; exchanges are recorded in this folder.
    RecordedServers(PathBuf),
    /// Only the recording in this folder.
    Recording(PathBuf),
}

impl Project {
    /// Finds the project like [`Project::find`], for a command that executes runs.
    pub fn with(args: &Home, limits: &RunLimits, permits: &Permits) -> Project {
        Project {
            max_memory: limits.max_memory,
            permits: permits.clone(),
            ..Project::find(args)
        }
    }

    /// Finds the project of the current folder: the nearest folder, from the current one up to the root of its
    /// repository, that contains project settings. Without any, the current folder is the project.
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
