//! The rows of installations.

use super::PortFuture;
use crate::ids::RunId;
use crate::installation::{InstallationName, InstallationRow};

/// The installations of a home. Each change is one transaction.
pub trait Installations: Send + Sync {
    /// Adds an installation. Returns false if its name is taken.
    fn install(&self, row: InstallationRow) -> PortFuture<'_, bool>;

    fn installation(&self, at: &InstallationName) -> PortFuture<'_, Option<InstallationRow>>;

    /// Returns the installations by workspace and name: those of one workspace, or all.
    fn installations(&self, workspace: Option<&str>) -> PortFuture<'_, Vec<InstallationRow>>;

    /// Replaces the row of an installation that has the number of changes before this one. Returns false if there is no such
    /// row.
    fn change_installation(&self, row: InstallationRow) -> PortFuture<'_, bool>;

    /// Records how many tokens models have used in a run of an installation so far.
    fn note_tokens(&self, at: &InstallationName, run: &RunId, tokens: i64) -> PortFuture<'_, ()>;

    /// Returns how many tokens models have used in the runs of an installation, except one.
    fn tokens_used(&self, at: &InstallationName, except: &RunId) -> PortFuture<'_, i64>;

    /// Removes an installation. Returns false if it does not exist.
    fn uninstall(&self, at: &InstallationName) -> PortFuture<'_, bool>;
}
