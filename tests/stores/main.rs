//! Tests of the stores.

mod archive;
mod bench;
mod blob;
mod branches;
mod branches_resumed;
mod children;
mod compare;
mod crash;
mod damaged;
mod doubt;
mod errors;
mod failures;
mod gate;
mod listing;
mod lossy;
mod model;
mod policy;
mod power;
mod prompt;
mod queue;
mod runs;
mod saga;
mod upkeep;
mod versions;
mod waits;
mod worker;
