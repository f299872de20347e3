//! `DateTimeFormatter`: patterns such as `yyyy-MM-dd HH:mm`, for writing and parsing dates and times.
//!
//! Names of months and days are English, as in Java's root locale for patterns.

use std::fmt::Write as _;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};

use super::kinds::{self, Temporal, date_time, temporal, zone};
use super::natives;
use super::units::{MONTHS, WEEKDAYS};
use crate::value::{HostObject, Native, Result, Value};
use crate::vm::{Args, Vm};

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    Literal(String),
    /// A field as a number with a minimum number of digits.
    Number(Field, usize),
    /// The last two digits of the year.
    ShortYear,
    /// The name of the month or weekday, either its first three letters or the whole name.
    Name(Field, bool),
    /// The fraction of a second with a number of digits.
    Fraction(usize),
    AmPm,
    /// Hours, minutes and seconds, with all non-zero digits of a fraction.
    IsoTime,
    /// An offset: the text for UTC, and whether to write a colon.
    Offset {
        zero: &'static str,
        colon: bool,
        short: bool,
    },
    /// The name of the zone.
    Zone,
    /// The name of the zone in brackets, if it has one.
    ZoneInBrackets,
    /// Everything in UTC.
    Instant,
}

/// The field that a number denotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Year,
    Month,
    Day,
    DayOfYear,
    Weekday,
    Hour,
    Hour12,
    Minute,
    Second,
    Nano,
}

/// The fields of a parsed text.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub date: Option<Date>,
    pub time: Option<Time>,
    pub offset: Option<Offset>,
    pub zone: Option<String>,
}

/// A formatter: its parts, and the zone in which instants are written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Formatter {
    items: Items,
    pattern: String,
    zone: Option<TimeZone>,
}

#[derive(Debug, Clone, PartialEq)]
enum Items {
    Own(Vec<Item>),
    Known(&'static [Item]),
}

impl Formatter {
    pub(super) fn items(&self) -> &[Item] {
        match &self.items {
            Items::Own(items) => items,
            Items::Known(items) => items,
        }
    }
}

impl HostObject for Formatter {
    fn class_name(&self) -> &'static str {
        "java.time.format.DateTimeFormatter"
    }

    fn text(&self) -> String {
        self.pattern.clone()
    }

    fn equals(&self, other: &dyn HostObject) -> bool {
        other.downcast::<Formatter>() == Some(self)
    }
}

/// Literals of one character in the tables below.
macro_rules! known {
    ($($constant:ident = [$($item:expr),*];)*) => {
        $(pub(super) static $constant: std::sync::LazyLock<Vec<Item>> =
            std::sync::LazyLock::new(|| [$($item),*].concat());)*
    };
}

fn text(text: &str) -> Vec<Item> {
    vec![Item::Literal(text.to_owned())]
}

fn number(field: Field, digits: usize) -> Vec<Item> {
    vec![Item::Number(field, digits)]
}

fn offset() -> Vec<Item> {
    vec![Item::Offset {
        zero: "Z",
        colon: true,
        short: false,
    }]
}

known! {
    ISO_LOCAL_DATE = [number(Field::Year, 4), text("-"), number(Field::Month, 2), text("-"), number(Field::Day, 2)];
    ISO_LOCAL_TIME = [vec![Item::IsoTime]];
    ISO_LOCAL_DATE_TIME = [ISO_LOCAL_DATE.clone(), text("T"), ISO_LOCAL_TIME.clone()];
    ISO_OFFSET_DATE_TIME = [ISO_LOCAL_DATE_TIME.clone(), offset()];
    ISO_ZONED_DATE_TIME = [ISO_OFFSET_DATE_TIME.clone(), vec![Item::ZoneInBrackets]];
    ISO_INSTANT = [vec![Item::Instant]];
    BASIC_ISO_DATE = [number(Field::Year, 4), number(Field::Month, 2), number(Field::Day, 2)];
    RFC_1123_DATE_TIME = [
        vec![Item::Name(Field::Weekday, true)], text(", "), number(Field::Day, 1), text(" "),
        vec![Item::Name(Field::Month, true)], text(" "), number(Field::Year, 4), text(" "),
        number(Field::Hour, 2), text(":"), number(Field::Minute, 2), text(":"), number(Field::Second, 2), text(" "),
        vec![Item::Offset { zero: "GMT", colon: false, short: false }]
    ];
}

/// The constants of the class.
pub(super) fn constants() -> impl Iterator<Item = (&'static str, &'static str, Value)> {
    let table: [(&'static str, &'static std::sync::LazyLock<Vec<Item>>); 10] = [
        ("BASIC_ISO_DATE", &BASIC_ISO_DATE),
        ("ISO_DATE", &ISO_LOCAL_DATE),
        ("ISO_DATE_TIME", &ISO_ZONED_DATE_TIME),
        ("ISO_INSTANT", &ISO_INSTANT),
        ("ISO_LOCAL_DATE", &ISO_LOCAL_DATE),
        ("ISO_LOCAL_DATE_TIME", &ISO_LOCAL_DATE_TIME),
        ("ISO_LOCAL_TIME", &ISO_LOCAL_TIME),
        ("ISO_OFFSET_DATE_TIME", &ISO_OFFSET_DATE_TIME),
        ("ISO_ZONED_DATE_TIME", &ISO_ZONED_DATE_TIME),
        ("RFC_1123_DATE_TIME", &RFC_1123_DATE_TIME),
    ];
    table.into_iter().map(|(name, items)| {
        let items: &'static [Item] = items;
        let formatter = Formatter {
            items: Items::Known(items),
            pattern: name.to_owned(),
            zone: None,
        };
        ("DateTimeFormatter", name, Value::host(formatter))
    })
}

pub(super) const FNS: &[Native] = natives![
    "ofPattern" "(DateTimeFormatter/ofPattern pattern)\n(DateTimeFormatter/ofPattern pattern locale)" "Returns a formatter for a pattern, such as yyyy-MM-dd HH:mm; names are English." [(r#"(.format (java.time.LocalDate/of 2020 1 31) (java.time.format.DateTimeFormatter/ofPattern "d MMM yyyy"))"#, r#""31 Jan 2020""#)] 1..2
        |_vm, args| {
            let pattern = args.text(0)?.as_str();
            let items = compile(pattern)?;
            Ok(Value::host(Formatter { items: Items::Own(items), pattern: pattern.to_owned(), zone: None }))
        };
];

pub(super) const METHODS: &[Native] = natives![
    ".format" "(.format date formatter)\n(.format formatter date)" "Returns a date or time as text." [(r#"(.format (java.time.LocalTime/of 9 5) (java.time.format.DateTimeFormatter/ofPattern "H:mm"))"#, r#""9:05""#)] 2..2
        |vm, args| write_with(vm, &args);
    ".withZone" "(.withZone formatter zone)" "Returns a formatter that writes instants in a zone." [(r#"(.format (.withZone (java.time.format.DateTimeFormatter/ofPattern "HH:mm") java.time.ZoneOffset/UTC) #inst "2020")"#, r#""00:00""#)] 2..2
        |_vm, args| match args.get(0).as_host::<Formatter>() {
            Some(formatter) => Ok(Value::host(Formatter { zone: Some(zone(&args, 1)?), ..formatter.clone() })),
            None => Err(args.expected(0, "a java.time.format.DateTimeFormatter")),
        };
];

/// `.format` takes its formatter first or last.
fn write_with(_vm: &mut Vm, args: &Args<'_>) -> Result<Value> {
    let (formatter, at) = match (
        args.get(0).as_host::<Formatter>(),
        args.get(1).as_host::<Formatter>(),
    ) {
        (Some(formatter), _) => (formatter, temporal(args, 1)?),
        (None, Some(formatter)) => (formatter, temporal(args, 0)?),
        (None, None) => return Err(args.expected(1, "a java.time.format.DateTimeFormatter")),
    };
    let parts = Parts::of(&at, formatter)?;
    let mut out = String::new();
    for item in formatter.items() {
        write_item(&mut out, item, &parts)?;
    }
    Ok(Value::text(out))
}

/// The values to write.
struct Parts {
    date: Option<Date>,
    time: Option<Time>,
    offset: Option<Offset>,
    zone: Option<TimeZone>,
}

impl Parts {
    fn of(at: &Temporal, formatter: &Formatter) -> Result<Parts> {
        let local = |at: DateTime, offset, zone| Parts {
            date: Some(at.date()),
            time: Some(at.time()),
            offset,
            zone,
        };
        Ok(match at {
            Temporal::Date(date) => Parts {
                date: Some(*date),
                time: None,
                offset: None,
                zone: None,
            },
            Temporal::Time(time) => Parts {
                date: None,
                time: Some(*time),
                offset: None,
                zone: None,
            },
            Temporal::DateTime(at) => local(*at, None, formatter.zone.clone()),
            Temporal::Instant(at) => {
                let zone = match &formatter.zone {
                    Some(zone) => zone.clone(),
                    None if formatter.items() == [Item::Instant] => TimeZone::UTC,
                    None => {
                        return Err(date_time(
                            "an Instant has no fields: give the formatter a zone with .withZone",
                        ));
                    }
                };
                let at = at.to_zoned(zone);
                local(
                    at.datetime(),
                    Some(at.offset()),
                    Some(at.time_zone().clone()),
                )
            }
            Temporal::Zoned(at) => {
                let at = match &formatter.zone {
                    Some(zone) => at.with_time_zone(zone.clone()),
                    None => at.clone(),
                };
                local(
                    at.datetime(),
                    Some(at.offset()),
                    Some(at.time_zone().clone()),
                )
            }
            other => {
                return Err(date_time(format!(
                    "a {} has no date and no time",
                    other.class_name()
                )));
            }
        })
    }

    fn number(&self, field: Field) -> Result<i64> {
        let date = || self.date.ok_or_else(|| missing(field));
        let time = || self.time.ok_or_else(|| missing(field));
        Ok(match field {
            Field::Year => i64::from(date()?.year()),
            Field::Month => i64::from(date()?.month()),
            Field::Day => i64::from(date()?.day()),
            Field::DayOfYear => i64::from(date()?.day_of_year()),
            Field::Weekday => i64::from(date()?.weekday().to_monday_one_offset()),
            Field::Hour => i64::from(time()?.hour()),
            Field::Hour12 => match time()?.hour() % 12 {
                0 => 12,
                hour => i64::from(hour),
            },
            Field::Minute => i64::from(time()?.minute()),
            Field::Second => i64::from(time()?.second()),
            Field::Nano => i64::from(time()?.subsec_nanosecond()),
        })
    }
}

#[cold]
fn missing(field: Field) -> crate::value::Signal {
    date_time(format!("Unsupported field: this value has no {field:?}"))
}

fn write_item(out: &mut String, item: &Item, parts: &Parts) -> Result<()> {
    let _ = match item {
        Item::Literal(text) => write!(out, "{text}"),
        Item::Number(field, digits) => {
            let number = parts.number(*field)?;
            if number < 0 {
                out.push('-');
            }
            write!(out, "{:0digits$}", number.abs())
        }
        Item::ShortYear => write!(out, "{:02}", parts.number(Field::Year)?.rem_euclid(100)),
        Item::Name(field, short) => {
            let table: &[_] = if *field == Field::Month {
                &MONTHS
            } else {
                &WEEKDAYS
            };
            let name = title(table[parts.number(*field)? as usize - 1].name);
            write!(out, "{}", if *short { &name[..3] } else { &name })
        }
        Item::Fraction(digits) => {
            let nanos = format!("{:09}", parts.number(Field::Nano)?);
            write!(out, "{}", nanos.get(..*digits).unwrap_or(&nanos))
        }
        Item::AmPm => write!(
            out,
            "{}",
            if parts.number(Field::Hour)? < 12 {
                "AM"
            } else {
                "PM"
            }
        ),
        Item::IsoTime => {
            let time = parts.time.ok_or_else(|| missing(Field::Hour))?;
            kinds::write_time(out, time, true);
            Ok(())
        }
        Item::Offset { zero, colon, short } => {
            let offset = parts
                .offset
                .ok_or_else(|| date_time("Unsupported field: this value has no offset"))?;
            write!(out, "{}", offset_text(offset, zero, *colon, *short))
        }
        Item::Zone => {
            let zone = parts
                .zone
                .as_ref()
                .ok_or_else(|| date_time("this value has no time zone"))?;
            write!(out, "{}", kinds::zone_id(zone))
        }
        Item::ZoneInBrackets => match parts.zone.as_ref().and_then(TimeZone::iana_name) {
            Some(name) => write!(out, "[{name}]"),
            None => Ok(()),
        },
        Item::Instant => {
            let (Some(date), Some(time)) = (parts.date, parts.time) else {
                return Err(missing(Field::Hour));
            };
            let offset = parts
                .offset
                .ok_or_else(|| date_time("Unsupported field: this value has no offset"))?;
            let at = offset
                .to_timestamp(date.to_datetime(time))
                .map_err(kinds::out_of_range)?;
            write!(out, "{}", Temporal::Instant(at).text())
        }
    };
    Ok(())
}

/// `JANUARY` as `January`.
fn title(name: &str) -> String {
    name[..1].to_owned() + &name[1..].to_ascii_lowercase()
}

fn offset_text(offset: Offset, zero: &str, colon: bool, short: bool) -> String {
    let seconds = offset.seconds();
    if seconds == 0 && !zero.is_empty() {
        return zero.to_owned();
    }
    let sign = if seconds < 0 { '-' } else { '+' };
    let (hours, minutes) = (seconds.abs() / 3600, seconds.abs() / 60 % 60);
    match (short && minutes == 0, colon) {
        (true, _) => format!("{sign}{hours:02}"),
        (false, true) => format!("{sign}{hours:02}:{minutes:02}"),
        (false, false) => format!("{sign}{hours:02}{minutes:02}"),
    }
}

/// Parses a pattern of letters; each run of one letter is a field.
pub(super) fn compile(pattern: &str) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        if letter == '\'' {
            let (literal, after) =
                quoted(&rest[1..]).ok_or_else(|| bad_pattern(pattern, "a quote is not closed"))?;
            push_literal(&mut items, &literal);
            rest = after;
            continue;
        }
        let count = rest.chars().take_while(|other| *other == letter).count();
        if letter.is_ascii_alphabetic() {
            items.push(field(letter, count).ok_or_else(|| {
                bad_pattern(pattern, &format!("`{}`", letter.to_string().repeat(count)))
            })?);
        } else if matches!(letter, '[' | ']' | '{' | '}' | '#') {
            return Err(bad_pattern(pattern, &format!("`{letter}`")));
        } else {
            push_literal(&mut items, &rest[..letter.len_utf8() * count]);
        }
        rest = &rest[letter.len_utf8() * count..];
    }
    Ok(items)
}

/// Returns a quoted text and the rest; two quotes denote one.
fn quoted(rest: &str) -> Option<(String, &str)> {
    if let Some(after) = rest.strip_prefix('\'') {
        return Some(("'".to_owned(), after));
    }
    let mut text = String::new();
    let mut rest = rest;
    loop {
        let (part, after) = rest.split_once('\'')?;
        text.push_str(part);
        match after.strip_prefix('\'') {
            Some(more) => {
                text.push('\'');
                rest = more;
            }
            None => return Some((text, after)),
        }
    }
}

fn push_literal(items: &mut Vec<Item>, more: &str) {
    match items.last_mut() {
        Some(Item::Literal(text)) => text.push_str(more),
        _ => items.push(Item::Literal(more.to_owned())),
    }
}

fn field(letter: char, count: usize) -> Option<Item> {
    let number = |field| (count <= 2).then_some(Item::Number(field, count));
    match (letter, count) {
        ('y' | 'u', 2) => Some(Item::ShortYear),
        ('y' | 'u', _) => Some(Item::Number(Field::Year, count)),
        ('M' | 'L', 3) => Some(Item::Name(Field::Month, true)),
        ('M' | 'L', 4) => Some(Item::Name(Field::Month, false)),
        ('M' | 'L', _) => number(Field::Month),
        ('d', _) => number(Field::Day),
        ('D', 1..=3) => Some(Item::Number(Field::DayOfYear, count)),
        ('E', 1..=3) => Some(Item::Name(Field::Weekday, true)),
        ('E', 4) => Some(Item::Name(Field::Weekday, false)),
        ('e', 1) => Some(Item::Number(Field::Weekday, 1)),
        ('H', _) => number(Field::Hour),
        ('h', _) => number(Field::Hour12),
        ('m', _) => number(Field::Minute),
        ('s', _) => number(Field::Second),
        ('S', 1..=9) => Some(Item::Fraction(count)),
        ('n', _) => Some(Item::Number(Field::Nano, count)),
        ('a', 1) => Some(Item::AmPm),
        ('X', 1) => Some(Item::Offset {
            zero: "Z",
            colon: false,
            short: true,
        }),
        ('X', 2) => Some(Item::Offset {
            zero: "Z",
            colon: false,
            short: false,
        }),
        ('X', 3) => Some(Item::Offset {
            zero: "Z",
            colon: true,
            short: false,
        }),
        ('x', 1) => Some(Item::Offset {
            zero: "",
            colon: false,
            short: true,
        }),
        ('x', 2) | ('Z', 1..=3) => Some(Item::Offset {
            zero: "",
            colon: false,
            short: false,
        }),
        ('x', 3) => Some(Item::Offset {
            zero: "",
            colon: true,
            short: false,
        }),
        ('V', 2) => Some(Item::Zone),
        _ => None,
    }
}

#[cold]
fn bad_pattern(pattern: &str, what: &str) -> crate::value::Signal {
    crate::value::Exception::new(
        crate::value::Class::ILLEGAL_ARGUMENT,
        "E0361",
        format!("the pattern \"{pattern}\" has {what}, which is not known"),
    )
    .argument(0)
    .hint("letters: y M d E D for dates, H h m s S a for times, X x Z VV for zones; other text goes in single quotes")
    .into()
}

/// Parses a whole text according to a pattern; `None` if it does not match.
pub(super) fn parse(items: &[Item], text: &str) -> Option<Fields> {
    let mut reader = Reading {
        rest: text,
        numbers: Vec::new(),
        fields: Fields::default(),
        pm: None,
    };
    for (idx, item) in items.iter().enumerate() {
        let is_joined = matches!(
            items.get(idx + 1),
            Some(Item::Number(..) | Item::Fraction(_))
        );
        reader.item(item, is_joined)?;
    }
    if reader.rest.is_empty() {
        reader.finish()
    } else {
        None
    }
}

struct Reading<'a> {
    rest: &'a str,
    numbers: Vec<(Field, i64)>,
    fields: Fields,
    pm: Option<bool>,
}

impl Reading<'_> {
    /// Parses a part; a number followed directly by another one has exactly as many digits as its pattern has letters.
    fn item(&mut self, item: &Item, is_joined: bool) -> Option<()> {
        match item {
            Item::Literal(text) => self.rest = self.rest.strip_prefix(text.as_str())?,
            Item::Number(field, digits) => {
                let max = match (*digits, is_joined) {
                    (1, false) => 10,
                    (digits, _) => digits,
                };
                let number = self.digits(*digits, max)?;
                self.numbers.push((*field, number));
            }
            Item::ShortYear => {
                let year = self.digits(2, 2)?;
                self.numbers.push((Field::Year, 2000 + year));
            }
            Item::Name(field, short) => {
                let table: &[_] = if *field == Field::Month {
                    &MONTHS
                } else {
                    &WEEKDAYS
                };
                let (idx, length) = table.iter().enumerate().find_map(|(idx, constant)| {
                    let name = title(constant.name);
                    let name = if *short { &name[..3] } else { &name };
                    self.rest.starts_with(name).then_some((idx, name.len()))
                })?;
                self.rest = &self.rest[length..];
                self.numbers.push((*field, idx as i64 + 1));
            }
            Item::Fraction(digits) => {
                let fraction = self.digits(*digits, *digits)?;
                let nanos = fraction * 10_i64.pow(9 - *digits as u32);
                self.numbers.push((Field::Nano, nanos));
            }
            Item::AmPm => {
                let (half, rest) = self.rest.split_at_checked(2)?;
                self.pm = Some(match half.to_ascii_uppercase().as_str() {
                    "AM" => false,
                    "PM" => true,
                    _ => return None,
                });
                self.rest = rest;
            }
            Item::IsoTime => self.iso_time()?,
            Item::Offset { zero, .. } => self.offset(zero)?,
            Item::Zone => {
                self.zone(|char| char.is_ascii_alphanumeric() || "/_+-:".contains(char))?
            }
            Item::ZoneInBrackets => {
                if let Some(rest) = self.rest.strip_prefix('[') {
                    self.rest = rest;
                    self.zone(|char| char != ']')?;
                    self.rest = self.rest.strip_prefix(']')?;
                }
            }
            Item::Instant => {
                let at: jiff::Timestamp = self.rest.parse().ok()?;
                let local = Offset::UTC.to_datetime(at);
                self.fields = Fields {
                    date: Some(local.date()),
                    time: Some(local.time()),
                    offset: Some(Offset::UTC),
                    zone: None,
                };
                self.rest = "";
            }
        }
        Some(())
    }

    fn digits(&mut self, min: usize, max: usize) -> Option<i64> {
        let count = self
            .rest
            .bytes()
            .take(max)
            .take_while(u8::is_ascii_digit)
            .count();
        if count < min {
            return None;
        }
        let number = self.rest[..count].parse().ok()?;
        self.rest = &self.rest[count..];
        Some(number)
    }

    /// Parses `HH:mm`, then seconds and a fraction if present.
    fn iso_time(&mut self) -> Option<()> {
        let hour = self.digits(2, 2)?;
        self.rest = self.rest.strip_prefix(':')?;
        let minute = self.digits(2, 2)?;
        self.numbers
            .extend([(Field::Hour, hour), (Field::Minute, minute)]);
        if let Some(rest) = self.rest.strip_prefix(':') {
            self.rest = rest;
            let second = self.digits(2, 2)?;
            self.numbers.push((Field::Second, second));
            if let Some(rest) = self.rest.strip_prefix('.') {
                self.rest = rest;
                let count = rest.bytes().take_while(u8::is_ascii_digit).count();
                if !(1..=9).contains(&count) {
                    return None;
                }
                let fraction = self.digits(count, count)?;
                self.numbers
                    .push((Field::Nano, fraction * 10_i64.pow(9 - count as u32)));
            }
        }
        Some(())
    }

    fn offset(&mut self, zero: &str) -> Option<()> {
        if !zero.is_empty()
            && let Some(rest) = self.rest.strip_prefix(zero)
        {
            self.rest = rest;
            self.fields.offset = Some(Offset::UTC);
            return Some(());
        }
        let length = 1 + self
            .rest
            .get(1..)?
            .bytes()
            .take_while(|byte| byte.is_ascii_digit() || *byte == b':')
            .count();
        self.fields.offset = Some(kinds::parse_offset(&self.rest[..length])?);
        self.rest = &self.rest[length..];
        Some(())
    }

    fn zone(&mut self, belongs: impl Fn(char) -> bool) -> Option<()> {
        let end = self
            .rest
            .find(|char| !belongs(char))
            .unwrap_or(self.rest.len());
        if end == 0 {
            return None;
        }
        self.fields.zone = Some(self.rest[..end].to_owned());
        self.rest = &self.rest[end..];
        Some(())
    }

    fn number(&self, field: Field) -> Option<i64> {
        self.numbers
            .iter()
            .find(|(of, _)| *of == field)
            .map(|(_, number)| *number)
    }

    /// Combines the numbers; `None` if they are not a valid date or time.
    fn finish(mut self) -> Option<Fields> {
        if let Some(year) = self.number(Field::Year) {
            let date = match (
                self.number(Field::Month),
                self.number(Field::Day),
                self.number(Field::DayOfYear),
            ) {
                (Some(month), Some(day), _) => {
                    Some(super::make::calendar_date(year, month, day).ok()?)
                }
                (None, None, Some(day)) => {
                    let first = super::make::calendar_date(year, 1, 1).ok()?;
                    Some(super::units::plus_days(first, day - 1).ok()?)
                }
                _ => None,
            };
            self.fields.date = date;
        }
        let hour = match (
            self.number(Field::Hour),
            self.number(Field::Hour12),
            self.pm,
        ) {
            (Some(hour), _, _) => Some(hour),
            (None, Some(hour), Some(pm)) => Some(hour % 12 + if pm { 12 } else { 0 }),
            _ => None,
        };
        if let Some(hour) = hour {
            let part = |field| self.number(field).unwrap_or(0);
            let parts = [
                hour,
                part(Field::Minute),
                part(Field::Second),
                part(Field::Nano),
            ];
            self.fields.time = Some(super::make::clock_time(parts).ok()?);
        }
        Some(self.fields)
    }
}
