//! Servers that are child processes: starting them, reading their output, and ending them with their own children.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use flowstone_flow::redact::{RedactStream, Redactor};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::connection::MOST_BYTES;

/// The command of a server. Not printable: its environment contains secrets.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Program {
    pub command: Vec<String>,
    /// The complete environment of the process.
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
}

/// A child process with its pipes.
pub(super) struct Started {
    pub process: Process,
    pub input: ChildStdin,
    pub output: Watched,
}

/// A child process, which is killed when this is dropped.
pub(super) struct Process {
    child: Child,
    /// Its process group, which has its id and lives as long as any process in it.
    #[cfg(unix)]
    group: Option<i32>,
    /// Reads its error output to the end.
    listener: Option<JoinHandle<()>>,
}

/// How long a server may take to end after its input has ended, and again after it was asked to terminate.
const GRACE: Duration = Duration::from_millis(500);

impl Program {
    pub(super) fn start(&self, output: &Output) -> io::Result<Started> {
        let Some((program, args)) = self.command.split_first() else {
            return Err(io::Error::other("it is empty"));
        };
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // A separate process group: it is ended with its children, and does not get interrupts of the terminal.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let missing = || io::Error::other("it has no pipes");
        let input = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let complaints = child.stderr.take();
        let listener = complaints.map(|it| tokio::spawn(listen(it, output.clone())));
        Ok(Started {
            process: Process {
                #[cfg(unix)]
                group: child.id().and_then(|id| i32::try_from(id).ok()),
                child,
                listener,
            },
            input,
            output: Watched {
                inner: stdout,
                output: output.clone(),
                line: 0,
                start: Vec::new(),
            },
        })
    }
}

impl Process {
    /// Waits for the end of a process whose input has ended; if it does not exit, it is terminated, then killed.
    pub(super) async fn end(mut self) {
        if timeout(GRACE, self.child.wait()).await.is_err() {
            self.signal(End::Terminate);
            timeout(GRACE, self.child.wait()).await.ok();
        }
        // Kills children that it left behind.
        self.signal(End::Kill);
        timeout(GRACE, self.child.wait()).await.ok();
        #[cfg(unix)]
        {
            // The id may belong to another group from now on.
            self.group = None;
        }
    }

    /// Returns how the process ended, if it has. Its last output has been read then.
    pub(super) async fn ended(&mut self) -> Option<String> {
        let status = timeout(GRACE, self.child.wait()).await.ok()?.ok()?;
        if let Some(listener) = self.listener.take() {
            // Children that it left behind may keep its error output open.
            timeout(GRACE, listener).await.ok();
        }
        Some(status.to_string())
    }

    #[cfg(unix)]
    fn signal(&self, end: End) {
        use nix::sys::signal::{Signal, killpg};
        use nix::unistd::Pid;

        let Some(id) = self.group else {
            return;
        };
        let signal = match end {
            End::Terminate => Signal::SIGTERM,
            End::Kill => Signal::SIGKILL,
        };
        killpg(Pid::from_raw(id), signal).ok();
    }

    #[cfg(not(unix))]
    fn signal(&self, end: End) {
        let _ = end;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(End::Kill);
    }
}

#[derive(Clone, Copy)]
enum End {
    Terminate,
    Kill,
}

/// Output of a server other than its answers. The last part is kept for errors, with a limit on its size.
#[derive(Clone)]
pub(super) struct Output {
    notes: Arc<Mutex<Notes>>,
    redactor: Arc<Redactor>,
}

#[derive(Default)]
struct Notes {
    /// The end of its error output.
    complaints: String,
    /// The first line of its output that was not a message.
    stray: Option<String>,
    /// The last request of the server.
    asked: Option<String>,
    is_too_large: bool,
}

/// Maximum number of bytes of other output that are kept.
const KEPT: usize = 4096;

/// Maximum length of the program's error output in an error, in characters.
const TOLD: usize = 500;

impl Output {
    /// Creates an empty one. What is noted passes the redactor before it is cut.
    pub(super) fn new(redactor: Arc<Redactor>) -> Output {
        Output {
            notes: Arc::default(),
            redactor,
        }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complained(&self, text: &str) {
        for line in text.lines() {
            tracing::debug!(line, "an MCP server complains");
        }
        let notes = &mut self.notes().complaints;
        notes.push_str(text);
        let from = notes.len() - last_lines(notes, KEPT).len();
        notes.drain(..from);
    }

    pub(super) fn asked(&self, what: &str) {
        self.notes().asked = Some(what.to_owned());
    }

    /// Returns the request of the server since the last call.
    pub(super) fn take_asked(&self) -> Option<String> {
        self.notes().asked.take()
    }

    pub(super) fn too_large(&self) {
        self.notes().is_too_large = true;
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.notes().is_too_large
    }

    /// Returns a description of the output for a person.
    pub(super) fn text(&self) -> String {
        let notes = self.notes();
        let complaints = notes.complaints.trim();
        let complaints = last_lines(complaints, TOLD);
        let mut words = Vec::new();
        if let Some(stray) = &notes.stray {
            words.push(format!(
                "its output has a line that is not a message: `{stray}`"
            ));
        }
        if !complaints.is_empty() {
            words.push(format!("its error output: {complaints}"));
        }
        words.join("; ")
    }
}

async fn listen(complaints: ChildStderr, output: Output) {
    let mut lines = BufReader::new(complaints);
    let mut clean = RedactStream::default();
    loop {
        let mut line = Vec::new();
        // A line without an end is read in pieces.
        match (&mut lines)
            .take(KEPT as u64)
            .read_until(b'\n', &mut line)
            .await
        {
            Ok(0) | Err(_) => break,
            Ok(_) => {
                let ready = clean.push(&output.redactor, &line);
                output.complained(&String::from_utf8_lossy(&ready));
            }
        }
    }
    let ready = clean.finish(&output.redactor);
    output.complained(&String::from_utf8_lossy(&ready));
}

/// Returns the last lines of a text, of at most `most` bytes; of a longer line, its last words. The beginning of what is
/// left out may belong to a secret, so no line or word is cut.
fn last_lines(text: &str, most: usize) -> &str {
    let from = text.len().saturating_sub(most);
    if from == 0 {
        return text;
    }
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at));
    let tail = from.map_or("", |from| &text[from..]);
    match tail.trim_end().find('\n').or_else(|| tail.find(' ')) {
        Some(end) => &tail[end + 1..],
        None => "",
    }
}

/// The output of a server. Records lines that are not messages, and ends if a line is too long.
pub(super) struct Watched {
    inner: ChildStdout,
    output: Output,
    /// The length of the current line.
    line: usize,
    /// The beginning of the current line.
    start: Vec<u8>,
}

/// Maximum length of an invalid line in an error, in characters.
const START: usize = 120;

impl Watched {
    /// Inspects the bytes that were read. Returns false if a line is too long.
    fn see(&mut self, bytes: &[u8]) -> bool {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let free = START.saturating_sub(self.start.len());
            self.start.extend_from_slice(&part[..part.len().min(free)]);
            self.line += part.len();
            if self.line > MOST_BYTES {
                self.output.too_large();
                return false;
            }
            if part.ends_with(b"\n") {
                let start = String::from_utf8_lossy(&self.start);
                let start = start.trim().trim_start_matches('\u{feff}');
                let start = match self.line > self.start.len() {
                    true => format!("{start}…"),
                    false => start.to_owned(),
                };
                if !start.is_empty() && !start.starts_with(['{', '[']) {
                    self.output.notes().stray.get_or_insert(start);
                }
                self.line = 0;
                self.start.clear();
            }
        }
        true
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.inner).poll_read(cx, buffer);
        if let Poll::Ready(Ok(())) = polled
            && !this.see(&buffer.filled()[before..])
        {
            // Nothing more is read, so the connection ends.
            buffer.set_filled(before);
        }
        polled
    }
}
