//! The length of a value's written text: a shared part counts wherever it appears.

use std::collections::HashMap;

use super::hash::{FixedState, address, is_shared};
use super::walk::Walk;
use super::{Object, PMap, Unforced, Value};

/// Nesting depth beyond which the parts of a value are not counted, because writers refuse it.
const DEEPEST: usize = 1_000;
/// Number of values that are counted before the sizes of shared ones are remembered.
const MANY: u32 = 256;
/// Characters assumed for a number, a date, or a bracket with its blank.
const SMALL: u64 = 2;

/// Tells whether writing a value takes at most about `bytes` bytes. Takes time in proportion to the memory that the
/// value uses, however often its parts are shared.
pub fn is_written_within(value: &Value, bytes: u64) -> bool {
    let mut counting = Counting {
        known: HashMap::default(),
        held: Vec::new(),
        seen: 0,
        most: bytes,
    };
    counting.size(value, 0, 1) <= bytes
}

struct Counting {
    known: HashMap<usize, u64, FixedState>,
    /// Keeps the addresses in `known` from being reused for other values.
    held: Vec<Value>,
    seen: u32,
    most: u64,
}

impl Counting {
    fn size(&mut self, value: &Value, depth: usize, holders: usize) -> u64 {
        match value {
            Value::Text(text) => return SMALL + text.len() as u64,
            Value::BigInt(int) => return SMALL + int.bits() / 4,
            Value::Exception(_) if depth <= DEEPEST => {}
            _ if !value.is_compound() || depth > DEEPEST => return SMALL,
            _ => {}
        }
        self.seen = self.seen.saturating_add(1);
        let is_shared = self.seen > MANY && is_shared(value, holders);
        if is_shared && let Some(size) = self.known.get(&address(value)) {
            return *size;
        }
        let size = self.parts(value, depth);
        if is_shared {
            self.known.insert(address(value), size);
            self.held.push(value.clone());
        }
        size
    }

    fn parts(&mut self, value: &Value, depth: usize) -> u64 {
        match value {
            Value::Vector(vector) => self.sum(vector.iter(), depth),
            Value::Map(map) => self.entries(map.entries(), depth),
            Value::Record(record) => self.entries(&record.fields, depth),
            Value::Set(set) => self.sum(set.iter(), depth),
            Value::Exception(exception) => {
                let text = SMALL + exception.text().len() as u64;
                let data = self.size(&exception.data, depth + 1, 1);
                let cause = self.size(&exception.cause, depth + 1, 1);
                text.saturating_add(data).saturating_add(cause)
            }
            Value::Object(object) => match &**object {
                Object::Tagged { form, .. } => SMALL + self.size(form, depth + 1, 1),
                Object::Conditional { form, .. } => SMALL + self.size(form, depth + 1, 1),
                _ => self.sequence(value, depth),
            },
            _ => self.sequence(value, depth),
        }
    }

    fn sum<'v>(&mut self, items: impl Iterator<Item = &'v Value>, depth: usize) -> u64 {
        let mut size = SMALL;
        for item in items {
            size = size.saturating_add(self.size(item, depth + 1, 1));
        }
        size
    }

    fn entries(&mut self, entries: &PMap, depth: usize) -> u64 {
        let mut size = SMALL;
        for (key, value) in entries.iter() {
            size = size.saturating_add(self.size(key, depth + 1, 1));
            size = size.saturating_add(self.size(value, depth + 1, 1));
        }
        size
    }

    /// The items of a range use no memory, so counting stops when there are too many.
    fn sequence(&mut self, value: &Value, depth: usize) -> u64 {
        let Some(mut walk) = Walk::over(value) else {
            return SMALL;
        };
        let mut size = SMALL;
        while size <= self.most
            && let Ok(Some(item)) = walk.next(&mut Unforced)
        {
            size = size.saturating_add(self.size(&item, depth + 1, 2));
        }
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Class, Exception};

    #[test]
    fn shared_parts_count_wherever_they_appear() {
        let mut value = Value::from("x");
        for _ in 0..60 {
            value = Value::vector([value.clone(), value]);
        }
        assert!(!is_written_within(&value, 1 << 40));
        assert!(is_written_within(
            &Value::vector([Value::Nil, Value::from("abc")]),
            100
        ));
        assert!(!is_written_within(&Value::from("x".repeat(200)), 100));
        let mut thrown = Exception::new(Class::EXCEPTION_INFO, "", "x");
        thrown.data = value;
        assert!(!is_written_within(&thrown.into(), 1 << 40));
    }
}
