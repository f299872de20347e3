//! The world of an evaluation for a client: what it prints goes to the client, what it reads comes from there.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use flowstone_lang::value::meter::Watch;
use flowstone_lang::value::{Result, Signal, Stop, Value};
use flowstone_lang::vm::{Host, Request, Stream};

use super::bencode::Bencode;
use super::connection::{Client, Protocol};
use super::reply::Address;
use super::sessions::{ClientSession, Hub};
use crate::cli::{Person, ProgramHost};

/// The client for whom something is evaluated.
#[derive(Clone)]
pub struct Target {
    pub client: Arc<Client>,
    pub session: Arc<ClientSession>,
    pub address: Address,
    pub protocol: Protocol,
}

/// The client of the evaluation in progress, if there is one.
#[derive(Clone)]
pub struct Current {
    target: Rc<RefCell<Option<Target>>>,
    /// The beginning of a printed line that was not sent, and when it began.
    line: Rc<RefCell<(String, Option<Instant>)>>,
    hub: Arc<Hub>,
}

/// How long the beginning of a line is kept.
const KEPT: Duration = Duration::from_millis(100);
/// Maximum size of the beginning of a line that is kept.
const KEPT_BYTES: usize = 4 << 10;

impl Target {
    /// Sends printed text.
    pub fn print(&self, stream: Stream, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.protocol {
            Protocol::Socket => self.client.send(text.as_bytes().to_vec()),
            Protocol::Nrepl => {
                let name = match stream {
                    Stream::Out => "out",
                    Stream::Error => "err",
                };
                self.client
                    .answer(&self.address.reply([(name, Bencode::from(text))]));
            }
        }
    }
}

impl Current {
    pub fn new(hub: Arc<Hub>) -> Current {
        Current {
            target: Rc::default(),
            line: Rc::default(),
            hub,
        }
    }

    /// Sets the client, or that nobody is served.
    pub fn set(&self, target: Option<Target>) {
        self.target.replace(target);
    }

    /// Sends printed text to the client, whole lines at a time.
    pub fn print(&self, stream: Stream, text: &str) {
        if stream == Stream::Out {
            let mut line = self.line.borrow_mut();
            line.0.push_str(text);
            let is_due = line.1.get_or_insert_with(Instant::now).elapsed() > KEPT;
            if !(line.0.ends_with('\n') || line.0.len() > KEPT_BYTES || is_due) {
                return;
            }
        }
        self.flush();
        let target = self.target.borrow().clone();
        if let (Some(target), Stream::Error) = (target, stream) {
            target.print(stream, text);
        }
    }

    /// Sends what was printed so far.
    pub fn flush(&self) {
        let (text, _) = self.line.take();
        let target = self.target.borrow().clone();
        if let Some(target) = target {
            target.print(Stream::Out, &text);
        }
    }

    /// Reads a line from the client, which is asked for it. `None`: the end of its input, or an interrupt.
    pub fn read_line(&self) -> Option<String> {
        self.flush();
        let target = self.target.borrow().clone()?;
        let stops = || {
            self.hub.interrupt.load(Ordering::Relaxed)
                || self.hub.is_over()
                || target.client.is_gone()
                || target.session.is_closed()
        };
        let ask = || {
            if target.protocol == Protocol::Nrepl {
                target
                    .client
                    .answer(&target.address.status(&["need-input"]));
            }
        };
        target.session.input.line(stops, ask)
    }
}

impl Person for Current {
    fn ask(&self, question: &str) -> Option<String> {
        self.print(Stream::Out, question);
        self.read_line()
    }

    fn answers_waits(&self) -> bool {
        self.target.borrow().is_some()
    }

    fn tell(&self, text: &str) {
        self.print(Stream::Error, &format!("{}\n", crate::cli::exact(text)));
    }
}

/// A program's host whose streams are those of a client.
pub struct ClientHost {
    pub program: ProgramHost,
    pub current: Current,
}

impl Host for ClientHost {
    fn refill(&mut self) -> std::result::Result<u32, Stop> {
        self.program.refill()
    }

    fn watch(&self) -> Option<Rc<dyn Watch>> {
        self.program.watch()
    }

    fn room_for(&mut self, bytes: usize) -> std::result::Result<(), Stop> {
        self.program.room_for(bytes)
    }

    fn write(&mut self, stream: Stream, text: &str) -> std::result::Result<(), String> {
        self.current.print(stream, text);
        Ok(())
    }

    fn read_line(&mut self) -> std::result::Result<Option<String>, String> {
        let line = self.current.read_line();
        Ok(line.map(|line| {
            line.trim_end_matches('\n')
                .trim_end_matches('\r')
                .to_owned()
        }))
    }

    fn now_millis(&mut self) -> Result<i64> {
        self.program.now_millis()
    }

    fn now_nanos(&mut self) -> Result<i64> {
        self.program.now_nanos()
    }

    fn random(&mut self) -> Result<u64> {
        self.program.random()
    }

    fn read_file(&mut self, path: &str) -> std::result::Result<String, String> {
        self.program.read_file(path)
    }

    fn write_file(
        &mut self,
        path: &str,
        text: &str,
        append: bool,
    ) -> std::result::Result<(), String> {
        self.program.write_file(path, text, append)
    }

    fn find_source(&mut self, namespace: &str) -> Option<(String, String)> {
        self.program.find_source(namespace)
    }

    fn missing_source(&self) -> String {
        self.program.missing_source()
    }

    fn suspend(&mut self, request: Request) -> Result<Value> {
        self.program.suspend(request)
    }

    fn sleep(&mut self, millis: u64) -> Result<()> {
        self.program.sleep(millis)
    }

    fn exit(&mut self, status: i32) -> Signal {
        self.program.exit(status)
    }

    fn list_folder(&mut self, path: &str) -> std::result::Result<Option<Vec<String>>, String> {
        self.program.list_folder(path)
    }
}
