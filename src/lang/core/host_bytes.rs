//! Strings as bytes and back: `(String. bytes charset)`, `.getBytes`, and the charsets of `StandardCharsets`.

use crate::value::{
    Arity, Class, Element, Exception, HostConstant, Native, Object, Result, Value, write_str,
};
use crate::vm::{Args, Vm, wrong_type};

const CHARSET: &str = "java.nio.charset.Charset";

const fn charset(name: &'static str, ordinal: u8) -> HostConstant {
    HostConstant {
        class: CHARSET,
        name,
        ordinal,
    }
}

static UTF_8: HostConstant = charset("UTF-8", 0);
static US_ASCII: HostConstant = charset("US-ASCII", 1);
static ISO_8859_1: HostConstant = charset("ISO-8859-1", 2);
static UTF_16: HostConstant = charset("UTF-16", 3);
static UTF_16BE: HostConstant = charset("UTF-16BE", 4);
static UTF_16LE: HostConstant = charset("UTF-16LE", 5);

/// The charsets by their names in `StandardCharsets`.
const CHARSETS: &[(&str, &HostConstant)] = &[
    ("ISO_8859_1", &ISO_8859_1),
    ("US_ASCII", &US_ASCII),
    ("UTF_16", &UTF_16),
    ("UTF_16BE", &UTF_16BE),
    ("UTF_16LE", &UTF_16LE),
    ("UTF_8", &UTF_8),
];

/// Returns the constants of `StandardCharsets`: class, name and value.
pub(super) fn constants() -> impl Iterator<Item = (&'static str, &'static str, Value)> {
    CHARSETS
        .iter()
        .map(|(name, charset)| ("StandardCharsets", *name, Value::host(*charset)))
}

/// `Charset/forName`.
pub(super) const CHARSET_FNS: &[Native] = &[Native {
    name: "forName",
    usage: "(java.nio.charset.Charset/forName name)",
    doc: "Returns the charset with a name.",
    examples: &[(
        r#"(str (java.nio.charset.Charset/forName "utf-8"))"#,
        r#""UTF-8""#,
    )],
    arity: Arity::exactly(1),
    run: |_, args| charset_argument(&args, 0).map(Value::host),
}];

/// `String/new`: strings from bytes or characters.
pub(super) const STRING_FNS: &[Native] = &[Native {
    name: "new",
    usage: "(String.)\n(String. x)\n(String. bytes charset)\n(String. x offset length)\n(String. bytes offset length charset)",
    doc: "Returns the string of bytes (in UTF-8 if no charset is given), of characters or of another string.",
    examples: &[
        (r#"(String. (.getBytes "hi"))"#, r#""hi""#),
        ("(String. (byte-array [104 105]))", r#""hi""#),
        (r#"(String. (byte-array [-23]) "ISO-8859-1")"#, r#""é""#),
    ],
    arity: Arity::between(0, 4),
    run: |vm, args| {
        let is_part = args.len() > 2;
        let charset = match args.len() {
            2 => charset_argument(&args, 1)?,
            4 => charset_argument(&args, 3)?,
            _ => &UTF_8,
        };
        let Some(bytes) = args.get(0).as_bytes() else {
            return of_characters(vm, &args, is_part).map(Value::text);
        };
        let bytes = match is_part {
            true => part(&args, &bytes)?,
            false => &bytes,
        };
        Ok(Value::text(decoded(bytes, charset)))
    },
}];

/// The methods of strings that produce bytes.
pub(super) const METHODS: &[Native] = &[Native {
    name: ".getBytes",
    usage: "(.getBytes string)\n(.getBytes string charset)",
    doc: "Returns the bytes of a string in a charset (UTF-8).",
    examples: &[
        (r#"(count (.getBytes "hé"))"#, "3"),
        (r#"(vec (.getBytes "hé" "ISO-8859-1"))"#, "[104 -23]"),
    ],
    arity: Arity::between(1, 2),
    run: |_, args| {
        let charset = match args.len() {
            2 => charset_argument(&args, 1)?,
            _ => &UTF_8,
        };
        let bytes = encoded(args.text(0)?.as_str(), charset);
        Ok(Value::from(Object::Bytes(bytes.into_boxed_slice())))
    },
}];

/// Returns the text of characters: a string, a string builder, an array or a sequence.
fn of_characters(vm: &mut Vm, args: &Args<'_>, is_part: bool) -> Result<String> {
    let given = args.get(0);
    let is_array = given
        .as_array()
        .is_some_and(|array| array.element == Element::Char);
    let mut text = String::new();
    match given {
        _ if args.is_empty() => return Ok(text),
        Value::Text(_) if !is_part => return Ok(given.as_str().unwrap_or_default().to_owned()),
        Value::Object(_) if !is_array => {
            if is_part || !given.is_host("java.lang.StringBuilder") {
                return Err(args.expected(0, "bytes or characters"));
            }
            write_str(&mut text, vm, given)?;
            return Ok(text);
        }
        Value::Vector(_) | Value::List(_) | Value::Seq(_) | Value::Lazy(_) | Value::Object(_) => {}
        _ => return Err(args.expected(0, "bytes or characters")),
    }
    let items = vm.items(given.clone())?;
    let items = match is_part {
        true => part(args, &items)?,
        false => &items,
    };
    for item in items {
        match item {
            Value::Char(char) => text.push(*char),
            _ => return Err(args.expected(0, "bytes or characters")),
        }
    }
    Ok(text)
}

/// Returns the items from the offset in argument 1 on; their number is argument 2.
fn part<'a, T>(args: &Args<'_>, items: &'a [T]) -> Result<&'a [T]> {
    let (offset, length) = (args.index(1)?, args.index(2)?);
    let end = offset.checked_add(length);
    end.and_then(|end| items.get(offset..end)).ok_or_else(|| {
        let message = format!(
            "{length} items from {offset} on are more than there are: {}",
            items.len()
        );
        Exception::new(Class::STRING_INDEX_OUT_OF_BOUNDS, "E0381", message)
            .argument(2)
            .into()
    })
}

/// Tells whether an argument names UTF-8.
///
/// # Errors
/// When it is not the name of a charset.
pub(super) fn is_utf8(args: &Args<'_>, idx: usize) -> Result<bool> {
    Ok(charset_argument(args, idx)?.ordinal == UTF_8.ordinal)
}

fn charset_argument(args: &Args<'_>, idx: usize) -> Result<&'static HostConstant> {
    let known = || CHARSETS.iter().map(|(_, charset)| *charset);
    match args.get(idx) {
        Value::Text(name) => {
            let short = |name: &str| name.to_ascii_lowercase().replace(['-', '_'], "");
            let wanted = match short(name.as_str()).as_str() {
                "latin1" => "iso88591".to_owned(),
                "ascii" => "usascii".to_owned(),
                other => other.to_owned(),
            };
            known()
                .find(|charset| short(charset.name) == wanted)
                .ok_or_else(|| {
                    let names: Vec<&str> = known().map(|charset| charset.name).collect();
                    wrong_type(args.get(idx), "the name of a charset", idx)
                        .of_class(Class::ILLEGAL_ARGUMENT)
                        .hint(format!("the charsets are {}", names.join(", ")))
                        .into()
                })
        }
        value => value
            .as_host::<&'static HostConstant>()
            .copied()
            .filter(|constant| constant.class == CHARSET)
            .ok_or_else(|| args.expected(idx, "a charset or the name of one")),
    }
}

/// Decodes bytes; those that are invalid in the charset become the replacement character, as in Java.
fn decoded(bytes: &[u8], charset: &HostConstant) -> String {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let whole = bytes.chunks_exact(2);
        let cut = (!whole.remainder().is_empty()).then_some('\u{fffd}');
        let units = whole.map(|pair| unit([pair[0], pair[1]]));
        char::decode_utf16(units)
            .map(|char| char.unwrap_or('\u{fffd}'))
            .chain(cut)
            .collect::<String>()
    };
    match (charset.ordinal, bytes) {
        (1, bytes) => bytes
            .iter()
            .map(|byte| {
                if byte.is_ascii() {
                    char::from(*byte)
                } else {
                    '\u{fffd}'
                }
            })
            .collect(),
        (2, bytes) => bytes.iter().map(|byte| char::from(*byte)).collect(),
        (3, [0xff, 0xfe, bytes @ ..]) | (5, bytes) => wide(bytes, u16::from_le_bytes),
        (3, [0xfe, 0xff, bytes @ ..]) | (3 | 4, bytes) => wide(bytes, u16::from_be_bytes),
        (_, bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Encodes a text; characters that the charset lacks become a question mark, as in Java.
fn encoded(text: &str, charset: &HostConstant) -> Vec<u8> {
    let narrow = |below: u32| {
        text.chars()
            .map(|char| {
                if u32::from(char) < below {
                    u32::from(char) as u8
                } else {
                    b'?'
                }
            })
            .collect()
    };
    let big = || text.encode_utf16().flat_map(u16::to_be_bytes);
    match charset.ordinal {
        1 => narrow(0x80),
        2 => narrow(0x100),
        3 if text.is_empty() => Vec::new(),
        3 => [0xfe, 0xff].into_iter().chain(big()).collect(),
        4 => big().collect(),
        5 => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        _ => text.as_bytes().to_vec(),
    }
}
