//! Filters of spans: conditions on fields, combined by `and`, `or`, `not`, `nand` and `nor`.
//!
//! A filter is read as a whole before anything is looked at: an unknown field, an operator that a field does not have, or a
//! value of another type is refused, and nothing is left out.

use flowstone_model::diagnostic::nearest;
use serde_json::{Map, Value as Json, json};

use super::error::KitError;
use super::trigger::instant_millis;

/// Maximum nesting of groups.
const DEPTH: usize = 8;
/// Maximum number of conditions.
const CONDITIONS: usize = 64;

/// The fields of spans that conditions name.
const FIELDS: &[(&str, Field)] = &[
    ("attributes", Field::Attributes),
    ("content", Field::Content),
    ("end_time", Field::Time),
    ("events", Field::List),
    ("links", Field::List),
    ("parent_id", Field::Parent),
    ("span_id", Field::Id),
    ("span_kind", Field::Word),
    ("span_name", Field::Text),
    ("span_type", Field::Word),
    ("start_time", Field::Time),
    ("status_code", Field::Word),
    ("status_message", Field::Text),
    ("trace_id", Field::Id),
    ("trace_type", Field::Word),
];

const OPERATORS: &[(&str, Operator)] = &[
    ("btwn", Operator::Btwn),
    ("contains", Operator::Contains),
    ("endswith", Operator::EndsWith),
    ("eq", Operator::Eq),
    ("exists", Operator::Exists),
    ("gt", Operator::Gt),
    ("gte", Operator::Gte),
    ("has", Operator::Has),
    ("has_not", Operator::HasNot),
    ("in", Operator::In),
    ("is", Operator::Is),
    ("is_not", Operator::IsNot),
    ("like", Operator::Like),
    ("lt", Operator::Lt),
    ("lte", Operator::Lte),
    ("matches", Operator::Matches),
    ("neq", Operator::Neq),
    ("not_exists", Operator::NotExists),
    ("not_in", Operator::NotIn),
    ("startswith", Operator::StartsWith),
];

const COMBINATIONS: &[(&str, Combination)] = &[
    ("and", Combination::And),
    ("nand", Combination::Nand),
    ("nor", Combination::Nor),
    ("not", Combination::Not),
    ("or", Combination::Or),
];

/// The values that fields of the kind [`Field::Word`] have.
const WORDS: &[(&str, &[&str])] = &[
    (
        "span_kind",
        &[
            "SPAN_KIND_CLIENT",
            "SPAN_KIND_CONSUMER",
            "SPAN_KIND_INTERNAL",
            "SPAN_KIND_PRODUCER",
            "SPAN_KIND_SERVER",
        ],
    ),
    ("span_type", &["agent", "chat", "task", "tool", "workflow"]),
    (
        "status_code",
        &["STATUS_CODE_ERROR", "STATUS_CODE_OK", "STATUS_CODE_UNSET"],
    ),
    ("trace_type", &["invocation"]),
];

/// The kind of a field, which decides about its operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Attributes,
    Content,
    Id,
    List,
    Parent,
    Text,
    Time,
    Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Btwn,
    Contains,
    EndsWith,
    Eq,
    Exists,
    Gt,
    Gte,
    Has,
    HasNot,
    In,
    Is,
    IsNot,
    Like,
    Lt,
    Lte,
    Matches,
    Neq,
    NotExists,
    NotIn,
    StartsWith,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Combination {
    And,
    Nand,
    Nor,
    Not,
    Or,
}

impl Field {
    fn takes(self, operator: Operator) -> bool {
        use Operator as Op;
        let is_equality = matches!(operator, Op::Is | Op::IsNot);
        let is_list = matches!(operator, Op::In | Op::NotIn);
        let is_order = matches!(
            operator,
            Op::Eq | Op::Neq | Op::Gt | Op::Lt | Op::Gte | Op::Lte | Op::Btwn
        );
        let is_text = matches!(
            operator,
            Op::StartsWith | Op::EndsWith | Op::Contains | Op::Matches | Op::Like
        );
        let is_has = matches!(operator, Op::Has | Op::HasNot);
        let is_exists = matches!(operator, Op::Exists | Op::NotExists);
        match self {
            Field::Id | Field::Word => is_equality || is_list,
            Field::Parent => is_equality || is_list || is_exists,
            Field::Text => is_equality || is_list || is_text || is_exists,
            Field::Time => is_equality || is_list || is_order || is_exists,
            Field::Attributes => true,
            Field::List => is_list || is_has || is_exists,
            Field::Content => operator == Op::Contains,
        }
    }
}

/// A filter that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanFilter(Group);

#[derive(Debug, Clone, PartialEq)]
struct Group {
    combination: Combination,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Group(Group),
    Condition(Condition),
}

#[derive(Debug, Clone, PartialEq)]
struct Condition {
    name: &'static str,
    field: Field,
    key: Option<String>,
    operator: Operator,
    value: Json,
    is_case_sensitive: bool,
    is_exact: bool,
    is_all: bool,
}

/// The name of the definition of a condition in the schema of a tool with a filter.
pub const DEFINITION: &str = "condition";

/// Returns the JSON Schema of a filter. Groups are nested, so it refers to [`condition_schema`] in `$defs`.
pub fn schema() -> Json {
    json!({
        "type": "object",
        "properties": group_members(),
        "additionalProperties": false,
    })
}

/// Returns the JSON Schema of a condition, or of a group of conditions.
pub fn condition_schema() -> Json {
    let names = |names: Vec<&str>| Json::from(names);
    let fields = names(FIELDS.iter().map(|(name, _)| *name).collect());
    let mut operators: Vec<&str> = OPERATORS.iter().map(|(name, _)| *name).collect();
    operators.extend(COMBINATIONS.iter().map(|(name, _)| *name));
    let mut properties = json!({
        "field": {"type": "string", "description": format!("One of {fields}.")},
        "key": {"type": "string", "description": "For `attributes`: the name of one, such as `gen_ai.tool.name`."},
        "operator": {"type": "string", "description": format!("One of {}.", Json::from(operators))},
        "value": {},
        "options": {
            "type": "object",
            "properties": {
                "all": {"type": "boolean"},
                "case_sensitive": {"type": "boolean"},
                "exact_match": {"type": "boolean"},
            },
            "additionalProperties": false,
        },
    });
    properties["conditions"] = group_members()["conditions"].clone();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn group_members() -> Json {
    let combinations: Vec<&str> = COMBINATIONS.iter().map(|(name, _)| *name).collect();
    json!({
        "operator": {"enum": combinations},
        "conditions": {"type": "array", "items": {"$ref": format!("#/$defs/{DEFINITION}")}},
    })
}

impl SpanFilter {
    /// Reads a filter at a path of the arguments.
    ///
    /// # Errors
    /// `invalid_arguments` with the path of what is wrong, and the nearest name.
    pub fn read(filter: &Json, path: &str) -> Result<SpanFilter, KitError> {
        let mut count = 0;
        let group = Group::read(filter, (path, 0), &mut count)?;
        Ok(SpanFilter(group))
    }

    /// Tells whether a span passes.
    pub fn fits(&self, span: &Map<String, Json>) -> bool {
        self.0.fits(span)
    }

    /// Returns the values that `trace_id` must have by the conditions of the outermost group, if that needs all of them, and
    /// whether it is a single trace.
    pub fn traces(&self) -> Option<(Vec<&str>, bool)> {
        self.needed().find_map(|condition| {
            let values = match (condition.name, condition.operator, &condition.value) {
                ("trace_id", Operator::Is, Json::String(value)) => vec![value.as_str()],
                ("trace_id", Operator::In, Json::Array(values)) => {
                    values.iter().filter_map(Json::as_str).collect()
                }
                _ => return None,
            };
            Some((values, condition.operator == Operator::Is))
        })
    }

    /// Returns the flow that the run of each span must be of.
    pub fn flow(&self) -> Option<&str> {
        self.needed().find_map(|condition| {
            let is_flow = condition.key.as_deref() == Some("flowstone.run.flow");
            let is_equal = matches!(condition.operator, Operator::Is | Operator::Eq);
            (is_flow && is_equal).then(|| condition.value.as_str())?
        })
    }

    /// Returns the conditions that every span must meet.
    fn needed(&self) -> impl Iterator<Item = &Condition> {
        let is_and = self.0.combination == Combination::And;
        let parts = self.0.parts.iter().filter(move |_| is_and);
        parts.filter_map(|part| match part {
            Part::Condition(condition) => Some(condition),
            Part::Group(_) => None,
        })
    }

    /// Calls a function with each value of a condition on `trace_id`, which may replace it.
    pub fn each_trace(&mut self, act: &mut dyn FnMut(&mut Json)) {
        let mut open: Vec<&mut Part> = self.0.parts.iter_mut().collect();
        while let Some(part) = open.pop() {
            match part {
                Part::Group(group) => open.extend(group.parts.iter_mut()),
                Part::Condition(condition) if condition.name == "trace_id" => {
                    match &mut condition.value {
                        Json::Array(values) => values.iter_mut().for_each(&mut *act),
                        value => act(value),
                    }
                }
                Part::Condition(_) => {}
            }
        }
    }
}

impl Group {
    fn read(
        group: &Json,
        (path, depth): (&str, usize),
        count: &mut usize,
    ) -> Result<Group, KitError> {
        if depth > DEPTH {
            return Err(KitError::invalid(
                path,
                format!("at most {DEPTH} levels"),
                format!("the filter is nested deeper than {DEPTH} levels"),
            ));
        }
        let members = group.as_object().cloned().unwrap_or_default();
        if let Some(name) = members
            .keys()
            .find(|it| *it != "operator" && *it != "conditions")
        {
            return Err(KitError::invalid(
                format!("{path}/{name}"),
                "`operator` and `conditions`",
                format!("a group of conditions cannot have `{name}`"),
            ));
        }
        let combination = match members.get("operator") {
            None | Some(Json::Null) => Combination::And,
            Some(name) => named(COMBINATIONS, name, &format!("{path}/operator"), "operator")?,
        };
        let conditions = members.get("conditions").cloned().unwrap_or(json!([]));
        let Json::Array(conditions) = conditions else {
            return Err(KitError::invalid(
                format!("{path}/conditions"),
                "a list",
                "`conditions` must be a list",
            ));
        };
        if combination == Combination::Not && conditions.len() > 1 {
            return Err(KitError::invalid(
                format!("{path}/conditions"),
                "one condition",
                "`not` takes one condition; `nand` and `nor` take several",
            ));
        }
        let mut parts = Vec::new();
        for (number, part) in conditions.iter().enumerate() {
            let path = format!("{path}/conditions/{number}");
            let is_group = part.get("conditions").is_some();
            parts.push(match is_group {
                true => Part::Group(Group::read(part, (&path, depth + 1), count)?),
                false => {
                    *count += 1;
                    Part::Condition(Condition::read(part, &path)?)
                }
            });
        }
        if *count > CONDITIONS {
            return Err(KitError::invalid(
                path,
                format!("at most {CONDITIONS} conditions"),
                format!("the filter has more than {CONDITIONS} conditions"),
            ));
        }
        Ok(Group { combination, parts })
    }

    fn fits(&self, span: &Map<String, Json>) -> bool {
        if self.parts.is_empty() {
            return true;
        }
        let mut parts = self.parts.iter().map(|part| match part {
            Part::Group(group) => group.fits(span),
            Part::Condition(condition) => condition.fits(span),
        });
        match self.combination {
            Combination::And => parts.all(|it| it),
            Combination::Or => parts.any(|it| it),
            Combination::Not | Combination::Nand => !parts.all(|it| it),
            Combination::Nor => !parts.any(|it| it),
        }
    }
}

/// Returns what a name stands for.
fn named<T: Copy>(
    known: &[(&'static str, T)],
    name: &Json,
    path: &str,
    what: &str,
) -> Result<T, KitError> {
    let text = name.as_str().unwrap_or_default();
    if let Some((_, found)) = known.iter().find(|(known, _)| *known == text) {
        return Ok(*found);
    }
    let names: Vec<&str> = known.iter().map(|(known, _)| *known).collect();
    let near = nearest(text, names.iter().copied());
    let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Err(KitError::invalid(
        path,
        format!("one of {}", names.join(", ")),
        format!("there is no {what} {name}{near}"),
    ))
}

impl Condition {
    fn read(condition: &Json, path: &str) -> Result<Condition, KitError> {
        let wrong = |at: &str, expected: &str, message: String| {
            Err(KitError::invalid(format!("{path}{at}"), expected, message))
        };
        let Some(members) = condition.as_object() else {
            return wrong("", "an object", "a condition must be an object".to_owned());
        };
        let known = ["field", "key", "operator", "value", "options"];
        if let Some(name) = members.keys().find(|name| !known.contains(&name.as_str())) {
            let message = format!("a condition cannot have `{name}`");
            return wrong(&format!("/{name}"), &known.join(", "), message);
        }
        let Some(field_name) = members.get("field") else {
            return wrong(
                "/field",
                "a field",
                "a condition must have `field`".to_owned(),
            );
        };
        let field = named(FIELDS, field_name, &format!("{path}/field"), "field")?;
        let name = FIELDS
            .iter()
            .find(|(known, _)| Some(*known) == field_name.as_str())
            .map_or("", |(known, _)| known);
        let operator = match members.get("operator") {
            None | Some(Json::Null) if field == Field::Content => Operator::Contains,
            None | Some(Json::Null) => Operator::Is,
            Some(given) => named(OPERATORS, given, &format!("{path}/operator"), "operator")?,
        };
        let is_end =
            name == "start_time" && matches!(operator, Operator::Exists | Operator::NotExists);
        if !field.takes(operator) || is_end {
            let is_taken = |it: Operator| {
                let is_exists = matches!(it, Operator::Exists | Operator::NotExists);
                field.takes(it) && !(name == "start_time" && is_exists)
            };
            let taken = OPERATORS.iter().filter(|(_, it)| is_taken(*it));
            let taken: Vec<&str> = taken.map(|(name, _)| *name).collect();
            let message = format!("`{name}` does not have this operator");
            return wrong("/operator", &taken.join(", "), message);
        }
        let key = members.get("key").and_then(Json::as_str).map(str::to_owned);
        if key.is_some() && field != Field::Attributes {
            return wrong("/key", "nothing", format!("`{name}` has no keys"));
        }
        if key.is_none() && field == Field::Attributes && !operator.takes_whole() {
            let message = "a condition on `attributes` needs `key`".to_owned();
            return wrong("/key", "the name of an attribute", message);
        }
        let option = |name: &str| {
            members
                .get("options")
                .is_some_and(|it| it[name] == json!(true))
        };
        let condition = Condition {
            name,
            field,
            key,
            operator,
            value: members.get("value").cloned().unwrap_or(Json::Null),
            is_case_sensitive: option("case_sensitive"),
            is_exact: option("exact_match"),
            is_all: option("all"),
        };
        condition.check_value(path)?;
        condition.check_word(path)?;
        Ok(condition)
    }

    /// Checks the type of the value.
    fn check_value(&self, path: &str) -> Result<(), KitError> {
        use Operator as Op;
        let value = &self.value;
        let is_time = self.field == Field::Time;
        let is_text_time = |value: &Json| value.as_str().and_then(instant_millis).is_some();
        let is_orderable = |value: &Json| match is_time {
            true => is_text_time(value),
            false => value.is_number() || value.is_string(),
        };
        let expected = match (self.operator, value) {
            (Op::In | Op::NotIn, Json::Array(values))
                if !is_time || values.iter().all(is_text_time) =>
            {
                None
            }
            (Op::In | Op::NotIn, _) => Some("a list"),
            (Op::Btwn, Json::Array(ends)) if ends.len() == 2 && ends.iter().all(is_orderable) => {
                None
            }
            (Op::Btwn, _) => Some("a list of two numbers, texts or times: both ends are in"),
            (Op::Eq | Op::Neq | Op::Gt | Op::Lt | Op::Gte | Op::Lte, value)
                if is_orderable(value) =>
            {
                None
            }
            (Op::Eq | Op::Neq | Op::Gt | Op::Lt | Op::Gte | Op::Lte, _) if is_time => {
                Some("a time such as 2026-01-31T09:30:00Z")
            }
            (Op::Eq | Op::Neq | Op::Gt | Op::Lt | Op::Gte | Op::Lte, _) => {
                Some("a number or a text")
            }
            (
                Op::StartsWith | Op::EndsWith | Op::Contains | Op::Matches | Op::Like,
                Json::String(_),
            ) => None,
            (Op::StartsWith | Op::EndsWith | Op::Contains | Op::Matches | Op::Like, _) => {
                Some("a text")
            }
            (Op::Has | Op::HasNot, Json::Null) => Some("a key or an element"),
            (Op::Has | Op::HasNot, _) => None,
            (Op::Exists | Op::NotExists, _) => None,
            (Op::Is | Op::IsNot, value) => match (self.field, value) {
                (Field::Attributes, _) | (_, Json::String(_)) if !is_time => None,
                (Field::Parent, Json::Null) => None,
                (Field::Time, value) if is_text_time(value) || value.is_null() => None,
                (Field::Time, _) => Some("a time such as 2026-01-31T09:30:00Z"),
                (_, _) => Some("a text"),
            },
        };
        match expected {
            None => Ok(()),
            Some(expected) => Err(KitError::invalid(
                format!("{path}/value"),
                expected,
                format!(
                    "the value of a condition on `{}` must be {expected}, got {value}",
                    self.name
                ),
            )),
        }
    }

    /// Returns the values that a span's member is compared with.
    fn compared_values(&self) -> impl Iterator<Item = &str> {
        let values = match &self.value {
            Json::Array(values) => values.iter(),
            value => std::slice::from_ref(value).iter(),
        };
        values.filter_map(Json::as_str)
    }

    /// Checks that a value is one that the field can have.
    fn check_word(&self, path: &str) -> Result<(), KitError> {
        let Some((_, known)) = WORDS.iter().find(|(name, _)| *name == self.name) else {
            return Ok(());
        };
        let Some(wrong) = self.compared_values().find(|value| !known.contains(value)) else {
            return Ok(());
        };
        let near = nearest(wrong, known.iter().copied());
        // `OK` is near to nothing, and part of one.
        let part = known.iter().copied().find(|known| {
            let end = known.rsplit('_').next();
            end.is_some_and(|end| end.eq_ignore_ascii_case(wrong))
        });
        let near = part.or(near);
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        Err(KitError::invalid(
            format!("{path}/value"),
            format!("one of {}", known.join(", ")),
            format!("`{}` is never `{wrong}`{near}", self.name),
        ))
    }

    fn fits(&self, span: &Map<String, Json>) -> bool {
        use Operator as Op;
        if self.field == Field::Content {
            return self.is_in_content(span);
        }
        let found = self.find(span);
        let found = found.as_ref();
        match self.operator {
            Op::Is => self.is(found),
            Op::IsNot => !self.is(found),
            Op::In => found.is_some_and(|found| self.is_in(found)),
            Op::NotIn => !found.is_some_and(|found| self.is_in(found)),
            Op::Exists => found.is_some_and(|found| *found != json!([])),
            Op::NotExists => found.is_none_or(|found| *found == json!([])),
            Op::Has => found.is_some_and(|found| self.has(found)),
            Op::HasNot => !found.is_some_and(|found| self.has(found)),
            Op::Eq => self.compared(found, &self.value, |it| it.is_eq()),
            Op::Neq => found.is_some() && !self.compared(found, &self.value, |it| it.is_eq()),
            Op::Gt => self.compared(found, &self.value, |it| it.is_gt()),
            Op::Lt => self.compared(found, &self.value, |it| it.is_lt()),
            Op::Gte => self.compared(found, &self.value, |it| it.is_ge()),
            Op::Lte => self.compared(found, &self.value, |it| it.is_le()),
            Op::Btwn => {
                self.compared(found, &self.value[0], |it| it.is_ge())
                    && self.compared(found, &self.value[1], |it| it.is_le())
            }
            Op::StartsWith | Op::EndsWith | Op::Contains | Op::Matches | Op::Like => found
                .and_then(Json::as_str)
                .is_some_and(|found| self.is_like(found)),
        }
    }

    /// Returns what a span has; nothing for null.
    fn find(&self, span: &Map<String, Json>) -> Option<Json> {
        let whole = span.get(self.name)?;
        let found = match (&self.key, self.field) {
            (Some(key), Field::Attributes) => {
                let flat = whole.get(key);
                flat.or_else(|| key.split('.').try_fold(whole, |at, part| at.get(part)))
            }
            (_, _) => Some(whole),
        };
        found.filter(|found| !found.is_null()).cloned()
    }

    fn is(&self, found: Option<&Json>) -> bool {
        match (found, &self.value) {
            (None, value) => value.is_null(),
            (Some(found), value) if self.field == Field::Time => {
                self.compared(Some(found), value, |it| it.is_eq())
            }
            (Some(found), value) => same(found, value),
        }
    }

    fn is_in(&self, found: &Json) -> bool {
        let values = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        let is_listed = |found: &Json| values.iter().any(|value| same(found, value));
        match found {
            Json::Array(found) if self.field == Field::List => {
                let has = |value: &Json| found.iter().any(|found| is_part(value, found));
                match self.is_all {
                    true => values.iter().all(has),
                    false => values.iter().any(has),
                }
            }
            Json::Array(items) => match self.is_all {
                true => values
                    .iter()
                    .all(|value| items.iter().any(|it| same(it, value))),
                false => items.iter().any(is_listed),
            },
            found if self.field == Field::Time => {
                let is_same = |value: &Json| self.compared(Some(found), value, |it| it.is_eq());
                values.iter().any(is_same)
            }
            found => is_listed(found),
        }
    }

    fn has(&self, found: &Json) -> bool {
        match found {
            Json::Object(members) => {
                let key = self.value.as_str();
                key.is_some_and(|key| members.contains_key(key))
            }
            Json::Array(items) if self.field == Field::List => items.iter().any(|item| {
                let key = self.value.as_str();
                key.is_some_and(|key| item["attributes"].get(key).is_some())
            }),
            Json::Array(items) => items.iter().any(|item| same(item, &self.value)),
            _ => false,
        }
    }

    /// Compares numbers with numbers, texts with texts, and times with times; anything else does not compare.
    fn compared(
        &self,
        found: Option<&Json>,
        value: &Json,
        is_wanted: impl Fn(std::cmp::Ordering) -> bool,
    ) -> bool {
        let order = match (found, value) {
            (Some(Json::String(found)), Json::String(value)) if self.field == Field::Time => {
                instant_millis(found).map(|found| Some(found.cmp(&instant_millis(value)?)))
            }
            (Some(Json::String(found)), Json::String(value)) => Some(Some(found.cmp(value))),
            (Some(found), value) if found.is_number() && value.is_number() => {
                let pair = found.as_f64().zip(value.as_f64());
                Some(pair.and_then(|(found, value)| found.partial_cmp(&value)))
            }
            (_, _) => None,
        };
        order.flatten().is_some_and(is_wanted)
    }

    fn is_like(&self, found: &str) -> bool {
        let (found, wanted) = (self.folded(found), self.value.as_str().unwrap_or_default());
        let wanted = self.folded(wanted);
        match self.operator {
            Operator::StartsWith => found.starts_with(&wanted),
            Operator::EndsWith => found.ends_with(&wanted),
            Operator::Matches if self.is_exact => found == wanted,
            Operator::Like => is_pattern(&found, &wanted),
            _ => found.contains(&wanted),
        }
    }

    fn folded(&self, text: &str) -> String {
        match self.is_case_sensitive {
            true => text.to_owned(),
            false => text.to_lowercase(),
        }
    }

    /// Tells whether all words are in the input and output.
    fn is_in_content(&self, span: &Map<String, Json>) -> bool {
        let part = |name: &str| {
            let part = span.get("attributes").and_then(|it| it.get(name));
            part.map(Json::to_string).unwrap_or_default()
        };
        let content = self.folded(&format!("{} {}", part("input"), part("output")));
        let wanted = self.folded(self.value.as_str().unwrap_or_default());
        wanted.split_whitespace().all(|word| content.contains(word))
    }
}

impl Operator {
    /// Tells whether the operator is of use for the whole map of attributes: which keys it has.
    fn takes_whole(self) -> bool {
        matches!(self, Operator::Has | Operator::HasNot)
    }
}

/// Tells whether values are equal: numbers by their value, without other conversions.
fn same(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Json::Object(one), Json::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(name, one)| other.get(name).is_some_and(|other| same(one, other)))
        }
        (one, other) => one == other,
    }
}

/// Tells whether an object has all members of another, at any depth.
fn is_part(part: &Json, whole: &Json) -> bool {
    match (part, whole) {
        (Json::Object(part), Json::Object(whole)) => part
            .iter()
            .all(|(name, part)| whole.get(name).is_some_and(|whole| is_part(part, whole))),
        (part, whole) => same(part, whole),
    }
}

/// Matches a pattern in which `%` stands for any text and `_` for one character. Takes time proportional to the product of
/// both lengths at most.
fn is_pattern(text: &str, pattern: &str) -> bool {
    let (text, pattern): (Vec<char>, Vec<char>) =
        (text.chars().collect(), pattern.chars().collect());
    let (mut at, mut in_pattern) = (0, 0);
    let mut after_star: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(in_pattern) {
            Some('%') => {
                in_pattern += 1;
                after_star = Some((at, in_pattern));
            }
            Some(char) if *char == '_' || *char == text[at] => {
                at += 1;
                in_pattern += 1;
            }
            _ => match &mut after_star {
                Some((from, place)) => {
                    *from += 1;
                    at = *from;
                    in_pattern = *place;
                }
                None => return false,
            },
        }
    }
    pattern[in_pattern..].iter().all(|char| *char == '%')
}
