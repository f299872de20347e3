//! Code that a flow file contains as text: reading it, and mapping its places to the file.

use flowstone_lang::session::Session;
use flowstone_lang::value::{Signal, Sources, Span, Value};

use super::lint::Code;
use crate::diagnostic::Diagnostic;

/// Returns the forms of some code, and a finding if its text is malformed.
pub(super) fn forms(session: &Session, code: &Code) -> (Vec<Value>, Option<Diagnostic>) {
    let Value::Text(text) = &code.code else {
        return (
            vec![code.code.clone()],
            not_a_function(&code.code, code.span),
        );
    };
    let forms = match session.read(&code.name, text) {
        Ok(forms) => forms,
        Err(Signal::Stop(_)) => return (Vec::new(), None),
        Err(Signal::Throw(exception)) => {
            let finding = Diagnostic::error(exception.code, exception.display_text().to_string());
            let mut finding = finding.at(exception.span());
            finding.hints.clone_from(&exception.hints);
            finding.changes.clone_from(&exception.changes);
            let sources = session.world().sources.borrow();
            return (Vec::new(), Some(placed(&sources, code, finding)));
        }
    };
    let problem = match &forms[..] {
        [] => Some(
            Diagnostic::error("E0470", "this code is empty")
                .at(code.span)
                .hint("write a function: `(fn [input] ...)`"),
        ),
        [only] => not_a_function(only, code.span),
        [_, second, ..] => {
            let finding = Diagnostic::error("E0470", "code is one form, and here is another");
            let finding = finding.at(second.span().or(code.span)).hint(
                "write one `(fn [input] ...)`; put what else it needs into a `let` or `letfn` around it",
            );
            let sources = session.world().sources.borrow();
            Some(placed(&sources, code, finding))
        }
    };
    match problem {
        Some(problem) => (Vec::new(), Some(problem)),
        None => (forms, None),
    }
}

/// Returns a finding for a form that cannot evaluate to a function.
fn not_a_function(form: &Value, span: Span) -> Option<Diagnostic> {
    let is_none = matches!(
        form,
        Value::Nil
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Char(_)
            | Value::Text(_)
            | Value::Vector(_)
    );
    is_none.then(|| {
        Diagnostic::error(
            "E0706",
            format!("the code is {}, not a function", form.kind()),
        )
        .at(form.span().or(span))
        .hint("wrap it: `(fn [input] ...)`")
    })
}

/// Moves a finding from the text of some code to the place of that text in the file.
pub(super) fn placed(sources: &Sources, code: &Code, mut finding: Diagnostic) -> Diagnostic {
    if !matches!(code.code, Value::Text(_)) {
        finding.span = finding.span.or(code.span);
        return finding;
    }
    finding.changes.retain_mut(|change| {
        change
            .edits
            .iter_mut()
            .all(|edit| match edit.place.is_some() {
                true => in_file(sources, code, edit.place)
                    .map(|place| edit.place = place)
                    .is_some(),
                false => true,
            })
    });
    finding.span = in_file(sources, code, finding.span).unwrap_or(code.span);
    finding
}

/// Returns the place of a part of the text in the literal that holds it.
fn in_file(sources: &Sources, code: &Code, part: Span) -> Option<Span> {
    let of = sources
        .get(part.source)
        .filter(|source| *source.name == *code.name)?;
    let file = sources.get(code.span.source)?;
    let literal = file
        .text
        .get(code.span.start as usize..code.span.end as usize)?;
    let inside = literal.strip_prefix('"')?.strip_suffix('"')?;
    let start = escaped(inside, &of.text, part.start as usize)?;
    let end = escaped(inside, &of.text, part.end as usize)?;
    let place = |offset: usize| u32::try_from(offset).ok()?.checked_add(code.span.start + 1);
    Some(Span {
        source: code.span.source,
        start: place(start)?,
        end: place(end)?,
    })
}

/// Returns the offset in a literal, without its quotes, for an offset in the text that it represents.
fn escaped(literal: &str, text: &str, offset: usize) -> Option<usize> {
    let wanted = text.get(..offset)?.chars().count();
    let mut chars = literal.char_indices();
    for _ in 0..wanted {
        let (_, char) = chars.next()?;
        if char != '\\' {
            continue;
        }
        let (_, escape) = chars.next()?;
        let more = match escape {
            'u' => 4,
            // Octal escapes have a variable number of digits and are too rare to be decoded here.
            '0'..='7' => return None,
            _ => 0,
        };
        for _ in 0..more {
            chars.next()?;
        }
    }
    Some(chars.next().map_or(literal.len(), |(at, _)| at))
}
