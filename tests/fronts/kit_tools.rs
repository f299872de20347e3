//! Tools of the build kit: what tests of flows do, what they leave, and the verdicts about them; what discovery finds. Flows
//! run on scripted models over a store in memory; the doors are tested in `tests/cli`.

mod decisions;
mod discovery;
mod dry;
mod ends;
pub mod project;
mod unconfirmed;
mod use_cases;
mod verdicts;
