//! Documentation kept apart from definitions: examples of the library's macros and functions, usage and documentation
//! of special forms. Parsed on request, never when a program runs.

/// The whole file; its format is described at its top.
const TEXT: &str = include_str!("../../../stdlib/examples.txt");

/// The documentation of one name in the file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name with its namespace.
    pub name: &'static str,
    /// The call forms, one per line; for special forms only.
    pub usage: String,
    /// The description; for special forms only.
    pub doc: &'static str,
    /// Expressions and their results.
    pub examples: Vec<(&'static str, &'static str)>,
}

/// Returns all entries, in the order of the file.
pub fn entries() -> impl Iterator<Item = Entry> {
    TEXT.split("\n# ").skip(1).map(entry)
}

/// Returns the entry of a name, given with its namespace.
pub fn find(name: &str) -> Option<Entry> {
    entries().find(|entry| entry.name == name)
}

fn entry(text: &'static str) -> Entry {
    let (name, rest) = text.split_once('\n').unwrap_or((text, ""));
    let mut entry = Entry {
        name,
        ..Entry::default()
    };
    for line in rest.lines().filter(|line| !line.is_empty()) {
        if let Some(usage) = line.strip_prefix("usage: ") {
            entry.usage = usage.replace("\\n", "\n");
        } else if let Some(doc) = line.strip_prefix("doc: ") {
            entry.doc = doc;
        } else if let Some(value) = line.strip_prefix(";=> ") {
            if let Some(example) = entry.examples.last_mut() {
                example.1 = value;
            }
        } else {
            entry.examples.push((line, ""));
        }
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn an_entry_is_parsed() {
        let entry = find("clojure.core/if").expect("a special form");
        assert!(entry.usage.starts_with("(if test then)\n(if"));
        assert!(entry.doc.starts_with("Evaluates then"));
        assert_eq!(entry.examples[1], ("(if nil :yes)", "nil"));
    }
}
