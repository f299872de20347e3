//! The key-value store in memory.

use flowstone_model::kv::{KvEntry, KvOp};
use flowstone_model::ports::{Kv, PortFuture, StoreError};

use super::Session;
use super::state::{Key, State};
use crate::kv::{Change, change, key};

impl Kv for Session {
    fn get(&self, key: &str, now_ms: i64) -> PortFuture<'_, Option<String>> {
        self.read(|tx| Ok(entry(tx.state, key, now_ms).map(|entry| entry.value)))
    }

    fn entry(&self, key: &str, now_ms: i64) -> PortFuture<'_, Option<KvEntry>> {
        self.read(|tx| Ok(entry(tx.state, key, now_ms)))
    }

    fn list_keys(&self, prefix: &str, limit: usize, now_ms: i64) -> PortFuture<'_, Vec<String>> {
        self.read(|tx| {
            let keys = tx.state.kv.range(prefix.to_owned()..);
            let keys = keys.take_while(|(key, _)| key.starts_with(prefix));
            let keys = keys.filter(|(_, kept)| is_there(&kept.entry, now_ms));
            Ok(keys.take(limit).map(|(key, _)| key.clone()).collect())
        })
    }
}

fn is_there(entry: &KvEntry, now_ms: i64) -> bool {
    entry
        .expires_ms
        .is_none_or(|expires_ms| expires_ms > now_ms)
}

fn entry(state: &State, key: &str, now_ms: i64) -> Option<KvEntry> {
    let found = state.kv.get(&key.to_owned()).map(|kept| kept.entry.clone());
    found.filter(|entry| is_there(entry, now_ms))
}

/// Makes a change and returns its result as EDN text.
pub(super) fn apply(state: &mut State, op: &KvOp, now_ms: i64) -> Result<String, StoreError> {
    state
        .kv
        .remove_where(|_, kept| !is_there(&kept.entry, now_ms));
    let key = key(op);
    let (change, answer) = change(op, entry(state, key, now_ms), now_ms)?;
    match change {
        Change::None => {}
        Change::Put(entry) => {
            let updated_ms = now_ms;
            let kept = Key { entry, updated_ms };
            state.kv.insert(key.to_owned(), kept);
        }
        Change::Remove => drop(state.kv.remove(&key.to_owned())),
    }
    Ok(answer)
}
