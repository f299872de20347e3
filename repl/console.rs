//! Where input comes from: the line editor of a terminal, or the lines of a pipe.

use std::cell::RefCell;
use std::io::{self, BufRead, IsTerminal};
use std::path::Path;
use std::rc::Rc;

use crate::Assist;
use crate::editor::{Entry, Lines};
use crate::io_error;

/// The input of a prompt. Evaluations may ask questions on it.
pub struct Console {
    /// The editor; `None` for a pipe.
    lines: Option<RefCell<Lines>>,
}

impl Console {
    /// Opens standard input. On a terminal, history is kept in a file, if one is given.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub fn open(
        assist: Rc<dyn Assist>,
        history: Option<&Path>,
        colored: bool,
    ) -> io::Result<Console> {
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        let lines = match is_terminal {
            true => Some(Lines::open(assist, history, colored).map_err(io_error)?),
            false => None,
        };
        Ok(Console {
            lines: lines.map(RefCell::new),
        })
    }

    /// Tells whether a person is at a terminal.
    pub fn is_terminal(&self) -> bool {
        self.lines.is_some()
    }

    /// Asks a question during an evaluation. `None`: the person left the question, or the input is over.
    pub fn ask(&self, question: &str) -> Option<String> {
        match &self.lines {
            // A question within a question would come from the editor itself.
            Some(lines) => lines.try_borrow_mut().ok()?.ask(question),
            None => {
                let mut text = String::new();
                let count = Console::read_line(&mut text).ok()?;
                (count > 0).then_some(text)
            }
        }
    }

    /// Reads an entry of the terminal; a pipe has none.
    pub(crate) fn next(&self, prompt: &str) -> io::Result<Entry> {
        match &self.lines {
            Some(lines) => lines.borrow_mut().next(prompt).map_err(io_error),
            None => Ok(Entry::End),
        }
    }

    /// Adds a line of a pipe to a text. Returns the number of bytes: 0 at the end.
    pub(crate) fn read_line(text: &mut String) -> io::Result<usize> {
        io::stdin().lock().read_line(text)
    }
}
