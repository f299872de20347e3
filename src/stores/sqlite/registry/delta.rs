//! A text as the difference from a similar one: parts to copy, and parts of its own.
//!
//! Lines are the unit. The encoder takes, at each line, the longest run of lines that the other text has, too; its time grows
//! with the size of both texts, whatever is in them.

use std::collections::HashMap;

/// Maximum number of places of a line that are compared.
const MOST_PLACES: usize = 8;
/// The first byte of a part that is copied.
const COPY: u8 = 0;
/// The first byte of a part with bytes of its own.
const OWN: u8 = 1;

/// Returns the difference between two texts.
pub(super) fn encode(base: &[u8], text: &[u8]) -> Vec<u8> {
    let (old, new) = (lines(base), lines(text));
    let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (idx, (_, line)) in old.iter().enumerate() {
        let known = places.entry(line).or_default();
        if known.len() < MOST_PLACES {
            known.push(idx);
        }
    }
    let mut parts = Parts::default();
    let (mut at, mut next) = (0, 0);
    while let Some((start, line)) = new.get(at) {
        let count = |place: &usize| {
            let pairs = old[*place..].iter().zip(&new[at..]);
            pairs.take_while(|((_, a), (_, b))| a == b).count()
        };
        // The line after the last copy is compared first: it is the most probable place.
        let first = (next < old.len()).then_some(next);
        let known = places.get(line).into_iter().flatten().copied();
        let best = first
            .into_iter()
            .chain(known)
            .map(|place| (count(&place), place))
            .reduce(|best, other| if other.0 > best.0 { other } else { best })
            .filter(|(count, _)| *count > 0);
        match best {
            Some((count, place)) => {
                let from = old[place].0;
                let to = old
                    .get(place + count)
                    .map_or(base.len(), |(start, _)| *start);
                parts.copy(from, to - from);
                (at, next) = (at + count, place + count);
            }
            None => {
                parts.own(&text[*start..*start + line.len()]);
                at += 1;
                next += 1;
            }
        }
    }
    parts.finish()
}

/// Returns the text that differs so from another one. Returns `None` if the difference is damaged.
pub(super) fn decode(base: &[u8], mut delta: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    while let Some((kind, rest)) = delta.split_first() {
        delta = rest;
        match *kind {
            COPY => {
                let from = number(&mut delta)?;
                let length = number(&mut delta)?;
                text.extend_from_slice(base.get(from..from.checked_add(length)?)?);
            }
            OWN => {
                let length = number(&mut delta)?;
                text.extend_from_slice(delta.get(..length)?);
                delta = &delta[length..];
            }
            _ => return None,
        }
    }
    Some(text)
}

/// Splits a text after each line break, with the offset of each line.
fn lines(text: &[u8]) -> Vec<(usize, &[u8])> {
    let mut start = 0;
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    lines
        .map(|line| {
            let place = start;
            start += line.len();
            (place, line)
        })
        .collect()
}

/// The parts of a difference; neighbours of one kind are joined.
#[derive(Default)]
struct Parts {
    delta: Vec<u8>,
    copied: Option<(usize, usize)>,
    own: Vec<u8>,
}

impl Parts {
    fn copy(&mut self, from: usize, length: usize) {
        self.end_own();
        match &mut self.copied {
            Some((start, known)) if *start + *known == from => *known += length,
            _ => {
                self.end_copy();
                self.copied = Some((from, length));
            }
        }
    }

    fn own(&mut self, bytes: &[u8]) {
        self.end_copy();
        self.own.extend_from_slice(bytes);
    }

    fn end_copy(&mut self) {
        if let Some((from, length)) = self.copied.take() {
            self.delta.push(COPY);
            push_number(&mut self.delta, from);
            push_number(&mut self.delta, length);
        }
    }

    fn end_own(&mut self) {
        if !self.own.is_empty() {
            self.delta.push(OWN);
            push_number(&mut self.delta, self.own.len());
            self.delta.append(&mut self.own);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.end_copy();
        self.end_own();
        self.delta
    }
}

/// Writes a number in groups of seven bits, the lowest first.
fn push_number(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn number(bytes: &mut &[u8]) -> Option<usize> {
    let mut number: usize = 0;
    for shift in (0..usize::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= usize::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{decode, encode};

    #[test]
    fn a_changed_line_costs_little() {
        let base: String = (0..500)
            .map(|line| format!("line {line} of a flow\n"))
            .collect();
        let text = base.replace("line 77 of", "line 77 in");
        let delta = encode(base.as_bytes(), text.as_bytes());
        assert!(delta.len() < 40, "{}", delta.len());
        assert_eq!(
            decode(base.as_bytes(), &delta).as_deref(),
            Some(text.as_bytes())
        );
    }

    #[test]
    fn lines_that_occur_often_do_not_slow_it_down() {
        let base = "\n".repeat(200_000);
        let text = "x\n\n".repeat(50_000);
        let begun = std::time::Instant::now();
        let delta = encode(base.as_bytes(), text.as_bytes());
        assert_eq!(
            decode(base.as_bytes(), &delta).as_deref(),
            Some(text.as_bytes())
        );
        assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    }

    #[test]
    fn a_damaged_difference_is_noticed() {
        for delta in [&[0, 9, 9][..], &[0], &[1, 5, 1], &[7], &[1, 0xff, 0xff]] {
            assert_eq!(decode(b"abc", delta), None, "{delta:?}");
        }
    }

    proptest! {
        #[test]
        fn a_text_is_what_its_difference_says(base in "[ab\n]{0,60}", text in "[abc\n]{0,60}") {
            let delta = encode(base.as_bytes(), text.as_bytes());
            prop_assert_eq!(decode(base.as_bytes(), &delta), Some(text.into_bytes()));
        }
    }
}
