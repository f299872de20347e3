//! What is known about names beside their definition: examples of macros and functions of the library, usage and
//! documentation of special forms. Read when somebody asks for it, never when a program runs.

/// The whole file; its format is described at its top.
const TEXT: &str = include_str!("../../../stdlib/examples.txt");

/// What the file has about one name.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name with its namespace.
    pub name: &'static str,
    /// How it is called, each way on a line; of special forms only.
    pub usage: String,
    /// What it does; of special forms only.
    pub doc: &'static str,
    /// Expressions and what they give.
    pub examples: Vec<(&'static str, &'static str)>,
}

/// Returns all entries, in the order of the file.
pub fn entries() -> impl Iterator<Item = Entry> {
    TEXT.split("\n# ").skip(1).map(entry)
}

/// Returns what is known about a name, given with its namespace.
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
    fn an_entry_is_taken_apart() {
        let entry = find("clojure.core/if").expect("a special form");
        assert!(entry.usage.starts_with("(if test then)\n(if"));
        assert!(entry.doc.starts_with("Evaluates then"));
        assert_eq!(entry.examples[1], ("(if nil :yes)", "nil"));
    }
}
