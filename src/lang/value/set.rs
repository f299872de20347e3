//! Sets: the keys of a map that is hashed from its first entry on, as Clojure's sets are.

use std::rc::Rc;

use super::{Extra, PMap, Sorted, Value};

/// The items of a set: persistent, with cheap copies, in the order of a map with these keys.
#[derive(Clone, Debug)]
pub struct PSet {
    items: PMap,
}

impl Default for PSet {
    fn default() -> Self {
        PSet {
            items: PMap::hashed(),
        }
    }
}

impl PSet {
    /// Returns an empty set.
    pub fn new() -> PSet {
        PSet::default()
    }

    /// Returns an empty sorted set: `order` compares its items; nil is `compare`.
    pub fn sorted_by(order: Value) -> PSet {
        PSet {
            items: PMap::sorted_by(order),
        }
    }

    /// Tells whether no part of the set is shared with another set.
    pub(crate) fn is_unshared(&self) -> bool {
        self.items.is_unshared()
    }

    /// Returns the sorted items, if the set is sorted: as keys, with nil as values.
    pub fn sorted(&self) -> Option<&Sorted> {
        self.items.sorted()
    }

    /// Returns the sorted items for modification, if the set is sorted.
    pub fn sorted_mut(&mut self) -> Option<&mut Sorted> {
        self.items.sorted_mut()
    }

    /// Returns an empty set of the same kind: sorted by the same order, or hashed.
    pub fn emptied(&self) -> PSet {
        match self.sorted() {
            Some(sorted) => PSet::sorted_by(sorted.order().clone()),
            None => PSet::new(),
        }
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Tells whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the item as it is stored.
    pub fn get(&self, item: &Value) -> Option<&Value> {
        self.items.entry(item).map(|entry| entry.0)
    }

    /// Tells whether the set contains an item.
    pub fn contains(&self, item: &Value) -> bool {
        self.items.contains(item)
    }

    /// Adds an item, in place if the items are not shared.
    pub fn insert(&mut self, item: Value) {
        self.items.insert(item, Value::Nil);
    }

    /// Removes an item; returns whether the set contained it.
    pub fn remove(&mut self, item: &Value) -> bool {
        self.items.remove(item).is_some()
    }

    /// Returns the map whose keys are the items.
    pub fn as_map(&self) -> &PMap {
        &self.items
    }

    /// Returns the items in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Value> + Clone {
        self.items.iter().map(|entry| entry.0)
    }
}

impl FromIterator<Value> for PSet {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        let mut set = PSet::new();
        for item in items {
            set.insert(item);
        }
        set
    }
}

/// A set value: items, metadata and place.
#[derive(Clone, Debug)]
pub struct Set {
    items: PSet,
    /// Metadata and place.
    pub extra: Extra,
}

impl Set {
    /// Returns a set without metadata.
    pub fn new(items: PSet) -> Set {
        Set { items, extra: None }
    }

    /// Returns the items of the set, without its metadata.
    pub fn items(&self) -> &PSet {
        &self.items
    }

    /// Returns the items of the set for modification in place.
    pub fn items_mut(&mut self) -> &mut PSet {
        &mut self.items
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Tells whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Tells whether the set contains an item.
    pub fn contains(&self, item: &Value) -> bool {
        self.items.contains(item)
    }

    /// Returns the items in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Value> + Clone {
        self.items.iter()
    }

    pub(crate) fn with_extra(&self, extra: Extra) -> Set {
        Set {
            extra,
            ..self.clone()
        }
    }

    /// Returns this set for modification: itself if it is not shared, else a copy.
    pub fn make_mut(this: &mut Rc<Set>) -> &mut Set {
        Rc::make_mut(this)
    }
}
