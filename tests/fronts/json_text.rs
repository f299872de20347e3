//! JSON that people write: what is read, and what other readers change silently.

use flowstone_fronts::json_text::{long_integer, read};
use serde_json::Value as Json;

#[track_caller]
fn check(text: &str, expected: &str) {
    let found = read(text).map(|json| json.to_string());
    let found = found.unwrap_or_else(|error| error.to_string());
    assert_eq!(found, expected, "{text}");
}

#[test]
fn json_is_read_as_it_is_written() {
    for text in [
        r#"{"a":1,"b":{"a":2},"c":[{"a":1},{"a":2}]}"#,
        r#"{"a\"":"b\\","\\":":","x":"{\"a\":1,\"a\":2}"}"#,
        "[-9223372036854775808,18446744073709551615,1e300,0.5]",
        r#""a text""#,
        "{}",
        "-1",
    ] {
        let same = serde_json::from_str::<Json>(text).expect("JSON");
        check(text, &same.to_string());
    }
    assert!(read("{\"a\": }").is_err());
    assert!(read("\"open").is_err());
}

#[test]
fn a_member_twice_is_refused_with_both_places() {
    check(
        "{\"a\": 1,\n \"ü\": 2, \"a\": 3}",
        "the member `a` is there twice: at line 1, column 2 and at line 2, column 10",
    );
    check(
        r#"[{"x": {"k": 1, "\u006b" : 2}}]"#,
        "the member `k` is there twice: at line 1, column 9 and at line 1, column 17",
    );
}

#[test]
fn an_integer_that_would_be_rounded_is_refused() {
    check(
        r#"{"n": 18446744073709551616}"#,
        "the integer 18446744073709551616 at line 1, column 7 has more than 64 bits, so it would be rounded: write it as a text",
    );
    assert!(read("-9223372036854775809").is_err());
    let long = long_integer(r#"{"a": [1e22, {"n": -123456789012345678901}]}"#);
    assert_eq!(long.as_deref(), Some("-123456789012345678901"));
    for text in [
        "[0.5, 18446744073709551615, -9223372036854775808]",
        "1e22",
        "\"123456789012345678901\"",
    ] {
        assert_eq!(long_integer(text), None, "{text}");
    }
}
