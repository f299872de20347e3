//! An ordered map whose changes can be rolled back until they are committed.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

/// Rows by their keys.
#[derive(Debug)]
pub(super) struct Table<K, V> {
    rows: BTreeMap<K, V>,
    /// The earlier value of each changed row; the latest change comes last.
    before: Vec<(K, Option<V>)>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Table {
            rows: BTreeMap::new(),
            before: Vec::new(),
        }
    }
}

impl<K: Ord + Clone, V: Clone> Table<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.rows.get(key)
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.rows.iter()
    }

    pub(super) fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.rows.values()
    }

    pub(super) fn range(
        &self,
        range: impl RangeBounds<K>,
    ) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.rows.range(range)
    }

    /// Returns a row for a change.
    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let row = self.rows.get_mut(key)?;
        self.before.push((key.clone(), Some(row.clone())));
        Some(row)
    }

    pub(super) fn insert(&mut self, key: K, row: V) {
        let before = self.rows.insert(key.clone(), row);
        self.before.push((key, before));
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let row = self.rows.remove(key)?;
        self.before.push((key.clone(), Some(row.clone())));
        Some(row)
    }

    /// Removes the rows that match a condition, and returns them.
    pub(super) fn remove_where(&mut self, condition: impl Fn(&K, &V) -> bool) -> Vec<(K, V)> {
        let found = self.rows.iter().filter(|(key, row)| condition(key, row));
        let keys: Vec<K> = found.map(|(key, _)| key.clone()).collect();
        keys.into_iter()
            .filter_map(|key| self.remove(&key).map(|row| (key, row)))
            .collect()
    }

    pub(super) fn commit(&mut self) {
        self.before.clear();
    }

    pub(super) fn roll_back(&mut self) {
        while let Some((key, before)) = self.before.pop() {
            match before {
                Some(row) => self.rows.insert(key, row),
                None => self.rows.remove(&key),
            };
        }
    }
}
