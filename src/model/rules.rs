//! Rules that all stores share: admission, queues, run trees, leases, jobs, and who may answer a wait.
//!
//! A store calls them inside its own transaction. The decisions are pure functions over plain rows; around them, short
//! procedures read those rows and write the outcome through the traits in [`rows`]. A second store implements the
//! traits and gets the same behaviour. Nothing here knows SQL, reads a clock or awaits.

#![warn(clippy::wildcard_enum_match_arm)]

pub mod admission;
pub mod agenda;
pub mod answers;
pub mod deliveries;
pub mod jobs;
pub mod lease;
pub mod queue;
pub mod registry;
pub mod rows;
pub mod run_tree;
