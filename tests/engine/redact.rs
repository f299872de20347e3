//! Secrets are found in each form in which text may hold them, and what is left can be read.

use std::fmt::Write as _;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use flowstone_engine::codec;
use flowstone_engine::ports::Secret;
use flowstone_engine::redact::{RedactStream, Redactor, SECRET, weakness};
use flowstone_lang::value::{Object, Value};
use proptest::prelude::*;

/// Each is met in every form.
const SECRETS: &[&str] = &[
    "tok-4f9a8b7c6d5e",
    "pass\"word-with-quote",
    r"back\slash\nand\\more",
    "two words and more",
    "100%sure%20about",
    "schlüssel-für-Ärger",
    "emoji🔑inside",
    "line one\nline two\tend",
    "a/b+c=d/e==",
    "<b>&amp;'quoted'</b>",
    "eyJhbGciOi.eyJzdWIiOi.s1gn_at-ure~",
    "0e3f1c52-7a5b-4f7e-9a53-0c2a8d1f6b11",
    "918273645",
    "$ecret`with'shell\"chars;",
    "abcdef",
];

fn json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn json_ascii(text: &str, upper: bool) -> String {
    let mut out = String::new();
    for char in json(text).chars() {
        if char.is_ascii() {
            out.push(char);
            continue;
        }
        for unit in char.encode_utf16(&mut [0; 2]) {
            match upper {
                true => write!(out, "\\u{unit:04X}"),
                false => write!(out, "\\u{unit:04x}"),
            }
            .expect("written");
        }
    }
    out
}

fn json_for_html(text: &str) -> String {
    let mut out = json(text);
    for char in ['<', '>', '&', '\''] {
        out = out.replace(char, &format!("\\u{:04x}", u32::from(char)));
    }
    out
}

fn edn(text: &str) -> String {
    let quoted = codec::encode(&Value::from(text)).expect("text");
    quoted[1..quoted.len() - 1].to_owned()
}

fn url(text: &str, safe: &str, plus: bool, upper: bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        let char = char::from(byte);
        if char.is_ascii_alphanumeric() || safe.contains(char) {
            out.push(char);
        } else if plus && byte == b' ' {
            out.push('+');
        } else if upper {
            write!(out, "%{byte:02X}").expect("written");
        } else {
            write!(out, "%{byte:02x}").expect("written");
        }
    }
    out
}

fn html(text: &str, quote: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let text = text.replace('>', "&gt;").replace('"', "&quot;");
    text.replace('\'', quote)
}

fn references(text: &str, hex: bool) -> String {
    let reference = |char: char| match hex {
        true => format!("&#x{:X};", u32::from(char)),
        false => format!("&#{};", u32::from(char)),
    };
    text.chars().map(reference).collect()
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Base64 behind other bytes, as the whole text that somebody may send.
fn base64(text: &str, before: &str) -> String {
    STANDARD.encode(format!("{before}{text}"))
}

fn escaped_fully(text: &str) -> String {
    text.encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect()
}

/// All forms of a text, by their names.
fn forms(text: &str) -> Vec<(&'static str, String)> {
    vec![
        ("raw", text.to_owned()),
        ("edn", edn(text)),
        ("json", json(text)),
        ("json, slashes escaped", json(text).replace('/', "\\/")),
        ("json, ascii", json_ascii(text, false)),
        ("json, ascii, upper case", json_ascii(text, true)),
        ("json, for html", json_for_html(text)),
        ("json, all escaped", escaped_fully(text)),
        ("json in json", json(&json(text))),
        ("json in edn", edn(&json(text))),
        ("ascii json in edn", edn(&json_ascii(text, false))),
        ("json in json in edn", edn(&json(&json(text)))),
        ("url, component", url(text, "-_.!~*'()", false, true)),
        ("url, lower case", url(text, "-_.~", false, false)),
        ("url, form", url(text, "-_.*", true, true)),
        ("url, path", url(text, "-_.~!$&'()*+,;=:@/", false, true)),
        (
            "url, all",
            text.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        ),
        (
            "url in url",
            url(&url(text, "-_.~", false, true), "-_.~", false, true),
        ),
        ("html", html(text, "&#39;")),
        ("html, hex quote", html(text, "&#x27;")),
        ("html, named quote", html(text, "&apos;")),
        ("html, decimal", references(text, false)),
        ("html, hex", references(text, true)),
        ("hex", hex(text)),
        ("hex, upper case", hex(text).to_uppercase()),
        ("hex of json", hex(&json(text))),
    ]
}

/// Base64 texts, whose neighbours are encoded with them.
fn encoded(text: &str) -> Vec<(&'static str, String)> {
    let safe = |text: &str| URL_SAFE_NO_PAD.encode(text);
    vec![
        ("base64", base64(text, "")),
        ("base64 at 1", base64(text, "u")),
        ("base64 at 2", base64(text, "us")),
        ("basic auth", base64(text, "user:")),
        (
            "base64 of a document",
            base64(&format!("{}\"}}", json(text)), "{\"t\":\""),
        ),
        ("base64, safe", safe(text)),
        ("base64, safe at 1", safe(&format!("u{text}"))),
        ("base64, safe at 2", safe(&format!("us{text}"))),
        (
            "base64 in json",
            json(&base64(text, "")).replace('/', "\\/"),
        ),
        (
            "base64 in a url",
            url(&base64(text, "a:"), "-_.~", false, true),
        ),
    ]
}

fn redactor(secrets: &[&str]) -> Redactor {
    let secrets: Vec<Secret> = secrets.iter().map(|text| Secret::new(*text)).collect();
    Redactor::new(&secrets)
}

/// The longest part of a that is in b.
fn shared(a: &str, b: &str) -> usize {
    let chars: Vec<char> = a.chars().collect();
    let mut longest = 0;
    for start in 0..chars.len() {
        while start + longest < chars.len() {
            let part: String = chars[start..=start + longest].iter().collect();
            match b.contains(&part) {
                true => longest += 1,
                false => break,
            }
        }
    }
    longest
}

#[test]
fn each_form_of_each_secret_is_found() {
    let all = redactor(SECRETS);
    let mut rows = 0;
    for secret in SECRETS {
        let own = redactor(&[secret]);
        for (name, form) in forms(secret) {
            for redactor in [&own, &all] {
                let clean = redactor.text(format!("«{form}» "));
                assert_eq!(clean, "«[secret]» ", "{secret:?} as {name}: {form}");
            }
            rows += 1;
        }
        for (name, form) in encoded(secret) {
            let clean = own.text(format!("«{form}» "));
            assert!(clean.contains(SECRET), "{secret:?} as {name}: {form}");
            // What depends on neighbours is left at either side.
            let left = shared(&form, &clean.replace(SECRET, "\0"));
            assert!(left <= 10, "{secret:?} as {name}: {form} leaves {clean}");
            rows += 1;
        }
    }
    assert!(rows >= 400, "{rows}");
}

/// Each character of ASCII punctuation and of Latin-1 that has a name in HTML.
fn html_named(text: &str) -> String {
    let names = [
        ('"', "quot"),
        ('$', "dollar"),
        ('%', "percnt"),
        ('&', "amp"),
        ('\'', "apos"),
        ('+', "plus"),
        ('/', "sol"),
        (':', "colon"),
        ('<', "lt"),
        ('=', "equals"),
        ('>', "gt"),
        ('\\', "bsol"),
        ('_', "lowbar"),
        ('`', "grave"),
        ('Ä', "Auml"),
        ('ü', "uuml"),
    ];
    let named = |char: char| {
        let name = names.iter().find(|(known, _)| *known == char);
        name.map_or(char.to_string(), |(_, name)| format!("&{name};"))
    };
    text.chars().map(named).collect()
}

type Escape = fn(&str) -> String;

const ESCAPES: &[(&str, Escape)] = &[
    ("json", |text| json(text)),
    ("json, for html", json_for_html),
    ("url", |text| url(text, "-_.~", false, true)),
    ("html", |text| html(text, "&#39;")),
    ("html, named", html_named),
];

/// Every sequence of `depth` escapes, applied to a text.
fn nested(text: &str, depth: usize) -> Vec<(String, String)> {
    let mut all = vec![(String::new(), text.to_owned())];
    for _ in 0..depth {
        let deeper = |(names, text): &(String, String)| {
            let escape =
                |(name, escape): &(&str, Escape)| (format!("{names} > {name}"), escape(text));
            ESCAPES.iter().map(escape).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(deeper).collect();
    }
    all
}

#[test]
fn secrets_in_escapes_within_escapes_are_found() {
    for secret in SECRETS {
        let own = redactor(&[secret]);
        for (names, form) in nested(secret, 3) {
            let clean = own.text(format!("«{form}» "));
            assert_eq!(clean, "«[secret]» ", "{secret:?} as {names}: {form}");
        }
        let five = (0..5).fold((*secret).to_owned(), |text, _| url(&text, "", false, true));
        assert_eq!(own.text(five), SECRET, "{secret:?}");
    }
    // Base64 inside two addresses, and each form that an attack found.
    let own = redactor(&["a>>?b\u{ff}c/d+e+f>>>"]);
    let encoded = url(
        &url(&base64("a>>?b\u{ff}c/d+e+f>>>", ""), "", false, true),
        "",
        false,
        true,
    );
    assert!(own.text(encoded.clone()).contains(SECRET), "{encoded}");
    let own = redactor(&["inp&t-P4ss\"w<rd 9"]);
    for form in [
        "inp%26amp%3Bt-P4ss%26quot%3Bw%26lt%3Brd%209",
        "inp%26t-P4ss%5C%22w%3Crd%209",
        "inp\\u0026amp;t-P4ss\\u0026quot;w\\u0026lt;rd 9",
        "inp%252526t-P4ss%252522w%25253Crd%2525209",
        "inp&amp;t-P4ss&quot;w&lt;rd&#32;9",
    ] {
        assert_eq!(own.text(form.to_owned()), SECRET, "{form}");
    }
}

#[test]
fn a_nested_secret_across_two_pieces_is_found() {
    let own = redactor(&["inp&t-P4ss\"w<rd 9"]);
    for (names, form) in nested("inp&t-P4ss\"w<rd 9", 2) {
        for at in 0..=form.len() {
            let mut stream = RedactStream::default();
            let mut out = stream.push_text(&own, &form[..at]);
            out += &stream.push_text(&own, &form[at..]);
            out += &stream.finish_text(&own);
            assert_eq!(out, SECRET, "{names} cut at {at}: {form}");
        }
    }
}

#[test]
fn the_beginning_of_a_secret_in_front_of_a_cut_is_found() {
    // A space or a point in front of the mark may belong to the secret, or to the mark.
    let is_found = |clean: &str, start: &str, mark: &str| {
        let rest = clean.strip_prefix("it is [secret]");
        let rest = rest.unwrap_or_else(|| panic!("{start:?}: {clean}"));
        let apart = |text: &str| text.trim_start_matches([' ', '.']).to_owned();
        assert_eq!(apart(rest), apart(mark), "{start:?}");
    };
    for secret in SECRETS {
        let own = redactor(&[secret]);
        let chars: Vec<char> = secret.chars().collect();
        for count in SECRET.len()..chars.len() {
            let start: String = chars[..count].iter().collect();
            for mark in ["…", "...", " ...", " [... 7 more characters]"] {
                let clean = own.text(format!("it is {start}{mark}"));
                is_found(&clean, &start, mark);
                let clean = own.text(json(&format!("it is {start}{mark}")));
                is_found(&clean, &json(&start), mark);
            }
        }
    }
    let own = redactor(&["tok-4f9a8b7c6d5e"]);
    for text in [
        "tok-4…",
        "a 4f9a8b7c…",
        "tok-4f9a8b, and so on...",
        "....",
        "……",
    ] {
        assert_eq!(own.text(text.to_owned()), text);
    }
}

#[test]
fn text_without_secrets_is_unchanged() {
    let all = redactor(SECRETS);
    for text in [
        "",
        "abcde",
        "tok-4f9a",
        "pass\"word",
        "YWJjZGU=",
        "6162636465",
        "[secret]",
    ] {
        assert_eq!(all.text(text.to_owned()), text);
    }
    assert_eq!(redactor(&[]).text("anything".to_owned()), "anything");
}

#[test]
fn secrets_that_overlap_are_both_gone() {
    let both = redactor(&["abcdef123", "123xyz789", "def123xyz"]);
    assert_eq!(both.text("<abcdef123xyz789>".to_owned()), "<[secret]>");
    let inside = redactor(&["inner-one", "the-inner-one-and-more"]);
    assert_eq!(inside.text("the-inner-one-and-more".to_owned()), SECRET);
    assert_eq!(
        inside.text("the-inner-one-and".to_owned()),
        "the-[secret]-and"
    );
}

#[test]
fn weak_secrets_are_reported() {
    for text in [
        "", "a", "12345", "password", "Bearer", "aaaaaaaa", "[secret]",
    ] {
        assert!(weakness(text).is_some(), "{text}");
        assert!(redactor(&[text]).is_empty(), "{text}");
    }
    for text in ["123456", "passw0rd", "hunter22"] {
        assert_eq!(weakness(text), None, "{text}");
    }
}

fn places(secret: &str) -> Value {
    let text = |before: &str, after: &str| Value::from(format!("{before}{secret}{after}"));
    Value::map([
        (Value::keyword("text"), text("", "")),
        (Value::keyword("within"), text("before \\ \" ", " after \\")),
        (
            Value::keyword("json"),
            Value::from(format!("{{\"a\":\"{}\"}}", json(secret))),
        ),
        (text("key ", ""), Value::Int(1)),
        (Value::keyword(secret), Value::Nil),
        (Value::keyword("symbol"), Value::symbol(secret)),
        (
            Value::keyword("nested"),
            Value::vector([Value::list([text("", "")]), Value::set([text("", "")])]),
        ),
        (
            Value::keyword("bytes"),
            Object::Bytes(format!("\u{1}{secret}\u{2}").into_bytes().into()).into(),
        ),
        (Value::keyword("char"), Value::Char('"')),
        (Value::keyword("last"), Value::Char('\\')),
    ])
}

#[test]
fn edn_text_can_be_read_without_its_secrets() {
    for secret in SECRETS {
        let own = redactor(&[secret]);
        let text = codec::encode(&places(secret)).expect("data");
        let clean = own.edn(text.clone());
        assert_ne!(clean, text);
        assert!(!own.holds(&clean), "{secret:?}: {clean}");
        let value = codec::decode(&clean).unwrap_or_else(|error| panic!("{error}: {clean}"));
        let within = value.get("within").and_then(Value::as_str);
        assert_eq!(within, Some("before \\ \" [secret] after \\"), "{clean}");
        assert_eq!(value.get("char"), Some(&Value::Char('"')));
        assert_eq!(own.edn(clean.clone()), clean);
    }
}

#[test]
fn redaction_keeps_numbers_and_tagged_forms_readable() {
    let own = redactor(&["918273645", "0e3f1c52-7a5b-4f7e-9a53-0c2a8d1f6b11"]);
    let rows = [
        ("{:at 17918273645999}", "{:at 17918273645999}"),
        ("[918273645 1]", "[\"[secret]\" 1]"),
        (
            "[#uuid \"0e3f1c52-7a5b-4f7e-9a53-0c2a8d1f6b11\"]",
            "[\"[secret]\"]",
        ),
        (
            "[#flowstone/bytes \"00393138323733363435ff\"]",
            "[#flowstone/bytes \"005b7365637265745dff\"]",
        ),
        (
            "#flowstone/error {:message \"no 918273645\"}",
            "#flowstone/error {:message \"no [secret]\"}",
        ),
        ("[\"\\nabc\" 918273645]", "[\"\\nabc\" \"[secret]\"]"),
    ];
    for (text, expected) in rows {
        assert_eq!(own.edn(text.to_owned()), expected);
        if !text.starts_with("#flowstone/error") {
            codec::decode(expected).expect("it is readable");
        }
    }
    // The escape in front does not lose its character.
    let own = redactor(&["nabcdef"]);
    assert_eq!(
        own.edn("\"\\nabcdef \\\\nabcdef\"".to_owned()),
        "\"\\nabcdef \\\\[secret]\""
    );
}

#[test]
fn a_secret_across_two_pieces_is_found() {
    for secret in SECRETS {
        let own = redactor(&[secret]);
        for (name, form) in forms(secret) {
            let text = format!("so {form} and");
            let whole = own.text(text.clone());
            for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
                let mut stream = RedactStream::default();
                let mut out = stream.push_text(&own, &text[..at]);
                out += &stream.push_text(&own, &text[at..]);
                out += &stream.finish_text(&own);
                assert_eq!(out, whole, "{secret:?} as {name} cut at {at}");
            }
            let mut stream = RedactStream::default();
            let mut out = Vec::new();
            for byte in text.bytes() {
                out.extend(stream.push(&own, &[byte]));
                assert!(!own.holds(&out), "{secret:?} as {name}");
            }
            out.extend(stream.finish(&own));
            assert_eq!(String::from_utf8_lossy(&out), whole, "{secret:?} as {name}");
        }
    }
}

#[test]
fn a_stream_holds_back_no_more_than_it_must() {
    let own = redactor(&["tok-4f9a8b7c6d5e"]);
    let mut stream = RedactStream::default();
    assert_eq!(stream.push_text(&own, "Hello, all"), "Hello, all");
    assert_eq!(stream.push_text(&own, "! My tok"), "! My ");
    assert_eq!(stream.push_text(&own, "en"), "token");
    assert_eq!(stream.finish_text(&own), "");
}

#[test]
fn parts_are_cleaned_across_their_borders() {
    let own = redactor(&["tok-4f9a8b7c6d5e"]);
    let mut parts =
        ["a tok-4f9", "a8b7", "c6d5e b", " tok-4f9a8b7c6d5e"].map(|it| it.as_bytes().to_vec());
    own.parts(&mut parts);
    let parts = parts.map(|part| String::from_utf8(part).expect("text"));
    assert_eq!(parts, ["a [secret]", "", " b", " [secret]"]);
}

/// The time for ten times the text is about ten times as long.
#[test]
fn the_cost_is_linear_in_the_text() {
    let own = redactor(&SECRETS[..10]);
    let line =
        "{\"id\": 12345, \"name\": \"tok-4f9a8b7c but not quite\", \"pass\": \"pass\\\"word\"}\n";
    let time = |count: usize| {
        let text = line.repeat(count);
        let once = || {
            let began = Instant::now();
            assert!(!own.holds(&text));
            began.elapsed()
        };
        (0..5).map(|_| once()).min().expect("it was measured")
    };
    let (small, large) = (time(4_000), time(40_000));
    assert!(large < small * 100, "{small:?} and {large:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn random_secrets_leave_nothing(
        secret in "[ -~éß🔑\\\\\"%&+/\n\t]{6,24}",
        before in "[ a-z\\\\\"%&]{0,8}",
        after in "[ a-z\\\\\"%&]{0,8}",
    ) {
        prop_assume!(weakness(&secret).is_none());
        let own = redactor(&[&secret]);
        for (name, form) in forms(&secret).into_iter().chain(encoded(&secret)) {
            let clean = own.text(format!("{before}{form}{after}"));
            prop_assert!(clean.contains(SECRET), "{secret:?} as {name}: {form} in {clean}");
            prop_assert!(!own.holds(&clean), "{secret:?} as {name}");
        }
        let text = codec::encode(&places(&secret)).expect("data");
        let clean = own.edn(text);
        prop_assert!(!own.holds(&clean), "{secret:?}: {clean}");
        prop_assert!(codec::decode(&clean).is_ok(), "{secret:?}: {clean}");
    }
}
