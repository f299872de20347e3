//! Maps: an array of up to 8 entries in insertion order; above that a hash trie, whose order is that of Clojure on the
//! JVM and depends on the contents only; or a sorted tree.

mod sorted;
mod trie;

use std::fmt;
use std::iter::FusedIterator;
use std::rc::Rc;

pub(super) use self::sorted::Node as SortedNode;
pub use self::sorted::{Comparison, Sorted};
pub(super) use self::trie::Node as HashNode;

use self::sorted::SortedIter;
use self::trie::{Trie, TrieIter, TriePlace};
use super::drops::{Garbage, discard_collection, discard_value};
use super::{Extra, Keyword, Unforced, Value, compare};

/// Maximum number of entries for which a map keeps insertion order.
const ARRAY_MAX: usize = 8;

/// The entries of a map: persistent, with cheap copies.
#[derive(Clone, Default)]
pub struct PMap {
    entries: Entries,
}

pub(super) enum Entries {
    Array(Vec<(Value, Value)>),
    Hash(Trie),
    Sorted(Sorted),
}

impl Default for Entries {
    fn default() -> Self {
        Entries::Array(Vec::new())
    }
}

impl Entries {
    pub(super) fn len(&self) -> usize {
        match self {
            Entries::Array(entries) => entries.len(),
            Entries::Hash(trie) => trie.len(),
            Entries::Sorted(sorted) => sorted.len(),
        }
    }
}

impl Clone for Entries {
    fn clone(&self) -> Self {
        match self {
            Entries::Array(entries) => {
                // Most copies are made in order to add an entry.
                let mut copy = Vec::with_capacity((entries.len() + 1).min(ARRAY_MAX));
                copy.extend_from_slice(entries);
                Entries::Array(copy)
            }
            Entries::Hash(trie) => Entries::Hash(trie.clone()),
            Entries::Sorted(sorted) => Entries::Sorted(sorted.clone()),
        }
    }
}

impl PMap {
    /// Returns an empty map.
    pub fn new() -> PMap {
        PMap::default()
    }

    /// Tells whether no part of the map is shared with another map.
    pub(crate) fn is_unshared(&self) -> bool {
        match &self.entries {
            Entries::Array(_) => true,
            Entries::Hash(trie) => trie.is_unshared(),
            Entries::Sorted(sorted) => sorted.is_unshared(),
        }
    }

    /// Returns an empty map that is hashed from its first entry on, as for sets and `hash-map`.
    pub fn hashed() -> PMap {
        PMap {
            entries: Entries::Hash(Trie::default()),
        }
    }

    /// Returns an empty sorted map: `order` compares its keys; nil is `compare`.
    pub fn sorted_by(order: Value) -> PMap {
        PMap {
            entries: Entries::Sorted(Sorted::new(order)),
        }
    }

    /// Returns the sorted entries, if the map is sorted.
    #[inline]
    pub fn sorted(&self) -> Option<&Sorted> {
        match &self.entries {
            Entries::Sorted(sorted) => Some(sorted),
            Entries::Array(_) | Entries::Hash(_) => None,
        }
    }

    /// Returns the sorted entries for modification, if the map is sorted.
    #[inline]
    pub fn sorted_mut(&mut self) -> Option<&mut Sorted> {
        match &mut self.entries {
            Entries::Sorted(sorted) => Some(sorted),
            Entries::Array(_) | Entries::Hash(_) => None,
        }
    }

    /// Returns an empty map of the same kind: sorted by the same order, or small.
    pub fn emptied(&self) -> PMap {
        match self.sorted() {
            Some(sorted) => PMap::sorted_by(sorted.order().clone()),
            None => PMap::new(),
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Tells whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a key.
    #[inline]
    pub fn get(&self, key: &Value) -> Option<&Value> {
        if let Value::Keyword(keyword) = key {
            return self.get_keyword(*keyword);
        }
        self.entry(key).map(|entry| entry.1)
    }

    /// Returns the value of a keyword key.
    #[inline]
    pub fn get_keyword(&self, key: Keyword) -> Option<&Value> {
        match &self.entries {
            Entries::Array(entries) => entries
                .iter()
                .find(|entry| matches!(entry.0, Value::Keyword(other) if other == key))
                .map(|entry| &entry.1),
            Entries::Hash(trie) => trie.get(&Value::Keyword(key)).map(|entry| entry.1),
            Entries::Sorted(_) => self.entry(&Value::Keyword(key)).map(|entry| entry.1),
        }
    }

    /// Returns the key as it is stored, and its value.
    pub fn entry(&self, key: &Value) -> Option<(&Value, &Value)> {
        match &self.entries {
            Entries::Array(entries) => {
                let idx = position(entries, key)?;
                let (key, value) = entries.get(idx)?;
                Some((key, value))
            }
            Entries::Hash(trie) => trie.get(key),
            Entries::Sorted(sorted) => sorted.entry_at(sorted.position(key)?),
        }
    }

    /// Tells whether the map contains the key.
    pub fn contains(&self, key: &Value) -> bool {
        self.get(key).is_some()
    }

    /// Returns the value of a key for modification in place.
    pub fn get_mut(&mut self, key: &Value) -> Option<&mut Value> {
        match &mut self.entries {
            Entries::Array(entries) => {
                let idx = position(entries, key)?;
                entries.get_mut(idx).map(|entry| &mut entry.1)
            }
            Entries::Hash(trie) => trie.get_mut(key),
            Entries::Sorted(sorted) => sorted.value_at_mut(sorted.position(key)?),
        }
    }

    /// Inserts an entry, in place if these entries are not shared. An equal key that is present stays. Sorted entries
    /// that only a VM can compare with the key become hashed ones: see [`Sorted::insert`].
    pub fn insert(&mut self, key: Value, value: Value) {
        match &mut self.entries {
            Entries::Array(entries) => {
                if let Some(idx) = position(entries, &key) {
                    entries[idx].1 = value;
                    return;
                }
                if entries.len() < ARRAY_MAX {
                    entries.push((key, value));
                    return;
                }
                let mut trie = Trie::default();
                for (key, value) in entries.drain(..) {
                    trie.insert(key, value);
                }
                trie.insert(key, value);
                self.entries = Entries::Hash(trie);
            }
            Entries::Hash(trie) => {
                trie.insert(key, value);
            }
            Entries::Sorted(sorted) => {
                if let Some(idx) = sorted.position(&key) {
                    if let Some(slot) = sorted.value_at_mut(idx) {
                        *slot = value;
                    }
                    return;
                }
                let mut by = |left: &Value, right: &Value| compare(&mut Unforced, left, right);
                let is_natural = sorted.order().is_nil();
                if is_natural && sorted.insert(key.clone(), value.clone(), &mut by).is_ok() {
                    return;
                }
                let mut trie = Trie::default();
                for (key, value) in sorted.iter() {
                    trie.insert(key.clone(), value.clone());
                }
                trie.insert(key, value);
                self.entries = Entries::Hash(trie);
            }
        }
    }

    /// Inserts an entry and keeps insertion order regardless of the size, as `array-map` does. Look-up is slow in a
    /// large map of this kind, and the next insertion of a different key turns it into a hash map.
    pub fn insert_in_order(&mut self, key: Value, value: Value) {
        match &mut self.entries {
            Entries::Array(entries) => match position(entries, &key) {
                Some(idx) => entries[idx].1 = value,
                None => entries.push((key, value)),
            },
            Entries::Hash(_) | Entries::Sorted(_) => self.insert(key, value),
        }
    }

    /// Tells whether entries are kept in order of insertion.
    pub fn is_in_order(&self) -> bool {
        matches!(self.entries, Entries::Array(_))
    }

    /// Removes an entry.
    pub fn remove(&mut self, key: &Value) -> Option<Value> {
        match &mut self.entries {
            Entries::Array(entries) => {
                let idx = position(entries, key)?;
                Some(entries.remove(idx).1)
            }
            Entries::Hash(trie) => trie.remove(key),
            Entries::Sorted(sorted) => sorted.remove_at(sorted.position(key)?),
        }
    }

    /// Returns the entries in order.
    pub fn iter(&self) -> MapIter<'_> {
        match &self.entries {
            Entries::Array(entries) => MapIter::Array(entries.iter()),
            Entries::Hash(trie) => MapIter::Hash(trie.iter()),
            Entries::Sorted(sorted) => MapIter::Sorted(sorted.iter()),
        }
    }

    /// Returns up to `most` entries from a place on, and the place after them.
    pub fn entries_from(&self, place: &MapPlace, most: usize) -> (Vec<(Value, Value)>, MapPlace) {
        let own = |entry: (&Value, &Value)| (entry.0.clone(), entry.1.clone());
        let by_index = |entries: &mut dyn Iterator<Item = (&Value, &Value)>, at: usize| {
            let taken: Vec<_> = entries.take(most).map(own).collect();
            let next = MapPlace::Index(at + taken.len());
            (taken, next)
        };
        let at = match place {
            MapPlace::Index(idx) => *idx,
            MapPlace::Trie(_) => 0,
        };
        match &self.entries {
            Entries::Array(_) => by_index(&mut self.iter().skip(at), at),
            Entries::Sorted(sorted) => by_index(&mut sorted.iter_from(at), at),
            Entries::Hash(trie) => {
                let mut iter = match place {
                    MapPlace::Index(_) => trie.iter(),
                    MapPlace::Trie(place) => trie.iter_at(place),
                };
                let taken = iter.by_ref().take(most).map(own).collect();
                (taken, MapPlace::Trie(trie.place(&iter)))
            }
        }
    }

    /// Returns the entry at `idx` of a small map, which a cached keyword look-up tries first.
    #[inline]
    pub fn array_entry(&self, idx: usize) -> Option<&(Value, Value)> {
        match &self.entries {
            Entries::Array(entries) => entries.get(idx),
            Entries::Hash(_) | Entries::Sorted(_) => None,
        }
    }

    /// Returns the value of the entry at `idx` of a small map, for modification in place.
    #[inline]
    pub fn array_value_mut(&mut self, idx: usize) -> Option<&mut Value> {
        match &mut self.entries {
            Entries::Array(entries) => entries.get_mut(idx).map(|entry| &mut entry.1),
            Entries::Hash(_) | Entries::Sorted(_) => None,
        }
    }

    /// Returns the index of a keyword in a small map.
    #[inline]
    pub fn array_index(&self, key: Keyword) -> Option<usize> {
        match &self.entries {
            Entries::Array(entries) => entries
                .iter()
                .position(|entry| matches!(entry.0, Value::Keyword(other) if other == key)),
            Entries::Hash(_) | Entries::Sorted(_) => None,
        }
    }
}

/// A position at which an iteration over an unchanged map can resume. See [`PMap::entries_from`].
pub enum MapPlace {
    /// An index; in a hashed map only 0, its beginning.
    Index(usize),
    /// A position in a hashed map.
    Trie(TriePlace),
}

#[inline]
fn position(entries: &[(Value, Value)], key: &Value) -> Option<usize> {
    match key {
        Value::Keyword(keyword) => entries
            .iter()
            .position(|entry| matches!(entry.0, Value::Keyword(other) if other == *keyword)),
        key => entries.iter().position(|entry| entry.0 == *key),
    }
}

/// The entries of a map, in order.
#[derive(Clone)]
pub enum MapIter<'a> {
    /// Over the entries of a small map.
    Array(std::slice::Iter<'a, (Value, Value)>),
    /// Over a trie.
    Hash(TrieIter<'a>),
    /// Over a sorted map.
    Sorted(SortedIter<'a>),
}

impl<'a> Iterator for MapIter<'a> {
    type Item = (&'a Value, &'a Value);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            MapIter::Array(entries) => entries.next().map(|entry| (&entry.0, &entry.1)),
            MapIter::Hash(entries) => entries.next(),
            MapIter::Sorted(entries) => entries.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            MapIter::Array(entries) => entries.size_hint(),
            MapIter::Hash(entries) => entries.size_hint(),
            MapIter::Sorted(entries) => entries.size_hint(),
        }
    }
}

impl ExactSizeIterator for MapIter<'_> {}
impl FusedIterator for MapIter<'_> {}

impl FromIterator<(Value, Value)> for PMap {
    fn from_iter<I: IntoIterator<Item = (Value, Value)>>(entries: I) -> Self {
        let mut map = PMap::new();
        map.extend(entries);
        map
    }
}

impl Extend<(Value, Value)> for PMap {
    fn extend<I: IntoIterator<Item = (Value, Value)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl fmt::Debug for PMap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self.iter()).finish()
    }
}

impl Drop for PMap {
    fn drop(&mut self) {
        let is_owner = match &mut self.entries {
            // Most small maps hold no collections, and are left to their owner.
            Entries::Array(entries) => {
                for (key, value) in entries {
                    discard_value(key);
                    discard_value(value);
                }
                return;
            }
            Entries::Hash(trie) => trie.is_owner(),
            Entries::Sorted(sorted) => !sorted.is_empty(),
        };
        if is_owner {
            let entries = std::mem::take(&mut self.entries);
            discard_collection(entries.len(), entries, Garbage::Entries);
        }
    }
}

/// A map value: entries, metadata and place.
#[derive(Clone, Debug)]
pub struct Map {
    entries: PMap,
    /// Metadata and place.
    pub extra: Extra,
}

impl Map {
    /// Returns a map without metadata.
    pub fn new(entries: PMap) -> Map {
        Map {
            entries,
            extra: None,
        }
    }

    /// Returns the entries of the map, without its metadata.
    pub fn entries(&self) -> &PMap {
        &self.entries
    }

    /// Returns the entries of the map for modification in place.
    pub fn entries_mut(&mut self) -> &mut PMap {
        &mut self.entries
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Tells whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &Value) -> Option<&Value> {
        self.entries.get(key)
    }

    /// Returns the entries in order.
    pub fn iter(&self) -> MapIter<'_> {
        self.entries.iter()
    }

    pub(crate) fn with_extra(&self, extra: Extra) -> Map {
        Map {
            extra,
            ..self.clone()
        }
    }

    /// Returns this map for modification: itself if it is not shared, else a copy.
    pub fn make_mut(this: &mut Rc<Map>) -> &mut Map {
        Rc::make_mut(this)
    }
}
