//! The grammar of format strings.

use nom::branch::alt;
use nom::bytes::complete::{is_not, tag, take_while};
use nom::character::complete::{anychar, char, digit1, one_of};
use nom::combinator::{consumed, map, map_opt, opt};
use nom::multi::many0;
use nom::sequence::{preceded, terminated};
use nom::{IResult, Parser};

use super::dates::LETTERS;
use super::only_for_numbers;
use crate::value::Class;

/// An error in a format string: the class of the exception, and its message.
pub(super) type Wrong = (Class, String);

/// A part of a format string.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    Directive(Directive<'a>),
}

/// `%[argument$][flags][width][.precision]conversion`
#[derive(Debug)]
pub(super) struct Directive<'a> {
    /// The directive as it is written.
    pub source: &'a str,
    /// The number of the argument, from 1.
    pub argument: Option<usize>,
    pub flags: Flags,
    pub width: Option<usize>,
    pub precision: Option<usize>,
    pub conversion: char,
    /// The letter after `t` or `T`: a date or time.
    pub date: Option<char>,
}

/// The flags between `%` and the width.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Flags {
    /// `-`
    pub left: bool,
    /// `#`
    pub alternate: bool,
    /// `+`
    pub plus: bool,
    /// ` `
    pub space: bool,
    /// `0`
    pub zero: bool,
    /// `,`
    pub group: bool,
    /// `(`
    pub parentheses: bool,
    /// `<`
    pub previous: bool,
}

/// Maximum width that a directive may request.
const MAX_WIDTH: usize = 100_000;

/// Splits a format string into its pieces.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, Wrong> {
    let piece = alt((
        map(is_not("%"), Piece::Text),
        map(directive, Piece::Directive),
    ));
    match many0(piece).parse(text) {
        Ok(("", pieces)) => {
            for piece in &pieces {
                if let Piece::Directive(directive) = piece {
                    check(directive)?;
                }
            }
            Ok(pieces)
        }
        Ok((rest, _)) => Err((
            Class::UNKNOWN_FORMAT_CONVERSION,
            format!("the directive `{rest}` is not complete"),
        )),
        Err(_) => Err((
            Class::ILLEGAL_FORMAT,
            "the format string cannot be read".to_owned(),
        )),
    }
}

fn directive(text: &str) -> IResult<&str, Directive<'_>> {
    let parts = (
        opt(terminated(number, tag("$"))),
        flags,
        opt(number),
        opt(preceded(char('.'), number)),
        alt((
            map((one_of("tT"), anychar), |(t, letter)| (t, Some(letter))),
            map(anychar, |conversion| (conversion, None)),
        )),
    );
    let (rest, (source, parts)) = consumed(preceded(char('%'), parts)).parse(text)?;
    let (argument, flags, width, precision, (conversion, date)) = parts;
    Ok((
        rest,
        Directive {
            source,
            argument,
            flags,
            width,
            precision,
            conversion,
            date,
        },
    ))
}

fn number(text: &str) -> IResult<&str, usize> {
    map_opt(digit1, |digits: &str| {
        digits.parse().ok().filter(|number| *number <= MAX_WIDTH)
    })
    .parse(text)
}

fn flags(text: &str) -> IResult<&str, Flags> {
    map(
        take_while(|char| "-#+ 0,(<".contains(char)),
        |written: &str| {
            let has = |flag| written.contains(flag);
            Flags {
                left: has('-'),
                alternate: has('#'),
                plus: has('+'),
                space: has(' '),
                zero: has('0'),
                group: has(','),
                parentheses: has('('),
                previous: has('<'),
            }
        },
    )
    .parse(text)
}

/// Rejects meaningless combinations.
fn check(directive: &Directive<'_>) -> Result<(), Wrong> {
    let Directive {
        source,
        flags,
        width,
        precision,
        conversion,
        ..
    } = directive;
    let is_known = match directive.date {
        Some(letter) => LETTERS.contains(letter),
        None => "bBhHsScCdoxXeEfgGn%".contains(*conversion),
    };
    if directive.date.is_some() && precision.is_some() {
        return Err((
            Class::ILLEGAL_FORMAT_PRECISION,
            format!("`{source}` cannot have a precision"),
        ));
    }
    if !is_known {
        return Err((
            Class::UNKNOWN_FORMAT_CONVERSION,
            format!("`{source}` is not a directive"),
        ));
    }
    if directive.date.is_some() && (flags.alternate || only_for_numbers(*flags)) {
        return Err((
            Class::FORMAT_FLAGS_CONVERSION,
            format!("`{source}` has a flag that dates do not take"),
        ));
    }
    if (flags.left || flags.zero) && width.is_none() {
        return Err((
            Class::MISSING_FORMAT_WIDTH,
            format!("`{source}` needs a width after its flag"),
        ));
    }
    if flags.left && flags.zero {
        return Err((
            Class::ILLEGAL_FORMAT_FLAGS,
            format!("`{source}` fills on the left and on the right"),
        ));
    }
    if "bBhHsScC".contains(*conversion) && only_for_numbers(*flags) {
        return Err((
            Class::FORMAT_FLAGS_CONVERSION,
            format!("`{source}` has a flag that only numbers take"),
        ));
    }
    if "dxXocC".contains(*conversion) && precision.is_some() {
        return Err((
            Class::ILLEGAL_FORMAT_PRECISION,
            format!("`{source}` cannot have a precision"),
        ));
    }
    if "xXo".contains(*conversion) && (flags.plus || flags.space || flags.group) {
        return Err((
            Class::FORMAT_FLAGS_CONVERSION,
            format!("`{source}` has a flag that only `%d` takes"),
        ));
    }
    Ok(())
}
