//! What indexes of texts share: which texts are indexed, in which pieces, and how a question is read.

mod chunks;
mod text;
mod words;

pub use chunks::chunks;
pub use text::{TEXT_MAX, cut, may_be_text, start_of};
pub use words::{Term, Words, read as read_words};
