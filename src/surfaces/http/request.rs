//! What a request holds, taken strictly: an unknown name, a name twice or a wrong type is an error.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use flowstone_engine::codec;
use flowstone_engine::json::{from_json, read_strictly};
use flowstone_lang::value::Value;
use serde_json::{Map, Value as Json};

use super::bodies::broken;
use super::problem::{Problem, codes};
use crate::json::Values;

/// Maximum size of a JSON body of the API.
pub(super) const JSON_MAX: usize = 10 << 20;
/// How long a body may pause.
pub(super) const BODY_PAUSE: Duration = Duration::from_secs(10);
/// How long a whole body may take.
pub(super) const BODY_TIME: Duration = Duration::from_secs(60);
/// The default and the maximum number of items on a page.
const LIMIT: (usize, usize) = (50, 500);

/// The query of an address.
#[derive(Debug, Clone, Default)]
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads a query. `known` names all that the route takes.
    ///
    /// # Errors
    /// When a name is not known or stands twice.
    pub(super) fn read(text: Option<&str>, known: &[&str]) -> Result<Query, Problem> {
        let mut found = BTreeMap::new();
        let pairs = text
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty());
        for pair in pairs {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name, true)?, decoded(value, true)?);
            if !known.contains(&&*name) {
                let near = flowstone_engine::diagnostic::nearest(&name, known.iter().copied());
                let problem =
                    Problem::malformed(format!("`{name}` is not a parameter of this address"));
                return Err(match near {
                    Some(near) => problem.hint(format!("did you mean `{near}`?")),
                    None if known.is_empty() => problem.hint("it takes no parameters"),
                    None => problem.hint(format!("it takes: {}", known.join(", "))),
                });
            }
            if found.contains_key(&name) {
                return Err(Problem::malformed(format!(
                    "the parameter `{name}` is given twice"
                )));
            }
            found.insert(name, value);
        }
        Ok(Query(found))
    }

    /// As [`Query::read`], with a parameter that may be given several times. Returns its values, too.
    ///
    /// # Errors
    /// As for [`Query::read`].
    pub(super) fn read_repeated(
        text: Option<&str>,
        known: &[&str],
        repeated: &str,
    ) -> Result<(Query, Vec<String>), Problem> {
        let pairs = text.unwrap_or_default().split('&');
        let name_of = |pair: &str| decoded(pair.split('=').next().unwrap_or_default(), true);
        let (mut rest, mut values) = (Vec::new(), Vec::new());
        for pair in pairs {
            match name_of(pair)? == repeated {
                true => values.push(decoded(pair.split_once('=').map_or("", |it| it.1), true)?),
                false => rest.push(pair),
            }
        }
        Ok((Query::read(Some(&rest.join("&")), known)?, values))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn owned(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    /// Returns a parameter that is true or false; false if it is not given.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true" | "") => Ok(true),
            Some(other) => Err(Problem::malformed(format!(
                "`{name}` must be true or false, got `{other}`"
            ))),
        }
    }

    /// Returns the number of items on a page.
    pub(super) fn limit(&self) -> Result<usize, Problem> {
        self.limit_within(LIMIT)
    }

    /// Returns the number of items on a page with another default and maximum.
    pub(super) fn limit_within(&self, (usual, most): (usize, usize)) -> Result<usize, Problem> {
        match self.number("limit")? {
            None => Ok(usual),
            Some(limit) if (1..=most as i64).contains(&limit) => Ok(limit as usize),
            Some(limit) => Err(Problem::malformed(format!(
                "`limit` must be a number from 1 to {most}, got {limit}"
            ))),
        }
    }

    /// Returns the parts of a list with commas; none if it is not given.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let parts = self.get(name).into_iter().flat_map(|text| text.split(','));
        parts
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Returns a parameter that must be given.
    pub(super) fn needed(&self, name: &str) -> Result<String, Problem> {
        let given = self.owned(name).filter(|text| !text.is_empty());
        given.ok_or_else(|| Problem::malformed(format!("the parameter `{name}` is missing")))
    }

    /// Returns how values of flows are written.
    pub(super) fn values(&self) -> Result<Values, Problem> {
        values(self.get("values"))
    }

    /// Returns a whole number.
    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, Problem> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Problem::malformed(format!(
                "`{name}` must be a whole number, got `{text}`"
            ))),
        }
    }
}

fn values(name: Option<&str>) -> Result<Values, Problem> {
    let Some(name) = name else {
        return Ok(Values::default());
    };
    Values::from_name(name).ok_or_else(|| {
        let names = Values::NAMES.join(" or ");
        Problem::malformed(format!("`values` must be {names}, got `{name}`"))
    })
}

/// Decodes the escapes of an address once.
///
/// # Errors
/// When an escape is malformed or the result is not UTF-8.
pub(super) fn decoded(text: &str, is_query: bool) -> Result<String, Problem> {
    let malformed = || Problem::malformed(format!("`{text}` has a malformed escape"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) else {
                    return Err(malformed());
                };
                (high * 16 + low) as u8
            }
            b'+' if is_query => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| malformed())
}

/// Reads a body to its end.
///
/// # Errors
/// When it is too large, pauses too long, or its connection fails.
pub(super) async fn bytes(body: Body, most: usize) -> Result<Vec<u8>, Problem> {
    use http_body_util::BodyExt as _;
    use hyper::body::Body as _;
    let mut body = body;
    // One that says that it is too large is refused before any of it is read.
    if body.size_hint().lower() > most as u64 {
        return Err(too_large(most));
    }
    let mut bytes = Vec::new();
    let reading = async {
        loop {
            let frame = tokio::time::timeout(BODY_PAUSE, body.frame());
            let Some(frame) = frame.await.map_err(|_| slow())? else {
                return Ok(());
            };
            let frame = frame.map_err(|error| broken(&error))?;
            if let Some(data) = frame.data_ref() {
                if bytes.len() + data.len() > most {
                    return Err(too_large(most));
                }
                bytes.extend_from_slice(data);
            }
        }
    };
    tokio::time::timeout(BODY_TIME, reading)
        .await
        .map_err(|_| slow())??;
    Ok(bytes)
}

pub(super) fn too_large(most: usize) -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        codes::TOO_LARGE,
        format!("the body of the request has more than {most} bytes"),
    )
}

pub(super) fn slow() -> Problem {
    Problem::new(
        StatusCode::REQUEST_TIMEOUT,
        codes::SLOW,
        "the body of the request did not arrive in time",
    )
}

/// The members of a JSON object in a body.
#[derive(Debug, Clone, Default)]
pub(super) struct Members(Map<String, Json>);

impl Members {
    /// Reads a JSON object. An empty body is an empty object.
    ///
    /// # Errors
    /// When the body is not a JSON object with known members, each once.
    pub(super) async fn read(
        headers: &HeaderMap,
        body: Body,
        known: &[&str],
    ) -> Result<Members, Problem> {
        Members::read_within(headers, body, known, JSON_MAX).await
    }

    pub(super) async fn read_within(
        headers: &HeaderMap,
        body: Body,
        known: &[&str],
        most: usize,
    ) -> Result<Members, Problem> {
        let bytes = bytes(body, most).await?;
        if bytes.is_empty() {
            return Ok(Members::default());
        }
        refuse_other_types(headers)?;
        let Json::Object(given) = json(&bytes)? else {
            return Err(Problem::malformed(
                "the body of the request must be a JSON object",
            ));
        };
        Members::of(given, known)
    }

    /// Takes the members of an object.
    fn of(given: Map<String, Json>, known: &[&str]) -> Result<Members, Problem> {
        let mut members = Map::new();
        for (name, value) in given {
            let plain = camel(&name);
            if !known.contains(&&*plain) {
                let near = flowstone_engine::diagnostic::nearest(&plain, known.iter().copied());
                let problem =
                    Problem::malformed(format!("`{name}` is not a member of this request"));
                return Err(match near {
                    Some(near) => problem.hint(format!("did you mean `{near}`?")),
                    None => problem.hint(format!("it takes: {}", known.join(", "))),
                });
            }
            if members.insert(plain, value).is_some() {
                return Err(Problem::malformed(format!("`{name}` is given twice")));
            }
        }
        Ok(Members(members))
    }

    /// Returns a digest of the members, which does not depend on their order.
    pub(super) fn digest(&self) -> String {
        let mut text = String::new();
        write_sorted(&Json::Object(self.0.clone()), &mut text);
        flowstone_engine::codec::digest_bytes(text.as_bytes())
    }

    /// Returns a member that is not null.
    pub(super) fn get(&self, name: &str) -> Option<&Json> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Problem> {
        match self.get(name) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(wrong(name, "a string", other)),
        }
    }

    /// Returns a member that is a text, or a whole number as its digits.
    pub(super) fn name(&self, name: &str) -> Result<Option<String>, Problem> {
        match self.get(name).and_then(Json::as_i64) {
            Some(number) => Ok(Some(number.to_string())),
            None => self.text(name),
        }
    }

    /// Returns a member that is a value of a flow.
    pub(super) fn value(&self, name: &str, values: Values) -> Result<Option<Given>, Problem> {
        let value = self.get(name);
        value.map(|it| Given::of(name, it, values)).transpose()
    }

    /// Returns the values of a list; `None` if it is not given.
    pub(super) fn value_list(
        &self,
        name: &str,
        values: Values,
    ) -> Result<Option<Vec<Given>>, Problem> {
        match self.get(name) {
            None => Ok(None),
            Some(Json::Array(items)) => {
                let given = items.iter().map(|item| Given::of(name, item, values));
                given.collect::<Result<_, _>>().map(Some)
            }
            Some(other) => Err(wrong(name, "a list", other)),
        }
    }

    /// Returns the values of an object by their names; none if it is not given.
    pub(super) fn value_map(
        &self,
        name: &str,
        values: Values,
    ) -> Result<Vec<(String, Given)>, Problem> {
        let members = self.object(name)?.into_iter();
        let given = members.map(|(name, value)| {
            let value = Given::of(&name, &value, values)?;
            Ok((name, value))
        });
        given.collect()
    }

    /// Returns how values of flows are written in the answer, or in this request.
    pub(super) fn values(&self) -> Result<Values, Problem> {
        values(self.text("values")?.as_deref())
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Problem> {
        match self.get(name) {
            None => Ok(None),
            Some(Json::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(wrong(name, "true or false", other)),
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, Problem> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => match value.as_i64() {
                Some(number) => Ok(Some(number)),
                None => Err(wrong(name, "a whole number", value)),
            },
        }
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, Problem> {
        let Some(value) = self.get(name) else {
            return Ok(Vec::new());
        };
        let items = value.as_array().and_then(|items| {
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<String>>>()
        });
        items.ok_or_else(|| wrong(name, "a list of strings", value))
    }

    /// Returns the members of an object; none if it is not given.
    pub(super) fn object(&self, name: &str) -> Result<Map<String, Json>, Problem> {
        match self.get(name) {
            None => Ok(Map::new()),
            Some(Json::Object(members)) => Ok(members.clone()),
            Some(other) => Err(wrong(name, "an object", other)),
        }
    }

    /// Returns the members of an object with these names; none if it is not given.
    pub(super) fn inner(&self, name: &str, known: &[&str]) -> Result<Members, Problem> {
        Members::of(self.object(name)?, known)
    }

    /// Returns the members of each object of a list; none if it is not given.
    pub(super) fn entries(&self, name: &str, known: &[&str]) -> Result<Vec<Members>, Problem> {
        let Some(value) = self.get(name) else {
            return Ok(Vec::new());
        };
        let Some(items) = value.as_array() else {
            return Err(wrong(name, "a list of objects", value));
        };
        let entry = |item: &Json| match item {
            Json::Object(members) => Members::of(members.clone(), known),
            other => Err(wrong(name, "a list of objects", other)),
        };
        items.iter().map(entry).collect()
    }

    /// Returns a length of time, such as `"30s"`.
    pub(super) fn duration(&self, name: &str) -> Result<Option<Duration>, Problem> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        match flowstone_engine::duration::parse(&text) {
            Some(duration) => Ok(Some(duration)),
            None => Err(Problem::malformed(format!(
                "`{name}` must be a duration such as 500ms, 10s, 5m, 2h or 1d, got `{text}`"
            ))),
        }
    }
}

/// A value of a flow in a request. A value of the language stays on its thread, so this is what it is made of there.
#[derive(Debug, Clone)]
pub(super) enum Given {
    Json(Json),
    /// EDN that can be read.
    Edn(String),
}

impl Given {
    fn of(name: &str, json: &Json, values: Values) -> Result<Given, Problem> {
        match (values, json) {
            (Values::Json, json) => Ok(Given::Json(json.clone())),
            (Values::Edn, Json::String(text)) => match codec::decode(text) {
                Ok(_) => Ok(Given::Edn(text.clone())),
                Err(error) => Err(Problem::malformed(format!("`{name}` is not EDN: {error}"))
                    .hint("with `values` as `edn`, each value is a string such as \"{:n 1.50M}\"")),
            },
            (Values::Edn, other) => Err(wrong(name, "a string of EDN", other)),
        }
    }

    /// Returns the value.
    pub(super) fn value(&self) -> Value {
        match self {
            Given::Json(json) => from_json(json),
            // It was read before.
            Given::Edn(text) => codec::decode(text).unwrap_or(Value::Nil),
        }
    }
}

/// Writes JSON with the members of objects sorted.
fn write_sorted(json: &Json, text: &mut String) {
    match json {
        Json::Array(items) => {
            text.push('[');
            for item in items {
                write_sorted(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Json::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_unstable();
            text.push('{');
            for name in names {
                *text += &Json::String(name.clone()).to_string();
                text.push(':');
                write_sorted(members.get(name).unwrap_or(&Json::Null), text);
                text.push(',');
            }
            text.push('}');
        }
        // 2 and 2.0 are one number.
        Json::Number(number) => match number
            .as_f64()
            .filter(|it| number.is_f64() && is_whole(*it))
        {
            Some(whole) => *text += &format!("{whole:.0}"),
            None => *text += &number.to_string(),
        },
        plain => *text += &plain.to_string(),
    }
}

/// Tells whether a number is an integer that is written with all its digits.
fn is_whole(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0
}

fn wrong(name: &str, expected: &str, found: &Json) -> Problem {
    let found = match found {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    };
    Problem::malformed(format!("`{name}` must be {expected}, got {found}"))
}

/// Refuses bodies that are not declared as JSON. A form of a page cannot declare that without asking first.
pub(super) fn refuse_other_types(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let name = kind.split(';').next().unwrap_or_default().trim();
    match name.eq_ignore_ascii_case("application/json") {
        true => Ok(()),
        false => Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            codes::MEDIA_TYPE,
            format!("expected a body of type `application/json`, got `{name}`"),
        )),
    }
}

/// Reads JSON in which no member of an object stands twice.
///
/// # Errors
/// When it is not JSON, or too deep.
pub(super) fn json(bytes: &[u8]) -> Result<Json, Problem> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Problem::malformed("the body of the request is not UTF-8"))?;
    // The parser ends at 128 levels.
    read_strictly(text).map_err(|error| {
        Problem::malformed(format!("the body of the request is not JSON: {error}"))
    })
}

/// Returns a name in camel case; kebab and snake case are taken, too.
fn camel(name: &str) -> String {
    let mut plain = String::new();
    let mut is_next_upper = false;
    for char in name.chars() {
        match char {
            '-' | '_' if !plain.is_empty() => is_next_upper = true,
            char if is_next_upper => {
                plain.extend(char.to_uppercase());
                is_next_upper = false;
            }
            char => plain.push(char),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> String {
        match Query::read(Some(text), &["flow", "limit"]) {
            Ok(query) => format!(
                "{:?} {:?}",
                query.get("flow"),
                query.limit().map_err(|it| it.detail)
            ),
            Err(problem) => problem.detail,
        }
    }

    #[test]
    fn queries_are_taken_strictly() {
        assert_eq!(query("flow=a%20b+c&limit=7"), "Some(\"a b c\") Ok(7)");
        assert_eq!(query(""), "None Ok(50)");
        assert_eq!(query("flo=a"), "`flo` is not a parameter of this address");
        assert_eq!(
            query("flow=a&flow=b"),
            "the parameter `flow` is given twice"
        );
        assert_eq!(query("flow=%zz"), "`%zz` has a malformed escape");
        assert_eq!(query("flow=%ff"), "`%ff` has a malformed escape");
        for limit in ["0", "501"] {
            assert!(query(&format!("limit={limit}")).contains("from 1 to 500"));
        }
    }

    #[test]
    fn names_of_members_have_three_spellings() {
        for name in ["startedBy", "started-by", "started_by"] {
            assert_eq!(camel(name), "startedBy");
        }
    }

    #[test]
    fn equal_members_have_equal_digests() {
        let digest = |text: &str| match json(text.as_bytes()) {
            Ok(Json::Object(members)) => Members(members).digest(),
            _ => panic!("{text}"),
        };
        let one = digest(r#"{"a": 2, "b": {"c": [1, "x"], "d": -0.5}}"#);
        assert_eq!(one, digest(r#"{"b":{"d":-5e-1,"c":[1.0,"x"]},"a":2.0}"#));
        for other in [
            r#"{"a": 2.5, "b": {"c": [1, "x"], "d": -0.5}}"#,
            r#"{"a": "2", "b": {"c": [1, "x"], "d": -0.5}}"#,
            r#"{"a": 2, "b": {"c": ["x", 1], "d": -0.5}}"#,
        ] {
            assert_ne!(one, digest(other), "{other}");
        }
    }

    #[test]
    fn json_is_taken_strictly() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(json(nested(127).as_bytes()).is_ok());
        for text in [r#"{"a":1,"a":2}"#, "{", "\u{feff}{}", &nested(129)] {
            assert!(json(text.as_bytes()).is_err(), "{text}");
        }
        assert!(json(b"\xff").is_err());
    }
}
