//! Tests of the stores.

mod bench;
mod blob;
mod crash;
mod damaged;
mod prompt;
mod runs;
