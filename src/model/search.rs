//! The parts that all indexes of texts share: which texts are indexed, how they are split, and how a query is parsed.

mod chunks;
mod text;
mod words;

pub use chunks::chunks;
pub use text::{TEXT_MAX, cut, may_be_text, start_of};
pub use words::{Term, Words, read as read_words};
