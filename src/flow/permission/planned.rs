//! The permissions that a flow needs, as far as they are written out in its steps.

use std::path::{Path, PathBuf};

use flowstone_lang::value::Value;
use flowstone_model::names::name_of;

use super::{Access, Allow, Decision, Missing, Need, decide};

/// A permission that a step needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedNeed {
    /// Written out. Paths are as the flow writes them.
    Known(Need),
    /// Computed: the need is decided at run time.
    Computed(Access),
}

impl PlannedNeed {
    /// Returns the need of a step that uses the stores of the project, as far as its config is written out. `changes`:
    /// whether it changes them.
    pub fn of_stores(kind: &str, config: &Value, changes: bool) -> Option<PlannedNeed> {
        let name = |value: Option<&Value>| value.and_then(name_of);
        let persisted = name(config.get("persist").and_then(|it| it.get("type")));
        if matches!(persisted.as_deref(), Some("kv" | "table")) {
            return Some(PlannedNeed::Known(Need::Write(PathBuf::from("."))));
        }
        let root = PathBuf::from(".");
        match kind {
            "job" | "kv" | "table" if changes => Some(PlannedNeed::Known(Need::Write(root))),
            "job" | "kv" | "search" | "table" => Some(PlannedNeed::Known(Need::Read(root))),
            "workspace" => match name(config.get("op")).as_deref() {
                Some("flows/list" | "flows/pull" | "flows/show" | "runs/list" | "runs/show") => {
                    Some(PlannedNeed::Known(Need::Read(root)))
                }
                Some("feedback/send" | "flows/push-draft") => {
                    Some(PlannedNeed::Known(Need::Write(root)))
                }
                _ => None,
            },
            _ => None,
        }
    }

    pub fn access(&self) -> Access {
        match self {
            PlannedNeed::Known(need) => Missing::of(need).access,
            PlannedNeed::Computed(access) => *access,
        }
    }

    /// Returns a description of the need for people.
    pub fn describe(&self) -> String {
        match self {
            PlannedNeed::Known(need) => Missing::of(need).action(),
            PlannedNeed::Computed(access) => format!("{}: decided at run time", access.describe()),
        }
    }

    /// Returns the missing row; `None` if it exists, or if the need is not known yet. `real` resolves links.
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
    /// Returns a description of the kind of access for people.
    pub fn describe(self) -> &'static str {
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
