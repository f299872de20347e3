//! Tests of the stores.

mod bench;
mod crash;
mod damaged;
mod prompt;
mod runs;
