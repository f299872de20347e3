//! How people speak of what step types do.

use flowstone_project::search::rank::{self, leading_word};

/// A step type, the words that people use for what it does beside those of its own description, and the words that mean it
/// when a use case begins with them, whatever it is about.
type Spoken = (&'static str, &'static str, &'static str);

const SPOKEN: &[Spoken] = &[
    (
        "agent",
        "assistant autonomous decide research tools objective multi step reason",
        "investigate research",
    ),
    ("call-flow", "reuse subflow call flow", ""),
    (
        "db",
        "sql query select insert postgres postgresql mysql sqlite database",
        "",
    ),
    ("fanout", "parallel each batch concurrently", ""),
    (
        "files",
        "code repository edit patch source folder git pull request",
        "",
    ),
    (
        "function",
        "compute calculate transform code",
        "calculate compute",
    ),
    (
        "http",
        "api rest request fetch download call endpoint web page url post get",
        "download fetch",
    ),
    ("job", "background worker queue task", ""),
    ("jq", "json transform filter reshape", ""),
    (
        "knowledge",
        "memory remember recall facts documents knowledge base",
        "recall",
    ),
    (
        "kv",
        "remember state counter key value cache last seen store",
        "remember",
    ),
    (
        "llm",
        "summarize summarise summary classify extract write draft translate generate rewrite answer text model prompt ai",
        "classify compose draft explain extract generate judge paraphrase proofread rephrase rewrite summarise summarize translate",
    ),
    ("mcp", "tool server model context protocol", ""),
    (
        "notify",
        "email mail send notification alert message smtp",
        "alert email mail notify",
    ),
    ("search", "find look up semantic documents knowledge", ""),
    ("sleep", "delay pause wait later", "delay pause sleep"),
    ("ssh", "remote machine shell command server", ""),
    (
        "table",
        "rows records spreadsheet database store save list csv",
        "",
    ),
    ("time", "date now clock timezone format", "date"),
    (
        "wait",
        "approval approve human person ask confirm review form input",
        "",
    ),
];

/// Words that mean a step type wherever a use case has them.
const MEANING: &[(&str, &str)] = &[("db", "database mysql postgres postgresql sql sqlite")];

/// Words for what single operations do, beside those of their descriptions.
const OPERATIONS: &[(&str, &str)] = &[
    ("kv get", "read recall"),
    ("kv set", "remember save keep note store"),
    ("table insert", "store save write add keep"),
    (
        "table query",
        "list select filter match matching condition read",
    ),
];

/// Returns the words for what an operation of a step type does.
pub(super) fn words_of_operation(name: &str) -> &'static str {
    let found = OPERATIONS.iter().find(|(known, _)| *known == name);
    found.map_or("", |(_, words)| words)
}

/// Returns the words for what a step type does, each once.
pub(super) fn words(kind: &str) -> String {
    let Some((_, words, leading)) = row(kind) else {
        return String::new();
    };
    let known: Vec<&str> = words.split_whitespace().collect();
    let new = leading
        .split_whitespace()
        .filter(|word| !known.contains(word));
    let all: Vec<&str> = known.iter().copied().chain(new).collect();
    all.join(" ")
}

/// Tells whether a use case that begins with a word means a step type. The word has no ending.
pub(super) fn leads(kind: &str, word: &str) -> bool {
    let leading = row(kind).map_or("", |(_, _, leading)| leading);
    leading
        .split_whitespace()
        .any(|known| leading_word(known).as_deref() == Some(word))
}

/// Tells whether a use case has a word that means a step type. `said` are its words as the ranking has them.
pub(super) fn means(kind: &str, said: &[String]) -> bool {
    let found = MEANING.iter().find(|(known, _)| *known == kind);
    let meaning = found.map_or_else(Vec::new, |(_, text)| rank::words(text));
    meaning.iter().any(|word| said.contains(word))
}

/// Tells whether a use case that begins with a word means an operation of its step type.
pub(super) fn leads_operation(name: &str, word: &str) -> bool {
    words_of_operation(name)
        .split_whitespace()
        .any(|known| leading_word(known).as_deref() == Some(word))
}

fn row(kind: &str) -> Option<&'static Spoken> {
    SPOKEN.iter().find(|(known, ..)| *known == kind)
}
