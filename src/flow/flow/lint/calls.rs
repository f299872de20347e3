//! Checks calls of other functions of the `flow` namespace, as far as they are written out: the options of
//! `flow/call-flow`, `flow/poll`, `flow/pmap` and similar functions, the items of a `:fanout`, and the names of called
//! flows.

use flowstone_lang::suggest::respelling;
use flowstone_lang::value::{Exception, Signal, Span, Symbol, Value};
use flowstone_model::names::name_of;

use super::{Lint, find, unknown};
use crate::call_flow;
use crate::config::{self, Problem};
use crate::diagnostic::{Diagnostic, nearest};
use crate::forms::{entry_spans, item_span, items};
use crate::natives::{branches, fanout, log, poll};

impl Lint<'_> {
    /// Checks a call of a function of the `flow` namespace.
    pub(super) fn flow_call(&mut self, head: Symbol, form: &Value) {
        if head.namespace().as_deref() != Some("flow") {
            return;
        }
        let args = items(form).unwrap_or_default().split_off(1);
        match &*head.name() {
            "call-flow" => self.call_flow(form, &args),
            "log" => self.log(form, &args),
            "poll" => self.poll(form, &args),
            "slot-bound?" => self.slot(form, &args),
            name => self.branches(name, form, &args),
        }
    }

    fn call_flow(&mut self, form: &Value, args: &[Value]) {
        let slug = args.first();
        let options = args.get(2);
        let version = options.cloned().unwrap_or(Value::Nil);
        self.child(slug, &version, item_span(form, 1));
        let Some(options @ Value::Map(map)) = options else {
            return;
        };
        let Some(spec) = find(&self.specs, call_flow::KIND) else {
            return;
        };
        let place = item_span(form, 3);
        // Slug and input are arguments; `:id` is the id of the step.
        let known = map
            .iter()
            .filter(|(key, _)| name_of(key).as_deref() != Some("id"));
        let config = Value::map(known.map(|(key, value)| (key.clone(), value.clone())));
        for key in call_flow::ARGUMENTS
            .iter()
            .filter(|key| options.get(key).is_some())
        {
            let message =
                format!("`:{key}` is not an option of `flow/call-flow`: it is an argument");
            let at = entry_spans(self.sources, options, &format!(":{key}")).key;
            self.findings
                .push(Diagnostic::error("E0710", message).at(at));
        }
        for problem in config::check_literal(spec, &config) {
            let key = problem.key().unwrap_or_default().to_owned();
            if matches!(problem, Problem::Missing { .. }) || call_flow::ARGUMENTS.contains(&&*key) {
                continue;
            }
            let spans = entry_spans(self.sources, options, &format!(":{key}"));
            let at = match &problem {
                Problem::Unknown { .. } => spans.key,
                _ => spans.value,
            };
            let message = match &problem {
                Problem::Unknown { key } => format!("`flow/call-flow` has no option `:{key}`"),
                _ => problem.message(spec),
            };
            let finding = Diagnostic::error(problem.code(), message).at(at.or(place));
            let finding = match &problem {
                Problem::Unknown { key } => {
                    finding.respell(key, respelling(key, call_flow::OPTIONS.iter().copied()))
                }
                _ => finding,
            };
            let hint = match &problem {
                Problem::Unknown { key } => Some(call_hint(key)),
                _ => problem.hint(spec),
            };
            self.findings.push(match hint {
                Some(hint) => finding.hint(hint),
                None => finding,
            });
        }
        self.code_of(spec, &config);
    }

    /// Checks that a called flow exists. `options` may request a stored version.
    pub(super) fn child(&mut self, slug: Option<&Value>, options: &Value, span: Span) {
        let (Some(siblings), Some(slug @ (Value::Keyword(_) | Value::Text(_)))) =
            (self.surroundings.siblings, slug)
        else {
            return;
        };
        let slug = name_of(slug).unwrap_or_default();
        let is_own = self.flow.slug == slug;
        // Versions and installations are in the store.
        let is_given = |key: &str| options.get(key).is_some_and(|value| !value.is_nil());
        if is_own || is_given("version") || is_given("installation-id") {
            return;
        }
        let near = match siblings.find(&slug) {
            Ok(None) => return,
            Ok(Some(path)) if self.called.contains(&path) => return,
            Ok(Some(path)) => return self.called.push(path),
            Err(near) => near,
        };
        self.misses_flows = true;
        let at = match options.get("flow-slug") {
            Some(_) => entry_spans(self.sources, options, ":flow-slug").value,
            None => span,
        };
        let finding =
            Diagnostic::error("E0545", format!("the project has no flow `{slug}`")).at(at);
        let finding = match &near {
            Some(near) => finding.respell(&slug, respelling(&slug, [&**near].into_iter())),
            None => finding,
        };
        self.findings.push(finding.hint(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => call_flow::WHERE.to_owned(),
        }));
    }

    /// Checks the level of a `flow/log` call, if it is written out.
    fn log(&mut self, form: &Value, args: &[Value]) {
        let Some(level @ (Value::Keyword(_) | Value::Text(_))) = args.first() else {
            return;
        };
        if let Err(Signal::Throw(exception)) = log::check_level(level) {
            self.findings
                .push(of_exception(&exception).at(item_span(form, 1)));
        }
    }

    fn poll(&mut self, form: &Value, args: &[Value]) {
        let Some(options @ Value::Map(_)) = args.first() else {
            return;
        };
        let place = item_span(form, 1);
        for problem in poll::problems(options) {
            let at = problem.key.as_deref().map_or(place, |key| {
                entry_spans(self.sources, options, &format!(":{key}")).key
            });
            let finding = Diagnostic::error(poll::CODE, problem.message).at(at);
            let finding = problem.change.into_iter().fold(finding, Diagnostic::change);
            self.findings.push(match problem.hint {
                Some(hint) => finding.hint(hint),
                None => finding,
            });
        }
    }

    /// Checks the options of a function that runs branches. They come before the last arguments, and may be left out.
    fn branches(&mut self, name: &str, form: &Value, args: &[Value]) {
        let Some((arguments, known)) = branches::options_of(name) else {
            return;
        };
        let (Some(options @ Value::Map(map)), true) = (args.first(), args.len() == arguments + 1)
        else {
            return;
        };
        let is_known =
            |value: &Value| !matches!(value, Value::List(_) | Value::Symbol(_) | Value::Name(_));
        for (key, value) in map
            .iter()
            .filter(|(key, value)| is_known(key) && is_known(value))
        {
            let one = Value::map([(key.clone(), value.clone())]);
            let Err(Signal::Throw(exception)) = branches::check_options(name, &one, known) else {
                continue;
            };
            let key = name_of(key).unwrap_or_default();
            let at = entry_spans(self.sources, options, &format!(":{key}")).key;
            self.findings
                .push(of_exception(&exception).at(at.or(item_span(form, 1))));
        }
    }

    /// Checks each item of a `:fanout` as the config of a step.
    pub(super) fn fanout(&mut self, config: &Value, span: Span) {
        if let Some(finding) = fanout::foreign_option(config) {
            self.findings.push(finding.at(span));
        }
        let Some(items @ Value::Vector(_)) = config.get("items") else {
            return;
        };
        let at = |idx: usize| item_span(items, idx).or(span);
        let each = crate::json::items(items).unwrap_or_default();
        let is_written = |item: &Value| matches!(item, Value::Map(_));
        if each.iter().all(is_written)
            && let Err(finding) = fanout::check_types(&each)
        {
            self.findings.push(finding.at(span));
        }
        for (idx, item) in each.iter().enumerate().filter(|(_, item)| is_written(item)) {
            let kind = item.get("type").and_then(name_of);
            let Some(kind) = kind.filter(|kind| !kind.contains('/') && &**kind != fanout::KIND)
            else {
                continue;
            };
            match find(&self.specs, &kind) {
                Some(spec) => self.config(spec, item, at(idx)),
                None => {
                    let place = entry_spans(self.sources, item, ":type").value;
                    self.findings.push(unknown(&kind, &self.specs).at(place));
                }
            }
        }
    }
}

/// Returns the finding for what a function of the namespace `flow` would throw.
fn of_exception(exception: &Exception) -> Diagnostic {
    let mut finding = Diagnostic::error(exception.code, exception.text().to_owned());
    finding.hints.clone_from(&exception.hints);
    finding.changes.clone_from(&exception.changes);
    finding
}

/// Options of the hosted product that have another name here, or no effect.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "profile-id",
        "name an installation with `:installation-id`, or bind connections with `--profile NAME`",
    ),
    ("retry-policy", "write `:retry {:max-attempts 3}`"),
];

/// Returns the hint for an unknown option of `flow/call-flow`.
fn call_hint(key: &str) -> String {
    if let Some((_, hint)) = ELSEWHERE.iter().find(|(name, _)| *name == key) {
        return (*hint).to_owned();
    }
    match nearest(key, call_flow::OPTIONS.iter().copied()) {
        Some(near) => format!("did you mean `:{near}`?"),
        None => {
            let names: Vec<String> = call_flow::OPTIONS
                .iter()
                .map(|it| format!("`:{it}`"))
                .collect();
            format!("its options are {}", names.join(", "))
        }
    }
}
