//! Large texts of journals: equal texts are stored once, in pieces that texts with the same parts share.
//!
//! A cut depends only on the bytes around it. So a conversation that is one message longer than the previous one has
//! the same pieces except the last: the stored size grows with the messages, not with their sum.

use std::collections::HashSet;

use flowstone_model::codec::digest_bytes;
use flowstone_model::ports::{Removed, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::failure::failed;

/// The additions to the table of the journal.
pub(super) const FORMAT_2: &str = "
ALTER TABLE payload ADD COLUMN parts BLOB;
CREATE TABLE piece (
    hash BLOB PRIMARY KEY,
    bytes BLOB NOT NULL
) WITHOUT ROWID;
";

/// Minimum size of a text that is cut into pieces, in bytes.
const CUT_BYTES: usize = 16 << 10;
/// Minimum size of a piece in bytes, except the last one.
const SHORTEST: usize = 1 << 10;
const LONGEST: usize = 16 << 10;
/// A cut is made where these bits of the rolling hash are zero: every 4 KiB on average.
const MASK: u64 = 0xfff << 40;
/// Size of a piece's name in bytes.
const NAME: usize = 16;

/// Stores a text, and returns its hash.
pub(super) fn keep(db: &Connection, text: &str) -> Result<String, StoreError> {
    let hash = digest_bytes(text.as_bytes());
    let is_there = db
        .prepare_cached("SELECT 1 FROM payload WHERE hash = ?1")
        .and_then(|mut sql| sql.exists([hash.as_str()]))
        .map_err(failed)?;
    if is_there {
        return Ok(hash);
    }
    let (whole, parts) = match text.len() >= CUT_BYTES {
        true => ("", Some(keep_pieces(db, text.as_bytes())?)),
        false => (text, None),
    };
    db.prepare_cached("INSERT INTO payload (hash, text, parts) VALUES (?1, ?2, ?3)")
        .and_then(|mut sql| sql.execute(params![hash, whole, parts]))
        .map_err(failed)?;
    Ok(hash)
}

/// Stores the pieces of a text, and returns their concatenated names.
fn keep_pieces(db: &Connection, mut rest: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut names = Vec::new();
    let mut sql = db
        .prepare_cached("INSERT OR IGNORE INTO piece (hash, bytes) VALUES (?1, ?2)")
        .map_err(failed)?;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(cut(rest));
        let name = name(piece)?;
        sql.execute(params![name, piece]).map_err(failed)?;
        names.extend(name);
        rest = after;
    }
    Ok(names)
}

fn name(piece: &[u8]) -> Result<[u8; NAME], StoreError> {
    let digest = digest_bytes(piece);
    let start = digest.get(..2 * NAME).unwrap_or_default();
    u128::from_str_radix(start, 16)
        .map(u128::to_be_bytes)
        .map_err(|error| StoreError::Internal(format!("a digest is not a number: {error}")))
}

/// Joins the pieces of a text.
pub(super) fn assemble(db: &Connection, names: &[u8]) -> Result<String, StoreError> {
    let damaged = |detail: String| StoreError::Damaged {
        path: String::new(),
        detail,
    };
    let mut sql = db
        .prepare_cached("SELECT bytes FROM piece WHERE hash = ?1")
        .map_err(failed)?;
    let mut bytes: Vec<u8> = Vec::new();
    for name in names.chunks(NAME) {
        let piece: Option<Vec<u8>> = sql
            .query_row([name], |row| row.get(0))
            .optional()
            .map_err(failed)?;
        match piece {
            Some(piece) => bytes.extend(piece),
            None => return Err(damaged("a piece of a payload is missing".to_owned())),
        }
    }
    String::from_utf8(bytes).map_err(|error| damaged(format!("a payload is not text: {error}")))
}

/// Removes the pieces that no text uses.
pub(super) fn sweep_pieces(db: &Connection) -> Result<Removed, StoreError> {
    let mut used: HashSet<[u8; NAME]> = HashSet::new();
    let mut sql = db
        .prepare_cached("SELECT parts FROM payload WHERE parts IS NOT NULL")
        .map_err(failed)?;
    let mut rows = sql.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let names: Vec<u8> = row.get(0).map_err(failed)?;
        used.extend(names.as_chunks().0);
    }
    let mut sql = db
        .prepare_cached("SELECT hash, length(bytes) FROM piece")
        .map_err(failed)?;
    let found = sql
        .query_map([], |row| {
            Ok((row.get::<_, [u8; NAME]>(0)?, row.get::<_, i64>(1)?))
        })
        .map_err(failed)?;
    let mut removed = Removed::default();
    let mut unused = Vec::new();
    for piece in found {
        let (name, bytes) = piece.map_err(failed)?;
        if !used.contains(&name) {
            removed.bytes += bytes.unsigned_abs();
            unused.push(name);
        }
    }
    let mut sql = db
        .prepare_cached("DELETE FROM piece WHERE hash = ?1")
        .map_err(failed)?;
    for name in unused {
        sql.execute([name]).map_err(failed)?;
    }
    Ok(removed)
}

/// Returns the length of the next piece.
fn cut(bytes: &[u8]) -> usize {
    let most = bytes.len().min(LONGEST);
    let mut rolling = 0_u64;
    // Only the last 64 bytes count: earlier ones are shifted out of the hash.
    for (idx, byte) in bytes[..most]
        .iter()
        .enumerate()
        .skip(SHORTEST.saturating_sub(64))
    {
        rolling = (rolling << 1).wrapping_add(GEAR[usize::from(*byte)]);
        if idx + 1 >= SHORTEST && rolling & MASK == 0 {
            return idx + 1;
        }
    }
    most
}

/// A pseudorandom number for each byte, the same in every build.
static GEAR: [u64; 256] = gear();

const fn gear() -> [u64; 256] {
    let mut gear = [0; 256];
    let mut idx = 0;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    while idx < gear.len() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        gear[idx] = bits ^ (bits >> 31);
        idx += 1;
    }
    gear
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> Connection {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(
            "CREATE TABLE payload (hash TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID",
        )
        .unwrap();
        db.execute_batch(FORMAT_2).unwrap();
        db
    }

    fn number(db: &Connection, sql: &str) -> i64 {
        db.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    fn read(db: &Connection, hash: &str) -> String {
        let (text, parts): (String, Option<Vec<u8>>) = db
            .query_row(
                "SELECT text, parts FROM payload WHERE hash = ?1",
                [hash],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        parts.map_or(text, |parts| assemble(db, &parts).unwrap())
    }

    /// Returns text without repetitions.
    fn message(number: u64) -> String {
        let words = (0..200_u64)
            .map(|idx| GEAR[((number * 7 + idx * idx) % 256) as usize] ^ (number << 20 | idx));
        words.map(|word| format!("{word:x} ")).collect()
    }

    #[test]
    fn a_growing_text_shares_its_pieces() {
        let db = database();
        let mut text = String::new();
        let mut kept = Vec::new();
        for turn in 0..100 {
            text += &message(turn);
            kept.push((keep(&db, &format!("[{text}]")).unwrap(), text.len() + 2));
        }
        for (hash, length) in &kept {
            let read = read(&db, hash);
            assert_eq!(&digest_bytes(read.as_bytes()), hash);
            assert_eq!(read.len(), *length);
        }
        let bytes = number(&db, "SELECT sum(length(bytes)) FROM piece");
        let own = i64::try_from(text.len()).unwrap();
        assert!(bytes < 5 * own, "{bytes} bytes for {own}");
    }

    #[test]
    fn equal_texts_are_stored_once_and_unused_pieces_are_removed() {
        let db = database();
        let text: String = (0..50).map(message).collect();
        let hash = keep(&db, &text).unwrap();
        let pieces = number(&db, "SELECT count(*) FROM piece");
        assert_eq!(keep(&db, &text).unwrap(), hash);
        assert_eq!(number(&db, "SELECT count(*) FROM piece"), pieces);
        let other = keep(&db, &format!("{text}{}", message(99))).unwrap();
        db.execute("DELETE FROM payload WHERE hash = ?1", [&hash])
            .unwrap();
        sweep_pieces(&db).unwrap();
        assert!(read(&db, &other).starts_with(&text));
        db.execute("DELETE FROM payload", []).unwrap();
        assert!(sweep_pieces(&db).unwrap().bytes > text.len() as u64);
        assert_eq!(number(&db, "SELECT count(*) FROM piece"), 0);
    }
}
