//! The forms that begin with `#`.

use std::rc::Rc;

use crate::value::{Conditionals, Object, Span, Symbol, Value, compile_regex};

use super::frame::{Clause, Kind};
use super::function::FunctionArgs;
use super::{ReadContext, ReadError, Reader};

impl Reader<'_> {
    /// Reads a form that starts with `#`.
    pub(super) fn dispatch(
        &mut self,
        cx: &mut dyn ReadContext,
    ) -> Result<Option<(Value, Span)>, ReadError> {
        match self.byte(1) {
            Some(b'{') => self.open(Kind::Set, 2),
            Some(b'_') => {
                self.open(Kind::Discard, 2)?;
                self.quiet += 1;
                Ok(None)
            }
            Some(b'#') => self.symbolic().map(Some),
            Some(b':') => self.namespaced_map(cx),
            Some(b'^') => self.open(Kind::Meta, 2),
            Some(b'(') => self.function(),
            Some(b'\'') => self.open_code(Kind::Wrap("var"), 2, "`#'` (var)"),
            Some(b'"') => self.regex().map(Some),
            Some(b'?') => self.conditional(),
            Some(b'=') => Err(self.read_eval()),
            _ => self.tag(),
        }
    }

    fn function(&mut self) -> Result<Option<(Value, Span)>, ReadError> {
        if self.function.is_some() && self.is_code() {
            return Err(self.nested_function());
        }
        self.open_code(Kind::Function, 2, "`#()` (function)")?;
        self.function = Some(FunctionArgs::default());
        Ok(None)
    }

    fn symbolic(&mut self) -> Result<(Value, Span), ReadError> {
        let start = self.at;
        let token = self.token_from(start + 2);
        let value = match token {
            "Inf" => f64::INFINITY,
            "-Inf" => f64::NEG_INFINITY,
            "NaN" => f64::NAN,
            _ => return Err(self.bad_symbolic(token)),
        };
        self.at = start + 2 + token.len();
        Ok((Value::Float(value), self.span(start, self.at)))
    }

    fn namespaced_map(
        &mut self,
        cx: &mut dyn ReadContext,
    ) -> Result<Option<(Value, Span)>, ReadError> {
        let start = self.at;
        let auto = self.byte(2) == Some(b':');
        if auto && !self.is_code() {
            return Err(self.code_in_data(start, 3, "`#::` (the current namespace)"));
        }
        let name_at = start + if auto { 3 } else { 2 };
        let name = self.token_from(name_at);
        let name_end = name_at + name.len();
        let namespace = match (auto, name) {
            (true, "") => cx.current_namespace(),
            (true, alias) => match cx.resolve_alias(alias) {
                Some(namespace) => namespace,
                None if self.quiet > 0 => alias.to_owned(),
                None => return Err(self.unknown_alias(alias, name_at, name_end)),
            },
            (false, "") => return Err(self.bad_namespaced_map(start, name_end)),
            (false, name) if name.contains('/') || name.contains(':') => {
                return Err(self.bad_namespaced_map(start, name_end));
            }
            (false, name) => name.to_owned(),
        };
        self.at = name_end;
        self.skip_blank();
        if self.byte(0) != Some(b'{') {
            return Err(self.bad_namespaced_map(start, name_end));
        }
        let length = self.at + 1 - start;
        self.at = start;
        self.open(Kind::NamespacedMap(Rc::from(namespace)), length)
    }

    fn conditional(&mut self) -> Result<Option<(Value, Span)>, ReadError> {
        let start = self.at;
        if !self.is_code() {
            return Err(self.code_in_data(start, 2, "`#?` (reader conditional)"));
        }
        let splice = self.byte(2) == Some(b'@');
        if self.options.conditionals == Conditionals::Refuse {
            return Err(self.conditional_not_allowed(start));
        }
        if splice
            && self.options.conditionals == Conditionals::Choose
            && !self
                .frames
                .iter()
                .any(|frame| frame.kind.closer().is_some())
        {
            return Err(self.splice_at_top());
        }
        self.at += if splice { 3 } else { 2 };
        self.skip_blank();
        if self.byte(0) != Some(b'(') {
            return Err(self.conditional_without_list(start));
        }
        if self.options.conditionals == Conditionals::Keep {
            let length = self.at - start;
            self.at = start;
            self.quiet += 1;
            return self.open(Kind::KeptConditional { splice }, length);
        }
        let length = self.at + 1 - start;
        self.at = start;
        let kind = Kind::Conditional {
            splice,
            clause: Clause::Feature,
            chosen: false,
        };
        self.open(kind, length)
    }

    fn regex(&mut self) -> Result<(Value, Span), ReadError> {
        let start = self.at;
        if !self.is_code() {
            return Err(self.code_in_data(start, 2, "`#\"\"` (regex)"));
        }
        let (source, end) = self.regex_source()?;
        if self.quiet > 0 {
            // A regex in a discarded branch may belong to another dialect.
            let span = self.span(start, end);
            self.at = end;
            return Ok((Value::from(source), span));
        }
        let regex = compile_regex(source).map_err(|error| self.bad_regex(source, &error))?;
        self.at = end;
        let value = Object::Regex {
            source: Rc::from(source),
            regex,
        };
        Ok((value.into(), self.span(start, end)))
    }

    fn tag(&mut self) -> Result<Option<(Value, Span)>, ReadError> {
        let start = self.at;
        let token = self.token_from(start + 1);
        let is_name = token.chars().next().is_some_and(char::is_alphabetic);
        if !is_name || token.ends_with('/') || token.contains("//") {
            return Err(self.bad_dispatch(token));
        }
        let tag = Symbol::new(token);
        self.open(Kind::Tag(tag), 1 + token.len())
    }
}
