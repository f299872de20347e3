//! Tests of the whole: the command line, the flows that come with it, and the repository's own rules.

#[cfg(unix)]
mod agents_api;
#[cfg(unix)]
mod api;
#[cfg(unix)]
mod api_document;
mod cli;
mod decisions;
mod flows;
mod golden;
mod graphs;
mod mutations;
mod program;
#[expect(dead_code, reason = "the tests of the steps use the rest")]
mod server;
mod tidy;
mod walks;
