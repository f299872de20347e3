//! Values that programs compute with.
//!
//! A value is 16 bytes: a tag and a payload, which is either stored inline or counted with `Rc`. Values are immutable
//! and stay on their thread. This module does not know about bytecode or how functions run; where an unrealised lazy
//! sequence must be walked, the caller passes a [`Force`].

mod array;
mod change;
mod class;
mod cycles;
pub(crate) mod deferred;
pub(crate) mod drops;
mod equality;
mod exception;
mod function;
mod hash;
pub mod heap;
mod host_object;
mod intern;
mod map;
pub mod meter;
mod namespace;
pub mod number;
mod object;
mod order;
mod print;
mod regex;
mod seq;
mod set;
mod size;
mod span;
mod stream;
mod text;
mod vector;
mod walk;

use std::rc::Rc;

pub use bigdecimal::BigDecimal;
pub use num_bigint::BigInt;
pub use num_rational::BigRational;

pub use array::{Array, Element};
pub use change::{Change, Edit};
pub(crate) use cycles::{collect_few, let_go, track, tracked};
pub use drops::{forget_deferred, free_deferred};
pub use equality::{Force, Unforced, equal};
pub use exception::{
    Class, ClassInfo, Culprit, Exception, Fault, Frame, Hint, NUMBER, Origin, Phase, Result,
    Signal, Stop,
};
pub use function::{Arity, Closure, Example, Native, NativeClosure};
pub use hash::{FixedState, hash_text, hash_value, java_hash, mix_collection_hash};
pub use host_object::{HostConstant, HostObject};
#[cfg(any(test, all(windows, target_arch = "aarch64")))]
pub(crate) use intern::Names;
pub use intern::{Keyword, Named, Symbol};
pub(crate) use intern::{check_name, check_names, name_count};
pub use map::{Comparison, Map, MapIter, MapPlace, PMap, Sorted};
pub use namespace::{CoreNames, Namespace, Var};
pub use number::{Number, format_float};
pub use object::{Atom, Delay, DelayState, Instance, Object, Promise, Record, RecordType, Shape};
pub use order::{compare, compare_exact};
pub use print::{
    CivilTime, PrintOptions, brief, civil_time, describe, millis_of, print_default, print_value,
    write_str,
};
pub(crate) use regex::{Facts, Mode, Search, Subject, is_digit, is_letter};
pub use regex::{Groups, Regex, RegexError, STEP_LIMIT, TooManySteps, compile_regex};
pub use seq::{Emit, Lazy, LazyState, List, NativeThunk, SeqView, Stage, Thunk};
pub use set::{PSet, Set};
pub use size::is_written_within;
pub(crate) use span::HeldText;
pub use span::{Expansion, LineColumn, Place, Source, SourceId, Sources, Span};
pub use stream::{Conditionals, TextReader, TextWriter};
pub use text::Text;
pub use vector::{PVec, VecIter, Vector};

/// Any value of the language.
///
/// The layout is fixed (`repr(C, u8)`: tag at byte 0, payload at byte 8), because the VM writes the two halves
/// separately.
#[derive(Clone, Debug)]
#[repr(C, u8)]
pub enum Value {
    /// `nil`.
    Nil,
    /// `true` or `false`.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A 64-bit floating-point number.
    Float(f64),
    /// A character: a Unicode code point.
    Char(char),
    /// A keyword.
    Keyword(Keyword),
    /// A symbol without metadata.
    Symbol(Symbol),
    /// A function written in Rust, listed in a table of natives.
    Native(&'static Native),
    // From here on the payload is owned.
    /// A string.
    Text(Rc<Text>),
    /// A symbol that carries metadata or a place; equal to the plain symbol.
    Name(Rc<Name>),
    /// A function written in the language.
    Fn(Rc<Closure>),
    /// A vector, or an entry of a map.
    Vector(Rc<Vector>),
    /// A map.
    Map(Rc<Map>),
    /// A set.
    Set(Rc<Set>),
    /// A list, a `cons` cell or the empty list.
    List(Rc<List>),
    /// A sequence over another value, such as a vector from an index on, a range, or the characters of a string.
    Seq(Rc<SeqView>),
    /// A sequence that is computed when it is first read.
    Lazy(Rc<Lazy>),
    /// A var.
    Var(Rc<Var>),
    /// An atom.
    Atom(Rc<Atom>),
    /// An integer of arbitrary size.
    BigInt(Rc<BigInt>),
    /// A ratio.
    Ratio(Rc<BigRational>),
    /// A decimal.
    Decimal(Rc<BigDecimal>),
    /// An exception.
    Exception(Rc<Exception>),
    /// A record.
    Record(Rc<Record>),
    /// Any less common kind of value.
    Object(Rc<Object>),
}

const _: () = assert!(size_of::<Value>() == 16);
const _: () = assert!(size_of::<Option<Value>>() == 16);

/// Metadata and place of a collection or symbol; usually `None`.
pub type Extra = Option<Rc<Extras>>;

/// Metadata and place. See [`Extra`].
#[derive(Debug, Clone)]
pub struct Extras {
    /// A map, or nil.
    pub meta: Value,
    /// Where the reader found the form, for values that are code.
    pub place: Option<Place>,
}

/// A symbol with metadata or a place.
#[derive(Debug)]
pub struct Name {
    /// The symbol itself.
    pub symbol: Symbol,
    /// Its metadata and place.
    pub extra: Extra,
}

impl Value {
    /// Returns a string value.
    pub fn text(text: impl Into<Box<str>>) -> Value {
        Value::Text(Rc::new(Text::new(text)))
    }

    /// Returns the keyword `:text`.
    pub fn keyword(text: &str) -> Value {
        Value::Keyword(Keyword::new(text))
    }

    /// Returns the symbol `text`.
    pub fn symbol(text: &str) -> Value {
        Value::Symbol(Symbol::new(text))
    }

    /// Returns a vector of `items`.
    pub fn vector(items: impl IntoIterator<Item = Value>) -> Value {
        Value::Vector(Rc::new(Vector::new(items.into_iter().collect())))
    }

    /// Returns a map entry: a vector of two items for which `map-entry?` is true.
    pub fn entry(key: Value, value: Value) -> Value {
        Value::Vector(Rc::new(Vector::entry(key, value)))
    }

    /// Returns a map; of entries with equal keys the last is kept.
    pub fn map(entries: impl IntoIterator<Item = (Value, Value)>) -> Value {
        Value::Map(Rc::new(Map::new(entries.into_iter().collect())))
    }

    /// Returns a set of `items`.
    pub fn set(items: impl IntoIterator<Item = Value>) -> Value {
        Value::Set(Rc::new(Set::new(items.into_iter().collect())))
    }

    /// Returns a list of `items`, which may be the empty list.
    pub fn list(items: impl IntoIterator<Item = Value, IntoIter: DoubleEndedIterator>) -> Value {
        List::of(items)
    }

    /// Tells whether this is neither nil nor false.
    #[inline]
    pub fn is_truthy(&self) -> bool {
        !matches!(self, Value::Nil | Value::Bool(false))
    }

    /// Tells whether this is nil.
    #[inline]
    pub fn is_nil(&self) -> bool {
        matches!(self, Value::Nil)
    }

    /// Returns the symbol, with or without metadata.
    pub fn as_symbol(&self) -> Option<Symbol> {
        match self {
            Value::Symbol(symbol) => Some(*symbol),
            Value::Name(name) => Some(name.symbol),
            _ => None,
        }
    }

    /// Returns the keyword, if this is a keyword.
    pub fn as_keyword(&self) -> Option<Keyword> {
        match self {
            Value::Keyword(keyword) => Some(*keyword),
            _ => None,
        }
    }

    /// Returns the text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the integer, if this is a 64-bit integer.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(int) => Some(*int),
            _ => None,
        }
    }

    /// Returns the integer, including a big integer that fits into 64 bits, for use as an index.
    pub fn as_index(&self) -> Option<i64> {
        match self {
            Value::Int(int) => Some(*int),
            Value::BigInt(big) => i64::try_from(&**big).ok(),
            _ => None,
        }
    }

    /// Returns the map, if this is a map. Records do not count as maps here.
    pub fn as_map(&self) -> Option<&Rc<Map>> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the vector, if this is a vector.
    pub fn as_vector(&self) -> Option<&Rc<Vector>> {
        match self {
            Value::Vector(vector) => Some(vector),
            _ => None,
        }
    }

    /// Looks up a keyword in a map or record; `None` for any other value.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Map(map) => map.get(&Value::keyword(key)),
            Value::Record(record) => record.get(&Value::keyword(key)),
            _ => None,
        }
    }

    fn extra(&self) -> Option<&Extra> {
        Some(match self {
            Value::Name(name) => &name.extra,
            Value::Vector(vector) => &vector.extra,
            Value::Map(map) => &map.extra,
            Value::Set(set) => &set.extra,
            Value::List(list) => &list.extra,
            _ => return None,
        })
    }

    /// Returns the place where the reader found this form.
    pub fn place(&self) -> Option<&Place> {
        self.extra()?.as_ref()?.place.as_ref()
    }

    /// Returns the span where the reader found this form, or [`Span::NONE`].
    pub fn span(&self) -> Span {
        self.place().map_or(Span::NONE, |place| place.span)
    }

    /// Returns the span where the reader found the item at `idx` of this form, or [`Span::NONE`].
    pub fn item_span(&self, idx: usize) -> Span {
        let known = self.place().and_then(|place| place.items.get(idx));
        known.copied().unwrap_or(Span::NONE)
    }

    /// Returns the metadata map, or nil.
    pub fn meta(&self) -> Value {
        match self {
            Value::Fn(closure) => closure.meta.clone(),
            Value::Var(var) => var.meta(),
            Value::Atom(atom) => atom.meta.borrow().clone(),
            Value::Record(record) => record.meta.clone(),
            Value::Lazy(lazy) => lazy.meta.clone(),
            Value::Object(object) => object.meta(),
            _ => self
                .extra()
                .and_then(Option::as_ref)
                .map_or(Value::Nil, |extra| extra.meta.clone()),
        }
    }

    /// Returns this value with other metadata; `None` if values of this kind have no metadata.
    pub fn with_meta(&self, meta: Value) -> Option<Value> {
        let extra = |old: &Extra| -> Extra {
            let place = old.as_ref().and_then(|extra| extra.place.clone());
            (place.is_some() || !meta.is_nil()).then(|| {
                Rc::new(Extras {
                    meta: meta.clone(),
                    place,
                })
            })
        };
        Some(match self {
            Value::Symbol(symbol) => Value::Name(Rc::new(Name {
                symbol: *symbol,
                extra: extra(&None),
            })),
            Value::Name(name) => Value::Name(Rc::new(Name {
                symbol: name.symbol,
                extra: extra(&name.extra),
            })),
            Value::Vector(vector) => {
                Value::Vector(Rc::new(vector.with_extra(extra(&vector.extra))))
            }
            Value::Map(map) => Value::Map(Rc::new(map.with_extra(extra(&map.extra)))),
            Value::Set(set) => Value::Set(Rc::new(set.with_extra(extra(&set.extra)))),
            Value::List(list) => Value::List(Rc::new(list.with_extra(extra(&list.extra)))),
            Value::Fn(closure) => Value::Fn(Rc::new(closure.with_meta(meta))),
            Value::Record(record) => Value::Record(Rc::new(record.with_meta(meta))),
            Value::Lazy(lazy) => Value::Lazy(Rc::new(lazy.with_meta(meta))),
            Value::Object(object) => Value::Object(Rc::new(object.with_meta(meta)?)),
            _ => return None,
        })
    }

    /// Returns a form with another place; the value itself if values of this kind have no place.
    pub(crate) fn with_place(&self, place: Place) -> Value {
        let meta = self.extra().and_then(Option::as_ref);
        let extra = Some(Rc::new(Extras {
            meta: meta.map_or(Value::Nil, |extra| extra.meta.clone()),
            place: Some(place),
        }));
        match self {
            Value::Symbol(symbol) => Value::Name(Rc::new(Name {
                symbol: *symbol,
                extra,
            })),
            Value::Name(name) => Value::Name(Rc::new(Name {
                symbol: name.symbol,
                extra,
            })),
            Value::Vector(vector) => Value::Vector(Rc::new(vector.with_extra(extra))),
            Value::Map(map) => Value::Map(Rc::new(map.with_extra(extra))),
            Value::Set(set) => Value::Set(Rc::new(set.with_extra(extra))),
            Value::List(list) if !list.is_empty() => Value::List(Rc::new(list.with_extra(extra))),
            other => other.clone(),
        }
    }

    /// Returns the kind of this value with its article: `a keyword`, `a map` ...
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Nil => "nil",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::BigInt(_) => "an integer",
            Value::Float(_) => "a double",
            Value::Ratio(_) => "a ratio",
            Value::Decimal(_) => "a decimal",
            Value::Char(_) => "a character",
            Value::Keyword(_) => "a keyword",
            Value::Symbol(_) | Value::Name(_) => "a symbol",
            Value::Native(_) | Value::Fn(_) => "a function",
            Value::Text(_) => "a string",
            Value::Vector(_) => "a vector",
            Value::Map(_) => "a map",
            Value::Set(_) => "a set",
            Value::List(_) => "a list",
            Value::Seq(_) => "a sequence",
            Value::Lazy(_) => "a lazy sequence",
            Value::Var(_) => "a var",
            Value::Atom(_) => "an atom",
            Value::Exception(_) => "an exception",
            Value::Record(_) => "a record",
            Value::Object(object) => object.kind(),
        }
    }
}

/// Prints the value like `pr-str`; a lazy sequence that is not computed yet is shown as such.
impl std::fmt::Display for Value {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        /// Maximum length of the text in bytes, because the size of the value is not checked first.
        const MOST_TEXT: u64 = 64_000_000;
        let mut shown = String::new();
        let is_short = is_written_within(self, MOST_TEXT);
        let options = match is_short {
            true => PrintOptions::READABLE,
            false => PrintOptions::BRIEF,
        };
        // Nothing is computed here, so printing fails only for circular values; what was printed until then is enough.
        let _ = print_value(&mut shown, &mut Unforced, self, options);
        out.write_str(&shown)
    }
}

impl From<bool> for Value {
    fn from(bool: bool) -> Self {
        Value::Bool(bool)
    }
}

impl From<i64> for Value {
    fn from(int: i64) -> Self {
        Value::Int(int)
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Value {
    fn from(float: f64) -> Self {
        Value::Float(float)
    }
}

impl From<char> for Value {
    fn from(char: char) -> Self {
        Value::Char(char)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::text(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::text(text)
    }
}

impl From<Keyword> for Value {
    fn from(keyword: Keyword) -> Self {
        Value::Keyword(keyword)
    }
}

impl From<Symbol> for Value {
    fn from(symbol: Symbol) -> Self {
        Value::Symbol(symbol)
    }
}

/// Equality without a VM: an unrealised lazy sequence equals only itself. Keys are realised before they enter a map, so
/// maps and sets use this.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        equality::equal_keys(self, other)
    }
}

impl Eq for Value {}

impl std::hash::Hash for Value {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u32(matches_hash(hash_value(&mut Unforced, self)));
    }
}

fn matches_hash(hash: Result<u32>) -> u32 {
    hash.unwrap_or(0)
}
