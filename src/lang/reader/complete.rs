//! Completed forms: a form becomes an item of the surrounding form, or completes a prefix.

use std::rc::Rc;

use crate::value::{Keyword, Map, Object, PMap, Span, Symbol, Value};

use super::build::{placed_list, placed_name};
use super::frame::{Clause, Frame, Kind};
use super::syntax_quote::syntax_quote;
use super::{ReadContext, ReadError, Reader, instant};

impl Reader<'_> {
    /// Takes a completed form. Returns it if it is a top-level form.
    pub(super) fn complete(
        &mut self,
        mut value: Value,
        mut span: Span,
        cx: &mut dyn ReadContext,
    ) -> Result<Option<Value>, ReadError> {
        loop {
            let count = self.values.len();
            match self.frames.last_mut() {
                None => return Ok(Some(value)),
                Some(frame) => match &mut frame.kind {
                    Kind::List
                    | Kind::Vector
                    | Kind::Map
                    | Kind::Set
                    | Kind::NamespacedMap(_)
                    | Kind::Function => {
                        self.push(value, span);
                        return Ok(None);
                    }
                    Kind::Meta if frame.base == count => {
                        self.push(value, span);
                        return Ok(None);
                    }
                    Kind::Conditional { .. } => {
                        self.clause(value, span)?;
                        return Ok(None);
                    }
                    Kind::Discard => {
                        self.frames.pop();
                        self.quiet -= 1;
                        return Ok(None);
                    }
                    Kind::KeptConditional { .. }
                    | Kind::Wrap(_)
                    | Kind::SyntaxQuote
                    | Kind::Meta
                    | Kind::Tag(_) => {}
                },
            }
            let Some(frame) = self.frames.pop() else {
                return Ok(Some(value));
            };
            (value, span) = self.finish_prefix(frame, value, span, cx)?;
        }
    }

    fn push(&mut self, value: Value, span: Span) {
        self.values.push(value);
        if self.tracked {
            self.spans.push(span);
        }
    }

    fn finish_prefix(
        &mut self,
        frame: Frame,
        value: Value,
        inner: Span,
        cx: &mut dyn ReadContext,
    ) -> Result<(Value, Span), ReadError> {
        let prefix = self.span(frame.start, frame.start + frame.length);
        let span = Span {
            start: prefix.start,
            ..inner
        };
        let value = match frame.kind {
            Kind::Wrap(symbol) => {
                let head = placed_name(Symbol::new(symbol), prefix);
                placed_list([head, value], span, [prefix, inner])
            }
            Kind::SyntaxQuote => syntax_quote(value, span, cx)
                .map_err(|splice| self.splice_not_in_list(splice.or(span)))?,
            Kind::Tag(tag) => self.tagged(tag, value, span, cx)?,
            Kind::KeptConditional { splice } => {
                self.quiet -= 1;
                Object::Conditional {
                    form: value,
                    splicing: splice,
                }
                .into()
            }
            Kind::Meta => {
                let meta = self.values.pop().unwrap_or(Value::Nil);
                let place = if self.tracked {
                    self.spans.pop().unwrap_or(prefix)
                } else {
                    prefix
                };
                return Ok((self.with_meta(&meta, place, &value, inner)?, inner));
            }
            Kind::List
            | Kind::Vector
            | Kind::Map
            | Kind::Set
            | Kind::NamespacedMap(_)
            | Kind::Function
            | Kind::Conditional { .. }
            | Kind::Discard => value,
        };
        Ok((value, span))
    }

    /// Adds the metadata of `^` to that of a form. The outermost entry wins.
    fn with_meta(
        &self,
        meta: &Value,
        place: Span,
        form: &Value,
        span: Span,
    ) -> Result<Value, ReadError> {
        let key = |name| Value::Keyword(Keyword::new(name));
        let added: PMap = match meta {
            Value::Map(map) => map.entries().clone(),
            Value::Keyword(_) => [(meta.clone(), Value::Bool(true))].into_iter().collect(),
            Value::Symbol(_) | Value::Name(_) | Value::Text(_) => {
                [(key("tag"), meta.clone())].into_iter().collect()
            }
            Value::Vector(_) => [(key("param-tags"), meta.clone())].into_iter().collect(),
            _ => return Err(self.bad_meta(meta, place)),
        };
        let merged = match form.meta() {
            Value::Map(old) => {
                let mut merged = old.entries().clone();
                for (key, value) in added.iter() {
                    merged.insert(key.clone(), value.clone());
                }
                merged
            }
            _ => added,
        };
        form.with_meta(Value::Map(Rc::new(Map::new(merged))))
            .ok_or_else(|| self.no_meta_here(form, span))
    }

    fn tagged(
        &self,
        tag: Symbol,
        form: Value,
        span: Span,
        cx: &mut dyn ReadContext,
    ) -> Result<Value, ReadError> {
        if self.quiet > 0 {
            return Ok(Object::Tagged { tag, form }.into());
        }
        let known = cx
            .read_tag(tag, form.clone())
            .or_else(|| instant::read_builtin(tag, &form));
        match known {
            Some(Ok(value)) => Ok(value),
            Some(Err(why)) => Err(self.bad_tagged(tag, &why, span)),
            None if self.is_code() => Err(self.unknown_tag(tag, span)),
            None => Ok(Object::Tagged { tag, form }.into()),
        }
    }

    /// Processes the next item of a reader conditional.
    fn clause(&mut self, value: Value, span: Span) -> Result<(), ReadError> {
        let is_wanted = value.as_keyword().map(|feature| {
            feature.is("default") || self.options.features.iter().any(|name| feature.is(name))
        });
        let quiet = self.quiet > 0;
        let Some(Frame {
            kind: Kind::Conditional { clause, chosen, .. },
            ..
        }) = self.frames.last_mut()
        else {
            return Ok(());
        };
        match *clause {
            Clause::Feature => match is_wanted {
                Some(true) if !*chosen => *clause = Clause::Wanted,
                None if !quiet => return Err(self.not_a_feature(span)),
                _ => {
                    *clause = Clause::Unwanted;
                    self.quiet += 1;
                }
            },
            Clause::Wanted => {
                *clause = Clause::Feature;
                *chosen = true;
                self.push(value, span);
            }
            Clause::Unwanted => {
                *clause = Clause::Feature;
                self.quiet -= 1;
            }
        }
        Ok(())
    }

    pub(super) fn end_clauses(&self, clause: Clause, span: Span) -> Result<(), ReadError> {
        match clause {
            Clause::Feature => Ok(()),
            Clause::Wanted | Clause::Unwanted => Err(self.odd_conditional(span)),
        }
    }

    /// Returns the result of a reader conditional: the chosen form, or each item of it if it is spliced.
    pub(super) fn choose(
        &mut self,
        splice: bool,
        chosen: bool,
        span: Span,
        cx: &mut dyn ReadContext,
    ) -> Result<Option<(Value, Span)>, ReadError> {
        if !chosen {
            return Ok(None);
        }
        let value = self.values.pop().unwrap_or(Value::Nil);
        let place = if self.tracked {
            self.spans.pop().unwrap_or(span)
        } else {
            span
        };
        if !splice {
            return Ok(Some((value, place)));
        }
        let spans = value.place().map(|place| place.items.clone());
        let items: Vec<Value> = match &value {
            Value::Vector(vector) => vector.iter().cloned().collect(),
            Value::List(list) => list.iter().cloned().collect(),
            _ => return Err(self.not_spliceable(&value, place)),
        };
        for (idx, item) in items.into_iter().enumerate() {
            let at = spans.as_ref().and_then(|spans| spans.get(idx));
            self.complete(item, at.copied().unwrap_or(place), cx)?;
        }
        Ok(None)
    }
}
