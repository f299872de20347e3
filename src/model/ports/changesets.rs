//! Changesets of `:files`: edits over a source tree.

use super::PortFuture;
use crate::changeset::{Overlay, Referenced};

/// Read access to changesets. Changes are [`super::StoreOp::Changeset`].
pub trait Changesets: Send + Sync {
    /// Returns a consistent snapshot of a changeset with all its changes.
    fn overlay(&self, id: &str) -> PortFuture<'_, Option<Overlay>>;

    /// Returns the objects and trees that must be kept because changesets refer to them.
    fn referenced(&self) -> PortFuture<'_, Referenced>;
}
