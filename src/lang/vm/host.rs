//! The interface through which the VM reaches the world.

use std::any::Any;
use std::fmt;
use std::rc::Rc;

use crate::value::meter::Watch;
use crate::value::{Class, Exception, Result, Signal, Stop, Value};

/// The default answer of a host for an ability that it lacks.
const NOT_HERE: &str = "not available here";

/// A request to the host of an evaluation, beyond what a [`Host`] answers at once. The language does not inspect it:
/// only the native that makes the request and the host know its type.
pub struct Request(Box<dyn Any>);

impl Request {
    /// Wraps the content of a request.
    pub fn new(asked: impl Any) -> Request {
        Request(Box::new(asked))
    }

    /// Returns the content of the request.
    ///
    /// # Errors
    /// The request itself, if its content has another type.
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

/// The stream that printed text goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// `*out*`.
    Out,
    /// `*err*`.
    Error,
}

/// The world as the language sees it. A flow's host refuses or journals operations; a program's host performs them. By
/// default a host refuses operations, and its clock does not advance.
pub trait Host {
    /// Called when the granted fuel is used up: grants more, or stops the run. Here the host checks deadline,
    /// cancellation and memory. The first call comes before the first instruction.
    ///
    /// # Errors
    /// The reason why the run must stop; no `catch` sees it.
    fn refill(&mut self) -> Result<u32, Stop> {
        Ok(1_000_000)
    }

    /// Called before an allocation whose size, in bytes, comes from data.
    ///
    /// # Errors
    /// [`Stop::OutOfMemory`] if there is no room for it; no `catch` sees it.
    fn room_for(&mut self, _bytes: usize) -> Result<(), Stop> {
        Ok(())
    }

    /// Returns the limits for native work without access to the machine; they share their fuel with [`Host::refill`].
    fn watch(&self) -> Option<Rc<dyn Watch>> {
        None
    }

    /// Yields to other evaluations of the thread after much native work.
    ///
    /// # Errors
    /// As [`Host::refill`].
    fn yield_now(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    /// Writes printed text.
    ///
    /// # Errors
    /// A message, if the stream cannot be written.
    fn write(&mut self, _stream: Stream, _text: &str) -> Result<(), String> {
        Ok(())
    }

    /// Reads a line of standard input without its end; `None` at the end of input.
    ///
    /// # Errors
    /// A message, if there is no input here.
    fn read_line(&mut self) -> Result<Option<String>, String> {
        Err(NOT_HERE.to_owned())
    }

    /// Returns the milliseconds since 1970.
    fn now_millis(&mut self) -> Result<i64> {
        Ok(0)
    }

    /// Returns the nanoseconds since some fixed instant; never decreases.
    fn now_nanos(&mut self) -> Result<i64> {
        Ok(0)
    }

    /// Returns 64 random bits.
    fn random(&mut self) -> Result<u64> {
        Ok(4)
    }

    /// Reads a text file.
    ///
    /// # Errors
    /// A message, if files are not allowed here or this one cannot be read.
    fn read_file(&mut self, _path: &str) -> Result<String, String> {
        Err(NOT_HERE.to_owned())
    }

    /// Writes a text file.
    ///
    /// # Errors
    /// A message, if files are not allowed here or this one cannot be written.
    fn write_file(&mut self, _path: &str, _text: &str, _append: bool) -> Result<(), String> {
        Err(NOT_HERE.to_owned())
    }

    /// Returns the name and text of a namespace's source, for `require`.
    fn find_source(&mut self, _namespace: &str) -> Option<(String, String)> {
        None
    }

    /// Returns a hint about a namespace without a source.
    fn missing_source(&self) -> String {
        "only the namespaces of the library are available here: code of a flow belongs in its :functions"
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

    /// Returns the request that yields to other evaluations of the session, if there are any, because one of them may
    /// be computing a needed value. Its answer is whether any of them ran.
    fn yield_request(&mut self) -> Option<Request> {
        None
    }

    /// Called before code changes state that all evaluations of the session share, such as roots of vars, names, and
    /// atoms created elsewhere, or queries which part of the library is loaded.
    ///
    /// # Errors
    /// [`Stop::Evicted`] if other evaluations use the session and could observe it; no `catch` sees it.
    fn touch_session(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    /// Sleeps, for `Thread/sleep` in programs.
    fn sleep(&mut self, _millis: u64) -> Result<()> {
        Ok(())
    }

    /// Returns the signal that ends the process with a status, or an error if code here may not end it.
    fn exit(&mut self, _status: i32) -> Signal {
        let message = "only a program can end its process";
        Exception::new(Class::UNSUPPORTED_OPERATION, "E0353", message)
            .hint("throw an exception to end a flow")
            .into()
    }

    /// Returns the paths of the files and folders in a folder; `None` if the path is not a folder.
    ///
    /// # Errors
    /// A message, if files are not allowed here or this folder cannot be read.
    fn list_folder(&mut self, _path: &str) -> Result<Option<Vec<String>>, String> {
        Err("files cannot be listed here".to_owned())
    }
}

/// A host without abilities that keeps printed text: for tests, and for evaluating pure code.
#[derive(Debug, Default)]
pub struct NoHost {
    /// The text printed to either stream.
    pub printed: String,
}

impl Host for NoHost {
    fn write(&mut self, _stream: Stream, text: &str) -> Result<(), String> {
        self.printed.push_str(text);
        Ok(())
    }
}
