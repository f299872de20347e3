//! Hints for an undefined name: similar names, where it might be defined, and existing names.

use std::rc::Rc;

use super::scope::Scopes;
use super::{error, special};
use crate::instead;
use crate::library;
use crate::suggest::{Respelling, did_you_mean};
use crate::value::{Change, Class, Exception, Namespace, Span, Symbol};
use crate::vm::{Vm, World};

/// Short aliases that people give to namespaces, apart from the last part of the name.
const USUAL_ALIASES: &[(&str, &str)] = &[
    ("edn", "clojure.edn"),
    ("io", "clojure.java.io"),
    ("json", "clojure.data.json"),
    ("m", "clojure.math"),
    ("pp", "clojure.pprint"),
    ("s", "clojure.string"),
    ("st", "clojure.string"),
    ("str", "clojure.string"),
    ("t", "clojure.test"),
    ("w", "clojure.walk"),
    ("z", "clojure.zip"),
];
/// Maximum number of names listed in a hint.
const MOST_NAMES: usize = 60;

/// The code of a name whose namespace does not exist.
const NO_NAMESPACE: &str = "E0208";

/// Describes a symbol that is not defined.
pub(super) fn describe(vm: &Vm, scopes: &Scopes, symbol: Symbol, span: Span) -> Exception {
    let world = vm.world();
    let refused = match symbol.namespace() {
        None => of_plain(world, scopes, symbol, span),
        Some(prefix) => of_qualified(world, &prefix, symbol, span),
    };
    // Clojure's message, for programs that check it.
    let message = match symbol.namespace() {
        Some(prefix) if refused.code == NO_NAMESPACE => format!("No such namespace: {prefix}"),
        Some(_) => format!("No such var: {symbol}"),
        None => format!("Unable to resolve symbol: {symbol} in this context"),
    };
    let words = refused.text().to_owned();
    let mut refused = refused.display_message(words);
    refused.message = Some(message.into());
    refused
}

/// Classes that can be named without their package on Clojure's host. They do not exist here, or are types of the
/// library.
const EVERYWHERE: &[&str] = &[
    "Appendable",
    "AutoCloseable",
    "Class",
    "ClassCircularityError",
    "ClassFormatError",
    "ClassLoader",
    "Compiler",
    "Deprecated",
    "Enum",
    "ExceptionInInitializerError",
    "InheritableThreadLocal",
    "InstantiationException",
    "InternalError",
    "NoSuchFieldError",
    "NoSuchMethodError",
    "Override",
    "Package",
    "Process",
    "ProcessBuilder",
    "Readable",
    "Runtime",
    "RuntimePermission",
    "SecurityManager",
    "StackTraceElement",
    "StrictMath",
    "SuppressWarnings",
    "Thread",
    "ThreadGroup",
    "ThreadLocal",
    "UnknownError",
    "VerifyError",
    "Void",
];

/// Tells whether Clojure's host accepts a class name without its package.
pub(crate) fn is_known_everywhere(class: &str) -> bool {
    EVERYWHERE.contains(&class)
}

/// Describes a class that cannot be instantiated.
pub(super) fn class(vm: &Vm, name: &str, span: Span) -> Exception {
    let short = short_name(name);
    let world = vm.world();
    if is_known_class(world, name) {
        let refused = error(
            "E0222",
            span,
            format!("the class `{name}` has no constructor here"),
        );
        let home = world.find_namespace(Symbol::new(short));
        let members = home.map_or_else(Vec::new, |home| names_of(&home));
        return match &members[..] {
            [] => refused.hint("create its values with literals or functions of the language"),
            _ => refused.hint(format!("{short} has {}", listed(public(members)))),
        };
    }
    let refused = error("E0222", span, format!("there is no class `{name}` here"));
    if let Some(instead) = instead::of_class(short) {
        return refused.hint(instead);
    }
    let made = classes_of(world).into_iter().filter(|class| {
        let home = world.find_namespace(Symbol::new(class));
        home.is_some_and(|home| home.lookup(Symbol::new("new")).is_some())
            || library::defines(class, "new")
    });
    let thrown = Class::THROWABLES
        .iter()
        .map(|class| class.0.name.to_owned());
    let classes: Vec<String> = made.chain(thrown).collect();
    match &nearest(short, &classes)[..] {
        [] => refused.hint(
            "classes of the host do not exist here; use ex-info for exceptions, and maps or records for data",
        ),
        [one] => refused.hint(format!("did you mean `({one}. ...)`?")),
        [one, two, ..] => refused.hint(format!("did you mean `({one}. ...)` or `({two}. ...)`?")),
    }
}

/// Describes a call of a method that no type defines.
pub(super) fn method(vm: &Vm, name: Symbol) -> Exception {
    let refused = of_plain(vm.world(), &Scopes::default(), name, Span::NONE);
    refused.of_class(Class::ILLEGAL_ARGUMENT)
}

/// Tells whether a symbol has the form of a host name: a static member, or a class with its package.
pub(super) fn is_host_name(symbol: Symbol) -> bool {
    match symbol.namespace() {
        Some(prefix) => is_class(&prefix),
        None => symbol.name().starts_with('.') || is_foreign_class(symbol),
    }
}

/// Tells whether a symbol is the full name of a host class.
pub(crate) fn is_foreign_class(symbol: Symbol) -> bool {
    let name = symbol.name();
    let Some((package, short)) = name.rsplit_once('.') else {
        return symbol.namespace().is_none() && EVERYWHERE.contains(&&*name);
    };
    let is_part =
        |part: &str| part.starts_with(|char: char| char.is_ascii_lowercase() || char == '_');
    let near = || {
        let of_package = Class::full_names().filter_map(|full| full.rsplit_once('.'));
        let known = of_package
            .filter(|parts| parts.0 == package)
            .map(|parts| parts.1);
        !did_you_mean(short, known).is_empty()
    };
    symbol.namespace().is_none()
        && package.split('.').all(is_part)
        && short.starts_with(|char: char| char.is_ascii_uppercase())
        && !near()
}

fn of_plain(world: &World, scopes: &Scopes, symbol: Symbol, span: Span) -> Exception {
    let text = symbol.to_string();
    let refused = error("E0204", span, format!("`{symbol}` is not defined"));
    let current = world.current.borrow().clone();
    if !current.sees_core(symbol) && names_of(&world.core).contains(&text) {
        return refused.hint(format!(
            "the namespace does not refer to the one of clojure.core: write `clojure.core/{text}`"
        ));
    }
    let locals: Vec<String> = scopes.names().iter().map(ToString::to_string).collect();
    if let [near, ..] = &nearest(&text, &locals)[..] {
        return refused
            .hint(format!("a local with a similar name is in scope: `{near}`"))
            .change(respelt(&text, near));
    }
    let mut names = locals;
    names.extend(names_of(&current));
    names.extend(names_of(&world.core));
    names.extend(special::names().map(str::to_owned));
    let near = nearest(&text, &names);
    let hint = match &near[..] {
        [] => None,
        [one] => Some(format!("did you mean `{one}`?")),
        [one, two, ..] => Some(format!("did you mean `{one}` or `{two}`?")),
    };
    let homes = homes_of(world, symbol);
    if let Some(namespace) = homes.first() {
        let refused = homes.iter().fold(refused, |refused, namespace| {
            let change = Change::replace(span, &*text, format!("{namespace}/{text}"));
            refused.change(match (&homes[..], &near[..]) {
                ([_], []) => change.certain(),
                _ => change,
            })
        });
        return refused.hint(format!(
            "{namespace} has it: (require '[{namespace} :refer [{symbol}]])"
        ));
    }
    match hint {
        Some(hint) => near
            .iter()
            .fold(refused, |refused, near| {
                refused.change(respelt(&text, near))
            })
            .hint(hint),
        None if text.starts_with('.') && text.len() > 1 => {
            let methods = names_of(&world.core).into_iter();
            let methods: Vec<String> = methods
                .filter(|name| name.starts_with('.') && name != "..")
                .collect();
            refused.hint(format!("the methods that exist are {}", listed(methods)))
        }
        None => refused,
    }
}

fn of_qualified(world: &World, prefix: &str, symbol: Symbol, span: Span) -> Exception {
    let name = symbol.name();
    if prefix == "clojure.core" && matches!(&*name, "unquote" | "unquote-splicing") {
        let mark = if &*name == "unquote" { "~" } else { "~@" };
        return error("E0204", span, format!("`{mark}` is outside of a template")).hint(format!(
            "{mark} fills a place in a form that is quoted with a backquote: `(a {mark}b)"
        ));
    }
    let current = world.current.borrow().clone();
    let target = current
        .alias(Symbol::new(prefix))
        .unwrap_or_else(|| Symbol::new(prefix));
    let of_class = || {
        let short = is_known_class(world, prefix).then(|| Symbol::new(short_name(prefix)));
        short.and_then(|short| world.find_namespace(short))
    };
    let Some(namespace) = world.find_namespace(target).or_else(of_class) else {
        return of_namespace(world, prefix, symbol, span);
    };
    let names = names_of(&namespace);
    let refused = error(
        "E0204",
        span,
        format!("`{symbol}` is not defined: {target} has no `{name}`"),
    );
    let near = nearest(&name, &names);
    let refused = near.iter().fold(refused, |refused, near| {
        refused.change(respelt(&symbol.to_string(), &format!("{prefix}/{near}")))
    });
    match &near[..] {
        [near] => refused.hint(format!("did you mean `{prefix}/{near}`?")),
        [near, other, ..] => refused.hint(format!(
            "did you mean `{prefix}/{near}` or `{prefix}/{other}`?"
        )),
        [] if is_class(prefix) => refused.hint(format!("{prefix} has {}", listed(public(names)))),
        [] => refused,
    }
}

/// Describes a name whose namespace does not exist.
fn of_namespace(world: &World, prefix: &str, symbol: Symbol, span: Span) -> Exception {
    let name = symbol.name();
    if is_class(prefix) {
        let refused = error(
            NO_NAMESPACE,
            span,
            format!("`{symbol}` is not defined: there is no class `{prefix}`"),
        );
        let short = short_name(prefix);
        if let Some(instead) = instead::of_class(short) {
            return refused.hint(instead);
        }
        let classes = classes_of(world);
        return match &nearest(short, &classes)[..] {
            [] => refused.hint(format!(
                "the classes with functions are {}",
                listed(classes)
            )),
            [near] => refused.hint(format!("did you mean `{near}/{name}`?")),
            [near, other, ..] => {
                refused.hint(format!("did you mean `{near}/{name}` or `{other}/{name}`?"))
            }
        };
    }
    let refused = error(
        NO_NAMESPACE,
        span,
        format!("`{symbol}` is not defined: there is no namespace or alias `{prefix}`"),
    );
    let known = world.namespaces.borrow();
    let known: Vec<String> = known.keys().map(ToString::to_string).collect();
    if let Some(instead) = instead::of_namespace(prefix) {
        return refused.hint(instead);
    }
    let usual = USUAL_ALIASES.iter().find(|alias| alias.0 == prefix);
    let usual = usual.map(|alias| alias.1.to_owned());
    let mut all = known;
    all.extend(
        library::SOURCES
            .iter()
            .map(|source| source.namespace.to_owned()),
    );
    let by_end = all.iter().find(|name| {
        name.strip_suffix(prefix)
            .is_some_and(|before| before.ends_with('.'))
    });
    if let Some(namespace) = usual.filter(|name| all.contains(name)).or(by_end.cloned()) {
        let home = world.find_namespace(Symbol::new(&namespace));
        let is_there = home.is_some_and(|home| home.lookup(Symbol::new(&name)).is_some());
        let refused = match is_there || library::defines(&namespace, &name) {
            true => refused.change(
                Change::replace(span, symbol.to_string(), format!("{namespace}/{name}")).certain(),
            ),
            false => refused,
        };
        return refused.hint(format!("add (require '[{namespace} :as {prefix}])"));
    }
    if prefix == "flow" {
        return refused.hint(
            "steps and the other functions of flows are for flows: write a file and run it with `flowstone run`, or \
             try them at the prompt, `flowstone repl`",
        );
    }
    let current = world.current.borrow().clone();
    let mut names: Vec<String> = current
        .aliases()
        .iter()
        .map(|alias| alias.0.to_string())
        .collect();
    let mut all_names = all.clone();
    names.extend(all);
    match &nearest(prefix, &names)[..] {
        [near, ..] => refused.hint(format!("did you mean `{near}/{}`?", symbol.name())),
        // A prefix with dots is a whole name, so the hint about aliases does not apply.
        [] if prefix.contains('.') => {
            all_names.retain(|name| name.starts_with("clojure.") && name != "clojure.core");
            refused.hint(format!("the library has {}", listed(all_names)))
        }
        [] => refused
            .hint("require the namespace to create an alias: (require '[clojure.string :as str])"),
    }
}

/// Returns the change of a name in code to a similar one, which a person decides about.
fn respelt(word: &str, name: &str) -> Change {
    let is_certain = false;
    Change::respell(word, Respelling { name, is_certain })
}

/// Returns the library namespaces that define a name, other than the core.
fn homes_of(world: &World, symbol: Symbol) -> Vec<String> {
    let of_library = library::SOURCES
        .iter()
        .map(|source| source.namespace.to_owned())
        .filter(|namespace| namespace.starts_with("clojure.") && namespace != "clojure.core");
    let mut homes: Vec<String> = of_library
        .filter(|namespace| library::defines(namespace, &symbol.name()))
        .collect();
    let namespaces = world.namespaces.borrow();
    for (name, namespace) in namespaces.iter() {
        let name = name.to_string();
        let is_one = name.starts_with("clojure.") && name != "clojure.core";
        if is_one
            && namespace
                .lookup(symbol)
                .is_some_and(|var| var.namespace == namespace.name)
        {
            homes.push(name);
        }
    }
    homes.sort();
    homes.dedup();
    homes
}

fn nearest(word: &str, names: &[String]) -> Vec<String> {
    let near = did_you_mean(word, names.iter().map(String::as_str));
    near.into_iter().map(str::to_owned).collect()
}

/// Returns the names of a namespace, including those that the library has not compiled yet.
fn names_of(namespace: &Rc<Namespace>) -> Vec<String> {
    let mappings = namespace.mappings();
    let mapped = mappings.iter().map(|mapping| mapping.0.to_string());
    let home = namespace.name.to_string();
    mapped
        .chain(library::names(&home).map(str::to_owned))
        .collect()
}

/// Tells whether a namespace implements a class of the host.
fn is_class(namespace: &str) -> bool {
    let last = namespace.rsplit('.').next().unwrap_or(namespace);
    last.starts_with(|char: char| char.is_ascii_uppercase())
}

/// Returns the name of a class without its package.
fn short_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Tells whether a class exists here, as a token or with functions, under this short or full name.
fn is_known_class(world: &World, name: &str) -> bool {
    let short = short_name(name);
    let is_host = name == short || name.starts_with("java.") || name.starts_with("clojure.lang.");
    Class::named(name).is_some()
        || (is_host && is_class(short) && world.find_namespace(Symbol::new(short)).is_some())
}

/// Returns the short names of the classes that have functions.
fn classes_of(world: &World) -> Vec<String> {
    let known = world.namespaces.borrow();
    let names = known.keys().map(ToString::to_string);
    names
        .filter(|name| is_class(name) && !name.contains('.'))
        .collect()
}

fn public(names: Vec<String>) -> Vec<String> {
    names.into_iter().filter(|name| name != "new").collect()
}

/// Returns the sorted names as a readable list.
fn listed(mut names: Vec<String>) -> String {
    names.sort();
    names.dedup();
    let more = if names.len() > MOST_NAMES {
        ", ..."
    } else {
        ""
    };
    names.truncate(MOST_NAMES);
    format!("{}{more}", names.join(", "))
}
