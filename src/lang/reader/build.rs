//! Construction of collections from their items.

use std::rc::Rc;

use crate::value::{
    Extra, Extras, Keyword, List, Map, Name, PMap, PSet, Place, Set, Span, Symbol, Value, Vector,
};

use super::{ReadError, Reader};

/// Maximum number of entries for which a map iterates in reading order.
const ORDERED: usize = 8;

impl Reader<'_> {
    pub(super) fn build_list(&mut self, base: usize, span: Span) -> Value {
        let extra = self.place(base, span);
        let mut list = List::of(self.values.drain(base..));
        if extra.is_some()
            && let Value::List(cell) = &mut list
            && let Some(cell) = Rc::get_mut(cell)
        {
            cell.extra = extra;
        }
        list
    }

    pub(super) fn build_vector(&mut self, base: usize, span: Span) -> Value {
        let extra = self.place(base, span);
        let mut vector = Vector::new(self.values.drain(base..).collect());
        vector.extra = extra;
        Value::Vector(Rc::new(vector))
    }

    pub(super) fn build_map(&mut self, base: usize, span: Span) -> Result<Value, ReadError> {
        if !(self.values.len() - base).is_multiple_of(2) {
            return Err(self.located(span, self.odd_map(base, span)));
        }
        let mut entries = PMap::new();
        let mut positions = Positions::new(self.tracked, (self.values.len() - base) / 2);
        let mut duplicate = None;
        let mut items = self.values.drain(base..);
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            let before = entries.len();
            entries.insert(key.clone(), value);
            if entries.len() == before {
                duplicate = Some(key);
                break;
            }
            positions.note(&key, before);
        }
        drop(items);
        if let Some(key) = duplicate {
            let first = positions
                .find(&key, entries.iter().map(|entry| entry.0))
                .map(|idx| base + 2 * idx);
            let second = base + 2 * entries.len();
            let error = self.duplicate_key(span, first, second);
            return Err(self.located(span, error));
        }
        let spans = self.take_spans(base);
        let mut map = Map::new(entries);
        if self.is_code() {
            let spans = positions.sort(map.iter().map(|entry| entry.0), spans, 2);
            map.extra = placed(span, spans);
        }
        Ok(Value::Map(Rc::new(map)))
    }

    pub(super) fn build_set(&mut self, base: usize, span: Span) -> Result<Value, ReadError> {
        let mut items = PSet::new();
        let mut positions = Positions::new(self.tracked, self.values.len() - base);
        let mut duplicate = None;
        for item in self.values.drain(base..) {
            let before = items.len();
            items.insert(item.clone());
            if items.len() == before {
                duplicate = Some(item);
                break;
            }
            positions.note(&item, before);
        }
        if let Some(item) = duplicate {
            let first = positions.find(&item, items.iter()).map(|idx| base + idx);
            let second = base + items.len();
            let error = self.duplicate_item(span, first, second);
            return Err(self.located(span, error));
        }
        let spans = self.take_spans(base);
        let mut set = Set::new(items);
        if self.is_code() {
            let spans = positions.sort(set.iter(), spans, 1);
            set.extra = placed(span, spans);
        }
        Ok(Value::Set(Rc::new(set)))
    }

    /// Applies a namespace to the keys from `base` on, as `#:name{` does: a plain key gets the namespace, a key of the
    /// namespace `_` becomes plain.
    pub(super) fn qualify_keys(&mut self, base: usize, namespace: &str) {
        let qualify = |name: &str, own: Option<Rc<str>>| match own.as_deref() {
            None => Some((Some(namespace.to_owned()), name.to_owned())),
            Some("_") => Some((None, name.to_owned())),
            Some(_) => None,
        };
        for key in self.values[base..].iter_mut().step_by(2) {
            if let Some(keyword) = key.as_keyword() {
                if let Some((namespace, name)) = qualify(&keyword.name(), keyword.namespace()) {
                    *key = Value::Keyword(Keyword::with_namespace(namespace.as_deref(), &name));
                }
            } else if let Some(symbol) = key.as_symbol()
                && let Some((namespace, name)) = qualify(&symbol.name(), symbol.namespace())
            {
                let symbol = Symbol::with_namespace(namespace.as_deref(), &name);
                *key = match key {
                    Value::Name(name) => Value::Name(Rc::new(Name {
                        symbol,
                        extra: name.extra.clone(),
                    })),
                    _ => Value::Symbol(symbol),
                };
            }
        }
    }

    fn place(&mut self, base: usize, span: Span) -> Extra {
        let spans = self.take_spans(base);
        self.is_code().then(|| placed(span, spans)).flatten()
    }

    /// Takes the spans of the items from `base` on.
    fn take_spans(&mut self, base: usize) -> Box<[Span]> {
        if self.tracked {
            self.spans.drain(base..).collect()
        } else {
            Box::default()
        }
    }
}

/// Returns a symbol with its place.
pub(super) fn placed_name(symbol: Symbol, span: Span) -> Value {
    Value::Name(Rc::new(Name {
        symbol,
        extra: placed(span, Box::default()),
    }))
}

/// Returns a list with its place.
pub(super) fn placed_list<const N: usize>(
    items: [Value; N],
    span: Span,
    spans: [Span; N],
) -> Value {
    let mut list = List::of(items);
    if let Value::List(cell) = &mut list
        && let Some(cell) = Rc::get_mut(cell)
    {
        cell.extra = placed(span, Box::new(spans));
    }
    list
}

fn placed(span: Span, items: Box<[Span]>) -> Extra {
    Some(Rc::new(Extras {
        meta: Value::Nil,
        place: Some(Place { span, items }),
    }))
}

/// The position of each key of a large map in the text: such a map iterates in another order, and the spans must follow
/// it.
struct Positions(Option<PMap>);

impl Positions {
    fn new(tracked: bool, count: usize) -> Positions {
        Positions((tracked && count > ORDERED).then(PMap::new))
    }

    fn note(&mut self, key: &Value, idx: usize) {
        if let Some(positions) = &mut self.0 {
            positions.insert(key.clone(), Value::from(idx));
        }
    }

    /// Returns the position of a key.
    fn find<'v>(&self, key: &Value, mut keys: impl Iterator<Item = &'v Value>) -> Option<usize> {
        match &self.0 {
            Some(positions) => index(positions.get(key)?),
            None => keys.position(|other| other == key),
        }
    }

    /// Sorts spans into the order of the keys; each key has `each` spans.
    fn sort<'v>(
        &self,
        keys: impl Iterator<Item = &'v Value>,
        spans: Box<[Span]>,
        each: usize,
    ) -> Box<[Span]> {
        let Some(positions) = &self.0 else {
            return spans;
        };
        keys.flat_map(|key| {
            let idx = positions.get(key).and_then(index).unwrap_or(0);
            spans[each * idx..each * (idx + 1)].iter().copied()
        })
        .collect()
    }
}

fn index(value: &Value) -> Option<usize> {
    usize::try_from(value.as_int()?).ok()
}
