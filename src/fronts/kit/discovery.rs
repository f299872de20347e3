//! What a flow can be built of: a catalogue of the project, made when it is asked for, and the states of its connections.
//!
//! It has the step types, the packaged steps and flows that the caller reaches, connections, and the tools of MCP servers. Only
//! MCP servers are asked for something: for their lists of tools. Secrets appear nowhere, and of connections only names and states.

mod catalogue;
mod flows;
mod listed;
pub mod shapes;
mod state;

pub use catalogue::{Candidate, Catalogue, Kind};
pub use flows::bound_flow;
pub use state::{Integration, Integrations, State};

/// The part of a use case's words that a candidate must have.
pub const LEAST_COVERAGE: f64 = 0.34;

/// Words that make a use case one that an event starts.
const EVENTS: &[&str] = &[
    "as soon as",
    "each time",
    "every time",
    "incoming",
    "is opened",
    "is received",
    "on new ",
    "trigger",
    "webhook",
    "whenever",
];

/// Tells whether a use case is about an event that starts a flow.
pub fn reads_like_an_event(use_case: &str) -> bool {
    let text = use_case.trim().to_lowercase();
    text.starts_with("when ") || EVENTS.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::reads_like_an_event;

    #[test]
    fn events_are_told_by_their_words() {
        for event in [
            "When a pull request is opened",
            "reply to incoming mail",
            "a webhook of Stripe",
        ] {
            assert!(reads_like_an_event(event), "{event}");
        }
        for plain in [
            "send a message to Slack",
            "list what happened when",
            "store a row",
        ] {
            assert!(!reads_like_an_event(plain), "{plain}");
        }
    }
}
