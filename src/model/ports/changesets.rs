//! Changesets of `:files`: what lies over a source tree.

use super::PortFuture;
use crate::changeset::{Overlay, Referenced};

/// Reading changesets. Changes are [`super::StoreOp::Changeset`].
pub trait Changesets: Send + Sync {
    /// Returns a changeset with all its changes, of one moment.
    fn overlay(&self, id: &str) -> PortFuture<'_, Option<Overlay>>;

    /// Returns what must stay in the object store and among the blobs, because changesets refer to it.
    fn referenced(&self) -> PortFuture<'_, Referenced>;
}
