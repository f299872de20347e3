//! Tests of the stores.

mod archive;
mod bench;
mod blob;
mod crash;
mod damaged;
mod lossy;
mod power;
mod prompt;
mod runs;
mod versions;
