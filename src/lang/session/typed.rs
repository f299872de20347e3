//! Splits a text that is typed at a prompt into its forms. Any alias and any tag is accepted, because the session reads
//! the text of each form again when it evaluates it.

use crate::reader::{ReadContext, ReadError, ReadOptions, Reader};
use crate::value::{Span, Symbol, Value};

/// A form of a typed text.
#[derive(Debug)]
pub struct Typed<'a> {
    /// The text of the form, without blanks around it.
    pub text: &'a str,
    /// Where its text begins, in bytes.
    pub start: usize,
    /// The form as far as it is known without its session.
    pub form: Value,
}

/// Splits a text into its forms.
///
/// # Errors
/// When the text cannot be read; with `at_end`, another line may complete it.
pub fn split_typed(text: &str) -> Result<Vec<Typed<'_>>, ReadError> {
    let mut reader = Reader::new(text, ReadOptions::code(Span::NONE.source));
    let mut cx = AnyName;
    let mut forms = Vec::new();
    let mut start = 0;
    while let Some(form) = reader.next(&mut cx)? {
        let end = reader.position() as usize;
        let whole = &text[start..end];
        forms.push(Typed {
            text: whole.trim(),
            start: start + (whole.len() - whole.trim_start().len()),
            form,
        });
        start = end;
    }
    Ok(forms)
}

/// Returns the text of the first form.
pub fn first_typed(text: &str) -> Option<&str> {
    let mut reader = Reader::new(text, ReadOptions::code(Span::NONE.source));
    reader.next(&mut AnyName).ok()??;
    text.get(..reader.position() as usize).map(str::trim)
}

/// Accepts any alias and any tag, because the session reads the text again and knows them.
struct AnyName;

impl ReadContext for AnyName {
    fn resolve_alias(&self, alias: &str) -> Option<String> {
        Some(alias.to_owned())
    }

    fn current_namespace(&self) -> String {
        "user".to_owned()
    }

    fn resolve_symbol(&self, symbol: Symbol) -> Symbol {
        symbol
    }

    fn gensym(&mut self, prefix: &str) -> Symbol {
        Symbol::new(prefix)
    }

    fn read_tag(&mut self, _tag: Symbol, form: Value) -> Option<Result<Value, String>> {
        Some(Ok(form))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        let forms = split_typed(text).expect("readable");
        forms.into_iter().map(|typed| typed.text).collect()
    }

    #[test]
    fn a_text_is_split_into_its_forms() {
        assert_eq!(texts("(+ 1 2) :a [b]\n'c"), ["(+ 1 2)", ":a", "[b]", "'c"]);
        assert_eq!(texts("; nothing\n"), Vec::<&str>::new());
        assert_eq!(texts("::a/b #x 1"), ["::a/b", "#x 1"]);
    }

    #[test]
    fn an_open_form_requests_another_line() {
        for text in ["(", "[1 {", "\"abc", "'", "(str \"a"] {
            assert!(split_typed(text).expect_err(text).at_end, "{text}");
        }
        for text in [")", "{:a}", "(]"] {
            assert!(!split_typed(text).expect_err(text).at_end, "{text}");
        }
    }
}
