//! Bodies of requests while they arrive: all together have a bounded size, and a large one waits in a file for its end.
//!
//! Who sends a body slowly, or many of them, has proved nothing yet; so neither must cost memory.

use std::error::Error as _;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::BoxError;
use axum::body::Body;
use axum::http::{StatusCode, header};
use hyper::body::{Bytes, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::{Problem, codes};

/// Bodies are counted in pieces of this size.
const PIECE: usize = 16 << 10;
/// As much of a body is kept in memory before its end.
const IN_MEMORY: usize = 1 << 20;

/// Room for the bodies of all requests.
#[derive(Debug, Clone)]
pub(super) struct Room(Arc<Semaphore>);

impl Room {
    /// Returns room for this number of bytes, uploads of files apart.
    pub(super) fn new(bytes: usize) -> Room {
        Room(Arc::new(Semaphore::new(bytes / PIECE)))
    }

    /// Returns a body that takes room for what has come of it. Dropping it gives the room back.
    pub(super) fn count(&self, body: Body) -> Body {
        Body::new(Counted {
            body,
            room: self.clone(),
            held: Vec::new(),
            length: 0,
        })
    }
}

/// All bodies together are too large.
#[derive(Debug)]
struct NoRoom;

impl std::fmt::Display for NoRoom {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("no room is left for bodies of requests")
    }
}

impl std::error::Error for NoRoom {}

struct Counted {
    body: Body,
    room: Room,
    held: Vec<OwnedSemaphorePermit>,
    length: usize,
}

impl Counted {
    fn grow(&mut self, size: usize) -> Result<(), NoRoom> {
        self.length += size;
        while self.held.len() * PIECE < self.length {
            let piece = self.room.0.clone().try_acquire_owned();
            self.held.push(piece.map_err(|_| NoRoom)?);
        }
        Ok(())
    }
}

impl hyper::body::Body for Counted {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        polled.map(|frame| {
            frame.map(|frame| {
                let frame = frame?;
                let size = frame.data_ref().map_or(0, Bytes::len);
                self.grow(size)?;
                Ok(frame)
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Returns the answer to a request whose body cannot be read to its end.
pub(super) fn broken(error: &axum::Error) -> Problem {
    let mut cause = error.source();
    while let Some(found) = cause {
        if found.is::<NoRoom>() {
            return Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                codes::BUSY,
                "too many bodies of requests are being read",
            )
            .header(header::RETRY_AFTER, "1");
        }
        cause = found.source();
    }
    Problem::malformed("the body of the request is incomplete")
}

/// The bytes of a body that have come: in memory, and from a size on in a file without a name.
#[derive(Debug)]
pub(super) struct Spool {
    folder: PathBuf,
    file: Option<File>,
    memory: Vec<u8>,
    length: usize,
}

impl Spool {
    /// Returns an empty one. Its file is made in a folder that must exist by then.
    pub(super) fn new(folder: &Path) -> Spool {
        Spool {
            folder: folder.to_owned(),
            file: None,
            memory: Vec::new(),
            length: 0,
        }
    }

    /// Returns the number of bytes that have come.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    pub(super) async fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len();
        self.memory.extend_from_slice(bytes);
        if self.memory.len() <= IN_MEMORY {
            return Ok(());
        }
        let (memory, file) = (std::mem::take(&mut self.memory), self.file.take());
        let folder = self.folder.clone();
        let writing = tokio::task::spawn_blocking(move || {
            let mut file = match file {
                Some(file) => file,
                None => tempfile::tempfile_in(folder)?,
            };
            file.write_all(&memory)?;
            Ok::<_, io::Error>(file)
        });
        self.file = Some(writing.await.map_err(io::Error::other)??);
        Ok(())
    }

    /// Returns all bytes. May wait for the disk.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn load(self) -> io::Result<Vec<u8>> {
        let Some(mut file) = self.file else {
            return Ok(self.memory);
        };
        let mut bytes = Vec::with_capacity(self.length);
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        bytes.extend_from_slice(&self.memory);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    fn wait<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(future)
    }

    #[test]
    fn a_body_comes_back_as_it_came() {
        let folder = tempfile::tempdir().expect("a folder");
        for length in [0, 1, IN_MEMORY, IN_MEMORY + 1, 3 * IN_MEMORY + 7] {
            let whole: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let mut spool = Spool::new(folder.path());
            for piece in whole.chunks(70_000) {
                wait(spool.add(piece)).expect("a file");
            }
            assert_eq!(spool.length(), length);
            assert_eq!(spool.file.is_some(), length > IN_MEMORY, "{length}");
            assert!(spool.memory.len() <= IN_MEMORY);
            assert!(spool.load().expect("bytes") == whole, "{length}");
        }
        let left = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 0, "files have no names");
    }

    #[test]
    fn bodies_take_room_until_they_are_dropped() {
        let room = Room::new(4 * PIECE);
        let read = |size: usize| {
            let mut body = room.count(Body::from(vec![0; size]));
            wait(async {
                while let Some(frame) = body.frame().await {
                    frame.map_err(|error| broken(&error).status.as_u16())?;
                }
                Ok::<_, u16>(body)
            })
        };
        let first = read(3 * PIECE).expect("room");
        assert_eq!(read(2 * PIECE).expect_err("no room"), 503);
        assert!(read(PIECE).is_ok());
        drop(first);
        assert!(read(4 * PIECE).is_ok());
    }
}
