//! One file for each step type, one for each model provider.

pub mod json;
pub mod template;
