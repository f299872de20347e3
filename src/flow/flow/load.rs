//! Loads a flow from a file, and reports everything that is wrong with it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flowstone_lang::reader::{ReadContext, ReadError, ReadOptions, Reader};
use flowstone_lang::session::{Body, Session, WorldContext};
use flowstone_lang::value::{Span, Symbol, Value};

use super::files::{FlowFiles, StoredFiles, join};
use super::lint::Surroundings;
use super::{Flow, compile, contents, lint};
use crate::bindings::{Bindings, BindingsError};
use crate::codec;
use crate::definition;
use crate::diagnostic::{Diagnostic, Severity};
use crate::forms;
use crate::libraries::Libraries;
use crate::permission::PlannedNeed;
use crate::ports::Program;
use crate::registry::RunVersion;
use crate::schedule;

/// Maximum depth of includes.
const INCLUDE_DEPTH: usize = 32;

/// The version of replay behaviour. Raised when a build would replay a journal of an earlier one differently.
pub const ENGINE_ABI: i64 = 1;

/// A flow with the texts that it was made from.
#[derive(Debug, Clone)]
pub struct LoadedFlow {
    pub flow: Rc<Flow>,
    pub program: Program,
    /// The file is not in the project's folder.
    pub is_outside: bool,
    /// The version in the registry that the texts are; `None` for those of a file.
    pub version: Option<RunVersion>,
}

/// The findings about a file. Their places refer to the sources of the session.
#[derive(Debug, Default)]
pub struct Checked {
    pub loaded: Option<LoadedFlow>,
    /// In the order of the file.
    pub findings: Vec<Diagnostic>,
    /// The definition as it is written, if the file has one, even if it is not a valid flow.
    definition: Option<Value>,
    /// The permissions that the flow's steps need, as far as they are written out.
    pub needs: Vec<PlannedNeed>,
    /// The files of the flows that it calls by name.
    pub called: Vec<PathBuf>,
    /// Whether it calls a flow that was not found.
    pub misses_flows: bool,
    /// The compiled `:flow`, if it was compiled and the session is unchanged.
    pub body: Option<Body>,
}

impl Checked {
    /// Returns the findings about a file that cannot be read.
    pub fn failed(finding: Diagnostic) -> Checked {
        Checked {
            findings: vec![finding],
            ..Checked::default()
        }
    }

    /// Tells whether the file cannot be run.
    pub fn has_errors(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }
}

/// Reads the flow of a stored program.
pub fn reload(session: &Session, program: &Program) -> Checked {
    let Some(stored) = Stored::decode(&program.source) else {
        return Checked::failed(Diagnostic::error(
            "E0507",
            "the stored program cannot be read",
        ));
    };
    let mut files = stored.files;
    let text = files.remove(MAIN).unwrap_or_default();
    let main = Main {
        name: &stored.name,
        text: &text,
        stem: &stored.stem,
        is_stored: true,
    };
    read(session, &StoredFiles(files), &main)
}

/// Checks the code of a flow that was read: the shape of each step call, and compiling. The names that flows may use
/// must be installed in the session: [`crate::natives::install`].
pub fn check_code(
    session: &Session,
    mut checked: Checked,
    surroundings: Surroundings<'_>,
) -> Checked {
    if let Some(definition) = &checked.definition {
        let sources = session.world().sources.borrow();
        checked
            .findings
            .extend(contents::check(&sources, definition));
    }
    if let Some(loaded) = &checked.loaded {
        let sources = session.world().sources.borrow();
        let mut calls = lint::check_steps(&sources, &loaded.flow, surroundings);
        drop(sources);
        checked.needs = std::mem::take(&mut calls.needs);
        checked.called = std::mem::take(&mut calls.called);
        checked.misses_flows = calls.misses_flows;
        if let Err(finding) = loaded.flow.libraries.load(session) {
            checked.findings.extend(calls.findings);
            checked.findings.push(*finding);
            return checked;
        }
        let compiled = compile::check_code(session, &loaded.flow, &calls.code);
        checked.body = compiled.body;
        let mut code = compiled.findings;
        // A call that has a finding about its step is not reported again by the compiler.
        let calls = calls.findings;
        code.retain(|finding| calls.iter().all(|call| !overlap(call.span, finding.span)));
        checked.findings.extend(calls.into_iter().chain(code));
    }
    checked
        .findings
        .sort_by_key(|finding| (finding.span.source.0, finding.span.start));
    checked
}

/// Returns a hint about the probable format of a text that cannot be read as a flow.
fn other_format(main: &Main<'_>) -> Option<&'static str> {
    const HINT: &str = "this looks like JSON: a flow file holds Clojure data, `{:slug :my-flow :flow '(...)}`; JSON is \
                        given to a run with `--input @file.json`";
    let ending = Path::new(main.name).extension().and_then(|it| it.to_str());
    let inside = main.text.trim_start().strip_prefix(['{', '[']);
    let is_json = inside.is_some_and(|it| it.trim_start().starts_with('"') && it.contains("\":"));
    match ending {
        Some("json" | "jsonl") => Some(HINT),
        Some("csv" | "tsv") => Some(
            "this is a table, not a flow: a flow reads it with `:table {:op :import}` or `flow.util/parse-csv`",
        ),
        _ => is_json.then_some(HINT),
    }
}

fn overlap(one: Span, other: Span) -> bool {
    one.source == other.source && one.start <= other.end && other.start <= one.end
}

/// The text of the main file.
pub struct Main<'a> {
    pub name: &'a str,
    pub text: &'a str,
    /// The slug of a file that contains only a form.
    pub stem: &'a str,
    /// A run was started with it: requirements of newer builds for inputs do not apply.
    pub is_stored: bool,
}

/// Codes of errors in declared inputs, which are ignored for stored programs: they were checked when the run started.
const OF_INPUTS: [&str; 2] = ["E0408", "E0409"];

/// Reads a flow from its text, and checks its definition.
pub fn read(session: &Session, files: &dyn FlowFiles, main: &Main<'_>) -> Checked {
    let reading = Reading {
        files,
        session,
        used: RefCell::default(),
        failed: RefCell::default(),
    };
    let forms = match reading.forms(main.name, "", main.text, &mut Vec::new()) {
        Ok(forms) => forms,
        Err(error) => {
            let inner = reading.failed.take();
            let finding = inner.unwrap_or_else(|| finding(error));
            return Checked::failed(match other_format(main) {
                Some(hint) => finding.hint(hint),
                None => finding,
            });
        }
    };
    let (libraries, in_libraries) = match &forms[..] {
        [only @ Value::Map(_)] => Libraries::of(session, files.libraries(), only),
        _ => (Libraries::default(), Vec::new()),
    };
    let sources = session.world().sources.borrow();
    let (flow, mut findings) = match &forms[..] {
        [] => (
            None,
            vec![
                Diagnostic::error("E0401", format!("{} is empty", main.name))
                    .hint("a flow file holds one map with `:slug` and `:flow`, or one form"),
            ],
        ),
        [only] => match only {
            Value::Map(_) => definition::flow(&sources, only),
            form => (
                Some(Flow::bare(&file_slug(main.stem), forms::unquoted(form))),
                Vec::new(),
            ),
        },
        [_, second, ..] => (
            None,
            vec![
                Diagnostic::error("E0401", "a flow file holds one form, and here is another")
                    .at(second.span())
                    .hint("put functions into `:functions`, or wrap the forms in `(do ...)`"),
            ],
        ),
    };
    findings.extend(in_libraries);
    // Errors in schedules do not affect a run.
    let is_usable = findings.iter().all(|finding| {
        finding.severity != Severity::Error
            || schedule::CODES.contains(&finding.code)
            || (main.is_stored && OF_INPUTS.contains(&finding.code))
    });
    let loaded = flow.filter(|_| is_usable).map(|flow| {
        let mut files = reading.used.take();
        files.insert(MAIN.to_owned(), main.text.to_owned());
        files.extend(libraries.files());
        LoadedFlow {
            flow: Rc::new(Flow {
                digest: Some(content_digest(&files).into()),
                libraries: Rc::new(libraries),
                ..flow
            }),
            program: program(main, files),
            is_outside: false,
            version: None,
        }
    });
    let definition = match &forms[..] {
        [only @ Value::Map(_)] => Some(only.clone()),
        _ => None,
    };
    Checked {
        loaded,
        findings,
        definition,
        needs: Vec::new(),
        body: None,
        called: Vec::new(),
        misses_flows: false,
    }
}

/// Returns the name of a program's main file, and its texts by their paths; the path of the main one is empty.
pub fn program_files(program: &Program) -> Option<(String, BTreeMap<String, String>)> {
    let stored = Stored::decode(&program.source)?;
    Some((stored.name, stored.files))
}

/// Returns the text of a program's main file.
pub fn program_text(program: &Program) -> Option<String> {
    Stored::decode(&program.source)?.files.remove(MAIN)
}

/// The key of the main file's text among the files of a stored program. Other paths are not empty.
const MAIN: &str = "";

struct Stored {
    name: String,
    stem: String,
    files: BTreeMap<String, String>,
}

impl Stored {
    fn decode(source: &str) -> Option<Stored> {
        let source = codec::decode(source).ok()?;
        let text = |key: &str| source.get(key).and_then(Value::as_str).map(str::to_owned);
        let files = source.get("files")?.as_map()?;
        Some(Stored {
            name: text("name")?,
            stem: text("stem")?,
            files: files
                .iter()
                .filter_map(|(path, text)| {
                    Some((path.as_str()?.to_owned(), text.as_str()?.to_owned()))
                })
                .collect(),
        })
    }
}

/// Returns the hash of texts by their paths.
fn content_digest(files: &BTreeMap<String, String>) -> String {
    let texts = files
        .iter()
        .map(|(path, text)| Value::from(format!("{}:{path}{text}", path.len())));
    let whole = codec::canonical(&Value::vector(texts)).expect("texts can be written down");
    codec::digest_bytes(whole.as_bytes())
}

/// Returns the hash of all texts of a program, independent of its file name: the same as [`Flow::digest`].
pub fn program_digest(program: &Program) -> Option<String> {
    Some(content_digest(&Stored::decode(&program.source)?.files))
}

fn program(main: &Main<'_>, files: BTreeMap<String, String>) -> Program {
    let files = files
        .into_iter()
        .map(|(path, text)| (Value::from(path), Value::from(text)));
    let source = Value::map([
        (Value::keyword("name"), Value::from(main.name)),
        (Value::keyword("stem"), Value::from(main.stem)),
        (Value::keyword("files"), Value::map(files)),
    ]);
    let source = codec::canonical(&source).expect("texts can be written down");
    Program {
        hash: codec::digest_bytes(source.as_bytes()),
        source,
        engine_abi: ENGINE_ABI,
    }
}

/// Returns the name of a program's main file.
pub fn program_name(program: &Program) -> Option<String> {
    Some(Stored::decode(&program.source)?.name)
}

/// Returns the slug of a flow that has none itself, from the name of its file without the extension.
pub fn file_slug(stem: &str) -> String {
    let mut slug: String = stem
        .chars()
        .map(|char| match char {
            char if char.is_ascii_alphanumeric() || char == '-' || char == '_' => char,
            _ => '-',
        })
        .take(128)
        .collect();
    if !slug.starts_with(|char: char| char.is_ascii_alphabetic()) {
        slug.insert_str(0, "flow-");
    }
    slug
}

fn finding(error: ReadError) -> Diagnostic {
    let mut finding = Diagnostic::error(error.code, error.message).at(error.span);
    finding.hints = error.hints;
    finding.changes = error.changes;
    finding.related = error.related;
    finding
}

struct Reading<'a> {
    files: &'a dyn FlowFiles,
    session: &'a Session,
    /// The included texts by path.
    used: RefCell<BTreeMap<String, String>>,
    /// The error inside an included file, which is more exact than the reader's error about the tag.
    failed: RefCell<Option<Diagnostic>>,
}

impl Reading<'_> {
    /// Reads all forms of a text. `open` are the paths of the files that include it.
    fn forms(
        &self,
        name: &str,
        path: &str,
        text: &str,
        open: &mut Vec<String>,
    ) -> Result<Vec<Value>, ReadError> {
        let world = self.session.world();
        let source = world.sources.borrow_mut().add(name, text);
        let mut reader = Reader::new(text, ReadOptions::flow(source));
        let mut cx = IncludeContext {
            inner: WorldContext::new(world),
            reading: self,
            path: path.to_owned(),
            open,
        };
        let mut forms = Vec::new();
        while let Some(form) = reader.next(&mut cx)? {
            forms.push(form);
        }
        Ok(forms)
    }

    fn include(&self, from: &str, path: &str, open: &mut Vec<String>) -> Result<Value, String> {
        let path = join(from, path)?;
        if open.contains(&path) || open.len() >= INCLUDE_DEPTH {
            return Err(format!("{path} includes itself: {}", open.join(" → ")));
        }
        let text = self.files.read(&path)?;
        self.used.borrow_mut().insert(path.clone(), text.clone());
        open.push(path.clone());
        let forms = self.forms(&path, &path, &text, open);
        open.pop();
        match forms {
            Err(error) => {
                let mut failed = self.failed.borrow_mut();
                failed.get_or_insert_with(|| finding(error));
                Err(format!("{path} cannot be read"))
            }
            Ok(forms) => match <[Value; 1]>::try_from(forms) {
                Ok([form]) => Ok(form),
                Err(forms) if forms.is_empty() => Err(format!("{path} is empty")),
                Err(_) => Err(format!(
                    "{path} holds more than one form; wrap them in `(do ...)` or `[...]`"
                )),
            },
        }
    }
}

/// Reads tagged literals as a program does, and also `#flow/include`.
struct IncludeContext<'a> {
    inner: WorldContext<'a>,
    reading: &'a Reading<'a>,
    path: String,
    open: &'a mut Vec<String>,
}

impl ReadContext for IncludeContext<'_> {
    fn resolve_alias(&self, alias: &str) -> Option<String> {
        self.inner.resolve_alias(alias)
    }

    fn current_namespace(&self) -> String {
        self.inner.current_namespace()
    }

    fn resolve_symbol(&self, symbol: Symbol) -> Symbol {
        self.inner.resolve_symbol(symbol)
    }

    fn gensym(&mut self, prefix: &str) -> Symbol {
        self.inner.gensym(prefix)
    }

    fn read_tag(&mut self, tag: Symbol, form: Value) -> Option<Result<Value, String>> {
        if !tag.is("flow/include") {
            return self.inner.read_tag(tag, form);
        }
        Some(match form.as_str() {
            Some(path) => self.reading.include(&self.path, path, self.open),
            None => Err("`#flow/include` takes a path in quotes".to_owned()),
        })
    }
}

impl LoadedFlow {
    /// Returns the bindings of a run that gets this flow instead of its own: whether the run is from outside the
    /// project follows from this flow.
    ///
    /// # Errors
    /// When the run's bindings cannot be read.
    pub fn bindings_from(&self, bindings: Option<&str>) -> Result<Option<String>, BindingsError> {
        let bindings = Bindings {
            is_outside: self.is_outside,
            ..Bindings::decode(bindings)?
        };
        Ok(bindings.encode())
    }
}
