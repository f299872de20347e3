//! Forms that the prompt answers itself: `doc`, `source`, `apropos`, `dir`, `find-doc`, `pst`, `help` and `exit`.

use std::fmt::Write;

use flowstone_lang::library;
use flowstone_lang::session::{DescribedKind, Description, Session, first_typed};
use flowstone_lang::value::{Result, Symbol, Value, Var};
use flowstone_lang::vm::Vm;

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
  (more)  (more :all)        the rest of an output that was cut
  *1 *2 *3  *e               the last values, the last error
  (set! *print-length* 20)   prints fewer items of each collection

  (flow/run :slug {:n 1})    runs a flow; (flow/debug :slug) stops at each step
  (flow/runs) (flow/show)    the runs; one run, without an id the last one
  (flow/waits)               open questions; (flow/answer \"id\" value) answers one
  (dir flow)                 all functions of flows and runs; (doc flow/fork) describes one

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
    /// `(more)`: the next part of an output that was cut, or all of it.
    More {
        all: bool,
    },
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
                ("more", 1) => Some(Question::More { all: false }),
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
            "more" => Question::More {
                all: about
                    .as_keyword()
                    .is_some_and(|key| key.to_string() == ":all"),
            },
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
            Question::Doc(name) => Ok(match session.describe(vm, *name)? {
                Some(found) => text_of(&found),
                None => {
                    format!("`{name}` is not defined; (apropos \"{name}\") finds similar names\n")
                }
            }),
            Question::FindDoc(part) => find_doc(session, vm, part),
            Question::Help => Ok(HELP.to_owned()),
            // The prompt answers these itself, and looks up the descriptions of steps.
            Question::LastError | Question::Leave | Question::More { .. } | Question::Step(_) => {
                Ok(String::new())
            }
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

/// Returns a description as text.
fn text_of(found: &Description) -> String {
    let mut out = format!("{}\n", found.name);
    match &found.place {
        // As Clojure shows what is defined in it.
        Some(_) if !found.arglists.is_empty() => {
            let _ = writeln!(out, "({})", found.arglists.join(" "));
        }
        _ => found.usages.iter().for_each(|usage| {
            let _ = writeln!(out, "{usage}");
        }),
    }
    if found.kind == DescribedKind::Macro {
        out.push_str("Macro\n");
    }
    let doc = match found.doc.as_str() {
        "" => "(no doc)",
        doc => doc,
    };
    let _ = writeln!(out, "  {doc}");
    for (expression, value) in &found.examples {
        let _ = writeln!(out, "  {expression} ⇒ {value}");
    }
    out
}

fn source(session: &Session, vm: &mut Vm, name: Symbol) -> Result<String> {
    let Some(var) = session.var_of(vm, name)? else {
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
        let form = at(&source.text, line, column).and_then(first_typed);
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
    let names = session.public_names(target);
    match names.is_empty() {
        true => format!("there is no namespace `{name}`\n"),
        false => names.into_iter().map(|name| format!("{name}\n")).collect(),
    }
}

fn apropos(session: &Session, part: &str) -> String {
    let mut out = String::new();
    for namespace in session.namespace_names() {
        for name in session.public_names(namespace) {
            if name.contains(part) {
                let _ = writeln!(out, "{namespace}/{name}");
            }
        }
    }
    out
}

fn find_doc(session: &Session, vm: &mut Vm, part: &str) -> Result<String> {
    let mut found = Vec::new();
    for namespace in session.namespace_names() {
        for name in session.public_names(namespace) {
            let symbol = Symbol::with_namespace(Some(&namespace.to_string()), &name);
            let text = session.describe(vm, symbol)?.map(|found| text_of(&found));
            found.extend(text.filter(|text| text.contains(part)));
        }
    }
    Ok(found.join("----\n"))
}
