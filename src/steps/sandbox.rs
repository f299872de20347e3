//! Functions for function code beyond the language's own: encodings, hashes, JSON, CSV, time.
//!
//! Each is a pure function of its arguments: no clock, no randomness, no files. The app registers the
//! tables under the namespaces of [`NAMESPACES`].

mod cheshire;
mod data_csv;
mod data_json;
mod encoding;
mod json_text;
mod keywords;
mod table;
mod time;

use flowstone_lang::value::{Class, Exception, Native, Object, Result, Signal, Value};
use flowstone_lang::vm::Args;

/// The namespaces and their functions. `breyta.sandbox` equals `flow.util`, for flows that were written elsewhere;
/// `json` is a short name for frequently used functions. The others are libraries that programs elsewhere use for the
/// same purposes.
pub const NAMESPACES: &[(&str, &[&[Native]])] = &[
    ("breyta.sandbox", &[encoding::FNS, table::FNS, time::FNS]),
    ("cheshire.core", &[cheshire::FNS]),
    ("clojure.data.csv", &[data_csv::FNS]),
    ("clojure.data.json", &[data_json::FNS]),
    (
        "flow.util",
        &[encoding::FNS, table::FNS, table::JSON, time::FNS],
    ),
    ("json", &[table::JSON]),
];

/// Adds every namespace of [`NAMESPACES`] to a session.
pub fn register(session: &flowstone_lang::session::Session) {
    for (namespace, tables) in NAMESPACES {
        for natives in *tables {
            session.register(namespace, natives);
        }
    }
}

/// Reads the bytes of a string or of a byte array.
fn bytes(args: &Args<'_>, idx: usize) -> Result<Vec<u8>> {
    match args.get(idx) {
        Value::Text(text) => Ok(text.as_bytes().to_vec()),
        value => match value.as_bytes() {
            Some(bytes) => Ok(bytes.into_owned()),
            None => Err(args.expected(idx, "a string or bytes")),
        },
    }
}

fn byte_array(bytes: Vec<u8>) -> Value {
    Object::Bytes(bytes.into_boxed_slice()).into()
}

fn utf8(bytes: Vec<u8>) -> Result<Value> {
    String::from_utf8(bytes).map(Value::from).map_err(|_| {
        Exception::new(
            Class::ILLEGAL_ARGUMENT,
            "E0742",
            "the decoded bytes are not text",
        )
        .hint("use the variant that ends in `-bytes`")
        .into()
    })
}

fn bad(class: Class, code: &'static str, message: String) -> Signal {
    Exception::new(class, code, message).into()
}
