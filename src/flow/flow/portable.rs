//! What the hosted product refuses in a flow: its deny lists and its limits. Flowstone runs all of it. `check --portable` reports
//! it for flows that are to run in both.
//!
//! Only the body is examined: function code, packaged steps and templates may use what they like. Names that the body binds
//! itself hide those of the lists.

mod scope;

use flowstone_lang::value::{Sources, Span, Symbol, Value};
use flowstone_model::names::name_of;

use super::Flow;
use crate::diagnostic::Diagnostic;
use crate::duration;
use crate::forms::{entry_spans, item_span, items, quoted};
use scope::{Place, walk};

/// Macros that the visual editor of the hosted product cannot draw, each with what to write.
const THREADING: &[(&str, &str)] = &[
    ("->>", "name the values in a `let`, or use `->`"),
    ("as->", "name the values in a `let`"),
    ("cond->", "write the cases with `if` or `cond` in a `let`"),
    ("cond->>", "write the cases with `if` or `cond` in a `let`"),
    ("some->", "test for nil with `if-some` or `when-some`"),
    ("some->>", "test for nil with `if-some` or `when-some`"),
];

/// Functions on data that a hosted body may neither call nor name.
const TRANSFORMS: &[&str] = &[
    "filter",
    "filterv",
    "keep",
    "keep-indexed",
    "map",
    "mapcat",
    "mapv",
    "reduce",
    "remove",
];

/// Names whose value differs from call to call.
const RANDOM: &[&str] = &[
    "rand",
    "rand-int",
    "rand-nth",
    "random-sample",
    "random-uuid",
    "shuffle",
];

/// What only Flowstone has in the namespace `flow`, each with what to write.
const OWN: &[(&str, &str)] = &[
    ("all", SEQUENTIAL),
    ("compensate", "undo the step in a `catch`"),
    (
        "continue-as-new",
        "end the run and call the flow again, with `flow/call-flow` or a schedule",
    ),
    ("emit", "leave it out, or store the data with a `:kv` step"),
    ("let", SEQUENTIAL),
    ("log", "leave it out, or store the line with a `:kv` step"),
    ("on-cancel", "put what has to be done into `finally`"),
    ("pmap", SEQUENTIAL),
    ("race", SEQUENTIAL),
    ("rand", "take the number from the input"),
    (
        "uuid",
        "take the id from the input, or compute it in a `:function` step with `breyta.sandbox/uuid-from`",
    ),
];
const SEQUENTIAL: &str =
    "perform the steps one after another, or several child flows with a `:fanout` step";

/// Forms that define names, which a hosted body does not have.
const DEFINING: &[&str] = &["def", "defmacro", "defn", "defn-", "ns", "require", "use"];

/// The step types of the hosted product.
const HOSTED: &[&str] = &[
    "agent", "code", "db", "fanout", "files", "function", "http", "job", "kv", "llm", "notify",
    "search", "sleep", "ssh", "table", "time", "wait",
];

/// Maximum size in bytes of a hosted flow without its templates and functions.
const MOST_TEXT: u32 = 150_000;
/// Maximum number of step calls in a hosted body.
const MOST_STEPS: usize = 50;
/// Limits of a hosted `flow/poll`.
const MOST_ATTEMPTS: i64 = 100;
const LONGEST_POLL: std::time::Duration = std::time::Duration::from_secs(3600);

/// Returns what the hosted product would refuse in a flow.
pub fn portability(sources: &Sources, flow: &Flow) -> Vec<Diagnostic> {
    let mut portable = Portable {
        sources,
        findings: Vec::new(),
        steps: 0,
    };
    walk(&flow.body, &mut |place| portable.place(place));
    portable.definition(&flow.definition, flow.body.span());
    let mut findings = portable.findings;
    findings.sort_by_key(|finding| (finding.span.source.0, finding.span.start));
    findings
}

struct Portable<'a> {
    sources: &'a Sources,
    findings: Vec<Diagnostic>,
    /// The number of step calls so far.
    steps: usize,
}

impl Portable<'_> {
    fn add(&mut self, code: &'static str, message: impl Into<String>, at: Span) -> &mut Diagnostic {
        self.findings
            .push(Diagnostic::portability(code, message).at(at));
        self.findings.last_mut().expect("a finding was pushed")
    }

    /// Examines a name or a call that is evaluated.
    fn place(&mut self, place: Place<'_>) {
        match place {
            Place::Name(symbol, at) => self.name(symbol, at),
            Place::Call(head, form) => self.call(head, form),
        }
    }

    /// Examines a name that the body does not bind itself.
    fn name(&mut self, symbol: Symbol, at: Span) {
        let name = symbol.name();
        match symbol.namespace().as_deref() {
            None | Some("clojure.core") => self.core_name(&name, at),
            Some("flow") => {
                if let Some((_, hint)) = OWN.iter().find(|(own, _)| *own == &*name) {
                    let message = format!("the hosted product has no `flow/{name}`");
                    self.add("E1505", message, at)
                        .hints
                        .push((*hint).to_owned());
                }
            }
            Some(namespace) if is_outside(namespace) => {
                let message = format!("`{symbol}` cannot be used in a hosted flow body");
                self.add("E1503", message, at)
                    .hints
                    .push("call it in a `:function` step".to_owned());
            }
            Some(_) => {}
        }
    }

    fn core_name(&mut self, name: &str, at: Span) {
        let found = if let Some((_, hint)) = THREADING.iter().find(|(known, _)| *known == name) {
            ("E1500", (*hint).to_owned())
        } else if TRANSFORMS.contains(&name) {
            let hint = match name {
                "map" | "mapv" | "mapcat" | "filter" | "filterv" | "remove" | "keep" => {
                    "compute it in a `:function` step; around steps, use `for` in a `vec`"
                }
                _ => "compute it in a `:function` step; around steps, use `loop` or `doseq`",
            };
            ("E1501", hint.to_owned())
        } else if RANDOM.contains(&name) {
            ("E1504", "take the value from the input".to_owned())
        } else if DEFINING.contains(&name) {
            let hint = "put functions into `:functions`, and call them with a `:function` step; bind small ones in a `let`";
            ("E1505", hint.to_owned())
        } else if name.starts_with('.') || (name.ends_with('.') && name.len() > 1) || name == "new"
        {
            ("E1503", "call it in a `:function` step".to_owned())
        } else {
            return;
        };
        let message = format!("`{name}` cannot be used in a hosted flow body");
        self.add(found.0, message, at).hints.push(found.1);
    }

    fn call(&mut self, head: Symbol, form: &Value) {
        let parts = items(form).unwrap_or_default();
        let args = parts.get(1..).unwrap_or_default();
        if head.is("range") && args.is_empty() {
            self.add(
                "E1502",
                "`(range)` without an end cannot be used in a hosted flow body",
                form.span(),
            )
            .hints
            .push("give the end: `(range 10)`".to_owned());
        } else if head.is("loop") && performs_without_waiting(form) {
            self.add("E1506", "the hosted product refuses a loop with steps and without a `:wait`", form.span())
                .hints
                .push("wait in the loop with a `:sleep` or `:wait` step, or use `flow/poll`, `for` or `doseq`".to_owned());
        } else if head.is("flow/poll") {
            self.poll(args.first(), item_span(form, 1));
        } else if head.is("flow/step") || head.is("step") {
            self.steps += 1;
            if self.steps == MOST_STEPS + 1 {
                let message =
                    format!("a hosted flow has at most {MOST_STEPS} steps, and this is one more");
                self.add("E1508", message, form.span()).hints.push(
                    "move steps to another flow, and call it with `flow/call-flow`".to_owned(),
                );
            }
            let kind = args.first().and_then(Value::as_keyword);
            let kind = kind
                .filter(|kind| kind.namespace().is_none())
                .map(|kind| kind.name());
            if let Some(kind) = kind.filter(|kind| !HOSTED.contains(&&**kind)) {
                let message = format!("the hosted product has no step type `:{kind}`");
                self.add("E1505", message, item_span(form, 1));
            }
        }
    }

    fn poll(&mut self, options: Option<&Value>, at: Span) {
        let Some(options @ Value::Map(_)) = options else {
            return;
        };
        let place = |key: &str| entry_spans(self.sources, options, key).value.or(at);
        let attempts = matches!(options.get("max-attempts"), Some(Value::Int(number)) if *number > MOST_ATTEMPTS);
        let time = options.get("timeout").and_then(duration::of_millis_value);
        let is_long = time.is_some_and(|time| time > LONGEST_POLL);
        let (of_attempts, of_time) = (place(":max-attempts"), place(":timeout"));
        if attempts {
            let message = format!("a hosted `flow/poll` has at most {MOST_ATTEMPTS} attempts");
            self.add("E1508", message, of_attempts);
        }
        if is_long {
            self.add(
                "E1508",
                "a hosted `flow/poll` ends after an hour at the latest",
                of_time,
            );
        }
    }

    /// Examines the keys of the definition.
    fn definition(&mut self, map: &Value, body: Span) {
        let Some(entries) = map.as_map() else {
            self.add(
                "E1507",
                "a hosted flow is a map with `:slug`, `:name`, `:concurrency` and `:flow`",
                body,
            );
            return;
        };
        let at = entry_spans(self.sources, map, ":slug").key;
        for (key, hint) in [
            ("name", "`:name \"My flow\"`"),
            (
                "concurrency",
                "`:concurrency {:type :singleton :on-new-version :supersede}`",
            ),
            ("invocations", "`:invocations {:default {:inputs []}}`"),
            (
                "interfaces",
                "`:interfaces {:manual [{:id :run :label \"Run\" :invocation :default}]}`",
            ),
        ] {
            let is_old =
                matches!(key, "invocations" | "interfaces") && map.get("triggers").is_some();
            if !is_old && map.get(key).is_none_or(Value::is_nil) {
                let message = match key {
                    "concurrency" => "a hosted flow needs `:concurrency`".to_owned(),
                    _ => format!("a hosted flow has `:{key}`"),
                };
                self.add("E1507", message, at)
                    .hints
                    .push(format!("add {hint}"));
            }
        }
        for (key, _) in entries.iter() {
            let name = name_of(key).unwrap_or_default();
            if &*name == "limits" {
                let at = entry_spans(self.sources, map, ":limits").key;
                self.add("E1505", "the hosted product has no `:limits` in flows", at);
            }
        }
        let size = |span: Span| span.end.saturating_sub(span.start);
        let apart = [":templates", ":functions"]
            .into_iter()
            .filter(|key| map.get(&key[1..]).is_some());
        let apart: u32 = apart
            .map(|key| size(entry_spans(self.sources, map, key).value))
            .sum();
        let text = size(map.span()).saturating_sub(apart);
        if text > MOST_TEXT {
            let message = format!(
                "a hosted flow has at most {MOST_TEXT} bytes without its templates and functions, and this one has {text}"
            );
            self.add("E1508", message, at)
                .hints
                .push("move long texts to `:templates`".to_owned());
        }
    }
}

/// Tells whether a namespace is one of the host or of helpers, which only function code has.
fn is_outside(namespace: &str) -> bool {
    let last = namespace.rsplit('.').next().unwrap_or(namespace);
    last.starts_with(|char: char| char.is_ascii_uppercase())
        || ["breyta.sandbox", "flow.util", "json"].contains(&namespace)
}

/// Tells whether a loop performs steps and never one that waits.
fn performs_without_waiting(form: &Value) -> bool {
    let (mut performs, mut waits) = (false, false);
    let mut open = vec![form.clone()];
    while let Some(form) = open.pop() {
        if quoted(&form).is_some() {
            continue;
        }
        let parts = crate::forms::children(&form);
        if let (Value::List(_), Some(head)) = (&form, parts.first().and_then(Value::as_symbol)) {
            let is_step = head.is("flow/step") || head.is("step");
            let kind = parts.get(1).and_then(name_of).filter(|_| is_step);
            performs |= is_step || head.is("flow/call-flow");
            waits |=
                head.is("flow/poll") || kind.is_some_and(|kind| matches!(&*kind, "wait" | "sleep"));
        }
        open.extend(parts);
    }
    performs && !waits
}
