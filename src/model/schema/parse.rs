//! Parser from forms to schemas.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use flowstone_lang::value::{Map, Object, Value, compile_regex};

use super::{Entry, Kind, ListForm, Notes, Range, Registry, Schema, SchemaError, Size};
use crate::json::{items, name_text, number_float};
use crate::text::{brief, nearest};

pub(super) const MAX_DEPTH: usize = 64;

/// Reads a Malli schema: `:string`, `[:map [:id :int]]`, `string?`, or `{:required [:id]}`.
///
/// # Errors
/// When the form is not a schema, or uses a part of Malli that needs functions.
pub fn parse(form: &Value) -> Result<Schema, SchemaError> {
    Parser::new(false).parse(form)
}

/// Reads a Malli schema that may contain `[:fn f]` and functions, for [`super::validate_with`].
///
/// # Errors
/// As [`parse`].
pub fn parse_with_functions(form: &Value) -> Result<Schema, SchemaError> {
    Parser::new(true).parse(form)
}

struct Parser {
    registry: Registry,
    functions: bool,
}

/// The parts of a schema vector.
struct Parts<'a> {
    form: &'a Value,
    name: String,
    properties: Option<Rc<Map>>,
    children: Vec<Value>,
    depth: usize,
}

const SIZED: &[&str] = &["min", "max"];
const NOTES: &[&str] = &["title", "description", "default", "json-schema"];

/// All type names, for suggestions. Sorted.
const TYPES: &[&str] = &[
    "<",
    "<=",
    "=",
    ">",
    ">=",
    "and",
    "any",
    "boolean",
    "double",
    "enum",
    "float",
    "fn",
    "inst",
    "int",
    "keyword",
    "map",
    "map-of",
    "maybe",
    "multi",
    "nil",
    "not",
    "number",
    "or",
    "orn",
    "qualified-keyword",
    "re",
    "ref",
    "schema",
    "sequential",
    "set",
    "some",
    "string",
    "symbol",
    "tuple",
    "uuid",
    "vector",
];

impl Parser {
    fn new(functions: bool) -> Parser {
        Parser {
            registry: Rc::new(RefCell::new(HashMap::new())),
            functions,
        }
    }

    fn parse(&self, form: &Value) -> Result<Schema, SchemaError> {
        let schema = self.schema(form, 0)?;
        self.check_references(&schema)?;
        Ok(schema)
    }

    fn schema(&self, form: &Value, depth: usize) -> Result<Schema, SchemaError> {
        let schema = self.unnamed(form, depth)?;
        Ok(Schema {
            form: form.clone(),
            ..schema
        })
    }

    fn unnamed(&self, form: &Value, depth: usize) -> Result<Schema, SchemaError> {
        if depth > MAX_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        match form {
            Value::Vector(_) => self.vector(form, depth),
            Value::Map(map) => self.required(form, map),
            Value::Native(native) => match predicate(native.name) {
                Some(kind) => Ok(kind.into()),
                None => self.function(form),
            },
            Value::Fn(closure) => {
                let name = closure.proto.name().to_string();
                match predicate(name.rsplit('/').next().unwrap_or(&name)) {
                    Some(kind) => Ok(kind.into()),
                    None => self.function(form),
                }
            }
            Value::Object(object) if let Object::Regex { .. } = &**object => regex(form, form),
            form => match name_text(form) {
                Some(name) if form.as_symbol().is_some() => plain_predicate(&name),
                Some(name) if form.as_keyword().is_some() => self.parts(Parts {
                    form,
                    name,
                    properties: None,
                    children: Vec::new(),
                    depth,
                }),
                _ => Err(malformed(
                    form,
                    "expected a keyword such as `:string`, or a vector such as `[:map ...]`",
                )),
            },
        }
    }

    fn function(&self, form: &Value) -> Result<Schema, SchemaError> {
        match self.functions {
            true => Ok(Kind::Predicate(form.clone()).into()),
            false => Err(SchemaError::Function { form: brief(form) }),
        }
    }

    fn vector(&self, form: &Value, depth: usize) -> Result<Schema, SchemaError> {
        let mut children = items(form).unwrap_or_default();
        if children.is_empty() {
            return Err(malformed(
                form,
                "the vector is empty; it starts with a type such as `:map`",
            ));
        }
        let head = children.remove(0);
        let Some(name) = name_text(&head).filter(|_| head.as_str().is_none()) else {
            return Err(malformed(
                form,
                "a schema vector starts with a type such as `:map`",
            ));
        };
        let takes_values = matches!(name.as_str(), "enum" | "=");
        let properties = match children.first() {
            Some(Value::Map(map)) if !takes_values || children.len() > 1 => Some(map.clone()),
            Some(Value::Nil) if !takes_values => Some(Rc::new(Map::new(Default::default()))),
            _ => None,
        };
        if properties.is_some() {
            children.remove(0);
        }
        self.parts(Parts {
            form,
            name,
            properties,
            children,
            depth,
        })
    }

    /// Reads `{:required [:a :b]}`: an open map that has these keys.
    fn required(&self, form: &Value, map: &Map) -> Result<Schema, SchemaError> {
        let Some(keys) = map.get(&Value::keyword("required")).and_then(items) else {
            return Err(malformed(
                form,
                "a map schema is written `{:required [:key ...]}` or `[:map ...]`",
            ));
        };
        if let Some((key, _)) = map
            .iter()
            .find(|(key, _)| !matches!(key.as_keyword(), Some(key) if key.is("required")))
        {
            return Err(SchemaError::UnknownProperty {
                schema: "{:required ...}".to_owned(),
                property: brief(key),
                known: ":required".to_owned(),
            });
        }
        let entries = keys.into_iter().map(|key| Entry {
            key: match key.as_str() {
                Some(name) => Value::keyword(name),
                None => key,
            },
            optional: false,
            schema: Kind::Some.into(),
            notes: Notes::default(),
        });
        Ok(Kind::Map {
            entries: entries.collect(),
            closed: false,
        }
        .into())
    }

    fn parts(&self, parts: Parts<'_>) -> Result<Schema, SchemaError> {
        let own: &[&str] = match parts.name.as_str() {
            "string" | "int" | "double" | "float" | "number" | "vector" | "sequential" | "set"
            | "map-of" => SIZED,
            "map" => &["closed"],
            "multi" => &["dispatch"],
            "schema" => &["registry"],
            _ => &[],
        };
        let notes = notes(&parts, own)?;
        let kind = self.kind(&parts)?;
        Ok(Schema {
            kind,
            notes,
            form: parts.form.clone(),
        })
    }

    fn kind(&self, parts: &Parts<'_>) -> Result<Kind, SchemaError> {
        if let Some(kind) = scalar(parts)? {
            return no_children(parts).map(|()| kind);
        }
        Ok(match parts.name.as_str() {
            "map" if parts.children.is_empty() && parts.properties.is_none() => Kind::AnyMap,
            "map" => self.map(parts)?,
            "map-of" => {
                let [key, value] = self.exactly(parts, "a key schema and a value schema")?;
                Kind::MapOf {
                    key: key.into(),
                    value: value.into(),
                    size: size(parts)?,
                }
            }
            "vector" => self.list(parts, ListForm::Vector)?,
            "sequential" => self.list(parts, ListForm::Sequential)?,
            "set" => self.list(parts, ListForm::Set)?,
            "tuple" => Kind::Tuple(self.all(parts)?),
            "enum" if parts.children.is_empty() => {
                return Err(malformed(parts.form, "`:enum` needs at least one value"));
            }
            "enum" => Kind::Enum(parts.children.clone()),
            "=" => Kind::Equals(only_child(parts, "one value")?.clone()),
            "maybe" => {
                let [inner] = self.exactly(parts, "one schema")?;
                Kind::Maybe(inner.into())
            }
            "not" => {
                let [inner] = self.exactly(parts, "one schema")?;
                Kind::Not(inner.into())
            }
            "or" => Kind::Or(self.some(parts)?),
            "and" => Kind::And(self.some(parts)?),
            "orn" => Kind::Or(self.cases(parts)?.into_iter().map(|case| case.1).collect()),
            "multi" => self.multi(parts)?,
            "fn" => self.function(only_child(parts, "one function")?)?.kind,
            "ref" => Kind::Reference {
                name: name_text(only_child(parts, "one name")?).unwrap_or_default(),
                registry: self.registry.clone(),
            },
            "schema" => return self.with_registry(parts),
            "re" => {
                return regex(parts.form, only_child(parts, "one regex")?)
                    .map(|schema| schema.kind);
            }
            ">" | ">=" | "<" | "<=" => comparison(parts)?,
            name => match predicate(name) {
                Some(kind) => kind,
                None => return Err(unknown(name)),
            },
        })
    }

    fn map(&self, parts: &Parts<'_>) -> Result<Kind, SchemaError> {
        let closed = property(parts, "closed").is_some_and(Value::is_truthy);
        let mut entries: Vec<Entry> = Vec::new();
        for child in &parts.children {
            let entry = self.entry(child, parts.depth)?;
            if entries.iter().any(|other| other.key == entry.key) {
                let reason = format!("duplicate key {}", brief(&entry.key));
                return Err(malformed(parts.form, &reason));
            }
            entries.push(entry);
        }
        Ok(Kind::Map { entries, closed })
    }

    /// Reads `[:key schema]` or `[:key {:optional true} schema]`.
    fn entry(&self, form: &Value, depth: usize) -> Result<Entry, SchemaError> {
        const SHAPE: &str =
            "an entry of `:map` is written `[:key :type]` or `[:key {:optional true} :type]`";
        let parts = form
            .as_vector()
            .map(|vector| vector.iter().collect::<Vec<_>>());
        let (key, properties, schema) = match parts.as_deref() {
            Some([key, schema]) => (*key, None, *schema),
            Some([key, Value::Map(properties), schema]) => {
                (*key, Some(properties.clone()), *schema)
            }
            Some([key, Value::Nil, schema]) => (*key, None, *schema),
            _ => return Err(malformed(form, SHAPE)),
        };
        let parts = Parts {
            form,
            name: brief(key),
            properties,
            children: Vec::new(),
            depth,
        };
        Ok(Entry {
            key: key.clone(),
            optional: property(&parts, "optional").is_some_and(Value::is_truthy),
            schema: self.schema(schema, depth + 1)?,
            notes: notes(&parts, &["optional"])?,
        })
    }

    fn list(&self, parts: &Parts<'_>, form: ListForm) -> Result<Kind, SchemaError> {
        let item = if parts.children.is_empty() {
            Kind::Any.into()
        } else {
            let [item] = self.exactly(parts, "one schema, of its items")?;
            item
        };
        Ok(Kind::List {
            item: item.into(),
            size: size(parts)?,
            form,
        })
    }

    fn multi(&self, parts: &Parts<'_>) -> Result<Kind, SchemaError> {
        let dispatch = match property(parts, "dispatch") {
            Some(key @ Value::Keyword(_)) => key.clone(),
            _ => {
                return Err(malformed(
                    parts.form,
                    "`:multi` needs `{:dispatch :key}` with a keyword",
                ));
            }
        };
        Ok(Kind::Multi {
            dispatch,
            cases: self.cases(parts)?,
        })
    }

    fn cases(&self, parts: &Parts<'_>) -> Result<Vec<(Value, Schema)>, SchemaError> {
        let cases: Result<Vec<_>, _> = parts
            .children
            .iter()
            .map(|child| {
                let entry = self.entry(child, parts.depth)?;
                Ok((entry.key, entry.schema))
            })
            .collect();
        cases.and_then(|cases| match cases.is_empty() {
            true => Err(malformed(parts.form, "at least one case is needed")),
            false => Ok(cases),
        })
    }

    fn with_registry(&self, parts: &Parts<'_>) -> Result<Kind, SchemaError> {
        if let Some(registry) = property(parts, "registry") {
            let Some(registry) = registry.as_map() else {
                return Err(malformed(
                    parts.form,
                    "`:registry` must be a map of names and schemas",
                ));
            };
            for (name, form) in registry.iter() {
                let name = name_text(name).unwrap_or_else(|| brief(name));
                let schema = self.schema(form, parts.depth + 1)?;
                self.registry.borrow_mut().insert(name, schema);
            }
        }
        let child = only_child(parts, "one schema")?;
        // Inside `:schema`, a bare name may be short for `[:ref name]`.
        match name_text(child) {
            Some(name) if self.registry.borrow().contains_key(&name) => Ok(Kind::Reference {
                name,
                registry: self.registry.clone(),
            }),
            _ => self
                .schema(child, parts.depth + 1)
                .map(|schema| schema.kind),
        }
    }

    fn all(&self, parts: &Parts<'_>) -> Result<Vec<Schema>, SchemaError> {
        let depth = parts.depth + 1;
        parts
            .children
            .iter()
            .map(|child| self.schema(child, depth))
            .collect()
    }

    fn some(&self, parts: &Parts<'_>) -> Result<Vec<Schema>, SchemaError> {
        let schemas = self.all(parts)?;
        match schemas.is_empty() {
            true => Err(malformed(parts.form, "at least one schema is needed")),
            false => Ok(schemas),
        }
    }

    fn exactly<const N: usize>(
        &self,
        parts: &Parts<'_>,
        what: &str,
    ) -> Result<[Schema; N], SchemaError> {
        self.all(parts)?
            .try_into()
            .map_err(|_| malformed(parts.form, &format!("`:{}` takes {what}", parts.name)))
    }

    fn check_references(&self, schema: &Schema) -> Result<(), SchemaError> {
        let registry = self.registry.borrow();
        for schema in registry.values().chain([schema]) {
            check_reference(schema, &registry)?;
        }
        Ok(())
    }
}

fn check_reference(schema: &Schema, registry: &HashMap<String, Schema>) -> Result<(), SchemaError> {
    let inside: Vec<&Schema> = match &schema.kind {
        Kind::Reference { name, .. } if registry.contains_key(name) => Vec::new(),
        Kind::Reference { name, .. } => {
            return Err(SchemaError::UnknownReference { name: name.clone() });
        }
        Kind::Map { entries, .. } => entries.iter().map(|entry| &entry.schema).collect(),
        Kind::MapOf { key, value, .. } => vec![key, value],
        Kind::List { item, .. } | Kind::Maybe(item) | Kind::Not(item) => vec![item],
        Kind::Tuple(schemas) | Kind::Or(schemas) | Kind::And(schemas) => schemas.iter().collect(),
        Kind::Multi { cases, .. } => cases.iter().map(|case| &case.1).collect(),
        _ => Vec::new(),
    };
    inside
        .into_iter()
        .try_for_each(|inner| check_reference(inner, registry))
}

fn scalar(parts: &Parts<'_>) -> Result<Option<Kind>, SchemaError> {
    Ok(Some(match parts.name.as_str() {
        "any" => Kind::Any,
        "some" => Kind::Some,
        "nil" => Kind::Nil,
        "string" => Kind::String { size: size(parts)? },
        "int" => Kind::Int {
            range: range(parts)?,
        },
        "double" | "float" => Kind::Double {
            range: range(parts)?,
        },
        "number" => Kind::Number {
            range: range(parts)?,
        },
        "boolean" => Kind::Boolean,
        "keyword" | "qualified-keyword" => Kind::Keyword,
        "symbol" => Kind::Symbol,
        "uuid" => Kind::Uuid,
        "inst" => Kind::Inst,
        _ => return Ok(None),
    }))
}

fn plain_predicate(name: &str) -> Result<Schema, SchemaError> {
    predicate(name)
        .map(Schema::from)
        .ok_or_else(|| unknown(name))
}

/// Returns the schema of a Clojure predicate that Malli accepts as a schema.
fn predicate(name: &str) -> Option<Kind> {
    let at_least = |min: f64, exclusive: bool| Range {
        min: Some(min),
        max: None,
        exclusive,
    };
    Some(match name {
        "any?" => Kind::Any,
        "some?" => Kind::Some,
        "nil?" => Kind::Nil,
        "string?" => Kind::String {
            size: Size::default(),
        },
        "int?" | "integer?" => Kind::Int {
            range: Range::default(),
        },
        "pos-int?" => Kind::Int {
            range: at_least(0.0, true),
        },
        "nat-int?" => Kind::Int {
            range: at_least(0.0, false),
        },
        "neg-int?" => Kind::Int {
            range: Range {
                min: None,
                max: Some(0.0),
                exclusive: true,
            },
        },
        "double?" | "float?" => Kind::Double {
            range: Range::default(),
        },
        "number?" => Kind::Number {
            range: Range::default(),
        },
        "pos?" => Kind::Number {
            range: at_least(0.0, true),
        },
        "boolean?" => Kind::Boolean,
        "true?" => Kind::Equals(Value::Bool(true)),
        "false?" => Kind::Equals(Value::Bool(false)),
        "keyword?" | "simple-keyword?" | "qualified-keyword?" => Kind::Keyword,
        "symbol?" => Kind::Symbol,
        "uuid?" => Kind::Uuid,
        "inst?" => Kind::Inst,
        "map?" => Kind::AnyMap,
        "vector?" => any_list(ListForm::Vector),
        "sequential?" | "seq?" | "seqable?" | "coll?" => any_list(ListForm::Sequential),
        "set?" => any_list(ListForm::Set),
        _ => return None,
    })
}

fn any_list(form: ListForm) -> Kind {
    Kind::List {
        item: Schema::from(Kind::Any).into(),
        size: Size::default(),
        form,
    }
}

fn comparison(parts: &Parts<'_>) -> Result<Kind, SchemaError> {
    let bound = only_child(parts, "one number")?;
    let Some(bound) = number_float(bound) else {
        return Err(malformed(parts.form, "the bound must be a number"));
    };
    let (min, max) = match parts.name.starts_with('>') {
        true => (Some(bound), None),
        false => (None, Some(bound)),
    };
    Ok(Kind::Number {
        range: Range {
            min,
            max,
            exclusive: !parts.name.ends_with('='),
        },
    })
}

fn regex(form: &Value, pattern: &Value) -> Result<Schema, SchemaError> {
    let source = match pattern {
        Value::Object(object) if let Object::Regex { source, .. } = &**object => source.clone(),
        Value::Text(text) => Rc::from(text.as_str()),
        _ => return Err(malformed(form, "`:re` takes a regex")),
    };
    let regex = compile_regex(&source).map_err(|error| malformed(form, &error.message))?;
    Ok(Kind::Regex {
        source,
        regex: Rc::new(regex),
    }
    .into())
}

fn no_children(parts: &Parts<'_>) -> Result<(), SchemaError> {
    match parts.children.first() {
        None => Ok(()),
        Some(child) => {
            let reason = format!("`:{}` takes no schemas, got {}", parts.name, brief(child));
            Err(malformed(parts.form, &reason))
        }
    }
}

fn only_child<'a>(parts: &'a Parts<'_>, what: &str) -> Result<&'a Value, SchemaError> {
    match parts.children.as_slice() {
        [child] => Ok(child),
        _ => Err(malformed(
            parts.form,
            &format!("`:{}` takes {what}", parts.name),
        )),
    }
}

fn property<'a>(parts: &'a Parts<'_>, name: &str) -> Option<&'a Value> {
    parts.properties.as_ref()?.get(&Value::keyword(name))
}

fn size(parts: &Parts<'_>) -> Result<Size, SchemaError> {
    let bound = |name: &str| match property(parts, name) {
        None | Some(Value::Nil) => Ok(None),
        Some(Value::Int(int)) if *int >= 0 => Ok(usize::try_from(*int).ok()),
        Some(other) => {
            let reason = format!("`:{name}` must be a count, got {}", brief(other));
            Err(malformed(parts.form, &reason))
        }
    };
    Ok(Size {
        min: bound("min")?,
        max: bound("max")?,
    })
}

fn range(parts: &Parts<'_>) -> Result<Range, SchemaError> {
    let bound = |name: &str| match property(parts, name) {
        None | Some(Value::Nil) => Ok(None),
        Some(value) => match number_float(value) {
            Some(float) => Ok(Some(float)),
            None => {
                let reason = format!("`:{name}` must be a number, got {}", brief(value));
                Err(malformed(parts.form, &reason))
            }
        },
    };
    Ok(Range {
        min: bound("min")?,
        max: bound("max")?,
        exclusive: false,
    })
}

fn notes(parts: &Parts<'_>, own: &[&str]) -> Result<Notes, SchemaError> {
    let mut notes = Notes::default();
    let mut fragment: Vec<(Value, Value)> = Vec::new();
    let Some(properties) = &parts.properties else {
        return Ok(notes);
    };
    for (key, value) in properties.iter() {
        let name = name_text(key).unwrap_or_else(|| brief(key));
        match name.as_str() {
            "title" => notes.title = name_text(value),
            "description" => notes.description = name_text(value),
            "default" => notes.default = Some(value.clone()),
            "json-schema" => fragment.extend(
                value
                    .as_map()
                    .into_iter()
                    .flat_map(|map| map.iter().map(|(key, value)| (key.clone(), value.clone()))),
            ),
            "error/message" => notes.message = name_text(value),
            name if own.contains(&name) => {}
            name => match name.split_once('/') {
                Some(("json-schema", name)) => fragment.push((Value::keyword(name), value.clone())),
                // Qualified keys are annotations for other tools; Malli ignores them too.
                Some(_) => {}
                None => {
                    return Err(SchemaError::UnknownProperty {
                        schema: format!("[:{} ...]", parts.name.trim_start_matches(':')),
                        property: brief(key),
                        known: own
                            .iter()
                            .chain(NOTES)
                            .map(|name| format!(":{name}"))
                            .collect::<Vec<_>>()
                            .join(" "),
                    });
                }
            },
        }
    }
    notes.json_schema = (!fragment.is_empty()).then(|| Value::map(fragment));
    Ok(notes)
}

fn unknown(name: &str) -> SchemaError {
    SchemaError::UnknownType {
        name: name.to_owned(),
        near: nearest(name, TYPES.iter().copied()).map(|near| format!(":{near}")),
    }
}

fn malformed(form: &Value, reason: &str) -> SchemaError {
    SchemaError::Malformed {
        form: brief(form),
        reason: reason.to_owned(),
    }
}

impl From<Kind> for Schema {
    fn from(kind: Kind) -> Schema {
        Schema {
            kind,
            notes: Notes::default(),
            form: Value::Nil,
        }
    }
}
