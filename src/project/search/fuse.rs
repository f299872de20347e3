//! One list out of several by the ranks in them, which can be compared where scores cannot.

use std::collections::HashMap;

use flowstone_model::ports::SearchHit;

/// How little the first ranks count more than those below them.
const K: f64 = 60.0;

/// Fuses lists, the best first. What several have is taken from the first of them.
pub(super) fn fuse(lists: &[Vec<SearchHit>]) -> Vec<SearchHit> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut fused: Vec<SearchHit> = Vec::new();
    for list in lists {
        for (rank, hit) in (1..).zip(list) {
            let score = 1.0 / (K + f64::from(rank));
            let place = *places.entry(&hit.id).or_insert_with(|| {
                fused.push(SearchHit {
                    score: 0.0,
                    ..hit.clone()
                });
                fused.len() - 1
            });
            fused[place].score += score;
        }
    }
    // The sort is stable: of equals, what was found by words comes first.
    fused.sort_by(|one, other| other.score.total_cmp(&one.score));
    fused
}

#[cfg(test)]
mod tests {
    use super::fuse;
    use flowstone_model::ports::{SearchHit, SearchTarget};

    fn list(ids: &str) -> Vec<SearchHit> {
        let hit = |id: char| SearchHit {
            target: SearchTarget::Runs,
            id: id.to_string(),
            title: String::new(),
            facts: Vec::new(),
            score: 0.5,
            snippet: String::new(),
        };
        ids.chars().map(hit).collect()
    }

    #[test]
    fn what_both_find_comes_first() {
        for (words, meaning, expected) in [
            ("abc", "cad", "acbd"),
            ("abc", "", "abc"),
            ("", "ab", "ab"),
            ("ab", "ba", "ab"),
            ("", "", ""),
        ] {
            let fused = fuse(&[list(words), list(meaning)]);
            let ids: String = fused.iter().map(|hit| &*hit.id).collect();
            assert_eq!(ids, expected, "{words} {meaning}");
        }
        let top = fuse(&[list("a"), list("a")]);
        assert!((top[0].score - 2.0 / 61.0).abs() < 1e-9);
    }
}
