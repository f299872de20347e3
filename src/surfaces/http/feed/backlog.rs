//! What a stream of events has sent and its connection has not taken yet: bounded in events and in bytes.
//!
//! A client that takes nothing while its backlog is full reads again what it missed when it comes back.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Bytes, Frame};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

/// How much a backlog holds, and for how long it may be full.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub events: usize,
    /// A larger event waits until nothing else does.
    pub bytes: u32,
    /// How long a client with a full backlog may take nothing.
    pub patience: Duration,
}

/// The bounds of each reader.
pub(super) const BOUNDS: Bounds = Bounds {
    events: 256,
    bytes: 1 << 20,
    patience: Duration::from_secs(10),
};

/// Why an event was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The client takes nothing, and its backlog is full.
    Full,
    /// The client has gone.
    Gone,
}

#[derive(Debug)]
struct Piece {
    bytes: Bytes,
    /// Its share of the bytes of the backlog; none for the last piece.
    room: Option<OwnedSemaphorePermit>,
}

/// The end of a stream that is written.
#[derive(Debug)]
pub(super) struct Backlog {
    sender: mpsc::Sender<Piece>,
    room: Arc<Semaphore>,
    bounds: Bounds,
    /// The place of the last piece, which is sent to a client with a full backlog, too.
    last: Option<mpsc::OwnedPermit<Piece>>,
    /// What still waits is not to be sent.
    is_cut: Arc<AtomicBool>,
}

impl Backlog {
    /// Creates an empty backlog and the body of a response that takes from it.
    pub(super) fn new(bounds: Bounds) -> (Backlog, Pieces) {
        let (sender, pieces) = mpsc::channel(bounds.events + 1);
        let is_cut = Arc::<AtomicBool>::default();
        let pieces = Pieces {
            pieces,
            is_cut: is_cut.clone(),
        };
        let backlog = Backlog {
            is_cut,
            last: sender.clone().try_reserve_owned().ok(),
            sender,
            room: Arc::new(Semaphore::new(bounds.bytes as usize)),
            bounds,
        };
        (backlog, pieces)
    }

    /// Adds an event, and waits while the backlog is full.
    ///
    /// # Errors
    /// When the client has gone, or takes nothing for too long.
    pub(super) async fn push(&mut self, text: String) -> Result<(), Refused> {
        let size = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let size = size.min(self.bounds.bytes);
        let bytes = Bytes::from(text);
        let piece = match self.room.clone().try_acquire_many_owned(size) {
            Err(_) => return self.wait(bytes, size).await,
            Ok(room) => Piece {
                bytes,
                room: Some(room),
            },
        };
        match self.sender.try_send(piece) {
            Ok(()) => Ok(()),
            Err(TrySendError::Closed(_)) => Err(Refused::Gone),
            Err(TrySendError::Full(piece)) => self.wait(piece.bytes, size).await,
        }
    }

    async fn wait(&self, bytes: Bytes, size: u32) -> Result<(), Refused> {
        let adding = async {
            let room = self.room.clone().acquire_many_owned(size).await;
            let room = Some(room.map_err(|_| Refused::Gone)?);
            let sent = self.sender.send(Piece { bytes, room }).await;
            sent.map_err(|_| Refused::Gone)
        };
        let added = timeout(self.bounds.patience, adding).await;
        added.unwrap_or(Err(Refused::Full))
    }

    /// Adds the last piece, also to a full backlog.
    pub(super) fn close(&mut self, text: String) {
        if let Some(last) = self.last.take() {
            last.send(Piece {
                bytes: Bytes::from(text),
                room: None,
            });
        }
    }

    /// Replaces everything that still waits by a last piece.
    pub(super) fn cut(&mut self, text: String) {
        self.is_cut.store(true, Ordering::Release);
        self.close(text);
    }

    /// Tells whether the client has gone.
    pub(super) fn is_gone(&self) -> bool {
        self.sender.is_closed()
    }

    /// Waits until the client has gone.
    pub(super) async fn gone(&self) {
        self.sender.closed().await;
    }
}

/// The body of a response. It is dropped with the connection.
pub(super) struct Pieces {
    pieces: mpsc::Receiver<Piece>,
    is_cut: Arc<AtomicBool>,
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            let Some(piece) = ready!(self.pieces.poll_recv(cx)) else {
                return Poll::Ready(None);
            };
            let is_last = piece.room.is_none();
            if is_last || !self.is_cut.load(Ordering::Acquire) {
                return Poll::Ready(Some(Ok(Frame::data(piece.bytes))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    fn bounds(events: usize, bytes: u32) -> Bounds {
        Bounds {
            events,
            bytes,
            patience: Duration::from_millis(20),
        }
    }

    async fn next(pieces: &mut Pieces) -> Option<Bytes> {
        let frame = pieces.frame().await?.expect("a stream does not fail");
        frame.into_data().ok()
    }

    async fn rest(mut pieces: Pieces) -> Vec<Bytes> {
        let mut all = Vec::new();
        while let Some(bytes) = next(&mut pieces).await {
            all.push(bytes);
        }
        all
    }

    #[tokio::test]
    async fn a_full_backlog_refuses_events_and_takes_the_last_piece() {
        for (bounds, fits) in [(bounds(3, 100), 3), (bounds(100, 10), 2)] {
            let (mut backlog, pieces) = Backlog::new(bounds);
            for _ in 0..fits {
                assert_eq!(backlog.push("12345".to_owned()).await, Ok(()));
            }
            let more = backlog.push("12345".to_owned()).await;
            assert_eq!(more, Err(Refused::Full), "{bounds:?}");
            backlog.close("end".to_owned());
            drop(backlog);
            let all = rest(pieces).await;
            assert_eq!(all.len(), fits + 1);
            assert_eq!(all.last().map(|it| &it[..]), Some(&b"end"[..]));
        }
    }

    #[tokio::test]
    async fn an_event_that_is_taken_makes_room() {
        let (mut backlog, mut pieces) = Backlog::new(bounds(1, 10));
        // Larger than all the room there is.
        assert_eq!(backlog.push("1".repeat(50)).await, Ok(()));
        assert_eq!(backlog.push("2".to_owned()).await, Err(Refused::Full));
        assert_eq!(next(&mut pieces).await.map(|it| it.len()), Some(50));
        assert_eq!(backlog.push("3".to_owned()).await, Ok(()));
    }

    #[tokio::test]
    async fn what_waits_is_not_sent_to_a_client_that_may_no_longer_read_it() {
        let (mut backlog, pieces) = Backlog::new(bounds(3, 100));
        for _ in 0..3 {
            assert_eq!(backlog.push("12345".to_owned()).await, Ok(()));
        }
        backlog.cut("end".to_owned());
        drop(backlog);
        assert_eq!(rest(pieces).await, ["end"]);
    }

    #[tokio::test]
    async fn a_client_that_has_gone_is_noticed() {
        let (mut backlog, pieces) = Backlog::new(bounds(1, 10));
        drop(pieces);
        backlog.gone().await;
        assert_eq!(backlog.push("1".to_owned()).await, Err(Refused::Gone));
    }
}
