//! What a test of a flow shows, and the verdict about it. Pure: how a test is run is in `flowstone_engine::test_runs`.

pub mod names;
pub mod resolved;
pub mod scope;
pub mod verdict;
