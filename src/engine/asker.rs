//! Asking a person whether a flow may do what nothing allows.

use std::fmt;
use std::rc::Rc;

use crate::permission::Missing;

/// Who asks, where somebody can be asked.
#[derive(Clone, Default)]
pub struct Asker(Option<Rc<dyn AskPermission>>);

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct PermissionQuestion<'a> {
    /// The slug of the flow. As everything here, it is text of a flow.
    pub flow: &'a str,
    /// The path of the step.
    pub step: &'a str,
    pub kind: &'a str,
    pub missing: &'a Missing,
}

/// What a person answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// For this attempt at the step.
    Once,
    /// For as long as this process executes the run.
    Run,
    No,
}

/// Asks a person.
pub trait AskPermission {
    /// Asks, and waits for the answer.
    fn ask(&self, question: PermissionQuestion<'_>) -> Permission;
}

impl Asker {
    pub fn new(asker: Rc<dyn AskPermission>) -> Asker {
        Asker(Some(asker))
    }

    pub(crate) fn can_ask(&self) -> bool {
        self.0.is_some()
    }

    /// Asks; `No` where nobody can be asked.
    pub(crate) fn ask(&self, question: PermissionQuestion<'_>) -> Permission {
        match &self.0 {
            Some(asker) => asker.ask(question),
            None => Permission::No,
        }
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.0.is_some() {
            "Asker(..)"
        } else {
            "Asker(none)"
        };
        out.write_str(name)
    }
}
