//! The differences that a crash caused. None are allowed, except an effect that was asked about.

use std::collections::BTreeMap;

use super::effects::{Doubt, EffectLine};
use super::expected::settled;
use super::play::TestOutcome;

/// A test with a crash, compared with one without.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// The differences, as text; each of these is an error.
    pub differences: Vec<String>,
    /// Number of changes outside that were repeated: the server recognises the repetition, or a person was asked.
    pub repeated: u64,
    /// Number of reads outside that were repeated.
    pub looked_again: u64,
    /// Number of times a person was asked whether an effect had happened.
    pub in_doubt: u64,
}

/// Compares a test in which one process died with an undisturbed one.
pub fn compare(
    (outcome, effects): (&TestOutcome, &[EffectLine]),
    (expected, expected_effects): (&TestOutcome, &[EffectLine]),
) -> Comparison {
    let mut comparison = Comparison {
        in_doubt: outcome.in_doubt.len() as u64,
        ..Comparison::default()
    };
    let differences = &mut comparison.differences;
    let mut same = |what: &str, found: &str, wanted: &str| {
        if found != wanted {
            let (found, wanted) = (shown(found), shown(wanted));
            differences.push(format!("{what} is {found}, undisturbed {wanted}"));
        }
    };
    same("the status", &outcome.status, &expected.status);
    same("the end", &settled(&outcome.end), &settled(&expected.end));
    let names = outcome.contents.keys().chain(expected.contents.keys());
    let names: std::collections::BTreeSet<&String> = names.collect();
    for name in names {
        let text = |outcome: &TestOutcome| outcome.contents.get(name).cloned().unwrap_or_default();
        same(&format!("`{name}`"), &text(outcome), &text(expected));
    }
    let (found, wanted) = (counts(effects), counts(expected_effects));
    for (path, (wanted, _)) in &wanted {
        let found = found.get(path).map_or(0, |(count, _)| *count);
        if found < *wanted {
            let message = format!("`{path}` happened {found} times, undisturbed {wanted}");
            comparison.differences.push(message);
        }
    }
    for (path, (count, doubt)) in &found {
        let wanted = wanted.get(path).map_or(0, |(count, _)| *count);
        let more = count.saturating_sub(wanted);
        let asked = outcome
            .in_doubt
            .iter()
            .filter(|asked| asked == path)
            .count() as u64;
        let allowed = match doubt {
            // Repeating a read is harmless, and its result need not be on disk at once.
            Doubt::Look => u64::MAX,
            Doubt::Repeat => 1,
            Doubt::Ask => asked,
        };
        if wanted == 0 || more > allowed {
            let message = format!(
                "`{path}` happened {count} times, undisturbed {wanted}, and was asked about {asked} times"
            );
            comparison.differences.push(message);
        }
        match doubt {
            Doubt::Look => comparison.looked_again += more,
            Doubt::Repeat | Doubt::Ask => comparison.repeated += more,
        }
    }
    comparison
}

fn counts(effects: &[EffectLine]) -> BTreeMap<&str, (u64, Doubt)> {
    let mut counts = BTreeMap::new();
    for effect in effects {
        counts
            .entry(effect.path.as_str())
            .or_insert((0, effect.doubt))
            .0 += 1;
    }
    counts
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effects(text: &str) -> Vec<EffectLine> {
        let doubt = |path: &str| match path.chars().next() {
            Some('a') => Doubt::Ask,
            Some('r') => Doubt::Repeat,
            _ => Doubt::Look,
        };
        let line = |path: &str| EffectLine {
            path: path.to_owned(),
            attempt: 1,
            doubt: doubt(path),
        };
        text.split_whitespace().map(line).collect()
    }

    #[track_caller]
    fn check(found: &str, in_doubt: &str, expected: &str) {
        let outcome = TestOutcome {
            in_doubt: in_doubt.split_whitespace().map(str::to_owned).collect(),
            ..TestOutcome::default()
        };
        let undisturbed = (&TestOutcome::default(), &effects("a1 r1 l1")[..]);
        let comparison = compare((&outcome, &effects(found)), undisturbed);
        let message = format!(
            "{} differences, {} repeated, {} looked again, {} in doubt",
            comparison.differences.len(),
            comparison.repeated,
            comparison.looked_again,
            comparison.in_doubt
        );
        assert_eq!(message, expected);
    }

    #[test]
    fn what_may_happen_again_depends_on_the_step() {
        check(
            "a1 r1 l1",
            "",
            "0 differences, 0 repeated, 0 looked again, 0 in doubt",
        );
        check(
            "a1 r1 l1 l1 l1",
            "",
            "0 differences, 0 repeated, 2 looked again, 0 in doubt",
        );
        check(
            "a1 r1 r1 l1",
            "",
            "0 differences, 1 repeated, 0 looked again, 0 in doubt",
        );
        check(
            "a1 r1 r1 r1 l1",
            "",
            "1 differences, 2 repeated, 0 looked again, 0 in doubt",
        );
        check(
            "a1 a1 r1 l1",
            "",
            "1 differences, 1 repeated, 0 looked again, 0 in doubt",
        );
        check(
            "a1 a1 r1 l1",
            "a1",
            "0 differences, 1 repeated, 0 looked again, 1 in doubt",
        );
        check(
            "a1 r1 l1",
            "a1",
            "0 differences, 0 repeated, 0 looked again, 1 in doubt",
        );
    }

    #[test]
    fn what_is_missing_or_new_is_a_difference() {
        check(
            "a1 l1",
            "",
            "1 differences, 0 repeated, 0 looked again, 0 in doubt",
        );
        check(
            "a1 r1 l1 a2",
            "",
            "1 differences, 1 repeated, 0 looked again, 0 in doubt",
        );
    }
}
