//! Namespaces and vars at run time.

use std::rc::Rc;

use super::require::load_library;
use crate::library;
use crate::value::{
    Arity, Class, Exception, Namespace, Native, Object, Result, Symbol, Value, Var,
};
use crate::vm::{Args, Vm, wrong_type};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    ALIAS,
    ALL_NS,
    ALTER_VAR_ROOT,
    CREATE_NS,
    FIND_NS,
    FIND_VAR,
    FOREIGN_CLASS,
    INTERN,
    IN_NS,
    IS_BOUND,
    NS_ALIASES,
    NS_IMPORTS,
    NS_INTERNS,
    NS_MAP,
    NS_NAME,
    NS_PUBLICS,
    NS_REFERS,
    NS_RESOLVE,
    NS_UNALIAS,
    NS_UNMAP,
    REMOVE_NS,
    REQUIRING_RESOLVE,
    RESOLVE,
    ROOT,
    SET_ROOT,
    THE_NS,
    VAR_GET,
];

const ALIAS: Native = Native {
    name: "alias",
    usage: "(alias alias namespace)",
    doc: "Adds an alias of a namespace to the current one.",
    examples: &[("(alias 'core 'clojure.core)", "nil")],
    arity: Arity::exactly(2),
    run: |vm, args| {
        let alias = args.symbol(0)?;
        let target = the_ns(vm, args.get(1))?;
        vm.touch_session()?;
        current(vm).add_alias(alias, target.name);
        Ok(Value::Nil)
    },
};

const ALL_NS: Native = Native {
    name: "all-ns",
    usage: "(all-ns)",
    doc: "Returns all namespaces, by name.",
    examples: &[(
        "(some #{'clojure.core} (map ns-name (all-ns)))",
        "clojure.core",
    )],
    arity: Arity::exactly(0),
    run: |vm, _| {
        vm.touch_session()?;
        let mut all: Vec<Rc<Namespace>> =
            vm.world().namespaces.borrow().values().cloned().collect();
        all.sort_by_key(|namespace| namespace.name.to_string());
        Ok(Value::list(all.into_iter().map(namespace_value)))
    },
};

const ALTER_VAR_ROOT: Native = Native {
    name: "alter-var-root",
    usage: "(alter-var-root var f & args)",
    doc: "Sets the root value of a var to (f value & args), and returns it.",
    examples: &[("(do (def n 1) (alter-var-root #'n inc))", "2")],
    arity: Arity::at_least(2),
    run: |vm, mut args| {
        let var = var(&args, 0)?.clone();
        let function = args.take(1);
        let mut all = super::sequences::pipeline::take_from(&mut args, 1);
        all[0] = root(&var)?;
        let value = vm.invoke(&function, &mut all)?;
        vm.set_root(&var, value.clone())?;
        Ok(value)
    },
};

const IS_BOUND: Native = Native {
    name: "bound?",
    usage: "(bound? & vars)",
    doc: "Tells whether all of vars have a value.",
    examples: &[("(bound? #'inc)", "true")],
    arity: Arity::at_least(0),
    run: |_, args| {
        for idx in 0..args.len() {
            if !var(&args, idx)?.is_bound() {
                return Ok(Value::Bool(false));
            }
        }
        Ok(Value::Bool(true))
    },
};

const CREATE_NS: Native = Native {
    name: "create-ns",
    usage: "(create-ns name)",
    doc: "Returns the namespace with that name, and creates it if it does not exist.",
    examples: &[("(ns-name (create-ns 'made.here))", "made.here")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let name = args.symbol(0)?;
        if let Some(namespace) = find_ns(vm, name)? {
            return Ok(namespace_value(namespace));
        }
        vm.touch_session()?;
        Ok(namespace_value(vm.world().namespace(name)))
    },
};

const FIND_NS: Native = Native {
    name: "find-ns",
    usage: "(find-ns name)",
    doc: "Returns the namespace with that name, or nil.",
    examples: &[
        ("(ns-name (find-ns 'clojure.core))", "clojure.core"),
        ("(find-ns 'not.there)", "nil"),
    ],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let found = find_ns(vm, args.symbol(0)?)?;
        Ok(found.map_or(Value::Nil, namespace_value))
    },
};

const FIND_VAR: Native = Native {
    name: "find-var",
    usage: "(find-var name)",
    doc: "Returns the var with that name and namespace, or nil.",
    examples: &[("(find-var 'clojure.core/inc)", "#'clojure.core/inc")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let symbol = args.symbol(0)?;
        let Some(namespace) = symbol.namespace() else {
            return Err(args.expected(0, "a symbol with a namespace"));
        };
        let namespace = Symbol::new(&namespace);
        if find_ns(vm, namespace)?.is_none() {
            return Err(no_namespace(vm, namespace));
        }
        Ok(lookup(vm, namespace, Symbol::new(&symbol.name()))?.map_or(Value::Nil, Value::Var))
    },
};

const IN_NS: Native = Native {
    name: "in-ns",
    usage: "(in-ns name)",
    doc: "Makes the namespace with that name the current one, and creates it if it does not exist.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let name = args.symbol(0)?;
        vm.touch_session()?;
        let namespace = vm.world().namespace(name);
        vm.world().set_current(namespace.clone());
        Ok(namespace_value(namespace))
    },
};

const INTERN: Native = Native {
    name: "intern",
    usage: "(intern namespace name)\n(intern namespace name value)",
    doc: "Returns the var with that name in a namespace, creating it if necessary, and sets its value.",
    examples: &[("@(intern 'user 'made 1)", "1")],
    arity: Arity::between(2, 3),
    run: |vm, mut args| {
        let namespace = the_ns(vm, args.get(0))?;
        let name = args.symbol(1)?;
        vm.touch_session()?;
        let var = namespace.intern(Symbol::new(&name.name()));
        let meta = args.get(1).meta();
        if !meta.is_nil() {
            var.set_meta(meta);
        }
        if args.len() == 3 {
            vm.set_root(&var, args.take(2))?;
        }
        Ok(Value::Var(var))
    },
};

const NS_ALIASES: Native = Native {
    name: "ns-aliases",
    usage: "(ns-aliases namespace)",
    doc: "Returns a map of the aliases that a namespace has for others.",
    examples: &[("(ns-aliases 'clojure.core)", "{}")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let aliases = the_ns(vm, args.get(0))?.aliases();
        Ok(Value::map(aliases.into_iter().map(|(alias, name)| {
            let namespace = vm.world().namespace(name);
            (Value::Symbol(alias), namespace_value(namespace))
        })))
    },
};

const FOREIGN_CLASS: Native = Native {
    name: "-import-foreign",
    usage: "(-import-foreign class)",
    doc: "Makes the short name of a host class that does not exist refer to a class without instances, in programs that use parts of libraries.",
    examples: &[("(-import-foreign 'my.app.Host)", "nil")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let name = args.symbol(0)?;
        if let Some(var) = crate::compiler::library_class(vm, &name.to_string())? {
            current(vm).refer(var.name, var);
            return Ok(Value::Nil);
        }
        let is_foreign = Class::named(&name.to_string()).is_none();
        if is_foreign && vm.world().defers_host_names() {
            vm.touch_session()?;
            let var = vm.world().foreign_class(name);
            current(vm).refer(var.name, var);
        }
        Ok(Value::Nil)
    },
};

const NS_IMPORTS: Native = Native {
    name: "ns-imports",
    usage: "(ns-imports namespace)",
    doc: "Returns an empty map: class names are known everywhere.",
    examples: &[("(ns-imports 'user)", "{}")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        the_ns(vm, args.get(0))?;
        Ok(Value::map([]))
    },
};

const NS_INTERNS: Native = Native {
    name: "ns-interns",
    usage: "(ns-interns namespace)",
    doc: "Returns a map of names to the vars of a namespace.",
    examples: &[("(contains? (ns-interns 'clojure.core) 'inc)", "true")],
    arity: Arity::exactly(1),
    run: |vm, args| vars(vm, &args, |namespace, var| var.namespace == namespace),
};

const NS_MAP: Native = Native {
    name: "ns-map",
    usage: "(ns-map namespace)",
    doc: "Returns a map of names to the vars that they refer to in a namespace: its own and those of others.",
    examples: &[("(contains? (ns-map 'user) 'inc)", "true")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let namespace = the_ns(vm, args.get(0))?;
        load_all(vm, namespace.name)?;
        let core = vm.world().core.clone();
        let public = core
            .mappings()
            .into_iter()
            .filter(|(name, var)| !var.is_private.get() && namespace.sees_core(*name));
        let all = public.chain(namespace.mappings());
        Ok(Value::map(
            all.map(|(name, var)| (Value::Symbol(name), Value::Var(var))),
        ))
    },
};

const NS_NAME: Native = Native {
    name: "ns-name",
    usage: "(ns-name namespace)",
    doc: "Returns the name of a namespace.",
    examples: &[("(ns-name *ns*)", "user")],
    arity: Arity::exactly(1),
    run: |vm, args| Ok(Value::Symbol(the_ns(vm, args.get(0))?.name)),
};

const NS_PUBLICS: Native = Native {
    name: "ns-publics",
    usage: "(ns-publics namespace)",
    doc: "Returns a map of names to the vars of a namespace that are not private.",
    examples: &[("(contains? (ns-publics 'clojure.core) 'inc)", "true")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        vars(vm, &args, |namespace, var| {
            var.namespace == namespace && !var.is_private.get()
        })
    },
};

const NS_REFERS: Native = Native {
    name: "ns-refers",
    usage: "(ns-refers namespace)",
    doc: "Returns a map of names to the vars of other namespaces that a namespace refers to.",
    examples: &[("(map? (ns-refers 'user))", "true")],
    arity: Arity::exactly(1),
    run: |vm, args| vars(vm, &args, |namespace, var| var.namespace != namespace),
};

const NS_RESOLVE: Native = Native {
    name: "ns-resolve",
    usage: "(ns-resolve namespace symbol)\n(ns-resolve namespace env symbol)",
    doc: "Returns the var or class of a symbol in a namespace, or nil; also nil for a local in env.",
    examples: &[("(ns-resolve 'user 'inc)", "#'clojure.core/inc")],
    arity: Arity::between(2, 3),
    run: |vm, args| {
        let namespace = the_ns(vm, args.get(0))?;
        let symbol = args.symbol(args.len() - 1)?;
        if args.len() == 3 && vm.lookup(args.get(1), &Value::Symbol(symbol))?.is_some() {
            return Ok(Value::Nil);
        }
        resolve_in(vm, &namespace, symbol)
    },
};

const NS_UNALIAS: Native = Native {
    name: "ns-unalias",
    usage: "(ns-unalias namespace alias)",
    doc: "Removes an alias from a namespace.",
    examples: &[("(ns-unalias 'user 'not-there)", "nil")],
    arity: Arity::exactly(2),
    run: |vm, args| {
        let (home, alias) = (the_ns(vm, args.get(0))?, args.symbol(1)?);
        vm.touch_session()?;
        home.remove_alias(alias);
        Ok(Value::Nil)
    },
};

const NS_UNMAP: Native = Native {
    name: "ns-unmap",
    usage: "(ns-unmap namespace name)",
    doc: "Removes the mapping of a name from a namespace.",
    examples: &[("(ns-unmap 'user 'not-there)", "nil")],
    arity: Arity::exactly(2),
    run: |vm, args| {
        let (home, name) = (the_ns(vm, args.get(0))?, args.symbol(1)?);
        vm.touch_session()?;
        if home.lookup(name).is_some() {
            home.unmap(name);
        } else {
            home.hide_core(name);
        }
        Ok(Value::Nil)
    },
};

const REMOVE_NS: Native = Native {
    name: "remove-ns",
    usage: "(remove-ns name)",
    doc: "Removes a namespace, and returns it; nil if it does not exist.",
    examples: &[("(remove-ns 'not.there)", "nil")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let name = args.symbol(0)?;
        if name == vm.world().core.name {
            return Err(Exception::new(
                Class::ILLEGAL_ARGUMENT,
                "E0341",
                "clojure.core cannot be removed",
            )
            .into());
        }
        vm.touch_session()?;
        let removed = vm.world().namespaces.borrow_mut().remove(&name);
        vm.world().forget_library(name);
        Ok(removed.map_or(Value::Nil, namespace_value))
    },
};

const REQUIRING_RESOLVE: Native = Native {
    name: "requiring-resolve",
    usage: "(requiring-resolve symbol)",
    doc: "Returns the var of a symbol with a namespace, loading that namespace if necessary; nil if it does not exist.",
    examples: &[(
        "(requiring-resolve 'clojure.set/union)",
        "#'clojure.set/union",
    )],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let symbol = args.symbol(0)?;
        let Some(namespace) = symbol.namespace() else {
            return Err(args.expected(0, "a symbol with a namespace"));
        };
        let found = resolve_in(vm, &current(vm), symbol)?;
        if !found.is_nil() {
            return Ok(found);
        }
        load_library(vm, Symbol::new(&namespace), false)?;
        resolve_in(vm, &current(vm), symbol)
    },
};

const RESOLVE: Native = Native {
    name: "resolve",
    usage: "(resolve symbol)\n(resolve env symbol)",
    doc: "Returns the var or class of a symbol in the current namespace, or nil; also nil for a local in env.",
    examples: &[
        ("(resolve 'inc)", "#'clojure.core/inc"),
        ("(resolve 'not-there)", "nil"),
    ],
    arity: Arity::between(1, 2),
    run: |vm, args| {
        let symbol = args.symbol(args.len() - 1)?;
        if args.len() == 2 && vm.lookup(args.get(0), &Value::Symbol(symbol))?.is_some() {
            return Ok(Value::Nil);
        }
        resolve_in(vm, &current(vm), symbol)
    },
};

const ROOT: Native = Native {
    name: "-root",
    usage: "(-root var)",
    doc: "Returns a vector of the root value of a var, ignoring bindings; an empty vector for a var without a value.",
    examples: &[(
        "(binding [*print-length* 5] (-root #'*print-length*))",
        "[nil]",
    )],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::vector(var(&args, 0)?.root())),
};

const SET_ROOT: Native = Native {
    name: "-set-root",
    usage: "(-set-root var root)",
    doc: "Sets the root of a var from a vector, as -root returns it.",
    examples: &[("(do (def n 1) (-set-root #'n [2]) n)", "2")],
    arity: Arity::exactly(2),
    run: |vm, args| {
        let var = var(&args, 0)?.clone();
        match args.vector(1)?.get(0) {
            Some(value) => vm.set_root(&var, value.clone())?,
            None => {
                vm.touch_session()?;
                var.clear_root();
            }
        }
        Ok(Value::Nil)
    },
};

const THE_NS: Native = Native {
    name: "the-ns",
    usage: "(the-ns namespace)",
    doc: "Returns a namespace given itself or its name; throws if it does not exist.",
    examples: &[("(ns-name (the-ns 'user))", "user")],
    arity: Arity::exactly(1),
    run: |vm, args| Ok(namespace_value(the_ns(vm, args.get(0))?)),
};

const VAR_GET: Native = Native {
    name: "var-get",
    usage: "(var-get var)",
    doc: "Returns the value of a var.",
    examples: &[("(fn? (var-get #'inc))", "true")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let var = var(&args, 0)?.clone();
        vm.var_value(&var)
    },
};

/// Returns the current namespace.
pub(crate) fn current(vm: &Vm) -> Rc<Namespace> {
    vm.world().current.borrow().clone()
}

pub(crate) fn namespace_value(namespace: Rc<Namespace>) -> Value {
    Value::from(Object::Namespace(namespace))
}

/// Returns a name given as a string, symbol or keyword.
pub(crate) fn argument_text(args: &Args<'_>, idx: usize) -> Result<String> {
    match args.get(idx) {
        Value::Text(text) => Ok(text.as_str().to_owned()),
        Value::Keyword(keyword) => Ok(keyword.to_string()),
        other => match other.as_symbol() {
            Some(symbol) => Ok(symbol.to_string()),
            None => Err(args.expected(idx, "a string, symbol or keyword")),
        },
    }
}

/// Returns the namespace that a value is or names.
///
/// # Errors
/// When it does not exist.
pub(crate) fn the_ns(vm: &mut Vm, value: &Value) -> Result<Rc<Namespace>> {
    if let Value::Object(object) = value
        && let Object::Namespace(namespace) = &**object
    {
        return Ok(namespace.clone());
    }
    let Some(name) = value.as_symbol() else {
        return Err(wrong_type(value, "a namespace or its name", 0).into());
    };
    match find_ns(vm, name)? {
        Some(namespace) => Ok(namespace),
        None => Err(no_namespace(vm, name)),
    }
}

/// Returns the namespace with a name, if it exists. Those of the library exist from their first use on.
fn find_ns(vm: &mut Vm, name: Symbol) -> Result<Option<Rc<Namespace>>> {
    if name != vm.world().core.name && library::has(&name.to_string()) {
        vm.touch_session()?;
    }
    Ok(vm.world().find_namespace(name))
}

#[cold]
fn no_namespace(vm: &Vm, name: Symbol) -> crate::value::Signal {
    let exception = Exception::new(
        Class::EXCEPTION,
        "E0342",
        format!("No namespace: {name} found"),
    );
    let loadable = library::has(&name.to_string()) || current(vm).alias(name).is_some();
    if loadable {
        return exception
            .hint(format!(
                "(require '{name}) loads it; an alias is not its name"
            ))
            .into();
    }
    exception.into()
}

fn var<'a>(args: &'a Args<'_>, idx: usize) -> Result<&'a Rc<Var>> {
    match args.get(idx) {
        Value::Var(var) => Ok(var),
        _ => Err(args.expected(idx, "a var")),
    }
}

fn root(var: &Rc<Var>) -> Result<Value> {
    var.root().ok_or_else(|| {
        Exception::new(
            Class::ILLEGAL_STATE,
            "E0306",
            format!("#'{} is not bound to a value yet", var.qualified()),
        )
        .into()
    })
}

/// Returns the var of a namespace; if it is in the library, compiles it first.
pub(crate) fn lookup(vm: &mut Vm, namespace: Symbol, name: Symbol) -> Result<Option<Rc<Var>>> {
    let found = |vm: &Vm| {
        vm.world()
            .find_namespace(namespace)
            .and_then(|namespace| namespace.lookup(name))
    };
    if let Some(var) = found(vm) {
        return Ok(Some(var));
    }
    if !library::defines(&namespace.to_string(), &name.to_string()) {
        return Ok(None);
    }
    let loader = vm.world().loader();
    loader.load_definition(vm, namespace, name)?;
    Ok(found(vm))
}

fn resolve_in(vm: &mut Vm, namespace: &Rc<Namespace>, symbol: Symbol) -> Result<Value> {
    if let Some(prefix) = symbol.namespace() {
        find_ns(vm, Symbol::new(&prefix))?;
    }
    let found = vm.world().resolve_in(namespace, symbol);
    if let Some(var) = found {
        return Ok(Value::Var(var));
    }
    let (target, name) = match symbol.namespace() {
        Some(prefix) => {
            let prefix = Symbol::new(&prefix);
            let target = namespace.alias(prefix).unwrap_or(prefix);
            (target, Symbol::new(&symbol.name()))
        }
        None => (vm.world().core.name, symbol),
    };
    let is_seen = symbol.namespace().is_some() || namespace.sees_core(symbol);
    if is_seen
        && find_ns(vm, target)?.is_some()
        && let Some(var) = lookup(vm, target, name)?
    {
        return Ok(Value::Var(var));
    }
    let class = Class::named(&symbol.to_string());
    if class.is_none()
        && let Some(var) = crate::compiler::library_class(vm, &symbol.to_string())?
    {
        return Ok(var.root().unwrap_or(Value::Nil));
    }
    Ok(class.map_or(Value::Nil, |class| Value::from(Object::Class(class))))
}

/// Compiles all library definitions of a namespace.
pub(crate) fn load_all(vm: &mut Vm, namespace: Symbol) -> Result<()> {
    for name in library::names(&namespace.to_string()) {
        lookup(vm, namespace, Symbol::new(name))?;
    }
    Ok(())
}

fn vars(vm: &mut Vm, args: &Args<'_>, wanted: fn(Symbol, &Var) -> bool) -> Result<Value> {
    let namespace = the_ns(vm, args.get(0))?;
    load_all(vm, namespace.name)?;
    let all = namespace.mappings().into_iter();
    Ok(Value::map(
        all.filter(|(_, var)| wanted(namespace.name, var))
            .map(|(name, var)| (Value::Symbol(name), Value::Var(var))),
    ))
}
