//! Conversions of values to items of an array: narrowed, checked, or rejected.

use crate::value::{Class, Element, Exception, Result, Value, describe, number};
use crate::vm::wrong_type;

/// Returns a value as an item, as constructors do: numbers are narrowed silently.
///
/// # Errors
/// When the value is of another kind.
pub(super) fn narrowed(element: Element, value: &Value) -> Result<Value> {
    match (element, value) {
        (Element::Boolean, Value::Bool(_))
        | (Element::Char, Value::Char(_))
        | (Element::Text, Value::Text(_) | Value::Nil)
        | (Element::Any, _) => return Ok(value.clone()),
        (Element::Boolean, _) => return Err(wrong_type(value, "true or false", 0).into()),
        (Element::Char, _) => return Err(wrong_type(value, "a character", 0).into()),
        (Element::Text, _) => return Err(wrong_type(value, "a string", 0).into()),
        _ => {}
    }
    if !value.is_number() {
        return Err(wrong_type(value, "a number", 0).into());
    }
    if let Value::Float(float) = value {
        return Ok(match element {
            Element::Double => Value::Float(*float),
            Element::Float => Value::Float(number::shorten(*float)),
            Element::Long => Value::Int(*float as i64),
            _ => cut(element, i64::from(*float as i32)),
        });
    }
    match element {
        Element::Double => number::to_float(value, "double").map(Value::Float),
        Element::Float => {
            number::to_float(value, "float").map(|float| Value::Float(number::shorten(float)))
        }
        _ => Ok(cut(element, number::lowest_bits(value, "long")?)),
    }
}

/// Keeps the lowest bits, as many as an item of this kind has.
fn cut(element: Element, int: i64) -> Value {
    Value::Int(match element {
        Element::Byte => i64::from(int as i8),
        Element::Short => i64::from(int as i16),
        Element::Int => i64::from(int as i32),
        _ => int,
    })
}

/// Returns a value as an item, converted like the functions `int`, `byte` and so on.
///
/// # Errors
/// When it is out of range or cannot be converted.
pub(super) fn checked(element: Element, value: &Value) -> Result<Value> {
    match element {
        Element::Boolean => Ok(Value::Bool(value.is_truthy())),
        Element::Byte => int_in(value, i64::from(i8::MIN), i64::from(i8::MAX), "byte"),
        Element::Short => int_in(value, i64::from(i16::MIN), i64::from(i16::MAX), "short"),
        Element::Int => int_in(value, i64::from(i32::MIN), i64::from(i32::MAX), "int"),
        Element::Long => number::to_int(value, "long").map(Value::Int),
        Element::Float => number::to_short_float(value, "float").map(Value::Float),
        Element::Double => number::to_float(value, "double").map(Value::Float),
        Element::Char | Element::Text | Element::Any => fitting(element, value),
    }
}

fn int_in(value: &Value, min: i64, max: i64, name: &str) -> Result<Value> {
    number::to_int_in(value, min..=max, name).map(Value::Int)
}

/// Returns a value as an item if the array can store it without loss.
///
/// # Errors
/// When it cannot.
pub(super) fn fitting(element: Element, value: &Value) -> Result<Value> {
    let fits = match (element, value) {
        (Element::Any, _)
        | (Element::Boolean, Value::Bool(_))
        | (Element::Char, Value::Char(_))
        | (Element::Text, Value::Text(_) | Value::Nil)
        | (Element::Double, Value::Float(_)) => true,
        (Element::Float, Value::Float(float)) => {
            return Ok(Value::Float(number::shorten(*float)));
        }
        (Element::Float | Element::Double, Value::Int(int)) => {
            return Ok(Value::Float(*int as f64));
        }
        (Element::Byte | Element::Short | Element::Int | Element::Long, Value::Int(_)) => {
            return checked(element, value);
        }
        _ => false,
    };
    if fits {
        return Ok(value.clone());
    }
    let class = if value.is_nil() {
        Class::NULL_POINTER
    } else {
        Class::ILLEGAL_ARGUMENT
    };
    Err(Exception::new(
        class,
        "E0301",
        format!("{} cannot hold {}", element.array_kind(), describe(value)),
    )
    .into())
}
