//! One file for each step type, one for each model provider.

mod connections;
mod fields;
pub mod files;
pub mod http;
pub mod llm;
mod rendered;
pub mod sandbox;
pub mod secrets;
pub mod settings;
pub mod sse;
pub mod template;

use flowstone_engine::step::Step;
pub use flowstone_engine::{json, schema, words};

/// Returns the step types there are.
pub fn all() -> Vec<Box<dyn Step>> {
    vec![
        Box::new(files::Files::default()),
        Box::new(http::Http),
        Box::new(llm::Llm),
    ]
}
