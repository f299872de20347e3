//! The server of all tests with scripted answers, as the tests of steps use it.

use crate::test_server::{self, event_stream};
pub use crate::test_server::{Answer as Say, reply};

pub fn json(body: &str) -> Say {
    reply("200 OK", &["content-type: application/json"], body)
}

/// Returns the events of a model's stream; the connection closes at their end.
pub fn events(data: &[&str]) -> Say {
    Say::Raw(event_stream(&event_text(data)))
}

/// As [`events`], but silent afterwards.
pub fn stalled(data: &[&str]) -> Say {
    Say::Hang(event_stream(&event_text(data)))
}

fn event_text(data: &[&str]) -> String {
    data.iter()
        .map(|data| format!("data: {data}\n\n"))
        .collect()
}

pub struct Server {
    pub url: String,
    server: test_server::Server,
}

impl Server {
    /// Starts a server that gives these answers in order, and the last of them to all later requests.
    pub fn start(answers: Vec<Say>) -> Server {
        let server = test_server::Server::of(answers);
        Server {
            url: server.url(""),
            server,
        }
    }

    /// Returns head and body of each request, without what differs from run to run.
    pub fn requests(&self) -> Vec<String> {
        let requests = self.server.requests();
        requests.iter().map(|it| self.clean(&it.text)).collect()
    }

    /// Returns the body of a request.
    pub fn body(&self, at: usize) -> serde_json::Value {
        serde_json::from_str(&self.server.requests()[at].body).expect("a JSON body")
    }

    /// Returns a text without the server's address.
    pub fn clean(&self, text: &str) -> String {
        text.replace(&self.server.host(), "HOST")
    }
}
