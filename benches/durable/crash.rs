//! kill -9 in the middle of a run: how soon it goes on, and what is done again.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Result, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::Measured;
use crate::process::Process;
use crate::run::block_on;
use crate::world::World;

/// Pairs of a call outside and a change of our own store.
const PAIRS: usize = 300;
const KILL_AT: usize = 200;
const ROUNDS: usize = 5;

/// Several rounds; the figure is the median.
pub fn to_resumed(folder: &Path) -> Result<Measured> {
    let mut times = Vec::new();
    let (mut redone, mut is_exact) = (0, true);
    for round in 0..ROUNDS {
        let place = folder.join(round.to_string());
        std::fs::create_dir_all(&place)?;
        let round = self::round(&place)?;
        times.push(round.seconds);
        redone = redone.max(round.redone);
        is_exact &= round.is_exact;
    }
    times.sort_by(f64::total_cmp);
    let median = times[ROUNDS / 2];
    Ok(Measured {
        words: format!(
            "{median:.3} s, at most {redone} calls made again, local steps once: {is_exact}"
        ),
        is_met: median < 0.3 && redone <= 1 && is_exact,
    })
}

struct Round {
    seconds: f64,
    redone: usize,
    is_exact: bool,
}

fn round(folder: &Path) -> Result<Round> {
    let (calls, called) = channel();
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let calls = calls.clone();
            std::thread::spawn(move || serve(stream, &calls));
        }
    });
    std::fs::write(
        folder.join("flow.edn"),
        format!(
            "(loop [n 0]
               (if (< n {PAIRS})
                 (do (flow/step :http :tell {{:url (str \"http://127.0.0.1:{port}/\" n) :method :post :on-doubt :retry}})
                     (flow/step :kv :count {{:operation :increment :key \"count\"}})
                     (recur (inc n)))
                 n))"
        ),
    )?;
    let mut first = Process::start(folder, &["run", "flow.edn", "--quiet"])?;
    let mut counts: HashMap<String, usize> = HashMap::new();
    while counts.len() < KILL_AT {
        *counts.entry(next(&called)?).or_default() += 1;
    }
    first.kill()?;
    for path in called.try_iter() {
        *counts.entry(path).or_default() += 1;
    }
    let begun = Instant::now();
    let mut second = Process::start(folder, &["runs", "resume", "--all", "--quiet"])?;
    let path = next(&called)?;
    let seconds = begun.elapsed().as_secs_f64();
    *counts.entry(path).or_default() += 1;
    let is_well = second.wait()?;
    for path in called.try_iter() {
        *counts.entry(path).or_default() += 1;
    }
    let world = World::open(folder)?;
    let counted = block_on(async {
        let counted = world.stores.kv.get("count", 0).await;
        counted.map_err(std::io::Error::other)
    })?;
    Ok(Round {
        seconds,
        redone: counts.values().map(|count| count - 1).sum(),
        is_exact: is_well && counts.len() == PAIRS && counted == Some(PAIRS.to_string()),
    })
}

fn next(called: &Receiver<String>) -> Result<String> {
    called
        .recv_timeout(Duration::from_secs(60))
        .map_err(std::io::Error::other)
}

/// Answers the calls of a connection, and tells of each.
fn serve(stream: TcpStream, calls: &Sender<String>) -> Option<()> {
    let mut answers = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let path = line.split(' ').nth(1)?.to_owned();
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        reader.read_exact(&mut vec![0; length]).ok()?;
        calls.send(path).ok()?;
        answers
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            .ok()?;
    }
}
