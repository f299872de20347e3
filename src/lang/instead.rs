//! Replacements for classes of the host and namespaces that do not exist here, for hints.

/// Replacements of classes, by their short names. Sorted.
const CLASSES: &[(&str, &str)] = &[
    (
        "ConcurrentLinkedQueue",
        "use clojure.lang.PersistentQueue/EMPTY in an atom",
    ),
    ("CountDownLatch", "use a promise: deliver and deref"),
    (
        "Executors",
        "use flow/pmap in a flow; programs run on one thread",
    ),
    ("HttpClient", "use an :http step in a flow"),
    (
        "LinkedBlockingQueue",
        "use clojure.lang.PersistentQueue/EMPTY in an atom",
    ),
    (
        "Locale",
        "leave it out: case and formats do not depend on a locale here",
    ),
    ("MessageDigest", "use flow.util/sha256-hex"),
    ("SecureRandom", "use random-uuid or rand-int"),
    ("SimpleDateFormat", "use java.time.format.DateTimeFormatter"),
    ("ThreadLocalRandom", "use rand and rand-int"),
];

/// Replacements of namespaces. Sorted.
const NAMESPACES: &[(&str, &str)] = &[
    (
        "clj-http.client",
        "requests are :http steps in a flow: (flow/step :http :get {:url ...})",
    ),
    (
        "clojure.core.async",
        "there are no channels: flow/pmap runs steps at the same time, and :wait steps wait for events; in a program, use \
         sequences, promises and atoms",
    ),
    (
        "clojure.java.io",
        "slurp, spit and file-seq read and write files with --allow-files; in flows use :files steps",
    ),
    ("clojure.java.jdbc", "keep rows with :table steps in a flow"),
    (
        "clojure.spec.alpha",
        "check data with predicates, :pre and :post, or with the :schema of inputs and steps in a flow",
    ),
    (
        "clojure.tools.logging",
        "print with println, and use flow/log in a flow",
    ),
    (
        "malli.core",
        "check data with the :schema of inputs and steps in a flow, which takes Malli's forms",
    ),
];

/// Returns the replacement for a class of the host, by its short name.
pub(crate) fn of_class(short: &str) -> Option<&'static str> {
    found(CLASSES, short)
}

/// Returns the replacement for a namespace.
pub(crate) fn of_namespace(name: &str) -> Option<&'static str> {
    found(NAMESPACES, name)
}

fn found(table: &'static [(&str, &str)], name: &str) -> Option<&'static str> {
    let at = table.binary_search_by_key(&name, |row| row.0).ok()?;
    Some(table[at].1)
}

#[cfg(test)]
mod tests {
    use super::{CLASSES, NAMESPACES};

    #[test]
    fn the_tables_are_sorted() {
        assert!(CLASSES.is_sorted_by_key(|row| row.0));
        assert!(NAMESPACES.is_sorted_by_key(|row| row.0));
    }
}
