//! `cheshire.core`: the names of that library over the JSON of flows.

use flowstone_lang::value::{Arity, Class, Exception, Native, Result, Value};
use flowstone_lang::vm::{Args, Vm};

use super::json_text::{Key, Layout, Reading, Writing, rest_of, unread, write_to};
use super::keywords::Keywords;

pub(super) const FNS: &[Native] = &[
    GENERATE_STREAM,
    GENERATE_STRING,
    PARSE_STREAM,
    PARSE_STRING,
    PARSE_STRING_STRICT,
    PARSED_SEQ,
];

const WRITING: &[&str] = &["escape-non-ascii", "key-fn", "pretty"];

const GENERATE_STRING: Native = Native {
    name: "generate-string",
    usage: "(generate-string x)\n(generate-string x {:keys [pretty key-fn escape-non-ascii]})",
    doc: "Returns a value as JSON text. Keywords are written with their namespace; :key-fn makes the text of a key, :pretty true writes lines.",
    examples: &[
        (
            "(cheshire.core/generate-string {:a/b [1 :c nil]})",
            r#""{\"a/b\":[1,\"c\",null]}""#,
        ),
        (
            "(cheshire.core/generate-string {:a [1 2]} {:pretty true})",
            r#""{\n  \"a\" : [ 1, 2 ]\n}""#,
        ),
    ],
    arity: Arity::between(1, 2),
    run: |vm, args| generated(vm, &args, 1).map(Value::from),
};

const GENERATE_STREAM: Native = Native {
    name: "generate-stream",
    usage: "(generate-stream x writer)\n(generate-stream x writer options)",
    doc: "Writes a value as JSON to a writer, such as *out*, and returns the writer.",
    examples: &[(
        "(with-out-str (cheshire.core/generate-stream [1] *out*))",
        r#""[1]""#,
    )],
    arity: Arity::between(2, 3),
    run: |vm, mut args| {
        let text = generated(vm, &args, 2)?;
        write_to(vm, args.get(1), text)?;
        Ok(args.take(1))
    },
};

const PARSE_STRING: Native = Native {
    name: "parse-string",
    usage: "(parse-string s)\n(parse-string s key-fn)\n(parse-string s key-fn array-coerce-fn)",
    doc: "Reads JSON text; nil for nil and for a blank text. Keys stay strings, with true they become keywords, with a function what it makes of them. The second function returns what an array is collected into, given the key above it.",
    examples: &[
        (r#"(cheshire.core/parse-string "{\"a\": 1}")"#, r#"{"a" 1}"#),
        (
            r#"(cheshire.core/parse-string "{\"a\": 1}" true)"#,
            "{:a 1}",
        ),
        (
            r#"(cheshire.core/parse-string "{\"a\": [1, 1]}" true (fn [k] #{}))"#,
            "{:a #{1}}",
        ),
    ],
    arity: Arity::between(1, 3),
    run: parse_string,
};

const PARSE_STRING_STRICT: Native = Native {
    name: "parse-string-strict",
    usage: "(parse-string-strict s)\n(parse-string-strict s key-fn)\n(parse-string-strict s key-fn array-coerce-fn)",
    doc: "Reads JSON text as parse-string does.",
    examples: &[(r#"(cheshire.core/parse-string-strict "[1, 2]")"#, "[1 2]")],
    arity: Arity::between(1, 3),
    run: parse_string,
};

const PARSE_STREAM: Native = Native {
    name: "parse-stream",
    usage: "(parse-stream reader)\n(parse-stream reader key-fn)\n(parse-stream reader key-fn array-coerce-fn)",
    doc: "Reads one JSON value from a reader, such as *in*; nil at its end.",
    examples: &[(
        r#"(with-in-str "{\"a\": 1}" (cheshire.core/parse-stream *in* true))"#,
        "{:a 1}",
    )],
    arity: Arity::between(1, 3),
    run: |vm, args| {
        let text = rest_of(vm, args.get(0))?;
        let text = text.ok_or_else(|| args.expected(0, "a reader, such as *in*"))?;
        let found = reading(&args)?.first(vm, &text)?;
        let (value, end) = found.unwrap_or((Value::Nil, text.len()));
        unread(args.get(0), &text[end..]);
        Ok(value)
    },
};

const PARSED_SEQ: Native = Native {
    name: "parsed-seq",
    usage: "(parsed-seq reader)\n(parsed-seq reader key-fn)\n(parsed-seq reader key-fn array-coerce-fn)",
    doc: "Returns the JSON values of a reader, such as *in*, one after the other.",
    examples: &[(
        r#"(with-in-str "{\"a\": 1}\n{\"a\": 2}" (cheshire.core/parsed-seq *in* true))"#,
        "[{:a 1} {:a 2}]",
    )],
    arity: Arity::between(1, 3),
    run: |vm, args| {
        let text = rest_of(vm, args.get(0))?;
        let text = text.ok_or_else(|| args.expected(0, "a reader, such as *in*"))?;
        let reading = reading(&args)?;
        let mut values = Vec::new();
        let mut rest = text.as_str();
        while let Some((value, end)) = reading.first(vm, rest)? {
            values.push(value);
            rest = &rest[end..];
        }
        Ok(Value::list(values))
    },
};

fn parse_string(vm: &mut Vm, args: Args<'_>) -> Result<Value> {
    if args.get(0).is_nil() {
        return Ok(Value::Nil);
    }
    let text = args.text(0)?;
    let found = reading(&args)?.first(vm, text)?;
    Ok(found.map_or(Value::Nil, |(value, _)| value))
}

fn reading(args: &Args<'_>) -> Result<Reading> {
    let given = |idx| (args.len() > idx).then(|| args.get(idx).clone());
    let key = match given(1) {
        None | Some(Value::Nil | Value::Bool(false)) => None,
        Some(Value::Bool(true)) => Some(Key::Keyword),
        Some(function) => Some(Key::Of(function)),
    };
    Ok(Reading {
        key,
        value: None,
        array: given(2).filter(|function| !function.is_nil()),
        decimals: false,
    })
}

fn generated(vm: &mut Vm, args: &Args<'_>, at: usize) -> Result<String> {
    let options = Keywords::new(args, at, WRITING)?;
    let layout = match options.get("pretty") {
        None | Some(Value::Nil | Value::Bool(false)) => Layout::Compact,
        Some(Value::Bool(true)) => Layout::Spaced,
        Some(_) => {
            let message = "`:pretty` is true or false";
            return Err(Exception::new(Class::ILLEGAL_ARGUMENT, "E0741", message)
                .argument(at)
                .into());
        }
    };
    let writing = Writing {
        key: options.get("key-fn"),
        value: None,
        short_names: false,
        layout,
        escapes_unicode: options.flag("escape-non-ascii", false),
        escapes_slashes: false,
    };
    writing.text(vm, args.get(0))
}
