//! The loopback address that a browser comes back to (RFC 8252): one answer, within a limit of time.

use std::time::Duration;

use flowstone_flow::step::StepError;
use reqwest::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::error;

const PATH: &str = "/callback";
/// Maximum size of the head of a request.
const MOST_BYTES: usize = 16 << 10;
/// Maximum time of a browser for its request.
const SLOW: Duration = Duration::from_secs(10);
/// Maximum number of open connections.
const MOST: usize = 32;

/// The open address.
pub(super) struct Door {
    listener: TcpListener,
    /// The address for the authorization server.
    pub uri: String,
}

/// The state of a login, and the server that it asks.
pub(super) struct Expected<'a> {
    pub state: &'a str,
    pub issuer: Option<&'a str>,
}

impl Door {
    /// Opens a port of this machine; 0 is any.
    pub(super) async fn open(port: u16) -> Result<Door, StepError> {
        let failed = |error: std::io::Error| error::no_door(&error);
        let listener = TcpListener::bind(("127.0.0.1", port))
            .await
            .map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Door {
            listener,
            uri: format!("http://127.0.0.1:{port}{PATH}"),
        })
    }

    /// Waits for the answer of the authorization server, and returns its code. The first answer ends the waiting, whatever
    /// it is.
    pub(super) async fn code(
        self,
        expected: &Expected<'_>,
        limit: Duration,
    ) -> Result<String, StepError> {
        let until = Instant::now() + limit;
        let mut asking = JoinSet::new();
        loop {
            let next = async {
                tokio::select! {
                    accepted = self.listener.accept(), if asking.len() < MOST => {
                        if let Ok((stream, _)) = accepted {
                            asking.spawn(timeout(SLOW, head(stream)));
                        }
                        None
                    }
                    Some(asked) = asking.join_next() => asked.ok()?.ok()?,
                }
            };
            let Ok(asked) = timeout_at(until, next).await else {
                let seconds = limit.as_secs();
                return Err(error::too_late(format!(
                    "the browser did not come back within {seconds} s"
                )));
            };
            let Some((stream, target)) = asked else {
                continue;
            };
            let url = Url::parse("http://127.0.0.1")
                .ok()
                .and_then(|it| it.join(&target).ok());
            let Some(url) = url.filter(|url| url.path() == PATH) else {
                answer(stream, "404 Not Found", "There is nothing here.").await;
                continue;
            };
            let read = read(&url, expected);
            match &read {
                Ok(_) => {
                    answer(
                        stream,
                        "200 OK",
                        "Flowstone has the answer. You can close this page.",
                    )
                    .await;
                }
                Err(_) => {
                    answer(
                        stream,
                        "400 Bad Request",
                        "The login failed. The terminal says why.",
                    )
                    .await;
                }
            }
            return read;
        }
    }
}

/// Reads the head of a request, and returns its target; `None` if it is not a GET.
async fn head(mut stream: TcpStream) -> Option<(TcpStream, String)> {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|it| it == b"\r\n\r\n") {
        let mut part = [0; 2048];
        let got = stream.read(&mut part).await.ok()?;
        if got == 0 || bytes.len() + got > MOST_BYTES {
            return None;
        }
        bytes.extend_from_slice(&part[..got]);
    }
    let text = String::from_utf8_lossy(&bytes);
    let target = text.strip_prefix("GET ")?.split(' ').next()?;
    let target = target.starts_with('/').then(|| target.to_owned())?;
    Some((stream, target))
}

async fn answer(mut stream: TcpStream, status: &str, text: &str) {
    let page =
        format!("<!doctype html><meta charset=utf-8><title>Flowstone</title><p>{text}</p>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n",
        page.len()
    );
    let sent = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(page.as_bytes()).await?;
        stream.shutdown().await
    };
    // A browser that has gone needs no page.
    timeout(SLOW, sent).await.ok();
}

/// Returns the code of the answer in a query.
///
/// # Errors
/// When it is not an answer to this login, or the authorization server refuses it.
pub(super) fn code_of(query: &str, expected: &Expected<'_>) -> Result<String, StepError> {
    let mut url = Url::parse("http://127.0.0.1").expect("a constant address");
    url.set_query(Some(query));
    read(&url, expected)
}

fn read(url: &Url, expected: &Expected<'_>) -> Result<String, StepError> {
    let value = |name: &str| {
        let mut found = url.query_pairs().filter(|(key, _)| key == name);
        match (found.next(), found.next()) {
            (Some((_, value)), None) => Some(value.into_owned()),
            _ => None,
        }
    };
    if value("state").as_deref() != Some(expected.state) {
        return Err(error::bad_redirect("its `state` is not that of this login"));
    }
    // RFC 9207: an answer of another server is not for this one.
    if let (Some(found), Some(issuer)) = (value("iss"), expected.issuer)
        && found.trim_end_matches('/') != issuer.trim_end_matches('/')
    {
        return Err(error::bad_redirect("it is from another server"));
    }
    if let Some(code) = value("error") {
        let answer =
            serde_json::json!({"error": code, "error_description": value("error_description")});
        return Err(error::refused(
            "the authorization server refuses the login",
            &super::wire::reason(&answer),
        ));
    }
    value("code")
        .filter(|code| !code.is_empty())
        .ok_or_else(|| error::bad_redirect("it has no `code`"))
}
