//! Parses XML to Clojure's form: `{:tag :attrs :content}`.
//!
//! Nothing is fetched and no entity is defined: a document that declares entities is refused, so that a small text can
//! neither become a large value nor name a file. Whitespace between elements, comments and instructions are left out;
//! an element without attributes or content has nil there.

use std::collections::BTreeSet;

use flowstone_flow::json::MAX_DEPTH;
use flowstone_lang::value::Value;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

/// Returns the root element of a document.
///
/// # Errors
/// A message with the place, when the document is malformed, too deep, or declares entities.
pub fn read(text: &str) -> Result<Value, String> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().allow_unmatched_ends = false;
    let mut building = Building::default();
    loop {
        let event = reader.read_event();
        // An error of the document is where reading stopped.
        let at = match &event {
            Ok(_) => reader.buffer_position(),
            Err(_) => reader.error_position(),
        };
        let located = |what: String| format!("{what} ({})", place(text, at));
        let event = event.map_err(|error| located(error.to_string()))?;
        if matches!(event, Event::Eof) {
            return building.finish().map_err(located);
        }
        building.take(event).map_err(located)?;
    }
}

/// Converts a byte offset to line and column.
pub(super) fn place(text: &str, at: u64) -> String {
    let at = usize::try_from(at).unwrap_or(usize::MAX).min(text.len());
    let before = &text.as_bytes()[..at];
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    let column = at - memchr::memrchr(b'\n', before).map_or(0, |found| found + 1) + 1;
    format!("line {line}, column {column}")
}

/// A document under construction.
#[derive(Default)]
struct Building {
    open: Vec<Element>,
    root: Option<Value>,
}

struct Element {
    name: String,
    attrs: Value,
    content: Vec<Value>,
    /// Text that may continue.
    text: String,
}

impl Building {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Start(start) => self.start(&start)?,
            Event::Empty(start) => {
                self.start(&start)?;
                self.end();
            }
            Event::End(_) => self.end(),
            Event::Text(text) => self.text(&text.xml_content(XmlVersion::Implicit1_0))?,
            Event::CData(text) => self.text(&text.xml_content(XmlVersion::Implicit1_0))?,
            Event::GeneralRef(reference) => {
                let char = reference.resolve_char_ref().map_err(|it| it.to_string())?;
                match char {
                    Some(char) => self.text(char.encode_utf8(&mut [0; 4]))?,
                    None => {
                        let name: &str = &reference;
                        let known = quick_xml::escape::resolve_predefined_entity(name);
                        self.text(known.ok_or_else(|| unknown(name))?)?;
                    }
                }
            }
            Event::DocType(doctype) if doctype.contains("<!ENTITY") => {
                return Err("it declares entities, which is refused".to_owned());
            }
            Event::DocType(_) | Event::Decl(_) | Event::Comment(_) | Event::PI(_) | Event::Eof => {}
        }
        Ok(())
    }

    fn start(&mut self, start: &BytesStart<'_>) -> Result<(), String> {
        if self.open.len() >= MAX_DEPTH / 2 {
            return Err(format!("it is nested deeper than {} levels", MAX_DEPTH / 2));
        }
        if self.open.is_empty() && self.root.is_some() {
            return Err("it has two root elements".to_owned());
        }
        let name = checked(start.name().0)?;
        let mut attrs = Vec::new();
        let mut known = BTreeSet::new();
        // Duplicate attributes are found here: the parser takes quadratic time for that.
        for attribute in start.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| error.to_string())?;
            let key = checked(attribute.key.0)?;
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|error| error.to_string())?;
            if !known.insert(key.to_owned()) {
                return Err(format!("`{name}` has two attributes `{key}`"));
            }
            attrs.push((Value::keyword(key), Value::from(&*value)));
        }
        self.open.push(Element {
            name: name.to_owned(),
            attrs: match attrs.is_empty() {
                true => Value::Nil,
                false => Value::map(attrs),
            },
            content: Vec::new(),
            text: String::new(),
        });
        Ok(())
    }

    fn end(&mut self) {
        // The parser has checked that it is open.
        let Some(element) = self.open.pop() else {
            return;
        };
        let value = element.finish();
        match self.open.last_mut() {
            Some(parent) => {
                parent.settle();
                parent.content.push(value);
            }
            None => self.root = Some(value),
        }
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if text
                .trim_matches(['\u{feff}', ' ', '\t', '\r', '\n'])
                .is_empty() => {}
            None => return Err("there is text outside its root element".to_owned()),
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Value, String> {
        match (self.open.last(), self.root.take()) {
            (Some(open), _) => Err(format!("it ends before `{}` is closed", open.name)),
            (None, Some(root)) => Ok(root),
            (None, None) => Err("it has no element".to_owned()),
        }
    }
}

impl Element {
    /// Adds complete text to the content.
    fn settle(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.trim().is_empty() {
            self.content.push(Value::from(text));
        }
    }

    fn finish(mut self) -> Value {
        self.settle();
        Value::map([
            (Value::keyword("tag"), Value::keyword(&self.name)),
            (Value::keyword("attrs"), self.attrs),
            (
                Value::keyword("content"),
                match self.content.is_empty() {
                    true => Value::Nil,
                    false => Value::vector(self.content),
                },
            ),
        ])
    }
}

/// Returns a name, if it is one.
fn checked(name: &str) -> Result<&str, String> {
    let starts = name
        .chars()
        .next()
        .is_some_and(|it| it.is_alphabetic() || "_:".contains(it));
    let is_name = |it: char| it.is_alphanumeric() || "_:-.·".contains(it) || !it.is_ascii();
    match starts && name.chars().all(is_name) {
        true => Ok(name),
        false => Err(format!("`{name}` is not a name")),
    }
}

fn unknown(name: &str) -> String {
    format!("the entity `&{name};` is not defined")
}
