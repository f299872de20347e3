//! The index behind `:search`: one full-text table for each target, over texts that are stored once.
//!
//! Runs write nothing here. A search finds what has changed: new runs by their number, runs that are not over by the
//! time of their last change, resources by a list that triggers of the registry maintain. Removed rows of the registry
//! are removed here in the same transaction.

pub(crate) mod ask;
pub(crate) mod docs;
pub(crate) mod fresh;
pub(crate) mod knowledge;
pub(crate) mod vectors;

use flowstone_model::ports::{
    Embedded, PortFuture, Refreshed, SearchDoc, SearchHit, SearchIndex, SearchTarget, Unembedded,
    VectorQuery, WordQuery,
};
use rusqlite::Connection;

use super::Sqlite;

/// The triggers that update the full-text table of a target when its texts change.
macro_rules! words_of {
    ($target:literal) => {
        concat!(
            "CREATE VIRTUAL TABLE search_",
            $target,
            " USING fts5(title, tags, body, content = 'search_doc', content_rowid = 'num',
                         tokenize = 'unicode61 remove_diacritics 2');
            INSERT INTO search_",
            $target,
            " (search_",
            $target,
            ", rank) VALUES ('rank', 'bm25(8.0, 4.0, 1.0)');
            CREATE TRIGGER search_doc_put_",
            $target,
            " AFTER INSERT ON search_doc WHEN NEW.target = '",
            $target,
            "' BEGIN INSERT INTO search_",
            $target,
            " (rowid, title, tags, body) VALUES (NEW.num, NEW.title, NEW.tags, NEW.body); END;
            CREATE TRIGGER search_doc_gone_",
            $target,
            " AFTER DELETE ON search_doc WHEN OLD.target = '",
            $target,
            "' BEGIN INSERT INTO search_",
            $target,
            " (search_",
            $target,
            ", rowid, title, tags, body) VALUES ('delete', OLD.num, OLD.title, OLD.tags, OLD.body); END;\n"
        )
    };
}

/// The full-text table of documents and memories.
pub(crate) const FORMAT_13: &str = words_of!("knowledge");

/// The tables of this part. `search_todo` lists the resources to be indexed, initially all; `search_mark` is the number
/// up to which runs are indexed.
pub(crate) const SCHEMA: &str = concat!(
    "
CREATE TABLE search_doc (
    num INTEGER PRIMARY KEY,
    target TEXT NOT NULL,
    id TEXT NOT NULL,
    version TEXT NOT NULL,
    is_open INTEGER NOT NULL DEFAULT 0,
    title TEXT NOT NULL,
    tags TEXT NOT NULL,
    body TEXT NOT NULL,
    facts TEXT NOT NULL,
    hash TEXT NOT NULL,
    embedded INTEGER
);
CREATE UNIQUE INDEX search_doc_id ON search_doc (target, id);
CREATE INDEX search_doc_open ON search_doc (num) WHERE is_open = 1;
CREATE INDEX search_doc_bare ON search_doc (target, num) WHERE embedded IS NULL AND is_open = 0;
CREATE INDEX search_doc_embedded ON search_doc (embedded, target, num);
",
    words_of!("resources"),
    words_of!("flows"),
    words_of!("runs"),
    words_of!("connections"),
    "
CREATE TABLE search_todo (uri TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO search_todo SELECT uri FROM resource;
CREATE TRIGGER search_resource_new AFTER INSERT ON resource BEGIN
    INSERT INTO search_todo SELECT NEW.uri WHERE NOT EXISTS (SELECT 1 FROM search_todo WHERE uri = NEW.uri);
END;
CREATE TRIGGER search_resource_changed AFTER UPDATE ON resource BEGIN
    INSERT INTO search_todo SELECT NEW.uri WHERE NOT EXISTS (SELECT 1 FROM search_todo WHERE uri = NEW.uri);
END;
CREATE TRIGGER search_resource_gone AFTER DELETE ON resource BEGIN
    DELETE FROM search_todo WHERE uri = OLD.uri;
    DELETE FROM search_doc WHERE target = 'resources' AND id = OLD.uri;
END;
CREATE TABLE search_mark (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
INSERT INTO search_mark VALUES ('runs', 0), ('model', '');
CREATE TRIGGER search_run_gone AFTER DELETE ON run BEGIN
    DELETE FROM search_doc WHERE target = 'runs' AND id = OLD.id;
    UPDATE search_mark SET value = OLD.num - 1
    WHERE name = 'runs' AND value >= OLD.num AND NOT EXISTS (SELECT 1 FROM run WHERE num > OLD.num);
END;
CREATE TABLE search_embedding (
    num INTEGER PRIMARY KEY,
    hash TEXT NOT NULL,
    model TEXT NOT NULL,
    UNIQUE (hash, model)
);
CREATE TABLE search_vector (
    num INTEGER PRIMARY KEY,
    embedding INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    vector BLOB NOT NULL
);
CREATE INDEX search_vector_embedding ON search_vector (embedding);
"
);

impl SearchIndex for Sqlite {
    fn refresh(&self, most: usize) -> PortFuture<'_, Refreshed> {
        Box::pin(fresh::refresh(self, most))
    }

    fn versions(&self, target: SearchTarget) -> PortFuture<'_, Vec<(String, String)>> {
        self.read_aside(move |db| docs::versions(db, target))
    }

    fn put(
        &self,
        target: SearchTarget,
        docs: Vec<SearchDoc>,
        gone: Vec<String>,
    ) -> PortFuture<'_, ()> {
        self.writer
            .submit(move |db| docs::replace(db, target, &docs, &gone))
    }

    fn by_words(&self, query: WordQuery) -> PortFuture<'_, Vec<SearchHit>> {
        self.read_aside(move |db| ask::by_words(db, &query))
    }

    fn unembedded(
        &self,
        model: &str,
        targets: &[SearchTarget],
        limit: usize,
    ) -> PortFuture<'_, (Vec<Unembedded>, u64)> {
        let (model, targets) = (model.to_owned(), targets.to_vec());
        Box::pin(async move {
            let other = model.clone();
            if !self
                .read_aside(move |db| vectors::is_model(db, &other))
                .await?
            {
                let change = move |db: &Connection| vectors::take_model(db, &model);
                self.writer.submit(change).await?;
            }
            self.read_aside(move |db| vectors::bare(db, &targets, limit))
                .await
        })
    }

    fn embed(&self, model: &str, texts: Vec<Embedded>) -> PortFuture<'_, ()> {
        let model = model.to_owned();
        self.writer
            .submit(move |db| vectors::keep(db, &model, &texts))
    }

    fn by_vector(&self, query: VectorQuery) -> PortFuture<'_, Vec<SearchHit>> {
        self.read_aside(move |db| vectors::nearest(db, &query))
    }

    fn indexed(&self, target: SearchTarget, id: &str) -> PortFuture<'_, Option<SearchDoc>> {
        let id = id.to_owned();
        self.read_aside(move |db| docs::find(db, target, &id))
    }

    fn forget(&self, uri: Option<String>) -> PortFuture<'_, u64> {
        Box::pin(async move {
            match uri {
                Some(uri) => self.writer.submit(move |db| docs::redo(db, &uri)).await,
                None => {
                    let clear = |db: &Connection| docs::clear_part(db);
                    while self.writer.submit(clear).await? {}
                    self.writer.submit(docs::redo_all).await
                }
            }
        })
    }
}
