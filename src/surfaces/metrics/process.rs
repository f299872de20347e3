//! Figures about the process, under the names that all exporters of Prometheus use.

use std::fmt::Write as _;
use std::fs;

/// Returns the figures as text, as far as the system tells them.
pub(super) fn text() -> String {
    let mut out = String::new();
    let mut add = |name: &str, kind: &str, help: &str, value: Option<f64>| {
        let Some(value) = value else {
            return;
        };
        let sample = match kind {
            "counter" => format!("{name}_total"),
            _ => name.to_owned(),
        };
        // A string takes everything.
        let _ = write!(
            out,
            "# HELP {name} {help}.\n# TYPE {name} {kind}\n{sample} {value}\n"
        );
    };
    let stat = Stat::read();
    let field = |of: fn(&Stat) -> f64| stat.as_ref().map(of);
    let handles = || Some(fs::read_dir("/proc/self/fd").ok()?.count() as f64);
    add(
        "process_cpu_seconds",
        "counter",
        "Processor time of the process",
        field(|stat| stat.cpu_seconds),
    );
    add(
        "process_resident_memory_bytes",
        "gauge",
        "Memory that the process holds",
        field(|stat| stat.resident_bytes),
    );
    add(
        "process_virtual_memory_bytes",
        "gauge",
        "Size of the address space of the process",
        field(|stat| stat.virtual_bytes),
    );
    add(
        "process_start_time_seconds",
        "gauge",
        "When the process began",
        field(|stat| stat.began_seconds),
    );
    add(
        "process_threads",
        "gauge",
        "Threads of the process",
        field(|stat| stat.threads),
    );
    add(
        "process_open_fds",
        "gauge",
        "Open file handles of the process",
        handles(),
    );
    out
}

/// What Linux tells about a process.
struct Stat {
    cpu_seconds: f64,
    resident_bytes: f64,
    virtual_bytes: f64,
    began_seconds: f64,
    threads: f64,
}

/// Ticks of the clock in a second, and the size of a page, as `/proc` counts them on the processors that Linux runs on here.
const TICKS: f64 = 100.0;

impl Stat {
    fn read() -> Option<Stat> {
        let text = fs::read_to_string("/proc/self/stat").ok()?;
        // The name of the program may hold anything, also spaces.
        let (_, fields) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let number = |at: usize| fields.get(at)?.trim().parse::<f64>().ok();
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let kilobytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().split(' ').next()?.parse::<f64>().ok()
        };
        let system = fs::read_to_string("/proc/stat").ok()?;
        let booted = system.lines().find_map(|line| line.strip_prefix("btime "));
        let booted: f64 = booted?.trim().parse().ok()?;
        Some(Stat {
            cpu_seconds: (number(11)? + number(12)?) / TICKS,
            resident_bytes: kilobytes("VmRSS:")? * 1024.0,
            virtual_bytes: number(20)?,
            began_seconds: booted + number(19)? / TICKS,
            threads: number(17)?,
        })
    }
}
