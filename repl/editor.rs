//! The line editor: history, several lines for one form, completion, colours.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flowstone_lang::session::Session;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event, EventContext,
    EventHandler, Helper, Hinter, KeyEvent, RepeatCount,
};

use crate::complete::{complete, note_keywords};
use crate::forms::split;
use crate::paint::paint;

/// An entry from the keyboard.
pub(crate) enum Entry {
    Text(String),
    /// Ctrl-C: the line is discarded.
    Dropped,
    /// Ctrl-D: the end of the input.
    End,
}

/// The prompt of a terminal.
pub(crate) struct Lines {
    editor: Editor<Assistant, FileHistory>,
    /// Whether Ctrl-C ended the last line.
    is_dropped: Arc<AtomicBool>,
    history: Option<PathBuf>,
}

impl Lines {
    /// Opens the terminal; history is kept in a file, if one is given.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub(crate) fn open(
        session: Rc<Session>,
        history: Option<&Path>,
        colored: bool,
    ) -> Result<Lines, ReadlineError> {
        let config = Config::builder()
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .max_history_size(5_000)?
            .build();
        let mut editor = Editor::with_config(config)?;
        let is_dropped = Arc::new(AtomicBool::new(false));
        editor.bind_sequence(
            KeyEvent::ctrl('C'),
            EventHandler::Conditional(Box::new(Drops(is_dropped.clone()))),
        );
        editor.set_helper(Some(Assistant {
            session,
            keywords: RefCell::default(),
            is_dropped: is_dropped.clone(),
            colored,
        }));
        if let Some(path) = history {
            // An unreadable history does not prevent the start.
            let _ = editor.load_history(path);
        }
        Ok(Lines {
            editor,
            is_dropped,
            history: history.map(Path::to_path_buf),
        })
    }

    /// Reads one entry: a line, or several lines until all open forms are closed.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(crate) fn next(&mut self, prompt: &str) -> Result<Entry, ReadlineError> {
        self.is_dropped.store(false, Ordering::Relaxed);
        match self.editor.readline(prompt) {
            Ok(_) if self.is_dropped.load(Ordering::Relaxed) => Ok(Entry::Dropped),
            Ok(text) => {
                self.remember(&text);
                Ok(Entry::Text(text))
            }
            Err(ReadlineError::Interrupted) => Ok(Entry::Dropped),
            Err(ReadlineError::Eof) => Ok(Entry::End),
            Err(error) => Err(error),
        }
    }

    fn remember(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        if let Some(assistant) = self.editor.helper() {
            note_keywords(text, &mut assistant.keywords.borrow_mut());
        }
        let _ = self.editor.add_history_entry(text);
        if let Some(path) = &self.history {
            // A failure is ignored; the next line tries again.
            let _ = self.editor.append_history(path);
        }
    }
}

/// Treats Ctrl-C as a line that is accepted and discarded: an interrupt would also discard the text typed after it.
struct Drops(Arc<AtomicBool>);

impl ConditionalEventHandler for Drops {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        self.0.store(true, Ordering::Relaxed);
        Some(Cmd::AcceptLine)
    }
}

#[derive(Helper, Hinter)]
struct Assistant {
    session: Rc<Session>,
    keywords: RefCell<BTreeSet<String>>,
    is_dropped: Arc<AtomicBool>,
    colored: bool,
}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(complete(
            &self.session,
            &self.keywords.borrow(),
            line,
            cursor,
        ))
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if self.colored {
            Cow::Owned(paint(line))
        } else {
            Cow::Borrowed(line)
        }
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.colored && kind != CmdKind::MoveCursor
    }
}

impl Validator for Assistant {
    fn validate(&self, cx: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        if self.is_dropped.load(Ordering::Relaxed) {
            return Ok(ValidationResult::Valid(None));
        }
        Ok(match split(cx.input()) {
            Err(error) if error.at_end => ValidationResult::Incomplete,
            // Other errors are reported when the line is evaluated.
            Ok(_) | Err(_) => ValidationResult::Valid(None),
        })
    }
}
