//! A flow of one step, for performing the step by itself. The step's config is an input of the run.

use flowstone_lang::session::Session;
use flowstone_lang::value::Value;

use super::files::StoredFiles;
use super::load::{Checked, Main, read};
use super::{LoadedFlow, name_of};
use crate::diagnostic::Diagnostic;
use crate::text::printed;

/// Keys of a definition that only apply to its own runs.
const LEFT_OUT: &[&str] = &[
    "concurrency",
    "flow",
    "interfaces",
    "invocations",
    "limits",
    "schedules",
    "slug",
    "triggers",
];

/// Returns `:requires` without its forms: the values of a flow's setup are only for its own runs.
fn without_forms(requires: &Value) -> Value {
    let Some(entries) = requires.as_vector() else {
        return requires.clone();
    };
    let is_form = |entry: &&Value| entry.get("kind").and_then(name_of).as_deref() == Some("form");
    Value::vector(entries.iter().filter(|entry| !is_form(entry)).cloned())
}

/// Returns a flow that performs one step, with its config read from `:config` of the input. The step is built-in, or
/// one of `source`'s packaged steps. Functions, templates, connections and packaged steps are those of `source`.
///
/// # Errors
/// Fails if that flow cannot be written as text.
pub fn single(
    session: &Session,
    kind: &str,
    source: Option<&LoadedFlow>,
) -> Result<LoadedFlow, Diagnostic> {
    let body = format!("(flow/step :{kind} :step (:config (flow/input)))");
    let slug = format!("step-{}", kind.replace(['/', '.'], "-"));
    let definition = source.map(|loaded| &loaded.flow.definition);
    let text = match definition.and_then(Value::as_map) {
        None => body,
        Some(map) => {
            let kept = map
                .iter()
                .filter(|(key, _)| name_of(key).is_some_and(|name| !LEFT_OUT.contains(&&*name)));
            let kept = Value::map(kept.map(|(key, value)| match name_of(key).as_deref() {
                Some("requires") => (key.clone(), without_forms(value)),
                _ => (key.clone(), value.clone()),
            }));
            let kept = printed(&kept);
            let inside = kept.strip_prefix('{').unwrap_or_default();
            let coexist = ":concurrency {:type :singleton :on-new-version :coexist}";
            format!("{{:slug :{slug} {coexist} :flow (quote {body}) {inside}")
        }
    };
    let main = Main {
        name: "<step>",
        text: &text,
        stem: &slug,
        is_stored: false,
    };
    let Checked {
        loaded, findings, ..
    } = read(session, &StoredFiles::default(), &main);
    loaded.ok_or_else(|| {
        let first = findings.into_iter().next();
        first.unwrap_or_else(|| Diagnostic::error("E0401", "the step cannot be made into a flow"))
    })
}
