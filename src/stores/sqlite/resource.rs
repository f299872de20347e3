//! The registry of resources. Blobs, files and trees have rows of their own; keys, tables and outputs of runs are read
//! from their own tables.
//!
//! The row of a deleted or expired resource stays, without its contents, as long as something refers to the name, so
//! that readers of the name learn what happened to it.

mod listing;
mod registry;

pub(crate) use listing::{Place, order, place, position};
pub use listing::{list, prepare};
pub(crate) use registry::not_removed;
pub(super) use registry::{count_expired, expire, from_blob, search_of};
pub use registry::{delete, describe, find, keep, needed_by, register};

/// The additions of format 3 to the table of blobs.
pub const SCHEMA: &str = "
ALTER TABLE resource ADD COLUMN kind TEXT NOT NULL DEFAULT 'blob';
ALTER TABLE resource ADD COLUMN tier TEXT NOT NULL DEFAULT 'retained';
ALTER TABLE resource ADD COLUMN expires_ms INTEGER;
ALTER TABLE resource ADD COLUMN run TEXT;
ALTER TABLE resource ADD COLUMN path TEXT;
ALTER TABLE resource ADD COLUMN bucket TEXT;
ALTER TABLE resource ADD COLUMN folder TEXT;
-- A JSON object with what it is found by.
ALTER TABLE resource ADD COLUMN search TEXT;
-- 'deleted' or 'expired'.
ALTER TABLE resource ADD COLUMN gone TEXT;
ALTER TABLE resource ADD COLUMN gone_ms INTEGER;
UPDATE resource SET kind = 'tree' WHERE uri LIKE '%/source-tree/%';
CREATE INDEX resource_run ON resource (run) WHERE run IS NOT NULL;
CREATE INDEX resource_expires ON resource (expires_ms) WHERE expires_ms IS NOT NULL;
CREATE INDEX resource_created ON resource (created_ms);
";
