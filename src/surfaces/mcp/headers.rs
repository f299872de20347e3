//! Arguments that a client repeats in headers, so that proxies can read them: properties of a tool's schema with
//! `x-mcp-header`. A header that differs from its argument is refused.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::protocol::{RpcError, codes};

/// The prefix of headers that repeat arguments.
pub(crate) const PREFIX: &str = "mcp-param-";
/// The member of a property with the rest of the header's name.
const MARK: &str = "x-mcp-header";

/// Headers that repeat arguments, by the rest of their names in lower case. `None` if the value cannot be decoded.
pub(crate) type Repeated = BTreeMap<String, Option<String>>;

/// Checks that headers agree with the arguments of a call.
///
/// # Errors
/// When a header is missing, cannot be decoded, or differs from its argument.
pub(super) fn check(
    schema: &Json,
    arguments: &Map<String, Json>,
    repeated: &Repeated,
) -> Result<(), RpcError> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    for (name, property) in properties {
        let Some(header) = property[MARK].as_str() else {
            continue;
        };
        let expected = arguments.get(name).and_then(text_of);
        let given = repeated.get(&header.to_ascii_lowercase());
        let refused = |found: &str| {
            let message = format!("the header `Mcp-Param-{header}` {found} the argument `{name}`");
            Err(RpcError::new(codes::HEADERS, message))
        };
        match (given, expected) {
            (None, None) => {}
            (None, Some(_)) => return refused("is missing: it repeats"),
            (Some(None), _) => return refused("is not valid Base64 of"),
            (Some(Some(given)), Some(expected)) if *given == expected => {}
            (Some(Some(_)), _) => return refused("differs from"),
        }
    }
    Ok(())
}

/// Returns an argument in the form of a header; `None` for null and for values that headers do not repeat.
fn text_of(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.trim().to_owned()),
        Json::Bool(_) | Json::Number(_) => Some(value.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn checked(arguments: &Json, header: Option<Option<&str>>) -> Result<(), i64> {
        let schema = json!({"properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "n": {}}});
        let given = header.map(|value| ("region".to_owned(), value.map(str::to_owned)));
        let repeated = given.into_iter().collect();
        let arguments = arguments.as_object().expect("an object");
        check(&schema, arguments, &repeated).map_err(|error| error.code)
    }

    #[test]
    fn a_header_that_differs_from_its_argument_is_refused() {
        let eu = json!({"region": "eu", "n": 1});
        assert_eq!(checked(&eu, Some(Some("eu"))), Ok(()));
        assert_eq!(checked(&json!({"n": 1}), None), Ok(()));
        assert_eq!(checked(&json!({"region": null}), None), Ok(()));
        for (arguments, header) in [
            (&eu, None),
            (&eu, Some(None)),
            (&eu, Some(Some("us"))),
            (&json!({}), Some(Some("eu"))),
        ] {
            assert_eq!(
                checked(arguments, header),
                Err(codes::HEADERS),
                "{header:?}"
            );
        }
    }
}
