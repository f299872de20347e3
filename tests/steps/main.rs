//! Tests of the step types.

mod json;
mod template;
