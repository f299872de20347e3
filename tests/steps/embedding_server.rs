//! A local server of embeddings that returns similar vectors for texts with words of the same lists.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};

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
    /// Heads and bodies of the requests received.
    seen: Arc<Mutex<Vec<(String, Json)>>>,
    mood: Arc<Mutex<Mood>>,
}

impl EmbeddingServer {
    pub fn start() -> EmbeddingServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen: Arc<Mutex<Vec<(String, Json)>>> = Arc::default();
        let mood: Arc<Mutex<Mood>> = Arc::default();
        let (kept, moods) = (Arc::clone(&seen), Arc::clone(&mood));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = answer(stream, &kept, &moods);
            }
        });
        EmbeddingServer {
            url: format!("http://{address}/v1"),
            seen,
            mood,
        }
    }

    /// Refuses the next requests with a status.
    pub fn refuse(&self, refusals: usize, status: u16) {
        *self.mood.lock().expect("no panic") = Mood { refusals, status };
    }

    pub fn requests(&self) -> Vec<(String, Json)> {
        self.seen.lock().expect("no panic").clone()
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

fn answer(
    stream: TcpStream,
    seen: &Mutex<Vec<(String, Json)>>,
    mood: &Mutex<Mood>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().unwrap_or(0);
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body: Json = serde_json::from_slice(&body).unwrap_or_default();
    let inputs: Vec<&str> = body["input"]
        .as_array()
        .map(|inputs| inputs.iter().filter_map(Json::as_str).collect())
        .unwrap_or_default();
    let rows: Vec<Json> = inputs
        .iter()
        .enumerate()
        .map(|(idx, text)| json!({"index": idx, "embedding": vector(text)}))
        .collect();
    seen.lock().expect("no panic").push((head, body.clone()));
    let mut mood = mood.lock().expect("no panic");
    let (status, said) = match mood.refusals {
        0 => (200, json!({"data": rows})),
        _ => {
            mood.refusals -= 1;
            (
                mood.status,
                json!({"error": {"message": "not with the key hush-hush"}}),
            )
        }
    };
    let said = said.to_string();
    let mut stream = reader.into_inner();
    write!(
        stream,
        "HTTP/1.1 {status} Told\r\nconnection: close\r\nretry-after: 0\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{said}",
        said.len()
    )
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
