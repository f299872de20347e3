//! The flows that come with the repository: each is run and compared with its expected result.

mod agents;
mod changelog_writer;
mod expense_approval;
mod feed_digest;
mod graphs;
mod inventory_join;
mod order_report;
mod repo_report;
mod summarize;
mod thumbnails;
mod trees;

use crate::program::Scratch;
use crate::tidy::{files, root};

/// Returns a folder with the flows in it, as in the repository.
fn project() -> Scratch {
    let scratch = Scratch::new();
    for file in files("flows", &[""]) {
        let bytes = std::fs::read(root().join(&file)).expect("it is listed");
        scratch.write(&file.display().to_string(), bytes);
    }
    scratch
}

/// Returns the id of the only open wait.
fn only_wait(scratch: &Scratch) -> String {
    let json = scratch.run(&["waits", "list", "--json"]).json();
    let waits = json["waits"].as_array().expect("a list");
    assert_eq!(waits.len(), 1, "{json}");
    waits[0]["id"].as_str().expect("an id").to_owned()
}

/// Reads EDN text, so that layout does not count.
fn data(text: &str) -> flowstone_lang::value::Value {
    flowstone_engine::codec::decode(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
