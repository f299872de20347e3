//! What a flow needs, as far as it is written out in its steps.

use std::path::Path;

use super::{Access, Allow, Decision, Missing, Need, decide};

/// Something that a step as it is written needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedNeed {
    /// Written out. Paths are as the flow writes them.
    Known(Need),
    /// Computed: what it is, is decided at run time.
    Computed(Access),
}

impl PlannedNeed {
    pub fn access(&self) -> Access {
        match self {
            PlannedNeed::Known(need) => Missing::of(need).access,
            PlannedNeed::Computed(access) => *access,
        }
    }

    /// Returns what is needed, for a person.
    pub fn words(&self) -> String {
        match self {
            PlannedNeed::Known(need) => Missing::of(need).action(),
            PlannedNeed::Computed(access) => format!("{}: decided at run time", access.words()),
        }
    }

    /// Returns the row that is missing; none where it is there, or nothing is known yet. `real` resolves links.
    pub fn missing(
        &self,
        allow: &Allow,
        root: &Path,
        real: &dyn Fn(&Path) -> std::path::PathBuf,
    ) -> Option<Missing> {
        let need = match self {
            PlannedNeed::Computed(_) => return None,
            PlannedNeed::Known(Need::Read(path)) => Need::Read(real(&root.join(path))),
            PlannedNeed::Known(Need::Write(path)) => Need::Write(real(&root.join(path))),
            PlannedNeed::Known(need) => need.clone(),
        };
        match decide(allow, &need) {
            Decision::Granted => None,
            Decision::Missing(missing) => Some(missing.relative_to(&real(root))),
        }
    }
}

impl Access {
    /// Returns what it is, for a person.
    pub fn words(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Net => "connect",
            Access::Secret => "send a secret",
            Access::Program => "start a program",
            Access::Env => "read the environment",
        }
    }
}
