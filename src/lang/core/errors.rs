//! Exceptions as data.

use std::rc::Rc;

use crate::value::{Arity, Class, Exception, Native, Result, Value};
use crate::vm::{Args, Vm};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[EX_CAUSE, EX_DATA, EX_INFO, EX_MESSAGE, THROWABLE_MAP];

const EX_CAUSE: Native = Native {
    name: "ex-cause",
    usage: "(ex-cause ex)",
    doc: "Returns the cause of an exception, or nil.",
    examples: &[(r#"(ex-cause (ex-info "a" {}))"#, "nil")],
    arity: Arity::exactly(1),
    run: |_, args| match args.get(0) {
        Value::Exception(exception) => Ok(exception.cause.clone()),
        _ => Ok(Value::Nil),
    },
};

const EX_DATA: Native = Native {
    name: "ex-data",
    usage: "(ex-data ex)",
    doc: "Returns the map that an exception carries, or nil.",
    examples: &[
        (r#"(ex-data (ex-info "a" {:b 1}))"#, "{:b 1}"),
        ("(ex-data nil)", "nil"),
    ],
    arity: Arity::exactly(1),
    run: |_, args| match args.get(0) {
        Value::Exception(exception) => Ok(exception.data.clone()),
        _ => Ok(Value::Nil),
    },
};

const EX_INFO: Native = Native {
    name: "ex-info",
    usage: "(ex-info message data)\n(ex-info message data cause)",
    doc: "Returns an exception with a message and a map of data, to be thrown.",
    examples: &[(
        r#"(ex-message (ex-info "too late" {:by 3}))"#,
        r#""too late""#,
    )],
    arity: Arity::between(2, 3),
    run: |_, mut args| {
        let data = match args.get(1) {
            Value::Map(_) | Value::Record(_) => args.take(1),
            _ => return Err(args.expected(1, "a map")),
        };
        let message = match args.get(0) {
            Value::Nil => None,
            _ => Some(args.text(0)?.as_str().into()),
        };
        if !matches!(args.get(2), Value::Nil | Value::Exception(_)) {
            return Err(args.expected(2, "an exception"));
        }
        let mut exception = Exception::new(Class::EXCEPTION_INFO, "", "");
        exception.message = message;
        exception.data = data;
        exception.cause = args.take(2);
        Ok(Value::Exception(Rc::new(exception)))
    },
};

const EX_MESSAGE: Native = Native {
    name: "ex-message",
    usage: "(ex-message ex)",
    doc: "Returns the message of an exception, or nil.",
    examples: &[
        (r#"(ex-message (ex-info "a" {}))"#, r#""a""#),
        ("(ex-message 1)", "nil"),
    ],
    arity: Arity::exactly(1),
    run: |_, args| match args.get(0) {
        Value::Exception(exception) => {
            Ok(exception.message.as_deref().map_or(Value::Nil, Value::from))
        }
        _ => Ok(Value::Nil),
    },
};

const THROWABLE_MAP: Native = Native {
    name: "Throwable->map",
    usage: "(Throwable->map ex)",
    doc: "Returns an exception as a map: :via the chain of causes, :cause, :data and :trace.",
    examples: &[(r#"(:cause (Throwable->map (ex-info "a" {})))"#, r#""a""#)],
    arity: Arity::exactly(1),
    run: throwable_to_map,
};

fn throwable_to_map(vm: &mut Vm, args: Args<'_>) -> Result<Value> {
    let Value::Exception(exception) = args.get(0) else {
        return Err(args.expected(0, "an exception"));
    };
    let mut via = Vec::new();
    let mut root = exception.clone();
    loop {
        vm.charge(1)?;
        via.push(link(&root));
        let cause = match &root.cause {
            Value::Exception(cause) => cause.clone(),
            _ => break,
        };
        root = cause;
    }
    let mut entries = vec![
        (Value::keyword("via"), Value::vector(via)),
        (Value::keyword("trace"), trace(exception)),
    ];
    if let Some(message) = &root.message {
        entries.push((Value::keyword("cause"), Value::from(&**message)));
    }
    if !root.data.is_nil() {
        entries.push((Value::keyword("data"), root.data.clone()));
    }
    Ok(Value::map(entries))
}

fn link(exception: &Exception) -> Value {
    let mut entries = vec![(
        Value::keyword("type"),
        Value::symbol(exception.class.0.full_name),
    )];
    if let Some(message) = &exception.message {
        entries.push((Value::keyword("message"), Value::from(&**message)));
    }
    if !exception.data.is_nil() {
        entries.push((Value::keyword("data"), exception.data.clone()));
    }
    if !exception.code.is_empty() {
        entries.push((Value::keyword("code"), Value::keyword(exception.code)));
    }
    Value::map(entries)
}

fn trace(exception: &Exception) -> Value {
    let origin = exception.origin.borrow();
    Value::vector(
        origin
            .trace
            .iter()
            .map(|frame| Value::vector([Value::symbol(&frame.function)])),
    )
}
