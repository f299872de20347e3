//! An exception as a diagnostic: the value at fault, its place, and the calls that led there.

use super::{Call, Cause, Culprit, Diagnostic, Excerpt, Expanded};
use crate::value::{Culprit as At, Exception, Fault, Frame, Origin, Sources, Span, Value, brief};

/// Maximum length of a value that is repeated under the place.
const LONGEST_LABEL: usize = 60;
/// Maximum number of causes that are shown.
const MOST_CAUSES: usize = 8;

/// Describes an uncaught exception.
pub(super) fn describe(sources: &Sources, exception: &Exception) -> Diagnostic {
    let message = match exception.code {
        "" => format!("{}: {}", exception.class.0.name, exception.text()),
        _ => exception.display_text().to_owned(),
    };
    let mut diagnostic = Diagnostic::error(exception.code, unmangled(&message));
    exception.class.0.name.clone_into(&mut diagnostic.class);
    diagnostic.phase = Some(exception.phase());
    diagnostic.hints.clone_from(&exception.hints);
    let origin = exception.origin.borrow();
    if exception.is_of_reader() {
        let thrown = origin.span.unwrap_or(Span::NONE);
        diagnostic
            .related
            .extend(related(sources, thrown, &exception.data));
    } else if exception.data.as_map().is_some_and(|data| !data.is_empty()) {
        diagnostic.data = Some(brief(&exception.data));
    }
    diagnostic.causes = causes(sources, exception);
    let at = put_origin(&mut diagnostic, sources, &origin);
    if exception.code.is_empty() {
        show_the_call_of_the_macro(&mut diagnostic, sources, &origin);
    }
    if let [inner, .., outer] = origin.natives.as_slice()
        && diagnostic.label.is_empty()
    {
        diagnostic.label = match &**inner {
            "" => format!("`{outer}` called it here"),
            inner => format!("`{outer}` called `{inner}` here"),
        };
    }
    let changes = exception.changes.iter();
    diagnostic.changes = changes.filter_map(|it| it.place(sources, at)).collect();
    if let Some(fault) = &exception.fault {
        put_culprit(&mut diagnostic, sources, (fault, at), &origin);
    }
    diagnostic
}

/// Sets the place and the calls of an exception; returns the place that is shown.
pub(super) fn put_origin(diagnostic: &mut Diagnostic, sources: &Sources, origin: &Origin) -> Span {
    let thrown = origin.span.unwrap_or(Span::NONE);
    let at = nearest_to_user(sources, thrown, &origin.trace);
    diagnostic.place = Excerpt::find(sources, at);
    let frames = origin.trace.iter();
    diagnostic.trace = frames.map(|frame| Call::of(sources, frame)).collect();
    if at != thrown && diagnostic.label.is_empty() {
        diagnostic.label = outermost_of_library(sources, &origin.trace)
            .map_or_else(String::new, |name| format!("inside of `{name}`"));
    }
    put_expansions(diagnostic, sources, at, origin);
    let is_told = |lazy: Span| {
        let mut frames = origin.trace.iter();
        lazy == at || frames.any(|frame| frame.span == lazy || lazy.contains(frame.span))
    };
    for lazy in origin.lazies.iter().copied() {
        if !is_told(lazy)
            && !is_library(sources, lazy)
            && let Some(place) = Excerpt::find(sources, lazy)
        {
            let what = "the lazy sequence was made here, and computed when it was used".to_owned();
            diagnostic.related.push((place, what));
        }
    }
    at
}

/// Adds the macro calls that produced the place, and those that were being expanded.
fn put_expansions(diagnostic: &mut Diagnostic, sources: &Sources, at: Span, origin: &Origin) {
    let mut source = at.source;
    while let Some(expansion) = sources.expansion(source) {
        let place = Excerpt::find(sources, expansion.call);
        let name = &expansion.macro_name;
        let is_shown = |other: &Excerpt| place.as_ref().is_some_and(|place| place.is_at(other));
        if !diagnostic.place.iter().any(is_shown)
            && let Some(place) = place.clone()
        {
            let what = format!("in the expansion of this call of `{name}`");
            diagnostic.related.push((place, what));
        }
        diagnostic.expansion.push(Expanded {
            macro_name: name.to_string(),
            form: Some(unmangled(&expansion.form)),
            place,
        });
        source = expansion.call.source;
    }
    for (name, call) in &origin.expanding {
        let place = Excerpt::find(sources, *call);
        if let Some(place) = place.clone()
            && *call != at
            && !is_library(sources, *call)
        {
            let what = format!("while the macro `{name}` was being expanded here");
            diagnostic.related.push((place, what));
        }
        diagnostic.expansion.push(Expanded {
            macro_name: name.to_string(),
            form: None,
            place,
        });
    }
}

/// Shows the call of a macro that throws on purpose, because its error is about the call.
fn show_the_call_of_the_macro(diagnostic: &mut Diagnostic, sources: &Sources, origin: &Origin) {
    let Some((name, call)) = origin.expanding.first() else {
        return;
    };
    if is_library(sources, *call) {
        return;
    }
    diagnostic.place = Excerpt::find(sources, *call);
    diagnostic.label = format!("thrown by the macro `{name}`");
    diagnostic.related.clear();
}

/// Describes the value at fault, under the place if the value adds to the text there.
fn put_culprit(
    diagnostic: &mut Diagnostic,
    sources: &Sources,
    (fault, at): (&Fault, Span),
    origin: &Origin,
) {
    let text = sources.text(at).unwrap_or_default();
    if let Some(message) = destructuring(fault, &text) {
        diagnostic.message = message;
        diagnostic.hints = vec![
            "give a vector or a list there, or write a plain name instead of the pattern"
                .to_owned(),
        ];
    }
    if fault.value.is_empty() {
        return;
    }
    diagnostic.culprit = Some(Box::new(Culprit {
        argument: match fault.at {
            At::Argument(idx) => Some(idx + 1),
            At::Function | At::Collection => None,
        },
        function: fault
            .function
            .as_deref()
            .filter(|_| fault.at != At::Function)
            .map(str::to_owned),
        value: fault.value.to_string(),
        kind: fault.kind,
    }));
    if !diagnostic.label.is_empty() {
        return;
    }
    if origin.natives.is_empty()
        && fault.at != At::Collection
        && !is_literal(&text)
        && fault.value.len() <= LONGEST_LABEL
        && fault.function.as_deref() != Some("nth")
        && origin.trace.first().is_some_and(|frame| frame.span == at)
    {
        diagnostic.label = format!("this is {}", fault.value);
    }
}

/// Tells whether the text of a form is its value.
fn is_literal(text: &str) -> bool {
    text == "nil"
        || text.starts_with(|char: char| char.is_ascii_digit() || "\"\\:'[{#-`".contains(char))
}

/// Returns the message for a failed destructuring, if the text at the place is a pattern.
fn destructuring(fault: &Fault, text: &str) -> Option<String> {
    let function = fault.function.as_deref()?;
    let is_pattern = match function {
        // These functions accept a vector, so the vector at the place must be a pattern.
        "nth" | "seq" => text.starts_with('['),
        _ => false,
    };
    if !is_pattern || fault.at != At::Argument(0) {
        return None;
    }
    let line = text.lines().next().unwrap_or(text);
    Some(format!(
        "the pattern `{line}` takes a vector, a list or a string apart, got {} ({})",
        fault.value, fault.kind
    ))
}

fn causes(sources: &Sources, exception: &Exception) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut cause = &exception.cause;
    while let Value::Exception(inner) = cause
        && causes.len() < MOST_CAUSES
    {
        let origin = inner.origin.borrow();
        let thrown = origin.span.unwrap_or(Span::NONE);
        let has_data = inner.data.as_map().is_some_and(|data| !data.is_empty());
        causes.push(Cause {
            class: inner.class.0.name.to_owned(),
            code: inner.code.to_owned(),
            message: unmangled(inner.display_text()),
            data: has_data.then(|| brief(&inner.data)),
            place: Excerpt::find(sources, nearest_to_user(sources, thrown, &origin.trace)),
        });
        cause = &inner.cause;
    }
    causes
}

impl Call {
    fn of(sources: &Sources, frame: &Frame) -> Call {
        Call {
            function: frame.function.to_string(),
            place: Excerpt::find(sources, frame.span),
            in_library: is_library(sources, frame.span),
        }
    }
}

/// Returns the place to show: where it was thrown, or the user's call if that is inside the library.
fn nearest_to_user(sources: &Sources, thrown: Span, trace: &[Frame]) -> Span {
    if thrown.is_some() && !is_library(sources, thrown) {
        return thrown;
    }
    trace
        .iter()
        .map(|frame| frame.span)
        .find(|span| span.is_some() && !is_library(sources, *span))
        .unwrap_or(thrown)
}

/// Returns the library function that the user's code called.
fn outermost_of_library<'a>(sources: &Sources, trace: &'a [Frame]) -> Option<&'a str> {
    let of_library = trace
        .iter()
        .take_while(|frame| is_library(sources, frame.span));
    let name = &of_library.last()?.function;
    Some(name.strip_prefix("clojure.core/").unwrap_or(name))
}

/// Tells whether a place is in the library, or is missing, as in a native.
fn is_library(sources: &Sources, span: Span) -> bool {
    !span.is_some()
        || sources
            .get(span.source)
            .is_none_or(|source| source.is_library())
}

/// Restores the names that syntax-quote generated to their written form: `x#`.
fn unmangled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("__") {
        let after = &rest[at + 2..];
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        match after[digits..].strip_prefix("__auto__") {
            Some(end) if digits > 0 && at > 0 => {
                out.push_str(&rest[..at]);
                out.push('#');
                rest = end;
            }
            _ => {
                out.push_str(&rest[..at + 2]);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Returns the other place of a reader's exception, stored in its data as offsets into the same text.
fn related(sources: &Sources, span: Span, data: &Value) -> Option<(Excerpt, String)> {
    let related = data.get("related")?;
    let offset = |key: &str| u32::try_from(related.get(key)?.as_int()?).ok();
    let other = Span {
        source: span.source,
        start: offset("start")?,
        end: offset("end")?,
    };
    let what = related.get("message")?.as_str()?.to_owned();
    Some((Excerpt::find(sources, other)?, what))
}
