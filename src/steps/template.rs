//! Handlebars templates without HTML escaping, for prompts and requests.
//!
//! A variable that is not there renders empty; with `strict` it is an error. Rendering reads nothing
//! but the template and its data, so it gives the same text on replay.

use handlebars::template::{Parameter, TemplateElement};
use handlebars::{
    Context, Handlebars, Helper, HelperDef, JsonRender, RenderContext, RenderError,
    RenderErrorReason, ScopedJson, Template,
};
use serde_json::Value as Json;

/// The helpers that templates may call beside Handlebars' own.
pub const HELPERS: &[&str] = &[
    "default", "first", "join", "json", "last", "length", "truncate",
];

/// What is wrong with a template, or with rendering it.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    #[error("the template is not well formed: {reason}")]
    Malformed {
        reason: String,
        /// Line and column, counted from 1.
        at: Option<(usize, usize)>,
    },
    #[error("the template uses `{name}`, which its data does not have")]
    MissingVariable { name: String },
    #[error("the template calls the helper `{name}`, which does not exist; there are: {}", HELPERS.join(", "))]
    UnknownHelper { name: String },
    #[error("rendering the template failed: {reason}")]
    Failed { reason: String },
}

/// Renders a template over an object of data. A map or list is shown as JSON.
///
/// # Errors
/// When the template is malformed, calls a helper that does not exist, or, with `strict`, uses a variable
/// that the data does not have.
pub fn render(template: &str, data: &Json, strict: bool) -> Result<String, TemplateError> {
    if !template.contains("{{") {
        return Ok(template.to_owned());
    }
    let mut registry = registry();
    registry.set_strict_mode(strict);
    registry.register_template(NAME, compile(template)?);
    registry.render(NAME, data).map_err(|error| failed(&error))
}

/// Renders every string inside a JSON value; object keys stay as they are.
///
/// # Errors
/// As [`render`].
pub fn render_all(shape: &Json, data: &Json, strict: bool) -> Result<Json, TemplateError> {
    Ok(match shape {
        Json::String(text) => Json::String(render(text, data, strict)?),
        Json::Array(items) => Json::Array(
            items
                .iter()
                .map(|item| render_all(item, data, strict))
                .collect::<Result<_, _>>()?,
        ),
        Json::Object(entries) => Json::Object(
            entries
                .iter()
                .map(|(key, value)| Ok((key.clone(), render_all(value, data, strict)?)))
                .collect::<Result<_, TemplateError>>()?,
        ),
        Json::Null | Json::Bool(_) | Json::Number(_) => shape.clone(),
    })
}

/// Checks that a template is well formed.
///
/// # Errors
/// When it is not.
pub fn check(template: &str) -> Result<(), TemplateError> {
    compile(template).map(drop)
}

const NAME: &str = "template";
/// The helper that a bare `{{variable}}` is compiled to.
const SHOW: &str = "flowstone-show";

fn registry() -> Handlebars<'static> {
    let mut registry = Handlebars::new();
    registry.register_escape_fn(handlebars::no_escape);
    // Handlebars' own, which writes to the process's log.
    registry.unregister_helper("log");
    for (name, run) in OWN {
        registry.register_helper(name, Box::new(Own { name, run: *run }));
    }
    registry
}

fn compile(template: &str) -> Result<Template, TemplateError> {
    let mut compiled = Template::compile(template).map_err(|error| TemplateError::Malformed {
        reason: error.reason().to_string(),
        at: error.pos(),
    })?;
    show_variables(&mut compiled);
    Ok(compiled)
}

/// Turns `{{variable}}` into a call of [`SHOW`], which knows how to write a map or a list. So a variable may
/// have the name of a helper.
fn show_variables(template: &mut Template) {
    for element in &mut template.elements {
        match element {
            TemplateElement::Expression(call) | TemplateElement::HtmlExpression(call) => {
                let bare = call.params.is_empty() && call.hash.is_empty();
                if bare && matches!(call.name, Parameter::Path(_)) {
                    let variable =
                        std::mem::replace(&mut call.name, Parameter::Name(SHOW.to_owned()));
                    call.params.push(variable);
                }
            }
            TemplateElement::HelperBlock(block) => {
                for inner in [&mut block.template, &mut block.inverse] {
                    inner.iter_mut().for_each(show_variables);
                }
            }
            _ => {}
        }
    }
}

fn failed(error: &RenderError) -> TemplateError {
    match error.reason() {
        RenderErrorReason::MissingVariable(name) => TemplateError::MissingVariable {
            name: name.clone().unwrap_or_else(|| "?".to_owned()),
        },
        RenderErrorReason::HelperNotFound(name) => {
            TemplateError::UnknownHelper { name: name.clone() }
        }
        reason => TemplateError::Failed {
            reason: match (error.line_no, error.column_no) {
                (Some(line), Some(column)) => format!("{reason} (line {line}, column {column})"),
                _ => reason.to_string(),
            },
        },
    }
}

/// A helper's arguments: first the value that it is about.
struct Call<'a> {
    name: &'static str,
    value: &'a Json,
    helper: &'a Helper<'a>,
}

impl<'a> Call<'a> {
    /// Returns an option given by name, or else by position.
    fn option(&self, name: &str, position: usize) -> Option<&'a Json> {
        self.helper
            .hash_get(name)
            .or_else(|| self.helper.param(position))
            .map(|found| found.value())
    }

    fn wrong(&self, expected: &str) -> RenderError {
        RenderErrorReason::Other(format!(
            "`{}` needs {expected}, and got {}",
            self.name,
            shown(self.value)
        ))
        .into()
    }
}

type Run = fn(&Call<'_>) -> Result<Json, RenderError>;

/// Our helpers. Sorted by name.
const OWN: &[(&str, Run)] = &[
    ("default", default),
    ("first", first),
    (SHOW, show),
    ("join", join),
    ("json", json),
    ("last", last),
    ("length", length),
    ("truncate", truncate),
];

struct Own {
    name: &'static str,
    run: Run,
}

impl HelperDef for Own {
    fn call_inner<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        registry: &'reg Handlebars<'reg>,
        _: &'rc Context,
        _: &mut RenderContext<'reg, 'rc>,
    ) -> Result<ScopedJson<'rc>, RenderError> {
        let Some(param) = helper.param(0) else {
            let reason = format!("`{}` needs a value: {{{{{} value}}}}", self.name, self.name);
            return Err(RenderErrorReason::Other(reason).into());
        };
        if param.is_value_missing() && registry.strict_mode() && self.name != "default" {
            return Err(RenderError::strict_error(param.relative_path()));
        }
        let call = Call {
            name: self.name,
            value: param.value(),
            helper,
        };
        (self.run)(&call).map(ScopedJson::Derived)
    }
}

fn show(call: &Call<'_>) -> Result<Json, RenderError> {
    Ok(match call.value {
        Json::Object(_) | Json::Array(_) => Json::from(call.value.to_string()),
        plain => plain.clone(),
    })
}

fn default(call: &Call<'_>) -> Result<Json, RenderError> {
    let fallback = call.option("fallback", 1).cloned().unwrap_or(Json::Null);
    Ok(match call.value {
        Json::Null => fallback,
        Json::String(text) if text.is_empty() => fallback,
        value => value.clone(),
    })
}

fn first(call: &Call<'_>) -> Result<Json, RenderError> {
    end(call, |items| items.first(), |text| text.chars().next())
}

fn last(call: &Call<'_>) -> Result<Json, RenderError> {
    end(call, |items| items.last(), |text| text.chars().next_back())
}

fn end(
    call: &Call<'_>,
    of_items: fn(&[Json]) -> Option<&Json>,
    of_text: fn(&str) -> Option<char>,
) -> Result<Json, RenderError> {
    Ok(match call.value {
        Json::Null => Json::Null,
        Json::Array(items) => of_items(items).cloned().unwrap_or(Json::Null),
        Json::String(text) => of_text(text).map_or(Json::Null, |char| Json::from(char.to_string())),
        _ => return Err(call.wrong("a list or a string")),
    })
}

fn length(call: &Call<'_>) -> Result<Json, RenderError> {
    Ok(Json::from(match call.value {
        Json::Null => 0,
        Json::Array(items) => items.len(),
        Json::Object(entries) => entries.len(),
        Json::String(text) => text.chars().count(),
        Json::Bool(_) | Json::Number(_) => return Err(call.wrong("a list, a map or a string")),
    }))
}

fn join(call: &Call<'_>) -> Result<Json, RenderError> {
    let separator = call.option("separator", 1).map_or(", ".to_owned(), shown);
    let items = match call.value {
        Json::Null => return Ok(Json::from("")),
        Json::Array(items) => items,
        _ => return Err(call.wrong("a list")),
    };
    let shown: Vec<String> = items.iter().map(shown).collect();
    Ok(Json::from(shown.join(&separator)))
}

fn json(call: &Call<'_>) -> Result<Json, RenderError> {
    let pretty = call
        .option("pretty", 1)
        .is_some_and(|flag| *flag == Json::Bool(true));
    let text = if pretty {
        serde_json::to_string_pretty(call.value).map_err(RenderErrorReason::from)?
    } else {
        call.value.to_string()
    };
    Ok(Json::from(text))
}

fn truncate(call: &Call<'_>) -> Result<Json, RenderError> {
    let length = match call.option("length", 1) {
        None => 100,
        Some(length) => length
            .as_u64()
            .and_then(|length| usize::try_from(length).ok())
            .ok_or_else(|| call.wrong("a `length` of 0 or more"))?,
    };
    let suffix = call.option("suffix", 2).map_or("...".to_owned(), shown);
    let text = shown(call.value);
    let count = text.chars().count();
    if count <= length {
        return Ok(Json::from(text));
    }
    let kept = length.saturating_sub(suffix.chars().count());
    let short: String = text.chars().take(kept).collect();
    let suffix: String = suffix.chars().take(length).collect();
    Ok(Json::from(short + &suffix))
}

/// The text of a value inside a sentence: JSON for maps and lists, nothing for null.
fn shown(value: &Json) -> String {
    match value {
        Json::Object(_) | Json::Array(_) => value.to_string(),
        plain => plain.render(),
    }
}
