//! Blobs in memory, by the hash of their bytes.

use std::sync::Arc;

use flowstone_model::blob::BlobHash;
use flowstone_model::codec::digest_bytes;
use flowstone_model::ports::{
    BlobRow, BlobWriter, Blobs, PortFuture, StoreError, StoredBlob, wall_clock_ms,
};

use super::state::State;
use super::{News, Project, Session, lock, resources};
use crate::sqlite::blob::missing;

impl Blobs for Session {
    fn put(&self, bytes: Vec<u8>) -> PortFuture<'_, BlobHash> {
        self.write(News::None, |tx| Ok(put(tx.state, bytes)))
    }

    fn begin(&self) -> PortFuture<'_, Box<dyn BlobWriter>> {
        let incoming: Box<dyn BlobWriter> = Box::new(Incoming {
            project: self.project.clone(),
            bytes: Vec::new(),
        });
        Box::pin(std::future::ready(Ok(incoming)))
    }

    fn get(&self, hash: &BlobHash) -> PortFuture<'_, Vec<u8>> {
        self.read(|tx| match tx.state.blobs.get(&hash.0) {
            Some((_, bytes)) => Ok(bytes.to_vec()),
            None => Err(missing(hash)),
        })
    }

    fn part(&self, hash: &BlobHash, start: u64, length: usize) -> PortFuture<'_, Vec<u8>> {
        self.read(|tx| match tx.state.blobs.get(&hash.0) {
            Some((_, bytes)) => {
                let start = usize::try_from(start)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                let end = start.saturating_add(length).min(bytes.len());
                Ok(bytes[start..end].to_vec())
            }
            None => Err(missing(hash)),
        })
    }

    fn find(&self, uri: &str) -> PortFuture<'_, Option<BlobRow>> {
        self.read(|tx| Ok(resources::blob(tx.state, uri)))
    }
}

fn put(state: &mut State, bytes: Vec<u8>) -> BlobHash {
    let hash = BlobHash(digest_bytes(&bytes));
    let put_ms = wall_clock_ms();
    state
        .blobs
        .insert(hash.0.clone(), (put_ms, Arc::new(bytes)));
    hash
}

/// A blob that arrives in parts.
struct Incoming {
    project: Arc<Project>,
    bytes: Vec<u8>,
}

impl BlobWriter for Incoming {
    fn write(&mut self, bytes: &[u8]) -> PortFuture<'_, ()> {
        self.bytes.extend_from_slice(bytes);
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish(self: Box<Self>) -> PortFuture<'static, StoredBlob> {
        let Incoming { project, bytes } = *self;
        let mut state = lock(&project.state);
        let size = bytes.len() as u64;
        let hash = put(&mut state, bytes);
        state.commit();
        let stored: Result<StoredBlob, StoreError> = Ok(StoredBlob { hash, size });
        Box::pin(std::future::ready(stored))
    }
}
