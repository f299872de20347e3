//! The exit codes of the program. Scripts rely on them.

use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything succeeded.
    Completed,
    /// A run, a program or a check failed, or something was not found.
    Failed,
    /// The command line is wrong.
    Usage,
    /// The run waits for something outside.
    Waiting,
    /// The run was cancelled.
    Cancelled,
    /// The user pressed Ctrl-C.
    Interrupted,
    /// The code that the program asked for.
    Status(u8),
}

impl Exit {
    /// Returns the more severe of two: the first that is not completed.
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
