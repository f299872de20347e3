//! Speed and size beside other Clojures and other interpreters: one table.
//!
//! `cargo bench --bench peers`, or with parts of row names after `--`. Peers are found on `PATH` or through
//! `FLOWSTONE_PEER_<NAME>`; what is absent is left out, and the table says so. Needs a Unix system, for the
//! processor time and the memory of processes.

#[cfg(unix)]
mod flowstone;
mod kernels;
#[cfg(unix)]
mod peer;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod table;

#[cfg(unix)]
fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    match args.split_first() {
        // The two ways in which the program starts itself, so that rows do not disturb one another.
        Some((mode, rest)) if mode == flowstone::MODE => flowstone::run(rest),
        Some((mode, rest)) if mode == process::MODE => process::run(rest),
        _ => table::run(&args),
    }
}

#[cfg(not(unix))]
fn main() {
    assert!(
        !kernels::KERNELS.is_empty(),
        "the kernels need a Unix system"
    );
}
