//! Splits the typed text into its forms.

use flowstone_lang::reader::{ReadContext, ReadError, ReadOptions, Reader};
use flowstone_lang::value::{Span, Symbol, Value};

/// A form at the prompt: its text, and the form as far as the prompt needs it.
#[derive(Debug)]
pub(crate) struct Typed<'a> {
    pub text: &'a str,
    pub form: Value,
}

/// Splits a text into its forms.
///
/// # Errors
/// When the text cannot be read; with `at_end`, another line may complete it.
pub(crate) fn split(text: &str) -> Result<Vec<Typed<'_>>, ReadError> {
    let mut reader = Reader::new(text, ReadOptions::code(Span::NONE.source));
    let mut cx = AnyName;
    let mut forms = Vec::new();
    let mut start = 0;
    while let Some(form) = reader.next(&mut cx)? {
        let end = reader.position() as usize;
        forms.push(Typed {
            text: text[start..end].trim(),
            form,
        });
        start = end;
    }
    Ok(forms)
}

/// Returns the text of the first form.
pub(crate) fn first(text: &str) -> Option<&str> {
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
        let forms = split(text).expect("readable");
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
            assert!(split(text).expect_err(text).at_end, "{text}");
        }
        for text in [")", "{:a}", "(]"] {
            assert!(!split(text).expect_err(text).at_end, "{text}");
        }
    }
}
