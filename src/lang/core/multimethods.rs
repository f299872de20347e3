//! Multimethods: functions that choose a method by the result of a dispatch function for their arguments.

use std::cell::RefCell;
use std::rc::Rc;

use super::classes::above_type;
use super::functions::closure;
use super::namespaces::lookup;
use super::print::core_var;
use crate::value::{
    Arity, Class, Exception, Native, NativeClosure, Object, PMap, PrintOptions, Result, Symbol,
    TextWriter, Value, Var, brief,
};
use crate::vm::{Args, Vm};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    ADD_METHOD,
    GET_METHOD,
    ISA,
    METHODS,
    NEW_MULTIMETHOD,
    PREFERS,
    PREFER_METHOD,
    REMOVE_ALL,
    REMOVE_METHOD,
];

const ADD_METHOD: Native = Native {
    name: "add-method",
    usage: "(add-method multifn dispatch-value f)",
    doc: "Adds a method to a multimethod, and returns it: the function behind defmethod.",
    examples: &[],
    arity: Arity::exactly(3),
    run: |vm, mut args| {
        vm.realise_key(args.get(1))?;
        vm.touch_session()?;
        let (key, method) = (args.take(1), args.take(2));
        let multi = Multi::of(&args, 0)?;
        if multi.prints() && key != *multi.default {
            vm.world().print_extended.set(true);
        }
        with_table(&args, |table| table.methods.insert(key, method))?;
        Ok(args.take(0))
    },
};

const GET_METHOD: Native = Native {
    name: "get-method",
    usage: "(get-method multifn dispatch-value)",
    doc: "Returns the method of a multimethod for a dispatch value, including the default one, or nil.",
    examples: &[(
        "(do (defmulti area :shape) (get-method area :circle))",
        "nil",
    )],
    arity: Arity::exactly(2),
    run: |vm, args| {
        let multi = Multi::of(&args, 0)?;
        Ok(multi.find(vm, args.get(1))?.unwrap_or(Value::Nil))
    },
};

const ISA: Native = Native {
    name: "isa?",
    usage: "(isa? child parent)\n(isa? hierarchy child parent)",
    doc: "Tells whether child equals parent, derives from it, or is one of its subclasses; vectors are compared item by item.",
    examples: &[
        ("(isa? 1 1)", "true"),
        ("(isa? Long Number)", "true"),
        (
            "(isa? (derive (make-hierarchy) :a/b :a/c) :a/b :a/c)",
            "true",
        ),
    ],
    arity: Arity::between(2, 3),
    run: |vm, args| {
        let is = if args.len() == 3 {
            isa(vm, args.get(0), args.get(1), args.get(2))?
        } else {
            let hierarchy = global_hierarchy(vm)?;
            isa(vm, &hierarchy, args.get(0), args.get(1))?
        };
        Ok(Value::Bool(is))
    },
};

const METHODS: Native = Native {
    name: "methods",
    usage: "(methods multifn)",
    doc: "Returns a map of dispatch values to the methods of a multimethod.",
    examples: &[("(do (defmulti area :shape) (methods area))", "{}")],
    arity: Arity::exactly(1),
    run: |_, args| {
        let methods = with_table(&args, |table| table.methods.clone())?;
        Ok(map_value(methods))
    },
};

const NEW_MULTIMETHOD: Native = Native {
    name: "new-multimethod",
    usage: "(new-multimethod name dispatch default hierarchy)",
    doc: "Returns a multimethod without methods: the function behind defmulti.",
    examples: &[],
    arity: Arity::exactly(4),
    run: |_, mut args| {
        let table = Value::from(Object::State(Box::new(RefCell::new(Table::default()))));
        let captured = vec![
            args.take(0),
            args.take(1),
            args.take(2),
            args.take(3),
            table,
        ];
        Ok(closure("multimethod", Arity::at_least(0), captured, call))
    },
};

const PREFERS: Native = Native {
    name: "prefers",
    usage: "(prefers multifn)",
    doc: "Returns a map of dispatch values to the set of those that they are preferred to.",
    examples: &[("(do (defmulti area :shape) (prefers area))", "{}")],
    arity: Arity::exactly(1),
    run: |_, args| {
        let prefers = with_table(&args, |table| table.prefers.clone())?;
        Ok(map_value(prefers))
    },
};

const PREFER_METHOD: Native = Native {
    name: "prefer-method",
    usage: "(prefer-method multifn dispatch-value other)",
    doc: "Makes a multimethod choose the method of dispatch-value over that of other if both match.",
    examples: &[],
    arity: Arity::exactly(3),
    run: |vm, mut args| {
        let multi = Multi::of(&args, 0)?;
        let (key, other) = (args.get(1).clone(), args.get(2).clone());
        vm.realise_key(&key)?;
        vm.realise_key(&other)?;
        let hierarchy = multi.hierarchy(vm)?;
        if multi.prefers(vm, &hierarchy, &other, &key)? {
            return Err(Exception::new(
                Class::ILLEGAL_STATE,
                "E0348",
                format!("{} is already preferred to {}", brief(&other), brief(&key)),
            )
            .into());
        }
        vm.touch_session()?;
        with_table(&args, |table| {
            let mut set = match table.prefers.get(&key) {
                Some(Value::Set(set)) => set.items().clone(),
                _ => crate::value::PSet::new(),
            };
            set.insert(other);
            let set = Value::Set(Rc::new(crate::value::Set::new(set)));
            table.prefers.insert(key, set);
        })?;
        Ok(args.take(0))
    },
};

const REMOVE_ALL: Native = Native {
    name: "remove-all-methods",
    usage: "(remove-all-methods multifn)",
    doc: "Removes all methods of a multimethod, and returns it.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        vm.touch_session()?;
        with_table(&args, |table| *table = Table::default())?;
        Ok(args.take(0))
    },
};

const REMOVE_METHOD: Native = Native {
    name: "remove-method",
    usage: "(remove-method multifn dispatch-value)",
    doc: "Removes a method of a multimethod, and returns the multimethod.",
    examples: &[],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        vm.realise_key(args.get(1))?;
        vm.touch_session()?;
        with_table(&args, |table| table.methods.remove(args.get(1)))?;
        Ok(args.take(0))
    },
};

/// The mutable state of a multimethod.
struct Table {
    methods: PMap,
    prefers: PMap,
    /// The methods found for dispatch values without a method of their own, in this hierarchy.
    found: PMap,
    found_in: Value,
    /// The var of the shared hierarchy, set when it is first needed.
    global: Option<Rc<Var>>,
}

impl Default for Table {
    fn default() -> Self {
        Table {
            methods: PMap::new(),
            prefers: PMap::new(),
            found: PMap::new(),
            found_in: Value::Nil,
            global: None,
        }
    }
}

/// The parts of a multimethod.
struct Multi<'a> {
    name: &'a Value,
    dispatch: &'a Value,
    default: &'a Value,
    /// An atom or var that holds the hierarchy; nil for the shared one.
    hierarchy: &'a Value,
    table: &'a RefCell<Table>,
}

impl<'a> Multi<'a> {
    fn of(args: &'a Args<'_>, idx: usize) -> Result<Multi<'a>> {
        if let Value::Object(object) = args.get(idx)
            && let Object::Function(closure) = &**object
            && let Some(multi) = Multi::from_closure(closure)
        {
            return Ok(multi);
        }
        Err(args.expected(idx, "a multimethod"))
    }

    fn from_closure(closure: &'a NativeClosure) -> Option<Multi<'a>> {
        let [name, dispatch, default, hierarchy, Value::Object(object)] = &closure.captured[..]
        else {
            return None;
        };
        let Object::State(state) = &**object else {
            return None;
        };
        Some(Multi {
            name,
            dispatch,
            default,
            hierarchy,
            table: state.downcast_ref::<RefCell<Table>>()?,
        })
    }

    /// Tells whether this is a multimethod that printing uses for the program's own methods.
    fn prints(&self) -> bool {
        let name = self.name.as_symbol();
        name.is_some_and(|name| name.is(PRINT_METHOD) || name.is(PRINT_DUP))
    }

    fn hierarchy(&self, vm: &mut Vm) -> Result<Value> {
        match self.hierarchy {
            Value::Nil => {
                let known = self.table.borrow().global.clone();
                let var = match known {
                    Some(var) => Some(var),
                    None => global_hierarchy_var(vm)?,
                };
                let Some(var) = var else {
                    return Ok(Value::Nil);
                };
                let holder = vm.var_value(&var)?;
                self.table.borrow_mut().global = Some(var);
                super::state::deref(vm, &holder)
            }
            holder => super::state::deref(vm, holder),
        }
    }

    /// Returns the method for a dispatch value, or the default method.
    fn find(&self, vm: &mut Vm, key: &Value) -> Result<Option<Value>> {
        vm.realise_key(key)?;
        let own = self.table.borrow().methods.get(key).cloned();
        if own.is_some() {
            return Ok(own);
        }
        let hierarchy = self.hierarchy(vm)?;
        {
            let table = &mut *self.table.borrow_mut();
            if super::hash::identical(&table.found_in, &hierarchy) {
                if let Some(found) = table.found.get(key) {
                    return Ok(Some(found.clone()));
                }
            } else {
                table.found = PMap::new();
                table.found_in = hierarchy.clone();
            }
        }
        let found = self.search(vm, &hierarchy, key)?;
        if let Some(found) = &found {
            let table = &mut *self.table.borrow_mut();
            table.found.insert(key.clone(), found.clone());
        }
        Ok(found)
    }

    fn search(&self, vm: &mut Vm, hierarchy: &Value, key: &Value) -> Result<Option<Value>> {
        let methods = self.table.borrow().methods.clone();
        let mut best: Option<(Value, Value)> = None;
        for (candidate, method) in methods.iter() {
            vm.charge(1)?;
            if !isa(vm, hierarchy, key, candidate)? {
                continue;
            }
            let wins = match &best {
                None => true,
                Some((so_far, _)) => self.dominates(vm, hierarchy, candidate, so_far)?,
            };
            if wins {
                best = Some((candidate.clone(), method.clone()));
            } else if let Some((so_far, _)) = &best
                && !self.dominates(vm, hierarchy, so_far, candidate)?
            {
                return Err(self.ambiguous(key, so_far, candidate));
            }
        }
        Ok(match best {
            Some((_, method)) => Some(method),
            None => methods.get(self.default).cloned(),
        })
    }

    fn dominates(
        &self,
        vm: &mut Vm,
        hierarchy: &Value,
        left: &Value,
        right: &Value,
    ) -> Result<bool> {
        Ok(self.prefers(vm, hierarchy, left, right)? || isa(vm, hierarchy, left, right)?)
    }

    /// Tells whether `left` is preferred to `right` or one of its parents, or inherits such a preference.
    fn prefers(&self, vm: &mut Vm, hierarchy: &Value, left: &Value, right: &Value) -> Result<bool> {
        let table = self.table.borrow().prefers.clone();
        let mut pending = vec![(left.clone(), right.clone())];
        while let Some((left, right)) = pending.pop() {
            vm.charge(1)?;
            if matches!(table.get(&left), Some(Value::Set(set)) if set.contains(&right)) {
                return Ok(true);
            }
            for above in parents(hierarchy, &right) {
                pending.push((left.clone(), above));
            }
            for above in parents(hierarchy, &left) {
                pending.push((above, right.clone()));
            }
        }
        Ok(false)
    }

    #[cold]
    fn ambiguous(&self, key: &Value, left: &Value, right: &Value) -> crate::value::Signal {
        let (left, right) = (brief(left), brief(right));
        Exception::new(
            Class::ILLEGAL_ARGUMENT,
            "E0349",
            format!(
                "Multiple methods in multimethod '{}' match dispatch value: {} -> {right} and {left}, and neither is preferred",
                brief(self.name),
                brief(key)
            ),
        )
        .hint(format!("(prefer-method {} {left} {right})", brief(self.name)))
        .into()
    }

    #[cold]
    fn no_method(&self, key: &Value) -> crate::value::Signal {
        Exception::new(
            Class::ILLEGAL_ARGUMENT,
            "E0347",
            format!(
                "No method in multimethod '{}' for dispatch value: {}",
                brief(self.name),
                brief(key)
            ),
        )
        .hint(format!(
            "add one with (defmethod {} {} [...] ...), or one for :default",
            brief(self.name),
            brief(key)
        ))
        .into()
    }
}

const PRINT_METHOD: &str = "print-method";
const PRINT_DUP: &str = "print-dup";

/// Returns the text that a method of `print-method`, or of `print-dup`, writes for a value; `None` if only the default
/// method applies.
///
/// # Errors
/// Any exception that the method throws.
pub(crate) fn printed(vm: &mut Vm, value: &Value, options: PrintOptions) -> Result<Option<String>> {
    let is_dup = core_var(vm, "*print-dup*").is_some_and(|dup| dup.is_truthy());
    let name = if is_dup { PRINT_DUP } else { PRINT_METHOD };
    let Some(Value::Object(function)) = core_var(vm, name) else {
        return Ok(None);
    };
    let Object::Function(closure) = &*function else {
        return Ok(None);
    };
    let Some(multi) = Multi::from_closure(closure) else {
        return Ok(None);
    };
    let named = value.meta().get("type").cloned();
    let key = match named {
        Some(name @ Value::Keyword(_)) if !is_dup => name,
        _ => Class::of(value),
    };
    let Some(method) = multi.find(vm, &key)? else {
        return Ok(None);
    };
    let default = multi.table.borrow().methods.get(multi.default).cloned();
    if default.is_some_and(|default| super::hash::identical(&default, &method)) {
        return Ok(None);
    }
    let writer = TextWriter::new_value("");
    let depth = vm.binding_depth();
    if !options.readable {
        let readably = vm.world().core.intern(Symbol::new("*print-readably*"));
        vm.bind(readably, Value::Nil);
    }
    let result = vm.call(&method, &[value.clone(), writer.clone()]);
    vm.unbind(vm.binding_depth().saturating_sub(depth));
    result?;
    Ok(TextWriter::of(&writer).map(|writer| writer.text.take()))
}

fn call(vm: &mut Vm, own: &NativeClosure, mut args: Args<'_>) -> Result<Value> {
    let Some(multi) = Multi::from_closure(own) else {
        return Ok(Value::Nil);
    };
    let key = match args.as_slice() {
        [only] => {
            let mut key = only.clone();
            vm.update(multi.dispatch, &mut key)?;
            key
        }
        all => vm.call(multi.dispatch, all)?,
    };
    match multi.find(vm, &key)? {
        Some(method) => vm.invoke(&method, args.as_mut_slice()),
        None => Err(multi.no_method(&key)),
    }
}

/// Changes or reads the table of a multimethod, and invalidates the methods found before.
fn with_table<T>(args: &Args<'_>, look: impl FnOnce(&mut Table) -> T) -> Result<T> {
    let multi = Multi::of(args, 0)?;
    let mut table = multi.table.borrow_mut();
    table.found = PMap::new();
    Ok(look(&mut table))
}

fn map_value(entries: PMap) -> Value {
    Value::Map(Rc::new(crate::value::Map::new(entries)))
}

/// Returns the hierarchy that `derive` changes by default.
fn global_hierarchy(vm: &mut Vm) -> Result<Value> {
    match global_hierarchy_var(vm)? {
        Some(var) => {
            let holder = vm.var_value(&var)?;
            super::state::deref(vm, &holder)
        }
        None => Ok(Value::Nil),
    }
}

fn global_hierarchy_var(vm: &mut Vm) -> Result<Option<Rc<Var>>> {
    let core = vm.world().core.name;
    lookup(vm, core, Symbol::new("global-hierarchy"))
}

fn parents(hierarchy: &Value, tag: &Value) -> Vec<Value> {
    match hierarchy
        .get("parents")
        .and_then(|all| all.as_map()?.get(tag))
    {
        Some(Value::Set(set)) => set.iter().cloned().collect(),
        _ => Vec::new(),
    }
}

fn derives(hierarchy: &Value, child: &Value, parent: &Value) -> bool {
    let above = hierarchy
        .get("ancestors")
        .and_then(|all| all.as_map()?.get(child));
    matches!(above, Some(Value::Set(set)) if set.contains(parent))
}

/// Tells whether `child` is `parent` or derives from it.
///
/// # Errors
/// Any exception thrown while lazy parts are compared.
pub(crate) fn isa(vm: &mut Vm, hierarchy: &Value, child: &Value, parent: &Value) -> Result<bool> {
    if vm.equal(child, parent)? || derives(hierarchy, child, parent) {
        return Ok(true);
    }
    match (child, parent) {
        (Value::Vector(children), Value::Vector(parents)) => {
            if children.len() != parents.len() {
                return Ok(false);
            }
            vm.charge(1)?;
            for (child, parent) in children.iter().zip(parents.iter()) {
                if !isa(vm, hierarchy, child, parent)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Object(child), parent) => Ok(class_is_below(child, parent, hierarchy)),
        _ => Ok(false),
    }
}

fn class_is_below(child: &Object, parent: &Value, hierarchy: &Value) -> bool {
    let above: Vec<Value> = match child {
        Object::Class(class) => {
            let above = class.supers().into_iter().map(Object::Class);
            above.map(Value::from).collect()
        }
        Object::RecordType(own) => above_type(own),
        _ => return false,
    };
    above
        .iter()
        .any(|class| class == parent || derives(hierarchy, class, parent))
}
