//! What the prompt knows about names: `doc`, `source`, `apropos`, `dir`, `find-doc`.

use std::fmt::Write;
use std::rc::Rc;

use flowstone_lang::session::Session;
use flowstone_lang::value::{
    Namespace, PrintOptions, SourceId, Symbol, Unforced, Value, Var, print_value,
};

use crate::forms::first;

/// Answers a form that asks for help; `None` for any other.
pub fn answer(session: &Session, form: &Value) -> Option<String> {
    let Value::List(list) = form else {
        return None;
    };
    let question = list.first.as_symbol()?;
    if session.world().resolve(question).is_some() {
        // The program has a function of that name, or the library answers itself.
        return None;
    }
    let items: Vec<&Value> = list.iter().collect();
    let [_, about] = items.as_slice() else {
        return None;
    };
    match &*question.name() {
        "doc" => Some(doc(session, about.as_symbol()?)),
        "source" => Some(source(session, about.as_symbol()?)),
        "dir" => Some(dir(session, about.as_symbol()?)),
        "apropos" => Some(apropos(session, &words(about)?)),
        "find-doc" => Some(find_doc(session, &words(about)?)),
        _ => None,
    }
}

fn words(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.to_string()),
        other => other.as_symbol().map(|symbol| symbol.to_string()),
    }
}

fn doc(session: &Session, name: Symbol) -> String {
    match session.world().resolve(name) {
        Some(var) => describe(&var),
        None => format!("`{name}` is not defined; (apropos \"{name}\") finds similar names\n"),
    }
}

fn describe(var: &Var) -> String {
    let mut out = format!("{}\n", var.qualified());
    if let Some(Value::Native(native)) = var.root() {
        let _ = writeln!(out, "{}\n  {}", native.usage, native.doc);
        for (expression, value) in native.examples {
            let _ = writeln!(out, "  {expression} ⇒ {value}");
        }
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
    out
}

fn source(session: &Session, name: Symbol) -> String {
    let Some(var) = session.world().resolve(name) else {
        return format!("`{name}` is not defined\n");
    };
    if let Some(Value::Native(native)) = var.root() {
        return format!(
            "{} is written in Rust; (doc {name}) describes it\n",
            native.name
        );
    }
    match definition(session, &var) {
        Some(text) => format!("{text}\n"),
        None => format!("the source of `{name}` is not kept\n"),
    }
}

/// Finds the text that defined a var: the form that begins at its `:line` and `:column`. What the prompt reads has one
/// name for all its texts; the newest in which the form there names the var is taken.
fn definition(session: &Session, var: &Var) -> Option<String> {
    let file = var.meta_entry("file")?;
    let line = usize::try_from(var.meta_entry("line")?.as_int()?).ok()?;
    let column = usize::try_from(var.meta_entry("column")?.as_int()?).ok()?;
    let sources = session.world().sources.borrow();
    let texts = (0..).map_while(|id| sources.get(SourceId(id)).cloned());
    let mut found = None;
    for source in texts.filter(|source| Some(&*source.name) == file.as_str()) {
        let form = at(&source.text, line, column).and_then(first);
        if let Some(text) = form.filter(|text| text.contains(&*var.name.name())) {
            found = Some(text.to_owned());
        }
    }
    found
}

/// Returns what follows a line and column, both counted from 1.
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
    match world.find_namespace(target) {
        Some(namespace) => lines(public(&namespace).map(|(name, _)| name.to_string())),
        None => format!("there is no namespace `{name}`; `require` it first\n"),
    }
}

fn apropos(session: &Session, part: &str) -> String {
    let all = everything(session);
    let found = all
        .iter()
        .map(|var| var.qualified().to_string())
        .filter(|name| {
            name.rsplit('/')
                .next()
                .is_some_and(|name| name.contains(part))
        });
    lines(found)
}

fn find_doc(session: &Session, part: &str) -> String {
    let all = everything(session);
    let descriptions = all.iter().map(|var| describe(var));
    let found: Vec<String> = descriptions.filter(|text| text.contains(part)).collect();
    found.join("----\n")
}

fn everything(session: &Session) -> Vec<Rc<Var>> {
    let namespaces = session.world().namespaces.borrow();
    let mut all: Vec<Rc<Var>> = namespaces
        .values()
        .flat_map(|namespace| public(namespace).map(|(_, var)| var).collect::<Vec<_>>())
        .collect();
    all.sort_by_key(|var| var.qualified().to_string());
    all
}

/// Returns the public vars that a namespace defines itself.
fn public(namespace: &Namespace) -> impl Iterator<Item = (Symbol, Rc<Var>)> {
    let own = namespace.name;
    namespace
        .mappings()
        .into_iter()
        .filter(move |(_, var)| var.namespace == own && !var.is_private.get())
}

fn lines(names: impl Iterator<Item = String>) -> String {
    names.map(|name| format!("{name}\n")).collect()
}

fn print(value: &Value) -> String {
    let mut out = String::new();
    match print_value(&mut out, &mut Unforced, value, PrintOptions::READABLE) {
        Ok(()) => out,
        Err(_) => value.kind().to_owned(),
    }
}
