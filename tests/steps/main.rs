//! Tests of the step types.

mod json;
mod schema;
mod template;
