//! Keys pressed while something is drawn. The terminal delivers them at once and does not echo them; Ctrl-C remains a
//! signal. Dropping the keyboard restores the terminal's earlier mode.

use std::io;

#[cfg(unix)]
use nix::sys::termios::{self, LocalFlags, SetArg, SpecialCharacterIndices, Termios};

/// The keyboard of the terminal.
pub struct Keys {
    #[cfg(unix)]
    before: Option<Termios>,
}

#[cfg(unix)]
impl Keys {
    /// Starts listening. If standard input is not a terminal, no key is ever reported.
    pub fn listen() -> Keys {
        let before = termios::tcgetattr(io::stdin()).ok();
        if let Some(before) = &before {
            let mut now = before.clone();
            now.local_flags &= !(LocalFlags::ICANON | LocalFlags::ECHO);
            // Reading returns at once, with the keys pressed so far.
            now.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
            now.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
            let _ = termios::tcsetattr(io::stdin(), SetArg::TCSANOW, &now);
        }
        Keys { before }
    }

    /// Tells whether the key that ends the display was pressed.
    pub fn is_quit(&self) -> bool {
        if self.before.is_none() {
            return false;
        }
        let mut pressed = [0; 64];
        let count = io::Read::read(&mut io::stdin(), &mut pressed).unwrap_or(0);
        pressed[..count]
            .iter()
            .any(|key| matches!(key, b'q' | b'Q'))
    }
}

#[cfg(unix)]
impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = termios::tcsetattr(io::stdin(), SetArg::TCSANOW, before);
        }
    }
}

#[cfg(not(unix))]
impl Keys {
    /// Without a terminal, only Ctrl-C ends it.
    pub fn listen() -> Keys {
        Keys {}
    }

    pub fn is_quit(&self) -> bool {
        let _ = io::stdin();
        false
    }
}
