//! Completion of names: vars of the current namespace, of its aliases and of core, and keywords seen before.

use std::collections::BTreeSet;

use flowstone_lang::library;
use flowstone_lang::session::Session;
use flowstone_lang::value::Symbol;

use crate::help::public;

/// Returns the start of the word before the cursor, and its completions.
pub(crate) fn complete(
    session: &Session,
    keywords: &BTreeSet<String>,
    line: &str,
    cursor: usize,
) -> (usize, Vec<String>) {
    let before = &line[..cursor];
    let start = before
        .rfind(|c: char| c.is_whitespace() || "()[]{}\"';,@^`~".contains(c))
        .map_or(0, |at| {
            at + before[at..].chars().next().map_or(1, char::len_utf8)
        });
    let word = &before[start..];
    if word.is_empty() {
        return (start, Vec::new());
    }
    let found = match word.strip_prefix(':') {
        Some(_) => keywords.iter().cloned().collect(),
        None => names(session, word),
    };
    let mut matching: Vec<String> = found
        .into_iter()
        .filter(|name| name.starts_with(word) && name != word)
        .collect();
    matching.sort();
    matching.dedup();
    (start, matching)
}

/// Collects the keywords of a text, for later completion.
pub(crate) fn note_keywords(text: &str, keywords: &mut BTreeSet<String>) {
    let words = text.split(|c: char| c.is_whitespace() || "()[]{}\"',;@^`~".contains(c));
    for word in words {
        if word.len() > 1 && word.starts_with(':') {
            keywords.insert(word.to_owned());
        }
    }
}

fn names(session: &Session, word: &str) -> Vec<String> {
    let world = session.world();
    let current = world.current.borrow().clone();
    if let Some((prefix, _)) = word.split_once('/') {
        let symbol = Symbol::new(prefix);
        let target = current.alias(symbol).unwrap_or(symbol);
        let names = public(session, target).into_iter();
        return names.map(|name| format!("{prefix}/{name}")).collect();
    }
    let mut names: Vec<String> = public(session, world.core.name).into_iter().collect();
    names.extend(current.mappings().iter().map(|(name, _)| name.to_string()));
    names.extend(SPECIAL_FORMS.iter().map(|name| (*name).to_owned()));
    let aliases = current.aliases();
    names.extend(aliases.iter().map(|(alias, _)| format!("{alias}/")));
    let namespaces = world.namespaces.borrow();
    names.extend(namespaces.keys().map(|name| format!("{name}/")));
    names.extend(
        library::SOURCES
            .iter()
            .map(|source| format!("{}/", source.namespace)),
    );
    names
}

const SPECIAL_FORMS: &[&str] = &[
    "case*", "catch", "def", "do", "finally", "fn*", "if", "let*", "letfn*", "loop*", "new",
    "quote", "recur", "set!", "throw", "try", "var",
];

#[cfg(test)]
mod tests {
    use super::*;
    use flowstone_lang::value::Value;

    fn check(line: &str, expected: &[&str]) {
        let session = Session::new();
        let world = session.world();
        let names = ["alpha", "alphabet", "beta"];
        for name in names {
            let namespace = world.namespace(Symbol::new("some.lib"));
            namespace.intern(Symbol::new(name)).set_root(Value::Nil);
            let current = world.current.borrow().clone();
            current.intern(Symbol::new(name)).set_root(Value::Nil);
            current.add_alias(Symbol::new("mylib"), Symbol::new("some.lib"));
        }
        let keywords = BTreeSet::from([":alpha".to_owned(), ":beta/x".to_owned()]);
        let (_, found) = complete(&session, &keywords, line, line.len());
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn the_word_before_the_cursor_is_completed() {
        check("(alp", &["alpha", "alphabet"]);
        check("(mylib/b", &["mylib/beta"]);
        check("(some.lib/b", &["some.lib/beta"]);
        check("{:al", &[":alpha"]);
        check("(myl", &["mylib/"]);
        check("é(bet", &["beta"]);
        check("(", &[]);
    }

    #[test]
    fn keywords_are_remembered() {
        let mut seen = BTreeSet::new();
        note_keywords("{:a [:b/c \"x :d\"] : ::e}", &mut seen);
        let seen: Vec<_> = seen.iter().map(String::as_str).collect();
        assert_eq!(seen, ["::e", ":a", ":b/c", ":d"]);
    }
}
