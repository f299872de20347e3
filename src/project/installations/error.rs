//! Why an installation was not made, not changed, or does not run.

use flowstone_engine::EngineError;
use flowstone_engine::installations::InstalledError;
use flowstone_model::installation::InstallationName;
use flowstone_model::ports::StoreError;
use flowstone_model::registry::DEFAULT_WORKSPACE;

use crate::registry::RegistryError;

/// The reason why something about an installation was refused.
#[derive(Debug, thiserror::Error)]
pub enum InstallationError {
    #[error("there is an installation `{at}` already")]
    Taken { at: InstallationName },
    #[error("`{name}` cannot name a workspace or an installation")]
    BadName { name: String },
    #[error("the flow has no slot `{slot}`")]
    NoSlot { slot: String, near: Option<String> },
    #[error("the flow declares no setup value `{name}`")]
    NoValue { name: String, near: Option<String> },
    #[error("setup values are a map, not {found}")]
    NotAMap { found: &'static str },
    #[error("the workspace `{workspace}` has no connection `{name}`")]
    NoConnection {
        name: String,
        workspace: String,
        near: Option<String>,
    },
    #[error("the installation `{at}` was changed by somebody else meanwhile")]
    Changed { at: InstallationName },
    #[error("the package cannot be used: {detail}")]
    BadPackage { detail: String },
    #[error(
        "the package is too large: at most {} bytes and 1000 files are taken",
        super::package::MOST
    )]
    TooLarge,
    #[error("the package has the digest {found}, not {expected}")]
    OtherDigest { expected: String, found: String },
    #[error("{address} cannot be fetched: {detail}")]
    Unfetched { address: String, detail: String },
    #[error("the installation `{at}` is of the flow `{slug}`")]
    OtherFlow { at: InstallationName, slug: String },
    #[error("{detail}")]
    BadSource { detail: String, hint: String },
    #[error(transparent)]
    Installed(InstalledError),
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<InstalledError> for InstallationError {
    fn from(error: InstalledError) -> InstallationError {
        match error {
            InstalledError::Engine(error) => InstallationError::Engine(error),
            InstalledError::Store(error) => InstallationError::Store(error),
            other => InstallationError::Installed(other),
        }
    }
}

impl InstallationError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            InstallationError::Taken { .. } => "E1441",
            InstallationError::BadName { .. } => "E1442",
            InstallationError::NoSlot { .. }
            | InstallationError::NoValue { .. }
            | InstallationError::NotAMap { .. } => "E1446",
            InstallationError::NoConnection { .. } => "E1447",
            InstallationError::Changed { .. } => "E1449",
            InstallationError::BadPackage { .. } | InstallationError::TooLarge => "E1451",
            InstallationError::OtherDigest { .. } => "E1452",
            InstallationError::Unfetched { .. } => "E1453",
            InstallationError::BadSource { .. } => "E1454",
            InstallationError::OtherFlow { .. } => "E1455",
            InstallationError::Installed(error) => error.code(),
            InstallationError::Registry(error) => error.code(),
            InstallationError::Engine(error) => error.code(),
            InstallationError::Store(error) => error.code(),
        }
    }

    /// Returns the name of the error that other tools know.
    pub fn kind(&self) -> &'static str {
        match self {
            InstallationError::NoConnection { .. } | InstallationError::OtherFlow { .. } => {
                "not_found"
            }
            InstallationError::Taken { .. } | InstallationError::Changed { .. } => "conflict",
            InstallationError::BadName { .. }
            | InstallationError::NoSlot { .. }
            | InstallationError::NoValue { .. }
            | InstallationError::NotAMap { .. }
            | InstallationError::BadSource { .. }
            | InstallationError::BadPackage { .. }
            | InstallationError::TooLarge
            | InstallationError::OtherDigest { .. }
            | InstallationError::Unfetched { .. } => "invalid_arguments",
            InstallationError::Installed(error) => error.kind(),
            InstallationError::Registry(error) => error.kind(),
            InstallationError::Engine(_) | InstallationError::Store(_) => "internal",
        }
    }

    /// Returns what to try.
    pub fn hint(&self) -> Option<String> {
        let near = |near: &Option<String>| near.as_ref().map(|it| format!("did you mean `{it}`?"));
        Some(match self {
            InstallationError::Taken { .. } => "give it another name with `--as NAME`".to_owned(),
            InstallationError::BadName { .. } => {
                "a name has lower-case letters, digits and `-`, as in `acme-2`".to_owned()
            }
            InstallationError::NoSlot { near: it, .. }
            | InstallationError::NoValue { near: it, .. } => return near(it),
            InstallationError::NotAMap { .. } => "as in `{\"region\": \"EU\"}`".to_owned(),
            InstallationError::NoConnection { near: Some(it), .. } => {
                format!("did you mean `{it}`?")
            }
            InstallationError::NoConnection { workspace, .. } => match &**workspace {
                DEFAULT_WORKSPACE => "describe it under `:connections` in flowstone.edn".to_owned(),
                workspace => format!(
                    "describe it under `:connections` in flowstone.edn, with `:workspace :{workspace}`"
                ),
            },
            InstallationError::Changed { .. } => "look at it, and repeat the command".to_owned(),
            InstallationError::BadPackage { .. } | InstallationError::TooLarge => {
                "nothing was written; `flowstone flows pack` makes packages".to_owned()
            }
            InstallationError::OtherDigest { .. } => {
                "nothing was written; ask the author for the digest, or for an undamaged package"
                    .to_owned()
            }
            InstallationError::Unfetched { .. } => return None,
            InstallationError::BadSource { hint, .. } => hint.clone(),
            InstallationError::OtherFlow { at, slug } => {
                format!("`flowstone run {slug} --installation {at}` runs it")
            }
            InstallationError::Installed(error) => return error.hint(),
            InstallationError::Registry(error) => return error.hint(),
            InstallationError::Engine(error) => return error.hint(),
            InstallationError::Store(error) => return error.hint(),
        })
    }
}
