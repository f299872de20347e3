//! Checks the shape of each step call in a flow's body, as far as it is known without running.

mod calls;
mod code;
mod endless;
mod operations;
mod order;
mod packaged;
mod tools;

use std::collections::HashSet;
use std::path::PathBuf;

use flowstone_lang::value::{Sources, Span, Value};

use super::Flow;
use super::files::Siblings;
use crate::config::{self, Problem};
use crate::diagnostic::{Change, Diagnostic};
use crate::forms::{entry_spans, item_span, misfit_span, quoted};
use crate::natives::fanout;
use crate::permission::PlannedNeed;
use crate::spec::shape::Mismatch;
use crate::step::{Effect, Step, StepSpec};
use crate::{call_flow, call_problem};

/// Maximum length in characters of strings in a body; longer ones belong in `:templates`.
const LONG_TEXT: usize = 4000;

/// Macros that insert something into their forms, so that the arguments of calls in them are not all visible.
const THREADING: &[&str] = &[
    "->", "->>", "as->", "cond->", "cond->>", "doto", "some->", "some->>",
];

/// What a flow is checked against, in addition to its own text.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    pub steps: &'a [Box<dyn Step>],
    /// The flows that it may call, if they are known.
    pub siblings: Option<&'a dyn Siblings>,
    /// The settings of the project, if they are known.
    pub settings: Option<&'a Value>,
}

/// Code of a flow that is compiled later, when its step is performed.
pub(super) struct Code {
    /// The name in errors of code that is given as text.
    pub name: String,
    /// A form, or its text.
    pub code: Value,
    /// The literal in the file.
    pub span: Span,
}

/// The findings about step calls, and the code in their configs.
pub(super) struct Linted {
    pub findings: Vec<Diagnostic>,
    pub code: Vec<Code>,
    pub needs: Vec<PlannedNeed>,
    pub called: Vec<PathBuf>,
    pub misses_flows: bool,
}

/// Checks every step call of a body, and all packaged steps.
pub(super) fn check_steps(
    sources: &Sources,
    flow: &Flow,
    surroundings: Surroundings<'_>,
) -> Linted {
    let mut lint = Lint {
        sources,
        flow,
        surroundings,
        steps: surroundings.steps,
        specs: surroundings.steps.iter().map(|step| step.spec()).collect(),
        findings: Vec::new(),
        code: Vec::new(),
        needs: Vec::new(),
        called: Vec::new(),
        misses_flows: false,
    };
    lint.packaged();
    lint.walk();
    Linted {
        findings: lint.findings,
        code: lint.code,
        needs: lint.needs,
        called: lint.called,
        misses_flows: lint.misses_flows,
    }
}

struct Lint<'a> {
    sources: &'a Sources,
    flow: &'a Flow,
    surroundings: Surroundings<'a>,
    steps: &'a [Box<dyn Step>],
    specs: Vec<&'static StepSpec>,
    findings: Vec<Diagnostic>,
    code: Vec<Code>,
    needs: Vec<PlannedNeed>,
    /// The files of called flows.
    called: Vec<PathBuf>,
    /// A called flow was not found.
    misses_flows: bool,
}

impl Lint<'_> {
    /// Visits all forms that are evaluated. Uses an explicit stack, because bodies may be nested deeply.
    fn walk(&mut self) {
        let mut open = vec![(self.flow.body.clone(), Span::NONE, false)];
        while let Some((form, span, is_threaded)) = open.pop() {
            match &form {
                Value::List(list) => {
                    if quoted(&form).is_some() {
                        continue;
                    }
                    let head = list.iter().next().and_then(Value::as_symbol);
                    if head.is_some_and(|head| head.is("comment")) {
                        continue;
                    }
                    if let Some(head) = head.filter(|_| !is_threaded) {
                        self.endless(head, &form);
                        match head.is("flow/step") {
                            true => self.call(&form),
                            false => self.flow_call(head, &form),
                        }
                    }
                    let threads =
                        head.is_some_and(|head| THREADING.iter().any(|name| head.is(name)));
                    let children = list.iter().enumerate().map(|(idx, item)| {
                        (item.clone(), item_span(&form, idx), threads && idx > 1)
                    });
                    open.extend(children);
                }
                Value::Vector(vector) => open.extend(
                    vector
                        .iter()
                        .enumerate()
                        .map(|(idx, item)| (item.clone(), item_span(&form, idx), false)),
                ),
                Value::Map(map) => {
                    self.order(&form);
                    open.extend(map.iter().flat_map(|(key, value)| {
                        [
                            (key.clone(), form.span(), false),
                            (value.clone(), form.span(), false),
                        ]
                    }));
                }
                Value::Set(set) => {
                    self.order(&form);
                    open.extend(set.iter().map(|item| (item.clone(), form.span(), false)));
                }
                Value::Text(text) if text.len() > LONG_TEXT => self.findings.push(
                    Diagnostic::warning("E0441", "a very long string in the flow's body")
                        .at(span)
                        .hint(
                            "move it to `:templates`, or include a file: `#flow/include \"...\"`",
                        ),
                ),
                _ => {}
            }
        }
    }

    fn call(&mut self, form: &Value) {
        let args: Vec<Value> = crate::forms::items(form).unwrap_or_default().split_off(1);
        let at = |idx: usize| item_span(form, idx + 1);
        if args.is_empty() || args.len() > 3 {
            let named = args.first().and_then(Value::as_keyword);
            let named = named.filter(|kind| kind.namespace().is_some());
            let finding = named.map_or_else(
                || call_problem::arity(args.len()),
                |kind| call_problem::extra(kind.to_string().trim_start_matches(':')),
            );
            self.findings.push(finding.at(form.span()));
            return;
        }
        match &args[0] {
            Value::Keyword(kind) if kind.namespace().is_some() => {
                let name = kind.to_string();
                self.packaged_call(name.trim_start_matches(':'), form, &args);
            }
            Value::Keyword(kind) => {
                let name = kind.name();
                let Some(spec) = find(&self.specs, &name) else {
                    self.findings.push(unknown(&name, &self.specs).at(at(0)));
                    return;
                };
                if *name != *spec.kind {
                    self.findings.push(old_name(&name, spec).at(at(0)));
                }
                self.builtin(spec, form, &args);
            }
            Value::Nil
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Vector(_)
            | Value::Map(_)
            | Value::Set(_) => {
                let message = format!("a step type is a keyword, not {}", args[0].kind());
                self.findings
                    .push(Diagnostic::error("E0431", message).at(at(0)));
            }
            // A computed type is checked when it is known.
            _ => {}
        }
    }

    fn builtin(&mut self, spec: &'static StepSpec, form: &Value, args: &[Value]) {
        let shape = format!("(flow/step :{} :step-id {{...}})", spec.kind);
        match args {
            [_, Value::Map(_)] => self.findings.push(
                Diagnostic::error("E0433", "the step has no id")
                    .at(form.span())
                    .hint(format!("write it between type and config: `{shape}`")),
            ),
            [_] | [_, _] => self.findings.push(
                Diagnostic::error("E0432", "the step has no config")
                    .at(form.span())
                    .hint(format!("write it as `{shape}`")),
            ),
            [_, id, config, ..] => {
                let is_id = match id {
                    Value::Keyword(_) | Value::Text(_) => true,
                    Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_) => false,
                    Value::Map(_) | Value::Vector(_) | Value::Set(_) => false,
                    _ => true,
                };
                if !is_id {
                    let message = format!("a step id is a keyword, not {}", id.kind());
                    let at = item_span(form, 2);
                    self.findings
                        .push(Diagnostic::error("E0433", message).at(at));
                }
                self.config(spec, config, item_span(form, 3));
            }
            [] => {}
        }
    }

    fn config(&mut self, spec: &'static StepSpec, config: &Value, span: Span) {
        match config {
            Value::Map(_) => {}
            Value::List(_) | Value::Symbol(_) | Value::Name(_) => return,
            other => {
                let message = format!("a step's config must be a map, not {}", other.kind());
                self.findings
                    .push(Diagnostic::error("E0432", message).at(span));
                return;
            }
        }
        let problems = literal_problems(spec, config);
        let wrong: HashSet<String> = problems
            .iter()
            .filter_map(|problem| problem.key().map(str::to_owned))
            .collect();
        for problem in problems {
            let at = problem.key().map_or(span, |key| {
                let spans = entry_spans(self.sources, config, &format!(":{key}"));
                match &problem {
                    Problem::WrongType { .. } => spans.value,
                    Problem::Nested { mismatch, .. } => {
                        nested_span(self.sources, config, (key, mismatch))
                    }
                    Problem::Option(wrong) => match (&wrong.inner, config.get(key)) {
                        (Some(inner), Some(option @ Value::Map(_))) => {
                            entry_spans(self.sources, option, &format!(":{inner}")).key
                        }
                        _ => spans.value,
                    },
                    _ => spans.key,
                }
            });
            let finding = Diagnostic::error(problem.code(), problem.message(spec)).at(at);
            let finding = match problem.misspelt(spec) {
                Some((word, near)) => finding.respell(word, Some(near)),
                None => finding,
            };
            self.findings.push(match problem.hint(spec) {
                Some(hint) => finding.hint(hint),
                None => finding,
            });
        }
        self.operation(spec, config, span);
        let step = self.steps.iter().find(|it| it.spec().kind == spec.kind);
        let settings = self.surroundings.settings.unwrap_or(&Value::Nil);
        let needs = step.map_or_else(Vec::new, |it| it.needs(self.flow, settings, config));
        let changes = step.is_some_and(|it| it.effect(config) == Effect::OwnStore);
        let of_stores = PlannedNeed::of_stores(spec.kind, config, changes);
        for need in needs.into_iter().chain(of_stores) {
            if !self.needs.contains(&need) {
                self.needs.push(need);
            }
        }
        let mut remarks = step.map_or_else(Vec::new, |it| it.remarks(self.flow, config));
        if let (Some(step), Some(settings)) = (step, self.surroundings.settings) {
            remarks.extend(step.settings_remarks(self.flow, settings, config));
        }
        // One finding about a key is enough.
        for (key, remark) in remarks.into_iter().filter(|(key, _)| !wrong.contains(*key)) {
            let at = match key {
                "" => span,
                key => entry_spans(self.sources, config, &format!(":{key}")).value,
            };
            self.findings.push(remark.at(at));
        }
        self.tools(spec, config, config);
        self.code_of(spec, config);
        match spec.kind {
            "function" => self.function(config, span),
            fanout::KIND => self.fanout(config, span),
            call_flow::KIND => self.child(config.get("flow-slug"), config, span),
            _ => {}
        }
    }

    fn function(&mut self, config: &Value, span: Span) {
        let at = |key: &str| entry_spans(self.sources, config, key).value;
        match (config.get("code"), config.get("ref")) {
            (Some(_), Some(_)) => self.findings.push(
                Diagnostic::error("E0438", "a function step takes `:code` or `:ref`, not both")
                    .at(at(":ref")),
            ),
            (None, None) => self.findings.push(
                Diagnostic::error("E0438", "the function step has neither `:code` nor `:ref`")
                    .at(span)
                    .hint("give the code, `:code '(fn [input] ...)`, or name one of `:functions`"),
            ),
            (None, Some(Value::Keyword(id))) => {
                let id = id.name();
                if self.flow.function(&id).is_none() {
                    let names = self.flow.functions.iter().map(|function| &*function.id);
                    self.findings.push(
                        Diagnostic::error("E0439", format!("there is no function `:{id}`"))
                            .at(at(":ref"))
                            .suggest(&id, names),
                    );
                }
            }
            (Some(Value::List(_)), None) if config.get("code").and_then(quoted).is_none() => {
                self.findings.push(
                    Diagnostic::error("E0438", "`:code` must be quoted")
                        .at(at(":code"))
                        .hint("put a quote before it: `:code '(fn [input] ...)`")
                        .change(Change::insert(at(":code"), "'").certain()),
                );
            }
            _ => {}
        }
    }
}

/// Checks the parts of a config that are written out.
fn literal_problems(spec: &'static StepSpec, config: &Value) -> Vec<Problem> {
    let mut problems = config::check_literal(spec, config);
    // A computed key may be any key, so no key can be reported as missing.
    let has_literal_keys = config
        .as_map()
        .is_some_and(|map| map.iter().all(|(key, _)| matches!(key, Value::Keyword(_))));
    if !has_literal_keys || config.get("template").is_some() {
        problems.retain(|problem| !matches!(problem, Problem::Missing { .. }));
    }
    problems
}

/// Returns the place of a value inside the value of a key, as exactly as it is written out.
fn nested_span(sources: &Sources, config: &Value, (key, mismatch): (&str, &Mismatch)) -> Span {
    let span = entry_spans(sources, config, &format!(":{key}")).value;
    let value = config.get(key).cloned().unwrap_or(Value::Nil);
    misfit_span(sources, (&value, span), mismatch)
}

/// Finds a step type by its name or an alias.
fn find<'a>(specs: &[&'a StepSpec], name: &str) -> Option<&'a StepSpec> {
    specs.iter().copied().find(|spec| spec.is_named(name))
}

/// Returns the finding for a step type that is called by an old name.
fn old_name(name: &str, spec: &StepSpec) -> Diagnostic {
    Diagnostic::warning(
        "E0655",
        format!("the step type `:{name}` is an old name of `:{}`", spec.kind),
    )
    .hint(format!("write `:{}`, which is the same step", spec.kind))
    .change(Change::replace(Span::NONE, name, spec.kind).certain())
}

/// Returns the finding for a step type that does not exist.
pub fn unknown(name: &str, specs: &[&StepSpec]) -> Diagnostic {
    let mut kinds: Vec<&str> = specs.iter().map(|spec| spec.kind).collect();
    kinds.sort_unstable();
    let list: Vec<String> = kinds.iter().map(|kind| format!("`:{kind}`")).collect();
    let finding = Diagnostic::error("E0431", format!("unknown step type `:{name}`"));
    let suggested = finding.suggest(name, kinds.iter().copied());
    if suggested.hints.is_empty() {
        return suggested.hint(format!("the types are {}", list.join(", ")));
    }
    suggested
}
