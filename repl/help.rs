//! Forms that the prompt answers itself: `doc`, `source`, `apropos`, `dir`, `find-doc`, `pst`, `help` and `exit`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::rc::Rc;

use flowstone_lang::library::{self, examples};
use flowstone_lang::session::Session;
use flowstone_lang::value::{PrintOptions, Result, Symbol, Unforced, Value, Var, print_value};
use flowstone_lang::vm::Vm;

use crate::forms::first;

/// The output of `help`.
const HELP: &str = "\
Type a form and Enter; a form that is still open continues on the next line.
Ctrl-C stops an evaluation, Ctrl-D or `exit` leaves.

  (doc map)  (doc :http)     what a function, or a step type, does
  (apropos \"part\")          names that contain a text
  (dir clojure.string)       the names of a namespace
  (find-doc \"text\")         names whose description contains a text
  (source name)              the definition of a name
  (pst)                      the last error again
  *1 *2 *3  *e               the last values, the last error
  (set! *print-length* 20)   prints fewer items of each collection

Steps work here as in a flow: (flow/step :http :page {:url \"https://example.com\"}).
";

/// A form that the prompt answers itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    Apropos(String),
    Dir(Symbol),
    Doc(Symbol),
    FindDoc(String),
    Help,
    /// `(pst)`, also with an argument.
    LastError,
    /// `exit` and similar words.
    Leave,
    Source(Symbol),
    /// The description of a step type.
    Step(String),
}

impl Question {
    /// Returns the question of a form; `None` for any other form, or if the program defines a function of that name.
    pub(crate) fn of(session: &Session, form: &Value) -> Option<Question> {
        if let Value::Keyword(name) = form {
            return Question::alone(&name.to_string());
        }
        let name = match form {
            Value::List(list) => list.first.as_symbol()?,
            other => other.as_symbol()?,
        };
        if session.world().resolve(name).is_some() {
            return None;
        }
        let Value::List(list) = form else {
            return Question::alone(&name.to_string());
        };
        let items: Vec<&Value> = list.iter().collect();
        let name = name.to_string();
        let [_, about] = items.as_slice() else {
            return match (&*name, items.len()) {
                ("pst", _) => Some(Question::LastError),
                (_, 1) => Question::alone(&name),
                _ => None,
            };
        };
        Some(match &*name {
            "apropos" => Question::Apropos(name_or_text(about)?),
            "dir" => Question::Dir(about.as_symbol()?),
            "doc" => match about {
                Value::Keyword(kind) => Question::Step(kind.to_string().replacen(':', "", 1)),
                _ => Question::Doc(about.as_symbol()?),
            },
            "find-doc" => Question::FindDoc(name_or_text(about)?),
            "pst" => Question::LastError,
            "source" => Question::Source(about.as_symbol()?),
            _ => return None,
        })
    }

    /// Returns the question of a single word, with or without brackets or a colon.
    fn alone(word: &str) -> Option<Question> {
        match word.trim_start_matches(':') {
            "exit" | "quit" => Some(Question::Leave),
            "help" => Some(Question::Help),
            _ => None,
        }
    }

    /// Answers the question.
    ///
    /// # Errors
    /// Any exception thrown while a library function is defined, or Ctrl-C.
    pub(crate) fn answer(&self, session: &Session, vm: &mut Vm) -> Result<String> {
        match self {
            Question::Apropos(part) => Ok(apropos(session, part)),
            Question::Dir(name) => Ok(dir(session, *name)),
            Question::Doc(name) => Ok(match find(session, vm, *name)? {
                Some(var) => describe(&var),
                None => special(*name)
                    .or_else(|| namespace(session, *name))
                    .unwrap_or_else(|| {
                        format!(
                            "`{name}` is not defined; (apropos \"{name}\") finds similar names\n"
                        )
                    }),
            }),
            Question::FindDoc(part) => find_doc(session, vm, part),
            Question::Help => Ok(HELP.to_owned()),
            // The prompt answers these itself, and looks up the descriptions of steps.
            Question::LastError | Question::Leave | Question::Step(_) => Ok(String::new()),
            Question::Source(name) => source(session, vm, *name),
        }
    }
}

/// Returns the argument of a question.
pub(crate) fn argument(form: &Value) -> Option<&Value> {
    match form {
        Value::List(list) => list.iter().nth(1),
        _ => None,
    }
}

fn name_or_text(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.to_string()),
        other => other.as_symbol().map(|symbol| symbol.to_string()),
    }
}

/// Returns the var of a name; a library definition that was not used before is loaded.
fn find(session: &Session, vm: &mut Vm, name: Symbol) -> Result<Option<Rc<Var>>> {
    let world = session.world();
    if let Some(var) = world.resolve(name) {
        return Ok(Some(var));
    }
    let namespace = match name.namespace() {
        None => world.core.name,
        Some(prefix) => {
            let prefix = Symbol::new(&prefix);
            world.current.borrow().alias(prefix).unwrap_or(prefix)
        }
    };
    let plain = Symbol::new(&name.name());
    if !world.loader().load_definition(vm, namespace, plain)? {
        return Ok(None);
    }
    Ok(world
        .find_namespace(namespace)
        .and_then(|namespace| namespace.lookup(plain)))
}

fn describe(var: &Var) -> String {
    let mut out = format!("{}\n", var.qualified());
    if let Some(Value::Native(native)) = var.root() {
        let _ = writeln!(out, "{}\n  {}", native.usage, native.doc);
        for (expression, value) in native.examples {
            let _ = writeln!(out, "  {expression} ⇒ {value}");
        }
        out.push_str(&listed(&var.qualified().to_string()));
        return out;
    }
    if let Some(arglists) = var.meta_entry("arglists") {
        let _ = writeln!(out, "{}", print(&arglists));
    }
    if var.is_macro.get() {
        out.push_str("Macro\n");
    }
    match var.meta_entry("doc") {
        Some(Value::Text(text)) => {
            let _ = writeln!(out, "  {}", &**text);
        }
        _ => out.push_str("  (no doc)\n"),
    }
    for example in items(var.meta_entry("examples")) {
        if let [expression, value] = items(Some(example)).as_slice() {
            let _ = writeln!(out, "  {expression} ⇒ {value}");
        }
    }
    out.push_str(&listed(&var.qualified().to_string()));
    out
}

/// Returns the examples of a name that are stored apart from its definition.
fn listed(name: &str) -> String {
    let entry = examples::find(name).unwrap_or_default();
    let lines = entry
        .examples
        .iter()
        .map(|(expression, value)| format!("  {expression} ⇒ {value}\n"));
    lines.collect()
}

/// Describes a special form, which has no var; `None` for any other name.
fn special(name: Symbol) -> Option<String> {
    let entry = examples::find(&format!("clojure.core/{name}"))?;
    if entry.doc.is_empty() {
        return None;
    }
    let mut out = format!("{}\n{}\n  {}\n", entry.name, entry.usage, entry.doc);
    out.push_str(&listed(entry.name));
    Some(out)
}

/// Describes a namespace, of the library or of the program; `None` for any other name.
fn namespace(session: &Session, name: Symbol) -> Option<String> {
    let name = name.to_string();
    let own = session.world().find_namespace(Symbol::new(&name));
    let doc = own.as_ref().map(|namespace| namespace.meta());
    let doc = doc.as_ref().and_then(|meta| meta.get("doc")?.as_str());
    let doc = doc.or_else(|| library::doc(&name));
    if own.is_none() && doc.is_none() {
        return None;
    }
    Some(format!("{name}\n  {}\n", doc.unwrap_or("(no doc)")))
}

/// Returns the items of a vector or list, quoted or not.
fn items(value: Option<Value>) -> Vec<Value> {
    let items: Vec<Value> = match value {
        Some(Value::Vector(vector)) => vector.iter().cloned().collect(),
        Some(Value::List(list)) => list.iter().cloned().collect(),
        _ => Vec::new(),
    };
    match items.as_slice() {
        [quote, quoted] if quote.as_symbol().is_some_and(|name| name.is("quote")) => {
            self::items(Some(quoted.clone()))
        }
        _ => items,
    }
}

fn source(session: &Session, vm: &mut Vm, name: Symbol) -> Result<String> {
    let Some(var) = find(session, vm, name)? else {
        return Ok(format!("`{name}` is not defined\n"));
    };
    if let Some(Value::Native(native)) = var.root() {
        return Ok(format!(
            "{} is written in Rust; (doc {name}) describes it\n",
            native.name
        ));
    }
    let of_library: String = library::forms_of(&var.namespace.to_string(), &var.name.name())
        .map(|form| format!("{}\n", form.text))
        .collect();
    if !of_library.is_empty() {
        return Ok(of_library);
    }
    Ok(match definition(session, &var) {
        Some(text) => format!("{text}\n"),
        None => format!("the source of `{name}` is not kept\n"),
    })
}

/// Finds the text that defined a var: the form that begins at its `:line` and `:column`. All texts read by the prompt
/// share one name; the most recent one with a matching definition there is used.
fn definition(session: &Session, var: &Var) -> Option<String> {
    let file = var.meta_entry("file")?;
    let line = usize::try_from(var.meta_entry("line")?.as_int()?).ok()?;
    let column = usize::try_from(var.meta_entry("column")?.as_int()?).ok()?;
    let sources = session.world().sources.borrow();
    let mut found = None;
    let texts = sources.all();
    for source in texts
        .iter()
        .filter(|source| Some(&*source.name) == file.as_str())
    {
        let form = at(&source.text, line, column).and_then(first);
        if let Some(text) = form.filter(|text| defines(text, &var.name.name())) {
            found = Some(text.to_owned());
        }
    }
    found
}

/// Tells whether a form defines a name, like `(defn name ...)`, with any macro.
fn defines(form: &str, name: &str) -> bool {
    let mut words = form.trim_start_matches('(').split_whitespace();
    let head = words.next().unwrap_or_default();
    let head = head.rsplit('/').next().unwrap_or_default();
    // Metadata may come in between, as in `(def ^:dynamic *x* 1)`.
    let mut named = words.take(8).map(|word| word.trim_end_matches([')', '"']));
    head.starts_with("def") && named.any(|word| word == name)
}

/// Returns the text from a line and column on, both counted from 1.
fn at(text: &str, line: usize, column: usize) -> Option<&str> {
    let mut lines = text.split_inclusive('\n');
    let before: usize = lines
        .by_ref()
        .take(line.checked_sub(1)?)
        .map(str::len)
        .sum();
    let (inside, _) = lines.next()?.char_indices().nth(column.checked_sub(1)?)?;
    text.get(before + inside..)
}

fn dir(session: &Session, name: Symbol) -> String {
    let world = session.world();
    let target = world.current.borrow().alias(name).unwrap_or(name);
    let names = public(session, target);
    match names.is_empty() {
        true => format!("there is no namespace `{name}`\n"),
        false => names.into_iter().map(|name| format!("{name}\n")).collect(),
    }
}

fn apropos(session: &Session, part: &str) -> String {
    let mut out = String::new();
    for namespace in namespaces(session) {
        for name in public(session, namespace) {
            if name.contains(part) {
                let _ = writeln!(out, "{namespace}/{name}");
            }
        }
    }
    out
}

fn find_doc(session: &Session, vm: &mut Vm, part: &str) -> Result<String> {
    let mut found = Vec::new();
    for namespace in namespaces(session) {
        for name in public(session, namespace) {
            let symbol = Symbol::with_namespace(Some(&namespace.to_string()), &name);
            let text = find(session, vm, symbol)?.map(|var| describe(&var));
            found.extend(text.filter(|text| text.contains(part)));
        }
    }
    Ok(found.join("----\n"))
}

/// Returns all namespaces by name, including library namespaces that were not used yet.
fn namespaces(session: &Session) -> Vec<Symbol> {
    let mut all: Vec<Symbol> = session
        .world()
        .namespaces
        .borrow()
        .keys()
        .copied()
        .collect();
    all.extend(
        library::SOURCES
            .iter()
            .map(|source| Symbol::new(source.namespace)),
    );
    all.sort_by_key(|name| name.to_string());
    all.dedup();
    all
}

/// Returns the public names that a namespace defines itself, sorted.
pub(crate) fn public(session: &Session, namespace: Symbol) -> BTreeSet<String> {
    let of_library = namespace.to_string();
    let mut names: BTreeSet<String> = library::names(&of_library)
        .filter(|name| library::forms_of(&of_library, name).all(|form| !form.is_private()))
        .map(str::to_owned)
        .collect();
    if let Some(namespace) = session.world().find_namespace(namespace) {
        for (name, var) in namespace.mappings() {
            if var.namespace != namespace.name {
                continue;
            }
            if var.is_private.get() {
                names.remove(&*name.name());
            } else {
                names.insert(name.name().to_string());
            }
        }
    }
    names
}

fn print(value: &Value) -> String {
    let mut out = String::new();
    match print_value(&mut out, &mut Unforced, value, PrintOptions::READABLE) {
        Ok(()) => out,
        Err(_) => value.kind().to_owned(),
    }
}
