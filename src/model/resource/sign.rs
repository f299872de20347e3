//! Signed links: anyone with such a link may read one resource until the link expires.
//!
//! The key is a file in the home folder that only its owner can read. A link contains the name of the resource, its
//! expiry and an HMAC of both; nothing about it is stored, and a new key makes all earlier links invalid.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::{escaped, unescaped};
use crate::private;

/// The name of the key's file in the home folder.
const FILE: &str = "links.key";
/// The path of links on a server.
pub const PATH: &str = "/api/resources/content";
/// The server address in links if the settings have none.
pub const LOCAL: &str = "http://localhost:8787";
/// Allowed lifetimes of a link in seconds.
pub const TTL: std::ops::RangeInclusive<i64> = 60..=86_400;
/// Default lifetime of a link in seconds.
pub const DEFAULT_TTL: i64 = 3_600;

/// Creates and checks signed links.
pub struct Signer {
    key: [u8; 32],
}

/// The reason why a link is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadLink {
    #[error("it is not a link to a resource")]
    Malformed,
    #[error("its signature is wrong: it was changed, or made with another key")]
    Forged,
    #[error("it has expired")]
    Expired,
}

impl Signer {
    /// Reads the key of a project, and creates it if it does not exist.
    ///
    /// # Errors
    /// When the home folder cannot be read or written, or the file has other contents.
    pub fn open(home: &Path) -> io::Result<Signer> {
        let path = home.join(FILE);
        if let Some(signer) = read(&path)? {
            return Ok(signer);
        }
        private::make_folder(home)?;
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
        let fresh = home.join(format!(".{FILE}-{}", std::process::id()));
        write_private(&fresh, &hexadecimal(&key))?;
        // Another process may have been faster: the first key counts.
        let linked = fs::hard_link(&fresh, &path);
        fs::remove_file(&fresh)?;
        match linked {
            Ok(()) => File::open(home)?.sync_all()?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        read(&path)?.ok_or_else(|| io::Error::other("the key file for links disappeared"))
    }

    /// Creates the link to a resource. `base` is the address of the server.
    pub fn link(&self, base: &str, uri: &str, expires_ms: i64) -> String {
        let expires = expires_ms.div_euclid(1_000);
        let signature = hexadecimal(&self.mac(uri, expires).finalize().into_bytes());
        format!(
            "{}{PATH}?uri={}&expires={expires}&signature={signature}",
            base.trim_end_matches('/'),
            escaped(uri)
        )
    }

    /// Returns the resource of a link, and when the link expires.
    ///
    /// # Errors
    /// When the link is invalid.
    pub fn check(&self, link: &str, now_ms: i64) -> Result<(String, i64), BadLink> {
        let (path, query) = link.split_once('?').ok_or(BadLink::Malformed)?;
        if !path.ends_with(PATH) {
            return Err(BadLink::Malformed);
        }
        let query = query.split('#').next().unwrap_or(query);
        let field = |name: &str| {
            let mut found = query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .filter(|(key, _)| *key == name);
            match (found.next(), found.next()) {
                (Some((_, value)), None) => Ok(value),
                _ => Err(BadLink::Malformed),
            }
        };
        let uri = unescaped(field("uri")?);
        let expires: i64 = field("expires")?.parse().map_err(|_| BadLink::Malformed)?;
        let signature = bytes_of(field("signature")?).ok_or(BadLink::Malformed)?;
        self.mac(&uri, expires)
            .verify_slice(&signature)
            .map_err(|_| BadLink::Forged)?;
        let expires_ms = expires.saturating_mul(1_000);
        match expires_ms > now_ms {
            true => Ok((uri, expires_ms)),
            false => Err(BadLink::Expired),
        }
    }

    /// Signs something other than a resource link: the purpose, the subject, and the expiry in seconds.
    pub fn sign(&self, purpose: &str, subject: &str, expires: i64) -> String {
        hexadecimal(
            &self
                .purpose_mac(purpose, subject, expires)
                .finalize()
                .into_bytes(),
        )
    }

    /// Tells in constant time whether a signature is the one that [`Signer::sign`] makes.
    pub fn is_signed(&self, purpose: &str, subject: &str, expires: i64, signature: &str) -> bool {
        let mac = self.purpose_mac(purpose, subject, expires);
        bytes_of(signature).is_some_and(|signature| mac.verify_slice(&signature).is_ok())
    }

    fn purpose_mac(&self, purpose: &str, subject: &str, expires: i64) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a key of any length fits");
        // A link to a resource cannot begin like this: it begins with a number.
        mac.update(format!("{purpose}\n{expires}\n{subject}").as_bytes());
        mac
    }

    fn mac(&self, uri: &str, expires: i64) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a key of any length fits");
        mac.update(format!("{expires}\n{uri}").as_bytes());
        mac
    }
}

fn read(path: &Path) -> io::Result<Option<Signer>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let key = bytes_of(text.trim()).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    let key = key.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "it is not a key: move it away, and a new key is created",
        )
    })?;
    Ok(Some(Signer { key }))
}

/// Writes a file that only its owner can read.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = private::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_valid_until_it_expires_and_for_its_resource_only() {
        let home = tempfile::tempdir().expect("a folder");
        let signer = Signer::open(home.path()).expect("a key");
        let uri = "res://v1/ws/local/result/run/r1/step/a b%232/output";
        let link = signer.link("https://x.example/", uri, 10_500);
        let again = Signer::open(home.path()).expect("the same key");
        assert_eq!(again.check(&link, 9_000), Ok((uri.to_owned(), 10_000)));
        let cases = [
            (link.clone(), 10_000, BadLink::Expired),
            (link.replace("expires=10", "expires=99"), 0, BadLink::Forged),
            (link.replace("r1", "r2"), 0, BadLink::Forged),
            (
                link.replace("signature=", "signature=0"),
                0,
                BadLink::Malformed,
            ),
            (
                link.replace("signature=", "signature=00"),
                0,
                BadLink::Forged,
            ),
            (link.replace("&expires=10", ""), 0, BadLink::Malformed),
            (format!("{link}&uri=res://other"), 0, BadLink::Malformed),
            (link.replace("/content", "/other"), 0, BadLink::Malformed),
            (String::new(), 0, BadLink::Malformed),
            ("?é".to_owned(), 0, BadLink::Malformed),
        ];
        for (link, now_ms, expected) in cases {
            assert_eq!(signer.check(&link, now_ms), Err(expected), "{link}");
        }
    }

    #[test]
    fn each_project_has_its_own_key_that_only_its_owner_can_read() {
        let (one, two) = (
            tempfile::tempdir().expect("a folder"),
            tempfile::tempdir().expect("a folder"),
        );
        let link = Signer::open(one.path())
            .expect("a key")
            .link("http://x", "res://a", 1_000_000);
        let other = Signer::open(two.path()).expect("a key");
        assert_eq!(other.check(&link, 0), Err(BadLink::Forged));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(one.path().join(FILE))
                .expect("the key")
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        fs::write(two.path().join(FILE), "not a key").expect("written");
        assert!(Signer::open(two.path()).is_err());
        let left = fs::read_dir(one.path()).expect("the folder").count();
        assert_eq!(left, 1, "nothing unfinished is left");
    }
}
