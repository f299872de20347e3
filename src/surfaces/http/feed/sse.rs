//! One stream of server-sent events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use flowstone_engine::feed_event::FeedEvent;
use hyper::body::{Bytes, Frame};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::headers_of_stream;
use super::readers::Streamed;
use crate::http::access::Caller;
use crate::http::server::{EngineContext, Shared};

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

/// The body of a response: what the stream sends. It is dropped with the connection.
struct Pieces(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.poll_recv(cx);
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// A stream that is sent.
pub(in crate::http) struct Stream {
    sender: mpsc::Sender<Bytes>,
    server: Shared,
    caller: Caller,
    of: Streamed,
    checked: Instant,
    is_begun: bool,
}

impl Stream {
    /// Starts a stream. The response is its other end.
    pub(in crate::http) fn start(
        server: Shared,
        (caller, of): (Caller, Streamed),
    ) -> (Stream, Response) {
        let (sender, pieces) = mpsc::channel(PIECES);
        let mut response = Response::new(Body::new(Pieces(pieces)));
        headers_of_stream(&mut response);
        let stream = Stream {
            sender,
            server,
            caller,
            of,
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

    /// Sends data without a number or a name, as clients of models expect it.
    pub(in crate::http) async fn data(&mut self, data: &str) -> Result<(), Closed> {
        // These clients do not come back by themselves.
        self.is_begun = true;
        self.send(format!("data: {data}\n\n")).await
    }

    /// Keeps a quiet stream alive. Returns when it is to be closed: at once if the client goes, so that one that comes
    /// back finds its place free.
    pub(in crate::http) async fn idle(&mut self) -> Closed {
        let mut stopping = self.server.stopping.subscribe();
        loop {
            let is_stopping = tokio::select! {
                () = tokio::time::sleep(HEARTBEAT) => false,
                () = self.sender.closed() => return Closed,
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
        match timeout(STALLED, self.sender.send(Bytes::from(text))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Closed),
            Err(_) => {
                // It comes back with the number that it has, and is sent what it missed.
                self.server.metrics.resync(self.of.name());
                Err(Closed)
            }
        }
    }

    /// Ends the stream if the caller's token expired or was revoked meanwhile.
    async fn check(&mut self) -> Result<(), Closed> {
        let token = self.caller.token.clone();
        let asked = self
            .server
            .ask(async move |cx: &EngineContext| cx.engine.is_still_accepted(&token).await)
            .await;
        self.checked = Instant::now();
        match asked {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(Closed),
        }
    }
}
