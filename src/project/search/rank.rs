//! Ranks a few documents that are in no index, such as step types and tools of servers, by the words of a query.
//!
//! The score is that of the index for words, BM25, over weighted fields, together with the part of the query's words that a
//! document has: the weight of rare words counts. Words are compared without their usual endings. Verbs that fit anything, such as
//! `create` or `read`, weigh little, so that what a query is about decides.

use std::collections::{HashMap, HashSet};

use super::parse_query;

/// How fast the weight of a repeated word stops growing, and how much the length of a document matters.
const GROWTH: f64 = 1.2;
const LENGTH: f64 = 0.75;
/// The weight of a word in a title or a name.
const TITLE: f64 = 3.0;
/// The weight of a word of [`WEAK`].
const WEAKLY: f64 = 0.3;
/// Words that say nothing about what is looked for.
const COMMON: &[&str] = &[
    "a", "all", "an", "and", "are", "as", "at", "be", "by", "can", "do", "each", "every", "for",
    "from", "get", "has", "have", "i", "in", "into", "is", "it", "its", "me", "my", "new", "of",
    "on", "one", "or", "our", "some", "that", "the", "their", "them", "then", "there", "this",
    "to", "use", "using", "want", "we", "what", "when", "where", "which", "who", "with", "you",
    "your",
];
/// Words that say little, because they go with any object.
const WEAK: &[&str] = &[
    "add",
    "anything",
    "call",
    "change",
    "check",
    "create",
    "delete",
    "done",
    "edit",
    "fill",
    "find",
    "give",
    "handle",
    "keep",
    "list",
    "look",
    "make",
    "need",
    "next",
    "open",
    "parse",
    "pick",
    "post",
    "print",
    "process",
    "put",
    "read",
    "remove",
    "run",
    "save",
    "see",
    "send",
    "set",
    "several",
    "show",
    "somebody",
    "someone",
    "something",
    "start",
    "store",
    "take",
    "tell",
    "thing",
    "up",
    "update",
    "upload",
    "work",
    "write",
];
/// Endings that make no other word, longest first.
const ENDINGS: &[&str] = &["ings", "ing", "ies", "ed", "es", "s"];

/// A document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankedText {
    /// Names and title.
    pub title: String,
    pub body: String,
}

/// A document that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// The place of the document.
    pub at: usize,
    pub score: f64,
    /// The weight of the query's words that the document has, of the weight of all: 0 to 1. A query without a word that says
    /// something is covered by little.
    pub coverage: f64,
    /// The title has a word of the query that says something.
    pub is_named: bool,
}

/// Returns the documents that have words of a query, best first.
pub fn rank(query: &str, texts: &[RankedText]) -> Vec<Ranked> {
    let terms: HashSet<String> = parse_query(query)
        .terms
        .iter()
        .filter(|term| !term.is_excluded)
        .flat_map(|term| words(&term.text))
        .collect();
    let counts: Vec<Counts> = texts.iter().map(Counts::of).collect();
    let total: f64 = counts.iter().map(|counts| counts.length).sum();
    let average = (total / counts.len().max(1) as f64).max(1.0);
    let weights: HashMap<&str, f64> = terms
        .iter()
        .map(|term| {
            let having = counts.iter().filter(|counts| counts.has(term)).count() as f64;
            let others = counts.len() as f64 - having;
            let rarity = (1.0 + (others + 0.5) / (having + 0.5)).ln();
            (
                &**term,
                if is_weak(term) {
                    rarity * WEAKLY
                } else {
                    rarity
                },
            )
        })
        .collect();
    let whole: f64 = weights.values().sum();
    let has_strong = terms.iter().any(|term| !is_weak(term));
    let whole = if has_strong { whole } else { whole / WEAKLY };
    let mut found: Vec<Ranked> = counts
        .iter()
        .enumerate()
        .filter_map(|(at, counts)| {
            let mut ranked = Ranked {
                at,
                score: 0.0,
                coverage: 0.0,
                is_named: false,
            };
            for (term, weight) in &weights {
                let count = counts.words.get(*term).copied().unwrap_or(0.0);
                if count > 0.0 {
                    let length = 1.0 - LENGTH + LENGTH * counts.length / average;
                    ranked.score += weight * count * (GROWTH + 1.0) / (count + GROWTH * length);
                    ranked.coverage += weight / whole;
                    ranked.is_named |= counts.title.contains(*term) && !is_weak(term);
                }
            }
            ranked.score *= ranked.coverage;
            (ranked.score > 0.0).then_some(ranked)
        })
        .collect();
    found.sort_by(|one, other| {
        other
            .score
            .total_cmp(&one.score)
            .then(one.at.cmp(&other.at))
    });
    found
}

/// The words of a document with their weights.
struct Counts {
    words: HashMap<String, f64>,
    title: HashSet<String>,
    length: f64,
}

impl Counts {
    fn of(text: &RankedText) -> Counts {
        let mut counts = Counts {
            words: HashMap::new(),
            title: words(&text.title).into_iter().collect(),
            length: 0.0,
        };
        for (text, weight) in [(&text.title, TITLE), (&text.body, 1.0)] {
            for word in words(text) {
                *counts.words.entry(word).or_default() += weight;
                counts.length += 1.0;
            }
        }
        counts
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains_key(word)
    }
}

/// Tells whether the stem of a word is one of [`WEAK`].
fn is_weak(term: &str) -> bool {
    WEAK.iter().any(|weak| stem(weak) == term)
}

/// Returns the first word of a text that is not common, without its ending.
pub fn leading_word(text: &str) -> Option<String> {
    words(text).into_iter().next()
}

/// Returns the words of a text that are not common, without their endings.
pub fn words(text: &str) -> Vec<String> {
    let parts = text.split(|char: char| !char.is_alphanumeric());
    let lower = parts.map(str::to_lowercase);
    let said = lower.filter(|word| word.chars().count() > 1 && !COMMON.contains(&&**word));
    said.map(|word| stem(&word)).collect()
}

fn stem(word: &str) -> String {
    for ending in ENDINGS {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.chars().count() > 3
        {
            return match *ending {
                "ies" => format!("{stem}y"),
                _ => stem.trim_end_matches('e').to_owned(),
            };
        }
    }
    word.trim_end_matches('e').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(title: &str, body: &str) -> RankedText {
        RankedText {
            title: title.to_owned(),
            body: body.to_owned(),
        }
    }

    #[test]
    fn rare_words_and_titles_count_more() {
        let texts = [
            text("http", "sends a request to a server and returns its answer"),
            text("table", "keeps rows in tables of the project: a database"),
            text("mail", "sends mail through a server"),
            text("send_mail", "delivers a letter"),
        ];
        let order = |query: &str| -> Vec<usize> {
            let found = rank(query, &texts);
            found.into_iter().map(|found| found.at).collect()
        };
        assert_eq!(order("Send an email, or mails"), [3, 2, 0]);
        assert_eq!(order("store rows"), [1]);
        assert_eq!(order("the of and"), [] as [usize; 0]);
        assert_eq!(order("astronomy"), [] as [usize; 0]);
    }

    #[test]
    fn coverage_is_the_part_of_the_query_that_was_found() {
        let texts = [text("mail", "sends mail"), text("sms", "sends texts")];
        let found = rank("mail about astronomy", &texts);
        // One of three words, and the other two weigh more, because no text has them.
        let coverage = found[0].coverage;
        assert!(coverage > 0.1 && coverage < 1.0 / 3.0, "{found:?}");
        assert!((rank("mails", &texts)[0].coverage - 1.0).abs() < 1e-9);
    }

    #[test]
    fn verbs_that_fit_anything_say_little() {
        let texts = [
            text("time parse", "parses a time"),
            text("crm", "customers"),
        ];
        let found = rank("parse XML", &texts);
        assert!(found[0].coverage < 0.25, "{found:?}");
        assert!(
            rank("parse it", &texts)[0].coverage < 0.5,
            "no object is named"
        );
        let found = rank("look up a customer in the CRM", &texts);
        assert!(found[0].at == 1 && found[0].is_named, "{found:?}");
    }

    #[test]
    fn endings_make_no_other_word() {
        for (one, other) in [
            ("summaries", "summary"),
            ("sending", "send"),
            ("writes", "write"),
            ("stored", "store"),
        ] {
            assert_eq!(stem(one), stem(other), "{one}");
        }
    }
}
