//! A connection that ends when the other side takes nothing for a while.
//!
//! Without it, a client that asks and never reads would hold its connection, and the answer, for ever.

use std::future::Future as _;
use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A connection whose writes fail once the other side took nothing for a while.
pub(super) struct Stalling<S> {
    stream: S,
    patience: Duration,
    /// Runs while a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Stalling<S> {
    /// `patience` is how long the other side may take nothing of what is written.
    pub(super) fn new(stream: S, patience: Duration) -> Stalling<S> {
        Stalling {
            stream,
            patience,
            waiting: None,
        }
    }

    /// Passes on how a write went, and fails one that waits for too long.
    fn checked<T>(&mut self, cx: &mut Context<'_>, went: Poll<Result<T>>) -> Poll<Result<T>> {
        if went.is_ready() {
            self.waiting = None;
            return went;
        }
        let patience = self.patience;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        match waiting.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                self.waiting = None;
                Poll::Ready(Err(Error::from(ErrorKind::TimedOut)))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let went = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.checked(cx, went)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[std::io::IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let went = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.checked(cx, went)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let went = Pin::new(&mut self.stream).poll_flush(cx);
        self.checked(cx, went)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let went = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.checked(cx, went)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn a_write_that_nobody_takes_fails() {
        let (near, mut far) = duplex(4);
        let mut stream = Stalling::new(near, Duration::from_millis(20));
        let (mut first, text) = ([0; 4], b"012345678");
        let (went, read) = tokio::join!(stream.write_all(text), far.read_exact(&mut first));
        assert_eq!(went.map_err(|error| error.kind()), Err(ErrorKind::TimedOut));
        assert!(read.is_ok() && first == text[..4], "{read:?}");
        // Once there is room, the connection can be used again.
        let (mut rest, text) = ([0; 4], b"abcdefgh");
        let reading = async {
            for _ in 0..3 {
                far.read_exact(&mut rest).await?;
            }
            Ok::<_, Error>(())
        };
        let (went, read) = tokio::join!(stream.write_all(text), reading);
        assert!(went.is_ok() && read.is_ok() && rest == text[4..]);
    }
}
