//! The project's keys and encryption: ChaCha20-Poly1305, in envelopes with a version and the id of the key.
//!
//! The key is a file in the home folder that only its owner can read, created when it is first needed, or the
//! environment variable FLOWSTONE_KEY. There may be several keys: the first one encrypts, and all decrypt. Nonces are
//! derived from the plaintext, so that equal texts have equal envelopes and no nonce is used for two texts.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flowstone_model::ports::{KeyGuard, KeyRing, Vault, VaultError};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac};

/// The name of the file in the home folder.
pub const FILE: &str = "secrets.key";
/// The name of the file that a process locks while it replaces keys.
const LOCK: &str = "secrets.lock";
/// The environment variable that takes precedence over the file.
pub const VARIABLE: &str = "FLOWSTONE_KEY";
/// The version at the start of an envelope.
const VERSION: &str = "fs1";
const KEY_BYTES: usize = 32;
const HEAD: &str =
    "# Keys of this project, the current one first. Anyone who has one can read its secrets.\n";

/// The vault of a project.
pub struct ProjectVault {
    home: PathBuf,
    /// The keys from the environment.
    given: Option<String>,
}

/// A key, and the keys that are derived from it.
struct Key {
    bytes: [u8; KEY_BYTES],
    id: String,
}

impl ProjectVault {
    /// Returns the vault of a home folder. Nothing is read or created before it is needed.
    pub fn new(home: &Path, given: Option<String>) -> ProjectVault {
        ProjectVault {
            home: home.to_owned(),
            given: given.filter(|text| !text.trim().is_empty()),
        }
    }

    /// Returns the vault of a home folder, with the keys of the environment if they are set.
    pub fn of_environment(home: &Path) -> ProjectVault {
        ProjectVault::new(home, std::env::var(VARIABLE).ok())
    }

    fn path(&self) -> PathBuf {
        self.home.join(FILE)
    }

    fn place(&self) -> String {
        match self.given {
            Some(_) => VARIABLE.to_owned(),
            None => self.path().display().to_string(),
        }
    }

    fn bad(&self, detail: impl ToString) -> VaultError {
        VaultError::BadKey {
            place: self.place(),
            detail: detail.to_string(),
        }
    }

    /// Reads the keys, the current one first.
    fn read(&self) -> Result<Vec<Key>, VaultError> {
        let text = match &self.given {
            Some(given) => given.replace([',', ' '], "\n"),
            None => match fs::read_to_string(self.path()) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                Err(error) => return Err(self.bad(error)),
            },
        };
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys: Vec<Key> = lines
            .map(|line| {
                Key::read(line).ok_or_else(|| self.bad("it is not 32 bytes in hexadecimal digits"))
            })
            .collect::<Result<_, _>>()?;
        match keys.is_empty() {
            true => Err(self.bad("it contains no key")),
            false => Ok(keys),
        }
    }

    /// Returns the keys, and creates the first one if the project has no key.
    fn keys_or_make(&self) -> Result<Vec<Key>, VaultError> {
        let keys = self.read()?;
        if !keys.is_empty() {
            return Ok(keys);
        }
        let fresh = self.write_aside(&[self.random()?])?;
        // Another process may have been faster: the first key counts.
        let linked = fs::hard_link(&fresh, self.path());
        let _ = fs::remove_file(&fresh);
        match linked {
            Ok(()) => self.sync()?,
            Err(_) if self.path().exists() => {}
            Err(error) => return Err(self.bad(error)),
        }
        self.read()
    }

    fn random(&self) -> Result<Key, VaultError> {
        let mut bytes = [0; KEY_BYTES];
        let filled = SystemRandom::new().fill(&mut bytes);
        filled.map_err(|_| self.bad("the operating system cannot provide random numbers"))?;
        Ok(Key::new(bytes))
    }

    /// Writes keys to a temporary file beside the key file, which it may then replace.
    fn write_aside(&self, keys: &[Key]) -> Result<PathBuf, VaultError> {
        fs::create_dir_all(&self.home).map_err(|error| self.bad(error))?;
        let path = self.home.join(format!(".{FILE}-{}", self.random()?.id));
        let lines: String = keys
            .iter()
            .map(|key| hexadecimal(&key.bytes) + "\n")
            .collect();
        let written = write_private(&path, &format!("{HEAD}{lines}"));
        written.map_err(|error| self.bad(error))?;
        Ok(path)
    }

    /// Removes the temporary files of processes that were killed while they wrote: they may contain forgotten keys.
    fn remove_asides(&self) -> Result<(), VaultError> {
        if !self.path().exists() {
            // Another process may be about to create the first key.
            return Ok(());
        }
        let entries = fs::read_dir(&self.home).map_err(|error| self.bad(error))?;
        let aside = format!(".{FILE}-");
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(&aside) {
                fs::remove_file(entry.path()).map_err(|error| self.bad(error))?;
            }
        }
        Ok(())
    }

    fn replace(&self, keys: &[Key]) -> Result<(), VaultError> {
        let fresh = self.write_aside(keys)?;
        fs::rename(&fresh, self.path()).map_err(|error| self.bad(error))?;
        self.sync()
    }

    fn sync(&self) -> Result<(), VaultError> {
        let synced = File::open(&self.home).and_then(|folder| folder.sync_all());
        synced.map_err(|error| self.bad(error))
    }

    fn refuse_given(&self) -> Result<(), VaultError> {
        match self.given {
            Some(_) => Err(VaultError::Environment {
                place: self.place(),
            }),
            None => Ok(()),
        }
    }
}

impl Vault for ProjectVault {
    fn seal(&self, plain: &[u8]) -> Result<String, VaultError> {
        let keys = self.keys_or_make()?;
        let key = keys
            .first()
            .ok_or_else(|| self.bad("the key file disappeared"))?;
        Ok(key.seal(plain))
    }

    fn open(&self, envelope: &str) -> Result<Vec<u8>, VaultError> {
        let unreadable = |detail: &str| VaultError::Unreadable {
            detail: detail.to_owned(),
        };
        let mut parts = envelope.split('.');
        let (Some(version), Some(id), Some(body), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(unreadable("it is not an envelope"));
        };
        if version != VERSION {
            return Err(unreadable("a newer Flowstone wrote it"));
        }
        let body = URL_SAFE_NO_PAD.decode(body);
        let body = body.map_err(|_| unreadable("it is not Base64"))?;
        let keys = self.read()?;
        let Some(key) = keys.iter().find(|key| key.id == id) else {
            return Err(VaultError::NoKey {
                id: id.to_owned(),
                known: keys.into_iter().map(|key| key.id).collect(),
                place: self.path().display().to_string(),
            });
        };
        key.open(body)
            .ok_or_else(|| VaultError::Changed { id: id.to_owned() })
    }

    fn keys(&self) -> Result<KeyRing, VaultError> {
        let mut ids = self.read()?.into_iter().map(|key| key.id);
        Ok(KeyRing {
            place: self.place(),
            current: ids.next(),
            old: ids.collect(),
            is_environment: self.given.is_some(),
        })
    }

    fn exclusive(&self) -> Result<KeyGuard, VaultError> {
        if self.given.is_some() {
            return Ok(KeyGuard::new(None));
        }
        fs::create_dir_all(&self.home).map_err(|error| self.bad(error))?;
        let mut options = File::options();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let locked = options.open(self.home.join(LOCK));
        let locked = locked.and_then(|file| file.lock().map(|()| file));
        let locked = locked.map_err(|error| self.bad(error))?;
        self.remove_asides()?;
        Ok(KeyGuard::new(Some(locked)))
    }

    fn renew(&self) -> Result<(), VaultError> {
        self.refuse_given()?;
        let mut keys = vec![self.random()?];
        keys.extend(self.read()?);
        self.replace(&keys)
    }

    fn forget_old(&self) -> Result<(), VaultError> {
        self.refuse_given()?;
        let mut keys = self.read()?;
        keys.truncate(1);
        match keys.is_empty() {
            true => Ok(()),
            false => self.replace(&keys),
        }
    }
}

impl Key {
    fn new(bytes: [u8; KEY_BYTES]) -> Key {
        let mut named = b"flowstone key id\n".to_vec();
        named.extend_from_slice(&bytes);
        let digest = digest::digest(&digest::SHA256, &named);
        Key {
            id: hexadecimal(&digest.as_ref()[..4]),
            bytes,
        }
    }

    fn read(text: &str) -> Option<Key> {
        if text.len() != KEY_BYTES * 2 {
            return None;
        }
        let mut bytes = [0; KEY_BYTES];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
        }
        Some(Key::new(bytes))
    }

    /// Returns a separate key for each purpose.
    fn derived(&self, purpose: &str) -> hmac::Tag {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.bytes);
        hmac::sign(&key, purpose.as_bytes())
    }

    fn cipher(&self) -> LessSafeKey {
        let derived = self.derived("flowstone seal");
        let key = UnboundKey::new(&CHACHA20_POLY1305, derived.as_ref());
        LessSafeKey::new(key.expect("the derived key has 32 bytes"))
    }

    fn additional(&self) -> Aad<String> {
        Aad::from(format!("{VERSION}.{}", self.id))
    }

    fn seal(&self, plain: &[u8]) -> String {
        let nonces = self.derived("flowstone nonce");
        let nonces = hmac::Key::new(hmac::HMAC_SHA256, nonces.as_ref());
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&hmac::sign(&nonces, plain).as_ref()[..NONCE_LEN]);
        let mut sealed = plain.to_vec();
        self.cipher()
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                self.additional(),
                &mut sealed,
            )
            .expect("inputs are far below the cipher's limit");
        let mut body = nonce.to_vec();
        body.extend_from_slice(&sealed);
        format!("{VERSION}.{}.{}", self.id, URL_SAFE_NO_PAD.encode(body))
    }

    fn open(&self, mut body: Vec<u8>) -> Option<Vec<u8>> {
        let (nonce, _) = body.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let sealed = &mut body[NONCE_LEN..];
        let plain = self
            .cipher()
            .open_in_place(nonce, self.additional(), sealed);
        plain.ok().map(|plain| plain.to_vec())
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a new file that only its owner can read, and syncs it.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
