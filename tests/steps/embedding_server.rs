//! A local server of embeddings that returns similar vectors for texts with words of the same lists.

use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};

use crate::test_server::{Answer, Request, Server, reply};

/// Words with a similar meaning, one list for each dimension of a vector.
const MEANINGS: &[&[&str]] = &[
    &["refund", "money", "fee", "reimbursement", "pay"],
    &["soup", "bread", "hungry", "dinner", "lunch"],
    &["run", "flow", "failed"],
];

/// The behaviour of the server.
#[derive(Clone, Copy, Default)]
pub struct Mood {
    /// Number of requests to refuse with this status before the others are answered.
    pub refusals: usize,
    pub status: u16,
}

pub struct EmbeddingServer {
    pub url: String,
    server: Server,
    mood: Arc<Mutex<Mood>>,
}

impl EmbeddingServer {
    pub fn start() -> EmbeddingServer {
        let mood: Arc<Mutex<Mood>> = Arc::default();
        let moods = Arc::clone(&mood);
        let server = Server::start(move |request, _| answer(request, &moods));
        EmbeddingServer {
            url: server.url("/v1"),
            server,
            mood,
        }
    }

    /// Refuses the next requests with a status.
    pub fn refuse(&self, refusals: usize, status: u16) {
        *self.mood.lock().expect("no panic") = Mood { refusals, status };
    }

    /// Returns the head and the body of each request.
    pub fn requests(&self) -> Vec<(String, Json)> {
        let requests = self.server.requests();
        let parts = requests.into_iter().map(|request| {
            let head = request.text[..request.text.len() - request.body.len()].to_owned();
            (head, body(&request.body))
        });
        parts.collect()
    }

    /// Returns the number of embedded texts.
    pub fn texts(&self) -> usize {
        let requests = self.requests();
        let counts = requests
            .iter()
            .filter_map(|(_, body)| body["input"].as_array());
        counts.map(Vec::len).sum()
    }
}

fn body(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_default()
}

fn answer(request: &Request, mood: &Mutex<Mood>) -> Answer {
    let body = body(&request.body);
    let inputs = body["input"].as_array().into_iter().flatten();
    let rows: Vec<Json> = inputs
        .filter_map(Json::as_str)
        .enumerate()
        .map(|(idx, text)| json!({"index": idx, "embedding": vector(text)}))
        .collect();
    let mut mood = mood.lock().expect("no panic");
    let (status, answer) = match mood.refusals {
        0 => (200, json!({"data": rows})),
        _ => {
            mood.refusals -= 1;
            let error = json!({"error": {"message": "not with the key hush-hush"}});
            (mood.status, error)
        }
    };
    let headers = ["retry-after: 0", "content-type: application/json"];
    reply(&format!("{status} Answer"), &headers, answer.to_string())
}

fn vector(text: &str) -> Vec<f32> {
    let text = text.to_lowercase();
    let mut vector: Vec<f32> = MEANINGS
        .iter()
        .map(|words| {
            words
                .iter()
                .map(|word| text.matches(word).count() as f32)
                .sum()
        })
        .collect();
    // A text without known words gets a vector without direction.
    vector.push(0.01);
    vector
}
