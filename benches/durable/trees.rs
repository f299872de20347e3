//! Behaviour trees that a client of the MCP server drives over standard input and output.

use std::io::{BufRead as _, BufReader, Error, Lines, Result, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout};

use serde_json::{Value as Json, json};

use crate::Measured;
use crate::process::Process;

const ACTIONS: usize = 110;
/// Pairs of calls before the measurement.
const WARM: usize = 10;
const PAIRS: usize = 100;

/// `next_step` and `submit` of a run that only the database has.
pub fn in_database(folder: &Path) -> Result<Measured> {
    pairs(folder, "run://bench")
}

/// `next_step` and `submit` of a run that has a document, too.
pub fn with_document(folder: &Path) -> Result<Measured> {
    let folder = std::fs::canonicalize(folder)?;
    let handle = format!("file://{}", folder.join("run.json").display());
    pairs(&folder, &handle)
}

fn pairs(folder: &Path, handle: &str) -> Result<Measured> {
    std::fs::write(folder.join("tree.yaml"), tree())?;
    std::fs::write(folder.join("flowstone.edn"), "{}")?;
    let (mut process, input, output) = Process::talk(folder, &["mcp", "--tools", "tree"])?;
    let mut client = Client {
        input,
        output: BufReader::new(output).lines(),
        last: 0,
    };
    let about = json!({"name": "bench", "version": "1"});
    client.request(
        "initialize",
        &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}),
    )?;
    let of_run = |more: Json| {
        let mut arguments = json!({"trace_output": handle});
        if let (Some(all), Json::Object(more)) = (arguments.as_object_mut(), more) {
            all.extend(more);
        }
        arguments
    };
    let start = of_run(json!({"tree_uri": "tree.yaml", "gate": false}));
    client.tool("start_execution", &start)?;
    let (next, submit) = (of_run(json!({})), of_run(json!({"status": "success"})));
    let mut before = 0.0;
    for pair in 0..WARM + PAIRS {
        if pair == WARM {
            before = process.cpu_seconds()?;
        }
        client.tool("next_step", &next)?;
        client.tool("submit", &submit)?;
    }
    let millis = (process.cpu_seconds()? - before) * 1000.0 / PAIRS as f64;
    process.kill()?;
    Ok(Measured {
        words: format!("CPU {millis:.2} ms a pair"),
        is_met: millis < 2.0,
    })
}

fn tree() -> String {
    let mut text = "type: sequence\nname: All\nchildren:\n".to_owned();
    for action in 0..ACTIONS {
        text += &format!(
            "  - type: action\n    name: A{action}\n    steps:\n      - instruct: Do part {action}.\n"
        );
    }
    text
}

/// A client of the server.
struct Client {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    last: u64,
}

impl Client {
    fn tool(&mut self, name: &str, arguments: &Json) -> Result<()> {
        let params = json!({"name": name, "arguments": arguments});
        let answer = self.request("tools/call", &params)?;
        match answer["result"]["isError"] == false {
            true => Ok(()),
            false => Err(Error::other(answer.to_string())),
        }
    }

    fn request(&mut self, method: &str, params: &Json) -> Result<Json> {
        self.last += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        writeln!(self.input, "{request}")?;
        for line in &mut self.output {
            let message: Json = serde_json::from_str(&line?)?;
            // The server notifies its clients, too.
            if message["id"] == self.last {
                return Ok(message);
            }
        }
        Err(Error::other("the server has ended"))
    }
}
