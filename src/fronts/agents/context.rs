//! The tool context: texts that callers pass to the servers of tools, as headers.

use serde_json::{Map, Value as Json};

use super::codes;
use super::error::{ApiError, Status};

/// The beginning of the headers.
const PREFIX: &str = "X-Soat-Context-";

/// The keys that only the server sets: those of a session.
const OWN: &[&str] = &["actorExternalId", "actorId", "sessionId"];

/// Headers that belong to the connection: the client sets them itself.
const OF_CONNECTION: &[&str] = &["connection", "content-length", "host", "transfer-encoding"];

/// Returns the context of a caller without the keys that only the server sets.
pub fn of_caller(given: Option<&Json>) -> Map<String, Json> {
    let mut given = given.and_then(Json::as_object).cloned().unwrap_or_default();
    given.retain(|key, _| !OWN.iter().any(|own| own.eq_ignore_ascii_case(key)));
    given
}

/// Checks a tool context: texts under keys that can be part of a header's name.
///
/// # Errors
/// When it has another form, a key cannot be part of a header's name, or two keys give one header.
pub fn check(context: &Map<String, Json>) -> Result<(), ApiError> {
    let mut seen: Vec<String> = Vec::new();
    for (key, value) in context {
        if key.is_empty() || !key.bytes().all(is_token) {
            return Err(bad_key(format!(
                "the key `{key}` of `tool_context` cannot be part of a header's name"
            )));
        }
        let lower = key.to_ascii_lowercase();
        if seen.contains(&lower) {
            return Err(bad_key(format!(
                "the key `{key}` of `tool_context` is given twice: names of headers ignore the case"
            )));
        }
        seen.push(lower);
        let is_plain = |text: &str| text.chars().all(|char| !char.is_control());
        if !value.as_str().is_some_and(is_plain) {
            return Err(ApiError::invalid(format!(
                "`tool_context.{key}` must be a string on one line"
            )));
        }
    }
    Ok(())
}

/// Checks the headers of a tool: strings on one line, under names that headers may have.
///
/// # Errors
/// When one has another form. `at` is the place that the error names.
pub fn check_headers(headers: &Map<String, Json>, at: &str) -> Result<(), ApiError> {
    for (name, value) in headers {
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(ApiError::invalid(format!(
                "`{at}` has `{name}`, which cannot be the name of a header"
            )));
        }
        if OF_CONNECTION.iter().any(|it| it.eq_ignore_ascii_case(name)) {
            return Err(ApiError::invalid(format!(
                "`{at}` has `{name}`, which the server sets itself for each request; leave it out"
            )));
        }
        let is_plain = |text: &str| !text.is_empty() && text.chars().all(|char| !char.is_control());
        if !value.as_str().is_some_and(is_plain) {
            return Err(ApiError::invalid(format!(
                "`{at}.{name}` must be a string on one line"
            )));
        }
    }
    Ok(())
}

/// Tells whether a byte may be in the name of a header.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn bad_key(message: String) -> ApiError {
    ApiError::new(
        Status::BadRequest,
        ("INVALID_TOOL_CONTEXT_KEY", codes::CONTEXT_KEY),
        message,
    )
}

/// Returns the headers of a context: each key with its first letter in upper case.
pub fn headers(context: &Map<String, Json>) -> Map<String, Json> {
    let header = |(key, value): (&String, &Json)| {
        let mut chars = key.chars();
        let first = chars.next().map(|first| first.to_ascii_uppercase());
        let name: String = first.into_iter().chain(chars).collect();
        (format!("{PREFIX}{name}"), value.clone())
    };
    context.iter().map(header).collect()
}

/// Returns headers with others after them: of two with one name, the second counts.
pub fn after(own: Option<&Map<String, Json>>, more: &Map<String, Json>) -> Map<String, Json> {
    let mut all = own.cloned().unwrap_or_default();
    for (name, value) in more {
        all.retain(|known, _| !known.eq_ignore_ascii_case(name));
        all.insert(name.clone(), value.clone());
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(json: Json) -> Map<String, Json> {
        json.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn keys_become_headers_with_an_upper_case_letter() {
        let found = headers(&object(json!({"userId": "u1", "tenant": "t"})));
        assert_eq!(
            Json::Object(found),
            json!({"X-Soat-Context-UserId": "u1", "X-Soat-Context-Tenant": "t"})
        );
    }

    #[test]
    fn the_keys_of_a_session_are_not_taken_from_callers() {
        let given =
            json!({"sessionid": "s", "actorId": "a", "ActorExternalId": "e", "userId": "u"});
        assert_eq!(
            Json::Object(of_caller(Some(&given))),
            json!({"userId": "u"})
        );
    }

    #[test]
    fn headers_of_the_connection_are_refused() {
        for name in ["Host", "content-length", "Transfer-Encoding", "Connection"] {
            let headers = object(json!({name: "x"}));
            assert!(
                check_headers(&headers, "execute.headers").is_err(),
                "{name}"
            );
        }
        assert!(check_headers(&object(json!({"X-Host": "x"})), "execute.headers").is_ok());
    }

    #[test]
    fn keys_that_are_not_headers_are_refused() {
        for bad in [
            json!({"a b": "x"}),
            json!({"": "x"}),
            json!({"a": "1", "A": "2"}),
        ] {
            let error = check(&object(bad)).expect_err("it is refused");
            let ApiError::Refused(refusal) = error else {
                panic!("{error}")
            };
            assert_eq!(refusal.name, "INVALID_TOOL_CONTEXT_KEY");
        }
        assert!(check(&object(json!({"a": "x\r\ny: z"}))).is_err());
        assert!(check(&object(json!({"userId": "u1"}))).is_ok());
    }
}
