//! `clojure.data.json`: the names of that library over the JSON of flows.

use flowstone_lang::value::{Arity, Class, Exception, Native, Result, Value};

use super::json_text::{Key, Layout, Reading, Writing, rest_of, unread, write_to};
use super::keywords::Keywords;

pub(super) const FNS: &[Native] = &[READ, READ_STR, WRITE, WRITE_STR];

const READING: &[&str] = &["bigdec", "eof-error?", "eof-value", "key-fn", "value-fn"];
const WRITING: &[&str] = &[
    "escape-slash",
    "escape-unicode",
    "indent",
    "key-fn",
    "value-fn",
];

const READ: Native = Native {
    name: "read",
    usage: "(read reader & {:keys [key-fn value-fn bigdec eof-error? eof-value]})",
    doc: "Reads one JSON value from a reader, such as *in*. The options are those of read-str.",
    examples: &[(
        r#"(with-in-str "[1] [2]" [(clojure.data.json/read *in*) (clojure.data.json/read *in*)])"#,
        "[[1] [2]]",
    )],
    arity: Arity::at_least(1),
    run: |vm, args| {
        let Some(text) = rest_of(vm, args.get(0))? else {
            return Err(args.expected(0, "a reader, such as *in*"));
        };
        let options = Keywords::new(&args, 1, READING)?;
        let found = reading(&options).first(vm, &text)?;
        let (value, end) = match found {
            Some(found) => found,
            None => (at_end(&options)?, text.len()),
        };
        unread(args.get(0), &text[end..]);
        Ok(value)
    },
};

const READ_STR: Native = Native {
    name: "read-str",
    usage: "(read-str s & {:keys [key-fn value-fn bigdec eof-error? eof-value]})",
    doc: "Reads the first JSON value of a string. Keys stay strings, or become what :key-fn makes of them; :value-fn is called with each key of an object and its value. :bigdec true reads numbers with a fraction or an exponent as decimals. A blank string is an error, or :eof-value with :eof-error? false.",
    examples: &[
        (
            r#"(clojure.data.json/read-str "{\"a\": [1, null]}")"#,
            r#"{"a" [1 nil]}"#,
        ),
        (
            r#"(clojure.data.json/read-str "{\"a\": 1}" :key-fn keyword :value-fn (fn [k v] [k v]))"#,
            "{:a [:a 1]}",
        ),
        (
            r#"(clojure.data.json/read-str "[1.10, 12345678901234567890]" :bigdec true)"#,
            "[1.10M 12345678901234567890N]",
        ),
    ],
    arity: Arity::at_least(1),
    run: |vm, args| {
        let text = args.text(0)?;
        let options = Keywords::new(&args, 1, READING)?;
        match reading(&options).first(vm, text)? {
            Some((value, _)) => Ok(value),
            None => at_end(&options),
        }
    },
};

const WRITE: Native = Native {
    name: "write",
    usage: "(write x writer & {:keys [key-fn value-fn indent escape-unicode escape-slash]})",
    doc: "Writes a value as JSON to a writer, such as *out*. The options are those of write-str.",
    examples: &[(
        "(with-out-str (clojure.data.json/write {:a 1} *out*))",
        r#""{\"a\":1}""#,
    )],
    arity: Arity::at_least(2),
    run: |vm, args| {
        let options = Keywords::new(&args, 2, WRITING)?;
        let text = writing(&options).text(vm, args.get(0))?;
        write_to(vm, args.get(1), text)
    },
};

const WRITE_STR: Native = Native {
    name: "write-str",
    usage: "(write-str x & {:keys [key-fn value-fn indent escape-unicode escape-slash]})",
    doc: "Returns a value as JSON text. Keys are written by their name, or as :key-fn makes them; :value-fn is called with each key and value, and leaves out what it returns itself for. Characters beyond ASCII and `/` are escaped unless :escape-unicode and :escape-slash are false; :indent true writes lines.",
    examples: &[
        (
            r#"(clojure.data.json/write-str {:a/b [1 :c nil]})"#,
            r#""{\"b\":[1,\"c\",null]}""#,
        ),
        (
            r#"(clojure.data.json/write-str {:a "x/y"} :key-fn str :escape-slash false)"#,
            r#""{\":a\":\"x/y\"}""#,
        ),
    ],
    arity: Arity::at_least(1),
    run: |vm, args| {
        let options = Keywords::new(&args, 1, WRITING)?;
        writing(&options).text(vm, args.get(0)).map(Value::from)
    },
};

fn reading(options: &Keywords) -> Reading {
    Reading {
        key: options.get("key-fn").map(Key::Of),
        value: options.get("value-fn"),
        array: None,
        decimals: options.flag("bigdec", false),
    }
}

fn at_end(options: &Keywords) -> Result<Value> {
    if options.flag("eof-error?", true) {
        let message = "expected JSON, got an empty text";
        return Err(Exception::new(Class::ILLEGAL_ARGUMENT, "E0740", message)
            .hint("`:eof-error? false` gives nil, or `:eof-value`")
            .into());
    }
    Ok(options.get("eof-value").unwrap_or(Value::Nil))
}

fn writing(options: &Keywords) -> Writing {
    Writing {
        key: options.get("key-fn"),
        value: options.get("value-fn"),
        short_names: true,
        layout: if options.flag("indent", false) {
            Layout::Lines
        } else {
            Layout::Compact
        },
        escapes_unicode: options.flag("escape-unicode", true),
        escapes_slashes: options.flag("escape-slash", true),
    }
}
