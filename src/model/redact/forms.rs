//! The forms of a secret in text, as patterns over bytes.
//!
//! The first pattern of a secret follows its characters: each may be raw or escaped, independently of the others, since
//! writers of JSON, HTML and addresses differ in what they escape. The other patterns are encodings of the whole
//! secret.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// Backslashes before an escaped character: each level of nesting doubles their number.
const BACKSLASHES: &str = r"\\{1,16}";
/// Maximum length of a secret whose encodings are searched for; a longer one is found in raw form only.
const LONG: usize = 256;

/// Returns the patterns of a secret, in the syntax of regexes over bytes.
pub(super) fn patterns(text: &str) -> Vec<String> {
    let mut patterns = vec![text.chars().map(any_form).collect::<String>()];
    let whole = |escape: fn(&mut String, char)| {
        let mut out = String::new();
        text.chars().for_each(|char| escape(&mut out, char));
        out
    };
    patterns.push(whole(percent));
    patterns.push(whole(backslash_u));
    patterns.push(whole(reference));
    for bytes in bases(text) {
        patterns.push(hex(&bytes));
        patterns.extend((0..3).filter_map(|offset| base64(&bytes, offset)));
    }
    patterns.sort();
    patterns.dedup();
    // Of several patterns that match at one place, the first one counts: the longest.
    patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.len()));
    patterns
}

/// Tells whether a reader of data may parse a secret as a number.
pub(super) fn is_like_number(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.eE/MN".contains(&byte))
}

/// Returns the pattern of one character, raw or escaped.
fn any_form(char: char) -> String {
    if char.is_ascii_alphanumeric() {
        return char.to_string();
    }
    let mut out = String::from("(?:");
    match char {
        '\\' => out.push_str(BACKSLASHES),
        '"' | '\'' | '/' | '<' | '>' | '&' | '$' | '`' => {
            out.push_str(r"\\{0,15}");
            raw(&mut out, char);
        }
        _ => raw(&mut out, char),
    }
    let short = match char {
        '\n' => Some("n"),
        '\r' => Some("r"),
        '\t' => Some("t"),
        '\u{8}' => Some("b"),
        '\u{c}' => Some("f"),
        _ => None,
    };
    if let Some(short) = short {
        let _ = write!(out, "|{BACKSLASHES}{short}");
    }
    if char == ' ' {
        out.push_str(r"|\+");
    }
    for escape in [backslash_u, percent, reference] {
        out.push('|');
        escape(&mut out, char);
    }
    // The address may be in the query of another one.
    out.push('|');
    for byte in char.encode_utf8(&mut [0; 4]).bytes() {
        out.push_str("%25");
        digits(&mut out, byte);
    }
    let name = match char {
        '"' => "quot",
        '&' => "amp",
        '\'' => "apos",
        '<' => "lt",
        '>' => "gt",
        _ => "",
    };
    if !name.is_empty() {
        let _ = write!(out, "|&{name};");
    }
    out.push(')');
    out
}

fn raw(out: &mut String, char: char) {
    for byte in char.encode_utf8(&mut [0; 4]).bytes() {
        let _ = write!(out, r"\x{byte:02x}");
    }
}

/// Adds the pattern of `%C3%A9`, with digits of either case.
fn percent(out: &mut String, char: char) {
    for byte in char.encode_utf8(&mut [0; 4]).bytes() {
        out.push('%');
        digits(out, byte);
    }
}

/// Adds the pattern of `\u00e9`, with digits of either case.
fn backslash_u(out: &mut String, char: char) {
    for unit in char.encode_utf16(&mut [0; 2]) {
        let _ = write!(out, "{BACKSLASHES}u");
        let [high, low] = unit.to_be_bytes();
        digits(out, high);
        digits(out, low);
    }
}

/// Adds the pattern of `&#233;` or `&#xe9;`.
fn reference(out: &mut String, char: char) {
    let code = u32::from(char);
    let _ = write!(out, "&#(?:0{{0,4}}{code}|[xX]0{{0,6}}");
    for digit in format!("{code:x}").chars() {
        either_case(out, digit);
    }
    out.push_str(");");
}

/// Adds the two hexadecimal digits of a byte.
fn digits(out: &mut String, byte: u8) {
    for digit in format!("{byte:02x}").chars() {
        either_case(out, digit);
    }
}

fn either_case(out: &mut String, digit: char) {
    match digit.is_ascii_digit() {
        true => out.push(digit),
        false => {
            let _ = write!(out, "[{digit}{}]", digit.to_ascii_uppercase());
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    bytes.iter().for_each(|byte| digits(&mut out, *byte));
    out
}

/// Returns the Base64 of bytes that follow `offset` other bytes: the characters that depend on these bytes alone.
fn base64(bytes: &[u8], offset: usize) -> Option<String> {
    let mut padded = vec![0; offset];
    padded.extend_from_slice(bytes);
    let encoded = STANDARD_NO_PAD.encode(&padded);
    let first = (offset * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    let mut out = String::new();
    for char in encoded.get(first..last)?.chars() {
        match char {
            '+' => out.push_str(r"(?:\+|-|%2[bB]|\\{1,16}u002[bB])"),
            '/' => out.push_str(r"(?:\\{0,15}/|_|%2[fF]|\\{1,16}u002[fF])"),
            char => out.push(char),
        }
    }
    // The last character may depend on the following byte.
    if !padded.len().is_multiple_of(3) {
        out.push_str("[A-Za-z0-9+/_-]?");
    }
    Some(out)
}

/// Returns the texts that may be encoded as a whole: the secret, and each escaped form of it that a document may
/// contain before it is encoded.
fn bases(text: &str) -> Vec<Vec<u8>> {
    let mut bases = vec![text.as_bytes().to_vec()];
    if text.len() > LONG {
        return bases;
    }
    let json = serde_json::Value::from(text).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let ascii: String = json.chars().map(ascii).collect();
    bases.push(json.replace('/', r"\/").into_bytes());
    bases.push(json.into_bytes());
    bases.push(ascii.into_bytes());
    for plus in [false, true] {
        let mut encoded = String::new();
        for byte in text.bytes() {
            match byte {
                byte if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) => {
                    encoded.push(char::from(byte));
                }
                b' ' if plus => encoded.push('+'),
                byte => {
                    let _ = write!(encoded, "%{byte:02X}");
                }
            }
        }
        bases.push(encoded.into_bytes());
    }
    bases.sort();
    bases.dedup();
    bases
}

fn ascii(char: char) -> String {
    if char.is_ascii() {
        return char.to_string();
    }
    let units = char.encode_utf16(&mut [0; 2]).to_vec();
    units
        .into_iter()
        .map(|unit| format!(r"\u{unit:04x}"))
        .collect()
}
