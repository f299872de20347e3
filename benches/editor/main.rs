//! The language server in figures: how long an editor waits for completion, hover and findings, over all example flows and
//! a flow of 500 lines. `cargo bench --bench editor`; `FLOWSTONE_BENCH_PROGRAM` measures another build.

#[path = "../../tests/cli/lsp/client.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod client;

use std::io::{Result, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use client::Client;
use serde_json::json;

/// An answer that takes longer is noticed by a person who types.
const TARGET: Duration = Duration::from_millis(50);
/// Characters between two places of a text that are measured.
const STRIDE: usize = 12;
/// Changes of each text after which its findings are awaited.
const CHANGES: usize = 8;

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut texts = flows()?;
    for (name, text) in &texts {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(folder.path()))?;
        std::fs::write(path, text)?;
    }
    std::fs::write(folder.path().join("flowstone.edn"), "{}")?;
    texts.push(("flows/long.edn".to_owned(), long_flow()));
    let program = std::env::var_os("FLOWSTONE_BENCH_PROGRAM");
    let mut command =
        Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_flowstone").into()));
    command
        .arg("lsp")
        .current_dir(folder.path())
        .env("HOME", folder.path());
    let begun = Instant::now();
    let mut client = Client::start(command, folder.path(), &json!({}));
    let mut out = stdout();
    writeln!(
        out,
        "from the start of the process to its first answer: {}\n",
        shown(begun.elapsed())
    )?;
    writeln!(
        out,
        "{:<44}{:>8}{:>10}{:>10}{:>10}  met",
        "row", "times", "median", "95 %", "most"
    )?;
    let (mut completion, mut hover, mut findings, mut long) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (name, text) in &texts {
        client.open(name, text);
        client.diagnostics(name);
        let is_long = name.ends_with("long.edn");
        for place in places(text) {
            completion.push(timed(|| {
                drop(client.at("textDocument/completion", name, place))
            }));
            hover.push(timed(|| drop(client.at("textDocument/hover", name, place))));
        }
        for _ in 0..CHANGES {
            let took = timed(|| {
                client.edit(name, (0, 0), (0, 0), " ");
                client.diagnostics(name);
            });
            if is_long {
                long.push(took)
            } else {
                findings.push(took)
            }
        }
    }
    row("completion, over all flows", completion)?;
    row("hover, over all flows", hover)?;
    row("findings after a change, over all flows", findings)?;
    row("findings after a change, flow of 500 lines", long)?;
    client.end();
    Ok(())
}

fn timed(body: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    body();
    begun.elapsed()
}

fn row(name: &str, mut took: Vec<Duration>) -> Result<()> {
    took.sort();
    let at = |part: usize| {
        took.get((took.len() * part / 100).min(took.len().saturating_sub(1)))
            .copied()
            .unwrap_or_default()
    };
    let met = if at(95) <= TARGET { "yes" } else { "NO" };
    let (half, most, all) = (shown(at(50)), shown(at(95)), shown(at(100)));
    writeln!(
        stdout(),
        "{name:<44}{:>8}{half:>10}{most:>10}{all:>10}  {met}",
        took.len()
    )
}

fn shown(took: Duration) -> String {
    format!("{:.2} ms", took.as_secs_f64() * 1000.0)
}

/// Returns the example flows, by their paths in the repository.
fn flows() -> Result<Vec<(String, String)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(root.join("flows"))? {
        found.push(entry?.path());
    }
    found.retain(|path| path.extension().is_some_and(|ending| ending == "edn"));
    found.sort();
    let mut texts = Vec::new();
    for path in found {
        let name = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .display()
            .to_string();
        texts.push((name, std::fs::read_to_string(&path)?));
    }
    Ok(texts)
}

/// Returns a flow of 500 lines: steps, functions, branches and local names.
fn long_flow() -> String {
    let mut text = String::from(
        "{:slug :long\n :concurrency {:type :singleton :on-new-version :coexist}\n :flow\n '(let [{:keys [path]} (flow/input)\n",
    );
    for number in 0..123 {
        text.push_str(&format!(
            "       step-{number} (flow/step :kv :recall-{number}\n                   {{:operation :get\n                    \
             :key (str path \"/\" {number})}})\n       size-{number} (if (map? step-{number}) (count (keys step-{number})) {number})\n"
        ));
    }
    text.push_str("       ]\n    (+ size-0\n       size-1\n       size-122))}\n");
    text
}

/// Returns places all over a text.
fn places(text: &str) -> Vec<(usize, usize)> {
    let (mut line, mut column) = (0, 0);
    let mut found = Vec::new();
    for (idx, char) in text.chars().enumerate() {
        if idx % STRIDE == 0 {
            found.push((line, column));
        }
        (line, column) = match char {
            '\n' => (line + 1, 0),
            char => (line, column + char.len_utf16()),
        };
    }
    found
}
