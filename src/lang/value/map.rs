//! Maps: an array of entries up to 8, in order of insertion; above that a hash trie in a fixed order.

use std::rc::Rc;

use super::hash::FixedState;
use super::{Extra, Value};

/// Up to this many entries a map keeps insertion order.
const ARRAY_MAX: usize = 8;

/// The entries of a map: persistent, with cheap copies.
#[derive(Clone, Debug)]
pub struct PMap {
    entries: Entries,
}

#[derive(Clone, Debug)]
enum Entries {
    Array(Vec<(Value, Value)>),
    Hash(imbl::GenericHashMap<Value, Value, FixedState, imbl::shared_ptr::DefaultSharedPtr>),
}

impl Default for PMap {
    fn default() -> Self {
        PMap {
            entries: Entries::Array(Vec::new()),
        }
    }
}

impl PMap {
    pub fn new() -> PMap {
        PMap::default()
    }

    pub fn len(&self) -> usize {
        match &self.entries {
            Entries::Array(entries) => entries.len(),
            Entries::Hash(entries) => entries.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, key: &Value) -> Option<&Value> {
        match &self.entries {
            Entries::Array(entries) => entries
                .iter()
                .find(|entry| entry.0 == *key)
                .map(|entry| &entry.1),
            Entries::Hash(entries) => entries.get(key),
        }
    }

    /// Returns the key as it is stored, and its value.
    pub fn entry(&self, key: &Value) -> Option<(&Value, &Value)> {
        match &self.entries {
            Entries::Array(entries) => entries
                .iter()
                .find(|entry| entry.0 == *key)
                .map(|entry| (&entry.0, &entry.1)),
            Entries::Hash(entries) => entries.get_key_value(key),
        }
    }

    pub fn contains(&self, key: &Value) -> bool {
        self.get(key).is_some()
    }

    /// Returns the value of a key for a change in place.
    pub fn get_mut(&mut self, key: &Value) -> Option<&mut Value> {
        match &mut self.entries {
            Entries::Array(entries) => entries
                .iter_mut()
                .find(|entry| entry.0 == *key)
                .map(|entry| &mut entry.1),
            Entries::Hash(entries) => entries.get_mut(key),
        }
    }

    /// Puts an entry in place where nobody else holds these entries. An equal key that is there stays.
    pub fn insert(&mut self, key: Value, value: Value) {
        match &mut self.entries {
            Entries::Array(entries) => {
                if let Some(entry) = entries.iter_mut().find(|entry| entry.0 == key) {
                    entry.1 = value;
                    return;
                }
                if entries.len() < ARRAY_MAX {
                    entries.push((key, value));
                    return;
                }
                let mut hashed: imbl::GenericHashMap<_, _, _, _> = entries.drain(..).collect();
                hashed.insert(key, value);
                self.entries = Entries::Hash(hashed);
            }
            Entries::Hash(entries) => {
                if let Some(slot) = entries.get_mut(&key) {
                    *slot = value;
                } else {
                    entries.insert(key, value);
                }
            }
        }
    }

    /// Removes an entry.
    pub fn remove(&mut self, key: &Value) -> Option<Value> {
        match &mut self.entries {
            Entries::Array(entries) => {
                let at = entries.iter().position(|entry| entry.0 == *key)?;
                Some(entries.remove(at).1)
            }
            Entries::Hash(entries) => entries.remove(key),
        }
    }

    pub fn iter(&self) -> Box<dyn Iterator<Item = (&Value, &Value)> + '_> {
        match &self.entries {
            Entries::Array(entries) => Box::new(entries.iter().map(|entry| (&entry.0, &entry.1))),
            Entries::Hash(entries) => Box::new(entries.iter()),
        }
    }

    /// Returns the entry at `idx` of a small map: what a cached keyword look-up tries first.
    #[inline]
    pub fn array_entry(&self, idx: usize) -> Option<&(Value, Value)> {
        match &self.entries {
            Entries::Array(entries) => entries.get(idx),
            Entries::Hash(_) => None,
        }
    }
}

impl FromIterator<(Value, Value)> for PMap {
    fn from_iter<I: IntoIterator<Item = (Value, Value)>>(entries: I) -> Self {
        let mut map = PMap::new();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

/// A map value: entries, and what it carries.
#[derive(Clone, Debug)]
pub struct Map {
    entries: PMap,
    pub extra: Extra,
}

impl Map {
    pub fn new(entries: PMap) -> Map {
        Map {
            entries,
            extra: None,
        }
    }

    pub fn entries(&self) -> &PMap {
        &self.entries
    }

    pub fn entries_mut(&mut self) -> &mut PMap {
        &mut self.entries
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn get(&self, key: &Value) -> Option<&Value> {
        self.entries.get(key)
    }

    pub fn iter(&self) -> Box<dyn Iterator<Item = (&Value, &Value)> + '_> {
        self.entries.iter()
    }

    pub(crate) fn with_extra(&self, extra: Extra) -> Map {
        Map {
            extra,
            ..self.clone()
        }
    }

    /// Returns this map for a change: itself where nobody else holds it, else a copy.
    pub fn make_mut(this: &mut Rc<Map>) -> &mut Map {
        Rc::make_mut(this)
    }
}
