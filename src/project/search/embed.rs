//! Vectors for texts: asked of an embedder, some at a time, and kept under the hash of the text.

use super::chunks;
use super::error::SearchError;
use flowstone_flow::embedder::{EmbedError, Embedder};
use flowstone_model::ports::{Embedded, SearchTarget, Stores};

/// How much of a query an embedder gets, in bytes.
pub(crate) const QUERY_MAX: usize = 4 << 10;
/// Texts that one question has embedded at most.
pub(crate) const TEXTS_MAX: usize = 256;
/// Texts whose vectors are kept together.
const TEXTS: usize = 16;

/// Returns the vector of one text, with the length 1.
pub(crate) async fn one(embedder: &dyn Embedder, text: String) -> Result<Vec<f32>, SearchError> {
    let mut vectors = vectors(embedder, &[text]).await?;
    Ok(vectors.pop().unwrap_or_default())
}

/// Embeds at most `most` texts that have no vectors yet. Returns how many were embedded, and how many are left.
pub(crate) async fn pending(
    stores: &Stores,
    embedder: &dyn Embedder,
    targets: &[SearchTarget],
    most: usize,
) -> Result<(u64, u64), SearchError> {
    let model = embedder.model();
    let mut done: usize = 0;
    loop {
        let limit = TEXTS.min(most.saturating_sub(done)).max(1);
        let (texts, left) = stores.search.unembedded(model, targets, limit).await?;
        if texts.is_empty() || done >= most {
            return Ok((done as u64, left + texts.len() as u64));
        }
        let mut parts: Vec<String> = Vec::new();
        let mut counts = Vec::new();
        for text in &texts {
            let ranges = chunks(&text.text);
            counts.push(ranges.len());
            parts.extend(ranges.into_iter().map(|range| text.text[range].to_owned()));
        }
        let mut vectors = vectors(embedder, &parts).await?.into_iter();
        done += texts.len();
        let of_text = texts.into_iter().zip(counts);
        let embedded = of_text.map(|(text, count)| Embedded {
            hash: text.hash,
            vectors: vectors.by_ref().take(count).collect(),
        });
        stores.search.embed(model, embedded.collect()).await?;
    }
}

async fn vectors(embedder: &dyn Embedder, texts: &[String]) -> Result<Vec<Vec<f32>>, SearchError> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let mut vectors = embedder.embed(texts).await?;
    let length = vectors.first().map_or(0, Vec::len);
    let fits = vectors.len() == texts.len()
        && length > 0
        && vectors
            .iter()
            .all(|vector| vector.len() == length && vector.iter().all(|number| number.is_finite()));
    if !fits {
        return Err(SearchError::Embedder(EmbedError {
            code: "E0729",
            kind: "bad-response",
            message: format!(
                "the embedder gave {} vectors for {} texts, or not all are of one length",
                vectors.len(),
                texts.len()
            ),
            hint: Some("check `:model` and `:dimensions` of `:search :embedder`".to_owned()),
        }));
    }
    for vector in &mut vectors {
        let length = vector.iter().map(|it| it * it).sum::<f32>().sqrt();
        if length > 0.0 {
            vector.iter_mut().for_each(|it| *it /= length);
        }
    }
    Ok(vectors)
}
