//! Checks of open texts, on a thread of their own: the same as `flowstone check`. Of several requests for one text, only
//! the newest is performed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use flowstone_engine::diagnostic::{Diagnostic as Finding, Severity};
use flowstone_engine::disk::{self, Edited, InProject};
use flowstone_flow::step::Step;
use flowstone_fronts::FORMATS;
use flowstone_lang::reader::{ReadContext, ReadError, ReadOptions, Reader};
use flowstone_lang::session::Session;
use flowstone_lang::value::{Change, Sources, Span, Symbol, Value};

use super::Backend;

/// Stack of the checking thread. Code may be nested deeply.
const STACK: usize = 64 * 1024 * 1024;

/// A text to check.
pub(super) struct Job {
    pub(super) uri: String,
    pub(super) version: i32,
    /// The file of the text; a text without one is checked as a new file of the project's folder.
    pub(super) path: Option<PathBuf>,
    pub(super) text: String,
    pub(super) is_flow: bool,
    /// The open texts.
    pub(super) others: Vec<(PathBuf, String)>,
}

/// What a check found.
pub(super) struct Checked {
    pub(super) uri: String,
    pub(super) version: i32,
    pub(super) found: Vec<Found>,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) at: Range<usize>,
    pub(super) is_error: bool,
    pub(super) code: String,
    pub(super) message: String,
    pub(super) hints: Vec<String>,
    /// Changes of the text that would mend it.
    pub(super) fixes: Vec<Fix>,
    /// Another place of the same text, and its label.
    pub(super) related: Option<(Range<usize>, String)>,
}

/// A change of the text that would mend a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fix {
    pub(super) title: String,
    /// Whether it needs no decision of a person.
    pub(super) is_certain: bool,
    /// The parts of the text, each with what replaces it.
    pub(super) edits: Vec<(Range<usize>, String)>,
}

/// The texts that wait for a check, each once.
type Waiting = Arc<Mutex<BTreeMap<String, Job>>>;

/// The thread that checks.
pub(super) struct Checker {
    waiting: Waiting,
    wake: Sender<()>,
    pub(super) results: Receiver<Checked>,
}

impl Checker {
    /// Starts the thread, which ends when the checker is dropped.
    ///
    /// # Errors
    /// When the system cannot start a thread.
    pub(super) fn start(backend: &'static dyn Backend) -> std::io::Result<Checker> {
        let waiting = Waiting::default();
        let (wake, woken) = bounded(1);
        let (done, results) = unbounded();
        let todo = Arc::clone(&waiting);
        thread::Builder::new()
            .name("checks".to_owned())
            .stack_size(STACK)
            .spawn(move || work(backend, (&todo, &woken), &done))?;
        Ok(Checker {
            waiting,
            wake,
            results,
        })
    }

    /// Has a text checked, in the place of an earlier version of it that still waits.
    pub(super) fn check(&self, job: Job) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(job.uri.clone(), job);
        // If there is a signal already, the thread will see this job, too.
        let _ = self.wake.try_send(());
    }
}

fn work(backend: &dyn Backend, (todo, woken): (&Waiting, &Receiver<()>), done: &Sender<Checked>) {
    let steps = backend.steps();
    let root = backend.root();
    loop {
        let next = todo
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_first();
        let Some((_, job)) = next else {
            match woken.recv() {
                Ok(()) => continue,
                Err(_) => return,
            }
        };
        let settings = backend.settings();
        let project = InProject {
            root: &root,
            settings: &settings,
            formats: FORMATS,
            registered: None,
        };
        // A panic was reported where it happened, and must not end the diagnostics of other texts.
        let found = catch_unwind(AssertUnwindSafe(|| {
            check(&backend.session(), &job, &steps, project)
        }));
        let checked = Checked {
            uri: job.uri,
            version: job.version,
            found: found.unwrap_or_default(),
        };
        if done.send(checked).is_err() {
            return;
        }
    }
}

/// Checks one text. Code that is no flow is only read.
pub(super) fn check(
    session: &Session,
    job: &Job,
    steps: &[Box<dyn Step>],
    project: InProject<'_>,
) -> Vec<Found> {
    let path = job
        .path
        .clone()
        .unwrap_or_else(|| project.root.join("untitled.edn"));
    let name = path.display().to_string();
    if !job.is_flow {
        return read_only(session, &name, &job.text);
    }
    let mut edited: Edited = job.others.iter().cloned().collect();
    edited.insert(path.clone(), job.text.clone());
    let checked = disk::check_edited(session, (&path, &name), (steps, Some(project)), &edited);
    let sources = session.world().sources.borrow();
    let mut found: Vec<Found> = checked
        .findings
        .iter()
        .map(|finding| of_finding(&sources, (&name, &job.text), finding))
        .collect();
    found.dedup();
    found
}

fn read_only(session: &Session, name: &str, text: &str) -> Vec<Found> {
    let Err(error) = read(session, name, text) else {
        return Vec::new();
    };
    let sources = session.world().sources.borrow();
    vec![Found {
        at: range(&sources, name, error.span).unwrap_or(0..0),
        is_error: true,
        code: error.code.to_owned(),
        message: error.message,
        hints: error.hints,
        fixes: fixes(&sources, (name, text), &error.changes, error.span),
        related: error
            .related
            .and_then(|(span, label)| Some((range(&sources, name, span)?, label))),
    }]
}

/// Reads a text without the namespaces that it declares: any alias and any tag is accepted.
fn read(session: &Session, name: &str, text: &str) -> Result<(), ReadError> {
    let source = session.world().sources.borrow_mut().add(name, text);
    let mut reader = Reader::new(text, ReadOptions::flow(source));
    let mut cx = AnyNames::default();
    while reader.next(&mut cx)?.is_some() {}
    Ok(())
}

/// Accepts every alias and every tag.
#[derive(Default)]
struct AnyNames {
    gensym: u64,
}

impl ReadContext for AnyNames {
    fn resolve_alias(&self, alias: &str) -> Option<String> {
        Some(alias.to_owned())
    }

    fn current_namespace(&self) -> String {
        "user".to_owned()
    }

    fn resolve_symbol(&self, symbol: Symbol) -> Symbol {
        symbol
    }

    fn gensym(&mut self, prefix: &str) -> Symbol {
        self.gensym += 1;
        Symbol::new(&format!("{prefix}{}", self.gensym))
    }

    fn read_tag(&mut self, _tag: Symbol, form: Value) -> Option<Result<Value, String>> {
        Some(Ok(form))
    }
}

fn of_finding(sources: &Sources, (name, text): (&str, &str), finding: &Finding) -> Found {
    let at = range(sources, name, finding.span);
    let message = match &at {
        Some(_) => finding.message.clone(),
        // The finding has no place, or one in an included file.
        None => match place_elsewhere(sources, finding.span) {
            Some(place) => format!("{place}: {}", finding.message),
            None => finding.message.clone(),
        },
    };
    let related = finding.related.as_ref();
    Found {
        at: at.unwrap_or(0..0),
        is_error: finding.severity == Severity::Error,
        code: finding.code.to_owned(),
        message,
        hints: finding.hints.clone(),
        fixes: fixes(sources, (name, text), &finding.changes, finding.span),
        related: related
            .and_then(|(span, label)| Some((range(sources, name, *span)?, label.clone()))),
    }
}

/// Returns the changes that concern the checked text alone, with their places in it.
fn fixes(
    sources: &Sources,
    (name, text): (&str, &str),
    changes: &[Change],
    problem: Span,
) -> Vec<Fix> {
    let fix = |change: &Change| {
        let placed = change.place(sources, problem)?;
        let is_own = placed
            .edits
            .iter()
            .all(|edit| Path::new(&edit.place.file) == Path::new(name));
        let edits = placed
            .edits
            .iter()
            .map(|edit| Some((edit.range(text)?, edit.new.clone())));
        Some(Fix {
            title: placed.title.clone(),
            is_certain: placed.is_certain,
            edits: edits.collect::<Option<Vec<_>>>().filter(|_| is_own)?,
        })
    };
    changes.iter().filter_map(fix).collect()
}

/// Returns the range of a place in the checked text itself. For code that a macro of another text made, that is the call
/// of the macro.
fn range(sources: &Sources, name: &str, mut span: Span) -> Option<Range<usize>> {
    while span.is_some() {
        let source = sources.get(span.source)?;
        if Path::new(&*source.name) == Path::new(name) {
            return Some(span.start as usize..span.end as usize);
        }
        span = sources.expansion(span.source)?.call;
    }
    None
}

fn place_elsewhere(sources: &Sources, span: Span) -> Option<String> {
    let source = sources.get(span.source).filter(|_| span.is_some())?;
    let at = source.line_column(span.start);
    Some(format!("{}:{}:{}", source.name, at.line, at.column))
}
