//! Formats of other systems on the engine. A front reads its own format, compiles it to an ordinary flow, and shows the
//! journal of the runs in its own shape. It has no store and executes nothing itself.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

use flowstone_flow::format::Formats;
use flowstone_flow::step::Step;
use flowstone_model::waits::AnswerRules;

mod address;
pub mod agents;
pub mod graph;
pub mod json_text;
pub mod kit;
pub mod n8n;
pub mod tree;

pub use flowstone_project::rows;

/// Returns the step types of this crate.
pub fn steps() -> Vec<Box<dyn Step>> {
    vec![Box::new(agents::platform::Platform), Box::new(kit::KitStep)]
}

/// The formats of files that flows and agents call like flow files.
pub const FORMATS: Formats = &[&graph::GraphFormat, &tree::TreeFormat];

/// What the fronts say about answers to their waits, whichever surface takes them.
pub const ANSWER_RULES: AnswerRules = AnswerRules::new(&[tree::check_answer]);
