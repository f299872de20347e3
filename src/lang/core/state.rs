//! Mutable cells, pending computations, and metadata.
//!
//! No borrow of a cell is alive while a function of the program runs, because the function may access the same cell.

use std::cell::RefCell;
use std::rc::Rc;

use super::functions::is_fn;
use super::sequences::pipeline::take_from;
use crate::value::{
    Arity, Atom, Class, Delay, DelayState, Exception, LazyState, List, Map, Native, Object, PMap,
    Result, Signal, Symbol, Thunk, Value, Var, let_go, tracked,
};
use crate::vm::{Args, Vm, wrong_type};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    ADD_WATCH,
    ALTER_META,
    ATOM,
    COMPARE_AND_SET,
    DELAY,
    DEREF,
    FORCE,
    GET_VALIDATOR,
    GET_WATCHES,
    IS_REALIZED,
    META,
    REMOVE_WATCH,
    RESET,
    RESET_META,
    RESET_VALS,
    SET_VALIDATOR,
    SWAP,
    SWAP_VALS,
    VARY_META,
    VOLATILE,
    VRESET,
    WITH_META,
];

const ADD_WATCH: Native = Native {
    name: "add-watch",
    usage: "(add-watch reference key f)",
    doc: "Adds a watch: (f key reference old new) is called after each change of an atom, or of the root of a var; returns the reference.",
    examples: &[("@(add-watch (atom 1) :log (fn [k a old new] nil))", "1")],
    arity: Arity::exactly(3),
    run: |vm, mut args| {
        vm.realise_key(args.get(1))?;
        touch(vm, args.get(0))?;
        let (key, function) = (args.take(1), args.take(2));
        watches(&args)?.borrow_mut().insert(key, function);
        Ok(args.take(0))
    },
};

const ALTER_META: Native = Native {
    name: "alter-meta!",
    usage: "(alter-meta! x f & args)",
    doc: "Sets the metadata of a var, atom or namespace to (f metadata & args), and returns it.",
    examples: &[(
        "(alter-meta! (atom 1 :meta {:a 1}) assoc :b 2)",
        "{:a 1, :b 2}",
    )],
    arity: Arity::at_least(2),
    run: |vm, mut args| {
        let (holder, function) = (args.take(0), args.take(1));
        let mut all = take_from(&mut args, 1);
        all[0] = held_meta(&holder);
        let meta = vm.invoke(&function, &mut all)?;
        reset_meta(vm, &holder, meta)
    },
};

const ATOM: Native = Native {
    name: "atom",
    usage: "(atom x & {:keys [meta validator]})",
    doc: "Returns a cell with the value x, which swap! and reset! change and deref reads.",
    examples: &[("@(atom 1)", "1"), ("@(atom 1 :validator pos?)", "1")],
    arity: Arity::at_least(1),
    run: |vm, mut args| {
        let mut made = Atom::new(args.take(0));
        made.is_of_library = vm.is_library_at_work();
        if args.len().is_multiple_of(2) {
            return Err(super::maps::odd_keyvals("atom", args.get(args.len() - 1)));
        }
        for idx in (1..args.len()).step_by(2) {
            match args.get(idx).as_keyword() {
                Some(key) if key.is("meta") => {
                    if !matches!(
                        args.get(idx + 1),
                        Value::Map(_) | Value::Record(_) | Value::Nil
                    ) {
                        return Err(args.expected(idx + 1, "a map"));
                    }
                    made.meta.replace(args.take(idx + 1));
                }
                Some(key) if key.is("validator") => {
                    let validator = args.take(idx + 1);
                    let value = made.value.borrow().clone();
                    vm.validate(&validator, &value)?;
                    made.validator.replace(validator);
                }
                // Other options belong to other dialects.
                _ => {}
            }
        }
        Ok(tracked(Value::Atom(Rc::new(made))))
    },
};

const COMPARE_AND_SET: Native = Native {
    name: "compare-and-set!",
    usage: "(compare-and-set! atom old new)",
    doc: "Sets an atom to new if its value is identical to old; tells whether it did.",
    examples: &[
        ("(compare-and-set! (atom 1) 1 2)", "true"),
        ("(compare-and-set! (atom 1) 5 2)", "false"),
    ],
    arity: Arity::exactly(3),
    run: |vm, mut args| {
        let atom = atom(&args)?.clone();
        let current = atom.value.borrow().clone();
        if !super::hash::identical(&current, args.get(1)) {
            return Ok(Value::Bool(false));
        }
        set(vm, &atom, args.take(2))?;
        Ok(Value::Bool(true))
    },
};

const DELAY: Native = Native {
    name: "delay*",
    usage: "(delay* thunk)",
    doc: "Returns a delay of a function without arguments: the function behind delay.",
    examples: &[("@(delay* (fn [] 1))", "1")],
    arity: Arity::exactly(1),
    run: |_, mut args| {
        Ok(tracked(Value::from(Object::Delay(Delay {
            state: RefCell::new(DelayState::Pending(Thunk::Call(args.take(0)))),
        }))))
    },
};

const DEREF: Native = Native {
    name: "deref",
    usage: "(deref x)\n(deref x timeout-ms timeout-value)",
    doc: "Returns the value of an atom, volatile, var, delay, promise or future; @x is short for it.",
    examples: &[("(deref (atom 1))", "1"), ("@(delay 2)", "2")],
    arity: Arity::between(1, 3),
    run: |vm, mut args| {
        let cell = args.take(0);
        let default = (args.len() == 3).then(|| args.take(2));
        if let Some(result) = super::promises::deref(vm, &cell, default.as_ref()) {
            return result;
        }
        deref(vm, &cell)
    },
};

const FORCE: Native = Native {
    name: "force",
    usage: "(force x)",
    doc: "Returns the value of a delay, or x itself if it is not a delay.",
    examples: &[("(force (delay 1))", "1"), ("(force 1)", "1")],
    arity: Arity::exactly(1),
    run: |vm, mut args| match args.take(0) {
        Value::Object(object) if matches!(*object, Object::Delay(_)) => force(vm, &object),
        other => Ok(other),
    },
};

const GET_VALIDATOR: Native = Native {
    name: "get-validator",
    usage: "(get-validator reference)",
    doc: "Returns the function that a new value of an atom or var must satisfy, or nil.",
    examples: &[("(get-validator (atom 1))", "nil")],
    arity: Arity::exactly(1),
    run: |_, args| match args.get(0) {
        Value::Var(var) => Ok(var.validator.borrow().clone()),
        _ => Ok(atom(&args)?.validator.borrow().clone()),
    },
};

const GET_WATCHES: Native = Native {
    name: "get-watches",
    usage: "(get-watches reference)",
    doc: "Returns a map of the watches of an atom or a var.",
    examples: &[("(get-watches (atom 1))", "{}")],
    arity: Arity::exactly(1),
    run: |_, args| {
        let watches = watches(&args)?.borrow().clone();
        Ok(Value::map(
            watches
                .iter()
                .map(|(key, value)| (key.clone(), value.clone())),
        ))
    },
};

const META: Native = Native {
    name: "meta",
    usage: "(meta x)",
    doc: "Returns the metadata of x, or nil.",
    examples: &[
        ("(meta (with-meta [1] {:a 1}))", "{:a 1}"),
        ("(meta 1)", "nil"),
    ],
    arity: Arity::exactly(1),
    run: |vm, args| match args.get(0) {
        Value::Var(var) => var_meta(vm, var),
        list @ Value::List(_) => Ok(list_meta(vm, list)),
        Value::Object(_) => match vm.call_own_method(args.get(0), "meta", &[])? {
            Some(meta) => Ok(meta),
            None => Ok(held_meta(args.get(0))),
        },
        value => Ok(value.meta()),
    },
};

/// Returns the metadata of a list, and the line and column where it was read as code.
fn list_meta(vm: &Vm, list: &Value) -> Value {
    let (meta, span) = (list.meta(), list.span());
    let sources = vm.world().sources.borrow();
    let Some(source) = span.is_some().then(|| sources.get(span.source)).flatten() else {
        return meta;
    };
    let at = source.line_column(span.start);
    let place = [("line", at.line), ("column", at.column)];
    let mut entries = match &meta {
        Value::Map(map) => map.entries().clone(),
        _ => PMap::new(),
    };
    for (name, number) in place {
        let key = Value::keyword(name);
        if entries.get(&key).is_none() {
            entries.insert(key, Value::Int(i64::from(number)));
        }
    }
    Value::Map(Rc::new(crate::value::Map::new(entries)))
}

const IS_REALIZED: Native = Native {
    name: "realized?",
    usage: "(realized? x)",
    doc: "Tells whether a delay, lazy sequence, promise or future has its value.",
    examples: &[
        ("(realized? (delay 1))", "false"),
        ("(realized? (map inc [1]))", "false"),
    ],
    arity: Arity::exactly(1),
    run: |_, args| is_realized(&args).map(Value::Bool),
};

const REMOVE_WATCH: Native = Native {
    name: "remove-watch",
    usage: "(remove-watch reference key)",
    doc: "Removes a watch of an atom or a var, and returns the reference.",
    examples: &[("@(remove-watch (atom 1) :log)", "1")],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        vm.realise_key(args.get(1))?;
        touch(vm, args.get(0))?;
        watches(&args)?.borrow_mut().remove(args.get(1));
        Ok(args.take(0))
    },
};

const RESET: Native = Native {
    name: "reset!",
    usage: "(reset! atom x)",
    doc: "Sets the value of an atom to x, and returns x.",
    examples: &[("(reset! (atom 1) 2)", "2")],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let atom = atom(&args)?.clone();
        let new = args.take(1);
        set(vm, &atom, new.clone())?;
        Ok(new)
    },
};

const RESET_META: Native = Native {
    name: "reset-meta!",
    usage: "(reset-meta! x meta)",
    doc: "Sets the metadata of a var, atom or namespace, and returns it.",
    examples: &[("(reset-meta! (atom 1) {:a 1})", "{:a 1}")],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let meta = args.take(1);
        reset_meta(vm, args.get(0), meta)
    },
};

const RESET_VALS: Native = Native {
    name: "reset-vals!",
    usage: "(reset-vals! atom x)",
    doc: "Sets the value of an atom to x, and returns a vector of the old and the new value.",
    examples: &[("(reset-vals! (atom 1) 2)", "[1 2]")],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let atom = atom(&args)?.clone();
        let new = args.take(1);
        let old = set(vm, &atom, new.clone())?;
        Ok(Value::vector([old, new]))
    },
};

const SET_VALIDATOR: Native = Native {
    name: "set-validator!",
    usage: "(set-validator! reference f)",
    doc: "Sets the function that each new value of an atom, or each new root value of a var, must satisfy; nil removes it.",
    examples: &[("(set-validator! (atom 1) pos?)", "nil")],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let validator = args.take(1);
        touch(vm, args.get(0))?;
        if let Value::Var(var) = args.get(0) {
            if let Some(value) = var.root() {
                vm.validate(&validator, &value)?;
            }
            var.validator.replace(validator);
            return Ok(Value::Nil);
        }
        let atom = atom(&args)?.clone();
        let value = atom.value.borrow().clone();
        vm.validate(&validator, &value)?;
        atom.validator.replace(validator);
        Ok(Value::Nil)
    },
};

const SWAP: Native = Native {
    name: "swap!",
    usage: "(swap! atom f & args)",
    doc: "Sets the value of an atom to (f value & args), and returns it.",
    examples: &[("(swap! (atom 1) + 10)", "11")],
    arity: Arity::at_least(2),
    run: |vm, mut args| swap(vm, &mut args).map(|(_, new)| new),
};

const SWAP_VALS: Native = Native {
    name: "swap-vals!",
    usage: "(swap-vals! atom f & args)",
    doc: "Sets the value of an atom to (f value & args), and returns a vector of the old and the new value.",
    examples: &[("(swap-vals! (atom 1) inc)", "[1 2]")],
    arity: Arity::at_least(2),
    run: |vm, mut args| swap(vm, &mut args).map(|(old, new)| Value::vector([old, new])),
};

const VARY_META: Native = Native {
    name: "vary-meta",
    usage: "(vary-meta x f & args)",
    doc: "Returns x with (f metadata & args) as its metadata.",
    examples: &[("(meta (vary-meta [1] assoc :a 1))", "{:a 1}")],
    arity: Arity::at_least(2),
    run: |vm, mut args| {
        let (value, function) = (args.take(0), args.take(1));
        let mut all = take_from(&mut args, 1);
        let own = match &value {
            Value::Object(_) => vm.call_own_method(&value, "meta", &[])?,
            _ => None,
        };
        all[0] = own.unwrap_or_else(|| value.meta());
        let meta = vm.invoke(&function, &mut all)?;
        if let Value::Object(_) = value
            && let Some(changed) =
                vm.call_own_method(&value, "withMeta", std::slice::from_ref(&meta))?
        {
            return Ok(changed);
        }
        with_meta(vm, value, meta)
    },
};

const VOLATILE: Native = Native {
    name: "volatile!",
    usage: "(volatile! x)",
    doc: "Returns a cell with the value x, without watches or a validator, for state inside of a function.",
    examples: &[("@(volatile! 1)", "1")],
    arity: Arity::exactly(1),
    run: |_, mut args| {
        let cell = Object::Volatile(RefCell::new(args.take(0)));
        Ok(tracked(Value::from(cell)))
    },
};

const VRESET: Native = Native {
    name: "vreset!",
    usage: "(vreset! volatile x)",
    doc: "Sets the value of a volatile to x, and returns x.",
    examples: &[("(vreset! (volatile! 1) 2)", "2")],
    arity: Arity::exactly(2),
    run: |_, mut args| {
        let new = args.take(1);
        let old = match args.get(0) {
            Value::Object(object) => match &**object {
                Object::Volatile(cell) => cell.replace(new.clone()),
                _ => return Err(args.expected(0, "a volatile")),
            },
            _ => return Err(args.expected(0, "a volatile")),
        };
        let_go(&old);
        Ok(new)
    },
};

const WITH_META: Native = Native {
    name: "with-meta",
    usage: "(with-meta x meta)",
    doc: "Returns x with a map, or nil, as its metadata.",
    examples: &[("(meta (with-meta 'a {:b 1}))", "{:b 1}")],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let (value, meta) = (args.take(0), args.take(1));
        if let Value::Object(_) = value
            && let Some(changed) =
                vm.call_own_method(&value, "withMeta", std::slice::from_ref(&meta))?
        {
            return Ok(changed);
        }
        with_meta(vm, value, meta)
    },
};

fn atom<'a>(args: &'a Args<'_>) -> Result<&'a Rc<Atom>> {
    match args.get(0) {
        Value::Atom(atom) => Ok(atom),
        _ => Err(args.expected(0, "an atom")),
    }
}

fn watches<'a>(args: &'a Args<'_>) -> Result<&'a RefCell<PMap>> {
    match args.get(0) {
        Value::Atom(atom) => Ok(&atom.watches),
        Value::Var(var) => Ok(&var.watches),
        _ => Err(args.expected(0, "an atom or a var")),
    }
}

/// Returns the metadata that a value holds; for a library namespace without metadata, its description.
fn held_meta(value: &Value) -> Value {
    let meta = value.meta();
    if let Value::Object(object) = value
        && let Object::Namespace(namespace) = &**object
        && meta.is_nil()
        && let Some(doc) = crate::library::doc(&namespace.name.to_string())
    {
        return Value::map([(Value::keyword("doc"), Value::from(doc))]);
    }
    meta
}

/// Returns the metadata of a var, including entries that it does not store: name, namespace, flags, and the description
/// of a native.
fn var_meta(vm: &mut Vm, var: &Var) -> Result<Value> {
    let meta = var.meta();
    let mut entries = match &meta {
        Value::Map(map) => map.entries().clone(),
        _ => PMap::new(),
    };
    let namespace = vm.world().find_namespace(var.namespace);
    if let Some(namespace) = namespace {
        entries.insert(Value::keyword("name"), Value::Symbol(var.name));
        entries.insert(
            Value::keyword("ns"),
            super::namespaces::namespace_value(namespace),
        );
    }
    if var.is_macro.get() {
        entries.insert(Value::keyword("macro"), Value::Bool(true));
    }
    if let Some(Value::Native(native)) = var.root()
        && !entries.contains(&Value::keyword("doc"))
    {
        entries.insert(Value::keyword("doc"), Value::from(native.doc));
        let arglists = arglists(vm, native)?;
        entries.insert(Value::keyword("arglists"), arglists);
    }
    Ok(Value::Map(Rc::new(Map::new(entries))))
}

/// Parses the argument vectors of a native from its usage.
fn arglists(vm: &mut Vm, native: &Native) -> Result<Value> {
    let core = vm.world().core.clone();
    let read = core
        .lookup(Symbol::new("read-string"))
        .and_then(|var| var.root());
    let Some(read) = read else {
        return Ok(Value::Nil);
    };
    let mut all = Vec::new();
    for line in native.usage.lines() {
        let inner = line.trim_start_matches('(').trim_end_matches(')');
        let args = inner.split_once(' ').map_or("", |(_, args)| args);
        all.push(vm.invoke(&read, &mut [Value::from(format!("[{}]", with_rest(args)))])?);
    }
    Ok(Value::list(all))
}

/// Converts `x ...` for any number of x in a usage to `& x`, as argument vectors write it.
fn with_rest(args: &str) -> String {
    let mut words: Vec<&str> = args.split(' ').collect();
    if let [.., name, "..."] = words[..]
        && !name.ends_with([']', ')'])
    {
        let at = words.len() - 2;
        words.splice(at.., ["&", name]);
    }
    words.join(" ")
}

/// Sets the value, with validator and watches, and returns the old one.
fn set(vm: &mut Vm, atom: &Rc<Atom>, new: Value) -> Result<Value> {
    let validator = atom.validator.borrow().clone();
    vm.validate(&validator, &new)?;
    if atom.is_of_library {
        vm.touch_session()?;
    }
    let old = atom.value.replace(new.clone());
    let_go(&old);
    vm.notify(&atom.watches, || Value::Atom(atom.clone()), (&old, &new))?;
    Ok(old)
}

/// Notifies the host of a change to a reference, if all evaluations of the session share it.
fn touch(vm: &mut Vm, reference: &Value) -> Result<()> {
    match reference {
        Value::Atom(atom) if !atom.is_of_library => Ok(()),
        _ => vm.touch_session(),
    }
}

/// Applies the function; returns the old and the new value.
fn swap(vm: &mut Vm, args: &mut Args<'_>) -> Result<(Value, Value)> {
    let atom = atom(args)?.clone();
    let function = args.take(1);
    // The value stays in its cell meanwhile, because the function may read it.
    let old = atom.value.borrow().clone();
    let new = match args.len() {
        2 => vm.invoke(&function, &mut [old])?,
        3 => vm.invoke(&function, &mut [old, args.take(2)])?,
        _ => {
            let mut all = take_from(args, 1);
            all[0] = old;
            vm.invoke(&function, &mut all)?
        }
    };
    let old = set(vm, &atom, new.clone())?;
    Ok((old, new))
}

/// Returns the value of a cell.
///
/// # Errors
/// When it is not a cell, and any exception thrown while a delay is computed.
pub(crate) fn deref(vm: &mut Vm, cell: &Value) -> Result<Value> {
    match cell {
        Value::Atom(atom) => Ok(atom.value.borrow().clone()),
        Value::Var(var) => vm.var_value(var),
        Value::Object(object) => match &**object {
            Object::Volatile(cell) => Ok(cell.borrow().clone()),
            Object::Reduced(value) => Ok(value.clone()),
            Object::Delay(_) => force(vm, object),
            Object::Instance(_) => match vm.call_own_method(cell, "deref", &[])? {
                Some(value) => Ok(value),
                None => Err(wrong_type(cell, "something that deref reads", 0).into()),
            },
            _ => Err(wrong_type(cell, "something that deref reads", 0).into()),
        },
        _ => Err(wrong_type(cell, "something that deref reads", 0)
            .hint("deref, or @, works on atoms, volatiles, vars, delays, promises and futures")
            .into()),
    }
}

/// Computes a delay once; an exception is stored and thrown again.
fn force(vm: &mut Vm, object: &Rc<Object>) -> Result<Value> {
    let Object::Delay(delay) = &**object else {
        return Ok(Value::Object(object.clone()));
    };
    let state = delay.state.replace(DelayState::Running);
    let thunk = match state {
        DelayState::Done(value) => {
            delay.state.replace(DelayState::Done(value.clone()));
            return Ok(value);
        }
        DelayState::Failed(exception) => {
            delay.state.replace(DelayState::Failed(exception.clone()));
            return Err(Signal::Throw(exception));
        }
        DelayState::Running => return force_elsewhere(vm, object, delay),
        DelayState::Pending(thunk) => thunk,
    };
    let mut again = None;
    let result = match thunk {
        Thunk::Call(function) => {
            let result = vm.invoke(&function, &mut []);
            again = Some(function);
            result
        }
        Thunk::Native(step) => step(vm),
        Thunk::Stage { stage, coll } => Ok(crate::value::Lazy::new(Thunk::Stage { stage, coll })),
    };
    match &result {
        Ok(value) => drop(delay.state.replace(DelayState::Done(value.clone()))),
        Err(Signal::Throw(exception)) => {
            drop(delay.state.replace(DelayState::Failed(exception.clone())));
        }
        // Another evaluation of the session may compute it instead.
        Err(Signal::Stop(_)) => {
            if let Some(function) = again {
                let pending = DelayState::Pending(Thunk::Call(function));
                drop(delay.state.replace(pending));
            }
        }
    }
    result
}

/// Waits for a delay that another evaluation is computing.
#[cold]
fn force_elsewhere(vm: &mut Vm, object: &Rc<Object>, delay: &Delay) -> Result<Value> {
    while vm.wait_for_others()? {
        if !matches!(*delay.state.borrow(), DelayState::Running) {
            return force(vm, object);
        }
    }
    let words = "the value of a delay depends on itself";
    Err(Exception::new(Class::ILLEGAL_STATE, "E0310", words).into())
}

fn is_realized(args: &Args<'_>) -> Result<bool> {
    if let Some(is_realized) = super::promises::is_realized(args.get(0)) {
        return Ok(is_realized);
    }
    match args.get(0) {
        Value::Lazy(lazy) => Ok(matches!(*lazy.state.borrow(), LazyState::Done(_))),
        Value::Seq(_) => Ok(true),
        Value::Object(object) => match &**object {
            Object::Delay(delay) => Ok(matches!(
                *delay.state.borrow(),
                DelayState::Done(_) | DelayState::Failed(_)
            )),
            _ => Err(args.expected(0, "a delay, lazy sequence, promise or future")),
        },
        _ => Err(args.expected(0, "a delay, lazy sequence, promise or future")),
    }
}

fn reset_meta(vm: &mut Vm, holder: &Value, meta: Value) -> Result<Value> {
    touch(vm, holder)?;
    match holder {
        Value::Var(var) => var.set_meta(meta.clone()),
        Value::Atom(atom) => drop(atom.meta.replace(meta.clone())),
        Value::Object(object) => match &**object {
            Object::Namespace(namespace) => namespace.set_meta(meta.clone()),
            _ => return Err(wrong_type(holder, "a var, atom or namespace", 0).into()),
        },
        _ => return Err(wrong_type(holder, "a var, atom or namespace", 0).into()),
    }
    Ok(meta)
}

/// Returns a value with metadata.
///
/// # Errors
/// When the value cannot carry any, or the metadata is not a map.
pub(super) fn with_meta(vm: &mut Vm, value: Value, meta: Value) -> Result<Value> {
    if !matches!(meta, Value::Nil | Value::Map(_) | Value::Record(_)) {
        return Err(wrong_type(&meta, "a map or nil", 1).into());
    }
    let holder = match &value {
        // A view cannot hold metadata, so its first cell gets it.
        Value::Seq(_) => match vm.uncons(value)? {
            Some((first, rest)) => Value::List(Rc::new(List {
                first,
                rest,
                count: None,
                extra: None,
            })),
            None => List::empty(),
        },
        Value::Native(native) => super::functions::closure(
            native.name,
            native.arity,
            vec![value.clone()],
            |vm, own, mut args| vm.invoke(&own.captured[0], args.as_mut_slice()),
        ),
        _ => value,
    };
    match holder.with_meta(meta) {
        Some(value) => Ok(value),
        None if is_fn(&holder) => Ok(holder),
        None => Err(wrong_type(&holder, "something that can carry metadata", 0).into()),
    }
}
