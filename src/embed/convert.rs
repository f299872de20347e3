//! Typed arguments and results of functions written in Rust.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::data::{from_value, to_value};
use flowstone_lang::value::{
    BigInt, Class, Exception, Keyword, Result, Signal, Symbol, Value, brief,
};
use flowstone_lang::vm::{Args, Vm, wrong_type};

/// The reason why a value does not fit a parameter.
#[derive(Debug)]
pub enum Mismatch {
    /// The value has another kind.
    Unfit {
        /// A description of what is expected: `an integer`.
        expected: String,
        /// The value that was given.
        got: Value,
        /// The path inside the argument, outermost first; empty for the argument itself.
        path: Vec<String>,
    },
    /// Computing the value threw an exception, or was stopped.
    Signal(Signal),
}

impl Mismatch {
    /// Returns the mismatch of a value that should have been something else.
    pub fn new(expected: impl Into<String>, got: &Value) -> Mismatch {
        Mismatch::Unfit {
            expected: expected.into(),
            got: got.clone(),
            path: Vec::new(),
        }
    }

    /// Adds a step to the path: the value was found inside another one.
    #[must_use]
    pub fn at(mut self, step: impl Into<String>) -> Mismatch {
        if let Mismatch::Unfit { path, .. } = &mut self {
            path.insert(0, step.into());
        }
        self
    }

    /// Converts to the exception of a call whose argument `idx` (from 0) it was.
    pub fn into_signal(self, idx: usize) -> Signal {
        match self {
            Mismatch::Signal(signal) => signal,
            Mismatch::Unfit {
                expected,
                got,
                path,
            } if path.is_empty() => wrong_type(&got, &expected, idx).into(),
            Mismatch::Unfit {
                expected,
                got,
                path,
            } => Exception::new(
                Class::CLASS_CAST,
                "E0301",
                format!(
                    "expected {expected}, got {} ({}) at [{}] in argument {}",
                    brief(&got),
                    got.kind(),
                    path.join(" "),
                    idx + 1
                ),
            )
            .argument(idx)
            .into(),
        }
    }
}

impl From<Signal> for Mismatch {
    fn from(signal: Signal) -> Self {
        Mismatch::Signal(signal)
    }
}

/// A type to which a value can be converted: the parameters of functions written in Rust.
pub trait FromValue: Sized {
    /// Whether a parameter of this type may be omitted at the end of a call; it is then nil.
    const IS_OPTIONAL: bool = false;

    /// Converts a value to this type. Lazy sequences are computed as far as needed.
    ///
    /// # Errors
    /// A description of what was expected, or the exception that computing the value threw.
    fn from_value(vm: &mut Vm, value: Value) -> Result<Self, Mismatch>;
}

/// A type that can be converted to a value.
pub trait IntoValue {
    /// Converts this to a value.
    fn into_value(self) -> Value;
}

/// The return type of a function written in Rust: a type that can be converted to a value, or a `Result` of it.
pub trait IntoResult {
    /// Converts this to the result of a call.
    ///
    /// # Errors
    /// The error that the function returned.
    fn into_result(self) -> Result<Value>;
}

/// An error type of functions written in Rust: it is thrown as an exception, which `catch` sees.
pub trait IntoSignal {
    /// Converts this to the exception that is thrown.
    fn into_signal(self) -> Signal;
}

/// A parameter of a function written in Rust: anything [`FromValue`], or [`Rest`].
pub trait Param: Sized {
    /// Whether the parameter may be omitted.
    const IS_OPTIONAL: bool;
    /// Whether the parameter takes all remaining arguments.
    const IS_REST: bool;

    /// Takes the argument at `idx`, or all from there on.
    ///
    /// # Errors
    /// An exception that names the argument.
    fn take(vm: &mut Vm, args: &mut Args<'_>, idx: usize) -> Result<Self>;
}

/// All remaining arguments of a call: the last parameter of a function with any number of arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rest<T>(pub Vec<T>);

/// Any type supported by serde, as parameter or result: see [`to_value`] and [`from_value`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data<T>(pub T);

impl<T: FromValue> Param for T {
    const IS_OPTIONAL: bool = T::IS_OPTIONAL;
    const IS_REST: bool = false;

    fn take(vm: &mut Vm, args: &mut Args<'_>, idx: usize) -> Result<Self> {
        T::from_value(vm, args.take(idx)).map_err(|mismatch| mismatch.into_signal(idx))
    }
}

impl<T: FromValue> Param for Rest<T> {
    const IS_OPTIONAL: bool = true;
    const IS_REST: bool = true;

    fn take(vm: &mut Vm, args: &mut Args<'_>, idx: usize) -> Result<Self> {
        (idx..args.len())
            .map(|at| <T as Param>::take(vm, args, at))
            .collect::<Result<Vec<T>>>()
            .map(Rest)
    }
}

impl FromValue for Value {
    fn from_value(_vm: &mut Vm, value: Value) -> Result<Self, Mismatch> {
        Ok(value)
    }
}

macro_rules! plain {
    ($($type:ty, $expected:literal, $pattern:pat => $result:expr;)*) => {
        $(impl FromValue for $type {
            fn from_value(_vm: &mut Vm, value: Value) -> Result<Self, Mismatch> {
                match &value {
                    $pattern => Ok($result),
                    _ => Err(Mismatch::new($expected, &value)),
                }
            }
        })*
    };
}

plain! {
    bool, "true or false", Value::Bool(bool) => *bool;
    char, "a character", Value::Char(char) => *char;
    String, "a string", Value::Text(text) => text.as_str().to_owned();
    Rc<str>, "a string", Value::Text(text) => Rc::from(text.as_str());
}

impl FromValue for i64 {
    fn from_value(_vm: &mut Vm, value: Value) -> Result<Self, Mismatch> {
        value
            .as_int()
            .ok_or_else(|| Mismatch::new("an integer", &value))
    }
}

impl FromValue for Keyword {
    fn from_value(_vm: &mut Vm, value: Value) -> Result<Self, Mismatch> {
        value
            .as_keyword()
            .ok_or_else(|| Mismatch::new("a keyword", &value))
    }
}

impl FromValue for Symbol {
    fn from_value(_vm: &mut Vm, value: Value) -> Result<Self, Mismatch> {
        value
            .as_symbol()
            .ok_or_else(|| Mismatch::new("a symbol", &value))
    }
}

macro_rules! integers {
    ($($type:ty)*) => {
        $(impl FromValue for $type {
            fn from_value(_vm: &mut Vm, value: Value) -> Result<Self, Mismatch> {
                let fitting = value.as_int().and_then(|int| <$type>::try_from(int).ok());
                fitting.ok_or_else(|| {
                    let is_open = <$type>::MIN == 0 && i64::try_from(<$type>::MAX).is_err();
                    let expected = match is_open {
                        true => "an integer of 0 or more".to_owned(),
                        false => format!("an integer from {} to {}", <$type>::MIN, <$type>::MAX),
                    };
                    Mismatch::new(expected, &value)
                })
            }
        }

        impl IntoValue for $type {
            fn into_value(self) -> Value {
                i64::try_from(self)
                    .map_or_else(|_| Value::BigInt(Rc::new(BigInt::from(self))), Value::Int)
            }
        })*
    };
}

integers! { i8 i16 i32 u8 u16 u32 u64 usize }

impl FromValue for f64 {
    fn from_value(_vm: &mut Vm, value: Value) -> Result<Self, Mismatch> {
        flowstone_lang::value::number::to_float(&value, "number")
            .map_err(|_| Mismatch::new("a number", &value))
    }
}

impl<T: FromValue> FromValue for Option<T> {
    const IS_OPTIONAL: bool = true;

    fn from_value(vm: &mut Vm, value: Value) -> Result<Self, Mismatch> {
        match value {
            Value::Nil => Ok(None),
            value => T::from_value(vm, value).map(Some),
        }
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    fn from_value(vm: &mut Vm, value: Value) -> Result<Self, Mismatch> {
        if !matches!(
            value,
            Value::Nil
                | Value::Vector(_)
                | Value::List(_)
                | Value::Seq(_)
                | Value::Lazy(_)
                | Value::Set(_)
        ) {
            return Err(Mismatch::new("a vector or sequence", &value));
        }
        let mut iter = vm.iter(value)?;
        let mut items = Vec::new();
        while let Some(item) = iter.next(vm)? {
            let at = items.len().to_string();
            items.push(T::from_value(vm, item).map_err(|mismatch| mismatch.at(at))?);
        }
        Ok(items)
    }
}

/// Converts a map by the text of its keys: strings, keywords and symbols, without colon.
impl<T: FromValue> FromValue for BTreeMap<String, T> {
    fn from_value(vm: &mut Vm, value: Value) -> Result<Self, Mismatch> {
        let Value::Map(map) = &value else {
            return Err(Mismatch::new("a map", &value));
        };
        let mut entries = BTreeMap::new();
        for (key, value) in map.iter() {
            let name = match key {
                Value::Text(text) => text.as_str().to_owned(),
                key => key
                    .as_keyword()
                    .map(Symbol::from)
                    .or_else(|| key.as_symbol())
                    .map(|name| name.to_string())
                    .ok_or_else(|| Mismatch::new("a keyword or string as key", key))?,
            };
            let item = T::from_value(vm, value.clone());
            entries.insert(name, item.map_err(|mismatch| mismatch.at(brief(key)))?);
        }
        Ok(entries)
    }
}

impl<T: DeserializeOwned> FromValue for Data<T> {
    fn from_value(vm: &mut Vm, value: Value) -> Result<Self, Mismatch> {
        vm.realise(&value)?;
        from_value(&value).map(Data).map_err(|error| {
            let misfit = Exception::new(Class::ILLEGAL_ARGUMENT, "E0371", error.to_string());
            Mismatch::Signal(misfit.into())
        })
    }
}

impl IntoValue for Value {
    fn into_value(self) -> Value {
        self
    }
}

impl IntoValue for () {
    fn into_value(self) -> Value {
        Value::Nil
    }
}

macro_rules! from_value_type {
    ($($type:ty)*) => {
        $(impl IntoValue for $type {
            fn into_value(self) -> Value {
                Value::from(self)
            }
        })*
    };
}

from_value_type! { bool i64 f64 char &str String Keyword Symbol }

impl<T: IntoValue> IntoValue for Option<T> {
    fn into_value(self) -> Value {
        self.map_or(Value::Nil, T::into_value)
    }
}

impl<T: IntoValue> IntoValue for Vec<T> {
    fn into_value(self) -> Value {
        Value::vector(self.into_iter().map(T::into_value))
    }
}

/// Converts to a map with strings as keys.
impl<T: IntoValue> IntoValue for BTreeMap<String, T> {
    fn into_value(self) -> Value {
        Value::map(
            self.into_iter()
                .map(|(key, value)| (Value::from(key), value.into_value())),
        )
    }
}

impl<T: IntoValue> IntoResult for T {
    fn into_result(self) -> Result<Value> {
        Ok(self.into_value())
    }
}

impl<T: Serialize> IntoResult for Data<T> {
    fn into_result(self) -> Result<Value> {
        to_value(&self.0).map_err(|error| {
            Exception::new(Class::ILLEGAL_ARGUMENT, "E0371", error.to_string()).into()
        })
    }
}

impl<T: IntoResult, E: IntoSignal> IntoResult for Result<T, E> {
    fn into_result(self) -> Result<Value> {
        self.map_err(E::into_signal)?.into_result()
    }
}

impl IntoSignal for Signal {
    fn into_signal(self) -> Signal {
        self
    }
}

impl IntoSignal for Exception {
    fn into_signal(self) -> Signal {
        self.into()
    }
}

macro_rules! words {
    ($($type:ty)*) => {
        $(impl IntoSignal for $type {
            fn into_signal(self) -> Signal {
                Exception::new(Class::RUNTIME_EXCEPTION, "E0370", self.to_string()).into()
            }
        })*
    };
}

words! {
    String
    &str
    Box<dyn std::error::Error>
    Box<dyn std::error::Error + Send + Sync>
    std::io::Error
    std::fmt::Error
    std::num::ParseIntError
    std::num::ParseFloatError
    std::str::Utf8Error
    std::string::FromUtf8Error
}
