//! A thousand agents at once with a tool of a server: as branches of one run, as child runs of one run, and as generations of the
//! agents API. The agents, the model and the tool are the same, so that the difference is what a run and a generation add.

use std::io::{BufRead as _, BufReader, Error, Read as _, Result, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use flowstone_engine::Engine;
use flowstone_engine::waits::Caller;
use flowstone_fronts::agents::agent::{self, Agent};
use flowstone_fronts::agents::error::ApiError;
use flowstone_fronts::agents::generations::{self, Who};
use flowstone_fronts::agents::{providers, tools};
use serde_json::{Value as Json, json};

use crate::process::{Process, Watched};
use crate::run::block_on;
use crate::world::{Script, Tool, World};
use crate::{Measured, Row};

const AGENTS: usize = 1_000;
const TURNS: usize = 5;
const LATENCY: u64 = 200;
/// The stack of a thread that answers one connection.
const STACK: usize = 64 << 10;

pub const ROWS: &[Row] = &[
    Row {
        name: "1,000 HTTP agents, branches",
        target: "what the next two compare with",
        measure: branches,
    },
    Row {
        name: "1,000 HTTP agents, child runs",
        target: "CPU, memory < 2 x branches",
        measure: children,
    },
    Row {
        name: "1,000 HTTP agents, generations",
        target: "CPU, memory < 2 x branches",
        measure: of_api,
    },
];

/// Answers calls of the tool, and counts them.
struct Counter {
    url: String,
    calls: Arc<AtomicUsize>,
}

impl Counter {
    fn start() -> Result<Counter> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}/add", listener.local_addr()?);
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counted = counted.clone();
                let answering = std::thread::Builder::new().stack_size(STACK);
                // A connection without a thread is closed, which the row reports as a failed run.
                let _ = answering.spawn(move || answer(stream, &counted));
            }
        });
        Ok(Counter { url, calls })
    }
}

fn answer(mut stream: TcpStream, calls: &AtomicUsize) -> Result<()> {
    let mut requests = BufReader::new(stream.try_clone()?);
    loop {
        let (mut length, mut line) = (None, String::new());
        while requests.read_line(&mut line)? > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok();
            }
            line.clear();
        }
        let Some(length) = length else {
            return Ok(());
        };
        requests.read_exact(&mut vec![0; length])?;
        calls.fetch_add(1, Ordering::Relaxed);
        stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{\"ok\":true}",
        )?;
    }
}

fn settings() -> String {
    let script = Script {
        turns: TURNS,
        tool: Tool::Add,
        latency: LATENCY,
        last: LATENCY,
    };
    let settings = script.settings(":full");
    settings.replacen('{', "{:allow {:net [\"127.0.0.1\"]} ", 1)
}

/// One agent, as a step of a flow.
fn agent(url: &str) -> String {
    format!(
        "(:iterations (flow/step :agent :work {{:connection :ai :messages [{{:role :user :content \"Look at all of them.\"}}]
           :max-iterations 100 :http-tools [{{:name \"bench_add\" :url \"{url}\"}}]}}))"
    )
}

fn all_of(body: &str) -> String {
    format!("(reduce + (flow/pmap {{:max {AGENTS}}} (fn [n] {body}) (range {AGENTS})))")
}

fn branches(folder: &Path) -> Result<Measured> {
    measured(folder, 1, |world, _, url| {
        let body = all_of(&agent(url));
        block_on(world.add_runs(&body, 1)).map(drop)
    })
}

fn children(folder: &Path) -> Result<Measured> {
    measured(folder, AGENTS + 1, |world, place, url| {
        let child = format!("{{:slug :child :flow '{}}}", agent(url));
        std::fs::write(place.join("child.edn"), child)?;
        let body = all_of("(flow/call-flow :child {:n n})");
        block_on(world.add_runs(&body, 1)).map(drop)
    })
}

fn of_api(folder: &Path) -> Result<Measured> {
    measured(folder, AGENTS, |world, _, url| {
        let engine = world.engine()?;
        block_on(async { generate(&engine, url).await.map_err(Error::other) })
    })
}

/// Stores an agent, and starts its generations for any worker to execute.
async fn generate(engine: &Engine, url: &str) -> std::result::Result<(), ApiError> {
    let id = |made: &Json| made["id"].as_str().unwrap_or_default().to_owned();
    let who = Who {
        started_by: "local".to_owned(),
        caller: Caller::default(),
        is_operator: true,
        token: None,
        narrowed: None,
    };
    let provider = json!({"name": "ai", "provider": "ai", "default_model": "scripted"});
    let provider = id(&providers::create(engine, &who, provider).await?);
    let tool = json!({"name": "bench_add", "execute": {"url": url}});
    let tool = id(&tools::create(engine, tool).await?);
    let made = json!({"ai_provider_id": provider, "tool_ids": [tool], "max_steps": 100});
    let found = Agent::find(engine, &id(&agent::create(engine, &who, made).await?)).await?;
    for _ in 0..AGENTS {
        let body = json!({"prompt": "Look at all of them."});
        generations::start(engine, &found, &who, body).await?;
    }
    Ok(())
}

/// A worker of two threads, from its start to the end of the last run.
fn measured(
    folder: &Path,
    runs: usize,
    add: impl FnOnce(&World, &Path, &str) -> Result<()>,
) -> Result<Measured> {
    let empty = folder.join("idle");
    World::open(&empty, &settings())?;
    let idle = Process::idle(&empty)?;
    let place = folder.join("busy");
    let counter = Counter::start()?;
    let world = World::open(&place, &settings())?;
    add(&world, &place, &counter.url)?;
    drop(world);
    let begun = Instant::now();
    let worker = Process::start(
        &place,
        &["serve", "--until-idle", "--quiet", "--concurrency", "1001"],
    )?;
    let Watched { peak, cpu } = worker.watch()?;
    let seconds = begun.elapsed().as_secs_f64();
    let done = World::again(&place)?.completed()?;
    let calls = counter.calls.load(Ordering::Relaxed);
    if done != runs || calls != AGENTS * (TURNS - 1) {
        return Err(Error::other(format!("{done} runs done, {calls} calls")));
    }
    let turns = (AGENTS * TURNS) as f64;
    Ok(Measured {
        words: format!(
            "{seconds:.2} s, CPU {cpu:.2} s ({:.2} ms a turn), {:.0} MB above idle ({idle:.0} MB)",
            cpu * 1e3 / turns,
            peak - idle
        ),
        is_met: seconds < 30.0,
    })
}
