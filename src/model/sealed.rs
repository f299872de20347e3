//! Inputs with secrets in stored form: a redacted text, followed by the encrypted secrets.

/// Separates the text of an input from its sealed secrets. The text is one line.
const MARK: &str = "\n#flowstone/sealed ";

/// The two parts of a stored input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split<'a> {
    /// The input as EDN text, with `[secret]` for each secret.
    pub shown: &'a str,
    /// EDN text `[paths envelope]`; the envelope is nil if an export left the secrets out.
    pub sealed: Option<&'a str>,
}

/// Splits a stored input into its parts.
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

/// Returns the stored form of both parts.
pub fn join(shown: &str, sealed: Option<&str>) -> String {
    match sealed {
        Some(sealed) => format!("{shown}{MARK}{sealed}"),
        None => shown.to_owned(),
    }
}
