//! The library's natives, by area. Each area lists its functions in `FNS`; what needs no native is in
//! `stdlib/`.

mod absent;
mod arithmetic;
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
mod host_math;
mod host_numbers;
mod host_system;
mod host_text;
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
mod state;
mod string;
mod tagged;
mod text;
mod transducers;
mod transients;
mod vectors;

use crate::session::Session;
use crate::value::{Object, PVec, Symbol, Value};

/// The areas: namespace and functions. Sorted by file.
const AREAS: &[(&str, &[crate::value::Native])] = &[
    ("clojure.core", absent::FNS),
    ("clojure.core", arithmetic::FNS),
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
    ("Math", host_math::FNS),
    ("Boolean", host_numbers::BOOLEAN_FNS),
    ("Double", host_numbers::DOUBLE_FNS),
    ("Integer", host_numbers::INTEGER_FNS),
    ("Long", host_numbers::LONG_FNS),
    ("System", host_system::FNS),
    ("Thread", host_system::THREAD_FNS),
    ("Character", host_text::CHARACTER_FNS),
    ("String", host_text::STRING_FNS),
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
    ("clojure.string", string::FNS),
    ("clojure.string", string::REPLACE_FNS),
    ("clojure.string", string::SPLIT_FNS),
    ("clojure.core", tagged::FNS),
    ("UUID", tagged::UUID_FNS),
    ("java.util.UUID", tagged::UUID_FNS),
    ("clojure.core", text::FNS),
    ("clojure.core", transducers::FNS),
    ("clojure.core", transients::FNS),
    ("clojure.core", vectors::FNS),
];

/// Names that stand for a number: namespace, name and value.
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
    ("Integer", "MAX_VALUE", Value::Int(i32::MAX as i64)),
    ("Integer", "MIN_VALUE", Value::Int(i32::MIN as i64)),
    ("Long", "MAX_VALUE", Value::Int(i64::MAX)),
    ("Long", "MIN_VALUE", Value::Int(i64::MIN)),
    ("Math", "E", Value::Float(std::f64::consts::E)),
    ("Math", "PI", Value::Float(std::f64::consts::PI)),
    ("clojure.math", "E", Value::Float(std::f64::consts::E)),
    ("clojure.math", "PI", Value::Float(std::f64::consts::PI)),
];

/// Defines every native in its namespace.
pub(crate) fn install(session: &Session) {
    for (namespace, natives) in AREAS {
        session.register(namespace, natives);
    }
    for (namespace, name, value) in CONSTANTS {
        let namespace = session.world().namespace(Symbol::new(namespace));
        namespace.intern(Symbol::new(name)).set_root(value.clone());
    }
    for namespace in ["PersistentQueue", "clojure.lang.PersistentQueue"] {
        let namespace = session.world().namespace(Symbol::new(namespace));
        let empty = Value::from(Object::Queue {
            items: PVec::default(),
            taken: 0,
            meta: Value::Nil,
        });
        namespace.intern(Symbol::new("EMPTY")).set_root(empty);
    }
    let vars = bindings::vars().into_iter();
    for (name, value) in vars.chain(print::vars()).chain(read::vars()) {
        let var = session.world().core.intern(Symbol::new(name));
        var.set_meta(Value::map([(Value::keyword("dynamic"), true.into())]));
        var.set_root(value);
    }
}
