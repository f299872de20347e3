//! What is wrong with a flow file, as data; a surface draws it.

use flowstone_lang::suggest::did_you_mean;
use flowstone_lang::value::Span;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file does not run.
    Error,
    /// The file runs, but probably not as meant.
    Warning,
}

/// One finding.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    pub severity: Severity,
    /// A stable code with a page in `docs/errors`.
    pub code: &'static str,
    pub message: String,
    /// Where, or [`Span::NONE`].
    pub span: Span,
    /// What is written under the place.
    pub label: Option<String>,
    pub hints: Vec<String>,
    /// Another place that matters, and what is there.
    pub related: Option<(Span, String)>,
}

impl Diagnostic {
    pub fn error(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            span: Span::NONE,
            label: None,
            hints: Vec::new(),
            related: None,
        }
    }

    pub fn warning(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, message)
        }
    }

    /// Says where it is.
    #[must_use]
    pub fn at(mut self, span: Span) -> Diagnostic {
        self.span = span;
        self
    }

    /// Says what to write under the place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = Some(label.into());
        self
    }

    /// Adds a sentence that says what to try.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hints.push(hint.into());
        self
    }

    /// Adds "did you mean" for the nearest of some keywords, if one is near.
    #[must_use]
    pub fn suggest<'a>(self, word: &str, names: impl IntoIterator<Item = &'a str>) -> Diagnostic {
        match nearest(word, names) {
            Some(name) => self.hint(format!("did you mean `:{name}`?")),
            None => self,
        }
    }
}

/// Returns the name nearest to a word, if one is near enough to be meant.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    did_you_mean(word, names.into_iter()).into_iter().next()
}

/// Says that a key is unknown, with the one that was meant, or all.
pub fn unknown_key<'a>(
    place: &str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> String {
    let rest = match nearest(name, known.clone()) {
        Some(near) => format!("did you mean `:{near}`?"),
        None => {
            let keys: Vec<String> = known.map(|key| format!("`:{key}`")).collect();
            format!("it takes {}", keys.join(", "))
        }
    };
    format!("`{place}` has no key `:{name}`; {rest}")
}
