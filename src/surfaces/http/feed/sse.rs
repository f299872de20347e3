//! One stream of server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use flowstone_engine::feed_event::FeedEvent;
use http_body_util::channel::{Channel, Sender};
use hyper::body::Bytes;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::headers_of_stream;
use crate::http::access::Caller;
use crate::http::server::{Desk, Shared};

/// How soon a client comes back after the stream broke off.
const RETRY_MS: u32 = 2_000;
/// How often a quiet stream is written to, so that proxies and clients know that it lives.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a client may take nothing.
const STALLED: Duration = Duration::from_secs(30);
/// How often the caller's token is checked again.
const CHECK: Duration = Duration::from_secs(60);
/// Pieces that may lie between the stream and the connection.
const PIECES: usize = 8;

/// The client has gone, takes nothing, may no longer read, or the server stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) struct Closed;

/// A stream that is sent.
pub(in crate::http) struct Stream {
    sender: Sender<Bytes, Infallible>,
    server: Shared,
    caller: Caller,
    checked: Instant,
    is_begun: bool,
}

impl Stream {
    /// Starts a stream. The response is its other end.
    pub(in crate::http) fn start(server: Shared, caller: Caller) -> (Stream, Response) {
        let (sender, body) = Channel::new(PIECES);
        let mut response = Response::new(Body::new(body));
        headers_of_stream(&mut response);
        let stream = Stream {
            sender,
            server,
            caller,
            checked: Instant::now(),
            is_begun: false,
        };
        (stream, response)
    }

    /// Sends an event with its number.
    pub(super) async fn event(&mut self, id: i64, event: &FeedEvent) -> Result<(), Closed> {
        self.frame(id, event.name, &event.text()).await
    }

    /// Sends an event with its number, name and data on one line.
    pub(in crate::http) async fn frame(
        &mut self,
        id: i64,
        name: &str,
        data: &str,
    ) -> Result<(), Closed> {
        self.send(format!("id: {id}\nevent: {name}\ndata: {data}\n\n"))
            .await
    }

    /// Sends an event that is not kept, without a number.
    pub(super) async fn note(&mut self, name: &str, data: &Value) -> Result<(), Closed> {
        self.send(format!("event: {name}\ndata: {data}\n\n")).await
    }

    /// Keeps a quiet stream alive. Returns when it is to be closed.
    pub(in crate::http) async fn idle(&mut self) -> Closed {
        let mut stopping = self.server.stopping.subscribe();
        loop {
            let is_stopping = tokio::select! {
                () = tokio::time::sleep(HEARTBEAT) => false,
                // The sender is gone only when the server is.
                _ = stopping.wait_for(|is_stopping| *is_stopping) => true,
            };
            if is_stopping {
                let text = format!("event: server.stopping\nretry: {RETRY_MS}\ndata: {{}}\n\n");
                // The client sees the end of the stream in any case.
                let _ = self.send(text).await;
                return Closed;
            }
            if self.send(": hb\n\n".to_owned()).await.is_err() {
                return Closed;
            }
        }
    }

    async fn send(&mut self, text: String) -> Result<(), Closed> {
        if self.checked.elapsed() > CHECK {
            self.check().await?;
        }
        let text = match std::mem::replace(&mut self.is_begun, true) {
            true => text,
            false => format!("retry: {RETRY_MS}\n\n{text}"),
        };
        match timeout(STALLED, self.sender.send_data(Bytes::from(text))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Closed),
        }
    }

    /// Ends the stream if the caller's token expired or was revoked meanwhile.
    async fn check(&mut self) -> Result<(), Closed> {
        let token = self.caller.token.clone();
        let asked = self
            .server
            .ask(async move |desk: &Desk| desk.engine.is_still_accepted(&token).await)
            .await;
        self.checked = Instant::now();
        match asked {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(Closed),
        }
    }
}
