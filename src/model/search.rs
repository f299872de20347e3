//! The parts that all indexes of texts share: which texts are indexed, how they are split, and how a query is parsed.

mod chunks;
mod query;
mod text;

pub use chunks::chunks;
pub use query::{SearchQuery, Term, parse as parse_query};
pub use text::{TEXT_MAX, cut, may_be_text, start_of};
