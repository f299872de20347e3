//! The files that `ssh` reads and writes for one command: a folder that only this user can enter, and that is removed
//! with the command.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::error::SshError;
use super::target::{KnownHosts, Target};

pub(super) struct Files {
    folder: TempDir,
    pub key: Option<PathBuf>,
    pub known_hosts: Option<PathBuf>,
    /// Prints the passphrase of the key.
    pub askpass: Option<PathBuf>,
}

impl Files {
    pub(super) fn write(target: &Target) -> Result<Files, SshError> {
        make(target).map_err(|error| SshError::Files {
            message: format!("the files of `ssh` cannot be written: {error}"),
        })
    }

    /// The messages of `ssh` itself, apart from those of the command.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

fn make(target: &Target) -> io::Result<Files> {
    let folder = tempfile::Builder::new()
        .prefix("flowstone-ssh-")
        .tempdir()?;
    let put = |name: &str, text: &str, mode: u32| -> io::Result<PathBuf> {
        let path = folder.path().join(name);
        private(&path, mode)?.write_all(text.as_bytes())?;
        Ok(path)
    };
    let key = target.key.as_ref().map(|key| {
        // A key without an end of its last line is refused.
        put("key", &format!("{}\n", key.reveal().trim_end()), 0o600)
    });
    let known_hosts = match &target.known_hosts {
        KnownHosts::OfUser => None,
        KnownHosts::File(path) => Some(path.clone()),
        KnownHosts::Secret(text) => {
            Some(put("known_hosts", &format!("{}\n", text.reveal()), 0o600)?)
        }
    };
    let askpass = target.passphrase.as_ref().map(|_| {
        put(
            "askpass",
            "#!/bin/sh\nprintf '%s\\n' \"$FLOWSTONE_SSH_PASSPHRASE\"\n",
            0o700,
        )
    });
    Ok(Files {
        key: key.transpose()?,
        known_hosts,
        askpass: askpass.transpose()?,
        folder,
    })
}

fn private(path: &Path, mode: u32) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)
}
