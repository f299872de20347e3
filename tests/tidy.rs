//! The repository's own rules: who may import whom, what is listed where, how large a file may be.

mod architecture;
mod circles;
mod coverage;
mod dependencies;
mod error_pages;
mod gate;
mod layers;
mod licences;
mod lists;
mod promises;
mod screen;
mod texts;
pub mod tree;

pub use tree::{files, root, text};
mod words;
