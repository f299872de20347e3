//! Pages of lists: a limit, and an opaque text that names where the next page begins.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value as Json, json};

use super::error::KitError;
use super::schema::{object, text};
use super::tool::Arguments;

/// Returns the schema of arguments that choose a page of a list, beside the tool's own. `usual` is the number of items unless
/// the caller names another.
pub fn input(own: Json, usual: usize) -> Json {
    let mut properties = own;
    properties["limit"] =
        json!({"type": "integer", "minimum": 1, "maximum": 100, "default": usual});
    properties["next"] = text("`next` of the page before.");
    object(properties, &[])
}

/// Returns the schema of a page: the items under the name of the list, their number, and where the next page begins.
pub fn output(list: &str, item: &Json) -> Json {
    object(
        json!({
            "count": {"type": "integer"},
            list: {"type": "array", "items": item},
            "next": {"type": ["string", "null"]},
        }),
        &["count", list, "next"],
    )
}

/// Returns a page.
pub fn shown(list: &str, items: Vec<Json>, next: Option<String>) -> Json {
    json!({"count": items.len(), list: items, "next": next})
}

/// Cuts rows, of which there is one more than the page has if others follow. Returns where the next page begins.
pub fn cut<T>(
    rows: &mut Vec<T>,
    limit: usize,
    list: &str,
    place: impl Fn(&T) -> String,
) -> Option<String> {
    let is_more = rows.len() > limit;
    rows.truncate(limit);
    let last = rows.last().filter(|_| is_more)?;
    Some(write(&place(last), list))
}

/// Returns the argument `limit`, which was checked, or the usual number.
pub fn limit(arguments: &Arguments, usual: usize) -> usize {
    let given = arguments.get("limit").and_then(Json::as_u64);
    given.map_or(usual, |given| usize::try_from(given).unwrap_or(usual))
}

/// Returns the text that names a place in a list.
pub fn write(place: &str, list: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{list}:{place}"))
}

/// Returns the place that the argument `next` names.
///
/// # Errors
/// `invalid_arguments` when it is not of a page of this list.
pub fn read(arguments: &Arguments, list: &str) -> Result<Option<String>, KitError> {
    let Some(given) = arguments.get("next").and_then(Json::as_str) else {
        return Ok(None);
    };
    read_text(given, list, "/next").map(Some)
}

/// As [`read`], for a text at a path of the arguments.
///
/// # Errors
/// As [`read`].
pub fn read_text(given: &str, list: &str, path: &str) -> Result<String, KitError> {
    let decoded = URL_SAFE_NO_PAD.decode(given).ok();
    let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    let place = decoded.and_then(|text| {
        let (of, place) = text.split_once(':')?;
        (of == list).then(|| place.to_owned())
    });
    place.ok_or_else(|| {
        KitError::invalid(
            path,
            "`next` of the page before",
            format!("`{given}` is not `next` of a page of this list"),
        )
    })
}
