//! Tar files: headers of 512 bytes, each followed by the bytes of a file.

use flowstone_model::registry::VersionFiles;

use super::{Files, InstallationError, bad, plain};

/// The size of a header, and what contents are filled up to.
pub(super) const BLOCK: usize = 512;
/// Maximum number of bytes of a name in its field, and in that of its beginning.
const NAME: usize = 100;
const PREFIX: usize = 155;

/// Reads the files of an archive.
pub(super) fn read(bytes: &[u8], files: &mut Files) -> Result<(), InstallationError> {
    let mut at = 0;
    loop {
        let header = bytes.get(at..at + BLOCK).ok_or_else(cut)?;
        if header.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let header = Header::read(header)?;
        at += BLOCK;
        let content = bytes.get(at..).and_then(|rest| rest.get(..header.size));
        let content = content.ok_or_else(cut)?;
        match header.kind {
            0 | b'0' | b'7' => {
                if header.size > files.room() {
                    return Err(InstallationError::TooLarge);
                }
                files.add(&header.path, content.to_vec())?;
            }
            b'5' => drop(plain(header.path.trim_end_matches('/'))?),
            b'g' => {}
            b'x' => check_facts(content)?,
            b'1' | b'2' => {
                let path = header.path.escape_debug();
                return Err(bad(format!("it has the link `{path}`")));
            }
            _ => {
                let path = header.path.escape_debug();
                return Err(bad(format!("`{path}` is not an ordinary file")));
            }
        }
        at += header.size.div_ceil(BLOCK) * BLOCK;
    }
}

fn cut() -> InstallationError {
    bad("it ends too early")
}

struct Header {
    path: String,
    size: usize,
    kind: u8,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Header, InstallationError> {
        let sum = number(&bytes[148..156])?;
        let blank = |idx: usize| (148..156).contains(&idx);
        let own: usize = bytes
            .iter()
            .enumerate()
            .map(|(idx, byte)| usize::from(if blank(idx) { b' ' } else { *byte }))
            .sum();
        if sum != own {
            return Err(bad("the checksum of a header is wrong"));
        }
        let name = text(&bytes[..NAME])?;
        let is_ustar = &bytes[257..262] == b"ustar";
        let prefix = match is_ustar {
            true => text(&bytes[345..345 + PREFIX])?,
            false => String::new(),
        };
        Ok(Header {
            path: match prefix.is_empty() {
                true => name,
                false => format!("{prefix}/{name}"),
            },
            size: number(&bytes[124..136])?,
            kind: bytes[156],
        })
    }
}

/// Reads a field up to its first zero.
fn text(field: &[u8]) -> Result<String, InstallationError> {
    let end = field.iter().position(|byte| *byte == 0);
    let field = &field[..end.unwrap_or(field.len())];
    let text = std::str::from_utf8(field).map_err(|_| bad("the name of a file is not UTF-8"))?;
    Ok(text.to_owned())
}

/// Reads an octal number.
fn number(field: &[u8]) -> Result<usize, InstallationError> {
    let digits: Vec<u8> = field
        .iter()
        .copied()
        .skip_while(|byte| *byte == b' ')
        .take_while(|byte| !matches!(byte, 0 | b' '))
        .collect();
    let text = String::from_utf8(digits).unwrap_or_default();
    usize::from_str_radix(&text, 8).map_err(|_| bad("a header has a wrong number"))
}

/// Refuses facts about the next entry that would change where it is, or how long.
fn check_facts(content: &[u8]) -> Result<(), InstallationError> {
    let text = String::from_utf8_lossy(content);
    let changes = ["path=", "linkpath=", "size="];
    let is_change = |line: &str| {
        let fact = line.split_once(' ').map_or(line, |(_, fact)| fact);
        changes.iter().any(|key| fact.starts_with(key))
    };
    match text.lines().any(is_change) {
        true => Err(bad("the path of a file is too long")),
        false => Ok(()),
    }
}

/// Writes an archive that is the same for the same files: no times, users or rights.
pub(super) fn write(files: &VersionFiles) -> Result<Vec<u8>, InstallationError> {
    let mut out = Vec::new();
    for (path, bytes) in files {
        out.extend(header(path, bytes.len())?);
        out.extend_from_slice(bytes);
        out.resize(out.len().div_ceil(BLOCK) * BLOCK, 0);
    }
    out.resize(out.len() + 2 * BLOCK, 0);
    Ok(out)
}

fn header(path: &str, size: usize) -> Result<[u8; BLOCK], InstallationError> {
    let (prefix, name) = match path.len() <= NAME {
        true => ("", path),
        false => {
            let fits = |at: &usize| *at <= PREFIX && path.len() - at - 1 <= NAME;
            let mut cuts = path.match_indices('/').map(|(at, _)| at).filter(fits);
            let at = cuts.next();
            let at = at.ok_or_else(|| bad(format!("the path `{path}` is too long")))?;
            (&path[..at], &path[at + 1..])
        }
    };
    let mut header = [0; BLOCK];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size:011o}\0"));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    put(345, prefix);
    let sum: usize = header.iter().map(|byte| usize::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

#[cfg(test)]
pub(super) mod tests {
    use super::{BLOCK, Files, header, read};

    /// Returns an archive with entries of a kind, each with its path and the target of a link.
    pub(in super::super) fn archive(entries: &[(u8, &str, &str, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (kind, path, link, bytes) in entries {
            let mut head = header("x", bytes.len()).expect("a header");
            head[..100].fill(0);
            head[..path.len()].copy_from_slice(path.as_bytes());
            head[156] = *kind;
            head[157..157 + link.len()].copy_from_slice(link.as_bytes());
            head[148..156].fill(b' ');
            let sum: usize = head.iter().map(|byte| usize::from(*byte)).sum();
            head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
            out.extend(head);
            out.extend_from_slice(bytes);
            out.resize(out.len().div_ceil(BLOCK) * BLOCK, 0);
        }
        out.resize(out.len() + 2 * BLOCK, 0);
        out
    }

    fn refused(entries: &[(u8, &str, &str, &[u8])]) -> String {
        let mut all = vec![(b'0', "flow.edn", "", &b"{}"[..])];
        all.extend_from_slice(entries);
        let mut files = Files::default();
        match read(&archive(&all), &mut files) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn only_plain_files_are_taken() {
        assert_eq!(refused(&[(b'0', "parts/a.edn", "", b"1")]), "");
        assert_eq!(refused(&[(b'5', "parts/", "", b"")]), "");
        for (kind, path, link) in [
            (b'2', "a.edn", "/etc/passwd"),
            (b'1', "a.edn", "flow.edn"),
            (b'3', "a.edn", ""),
            (b'L', "a.edn", ""),
            (b'0', "/etc/passwd", ""),
            (b'0', "../a.edn", ""),
            (b'0', "parts/../../a.edn", ""),
            (b'0', "c:\\a.edn", ""),
            (b'0', "c:a.edn", ""),
            (b'0', "flow.edn", ""),
            (b'5', "../out/", ""),
        ] {
            let error = refused(&[(kind, path, link, b"")]);
            assert!(
                error.starts_with("the package cannot be used"),
                "{path}: {error}"
            );
        }
        let error = refused(&[(b'x', "a", "", b"20 path=../../a.edn\n")]);
        assert!(error.contains("too long"), "{error}");
    }
}
