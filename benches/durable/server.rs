//! The server under load: starts over HTTP, readers of one run, and runs that wait for a webhook.

use std::io::{BufRead as _, BufReader, Error, Read as _, Result, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::Measured;
use crate::counter::Counter;
use crate::process::{Process, Served};

/// Connections that start runs side by side.
const CLIENTS: usize = 64;
const STARTS: usize = 20_000;
const RUNS: usize = 1_000;
const STEPS: usize = 10;
const READERS: usize = 1_000;
const WAITING: usize = 10_000;
/// How long a row may wait for something.
const LONGEST: Duration = Duration::from_secs(120);

/// A connection that is kept for many requests.
struct Client {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Client {
    fn open(server: &Served) -> Result<Client> {
        let stream = TcpStream::connect(&server.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LONGEST))?;
        Ok(Client {
            stream: BufReader::new(stream),
            head: format!(
                "host: {}\r\nauthorization: Bearer {}\r\n",
                server.address, server.token
            ),
        })
    }

    /// Sends a request and returns the status and the body of its answer.
    fn ask(&mut self, what: &str, headers: &str, body: &str) -> Result<(u16, String)> {
        let length = body.len();
        let request = format!(
            "{what} HTTP/1.1\r\n{}{headers}content-length: {length}\r\n\r\n{body}",
            self.head
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (status, length) = self.head_of_answer()?;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    /// Reads the lines above a body and returns the status and the length.
    fn head_of_answer(&mut self) -> Result<(u16, usize)> {
        let (mut status, mut length, mut line) = (0, 0, String::new());
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(Error::other("the server ended the connection"));
            }
            let text = line.trim_end().to_ascii_lowercase();
            if let Some(rest) = text.strip_prefix("http/1.1 ") {
                status = rest.get(..3).and_then(|it| it.parse().ok()).unwrap_or(0);
            } else if let Some(rest) = text.strip_prefix("content-length:") {
                length = rest.trim().parse().map_err(Error::other)?;
            } else if text.is_empty() {
                return Ok((status, length));
            }
        }
    }

    fn start(&mut self, flow: &str, id: usize) -> Result<()> {
        let what = format!("POST /api/v1/flows/{flow}/runs");
        let body = format!("{{\"id\":\"run-{id}\"}}");
        match self.ask(&what, "content-type: application/json\r\n", &body)? {
            (201, _) => Ok(()),
            (status, body) => Err(Error::other(format!("{status} {body}"))),
        }
    }
}

/// Starts runs from several connections, at most `rate` a second. Returns how long each start took, sorted.
fn start_all(
    server: &Served,
    flow: &str,
    ids: std::ops::Range<usize>,
    rate: Option<f64>,
) -> Result<Vec<f64>> {
    let begun = Instant::now();
    let times = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let ids = ids.clone();
                scope.spawn(move || -> Result<Vec<f64>> {
                    let mut client = Client::open(server)?;
                    let mut times = Vec::new();
                    for id in ids.clone().skip(number).step_by(CLIENTS) {
                        // Latency counts from the time at which the request was due.
                        let due = rate
                            .map(|rate| Duration::from_secs_f64((id - ids.start) as f64 / rate));
                        let due = due.unwrap_or_else(|| begun.elapsed());
                        thread::sleep(due.saturating_sub(begun.elapsed()));
                        client.start(flow, id)?;
                        times.push((begun.elapsed() - due).as_secs_f64());
                    }
                    Ok(times)
                })
            })
            .collect();
        let times = clients.into_iter().map(|client| {
            let times = client.join();
            times.unwrap_or_else(|_| Err(Error::other("a client panicked")))
        });
        times.collect::<Result<Vec<_>>>()
    })?;
    let mut times = times.concat();
    times.sort_by(f64::total_cmp);
    Ok(times)
}

fn percentile(sorted: &[f64], per_cent: usize) -> f64 {
    let at = sorted.len() * per_cent / 100;
    sorted
        .get(at.min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0.0)
}

/// Waits until as many runs have ended.
fn until_ended(server: &Served, flow: &str, wanted: usize) -> Result<()> {
    // A connection that was quiet for 10 s is closed, so this is one of its own.
    let mut client = Client::open(server)?;
    let name = format!("flowstone_runs_ended_total{{flow=\"{flow}\",status=\"completed\"}} ");
    let begun = Instant::now();
    loop {
        let (_, text) = client.ask("GET /metrics", "", "")?;
        let ended = text.lines().find_map(|line| line.strip_prefix(&name));
        if ended.and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0) >= wanted as f64 {
            return Ok(());
        }
        if begun.elapsed() > LONGEST {
            return Err(Error::other(format!("{ended:?} of {wanted} runs ended")));
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Starts of a flow that does nothing, as fast as they are taken, and then at half that rate.
pub fn starts(folder: &Path) -> Result<Measured> {
    std::fs::write(folder.join("empty.clj"), "{:slug :empty :flow '(do 1)}")?;
    let server = Process::listen(folder)?;
    let mut client = Client::open(&server)?;
    client.start("empty", 0)?;
    let before = server.process.cpu_seconds()?;
    let begun = Instant::now();
    start_all(&server, "empty", 1..STARTS, None)?;
    let rate = STARTS as f64 / begun.elapsed().as_secs_f64();
    until_ended(&server, "empty", STARTS)?;
    let cpu = (server.process.cpu_seconds()? - before) * 1e6 / STARTS as f64;
    let half = start_all(
        &server,
        "empty",
        STARTS..STARTS + STARTS / 4,
        Some(rate / 2.0),
    )?;
    let (usual, slow) = (percentile(&half, 50) * 1e3, percentile(&half, 99) * 1e3);
    let resident = server.process.resident()?;
    Ok(Measured {
        words: format!(
            "{rate:.0}/s, {cpu:.0} us CPU a run, {resident:.0} MB; p50 {usual:.1} ms, p99 {slow:.1} ms"
        ),
        is_met: rate >= 2_000.0 && slow < 50.0,
    })
}

/// Runs with steps of our own store, from the first start to the last end.
pub fn own_steps(folder: &Path) -> Result<Measured> {
    let step = "(flow/step :kv :note {:op :set :key (str \"n\" n) :value n})";
    let (measured, _) = steps(folder, step)?;
    Ok(measured)
}

/// Runs with calls of a server outside, which counts them, from the first start to the last end.
pub fn external_steps(folder: &Path) -> Result<Measured> {
    std::fs::write(
        folder.join("flowstone.edn"),
        "{:allow {:net [\"127.0.0.1\"]}}",
    )?;
    let counter = Counter::start()?;
    let url = &counter.url;
    let step = format!("(flow/step :http :tell {{:url {url:?} :method :post :json {{:n n}}}})");
    let (measured, rate) = steps(folder, &step)?;
    let is_once = counter.each_once(RUNS * STEPS)?;
    Ok(Measured {
        words: format!("{}, each effect once: {is_once}", measured.words),
        is_met: rate >= 5_000.0 && is_once,
    })
}

/// Runs of ten steps, started over HTTP. Returns the figures, and the steps a second.
fn steps(folder: &Path, step: &str) -> Result<(Measured, f64)> {
    let flow = format!(
        "{{:slug :steps :flow '(loop [n 0] (if (< n {STEPS}) (do {step} (recur (inc n))) n))}}"
    );
    std::fs::write(folder.join("steps.clj"), flow)?;
    let server = Process::listen(folder)?;
    let before = server.process.cpu_seconds()?;
    let begun = Instant::now();
    start_all(&server, "steps", 0..RUNS, None)?;
    until_ended(&server, "steps", RUNS)?;
    let rate = (RUNS * STEPS) as f64 / begun.elapsed().as_secs_f64();
    let cpu = server.process.cpu_seconds()? - before;
    let resident = server.process.resident()?;
    let measured = Measured {
        words: format!("{rate:.0} steps/s, {cpu:.1} s CPU, {resident:.0} MB"),
        is_met: rate >= 5_000.0,
    };
    Ok((measured, rate))
}

/// Clients that follow one run, which waits.
pub fn readers(folder: &Path) -> Result<Measured> {
    let flow = "{:slug :ask :flow '(flow/step :wait :go {:key \"go\" :timeout \"1d\"})}";
    std::fs::write(folder.join("ask.clj"), flow)?;
    let server = Process::listen(folder)?;
    let mut client = Client::open(&server)?;
    client.start("ask", 0)?;
    thread::sleep(Duration::from_secs(1));
    let (idle, before) = (server.process.resident()?, server.process.cpu_seconds()?);
    let (_, runs) = client.ask("GET /api/v1/runs", "", "")?;
    let id = runs
        .split("\"id\":\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let id = id.ok_or_else(|| Error::other(runs.clone()))?;
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let mut reader = Client::open(&server)?;
        let request = format!(
            "GET /api/v1/runs/{id}/events HTTP/1.1\r\n{}\r\n",
            reader.head
        );
        reader.stream.get_mut().write_all(request.as_bytes())?;
        readers.push(reader);
    }
    for reader in &mut readers {
        reader.until("event: wait.opened")?;
    }
    let above = server.process.resident()? - idle;
    let begun = Instant::now();
    let body = "{\"key\":\"go\",\"value\":1}";
    Client::open(&server)?.ask(
        "POST /api/v1/signals",
        "content-type: application/json\r\n",
        body,
    )?;
    for reader in &mut readers {
        reader.until("event: run.completed")?;
    }
    let took = begun.elapsed().as_secs_f64();
    let cpu = server.process.cpu_seconds()? - before;
    Ok(Measured {
        words: format!(
            "{above:.0} MB above idle, {cpu:.1} s CPU; all have the end after {took:.2} s"
        ),
        is_met: above < 100.0,
    })
}

impl Client {
    /// Reads lines until one begins this way.
    fn until(&mut self, beginning: &str) -> Result<()> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(Error::other(format!(
                    "the stream ended before `{beginning}`"
                )));
            }
            if line.starts_with(beginning) {
                return Ok(());
            }
        }
    }
}

/// Runs that wait for a delivery each, and the deliveries.
pub fn webhooks(folder: &Path) -> Result<Measured> {
    let flow = "{:slug :hook :invocations {:default {:inputs [{:name :n :type :number}]}} :flow '(flow/step :wait :paid \
                {:key (str \"paid-\" (:n (flow/input))) :webhook {:path (str \"paid-\" (:n (flow/input)))} :timeout \"1d\"})}";
    std::fs::write(folder.join("hook.clj"), flow)?;
    let server = Process::listen(folder)?;
    let mut client = Client::open(&server)?;
    let (idle, before) = (server.process.resident()?, server.process.cpu_seconds()?);
    for number in 0..WAITING {
        let body = format!("{{\"input\":{{\"n\":{number}}}}}");
        let (status, body) = client.ask(
            "POST /api/v1/flows/hook/runs",
            "content-type: application/json\r\n",
            &body,
        )?;
        if status != 201 {
            return Err(Error::other(format!("{status} {body}")));
        }
    }
    let begun = Instant::now();
    loop {
        let (_, text) = client.ask("GET /metrics", "", "")?;
        let waiting = "flowstone_runs{status=\"waiting\"} ";
        let waiting = text.lines().find_map(|line| line.strip_prefix(waiting));
        if waiting.and_then(|it| it.parse::<usize>().ok()) == Some(WAITING) {
            break;
        }
        if begun.elapsed() > LONGEST {
            return Err(Error::other(format!("{waiting:?} of {WAITING} runs wait")));
        }
        thread::sleep(Duration::from_millis(100));
    }
    let above = server.process.resident()? - idle;
    let begun = Instant::now();
    for number in 0..WAITING {
        let what = format!("POST /local/events/paid-{number}");
        let (status, body) =
            client.ask(&what, "content-type: application/json\r\n", "{\"ok\":true}")?;
        if !(200..300).contains(&status) {
            return Err(Error::other(format!("{status} {body}")));
        }
    }
    let rate = WAITING as f64 / begun.elapsed().as_secs_f64();
    until_ended(&server, "hook", WAITING)?;
    let cpu = server.process.cpu_seconds()? - before;
    Ok(Measured {
        words: format!(
            "{above:.0} MB above idle, {cpu:.1} s CPU; {rate:.0} deliveries/s on one connection"
        ),
        is_met: above < 40.0,
    })
}
