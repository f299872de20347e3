//! Tokens for servers that a project registers while it runs.
//!
//! A token is kept encrypted, in a file of its own below the project's data, together with the host that it is for. Its name
//! as a secret is `mcp-server-<id>@<host>`: the gate lets a secret of such a name go to that host only, and the file is read only if it
//! is for that host. So no flow can send the token anywhere else, whatever name it writes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::permission::{Host, SERVER_SECRET, server_secret};
use crate::ports::{Secret, Secrets, StoreError, Vault};
use crate::private;
use crate::sealed::SealError;

/// The folder of the files, below the project's data.
const FOLDER: &str = "mcp-servers";

impl Engine {
    /// Keeps the token of a server, encrypted, and returns its name as a secret. `id` names the server: letters, digits and
    /// `-`.
    ///
    /// # Errors
    /// When the project's key cannot be read, or the file cannot be written.
    pub fn keep_server_secret(
        &self,
        id: &str,
        host: &Host,
        token: &str,
    ) -> Result<String, EngineError> {
        let plain = format!("{host}\n{token}");
        let envelope = self.services.vault.seal(plain.as_bytes());
        let envelope = envelope.map_err(SealError::Unsealed)?;
        let folder = self.services.home.join(FOLDER);
        let path = folder.join(id);
        let failed = |error: &io::Error| EngineError::from(StoreError::of_file(&path, error));
        private::make_folder(&folder).map_err(|error| failed(&error))?;
        private::write(&path, envelope.as_bytes()).map_err(|error| failed(&error))?;
        Ok(server_secret(id, host))
    }

    /// Keeps the token of one server for another, too, and returns its name as a secret; `None` if the first has no token.
    ///
    /// # Errors
    /// When the project's key cannot be read, or a file cannot be read or written.
    pub fn copy_server_secret(
        &self,
        from: &str,
        id: &str,
        host: &Host,
    ) -> Result<Option<String>, EngineError> {
        let path = self.services.home.join(FOLDER).join(from);
        let envelope = match fs::read_to_string(&path) {
            Ok(envelope) => envelope,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::of_file(&path, &error).into()),
        };
        let plain = self.services.vault.open(&envelope);
        let plain = plain.map_err(SealError::Unsealed)?;
        let plain = String::from_utf8_lossy(&plain);
        match plain.split_once('\n') {
            Some((_, token)) => self.keep_server_secret(id, host, token).map(Some),
            None => Ok(None),
        }
    }

    /// Deletes the token of a server. A server without a token has none to delete.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn forget_server_secret(&self, id: &str) -> Result<(), EngineError> {
        let path = self.services.home.join(FOLDER).join(id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::of_file(&path, &error).into())
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// The secrets of a project, with the tokens of registered servers.
pub struct ServerSecrets {
    inner: Arc<dyn Secrets>,
    vault: Arc<dyn Vault>,
    home: PathBuf,
}

impl ServerSecrets {
    /// `home` is the folder of the project's data.
    pub fn new(inner: Arc<dyn Secrets>, vault: Arc<dyn Vault>, home: &Path) -> ServerSecrets {
        ServerSecrets {
            inner,
            vault,
            home: home.to_path_buf(),
        }
    }

    /// Returns the token of a registered server by its name as a secret.
    fn own(&self, name: &str) -> Option<Secret> {
        let (id, host) = name.strip_prefix(SERVER_SECRET)?.split_once('@')?;
        let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if !id.bytes().all(is_id) {
            return None;
        }
        let envelope = fs::read_to_string(self.home.join(FOLDER).join(id)).ok()?;
        let plain = String::from_utf8(self.vault.open(&envelope).ok()?).ok()?;
        let (own_host, token) = plain.split_once('\n')?;
        (own_host == host).then(|| Secret::new(token))
    }
}

impl Secrets for ServerSecrets {
    fn find(&self, name: &str) -> Option<Secret> {
        self.own(name).or_else(|| self.inner.find(name))
    }

    fn find_in(&self, profile: Option<&str>, name: &str) -> Option<Secret> {
        self.own(name).or_else(|| self.inner.find_in(profile, name))
    }

    fn place(&self, profile: Option<&str>, name: &str) -> String {
        match name.starts_with(SERVER_SECRET) {
            true => "the registration of the MCP server".to_owned(),
            false => self.inner.place(profile, name),
        }
    }

    fn problem(&self, profile: Option<&str>, name: &str) -> Option<String> {
        self.inner.problem(profile, name)
    }

    fn remedy(&self, profile: Option<&str>, name: &str) -> Option<String> {
        self.inner.remedy(profile, name)
    }
}
