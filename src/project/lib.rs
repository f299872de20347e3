//! A project as a whole: its flow files, its runs, its connections, and a search over all of them.
//!
//! The steps `:knowledge`, `:search` and `:workspace` are here, because they see more than their own run.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod addresses;
pub mod connections;
pub mod flow_files;
pub mod held;
pub mod installations;
pub mod knowledge;
pub mod registry;
pub mod rows;
pub mod search;
pub mod webhooks;
pub mod workspace;

use flowstone_flow::step::Step;

/// Returns the step types of this crate.
pub fn steps() -> Vec<Box<dyn Step>> {
    vec![
        Box::new(knowledge::step::Knowledge),
        Box::new(search::step::Search),
        Box::new(workspace::Workspace),
    ]
}

/// Returns the step types of this crate and of `flowstone-steps`. A running flow has more: those of fronts and of the engine.
pub fn all_steps() -> Vec<Box<dyn Step>> {
    let mut all = flowstone_steps::all();
    all.extend(steps());
    all
}
