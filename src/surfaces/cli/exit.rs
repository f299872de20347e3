//! The exit codes of the program. They are part of what scripts rely on.

use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All is done.
    Completed,
    /// A run, a program or a check failed, or what was asked for is not there.
    Failed,
    /// The command line itself is wrong.
    Usage,
    /// The run waits for something outside.
    Waiting,
    /// The run was cancelled.
    Cancelled,
    /// Ctrl-C.
    Interrupted,
    /// What the program asked for.
    Status(u8),
}

impl Exit {
    /// Returns whichever of two says more: any that is not completed, and of those the first.
    #[must_use]
    pub fn worse(self, other: Exit) -> Exit {
        match self {
            Exit::Completed | Exit::Status(0) => other,
            _ => self,
        }
    }

    /// Returns the code that the process ends with.
    pub fn code(self) -> u8 {
        match self {
            Exit::Completed => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Waiting => 3,
            Exit::Cancelled => 4,
            Exit::Interrupted => 130,
            Exit::Status(status) => status,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}
