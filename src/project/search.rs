//! Finding resources, flows, runs and connections by their words and by their meaning.
//!
//! The step and the command line ask the same [`Seeker`]. It brings the index up to date, asks it, and fuses what
//! words and vectors find. What a person types is words: nothing in it is an operator of the index. Secrets are in no
//! document: of connections only names, types, labels and addresses are taken.

mod answer;
mod connections;
pub(crate) mod embed;
mod error;
mod flows;
mod fuse;
pub mod rank;
pub mod step;

use std::path::Path;

use flowstone_lang::value::Value;

pub use answer::{Content, Found, FoundHit};
pub use error::SearchError;
pub use flowstone_flow::embedder::{EmbedError, Embedder};
pub use flowstone_model::search::{
    SearchQuery, TEXT_MAX, Term, chunks, cut, may_be_text, parse_query, start_of,
};

use flowstone_engine::Engine;
use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    SearchDoc, SearchFilter, SearchHit, SearchTarget, StoreError, Stores, VectorQuery, WordQuery,
};
use flowstone_model::resource::PREFIX;

/// Documents that one question has indexed at most.
const REFRESH_MAX: usize = 20_000;
/// How far down the lists are fused.
const DEPTH: usize = 50;

/// How to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// By words and by meaning.
    Hybrid,
    /// By words.
    Keyword,
    /// By meaning.
    Semantic,
}

impl Mode {
    /// All, with their names, sorted.
    pub const NAMES: &[&str] = &["hybrid", "keyword", "semantic"];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Hybrid => "hybrid",
            Mode::Keyword => "keyword",
            Mode::Semantic => "semantic",
        }
    }

    /// Returns the mode of a name.
    pub fn from_name(name: &str) -> Option<Mode> {
        [Mode::Hybrid, Mode::Keyword, Mode::Semantic]
            .into_iter()
            .find(|mode| mode.name() == name)
    }
}

/// A question.
#[derive(Debug, Clone)]
pub struct Ask {
    pub query: String,
    /// Without doubles.
    pub targets: Vec<SearchTarget>,
    /// For each target.
    pub limit: usize,
    /// `None`: hybrid where there is an embedder, else by words.
    pub mode: Option<Mode>,
    pub backend: Option<String>,
    pub root: Option<String>,
    pub prefix: Option<String>,
    pub hydrate: Option<Hydrate>,
    /// The run that asks: it is not what is looked for.
    pub except: Option<RunId>,
}

impl Ask {
    /// Minimum, maximum and default of `:limit`.
    pub const LIMIT: (usize, usize, usize) = (1, 20, 12);

    /// Asks for something everywhere, as if nothing else was said.
    pub fn new(query: impl Into<String>) -> Ask {
        Ask {
            query: query.into(),
            targets: SearchTarget::ALL.to_vec(),
            limit: Ask::LIMIT.2,
            mode: None,
            backend: None,
            root: None,
            prefix: None,
            hydrate: Some(Hydrate::default()),
            except: None,
        }
    }
}

/// How much of the contents of what was found to bring along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hydrate {
    /// Number of resources.
    pub top_k: usize,
    /// Of each.
    pub max_chars: usize,
}

impl Hydrate {
    /// The most of `:top-k` and of `:max-chars`.
    pub const MOST: (usize, usize) = (10, 100_000);
}

impl Default for Hydrate {
    fn default() -> Self {
        Hydrate {
            top_k: 5,
            max_chars: 20_000,
        }
    }
}

/// Looks for things in a project.
pub struct Seeker<'a> {
    pub stores: &'a Stores,
    pub project_root: &'a Path,
    pub settings: &'a Value,
    pub embedder: Option<&'a dyn Embedder>,
}

/// What a rebuilding did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rebuilt {
    pub indexed: u64,
    pub embedded: u64,
}

impl Seeker<'_> {
    /// Answers a question.
    ///
    /// # Errors
    /// When it cannot be asked so, the embedder is needed and does not answer, or the store fails.
    pub async fn find(&self, ask: &Ask) -> Result<Found, SearchError> {
        let filter = filter(ask)?;
        let mode = self.mode(ask)?;
        let mut warnings = Vec::new();
        let left = self.refresh(&ask.targets, REFRESH_MAX).await?.1;
        if left > 0 {
            warnings.push(format!(
                "{left} documents are not indexed yet; ask again, or rebuild the index"
            ));
        }
        let by_meaning = match (mode, self.embedder) {
            (Mode::Keyword, _) | (_, None) => Vec::new(),
            (_, Some(embedder)) => {
                let found = self.by_meaning(embedder, ask, &filter, &mut warnings);
                match found.await {
                    Ok(hits) => hits,
                    Err(SearchError::Embedder(error)) if mode == Mode::Hybrid => {
                        warnings.push(format!("only words were looked for: {}", error.message));
                        Vec::new()
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        if mode == Mode::Hybrid && self.embedder.is_none() {
            warnings.push("only words were looked for: no embedder is configured".to_owned());
        }
        let by_words = match mode {
            Mode::Semantic => Vec::new(),
            Mode::Hybrid | Mode::Keyword => {
                let is_fused = !by_meaning.is_empty();
                self.by_words(ask, &filter, is_fused, &mut warnings).await?
            }
        };
        let mut hits = Vec::new();
        for target in &ask.targets {
            let of = |hits: &[SearchHit]| -> Vec<SearchHit> {
                let those = hits.iter().filter(|hit| hit.target == *target);
                those.cloned().collect()
            };
            let (words, meaning) = (of(&by_words), of(&by_meaning));
            let mut best = match mode {
                Mode::Keyword => words,
                Mode::Semantic => meaning,
                Mode::Hybrid if by_meaning.is_empty() => words,
                Mode::Hybrid => fuse::fuse(&[words, meaning]),
            };
            best.truncate(ask.limit);
            hits.extend(best);
        }
        let hits = self.hydrated(hits, ask.hydrate).await?;
        Ok(Found {
            mode,
            targets: ask.targets.clone(),
            hits,
            warnings,
        })
    }

    fn mode(&self, ask: &Ask) -> Result<Mode, SearchError> {
        match (ask.mode, self.embedder) {
            (Some(Mode::Semantic), None) => Err(SearchError::NoEmbedder),
            (Some(mode), _) => Ok(mode),
            (None, Some(_)) => Ok(Mode::Hybrid),
            (None, None) => Ok(Mode::Keyword),
        }
    }

    /// Indexes what is new, and returns how much that was and how much is left.
    async fn refresh(
        &self,
        targets: &[SearchTarget],
        most: usize,
    ) -> Result<(u64, u64), StoreError> {
        let (mut indexed, mut left) = (0, 0);
        if targets.contains(&SearchTarget::Resources) || targets.contains(&SearchTarget::Runs) {
            let done = self.stores.search.refresh(most).await?;
            (indexed, left) = (done.indexed, done.left);
        }
        if targets.contains(&SearchTarget::Flows) {
            indexed += flows::refresh(self.stores, self.project_root).await?;
        }
        if targets.contains(&SearchTarget::Connections) {
            indexed += connections::refresh(self.stores, self.settings).await?;
        }
        Ok((indexed, left))
    }

    /// Those that have all words first, then those that have some.
    async fn by_words(
        &self,
        ask: &Ask,
        filter: &SearchFilter,
        is_fused: bool,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<SearchHit>, StoreError> {
        let parsed = parse_query(&ask.query);
        if parsed.is_cut {
            warnings.push(format!(
                "the query is long: only its first {} words were looked for",
                parsed.terms.len()
            ));
        }
        if !parsed.has_terms() {
            warnings.push("the query has no words to look for".to_owned());
            return Ok(Vec::new());
        }
        let several = parsed.terms.iter().filter(|term| !term.is_excluded).count() > 1;
        let limit = if is_fused { DEPTH } else { ask.limit };
        let mut all = Vec::new();
        for target in &ask.targets {
            let query = |is_all, limit| WordQuery {
                target: *target,
                terms: parsed.terms.clone(),
                all: is_all,
                limit,
                filter: filter.clone(),
            };
            let mut hits = self.stores.search.by_words(query(true, limit)).await?;
            if several && hits.len() < ask.limit {
                let least = hits.last().map_or(f64::INFINITY, |hit| hit.score);
                for mut hit in self.stores.search.by_words(query(false, limit)).await? {
                    if !hits.iter().any(|known| known.id == hit.id) {
                        hit.score = hit.score.min(least);
                        hits.push(hit);
                    }
                }
            }
            all.extend(hits);
        }
        Ok(all)
    }

    async fn by_meaning(
        &self,
        embedder: &dyn Embedder,
        ask: &Ask,
        filter: &SearchFilter,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<SearchHit>, SearchError> {
        let query = cut(&ask.query, embed::QUERY_MAX).to_owned();
        let vector = embed::one(embedder, query).await?;
        let left = embed::pending(self.stores, embedder, &ask.targets, embed::TEXTS_MAX)
            .await?
            .1;
        if left > 0 {
            warnings.push(format!(
                "{left} documents have no vectors yet; ask again, or rebuild the index"
            ));
        }
        let nearest = VectorQuery {
            targets: ask.targets.clone(),
            model: embedder.model().to_owned(),
            vector,
            limit: DEPTH.max(ask.limit),
            filter: filter.clone(),
        };
        Ok(self.stores.search.by_vector(nearest).await?)
    }

    async fn hydrated(
        &self,
        hits: Vec<SearchHit>,
        hydrate: Option<Hydrate>,
    ) -> Result<Vec<FoundHit>, StoreError> {
        let mut left = hydrate.map_or(0, |hydrate| hydrate.top_k);
        let mut found = Vec::new();
        for hit in hits {
            let content = match hydrate {
                Some(hydrate) if left > 0 && hit.target == SearchTarget::Resources => {
                    left -= 1;
                    Some(answer::content(self.stores, &hit.id, hydrate.max_chars).await?)
                }
                _ => None,
            };
            found.push(FoundHit { hit, content });
        }
        Ok(found)
    }

    /// Returns what a resource is found by.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn indexed(&self, uri: &str) -> Result<Option<SearchDoc>, SearchError> {
        self.refresh(&[SearchTarget::Resources], usize::MAX).await?;
        Ok(self
            .stores
            .search
            .indexed(SearchTarget::Resources, uri)
            .await?)
    }

    /// Indexes a resource again, or everything, including vectors.
    ///
    /// # Errors
    /// When the embedder does not answer, or the store fails.
    pub async fn rebuild(&self, uri: Option<String>) -> Result<Rebuilt, SearchError> {
        let targets: &[SearchTarget] = match &uri {
            Some(_) => &[SearchTarget::Resources],
            None => &SearchTarget::EVERY,
        };
        self.stores.search.forget(uri).await?;
        let mut rebuilt = Rebuilt::default();
        loop {
            let (indexed, left) = self.refresh(targets, REFRESH_MAX).await?;
            rebuilt.indexed += indexed;
            if left == 0 {
                break;
            }
        }
        if let Some(embedder) = self.embedder {
            rebuilt.embedded = embed::pending(self.stores, embedder, targets, usize::MAX)
                .await?
                .0;
        }
        Ok(rebuilt)
    }
}

/// Returns what looks for things in the project of an engine.
pub fn seeker<'a>(engine: &'a Engine, embedder: Option<&'a dyn Embedder>) -> Seeker<'a> {
    Seeker {
        stores: engine.stores(),
        project_root: engine.project_root(),
        settings: engine.settings(),
        embedder,
    }
}

/// Reads what resources are left out.
fn filter(ask: &Ask) -> Result<SearchFilter, SearchError> {
    if ask.query.trim().is_empty() {
        return Err(SearchError::Wrong {
            message: "`:query` is empty".to_owned(),
            hint: "say what to look for, as in \"refund policy\"",
        });
    }
    let filters_resources = ask.backend.is_some() || ask.root.is_some() || ask.prefix.is_some();
    if filters_resources && !ask.targets.contains(&SearchTarget::Resources) {
        return Err(SearchError::Wrong {
            message: "`:storage-backend`, `:storage-root` and `:path-prefix` choose among resources, which are not among `:targets`"
                .to_owned(),
            hint: "add `:resources` to `:targets`, or leave them out",
        });
    }
    if let Some(backend) = ask.backend.as_deref()
        && !BACKENDS.contains(&backend)
    {
        return Err(SearchError::NoBackend {
            name: backend.to_owned(),
        });
    }
    let parts = [ask.root.as_deref(), ask.prefix.as_deref()];
    let has = parts.iter().any(Option::is_some);
    let prefix = has.then(|| prefix(parts[0], parts[1]));
    Ok(SearchFilter {
        prefix,
        except: ask.except.clone(),
        ids: None,
    })
}

/// Where contents of resources are kept. Both names are of the folder beside the database.
const BACKENDS: &[&str] = &["local", "platform"];

/// Puts together what the names of resources start with.
fn prefix(root: Option<&str>, path: Option<&str>) -> String {
    let is_whole = |text: &&str| text.starts_with("res://");
    if let Some(whole) = root.filter(is_whole).or(path.filter(is_whole)) {
        return whole.to_owned();
    }
    let mut prefix = PREFIX.to_owned();
    if let Some(root) = root {
        prefix.push_str(root.trim_matches('/'));
        prefix.push('/');
    }
    prefix.push_str(path.unwrap_or_default().trim_start_matches('/'));
    prefix
}
