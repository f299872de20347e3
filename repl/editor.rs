//! The line editor: history, several lines for one form, completion, colours.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use flowstone_lang::session::split_typed;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter};
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event, EventContext,
    EventHandler, Helper, KeyCode, KeyEvent, Modifiers, RepeatCount,
};

use crate::Assist;
use crate::indent::indentation;
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
    prompt_width: Arc<AtomicUsize>,
    history: Option<PathBuf>,
}

impl Lines {
    /// Opens the terminal; history is kept in a file, if one is given.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub(crate) fn open(
        assist: Rc<dyn Assist>,
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
        let prompt_width = Arc::new(AtomicUsize::new(0));
        editor.bind_sequence(
            KeyEvent(KeyCode::Enter, Modifiers::NONE),
            EventHandler::Conditional(Box::new(Continues(prompt_width.clone()))),
        );
        editor.set_helper(Some(Assistant {
            assist,
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
            prompt_width,
            history: history.map(Path::to_path_buf),
        })
    }

    /// Reads one entry: a line, or several lines until all open forms are closed.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(crate) fn next(&mut self, prompt: &str) -> Result<Entry, ReadlineError> {
        self.is_dropped.store(false, Ordering::Relaxed);
        self.prompt_width
            .store(prompt.chars().count(), Ordering::Relaxed);
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

    /// Reads the answer to a question, which is not kept in the history. `None`: the question was left.
    pub(crate) fn ask(&mut self, question: &str) -> Option<String> {
        self.is_dropped.store(false, Ordering::Relaxed);
        self.prompt_width
            .store(question.chars().count(), Ordering::Relaxed);
        let text = self.editor.readline(question).ok()?;
        Some(text).filter(|_| !self.is_dropped.load(Ordering::Relaxed))
    }

    fn remember(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        if let Some(assistant) = self.editor.helper() {
            assistant.assist.note(text);
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

/// Begins the next line of an open form with its indentation, which depends on the width of the prompt.
struct Continues(Arc<AtomicUsize>);

impl ConditionalEventHandler for Continues {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, cx: &EventContext<'_>) -> Option<Cmd> {
        let is_open = matches!(split_typed(cx.line()), Err(error) if error.at_end);
        if !is_open || cx.pos() < cx.line().len() {
            return None;
        }
        let blanks = indentation(cx.line(), self.0.load(Ordering::Relaxed));
        (blanks > 0).then(|| Cmd::Insert(1, format!("\n{}", " ".repeat(blanks))))
    }
}

#[derive(Helper)]
struct Assistant {
    assist: Rc<dyn Assist>,
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
        Ok(self.assist.complete(&line[..cursor]))
    }
}

impl Hinter for Assistant {
    type Hint = Arguments;

    fn hint(&self, line: &str, cursor: usize, _: &Context<'_>) -> Option<Arguments> {
        match cursor == line.len() {
            true => self.assist.hint(line).map(Arguments),
            false => None,
        }
    }
}

/// The arguments that a call still needs. They are shown, and no key accepts them.
struct Arguments(String);

impl Hint for Arguments {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
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

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        match self.colored {
            true => Cow::Owned(format!("\x1b[2m{hint}\x1b[0m")),
            false => Cow::Borrowed(hint),
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
        Ok(match split_typed(cx.input()) {
            Err(error) if error.at_end => ValidationResult::Incomplete,
            // Other errors are reported when the line is evaluated.
            Ok(_) | Err(_) => ValidationResult::Valid(None),
        })
    }
}
