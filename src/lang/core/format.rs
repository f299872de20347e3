//! `format`: Java's format strings.

mod dates;
mod directive;
mod number;

use crate::value::{
    Arity, Class, Exception, Native, Result, Signal, Value, describe, hash_value, java_hash,
    write_str,
};
use crate::vm::{Args, Vm};

use dates::NoText;
use directive::{Directive, Flags, Piece, pieces};

pub(super) const FNS: &[Native] = &[FORMAT];

pub(super) const FORMAT: Native = Native {
    name: "format",
    usage: "(format fmt & args)",
    doc: "Returns fmt with each directive replaced by an argument: %s any text, %d an integer, %x hexadecimal, %f and %.2f a double, %e with exponent, %b true or false, %c a character, %tY-%<tm-%<td a date or time by its parts (%tF %tT %tB %ta %tZ ...), %n a line end, %% a percent sign.  Width and flags precede the letter: %5d %-5s %05d %,d %+d.",
    examples: &[
        (r#"(format "%s is %d" "x" 42)"#, r#""x is 42""#),
        (
            r#"(format "%.2f|%5d|%-5s|%05d" 3.14159 42 "ab" 7)"#,
            r#""3.14|   42|ab   |00007""#,
        ),
        (r#"(format "%,d" 1234567)"#, r#""1,234,567""#),
        (
            r#"(format "%1$tF %1$tT" #inst "2026-01-31T09:30:00Z")"#,
            r#""2026-01-31 09:30:00""#,
        ),
    ],
    arity: Arity::at_least(1),
    run: |vm, args| {
        let text = args.text(0)?.clone();
        let mut formatter = Formatter {
            args: &args,
            next: 0,
            previous: None,
            out: String::new(),
        };
        for piece in pieces(&text).map_err(|(class, wrong)| bad_format(class, &wrong))? {
            match piece {
                Piece::Text(text) => formatter.out.push_str(text),
                Piece::Directive(directive) => formatter.apply(vm, &directive)?,
            }
        }
        Ok(Value::from(formatter.out))
    },
};

/// Returns the exception for an invalid format string.
fn bad_format(class: Class, wrong: &str) -> Exception {
    Exception::new(class, "E0382", wrong.to_owned()).argument(0)
}

struct Formatter<'a, 'b> {
    args: &'a Args<'b>,
    /// The index of the argument for the next directive without a number, from 0.
    next: usize,
    previous: Option<usize>,
    out: String,
}

impl Formatter<'_, '_> {
    fn apply(&mut self, vm: &mut Vm, directive: &Directive<'_>) -> Result<()> {
        let text = match directive.conversion {
            'n' => "\n".to_owned(),
            '%' => {
                vm.room_for(directive.width.unwrap_or(0))?;
                padded("%".to_owned(), directive)
            }
            _ => {
                let idx = self.argument(directive)?;
                self.argument_text(vm, directive, idx)?
            }
        };
        let is_upper = directive.conversion.is_ascii_uppercase();
        if is_upper {
            self.out.push_str(&text.to_uppercase());
        } else {
            self.out.push_str(&text);
        }
        Ok(())
    }

    /// Returns the index of a directive's argument in the call's arguments.
    fn argument(&mut self, directive: &Directive<'_>) -> Result<usize> {
        let idx = if directive.flags.previous {
            self.previous.ok_or_else(|| {
                bad_format(
                    Class::MISSING_FORMAT_ARGUMENT,
                    "`%<` needs a directive before it",
                )
            })?
        } else if let Some(number) = directive.argument {
            number.saturating_sub(1)
        } else {
            self.next += 1;
            self.next - 1
        };
        self.previous = Some(idx);
        if idx + 1 >= self.args.len() {
            let given = self.args.len() - 1;
            return Err(bad_format(
                Class::MISSING_FORMAT_ARGUMENT,
                &format!(
                    "`{}` is directive {}, but there are only {given} values",
                    directive.source,
                    idx + 1
                ),
            )
            .hint("give a value for each directive; a percent sign itself is `%%`")
            .into());
        }
        Ok(idx + 1)
    }

    fn argument_text(&self, vm: &mut Vm, directive: &Directive<'_>, idx: usize) -> Result<String> {
        let most = directive.width.max(directive.precision);
        vm.room_for(most.unwrap_or(0))?;
        let value = self.args.get(idx);
        let wrong = |expected: &str| wrong_argument(directive, value, idx, expected);
        let text = match directive.conversion.to_ascii_lowercase() {
            's' => {
                let mut text = String::new();
                match value {
                    Value::Nil => text.push_str("null"),
                    value => write_str(&mut text, vm, value)?,
                }
                cut(text, directive)
            }
            'b' => cut(value.is_truthy().to_string(), directive),
            'h' => match value {
                Value::Nil => "null".to_owned(),
                value => cut(format!("{:x}", host_hash(vm, value)?), directive),
            },
            _ if value.is_nil() => "null".to_owned(),
            't' => {
                let letter = directive.date.unwrap_or_default();
                dates::text(value, letter).map_err(|why| match why {
                    NoText::Kind => wrong("a date or time"),
                    NoText::Field(field) => no_field(directive, value, idx, field),
                })?
            }
            'c' => {
                let char = match value {
                    Value::Char(char) => Some(*char),
                    Value::Int(int) => u32::try_from(*int).ok().and_then(char::from_u32),
                    _ => None,
                };
                char.ok_or_else(|| wrong("a character"))?.to_string()
            }
            'd' => {
                let digits = number::decimal_digits(value).ok_or_else(|| wrong("an integer"))?;
                return Ok(number::framed(&digits, directive));
            }
            'x' | 'o' => {
                let radix = if directive.conversion == 'o' { 8 } else { 16 };
                let digits =
                    number::radix_digits(value, radix).ok_or_else(|| wrong("an integer"))?;
                return Ok(number::framed_radix(digits, radix, directive));
            }
            _ => {
                let digits = number::float_digits(value, directive)?
                    .ok_or_else(|| wrong("a double or decimal"))?;
                return Ok(number::framed(&digits, directive));
            }
        };
        Ok(padded(text, directive))
    }
}

fn wrong_argument(directive: &Directive<'_>, value: &Value, idx: usize, expected: &str) -> Signal {
    let message = format!(
        "`{}` needs {expected}, got {}",
        directive.source,
        describe(value)
    );
    let error = Exception::new(Class::ILLEGAL_FORMAT_CONVERSION, "E0382", message).argument(idx);
    match value {
        Value::Float(_) | Value::Decimal(_) | Value::Ratio(_) => {
            error.hint("use `%s` or `%.2f`, or make it an integer with `long`")
        }
        Value::Int(_) | Value::BigInt(_) => {
            error.hint("use `%d`, or make it a double with `double`")
        }
        _ => error.hint("`%s` takes anything"),
    }
    .into()
}

fn no_field(directive: &Directive<'_>, value: &Value, idx: usize, field: &str) -> Signal {
    let class = Class::ILLEGAL_FORMAT_CONVERSION;
    let message = format!(
        "`{}` needs the field {field}, got {}",
        directive.source,
        describe(value)
    );
    Exception::new(class, "E0382", message)
        .argument(idx)
        .hint("add a zone to an instant with `.atZone`, or a time to a date with `.atStartOfDay`")
        .into()
}

/// Truncates a text to the precision.
fn cut(text: String, directive: &Directive<'_>) -> String {
    match directive.precision {
        Some(precision) => text.chars().take(precision).collect(),
        None => text,
    }
}

/// Pads a text with spaces to the width.
fn padded(text: String, directive: &Directive<'_>) -> String {
    let Some(width) = directive.width else {
        return text;
    };
    let missing = width.saturating_sub(text.chars().count());
    let spaces = " ".repeat(missing);
    if directive.flags.left {
        text + &spaces
    } else {
        spaces + &text
    }
}

/// Tells whether any flags are set that only numbers accept.
fn only_for_numbers(flags: Flags) -> bool {
    flags.plus || flags.space || flags.zero || flags.group || flags.parentheses
}

/// Returns Java's hash of a string or an integer; Clojure's for other values.
fn host_hash(vm: &mut Vm, value: &Value) -> Result<u32> {
    match value {
        Value::Text(text) => Ok(java_hash(text.as_str())),
        Value::Int(int) => Ok((*int ^ ((*int as u64) >> 32) as i64) as u32),
        _ => hash_value(vm, value),
    }
}
