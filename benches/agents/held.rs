//! What each of many branches holds in memory while it waits: for a time, or for a model.

use std::io::{BufRead as _, BufReader, Read as _, Result, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use crate::process::Process;
use crate::{Measured, Row};

/// Few branches, whose run says what the rest of the process takes.
const FEW: usize = 10;
const SLEEPING: usize = 10_000;
const AGENTS: usize = 1_000;
/// How long the model takes for an answer.
const LATENCY: Duration = Duration::from_secs(8);
/// The stack of a thread that answers one connection.
const STACK: usize = 64 << 10;

pub const ROWS: &[Row] = &[
    Row {
        name: "a branch that sleeps, of 10,000",
        target: "< 20 KB",
        measure: sleeping,
    },
    Row {
        name: "an agent with a child agent, of 1,000",
        target: "< 100 KB; the model is a server",
        measure: agents,
    },
];

fn sleeping(folder: &Path) -> Result<Measured> {
    let flow = |count: usize| {
        format!(
            "{{:slug :held :flow '(count (flow/pmap {{:max {count}}}
               (fn [_] (flow/step :sleep :pause {{:duration \"12s\"}})) (range {count})))}}"
        )
    };
    std::fs::write(folder.join("flowstone.edn"), "{}")?;
    held(folder, SLEEPING, 20.0, flow)
}

fn agents(folder: &Path) -> Result<Measured> {
    let server = TcpListener::bind("127.0.0.1:0")?;
    let port = server.local_addr()?.port();
    std::thread::spawn(move || serve(&server));
    std::fs::write(
        folder.join("flowstone.edn"),
        format!(
            "{{:connections {{:ai {{:backend :openai-compatible :base-url \"http://127.0.0.1:{port}/v1\" :model \"m\"}}}}}}"
        ),
    )?;
    let flow = |count: usize| {
        format!(
            "{{:slug :held
              :agents [{{:id :team/child :description \"Answers.\" :connection :ai :objective \"Answer.\"
                        :input-schema [:map [:q :string]]}}]
              :flow '(count (flow/pmap {{:max {count}}}
                (fn [_] (flow/step :agent :work {{:connection :ai :objective \"Ask the child.\"
                                                 :tools {{:agents [:team/child]}}}}))
                (range {count})))}}"
        )
    };
    held(folder, AGENTS, 100.0, flow)
}

/// Runs a flow with few branches and with many, and returns what each further one adds to the peak.
fn held(
    folder: &Path,
    count: usize,
    most: f64,
    flow: impl Fn(usize) -> String,
) -> Result<Measured> {
    let mut peaks = [0.0; 2];
    for (peak, count) in peaks.iter_mut().zip([FEW, count]) {
        std::fs::write(folder.join("held.edn"), flow(count))?;
        let process = Process::start(folder, &["run", "held.edn", "--quiet", "--new"])?;
        *peak = process.watch()?.peak;
    }
    let [few, many] = peaks;
    let each = (many - few) * 1024.0 / (count - FEW) as f64;
    Ok(Measured {
        words: format!("{each:.1} KB each ({many:.0} MB; {few:.0} MB with {FEW})"),
        is_met: each < most,
    })
}

fn serve(server: &TcpListener) {
    for stream in server.incoming().flatten() {
        let answering = std::thread::Builder::new().stack_size(STACK);
        // A connection without a thread is closed, which the row reports as a failed run.
        let _ = answering.spawn(move || answer(stream));
    }
}

/// Answers requests of one connection: the first turn of an agent with a tool calls it, any other turn ends.
fn answer(stream: TcpStream) -> Result<()> {
    let mut requests = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut line = String::new();
        while requests.read_line(&mut line)? > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            line.clear();
        }
        if length == 0 {
            return Ok(());
        }
        let mut body = vec![0; length];
        requests.read_exact(&mut body)?;
        let body = String::from_utf8_lossy(&body);
        std::thread::sleep(LATENCY);
        let calls = body.contains("\"tools\"") && !body.contains("\"role\":\"tool\"");
        let (message, reason) = match calls {
            true => (
                r#"{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"team_child","arguments":"{\"q\":\"x\"}"}}]}"#,
                "tool_calls",
            ),
            false => (r#"{"role":"assistant","content":"done"}"#, "stop"),
        };
        let reply = format!(
            r#"{{"id":"x","object":"chat.completion","model":"m","choices":[{{"index":0,"finish_reason":"{reason}","message":{message}}}],"usage":{{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}}}"#
        );
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            reply.len()
        );
        requests.get_mut().write_all((head + &reply).as_bytes())?;
    }
}
