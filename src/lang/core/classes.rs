//! Class tokens: the kinds of values by their host names.

use std::rc::Rc;

use crate::value::{Arity, Class, Native, Object, RecordType, Result, Value};
use crate::vm::{Args, objects};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[BASES, CAST, CLASS, IS_INSTANCE, IS_SUBCLASS, SUPERS, TYPE];

const BASES: Native = Native {
    name: "bases",
    usage: "(bases class)",
    doc: "Returns the direct superclasses of a class, or nil.",
    examples: &[(
        "(bases ArithmeticException)",
        "(java.lang.RuntimeException)",
    )],
    arity: Arity::exactly(1),
    run: |_, args| {
        if let Some(above) = declared_above(args.get(0)) {
            return Ok(Value::list(above));
        }
        let class = class(&args, 0)?;
        let above = class.map_or_else(Vec::new, Class::supers);
        if above.is_empty() {
            return Ok(Value::Nil);
        }
        let direct = match class {
            // Classes of exceptions form a chain; those of values list all their superclasses.
            Some(class) if Class::THROWABLES.contains(&class) => &above[..1],
            _ => &above[..],
        };
        let classes = direct.iter().copied().map(Object::Class);
        Ok(Value::list(classes.map(Value::from)))
    },
};

const CAST: Native = Native {
    name: "cast",
    usage: "(cast class x)",
    doc: "Returns x if it is an instance of class, else throws.",
    examples: &[("(cast Number 1)", "1")],
    arity: Arity::exactly(2),
    run: |_, mut args| {
        if is_instance(&args, args.get(1))? {
            return Ok(args.take(1));
        }
        let class = crate::value::brief(args.get(0));
        Err(args.expected(1, &format!("an instance of {class}")))
    },
};

const CLASS: Native = Native {
    name: "class",
    usage: "(class x)",
    doc: "Returns the class of x; nil for nil.",
    examples: &[("(class 1)", "java.lang.Long"), ("(class nil)", "nil")],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Class::of(args.get(0))),
};

const IS_INSTANCE: Native = Native {
    name: "instance?",
    usage: "(instance? class x)",
    doc: "Tells whether x is an instance of a class or record type.",
    examples: &[
        ("(instance? Number 1)", "true"),
        ("(instance? String 1)", "false"),
    ],
    arity: Arity::exactly(2),
    run: |_, args| Ok(Value::Bool(is_instance(&args, args.get(1))?)),
};

const IS_SUBCLASS: Native = Native {
    name: "subclass?",
    usage: "(subclass? child parent)",
    doc: "Tells whether a class equals another one or is one of its subclasses.",
    examples: &[("(subclass? Long Number)", "true")],
    arity: Arity::exactly(2),
    run: |_, args| {
        let is = match (class(&args, 0)?, class(&args, 1)?) {
            (Some(child), Some(parent)) => child.is_below(parent),
            (None, Some(_)) => {
                declared_above(args.get(0)).is_some_and(|above| above.contains(args.get(1)))
            }
            _ => super::hash::identical(args.get(0), args.get(1)),
        };
        Ok(Value::Bool(is))
    },
};

const SUPERS: Native = Native {
    name: "supers",
    usage: "(supers class)",
    doc: "Returns the set of all superclasses of a class, or nil.",
    examples: &[("(contains? (supers Long) Number)", "true")],
    arity: Arity::exactly(1),
    run: |_, args| {
        if let Some(above) = declared_above(args.get(0)) {
            return Ok(Value::set(above));
        }
        let above = class(&args, 0)?.map_or_else(Vec::new, Class::supers);
        if above.is_empty() {
            return Ok(Value::Nil);
        }
        Ok(Value::set(
            above
                .into_iter()
                .map(|class| Value::from(Object::Class(class))),
        ))
    },
};

const TYPE: Native = Native {
    name: "type",
    usage: "(type x)",
    doc: "Returns the :type of the metadata of x, or its class.",
    examples: &[
        ("(type (with-meta [] {:type :a/b}))", ":a/b"),
        (r#"(type "")"#, "java.lang.String"),
    ],
    arity: Arity::exactly(1),
    run: |_, args| {
        let value = args.get(0);
        match value.meta().get("type") {
            Some(named) if !named.is_nil() => Ok(named.clone()),
            _ => Ok(Class::of(value)),
        }
    },
};

/// Returns a class argument; `None` for the type of a record.
fn class(args: &Args<'_>, idx: usize) -> Result<Option<Class>> {
    match args.get(idx) {
        Value::Object(object) => match &**object {
            Object::Class(class) => Ok(Some(*class)),
            Object::RecordType(_) => Ok(None),
            _ => Err(args.expected(idx, "a class")),
        },
        _ => Err(args.expected(idx, "a class")),
    }
}

/// Returns the interfaces that a program's type declares, and `Object`.
fn declared_above(value: &Value) -> Option<Vec<Value>> {
    let Value::Object(object) = value else {
        return None;
    };
    let Object::RecordType(own) = &**object else {
        return None;
    };
    Some(above_type(own))
}

/// Returns the interfaces that a program's type declares, those of every record, and `Object`.
pub(super) fn above_type(own: &RecordType) -> Vec<Value> {
    let mut above = own.above.borrow().clone();
    let host: &[&str] = if own.is_record {
        &RECORD_CLASSES
    } else {
        &["IType", "Object"]
    };
    for class in host.iter().filter_map(|name| Class::named(name)) {
        let class = Value::from(Object::Class(class));
        if !above.contains(&class) {
            above.push(class);
        }
    }
    above
}

/// The superclasses of each record.
const RECORD_CLASSES: [&str; 12] = [
    "IRecord",
    "IPersistentMap",
    "Associative",
    "IPersistentCollection",
    "Seqable",
    "Counted",
    "ILookup",
    "IObj",
    "IMeta",
    "IHashEq",
    "Map",
    "Object",
];

fn is_instance(args: &Args<'_>, value: &Value) -> Result<bool> {
    match args.get(0) {
        Value::Object(object) => match &**object {
            Object::Class(class) => Ok(class.holds(value) || objects::implements(value, *class)),
            Object::RecordType(of) => {
                Ok(objects::type_of(value).is_some_and(|own| Rc::ptr_eq(own, of)))
            }
            _ => Err(args.expected(0, "a class")),
        },
        protocol => of_protocol(protocol, value).ok_or_else(|| args.expected(0, "a class")),
    }
}

/// Tells whether the program's type of a value implements a protocol, like the protocol's interface on the host; `None`
/// if the class is not a protocol.
fn of_protocol(protocol: &Value, value: &Value) -> Option<bool> {
    let (name, cell) = (protocol.get("name")?, protocol.get("impls")?);
    let Value::Atom(cell) = cell else {
        return None;
    };
    let Some(own) = objects::type_of(value) else {
        return Some(false);
    };
    let reified = match value {
        Value::Object(object) => match &**object {
            Object::Instance(instance) => instance.protocols.contains(name),
            _ => false,
        },
        _ => false,
    };
    let all = cell.value.borrow();
    let listed = all
        .as_map()
        .is_some_and(|all| all.get(&Value::Symbol(own.name)).is_some());
    Some(reified || listed)
}
