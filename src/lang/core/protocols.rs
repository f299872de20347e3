//! Protocols and types: the functions that `defprotocol`, `extend`, `defrecord`, `deftype` and `reify` expand to.
//!
//! A protocol is a map: its name, its method names, and a cell with the implementations by type name. Types are looked
//! up by name, so that a redefined type keeps its implementations.

use std::rc::Rc;

use super::functions::closure;
use super::maps::pair;
use crate::value::{
    Arity, Atom, Class, Exception, Instance, Keyword, Native, NativeClosure, Object, PMap, Record,
    RecordType, Result, Symbol, Value, brief,
};
use crate::vm::{Args, Vm};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    ADD_METHODS,
    DECLARE_METHODS,
    EXTEND,
    EXTENDERS,
    FIELD,
    FIND_IMPL,
    INVOKE_METHOD,
    IS_EXTENDED,
    IS_SATISFIED,
    NEW_INSTANCE,
    NEW_PROTOCOL,
    NEW_RECORD,
    NEW_REIFIED,
    NEW_TYPE,
    PROTOCOL_METHOD,
    RECORD_FROM_MAP,
    SET_FIELD,
];

const ADD_METHODS: Native = Native {
    name: "add-methods",
    usage: "(add-methods type interface methods)",
    doc: "Adds methods of a host interface or of a protocol to a type made by deftype or defrecord: a map of their names, as keywords, to functions.",
    examples: &[],
    arity: Arity::exactly(3),
    run: |vm, mut args| {
        vm.touch_session()?;
        let own = record_type(&args, 0)?.clone();
        own.above.borrow_mut().push(class_or_name(args.get(1)));
        for entry in vm.items(args.take(2))? {
            let (name, method) = pair(&entry)?;
            if let Some(name) = name.as_keyword() {
                let name = Value::symbol(&name.name());
                own.methods.borrow_mut().insert(name, method);
            }
        }
        Ok(Value::Nil)
    },
};

const DECLARE_METHODS: Native = Native {
    name: "declare-methods",
    usage: "(declare-methods names)",
    doc: "Makes (.name object ...) call a method of the object, for each of the symbols.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        vm.change_session()?;
        for name in vm.items(args.take(0))? {
            if let Some(name) = name.as_symbol() {
                vm.world().add_method(&name.name());
            }
        }
        Ok(Value::Nil)
    },
};

const INVOKE_METHOD: Native = Native {
    name: "invoke-method",
    usage: "(invoke-method .name object & args)",
    doc: "Calls a method of an object, as (.name object & args) does.",
    examples: &[(
        "(do (deftype Box [x] Object (toString [_] (str \"<\" x \">\"))) (.toString (->Box 1)))",
        "\"<1>\"",
    )],
    arity: Arity::at_least(2),
    run: |vm, args| {
        let name = args.symbol(0)?;
        let short = name.name();
        let short = short.trim_start_matches('.');
        let object = args.get(1).clone();
        let mut own: Vec<Value> = (1..args.len()).map(|idx| args.get(idx).clone()).collect();
        if let Some(answer) = vm.call_own_method(&object, short, &own[1..])? {
            return Ok(answer);
        }
        if object.is_nil() {
            return Err(of_nil(name));
        }
        // The functions of core that implement methods of the host are loaded when they are first called.
        let world = vm.world().clone();
        if world.core.lookup(name).is_none() {
            world.loader().load_definition(vm, world.core.name, name)?;
        }
        if let Some(var) = world.core.lookup(name) {
            let function = vm.var_value(&var)?;
            return vm.invoke(&function, &mut own);
        }
        if own.len() == 1
            && let Some(field) = field_of(&object, &Value::keyword(short))
        {
            return Ok(field);
        }
        if !world.is_method(name) {
            let given = own.len() - 1;
            let of = crate::value::describe(&object);
            let refused = crate::compiler::unknown_method(vm, name);
            let class = brief(&Class::of(&object));
            let message = match given {
                0 => format!("No matching field found: {short} for class {class}"),
                _ => format!(
                    "No matching method {short} found taking {given} args for class {class}"
                ),
            };
            return Err(refused
                .clojure(message)
                .display_message(format!(
                    "`.{short}` is not defined: {of} has no such method here"
                ))
                .into());
        }
        Err(no_method(
            &Value::symbol(short),
            &Value::symbol("java.lang.Object"),
            &object,
        ))
    },
};

/// Returns the error for calling a method of nil.
#[cold]
fn of_nil(method: Symbol) -> crate::value::Signal {
    let short = method.name();
    let short = short.trim_start_matches('.');
    Exception::new(
        Class::NULL_POINTER,
        "E0301",
        format!("`{method}` is called on nil, which has no methods"),
    )
    .clojure(format!(
        "Cannot invoke \"Object.{short}()\" because the target is null"
    ))
    .argument(1)
    .into()
}

const SET_FIELD: Native = Native {
    name: "set-field-of",
    usage: "(set-field-of x name value)",
    doc: "Sets a field of an instance of a deftype that is marked as mutable, and returns the value: the function behind set! of a field.",
    examples: &[],
    arity: Arity::exactly(3),
    run: |_, mut args| {
        let value = args.take(2);
        if is_mutable(args.get(0), args.get(1))
            && let Value::Object(object) = args.get(0)
            && let Object::Instance(instance) = &**object
            && let Some(Value::Object(cell)) = instance.fields.get(args.get(1))
            && let Object::Volatile(cell) = &**cell
        {
            drop(cell.replace(value.clone()));
            return Ok(value);
        }
        let expected = format!("an object with a mutable field {}", brief(args.get(1)));
        Err(args.expected(0, &expected))
    },
};

const EXTEND: Native = Native {
    name: "extend",
    usage: "(extend type & protocols-and-maps)",
    doc: "Adds implementations of protocols to a type: a map of method names, as keywords, to functions for each.",
    examples: &[],
    arity: Arity::at_least(1),
    run: |vm, args| {
        let key = type_key(vm, args.get(0))?;
        vm.touch_session()?;
        for idx in (1..args.len()).step_by(2) {
            let cell = implementations(&args, idx)?.clone();
            let methods = args.get(idx + 1).clone();
            add_reductions(args.get(0), args.get(idx), &methods);
            let all = cell.value.borrow().clone();
            let all = super::collections::assoc(vm, all, key.clone(), methods)?;
            drop(cell.value.replace(all));
        }
        Ok(Value::Nil)
    },
};

/// Adds the methods of a reduction protocol to a program's type, because `reduce` looks for them there.
fn add_reductions(extended: &Value, protocol: &Value, methods: &Value) {
    let home = protocol_name(protocol)
        .as_symbol()
        .and_then(Symbol::namespace);
    let Value::Object(object) = extended else {
        return;
    };
    if let Object::RecordType(own) = &**object
        && home.as_deref() == Some("clojure.core.protocols")
    {
        for (name, method) in methods.as_map().into_iter().flat_map(|map| map.iter()) {
            if let Some(name) = name.as_keyword() {
                let name = Value::symbol(&name.name());
                own.methods.borrow_mut().insert(name, method.clone());
            }
        }
    }
}

const EXTENDERS: Native = Native {
    name: "extenders",
    usage: "(extenders protocol)",
    doc: "Returns the names of the types that implement a protocol, or nil.",
    examples: &[(
        "(do (defprotocol Shape (area [s])) (extenders Shape))",
        "nil",
    )],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let all = implementations(&args, 0)?.value.borrow().clone();
        let mut names = Vec::new();
        for entry in vm.items(all)? {
            names.push(pair(&entry)?.0);
        }
        Ok(crate::value::SeqView::chunk(names, Value::Nil))
    },
};

const FIELD: Native = Native {
    name: "field-of",
    usage: "(field-of x name)",
    doc: "Returns a field of a record or of an instance of a deftype: the function behind (.-name x).",
    examples: &[(
        "(do (defrecord Point [x y]) (field-of (->Point 1 2) :x))",
        "1",
    )],
    arity: Arity::exactly(2),
    run: |_, args| {
        let found = field_of(args.get(0), args.get(1));
        if let Some(Value::Object(cell)) = &found
            && let Object::Volatile(inner) = &**cell
            && is_mutable(args.get(0), args.get(1))
        {
            return Ok(inner.borrow().clone());
        }
        found.ok_or_else(|| {
            args.expected(0, &format!("something with a field {}", brief(args.get(1))))
        })
    },
};

const FIND_IMPL: Native = Native {
    name: "find-protocol-impl",
    usage: "(find-protocol-impl protocol x)",
    doc: "Returns the map of methods that a protocol has for x, or nil.",
    examples: &[(
        "(do (defprotocol Shape (area [s])) (find-protocol-impl Shape 1))",
        "nil",
    )],
    arity: Arity::exactly(2),
    run: |_, args| {
        let cell = implementations(&args, 0)?;
        Ok(find(cell, args.get(1)).unwrap_or(Value::Nil))
    },
};

const IS_EXTENDED: Native = Native {
    name: "extends?",
    usage: "(extends? protocol type)",
    doc: "Tells whether a type implements a protocol.",
    examples: &[(
        "(do (defprotocol Shape (area [s])) (extends? Shape String))",
        "false",
    )],
    arity: Arity::exactly(2),
    run: |vm, args| {
        let key = type_key(vm, args.get(1))?;
        let all = implementations(&args, 0)?.value.borrow().clone();
        Ok(Value::Bool(
            all.as_map().is_some_and(|all| all.get(&key).is_some()),
        ))
    },
};

const IS_SATISFIED: Native = Native {
    name: "satisfies?",
    usage: "(satisfies? protocol x)",
    doc: "Tells whether x implements a protocol.",
    examples: &[(
        "(do (defprotocol Shape (area [s])) (satisfies? Shape 1))",
        "false",
    )],
    arity: Arity::exactly(2),
    run: |_, args| {
        let cell = implementations(&args, 0)?;
        if find(cell, args.get(1)).is_some() {
            return Ok(Value::Bool(true));
        }
        let name = protocol_name(args.get(0));
        let own = match args.get(1) {
            Value::Object(object) => match &**object {
                Object::Instance(instance) => instance.protocols.contains(&name),
                _ => false,
            },
            _ => false,
        };
        let by_metadata = by_metadata(args.get(0))
            && args.get(1).meta().as_map().is_some_and(|meta| {
                let prefix = name.as_symbol().and_then(Symbol::namespace);
                meta.iter()
                    .any(|(key, _)| key.as_symbol().is_some_and(|key| key.namespace() == prefix))
            });
        Ok(Value::Bool(own || by_metadata))
    },
};

const NEW_INSTANCE: Native = Native {
    name: "new-instance",
    usage: "(new-instance type & values)",
    doc: "Returns an instance of a type made by deftype.",
    examples: &[],
    arity: Arity::at_least(1),
    run: |_, mut args| {
        let instance_type = record_type(&args, 0)?.clone();
        let mut fields = fields(&instance_type, &mut args)?;
        for field in &instance_type.mutable {
            let key = Value::Keyword(*field);
            let value = fields.get(&key).cloned().unwrap_or(Value::Nil);
            fields.insert(key, Value::from(Object::Volatile(value.into())));
        }
        Ok(Value::from(Object::Instance(Instance {
            instance_type,
            fields,
            methods: PMap::new(),
            protocols: crate::value::PSet::new(),
            meta: Value::Nil,
        })))
    },
};

const NEW_PROTOCOL: Native = Native {
    name: "new-protocol",
    usage: "(new-protocol name methods options)",
    doc: "Returns a protocol: the function behind defprotocol.",
    examples: &[],
    arity: Arity::exactly(3),
    run: |_, mut args| {
        let cell = Value::Atom(Rc::new(Atom::new(Value::map([]))));
        Ok(Value::map([
            (Value::keyword("name"), args.take(0)),
            (Value::keyword("sigs"), args.take(1)),
            (Value::keyword("options"), args.take(2)),
            (Value::keyword("impls"), cell),
        ]))
    },
};

const NEW_RECORD: Native = Native {
    name: "new-record",
    usage: "(new-record type & values)",
    doc: "Returns a record with the values of its fields in their order.",
    examples: &[],
    arity: Arity::at_least(1),
    run: |_, mut args| {
        let record_type = record_type(&args, 0)?.clone();
        let fields = fields(&record_type, &mut args)?;
        Ok(Value::Record(Rc::new(Record {
            record_type,
            fields,
            meta: Value::Nil,
        })))
    },
};

const NEW_REIFIED: Native = Native {
    name: "new-reified",
    usage: "(new-reified protocols methods)",
    doc: "Returns an object with its own methods: the function behind reify.",
    examples: &[],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let mut methods = PMap::new();
        for entry in vm.items(args.take(1))? {
            let (name, method) = pair(&entry)?;
            methods.insert(name, method);
        }
        let name = Symbol::new("clojure.core/reify");
        let instance_type = Rc::new(RecordType::new(name, Box::default(), Box::default()));
        for (name, method) in methods.iter() {
            if let Some(name) = name.as_symbol() {
                let name = Value::symbol(&name.name());
                instance_type
                    .methods
                    .borrow_mut()
                    .insert(name, method.clone());
            }
        }
        let protocols: crate::value::PSet = vm.items(args.take(0))?.into_iter().collect();
        let every = ["IObj", "IMeta"].into_iter().filter_map(Class::named);
        instance_type
            .above
            .borrow_mut()
            .extend(every.map(|class| Value::from(Object::Class(class))));
        for protocol in protocols.iter() {
            instance_type
                .above
                .borrow_mut()
                .push(class_or_name(protocol));
        }
        Ok(Value::from(Object::Instance(Instance {
            instance_type,
            fields: PMap::new(),
            methods,
            protocols,
            meta: Value::Nil,
        })))
    },
};

const NEW_TYPE: Native = Native {
    name: "new-type",
    usage: "(new-type name fields)\n(new-type name fields mutable record?)",
    doc: "Returns the type of a record: its name with its namespace, its fields as keywords, those that its methods may set, and whether its values are maps.",
    examples: &[],
    arity: Arity::between(2, 4),
    run: |vm, mut args| {
        let name = args.symbol(0)?;
        let fields = keywords(vm, args.take(1))?;
        let mutable = match args.len() {
            2 => Box::default(),
            _ => keywords(vm, args.take(2))?,
        };
        let mut new = RecordType::new(name, fields, mutable);
        new.is_record = args.len() > 3 && args.get(3).is_truthy();
        Ok(Value::from(Object::RecordType(Rc::new(new))))
    },
};

const PROTOCOL_METHOD: Native = Native {
    name: "protocol-method",
    usage: "(protocol-method protocol name)",
    doc: "Returns the function that calls the method of a protocol for its first argument.",
    examples: &[],
    arity: Arity::exactly(2),
    run: |_, mut args| {
        let cell = Value::Atom(implementations(&args, 0)?.clone());
        let name = args.keyword(1)?;
        let protocol = args.take(0);
        let by_metadata = Value::Bool(by_metadata(&protocol));
        let protocol = protocol_name(&protocol);
        let namespace = protocol.as_symbol().and_then(Symbol::namespace);
        let qualified = Symbol::with_namespace(namespace.as_deref(), &name.name());
        let captured = vec![
            Value::Keyword(name),
            cell,
            Value::Symbol(qualified),
            by_metadata,
            protocol,
        ];
        Ok(closure(
            "protocol method",
            Arity::at_least(1),
            captured,
            call_method,
        ))
    },
};

const RECORD_FROM_MAP: Native = Native {
    name: "record-from-map",
    usage: "(record-from-map type map)",
    doc: "Returns a record with the values of a map; a field that is missing is nil.",
    examples: &[("(do (defrecord Point [x y]) (:y (map->Point {:y 2})))", "2")],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let record_type = record_type(&args, 0)?.clone();
        let mut fields: PMap = record_type
            .fields
            .iter()
            .map(|field| (Value::Keyword(*field), Value::Nil))
            .collect();
        for entry in vm.items(args.take(1))? {
            let (key, value) = pair(&entry)?;
            fields.insert(key, value);
        }
        Ok(Value::Record(Rc::new(Record {
            record_type,
            fields,
            meta: Value::Nil,
        })))
    },
};

/// Returns the class of a known name, else the value unchanged.
fn class_or_name(interface: &Value) -> Value {
    let name = interface.as_symbol().map(|name| name.to_string());
    let name = name
        .as_deref()
        .map(|name| name.rsplit('.').next().unwrap_or(name));
    match name.and_then(Class::named) {
        Some(class) => Value::from(Object::Class(class)),
        None => interface.clone(),
    }
}

fn keywords(vm: &mut Vm, names: Value) -> Result<Box<[Keyword]>> {
    let names = vm.items(names)?;
    Ok(names.iter().filter_map(Value::as_keyword).collect())
}

fn is_mutable(value: &Value, field: &Value) -> bool {
    let own = crate::vm::objects::type_of(value);
    own.zip(field.as_keyword())
        .is_some_and(|(own, field)| own.mutable.contains(&field))
}

fn field_of(value: &Value, name: &Value) -> Option<Value> {
    match value {
        Value::Record(record) => record.get(name).cloned(),
        Value::Object(object) => match &**object {
            Object::Instance(instance) => instance.fields.get(name).cloned(),
            _ => None,
        },
        _ => None,
    }
}

fn implementations<'a>(args: &'a Args<'_>, idx: usize) -> Result<&'a Rc<Atom>> {
    match args.get(idx).get("impls") {
        Some(Value::Atom(cell)) => Ok(cell),
        _ => Err(args.expected(idx, "a protocol")),
    }
}

fn protocol_name(protocol: &Value) -> Value {
    protocol.get("name").cloned().unwrap_or(Value::Nil)
}

fn by_metadata(protocol: &Value) -> bool {
    protocol
        .get("options")
        .and_then(|options| options.get("extend-via-metadata"))
        .is_some_and(Value::is_truthy)
}

fn record_type<'a>(args: &'a Args<'_>, idx: usize) -> Result<&'a Rc<RecordType>> {
    match args.get(idx) {
        Value::Object(object) => match &**object {
            Object::RecordType(record_type) => Ok(record_type),
            _ => Err(args.expected(idx, "the type of a record")),
        },
        _ => Err(args.expected(idx, "the type of a record")),
    }
}

/// Returns the fields with the values that follow the type in the arguments.
fn fields(record_type: &RecordType, args: &mut Args<'_>) -> Result<PMap> {
    let given = args.len() - 1;
    let wanted = record_type.fields.len();
    if given != wanted {
        let arity = Arity {
            min: u8::try_from(wanted).unwrap_or(u8::MAX),
            max: u8::try_from(wanted).ok(),
        };
        return Err(crate::vm::arity_error(&record_type.name.name(), arity, given).into());
    }
    Ok(record_type
        .fields
        .iter()
        .enumerate()
        .map(|(idx, field)| (Value::Keyword(*field), args.take(idx + 1)))
        .collect())
}

/// Returns the name by which a type is looked up: a symbol, or nil for nil.
fn type_key(vm: &mut Vm, value: &Value) -> Result<Value> {
    match value {
        Value::Nil => Ok(Value::Nil),
        Value::Object(object) => match &**object {
            Object::Class(class) => Ok(Value::symbol(class.0.full_name)),
            Object::RecordType(record_type) => Ok(Value::Symbol(record_type.name)),
            _ => Err(crate::vm::wrong_type(value, "a class or record type", 0).into()),
        },
        // The interface of a protocol denotes all types that implement it inline.
        protocol if protocol.get("impls").is_some() => Ok(protocol_name(protocol)),
        _ => {
            vm.charge(1)?;
            Err(crate::vm::wrong_type(value, "a class, a record type or nil", 0).into())
        }
    }
}

/// Returns the implementations for a value: of its own type, or of the nearest superclass.
fn find(cell: &Atom, value: &Value) -> Option<Value> {
    let all = cell.value.borrow();
    let all = all.as_map()?;
    if all.is_empty() {
        return None;
    }
    let above = |names: &[&str]| {
        names
            .iter()
            .filter_map(|name| Class::named(name))
            .find_map(|class| all.get(&Value::symbol(class.0.full_name)))
    };
    let declared = |own: &crate::value::RecordType| {
        let declared = own.above.borrow();
        declared.iter().find_map(|above| match above {
            Value::Object(object) => match &**object {
                Object::Class(class) => std::iter::once(*class)
                    .chain(class.supers())
                    .filter(|class| class.0.name != "Object")
                    .find_map(|class| all.get(&Value::symbol(class.0.full_name))),
                _ => None,
            },
            Value::Map(_) => all.get(&protocol_name(above)),
            name => all.get(name),
        })
    };
    let found = match value {
        Value::Nil => return all.get(&Value::Nil).cloned(),
        Value::Record(record) => all
            .get(&Value::Symbol(record.record_type.name))
            .or_else(|| declared(&record.record_type))
            .or_else(|| {
                above(&[
                    "IRecord",
                    "IPersistentMap",
                    "Associative",
                    "Map",
                    "IPersistentCollection",
                    "Seqable",
                ])
            }),
        Value::Object(object) if let Object::Instance(instance) = &**object => all
            .get(&Value::Symbol(instance.instance_type.name))
            .or_else(|| declared(&instance.instance_type)),
        value => {
            let class = match Class::of(value) {
                Value::Object(object) => match &*object {
                    Object::Class(class) => *class,
                    _ => return None,
                },
                _ => return None,
            };
            all.get(&Value::symbol(class.0.full_name)).or_else(|| {
                class
                    .supers()
                    .into_iter()
                    .find_map(|class| all.get(&Value::symbol(class.0.full_name)))
            })
        }
    };
    found.or_else(|| above(&["Object"])).cloned()
}

fn call_method(vm: &mut Vm, own: &NativeClosure, mut args: Args<'_>) -> Result<Value> {
    let [name, Value::Atom(cell), qualified, by_metadata, protocol] = &own.captured[..] else {
        return Ok(Value::Nil);
    };
    let target = args.get(0);
    if let Value::Object(object) = target
        && let Object::Instance(instance) = &**object
        && let Some(method) = instance.methods.get(qualified)
    {
        let method = method.clone();
        return vm.invoke(&method, args.as_mut_slice());
    }
    if by_metadata.is_truthy()
        && let Some(method) = target.meta().as_map().and_then(|meta| meta.get(qualified))
    {
        let method = method.clone();
        return vm.invoke(&method, args.as_mut_slice());
    }
    let method = find(cell, target).and_then(|methods: Value| {
        methods
            .as_map()
            .and_then(|methods| methods.get(name).cloned())
    });
    match method {
        Some(method) => vm.invoke(&method, args.as_mut_slice()),
        None => Err(no_method(qualified, protocol, target)),
    }
}

#[cold]
fn no_method(method: &Value, protocol: &Value, target: &Value) -> crate::value::Signal {
    let class = match Class::of(target) {
        Value::Nil => "nil".to_owned(),
        class => brief(&class),
    };
    let short = method
        .as_symbol()
        .map_or_else(String::new, |method| method.name().to_string());
    Exception::new(
        Class::ILLEGAL_ARGUMENT,
        "E0350",
        format!(
            "No implementation of method: :{short} of protocol: #'{} found for class: {class}",
            brief(protocol)
        ),
    )
    .argument(0)
    .got(target)
    .display_message(format!(
        "`{short}` of the protocol {} has no implementation for {}",
        brief(protocol),
        crate::value::describe(target)
    ))
    .hint(match target {
        Value::Nil => "extend the protocol to nil, or check where the nil comes from".to_owned(),
        Value::Map(_) => format!(
            "is it a plain map instead of a record? (extend-protocol {} ...) adds an implementation",
            brief(protocol)
        ),
        _ => format!(
            "(extend-protocol {} Type ({short} [this] ...)) adds an implementation",
            brief(protocol)
        ),
    })
    .into()
}
