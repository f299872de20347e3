//! What the VM asks of the world around it.

use crate::value::{Result, Stop, Value};

/// Where printed text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Out,
    Error,
}

/// The world as the language sees it. A flow's host refuses or journals; a program's host performs.
pub trait Host {
    /// Called when the fuel that was given is used up: gives more, or stops the run. Here the host looks
    /// at deadline, cancellation and memory. The first call comes before the first instruction.
    fn refill(&mut self) -> Result<u32, Stop>;

    /// Writes printed text.
    ///
    /// # Errors
    /// Words, when the stream cannot be written.
    fn write(&mut self, stream: Stream, text: &str) -> Result<(), String>;

    /// Reads a line of standard input without its end; `None` at the end of input.
    ///
    /// # Errors
    /// Words, when there is no input here.
    fn read_line(&mut self) -> Result<Option<String>, String>;

    /// Milliseconds since 1970.
    fn now_millis(&mut self) -> Result<i64>;

    /// Nanoseconds since some fixed moment, never going back.
    fn now_nanos(&mut self) -> Result<i64>;

    /// 64 random bits.
    fn random(&mut self) -> Result<u64>;

    /// Reads a text file.
    ///
    /// # Errors
    /// Words, when files are not allowed here or this one cannot be read.
    fn read_file(&mut self, path: &str) -> Result<String, String>;

    /// Writes a text file.
    ///
    /// # Errors
    /// Words, when files are not allowed here or this one cannot be written.
    fn write_file(&mut self, path: &str, text: &str, append: bool) -> Result<(), String>;

    /// Returns name and text of the source of a namespace, for `require`.
    fn find_source(&mut self, namespace: &str) -> Option<(String, String)>;

    /// Performs a request that leaves the VM, such as a step, and returns its outcome. A host inside a
    /// run suspends the run's stack here.
    ///
    /// # Errors
    /// Whatever the request came to.
    fn suspend(&mut self, request: Value) -> Result<Value>;

    /// Sleeps, for `Thread/sleep` in programs.
    fn sleep(&mut self, millis: u64) -> Result<()>;
}

/// A host that has nothing: for tests, and for evaluating pure code.
#[derive(Debug, Default)]
pub struct NoHost {
    /// What was printed to either stream.
    pub printed: String,
}

const NOT_HERE: &str = "not available here";

impl Host for NoHost {
    fn refill(&mut self) -> Result<u32, Stop> {
        Ok(1_000_000)
    }

    fn write(&mut self, _stream: Stream, text: &str) -> Result<(), String> {
        self.printed.push_str(text);
        Ok(())
    }

    fn read_line(&mut self) -> Result<Option<String>, String> {
        Err(NOT_HERE.to_owned())
    }

    fn now_millis(&mut self) -> Result<i64> {
        Ok(0)
    }

    fn now_nanos(&mut self) -> Result<i64> {
        Ok(0)
    }

    fn random(&mut self) -> Result<u64> {
        Ok(4)
    }

    fn read_file(&mut self, _path: &str) -> Result<String, String> {
        Err(NOT_HERE.to_owned())
    }

    fn write_file(&mut self, _path: &str, _text: &str, _append: bool) -> Result<(), String> {
        Err(NOT_HERE.to_owned())
    }

    fn find_source(&mut self, _namespace: &str) -> Option<(String, String)> {
        None
    }

    fn suspend(&mut self, _request: Value) -> Result<Value> {
        Err(Stop::Interrupted("a step cannot run here".to_owned()).into())
    }

    fn sleep(&mut self, _millis: u64) -> Result<()> {
        Ok(())
    }
}
