//! The registry of flows: versions that never change, and the pointers to them.

use super::PortFuture;
use crate::registry::{
    Added, FlowName, FlowRow, Moved, NewRelease, NewVersion, RegistryRefusal, ReleaseRow, Target,
    VersionFiles, VersionRow,
};

/// The answer to a change: the outcome, or why nothing was changed.
pub type RegistryAnswer<T> = Result<T, RegistryRefusal>;

/// The versions of a project's flows. Each change is one transaction.
pub trait Registry: Send + Sync {
    /// Adds a version, if its base is the head and its content differs from it.
    fn add_version(&self, new: NewVersion) -> PortFuture<'_, RegistryAnswer<Added>>;

    /// Moves `live`, and adds a line to the release log.
    fn move_live(&self, release: NewRelease) -> PortFuture<'_, RegistryAnswer<Moved>>;

    /// Archives a flow, or ends that with `None`. Returns its row.
    fn archive(
        &self,
        flow: &FlowName,
        archived_ms: Option<i64>,
    ) -> PortFuture<'_, RegistryAnswer<FlowRow>>;

    fn flow(&self, flow: &FlowName) -> PortFuture<'_, Option<FlowRow>>;

    /// Returns the flows of a workspace by slug, archived ones too.
    fn flows(&self, workspace: &str) -> PortFuture<'_, Vec<FlowRow>>;

    fn version(&self, flow: &FlowName, number: i64) -> PortFuture<'_, Option<VersionRow>>;

    /// Returns the version with a revision id.
    fn revision(&self, flow: &FlowName, revision: &str) -> PortFuture<'_, Option<VersionRow>>;

    /// Returns versions, newest first: those with a number below `before`.
    fn versions(
        &self,
        flow: &FlowName,
        before: Option<i64>,
        limit: usize,
    ) -> PortFuture<'_, Vec<VersionRow>>;

    /// Returns the version that a pointer named at a time.
    fn as_of(
        &self,
        flow: &FlowName,
        target: Target,
        at_ms: i64,
    ) -> PortFuture<'_, Option<VersionRow>>;

    /// Returns the files with a content digest.
    fn files(&self, content: &str) -> PortFuture<'_, Option<VersionFiles>>;

    /// Returns the release log of a flow, newest line first.
    fn releases(&self, flow: &FlowName, limit: usize) -> PortFuture<'_, Vec<ReleaseRow>>;

    /// Returns the version that a working copy has.
    fn version_at(&self, flow: &FlowName, place: &str) -> PortFuture<'_, Option<i64>>;

    /// Records the version that a working copy has.
    fn check_out(&self, flow: &FlowName, place: &str, number: i64) -> PortFuture<'_, ()>;
}
