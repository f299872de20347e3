//! The library's natives, by area. Each area lists its functions in `FNS`; functions that need no native are in
//! `stdlib/`.

mod absent;
mod arithmetic;
mod arrays;
mod bindings;
mod bits;
mod classes;
mod collections;
mod errors;
mod eval;
mod files;
mod format;
mod functions;
mod hash;
mod hints;
mod host_base64;
mod host_big;
mod host_builder;
mod host_bytes;
mod host_characters;
mod host_floats;
mod host_integers;
mod host_mark;
mod host_math;
mod host_numbers;
mod host_system;
mod host_text;
mod host_url;
mod machine;
mod maps;
mod math;
mod multimethods;
mod namespaces;
mod number;
mod predicates;
mod print;
mod promises;
mod protocols;
mod random;
mod read;
mod regex;
mod require;
mod sequences;
mod sets;
mod sorted;
pub(crate) mod state;
mod streams;
mod string;
mod tagged;
mod text;
pub(crate) mod time;
mod transducers;
mod transients;
mod vectors;

pub(crate) use multimethods::printed;
pub(crate) use print::options as print_options;

use crate::value::{Class, Object, Symbol, Value};
use crate::vm::World;

/// The areas: namespace and functions, sorted by file.
const AREAS: &[(&str, &[crate::value::Native])] = &[
    ("clojure.core", absent::FNS),
    ("clojure.core", arithmetic::FNS),
    ("clojure.core", arrays::FNS),
    ("clojure.core", arrays::MAKE_FNS),
    ("clojure.core", bindings::FNS),
    ("clojure.core", bits::FNS),
    ("clojure.core", classes::FNS),
    ("clojure.core", collections::FNS),
    ("clojure.core", errors::FNS),
    ("clojure.core", eval::FNS),
    ("clojure.core", files::FNS),
    ("clojure.core", format::FNS),
    ("clojure.core", functions::FNS),
    ("clojure.core", hash::FNS),
    ("clojure.core", hints::FNS),
    ("Base64", host_base64::BASE64_FNS),
    ("clojure.core", host_base64::METHODS),
    ("BigDecimal", host_big::DECIMAL_FNS),
    ("BigInteger", host_big::INTEGER_FNS),
    ("clojure.core", host_big::METHODS),
    ("StringBuffer", host_builder::BUFFER_FNS),
    ("StringBuilder", host_builder::BUILDER_FNS),
    ("clojure.core", host_builder::METHODS),
    ("Charset", host_bytes::CHARSET_FNS),
    ("clojure.core", host_bytes::METHODS),
    ("String", host_bytes::STRING_FNS),
    ("Character", host_characters::MORE_FNS),
    ("Double", host_floats::BIT_FNS),
    ("Double", host_floats::DOUBLE_FNS),
    ("Float", host_floats::FLOAT_FNS),
    ("Integer", host_integers::INTEGER_FNS),
    ("Long", host_integers::LONG_FNS),
    ("Object", host_mark::FNS),
    ("Math", host_math::FNS),
    ("Boolean", host_numbers::BOOLEAN_FNS),
    ("Double", host_numbers::DOUBLE_FNS),
    ("Float", host_numbers::FLOAT_FNS),
    ("Integer", host_numbers::INTEGER_FNS),
    ("Long", host_numbers::LONG_FNS),
    ("System", host_system::FNS),
    ("Thread", host_system::THREAD_FNS),
    ("Character", host_text::CHARACTER_FNS),
    ("String", host_text::STRING_FNS),
    ("URLDecoder", host_url::DECODER_FNS),
    ("URLEncoder", host_url::ENCODER_FNS),
    ("clojure.core", machine::FNS),
    ("clojure.core", maps::FNS),
    ("clojure.math", math::FNS),
    ("clojure.core", multimethods::FNS),
    ("clojure.core", namespaces::FNS),
    ("clojure.core", number::FNS),
    ("clojure.core", predicates::FNS),
    ("clojure.core", print::FNS),
    ("clojure.core", promises::FNS),
    ("clojure.core", protocols::FNS),
    ("clojure.edn", read::EDN_FNS),
    ("clojure.core", read::FNS),
    ("clojure.core", regex::FNS),
    ("clojure.core", regex::METHODS),
    ("clojure.core", require::FNS),
    ("clojure.core", sequences::FNS),
    ("clojure.core", sequences::generate::FNS),
    ("clojure.core", sequences::order::FNS),
    ("clojure.core", sequences::parts::FNS),
    ("clojure.core", sequences::pipeline::FNS),
    ("clojure.core", sequences::reducing::FNS),
    ("clojure.core", sets::FNS),
    ("clojure.core", sorted::FNS),
    ("clojure.core", state::FNS),
    ("clojure.core", streams::FNS),
    ("clojure.edn", streams::EDN_FNS),
    ("BufferedReader", streams::READER_FNS),
    ("LineNumberingPushbackReader", streams::READER_FNS),
    ("PushbackReader", streams::READER_FNS),
    ("StringReader", streams::READER_FNS),
    ("StringWriter", streams::WRITER_FNS),
    ("clojure.string", string::FNS),
    ("clojure.string", string::REPLACE_FNS),
    ("clojure.string", string::SPLIT_FNS),
    ("clojure.core", tagged::FNS),
    ("UUID", tagged::UUID_FNS),
    ("clojure.core", text::FNS),
    ("clojure.core", transducers::FNS),
    ("clojure.core", transients::FNS),
    ("clojure.core", vectors::FNS),
];

/// Named numbers: namespace, name and value.
const CONSTANTS: &[(&str, &str, Value)] = &[
    ("Double", "MAX_VALUE", Value::Float(f64::MAX)),
    ("Double", "MIN_VALUE", Value::Float(5e-324)),
    (
        "Double",
        "NEGATIVE_INFINITY",
        Value::Float(f64::NEG_INFINITY),
    ),
    ("Double", "NaN", Value::Float(f64::NAN)),
    ("Double", "POSITIVE_INFINITY", Value::Float(f64::INFINITY)),
    ("BigDecimal", "ROUND_CEILING", Value::Int(2)),
    ("BigDecimal", "ROUND_DOWN", Value::Int(1)),
    ("BigDecimal", "ROUND_FLOOR", Value::Int(3)),
    ("BigDecimal", "ROUND_HALF_DOWN", Value::Int(5)),
    ("BigDecimal", "ROUND_HALF_EVEN", Value::Int(6)),
    ("BigDecimal", "ROUND_HALF_UP", Value::Int(4)),
    ("BigDecimal", "ROUND_UNNECESSARY", Value::Int(7)),
    ("BigDecimal", "ROUND_UP", Value::Int(0)),
    ("Boolean", "FALSE", Value::Bool(false)),
    ("Boolean", "TRUE", Value::Bool(true)),
    ("Byte", "MAX_VALUE", Value::Int(i8::MAX as i64)),
    ("Byte", "MIN_VALUE", Value::Int(i8::MIN as i64)),
    ("Character", "MAX_VALUE", Value::Char('\u{ffff}')),
    ("Character", "MIN_VALUE", Value::Char('\0')),
    ("Float", "MAX_VALUE", Value::Float(3.4028235e38)),
    ("Float", "MIN_VALUE", Value::Float(1.4e-45)),
    (
        "Float",
        "NEGATIVE_INFINITY",
        Value::Float(f64::NEG_INFINITY),
    ),
    ("Float", "NaN", Value::Float(f64::NAN)),
    ("Float", "POSITIVE_INFINITY", Value::Float(f64::INFINITY)),
    ("Integer", "MAX_VALUE", Value::Int(i32::MAX as i64)),
    ("Integer", "MIN_VALUE", Value::Int(i32::MIN as i64)),
    ("Long", "MAX_VALUE", Value::Int(i64::MAX)),
    ("Long", "MIN_VALUE", Value::Int(i64::MIN)),
    ("Math", "E", Value::Float(std::f64::consts::E)),
    ("Math", "PI", Value::Float(std::f64::consts::PI)),
    ("Short", "MAX_VALUE", Value::Int(i16::MAX as i64)),
    ("Short", "MIN_VALUE", Value::Int(i16::MIN as i64)),
    ("clojure.math", "E", Value::Float(std::f64::consts::E)),
    ("clojure.math", "PI", Value::Float(std::f64::consts::PI)),
];

/// The primitive classes: each is the `TYPE` of its wrapper class.
const PRIMITIVES: &[(&str, Class)] = &[
    ("Boolean", Class::PRIMITIVE_BOOLEAN),
    ("Byte", Class::PRIMITIVE_BYTE),
    ("Character", Class::PRIMITIVE_CHAR),
    ("Double", Class::PRIMITIVE_DOUBLE),
    ("Float", Class::PRIMITIVE_FLOAT),
    ("Integer", Class::PRIMITIVE_INT),
    ("Long", Class::PRIMITIVE_LONG),
    ("Short", Class::PRIMITIVE_SHORT),
];

/// Returns the named values of host classes: class, name and value.
fn host_constants() -> impl Iterator<Item = (&'static str, &'static str, Value)> {
    host_big::constants()
        .chain(host_bytes::constants())
        .chain(time::constants())
}

/// Defines every native in its namespace.
pub(crate) fn install(world: &World) {
    for (namespace, natives) in AREAS.iter().chain(time::AREAS) {
        world.register(namespace, natives);
    }
    for (namespace, name, value) in CONSTANTS {
        let namespace = world.namespace(Symbol::new(namespace));
        namespace.intern(Symbol::new(name)).set_root(value.clone());
    }
    let empty = [
        ("PersistentArrayMap", Value::map([])),
        ("PersistentHashMap", Value::map([])),
        ("PersistentHashSet", Value::set([])),
        ("PersistentList", Value::list([])),
        ("PersistentQueue", collections::empty_queue()),
        ("PersistentVector", Value::vector([])),
    ];
    let empty = empty.map(|(class, value)| (class, "EMPTY", value));
    for (class, name, value) in host_constants().chain(empty) {
        let namespace = world.namespace(Symbol::new(class));
        namespace.intern(Symbol::new(name)).set_root(value);
    }
    for (namespace, class) in PRIMITIVES {
        let namespace = world.namespace(Symbol::new(namespace));
        let var = namespace.intern(Symbol::new("TYPE"));
        var.set_root(Value::from(Object::Class(*class)));
    }
    let vars = bindings::vars().into_iter();
    for (name, value) in vars.chain(print::vars()).chain(read::vars()) {
        let var = world.core.intern(Symbol::new(name));
        var.set_meta(Value::map([(Value::keyword("dynamic"), true.into())]));
        var.set_root(value);
    }
}
