//! `java.util.Base64`.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use crate::value::{Arity, Class, Exception, HostConstant, Native, Object, Result, Value};
use crate::vm::Args;

const ENCODER: &str = "java.util.Base64$Encoder";
const DECODER: &str = "java.util.Base64$Decoder";

const fn coder(class: &'static str, name: &'static str, ordinal: u8) -> HostConstant {
    HostConstant {
        class,
        name,
        ordinal,
    }
}

static BASIC_ENCODER: HostConstant = coder(ENCODER, "basic", 0);
static URL_ENCODER: HostConstant = coder(ENCODER, "url", 1);
static BASIC_BARE_ENCODER: HostConstant = coder(ENCODER, "basic without padding", 2);
static URL_BARE_ENCODER: HostConstant = coder(ENCODER, "url without padding", 3);
static BASIC_DECODER: HostConstant = coder(DECODER, "basic", 0);
static URL_DECODER: HostConstant = coder(DECODER, "url", 1);

pub(super) const BASE64_FNS: &[Native] = &[
    Native {
        name: "getDecoder",
        usage: "(java.util.Base64/getDecoder)",
        doc: "Returns the decoder of base64.",
        examples: &[(
            r#"(String. (.decode (java.util.Base64/getDecoder) "aGk="))"#,
            r#""hi""#,
        )],
        arity: Arity::exactly(0),
        run: |_, _| Ok(Value::host(&BASIC_DECODER)),
    },
    Native {
        name: "getEncoder",
        usage: "(java.util.Base64/getEncoder)",
        doc: "Returns the encoder of base64.",
        examples: &[(
            r#"(.encodeToString (java.util.Base64/getEncoder) (.getBytes "hi"))"#,
            r#""aGk=""#,
        )],
        arity: Arity::exactly(0),
        run: |_, _| Ok(Value::host(&BASIC_ENCODER)),
    },
    Native {
        name: "getUrlDecoder",
        usage: "(java.util.Base64/getUrlDecoder)",
        doc: "Returns the decoder of base64 in its URL-safe alphabet.",
        examples: &[(
            r#"(String. (.decode (java.util.Base64/getUrlDecoder) "aGk="))"#,
            r#""hi""#,
        )],
        arity: Arity::exactly(0),
        run: |_, _| Ok(Value::host(&URL_DECODER)),
    },
    Native {
        name: "getUrlEncoder",
        usage: "(java.util.Base64/getUrlEncoder)",
        doc: "Returns the encoder of base64 in its URL-safe alphabet.",
        examples: &[(
            r#"(.encodeToString (java.util.Base64/getUrlEncoder) (.getBytes "??"))"#,
            r#""Pz8=""#,
        )],
        arity: Arity::exactly(0),
        run: |_, _| Ok(Value::host(&URL_ENCODER)),
    },
];

pub(super) const METHODS: &[Native] = &[
    Native {
        name: ".decode",
        usage: "(.decode decoder string-or-bytes)",
        doc: "Returns the bytes that a base64 text encodes.",
        examples: &[(
            r#"(String. (.decode (java.util.Base64/getDecoder) "aGk="))"#,
            r#""hi""#,
        )],
        arity: Arity::exactly(2),
        run: |_, args| {
            let given = content(&args, 1)?;
            let (padded, bare) = match constant(&args, DECODER)?.ordinal {
                0 => (&STANDARD, &STANDARD_NO_PAD),
                _ => (&URL_SAFE, &URL_SAFE_NO_PAD),
            };
            match padded.decode(&given).or_else(|_| bare.decode(&given)) {
                Ok(bytes) => Ok(bytes_value(bytes)),
                Err(error) => Err(Exception::new(
                    Class::ILLEGAL_ARGUMENT,
                    "E0362",
                    format!("this is not base64: {error}"),
                )
                .argument(1)
                .into()),
            }
        },
    },
    Native {
        name: ".encode",
        usage: "(.encode encoder bytes)",
        doc: "Returns the base64 of bytes, as bytes.",
        examples: &[(
            r#"(String. (.encode (java.util.Base64/getEncoder) (.getBytes "hi")))"#,
            r#""aGk=""#,
        )],
        arity: Arity::exactly(2),
        run: |_, args| Ok(bytes_value(encode(&args)?.into_bytes())),
    },
    Native {
        name: ".encodeToString",
        usage: "(.encodeToString encoder bytes)",
        doc: "Returns the base64 of bytes.",
        examples: &[
            (
                r#"(.encodeToString (java.util.Base64/getEncoder) (.getBytes "hi"))"#,
                r#""aGk=""#,
            ),
            (
                "(.encodeToString (java.util.Base64/getEncoder) (byte-array [104 105]))",
                r#""aGk=""#,
            ),
        ],
        arity: Arity::exactly(2),
        run: |_, args| encode(&args).map(Value::text),
    },
    Native {
        name: ".withoutPadding",
        usage: "(.withoutPadding encoder)",
        doc: "Returns the encoder that leaves out the = at the end.",
        examples: &[(
            r#"(.encodeToString (.withoutPadding (java.util.Base64/getEncoder)) (.getBytes "hi"))"#,
            r#""aGk""#,
        )],
        arity: Arity::exactly(1),
        run: |_, args| match constant(&args, ENCODER)?.ordinal {
            0 | 2 => Ok(Value::host(&BASIC_BARE_ENCODER)),
            _ => Ok(Value::host(&URL_BARE_ENCODER)),
        },
    },
];

fn encode(args: &Args<'_>) -> Result<String> {
    let bytes = content(args, 1)?;
    Ok(match constant(args, ENCODER)?.ordinal {
        0 => STANDARD.encode(bytes),
        1 => URL_SAFE.encode(bytes),
        2 => STANDARD_NO_PAD.encode(bytes),
        _ => URL_SAFE_NO_PAD.encode(bytes),
    })
}

fn constant(args: &Args<'_>, class: &str) -> Result<&'static HostConstant> {
    args.get(0)
        .as_host::<&'static HostConstant>()
        .copied()
        .filter(|constant| constant.class == class)
        .ok_or_else(|| args.expected(0, &format!("a {class}")))
}

/// Returns bytes, or the characters of a text as bytes.
fn content(args: &Args<'_>, idx: usize) -> Result<Vec<u8>> {
    match args.get(idx) {
        Value::Text(text) => Ok(text.as_str().as_bytes().to_vec()),
        value => match value.as_bytes() {
            Some(bytes) => Ok(bytes.into_owned()),
            None => Err(args.expected(idx, "bytes")),
        },
    }
}

fn bytes_value(bytes: Vec<u8>) -> Value {
    Value::from(Object::Bytes(bytes.into_boxed_slice()))
}
