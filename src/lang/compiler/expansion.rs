//! The origin of forms made by macros: their places record the macro call, so that errors in them can show it, both
//! when they are compiled and when they run.

use std::rc::Rc;

use crate::value::{
    Expansion, PMap, PSet, Place, PrintOptions, Result, SourceId, Span, Symbol, Value,
};
use crate::vm::Vm;

/// Maximum depth to which forms of an expansion are marked; deeper ones keep the places of the macro's text.
const DEPTH: usize = 60;

/// Marks the forms of an expansion, except those of the call's own text, as results of that call.
///
/// # Errors
/// Any exception thrown while a lazy form is computed.
pub(super) fn mark(vm: &mut Vm, form: &Value, call: Span, macro_name: Symbol) -> Result<Value> {
    if !call.is_some() {
        return Ok(form.clone());
    }
    let text = vm.print(form, PrintOptions::BRIEF)?;
    let mut marker = Marker {
        vm,
        call,
        macro_name: macro_name.to_string().into(),
        form: text.replace("clojure.core/", "").into(),
        known: None,
    };
    marker.form(form, DEPTH)
}

struct Marker<'a> {
    vm: &'a mut Vm,
    call: Span,
    macro_name: Rc<str>,
    form: Rc<str>,
    /// The last text seen, and its id in this expansion.
    known: Option<(SourceId, SourceId)>,
}

impl Marker<'_> {
    fn form(&mut self, form: &Value, depth: usize) -> Result<Value> {
        let Some(depth) = depth.checked_sub(1) else {
            return Ok(form.clone());
        };
        let made = match form {
            Value::List(list) if !list.is_empty() => {
                let items = self.items(form, depth)?;
                let Some(items) = items else {
                    return Ok(form.clone());
                };
                with_meta_of(form, Value::list(items))
            }
            Value::Seq(_) | Value::Lazy(_) => match self.items(form, depth)? {
                Some(items) => Value::list(items),
                None => return Ok(form.clone()),
            },
            Value::Vector(vector) => {
                let mut items = Vec::with_capacity(vector.len());
                for item in vector.iter() {
                    items.push(self.form(item, depth)?);
                }
                with_meta_of(form, Value::vector(items))
            }
            Value::Map(map) if map.entries().sorted().is_none() => {
                let mut entries = PMap::new();
                for (key, value) in map.iter() {
                    entries.insert(self.form(key, depth)?, self.form(value, depth)?);
                }
                with_meta_of(form, Value::Map(Rc::new(crate::value::Map::new(entries))))
            }
            Value::Set(set) if set.items().sorted().is_none() => {
                let mut items = PSet::new();
                for item in set.iter() {
                    items.insert(self.form(item, depth)?);
                }
                with_meta_of(form, Value::Set(Rc::new(crate::value::Set::new(items))))
            }
            other => other.clone(),
        };
        Ok(self.placed(form, made))
    }

    /// Returns the marked items of a list; `None` if it is one of the user's own forms.
    fn items(&mut self, form: &Value, depth: usize) -> Result<Option<Vec<Value>>> {
        if form.span().is_some() && self.is_own(form.span()) {
            return Ok(None);
        }
        let items = self.vm.items(form.clone())?;
        let items = items.iter().map(|item| self.form(item, depth));
        items.collect::<Result<Vec<_>>>().map(Some)
    }

    /// Gives `made` the place of `form`, marked.
    fn placed(&mut self, form: &Value, made: Value) -> Value {
        let Some(place) = form.place() else {
            // A form built by the macro gets the place of the call.
            let is_form = matches!(
                made,
                Value::List(_) | Value::Vector(_) | Value::Map(_) | Value::Set(_)
            );
            if !is_form {
                return made;
            }
            let source = self.source(self.call.source);
            let span = Span {
                source,
                ..self.call
            };
            return made.with_place(Place {
                span,
                items: Box::default(),
            });
        };
        let span = self.span(place.span);
        let items = place.items.iter().map(|item| self.span(*item)).collect();
        made.with_place(Place { span, items })
    }

    /// Tells whether a place is in the text of the call, or results from another macro call.
    fn is_own(&self, span: Span) -> bool {
        let sources = self.vm.world().sources.borrow();
        let is_marked = |span: Span| sources.expansion(span.source).is_some();
        let mut call = self.call;
        while let Some(expansion) = sources.expansion(call.source) {
            if call.contains(span) {
                return true;
            }
            call = expansion.call;
        }
        !span.is_some() || is_marked(span) || call.contains(span) || sources.is_library(span.source)
    }

    fn span(&mut self, span: Span) -> Span {
        if self.is_own(span) {
            return span;
        }
        Span {
            source: self.source(span.source),
            ..span
        }
    }

    /// Returns the id of a text in this expansion.
    fn source(&mut self, of: SourceId) -> SourceId {
        if let Some((known, marked)) = self.known
            && known == of
        {
            return marked;
        }
        let mut sources = self.vm.world().sources.borrow_mut();
        let text = sources.expansion(of).map_or(of, |outer| outer.source);
        let marked = sources.expand(Expansion {
            source: text,
            call: self.call,
            macro_name: self.macro_name.clone(),
            form: self.form.clone(),
        });
        self.known = Some((of, marked));
        marked
    }
}

fn with_meta_of(form: &Value, made: Value) -> Value {
    match form.meta() {
        Value::Nil => made,
        meta => made.with_meta(meta).unwrap_or(made),
    }
}
