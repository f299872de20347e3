//! Letter case as Java compares it, mapping each character to a single character.

use super::tree::{Fold, Set, range, union};

/// Returns the upper case of a character that has a single one, else the character.
pub(super) fn upper(char: char) -> char {
    // Letters with an iota below: their full upper case has two characters, the single-character one is a title case.
    let code = u32::from(char);
    let single = match code {
        0x1F80..=0x1F87 | 0x1F90..=0x1F97 | 0x1FA0..=0x1FA7 => Some(code + 8),
        0x1FB3 | 0x1FC3 | 0x1FF3 => Some(code + 9),
        _ => None,
    };
    match single.and_then(char::from_u32) {
        Some(upper) => upper,
        None => only(char.to_uppercase()).unwrap_or(char),
    }
}

/// Returns the lower case of a character.
pub(super) fn lower(char: char) -> char {
    match char {
        'İ' => 'i',
        _ => only(char.to_lowercase()).unwrap_or(char),
    }
}

fn only(mut chars: impl Iterator<Item = char>) -> Option<char> {
    let first = chars.next()?;
    chars.next().is_none().then_some(first)
}

/// Tells whether two characters are equal if case is ignored.
pub(super) fn same(one: char, other: char, fold: Fold) -> bool {
    one == other
        || match fold {
            Fold::Exact => false,
            Fold::Ascii => one.eq_ignore_ascii_case(&other),
            Fold::Unicode => {
                let (one, other) = (upper(one), upper(other));
                one == other || lower(one) == lower(other)
            }
        }
}

/// Returns the characters that a single character of a pattern matches.
pub(super) fn single(char: char, fold: Fold) -> Set {
    let code = u32::from(char);
    let exact = range(code, code);
    let key = lower(upper(char));
    // As in Java, a letter without an upper-case form matches only itself.
    if fold == Fold::Unicode && key == upper(char) {
        return exact;
    }
    let others = candidates(&exact, fold).filter(|other| match fold {
        Fold::Unicode => lower(upper(*other)) == key,
        Fold::Ascii | Fold::Exact => other.is_ascii() && char.is_ascii(),
    });
    with(exact.clone(), others)
}

/// Returns the characters that a range of a pattern matches.
pub(super) fn span(low: u32, high: u32, fold: Fold) -> Set {
    let exact = range(low, high);
    let is_in = |char: char| (low..=high).contains(&u32::from(char));
    let others = candidates(&exact, fold).filter(|other| match fold {
        Fold::Unicode => is_in(upper(*other)) || is_in(lower(upper(*other))),
        Fold::Ascii | Fold::Exact => {
            is_in(other.to_ascii_uppercase()) || is_in(other.to_ascii_lowercase())
        }
    });
    with(exact.clone(), others)
}

fn with(exact: Set, others: impl Iterator<Item = char>) -> Set {
    others.fold(exact, |set, other| {
        union(set, &range(u32::from(other), u32::from(other)))
    })
}

/// Returns the characters outside of a set that may equal one of its characters if case is ignored.
fn candidates(set: &Set, fold: Fold) -> impl Iterator<Item = char> {
    let mut near = set.clone();
    match fold {
        Fold::Exact => near = Set::empty(),
        Fold::Ascii => {
            near.intersect(&range(0, 0x7F));
            near.case_fold_simple();
            near.intersect(&range(0, 0x7F));
        }
        Fold::Unicode => {
            near.case_fold_simple();
            // Java's comparison equates the letters i with and without a dot.
            let dots = union(
                range(0x130, 0x131),
                &union(range(0x49, 0x49), &range(0x69, 0x69)),
            );
            let mut met = near.clone();
            met.intersect(&dots);
            if !met.ranges().is_empty() {
                near.union(&dots);
                near.case_fold_simple();
            }
        }
    }
    near.difference(set);
    let ranges: Vec<_> = near.ranges().to_vec();
    ranges
        .into_iter()
        .flat_map(|range| range.start()..=range.end())
}
