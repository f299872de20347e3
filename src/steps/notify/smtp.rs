//! Mail by SMTP: the conversation with a server, over a guarded connection.
//!
//! The letter itself is written by the crate `lettre`. The conversation is ours, because the connection has to go to an
//! address that the guard has checked, and a server's answers have to have a limit.

use std::time::Duration;

use base64::Engine as _;
use flowstone_flow::ports::{ClientRequest, ExchangeError, Secret};
use flowstone_flow::step::{Retry, StepContext, StepError};
use lettre::Address as Mailbox;
use reqwest::Url;

use crate::connections::{Auth, Connection};
use crate::guard::host_of;
use crate::http::error::HttpError;
use crate::http::settings::usual;
use crate::socket::{Address, Socket, SocketError};

/// A letter, as it is handed over.
pub(super) struct Letter {
    pub from: Mailbox,
    pub to: Vec<Mailbox>,
    /// Headers and body.
    pub text: Vec<u8>,
    /// The content as a recording has it: without ids and times, which differ from run to run.
    pub content: Vec<u8>,
}

/// Maximum time of the whole conversation without `:timeout`.
const USUAL_TIME: Duration = Duration::from_secs(60);
/// Maximum size of all answers of a server.
const ANSWERS_MAX: u64 = 64 << 10;

/// Why a letter was not handed over.
#[derive(Debug, thiserror::Error)]
enum MailError {
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error(transparent)]
    Exchange(Box<ExchangeError>),
    #[error("{place} refuses {what}: {status} {message}")]
    Refused {
        place: String,
        what: String,
        status: u16,
        message: String,
    },
    #[error("{place} does not speak SMTP: {cause}")]
    Protocol { place: String, cause: String },
    #[error("{place} offers no TLS")]
    NoTls { place: String },
    #[error("{place} did not answer within {} s", limit.as_secs_f64())]
    TimedOut { place: String, limit: Duration },
    #[error("it is not known whether the message was sent: {0}")]
    InDoubt(Box<MailError>),
    #[error("{0}")]
    Replayed(String),
}

impl From<MailError> for StepError {
    fn from(error: MailError) -> StepError {
        let message = error.to_string();
        let failed = |kind, retry| StepError::new("E1484", kind, message.as_str()).retry(retry);
        match error {
            MailError::Socket(SocketError::Refused(refused)) => HttpError::Refused(refused).into(),
            MailError::Exchange(error) => HttpError::Exchange(error).into(),
            MailError::Socket(SocketError::Untrusted { fault, .. }) => {
                failed("untrusted", Retry::Never).hint(fault.hint)
            }
            MailError::Socket(SocketError::Wrong { hint, .. }) => {
                failed("bad-config", Retry::Never).hint(hint)
            }
            MailError::Socket(_) => failed("unavailable", Retry::Backoff)
                .hint("check the address of the connection, the network, and that the server runs"),
            MailError::TimedOut { .. } => {
                failed("timeout", Retry::Backoff).hint("raise `:timeout`, or try again later")
            }
            MailError::Protocol { .. } => failed("bad-response", Retry::Never)
                .hint("check the port: `smtp://host:587` begins in plain text, `smtps://host:465` with TLS"),
            MailError::NoTls { .. } => failed("untrusted", Retry::Never).hint(
                "turn TLS on at the server; `:tls :off` of the connection in flowstone.edn goes without",
            ),
            MailError::InDoubt(_) => failed("in-doubt", Retry::Never)
                .hint("a second message would have the same `Message-ID`"),
            MailError::Replayed(_) => failed("unavailable", Retry::Never),
            MailError::Refused { status, .. } => {
                let (kind, retry) = match status {
                    // A temporary failure, says SMTP.
                    400..=499 => ("unavailable", Retry::Backoff),
                    530 | 534 | 535 | 538 => ("unauthorized", Retry::Never),
                    _ => ("rejected", Retry::Never),
                };
                StepError::new("E1483", kind, message)
                    .retry(retry)
                    .hint("the server's words say what it does not take")
                    .with("status", i64::from(status))
            }
        }
    }
}

/// How a connection begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    /// In plain text, from which `STARTTLS` leads to TLS.
    Smtp,
    /// With TLS.
    Smtps,
}

fn wrong(message: impl Into<String>) -> StepError {
    super::email::wrong(message)
        .hint("as in `:base-url \"smtp://mail.internal:587\"`, or `smtps://` with port 465")
}

fn address(connection: &Connection, name: &str) -> Result<(Url, Scheme), StepError> {
    let Some(base) = connection.base_url.as_deref() else {
        return Err(wrong(format!(
            "the connection `:{name}` has no `:base-url`"
        )));
    };
    let shown = crate::shown_url::without_password(base);
    let mut url =
        Url::parse(base).map_err(|error| wrong(format!("`{shown}` is not an address: {error}")))?;
    let (scheme, port) = match url.scheme() {
        "smtp" => (Scheme::Smtp, 25),
        "smtps" => (Scheme::Smtps, 465),
        _ => {
            return Err(wrong(format!(
                "the address `{shown}` of the connection `:{name}` is not one of SMTP"
            )));
        }
    };
    let is_plain = url.username().is_empty()
        && url.password().is_none()
        && matches!(url.path(), "" | "/")
        && url.query().is_none();
    if !is_plain || url.host_str().is_none_or(str::is_empty) {
        return Err(wrong(format!(
            "the address `{shown}` has more or less than a host and a port; the user and the secret are named by `:auth {{:type :basic ...}}`"
        )));
    }
    if url.port().is_none() {
        url.set_port(Some(port)).ok();
    }
    Ok((url, scheme))
}

/// Rejects a connection that does not lead to a mail server.
pub(super) fn check(connection: &Connection, name: &str) -> Result<(), StepError> {
    address(connection, name)?;
    match &connection.auth {
        Auth::Unsaid | Auth::None | Auth::Basic { .. } => Ok(()),
        _ => Err(wrong(
            "a mail server takes a user and a password: `:auth {:type :basic ...}`",
        )),
    }
}

/// Hands a letter over, and returns the server's last status.
pub(super) async fn send(
    cx: &StepContext,
    connection: &Connection,
    letter: Letter,
) -> Result<u16, StepError> {
    let (url, scheme) = address(connection, &connection.id)?;
    let usual = usual(cx, connection)?;
    let is_replay = cx.exchanges().is_some_and(|it| it.is_replay());
    let login = match &connection.auth {
        Auth::Basic { username, .. } if !is_replay => {
            let secret = connection.auth.secret(cx, &connection.id, &host_of(&url))?;
            Some((username.clone().unwrap_or_default(), secret))
        }
        _ => None,
    };
    if let Some((user, secret)) = &login {
        // Servers repeat what they were sent.
        cx.hide(&Secret::new(
            encoded(&format!("\0{user}\0{}", secret.reveal())).as_str(),
        ));
    }
    let address = Address {
        host: url.host_str().unwrap_or_default().to_owned(),
        port: url.port().unwrap_or(25),
        guard: usual.route.guard.at(&url),
        tls: connection.tls,
        ca_file: usual.route.ca_file,
        connect_timeout: usual.route.connect_timeout,
        url,
    };
    let place = address.place();
    let request = ClientRequest {
        method: "MAIL".to_owned(),
        url: format!("smtp://{place}"),
        headers: letter
            .to
            .iter()
            .map(|to| ("to".to_owned(), to.to_string()))
            .collect(),
        body: letter.content.clone(),
        ..ClientRequest::default()
    };
    let limit = crate::http::request::timeout(cx, USUAL_TIME);
    let perform = async || {
        let mut is_sent = false;
        let talk = hand_over(&address, scheme, login.as_ref(), &letter, &mut is_sent);
        let talk = tokio::time::timeout(limit, talk).await;
        let answer = talk.unwrap_or_else(|_| {
            Err(MailError::TimedOut {
                place: place.clone(),
                limit,
            })
        });
        answer.map_err(|error| match &error {
            MailError::Socket(_) | MailError::TimedOut { .. } | MailError::Protocol { .. }
                if is_sent =>
            {
                MailError::InDoubt(Box::new(error))
            }
            _ => error,
        })
    };
    let status = crate::recorded::answer(
        cx,
        request,
        perform,
        |error| MailError::Exchange(Box::new(error)),
        MailError::Replayed,
    )
    .await?;
    Ok(status)
}

fn encoded(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// The conversation. `is_sent` is set when the letter's end is about to be sent.
async fn hand_over(
    address: &Address,
    scheme: Scheme,
    login: Option<&(String, Secret)>,
    letter: &Letter,
    is_sent: &mut bool,
) -> Result<u16, MailError> {
    let mut server = Server {
        socket: Socket::open(address, ANSWERS_MAX).await?,
        place: address.place(),
    };
    if scheme == Scheme::Smtps {
        server.socket.secure(address).await?;
    }
    server.expect("the connection", 220).await?;
    let mut abilities = server.greet().await?;
    if server.socket.wants_tls() {
        if !abilities.iter().any(|it| it == "STARTTLS") {
            return Err(MailError::NoTls {
                place: server.place,
            });
        }
        server.command("TLS", "STARTTLS", 220).await?;
        server.socket.secure(address).await?;
        abilities = server.greet().await?;
    }
    if let Some((user, secret)) = login {
        server.log_in(&abilities, user, secret).await?;
    }
    if !letter.text.is_ascii() && !abilities.iter().any(|it| it == "8BITMIME") {
        return Err(server.refused("the message", 554, "it takes messages of ASCII only"));
    }
    let from = format!("MAIL FROM:<{}>", letter.from);
    server
        .command(&format!("the sender {}", letter.from), &from, 250)
        .await?;
    for to in &letter.to {
        // All or none: the letter is sent only if each recipient is taken.
        let line = format!("RCPT TO:<{to}>");
        server
            .command(&format!("the recipient {to}"), &line, 250)
            .await?;
    }
    server.command("the message", "DATA", 354).await?;
    server.socket.send(&dotted(&letter.text)).await?;
    *is_sent = true;
    let (status, _) = server.command("the message", ".", 250).await?;
    server.socket.send(b"QUIT\r\n").await.ok();
    Ok(status)
}

/// Returns the letter as lines that end with CR and LF, of which none is the end of the letter.
fn dotted(text: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(text.len() + 64);
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.first() == Some(&b'.') {
            lines.push(b'.');
        }
        // A CR alone would be a line break for some servers.
        lines.extend(line.iter().filter(|byte| **byte != b'\r'));
        lines.extend_from_slice(b"\r\n");
    }
    lines
}

struct Server {
    socket: Socket,
    place: String,
}

impl Server {
    fn refused(&self, what: &str, status: u16, message: &str) -> MailError {
        MailError::Refused {
            place: self.place.clone(),
            what: what.to_owned(),
            status,
            message: message.to_owned(),
        }
    }

    fn broken(&self, cause: &str) -> MailError {
        MailError::Protocol {
            place: self.place.clone(),
            cause: cause.to_owned(),
        }
    }

    /// Says hello, and returns what the server can do.
    async fn greet(&mut self) -> Result<Vec<String>, MailError> {
        let (_, text) = self
            .command("the greeting", "EHLO [127.0.0.1]", 250)
            .await?;
        Ok(text
            .lines()
            .skip(1)
            .map(|line| line.trim().to_ascii_uppercase())
            .collect())
    }

    async fn log_in(
        &mut self,
        abilities: &[String],
        user: &str,
        secret: &Secret,
    ) -> Result<(), MailError> {
        if !self.socket.is_private() {
            return Err(MailError::NoTls {
                place: self.place.clone(),
            });
        }
        let kinds = abilities.iter().find_map(|line| line.strip_prefix("AUTH"));
        let has =
            |kind: &str| kinds.is_some_and(|kinds| kinds.split([' ', '=']).any(|it| it == kind));
        if has("PLAIN") {
            let proof = encoded(&format!("\0{user}\0{}", secret.reveal()));
            self.command("the login", &format!("AUTH PLAIN {proof}"), 235)
                .await?;
        } else if has("LOGIN") {
            self.command("the login", "AUTH LOGIN", 334).await?;
            self.command("the login", &encoded(user), 334).await?;
            self.command("the login", &encoded(secret.reveal()), 235)
                .await?;
        } else {
            return Err(self.refused("the login", 504, "it has neither AUTH PLAIN nor AUTH LOGIN"));
        }
        Ok(())
    }

    /// Sends a line, and returns the answer if it has the expected status.
    async fn command(
        &mut self,
        what: &str,
        line: &str,
        wanted: u16,
    ) -> Result<(u16, String), MailError> {
        self.socket.send(format!("{line}\r\n").as_bytes()).await?;
        self.expect(what, wanted).await
    }

    async fn expect(&mut self, what: &str, wanted: u16) -> Result<(u16, String), MailError> {
        let (status, text) = self.answer().await?;
        // A recipient may be taken with 251, too.
        match status / 10 == wanted / 10 {
            true => Ok((status, text)),
            false => Err(self.refused(what, status, &text.replace('\n', " "))),
        }
    }

    /// Reads an answer, which may have several lines.
    async fn answer(&mut self) -> Result<(u16, String), MailError> {
        let mut text = String::new();
        loop {
            let mut line = Vec::new();
            while line.last() != Some(&b'\n') {
                self.socket.read(&mut line, 1).await?;
            }
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            let status = line.get(..3).and_then(|digits| digits.parse::<u16>().ok());
            let status = status.filter(|status| (200..600).contains(status));
            let status = status.ok_or_else(|| self.broken("its answer has no status"))?;
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(line.get(4..).unwrap_or_default());
            if line.as_bytes().get(3) != Some(&b'-') {
                return Ok((status, text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_letter_is_its_end() {
        let cases = [
            ("a\r\nb\r\n", "a\r\nb\r\n"),
            ("a\n.\nb", "a\r\n..\r\nb\r\n"),
            (".a\r\n..\r\n", "..a\r\n...\r\n"),
            ("a\r.\rb\n", "a.b\r\n"),
            ("", "\r\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(dotted(text.as_bytes()), expected.as_bytes(), "{text:?}");
        }
    }
}
