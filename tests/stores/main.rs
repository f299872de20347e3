//! Tests of the stores.
//!
//! Modules that are declared twice form the suite for all stores: their tests run over the database and over memory.

mod archive;
mod backup;
mod bench;
mod blob;
mod branches;
mod branches_resumed;
mod bulk;
mod children;
mod compare;
mod counts;
mod crash;
mod damaged;
mod database;
mod deliveries;
mod endings;
mod errors;
mod failures;
mod feed;
mod forks;
mod gate;
mod in_doubt;
mod installations;
mod installations_crash;
mod installations_schedules;
mod jobs;
mod listing;
mod lossy;
mod lost;
mod model;
mod nested;
mod policy;
mod power;
mod prompt;
mod queue;
mod registry;
mod registry_power;
mod runs;
mod saga;
mod scratch;
mod search;
mod simulation;
mod tokens;
mod total_timeout;
mod triggers;
mod upkeep;
mod vault;
mod versions;
mod waits;
mod worker;

use bench::Store;

/// The store of the suite.
const STORE: Store = Store::Sqlite;

/// The suite over memory.
#[path = "."]
#[expect(clippy::duplicate_mod, reason = "the same tests run over each store")]
mod memory {
    mod archive;
    mod branches;
    mod branches_resumed;
    mod bulk;
    mod children;
    mod compare;
    mod counts;
    mod crash;
    mod deliveries;
    mod endings;
    mod errors;
    mod feed;
    mod forks;
    mod in_doubt;
    mod installations;
    mod installations_crash;
    mod installations_schedules;
    mod jobs;
    mod listing;
    mod model;
    mod policy;
    mod prompt;
    mod queue;
    mod registry;
    mod runs;
    mod saga;
    mod scratch;
    mod search;
    mod tokens;
    mod total_timeout;
    mod triggers;
    mod upkeep;
    mod versions;
    mod waits;
    mod worker;

    use crate::bench::Store;

    /// The store of the suite.
    const STORE: Store = Store::Memory;
}
