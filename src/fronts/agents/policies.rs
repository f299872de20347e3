//! Policies: which actions a key or an agent may perform on which records.
//!
//! A policy is a list of statements. Nothing is allowed unless a statement allows it, and a statement that denies wins. A policy
//! that cannot be read allows nothing. Pure but for the stored records.

pub mod extent;

use flowstone_engine::Engine;
use serde_json::{Map, Value as Json, json};

use super::body::{Body, Kind, Member, texts};
use super::error::ApiError;
use super::records::{self, Record, Records};
use super::{ids, permissions};

/// The body of a new policy.
pub const CREATE: &[Member] = &[
    Member::optional("description", Kind::Text, "What it is for."),
    Member::required(
        "document",
        Kind::Object,
        "`{statement: [{effect, action, resource?, condition?}]}`.",
    ),
    Member::optional("name", Kind::Name, "The name."),
];

const DOCUMENT: &[Member] = &[
    Member::required("statement", Kind::Objects, "The statements."),
    Member::optional("version", Kind::Text, "The version of the format."),
];
const STATEMENT: &[Member] = &[
    Member::required("action", Kind::Texts, "Such as `documents:*`."),
    Member::optional("condition", Kind::Object, "What must hold."),
    Member::required("effect", Kind::OneOf(&["Allow", "Deny"]), "The effect."),
    Member::optional("resource", Kind::Texts, "All if it is left out."),
    Member::optional("sid", Kind::Text, "The name of the statement."),
];
const SHOWN: &[&str] = &["description", "name"];
/// The prefixes of the names of resources.
const SCHEMES: &[&str] = &["soat", "srn"];
const TAG: &str = "soat:ResourceTag/";
const TYPE: &str = "soat:ResourceType";
/// The most statements of a policy, and patterns of a list.
const MOST: usize = 200;

/// What a policy decides about.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Such as `documents:GetDocument`.
    pub action: String,
    /// The id of the project; `*` stands for all.
    pub project: String,
    /// Such as `document`.
    pub kind: String,
    /// The id of the record; `*` for a list or a new record.
    pub id: String,
    /// The path of a document.
    pub path: Option<String>,
    /// A text for each name, or a list of texts.
    pub tags: Map<String, Json>,
}

impl Request {
    /// Returns the same request for another action.
    pub fn for_action(&self, action: &str) -> Request {
        Request {
            action: action.to_owned(),
            ..self.clone()
        }
    }
}

/// A policy that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy(Vec<Statement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Statement {
    allows: bool,
    actions: Vec<String>,
    resources: Vec<Resource>,
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Resource {
    All,
    Named {
        project: String,
        kind: String,
        id: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equals,
    NotEquals,
    Like,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    operator: Operator,
    /// The key of a tag; nothing: the type of the record.
    tag: Option<String>,
    values: Vec<String>,
}

/// What a policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Allowed,
    Denied,
    Silent,
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// When a part has another form. `at` is the place that the error names.
    pub fn read(document: &Json, at: &str) -> Result<Policy, ApiError> {
        let body = Body::read(document.clone(), DOCUMENT).map_err(|error| within(at, &error))?;
        let statements = body.items("statement");
        if statements.len() > MOST {
            return Err(ApiError::invalid(format!(
                "`{at}.statement` has more than {MOST} statements"
            )));
        }
        let read = |(idx, given): (usize, &Json)| {
            let at = format!("{at}.statement[{idx}]");
            let body = Body::read(given.clone(), STATEMENT).map_err(|error| within(&at, &error))?;
            Statement::read(&body, &at)
        };
        let statements = statements.iter().enumerate().map(read);
        Ok(Policy(statements.collect::<Result<_, _>>()?))
    }

    /// Checks that the policy names only operations and types that exist: another statement would do nothing.
    ///
    /// # Errors
    /// The first name that is unknown, with the nearest known one.
    pub fn check_names(&self, at: &str) -> Result<(), ApiError> {
        for (idx, statement) in self.0.iter().enumerate() {
            let wrong = |member: &str, message: String| {
                ApiError::invalid(format!("`{at}.statement[{idx}].{member}` has {message}"))
            };
            let mut actions = statement.actions.iter();
            if let Some(message) = actions.find_map(|it| permissions::unknown_action(it)) {
                return Err(wrong("action", message));
            }
            if let Some(message) = statement.resources.iter().find_map(Resource::unknown) {
                return Err(wrong("resource", message));
            }
            if let Some(message) = statement.conditions.iter().find_map(Condition::unknown) {
                return Err(wrong("condition", message));
            }
        }
        Ok(())
    }

    fn verdict(&self, request: &Request) -> Verdict {
        let mut verdict = Verdict::Silent;
        for statement in self.0.iter().filter(|it| it.matches(request)) {
            if !statement.allows {
                return Verdict::Denied;
            }
            verdict = Verdict::Allowed;
        }
        verdict
    }
}

/// Tells whether several policies together allow a request: one allows it, and none denies it.
pub fn allow(policies: &[Policy], request: &Request) -> bool {
    let verdicts: Vec<Verdict> = policies.iter().map(|it| it.verdict(request)).collect();
    verdicts.contains(&Verdict::Allowed) && !verdicts.contains(&Verdict::Denied)
}

/// Tells whether a statement of several policies denies a request.
pub fn deny(policies: &[Policy], request: &Request) -> bool {
    let mut verdicts = policies.iter().map(|it| it.verdict(request));
    verdicts.any(|it| it == Verdict::Denied)
}

fn within(at: &str, error: &ApiError) -> ApiError {
    ApiError::invalid(format!("`{at}`: {error}"))
}

impl Statement {
    fn read(body: &Body, at: &str) -> Result<Statement, ApiError> {
        let actions = body.texts("action");
        let resources = match body.get("resource") {
            None => vec!["*".to_owned()],
            Some(given) => texts(Some(given)),
        };
        for (name, list) in [("action", &actions), ("resource", &resources)] {
            if list.is_empty() || list.len() > MOST {
                return Err(ApiError::invalid(format!(
                    "`{at}.{name}` must have 1 to {MOST} entries"
                )));
            }
        }
        if let Some(wrong) = actions.iter().find(|it| !is_action(it)) {
            return Err(ApiError::invalid(format!(
                "`{at}.action` has `{wrong}`; expected `*`, `module:*` or `module:Operation`"
            )));
        }
        let resources = resources.iter().map(|it| Resource::read(it, at));
        let resources = resources.collect::<Result<_, _>>()?;
        let given = body.get("condition").and_then(Json::as_object);
        let mut conditions = Vec::new();
        for (operator, tests) in given.into_iter().flatten() {
            conditions.extend(Condition::read_all(operator, tests, at)?);
        }
        Ok(Statement {
            allows: body.text("effect") == Some("Allow"),
            actions,
            resources,
            conditions,
        })
    }

    fn names_action(&self, action: &str) -> bool {
        let is_it = |pattern: &String| match pattern.strip_suffix('*') {
            Some(module) => action.starts_with(module),
            None => pattern == action,
        };
        self.actions.iter().any(is_it)
    }

    fn matches(&self, request: &Request) -> bool {
        self.names_action(&request.action)
            && self.resources.iter().any(|it| it.matches(request))
            && self.conditions.iter().all(|it| it.holds(request))
    }
}

fn is_action(pattern: &str) -> bool {
    let is_name = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || it == b'-')
    };
    match pattern.split_once(':') {
        None => pattern == "*",
        Some((module, operation)) => is_name(module) && (operation == "*" || is_name(operation)),
    }
}

impl Resource {
    fn read(pattern: &str, at: &str) -> Result<Resource, ApiError> {
        if pattern == "*" {
            return Ok(Resource::All);
        }
        let parts: Vec<&str> = pattern.splitn(4, ':').collect();
        let is_part = |part: &str| part == "*" || (!part.is_empty() && !part.contains('*'));
        match parts[..] {
            [scheme, project, kind, id]
                if SCHEMES.contains(&scheme)
                    && is_part(project)
                    && is_part(kind)
                    && (is_part(id) || id.starts_with('/')) =>
            {
                Ok(Resource::Named {
                    project: project.to_owned(),
                    kind: plain(kind),
                    id: id.to_owned(),
                })
            }
            _ => Err(ApiError::invalid(format!(
                "`{at}.resource` has `{pattern}`; expected `*` or `soat:PROJECT:TYPE:ID`, where each part may be `*`"
            ))),
        }
    }

    /// Returns what is wrong with the type, if no record has it.
    fn unknown(&self) -> Option<String> {
        let Resource::Named { kind, id, .. } = self else {
            return None;
        };
        let is_path = id.starts_with('/');
        permissions::unknown_type(kind).or_else(|| {
            (is_path && !matches!(kind.as_str(), "*" | "document")).then(|| {
                format!("the path `{id}` for the type `{kind}`; only documents have paths")
            })
        })
    }

    fn matches(&self, request: &Request) -> bool {
        let Resource::Named { project, kind, id } = self else {
            return true;
        };
        let is_it = |pattern: &str, found: &str| {
            pattern == "*" || (found != "*" && ids::key_of(pattern) == ids::key_of(found))
        };
        let is_path = |path: &String| id.starts_with('/') && is_like(id, path);
        is_it(project, &request.project)
            && (kind == "*" || *kind == plain(&request.kind))
            && (is_it(id, &request.id) || request.path.as_ref().is_some_and(is_path))
    }
}

fn plain(kind: &str) -> String {
    kind.replace('_', "-").to_ascii_lowercase()
}

impl Condition {
    fn read_all(operator: &str, tests: &Json, at: &str) -> Result<Vec<Condition>, ApiError> {
        let wrong = |message: String| ApiError::invalid(format!("`{at}.condition`: {message}"));
        let operator = match operator {
            "StringEquals" => Operator::Equals,
            "StringLike" => Operator::Like,
            "StringNotEquals" => Operator::NotEquals,
            other => {
                return Err(wrong(format!(
                    "`{other}` is not an operator; expected StringEquals, StringNotEquals or StringLike"
                )));
            }
        };
        let Some(tests) = tests.as_object() else {
            return Err(wrong("an operator must have an object".to_owned()));
        };
        let read = |(key, value): (&String, &Json)| {
            let tag = match key.strip_prefix(TAG) {
                Some(tag) if !tag.is_empty() => Some(tag.to_owned()),
                None if key == TYPE => None,
                Some(_) | None => {
                    return Err(wrong(format!(
                        "`{key}` is not a key; expected `{TAG}NAME` or `{TYPE}`"
                    )));
                }
            };
            let values = match value {
                Json::String(text) => vec![text.clone()],
                Json::Array(items) if items.iter().all(Json::is_string) => texts(Some(value)),
                _ => {
                    return Err(wrong(format!(
                        "`{key}` must be a string or a list of strings"
                    )));
                }
            };
            Ok(Condition {
                operator,
                tag,
                values,
            })
        };
        tests.iter().map(read).collect()
    }

    /// Returns what is wrong with a type that the condition names, if no record has it.
    fn unknown(&self) -> Option<String> {
        match (&self.tag, self.operator) {
            (Some(_), _) | (None, Operator::Like) => None,
            (None, Operator::Equals | Operator::NotEquals) => {
                let mut values = self.values.iter();
                values.find_map(|it| permissions::unknown_type(it))
            }
        }
    }

    fn holds(&self, request: &Request) -> bool {
        let found: Vec<&str> = match &self.tag {
            None => vec![request.kind.as_str()],
            Some(tag) => match request.tags.get(tag) {
                Some(Json::String(text)) => vec![text],
                Some(Json::Array(several)) => several.iter().filter_map(Json::as_str).collect(),
                Some(_) | None => Vec::new(),
            },
        };
        let mut pairs = self
            .values
            .iter()
            .flat_map(|value| found.iter().map(move |it| (value.as_str(), *it)));
        match self.operator {
            Operator::NotEquals => pairs.all(|(value, it)| value != it),
            Operator::Equals => pairs.any(|(value, it)| value == it),
            Operator::Like => pairs.any(|(value, it)| is_like(value, it)),
        }
    }
}

/// Matches a text with a pattern in which `*` stands for any text and `?` for one character.
fn is_like(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut from) = (0, 0);
    // Where to resume when what follows the last `*` does not match.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(&char) if char == '?' || char == text[from] => {
                at += 1;
                from += 1;
            }
            Some(_) | None => match star {
                Some((after, taken)) => {
                    at = after + 1;
                    from = taken + 1;
                    star = Some((after, taken + 1));
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|char| *char == '*')
}

/// Adds a policy.
///
/// # Errors
/// When the body or the policy is not valid.
pub async fn create(engine: &Engine, body: Json) -> Result<Json, ApiError> {
    let body = Body::read(body, CREATE)?;
    check(&body)?;
    Ok(shown(&Records::Policies.create(engine, body.0).await?))
}

/// Changes a policy. It holds for the next request or action.
///
/// # Errors
/// When the body or the policy is not valid, or no record has that id.
pub async fn update(engine: &Engine, id: &str, body: Json) -> Result<Json, ApiError> {
    let body = Body::read_changes(body, CREATE, CREATE)?;
    check(&body)?;
    let changing = async |mut record: Record| {
        body.clone().change(&mut record.members);
        Ok(record)
    };
    Ok(shown(
        &Records::Policies.change(engine, id, changing).await?,
    ))
}

/// Deletes a policy that no key has.
///
/// # Errors
/// When no record has that id, or a key has it.
pub async fn delete(engine: &Engine, id: &str) -> Result<(), ApiError> {
    let _references = records::hold_references().await;
    let record = Records::Policies.get(engine, id).await?;
    let keys = Records::Keys.list(engine).await?;
    let has_it = |key: &&Record| {
        let ids = texts(key.get("policy_ids"));
        ids.iter().any(|id| ids::key_of(id) == record.key())
    };
    if let Some(key) = keys.iter().find(has_it) {
        return Err(ApiError::conflict(format!(
            "the key `{}` has the policy",
            key.id()
        )));
    }
    Records::Policies.delete(engine, id).await
}

/// Returns a policy as answers show it.
pub fn shown(record: &Record) -> Json {
    record.to_json(SHOWN)
}

fn check(body: &Body) -> Result<(), ApiError> {
    match body.get("document") {
        Some(document) => Policy::read(document, "document")?.check_names("document"),
        None => Ok(()),
    }
}

/// Reads the stored policies of these ids; nothing if one is missing or cannot be read.
///
/// # Errors
/// When the store cannot be read.
pub async fn stored(engine: &Engine, ids: &[String]) -> Result<Option<Vec<Policy>>, ApiError> {
    let mut policies = Vec::new();
    for id in ids {
        let record = match Records::Policies.get(engine, id).await {
            Ok(record) => record,
            Err(ApiError::Refused(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let document = record.get("document").cloned().unwrap_or(json!({}));
        match Policy::read(&document, "document") {
            Ok(policy) => policies.push(policy),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(policies))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(action: &str, id: &str) -> Request {
        Request {
            action: action.to_owned(),
            project: "proj_A".to_owned(),
            kind: "document".to_owned(),
            id: id.to_owned(),
            path: Some("/reports/q1.txt".to_owned()),
            tags: json!({"team": "red", "level": "public"})
                .as_object()
                .cloned()
                .unwrap_or_default(),
        }
    }

    #[track_caller]
    fn check(statements: Json, expected: bool) {
        let policy = Policy::read(&json!({"statement": statements}), "document");
        let policy = policy.unwrap_or_else(|error| panic!("{error}"));
        let asked = request("documents:GetDocument", "doc_1");
        assert_eq!(allow(&[policy], &asked), expected, "{statements}");
    }

    #[test]
    fn nothing_is_allowed_by_default_and_a_denial_wins() {
        check(json!([]), false);
        check(json!([{"effect": "Allow", "action": ["*"]}]), true);
        check(
            json!([{"effect": "Allow", "action": ["documents:*"]}, {"effect": "Deny", "action": ["documents:GetDocument"]}]),
            false,
        );
        check(
            json!([{"effect": "Deny", "action": ["*"], "resource": ["soat:proj_B:*:*"]}, {"effect": "Allow", "action": ["documents:GetDocument"]}]),
            true,
        );
        check(
            json!([{"effect": "Allow", "action": ["documents:ListDocuments", "document:*"]}]),
            false,
        );
        let deny = Policy::read(
            &json!({"statement": [{"effect": "Deny", "action": ["*"]}]}),
            "d",
        );
        let all = Policy::read(
            &json!({"statement": [{"effect": "Allow", "action": ["*"]}]}),
            "d",
        );
        let both = [all.expect("a policy"), deny.expect("a policy")];
        assert!(!allow(&both, &request("a:B", "x")));
        assert!(!allow(&[], &request("a:B", "x")));
    }

    #[test]
    fn resources_match_part_by_part_in_both_schemes() {
        for (resource, expected) in [
            ("soat:proj_A:document:doc_1", true),
            ("srn:proj_A:document:doc_1", true),
            ("soat:*:*:*", true),
            ("soat:proj_A:document:*", true),
            ("soat:proj_B:document:*", false),
            ("soat:proj_A:agent:*", false),
            ("soat:proj_A:document:doc_2", false),
            ("soat:proj_A:document:/reports/*", true),
            ("soat:proj_A:document:/other/*", false),
        ] {
            check(
                json!([{"effect": "Allow", "action": ["*"], "resource": [resource]}]),
                expected,
            );
        }
    }

    #[test]
    fn a_list_needs_a_pattern_for_all_records() {
        let one = json!({"statement": [{"effect": "Allow", "action": ["*"], "resource": ["soat:proj_A:document:doc_1"]}]});
        let policy = [Policy::read(&one, "document").expect("a policy")];
        let listed = Request {
            path: None,
            ..request("documents:ListDocuments", "*")
        };
        assert!(!allow(&policy, &listed));
    }

    #[test]
    fn conditions_look_at_tags_and_the_type() {
        for (condition, expected) in [
            (
                json!({"StringEquals": {"soat:ResourceTag/team": "red"}}),
                true,
            ),
            (
                json!({"StringEquals": {"soat:ResourceTag/team": ["blue", "red"]}}),
                true,
            ),
            (
                json!({"StringEquals": {"soat:ResourceTag/team": "blue"}}),
                false,
            ),
            (
                json!({"StringEquals": {"soat:ResourceTag/none": "blue"}}),
                false,
            ),
            (
                json!({"StringNotEquals": {"soat:ResourceTag/team": "blue"}}),
                true,
            ),
            (
                json!({"StringNotEquals": {"soat:ResourceTag/none": "blue"}}),
                true,
            ),
            (
                json!({"StringNotEquals": {"soat:ResourceTag/team": "red"}}),
                false,
            ),
            (
                json!({"StringLike": {"soat:ResourceTag/level": "pub*"}}),
                true,
            ),
            (
                json!({"StringLike": {"soat:ResourceTag/level": "p?blic", "soat:ResourceTag/team": "b*"}}),
                false,
            ),
            (
                json!({"StringEquals": {"soat:ResourceType": "document"}}),
                true,
            ),
        ] {
            check(
                json!([{"effect": "Allow", "action": ["*"], "condition": condition}]),
                expected,
            );
        }
    }

    #[test]
    fn a_policy_that_is_malformed_is_refused() {
        for document in [
            json!({}),
            json!({"statement": {}}),
            json!({"statement": ["x"]}),
            json!({"statements": []}),
            json!({"statement": [{"effect": "allow", "action": ["*"]}]}),
            json!({"statement": [{"effect": "Allow"}]}),
            json!({"statement": [{"effect": "Allow", "action": []}]}),
            json!({"statement": [{"effect": "Allow", "action": "*"}]}),
            json!({"statement": [{"effect": "Allow", "action": ["documents"]}]}),
            json!({"statement": [{"effect": "Allow", "action": ["documents:Get*"]}]}),
            json!({"statement": [{"effect": "Allow", "action": ["*"], "resource": ["document"]}]}),
            json!({"statement": [{"effect": "Allow", "action": ["*"], "resource": ["soat:p:document:doc_X*"]}]}),
            json!({"statement": [{"effect": "Allow", "action": ["*"], "not_resource": ["*"]}]}),
            json!({"statement": [{"effect": "Allow", "action": ["*"], "condition": {"NumericEquals": {}}}]}),
            json!({"statement": [{"effect": "Allow", "action": ["*"], "condition": {"StringEquals": {"aws:x": "y"}}}]}),
            json!({"statement": [{"effect": "Allow", "action": ["*"], "condition": {"StringEquals": {"soat:ResourceTag/x": 1}}}]}),
        ] {
            assert!(Policy::read(&document, "document").is_err(), "{document}");
        }
    }

    #[test]
    fn a_pattern_with_many_stars_ends_soon() {
        assert!(!is_like(
            &"*a".repeat(200),
            &"a".repeat(5_000).replace("aaaaa", "aaaab")
        ));
        assert!(is_like("a*b?d", "a--bcd"));
    }
}
