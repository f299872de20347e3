//! Parses YAML with the core schema of YAML 1.2: maps with keywords for string keys, vectors, scalars.
//!
//! An alias is the value that it names. The expanded size of all aliases is limited, so that a small text cannot become
//! a large value. Application tags are ignored; merge keys (`<<`) are supported.

use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use flowstone_flow::json::MAX_DEPTH;
use flowstone_lang::reader::read_data;
use flowstone_lang::value::{Object, Value};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};

/// Maximum expanded size of aliases, in nodes and bytes together, or ten times the text if that is more.
const REPEATED: usize = 1 << 20;

/// Returns the value of a text with one document; nil for an empty one.
///
/// # Errors
/// A message with the place, when the text is malformed, too deep, grows too large by its aliases, or has several
/// documents.
pub fn read(text: &str) -> Result<Value, String> {
    let mut building = Building {
        left: REPEATED.max(text.len().saturating_mul(10)),
        ..Building::default()
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| located(error.info(), error.marker()))?;
        let taken = building.take(event);
        taken.map_err(|what| located(&what, &span.start))?;
    }
    Ok(building.root.map_or(Value::Nil, |node| node.value))
}

fn located(what: &str, at: &Marker) -> String {
    format!("{what} (line {}, column {})", at.line(), at.col() + 1)
}

/// A value and its size.
#[derive(Clone)]
struct Node {
    value: Value,
    weight: usize,
    /// Whether it is a plain `<<`, which merges if it is a key.
    is_merge: bool,
}

impl Node {
    fn of(value: Value, weight: usize) -> Node {
        Node {
            value,
            weight,
            is_merge: false,
        }
    }
}

#[derive(Default)]
struct Building {
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    root: Option<Node>,
    documents: usize,
    /// The rest of the allowed size of aliases.
    left: usize,
}

/// A collection under construction.
struct Open {
    anchor: usize,
    weight: usize,
    kind: Kind,
}

enum Kind {
    List(Vec<Value>),
    Map {
        entries: Vec<(Value, Value)>,
        known: HashSet<Value>,
        key: Option<Node>,
        merged: Vec<Value>,
    },
}

impl Building {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                match self.documents {
                    1 => Ok(()),
                    _ => Err("it holds several documents".to_owned()),
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let node = scalar(&text, style, tag.as_deref())?;
                self.add(anchor, node)
            }
            Event::Alias(anchor) => {
                // A collection that contains itself is incomplete when it is named.
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    return Err("an alias names what is not complete".to_owned());
                };
                self.left = self
                    .left
                    .checked_sub(node.weight)
                    .ok_or("its aliases come to too much")?;
                self.add(0, node)
            }
            Event::SequenceStart(anchor, _) => self.open(anchor, Kind::List(Vec::new())),
            Event::MappingStart(anchor, _) => self.open(
                anchor,
                Kind::Map {
                    entries: Vec::new(),
                    known: HashSet::new(),
                    key: None,
                    merged: Vec::new(),
                },
            ),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => {
                    let anchor = open.anchor;
                    self.add(anchor, open.finish())
                }
                None => Ok(()),
            },
        }
    }

    fn open(&mut self, anchor: usize, kind: Kind) -> Result<(), String> {
        if self.open.len() >= MAX_DEPTH {
            return Err(format!("it is nested deeper than {MAX_DEPTH} levels"));
        }
        self.open.push(Open {
            anchor,
            weight: 1,
            kind,
        });
        Ok(())
    }

    fn add(&mut self, anchor: usize, node: Node) -> Result<(), String> {
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            Some(open) => open.add(node),
            None => {
                self.root = Some(node);
                Ok(())
            }
        }
    }
}

impl Open {
    fn add(&mut self, node: Node) -> Result<(), String> {
        self.weight = self.weight.saturating_add(node.weight);
        match &mut self.kind {
            Kind::List(items) => items.push(node.value),
            Kind::Map {
                entries,
                known,
                key,
                merged,
            } => match key.take() {
                None => *key = Some(node),
                Some(key) if key.is_merge => merge(merged, &node.value)?,
                Some(key) => {
                    let key = match &key.value {
                        Value::Text(text) => Value::keyword(text.as_str()),
                        other => other.clone(),
                    };
                    if !known.insert(key.clone()) {
                        return Err("a map has the same key twice".to_owned());
                    }
                    entries.push((key, node.value));
                }
            },
        }
        Ok(())
    }

    fn finish(self) -> Node {
        let value = match self.kind {
            Kind::List(items) => Value::vector(items),
            Kind::Map {
                entries, merged, ..
            } => {
                // Earlier maps override later ones, and own entries override all.
                let merged = merged.iter().rev().filter_map(Value::as_map);
                let below = merged
                    .flat_map(|map| map.iter().map(|(key, value)| (key.clone(), value.clone())));
                Value::map(below.collect::<Vec<_>>().into_iter().chain(entries))
            }
        };
        Node::of(value, self.weight)
    }
}

/// Reads the value of `<<`: a map, or several.
fn merge(merged: &mut Vec<Value>, value: &Value) -> Result<(), String> {
    match value {
        Value::Map(_) => merged.push(value.clone()),
        Value::Vector(items) if items.iter().all(|item| item.as_map().is_some()) => {
            merged.extend(items.iter().cloned());
        }
        _ => return Err("`<<` takes maps".to_owned()),
    }
    Ok(())
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Node, String> {
    let weight = 1 + text.len();
    let core = tag.filter(|tag| tag.is_yaml_core_schema());
    let value = match core.map(|tag| tag.suffix.as_str()) {
        Some("str") => Some(Value::from(text)),
        Some("binary") => {
            let packed: String = text.split_whitespace().collect();
            let bytes = base64::engine::general_purpose::STANDARD.decode(packed);
            bytes.ok().map(|bytes| Object::Bytes(bytes.into()).into())
        }
        Some("int") => plain(text).filter(|it| matches!(it, Value::Int(_) | Value::BigInt(_))),
        Some("float") => match plain(text) {
            Some(Value::Int(int)) => Some(Value::Float(int as f64)),
            other => other.filter(|it| matches!(it, Value::Float(_))),
        },
        Some("bool") => plain(text).filter(|it| matches!(it, Value::Bool(_))),
        Some("null") => Some(Value::Nil),
        // Other tags, such as those of an application, are ignored.
        _ if tag.is_none() && style == ScalarStyle::Plain => {
            Some(plain(text).unwrap_or_else(|| Value::from(text)))
        }
        _ => Some(Value::from(text)),
    };
    let value = value.ok_or_else(|| format!("`{text}` is not what its tag says"))?;
    Ok(Node {
        is_merge: tag.is_none() && style == ScalarStyle::Plain && text == "<<",
        ..Node::of(value, weight)
    })
}

/// Returns the value of a plain scalar, if it is not text.
fn plain(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Nil),
        "true" | "True" | "TRUE" => return Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Value::Bool(false)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Some(Value::Float(f64::INFINITY));
        }
        "-.inf" | "-.Inf" | "-.INF" => return Some(Value::Float(f64::NEG_INFINITY)),
        ".nan" | ".NaN" | ".NAN" => return Some(Value::Float(f64::NAN)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits =
        |text: &str, radix: u32| !text.is_empty() && text.chars().all(|it| it.is_digit(radix));
    if digits(unsigned, 10) {
        let int = text.parse::<i64>().ok().map(Value::Int);
        let is_negative = text.starts_with('-');
        let bare = unsigned.trim_start_matches('0');
        return int.or_else(|| {
            let text = format!("{}{bare}N", if is_negative { "-" } else { "" });
            read_data(&text).ok()
        });
    }
    for (start, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(rest) = text.strip_prefix(start)
            && digits(rest, radix)
        {
            return i64::from_str_radix(rest, radix).ok().map(Value::Int);
        }
    }
    let is_float = unsigned.starts_with(|it: char| it.is_ascii_digit() || it == '.')
        && unsigned.contains(|it: char| it.is_ascii_digit())
        && unsigned
            .chars()
            .all(|it| it.is_ascii_digit() || ".eE+-".contains(it));
    is_float
        .then(|| text.parse().ok().map(Value::Float))
        .flatten()
}
