//! `feed-digest.edn` against a server that fails at first: a second run reports only news.

use expect_test::expect_file;

use super::project;
use crate::server::{Answer, Server};

#[test]
fn a_second_run_reports_only_news() {
    let scratch = project();
    scratch.write("flowstone.edn", "{:allow {:net [\"127.0.0.1\"]}}");
    let first = scratch.read("flows/feed-digest/first.json");
    let second = scratch.read("flows/feed-digest/second.json");
    let server = Server::start(move |_, before| match before {
        0 => Answer::Status(503, "busy"),
        1 => Answer::Json(first.clone()),
        _ => Answer::Json(second.clone()),
    });
    let input = format!("{{:url \"{}\"}}", server.url("/feed.json"));
    let run = || {
        scratch
            .run(&["run", "flows/feed-digest.edn", "--quiet", "--input", &input])
            .ok()
    };
    expect_file!["../../flows/feed-digest/expected-first.md"].assert_eq(&run());
    expect_file!["../../flows/feed-digest/expected-second.md"].assert_eq(&run());
    assert_eq!(run(), "# Harbour news\n\nNothing new.\n");
    assert_eq!(server.requests().len(), 4);
}
