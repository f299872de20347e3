//! Inputs with secrets as the store keeps them: a text that everybody may read, and the encrypted secrets after it.

/// What separates the text of an input from its sealed secrets. The text is one line.
const MARK: &str = "\n#flowstone/sealed ";

/// An input as the store keeps it, in its two parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split<'a> {
    /// EDN text, with `[secret]` for each secret.
    pub shown: &'a str,
    /// EDN text `[paths envelope]`; the envelope is nil where an export left the secrets out.
    pub sealed: Option<&'a str>,
}

/// Splits an input as the store keeps it.
pub fn split(stored: &str) -> Split<'_> {
    match stored.split_once(MARK) {
        Some((shown, sealed)) => Split {
            shown,
            sealed: Some(sealed),
        },
        None => Split {
            shown: stored,
            sealed: None,
        },
    }
}

/// Returns what the store keeps of both parts.
pub fn join(shown: &str, sealed: Option<&str>) -> String {
    match sealed {
        Some(sealed) => format!("{shown}{MARK}{sealed}"),
        None => shown.to_owned(),
    }
}
