//! Forms: the fields in which a person enters an answer that fits a schema, and the value of the entered text.
//!
//! A form knows neither pages nor requests. The complete answer is judged where it is accepted; problems that concern a
//! single field are reported here, beside that field.

use std::collections::BTreeMap;

use flowstone_lang::reader::{NoContext, ReadOptions, Reader};
use flowstone_lang::value::{Sources, Value};

use crate::json::{from_json, name_text, read_strictly};
use crate::names::name_of;
use crate::schema::{Entry, Kind, Notes, Range, Schema, Size, decode, explain, validate};
use crate::text::printed;

/// Maximum depth of nested schemas that become fields.
const MAX_DEPTH: usize = 16;
/// A text that may be longer than this gets a field of several lines.
const LINE: usize = 200;
/// The name of the field for an answer that is not a map.
pub const WHOLE: &str = "value";
/// The entry of an answer that a person chooses instead of typing.
const ACTION: &str = "action";
/// Names in a submitted form that have a meaning of their own; the field of an entry with such a name is `answer.` and
/// the name.
pub const RESERVED: &[&str] = &["access-token", ACTION, "digest", "token"];

/// The fields of a form for an answer.
#[derive(Clone, Default)]
pub struct Form {
    pub fields: Vec<FormField>,
    /// Tells whether the one field holds the answer itself instead of an entry of it.
    is_whole: bool,
}

/// A field of a form.
#[derive(Clone)]
pub struct FormField {
    /// The name in a submitted form.
    pub name: String,
    pub label: String,
    pub description: Option<String>,
    pub kind: FieldKind,
    pub is_required: bool,
    /// The initial content of the field.
    pub initial: String,
    key: Value,
    schema: Schema,
}

/// The type of input that a field takes.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// A choice of values, each with its text.
    Choice(Vec<(String, Value)>),
    /// A value as EDN or JSON.
    Data,
    /// A checkbox: yes or no.
    Flag,
    /// Text, in one line or several.
    Text {
        is_long: bool,
        size: Size,
    },
    Number {
        is_whole: bool,
        range: Range,
    },
}

/// A problem with a field: its name, and the reason.
pub type FieldProblem = (String, String);

impl Form {
    /// Returns the fields for a schema. With an action, alternatives that depend on the action are limited to those for
    /// it; without one, all are included. `is_choice`: the answer is a map with an action.
    pub fn of(schema: Option<&Schema>, action: Option<&str>, is_choice: bool) -> Form {
        let mut form = Form::default();
        if let Some(schema) = schema {
            form.collect(schema, action, true, 0);
        }
        let is_map = schema.is_some_and(|schema| is_map(schema, 0));
        if form.fields.is_empty() && !is_choice && !is_map {
            let any = || Schema::from(Kind::Any);
            let schema = schema.cloned().unwrap_or_else(any);
            let is_required = !validate(&schema, &Value::Nil).is_empty();
            let entry = field(WHOLE, Value::Nil, &schema, &schema.notes, is_required);
            form.fields.push(FormField {
                label: "Answer".to_owned(),
                ..entry
            });
            form.is_whole = true;
        }
        form
    }

    /// Returns the submitted answer; an action is not part of it.
    ///
    /// # Errors
    /// When a required field is empty, or a field holds something other than its schema asks for.
    pub fn read(&self, typed: &BTreeMap<String, String>) -> Result<Value, Vec<FieldProblem>> {
        let (mut entries, mut problems) = (Vec::new(), Vec::new());
        for field in &self.fields {
            let text = typed.get(&field.name).map_or("", String::as_str);
            match field.read(text) {
                Ok(Some(value)) => entries.push((field.key.clone(), value)),
                Ok(None) => {}
                Err(problem) => problems.push((field.name.clone(), problem)),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(match self.is_whole {
            true => entries
                .into_iter()
                .next()
                .map_or(Value::Nil, |(_, value)| value),
            false => Value::map(entries),
        })
    }

    /// Adds a field for any value, as the entry `:value` of the answer.
    pub fn add_value(&mut self, initial: Option<&Value>, is_required: bool) {
        let schema = Schema::from(Kind::Any);
        let key = Value::keyword(WHOLE);
        let plain = field(WHOLE, key, &schema, &schema.notes, is_required);
        self.fields.push(FormField {
            kind: FieldKind::Data,
            initial: initial.map(printed).unwrap_or_default(),
            ..plain
        });
    }

    /// Tells whether the answer is the value of its one field.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    fn collect(&mut self, schema: &Schema, action: Option<&str>, is_needed: bool, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let depth = depth + 1;
        match &schema.kind {
            Kind::Map { entries, .. } => {
                for entry in entries {
                    self.add(entry, is_needed);
                }
            }
            Kind::And(schemas) => {
                for schema in schemas {
                    self.collect(schema, action, is_needed, depth);
                }
            }
            Kind::Or(schemas) => {
                for schema in schemas {
                    self.collect(schema, action, false, depth);
                }
            }
            Kind::Multi { dispatch, cases } if name_of(dispatch).as_deref() == Some(ACTION) => {
                for (case, schema) in cases {
                    let is_chosen = action.is_none_or(|it| name_of(case).as_deref() == Some(it));
                    if is_chosen {
                        self.collect(schema, action, is_needed && action.is_some(), depth);
                    }
                }
            }
            Kind::Maybe(inner) => self.collect(inner, action, false, depth),
            Kind::Reference { name, registry } => {
                let target = registry.borrow().get(name).cloned();
                if let Some(target) = target {
                    self.collect(&target, action, is_needed, depth);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, entry: &Entry, is_needed: bool) {
        let Some(name) = name_text(&entry.key).filter(|name| name != ACTION) else {
            return;
        };
        let is_required = is_needed && !entry.optional;
        if let Some(known) = self.fields.iter_mut().find(|it| it.key == entry.key) {
            known.is_required |= is_required;
            return;
        }
        let notes = &entry.notes;
        self.fields.push(field(
            &name,
            entry.key.clone(),
            &entry.schema,
            notes,
            is_required,
        ));
    }
}

fn is_map(schema: &Schema, depth: usize) -> bool {
    let inner = |schema: &Schema| depth < MAX_DEPTH && is_map(schema, depth + 1);
    match &schema.kind {
        Kind::Map { .. } | Kind::Multi { .. } => true,
        Kind::And(schemas) => schemas.iter().any(inner),
        Kind::Or(schemas) => !schemas.is_empty() && schemas.iter().all(inner),
        _ => false,
    }
}

fn field(name: &str, key: Value, schema: &Schema, notes: &Notes, is_required: bool) -> FormField {
    let (kind, is_optional) = kind_of(schema, 0);
    let own = &schema.notes;
    let default = notes.default.as_ref().or(own.default.as_ref());
    let text = |value: &Value| match (&kind, value.as_str()) {
        (FieldKind::Text { .. }, Some(text)) => text.to_string(),
        (FieldKind::Flag, _) => match value {
            Value::Bool(true) => "on".to_owned(),
            _ => String::new(),
        },
        (FieldKind::Choice(_), _) => choice_text(value),
        _ => printed(value),
    };
    FormField {
        name: match RESERVED.contains(&name) {
            true => format!("answer.{name}"),
            false => name.to_owned(),
        },
        label: notes
            .title
            .clone()
            .or_else(|| own.title.clone())
            .unwrap_or_else(|| label_of(name)),
        description: notes
            .description
            .clone()
            .or_else(|| own.description.clone()),
        is_required: is_required && !is_optional && default.is_none(),
        initial: default.map(text).unwrap_or_default(),
        kind,
        key,
        schema: schema.clone(),
    }
}

/// Returns a name as a label, such as `Due date` for `due-date`.
fn label_of(name: &str) -> String {
    let words = name.replace(['-', '_'], " ");
    let mut chars = words.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => words,
    }
}

/// Returns the type of input for a schema, and whether the field may be left empty.
fn kind_of(schema: &Schema, depth: usize) -> (FieldKind, bool) {
    let text = |is_long, size| FieldKind::Text { is_long, size };
    let kind = match &schema.kind {
        Kind::Boolean => FieldKind::Flag,
        Kind::Double { range } | Kind::Number { range } => FieldKind::Number {
            is_whole: false,
            range: *range,
        },
        Kind::Int { range } => FieldKind::Number {
            is_whole: true,
            range: *range,
        },
        Kind::Enum(values) => choices(values),
        Kind::Equals(value) => choices(std::slice::from_ref(value)),
        Kind::String { size } => {
            let is_long = size.max.is_some_and(|max| max > LINE)
                || size.min.is_some_and(|min| min > LINE)
                || is_textarea(schema);
            text(is_long, *size)
        }
        Kind::Any
        | Kind::Inst
        | Kind::Keyword
        | Kind::Regex { .. }
        | Kind::Some
        | Kind::Symbol
        | Kind::Uuid => text(false, Size::default()),
        Kind::Maybe(inner) if depth < MAX_DEPTH => {
            return (kind_of(inner, depth + 1).0, true);
        }
        Kind::Reference { name, registry } if depth < MAX_DEPTH => {
            match registry.borrow().get(name) {
                Some(target) => return kind_of(target, depth + 1),
                None => FieldKind::Data,
            }
        }
        Kind::And(schemas) if depth < MAX_DEPTH => match schemas.first() {
            Some(first) => return kind_of(first, depth + 1),
            None => FieldKind::Data,
        },
        Kind::And(_)
        | Kind::AnyMap
        | Kind::List { .. }
        | Kind::Map { .. }
        | Kind::MapOf { .. }
        | Kind::Maybe(_)
        | Kind::Multi { .. }
        | Kind::Nil
        | Kind::Not(_)
        | Kind::Or(_)
        | Kind::Predicate(_)
        | Kind::Reference { .. }
        | Kind::Tuple(_) => FieldKind::Data,
    };
    (kind, false)
}

/// Tells whether the author asks for several lines: `{:json-schema {:format "textarea"}}`.
fn is_textarea(schema: &Schema) -> bool {
    let own = schema.notes.json_schema.as_ref();
    let format = own.and_then(|own| own.get("format")).and_then(name_of);
    format.as_deref() == Some("textarea")
}

fn choices(values: &[Value]) -> FieldKind {
    let values = values.iter();
    FieldKind::Choice(
        values
            .map(|value| (choice_text(value), value.clone()))
            .collect(),
    )
}

fn choice_text(value: &Value) -> String {
    name_text(value).unwrap_or_else(|| printed(value))
}

impl FormField {
    /// Returns the value of a text; `None` if the field is optional and was left empty.
    fn read(&self, text: &str) -> Result<Option<Value>, String> {
        let text = text.replace("\r\n", "\n");
        let trimmed = text.trim();
        if trimmed.is_empty() && self.kind != FieldKind::Flag {
            return match self.is_required {
                true => Err("fill in this field".to_owned()),
                false => Ok(None),
            };
        }
        let value = match &self.kind {
            FieldKind::Choice(known) => {
                let found = known.iter().find(|(name, _)| name == trimmed);
                let found = found.map(|(_, value)| value.clone());
                found.ok_or_else(|| "choose an entry of the list".to_owned())?
            }
            FieldKind::Data => read_data(trimmed)?,
            FieldKind::Flag => Value::Bool(!matches!(trimmed, "" | "false" | "off" | "no")),
            FieldKind::Number { is_whole: true, .. } => match trimmed.parse() {
                Ok(number) => Value::Int(number),
                Err(_) => return Err(format!("expected a whole number, got `{trimmed}`")),
            },
            FieldKind::Number { .. } => number(trimmed)?,
            FieldKind::Text { is_long: true, .. } => Value::from(text.as_str()),
            FieldKind::Text { .. } => Value::from(trimmed),
        };
        let value = decode(&self.schema, value);
        let problems = validate(&self.schema, &value);
        match problems.is_empty() {
            true => Ok(Some(value)),
            false => Err(explain(&problems)),
        }
    }
}

fn number(text: &str) -> Result<Value, String> {
    let float = || text.parse::<f64>().ok().filter(|float| float.is_finite());
    let whole = text.parse::<i64>().map(Value::Int).ok();
    let found = whole.or_else(|| float().map(Value::Float));
    found.ok_or_else(|| format!("expected a number, got `{text}`"))
}

/// Reads one value as JSON, or else as EDN.
///
/// # Errors
/// When the text is neither.
pub fn read_data(text: &str) -> Result<Value, String> {
    if let Ok(json) = read_strictly(text) {
        return Ok(from_json(&json));
    }
    let mut sources = Sources::default();
    let source = sources.add("form", text);
    let mut reader = Reader::new(text, ReadOptions::data(source));
    let mut cx = NoContext::default();
    let first = reader.next(&mut cx).and_then(|first| {
        let second = reader.next(&mut cx)?;
        Ok((first, second))
    });
    match first {
        Ok((Some(value), None)) => Ok(value),
        Ok(_) | Err(_) => {
            Err("expected one value as EDN or JSON, such as {:name \"a\"}".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;
    use crate::schema::parse;

    fn schema(text: &str) -> Schema {
        parse(&codec::decode(text).expect("EDN")).expect("a schema")
    }

    fn shown(form: &Form) -> String {
        let fields = form.fields.iter().map(|field| {
            let kind = match &field.kind {
                FieldKind::Choice(known) => {
                    let names: Vec<&str> = known.iter().map(|(name, _)| &**name).collect();
                    names.join("|")
                }
                FieldKind::Data => "data".to_owned(),
                FieldKind::Flag => "flag".to_owned(),
                FieldKind::Text { is_long: true, .. } => "lines".to_owned(),
                FieldKind::Text { .. } => "text".to_owned(),
                FieldKind::Number { is_whole: true, .. } => "int".to_owned(),
                FieldKind::Number { .. } => "number".to_owned(),
            };
            let mark = if field.is_required { "!" } else { "" };
            format!("{}{mark}:{kind}", field.name)
        });
        fields.collect::<Vec<_>>().join(" ")
    }

    fn read(form: &Form, typed: &[(&str, &str)]) -> String {
        let typed = typed
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        match form.read(&typed.collect()) {
            Ok(value) => codec::encode(&value).expect("data"),
            Err(problems) => {
                let words = problems.iter().map(|(name, why)| format!("{name}: {why}"));
                words.collect::<Vec<_>>().join("; ")
            }
        }
    }

    #[test]
    fn each_entry_of_a_map_is_a_field() {
        let it = schema(
            "[:and [:map [:action [:enum :approve :reject]]]
              [:map [:amount :int] [:rate {:optional true} :double] [:kind [:enum :a \"b\" 3]] [:sure :boolean]
                    [:note {:optional true} [:string {:max 500}]] [:to [:maybe :keyword]] [:rows [:vector :int]]
                    [:id :uuid]]]",
        );
        let form = Form::of(Some(&it), None, true);
        assert_eq!(
            shown(&form),
            "amount!:int rate:number kind!:a|b|3 sure!:flag note:lines to:text rows!:data id!:text"
        );
        let id = "6fe8a7dc-1d2f-4a3b-9c4d-5e6f7a8b9c0d";
        let typed = [
            ("amount", " 12 "),
            ("kind", "a"),
            ("sure", "on"),
            ("note", "a\r\nb"),
            ("to", "ops"),
            ("rows", "[1, 2]"),
            ("id", id),
            ("action", "approve"),
        ];
        assert_eq!(
            read(&form, &typed),
            format!(
                "{{:amount 12, :kind :a, :sure true, :note \"a\\nb\", :to :ops, :rows [1 2], :id #uuid \"{id}\"}}"
            )
            .replace(',', "")
        );
        let wrong = [("amount", "1.5"), ("kind", "c"), ("rows", "[1"), ("id", id)];
        assert_eq!(
            read(&form, &wrong),
            "amount: expected a whole number, got `1.5`; kind: choose an entry of the list; \
             rows: expected one value as EDN or JSON, such as {:name \"a\"}"
        );
    }

    #[test]
    fn alternatives_by_action_are_those_of_the_action() {
        let it = schema(
            "[:multi {:dispatch :action}
              [:approve [:map [:amount :int]]] [:reject [:map [:reason :string]]]]",
        );
        assert_eq!(
            shown(&Form::of(Some(&it), None, true)),
            "amount:int reason:text"
        );
        let approve = Form::of(Some(&it), Some("approve"), true);
        assert_eq!(shown(&approve), "amount!:int");
        assert_eq!(read(&approve, &[]), "amount: fill in this field");
    }

    #[test]
    fn an_answer_that_is_not_a_map_is_one_field() {
        let it = schema("[:int {:min 1}]");
        let form = Form::of(Some(&it), None, false);
        assert_eq!(shown(&form), "value!:int");
        assert_eq!(read(&form, &[("value", "7")]), "7");
        assert!(read(&form, &[("value", "0")]).starts_with("value: should be"));
        let free = Form::of(None, None, false);
        assert_eq!(shown(&free), "value:text");
        assert_eq!(read(&free, &[]), "nil");
        assert!(Form::of(None, None, true).fields.is_empty());
        let required = schema("{:required [:amount]}");
        assert_eq!(
            shown(&Form::of(Some(&required), None, false)),
            "amount!:text"
        );
    }
}
