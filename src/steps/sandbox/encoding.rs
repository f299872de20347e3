//! Base64, hexadecimal, hashes, URLs, uuids.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use flowstone_lang::value::{Arity, Class, Native, Object, Result, Value};
use flowstone_lang::vm::{Args, Vm};
use md5::Md5;
use sha2::{Digest, Sha256};

use crate::json::uuid_bits;

use super::{bad, byte_array, bytes, utf8};

pub(super) const FNS: &[Native] = &[
    BASE64_DECODE,
    BASE64_DECODE_BYTES,
    BASE64_ENCODE,
    HEX_DECODE,
    HEX_DECODE_BYTES,
    HEX_ENCODE,
    HMAC_SHA256_HEX,
    SHA256_HEX,
    URL_DECODE,
    URL_ENCODE,
    UUID_FROM,
    UUID_FROM_BYTES,
];

const BASE64_ENCODE: Native = Native {
    name: "base64-encode",
    usage: "(base64-encode s)",
    doc: "Returns a string or bytes in Base64.",
    examples: &[(r#"(flow.util/base64-encode "hi")"#, r#""aGk=""#)],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::from(STANDARD.encode(bytes(&args, 0)?))),
};

const BASE64_DECODE: Native = Native {
    name: "base64-decode",
    usage: "(base64-decode s)",
    doc: "Returns the text that a Base64 string encodes; also the URL-safe alphabet, with or without padding.",
    examples: &[(r#"(flow.util/base64-decode "aGk=")"#, r#""hi""#)],
    arity: Arity::exactly(1),
    run: |_, args| utf8(base64_bytes(&args)?),
};

const BASE64_DECODE_BYTES: Native = Native {
    name: "base64-decode-bytes",
    usage: "(base64-decode-bytes s)",
    doc: "Returns the bytes that a Base64 string encodes.",
    examples: &[(r#"(count (flow.util/base64-decode-bytes "aGk="))"#, "2")],
    arity: Arity::exactly(1),
    run: |_, args| Ok(byte_array(base64_bytes(&args)?)),
};

const HEX_ENCODE: Native = Native {
    name: "hex-encode",
    usage: "(hex-encode s)",
    doc: "Returns a string or bytes in lower-case hexadecimal.",
    examples: &[(r#"(flow.util/hex-encode "hi")"#, r#""6869""#)],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::from(hex(&bytes(&args, 0)?))),
};

const HEX_DECODE: Native = Native {
    name: "hex-decode",
    usage: "(hex-decode s)",
    doc: "Returns the text that a hexadecimal string encodes.",
    examples: &[(r#"(flow.util/hex-decode "6869")"#, r#""hi""#)],
    arity: Arity::exactly(1),
    run: |_, args| utf8(hex_bytes(&args)?),
};

const HEX_DECODE_BYTES: Native = Native {
    name: "hex-decode-bytes",
    usage: "(hex-decode-bytes s)",
    doc: "Returns the bytes that a hexadecimal string encodes.",
    examples: &[(r#"(count (flow.util/hex-decode-bytes "6869"))"#, "2")],
    arity: Arity::exactly(1),
    run: |_, args| Ok(byte_array(hex_bytes(&args)?)),
};

const SHA256_HEX: Native = Native {
    name: "sha256-hex",
    usage: "(sha256-hex s)",
    doc: "Returns the SHA-256 of a string or bytes, in hexadecimal.",
    examples: &[(
        r#"(flow.util/sha256-hex "")"#,
        r#""e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855""#,
    )],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::from(hex(&Sha256::digest(bytes(&args, 0)?)))),
};

const HMAC_SHA256_HEX: Native = Native {
    name: "hmac-sha256-hex",
    usage: "(hmac-sha256-hex key value)",
    doc: "Returns the HMAC with SHA-256 of a value under a key, in hexadecimal.",
    examples: &[(
        r#"(flow.util/hmac-sha256-hex "key" "The quick brown fox jumps over the lazy dog")"#,
        r#""f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8""#,
    )],
    arity: Arity::exactly(2),
    run: |_, args| {
        Ok(Value::from(hex(&hmac_sha256(
            &bytes(&args, 0)?,
            &bytes(&args, 1)?,
        ))))
    },
};

const URL_ENCODE: Native = Native {
    name: "url-encode",
    usage: "(url-encode s)",
    doc: "Returns text encoded for a query string: letters, digits and `-_.~` stay, everything else is %-encoded.",
    examples: &[(r#"(flow.util/url-encode "a b&c")"#, r#""a%20b%26c""#)],
    arity: Arity::exactly(1),
    run: url_encode,
};

const URL_DECODE: Native = Native {
    name: "url-decode",
    usage: "(url-decode s)",
    doc: "Returns the text that a %-encoded string encodes; `+` is a space.",
    examples: &[(r#"(flow.util/url-decode "a%20b+c")"#, r#""a b c""#)],
    arity: Arity::exactly(1),
    run: url_decode,
};

const UUID_FROM: Native = Native {
    name: "uuid-from",
    usage: "(uuid-from s)",
    doc: "Returns the uuid that a string writes; of any other text the name-based uuid (version 3), always the same.",
    examples: &[(
        r#"(str (flow.util/uuid-from "hello"))"#,
        r#""5d41402a-bc4b-3a76-b971-9d911017c592""#,
    )],
    arity: Arity::exactly(1),
    run: |_, args| {
        let text = args.text(0)?;
        let bits = uuid_bits(text).unwrap_or_else(|| name_uuid(text.as_bytes()));
        Ok(Object::Uuid(bits).into())
    },
};

const UUID_FROM_BYTES: Native = Native {
    name: "uuid-from-bytes",
    usage: "(uuid-from-bytes bytes)",
    doc: "Returns the name-based uuid (version 3) of bytes or of a string's bytes.",
    examples: &[(
        r#"(str (flow.util/uuid-from-bytes "hello"))"#,
        r#""5d41402a-bc4b-3a76-b971-9d911017c592""#,
    )],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Object::Uuid(name_uuid(&bytes(&args, 0)?)).into()),
};

fn name_uuid(name: &[u8]) -> u128 {
    let hash: [u8; 16] = Md5::digest(name).into();
    let bits = u128::from_be_bytes(hash);
    let version = (bits & !(0xf << 76)) | (0x3 << 76);
    (version & !(0x3 << 62)) | (0x2 << 62)
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

fn hmac_sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 64;
    let mut padded = [0_u8; BLOCK];
    if key.len() > BLOCK {
        padded[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        padded[..key.len()].copy_from_slice(key);
    }
    let mixed = |mask: u8| padded.map(|byte| byte ^ mask);
    let inner = Sha256::new()
        .chain_update(mixed(0x36))
        .chain_update(message)
        .finalize();
    Sha256::new()
        .chain_update(mixed(0x5c))
        .chain_update(inner)
        .finalize()
        .to_vec()
}

fn base64_bytes(args: &Args<'_>) -> Result<Vec<u8>> {
    let text = args.text(0)?;
    let packed: String = text
        .chars()
        .filter(|char| !char.is_ascii_whitespace())
        .collect();
    let trimmed = packed.trim_end_matches('=');
    let padded = packed.len() != trimmed.len();
    let url_safe = packed.contains(['-', '_']);
    let decoded = match (url_safe, padded) {
        (false, true) => STANDARD.decode(&packed),
        (false, false) => STANDARD_NO_PAD.decode(&packed),
        (true, true) => URL_SAFE.decode(&packed),
        (true, false) => URL_SAFE_NO_PAD.decode(&packed),
    };
    decoded.map_err(|error| {
        bad(
            Class::ILLEGAL_ARGUMENT,
            "E0742",
            format!("this is not Base64: {error}"),
        )
    })
}

fn hex_bytes(args: &Args<'_>) -> Result<Vec<u8>> {
    let text = args.text(0)?.as_str();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?),
        _ => None,
    });
    pairs.collect::<Option<Vec<u8>>>().ok_or_else(|| {
        let message = format!(
            "this is not hexadecimal: {} characters, which must be pairs of 0-9 a-f",
            text.chars().count()
        );
        bad(Class::ILLEGAL_ARGUMENT, "E0742", message)
    })
}

fn url_encode(_: &mut Vm, args: Args<'_>) -> Result<Value> {
    let text = args.text(0)?;
    Ok(Value::from(text.bytes().fold(
        String::new(),
        |mut out, byte| {
            if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                out.push(char::from(byte));
            } else {
                let _ = write!(out, "%{byte:02X}");
            }
            out
        },
    )))
}

fn url_decode(_: &mut Vm, args: Args<'_>) -> Result<Value> {
    let text = args.text(0)?.as_bytes();
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let digit = |idx: usize| {
                    text.get(idx)
                        .and_then(|byte| char::from(*byte).to_digit(16))
                };
                match (digit(at + 1), digit(at + 2)) {
                    (Some(high), Some(low)) => out.push(u8::try_from(high * 16 + low).unwrap_or(0)),
                    _ => {
                        let message = format!(
                            "`%` at position {at} is not followed by two hexadecimal digits"
                        );
                        return Err(bad(Class::ILLEGAL_ARGUMENT, "E0742", message));
                    }
                }
                at += 2;
            }
            byte => out.push(*byte),
        }
        at += 1;
    }
    utf8(out)
}
