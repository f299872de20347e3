//! What is wrong with a flow file, as data; a surface draws it.

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

    /// Adds "did you mean" for the nearest of some names, if one is near.
    #[must_use]
    pub fn suggest<'a>(self, word: &str, names: impl IntoIterator<Item = &'a str>) -> Diagnostic {
        match nearest(word, names) {
            Some(name) => self.hint(format!("did you mean `{name}`?")),
            None => self,
        }
    }
}

/// Returns the name nearest to a word by edit distance, if it is near enough to be meant.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).clamp(1, 3);
    names
        .into_iter()
        .map(|name| (distance(word, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Edit distance in which swapping two neighbours counts as one edit.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, from) in left.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, to) in right.iter().enumerate() {
            let mut best = (above[column] + usize::from(from != to))
                .min(above[column + 1] + 1)
                .min(line[column] + 1);
            let swapped =
                row > 0 && column > 0 && *from == right[column - 1] && left[row - 1] == *to;
            if swapped {
                best = best.min(before[column - 1] + 1);
            }
            line.push(best);
        }
        before = std::mem::replace(&mut above, line);
    }
    above[right.len()]
}
