//! A server outside: answers each call at once, and remembers the idempotency keys.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Error, Read as _, Result, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The counter. Its threads end with the process.
pub struct Counter {
    pub url: String,
    calls: Arc<Mutex<HashMap<String, usize>>>,
}

impl Counter {
    pub fn start() -> Result<Counter> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let url = format!("http://{}/count", listener.local_addr()?);
        let calls = Arc::new(Mutex::new(HashMap::new()));
        let counted = Arc::clone(&calls);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let calls = Arc::clone(&counted);
                // The caller may end the connection at any time.
                thread::spawn(move || answer(stream, &calls));
            }
        });
        Ok(Counter { url, calls })
    }

    /// Tells whether there were `count` effects, each performed once.
    pub fn each_once(&self, count: usize) -> Result<bool> {
        let calls = self
            .calls
            .lock()
            .map_err(|error| Error::other(error.to_string()))?;
        Ok(calls.len() == count && calls.values().all(|times| *times == 1))
    }
}

fn answer(stream: TcpStream, calls: &Mutex<HashMap<String, usize>>) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    loop {
        let (mut key, mut length) = (String::new(), 0);
        loop {
            line.clear();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let text = line.trim_end();
            if text.is_empty() {
                break;
            }
            match text.split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("idempotency-key") => {
                    value.clone_into(&mut key);
                }
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().map_err(Error::other)?;
                }
                _ => {}
            }
        }
        stream.read_exact(&mut vec![0; length])?;
        if let Ok(mut calls) = calls.lock() {
            *calls.entry(key).or_default() += 1;
        }
        let text =
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        stream.get_mut().write_all(text)?;
    }
}
