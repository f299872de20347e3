//! Zip files: a directory at the end names the entries. Only stored and deflated files are read.

use std::io::Read as _;

use flate2::Crc;
use flate2::read::DeflateDecoder;

use super::{Files, InstallationError, MOST_FILES, bad, plain};

const END: &[u8] = b"PK\x05\x06";
const ENTRY: &[u8] = b"PK\x01\x02";
const FILE: &[u8] = b"PK\x03\x04";
/// Maximum number of bytes after the directory: its own 22, and a comment.
const END_MOST: usize = 22 + 0xffff;
/// The kinds of files in the rights that Unix systems store.
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;

/// Reads the files of an archive.
pub(super) fn read(bytes: &[u8], files: &mut Files) -> Result<(), InstallationError> {
    let from = bytes.len().saturating_sub(END_MOST);
    let tail = &bytes[from..];
    let end = tail.windows(END.len()).rposition(|it| it == END);
    let end = from + end.ok_or_else(|| bad("it has no directory"))?;
    let count = usize::from(short(bytes, end + 10)?);
    if count > 2 * MOST_FILES {
        return Err(InstallationError::TooLarge);
    }
    let mut at = long(bytes, end + 16)? as usize;
    for _ in 0..count {
        at = entry(bytes, at, files)?;
    }
    Ok(())
}

/// Reads an entry of the directory, and returns where the next one is.
fn entry(bytes: &[u8], at: usize, files: &mut Files) -> Result<usize, InstallationError> {
    if part(bytes, at, 4)? != ENTRY {
        return Err(bad("its directory is damaged"));
    }
    let (flags, method) = (short(bytes, at + 8)?, short(bytes, at + 10)?);
    let sum = long(bytes, at + 16)?;
    let packed = long(bytes, at + 20)? as usize;
    let size = long(bytes, at + 24)? as usize;
    let lengths = [28, 30, 32].map(|offset| short(bytes, at + offset).map(usize::from));
    let [name_length, extra, comment] = lengths;
    let (name_length, extra, comment) = (name_length?, extra?, comment?);
    let kind = (long(bytes, at + 38)? >> 16) & KIND;
    let local = long(bytes, at + 42)? as usize;
    let next = at + 46 + name_length + extra + comment;
    let name = std::str::from_utf8(part(bytes, at + 46, name_length)?);
    let name = name.map_err(|_| bad("the name of a file is not UTF-8"))?;
    if flags & 1 != 0 {
        return Err(bad(format!("`{}` is encrypted", name.escape_debug())));
    }
    if let Some(folder) = name.strip_suffix('/') {
        plain(folder)?;
        return Ok(next);
    }
    if ![0, REGULAR].contains(&kind) {
        let what = if kind == FOLDER { "a folder" } else { "a link" };
        return Err(bad(format!("`{}` is {what}", name.escape_debug())));
    }
    if size > files.room() {
        return Err(InstallationError::TooLarge);
    }
    if part(bytes, local, 4)? != FILE {
        return Err(bad("its directory is damaged"));
    }
    let skipped = usize::from(short(bytes, local + 26)?) + usize::from(short(bytes, local + 28)?);
    let stored = part(bytes, local + 30 + skipped, packed)?;
    let content = match method {
        0 => stored.to_vec(),
        8 => {
            let mut content = Vec::new();
            let read = DeflateDecoder::new(stored)
                .take(size as u64 + 1)
                .read_to_end(&mut content);
            read.map_err(|error| bad(format!("it cannot be unpacked: {error}")))?;
            content
        }
        _ => return Err(bad("it is packed in a way that is not known")),
    };
    let mut found = Crc::new();
    found.update(&content);
    if content.len() != size || found.sum() != sum {
        return Err(bad(format!("`{}` is damaged", name.escape_debug())));
    }
    files.add(name, content)?;
    Ok(next)
}

fn part(bytes: &[u8], at: usize, length: usize) -> Result<&[u8], InstallationError> {
    let found = at.checked_add(length).and_then(|end| bytes.get(at..end));
    found.ok_or_else(|| bad("it ends too early"))
}

fn short(bytes: &[u8], at: usize) -> Result<u16, InstallationError> {
    let part = part(bytes, at, 2)?;
    Ok(u16::from_le_bytes([part[0], part[1]]))
}

fn long(bytes: &[u8], at: usize) -> Result<u32, InstallationError> {
    let part = part(bytes, at, 4)?;
    Ok(u32::from_le_bytes([part[0], part[1], part[2], part[3]]))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;

    use super::{Crc, END, ENTRY, FILE};
    use crate::installations::package::read;

    /// Returns an archive with one entry beside the main file.
    fn archive(name: &str, mode: u32, content: &[u8], is_packed: bool, claimed: u32) -> Vec<u8> {
        let (mut out, mut directory) = (Vec::new(), Vec::new());
        let entries = [
            ("flow.edn", 0o100_644, &b"{:slug :a :flow '1}"[..]),
            (name, mode, content),
        ];
        for (name, mode, content) in entries {
            let stored = match is_packed {
                false => content.to_vec(),
                true => {
                    let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
                    packed.write_all(content).expect("packed");
                    packed.finish().expect("packed")
                }
            };
            let mut sum = Crc::new();
            sum.update(content);
            let size = if name == "flow.edn" {
                content.len() as u32
            } else {
                claimed
            };
            let mut facts = Vec::new();
            facts.extend(20_u16.to_le_bytes());
            facts.extend(0_u16.to_le_bytes());
            facts.extend(if is_packed { 8_u16 } else { 0 }.to_le_bytes());
            facts.extend([0; 4]);
            facts.extend(sum.sum().to_le_bytes());
            facts.extend((stored.len() as u32).to_le_bytes());
            facts.extend(size.to_le_bytes());
            facts.extend((name.len() as u16).to_le_bytes());
            facts.extend(0_u16.to_le_bytes());
            let local = out.len() as u32;
            out.extend(FILE);
            out.extend(&facts);
            out.extend(name.as_bytes());
            out.extend(stored);
            directory.extend(ENTRY);
            directory.extend(0x0314_u16.to_le_bytes());
            directory.extend(&facts);
            directory.extend([0; 6]);
            directory.extend((mode << 16).to_le_bytes());
            directory.extend(local.to_le_bytes());
            directory.extend(name.as_bytes());
        }
        let at = out.len() as u32;
        out.extend(&directory);
        out.extend(END);
        out.extend([0; 4]);
        out.extend([2, 0, 2, 0]);
        out.extend((directory.len() as u32).to_le_bytes());
        out.extend(at.to_le_bytes());
        out.extend([0; 2]);
        out
    }

    #[test]
    fn stored_and_deflated_files_are_read() {
        for is_packed in [false, true] {
            let bytes = archive("parts/a.edn", 0o100_644, b"12", is_packed, 2);
            let files = read(&bytes).expect("read");
            assert_eq!(files["parts/a.edn"], b"12");
        }
    }

    #[test]
    fn links_paths_that_leave_and_wrong_sizes_are_refused() {
        for (name, mode, claimed) in [
            ("a.edn", 0o120_777, 2),
            ("../a.edn", 0o100_644, 2),
            ("/a.edn", 0o100_644, 2),
            ("a/../../b.edn", 0o100_644, 2),
            ("flow.edn", 0o100_644, 2),
            ("a.edn", 0o100_644, 1),
            ("a.edn", 0o100_644, 3),
            ("a.edn", 0o100_644, u32::MAX),
        ] {
            let bytes = archive(name, mode, b"12", true, claimed);
            assert!(read(&bytes).is_err(), "{name} {mode:o} {claimed}");
        }
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let zeros = vec![0; 30_000_000];
        let bytes = archive("a.edn", 0o100_644, &zeros, true, 30_000_000);
        assert!(bytes.len() < 200_000);
        assert!(read(&bytes).is_err());
        let bytes = archive("a.edn", 0o100_644, &zeros, true, 10);
        assert!(read(&bytes).is_err());
    }
}
