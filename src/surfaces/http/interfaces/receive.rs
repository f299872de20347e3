//! Reading requests to interfaces: the path, the query, the headers and the exact bytes of the body.

use std::net::IpAddr;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use flowstone_engine::interfaces::Received;
use flowstone_flow::proof::Network;
use http_body_util::BodyExt as _;

use super::super::bodies::{Spool, broken};
use super::super::problem::{Problem, codes};
use super::super::request::{BODY_PAUSE, BODY_TIME, decoded, slow, too_large};
use super::super::server::{Peer, Server};

/// Maximum size of the body of an `:http` interface.
pub(in super::super) const BODY_HTTP: usize = 10 << 20;
/// Splits a path and decodes each part once.
///
/// # Errors
/// When a part is empty, or holds what would make it another path.
pub(in super::super) fn segments(path: &str) -> Result<Vec<String>, Problem> {
    path.split('/')
        .map(|part| {
            let decoded = decoded(part, false)?;
            if decoded.is_empty() {
                return Err(Problem::not_found("there is nothing at this address")
                    .hint("the path has an empty part"));
            }
            let is_trick = matches!(&*decoded, "." | "..")
                || decoded.contains(['/', '\\'])
                || decoded.contains(char::is_control);
            match is_trick {
                true => Err(Problem::malformed("the path has a part that is not a name")),
                false => Ok(decoded),
            }
        })
        .collect()
}

/// Refuses a body that says that it is too large, before any of it is read.
pub(in super::super) fn refuse_large(headers: &HeaderMap, most: usize) -> Result<(), Problem> {
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    match length.is_some_and(|length| length > most as u64) {
        true => Err(too_large(most)),
        false => Ok(()),
    }
}

/// A request that has come to its end. Its body may lie in a file.
pub(in super::super) struct Arrived {
    received: Received,
    body: Spool,
    /// Keeps the room that the body takes.
    room: Body,
}

impl Arrived {
    /// Returns the request with its body, and what keeps the room of the body. May wait for the disk.
    ///
    /// # Errors
    /// When the file of the body cannot be read.
    pub(in super::super) fn open(self) -> Result<(Received, Body), Problem> {
        let received = Received {
            body: self.body.load().map_err(|error| unstored(&error))?,
            ..self.received
        };
        Ok((received, self.room))
    }
}

/// Reads a request to its end.
///
/// # Errors
/// When its body is too large or too slow, or its query is malformed.
pub(in super::super) async fn read(
    server: &Server,
    parts: &mut Parts,
    body: Body,
    most: usize,
) -> Result<Arrived, Problem> {
    refuse_large(&parts.headers, most)?;
    let mut query = Vec::new();
    let pairs = parts.uri.query().unwrap_or_default().split('&');
    for pair in pairs.filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        query.push((decoded(name, true)?, decoded(value, true)?));
    }
    let headers = parts.headers.iter();
    let headers =
        headers.map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()));
    // That of the sender, as far as trusted proxies tell.
    let address = parts.extensions.get::<Peer>().map(|peer| peer.0.ip());
    let (body, room) = bytes(server, body, most).await?;
    let received = Received {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        parameters: Vec::new(),
        query,
        headers: headers.collect(),
        body: Vec::new(),
        address,
        without_files: false,
    };
    Ok(Arrived {
        received,
        body,
        room,
    })
}

async fn bytes(server: &Server, mut body: Body, most: usize) -> Result<(Spool, Body), Problem> {
    let reading = async {
        let mut spool = Spool::new(&server.home);
        loop {
            let frame = tokio::time::timeout(BODY_PAUSE, body.frame());
            let Some(frame) = frame.await.map_err(|_| slow())? else {
                return Ok((spool, body));
            };
            let frame = frame.map_err(|error| broken(&error))?;
            if let Some(data) = frame.data_ref() {
                if spool.length() + data.len() > most {
                    return Err(too_large(most));
                }
                let added = spool.add(data).await;
                added.map_err(|error| unstored(&error))?;
            }
        }
    };
    tokio::time::timeout(BODY_TIME, reading)
        .await
        .map_err(|_| slow())?
}

fn unstored(error: &std::io::Error) -> Problem {
    tracing::warn!(%error, "the body of a request cannot be kept in a file");
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        codes::BUSY,
        "the body of the request cannot be kept",
    )
    .header(header::RETRY_AFTER, "1")
}

/// Returns who sent a request: the peer, or, if that is a proxy, the last address before the proxies.
pub(in crate::http) fn sender(peer: IpAddr, headers: &HeaderMap, proxies: &[Network]) -> IpAddr {
    let is_proxy = |address: IpAddr| proxies.iter().any(|proxy| proxy.contains(address));
    if !is_proxy(peer) {
        return peer;
    }
    let lines = headers.get_all("x-forwarded-for").iter();
    let lines: Vec<&str> = lines.filter_map(|line| line.to_str().ok()).collect();
    let mut last = peer;
    for text in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
        let Ok(address) = text.trim().parse::<IpAddr>() else {
            return last;
        };
        last = address;
        if !is_proxy(address) {
            return address;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarded_addresses_count_behind_proxies_only() {
        let proxies = [Network::parse("10.0.0.0/8").expect("a range")];
        let from = |peer: &str, forwarded: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in forwarded {
                headers.append("x-forwarded-for", line.parse().expect("a value"));
            }
            sender(peer.parse().expect("an address"), &headers, &proxies).to_string()
        };
        assert_eq!(from("192.0.2.9", &["203.0.113.1"]), "192.0.2.9");
        assert_eq!(from("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(from("10.0.0.1", &["203.0.113.1"]), "203.0.113.1");
        // What a sender writes itself is to the left of what the proxy adds.
        assert_eq!(
            from("10.0.0.1", &["198.51.100.1, 203.0.113.1"]),
            "203.0.113.1"
        );
        assert_eq!(
            from("10.0.0.1", &["198.51.100.1, 203.0.113.1, 10.0.0.2"]),
            "203.0.113.1"
        );
        assert_eq!(
            from("10.0.0.1", &["198.51.100.1", "203.0.113.1"]),
            "203.0.113.1"
        );
        assert_eq!(from("10.0.0.1", &["203.0.113.1, unknown"]), "10.0.0.1");
    }

    #[test]
    fn parts_of_a_path_are_decoded_once() {
        let read = |path: &str| match segments(path) {
            Ok(parts) => parts.join("|"),
            Err(problem) => problem.status.as_u16().to_string(),
        };
        assert_eq!(read("orders/o%201"), "orders|o 1");
        assert_eq!(read("orders/%2520"), "orders|%20");
        for trick in ["a%2Fb", "%2e%2e", "..", "a/../b", "a%00", "a%5Cb", "%zz"] {
            assert_eq!(read(trick), "400", "{trick}");
        }
        for empty in ["", "a/", "a//b"] {
            assert_eq!(read(empty), "404", "{empty}");
        }
    }
}
