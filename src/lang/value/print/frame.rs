//! Collections that are being printed: each frame knows what to write next.

use std::rc::Rc;

use super::{Printer, Result};
use crate::value::walk::Walk;
use crate::value::{
    DelayState, Exception, Force, Keyword, Map, Object, PMap, Record, Shape, Symbol, Value,
};

/// A value that is partly written.
pub(super) enum Frame {
    /// The items of a sequence or set.
    Items {
        walk: Walk,
        written: usize,
        close: char,
    },
    /// The entries of a map.
    Entries {
        entries: Entries,
        written: usize,
        /// The value that belongs to the key written last.
        pending: Option<Value>,
        /// Whether the keys' namespace is written before the brace.
        lifted: bool,
    },
    /// Text and values in order.
    Parts(std::vec::IntoIter<Part>),
}

/// See [`Frame::Parts`].
pub(super) enum Part {
    Text(String),
    Value(Value),
    /// A value whose metadata is already written.
    Bare(Value),
}

/// A walk over entries that owns its collection.
pub(super) enum Entries {
    Small { map: Rc<Map>, at: usize },
    Listed(std::vec::IntoIter<(Value, Value)>),
}

impl Entries {
    fn of(entries: &PMap) -> Entries {
        let listed: Vec<_> = entries
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        Entries::Listed(listed.into_iter())
    }

    fn next(&mut self) -> Option<(Value, Value)> {
        match self {
            Entries::Small { map, at } => {
                let entry = map.entries().array_entry(*at).cloned();
                *at += 1;
                entry
            }
            Entries::Listed(entries) => entries.next(),
        }
    }
}

impl Frame {
    /// Tells whether the frame counts towards `*print-level*`.
    pub(super) fn is_level(&self) -> bool {
        !matches!(self, Frame::Parts(_))
    }

    /// Continues to the next value that has to be opened; returns `None` when everything is written.
    pub(super) fn advance(
        &mut self,
        printer: &mut Printer<'_>,
        force: &mut dyn Force,
    ) -> Result<Option<Value>> {
        match self {
            Frame::Items {
                walk,
                written,
                close,
            } => loop {
                printer.tick(force)?;
                let is_cut = !force.computes() && walk.is_uncomputed();
                if is_cut || printer.options.length == Some(*written) && !is_over(walk, force)? {
                    if *written > 0 {
                        printer.out.push(' ');
                    }
                    printer.out.push_str("...");
                    printer.out.push(*close);
                    return Ok(None);
                }
                let Some(item) = walk.next(force)? else {
                    printer.out.push(*close);
                    return Ok(None);
                };
                if *written > 0 {
                    printer.out.push(' ');
                }
                *written += 1;
                if printer.options.extended
                    || !super::atom::write(printer.out, &item, printer.options)
                {
                    return Ok(Some(item));
                }
            },
            Frame::Entries { .. } => self.advance_entries(printer, force),
            Frame::Parts(parts) => {
                for part in parts.by_ref() {
                    match part {
                        Part::Text(text) => printer.out.push_str(&text),
                        Part::Value(value) => return Ok(Some(value)),
                        Part::Bare(value) => {
                            // The value's own frame replaces this one, because the value is the last part.
                            if let Some(symbol) = value.as_symbol() {
                                symbol.write_to(printer.out);
                            } else if !super::atom::write(printer.out, &value, printer.options) {
                                let frame = open(printer, &value);
                                printer.open.push(frame);
                            }
                            return Ok(None);
                        }
                    }
                }
                Ok(None)
            }
        }
    }

    fn advance_entries(
        &mut self,
        printer: &mut Printer<'_>,
        force: &mut dyn Force,
    ) -> Result<Option<Value>> {
        let Frame::Entries {
            entries,
            written,
            pending,
            lifted,
        } = self
        else {
            return Ok(None);
        };
        loop {
            printer.tick(force)?;
            if let Some(value) = pending.take() {
                printer.out.push(' ');
                if !printer.options.extended
                    && super::atom::write(printer.out, &value, printer.options)
                {
                    continue;
                }
                return Ok(Some(value));
            }
            let Some((key, value)) = entries.next() else {
                printer.out.push('}');
                return Ok(None);
            };
            if *written > 0 {
                printer.out.push_str(", ");
            }
            if printer.options.length == Some(*written) {
                printer.out.push_str("...}");
                return Ok(None);
            }
            *written += 1;
            *pending = Some(value);
            if *lifted {
                write_without_namespace(printer.out, &key);
            } else if printer.options.extended
                || !super::atom::write(printer.out, &key, printer.options)
            {
                return Ok(Some(key));
            }
        }
    }
}

/// Tells whether a walk is at its end, by advancing a copy of it.
fn is_over(walk: &Walk, force: &mut dyn Force) -> Result<bool> {
    Ok(walk.clone().next(force)?.is_none())
}

fn write_without_namespace(out: &mut String, key: &Value) {
    match key {
        Value::Keyword(keyword) => {
            out.push(':');
            out.push_str(&keyword.name());
        }
        _ => {
            if let Some(symbol) = key.as_symbol() {
                out.push_str(&symbol.name());
            }
        }
    }
}

/// Writes the opening of an object of a program's type that is a collection.
pub(super) fn open_own(
    printer: &mut Printer<'_>,
    force: &mut dyn Force,
    shape: Shape,
    own: &Value,
) -> Result<Frame> {
    let (open, close) = match shape {
        Shape::Map => {
            let mut entries = Vec::new();
            let mut walk = Walk::over(own).unwrap_or(Walk::Seq(Value::Nil));
            while let Some(entry) = walk.next(force)? {
                if let Value::Vector(entry) = &entry
                    && let (Some(key), Some(value)) = (entry.get(0), entry.get(1))
                {
                    entries.push((key.clone(), value.clone()));
                }
            }
            printer.out.push('{');
            return Ok(Frame::Entries {
                entries: Entries::Listed(entries.into_iter()),
                written: 0,
                pending: None,
                lifted: false,
            });
        }
        Shape::Set => ("#{", '}'),
        Shape::Vector => ("[", ']'),
        Shape::Seq => ("(", ')'),
    };
    printer.out.push_str(open);
    Ok(over(own, close))
}

/// Writes the opening of a value that holds others.
pub(super) fn open(printer: &mut Printer<'_>, value: &Value) -> Frame {
    match value {
        Value::Map(map) => open_map(printer, map),
        Value::Record(record) => open_record(printer, record),
        Value::Set(set) => {
            printer.out.push_str("#{");
            items(set.iter().cloned().collect::<Vec<_>>().into(), '}')
        }
        Value::Vector(_) => {
            printer.out.push('[');
            over(value, ']')
        }
        Value::Exception(exception) => parts(exception_parts(exception)),
        Value::Atom(atom) => {
            let value = atom.value.borrow().clone();
            parts(reference("clojure.lang.Atom", "ready", value))
        }
        Value::Object(object) => open_object(printer, value, object),
        _ => {
            printer.out.push('(');
            over(value, ')')
        }
    }
}

fn over(value: &Value, close: char) -> Frame {
    Frame::Items {
        walk: Walk::over(value).unwrap_or(Walk::Seq(Value::Nil)),
        written: 0,
        close,
    }
}

fn items(items: Rc<[Value]>, close: char) -> Frame {
    Frame::Items {
        walk: Walk::Chunk {
            items,
            at: 0,
            rest: Value::Nil,
        },
        written: 0,
        close,
    }
}

fn parts(parts: Vec<Part>) -> Frame {
    Frame::Parts(parts.into_iter())
}

/// Writes `^meta` before a value.
pub(super) fn with_meta(printer: &mut Printer<'_>, value: &Value) -> Option<Frame> {
    let meta = value.meta();
    let tag = match &meta {
        Value::Map(map) if map.len() == 1 => meta.get("tag").cloned(),
        _ => None,
    };
    printer.out.push('^');
    Some(parts(vec![
        Part::Value(tag.unwrap_or(meta)),
        Part::Text(" ".to_owned()),
        Part::Bare(value.clone()),
    ]))
}

fn open_map(printer: &mut Printer<'_>, map: &Rc<Map>) -> Frame {
    let namespace = if printer.options.namespace_maps {
        common_namespace(map.entries())
    } else {
        None
    };
    if let Some(namespace) = &namespace {
        printer.out.push_str("#:");
        printer.out.push_str(namespace);
    }
    printer.out.push('{');
    let entries = if map.entries().array_entry(0).is_some() || map.is_empty() {
        Entries::Small {
            map: map.clone(),
            at: 0,
        }
    } else {
        Entries::of(map.entries())
    };
    Frame::Entries {
        entries,
        written: 0,
        pending: None,
        lifted: namespace.is_some(),
    }
}

/// Returns the namespace that all keys share, if all keys are keywords or symbols.
fn common_namespace(entries: &PMap) -> Option<Rc<str>> {
    let of_key = |key: &Value| match key {
        Value::Keyword(keyword) => keyword.namespace(),
        _ => key.as_symbol().and_then(Symbol::namespace),
    };
    let mut namespaces = entries.iter().map(|(key, _)| of_key(key));
    let first = namespaces.next()??;
    namespaces
        .all(|namespace| namespace.as_ref() == Some(&first))
        .then_some(first)
}

fn open_record(printer: &mut Printer<'_>, record: &Record) -> Frame {
    printer.out.push('#');
    super::atom::write_class_name(printer.out, record.record_type.name);
    printer.out.push('{');
    Frame::Entries {
        entries: Entries::of(&record.fields),
        written: 0,
        pending: None,
        lifted: false,
    }
}

fn open_object(printer: &mut Printer<'_>, value: &Value, object: &Object) -> Frame {
    match object {
        Object::Queue { .. } => {
            printer.out.push_str("#queue [");
            over(value, ']')
        }
        Object::Tagged { tag, form } => parts(vec![
            Part::Text(format!("#{tag} ")),
            Part::Value(form.clone()),
        ]),
        Object::Conditional { form, splicing } => parts(vec![
            Part::Text(if *splicing { "#?@" } else { "#?" }.to_owned()),
            Part::Value(form.clone()),
        ]),
        Object::Volatile(cell) => {
            let value = cell.borrow().clone();
            parts(reference("clojure.lang.Volatile", "ready", value))
        }
        Object::Reduced(value) => parts(reference("clojure.lang.Reduced", "ready", value.clone())),
        Object::Delay(delay) => {
            let (status, value) = match &*delay.state.borrow() {
                DelayState::Done(value) => ("ready", value.clone()),
                DelayState::Failed(exception) => ("failed", Value::Exception(exception.clone())),
                DelayState::Pending(_) | DelayState::Running => ("pending", Value::Nil),
            };
            parts(reference("clojure.lang.Delay", status, value))
        }
        Object::Instance(instance) => {
            let mut text = "#object[".to_owned();
            super::atom::write_class_name(&mut text, instance.instance_type.name);
            text.push(']');
            parts(vec![Part::Text(text)])
        }
        _ => parts(vec![Part::Text(format!("#object[{}]", object.kind()))]),
    }
}

fn reference(class: &str, status: &str, value: Value) -> Vec<Part> {
    vec![
        Part::Text(format!("#object[{class} {{:status :{status}, :val ")),
        Part::Value(value),
        Part::Text("}]".to_owned()),
    ]
}

fn exception_parts(exception: &Rc<Exception>) -> Vec<Part> {
    // Outermost first, as in `Throwable->map`.
    let mut via = vec![exception.clone()];
    while let Some(last) = via.last()
        && let Value::Exception(cause) = &last.cause
    {
        let cause = cause.clone();
        via.push(cause);
    }
    let root = via.last().unwrap_or(exception);
    let text = |text: &str| Part::Text(text.to_owned());
    let message = |exception: &Exception| match &exception.message {
        Some(message) => Value::text(&**message),
        None => Value::Nil,
    };
    let mut all = vec![text("#error {\n :cause "), Part::Value(message(root))];
    if !root.data.is_nil() {
        all.extend([text("\n :data "), Part::Value(root.data.clone())]);
    }
    all.push(text("\n :via\n ["));
    for (idx, exception) in via.iter().enumerate() {
        let indent = if idx == 0 { "" } else { "\n  " };
        let class = exception.class.0.full_name;
        all.push(Part::Text(format!("{indent}{{:type {class}\n   :message ")));
        all.push(Part::Value(message(exception)));
        if !exception.data.is_nil() {
            all.extend([text("\n   :data "), Part::Value(exception.data.clone())]);
        }
        if !exception.code.is_empty() {
            all.extend([
                text("\n   :code "),
                Part::Value(Value::Keyword(Keyword::new(exception.code))),
            ]);
        }
        all.push(text("}"));
    }
    all.push(text("]}"));
    all
}
