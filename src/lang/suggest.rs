//! "Did you mean": the names closest to a misspelt name.

/// Returns at most two candidates that are close to `name`, closest first.
pub fn did_you_mean<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let name: Vec<char> = name.chars().collect();
    if name.is_empty() {
        return Vec::new();
    }
    let limit = (name.len() / 3).clamp(1, 3);
    let mut best: Vec<(usize, &str)> = Vec::new();
    for candidate in candidates {
        let length = candidate.chars().count();
        if length.abs_diff(name.len()) > limit {
            continue;
        }
        let distance = edit_distance(&name, candidate);
        let is_known = best.iter().any(|(_, known)| *known == candidate);
        // A name that would have to be replaced entirely is not a misspelling.
        if distance == 0 || distance > limit || distance >= name.len().max(length) || is_known {
            continue;
        }
        let at = best.partition_point(|(other, known)| (*other, *known) < (distance, candidate));
        best.insert(at, (distance, candidate));
        best.truncate(2);
    }
    // A distant second name next to a close first one only distracts.
    if let [(first, _), (second, _)] = best[..]
        && second > first + 1
    {
        best.truncate(1);
    }
    best.into_iter().map(|(_, candidate)| candidate).collect()
}

/// A name that a misspelt word probably stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Respelling<'a> {
    /// The name.
    pub name: &'a str,
    /// Whether no other name is near, and little of the word has to change.
    pub is_certain: bool,
}

/// Characters of a word that one mistake needs to be taken for a misspelling without asking.
const CERTAIN: usize = 4;

/// Returns the name that a word probably stands for.
pub fn respelling<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<Respelling<'a>> {
    let near = did_you_mean(word, candidates);
    let name = *near.first()?;
    let chars: Vec<char> = word.chars().collect();
    Some(Respelling {
        name,
        is_certain: near.len() == 1 && edit_distance(&chars, name) * CERTAIN <= chars.len(),
    })
}

/// Counts the insertions, deletions, replacements and swaps of adjacent characters between two names.
fn edit_distance(left: &[char], right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, a) in left.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, b) in right.iter().enumerate() {
            let replaced = above[column] + usize::from(a != b);
            let mut cost = replaced.min(above[column + 1] + 1).min(line[column] + 1);
            if row > 0 && column > 0 && *a == right[column - 1] && left[row - 1] == *b {
                cost = cost.min(before[column - 1] + 1);
            }
            line.push(cost);
        }
        before = std::mem::replace(&mut above, line);
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::{did_you_mean, respelling};

    fn check(name: &str, candidates: &[&str], expected: &[&str]) {
        assert_eq!(
            did_you_mean(name, candidates.iter().copied()),
            expected,
            "{name}"
        );
    }

    #[test]
    fn the_two_closest_names_are_suggested_in_order() {
        check("totl", &["total", "tool", "other"], &["tool", "total"]);
        check(
            "redcue",
            &["reduce", "reduced", "remove"],
            &["reduce", "reduced"],
        );
        check("x", &["y"], &[]);
        check(
            "fitler",
            &["filter", "filterv", "mapv"],
            &["filter", "filterv"],
        );
        check("conut", &["count"], &["count"]);
        check("", &["a"], &[]);
        check("zzz", &["map", "filter"], &[]);
    }

    #[test]
    fn a_respelling_is_certain_if_no_other_name_is_near() {
        let certain = |word: &str, names: &[&str]| {
            respelling(word, names.iter().copied()).map(|it| it.is_certain)
        };
        assert_eq!(certain("objektive", &["objective", "output"]), Some(true));
        assert_eq!(certain("totl", &["total", "tool"]), Some(false));
        assert_eq!(certain("ur", &["url"]), Some(false));
        assert_eq!(certain("zzz", &["map"]), None);
    }
}
