//! What is written down is read back, by this build and by later ones.

use std::rc::Rc;

use expect_test::expect;
use flowstone_engine::codec::{self, CodecError};
use flowstone_engine::json;
use flowstone_lang::value::{Atom, Class, Exception, Object, Symbol, Value};

fn sample() -> Value {
    Value::vector([
        Value::Nil,
        Value::Bool(true),
        Value::Int(-7),
        Value::Float(1.0),
        Value::Float(1e300),
        Value::Float(f64::NEG_INFINITY),
        Value::from("a \"quoted\"\nline\u{1}é"),
        Value::Char('('),
        Value::Char('\n'),
        Value::Char('\u{7}'),
        Value::keyword("a/b"),
        Value::keyword("first name"),
        Value::symbol("+"),
        Value::symbol("true"),
        Value::list([Value::Int(1), Value::list([])]),
        Value::map([(Value::keyword("k"), Value::set([Value::Int(1)]))]),
        Object::Inst(1_767_225_600_123).into(),
        Object::Inst(-62_135_596_800_001).into(),
        Object::Uuid(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef).into(),
        Object::Bytes(Box::new([0, 255])).into(),
        Object::Tagged {
            tag: Symbol::new("my/tag"),
            form: Value::vector([Value::Int(1)]),
        }
        .into(),
    ])
}

#[test]
fn the_format_is_held_by_this_golden_text() {
    let text = codec::encode(&sample()).expect("data");
    expect![[r##"[nil true -7 1.0 1e300 ##-Inf "a \"quoted\"\nline\u0001é" \( \newline \u0007 :a/b #flowstone/keyword "first name" + #flowstone/symbol "true" (1 ()) {:k #{1}} #inst "2026-01-01T00:00:00.123Z" #inst "0000-12-31T23:59:59.999Z" #uuid "01234567-89ab-cdef-0123-456789abcdef" #flowstone/bytes "00ff" #my/tag [1]]"##]]
    .assert_eq(&text);
    let back = codec::decode(&text).expect("what was written");
    assert_eq!(codec::encode(&back).as_deref(), Ok(&*text));
}

#[test]
fn numbers_of_every_kind_come_back() {
    for text in [
        "9223372036854775808N",
        "22/7",
        "15E-1M",
        "100M",
        "-0.0",
        "1.0E-10",
        "##NaN",
    ] {
        let value = codec::decode(text).expect("a number");
        let again = codec::encode(&value).expect("data");
        let back = codec::decode(&again).expect("what was written");
        assert_eq!(codec::encode(&back).expect("data"), again, "{text}");
        assert_eq!(value.kind(), back.kind(), "{text}");
    }
}

#[test]
fn an_error_comes_back_with_code_data_and_hints() {
    let exception = Exception::new(Class::ARITHMETIC, "E0302", "no")
        .hint("try")
        .with("kind", Value::keyword("bad"));
    let text = codec::encode(&Value::from(exception)).expect("data");
    let Value::Exception(back) = codec::decode(&text).expect("what was written") else {
        panic!("an exception");
    };
    assert_eq!((back.code, back.text()), ("E0302", "no"));
    assert!(back.class == Class::ARITHMETIC);
    assert_eq!(back.hints, ["try"]);
    assert_eq!(back.data.get("kind"), Some(&Value::keyword("bad")));
}

#[test]
fn equal_values_have_one_digest_whatever_their_order() {
    let pair = |a: &str, b: &str| {
        Value::map([
            (Value::keyword(a), Value::Int(1)),
            (Value::keyword(b), Value::Int(1)),
        ])
    };
    assert_eq!(
        codec::digest(&pair("a", "b")),
        codec::digest(&pair("b", "a"))
    );
    assert_ne!(
        codec::digest(&pair("a", "b")),
        codec::digest(&pair("a", "c"))
    );
}

#[test]
fn what_is_not_data_is_refused_with_its_place() {
    let atom = Value::Atom(Rc::new(Atom::new(Value::Nil)));
    let value = Value::map([(Value::keyword("rows"), Value::vector([Value::Nil, atom]))]);
    assert_eq!(
        codec::encode(&value),
        Err(CodecError::NotData {
            kind: "an atom".to_owned(),
            path: "[:rows 1]".to_owned()
        })
    );
}

#[test]
fn texts_read_back_whatever_their_characters() {
    let mut all: Vec<char> = (0..0x180).filter_map(char::from_u32).collect();
    all.extend(['\u{2028}', '\u{feff}', 'ﬀ', '語', '😀']);
    for char in &all {
        for text in [
            format!("{char}"),
            format!("ab{char}"),
            format!("{char}é\"{char}"),
        ] {
            let value = Value::from(text.as_str());
            let written = codec::encode(&value).expect("a text");
            assert_eq!(codec::decode(&written), Ok(value), "{written}");
        }
    }
    let whole = Value::from(all.into_iter().collect::<String>());
    let written = codec::encode(&whole).expect("a text");
    assert!(written.starts_with(r#""\u0000\u0001"#), "{written}");
    assert!(written.contains(r##" !\"#$"##), "{written}");
    assert!(written.contains("\\u007f\\u0080"), "{written}");
    assert_eq!(codec::decode(&written), Ok(whole));
}

#[test]
fn deep_nesting_is_an_error_both_ways() {
    let mut value = Value::Nil;
    for _ in 0..1000 {
        value = Value::vector([value]);
    }
    assert!(matches!(
        codec::encode(&value),
        Err(CodecError::TooDeep { .. })
    ));
    let text = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert!(matches!(
        codec::decode(&text),
        Err(CodecError::TooDeep { .. })
    ));
}

#[test]
fn entries_of_a_map_are_found_without_reading_their_values() {
    let inner = Value::map([
        (Value::keyword("sample"), sample()),
        (Value::from("b"), Value::set([Value::from("} \" ]")])),
        (Value::keyword("c"), Value::map([])),
    ]);
    let value = Value::map([
        (Value::keyword("before"), sample()),
        (Value::from("inner"), Value::Nil),
        (Value::keyword("inner"), inner.clone()),
    ]);
    let text = codec::encode(&value).expect("data");
    let entries = codec::entries_at(&text, &["inner"]).expect("readable");
    let read = |(key, text): (Value, &str)| (key, codec::decode(text).expect("a value"));
    let found = Value::map(entries.expect("a map").into_iter().map(read));
    assert_eq!(codec::encode(&found), codec::encode(&inner));
    for path in [&["before"][..], &["missing"], &["inner", "sample"]] {
        assert_eq!(codec::entries_at(&text, path), Ok(None), "{path:?}");
    }
    let deep = format!("{{:a {}", "#a ".repeat(200_000));
    for text in ["{:a", "{:a [1 2}", "{:a \"x", "{:a )", &deep] {
        assert!(codec::entries_at(text, &[]).is_err());
        assert!(codec::entries_at(text, &["b"]).is_err());
    }
}

#[test]
fn cut_off_text_is_an_error() {
    let text = codec::encode(&sample()).expect("data");
    for end in 1..text.len() {
        if text.is_char_boundary(end) {
            let _ = codec::decode(&text[..end]);
            let _ = codec::entries_at(&format!("{{:a {}", &text[..end]), &["a"]);
        }
    }
    assert!(codec::decode("[1 2").is_err());
    assert!(codec::decode("").is_err());
    assert!(codec::decode("1 2").is_err());
}

#[test]
fn json_keeps_spelling_and_numbers() {
    let text = r#"{"htmlUrl":"x","n":[1,2.5,18446744073709551615,null,true]}"#;
    let parsed: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let value = json::from_json(&parsed);
    assert_eq!(value.get("htmlUrl"), Some(&Value::from("x")));
    assert_eq!(json::to_json(&value).expect("data").to_string(), text);
}

/// Texts that no build wrote: damaged, made up, or meant to do harm.
#[rustfmt::skip]
const UNREADABLE: &[&str] = &[
    "", " ", ")", "]", "}", "(", "[", "{", "#{", "(]", "[1 2", "{:a}", "{:a 1 :b}", "1 2", "[1] ]",
    "\"", "\"a", "\"\\", "\"\\q\"", "\"\\u12\"", "\"\\ud800\"", "\"\\uzzzz\"", "\"\\u+123\"",
    "\\", "\\unknown", "\\ud800", "\\u110000", "\\newlin",
    "1x", "1.2.3", "0x10", "1/0", "1/", "-1/0", "4/2", "3/-1", "1e", "1MN", "1NN", "12N3", "1e5N",
    "#", "#inst", "#inst 1", "#inst \"\"", "#inst \"Z\"", "#inst \"2026-01-01\"", "#inst \"2026-01-01T00:00:00Z\"",
    "#inst \"2026-13-01T00:00:00.000Z\"", "#inst \"2026-00-01T00:00:00.000Z\"", "#inst \"2026-01-32T00:00:00.000Z\"",
    "#inst \"2026-01-01T24:00:00.000Z\"", "#inst \"2026-01-01T00:60:00.000Z\"", "#inst \"2026-01-01T00:00:00.1000Z\"",
    "#inst \"2026-01-01T2304855273472004613:00:00.123Z\"", "#inst \"9223372036854775807-01-01T00:00:00.000Z\"",
    "#inst \"-9223372036854775808-01-01T00:00:00.000Z\"", "#inst \"300000001-01-01T00:00:00.000Z\"",
    "#inst \"2026-01-9223372036854775807T00:00:00.000Z\"", "#inst \"2026-01-01T00:00:-1.000Z\"", "#inst \"2026-1-1-1T0:0:0.0Z\"",
    "#inst \"2026-01-01T00:00:00:00.000Z\"", "#inst \"292278994-08-17T07:12:55.808Z\"", "#inst \"2026-01-01T00:00:00.000+00:00\"",
    "#uuid 1", "#uuid \"\"", "#uuid \"01234567-89ab-cdef-0123-456789abcde\"", "#uuid \"+1234567-89ab-cdef-0123-456789abcdef\"",
    "#uuid \"01234567-89ab-cdef-0123-456789abcdefff\"", "#uuid \"g1234567-89ab-cdef-0123-456789abcdef\"",
    "#flowstone/bytes 1", "#flowstone/bytes \"0\"", "#flowstone/bytes \"0g\"", "#flowstone/bytes \"éé\"",
    "#flowstone/keyword 1", "#flowstone/symbol nil", "#flowstone/regex \"(\"", "#flowstone/regex 1",
    "#flowstone/error 1", "#flowstone/error {}", "#flowstone/error {:class 1}",
];

#[test]
fn text_that_nobody_wrote_is_refused() {
    let read: Vec<String> = UNREADABLE
        .iter()
        .map(|text| (text, codec::decode(text)))
        .filter(|(_, found)| !matches!(found, Err(CodecError::Unreadable { .. })))
        .map(|(text, found)| format!("{text}: {found:?}"))
        .collect();
    assert!(read.is_empty(), "{}", read.join("\n"));
}

#[test]
fn the_first_and_last_instants_come_back() {
    for millis in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX] {
        let text = codec::encode(&Object::Inst(millis).into()).expect("data");
        let back = codec::decode(&text).expect("what was written");
        assert_eq!(back, Object::Inst(millis).into(), "{text}");
    }
}
