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
use tokio::time::timeout;

use super::headers_of_stream;
use super::readers::Streamed;
use crate::http::access::Caller;
use crate::http::rights::{Ended, Right};
use crate::http::server::Shared;

/// How soon a client comes back after the stream broke off.
const RETRY_MS: u32 = 2_000;
/// How often a quiet stream is written to, so that proxies and clients know that it lives.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a client may take nothing.
const STALLED: Duration = Duration::from_secs(30);
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
    /// Room for the last piece, also where the client takes nothing.
    last: Option<mpsc::OwnedPermit<Bytes>>,
    server: Shared,
    right: Right,
    of: Streamed,
    is_begun: bool,
}

impl Stream {
    /// Starts a stream. The response is its other end.
    pub(in crate::http) fn start(
        server: Shared,
        (caller, of): (&Caller, Streamed),
    ) -> (Stream, Response) {
        let (sender, pieces) = mpsc::channel(PIECES + 1);
        let mut response = Response::new(Body::new(Pieces(pieces)));
        headers_of_stream(&mut response);
        let stream = Stream {
            last: sender.clone().try_reserve_owned().ok(),
            sender,
            right: server.rights.open(caller),
            server,
            of,
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

    /// Keeps a quiet stream alive. Returns when it is to be closed: at once if the client goes, so that one that comes
    /// back finds its place free.
    pub(in crate::http) async fn idle(&mut self) -> Closed {
        let mut stopping = self.server.stopping.subscribe();
        loop {
            tokio::select! {
                () = tokio::time::sleep(HEARTBEAT) => {}
                () = self.sender.closed() => return Closed,
                ended = self.right.ended() => return self.end(ended),
                // The sender is gone only when the server is.
                _ = stopping.wait_for(|is_stopping| *is_stopping) => {
                    let text = format!("event: server.stopping\nretry: {RETRY_MS}\ndata: {{}}\n\n");
                    return self.close(text);
                }
            }
            if self.send(": hb\n\n".to_owned()).await.is_err() {
                return Closed;
            }
        }
    }

    async fn send(&mut self, text: String) -> Result<(), Closed> {
        if let Some(ended) = self.right.has_ended() {
            return Err(self.end(ended));
        }
        let text = match std::mem::replace(&mut self.is_begun, true) {
            true => text,
            false => format!("retry: {RETRY_MS}\n\n{text}"),
        };
        let piece = match self.sender.try_send(Bytes::from(text)) {
            Ok(()) => return Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(Closed),
            Err(mpsc::error::TrySendError::Full(piece)) => piece,
        };
        tokio::select! {
            biased;
            ended = self.right.ended() => Err(self.end(ended)),
            sent = timeout(STALLED, self.sender.send(piece)) => match sent {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) => Err(Closed),
                Err(_) => {
                    // It comes back with the number that it has, and is sent what it missed.
                    self.server.metrics.resync(self.of.name());
                    Err(Closed)
                }
            }
        }
    }

    /// Ends the stream of a caller who may no longer read it.
    fn end(&mut self, ended: Ended) -> Closed {
        tracing::info!(?ended, "a stream of events is closed");
        self.close(ended.comment().to_owned())
    }

    /// Sends a last piece.
    fn close(&mut self, text: String) -> Closed {
        if let Some(last) = self.last.take() {
            last.send(Bytes::from(text));
        }
        Closed
    }
}
