//! `clojure.string`. Positions count characters.

mod replace;
mod split;

use std::borrow::Cow;
use std::rc::Rc;

use crate::value::{Arity, Native, Result, Text, Value, meter, write_str};
use crate::vm::{Args, Vm};

pub(super) use replace::FNS as REPLACE_FNS;
pub(super) use split::FNS as SPLIT_FNS;

pub(super) const FNS: &[Native] = &[
    CAPITALIZE,
    ENDS_WITH,
    ESCAPE,
    INCLUDES,
    INDEX_OF,
    IS_BLANK,
    JOIN,
    LAST_INDEX_OF,
    LOWER_CASE,
    REVERSE,
    STARTS_WITH,
    TRIM,
    TRIM_NEWLINE,
    TRIML,
    TRIMR,
    UPPER_CASE,
];

const JOIN: Native = Native {
    name: "join",
    usage: "(join coll)\n(join separator coll)",
    doc: "Returns the text of each item of coll, joined, with separator between them.",
    examples: &[
        (
            r#"(clojure.string/join ", " [1 :a "b" nil])"#,
            r#""1, :a, b, ""#,
        ),
        (r#"(clojure.string/join ["a" "b"])"#, r#""ab""#),
    ],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        let mut separator = String::new();
        let coll = if args.len() == 2 {
            write_str(&mut separator, vm, args.get(0))?;
            args.take(1)
        } else {
            args.take(0)
        };
        let mut items = vm.iter(coll)?;
        let mut out = String::new();
        let mut first = true;
        while let Some(item) = items.next(vm)? {
            if !first {
                out.push_str(&separator);
            }
            first = false;
            write_str(&mut out, vm, &item)?;
        }
        Ok(Value::from(out))
    },
};

const UPPER_CASE: Native = Native {
    name: "upper-case",
    usage: "(upper-case s)",
    doc: "Returns s in upper case.",
    examples: &[(r#"(clojure.string/upper-case "aé")"#, r#""AÉ""#)],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let text = subject(vm, &args)?;
        Ok(Value::from(in_pieces(&text, str::to_uppercase)?))
    },
};

const LOWER_CASE: Native = Native {
    name: "lower-case",
    usage: "(lower-case s)",
    doc: "Returns s in lower case.",
    examples: &[(r#"(clojure.string/lower-case "AÉ")"#, r#""aé""#)],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let text = subject(vm, &args)?;
        Ok(Value::from(in_pieces(&text, str::to_lowercase)?))
    },
};

const CAPITALIZE: Native = Native {
    name: "capitalize",
    usage: "(capitalize s)",
    doc: "Returns s with its first character in upper case and the others in lower case.",
    examples: &[(r#"(clojure.string/capitalize "hELLO")"#, r#""Hello""#)],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let text = subject(vm, &args)?;
        let mut chars = text.chars();
        let mut out: String = chars
            .next()
            .into_iter()
            .flat_map(char::to_uppercase)
            .collect();
        out.push_str(&in_pieces(chars.as_str(), str::to_lowercase)?);
        Ok(Value::from(out))
    },
};

/// Size in bytes of the pieces of a text that are paid for separately.
const PIECE: usize = 64 << 10;

/// Converts the letters of a text, and pays for each piece of it.
fn in_pieces(text: &str, change: fn(&str) -> String) -> Result<String> {
    let is_ascii = text.is_ascii();
    let mut out = String::new();
    let mut rest = text;
    while rest.len() > PIECE {
        // The conversion of a letter may depend on adjacent letters, but not on those beyond a space.
        let end = match is_ascii {
            true => Some(PIECE),
            false => rest.as_bytes()[..PIECE]
                .iter()
                .rposition(|byte| *byte == b' ')
                .filter(|end| *end > 0),
        };
        let Some(end) = end else { break };
        let (piece, more) = rest.split_at(end);
        out.push_str(&change(piece));
        meter::spend(end as u32 / 16)?;
        rest = more;
    }
    out.push_str(&change(rest));
    Ok(out)
}

/// Returns the first position of `wanted`, as [`str::find`] does, and pays for each piece of the text.
fn find(text: &str, wanted: &str) -> Result<Option<usize>> {
    let step = PIECE.max(wanted.len());
    let mut start = 0;
    loop {
        let end = (start + step + wanted.len()).min(text.len());
        let piece = &text.as_bytes()[start..end];
        let found = memchr::memmem::find(piece, wanted.as_bytes());
        if found.is_some() || end == text.len() {
            return Ok(found.map(|at| start + at));
        }
        meter::spend(piece.len() as u32 / 64)?;
        start += step;
    }
}

/// Returns the last position of `wanted`, as [`str::rfind`] does, and pays for each piece of the text.
fn find_last(text: &str, wanted: &str) -> Result<Option<usize>> {
    let step = PIECE.max(wanted.len());
    let mut end = text.len();
    loop {
        let start = end.saturating_sub(step + wanted.len());
        let piece = &text.as_bytes()[start..end];
        let found = memchr::memmem::rfind(piece, wanted.as_bytes());
        if found.is_some() || start == 0 {
            return Ok(found.map(|at| start + at));
        }
        meter::spend(piece.len() as u32 / 64)?;
        end -= step;
    }
}

/// Returns the characters of argument 0: a string or a string builder.
fn characters(args: &Args<'_>) -> Result<Rc<Text>> {
    match (args.get(0), super::host_builder::text_in(args.get(0))) {
        (Value::Text(text), _) => Ok(text.clone()),
        (_, Some(built)) => Ok(Rc::new(Text::new(built))),
        _ => Err(args.expected(0, "a string")),
    }
}

/// Returns the text to work on: a string, or the text of any other value that is not nil.
fn subject<'a>(vm: &mut Vm, args: &'a Args<'_>) -> Result<Cow<'a, str>> {
    match args.get(0) {
        Value::Text(text) => Ok(Cow::Borrowed(text.as_str())),
        Value::Nil => Err(args.expected(0, "a string")),
        other => super::text::text_of(vm, other).map(Cow::Owned),
    }
}

const TRIM: Native = Native {
    name: "trim",
    usage: "(trim s)",
    doc: "Returns s without the whitespace at both ends.",
    examples: &[(r#"(clojure.string/trim "  a b \n")"#, r#""a b""#)],
    arity: Arity::exactly(1),
    run: |_, args| cut(args, |text| text.trim_matches(is_whitespace)),
};

const TRIML: Native = Native {
    name: "triml",
    usage: "(triml s)",
    doc: "Returns s without the whitespace at its start.",
    examples: &[(r#"(clojure.string/triml " a ")"#, r#""a ""#)],
    arity: Arity::exactly(1),
    run: |_, args| cut(args, |text| text.trim_start_matches(is_whitespace)),
};

const TRIMR: Native = Native {
    name: "trimr",
    usage: "(trimr s)",
    doc: "Returns s without the whitespace at its end.",
    examples: &[(r#"(clojure.string/trimr " a ")"#, r#"" a""#)],
    arity: Arity::exactly(1),
    run: |_, args| cut(args, |text| text.trim_end_matches(is_whitespace)),
};

const TRIM_NEWLINE: Native = Native {
    name: "trim-newline",
    usage: "(trim-newline s)",
    doc: "Returns s without the line ends at its end.",
    examples: &[(r#"(clojure.string/trim-newline "a \r\n\n")"#, r#""a ""#)],
    arity: Arity::exactly(1),
    run: |_, args| cut(args, |text| text.trim_end_matches(['\n', '\r'])),
};

/// Returns a part of the string; the string itself if nothing is cut off.
fn cut(args: Args<'_>, part: fn(&str) -> &str) -> Result<Value> {
    let text = characters(&args)?;
    let kept = part(&text);
    if kept.len() == text.len() {
        return Ok(Value::Text(text));
    }
    Ok(Value::from(kept))
}

/// Tells whether Java counts a character as whitespace, which excludes no-break spaces.
pub(super) fn is_whitespace(char: char) -> bool {
    match char {
        '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{85}' => false,
        '\u{1c}'..='\u{1f}' => true,
        _ => char.is_whitespace(),
    }
}

const IS_BLANK: Native = Native {
    name: "blank?",
    usage: "(blank? s)",
    doc: "Tells whether s is nil, empty, or whitespace only.",
    examples: &[
        (r#"(clojure.string/blank? " \n")"#, "true"),
        ("(clojure.string/blank? nil)", "true"),
        (r#"(clojure.string/blank? "a")"#, "false"),
    ],
    arity: Arity::exactly(1),
    run: |_, args| {
        if args.get(0).is_nil() {
            return Ok(Value::Bool(true));
        }
        for (idx, char) in characters(&args)?.chars().enumerate() {
            if !is_whitespace(char) {
                return Ok(Value::Bool(false));
            }
            if idx % PIECE == 0 {
                meter::spend(PIECE as u32 / 16)?;
            }
        }
        Ok(Value::Bool(true))
    },
};

const STARTS_WITH: Native = Native {
    name: "starts-with?",
    usage: "(starts-with? s substr)",
    doc: "Tells whether s starts with substr.",
    examples: &[(r#"(clojure.string/starts-with? "abc" "ab")"#, "true")],
    arity: Arity::exactly(2),
    run: |vm, args| {
        let text = subject(vm, &args)?;
        Ok(Value::Bool(text.starts_with(args.text(1)?.as_str())))
    },
};

const ENDS_WITH: Native = Native {
    name: "ends-with?",
    usage: "(ends-with? s substr)",
    doc: "Tells whether s ends with substr.",
    examples: &[(r#"(clojure.string/ends-with? "abc" "bc")"#, "true")],
    arity: Arity::exactly(2),
    run: |vm, args| {
        let text = subject(vm, &args)?;
        Ok(Value::Bool(text.ends_with(args.text(1)?.as_str())))
    },
};

const INCLUDES: Native = Native {
    name: "includes?",
    usage: "(includes? s substr)",
    doc: "Tells whether substr occurs in s.",
    examples: &[(r#"(clojure.string/includes? "abc" "b")"#, "true")],
    arity: Arity::exactly(2),
    run: |vm, args| {
        let text = subject(vm, &args)?;
        let found = find(&text, args.text(1)?)?;
        Ok(Value::Bool(found.is_some()))
    },
};

const INDEX_OF: Native = Native {
    name: "index-of",
    usage: "(index-of s value)\n(index-of s value from-index)",
    doc: "Returns the position of value, a string or character, in s from from-index on, or nil.",
    examples: &[
        (r#"(clojure.string/index-of "abcabc" "c")"#, "2"),
        (r#"(clojure.string/index-of "abcabc" \c 3)"#, "5"),
        (r#"(clojure.string/index-of "abc" "z")"#, "nil"),
    ],
    arity: Arity::between(2, 3),
    run: |_, args| {
        let text = characters(&args)?;
        let wanted = needle(&args)?;
        let start = if args.len() == 3 {
            args.int(2)?.max(0)
        } else {
            0
        };
        let start = usize::try_from(start).ok().and_then(|at| text.offset(at));
        let Some(start) = start else {
            return Ok(Value::Nil);
        };
        let found = find(&text[start..], &wanted)?.map(|at| start + at);
        Ok(position(&text, found))
    },
};

const LAST_INDEX_OF: Native = Native {
    name: "last-index-of",
    usage: "(last-index-of s value)\n(last-index-of s value from-index)",
    doc: "Returns the last position of value, a string or character, in s that is at most from-index, or nil.",
    examples: &[
        (r#"(clojure.string/last-index-of "abcabc" "c")"#, "5"),
        (r#"(clojure.string/last-index-of "abcabc" \c 4)"#, "2"),
    ],
    arity: Arity::between(2, 3),
    run: |_, args| {
        let text = characters(&args)?;
        let wanted = needle(&args)?;
        let mut end = text.len();
        if args.len() == 3 {
            let Ok(last) = usize::try_from(args.int(2)?) else {
                return Ok(Value::Nil);
            };
            // The match may start at `last` and extend past it.
            let after = text.offset(last).map_or(text.len(), |at| at + wanted.len());
            end = after.min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
        }
        Ok(position(&text, find_last(&text[..end], &wanted)?))
    },
};

/// Returns argument 1, a string or character, as a string.
fn needle(args: &Args<'_>) -> Result<String> {
    match args.get(1) {
        Value::Text(text) => Ok(text.as_str().to_owned()),
        Value::Char(char) => Ok(char.to_string()),
        _ => Err(args.expected(1, "a string or character")),
    }
}

/// Returns the position of the character at a byte offset.
fn position(text: &Text, at: Option<usize>) -> Value {
    match at {
        None => Value::Nil,
        Some(at) if text.is_ascii() => Value::from(at),
        Some(at) => Value::from(text[..at].chars().count()),
    }
}

const REVERSE: Native = Native {
    name: "reverse",
    usage: "(reverse s)",
    doc: "Returns s with its characters in reverse order.",
    examples: &[(r#"(clojure.string/reverse "abc")"#, r#""cba""#)],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let text = characters(&args)?;
        let mut reversed = String::with_capacity(text.len());
        for char in text.chars().rev() {
            reversed.push(char);
            pay_for(vm, reversed.len())?;
        }
        Ok(Value::from(reversed))
    },
};

const ESCAPE: Native = Native {
    name: "escape",
    usage: "(escape s cmap)",
    doc: "Returns s with each character that is a key of cmap replaced by its value.",
    examples: &[(
        r#"(clojure.string/escape "a<b" {\< "&lt;"})"#,
        r#""a&lt;b""#,
    )],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let text = characters(&args)?;
        let replacements = args.take(1);
        escape(vm, &text, &replacements)
    },
};

/// Pays for a result that grows one character at a time, for each further page.
fn pay_for(vm: &mut Vm, bytes: usize) -> Result<()> {
    const PAGE: usize = 4 << 10;
    match bytes.is_multiple_of(PAGE) {
        true => vm.charge(PAGE as u32 / 16),
        false => Ok(()),
    }
}

fn escape(vm: &mut Vm, text: &str, replacements: &Value) -> Result<Value> {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        vm.charge(1)?;
        match vm.call(replacements, &[Value::Char(char)])? {
            Value::Nil => out.push(char),
            replacement => write_str(&mut out, vm, &replacement)?,
        }
    }
    Ok(Value::from(out))
}
