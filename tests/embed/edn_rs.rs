//! Conversion to and from the crate `edn-rs`.

use std::collections::BTreeMap;

use edn_rs::{Edn, Map};
use flowstone_embed::Value;
use flowstone_embed::edn_rs::{from_value, to_value};
use flowstone_embed::reader::read_data;

fn value(text: &str) -> Value {
    read_data(text).expect("data")
}

#[test]
fn data_survives_the_round_trip() {
    for text in [
        "nil",
        "true",
        "-1",
        "18446744073709551615N",
        "1.5",
        "##Inf",
        "3/4",
        "\\a",
        "\\newline",
        "\"a \\\"b\\\"\"",
        ":a",
        ":a/b",
        "sym",
        "a/b",
        "[1 [2 nil]]",
        "(1 2)",
        "()",
        "#{1 2 3}",
        "{:a 1, :b {:c [2]}}",
        "{\"name\" 1, \"two words\" 2}",
        "{1 :one, true :yes}",
        "{[1 2] 3}",
        "#my/tag {:x 1}",
        "#inst \"2020-01-02T03:04:05.000-00:00\"",
        "#uuid \"00000000-0000-0000-0000-00000000000a\"",
    ] {
        let edn = from_value(&value(text)).unwrap_or_else(|error| panic!("{text}: {error}"));
        let back = to_value(&edn).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(back, value(text), "{text}: {edn}");
    }
}

#[test]
fn text_of_one_is_read_by_the_other() {
    let text = "{:a [1 2.5 \"x\" nil], :b #{:c}, :d (1 2)}";
    let theirs: Edn = text.parse().expect("edn-rs reads it");
    assert_eq!(to_value(&theirs), Ok(value(text)));
    let theirs_again: Edn = from_value(&value(text)).expect("plain data");
    assert_eq!(theirs_again, theirs);
}

#[test]
fn values_without_a_counterpart_are_errors() {
    for (text, expected) in [
        (
            "{\"1\" :text}",
            "the key \"1\" would come back as 1: edn-rs keeps keys as plain text",
        ),
        (
            "{a 1}",
            "the key a would come back as \"a\": edn-rs keeps keys as plain text",
        ),
        ("1.5M", "1.5M (a decimal) has no counterpart in edn-rs"),
        (
            "-9223372036854775809N",
            "-9223372036854775809N (an integer) has no counterpart in edn-rs",
        ),
    ] {
        let error = from_value(&value(text)).expect_err(text);
        assert_eq!(error.to_string(), expected);
    }
    let odd = Edn::Map(Map::new(BTreeMap::from([(
        ":a".to_owned(),
        Edn::Key("a b".to_owned()),
    )])));
    assert!(to_value(&odd).is_err());
}
