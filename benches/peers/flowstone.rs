//! Flowstone as one of the peers: the same text, in this process, on a host whose clock is the processor
//! time of the thread.

use std::io::{Error, Result, Write};
use std::path::Path;

use flowstone_lang::session::Session;
use flowstone_lang::value::Stop;
use flowstone_lang::vm::{Host, NoHost, Stream};
use nix::sys::resource::{UsageWho, getrusage};

/// The first argument with which the benchmark starts itself for this.
pub const MODE: &str = "--flowstone";

/// Evaluates a file.
pub fn run(args: &[String]) -> Result<()> {
    let path = args.first().map(Path::new).unwrap_or(Path::new("-"));
    let text = std::fs::read_to_string(path)?;
    let session = Session::new();
    let mut vm = session.vm(Box::<Clock>::default());
    session
        .eval_text(&mut vm, "kernel", &text)
        .map(|_| ())
        .map_err(|error| Error::other(format!("{error:?}")))
}

#[derive(Default)]
struct Clock {
    rest: NoHost,
}

impl Host for Clock {
    fn refill(&mut self) -> std::result::Result<u32, Stop> {
        self.rest.refill()
    }

    fn write(&mut self, _: Stream, text: &str) -> std::result::Result<(), String> {
        std::io::stdout()
            .write_all(text.as_bytes())
            .map_err(|error| error.to_string())
    }

    fn read_line(&mut self) -> std::result::Result<Option<String>, String> {
        self.rest.read_line()
    }

    fn now_millis(&mut self) -> flowstone_lang::value::Result<i64> {
        Ok(self.now_nanos()? / 1_000_000)
    }

    fn now_nanos(&mut self) -> flowstone_lang::value::Result<i64> {
        let usage = getrusage(UsageWho::RUSAGE_THREAD).map_err(|error| {
            Stop::Interrupted(format!("the processor time cannot be read: {error}"))
        })?;
        let (user, system) = (usage.user_time(), usage.system_time());
        Ok((user.tv_sec() + system.tv_sec()) * 1_000_000_000
            + (user.tv_usec() + system.tv_usec()) * 1_000)
    }

    fn random(&mut self) -> flowstone_lang::value::Result<u64> {
        self.rest.random()
    }

    fn read_file(&mut self, path: &str) -> std::result::Result<String, String> {
        self.rest.read_file(path)
    }

    fn write_file(
        &mut self,
        path: &str,
        text: &str,
        append: bool,
    ) -> std::result::Result<(), String> {
        self.rest.write_file(path, text, append)
    }

    fn find_source(&mut self, namespace: &str) -> Option<(String, String)> {
        self.rest.find_source(namespace)
    }

    fn suspend(
        &mut self,
        request: flowstone_lang::vm::Request,
    ) -> flowstone_lang::value::Result<flowstone_lang::value::Value> {
        self.rest.suspend(request)
    }

    fn sleep(&mut self, millis: u64) -> flowstone_lang::value::Result<()> {
        self.rest.sleep(millis)
    }
}
