//! `inputs_fields`: which parts of an event become inputs of a run.
//!
//! A string that begins with `$` is a JSON Path (RFC 9535), one that begins with `/` a JSON Pointer (RFC 6901), and any other
//! string is a literal. `{"$literal": ...}`, without other members, is its content. Keys and other values stay as they are.

use serde_json::{Map, Value as Json};
use serde_json_path::JsonPath;

/// Maximum depth of objects and lists in `inputs_fields`.
pub const MOST_DEPTH: usize = 10;
/// Maximum length of a path, in bytes.
pub const MOST_PATH: usize = 500;
/// Maximum depth of filters in a path.
const MOST_FILTERS: usize = 2;
/// Maximum number of values in an event that a path selects from; of more, it selects nothing.
pub const MOST_VALUES: usize = 100_000;
/// The key of a literal.
const LITERAL: &str = "$literal";

/// A part of `inputs_fields` that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// The JSON Pointer to the part.
    pub at: String,
    pub message: String,
}

/// Checks `inputs_fields`.
///
/// # Errors
/// With the first part that cannot be used.
pub fn check(fields: &Json) -> Result<(), FieldProblem> {
    match fields {
        Json::Object(_) => check_at(fields, &mut String::new(), 1),
        other => Err(FieldProblem {
            at: String::new(),
            message: format!("expected an object of inputs, got {}", kind(other)),
        }),
    }
}

fn check_at(fields: &Json, at: &mut String, depth: usize) -> Result<(), FieldProblem> {
    let refuse = |message: String, at: &str| {
        let at = at.to_owned();
        Err(FieldProblem { at, message })
    };
    let is_nested = matches!(fields, Json::Object(_) | Json::Array(_));
    if is_nested && literal(fields).is_none() && depth > MOST_DEPTH {
        return refuse(
            format!("values are nested deeper than {MOST_DEPTH} levels"),
            at,
        );
    }
    let mut below = |key: &str, value: &Json| {
        let length = at.len();
        *at += "/";
        *at += &key.replace('~', "~0").replace('/', "~1");
        let checked = check_at(value, at, depth + 1);
        at.truncate(length);
        checked
    };
    match fields {
        Json::String(text) => match problem(text) {
            Some(message) => refuse(message, at),
            None => Ok(()),
        },
        Json::Array(items) => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(idx, item)| below(&idx.to_string(), item))
        }
        Json::Object(_) if literal(fields).is_some() => Ok(()),
        Json::Object(members) if members.contains_key(LITERAL) => {
            let other = members.keys().find(|key| *key != LITERAL);
            let other = other.map(String::as_str).unwrap_or_default();
            refuse(
                format!(
                    "an object with `{LITERAL}` has no other members, and this one has `{other}`"
                ),
                at,
            )
        }
        Json::Object(members) => {
            let mut members = members.iter();
            members.try_for_each(|(key, value)| below(key, value))
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => Ok(()),
    }
}

/// Returns what is wrong with a string, if it is neither a path nor a literal.
fn problem(text: &str) -> Option<String> {
    let is_path = text.starts_with(['$', '/']);
    if is_path && text.len() > MOST_PATH {
        return Some(format!(
            "the path has {} bytes, and the maximum is {MOST_PATH}",
            text.len()
        ));
    }
    let message = match text.chars().next()? {
        '$' => match JsonPath::parse(text) {
            Ok(_) => return costly(text),
            Err(error) => format!("`{text}` begins with `$` and is not a JSON Path ({error})"),
        },
        '/' if is_pointer(text) => return None,
        '/' => {
            format!("`{text}` begins with `/` and is not a JSON Pointer: `~` is followed by 0 or 1")
        }
        _ => return None,
    };
    Some(format!(
        "{message}; to pass the text itself, write {{\"{LITERAL}\": ...}}"
    ))
}

/// Returns what makes the cost of a path more than proportional to the size of an event.
fn costly(path: &str) -> Option<String> {
    let (mut quote, mut is_escaped, mut filters) = (None, false, 0_usize);
    let (mut descents, mut roots, mut brackets) = (0, 0, Vec::new());
    let mut last = ' ';
    for letter in path.chars() {
        match (quote, letter) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '[') => brackets.push(false),
            (None, ']') => filters -= usize::from(brackets.pop() == Some(true)),
            (None, '?') => {
                if let Some(is_filter) = brackets.last_mut().filter(|is_filter| !**is_filter) {
                    *is_filter = true;
                    filters += 1;
                }
            }
            (None, '$') => roots += 1,
            (None, '.') if last == '.' => descents += 1 + usize::from(filters > 0),
            (None, _) => {}
        }
        if filters > MOST_FILTERS {
            return Some(format!(
                "`{path}` has filters nested deeper than {MOST_FILTERS}"
            ));
        }
        last = letter;
    }
    if descents > 1 {
        return Some(format!(
            "`{path}` searches the whole event for each part of it: `..` may occur once, and not in a filter"
        ));
    }
    (roots > 1)
        .then(|| format!("`{path}` reads the whole event in a filter: `$` may only begin it"))
}

fn is_pointer(text: &str) -> bool {
    let mut parts = text.split('~').skip(1);
    parts.all(|part| part.starts_with(['0', '1']))
}

/// Returns the inputs of a run: `inputs_fields`, with the parts of the context that they refer to. Without them, the whole
/// context.
pub fn resolve(fields: Option<&Json>, context: &Json) -> Json {
    let Some(fields) = fields else {
        return context.clone();
    };
    let context = Context {
        data: context,
        is_small: is_small(context),
    };
    resolved(fields, &context)
}

/// What paths select from.
struct Context<'a> {
    data: &'a Json,
    is_small: bool,
}

fn is_small(data: &Json) -> bool {
    let (mut open, mut count) = (vec![data], 0);
    while let Some(next) = open.pop() {
        count += 1;
        match next {
            Json::Array(items) => open.extend(items),
            Json::Object(members) => open.extend(members.values()),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
        }
        if count > MOST_VALUES {
            return false;
        }
    }
    true
}

fn resolved(fields: &Json, context: &Context<'_>) -> Json {
    if let Some(literal) = literal(fields) {
        return literal.clone();
    }
    match fields {
        Json::String(text) => selected(text, context),
        Json::Array(items) => items.iter().map(|item| resolved(item, context)).collect(),
        Json::Object(members) => {
            let members = members.iter();
            let members = members.map(|(key, value)| (key.clone(), resolved(value, context)));
            Json::Object(members.collect::<Map<String, Json>>())
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => fields.clone(),
    }
}

fn literal(fields: &Json) -> Option<&Json> {
    let members = fields.as_object().filter(|members| members.len() == 1)?;
    members.get(LITERAL)
}

/// Returns what a string selects: one match is its value, several are a list, and none is null.
fn selected(text: &str, context: &Context<'_>) -> Json {
    match text.chars().next() {
        // A path that an older version stored is not checked yet.
        Some('$') if !context.is_small || costly(text).is_some() => Json::Null,
        Some('$') => {
            let Ok(path) = JsonPath::parse(text) else {
                return Json::Null;
            };
            let found = path.query(context.data).all();
            match &found[..] {
                [] => Json::Null,
                [only] => (*only).clone(),
                several => several.iter().map(|it| (*it).clone()).collect(),
            }
        }
        Some('/') => context.data.pointer(text).cloned().unwrap_or(Json::Null),
        _ => Json::String(text.to_owned()),
    }
}

fn kind(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::{check, resolve};

    fn context() -> Json {
        json!({
            "event": {"event_id": "e1", "attributes": {"a/b": 1, "items": [{"n": 1}, {"n": 2}, {"n": 3}], "none": null}},
            "scope": {"flow": "digest"},
        })
    }

    fn one(field: Json) -> Json {
        let fields = json!({"it": field});
        check(&fields).expect("good fields");
        resolve(Some(&fields), &context())["it"].clone()
    }

    #[test]
    fn strings_select_parts_of_the_event() {
        assert_eq!(one(json!("$.event.event_id")), json!("e1"));
        assert_eq!(
            one(json!("$.event.attributes.items[*].n")),
            json!([1, 2, 3])
        );
        assert_eq!(one(json!("$.event.attributes.items[?@.n > 2].n")), json!(3));
        assert_eq!(one(json!("/event/attributes/a~1b")), json!(1));
        assert_eq!(one(json!("/event/attributes/items/1/n")), json!(2));
        assert_eq!(one(json!("plain text")), json!("plain text"));
        assert_eq!(one(json!("")), json!(""));
        assert_eq!(one(json!({"$literal": "$5 off"})), json!("$5 off"));
        assert_eq!(
            one(json!({"$literal": {"$literal": 1}})),
            json!({"$literal": 1})
        );
        assert_eq!(
            one(json!({"$.key": ["$.scope.flow", 1, true, null]})),
            json!({"$.key": ["digest", 1, true, null]})
        );
    }

    #[test]
    fn paths_whose_cost_grows_faster_than_the_event_are_refused() {
        for path in [
            "$..*..*",
            "$..a[?@..b]",
            "$[?@..b]",
            "$[?$.a]",
            "$[?@[?@[?@.a]]]",
            "$..['a']..b",
        ] {
            assert!(check(&json!({"a": path})).is_err(), "{path}");
        }
        for path in [
            "$..n",
            "$.event..items[?@.n > 1]",
            "$['..']['$$'][\"?..\"]",
            "$.a[?@.b == '$..*..*']",
            "$.a[?@.b[?@.c]]",
            "$[0][?@.a]['x'][?@.b][?@.c]",
        ] {
            check(&json!({"a": path})).unwrap_or_else(|problem| panic!("{path}: {problem:?}"));
        }
    }

    #[test]
    fn paths_select_nothing_from_events_with_very_many_values() {
        let fields = json!({"it": "$.a[0]", "at": "/a/0"});
        let of = |count: usize| resolve(Some(&fields), &json!({"a": vec![1; count]}));
        assert_eq!(of(10), json!({"it": 1, "at": 1}));
        assert_eq!(of(super::MOST_VALUES), json!({"it": null, "at": 1}));
    }

    #[test]
    fn what_is_not_there_is_null() {
        assert_eq!(one(json!("$.event.other")), Json::Null);
        assert_eq!(one(json!("/start")), Json::Null);
        assert_eq!(one(json!("/event/attributes/items/9")), Json::Null);
        assert_eq!(one(json!("$.event.attributes.none")), Json::Null);
    }

    #[test]
    fn without_fields_the_whole_context_is_the_input() {
        assert_eq!(resolve(None, &context()), context());
    }

    #[test]
    fn strings_that_look_like_paths_and_are_not_are_refused() {
        for text in ["$5 off", "$.", "$[", "$..", "$x", "/a~2b", "/~", "$.a b"] {
            let problem = check(&json!({"a": {"b/c": [text]}})).expect_err(text);
            assert_eq!(problem.at, "/a/b~1c/0", "{text}");
            assert!(problem.message.contains("$literal"), "{}", problem.message);
        }
        let long = format!("$.{}", "a".repeat(600));
        assert!(check(&json!({"a": long})).is_err());
        let deep = format!("$[?{}@.a{}]", "(".repeat(200), ")".repeat(200));
        let _ = check(&json!({"a": deep}));
    }

    #[test]
    fn depth_and_shape_are_limited() {
        let nested = |depth: usize| {
            let mut fields = json!("x");
            for _ in 0..depth {
                fields = json!({"a": fields});
            }
            fields
        };
        assert!(check(&nested(10)).is_ok());
        let problem = check(&nested(11)).expect_err("too deep");
        assert_eq!(problem.at, "/a".repeat(10));
        assert!(check(&json!(["$.a"])).is_err());
        assert!(check(&json!("$.a")).is_err());
    }
}
