//! Finds documents by similarity: every vector is compared, in the order of the file.
//!
//! Each text is embedded once for each model, even if several documents have it.

use std::collections::{BinaryHeap, HashMap};

use flowstone_model::ports::{
    Embedded, SearchHit, SearchTarget, StoreError, Unembedded, VectorQuery,
};
use flowstone_model::search::chunks;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::json;

use super::super::failure::failed;
use super::super::snapshot::Snapshot;
use super::ask::one_line;
use super::docs;

/// Number of partial sums: enough for the machine to add several at once.
const LANES: usize = 8;
/// Bytes of one number in a vector.
const NUMBER: usize = 4;
/// Number of characters in the snippet of a chunk.
const SNIPPET_CHARS: usize = 200;

/// Tells whether the stored vectors are those of a model.
pub(crate) fn is_model(db: &Connection, model: &str) -> Result<bool, StoreError> {
    db.prepare_cached("SELECT 1 FROM search_mark WHERE name = 'model' AND value = ?1")
        .and_then(|mut sql| sql.exists([model]))
        .map_err(failed)
}

/// Switches to another model: its vectors, if any exist, are used from now on.
pub(crate) fn take_model(db: &Connection, model: &str) -> Result<(), StoreError> {
    db.execute("UPDATE search_mark SET value = ?1 WHERE name = 'model'", [model])
        .and_then(|_| {
            db.execute(
                "UPDATE search_doc SET embedded =
                     (SELECT num FROM search_embedding WHERE hash = search_doc.hash AND model = ?1)",
                [model],
            )
        })
        .map(drop)
        .map_err(failed)
}

/// Documents without vectors that may get them: a run that is not over will soon have another text.
const BARE: &str = "FROM search_doc WHERE target = ?1 AND embedded IS NULL AND is_open = 0";

/// Returns texts without vectors, and the number of further documents.
pub(crate) fn bare(
    db: &Connection,
    targets: &[SearchTarget],
    limit: usize,
) -> Result<(Vec<Unembedded>, u64), StoreError> {
    let (mut found, mut count) = (Vec::new(), 0_u64);
    for target in targets {
        let limit = i64::try_from(limit.saturating_sub(found.len())).unwrap_or(i64::MAX);
        let mut sql = db
            .prepare_cached(&format!(
                "SELECT hash, title, tags, body {BARE} ORDER BY num LIMIT ?2"
            ))
            .map_err(failed)?;
        let rows = sql
            .query_map(params![target.name(), limit], |row| {
                let text = |idx: usize| row.get::<_, String>(idx);
                Ok(Unembedded {
                    hash: text(0)?,
                    text: docs::embedded_text(&text(1)?, &text(2)?, &text(3)?),
                })
            })
            .map_err(failed)?;
        for row in rows {
            found.push(row.map_err(failed)?);
        }
        let all: i64 = db
            .prepare_cached(&format!("SELECT count(*) {BARE}"))
            .and_then(|mut sql| sql.query_row([target.name()], |row| row.get(0)))
            .map_err(failed)?;
        count += all.unsigned_abs();
    }
    let left = count.saturating_sub(found.len() as u64);
    found.sort_by(|one: &Unembedded, other| one.hash.cmp(&other.hash));
    found.dedup();
    Ok((found, left))
}

pub(crate) fn keep(db: &Connection, model: &str, texts: &[Embedded]) -> Result<(), StoreError> {
    for text in texts {
        keep_one(db, model, text).map_err(failed)?;
    }
    Ok(())
}

fn keep_one(db: &Connection, model: &str, text: &Embedded) -> rusqlite::Result<()> {
    let mut find =
        db.prepare_cached("SELECT num FROM search_embedding WHERE hash = ?1 AND model = ?2")?;
    let known: Option<i64> = find
        .query_row([&*text.hash, model], |row| row.get(0))
        .optional()?;
    let num = match known {
        Some(num) => num,
        None => {
            db.prepare_cached("INSERT INTO search_embedding (hash, model) VALUES (?1, ?2)")?
                .execute([&*text.hash, model])?;
            let num = db.last_insert_rowid();
            let mut put = db.prepare_cached(
                "INSERT INTO search_vector (embedding, chunk, vector) VALUES (?1, ?2, ?3)",
            )?;
            for (chunk, vector) in (0_i64..).zip(&text.vectors) {
                let bytes: Vec<u8> = vector.iter().flat_map(|it| it.to_le_bytes()).collect();
                put.execute(params![num, chunk, bytes])?;
            }
            num
        }
    };
    db.prepare_cached(
        "UPDATE search_doc SET embedded = ?1 WHERE hash = ?2 AND embedded IS NULL
           AND EXISTS (SELECT 1 FROM search_mark WHERE name = 'model' AND value = ?3)",
    )?
    .execute(params![num, text.hash, model])?;
    Ok(())
}

/// The similarity of the nearest chunk of a text.
#[derive(Clone, Copy)]
struct Near {
    score: f32,
    chunk: i64,
}

/// A candidate for the list of the best documents; the worst one is on top of the heap.
#[derive(PartialEq)]
struct Candidate {
    score: f32,
    num: i64,
    chunk: i64,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then(self.num.cmp(&other.num))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

pub(crate) fn nearest(db: &Connection, query: &VectorQuery) -> Result<Vec<SearchHit>, StoreError> {
    // A document that is indexed again meanwhile has another number.
    let _snapshot = Snapshot::begin(db)?;
    if !is_model(db, &query.model)? {
        return Ok(Vec::new());
    }
    let near = compare(db, &query.vector)?;
    let mut hits = Vec::new();
    for target in &query.targets {
        for candidate in best(db, query, *target, &near)? {
            hits.push(hit(db, *target, &candidate)?);
        }
    }
    Ok(hits)
}

/// Compares all vectors with one; vectors of another length belong to other models.
fn compare(db: &Connection, vector: &[f32]) -> Result<HashMap<i64, Near>, StoreError> {
    let mut near: HashMap<i64, Near> = HashMap::new();
    let mut sql = db
        .prepare_cached("SELECT embedding, chunk, vector FROM search_vector ORDER BY num")
        .map_err(failed)?;
    let mut rows = sql.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let ValueRef::Blob(bytes) = row.get_ref(2).map_err(failed)? else {
            continue;
        };
        if bytes.len() != vector.len() * NUMBER {
            continue;
        }
        let score = dot(bytes, vector);
        let embedding: i64 = row.get(0).map_err(failed)?;
        let best = near.entry(embedding).or_insert(Near {
            score: f32::MIN,
            chunk: 0,
        });
        if score > best.score {
            *best = Near {
                score,
                chunk: row.get(1).map_err(failed)?,
            };
        }
    }
    Ok(near)
}

/// Returns the dot product of a stored vector and another one of the same length.
fn dot(bytes: &[u8], vector: &[f32]) -> f32 {
    let number = |bytes: &[u8]| match bytes.try_into() {
        Ok(bytes) => f32::from_le_bytes(bytes),
        Err(_) => 0.0,
    };
    let mut sums = [0.0_f32; LANES];
    let (blocks, numbers) = (
        bytes.chunks_exact(LANES * NUMBER),
        vector.chunks_exact(LANES),
    );
    let rest = blocks.remainder().chunks_exact(NUMBER).map(number);
    let rest: f32 = rest.zip(numbers.remainder()).map(|(a, b)| a * b).sum();
    for (block, numbers) in blocks.zip(numbers) {
        let products = block.chunks_exact(NUMBER).map(number).zip(numbers);
        for (sum, (one, other)) in sums.iter_mut().zip(products) {
            *sum += one * other;
        }
    }
    sums.iter().sum::<f32>() + rest
}

/// Returns the nearest documents of a target, nearest first.
fn best(
    db: &Connection,
    query: &VectorQuery,
    target: SearchTarget,
    near: &HashMap<i64, Near>,
) -> Result<Vec<Candidate>, StoreError> {
    let prefix = query.filter.prefix.as_deref();
    let prefix = prefix.filter(|_| target == SearchTarget::Resources);
    let except = query.filter.except.as_ref();
    let except = except.filter(|_| target == SearchTarget::Runs);
    let ids = query.filter.ids.as_ref().map(|ids| json!(ids).to_string());
    // Without a filter, the index alone answers.
    let mut sql = db
        .prepare_cached(match prefix.is_some() || except.is_some() || ids.is_some() {
            false => "SELECT embedded, num FROM search_doc INDEXED BY search_doc_embedded
                      WHERE embedded IS NOT NULL AND target = ?1 AND ?2 IS NULL AND ?3 IS NULL AND ?4 IS NULL",
            true => "SELECT embedded, num FROM search_doc
                     WHERE embedded IS NOT NULL AND target = ?1
                       AND (?2 IS NULL OR substr(id, 1, length(?2)) = ?2) AND (?3 IS NULL OR id <> ?3)
                       AND (?4 IS NULL OR id IN (SELECT value FROM json_each(?4)))",
        })
        .map_err(failed)?;
    let mut rows = sql
        .query(params![
            target.name(),
            prefix,
            except.map(|run| run.as_str()),
            ids
        ])
        .map_err(failed)?;
    let mut heap: BinaryHeap<Candidate> = BinaryHeap::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let Some(found) = near.get(&row.get(0).map_err(failed)?) else {
            continue;
        };
        heap.push(Candidate {
            score: found.score,
            num: row.get(1).map_err(failed)?,
            chunk: found.chunk,
        });
        if heap.len() > query.limit {
            heap.pop();
        }
    }
    Ok(heap.into_sorted_vec())
}

fn hit(
    db: &Connection,
    target: SearchTarget,
    candidate: &Candidate,
) -> Result<SearchHit, StoreError> {
    db.prepare_cached("SELECT id, title, tags, body, facts FROM search_doc WHERE num = ?1")
        .and_then(|mut sql| {
            sql.query_row([candidate.num], |row| {
                let text = |idx: usize| row.get::<_, String>(idx);
                let (title, tags, body) = (text(1)?, text(2)?, text(3)?);
                let whole = docs::embedded_text(&title, &tags, &body);
                Ok(SearchHit {
                    target,
                    id: text(0)?,
                    facts: docs::facts(&text(4)?),
                    score: f64::from(candidate.score),
                    snippet: snippet(&whole, candidate.chunk),
                    title,
                })
            })
        })
        .map_err(failed)
}

fn snippet(text: &str, chunk: i64) -> String {
    let ranges = chunks(text);
    let range = usize::try_from(chunk).ok().and_then(|idx| ranges.get(idx));
    let part = range.map_or(text, |range| &text[range.clone()]);
    let line = one_line(part);
    match line.char_indices().nth(SNIPPET_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::dot;

    #[test]
    fn products_are_correct_for_every_length() {
        for length in [0, 1, 7, 8, 9, 17, 768] {
            let one: Vec<f32> = (0..length).map(|it| it as f32).collect();
            let bytes: Vec<u8> = one.iter().flat_map(|it| it.to_le_bytes()).collect();
            let other = vec![2.0; length];
            let expected: f32 = one.iter().sum::<f32>() * 2.0;
            assert!((dot(&bytes, &other) - expected).abs() < 1.0, "{length}");
        }
    }
}
