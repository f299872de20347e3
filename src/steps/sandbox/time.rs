//! Instants: reading, writing, arithmetic. Always in UTC; the current time comes from `flow/now-ms`.

use flowstone_lang::value::{Arity, Class, Exception, Native, Object, Result, Signal, Value};
use flowstone_lang::vm::{Args, Vm};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::json::{instant_millis, name_text};
use crate::text::nearest;

pub(super) const FNS: &[Native] = &[
    DURATION_BETWEEN,
    EPOCH_MS_TO_INSTANT,
    FORMAT_INSTANT,
    FORMAT_INSTANT_PATTERN,
    INSTANT_TO_EPOCH_MS,
    INSTANT_MINUS,
    INSTANT_PLUS,
    PARSE_INSTANT,
    TRUNCATE_INSTANT,
];

const PARSE_INSTANT: Native = Native {
    name: "parse-instant",
    usage: "(parse-instant s)",
    doc: "Reads an ISO-8601 instant, such as `2026-01-31T09:30:00Z` or with an offset; a date alone is its first instant.",
    examples: &[(
        r#"(flow.util/parse-instant "1970-01-01T00:00:01Z")"#,
        r#"#inst "1970-01-01T00:00:01.000-00:00""#,
    )],
    arity: Arity::exactly(1),
    run: |_, args| {
        let text = args.text(0)?;
        match instant_millis(text) {
            Some(millis) => Ok(instant(millis)),
            None => Err(Exception::new(
                Class::DATE_TIME_PARSE,
                "E0743",
                format!(
                    "`{}` is not an instant",
                    text.chars().take(60).collect::<String>()
                ),
            )
            .hint("write it as in `2026-01-31T09:30:00Z`")
            .into()),
        }
    },
};

const FORMAT_INSTANT: Native = Native {
    name: "format-instant",
    usage: "(format-instant instant)",
    doc: "Writes an instant in ISO-8601, in UTC.",
    examples: &[(
        r#"(flow.util/format-instant (flow.util/epoch-ms->instant 1500))"#,
        r#""1970-01-01T00:00:01.500Z""#,
    )],
    arity: Arity::exactly(1),
    run: |_, args| {
        let at = timestamp(millis(&args, 0)?)?;
        let text = match at.subsec_nanosecond() {
            0 => at.to_string(),
            _ => format!("{at:.3}"),
        };
        Ok(Value::from(text))
    },
};

const FORMAT_INSTANT_PATTERN: Native = Native {
    name: "format-instant-pattern",
    usage: "(format-instant-pattern instant pattern)",
    doc: "Writes an instant in UTC by a pattern such as `yyyy-MM-dd HH:mm:ss`, `EEE, d MMM yyyy`, `h:mm a`.",
    examples: &[(
        r#"(flow.util/format-instant-pattern (flow.util/epoch-ms->instant 0) "EEEE, d MMM yyyy 'at' HH:mm")"#,
        r#""Thursday, 1 Jan 1970 at 00:00""#,
    )],
    arity: Arity::exactly(2),
    run: format_pattern,
};

const INSTANT_TO_EPOCH_MS: Native = Native {
    name: "instant->epoch-ms",
    usage: "(instant->epoch-ms instant)",
    doc: "Returns the milliseconds from 1970-01-01T00:00Z to an instant.",
    examples: &[(
        r#"(flow.util/instant->epoch-ms (flow.util/parse-instant "1970-01-01T00:01:00Z"))"#,
        "60000",
    )],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::Int(millis(&args, 0)?)),
};

const EPOCH_MS_TO_INSTANT: Native = Native {
    name: "epoch-ms->instant",
    usage: "(epoch-ms->instant ms)",
    doc: "Returns the instant at a number of milliseconds after 1970-01-01T00:00Z.",
    examples: &[(
        "(flow.util/epoch-ms->instant 0)",
        r#"#inst "1970-01-01T00:00:00.000-00:00""#,
    )],
    arity: Arity::exactly(1),
    run: |_, args| {
        let millis = args.int(0)?;
        timestamp(millis).map(|_| instant(millis))
    },
};

const DURATION_BETWEEN: Native = Native {
    name: "duration-between",
    usage: "(duration-between from to)\n(duration-between from to unit)",
    doc: "Returns the milliseconds, or the whole units, from one instant to another; negative if it is earlier.",
    examples: &[(
        r#"(flow.util/duration-between (flow.util/epoch-ms->instant 0) (flow.util/epoch-ms->instant 7200000) :hours)"#,
        "2",
    )],
    arity: Arity::between(2, 3),
    run: |_, args| {
        let between = millis(&args, 1)?.saturating_sub(millis(&args, 0)?);
        let unit = if args.len() == 3 { unit(&args, 2)? } else { 1 };
        Ok(Value::Int(between / unit))
    },
};

const TRUNCATE_INSTANT: Native = Native {
    name: "truncate-instant",
    usage: "(truncate-instant instant unit)",
    doc: "Returns the start of the unit that contains an instant: `:millis :seconds :minutes :hours :days`.",
    examples: &[(
        r#"(flow.util/format-instant (flow.util/truncate-instant (flow.util/parse-instant "2026-01-31T09:30:12Z") :hours))"#,
        r#""2026-01-31T09:00:00Z""#,
    )],
    arity: Arity::exactly(2),
    run: |_, args| {
        let at = millis(&args, 0)?;
        Ok(instant(at - at.rem_euclid(unit(&args, 1)?)))
    },
};

const INSTANT_PLUS: Native = Native {
    name: "instant-plus",
    usage: "(instant-plus instant amount unit)",
    doc: "Returns the instant a number of units later: `:millis :seconds :minutes :hours :days`.",
    examples: &[(
        r#"(flow.util/format-instant (flow.util/instant-plus (flow.util/epoch-ms->instant 0) 2 :days))"#,
        r#""1970-01-03T00:00:00Z""#,
    )],
    arity: Arity::exactly(3),
    run: |_, args| shift(&args, 1),
};

const INSTANT_MINUS: Native = Native {
    name: "instant-minus",
    usage: "(instant-minus instant amount unit)",
    doc: "Returns the instant a number of units earlier: `:millis :seconds :minutes :hours :days`.",
    examples: &[(
        r#"(flow.util/format-instant (flow.util/instant-minus (flow.util/epoch-ms->instant 0) 1 :hours))"#,
        r#""1969-12-31T23:00:00Z""#,
    )],
    arity: Arity::exactly(3),
    run: |_, args| shift(&args, -1),
};

fn instant(millis: i64) -> Value {
    Object::Inst(millis).into()
}

/// An instant argument: an `#inst`, its text, or its milliseconds.
fn millis(args: &Args<'_>, idx: usize) -> Result<i64> {
    match args.get(idx) {
        Value::Int(millis) => Ok(*millis),
        Value::Object(object) if let Object::Inst(millis) = **object => Ok(millis),
        Value::Text(text) => instant_millis(text).ok_or_else(|| args.expected(idx, "an instant")),
        _ => Err(args.expected(idx, "an instant")),
    }
}

fn timestamp(millis: i64) -> Result<Timestamp> {
    Timestamp::from_millisecond(millis).map_err(|_| {
        Exception::new(
            Class::DATE_TIME,
            "E0743",
            "the instant is outside the years -9999 to 9999",
        )
        .into()
    })
}

/// Milliseconds of a unit's name, singular or plural.
fn unit(args: &Args<'_>, idx: usize) -> Result<i64> {
    const UNITS: &[(&str, i64)] = &[
        ("millis", 1),
        ("seconds", 1000),
        ("minutes", 60_000),
        ("hours", 3_600_000),
        ("days", 86_400_000),
        ("weeks", 604_800_000),
    ];
    let name =
        name_text(args.get(idx)).ok_or_else(|| args.expected(idx, "a unit such as `:hours`"))?;
    let found = UNITS
        .iter()
        .find(|(known, _)| *known == name || known.strip_suffix('s') == Some(&name));
    found.map(|(_, millis)| *millis).ok_or_else(|| {
        let exception = Exception::new(
            Class::ILLEGAL_ARGUMENT,
            "E0743",
            format!(
                "`{name}` is not a unit; there are :millis :seconds :minutes :hours :days :weeks"
            ),
        )
        .argument(idx);
        match nearest(&name, UNITS.iter().map(|(known, _)| *known)) {
            Some(near) => exception.hint(format!("did you mean `:{near}`?")).into(),
            None => exception.into(),
        }
    })
}

fn shift(args: &Args<'_>, sign: i64) -> Result<Value> {
    let by = args
        .int(1)?
        .checked_mul(unit(args, 2)?)
        .and_then(|by| by.checked_mul(sign));
    let shifted = by.and_then(|by| millis(args, 0).ok()?.checked_add(by));
    match shifted {
        Some(shifted) => timestamp(shifted).map(|_| instant(shifted)),
        None => millis(args, 0).and_then(|_| timestamp(i64::MAX).map(|_| Value::Nil)),
    }
}

fn format_pattern(_: &mut Vm, args: Args<'_>) -> Result<Value> {
    let at = timestamp(millis(&args, 0)?)?
        .to_zoned(TimeZone::UTC)
        .datetime();
    let pattern = args.text(1)?;
    let mut out = String::new();
    let mut rest = pattern.as_str();
    while let Some(first) = rest.chars().next() {
        let length = rest.chars().take_while(|char| *char == first).count();
        if first == '\'' {
            rest = quoted(rest, &mut out).ok_or_else(|| bad_pattern("a quote is not closed"))?;
        } else if first.is_ascii_alphabetic() {
            out.push_str(&field(at, first, length).ok_or_else(|| {
                bad_pattern(&format!(
                    "`{}` is not supported",
                    first.to_string().repeat(length)
                ))
            })?);
            rest = &rest[length..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    Ok(Value::from(out))
}

fn bad_pattern(why: &str) -> Signal {
    Exception::new(
        Class::ILLEGAL_ARGUMENT,
        "E0743",
        format!("the pattern cannot be used: {why}"),
    )
    .argument(1)
    .hint("letters: y M d D E H h K k m s S a Z X; put text in single quotes: 'T'")
    .into()
}

/// Copies `'text'`; `''` is a quote. Returns what follows.
fn quoted<'a>(text: &'a str, out: &mut String) -> Option<&'a str> {
    if let Some(rest) = text.strip_prefix("''") {
        out.push('\'');
        return Some(rest);
    }
    let mut rest = &text[1..];
    loop {
        let end = rest.find('\'')?;
        out.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('\'') {
            Some(after) => {
                out.push('\'');
                rest = after;
            }
            None => return Some(rest),
        }
    }
}

fn field(at: DateTime, letter: char, length: usize) -> Option<String> {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    const DAYS: [&str; 7] = [
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
    ];
    let padded = |number: i64| format!("{number:0length$}");
    let hour = i64::from(at.hour());
    let named = |names: &[&str], idx: i8| {
        let name = *names.get(usize::try_from(idx).ok()?)?;
        Some(if length >= 4 {
            name.to_owned()
        } else {
            name[..3].to_owned()
        })
    };
    Some(match letter {
        'y' | 'u' if length == 2 => format!("{:02}", at.year().rem_euclid(100)),
        'y' | 'u' => padded(at.year().into()),
        'M' | 'L' if length >= 3 => named(&MONTHS, at.month() - 1)?,
        'M' | 'L' => padded(at.month().into()),
        'd' => padded(at.day().into()),
        'D' => padded(at.day_of_year().into()),
        'E' => named(&DAYS, at.weekday().to_monday_zero_offset())?,
        'H' => padded(hour),
        'k' => padded(if hour == 0 { 24 } else { hour }),
        'K' => padded(hour % 12),
        'h' => padded(if hour % 12 == 0 { 12 } else { hour % 12 }),
        'm' => padded(at.minute().into()),
        's' => padded(at.second().into()),
        'S' => format!("{:09}", at.subsec_nanosecond())
            .get(..length.min(9))?
            .to_owned(),
        'a' => if hour < 12 { "AM" } else { "PM" }.to_owned(),
        'X' => "Z".to_owned(),
        'x' | 'Z' => "+0000".to_owned(),
        'z' | 'V' => "UTC".to_owned(),
        _ => return None,
    })
}
