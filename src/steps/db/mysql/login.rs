//! The login at MySQL and MariaDB.

use sha1::{Digest as _, Sha1};
use sha2::Sha256;

use super::Session;
use super::packet::{Reader, put_counted};
use crate::db::error::DbError;
use crate::db::query::Server;

const LONG_PASSWORD: u32 = 0x1;
const LONG_FLAG: u32 = 0x4;
const WITH_DATABASE: u32 = 0x8;
const PROTOCOL_41: u32 = 0x200;
const TLS: u32 = 0x800;
const TRANSACTIONS: u32 = 0x2000;
const SECURE_CONNECTION: u32 = 0x8000;
const PLUGINS: u32 = 0x8_0000;
const PLUGIN_DATA: u32 = 0x20_0000;

/// What the client does. Neither files of this machine nor several statements at once are among it.
const OURS: u32 = LONG_PASSWORD
    | LONG_FLAG
    | PROTOCOL_41
    | TRANSACTIONS
    | SECURE_CONNECTION
    | PLUGINS
    | PLUGIN_DATA;

/// The set of characters `utf8mb4`.
const UTF8: u8 = 45;

/// The first packet of a server.
pub(super) struct Greeting {
    version: String,
    abilities: u32,
    salt: Vec<u8>,
    plugin: String,
}

impl Greeting {
    pub(super) fn is_mariadb(&self) -> bool {
        self.version.contains("MariaDB")
    }

    fn read(packet: &[u8]) -> Option<Greeting> {
        let mut reader = Reader::new(packet);
        if reader.byte()? != 10 {
            return None;
        }
        let version = text(reader.up_to_zero()?);
        reader.bytes(4)?;
        let mut salt = reader.bytes(8)?.to_vec();
        reader.byte()?;
        let low = reader.int(2)?;
        reader.bytes(3)?;
        let high = reader.int(2)?;
        let length = usize::from(reader.byte()?);
        reader.bytes(10)?;
        let abilities = u32::try_from(low | (high << 16)).ok()?;
        if abilities & (PROTOCOL_41 | SECURE_CONNECTION) != PROTOCOL_41 | SECURE_CONNECTION {
            return None;
        }
        let more = reader.bytes(length.saturating_sub(8).max(13))?;
        salt.extend_from_slice(more.strip_suffix(&[0]).unwrap_or(more));
        let plugin = match abilities & PLUGINS {
            0 => NATIVE.to_owned(),
            _ => text(reader.up_to_zero().unwrap_or(reader.rest())),
        };
        Some(Greeting {
            version,
            abilities,
            salt,
            plugin,
        })
    }
}

const NATIVE: &str = "mysql_native_password";
const CACHING: &str = "caching_sha2_password";
const CLEAR: &str = "mysql_clear_password";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Session {
    pub(super) async fn log_in(&mut self, server: &Server) -> Result<Greeting, DbError> {
        let packet = self.next().await?;
        if packet.first() == Some(&0xff) {
            return Err(self.refusal(&packet));
        }
        let greeting = Greeting::read(&packet)
            .ok_or_else(|| self.broken("its greeting is not one of version 10"))?;
        let mut flags = OURS;
        if !server.database.is_empty() {
            flags |= WITH_DATABASE;
        }
        let is_nul = |text: &str| text.contains('\0');
        if is_nul(&server.user) || is_nul(&server.database) {
            return Err(DbError::Config {
                message: "the user or the database of the connection has a wrong name".to_owned(),
                hint: "they cannot contain the character NUL".to_owned(),
            });
        }
        // A server of MySQL 8 wants the password itself at the first login, and takes it by TLS only.
        let is_local = greeting.plugin == CACHING
            && greeting.abilities & TLS != 0
            && self.socket.may_trust_anyone(&server.address);
        if self.socket.wants_tls() || is_local {
            if greeting.abilities & TLS == 0 {
                return Err(DbError::NoTls {
                    place: self.socket.place().to_owned(),
                });
            }
            flags |= TLS;
            let request = head(flags);
            self.send(&request).await?;
            self.socket.secure(&server.address).await?;
        }
        let mut response = head(flags);
        response.extend_from_slice(server.user.as_bytes());
        response.push(0);
        // A plugin that is not known here is answered with nothing; the server then asks for another one.
        let proof = self
            .proof(server, &greeting.plugin, &greeting.salt)
            .unwrap_or_default();
        put_counted(&mut response, &proof);
        if flags & WITH_DATABASE != 0 {
            response.extend_from_slice(server.database.as_bytes());
            response.push(0);
        }
        let plugin = match greeting.plugin.as_str() {
            plugin @ (NATIVE | CACHING) => plugin,
            _ => NATIVE,
        };
        response.extend_from_slice(plugin.as_bytes());
        response.push(0);
        self.send(&response).await?;
        self.finish(server).await?;
        Ok(greeting)
    }

    /// Answers what the server asks for, until it is content.
    async fn finish(&mut self, server: &Server) -> Result<(), DbError> {
        // No login has more steps.
        for _ in 0..8 {
            let packet = self.next().await?;
            match (packet.first(), packet.get(1)) {
                (Some(0x00), _) => return Ok(()),
                (Some(0xff), _) => return Err(self.login_refused(&packet)),
                (Some(0xfe), _) => {
                    let mut reader = Reader::new(&packet[1..]);
                    let plugin = text(reader.up_to_zero().unwrap_or(reader.rest()));
                    let salt = reader.rest();
                    let salt = salt.strip_suffix(&[0]).unwrap_or(salt);
                    let proof = self.proof(server, &plugin, salt)?;
                    self.send(&proof).await?;
                }
                // The server knows the password already.
                (Some(0x01), Some(0x03)) => {}
                (Some(0x01), Some(0x04)) if self.socket.has_tls() => {
                    let password = self.password(server)?;
                    self.send(&[password.as_bytes(), &[0]].concat()).await?;
                }
                (Some(0x01), Some(0x04)) => {
                    return Err(self.refused("it asks for the password itself, which is only sent by TLS: set `:tls :verify` on the connection"));
                }
                _ => return Err(self.broken("an unexpected packet during the login")),
            }
        }
        Err(self.broken("its login does not end"))
    }

    fn refused(&self, message: impl Into<String>) -> DbError {
        DbError::Login {
            place: self.socket.place().to_owned(),
            message: message.into(),
        }
    }

    fn login_refused(&self, packet: &[u8]) -> DbError {
        match self.refusal(packet) {
            DbError::Statement {
                message,
                number: Some(1044 | 1045 | 1049 | 1130 | 1698),
                ..
            } => self.refused(message),
            other => other,
        }
    }

    fn password(&self, server: &Server) -> Result<String, DbError> {
        let password = server.password.as_ref();
        let password = password.ok_or_else(|| {
            self.refused("it asks for a password, and the connection names no secret")
        })?;
        Ok(password.reveal().to_owned())
    }

    /// Returns what shows that the client knows the password.
    fn proof(&self, server: &Server, plugin: &str, salt: &[u8]) -> Result<Vec<u8>, DbError> {
        let password = server.password.as_ref().map_or("", |it| it.reveal());
        match plugin {
            _ if password.is_empty() && matches!(plugin, NATIVE | CACHING) => Ok(Vec::new()),
            NATIVE => Ok(native(password.as_bytes(), salt)),
            CACHING => Ok(caching(password.as_bytes(), salt)),
            CLEAR if self.socket.has_tls() => {
                Ok([self.password(server)?.as_bytes(), &[0]].concat())
            }
            CLEAR => {
                Err(self
                    .refused("it asks for the password in clear text, which is only sent by TLS"))
            }
            other => Err(self.refused(format!(
                "it asks for the kind of login `{other}`; `{NATIVE}` and `{CACHING}` are there"
            ))),
        }
    }
}

/// Returns the fixed part of the client's answer.
fn head(flags: u32) -> Vec<u8> {
    let mut head = flags.to_le_bytes().to_vec();
    // The largest packet that the client takes: 1 GB, which the budget of the socket limits further.
    head.extend_from_slice(&(1_u32 << 30).to_le_bytes());
    head.push(UTF8);
    head.extend_from_slice(&[0; 23]);
    head
}

fn native(password: &[u8], salt: &[u8]) -> Vec<u8> {
    let once = Sha1::digest(password);
    let twice = Sha1::digest(once);
    let mixed = Sha1::digest([salt, &twice[..]].concat());
    once.iter()
        .zip(mixed)
        .map(|(left, right)| left ^ right)
        .collect()
}

fn caching(password: &[u8], salt: &[u8]) -> Vec<u8> {
    let once = Sha256::digest(password);
    let twice = Sha256::digest(once);
    let mixed = Sha256::digest([&twice[..], salt].concat());
    once.iter()
        .zip(mixed)
        .map(|(left, right)| left ^ right)
        .collect()
}
