//! The arguments of an operation. Models and people spell them differently; what would say who asks is left out.

use std::rc::Rc;

use flowstone_flow::flow::name_of;
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;
use flowstone_model::diagnostic::nearest;

use flowstone_steps::text::brief;

/// Decided by the person who runs the flow, never by arguments.
const STRIPPED: &[&str] = &[
    "actor",
    "allow",
    "api-url",
    "auth",
    "mutations",
    "token",
    "workspace-id",
];

/// What each operation takes.
const KNOWN: &[(&str, &[&str])] = &[
    ("docs/find", &["limit", "query"]),
    ("docs/show", &["page", "section"]),
    ("feedback/send", &["flow-slug", "message", "title"]),
    (
        "flows/list",
        &["archived", "cursor", "include-archived", "limit"],
    ),
    ("flows/pull", &["flow-slug", "source", "version"]),
    ("flows/push-draft", &["base", "flow-literal", "message"]),
    ("flows/run", &["flow-slug", "input", "target", "version"]),
    (
        "flows/show",
        &["flow-slug", "include-flow-literal", "source", "version"],
    ),
    (
        "resources/list",
        &["cursor", "limit", "prefix", "query", "run-id", "type"],
    ),
    ("resources/read", &["limit", "max-chars", "offset", "uri"]),
    ("runs/list", &["cursor", "flow-slug", "limit", "status"]),
    ("runs/show", &["run-id"]),
];

/// Other names for arguments.
const ALIASES: &[(&str, &str)] = &[
    ("id", "run-id"),
    ("workflow-id", "run-id"),
    ("slug", "flow-slug"),
    ("flow", "flow-slug"),
    ("resource-uri", "uri"),
    ("ref", "uri"),
    ("text", "message"),
    ("q", "query"),
];

pub(super) struct Args {
    op: String,
    given: Vec<(String, Value)>,
}

impl Args {
    /// Reads the arguments of an operation.
    pub(super) fn read(op: &str, given: &Value) -> Result<Args, StepError> {
        let known = KNOWN
            .iter()
            .find(|(name, _)| *name == op)
            .map_or(&[][..], |(_, known)| known);
        let mut args = Args {
            op: op.to_owned(),
            given: Vec::new(),
        };
        for (key, value) in given.as_map().into_iter().flat_map(|map| map.iter()) {
            let name = name_of(key).unwrap_or_default();
            let same = |known: &&&str| plain(known) == plain(&name);
            if STRIPPED.iter().any(|stripped| same(&stripped)) || value.is_nil() {
                continue;
            }
            let alias = ALIASES
                .iter()
                .find(|(alias, meant)| plain(alias) == plain(&name) && known.contains(meant));
            let found = known
                .iter()
                .find(same)
                .copied()
                .or(alias.map(|(_, meant)| *meant));
            let Some(found) = found else {
                let error = args.wrong(format!("`{op}` takes no `{name}`"));
                return Err(match nearest(&name, known.iter().copied()) {
                    Some(near) => error.hint(format!("did you mean `{near}`?")),
                    None => error.hint(format!("it takes {}", known.join(", "))),
                });
            };
            args.given.push((found.to_owned(), value.clone()));
        }
        Ok(args)
    }

    pub(super) fn wrong(&self, message: impl Into<String>) -> StepError {
        StepError::new("E0839", "invalid", message)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.given
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }

    pub(super) fn name(&self, name: &str) -> Result<Option<Rc<str>>, StepError> {
        match self.get(name) {
            None => Ok(None),
            Some(given @ (Value::Keyword(_) | Value::Text(_))) => {
                let text = name_of(given).unwrap_or_default();
                Ok(Some(Rc::from(text.trim_start_matches(':').trim()))
                    .filter(|it: &Rc<str>| !it.is_empty()))
            }
            Some(other) => Err(self.wrong(format!(
                "`{name}` of `{}` is a text, not {}",
                self.op,
                brief(other)
            ))),
        }
    }

    pub(super) fn needed(&self, name: &str) -> Result<Rc<str>, StepError> {
        self.name(name)?
            .ok_or_else(|| self.wrong(format!("`{}` needs `{name}`", self.op)))
    }

    /// Returns a text as it is, with its spaces.
    pub(super) fn needed_text(&self, name: &str) -> Result<&str, StepError> {
        match self.get(name) {
            Some(Value::Text(text)) if !text.trim().is_empty() => Ok(text.as_str()),
            Some(other) => Err(self.wrong(format!(
                "`{name}` of `{}` is a text, not {}",
                self.op,
                brief(other)
            ))),
            None => Err(self.wrong(format!("`{}` needs `{name}`", self.op))),
        }
    }

    pub(super) fn bool(&self, name: &str) -> Result<bool, StepError> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(given)) => Ok(*given),
            Some(other) => Err(self.wrong(format!(
                "`{name}` of `{}` is true or false, not {}",
                self.op,
                brief(other)
            ))),
        }
    }

    pub(super) fn count(
        &self,
        name: &str,
        (least, most): (usize, usize),
    ) -> Result<Option<usize>, StepError> {
        let Some(given) = self.get(name) else {
            return Ok(None);
        };
        let number = given
            .as_int()
            .and_then(|number| usize::try_from(number).ok());
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(format!(
                "`{name}` of `{}` is a whole number from {least} to {most}, not {}",
                self.op,
                brief(given)
            ))),
        }
    }
}

fn plain(name: &str) -> String {
    let name = name.trim_start_matches(':').trim_end_matches('?');
    let letters = name.chars().filter(|char| !matches!(char, '-' | '_'));
    letters.flat_map(char::to_lowercase).collect()
}
