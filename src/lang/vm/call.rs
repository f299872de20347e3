//! Calling values: natives, functions created by natives, and collections and keywords that look up their argument.

use std::borrow::Cow;
use std::rc::Rc;

use super::{Args, Vm};
use crate::value::{Arity, Class, Exception, Native, Object, PrintOptions, Result, Signal, Value};

impl Vm {
    /// Calls any callable value.
    ///
    /// # Errors
    /// Any exception that it throws; an exception if it is not callable or takes another number of arguments.
    pub fn call(&mut self, function: &Value, args: &[Value]) -> Result<Value> {
        match args {
            [] => self.invoke(function, &mut []),
            [a] => self.invoke(function, &mut [a.clone()]),
            [a, b] => self.invoke(function, &mut [a.clone(), b.clone()]),
            args => self.invoke(function, &mut args.to_vec()),
        }
    }

    /// Calls any callable value with arguments that it may move out: the contents of `args` are unspecified afterwards.
    /// A collection that is not shared can then be changed in place.
    ///
    /// # Errors
    /// As [`Vm::call`].
    pub fn invoke(&mut self, function: &Value, args: &mut [Value]) -> Result<Value> {
        match function {
            Value::Native(native) => self.call_native(native, args),
            Value::Fn(_) => self.call_closure(function, args),
            other => self
                .call_other(other, args)
                .map_err(|signal| blame(name_of_callee(other), signal)),
        }
    }

    /// Calls a native after checking the limits, or the current value of its var.
    #[cold]
    #[inline(never)]
    pub(super) fn call_special(
        &mut self,
        native: &'static Native,
        args: Args<'_>,
    ) -> Result<Value> {
        self.finish_native(Ok(()))?;
        match self.world().has_replaced.get() {
            true => self.call_replaced(native, args),
            false => (native.run)(self, args),
        }
    }

    /// Calls the current value of a native's var: `with-redefs` is active somewhere.
    #[cold]
    #[inline(never)]
    pub(super) fn call_replaced(
        &mut self,
        native: &'static Native,
        mut args: Args<'_>,
    ) -> Result<Value> {
        match self.world().replacement(native) {
            Some(function) => self.invoke(&function, args.as_mut_slice()),
            None => (native.run)(self, args),
        }
    }

    /// Replaces a value with the result of calling a function with it, as natives do for each item.
    ///
    /// # Errors
    /// As [`Vm::call`].
    #[inline]
    pub(crate) fn update(&mut self, function: &Value, item: &mut Value) -> Result<()> {
        if let Value::Fn(_) = function {
            return self.call_in_place(function, [item]);
        }
        let arg = std::mem::replace(item, Value::Nil);
        *item = self.invoke(function, &mut [arg])?;
        Ok(())
    }

    /// Replaces a value with the result of calling a function with it and another one.
    ///
    /// # Errors
    /// As [`Vm::call`].
    #[inline]
    pub(crate) fn update_with(
        &mut self,
        function: &Value,
        so_far: &mut Value,
        mut item: Value,
    ) -> Result<()> {
        if let Value::Fn(_) = function {
            return self.call_in_place(function, [so_far, &mut item]);
        }
        let before = std::mem::replace(so_far, Value::Nil);
        *so_far = self.invoke(function, &mut [before, item])?;
        Ok(())
    }

    /// Tells whether a callable value returns neither nil nor false for a value.
    ///
    /// # Errors
    /// As [`Vm::call`].
    #[inline]
    pub(crate) fn test(&mut self, function: &Value, arg: &Value) -> Result<bool> {
        match function {
            Value::Fn(_) => self.test_closure(function, arg),
            other => Ok(self.invoke(other, &mut [arg.clone()])?.is_truthy()),
        }
    }

    /// Returns the number of arguments that a function takes before its rest parameter.
    pub(crate) fn fixed_before_rest(&self, function: &Value) -> Option<usize> {
        match function {
            Value::Fn(closure) => closure.proto.fixed_before_rest(),
            _ => None,
        }
    }

    /// Calls a closure with a rest parameter; `args` are the fixed arguments and the non-empty sequence of the rest.
    ///
    /// # Errors
    /// As [`Vm::call`].
    pub(crate) fn invoke_with_rest(
        &mut self,
        function: &Value,
        args: &mut [Value],
    ) -> Result<Value> {
        self.rest_is_given = true;
        let result = self.call_closure(function, args);
        // The call may have failed before it checked the flag.
        self.rest_is_given = false;
        result
    }

    /// Calls a native function.
    #[inline]
    pub(crate) fn call_native(
        &mut self,
        native: &'static Native,
        args: &mut [Value],
    ) -> Result<Value> {
        if !native.arity.takes(args.len()) {
            return Err(wrong_arity(native, args.len()).into());
        }
        let count = args.len();
        let result = (native.run)(self, Args::new(args));
        self.finish_native(result)
            .map_err(|signal| blame_native(native, count, signal))
    }

    /// Calls a value that is neither a native nor a closure over bytecode.
    pub(crate) fn call_other(&mut self, function: &Value, args: &mut [Value]) -> Result<Value> {
        let lookup = |name: &str, max: u8| -> Result<()> {
            let arity = Arity::between(1, max);
            if arity.takes(args.len()) {
                return Ok(());
            }
            Err(arity_error(name, arity, args.len()).into())
        };
        match function {
            Value::Keyword(_) => {
                lookup("a keyword as a function", 2)?;
                let [coll, default @ ..] = args else {
                    return Ok(Value::Nil);
                };
                Ok(self
                    .lookup(coll, function)?
                    .unwrap_or_else(|| default.first().cloned().unwrap_or(Value::Nil)))
            }
            Value::Symbol(_) | Value::Name(_) => {
                lookup("a symbol as a function", 2)?;
                Ok(self
                    .lookup(&args[0], function)?
                    .unwrap_or_else(|| args.get(1).cloned().unwrap_or(Value::Nil)))
            }
            Value::Map(_) => {
                lookup("a map as a function", 2)?;
                Ok(self
                    .lookup(function, &args[0])?
                    .unwrap_or_else(|| args.get(1).cloned().unwrap_or(Value::Nil)))
            }
            Value::Set(_) => {
                lookup("a set as a function", 1)?;
                Ok(self.lookup(function, &args[0])?.unwrap_or(Value::Nil))
            }
            Value::Vector(vector) => {
                lookup("a vector as a function", 1)?;
                let Some(idx) = args[0].as_index() else {
                    return Err(super::wrong_type(&args[0], "an index", 0)
                        .of_class(Class::ILLEGAL_ARGUMENT)
                        .into());
                };
                usize::try_from(idx)
                    .ok()
                    .and_then(|idx| vector.get(idx))
                    .cloned()
                    .ok_or_else(|| out_of_bounds(idx, vector.len()).argument(0).into())
            }
            Value::Var(var) => match self.var_value(var).ok() {
                Some(root) => self.invoke(&root, args),
                None => Err(Exception::new(
                    Class::ILLEGAL_STATE,
                    "E0306",
                    format!("#'{} is not bound to a value yet", var.qualified()),
                )
                .into()),
            },
            Value::Object(object) => match &**object {
                Object::Function(closure) => {
                    if !closure.arity.takes(args.len()) {
                        return Err(arity_error(&closure.name, closure.arity, args.len()).into());
                    }
                    (closure.run)(self, closure, Args::new(args))
                }
                Object::Transient(inner) => {
                    // The borrow ends before anything else runs.
                    let inner = inner.borrow().clone();
                    match inner {
                        Some(coll) => self.call_transient(&coll, args),
                        None => Err(transient_is_done()),
                    }
                }
                _ => self.call_object(function, args),
            },
            Value::Record(_) => self.call_object(function, args),
            _ => Err(self.not_callable(function)),
        }
    }

    /// Calls the method `invoke` of an object.
    fn call_object(&mut self, function: &Value, args: &mut [Value]) -> Result<Value> {
        match self.call_own_method(function, "invoke", args)? {
            Some(answer) => Ok(answer),
            None => Err(self.not_callable(function)),
        }
    }

    /// Calls a transient like its collection, except that a transient set accepts a default value.
    fn call_transient(&mut self, coll: &Value, args: &mut [Value]) -> Result<Value> {
        match coll {
            Value::Set(_) if args.len() == 2 => {
                let found = self.lookup(coll, &args[0])?;
                Ok(found.unwrap_or_else(|| args[1].clone()))
            }
            _ => self.call_other(coll, args),
        }
    }

    /// Looks up a key in any value, as `get` does; `None` if it is absent.
    ///
    /// # Errors
    /// Any exception thrown while a lazy key is computed.
    pub fn lookup(&mut self, coll: &Value, key: &Value) -> Result<Option<Value>> {
        if !matches!(coll, Value::Vector(_) | Value::Text(_)) {
            self.realise_key(key)?;
        }
        let index = || key.as_index().and_then(|idx| usize::try_from(idx).ok());
        Ok(match coll {
            Value::Map(map) => match map.entries().sorted() {
                None => map.get(key).cloned(),
                Some(sorted) => self.find_sorted(sorted, key)?.map(|entry| entry.1),
            },
            Value::Set(set) => match set.items().sorted() {
                None => set.items().get(key).cloned(),
                Some(sorted) => self.find_sorted(sorted, key)?.map(|entry| entry.0),
            },
            Value::Record(record) => record.get(key).cloned(),
            Value::Vector(vector) => index().and_then(|idx| vector.get(idx).cloned()),
            Value::Text(text) => index().and_then(|idx| text.char_at(idx)).map(Value::Char),
            Value::Object(object) => match &**object {
                Object::Transient(inner) => {
                    // The borrow ends before anything else runs: the inner value is a plain collection.
                    let inner = inner.borrow().clone();
                    match inner {
                        Some(coll) => return self.lookup(&coll, key),
                        None => return Err(transient_is_done()),
                    }
                }
                Object::Tagged { tag, form } => match key.as_keyword() {
                    Some(key) if key.is("tag") => Some(Value::Symbol(*tag)),
                    Some(key) if key.is("form") => Some(form.clone()),
                    _ => None,
                },
                Object::Conditional { form, splicing } => match key.as_keyword() {
                    Some(key) if key.is("form") => Some(form.clone()),
                    Some(key) if key.is("splicing?") => Some(Value::Bool(*splicing)),
                    _ => None,
                },
                Object::Array(array) => index().and_then(|idx| array.get(idx)),
                Object::Bytes(bytes) => index()
                    .and_then(|idx| bytes.get(idx))
                    .map(|byte| Value::Int(i64::from(*byte as i8))),
                Object::Instance(_) => return self.look_up_in_object(coll, key),
                _ => None,
            },
            _ => None,
        })
    }

    /// Computes the lazy parts of a value to be used as a key. Cheap for values that cannot have any.
    ///
    /// # Errors
    /// Any exception that the computation throws.
    #[inline(always)]
    pub fn realise_key(&mut self, key: &Value) -> Result<()> {
        match may_be_lazy(key) {
            true => self.realise_collection(key),
            false => Ok(()),
        }
    }

    fn realise_collection(&mut self, key: &Value) -> Result<()> {
        match key {
            // Keys of a few scalars are common, and checking them is cheaper than hashing.
            Value::Vector(vector) if vector.len() <= 8 && !vector.iter().any(may_be_lazy) => Ok(()),
            key => self.realise(key),
        }
    }

    #[cold]
    pub(crate) fn not_callable(&mut self, function: &Value) -> crate::value::Signal {
        let shown = self
            .print(function, PrintOptions::BRIEF)
            .unwrap_or_else(|_| "a value".to_owned());
        let exception = match function {
            Value::Nil => Exception::new(Class::NULL_POINTER, "E0304", "nil cannot be called")
                .hint("the expression in function position gave nil: is the name right?"),
            other => Exception::new(
                Class::CLASS_CAST,
                "E0304",
                format!("{shown} is {}, which cannot be called", other.kind()),
            )
            .hint(match other {
                Value::List(_) | Value::Seq(_) | Value::Lazy(_) => {
                    "an item of a sequence is taken with (nth coll index); a list of values is written '(1 2) or [1 2]"
                }
                Value::Text(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) => {
                    "the first form in parentheses is called: delete them, or put a function first"
                }
                _ => "the first form in parentheses is called: is it the one that you mean?",
            }),
        };
        exception.at_function().got(function).into()
    }
}

/// Records that a native failed, unless the failure is in code that it called.
#[cold]
#[inline(never)]
fn blame_native(native: &'static Native, count: usize, mut signal: Signal) -> Signal {
    if let Signal::Throw(exception) = &mut signal
        && let Some(exception) = Rc::get_mut(exception)
        && exception.origin.get_mut().is_fresh()
    {
        exception.blame_native(native, count);
    }
    blame(native.name, signal)
}

/// Records that a native failed, unless the failure is in code that it called.
#[cold]
#[inline(never)]
fn blame(function: impl Into<Cow<'static, str>>, mut signal: Signal) -> Signal {
    if let Signal::Throw(exception) = &mut signal
        && let Some(exception) = Rc::get_mut(exception)
        && exception.origin.get_mut().trace.is_empty()
    {
        let function = function.into();
        if exception.origin.get_mut().natives.is_empty() {
            exception.blame(&function, 0);
        }
        exception.origin.get_mut().natives.push(function);
    }
    signal
}

/// Returns the callee's name for messages, or its kind.
fn name_of_callee(function: &Value) -> Cow<'static, str> {
    if let Value::Object(object) = function
        && let Object::Function(closure) = &**object
    {
        return closure.name.clone();
    }
    Cow::Borrowed(function.kind())
}

/// Tells whether a value may contain unrealised parts.
#[inline]
fn may_be_lazy(value: &Value) -> bool {
    matches!(
        value,
        Value::Lazy(_)
            | Value::List(_)
            | Value::Seq(_)
            | Value::Vector(_)
            | Value::Map(_)
            | Value::Set(_)
            | Value::Record(_)
    )
}

/// Returns the exception for a native called with a wrong number of arguments.
#[cold]
pub(crate) fn wrong_arity(native: &Native, got: usize) -> Exception {
    arity_error(native.name, native.arity, got).hint(format!(
        "it is called as {}",
        native.usage.lines().collect::<Vec<_>>().join(" or ")
    ))
}

/// Returns the exception for a function called with a wrong number of arguments.
#[cold]
pub(crate) fn arity_error(name: &str, arity: Arity, got: usize) -> Exception {
    Exception::new(
        Class::ARITY,
        "E0305",
        format!("Wrong number of args ({got}) passed to: {name}"),
    )
    .display_message(format!("{name} takes {arity}, and got {got}"))
}

/// Returns the exception for an index outside of a collection of `count` items.
#[cold]
pub(crate) fn out_of_bounds(idx: i64, count: usize) -> Exception {
    let items = if count == 1 { "item" } else { "items" };
    Exception::new(
        Class::INDEX_OUT_OF_BOUNDS,
        "E0303",
        format!("index {idx} is out of bounds: there are {count} {items}"),
    )
    .hint(match count {
        0 => "the collection is empty: check it with (seq coll) first".to_owned(),
        1 => "the only position is 0; (get coll index) returns nil for any other".to_owned(),
        _ => format!(
            "positions go from 0 to {}; (get coll index) returns nil for any other",
            count - 1
        ),
    })
}

/// Returns the error for a use of a transient after `persistent!`.
#[cold]
pub(crate) fn transient_is_done() -> crate::value::Signal {
    Exception::new(
        Class::ILLEGAL_ACCESS,
        "E0311",
        "this transient was used after persistent!",
    )
    .hint("use what conj!, assoc! and persistent! return, never the transient itself")
    .into()
}
