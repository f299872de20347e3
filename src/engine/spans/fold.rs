//! Makes spans of journal entries: of steps, attempts, agents, and calls of models and tools.

use std::collections::HashMap;

use flowstone_lang::value::Value;

use super::{NANOS, contents, other};
use crate::codec;
use crate::feed::{Agents, Nested};
use crate::flow::name_of;
use crate::ports::{Entry, EntryKind, FinishedSpan, SpanKind, SpanValue};
use crate::report::Begun;
use crate::report::conversation::step_id;
use crate::trace::{RunTrace, SpanId, SpanOf, SpanPlace};

/// The step types whose attempts ask another system.
const OUTSIDE: &[&str] = &["http", "llm", "mcp", "notify"];
/// The step types whose nested steps are a conversation with a model.
const AGENTS: &[&str] = &["agent", "llm"];
/// Longer values are not read for what a span could say about them.
const READ_MAX: usize = 1 << 20;

type Attributes = Vec<(&'static str, SpanValue)>;

/// What the entries of a run say about the spans of those that follow.
#[derive(Debug)]
pub(super) struct Fold {
    trace: RunTrace,
    /// When the pass began.
    began_ms: i64,
    has_content: bool,
    steps: HashMap<String, Underway>,
    begun: Begun,
    agents: Agents,
}

/// A step that has not ended.
#[derive(Debug, Default)]
struct Underway {
    began_ms: i64,
    attempts: u32,
    attempt: Option<Attempt>,
    /// When the next attempt is due.
    again_ms: Option<i64>,
    /// Its attempts have spans.
    has_attempts: bool,
    /// A person decided about it.
    has_replied: bool,
    /// It performs other steps.
    is_outer: bool,
    is_agent: bool,
    /// The beginning of its request.
    request: String,
    nested: Option<Nested>,
}

/// The attempt under way.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    began_ms: i64,
    /// It gave a value that is looked at.
    ended_ms: Option<i64>,
}

/// How a step or an attempt ended.
struct Ending<'a> {
    at_ms: i64,
    value: &'a Value,
    /// A code, and the message.
    error: Option<(String, String)>,
}

impl Fold {
    pub(super) fn new(trace: RunTrace, began_ms: i64, has_content: bool) -> Fold {
        Fold {
            trace,
            began_ms,
            has_content,
            steps: HashMap::new(),
            begun: Begun::default(),
            agents: Agents::default(),
        }
    }

    /// Notes when the pass began.
    pub(super) fn begin(&mut self, at_ms: i64) {
        self.began_ms = at_ms;
    }

    /// Forgets the entries that were read: another pass begins.
    pub(super) fn next_pass(&mut self, at_ms: i64) {
        *self = Fold::new(self.trace.clone(), at_ms, self.has_content);
    }

    /// Takes in an entry, and adds the spans that it ends.
    pub(super) fn take(&mut self, entry: &Entry, spans: &mut Vec<FinishedSpan>) {
        let is_step = !matches!(
            entry.kind,
            EntryKind::Note | EntryKind::Log | EntryKind::Reuse | EntryKind::Cost
        );
        if !is_step {
            return;
        }
        let earliest_ms = self.begun.at(&entry.path, self.began_ms);
        self.begun.note(&entry.path, entry.at_ms);
        let mut step = match self.steps.remove(&entry.path) {
            Some(step) => step,
            None => Underway {
                began_ms: match entry.kind {
                    EntryKind::Intent | EntryKind::Begin => entry.at_ms,
                    _ => earliest_ms.min(entry.at_ms),
                },
                has_attempts: OUTSIDE.contains(&&*entry.what),
                nested: self.agents.nested(&entry.path, &entry.what),
                ..Underway::default()
            },
        };
        if let Some(request) = &entry.request {
            step.request.clone_from(request);
        }
        match entry.kind {
            EntryKind::Intent | EntryKind::Begin => {
                step.attempts += 1;
                step.has_attempts |= entry.kind == EntryKind::Intent;
                step.is_outer |= entry.kind == EntryKind::Begin;
                step.is_agent = step.is_outer && AGENTS.contains(&&*entry.what);
                step.attempt = Some(Attempt::since(entry.at_ms));
            }
            EntryKind::Timer => self.timer(entry, &mut step, earliest_ms, spans),
            EntryKind::Draft => {
                step.open(earliest_ms).ended_ms = Some(entry.at_ms);
            }
            EntryKind::Result | EntryKind::Error => {
                self.ended(entry, step, earliest_ms, spans);
                return;
            }
            EntryKind::Signal => step.has_replied = true,
            EntryKind::Cost | EntryKind::Note | EntryKind::Log | EntryKind::Reuse => {}
        }
        self.steps.insert(entry.path.clone(), step);
    }

    fn timer(
        &self,
        entry: &Entry,
        step: &mut Underway,
        earliest_ms: i64,
        spans: &mut Vec<FinishedSpan>,
    ) {
        let note = codec::decode(&entry.payload).unwrap_or(Value::Nil);
        let kind = note.get("kind").and_then(name_of);
        if kind.as_deref() != Some("retry") {
            return;
        }
        step.open(earliest_ms);
        step.has_attempts = true;
        let text = |key: &str| note.get(key).and_then(Value::as_str).map(str::to_owned);
        let ending = Ending {
            at_ms: entry.at_ms,
            value: &note,
            error: Some((
                text("code").unwrap_or_else(other),
                text("message").unwrap_or_default(),
            )),
        };
        spans.extend(self.attempt(entry, step, &ending));
        step.attempt = None;
        step.again_ms = note.get("due").and_then(Value::as_int);
    }

    fn ended(
        &mut self,
        entry: &Entry,
        mut step: Underway,
        earliest_ms: i64,
        spans: &mut Vec<FinishedSpan>,
    ) {
        let is_answered = step.has_replied && step.attempt.is_none();
        if !is_answered && (step.has_attempts || step.again_ms.is_some()) {
            step.open(earliest_ms);
        }
        step.attempts = step.attempts.max(1);
        let value = match entry.payload.len() <= READ_MAX && self.is_read(entry, &step) {
            true => codec::decode(&entry.payload).unwrap_or(Value::Nil),
            false => Value::Nil,
        };
        let error = (entry.kind == EntryKind::Error).then(|| match &value {
            Value::Exception(exception) => {
                let code = exception.code.to_string();
                let code = Some(code).filter(|code| !code.is_empty());
                let code = code.unwrap_or_else(other);
                (code, exception.display_text().to_owned())
            }
            _ => (other(), String::new()),
        });
        let ending = Ending {
            at_ms: entry.at_ms,
            value: &value,
            error,
        };
        spans.extend(self.attempt(entry, &step, &ending));
        spans.extend(self.agent(entry, &step, &ending));
        spans.extend(self.step(entry, &step, &ending));
        self.agents.ended(&entry.path);
        match &step.nested {
            Some(Nested::Turn(_)) if entry.kind == EntryKind::Result => {
                self.agents.replied(&entry.path, &value);
            }
            Some(_) => self.agents.step_ended(&entry.path),
            None => {}
        }
    }

    /// Tells whether a span says something about the value of a step.
    fn is_read(&self, entry: &Entry, step: &Underway) -> bool {
        let is_shown = self.has_content && step.nested.is_some();
        entry.kind == EntryKind::Error || is_shown || OUTSIDE.contains(&&*entry.what)
    }

    fn place<'a>(&'a self, path: &'a str, of: SpanOf) -> SpanPlace<'a> {
        SpanPlace {
            of,
            ..self.trace.step(path)
        }
    }

    /// Returns the span that those of the step at a path are below: of the step that performs it, or of the run.
    fn parent(&self, path: &str) -> SpanId {
        let mut above = path;
        while let Some((outer, _)) = above.rsplit_once('/') {
            // A further attempt has paths of its own.
            let whole = outer.rsplit_once('~');
            let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            let outer_step = match whole {
                Some((start, number)) if is_number(number) => start,
                _ => outer,
            };
            if let Some(step) = self.steps.get(outer_step) {
                return self.place(outer_step, step.inside()).id();
            }
            above = outer;
        }
        SpanPlace::run(&self.trace.run).id()
    }

    /// Returns the span that the attempts at a step are below.
    fn above_attempts(&self, path: &str, step: &Underway) -> SpanId {
        match step.main() {
            Some(main) => self.place(path, main).id(),
            None => self.parent(path),
        }
    }

    /// Returns the span of the attempt that ended, where attempts have spans. With models, it is the call.
    fn attempt(&self, entry: &Entry, step: &Underway, ending: &Ending<'_>) -> Option<FinishedSpan> {
        let attempt = step.attempt.filter(|_| step.has_attempts)?;
        let number = i64::from(step.attempts);
        let run = self.trace.run.as_str();
        let mut attributes: Attributes = vec![("flowstone.run.id", run.into())];
        let is_outside = OUTSIDE.contains(&&*entry.what) && !step.is_outer;
        let name = if entry.what == "llm" && is_outside {
            let chat = contents::chat(&step.request, ending.value, self.has_content);
            attributes.extend(chat.attributes);
            attributes.push(("flowstone.step.path", entry.path.as_str().into()));
            format!("chat {}", chat.model.unwrap_or_default())
        } else {
            format!("attempt {number}")
        };
        attributes.push(("flowstone.step.attempt", number.into()));
        if is_outside {
            let address = contents::server_address(&step.request);
            attributes.extend(address.map(|address| ("server.address", address.into())));
            let status = contents::status(ending.value);
            attributes.extend(status.map(|status| ("http.response.status_code", status.into())));
        }
        let ended_ms = match ending.error {
            None => attempt.ended_ms.unwrap_or(ending.at_ms),
            Some(_) => ending.at_ms,
        };
        // An agent's own attempt asks no model: its turns do.
        let kind = if is_outside { &*entry.what } else { "" };
        let place = self.trace.attempt(&entry.path, kind, step.attempts);
        let parent = self.above_attempts(&entry.path, step);
        let span = Part {
            ids: (place.id(), parent),
            name: name.trim_end().to_owned(),
            kind: match is_outside {
                true => SpanKind::Client,
                false => SpanKind::Internal,
            },
            times: (attempt.began_ms, ended_ms),
            attributes,
        };
        Some(self.finished(span, ending))
    }

    /// Returns the span of a step that ended: a tool call, where a model asked for it. The turn of a model is the span of
    /// its call.
    fn step(&self, entry: &Entry, step: &Underway, ending: &Ending<'_>) -> Option<FinishedSpan> {
        let main = step.main()?;
        let mut attributes: Attributes = vec![
            ("flowstone.step.path", entry.path.as_str().into()),
            ("flowstone.step.type", entry.what.as_str().into()),
            ("flowstone.step.attempts", i64::from(step.attempts).into()),
            ("flowstone.run.id", self.trace.run.as_str().into()),
        ];
        let name = match &step.nested {
            Some(Nested::Tool(call)) => {
                attributes.extend(contents::tool(call, ending.value, self.has_content));
                format!("execute_tool {}", step_id(&entry.path))
            }
            Some(Nested::Turn(_)) | None => format!("step {}", entry.path),
        };
        let span = Part {
            ids: (self.place(&entry.path, main).id(), self.parent(&entry.path)),
            name,
            kind: SpanKind::Internal,
            times: (step.began_ms, ending.at_ms),
            attributes,
        };
        Some(self.finished(span, ending))
    }

    /// Returns the span of an agent that ended.
    fn agent(&self, entry: &Entry, step: &Underway, ending: &Ending<'_>) -> Option<FinishedSpan> {
        if !step.is_agent {
            return None;
        }
        let name = step_id(&entry.path);
        let conversation = format!("{}/{}", self.trace.run, entry.path);
        let span = Part {
            ids: (
                self.place(&entry.path, SpanOf::Agent).id(),
                self.above_attempts(&entry.path, step),
            ),
            name: format!("invoke_agent {name}"),
            kind: SpanKind::Internal,
            times: (step.began_ms, ending.at_ms),
            attributes: vec![
                ("gen_ai.operation.name", "invoke_agent".into()),
                ("gen_ai.agent.name", name.into()),
                ("gen_ai.conversation.id", conversation.into()),
                ("flowstone.run.id", self.trace.run.as_str().into()),
            ],
        };
        Some(self.finished(span, ending))
    }

    fn finished(&self, span: Part, ending: &Ending<'_>) -> FinishedSpan {
        let (began_ms, ended_ms) = span.times;
        let mut attributes = span.attributes;
        if let Some((code, _)) = &ending.error {
            attributes.push(("error.type", code.as_str().into()));
        }
        FinishedSpan {
            trace: self.trace.trace,
            id: span.ids.0,
            parent: Some(span.ids.1),
            name: span.name,
            kind: span.kind,
            began_ns: began_ms * NANOS,
            ended_ns: ended_ms.max(began_ms) * NANOS,
            attributes,
            links: Vec::new(),
            error: ending.error.as_ref().map(|(_, message)| message.clone()),
        }
    }
}

/// A span before its end is known.
struct Part {
    /// Its own, and that of the span above it.
    ids: (SpanId, SpanId),
    name: String,
    kind: SpanKind,
    times: (i64, i64),
    attributes: Attributes,
}

impl Underway {
    /// Returns the span that stands for the step. The turn of a model has only those of its calls.
    fn main(&self) -> Option<SpanOf> {
        match &self.nested {
            Some(Nested::Turn(_)) => None,
            Some(Nested::Tool(_)) | None => Some(SpanOf::Step),
        }
    }

    /// Returns the span that the nested steps are below.
    fn inside(&self) -> SpanOf {
        match self.is_agent {
            true => SpanOf::Agent,
            false => self.main().unwrap_or(SpanOf::Step),
        }
    }

    /// Returns the attempt under way: of what changes nothing outside, the beginning has no entry of its own.
    fn open(&mut self, earliest_ms: i64) -> &mut Attempt {
        if self.attempt.is_none() {
            self.attempts += 1;
        }
        let began_ms = self.again_ms.take().unwrap_or(earliest_ms);
        self.attempt.get_or_insert(Attempt::since(began_ms))
    }
}

impl Attempt {
    fn since(began_ms: i64) -> Attempt {
        Attempt {
            began_ms,
            ended_ms: None,
        }
    }
}
