//! One stream of server-sent events.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use flowstone_engine::feed_event::FeedEvent;
use serde_json::Value;

use super::backlog::{BOUNDS, Backlog, Refused};
use super::headers_of_stream;
use super::readers::Streamed;
use crate::http::access::Caller;
use crate::http::rights::{Ended, Right};
use crate::http::server::Shared;

/// How soon a client comes back after the stream broke off.
const RETRY_MS: u32 = 2_000;
/// How often a quiet stream is written to, so that proxies and clients know that it lives.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The client has gone, takes nothing, may no longer read, or the server stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) struct Closed;

/// A stream that is sent.
pub(in crate::http) struct Stream {
    backlog: Backlog,
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
        let (backlog, pieces) = Backlog::new(BOUNDS);
        let mut response = Response::new(Body::new(pieces));
        headers_of_stream(&mut response);
        let stream = Stream {
            backlog,
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

    /// Sends data without a number or a name, as clients of models expect it.
    pub(in crate::http) async fn data(&mut self, data: &str) -> Result<(), Closed> {
        // These clients do not come back by themselves.
        self.is_begun = true;
        self.send(format!("data: {data}\n\n")).await
    }

    /// Tells whether its client has gone.
    pub(in crate::http) fn is_left(&self) -> bool {
        self.backlog.is_gone()
    }

    /// Keeps a quiet stream alive. Returns when it is to be closed: at once if the client goes, so that one that comes
    /// back finds its place free.
    pub(in crate::http) async fn idle(&mut self) -> Closed {
        let mut stopping = self.server.stopping.subscribe();
        loop {
            tokio::select! {
                () = tokio::time::sleep(HEARTBEAT) => {}
                () = self.backlog.gone() => return Closed,
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
        let pushed = tokio::select! {
            biased;
            pushed = self.backlog.push(text) => pushed,
            ended = self.right.ended() => return Err(self.end(ended)),
        };
        match pushed {
            Ok(()) => Ok(()),
            Err(Refused::Gone) => Err(Closed),
            Err(Refused::Full) => {
                self.server.metrics.resync(self.of.name());
                // It comes back with the number that it has, and is sent what it missed.
                let text = format!("event: resync\nretry: {RETRY_MS}\ndata: {{}}\n\n");
                Err(self.close(text))
            }
        }
    }

    /// Ends the stream of a caller who may no longer read it.
    fn end(&mut self, ended: Ended) -> Closed {
        tracing::info!(?ended, "a stream of events is closed");
        self.backlog.cut(ended.comment().to_owned());
        Closed
    }

    /// Sends the last piece.
    fn close(&mut self, text: String) -> Closed {
        self.backlog.close(text);
        Closed
    }
}
