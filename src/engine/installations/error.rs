//! Why the runs of an installation do not start.

use crate::error::EngineError;
use crate::flow::InputError;
use crate::installation::InstallationName;
use crate::ports::StoreError;
use crate::registered::NO_VERSION;
use crate::registry::FlowName;

/// The reason why an installation does not run.
#[derive(Debug, thiserror::Error)]
pub enum InstalledError {
    #[error("there is no installation `{at}`")]
    Missing {
        at: InstallationName,
        near: Option<String>,
    },
    #[error("the installation `{at}` was never configured")]
    Unconfigured { at: InstallationName },
    #[error("the installation `{at}` has no connection for: {}", slots.join(", "))]
    Unbound {
        at: InstallationName,
        slots: Vec<String>,
    },
    #[error("the setup values of the installation `{at}` are not complete: {cause}")]
    Setup {
        at: InstallationName,
        cause: InputError,
    },
    #[error("the connection for the slot `{slot}` is provided by the author of the flow")]
    AuthorProvides { slot: String, at: InstallationName },
    #[error(
        "the slot `{slot}` of `{at}` is filled by the author of the flow, and a package has no connections of its author"
    )]
    Packaged { slot: String, at: InstallationName },
    #[error("version {version} of `{flow}` cannot be used: {detail}")]
    Unusable {
        flow: FlowName,
        version: i64,
        detail: String,
    },
    #[error("the flow `{flow}` has no version {version}")]
    NoVersion { flow: FlowName, version: i64 },
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<InstalledError> for EngineError {
    fn from(error: InstalledError) -> EngineError {
        match error {
            InstalledError::Engine(error) => error,
            InstalledError::Store(error) => EngineError::Store(error),
            other => EngineError::Installation {
                code: other.code(),
                message: other.to_string(),
                hint: other.hint(),
            },
        }
    }
}

impl InstalledError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            InstalledError::Missing { .. } => "E1440",
            InstalledError::Unconfigured { .. } => "E1443",
            InstalledError::Unbound { .. } => "E1444",
            InstalledError::Setup { .. } => "E1445",
            InstalledError::AuthorProvides { .. } | InstalledError::Packaged { .. } => "E1448",
            InstalledError::Unusable { .. } => "E1450",
            InstalledError::NoVersion { .. } => NO_VERSION,
            InstalledError::Engine(error) => error.code(),
            InstalledError::Store(error) => error.code(),
        }
    }

    /// Returns the name of the error that other tools know.
    pub fn kind(&self) -> &'static str {
        match self {
            InstalledError::Missing { .. } | InstalledError::NoVersion { .. } => "not_found",
            InstalledError::Unconfigured { .. } => "profile_missing",
            InstalledError::Unbound { .. }
            | InstalledError::AuthorProvides { .. }
            | InstalledError::Packaged { .. } => "profile_bindings_incomplete",
            InstalledError::Setup { .. } => "profile_activation_inputs_incomplete",
            InstalledError::Unusable { .. } => "check_failed",
            InstalledError::Engine(_) | InstalledError::Store(_) => "internal",
        }
    }

    /// Returns what to try.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            InstalledError::Missing { near: Some(it), .. } => format!("did you mean `{it}`?"),
            InstalledError::Missing { .. } => {
                "`flowstone flows installations` lists them".to_owned()
            }
            InstalledError::Unconfigured { at } => format!(
                "`flowstone flows configure {at} --check` shows what it needs; then give it with `--set` and `--setup`"
            ),
            InstalledError::Unbound { at, slots } => {
                let slot = slots.first().map_or("slot", String::as_str);
                format!("as in `flowstone flows configure {at} --set {slot}.conn=NAME`")
            }
            InstalledError::Setup { at, .. } => {
                format!("as in `flowstone flows configure {at} --setup '{{\"name\": \"value\"}}'`")
            }
            InstalledError::AuthorProvides { .. } => {
                "the author binds it in the project of the flow; nobody else can".to_owned()
            }
            InstalledError::Packaged { .. } => {
                "it cannot run here: ask the author for a package without `:provided-by :author` for that slot, or to let \
                 you install the flow on the author's server"
                    .to_owned()
            }
            InstalledError::Unusable { .. } => {
                "the author has to release a corrected version".to_owned()
            }
            InstalledError::NoVersion { .. } => return None,
            InstalledError::Engine(error) => return error.hint(),
            InstalledError::Store(error) => return error.hint(),
        })
    }
}
