//! Handlebars templates without HTML escaping, for prompts and requests.
//!
//! A missing variable renders as empty text; with `strict` it is an error. Rendering reads only the template and its
//! data, so it gives the same text on replay. The cost of a template is limited: its nesting, the iterations of its
//! blocks, and the size of its output.

mod scan;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flowstone_flow::diagnostic::nearest;
use handlebars::template::{HelperTemplate, Parameter, Subexpression, TemplateElement};
use handlebars::{
    Context, Handlebars, Helper, HelperDef, JsonRender, RenderContext, RenderError,
    RenderErrorReason, ScopedJson, Template,
};
use serde_json::Value as Json;

pub use scan::{Use, uses};

/// The helpers that templates may call beside Handlebars' own.
pub const HELPERS: &[&str] = &[
    "default", "first", "join", "json", "last", "length", "truncate",
];

/// Handlebars' built-in helpers.
const BUILT_IN: &[&str] = &[
    "and", "each", "eq", "gt", "gte", "if", "len", "lookup", "lt", "lte", "ne", "not", "or", "raw",
    "unless", "with",
];

/// Maximum size of the output.
const MOST_WRITTEN: usize = 16 << 20;
/// Maximum number of iterations and helper calls; a call with a large result counts more.
const MOST_TURNS: usize = 1_000_000;

/// An error in a template, or in rendering it.
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
    #[error("the template calls the helper `{name}`, which does not exist{}; there are: {}", meant(name), HELPERS.join(", "))]
    UnknownHelper { name: String },
    #[error("the template is nested deeper than {} levels", scan::MOST_NESTED)]
    TooDeep,
    #[error(
        "the template includes another with `{{{{>`, which templates here cannot; `#flow/include` puts texts together"
    )]
    Partial,
    #[error("the template writes more than {MOST_WRITTEN} bytes")]
    TooLong,
    #[error("the template turns its blocks more than {MOST_TURNS} times")]
    TooMany,
    #[error("rendering the template failed: {reason}")]
    Failed { reason: String },
}

fn meant(name: &str) -> String {
    let known = HELPERS.iter().chain(BUILT_IN).copied();
    nearest(name, known).map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"))
}

/// Renders a template with an object of data. A map or list is written as JSON.
///
/// # Errors
/// When the template is malformed, calls an unknown helper, or, with `strict`, uses a missing variable.
pub fn render(template: &str, data: &Json, strict: bool) -> Result<String, TemplateError> {
    if !template.contains("{{") {
        return Ok(template.to_owned());
    }
    let spent = Arc::new(AtomicUsize::new(0));
    let mut registry = registry(&spent);
    registry.set_strict_mode(strict);
    registry.register_template(NAME, compile(template)?);
    let mut written = Bounded::default();
    let rendered = registry.render_to_write(NAME, data, &mut written);
    match rendered {
        _ if written.is_over => Err(TemplateError::TooLong),
        Err(_) if spent.load(Ordering::Relaxed) > MOST_TURNS => Err(TemplateError::TooMany),
        Err(error) => Err(failed(&error)),
        Ok(()) => String::from_utf8(written.bytes).map_err(|error| TemplateError::Failed {
            reason: error.to_string(),
        }),
    }
}

/// A text with a maximum length.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    is_over: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MOST_WRITTEN {
            self.is_over = true;
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Renders every string inside a JSON value; object keys stay as they are.
///
/// # Errors
/// As for [`render`].
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
/// When it is malformed.
pub fn check(template: &str) -> Result<(), TemplateError> {
    compile(template).map(drop)
}

const NAME: &str = "template";
/// The helper that writes the value of a tag.
const SHOW: &str = "flowstone-show";
/// The helper at the end of each block's body, which counts.
const TURN: &str = "flowstone-turn";

fn registry(spent: &Arc<AtomicUsize>) -> Handlebars<'static> {
    let mut registry = Handlebars::new();
    registry.register_escape_fn(handlebars::no_escape);
    // The built-in one writes to the log of the process.
    registry.unregister_helper("log");
    for (name, run) in OWN {
        let spent = Arc::clone(spent);
        let own = Own {
            name,
            run: *run,
            spent,
        };
        registry.register_helper(name, Box::new(own));
    }
    registry
}

fn compile(template: &str) -> Result<Template, TemplateError> {
    if scan::depth(template) > scan::MOST_NESTED {
        return Err(TemplateError::TooDeep);
    }
    let malformed = |error: handlebars::TemplateError| TemplateError::Malformed {
        reason: error.reason().to_string(),
        at: error.pos(),
    };
    let mut compiled = Template::compile(template).map_err(malformed)?;
    scan::check(&compiled)?;
    let turn = Template::compile(&format!("{{{{{TURN} 1}}}}")).map_err(malformed)?;
    prepare(&mut compiled, &turn.elements);
    Ok(compiled)
}

/// Makes all output go through [`SHOW`], which can write maps and lists, so that a bare `{{variable}}` may have the
/// name of a helper. Also makes each iteration of a block count.
fn prepare(template: &mut Template, turn: &[TemplateElement]) {
    for element in &mut template.elements {
        match element {
            TemplateElement::Expression(call) | TemplateElement::HtmlExpression(call) => {
                let is_variable = scan::is_variable(call);
                let show = Parameter::Name(SHOW.to_owned());
                let name = std::mem::replace(&mut call.name, show);
                let shown = if is_variable {
                    name
                } else {
                    let params = std::mem::take(&mut call.params);
                    let hash = std::mem::take(&mut call.hash);
                    Parameter::Subexpression(Subexpression::new(name, params, hash))
                };
                call.params.push(shown);
            }
            TemplateElement::HelperBlock(block) => {
                let HelperTemplate {
                    template, inverse, ..
                } = &mut **block;
                for inner in template.iter_mut().chain(inverse) {
                    prepare(inner, turn);
                    inner.elements.extend_from_slice(turn);
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

/// A helper's arguments: first the value that it applies to.
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
        self.wrong_part(expected, self.value)
    }

    /// Rejects an option, or another part of the call.
    fn wrong_part(&self, expected: &str, got: &Json) -> RenderError {
        let (name, got) = (self.name, shown(got));
        RenderErrorReason::Other(format!("`{name}` needs {expected}, and got {got}")).into()
    }
}

type Run = fn(&Call<'_>) -> Result<Json, RenderError>;

/// Flowstone's own helpers, sorted by name.
const OWN: &[(&str, Run)] = &[
    ("default", default),
    ("first", first),
    (SHOW, show),
    ("join", join),
    ("json", json),
    ("last", last),
    ("length", length),
    ("truncate", truncate),
    (TURN, turn),
];

struct Own {
    name: &'static str,
    run: Run,
    /// The cost of the rendering so far.
    spent: Arc<AtomicUsize>,
}

/// Returns the size of a value in pieces of about the size of a word.
fn weight(value: &Json) -> usize {
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) => 1,
        Json::String(text) => 1 + text.len() / 64,
        Json::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Json::Object(entries) => 1 + entries.values().map(weight).sum::<usize>(),
    }
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
        let value = (self.run)(&call)?;
        let before = self.spent.fetch_add(weight(&value), Ordering::Relaxed);
        if before > MOST_TURNS {
            return Err(RenderErrorReason::Other("it turns too often".to_owned()).into());
        }
        Ok(ScopedJson::Derived(value))
    }
}

fn turn(_: &Call<'_>) -> Result<Json, RenderError> {
    Ok(Json::from(""))
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
            .ok_or_else(|| call.wrong_part("a `length` of 0 or more", length))?,
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

/// Returns the text of a value inside a sentence: JSON for maps and lists, nothing for null.
fn shown(value: &Json) -> String {
    match value {
        Json::Object(_) | Json::Array(_) => value.to_string(),
        plain => plain.render(),
    }
}
