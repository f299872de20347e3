//! `java.net.URLEncoder` and `java.net.URLDecoder`: texts in the encoding of web forms, in UTF-8.

use std::fmt::Write as _;

use super::host_bytes::is_utf8;
use crate::value::{Arity, Class, Exception, Native, Result, Signal, Value};
use crate::vm::Args;

pub(super) const DECODER_FNS: &[Native] = &[Native {
    name: "decode",
    usage: "(java.net.URLDecoder/decode s)\n(java.net.URLDecoder/decode s charset)",
    doc: "Returns the decoded text of a part of a web form: + is a space, and %XX is a byte of UTF-8, the only charset.",
    examples: &[(
        r#"(java.net.URLDecoder/decode "a+b%26c%C3%A9" "UTF-8")"#,
        r#""a b&cé""#,
    )],
    arity: Arity::between(1, 2),
    run: |_, args| {
        check_charset(&args)?;
        decode(args.text(0)?).map(Value::from)
    },
}];

pub(super) const ENCODER_FNS: &[Native] = &[Native {
    name: "encode",
    usage: "(java.net.URLEncoder/encode s)\n(java.net.URLEncoder/encode s charset)",
    doc: "Returns a text encoded for a web form: a space is +, and all characters except letters, digits and .-*_ are bytes of UTF-8, the only charset, as %XX.",
    examples: &[(
        r#"(java.net.URLEncoder/encode "a b&cé" "UTF-8")"#,
        r#""a+b%26c%C3%A9""#,
    )],
    arity: Arity::between(1, 2),
    run: |_, args| {
        check_charset(&args)?;
        Ok(Value::from(encode(args.text(0)?)))
    },
}];

fn check_charset(args: &Args<'_>) -> Result<()> {
    if args.len() == 1 || is_utf8(args, 1)? {
        return Ok(());
    }
    Err(illegal("the charset of a URL is UTF-8 here", 1))
}

fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'*' | b'_' => {
                out.push(char::from(byte));
            }
            b' ' => out.push('+'),
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

fn decode(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let Some((pair, after)) = rest.split_at_checked(2) else {
                    let message = "URLDecoder: Incomplete trailing escape (%) pattern";
                    return Err(illegal(message, 0));
                };
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
                    let pair = String::from_utf8_lossy(pair);
                    let message = format!(
                        "URLDecoder: Illegal hex characters in escape (%) pattern: `%{pair}`"
                    );
                    return Err(illegal(&message, 0));
                };
                bytes.push((high * 16 + low) as u8);
                rest = after;
            }
            byte => bytes.push(*byte),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cold]
fn illegal(message: &str, argument: usize) -> Signal {
    Exception::new(Class::ILLEGAL_ARGUMENT, "E0362", message.to_owned())
        .argument(argument)
        .into()
}
