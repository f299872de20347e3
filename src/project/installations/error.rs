//! Why an installation was not made, not changed, or does not run.

use flowstone_engine::EngineError;
use flowstone_flow::flow::InputError;
use flowstone_model::installation::InstallationName;
use flowstone_model::ports::StoreError;
use flowstone_model::registry::{DEFAULT_WORKSPACE, FlowName};

use crate::registry::RegistryError;

/// The reason why something about an installation was refused.
#[derive(Debug, thiserror::Error)]
pub enum InstallationError {
    #[error("there is no installation `{at}`")]
    Missing {
        at: InstallationName,
        near: Option<String>,
    },
    #[error("there is an installation `{at}` already")]
    Taken { at: InstallationName },
    #[error("`{name}` cannot name a workspace or an installation")]
    BadName { name: String },
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
    #[error("the connection for the slot `{slot}` is provided by the author of the flow")]
    AuthorProvides { slot: String, at: InstallationName },
    #[error(
        "the slot `{slot}` of `{at}` is filled by the author of the flow, and a package has no connections of its author"
    )]
    Packaged { slot: String, at: InstallationName },
    #[error("the installation `{at}` was changed by somebody else meanwhile")]
    Changed { at: InstallationName },
    #[error("version {version} of `{flow}` cannot be used: {detail}")]
    Unusable {
        flow: FlowName,
        version: i64,
        detail: String,
    },
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
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl InstallationError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            InstallationError::Missing { .. } => "E1440",
            InstallationError::Taken { .. } => "E1441",
            InstallationError::BadName { .. } => "E1442",
            InstallationError::Unconfigured { .. } => "E1443",
            InstallationError::Unbound { .. } => "E1444",
            InstallationError::Setup { .. } => "E1445",
            InstallationError::NoSlot { .. }
            | InstallationError::NoValue { .. }
            | InstallationError::NotAMap { .. } => "E1446",
            InstallationError::NoConnection { .. } => "E1447",
            InstallationError::AuthorProvides { .. } | InstallationError::Packaged { .. } => {
                "E1448"
            }
            InstallationError::Changed { .. } => "E1449",
            InstallationError::Unusable { .. } => "E1450",
            InstallationError::BadPackage { .. } | InstallationError::TooLarge => "E1451",
            InstallationError::OtherDigest { .. } => "E1452",
            InstallationError::Unfetched { .. } => "E1453",
            InstallationError::BadSource { .. } => "E1454",
            InstallationError::OtherFlow { .. } => "E1455",
            InstallationError::Registry(error) => error.code(),
            InstallationError::Engine(error) => error.code(),
            InstallationError::Store(error) => error.code(),
        }
    }

    /// Returns the name of the error that other tools know.
    pub fn kind(&self) -> &'static str {
        match self {
            InstallationError::Missing { .. }
            | InstallationError::NoConnection { .. }
            | InstallationError::OtherFlow { .. } => "not_found",
            InstallationError::Taken { .. } | InstallationError::Changed { .. } => "conflict",
            InstallationError::Unconfigured { .. } => "profile_missing",
            InstallationError::Unbound { .. }
            | InstallationError::AuthorProvides { .. }
            | InstallationError::Packaged { .. } => "profile_bindings_incomplete",
            InstallationError::Setup { .. } => "profile_activation_inputs_incomplete",
            InstallationError::BadName { .. }
            | InstallationError::NoSlot { .. }
            | InstallationError::NoValue { .. }
            | InstallationError::NotAMap { .. }
            | InstallationError::BadSource { .. }
            | InstallationError::BadPackage { .. }
            | InstallationError::TooLarge
            | InstallationError::OtherDigest { .. }
            | InstallationError::Unfetched { .. } => "invalid_arguments",
            InstallationError::Unusable { .. } => "check_failed",
            InstallationError::Registry(error) => error.kind(),
            InstallationError::Engine(_) | InstallationError::Store(_) => "internal",
        }
    }

    /// Returns what to try.
    pub fn hint(&self) -> Option<String> {
        let near = |near: &Option<String>| near.as_ref().map(|it| format!("did you mean `{it}`?"));
        Some(match self {
            InstallationError::Missing { near: Some(it), .. } => format!("did you mean `{it}`?"),
            InstallationError::Missing { .. } => {
                "`flowstone flows installations` lists them".to_owned()
            }
            InstallationError::Taken { .. } => "give it another name with `--as NAME`".to_owned(),
            InstallationError::BadName { .. } => {
                "a name has lower-case letters, digits and `-`, as in `acme-2`".to_owned()
            }
            InstallationError::Unconfigured { at } => format!(
                "`flowstone flows configure {at} --check` shows what it needs; then give it with `--set` and `--setup`"
            ),
            InstallationError::Unbound { at, slots } => {
                let slot = slots.first().map_or("slot", String::as_str);
                format!("as in `flowstone flows configure {at} --set {slot}.conn=NAME`")
            }
            InstallationError::Setup { at, .. } => {
                format!("as in `flowstone flows configure {at} --setup '{{\"name\": \"value\"}}'`")
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
            InstallationError::AuthorProvides { .. } => {
                "the author binds it in the project of the flow; nobody else can".to_owned()
            }
            InstallationError::Packaged { .. } => {
                "it cannot run here: ask the author for a package without `:provided-by :author` for that slot, or to let \
                 you install the flow on the author's server"
                    .to_owned()
            }
            InstallationError::Changed { .. } => "look at it, and repeat the command".to_owned(),
            InstallationError::Unusable { .. } => {
                "the author has to release a corrected version".to_owned()
            }
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
            InstallationError::Registry(error) => return error.hint(),
            InstallationError::Engine(error) => return error.hint(),
            InstallationError::Store(error) => return error.hint(),
        })
    }
}
