//! Shared code: namespaces of a project that a flow requires.
//!
//! A flow names them under `:namespaces`, as the `:require` of an `ns` form does. Their texts, and those of the namespaces that they
//! require in turn, are part of the flow's program: they are hashed and kept with it, so a run continues with the code that it began
//! with. They are evaluated once in a session, without steps; their functions may call steps when the flow calls them.

use std::collections::BTreeMap;
use std::rc::Rc;

use flowstone_lang::Sandbox;
use flowstone_lang::library;
use flowstone_lang::reader::{ReadOptions, Reader};
use flowstone_lang::session::{Session, WorldContext};
use flowstone_lang::value::{Signal, Span, Symbol, Value};

use crate::diagnostic::{Diagnostic, nearest};
use crate::forms::item_span;
use crate::limits::Limits;

/// Beginning of the paths of libraries among the texts of a program. Included files have no such paths.
pub(crate) const PREFIX: &str = "@lib/";
/// Maximum number of instructions to evaluate the namespaces of a flow.
const FUEL: u64 = 200_000_000;
/// Maximum number of namespaces.
const MOST: usize = 500;

/// The code of a namespace that no folder has.
const MISSING: &str = "E1600";
/// The code of a malformed entry of `:namespaces`.
const MALFORMED: &str = "E1601";
/// The code of namespaces that require each other, or are too many.
const CIRCULAR: &str = "E1602";

/// The namespaces that a flow requires.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Libraries {
    /// What the flow requires: `[shop.money :as money]`.
    specs: Vec<(Value, Span)>,
    /// The file and the text of each namespace of the project, also of those that are required in turn.
    texts: BTreeMap<String, LibraryText>,
}

/// A namespace of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryText {
    /// The path below the folder in which it was found.
    pub path: String,
    pub text: Rc<str>,
}

/// Finds the namespaces of a project.
pub trait LibraryFiles {
    /// Returns a namespace; `None` if no folder has it.
    ///
    /// # Errors
    /// Why its file cannot be read.
    fn find(&self, name: &str) -> Result<Option<LibraryText>, String>;

    /// Returns the folders in which it looks, as a person names them.
    fn folders(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the names of all namespaces in the folders.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// No namespaces.
#[derive(Debug, Clone, Copy)]
pub struct NoLibraries;

impl LibraryFiles for NoLibraries {
    fn find(&self, _name: &str) -> Result<Option<LibraryText>, String> {
        Ok(None)
    }
}

/// Returns the paths that the file of a namespace may have below a folder.
pub fn paths_of(name: &str) -> [String; 2] {
    let path = name.replace('.', "/").replace('-', "_");
    ["clj", "cljc"].map(|ending| format!("{path}.{ending}"))
}

impl Libraries {
    /// Returns the texts of namespaces, by name.
    pub fn texts(&self) -> &BTreeMap<String, LibraryText> {
        &self.texts
    }

    /// Returns the texts by their paths among those of a program.
    pub(crate) fn files(&self) -> impl Iterator<Item = (String, String)> {
        let texts = self.texts.values();
        texts.map(|it| (format!("{PREFIX}{}", it.path), it.text.to_string()))
    }

    /// Collects the namespaces of a definition.
    pub(crate) fn of(
        session: &Session,
        files: &dyn LibraryFiles,
        definition: &Value,
    ) -> (Libraries, Vec<Diagnostic>) {
        let mut found = Libraries::default();
        let mut findings = Vec::new();
        let Some(entries) = definition.get("namespaces").filter(|it| !it.is_nil()) else {
            return (found, findings);
        };
        let Value::Vector(items) = entries else {
            let message = format!("`:namespaces` must be a vector, not {}", entries.kind());
            findings.push(
                Diagnostic::error(MALFORMED, message)
                    .at(definition.span())
                    .hint("as in :namespaces [[shop.money :as money]]"),
            );
            return (found, findings);
        };
        for (idx, spec) in items.iter().enumerate() {
            let span = item_span(entries, idx);
            match namespace_of(spec) {
                Some(name) => {
                    found.specs.push((spec.clone(), span));
                    let mut open = Vec::new();
                    findings.extend(found.add(session, files, &name, span, &mut open));
                }
                None => findings.push(
                    Diagnostic::error(
                        MALFORMED,
                        "an entry of `:namespaces` is a name, or a vector that begins with one",
                    )
                    .at(span)
                    .hint("as in [shop.money :as money] or [shop.money :refer [cents]]"),
                ),
            }
        }
        (found, findings)
    }

    /// Adds a namespace, and those that it requires.
    fn add(
        &mut self,
        session: &Session,
        files: &dyn LibraryFiles,
        name: &str,
        span: Span,
        open: &mut Vec<String>,
    ) -> Vec<Diagnostic> {
        if open.iter().any(|it| it == name) {
            let message = format!("{name} requires itself: {} → {name}", open.join(" → "));
            return vec![Diagnostic::error(CIRCULAR, message).at(span)];
        }
        if self.texts.contains_key(name) {
            return Vec::new();
        }
        if self.texts.len() >= MOST {
            let message = format!("a flow requires more than {MOST} namespaces");
            return vec![Diagnostic::error(CIRCULAR, message).at(span)];
        }
        let library = match files.find(name) {
            Err(_) | Ok(None) if is_built_in(session, name) => return Vec::new(),
            Err(why) => {
                let message = format!("the namespace {name} cannot be read: {why}");
                return vec![Diagnostic::error(MISSING, message).at(span)];
            }
            Ok(None) => return vec![missing(files, name, span)],
            Ok(Some(library)) => library,
        };
        let text = library.text.clone();
        let path = library.path.clone();
        self.texts.insert(name.to_owned(), library);
        open.push(name.to_owned());
        let mut findings = Vec::new();
        for inner in required(session, &path, &text) {
            let is_of_project = !matches!(files.find(&inner), Ok(None));
            if is_of_project {
                findings.extend(self.add(session, files, &inner, span, open));
            }
        }
        open.pop();
        findings
    }

    /// Evaluates the namespaces in a session, and makes their aliases there.
    ///
    /// # Errors
    /// The first error of their code, at its place.
    pub fn load(&self, session: &Session) -> Result<(), Box<Diagnostic>> {
        if self.specs.is_empty() {
            return Ok(());
        }
        let mut host = Sandbox::new()
            .fuel(FUEL)
            .heap_limit(Limits::default().memory);
        for (name, library) in &self.texts {
            host = host.source_file(name, &library.path, &library.text);
        }
        let mut vm = session.vm(Box::new(host));
        for (spec, span) in &self.specs {
            let quoted = Value::list([Value::symbol("quote"), spec.clone()]);
            let require = Value::list([Value::symbol("clojure.core/require"), quoted]);
            session
                .eval(&mut vm, &require)
                .map_err(|signal| match signal {
                    Signal::Stop(stop) => {
                        let name = namespace_of(spec).unwrap_or_default();
                        let path = self.texts.get(&name).map_or("", |it| &it.path);
                        let message =
                            format!("the namespace {name} ({path}) does not load: {stop}");
                        Box::new(Diagnostic::error("E0901", message).at(*span))
                    }
                    Signal::Throw(exception) => {
                        let code = match exception.code {
                            "" => "E0444",
                            code => code,
                        };
                        let mut finding = Diagnostic::error(code, exception.display_text())
                            .at(exception.span().or(*span));
                        finding.hints.clone_from(&exception.hints);
                        Box::new(finding)
                    }
                })?;
        }
        Ok(())
    }
}

fn missing(files: &dyn LibraryFiles, name: &str, span: Span) -> Diagnostic {
    let file = name.replace('.', "/").replace('-', "_");
    let folders = files.folders();
    let finding = Diagnostic::error(
        MISSING,
        format!("there is no namespace {name} in the project"),
    )
    .at(span);
    if folders.is_empty() {
        return finding.hint("name the folders of shared code in flowstone.edn: :paths [\"lib\"]");
    }
    let known = files.names();
    if let Some(near) = nearest(name, known.iter().map(String::as_str)) {
        return finding.hint(format!("did you mean `{near}`?"));
    }
    finding.hint(format!(
        "it is looked for as {file}.clj and {file}.cljc in {}",
        folders.join(", ")
    ))
}

/// Returns the namespace that an entry of `:require` names.
fn namespace_of(spec: &Value) -> Option<String> {
    let name = match spec {
        Value::Vector(items) => items.iter().next()?.clone(),
        other => other.clone(),
    };
    let symbol = name.as_symbol()?;
    symbol.namespace().is_none().then(|| symbol.to_string())
}

fn is_built_in(session: &Session, name: &str) -> bool {
    session.world().find_namespace(Symbol::new(name)).is_some() || library::has(name)
}

/// Returns the namespaces that a text requires in its `ns` form and in calls of `require`. What cannot be read is reported when
/// the text is evaluated.
fn required(session: &Session, path: &str, text: &str) -> Vec<String> {
    let world = session.world();
    let source = world.sources.borrow_mut().add(path, text);
    let mut reader = Reader::new(text, ReadOptions::flow(source));
    let mut cx = WorldContext::new(world);
    let mut names = Vec::new();
    while let Ok(Some(form)) = reader.next(&mut cx) {
        let Value::List(list) = &form else {
            continue;
        };
        let mut items = list.iter();
        let head = items.next().map(ToString::to_string).unwrap_or_default();
        match head.as_str() {
            "ns" => {
                for clause in items {
                    let Value::List(clause) = clause else {
                        continue;
                    };
                    let mut parts = clause.iter();
                    let kind = parts.next().map(ToString::to_string).unwrap_or_default();
                    if [":require", ":use"].contains(&kind.as_str()) {
                        names.extend(parts.filter_map(namespace_of));
                    }
                }
            }
            "require" | "use" => {
                let specs = items.filter_map(crate::forms::quoted);
                names.extend(specs.filter_map(|spec| namespace_of(&spec)));
            }
            _ => {}
        }
    }
    names
}
