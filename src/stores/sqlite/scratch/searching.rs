//! The search index of a layer: its own for documents and memories, which the test may have changed, and the project's for all
//! else.

use flowstone_model::ports::{
    Embedded, PortFuture, Refreshed, SearchDoc, SearchHit, SearchIndex, SearchTarget, StoreError,
    Unembedded, VectorQuery, WordQuery,
};

use super::super::search::{ask, docs, knowledge, vectors};
use super::{Layer, in_transaction};

impl SearchIndex for Layer {
    fn refresh(&self, most: usize) -> PortFuture<'_, Refreshed> {
        self.whole.search.refresh(most)
    }

    fn versions(&self, target: SearchTarget) -> PortFuture<'_, Vec<(String, String)>> {
        if target != SearchTarget::Knowledge {
            return self.whole.search.versions(target);
        }
        Box::pin(async move {
            self.take_knowledge().await?;
            self.work(move |db| docs::versions(db, target)).await
        })
    }

    fn put(
        &self,
        target: SearchTarget,
        docs: Vec<SearchDoc>,
        gone: Vec<String>,
    ) -> PortFuture<'_, ()> {
        if target != SearchTarget::Knowledge {
            return self.whole.search.put(target, docs, gone);
        }
        Box::pin(async move {
            self.take_knowledge().await?;
            self.work(move |db| docs::replace(db, target, &docs, &gone))
                .await
        })
    }

    fn by_words(&self, query: WordQuery) -> PortFuture<'_, Vec<SearchHit>> {
        if query.target != SearchTarget::Knowledge {
            return self.whole.search.by_words(query);
        }
        Box::pin(async move {
            self.take_knowledge().await?;
            self.work(move |db| ask::by_words(db, &query)).await
        })
    }

    fn unembedded(
        &self,
        model: &str,
        targets: &[SearchTarget],
        limit: usize,
    ) -> PortFuture<'_, (Vec<Unembedded>, u64)> {
        if !targets.contains(&SearchTarget::Knowledge) {
            return self.whole.search.unembedded(model, targets, limit);
        }
        let (model, targets) = (model.to_owned(), targets.to_vec());
        Box::pin(async move {
            self.take_knowledge().await?;
            self.work(move |db| {
                if !vectors::is_model(db, &model)? {
                    vectors::take_model(db, &model)?;
                }
                vectors::bare(db, &targets, limit)
            })
            .await
        })
    }

    /// Vectors are of texts, whichever target has them: the layer keeps those of its own.
    fn embed(&self, model: &str, texts: Vec<Embedded>) -> PortFuture<'_, ()> {
        let model = model.to_owned();
        Box::pin(async move {
            let (kept, model, others) = self
                .work(move |db| {
                    let (mut kept, mut others) = (Vec::new(), Vec::new());
                    for text in texts {
                        match knowledge::has_text(db, &text.hash)? {
                            true => kept.push(text),
                            false => others.push(text),
                        }
                    }
                    vectors::keep(db, &model, &kept)?;
                    Ok((kept.len(), model, others))
                })
                .await?;
            match others.is_empty() && kept > 0 {
                true => Ok(()),
                false => self.whole.search.embed(&model, others).await,
            }
        })
    }

    fn by_vector(&self, query: VectorQuery) -> PortFuture<'_, Vec<SearchHit>> {
        if !query.targets.contains(&SearchTarget::Knowledge) {
            return self.whole.search.by_vector(query);
        }
        Box::pin(async move {
            self.take_knowledge().await?;
            self.work(move |db| vectors::nearest(db, &query)).await
        })
    }

    fn indexed(&self, target: SearchTarget, id: &str) -> PortFuture<'_, Option<SearchDoc>> {
        if target != SearchTarget::Knowledge {
            return self.whole.search.indexed(target, id);
        }
        let id = id.to_owned();
        Box::pin(async move {
            self.take_knowledge().await?;
            self.work(move |db| docs::find(db, target, &id)).await
        })
    }

    fn forget(&self, uri: Option<String>) -> PortFuture<'_, u64> {
        self.whole.search.forget(uri)
    }
}

impl Layer {
    /// Copies the index of documents and memories with its vectors, unless the layer has it.
    async fn take_knowledge(&self) -> Result<(), StoreError> {
        if self.lock().has_knowledge {
            return Ok(());
        }
        let state = self.state.clone();
        let work = move |from: &rusqlite::Connection| {
            let mut state = state
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            // Another branch of the run may have been faster.
            if !state.has_knowledge {
                in_transaction(&state.db, |to| knowledge::copy(from, to))?;
                state.has_knowledge = true;
            }
            Ok(())
        };
        let copied = self.base.aside(Box::new(work)).await;
        copied.map_err(|error| self.or_full(error))
    }
}
