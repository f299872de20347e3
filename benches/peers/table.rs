//! Runs what is wanted and draws the table.

use std::io::{Result, Write, stdout};
use std::path::Path;

use crate::kernels::{KERNELS, Kernel, Program, WHOLE, Whole};
use crate::peer::{self, Kind, Peer};
use crate::process;

const HEADER: &str = "\
Milliseconds, the median of 9 runs in one process after 3 s of warm-up. CPU time where the peer can tell it:
flowstone and jvm of the thread (without the JVM's collector and compiler), nbb, lua and python of the process;
wall clock for the others. `best` is flowstone's time in parts of the best interpreter's, `jvm` of the JVM's.";

/// Measures the rows whose name contains one of `filters` (all, without one), and prints them.
pub fn run(filters: &[String]) -> Result<()> {
    let wanted =
        |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter));
    let (peers, absent) = peer::all();
    let folder = tempfile::tempdir()?;
    let mut out = stdout();
    writeln!(out, "{HEADER}")?;
    if !absent.is_empty() {
        writeln!(out, "Not here: {}.", absent.join(", "))?;
    }
    let mut notes = Vec::new();
    let kernels: Vec<&Kernel> = KERNELS.iter().filter(|row| wanted(row.name)).collect();
    if !kernels.is_empty() {
        write!(out, "\n{:<18}", "kernel")?;
        for peer in &peers {
            write!(out, "{:>10}", peer.name)?;
        }
        writeln!(out, "{:>8}{:>7}{:>7}  met", "target", "best", "jvm")?;
        for kernel in kernels {
            row(&mut out, kernel, &peers, folder.path(), &mut notes)?;
        }
    }
    let whole: Vec<&Whole> = WHOLE.iter().filter(|row| wanted(row.name)).collect();
    if !whole.is_empty() {
        write!(
            out,
            "\nWhole processes, medians of 11: wall clock and CPU in ms, the most that was resident in MB.\n\
             \n{:<24}{:<10}{:>8}{:>8}{:>8}  targets\n",
            "process", "peer", "wall", "cpu", "MB"
        )?;
        for row in whole {
            processes(&mut out, row, &peers, folder.path(), &mut notes)?;
        }
    }
    for note in notes {
        writeln!(out, "{note}")?;
    }
    Ok(())
}

/// Measures one kernel in every peer.
fn row(
    out: &mut impl Write,
    kernel: &Kernel,
    peers: &[Peer],
    folder: &Path,
    notes: &mut Vec<String>,
) -> Result<()> {
    write!(out, "{:<18}", kernel.name)?;
    let (mut own, mut jvm, mut best) = (None, None, None::<f64>);
    let mut expected: Option<String> = None;
    for peer in peers {
        let millis = match peer.run(kernel, folder) {
            None => {
                write!(out, "{:>10}", "")?;
                continue;
            }
            Some(Err(error)) => {
                notes.push(format!("{}: {} fails: {error}", kernel.name, peer.name));
                write!(out, "{:>10}", "fails")?;
                continue;
            }
            Some(Ok(outcome)) => {
                let expected = expected.get_or_insert_with(|| outcome.result.clone());
                if *expected != outcome.result {
                    notes.push(format!(
                        "{}: {} gives {} instead of {expected}",
                        kernel.name, peer.name, outcome.result
                    ));
                }
                outcome.millis
            }
        };
        write!(out, "{millis:>10.1}")?;
        out.flush()?;
        match peer.kind {
            Kind::Own => own = Some(millis),
            Kind::Jvm => jvm = Some(millis),
            Kind::Interpreter => best = Some(best.map_or(millis, |best| best.min(millis))),
        }
    }
    let target = kernel
        .target
        .map_or(String::new(), |target| format!("{target}"));
    let ratio = |of: Option<f64>| match (own, of) {
        (Some(own), Some(of)) => format!("{:.2}", own / of),
        _ => String::new(),
    };
    // Without a target of its own, a kernel has to beat every interpreter.
    let met = match (own, kernel.target.or(best)) {
        (Some(own), Some(limit)) if own <= limit => "yes",
        (Some(_), Some(_)) => "NO",
        _ => "",
    };
    writeln!(out, "{target:>8}{:>7}{:>7}  {met}", ratio(best), ratio(jvm))
}

/// Measures one program as whole processes of Flowstone and of the Clojures.
fn processes(
    out: &mut impl Write,
    row: &Whole,
    peers: &[Peer],
    folder: &Path,
    notes: &mut Vec<String>,
) -> Result<()> {
    for peer in peers.iter().filter(|peer| peer.is_clojure()) {
        let own = peer.kind == Kind::Own;
        let command = command(row, peer, folder)?;
        let Some(cost) = process::measure(&command, 11) else {
            notes.push(format!("{}: {} fails", row.name, peer.name));
            continue;
        };
        write!(
            out,
            "{:<24}{:<10}{:>8.1}{:>8.1}{:>8.1}",
            row.name, peer.name, cost.wall, cost.cpu, cost.resident
        )?;
        if own {
            let limits = [
                (row.wall, cost.wall, "ms"),
                (row.cpu, cost.cpu, "ms CPU"),
                (Some(row.resident), cost.resident, "MB"),
            ];
            for (limit, got, unit) in limits {
                if let Some(limit) = limit {
                    let met = if got <= limit { "met" } else { "NOT MET" };
                    write!(out, "  {limit} {unit}: {met}")?;
                }
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

fn command(row: &Whole, peer: &Peer, folder: &Path) -> Result<Vec<String>> {
    let own = peer.kind == Kind::Own;
    let mut command = if own {
        let words = [env!("CARGO_BIN_EXE_flowstone"), "eval", "--allow-files"];
        words.map(str::to_owned).to_vec()
    } else {
        peer.command.clone()
    };
    match row.program {
        Program::Expression(text) => {
            if !own {
                command.push("-e".to_owned());
            }
            command.push(text.to_owned());
        }
        Program::File(name) => {
            let data = folder.join("rows.edn");
            if !data.exists() {
                std::fs::write(&data, rows())?;
            }
            let path = peer::kernels().join(format!("memory/{name}.cljc"));
            let text = format!(
                "(def path {:?})\n{}",
                data.display().to_string(),
                std::fs::read_to_string(path)?
            );
            let file = folder.join(format!("memory_{name}.cljc"));
            std::fs::write(&file, text)?;
            command.push(file.display().to_string());
        }
    }
    Ok(command)
}

/// Returns a vector of maps of five megabytes, as text.
fn rows() -> String {
    let mut text = String::from("[");
    let mut idx = 0;
    while text.len() < 5_000_000 {
        text.push_str(&format!(
            "{{:id {idx}, :name \"row number {idx}\", :tags [:a :b/c \"d\\n\"], :share {}.5, :open? {}, :next nil}}\n",
            idx % 100,
            idx % 2 == 0
        ));
        idx += 1;
    }
    text.push(']');
    text
}
