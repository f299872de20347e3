//! The shapes of JSON values, as data: one description for the checks and for the JSON Schema.

use serde_json::{Map, Value as Json, json};

/// The requirement for a value.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Any value at all.
    Any,
    Bool,
    /// Exactly this text.
    Const(&'static str),
    /// A whole number within these bounds.
    Int(i64, i64),
    List(&'static Shape),
    /// An object with arbitrary valid names as keys, and values of one shape.
    MapOf(Name, &'static Shape),
    /// An object with arbitrary members.
    MapOfAny,
    Name(Name),
    /// A number within these bounds.
    Number(f64, f64),
    Object(&'static [Member]),
    OneOf(&'static [&'static str]),
    /// An object whose other members depend on the value of one member.
    Tagged(&'static str, &'static [(&'static str, &'static [Member])]),
    /// A text of at most this many characters.
    Text(usize),
}

/// A member of an object.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    pub name: &'static str,
    pub shape: Shape,
    pub is_required: bool,
    pub doc: &'static str,
}

impl Member {
    pub const fn required(name: &'static str, shape: Shape, doc: &'static str) -> Member {
        Member {
            name,
            shape,
            is_required: true,
            doc,
        }
    }

    pub const fn optional(name: &'static str, shape: Shape, doc: &'static str) -> Member {
        Member {
            name,
            shape,
            is_required: false,
            doc,
        }
    }
}

/// The kinds of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// The name of an agent.
    Agent,
    /// The name of a node, or a key of the state.
    Key,
    /// The name of a tool, within the limits of providers.
    Tool,
}

impl Name {
    /// Returns the pattern, as a regular expression.
    pub fn pattern(self) -> &'static str {
        match self {
            Name::Agent => "^[a-z0-9][a-z0-9_-]{0,63}$",
            Name::Key => "^[A-Za-z_][A-Za-z0-9_-]{0,63}$",
            Name::Tool => "^[a-zA-Z0-9_-]{1,64}$",
        }
    }

    /// Tells whether a text is such a name.
    pub fn fits(self, text: &str) -> bool {
        let (first, rest) = match text.as_bytes() {
            [first, rest @ ..] if text.len() <= 64 => (*first, rest),
            _ => return false,
        };
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let is_lower = |byte: u8| !byte.is_ascii_uppercase();
        match self {
            Name::Agent => {
                first.is_ascii_alphanumeric()
                    && is_lower(first)
                    && rest.iter().all(|byte| is_word(*byte) && is_lower(*byte))
            }
            Name::Key => {
                (first.is_ascii_alphabetic() || first == b'_') && rest.iter().all(|it| is_word(*it))
            }
            Name::Tool => is_word(first) && rest.iter().all(|it| is_word(*it)),
        }
    }
}

/// A place in a JSON value: names of members and positions in lists.
pub type Path = Vec<Json>;

/// A problem of a value, or a warning for its author.
#[derive(Debug, Clone, PartialEq)]
pub struct Issue {
    pub path: Path,
    pub message: String,
}

impl Issue {
    pub fn at(path: &[Json], message: impl Into<String>) -> Issue {
        Issue {
            path: path.to_vec(),
            message: message.into(),
        }
    }

    /// Returns `{"path": [...], "message": "..."}`.
    pub fn to_json(&self) -> Json {
        json!({"path": self.path, "message": self.message})
    }

    /// Returns the path as `nodes.classify.tools[0]`; `the spec` for the value itself.
    pub fn place(&self) -> String {
        let mut text = String::new();
        for part in &self.path {
            match part {
                Json::String(name) if text.is_empty() => text.push_str(name),
                Json::String(name) => {
                    text.push('.');
                    text.push_str(name);
                }
                part => text.push_str(&format!("[{part}]")),
            }
        }
        match text.is_empty() {
            true => "the spec".to_owned(),
            false => text,
        }
    }
}

/// A place in a value during a walk. Its path is made only for an issue.
#[derive(Debug, Clone, Copy)]
pub enum Position<'a> {
    /// The value itself.
    Root,
    /// A member of the object at a position.
    Member(&'a Position<'a>, &'a str),
    /// An item of the list at a position.
    Item(&'a Position<'a>, usize),
}

impl Position<'_> {
    /// Returns the path from the root.
    pub fn path(&self) -> Path {
        match self {
            Position::Root => Path::new(),
            Position::Member(above, name) => below(&above.path(), *name),
            Position::Item(above, idx) => below(&above.path(), *idx),
        }
    }

    /// Returns an issue of the value here.
    pub fn issue(&self, message: impl Into<String>) -> Issue {
        Issue {
            path: self.path(),
            message: message.into(),
        }
    }
}

/// Returns a member of an object. Comparing the few names of a small object is cheaper than hashing one.
pub fn member<'a>(object: &'a Map<String, Json>, name: &str) -> Option<&'a Json> {
    const FEW: usize = 10;
    match object.len() {
        ..=FEW => object
            .iter()
            .find_map(|(key, value)| (key == name).then_some(value)),
        _ => object.get(name),
    }
}

/// Returns a path with one more part.
pub fn below(path: &[Json], part: impl Into<Json>) -> Path {
    let mut path = path.to_vec();
    path.push(part.into());
    path
}

/// Adds all problems of a value.
pub fn check(shape: &Shape, value: &Json, issues: &mut Vec<Issue>) {
    check_at(shape, value, &Position::Root, issues);
}

fn check_at(shape: &Shape, value: &Json, at: &Position<'_>, issues: &mut Vec<Issue>) {
    let problem = match (shape, value) {
        (Shape::Any, _) | (Shape::Bool, Json::Bool(_)) | (Shape::MapOfAny, Json::Object(_)) => None,
        (Shape::Const(text), found) => {
            (found != text).then(|| format!("expected {text:?}, got {}", shown(found)))
        }
        (Shape::Int(low, high), found) => {
            let fits = whole(found).is_some_and(|it| (*low..=*high).contains(&it));
            (!fits).then(|| {
                let found = shown(found);
                format!("expected a whole number from {low} to {high}, got {found}")
            })
        }
        (Shape::Number(low, high), found) => {
            let fits = found
                .as_f64()
                .is_some_and(|it| (*low..=*high).contains(&it));
            (!fits).then(|| {
                format!(
                    "expected a number from {low} to {high}, got {}",
                    shown(found)
                )
            })
        }
        (Shape::List(item), Json::Array(items)) => {
            for (idx, value) in items.iter().enumerate() {
                check_at(item, value, &Position::Item(at, idx), issues);
            }
            None
        }
        (Shape::MapOf(name, item), Json::Object(entries)) => {
            for (key, value) in entries {
                let at = Position::Member(at, key);
                if !name.fits(key) {
                    issues.push(at.issue(not_a_name(*name, key)));
                }
                check_at(item, value, &at, issues);
            }
            None
        }
        (Shape::Name(name), Json::String(text)) => {
            (!name.fits(text)).then(|| not_a_name(*name, text))
        }
        (Shape::Object(members), Json::Object(given)) => {
            object(members, given, None, at, issues);
            None
        }
        (Shape::OneOf(names), found) => {
            let fits = found.as_str().is_some_and(|it| names.contains(&it));
            (!fits).then(|| format!("expected {}, got {}", choice(names), shown(found)))
        }
        (Shape::Tagged(tag, variants), Json::Object(given)) => {
            tagged(tag, variants, given, at, issues);
            None
        }
        (Shape::Text(most), Json::String(text)) => {
            // A text has at most as many characters as bytes.
            let length = (text.len() > *most).then(|| text.chars().count());
            length
                .filter(|length| length > most)
                .map(|length| format!("expected a text of at most {most} characters, got {length}"))
        }
        (
            Shape::Bool
            | Shape::List(_)
            | Shape::MapOf(..)
            | Shape::MapOfAny
            | Shape::Name(_)
            | Shape::Object(_)
            | Shape::Tagged(..)
            | Shape::Text(_),
            found,
        ) => Some(format!("expected {}, got {}", shape.noun(), shown(found))),
    };
    issues.extend(problem.map(|message| at.issue(message)));
}

/// Returns a whole number. `5.0` is one, too, as in JSON Schema.
pub fn whole(value: &Json) -> Option<i64> {
    let exact = |number: &f64| number.fract() == 0.0 && number.abs() < 1e15;
    let from_float = || value.as_f64().filter(exact).map(|number| number as i64);
    value.as_i64().or_else(from_float)
}

fn tagged(
    tag: &str,
    variants: &[(&str, &[Member])],
    given: &Map<String, Json>,
    at: &Position<'_>,
    issues: &mut Vec<Issue>,
) {
    let names = || variants.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let found = member(given, tag);
    let variant = found
        .and_then(Json::as_str)
        .and_then(|text| variants.iter().find(|(name, _)| *name == text));
    match (variant, found) {
        (Some((_, members)), _) => object(members, given, Some(tag), at, issues),
        (None, Some(found)) => {
            let message = format!("expected {}, got {}", choice(&names()), shown(found));
            issues.push(Position::Member(at, tag).issue(message));
        }
        (None, None) => {
            let message = format!("`{tag}` is missing: expected {}", choice(&names()));
            issues.push(Position::Member(at, tag).issue(message));
        }
    }
}

fn object(
    members: &[Member],
    given: &Map<String, Json>,
    tag: Option<&str>,
    at: &Position<'_>,
    issues: &mut Vec<Issue>,
) {
    for expected in members {
        let at = Position::Member(at, expected.name);
        match member(given, expected.name) {
            // A null value counts as missing if the member is optional.
            Some(Json::Null) if !expected.is_required => {}
            Some(value) => check_at(&expected.shape, value, &at, issues),
            None if expected.is_required => {
                let message = format!(
                    "`{}` is missing: expected {}",
                    expected.name,
                    expected.shape.noun()
                );
                issues.push(at.issue(message));
            }
            None => {}
        }
    }
    for key in given.keys() {
        let is_known = Some(key.as_str()) == tag || members.iter().any(|it| it.name == key);
        if !is_known {
            let names: Vec<&str> = tag
                .into_iter()
                .chain(members.iter().map(|it| it.name))
                .collect();
            let message = format!("unknown member `{key}`: expected {}", choice(&names));
            issues.push(Position::Member(at, key).issue(message));
        }
    }
}

fn not_a_name(name: Name, text: &str) -> String {
    let shown = shown(&Json::from(text));
    format!(
        "expected a name that matches {}, got {shown}",
        name.pattern()
    )
}

/// Returns names as alternatives: `"a", "b" or "c"`.
fn choice(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    match quoted.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

/// Returns a value for a message, truncated so that a large one does not fill the response.
pub fn shown(value: &Json) -> String {
    const MOST: usize = 60;
    match value {
        Json::Array(items) => format!("a list of {}", items.len()),
        Json::Object(_) => "an object".to_owned(),
        value => {
            let text = value.to_string();
            match text.char_indices().nth(MOST) {
                None => text,
                Some((end, _)) => format!("{}...", &text[..end]),
            }
        }
    }
}

impl Shape {
    /// Returns the name of this shape in messages.
    fn noun(&self) -> String {
        match self {
            Shape::Any => "a value".to_owned(),
            Shape::Bool => "true or false".to_owned(),
            Shape::Const(text) => format!("{text:?}"),
            Shape::Int(low, high) => format!("a whole number from {low} to {high}"),
            Shape::List(_) => "a list".to_owned(),
            Shape::MapOf(..) | Shape::MapOfAny | Shape::Object(_) | Shape::Tagged(..) => {
                "an object".to_owned()
            }
            Shape::Name(_) | Shape::Text(_) => "a text".to_owned(),
            Shape::Number(low, high) => format!("a number from {low} to {high}"),
            Shape::OneOf(names) => choice(names),
        }
    }

    /// Returns the JSON Schema (2020-12) of the shape.
    pub fn schema(&self) -> Json {
        match self {
            Shape::Any => json!({}),
            Shape::Bool => json!({"type": "boolean"}),
            Shape::Const(text) => json!({"const": text}),
            Shape::Int(low, high) => json!({"type": "integer", "minimum": low, "maximum": high}),
            Shape::List(item) => json!({"type": "array", "items": item.schema()}),
            Shape::MapOf(name, item) => json!({
                "type": "object",
                "propertyNames": {"pattern": name.pattern()},
                "additionalProperties": item.schema(),
            }),
            Shape::MapOfAny => json!({"type": "object"}),
            Shape::Name(name) => json!({"type": "string", "pattern": name.pattern()}),
            Shape::Number(low, high) => json!({"type": "number", "minimum": low, "maximum": high}),
            Shape::Object(members) => object_schema(members, None),
            Shape::OneOf(names) => json!({"enum": names}),
            Shape::Tagged(tag, variants) => {
                let variants = variants.iter();
                let variants =
                    variants.map(|(name, members)| object_schema(members, Some((tag, name))));
                json!({"oneOf": variants.collect::<Vec<_>>()})
            }
            Shape::Text(most) => json!({"type": "string", "maxLength": most}),
        }
    }
}

/// Lets a schema accept null, which counts as missing. A schema without a type accepts it already.
fn admit_null(schema: &mut Map<String, Json>) {
    if let Some(kind) = schema.get_mut("type") {
        *kind = json!([kind.take(), "null"]);
    }
    if let Some(Json::Array(values)) = schema.get_mut("enum") {
        values.push(Json::Null);
    }
    if let Some(Json::Array(variants)) = schema.get_mut("oneOf") {
        variants.push(json!({"type": "null"}));
    }
}

fn object_schema(members: &[Member], tag: Option<(&str, &str)>) -> Json {
    let mut properties = Map::new();
    let mut required = Vec::new();
    if let Some((tag, name)) = tag {
        properties.insert(tag.to_owned(), json!({"const": name}));
        required.push(tag);
    }
    for member in members {
        let mut schema = member.shape.schema();
        if let Json::Object(schema) = &mut schema {
            if !member.is_required {
                admit_null(schema);
            }
            schema.insert("description".to_owned(), json!(member.doc));
        }
        properties.insert(member.name.to_owned(), schema);
        if member.is_required {
            required.push(member.name);
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
