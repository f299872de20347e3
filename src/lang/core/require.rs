//! Loading namespaces: `require`, `use`, `refer`.

use std::rc::Rc;

use super::namespaces::{current, load_all, lookup, the_ns};
use crate::library;
use crate::suggest::did_you_mean;
use crate::value::{
    Arity, Class, CoreNames, Exception, Namespace, Native, Result, Signal, Span, Symbol, Value,
    Var, brief,
};
use crate::vm::{Args, Vm, wrong_type};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[LOAD, LOADED_LIBS, REFER, REFER_CLOJURE, REQUIRE, USE];

const LOAD: Native = Native {
    name: "load",
    usage: "(load & paths)",
    doc: "Runs files of the folders given with --path, even if they were loaded before: paths without extension, relative to the folder of the current namespace or, with a / before them, to the top folder.",
    examples: &[],
    arity: Arity::at_least(0),
    run: |vm, args| {
        for idx in 0..args.len() {
            let path = args.text(idx)?.as_str().to_owned();
            let name = match path.strip_prefix('/') {
                Some(path) => path.to_owned(),
                None => {
                    let current = current(vm).name.to_string();
                    let folder = current.rsplit_once('.').map_or("", |parts| parts.0);
                    format!("{folder}/{path}")
                        .trim_start_matches('/')
                        .to_owned()
                }
            };
            let Some((file, text)) = vm.host().find_source(&name.replace('/', ".")) else {
                let message = format!("cannot find {name}.clj or {name}.cljc to load");
                let hint = vm.host().missing_source();
                return Err(Exception::new(Class::FILE_NOT_FOUND, "E0344", message)
                    .hint(hint)
                    .into());
            };
            let home = current(vm);
            let loader = vm.world().loader();
            let loaded = loader.load_text(vm, &file, &text);
            vm.world().set_current(home);
            loaded?;
        }
        Ok(Value::Nil)
    },
};

const LOADED_LIBS: Native = Native {
    name: "loaded-libs",
    usage: "(loaded-libs)",
    doc: "Returns a set of the names of the namespaces that were loaded.",
    examples: &[(
        "(do (require 'clojure.set) (contains? (loaded-libs) 'clojure.set))",
        "true",
    )],
    arity: Arity::exactly(0),
    run: |vm, _| {
        vm.touch_session()?;
        Ok(Value::set(
            vm.world().loaded_libraries().into_iter().map(Value::Symbol),
        ))
    },
};

const REFER: Native = Native {
    name: "refer",
    usage: "(refer namespace & filters)",
    doc: "Maps the names of a namespace to its vars in the current one.\n\
          Filters are :only and :exclude with a list of names, and :rename with a map.",
    examples: &[("(refer 'clojure.core :only '[inc])", "nil")],
    arity: Arity::at_least(1),
    run: |vm, args| {
        let namespace = the_ns(vm, args.get(0))?;
        let mut names = Names::default();
        for idx in (1..args.len()).step_by(2) {
            names.add(vm, args.get(idx), args.get(idx + 1))?;
        }
        refer(vm, namespace.name, &names)?;
        Ok(Value::Nil)
    },
};

const REFER_CLOJURE: Native = Native {
    name: "refer-clojure",
    usage: "(refer-clojure & filters)",
    doc: "Selects the names of clojure.core that the current namespace sees: all without filters.\n\
          Filters are :only and :exclude with a list of names, and :rename with a map.",
    examples: &[(
        "(do (ns small (:refer-clojure :exclude [map])) (def map :mine) map)",
        ":mine",
    )],
    arity: Arity::at_least(0),
    run: |vm, args| {
        let mut names = Names::default();
        for idx in (0..args.len()).step_by(2) {
            names.add(vm, args.get(idx), args.get(idx + 1))?;
        }
        let core = vm.world().core.name;
        for (old, new) in &names.rename {
            let Some(var) = lookup(vm, core, *old)? else {
                return Err(not_there(vm, core, *old));
            };
            vm.touch_session()?;
            current(vm).refer(*new, var);
        }
        let renamed = names.rename.iter().map(|(old, _)| *old);
        let hidden: Vec<Symbol> = names.exclude.iter().copied().chain(renamed).collect();
        vm.touch_session()?;
        current(vm).see_core(match &names.only {
            Some(only) => CoreNames::Only(
                only.iter()
                    .map(|(name, _)| *name)
                    .filter(|name| !hidden.contains(name))
                    .collect(),
            ),
            None if hidden.is_empty() => CoreNames::All,
            None => CoreNames::Except(hidden),
        });
        Ok(Value::Nil)
    },
};

const REQUIRE: Native = Native {
    name: "require",
    usage: "(require & specs)",
    doc: "Loads namespaces that are not loaded yet, and adds aliases for them.\n\
          A spec is a name or [name :as alias :refer [names] :rename {name new} :as-alias alias]; :reload loads again.",
    examples: &[(
        "(do (require '[clojure.set :as set]) (set/union #{1} #{1}))",
        "#{1}",
    )],
    arity: Arity::at_least(0),
    run: |vm, args| load_specs(vm, &args, false),
};

const USE: Native = Native {
    name: "use",
    usage: "(use & specs)",
    doc: "Loads namespaces as require does, and refers to all of their names that :only and :exclude allow.",
    examples: &[(
        "(do (use '[clojure.set :only [union]]) (union #{1} #{1}))",
        "#{1}",
    )],
    arity: Arity::at_least(0),
    run: |vm, args| load_specs(vm, &args, true),
};

/// The names to refer to, with their new names.
#[derive(Default)]
struct Names {
    /// The names to refer to; `None` refers to all.
    only: Option<Vec<(Symbol, Span)>>,
    exclude: Vec<Symbol>,
    rename: Vec<(Symbol, Symbol)>,
}

impl Names {
    fn add(&mut self, vm: &mut Vm, key: &Value, value: &Value) -> Result<()> {
        match key.as_keyword() {
            Some(key) if key.is("only") || key.is("refer") => {
                if value.as_keyword().is_some_and(|all| all.is("all")) {
                    self.only = None;
                } else {
                    self.only = Some(symbols(vm, value)?);
                }
            }
            Some(key) if key.is("exclude") => {
                let names = symbols(vm, value)?.into_iter();
                self.exclude = names.map(|(name, _)| name).collect();
            }
            Some(key) if key.is("rename") => {
                for entry in vm.items(value.clone())? {
                    let (old, new) = super::maps::pair(&entry)?;
                    if let (Some(old), Some(new)) = (old.as_symbol(), new.as_symbol()) {
                        self.rename.push((old, new));
                    }
                }
            }
            _ => {
                let message = format!("{} is not an option of a namespace to load", brief(key));
                let known = ["as", "as-alias", "refer", "rename", "only", "exclude"];
                let near = key.as_keyword().map(|key| key.name().to_string());
                let near = near.and_then(|name| {
                    let found = did_you_mean(&name, known.into_iter());
                    found.first().map(|found| format!("did you mean :{found}?"))
                });
                let hint = near.unwrap_or_else(|| {
                    "the options are :as, :as-alias, :refer, :rename, :only and :exclude".to_owned()
                });
                return Err(Exception::new(Class::ILLEGAL_ARGUMENT, "E0355", message)
                    .hint(hint)
                    .into());
            }
        }
        Ok(())
    }
}

fn symbols(vm: &mut Vm, names: &Value) -> Result<Vec<(Symbol, Span)>> {
    let mut symbols = Vec::new();
    for name in vm.items(names.clone())? {
        match name.as_symbol() {
            Some(symbol) => symbols.push((symbol, name.span())),
            None => return Err(wrong_type(&name, "a symbol", 0).into()),
        }
    }
    Ok(symbols)
}

fn refer(vm: &mut Vm, from: Symbol, names: &Names) -> Result<()> {
    let into = current(vm);
    let wanted = match &names.only {
        Some(only) => only.clone(),
        None => {
            load_all(vm, from)?;
            let mappings = vm
                .world()
                .find_namespace(from)
                .map_or_else(Vec::new, |namespace| namespace.mappings());
            mappings
                .into_iter()
                .filter(|(_, var)| var.namespace == from && !var.is_private.get())
                .map(|(name, _)| (name, Span::NONE))
                .collect()
        }
    };
    for (name, place) in wanted {
        if names.exclude.contains(&name) {
            continue;
        }
        let Some(var) = lookup(vm, from, name)? else {
            return Err(not_there(vm, from, name).at(Some(place)));
        };
        if var.is_private.get() {
            let message = format!("{name} is not public: it is private to {from}");
            let refused = Exception::new(Class::ILLEGAL_ACCESS, "E0343", message);
            return Err(Signal::from(refused).at(Some(place)));
        }
        let renamed = names.rename.iter().find(|(old, _)| *old == name);
        vm.touch_session()?;
        into.refer(renamed.map_or(name, |(_, new)| *new), var);
    }
    Ok(())
}

#[cold]
fn not_there(vm: &mut Vm, namespace: Symbol, name: Symbol) -> Signal {
    let exception = Exception::new(
        Class::ILLEGAL_STATE,
        "E0343",
        format!("{namespace} has no {name}"),
    );
    let known: Vec<String> = vm
        .world()
        .find_namespace(namespace)
        .map_or_else(Vec::new, |namespace| namespace.mappings())
        .into_iter()
        .map(|(name, _)| name.to_string())
        .chain(library::names(&namespace.to_string()).map(str::to_owned))
        .collect();
    let near = did_you_mean(&name.to_string(), known.iter().map(String::as_str));
    match near.first() {
        Some(near) => exception.hint(format!("did you mean `{near}`?")).into(),
        None => exception.into(),
    }
}

/// The flags that `require` and `use` accept among the namespaces.
const FLAGS: [&str; 3] = ["reload", "reload-all", "verbose"];

/// Loads the arguments of `require` and `use`.
fn load_specs(vm: &mut Vm, args: &Args<'_>, refers_all: bool) -> Result<Value> {
    let reload = args
        .as_slice()
        .iter()
        .filter_map(Value::as_keyword)
        .any(|flag| flag.is("reload") || flag.is("reload-all"));
    for spec in args.as_slice() {
        let place = spec.span();
        let loaded = match spec {
            Value::Keyword(flag) if FLAGS.iter().any(|known| flag.is(known)) => Ok(()),
            Value::Keyword(_) => {
                let message = format!("Unsupported option(s) supplied: {}", brief(spec));
                let refused = Exception::new(Class::COMPILER_EXCEPTION, "E0355", message);
                Err(refused
                    .hint("the flags are :reload, :reload-all and :verbose")
                    .into())
            }
            // In `[clojure set walk]` only the first is a whole name.
            Value::Vector(parts)
                if parts.get(1).is_some_and(|next| next.as_keyword().is_none()) =>
            {
                load_prefixed(vm, spec, reload, refers_all)
            }
            Value::Vector(parts) => {
                let parts: Vec<Value> = parts.iter().cloned().collect();
                load_spec(vm, &parts, reload, refers_all)
            }
            Value::List(_) | Value::Seq(_) | Value::Lazy(_) => {
                load_prefixed(vm, spec, reload, refers_all)
            }
            other => load_spec(vm, std::slice::from_ref(other), reload, refers_all),
        };
        loaded.map_err(|signal| signal.at(Some(place)))?;
    }
    Ok(Value::Nil)
}

/// Loads `(prefix spec spec ...)`.
fn load_prefixed(vm: &mut Vm, spec: &Value, reload: bool, refers_all: bool) -> Result<()> {
    let parts = vm.items(spec.clone())?;
    let Some(prefix) = parts.first().and_then(Value::as_symbol) else {
        return Err(wrong_type(spec, "a namespace to load", 0).into());
    };
    for part in &parts[1..] {
        let mut inner = match part {
            Value::Vector(inner) => inner.iter().cloned().collect(),
            other => vec![other.clone()],
        };
        if let Some(name) = inner.first().and_then(Value::as_symbol) {
            inner[0] = Value::symbol(&format!("{prefix}.{name}"));
        }
        load_spec(vm, &inner, reload, refers_all)?;
    }
    Ok(())
}

fn load_spec(vm: &mut Vm, parts: &[Value], reload: bool, refers_all: bool) -> Result<()> {
    let Some(name) = parts.first().and_then(Value::as_symbol) else {
        let got = parts.first().cloned().unwrap_or(Value::Nil);
        return Err(wrong_type(&got, "the name of a namespace to load", 0)
            .hint("quote it: (require '[clojure.set :as set])")
            .into());
    };
    let mut names = Names::default();
    let mut refers = refers_all;
    let mut aliases = Vec::new();
    let mut loads = true;
    for option in parts[1..].chunks(2) {
        let (key, value) = (&option[0], option.get(1).unwrap_or(&Value::Nil));
        match key.as_keyword() {
            Some(key) if key.is("as") => aliases.extend(value.as_symbol()),
            Some(key) if key.is("as-alias") => {
                aliases.extend(value.as_symbol());
                loads = false;
            }
            Some(key) if key.is("rename") => names.add(vm, &Value::Keyword(key), value)?,
            // Files for several dialects have this key; macros are always in the namespace.
            Some(key) if key.is("include-macros") => {}
            _ => {
                names.add(vm, key, value)?;
                refers = true;
            }
        }
    }
    if loads || refers {
        let place = parts[0].span();
        load_library(vm, name, reload).map_err(|signal| signal.at(Some(place)))?;
    } else {
        vm.touch_session()?;
        vm.world().namespace(name);
    }
    for alias in aliases {
        vm.touch_session()?;
        current(vm).add_alias(alias, name);
    }
    if refers {
        refer(vm, name, &names)?;
    }
    Ok(())
}

/// Makes a namespace ready for use: compiles its source; definitions of the library are compiled when they are first
/// used.
///
/// # Errors
/// When there is no source, when it depends on itself, and any exception that running it throws.
pub(crate) fn load_library(vm: &mut Vm, name: Symbol, reload: bool) -> Result<()> {
    if vm.world().is_loaded(name) && !reload {
        return Ok(());
    }
    vm.touch_session()?;
    if library::has(&name.to_string()) {
        vm.world().namespace(name);
        vm.world().set_loaded(name);
        return Ok(());
    }
    let Some((file, text)) = vm.host().find_source(&name.to_string()) else {
        // Created with in-ns or by natives: there is nothing to load.
        if vm.world().find_namespace(name).is_some() && !reload {
            return Ok(());
        }
        return Err(Exception::new(
            Class::FILE_NOT_FOUND,
            "E0344",
            format!("could not find the source of namespace {name}"),
        )
        .hint(match crate::instead::of_namespace(&name.to_string()) {
            Some(instead) => instead.to_owned(),
            None => vm.host().missing_source(),
        })
        .into());
    };
    if !vm.world().begin_loading(name) {
        let way: Vec<String> = vm
            .world()
            .loading()
            .iter()
            .map(ToString::to_string)
            .collect();
        let from = way.iter().position(|other| *other == name.to_string());
        let way = way[from.unwrap_or(0)..].join(", which requires ");
        return Err(Exception::new(
            Class::ILLEGAL_STATE,
            "E0345",
            format!("loading {name} needs {name} itself"),
        )
        .display_message(format!("{way}, which requires {name} again"))
        .hint("move what both need into a third namespace")
        .into());
    }
    let before: Rc<Namespace> = current(vm);
    let loader = vm.world().loader();
    let settings = settings(vm);
    let deferred = vm.world().set_defers_host_names(true);
    let result = loader.load_text(vm, &file, &text);
    vm.world().set_defers_host_names(deferred);
    for (var, root) in settings {
        var.set_root(root);
    }
    vm.world().set_current(before);
    vm.world().end_loading(name);
    result?;
    vm.world().set_loaded(name);
    if vm.world().find_namespace(name).is_none() {
        return Err(Exception::new(
            Class::ILLEGAL_STATE,
            "E0346",
            format!("{file} does not define the namespace {name}"),
        )
        .hint(format!("it should start with (ns {name})"))
        .into());
    }
    Ok(())
}

/// Returns the settings that apply to a single file, with their current values.
fn settings(vm: &Vm) -> Vec<(Rc<Var>, Value)> {
    let names = ["*unchecked-math*", "*warn-on-reflection*"];
    let vars = names.map(|name| vm.world().core.lookup(Symbol::new(name)));
    let with_root = |var: Rc<Var>| var.root().map(|root| (var, root));
    vars.into_iter().flatten().filter_map(with_root).collect()
}
