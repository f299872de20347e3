//! The machine: processor, kernel, disk, and what a sync costs on it.

use std::fs::{File, read_to_string};
use std::io::{Result, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Instant;

/// Describes the machine in a few lines.
pub fn words(folder: &Path) -> Result<String> {
    let cpu = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let (first, again) = sync_micros(folder)?;
    Ok(format!(
        "{model}, {cores} cores, Linux {}, {}\na page written and synced: {first} us at the end of a file, {again} us over one that is there (medians)",
        kernel.trim(),
        file_system(folder)
    ))
}

/// The file system that holds a folder.
fn file_system(folder: &Path) -> String {
    let mounts = read_to_string("/proc/mounts").unwrap_or_default();
    let mounts = mounts.lines().filter_map(|line| {
        let mut parts = line.split(' ');
        let (device, at, kind) = (parts.next()?, parts.next()?, parts.next()?);
        folder.starts_with(at).then_some((at.len(), device, kind))
    });
    match mounts.max_by_key(|(length, ..)| *length) {
        Some((_, device, kind)) => format!("{kind} on {device}"),
        None => "unknown disk".to_owned(),
    }
}

/// What it takes to sync a page: where the file grows, and where it does not.
fn sync_micros(folder: &Path) -> Result<(u128, u128)> {
    let page = [7; 4096];
    let mut file = File::create(folder.join("sync"))?;
    let mut median = |is_growing: bool| -> Result<u128> {
        let mut times = Vec::new();
        for _ in 0..200 {
            if !is_growing {
                file.seek(SeekFrom::Start(0))?;
            }
            let begun = Instant::now();
            file.write_all(&page)?;
            file.sync_data()?;
            times.push(begun.elapsed().as_micros());
        }
        times.sort_unstable();
        Ok(times[times.len() / 2])
    };
    Ok((median(true)?, median(false)?))
}
