//! `:time`: the current time, and dates and times in a time zone: parsing, formatting, arithmetic.
//!
//! The result is journaled like that of any step: a replay sees the time that the run saw.

use flowstone_flow::flow::Flow;
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Operation, Operations, Outcome, Step, StepContext,
    StepError, StepSpec,
};
use flowstone_lang::value::{Object, Signal, Value};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan as _, Unit, Zoned};

use crate::fields::Fields;
use crate::json::{instant_millis, name_text};
use crate::literal::{self, Remarks};
use crate::operation::choose;
use crate::text::{brief, nearest};

/// The `:time` step.
pub struct Time;

const SPEC: StepSpec = StepSpec {
    kind: "time",
    operations: Some(OPERATIONS),
    aliases: &[],
    doc: "Tells the time, and computes with dates and times in a time zone.\n\n\
        The result of all operations but `:between` is one instant: `:instant` (an `#inst`), `:iso`, `:epoch-ms`, \
        `:epoch-seconds`, and as a clock in the `:timezone` shows it `:date`, `:time`, `:year`, `:month`, `:day`, `:hour`, \
        `:minute`, `:second`, `:weekday` (`:monday` ...), `:week` (such as `2026-W05`), `:timezone` and `:offset`; with \
        `:format` also `:formatted`. Days and longer units follow the calendar of the zone, so that a day may have 23 or 25 hours. The \
        current time is journaled: a run that resumes or is replayed sees the same.",
    fields: FIELDS,
    examples: &[
        "(flow/step :time :now {})",
        "(:date (flow/step :time :today {:op :now :timezone \"Europe/Berlin\"}))",
        "(flow/step :time :last-week {:op :add :at (flow/now-ms) :by {:weeks -1}})",
        "(flow/step :time :month {:op :truncate :at \"2026-01-31T09:30:00Z\" :unit :month :format \"MMMM yyyy\"})",
    ],
    effect: Effect::Read,
};

const UNITS: &[&str] = &[
    "day", "hour", "minute", "month", "quarter", "second", "week", "year",
];

const FIELDS: &[Field] = &[
    Field::optional(
        "at",
        FieldType::Any,
        "An instant: an `#inst`, milliseconds since 1970, text such as `2026-01-31T09:30:00Z` or `2026-01-31`, or the result of \
         another `:time` step. Text without an offset is in the `:timezone`.",
    ),
    Field::optional(
        "by",
        FieldType::Either(&[FieldType::Map, FieldType::Duration]),
        "How much to add: `{:months 1 :days -2}`, of `:years :months :weeks :days :hours :minutes :seconds :millis`, or a duration \
         such as `\"90m\"`.",
    ),
    Field::optional(
        "format",
        FieldType::Text,
        "A pattern such as `yyyy-MM-dd HH:mm` to write the instant with, or to read `:text` with.",
    ),
    Field::optional("from", FieldType::Any, "The first instant, as `:at`."),
    Field::optional(
        "op",
        FieldType::Name,
        "What to do: `:now :add :between :format :parse :truncate`. Default `:now`.",
    )
    .or(":now"),
    Field::optional(
        "text",
        FieldType::Text,
        "A date and time to read: ISO-8601, or as `:format` says.",
    ),
    Field::optional(
        "timezone",
        FieldType::Name,
        "A time zone such as `Europe/Berlin`, or an offset such as `+01:00`. Default `UTC`.",
    ),
    Field::optional("to", FieldType::Any, "The second instant, as `:at`."),
    Field::optional(
        "unit",
        FieldType::OneOf(UNITS),
        "What `:truncate` finds the start of. Weeks start on Monday.",
    ),
];

/// The fields of an instant in a result.
const MOMENT: &str = "[:map [:instant inst?] [:iso :string] [:epoch-ms :int] [:epoch-seconds :int] [:date :string] [:time :string] [:year :int] [:month :int] [:day :int] [:hour :int] [:minute :int] [:second :int] [:weekday :keyword] [:week :string] [:timezone :string] [:offset :string] [:formatted {:optional true} :string]]";

const OPERATIONS: Operations = Operations {
    key: "op",
    code: "E0767",
    all: &[
        Operation {
            name: "add",
            doc: "Moves an instant by units of the calendar or the clock; negative amounts lead back.",
            needs: &["at", "by"],
            takes: &["format", "timezone"],
            gives: MOMENT,
            effect: Effect::Read,
            for_agents: false,
        },
        Operation {
            name: "between",
            doc: "Returns the time from one instant to another, in whole units; negative when the second is earlier.",
            needs: &["from", "to"],
            takes: &["timezone"],
            gives: "[:map [:millis :int] [:seconds :int] [:minutes :int] [:hours :int] [:days :int] [:months :int] [:years :int]]",
            effect: Effect::Read,
            for_agents: false,
        },
        Operation {
            name: "format",
            doc: "Writes an instant by a pattern.",
            needs: &["at", "format"],
            takes: &["timezone"],
            gives: MOMENT,
            effect: Effect::Read,
            for_agents: false,
        },
        Operation {
            name: "now",
            doc: "Returns the current time.",
            needs: &[],
            takes: &["format", "timezone"],
            gives: MOMENT,
            effect: Effect::Read,
            for_agents: false,
        },
        Operation {
            name: "parse",
            doc: "Reads an instant from text.",
            needs: &["text"],
            takes: &["format", "timezone"],
            gives: MOMENT,
            effect: Effect::Read,
            for_agents: false,
        },
        Operation {
            name: "truncate",
            doc: "Returns the start of the unit that contains an instant, and under :end the start of the next one.",
            needs: &["at", "unit"],
            takes: &["format", "timezone"],
            gives: MOMENT,
            effect: Effect::Read,
            for_agents: false,
        },
    ],
};

impl Step for Time {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn remarks(&self, _flow: &Flow, config: &Value) -> Remarks {
        let mut remarks = Remarks::new();
        let known = literal::known(config);
        let fields = Fields::new(&known);
        literal::remark(&mut remarks, "timezone", zone(fields));
        literal::remark(&mut remarks, "by", shift(fields));
        if let Ok(Some(pattern)) = fields.text("format") {
            literal::remark(&mut remarks, "format", pattern_of(pattern));
        }
        // A text without an offset cannot be read before the zone is known.
        let is_zone_known = config.get("timezone").is_none_or(literal::is_known);
        if let (true, Ok(zone)) = (is_zone_known, zone(fields)) {
            for key in ["at", "from", "to"] {
                if fields.get(key).is_some() {
                    literal::remark(&mut remarks, key, instant(fields, key, &zone));
                }
            }
            let is_iso = config.get("format").is_none_or(Value::is_nil);
            if let (true, Ok(Some(text))) = (is_iso, fields.text("text")) {
                literal::remark(&mut remarks, "text", read_iso(text, &zone));
            }
        }
        remarks
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let fields = Fields::new(&config);
            let op = choose(&SPEC, fields)?.name;
            let ask = Ask {
                cx,
                fields,
                zone: zone(fields)?,
            };
            let value = match op {
                "add" => ask.shown(&added(&ask.instant("at")?, fields)?)?,
                "between" => between(&ask.instant("from")?, &ask.instant("to")?)?,
                "format" => ask.shown(&ask.instant("at")?)?,
                "parse" => ask.parsed()?,
                "truncate" => ask.truncated()?,
                _ => ask.shown(&ask.at_millis(cx.now_ms())?)?,
            };
            Ok(Outcome::Value(value))
        })
    }
}

/// A parsed request.
struct Ask<'a> {
    cx: &'a StepContext,
    fields: Fields<'a>,
    zone: TimeZone,
}

fn wrong(message: impl Into<String>) -> StepError {
    StepError::config("E0767", message)
}

/// Maximum offset from UTC, in seconds.
const FARTHEST: i32 = 18 * 3600;

fn zone(fields: Fields<'_>) -> Result<TimeZone, StepError> {
    let Some(name) = fields.name("timezone")? else {
        return Ok(TimeZone::UTC);
    };
    if name.starts_with(['+', '-']) {
        let offset = format!("2000-01-01T00:00:00{name}");
        let parsed = jiff::fmt::temporal::Pieces::parse(offset.as_str()).ok();
        let offset = parsed.and_then(|pieces| pieces.to_numeric_offset());
        return offset
            .filter(|offset| offset.seconds().abs() <= FARTHEST)
            .map(TimeZone::fixed)
            .ok_or_else(|| wrong(format!("`{name}` is not an offset, such as `+01:00`")));
    }
    let zones = jiff::tz::TimeZoneDatabase::bundled();
    let canonical = match &*name {
        "Z" | "z" => "UTC",
        name => name,
    };
    zones.get(canonical).map_err(|_| {
        let known: Vec<String> = zones.available().map(|name| name.to_string()).collect();
        let error = wrong(format!("there is no time zone `{name}`"));
        match nearest(&name, known.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean \"{near}\"?")),
            None => error.hint("zones have names such as \"Europe/Berlin\" or \"UTC\""),
        }
    })
}

fn beyond() -> StepError {
    wrong("the instant is outside the years -9999 to 9999")
}

fn at_millis(millis: i64, zone: &TimeZone) -> Result<Zoned, StepError> {
    let at = Timestamp::from_millisecond(millis).map_err(|_| beyond())?;
    Ok(at.to_zoned(zone.clone()))
}

/// Reads an instant of a config.
fn instant(fields: Fields<'_>, key: &'static str, zone: &TimeZone) -> Result<Zoned, StepError> {
    let given = fields.get(key).unwrap_or(&Value::Nil);
    let not_one = || {
        wrong(format!("`:{key}` is not an instant: {}", brief(given))).hint(
            "give an `#inst`, milliseconds since 1970, or text such as \"2026-01-31T09:30:00Z\"",
        )
    };
    match given {
        Value::Int(millis) => at_millis(*millis, zone),
        Value::Object(object) if let Object::Inst(millis) = **object => at_millis(millis, zone),
        Value::Text(text) => iso(text.as_str(), zone).ok_or_else(not_one),
        Value::Map(_) => match given.get("epoch-ms") {
            Some(Value::Int(millis)) => at_millis(*millis, zone),
            _ => Err(not_one()),
        },
        _ => Err(not_one()),
    }
}

/// Reads the `:text` of a step that names no `:format`.
fn read_iso(text: &str, zone: &TimeZone) -> Result<Zoned, StepError> {
    iso(text, zone).ok_or_else(|| {
        wrong(format!("`{}` is not a date and time", start(text)))
            .hint("write it as in `2026-01-31T09:30:00Z`, or say in which `:format` it is")
    })
}

/// Parses ISO-8601; without an offset, the time is in the zone of the step.
fn iso(text: &str, zone: &TimeZone) -> Option<Zoned> {
    let text = text.trim();
    if let Ok(at) = text.parse::<Zoned>() {
        return Some(at.with_time_zone(zone.clone()));
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at.to_zoned(zone.clone()));
    }
    if let Ok(at) = text.parse::<jiff::civil::DateTime>() {
        return at.to_zoned(zone.clone()).ok();
    }
    at_millis(instant_millis(text)?, zone).ok()
}

/// Reads a pattern like the language's own formatters.
fn pattern_of(pattern: &str) -> Result<(), StepError> {
    match flowstone_lang::check_date_pattern(pattern) {
        Err(Signal::Throw(refused)) => Err(unusable_pattern(
            refused.display_text(),
            refused.hints.clone(),
        )),
        _ => Ok(()),
    }
}

fn unusable_pattern(why: &str, hints: Vec<String>) -> StepError {
    let error = wrong(format!("the pattern cannot be used: {why}"));
    hints.into_iter().fold(error, StepError::hint)
}

impl Ask<'_> {
    fn at_millis(&self, millis: i64) -> Result<Zoned, StepError> {
        at_millis(millis, &self.zone)
    }

    /// Reads an instant of the config.
    fn instant(&self, key: &'static str) -> Result<Zoned, StepError> {
        instant(self.fields, key, &self.zone)
    }

    fn parsed(&self) -> Result<Value, StepError> {
        let text = self.fields.text("text")?.unwrap_or_default();
        let Some(pattern) = self.fields.text("format")? else {
            return self.value(&read_iso(text, &self.zone)?, None);
        };
        let zone = self.zone_name();
        let args = [text, pattern, zone.as_str()].map(Value::from);
        match self.call(PARSE, &args)? {
            Value::Int(millis) => self.value(&self.at_millis(millis)?, None),
            _ => Err(wrong(format!(
                "`{}` is not a date and time of the pattern `{pattern}`",
                start(text)
            ))
            .hint("each letter represents one digit: `dd.MM.yyyy` reads `31.01.2026`")),
        }
    }

    fn truncated(&self) -> Result<Value, StepError> {
        let at = self.instant("at")?;
        let unit = self.fields.name("unit")?.unwrap_or_default();
        let (start, length) = self.start_of(&at, &unit).map_err(|_| beyond())?;
        let end = start.checked_add(length).map_err(|_| beyond())?;
        let end = Object::Inst(end.timestamp().as_millisecond()).into();
        let Value::Map(map) = self.shown(&start)? else {
            return Err(beyond());
        };
        let all = map.iter().map(|(key, value)| (key.clone(), value.clone()));
        Ok(Value::map(all.chain([(Value::keyword("end"), end)])))
    }

    /// Returns the start of a unit, and its length.
    fn start_of(&self, at: &Zoned, unit: &str) -> Result<(Zoned, Span), jiff::Error> {
        let of_day = |date: Date| date.to_zoned(self.zone.clone());
        let date = at.date();
        let month = |month: i8| Date::new(date.year(), month, 1);
        Ok(match unit {
            "second" => (at.round(floor(Unit::Second))?, 1.second()),
            "minute" => (at.round(floor(Unit::Minute))?, 1.minute()),
            "hour" => (at.round(floor(Unit::Hour))?, 1.hour()),
            "week" => {
                let back = i64::from(date.weekday().to_monday_zero_offset());
                (of_day(date.checked_sub(back.days())?)?, 1.week())
            }
            "month" => (of_day(month(date.month())?)?, 1.month()),
            "quarter" => {
                let first = (date.month() - 1) / 3 * 3 + 1;
                (of_day(month(first)?)?, 3.months())
            }
            "year" => (of_day(month(1)?)?, 1.year()),
            _ => (of_day(date)?, 1.day()),
        })
    }

    /// Builds the value of an instant, formatted by the `:format` of the step.
    fn shown(&self, at: &Zoned) -> Result<Value, StepError> {
        let written = match self.fields.text("format")? {
            None => None,
            Some(pattern) => {
                let zone = self.zone_name();
                let millis = at.timestamp().as_millisecond();
                let args = [
                    Value::Int(millis),
                    Value::from(pattern),
                    Value::from(zone.as_str()),
                ];
                Some(self.call(FORMAT, &args)?)
            }
        };
        self.value(at, written)
    }

    fn value(&self, at: &Zoned, written: Option<Value>) -> Result<Value, StepError> {
        let millis = at.timestamp().as_millisecond();
        let date = at.date();
        let week = date.iso_week_date();
        let time = match millis.rem_euclid(1000) {
            0 => at.strftime("%H:%M:%S").to_string(),
            fraction => format!("{}.{fraction:03}", at.strftime("%H:%M:%S")),
        };
        let offset = offset_name(at.offset());
        let int = |number: i64| Value::Int(number);
        let facts = [
            ("instant", Object::Inst(millis).into()),
            ("iso", Value::from(format!("{date}T{time}{offset}"))),
            ("epoch-ms", int(millis)),
            ("epoch-seconds", int(millis.div_euclid(1000))),
            ("date", Value::from(date.to_string())),
            ("time", Value::from(time)),
            ("year", int(date.year().into())),
            ("month", int(date.month().into())),
            ("day", int(date.day().into())),
            ("hour", int(at.hour().into())),
            ("minute", int(at.minute().into())),
            ("second", int(at.second().into())),
            (
                "weekday",
                Value::keyword(&at.strftime("%A").to_string().to_ascii_lowercase()),
            ),
            (
                "week",
                Value::from(format!("{:04}-W{:02}", week.year(), week.week())),
            ),
            ("timezone", Value::from(self.zone_name())),
            ("offset", Value::from(offset)),
        ];
        let written = written.map(|written| ("formatted", written));
        let facts = facts.into_iter().chain(written);
        Ok(Value::map(
            facts.map(|(key, value)| (Value::keyword(key), value)),
        ))
    }

    fn zone_name(&self) -> String {
        match self.zone.iana_name() {
            Some(name) => name.to_owned(),
            None => self
                .zone
                .to_fixed_offset()
                .map_or_else(|_| "UTC".to_owned(), offset_name),
        }
    }

    /// Calls the language's own formatters, so that a pattern means the same in a step as in code.
    fn call(&self, code: &str, args: &[Value]) -> Result<Value, StepError> {
        let function = self.cx.function(&Value::from(code))?;
        let called = self.cx.call_at_once(&function, args);
        called.map_err(|error| unusable_pattern(&error.message, error.hints))
    }
}

/// Formats an offset as in ISO-8601.
fn offset_name(offset: jiff::tz::Offset) -> String {
    let seconds = offset.seconds();
    let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
    match (seconds, seconds.abs() % 60) {
        (0, _) => "Z".to_owned(),
        (_, 0) => format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60),
        (_, rest) => format!("{sign}{:02}:{:02}:{rest:02}", minutes / 60, minutes % 60),
    }
}

const FORMAT: &str = "(fn [millis pattern zone]
  (.format (.withZone (java.time.format.DateTimeFormatter/ofPattern pattern) (java.time.ZoneId/of zone))
           (java.time.Instant/ofEpochMilli millis)))";

/// Parses an instant with an offset, a date and time, or a date; nil if the text has another form.
const PARSE: &str = "(fn [text pattern zone]
  (let [formatter (java.time.format.DateTimeFormatter/ofPattern pattern)
        zone      (java.time.ZoneId/of zone)
        instant   (fn [zoned] (.toEpochMilli (.toInstant zoned)))
        attempt   (fn [read] (try (read) (catch java.time.format.DateTimeParseException e nil) (catch java.time.DateTimeException e nil)))]
    (or (attempt (fn [] (instant (java.time.ZonedDateTime/parse text formatter))))
        (attempt (fn [] (instant (.atZone (java.time.LocalDateTime/parse text formatter) zone))))
        (attempt (fn [] (instant (.atStartOfDay (java.time.LocalDate/parse text formatter) zone)))))))";

fn floor(unit: Unit) -> jiff::ZonedRound {
    jiff::ZonedRound::new()
        .smallest(unit)
        .mode(jiff::RoundMode::Floor)
}

fn start(text: &str) -> String {
    text.chars().take(60).collect()
}

fn added(at: &Zoned, fields: Fields<'_>) -> Result<Zoned, StepError> {
    shift(fields)?.from(at).ok_or_else(beyond)
}

/// Reads `:by`.
fn shift(fields: Fields<'_>) -> Result<Shift, StepError> {
    let by = fields.get("by").unwrap_or(&Value::Nil);
    if let Value::Map(_) = by {
        return Shift::read(by);
    }
    let length = fields.duration("by")?.unwrap_or_default();
    Ok(Shift {
        millis: i64::try_from(length.as_millis()).map_err(|_| beyond())?,
        ..Shift::default()
    })
}

/// The distance to move an instant: first by the calendar, then by the clock.
#[derive(Default)]
struct Shift {
    months: i64,
    days: i64,
    millis: i64,
}

/// The units of `:by`, with their parts.
const PARTS: &[(&str, Unit, i64)] = &[
    ("days", Unit::Day, 1),
    ("hours", Unit::Millisecond, 3_600_000),
    ("millis", Unit::Millisecond, 1),
    ("minutes", Unit::Millisecond, 60_000),
    ("months", Unit::Month, 1),
    ("seconds", Unit::Millisecond, 1000),
    ("weeks", Unit::Day, 7),
    ("years", Unit::Month, 12),
];

impl Shift {
    fn read(by: &Value) -> Result<Shift, StepError> {
        let mut shift = Shift::default();
        for (key, amount) in by.as_map().into_iter().flat_map(|map| map.iter()) {
            let name = name_text(key).unwrap_or_default();
            let known = PARTS.iter().find(|(known, _, _)| *known == name);
            let Some((_, unit, each)) = known else {
                let error = wrong(format!("`:by` has no unit {}", brief(key)));
                return Err(match nearest(&name, PARTS.iter().map(|(known, _, _)| *known)) {
                    Some(near) => error.hint(format!("did you mean `:{near}`?")),
                    None => error.hint(
                        "there are `:years :months :weeks :days :hours :minutes :seconds :millis`",
                    ),
                });
            };
            let Value::Int(amount) = amount else {
                return Err(wrong(format!(
                    "`:{name}` of `:by` takes a whole number, not {}",
                    brief(amount)
                )));
            };
            let sum = match unit {
                Unit::Month => &mut shift.months,
                Unit::Day => &mut shift.days,
                _ => &mut shift.millis,
            };
            let more = amount
                .checked_mul(*each)
                .and_then(|more| sum.checked_add(more));
            *sum = more.ok_or_else(beyond)?;
        }
        Ok(shift)
    }

    fn from(&self, at: &Zoned) -> Option<Zoned> {
        let empty = Span::new();
        let months = empty.try_months(self.months).ok()?;
        let days = empty.try_days(self.days).ok()?;
        let millis = empty.try_milliseconds(self.millis).ok()?;
        let at = at.checked_add(months).ok()?.checked_add(days).ok()?;
        at.checked_add(millis).ok()
    }
}

fn between(from: &Zoned, to: &Zoned) -> Result<Value, StepError> {
    let millis = to.timestamp().as_millisecond() - from.timestamp().as_millisecond();
    let whole = |unit: Unit| {
        let span = from.until((unit, to)).map_err(|_| beyond())?;
        Ok::<_, StepError>(Value::Int(match unit {
            Unit::Year => span.get_years().into(),
            Unit::Month => span.get_months().into(),
            _ => span.get_days().into(),
        }))
    };
    let facts = [
        ("millis", Value::Int(millis)),
        ("seconds", Value::Int(millis / 1000)),
        ("minutes", Value::Int(millis / 60_000)),
        ("hours", Value::Int(millis / 3_600_000)),
        ("days", whole(Unit::Day)?),
        ("months", whole(Unit::Month)?),
        ("years", whole(Unit::Year)?),
    ];
    Ok(Value::map(
        facts.map(|(key, value)| (Value::keyword(key), value)),
    ))
}
