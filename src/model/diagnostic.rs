//! Problems of a flow file as data; a surface renders them.

use flowstone_lang::suggest::{Respelling, did_you_mean, respelling};
pub use flowstone_lang::value::Change;
use flowstone_lang::value::Span;

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file cannot be run.
    Error,
    /// The file can be run, but probably not as intended.
    Warning,
    /// The file can be run here, but not in the hosted product. Only reported on request.
    Portability,
}

/// One problem of a flow file.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    pub severity: Severity,
    /// A stable code with a page in `docs/errors`.
    pub code: &'static str,
    pub message: String,
    /// The place of the problem, or [`Span::NONE`].
    pub span: Span,
    /// The text under the place.
    pub label: Option<String>,
    pub hints: Vec<String>,
    /// Changes of the file that would mend it.
    pub changes: Vec<Change>,
    /// Another place that matters, and its label.
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
            changes: Vec::new(),
            related: None,
        }
    }

    pub fn warning(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, message)
        }
    }

    pub fn portability(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Portability,
            ..Diagnostic::error(code, message)
        }
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, span: Span) -> Diagnostic {
        self.span = span;
        self
    }

    /// Sets the text under the place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = Some(label.into());
        self
    }

    /// Adds a hint: a sentence about what to try.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hints.push(hint.into());
        self
    }

    /// Adds a change that would mend it.
    #[must_use]
    pub fn change(mut self, change: Change) -> Diagnostic {
        self.changes.push(change);
        self
    }

    /// Adds a "did you mean" hint with the nearest of some keywords, if one is near, and the change to it.
    #[must_use]
    pub fn suggest<'a>(self, word: &str, names: impl IntoIterator<Item = &'a str>) -> Diagnostic {
        match respelling(word, names.into_iter()) {
            Some(near) => self
                .hint(format!("did you mean `:{}`?", near.name))
                .respell(word, Some(near)),
            None => self,
        }
    }

    /// Adds the change of a word at its place to the name that it probably stands for.
    #[must_use]
    pub fn respell(self, word: &str, near: Option<Respelling<'_>>) -> Diagnostic {
        match near {
            Some(near) => self.change(Change::respell(word, near)),
            None => self,
        }
    }
}

/// Returns the name nearest to a word, if one is near enough to be a likely misspelling.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    did_you_mean(word, names.into_iter()).into_iter().next()
}

/// Reports an unknown key, with the nearest known key or the list of all.
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
