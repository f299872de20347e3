//! Search queries as a person types them, parsed into terms: no text in them is an operator of the index.

/// Maximum number of terms of a query; further ones are dropped.
const TERMS_MAX: usize = 64;
/// Maximum length of a search term; longer runs of characters are not words.
const TERM_CHARS: usize = 200;

/// A word or a phrase to search for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The text of the term: words with the characters between them.
    pub text: String,
    /// Tells whether longer words that begin with the term match too.
    pub is_prefix: bool,
    /// Documents with this term are left out.
    pub is_excluded: bool,
}

/// A parsed query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchQuery {
    pub terms: Vec<Term>,
    /// The query had more terms than are searched for.
    pub is_cut: bool,
}

impl SearchQuery {
    /// Tells whether the query has a term that is not excluded.
    pub fn has_terms(&self) -> bool {
        self.terms.iter().any(|term| !term.is_excluded)
    }
}

/// Parses a query: words; `"phrases in quotes"`; `-word` and `-"phrase"`, which exclude; `begin*`.
pub fn parse(text: &str) -> SearchQuery {
    let mut query = SearchQuery::default();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|char: char| char.is_whitespace() || char.is_control());
        if rest.is_empty() {
            return query;
        }
        let unsigned = rest.strip_prefix('-').filter(|rest| {
            // A dash before a blank is not an exclusion.
            rest.starts_with(|char: char| char == '"' || char.is_alphanumeric())
        });
        let is_excluded = unsigned.is_some();
        rest = unsigned.unwrap_or(rest);
        let (text, after) = match rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
            Some((phrase, after)) => (phrase, after),
            None => {
                let end = rest
                    .find(|char: char| char.is_whitespace() || char.is_control())
                    .unwrap_or(rest.len());
                rest.split_at(end)
            }
        };
        let is_prefix = text.ends_with('*') || after.starts_with('*');
        rest = after;
        let text = plain(text);
        if text.is_empty() {
            continue;
        }
        if query.terms.len() == TERMS_MAX {
            query.is_cut = true;
            return query;
        }
        query.is_cut |= text.chars().count() > TERM_CHARS;
        query.terms.push(Term {
            text: text.chars().take(TERM_CHARS).collect(),
            is_prefix,
            is_excluded,
        });
    }
}

/// Keeps letters and digits, and replaces each run of other characters with one blank.
fn plain(text: &str) -> String {
    let parts = text.split(|char: char| !char.is_alphanumeric());
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn shown(query: &str) -> String {
        let query = parse(query);
        let terms = query.terms.iter().map(|term| {
            let sign = if term.is_excluded { "-" } else { "" };
            let star = if term.is_prefix { "*" } else { "" };
            format!("{sign}[{}]{star}", term.text)
        });
        let mut terms: Vec<String> = terms.collect();
        if query.is_cut {
            terms.push("cut".to_owned());
        }
        terms.join(" ")
    }

    #[test]
    fn no_part_of_a_query_is_an_operator_of_the_index() {
        let cases = [
            ("refund policy", "[refund] [policy]"),
            ("\"late fee\" -draft inv*", "[late fee] -[draft] [inv]*"),
            ("-\"not this\" a", "-[not this] [a]"),
            ("\"open phrase", "[open] [phrase]"),
            ("a-b c.d", "[a b] [c d]"),
            ("NEAR(a b) AND OR NOT", "[NEAR a] [b] [AND] [OR] [NOT]"),
            ("title:x {a b}: ^c + d", "[title x] [a] [b] [c] [d]"),
            ("'; DROP TABLE run; --", "[DROP] [TABLE] [run]"),
            ("a\0b", "[a] [b]"),
            ("- \" * ^ : () \u{1f600}", ""),
            ("\"\" -\"\"", ""),
            ("\"two words\"*", "[two words]*"),
            ("Größe naïve 北京", "[Größe] [naïve] [北京]"),
        ];
        for (query, expected) in cases {
            assert_eq!(shown(query), expected, "{query:?}");
        }
    }

    #[test]
    fn long_queries_are_truncated() {
        let long = "x".repeat(1 << 20);
        assert_eq!(parse(&long).terms[0].text.len(), 200);
        let many = "word ".repeat(100_000);
        let query = parse(&many);
        assert_eq!((query.terms.len(), query.is_cut), (64, true));
    }
}
