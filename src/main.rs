//! The runner binary.

fn main() {}
