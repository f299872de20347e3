//! Functions that macros and special forms expand to: lazy sequences, bindings of vars, exceptions by class.

use std::cell::RefCell;
use std::rc::Rc;

use crate::value::{
    Arity, Class, Delay, DelayState, Exception, Lazy, Map, Native, Object, PMap, PrintOptions,
    Result, Span, Thunk, Value, brief, describe, tracked,
};
use crate::vm::Vm;

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    BRANCH_TAKEN,
    CURRENT_NS,
    DELAY_OF,
    DESTRUCTURE_MAP,
    DESTRUCTURE_REQUIRED,
    LAZY_SEQ_OF,
    NEW_EXCEPTION,
    NO_CASE,
    POP_THREAD_BINDINGS,
    PUSH_THREAD_BINDINGS,
    REFUSE_FORM,
    VAR_SET,
];

const CURRENT_NS: Native = Native {
    name: "-current-ns",
    usage: "(-current-ns)",
    doc: "Returns the current namespace: the value of *ns*.",
    examples: &[("(ns-name (-current-ns))", "user")],
    arity: Arity::exactly(0),
    run: |vm, _| {
        Ok(Value::from(Object::Namespace(
            vm.world().current.borrow().clone(),
        )))
    },
};

const DELAY_OF: Native = Native {
    name: "delay*",
    usage: "(delay* thunk)",
    doc: "Returns a delay of a function of no arguments.",
    examples: &[("@(delay* (fn [] 1))", "1")],
    arity: Arity::exactly(1),
    run: |_, mut args| {
        let state = RefCell::new(DelayState::Pending(Thunk::Call(args.take(0))));
        Ok(tracked(Value::from(Object::Delay(Delay { state }))))
    },
};

const DESTRUCTURE_MAP: Native = Native {
    name: "destructure-map",
    usage: "(destructure-map x)",
    doc: "Returns the map in which a map pattern looks up its keys: x, or a map of the keys and values of the sequence x.",
    examples: &[
        ("(destructure-map '(:a 1))", "{:a 1}"),
        ("(destructure-map '(:a 1 {:a 2}))", "{:a 2}"),
    ],
    arity: Arity::exactly(1),
    run: |vm, mut args| match args.get(0) {
        Value::List(_) | Value::Seq(_) | Value::Lazy(_) => {
            let mut items = vm.items(args.take(0))?;
            if items.len() < 2 {
                return Ok(items
                    .pop()
                    .unwrap_or_else(|| Value::Map(Rc::new(Map::new(Default::default())))));
            }
            // Keyword arguments may end with a map of further ones, which take precedence.
            let last = (items.len() % 2 == 1).then(|| items.pop()).flatten();
            let mut map = PMap::new();
            let mut pairs = items.into_iter();
            while let (Some(key), Some(value)) = (pairs.next(), pairs.next()) {
                vm.realise_key(&key)?;
                map.insert_in_order(key, value);
            }
            for (key, value) in last.map_or(Ok(Vec::new()), |last| trailing(vm, last))? {
                map.insert_in_order(key, value);
            }
            Ok(Value::Map(Rc::new(Map::new(map))))
        }
        _ => Ok(args.take(0)),
    },
};

/// Returns the entries at the end of keyword arguments: a map, or a value that can be added to one.
fn trailing(vm: &mut Vm, last: Value) -> Result<Vec<(Value, Value)>> {
    match &last {
        Value::Nil => Ok(Vec::new()),
        Value::Vector(pair) if pair.len() == 2 => {
            let pair: Vec<Value> = pair.iter().cloned().collect();
            Ok(vec![(pair[0].clone(), pair[1].clone())])
        }
        Value::Map(_) | Value::Record(_) => {
            let entries = vm.items(last)?;
            let parts = |entry: &Value| match entry {
                Value::Vector(pair) => Some((pair.get(0)?.clone(), pair.get(1)?.clone())),
                _ => None,
            };
            Ok(entries.iter().filter_map(parts).collect())
        }
        other => {
            let shown = vm.print(other, PrintOptions::BRIEF)?;
            let message = format!("No value supplied for key: {shown}");
            Err(Exception::new(Class::ILLEGAL_ARGUMENT, "E0313", message)
                .display_message(format!("the keyword argument {shown} has no value"))
                .hint("keyword arguments are keys and values in turn, or one map: (f :key value) or (f {:key value})")
                .into())
        }
    }
}

const DESTRUCTURE_REQUIRED: Native = Native {
    name: "destructure-required",
    usage: "(destructure-required map key)",
    doc: "Returns the value of key in map; throws if the map does not contain it. Implements {:keys! [key]}.",
    examples: &[("(destructure-required {:a 1} :a)", "1")],
    arity: Arity::exactly(2),
    run: |vm, args| {
        if let Some(value) = vm.lookup(args.get(0), args.get(1))? {
            return Ok(value);
        }
        let (key, map) = (brief(args.get(1)), describe(args.get(0)));
        let refused = Exception::new(
            Class::ILLEGAL_ARGUMENT,
            "E0317",
            format!("the required key {key} is missing in {map}"),
        );
        Err(match args.get(0) {
            Value::Map(_) | Value::Record(_) => {
                refused.hint("put a key that may be missing in :keys, not in :keys!")
            }
            _ => refused.hint("the pattern destructures a map, and the value is not a map"),
        }
        .into())
    },
};

const LAZY_SEQ_OF: Native = Native {
    name: "lazy-seq*",
    usage: "(lazy-seq* thunk)",
    doc: "Returns the sequence that a function of no arguments computes when it is first read.",
    examples: &[("(lazy-seq* (fn [] [1 2]))", "(1 2)")],
    arity: Arity::exactly(1),
    run: |_, mut args| Ok(Lazy::new(Thunk::Call(args.take(0)))),
};

const NEW_EXCEPTION: Native = Native {
    name: "new-exception",
    usage: "(new-exception class)\n(new-exception class message)\n(new-exception class message cause)",
    doc: "Returns an exception of a class: implements (Class. message cause).",
    examples: &[(
        "(ex-message (new-exception IllegalStateException \"no\"))",
        "\"no\"",
    )],
    arity: Arity::between(1, 4),
    run: |vm, mut args| {
        let class = match args.get(0) {
            Value::Object(object) => match &**object {
                Object::Class(class) => *class,
                _ => return Err(args.expected(0, "a class of exceptions")),
            },
            _ => return Err(args.expected(0, "a class of exceptions")),
        };
        let message = match args.get(1) {
            Value::Nil => None,
            Value::Exception(exception) => Some(exception.text().into()),
            other => Some(
                vm.print(&other.clone(), PrintOptions::PLAIN)?
                    .into_boxed_str(),
            ),
        };
        let mut exception = Exception::new(class, "", "");
        exception.message = message;
        let last = args.len() - 1;
        if class == Class::EXCEPTION_INFO && args.len() > 2 {
            exception.data = args.take(2);
        }
        if last > 0 && matches!(args.get(last), Value::Exception(_)) {
            exception.cause = args.take(last);
        }
        Ok(Value::from(exception))
    },
};

const REFUSE_FORM: Native = Native {
    name: "refuse-form",
    usage: "(refuse-form code form idx message hint)",
    doc: "Throws a macro's error about the item at idx of a form in its call, or about the form if idx is nil: a code such as \"E0210\", a message, and a hint.",
    examples: &[(
        "(try (refuse-form \"E0210\" [] nil \"no\" \"try\") (catch Exception e (ex-message e)))",
        "\"no\"",
    )],
    arity: Arity::exactly(5),
    run: |_, args| {
        let known = ["E0209", "E0210", "E0213", "E0219", "E0225"];
        let code = args.text(0)?.as_str();
        let code = known
            .iter()
            .find(|known| **known == code)
            .unwrap_or(&"E0209");
        let (form, item) = (args.get(1), args.get(2));
        let place = match item {
            Value::Nil => form.span(),
            _ => {
                let idx = args.index(2)?;
                let inner = form.as_vector().and_then(|vector| vector.get(idx));
                let inner = inner.map_or(Span::NONE, Value::span);
                inner.or(form.item_span(idx)).or(form.span())
            }
        };
        let refused = Exception::new(Class::COMPILER_EXCEPTION, code, args.text(3)?.as_str());
        Err(refused.hint(args.text(4)?.as_str()).at(place).into())
    },
};

const BRANCH_TAKEN: Native = Native {
    name: "branch-taken*",
    usage: "(branch-taken* number)",
    doc: "Records that a branch of a measured program is taken. The compiler writes calls of it.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |vm, args| {
        vm.world().take_branch(args.index(0)?);
        Ok(Value::Nil)
    },
};

const NO_CASE: Native = Native {
    name: "no-case",
    usage: "(no-case value)",
    doc: "Throws the error that a value matches no constant of a case.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let shown = vm.print(
            &args.get(0).clone(),
            PrintOptions {
                readable: false,
                ..PrintOptions::BRIEF
            },
        )?;
        Err(Exception::new(
            Class::ILLEGAL_ARGUMENT,
            "E0314",
            format!("No matching clause: {shown}"),
        )
        .hint("add a default as the last form of the case")
        .into())
    },
};

const POP_THREAD_BINDINGS: Native = Native {
    name: "pop-thread-bindings",
    usage: "(pop-thread-bindings count)",
    doc: "Removes the last count bindings of dynamic vars.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |vm, args| {
        vm.unbind(args.index(0)?);
        Ok(Value::Nil)
    },
};

const PUSH_THREAD_BINDINGS: Native = Native {
    name: "push-thread-bindings",
    usage: "(push-thread-bindings map)",
    doc: "Binds dynamic vars to the values in a map; returns their number.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let bindings = args.map(0)?.clone();
        check_dynamic(vm, &bindings)?;
        if binds_namespace(vm, &bindings) {
            vm.touch_session()?;
        }
        for (var, value) in bindings.iter() {
            if let Value::Var(var) = var {
                vm.bind(var.clone(), value.clone());
            }
        }
        Ok(Value::from(bindings.len()))
    },
};

/// Tells whether `*ns*` is among the vars: the current namespace belongs to the session, not to the evaluation.
fn binds_namespace(vm: &Vm, bindings: &Map) -> bool {
    let ns_var = &vm.world().ns_var;
    let mut vars = bindings.iter().map(|(var, _)| var);
    vars.any(|var| matches!(var, Value::Var(var) if Rc::ptr_eq(var, ns_var)))
}

fn check_dynamic(_: &Vm, bindings: &Map) -> Result<()> {
    for (var, _) in bindings.iter() {
        let Value::Var(var) = var else {
            return Err(crate::vm::wrong_type(var, "a var", 0).into());
        };
        if !var.is_dynamic() {
            let message = format!(
                "Can't dynamically bind non-dynamic var: {}",
                var.qualified()
            );
            return Err(Exception::new(Class::ILLEGAL_STATE, "E0315", message)
                .hint(format!("define it as (def ^:dynamic {} ...)", var.name))
                .into());
        }
    }
    Ok(())
}

const VAR_SET: Native = Native {
    name: "var-set",
    usage: "(var-set var value)",
    doc: "Changes the current binding of a dynamic var.",
    examples: &[],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let Value::Var(var) = args.get(0).clone() else {
            return Err(args.expected(0, "a var"));
        };
        let value = args.take(1);
        if vm.set_binding(&var, value.clone()) {
            return Ok(value);
        }
        // As in a file that Clojure loads, settings of core such as *warn-on-reflection* can be set.
        if var.is_dynamic() && var.namespace == vm.world().core.name {
            vm.touch_session()?;
            var.set_root(value.clone());
            return Ok(value);
        }
        let message = format!(
            "Can't change/establish root binding of: {} with set",
            var.name
        );
        Err(Exception::new(Class::ILLEGAL_STATE, "E0316", message)
            .hint("bind the var with (binding [...] ...) first, or use alter-var-root")
            .into())
    },
};
