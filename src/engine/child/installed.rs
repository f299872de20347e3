//! `:installation-id` of a call: the flow of an installation, and how its runs start.
//!
//! A run reaches the installations of its own workspace. A run of an installation reaches only those of the same author, because
//! the author sees the results in its trace. Whatever else has the name does not exist for it.

use flowstone_lang::value::Value;

use super::called;
use crate::engine::StartedInstallation;
use crate::error::EngineError;
use crate::flow::LoadedFlow;
use crate::installation::{InstallationName, InstallationRow};
use crate::installations::{InstallationHome, InstalledError};
use crate::registry::{DEFAULT_WORKSPACE, Target, VersionRow};
use crate::step::{StepContext, StepError};

/// Returns the flow of the installation that a call names, and how its runs start.
///
/// # Errors
/// E1440 when this run reaches no installation of that name, E1455 when it is of another flow, and why it cannot run.
pub(super) async fn find(
    cx: &StepContext,
    (slug, named): (&str, &str),
    config: &Value,
) -> Result<(LoadedFlow, StartedInstallation), StepError> {
    if config
        .get("version")
        .is_some_and(|version| !version.is_nil())
    {
        let message = "`:version` and `:installation-id` exclude each other";
        return Err(StepError::config("E0712", message)
            .hint("an installation keeps its version until it is upgraded"));
    }
    let home = InstallationHome {
        stores: cx.own_stores(),
        settings: match cx.installation() {
            Some(installation) => &installation.home,
            None => cx.settings(),
        },
        vault: &*cx.scope().services.vault,
        now_ms: cx.now_ms(),
    };
    let row = reached(cx, &home, named).await?;
    if row.flow.slug != slug {
        let message = format!(
            "the installation `{}` is of the flow `{}`",
            row.at, row.flow.slug
        );
        return Err(StepError::new("E1455", "not-found", message)
            .hint("call that flow, or name another installation"));
    }
    let load = async |version: &VersionRow| {
        let checked = called::of_version(cx, version, Some(Target::Live)).await;
        let loaded = checked.and_then(|checked| called::usable(slug, checked));
        loaded.map_err(|error| InstalledError::Unusable {
            flow: version.flow.clone(),
            version: version.number,
            detail: error.message,
        })
    };
    let found = home.in_use(row, load).await.map_err(refused);
    let (row, version) = found?;
    let loaded = load(&version).await.map_err(refused)?;
    let started = home.start_of(&loaded.flow, &row).map_err(refused)?;
    Ok((loaded, started))
}

/// Returns the installation that a run means by a name.
async fn reached(
    cx: &StepContext,
    home: &InstallationHome<'_>,
    named: &str,
) -> Result<InstallationRow, StepError> {
    let workspace = match cx.installation() {
        Some(installation) => &installation.flow.at.workspace,
        None => DEFAULT_WORKSPACE,
    };
    let (given, name) = named.split_once('/').unwrap_or((workspace, named));
    let at = InstallationName {
        workspace: given.to_owned(),
        name: name.to_owned(),
    };
    let author = cx.installation().map(|it| &it.flow.flow.workspace);
    let is_reached = |row: &InstallationRow| {
        row.at.workspace == workspace && author.is_none_or(|author| *author == row.flow.workspace)
    };
    let found = home.stores.installations.installation(&at).await?;
    found
        .filter(is_reached)
        .ok_or_else(|| refused(InstalledError::Missing { at, near: None }))
}

/// Says why the runs of an installation do not start.
fn refused(error: InstalledError) -> StepError {
    let kind = match &error {
        InstalledError::Engine(EngineError::Store(error)) | InstalledError::Store(error) => {
            return error.clone().into();
        }
        InstalledError::Missing { .. } => "not-found",
        _ => "conflict",
    };
    let refused = StepError::new(error.code(), kind, error.to_string());
    match error.hint() {
        Some(hint) => refused.hint(hint),
        None => refused,
    }
}
