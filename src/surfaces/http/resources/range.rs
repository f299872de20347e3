//! The `Range` header: one part of a file.

/// What a request wants of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Whole,
    /// From a position, this many bytes; at least one.
    Part {
        start: u64,
        length: u64,
    },
    /// Nothing that the file has.
    Nothing,
}

/// Reads the value of a `Range` header for a file of this size. A unit other than bytes asks for the whole file; several
/// ranges are not offered, because their answer would be larger than the file.
pub(super) fn read(header: Option<&str>, size: u64) -> Wanted {
    let Some(text) = header else {
        return Wanted::Whole;
    };
    let Some((unit, range)) = text.split_once('=') else {
        return Wanted::Whole;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Wanted::Whole;
    }
    let Some((first, last)) = range.trim().split_once('-') else {
        return Wanted::Nothing;
    };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last && first < size => Wanted::Part {
            start: first,
            length: last.min(size - 1) - first + 1,
        },
        (Some(first), None) if last.is_empty() && first < size => Wanted::Part {
            start: first,
            length: size - first,
        },
        (None, Some(count)) if first.is_empty() && count > 0 && size > 0 => {
            let length = count.min(size);
            Wanted::Part {
                start: size - length,
                length,
            }
        }
        _ => Wanted::Nothing,
    }
}

fn number(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_taken() {
        let part = |start, length| Wanted::Part { start, length };
        let cases = [
            (None, Wanted::Whole),
            (Some("items=0-1"), Wanted::Whole),
            (Some("bytes"), Wanted::Whole),
            (Some("bytes=0-0"), part(0, 1)),
            (Some("bytes=2-5"), part(2, 4)),
            (Some("Bytes=8-"), part(8, 2)),
            (Some("bytes=8-99999999999"), part(8, 2)),
            (Some("bytes=-3"), part(7, 3)),
            (Some("bytes=-99"), part(0, 10)),
            (Some("bytes=10-"), Wanted::Nothing),
            (Some("bytes=5-2"), Wanted::Nothing),
            (Some("bytes=-0"), Wanted::Nothing),
            (Some("bytes=-"), Wanted::Nothing),
            (Some("bytes=+1-2"), Wanted::Nothing),
            (Some("bytes=0-1,3-4"), Wanted::Nothing),
            (Some("bytes=18446744073709551616-"), Wanted::Nothing),
            (Some("bytes=0-18446744073709551616"), Wanted::Nothing),
        ];
        for (header, expected) in cases {
            assert_eq!(read(header, 10), expected, "{header:?}");
        }
        assert_eq!(read(Some("bytes=0-"), 0), Wanted::Nothing);
        assert_eq!(read(Some("bytes=-1"), 0), Wanted::Nothing);
        assert_eq!(read(None, 0), Wanted::Whole);
    }
}
