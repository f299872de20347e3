//! What the VM asks of the world around it.

use std::any::Any;
use std::fmt;
use std::rc::Rc;

use crate::value::meter::Watch;
use crate::value::{Class, Exception, Result, Signal, Stop, Value};

/// What a host says of what it does not have.
const NOT_HERE: &str = "not available here";

/// A request to the host of an evaluation, beyond what a [`Host`] answers at once. The language does not look inside:
/// the native that makes the request and the host know its type.
pub struct Request(Box<dyn Any>);

impl Request {
    /// Wraps what is asked for.
    pub fn new(asked: impl Any) -> Request {
        Request(Box::new(asked))
    }

    /// Returns what is asked for.
    ///
    /// # Errors
    /// The request itself, where it is of another type.
    pub fn take<T: Any>(self) -> Result<T, Request> {
        match self.0.downcast::<T>() {
            Ok(asked) => Ok(*asked),
            Err(asked) => Err(Request(asked)),
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Request")
    }
}

/// Where printed text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// `*out*`.
    Out,
    /// `*err*`.
    Error,
}

/// The world as the language sees it. A flow's host refuses or journals; a program's host performs. What a host does
/// not say is refused, and the clock stands still.
pub trait Host {
    /// Called when the fuel that was given is used up: gives more, or stops the run. Here the host looks
    /// at deadline, cancellation and memory. The first call comes before the first instruction.
    ///
    /// # Errors
    /// Why the run is to stop; no `catch` sees that.
    fn refill(&mut self) -> Result<u32, Stop> {
        Ok(1_000_000)
    }

    /// Called before something is allocated whose size, in bytes, comes from data.
    ///
    /// # Errors
    /// [`Stop::OutOfMemory`] when there is no room for it; no `catch` sees that.
    fn room_for(&mut self, _bytes: usize) -> Result<(), Stop> {
        Ok(())
    }

    /// Returns what limits native work that has no machine at hand: it shares its fuel with [`Host::refill`].
    fn watch(&self) -> Option<Rc<dyn Watch>> {
        None
    }

    /// Gives other evaluations of the thread a turn after much native work.
    ///
    /// # Errors
    /// As [`Host::refill`].
    fn turn(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    /// Writes printed text.
    ///
    /// # Errors
    /// Words, when the stream cannot be written.
    fn write(&mut self, _stream: Stream, _text: &str) -> Result<(), String> {
        Ok(())
    }

    /// Reads a line of standard input without its end; `None` at the end of input.
    ///
    /// # Errors
    /// Words, when there is no input here.
    fn read_line(&mut self) -> Result<Option<String>, String> {
        Err(NOT_HERE.to_owned())
    }

    /// Milliseconds since 1970.
    fn now_millis(&mut self) -> Result<i64> {
        Ok(0)
    }

    /// Nanoseconds since some fixed moment, never going back.
    fn now_nanos(&mut self) -> Result<i64> {
        Ok(0)
    }

    /// 64 random bits.
    fn random(&mut self) -> Result<u64> {
        Ok(4)
    }

    /// Reads a text file.
    ///
    /// # Errors
    /// Words, when files are not allowed here or this one cannot be read.
    fn read_file(&mut self, _path: &str) -> Result<String, String> {
        Err(NOT_HERE.to_owned())
    }

    /// Writes a text file.
    ///
    /// # Errors
    /// Words, when files are not allowed here or this one cannot be written.
    fn write_file(&mut self, _path: &str, _text: &str, _append: bool) -> Result<(), String> {
        Err(NOT_HERE.to_owned())
    }

    /// Returns name and text of the source of a namespace, for `require`.
    fn find_source(&mut self, _namespace: &str) -> Option<(String, String)> {
        None
    }

    /// Says what to do about a namespace that has no source.
    fn missing_source(&self) -> String {
        "there are only the namespaces of the library here: code of a flow is in its :functions"
            .to_owned()
    }

    /// Performs a request that leaves the VM, such as a step, and returns its outcome. A host inside a
    /// run suspends the run's stack here.
    ///
    /// # Errors
    /// The error of the request.
    fn suspend(&mut self, _request: Request) -> Result<Value> {
        Err(Stop::Interrupted("a step cannot run here".to_owned()).into())
    }

    /// Returns the request that lets other evaluations of the session go on for a while, where there are such: what
    /// is needed may be what one of them computes. Its answer says whether they did.
    fn company(&mut self) -> Option<Request> {
        None
    }

    /// Called before code changes what all evaluations of the session share, such as roots of vars, names and atoms that
    /// it did not make, or asks how much of the library is loaded.
    ///
    /// # Errors
    /// [`Stop::Evicted`] where other evaluations use the session and would notice; no `catch` sees that.
    fn touch_session(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    /// Sleeps, for `Thread/sleep` in programs.
    fn sleep(&mut self, _millis: u64) -> Result<()> {
        Ok(())
    }

    /// Returns what ends the process with a status, or says that nothing here may end it.
    fn exit(&mut self, _status: i32) -> Signal {
        let message = "only a program can end its process";
        Exception::new(Class::UNSUPPORTED_OPERATION, "E0353", message)
            .hint("throw an exception to end a flow")
            .into()
    }

    /// Returns the paths of the files and folders in a folder; `None` for what is no folder.
    ///
    /// # Errors
    /// Words, when files are not allowed here or this folder cannot be read.
    fn list_folder(&mut self, _path: &str) -> Result<Option<Vec<String>>, String> {
        Err("files cannot be listed here".to_owned())
    }
}

/// A host that has nothing but keeps what is printed: for tests, and for evaluating pure code.
#[derive(Debug, Default)]
pub struct NoHost {
    /// What was printed to either stream.
    pub printed: String,
}

impl Host for NoHost {
    fn write(&mut self, _stream: Stream, text: &str) -> Result<(), String> {
        self.printed.push_str(text);
        Ok(())
    }
}
