//! Hashes: Clojure's Murmur3, so that hashes equal those of Clojure, and a fixed hasher for tables.
//!
//! Values that have only identity (functions, atoms ...) hash by kind and name, never by address: the order of a set
//! must be the same in every process.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher};
use std::rc::Rc;

use super::equality::DEPTH;
use super::meter;
use super::number::decimal::without_zeros;
use super::walk::Walk;
use super::{BigDecimal, BigInt, Force, Object, PMap, Record, Result, Value};

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
    hash_int(java_hash(text))
}

/// Java's `String.hashCode`.
pub fn java_hash(text: &str) -> u32 {
    let step = |hash: u32, unit: u32| hash.wrapping_mul(31).wrapping_add(unit);
    if text.is_ascii() {
        return text
            .bytes()
            .fold(0, |hash, byte| step(hash, u32::from(byte)));
    }
    text.encode_utf16()
        .fold(0, |hash, unit| step(hash, u32::from(unit)))
}

/// Returns Clojure's hash of a symbol from its parts.
pub(super) fn symbol_hash(namespace: Option<&str>, name: &str) -> u32 {
    hash_combine(hash_units(name), namespace.map_or(0, java_hash))
}

/// Returns Clojure's hash of the keyword whose symbol has this hash.
pub(super) fn keyword_hash(symbol: u32) -> u32 {
    symbol.wrapping_add(0x9e37_79b9)
}

fn hash_combine(seed: u32, hash: u32) -> u32 {
    // Clojure shifts a signed int, so the right shift keeps the sign.
    let right = ((seed as i32) >> 2) as u32;
    seed ^ hash
        .wrapping_add(0x9e37_79b9)
        .wrapping_add(seed << 6)
        .wrapping_add(right)
}

fn mix_k1(k1: u32) -> u32 {
    k1.wrapping_mul(0xcc9e_2d51)
        .rotate_left(15)
        .wrapping_mul(0x1b87_3593)
}

fn mix_h1(h1: u32, k1: u32) -> u32 {
    (h1 ^ k1)
        .rotate_left(13)
        .wrapping_mul(5)
        .wrapping_add(0xe654_6b64)
}

fn finish(h1: u32, length: u32) -> u32 {
    let h1 = h1 ^ length;
    let h1 = (h1 ^ (h1 >> 16)).wrapping_mul(0x85eb_ca6b);
    let h1 = (h1 ^ (h1 >> 13)).wrapping_mul(0xc2b2_ae35);
    h1 ^ (h1 >> 16)
}

fn hash_int(input: u32) -> u32 {
    if input == 0 {
        return 0;
    }
    finish(mix_h1(0, mix_k1(input)), 4)
}

#[inline]
pub(super) fn hash_long(input: i64) -> u32 {
    if input == 0 {
        return 0;
    }
    let h1 = mix_h1(0, mix_k1(input as u32));
    finish(mix_h1(h1, mix_k1((input >> 32) as u32)), 8)
}

/// Murmur3 of UTF-16 units, two at a time.
fn hash_units(text: &str) -> u32 {
    let mut units = text.encode_utf16();
    let mut h1 = 0;
    let mut count = 0;
    while let Some(low) = units.next() {
        count += 1;
        let Some(high) = units.next() else {
            h1 ^= mix_k1(u32::from(low));
            break;
        };
        count += 1;
        h1 = mix_h1(h1, mix_k1(u32::from(low) | u32::from(high) << 16));
    }
    finish(h1, 2 * count)
}

/// Mixes the hash of a collection with its size: `mix-collection-hash`.
pub fn mix_collection_hash(hash: u32, count: usize) -> u32 {
    finish(mix_h1(0, mix_k1(hash)), count as u32)
}

/// Java's `Double.hashCode`, with one zero.
fn hash_float(float: f64) -> u32 {
    if float == 0.0 {
        return 0;
    }
    let bits = if float.is_nan() {
        0x7ff8_0000_0000_0000
    } else {
        float.to_bits()
    };
    (bits ^ (bits >> 32)) as u32
}

/// Java's `BigInteger.hashCode`.
fn java_big_hash(int: &BigInt) -> u32 {
    let (sign, digits) = int.to_u32_digits();
    let magnitude = digits.iter().rev().fold(0u32, |hash, digit| {
        hash.wrapping_mul(31).wrapping_add(*digit)
    });
    match sign {
        num_bigint::Sign::Minus => magnitude.wrapping_neg(),
        _ => magnitude,
    }
}

fn hash_big(int: &BigInt) -> u32 {
    i64::try_from(int).map_or_else(|_| java_big_hash(int), hash_long)
}

fn hash_decimal(decimal: &BigDecimal) -> u32 {
    // If a limit is reached, the machine stops the evaluation.
    let shorter = meter::without_yielding(|| without_zeros(decimal));
    let (unscaled, scale) = shorter.unwrap_or_default().into_bigint_and_exponent();
    if unscaled.sign() == num_bigint::Sign::NoSign {
        return 0;
    }
    java_big_hash(&unscaled)
        .wrapping_mul(31)
        .wrapping_add(scale as u32)
}

fn fold_64(bits: u64) -> u32 {
    (bits ^ (bits >> 32)) as u32
}

/// Returns the hash of a value.
///
/// # Errors
/// Any exception thrown while a lazy part is computed.
pub fn hash_value(force: &mut dyn Force, value: &Value) -> Result<u32> {
    if let Some(hash) = hash_at_once(value) {
        return Ok(hash);
    }
    let mut hashing = Hashing {
        force,
        known: HashMap::default(),
        missing: Vec::new(),
        incomplete: HashSet::default(),
        held: Vec::new(),
        gaps: 0,
        work: 0,
    };
    let hash = hashing.run(value)?;
    match hashing.work % MANY {
        0..FEW => {}
        values => hashing.force.charge(values)?,
    }
    Ok(hash)
}

/// Hashes a value that holds no other values.
#[inline]
fn hash_at_once(value: &Value) -> Option<u32> {
    Some(match value {
        Value::Nil => 0,
        Value::Bool(true) => 1231,
        Value::Bool(false) => 1237,
        Value::Int(int) => hash_long(*int),
        Value::Float(float) => hash_float(*float),
        Value::Char(char) => u32::from(*char),
        Value::Keyword(keyword) => keyword.hash_code(),
        Value::Symbol(symbol) => symbol.hash_code(),
        Value::Name(name) => name.symbol.hash_code(),
        Value::Text(text) => text.cached_hash(hash_text),
        Value::BigInt(int) => hash_big(int),
        Value::Ratio(ratio) => java_big_hash(ratio.numer()) ^ java_big_hash(ratio.denom()),
        Value::Decimal(decimal) => hash_decimal(decimal),
        Value::Native(native) => hash_text(native.name),
        Value::Fn(closure) => hash_text(closure.proto.name()),
        Value::Var(var) => var.qualified().hash_code(),
        Value::Atom(_) => hash_text("atom"),
        Value::Exception(exception) => hash_text(exception.text()),
        Value::Object(object) => match &**object {
            Object::Queue { .. }
            | Object::Tagged { .. }
            | Object::Conditional { .. }
            | Object::Host { .. } => return None,
            Object::Inst(millis) => fold_64(*millis as u64),
            Object::Uuid(bits) => fold_64((bits >> 64) as u64 ^ *bits as u64),
            Object::Class(class) => hash_text(class.0.full_name),
            Object::RecordType(record_type) => record_type.name.hash_code(),
            Object::Namespace(namespace) => namespace.name.hash_code(),
            Object::Regex { source, .. } => hash_text(source),
            Object::HostObject(object) => hash_text(object.class_name()) ^ object.hash(),
            Object::Function(function) => hash_text(&function.name),
            Object::Volatile(_)
            | Object::Delay(_)
            | Object::Reduced(_)
            | Object::Transient(_)
            | Object::Array(_)
            | Object::Bytes(_)
            | Object::Instance(_)
            | Object::State(_)
            | Object::Stop(_)
            | Object::Unbound(_) => hash_text(object.kind()),
        },
        Value::Vector(_)
        | Value::Map(_)
        | Value::Set(_)
        | Value::List(_)
        | Value::Seq(_)
        | Value::Lazy(_)
        | Value::Record(_) => return None,
    })
}

/// One hash under way. Values nested deeper than [`DEPTH`] are deferred, hashed separately, and found in `known` when
/// the value that contains them is hashed again.
struct Hashing<'a> {
    force: &'a mut dyn Force,
    known: HashMap<usize, u32, FixedState>,
    missing: Vec<Value>,
    /// Values of this pass whose hash needs one of `missing`.
    incomplete: HashSet<usize, FixedState>,
    /// Kept alive, so that an address in `known` identifies one value.
    held: Vec<Value>,
    /// Number of values without a known hash that this pass found.
    gaps: usize,
    /// Number of values visited.
    work: u32,
}

/// Number of values that are hashed before the hashes of shared ones are remembered, and between two payments.
const MANY: u32 = 1024;
/// Work below this is not worth paying for when the hash is done.
const FEW: u32 = 32;

impl Hashing<'_> {
    fn run(&mut self, value: &Value) -> Result<u32> {
        let hash = self.hash(value, 0)?;
        if self.missing.is_empty() {
            return Ok(hash);
        }
        let mut waiting = vec![value.clone()];
        waiting.append(&mut self.missing);
        loop {
            let Some(value) = waiting.last() else {
                return Ok(0);
            };
            self.incomplete.clear();
            self.gaps = 0;
            let hash = self.hash(value, 0)?;
            if !self.missing.is_empty() {
                waiting.append(&mut self.missing);
                continue;
            }
            let Some(value) = waiting.pop() else {
                return Ok(0);
            };
            if waiting.is_empty() {
                return Ok(hash);
            }
            self.known.insert(address(&value), hash);
            self.held.push(value);
        }
    }

    fn hash(&mut self, value: &Value, depth: usize) -> Result<u32> {
        self.hash_item(value, depth, 1)
    }

    /// `holders`: the number of references to the value held by its place and by the walk there.
    fn hash_item(&mut self, value: &Value, depth: usize, holders: usize) -> Result<u32> {
        if let Some(hash) = hash_at_once(value) {
            return Ok(hash);
        }
        if !self.known.is_empty()
            && let Some(hash) = self.known.get(&address(value))
        {
            return Ok(*hash);
        }
        let is_shared = self.work >= MANY && is_shared(value, holders);
        let place = address(value);
        if depth > DEPTH || is_shared && self.incomplete.contains(&place) {
            self.gaps += 1;
            if self.incomplete.insert(place) {
                self.missing.push(value.clone());
            }
            return Ok(0);
        }
        let gaps = self.gaps;
        let hash = self.hash_parts(value, depth)?;
        if is_shared {
            if self.gaps > gaps {
                self.incomplete.insert(place);
            } else {
                self.known.insert(place, hash);
                self.held.push(value.clone());
            }
        }
        Ok(hash)
    }

    #[inline]
    fn tick(&mut self) -> Result<()> {
        self.work = self.work.wrapping_add(1);
        match self.work.is_multiple_of(MANY) {
            true => self.force.charge(MANY),
            false => Ok(()),
        }
    }

    fn hash_parts(&mut self, value: &Value, depth: usize) -> Result<u32> {
        self.tick()?;
        match value {
            Value::Vector(vector) => {
                let mut hash = 1u32;
                for item in vector.iter() {
                    self.tick()?;
                    hash = hash
                        .wrapping_mul(31)
                        .wrapping_add(self.hash(item, depth + 1)?);
                }
                Ok(mix_collection_hash(hash, vector.len()))
            }
            Value::Map(map) => self.hash_entries(map.entries(), depth),
            Value::Record(record) => {
                Ok(record_type_hash(record) ^ self.hash_entries(&record.fields, depth)?)
            }
            Value::Set(set) => {
                let mut hash = 0u32;
                for item in set.iter() {
                    self.tick()?;
                    hash = hash.wrapping_add(self.hash(item, depth + 1)?);
                }
                Ok(mix_collection_hash(hash, set.len()))
            }
            Value::Object(object) => match &**object {
                Object::Tagged { tag, form } => {
                    let form = self.hash(form, depth + 1)?;
                    Ok(31u32.wrapping_mul(tag.hash_code()).wrapping_add(form))
                }
                Object::Conditional { form, splicing } => {
                    let form = self.hash(form, depth + 1)?;
                    Ok(31u32.wrapping_mul(form).wrapping_add(u32::from(*splicing)))
                }
                Object::Host { kind, id, data } => {
                    let data = self.hash(data, depth + 1)?;
                    Ok(hash_text(kind) ^ hash_long(*id as i64) ^ data)
                }
                _ => self.hash_sequence(value, depth),
            },
            _ => self.hash_sequence(value, depth),
        }
    }

    fn hash_sequence(&mut self, value: &Value, depth: usize) -> Result<u32> {
        let Some(mut walk) = Walk::over(value) else {
            return Ok(0);
        };
        let mut hash = 1u32;
        let mut count = 0;
        while let Some(item) = walk.next(self.force)? {
            self.tick()?;
            hash = hash
                .wrapping_mul(31)
                .wrapping_add(self.hash_item(&item, depth + 1, 2)?);
            count += 1;
        }
        Ok(mix_collection_hash(hash, count))
    }

    fn hash_entries(&mut self, entries: &PMap, depth: usize) -> Result<u32> {
        let mut hash = 0u32;
        for (key, value) in entries.iter() {
            self.tick()?;
            let key = self.hash(key, depth + 1)?;
            let value = self.hash(value, depth + 1)?;
            let entry = 31u32.wrapping_add(key).wrapping_mul(31).wrapping_add(value);
            hash = hash.wrapping_add(mix_collection_hash(entry, 2));
        }
        Ok(mix_collection_hash(hash, entries.len()))
    }
}

/// Clojure hashes the class name of a record: `my_ns.Point`.
fn record_type_hash(record: &Record) -> u32 {
    let name = record.record_type.name.parts();
    let class = match &name.namespace {
        Some(namespace) => format!("{}.{}", namespace.replace('-', "_"), name.name),
        None => name.name.to_string(),
    };
    symbol_hash(None, &class)
}

/// Tells whether a compound value is held in more than one place, so that it may be visited again. `holders`: the
/// references held by one place, and by a walk that is there.
pub(super) fn is_shared(value: &Value, holders: usize) -> bool {
    match value {
        Value::Vector(vector) => Rc::strong_count(vector) > holders,
        Value::Map(map) => Rc::strong_count(map) > holders,
        Value::Set(set) => Rc::strong_count(set) > holders,
        Value::List(list) => Rc::strong_count(list) > holders,
        Value::Seq(view) => Rc::strong_count(view) > holders,
        Value::Lazy(lazy) => Rc::strong_count(lazy) > holders,
        Value::Record(record) => Rc::strong_count(record) > holders,
        _ => false,
    }
}

/// Returns the address of the shared part of a compound value; 0 for a value without one.
pub(super) fn address(value: &Value) -> usize {
    match value {
        Value::Vector(vector) => Rc::as_ptr(vector) as usize,
        Value::Map(map) => Rc::as_ptr(map) as usize,
        Value::Set(set) => Rc::as_ptr(set) as usize,
        Value::List(list) => Rc::as_ptr(list) as usize,
        Value::Seq(view) => Rc::as_ptr(view) as usize,
        Value::Lazy(lazy) => Rc::as_ptr(lazy) as usize,
        Value::Record(record) => Rc::as_ptr(record) as usize,
        Value::Object(object) => Rc::as_ptr(object) as usize,
        _ => 0,
    }
}
