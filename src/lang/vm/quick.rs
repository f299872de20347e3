//! The common cases of core functions that only read their arguments, which stay in their registers.
//!
//! Each function returns whether it handled the case; otherwise the native is called.

use super::slots::{self, FLOAT, INT};
use crate::value::Value;

/// Stores the result of a function of `left` and `right` in `to` in the simple case. A function of one argument gets it
/// twice.
pub(crate) type Quick = unsafe fn(to: *mut Value, left: *const Value, right: *const Value) -> bool;

/// Name, number of arguments, function. An instruction has six bits for the index.
pub(crate) const QUICK: &[(&str, usize, Quick)] = &[
    ("-as-double", 1, as_double),
    ("-as-long", 1, as_long),
    ("/", 2, div),
    ("bit-and", 2, bit_and),
    ("bit-or", 2, bit_or),
    ("bit-xor", 2, bit_xor),
    ("count", 1, count),
    ("empty?", 1, is_empty),
    ("even?", 1, is_even),
    ("first", 1, first),
    ("get", 2, get),
    ("mod", 2, modulo),
    ("neg?", 1, is_neg),
    ("nth", 2, nth),
    ("odd?", 1, is_odd),
    ("pos?", 1, is_pos),
    ("quot", 2, quot),
    ("rem", 2, rem),
    ("unchecked-add", 2, unchecked_add),
    ("unchecked-dec", 1, unchecked_dec),
    ("unchecked-inc", 1, unchecked_inc),
    ("unchecked-multiply", 2, unchecked_multiply),
    ("unchecked-subtract", 2, unchecked_subtract),
    ("zero?", 1, is_zero),
];

const _: () = assert!(QUICK.len() <= 64);

/// Returns both integers, if both values are integers.
#[inline(always)]
unsafe fn ints(left: *const Value, right: *const Value) -> Option<(i64, i64)> {
    // SAFETY: the caller's slots hold values.
    unsafe {
        (slots::tag(left) == INT && slots::tag(right) == INT)
            .then(|| (slots::payload(left) as i64, slots::payload(right) as i64))
    }
}

#[inline(always)]
unsafe fn put_int(to: *mut Value, int: Option<i64>) -> bool {
    // SAFETY: the caller's slot is a register.
    int.map(|int| unsafe { slots::put_int(to, int) }).is_some()
}

#[inline(always)]
unsafe fn put_bool(to: *mut Value, bool: Option<bool>) -> bool {
    // SAFETY: the caller's slot is a register.
    bool.map(|bool| unsafe { slots::put_bool(to, bool) })
        .is_some()
}

macro_rules! of_ints {
    ($name:ident, $left:ident, $right:ident, $result:expr) => {
        unsafe fn $name(to: *mut Value, left: *const Value, right: *const Value) -> bool {
            // SAFETY: the caller's slots are registers.
            unsafe {
                let result = ints(left, right).and_then(|($left, $right)| $result);
                put_int(to, result)
            }
        }
    };
}

of_ints!(bit_and, left, right, Some(left & right));
of_ints!(bit_or, left, right, Some(left | right));
of_ints!(bit_xor, left, right, Some(left ^ right));
of_ints!(unchecked_add, left, right, Some(left.wrapping_add(right)));
of_ints!(
    unchecked_subtract,
    left,
    right,
    Some(left.wrapping_sub(right))
);
of_ints!(
    unchecked_multiply,
    left,
    right,
    Some(left.wrapping_mul(right))
);
of_ints!(unchecked_inc, left, _right, Some(left.wrapping_add(1)));
of_ints!(unchecked_dec, left, _right, Some(left.wrapping_sub(1)));
of_ints!(as_long, left, _right, Some(left));
of_ints!(quot, left, right, left.checked_div(right));
of_ints!(rem, left, right, left.checked_rem(right));
of_ints!(modulo, left, right, {
    let rest = left.checked_rem(right);
    rest.map(|rest| {
        if rest != 0 && (rest < 0) != (right < 0) {
            rest + right
        } else {
            rest
        }
    })
});

unsafe fn as_double(to: *mut Value, value: *const Value, _: *const Value) -> bool {
    // SAFETY: the caller's slots are registers.
    unsafe {
        let float = match slots::tag(value) {
            INT => slots::payload(value) as i64 as f64,
            FLOAT => f64::from_bits(slots::payload(value)),
            _ => return false,
        };
        slots::put_float(to, float);
        true
    }
}

unsafe fn div(to: *mut Value, left: *const Value, right: *const Value) -> bool {
    // SAFETY: the caller's slots are registers.
    unsafe {
        if let Some((left, right)) = ints(left, right) {
            let is_exact = left.checked_rem(right) == Some(0);
            return put_int(to, is_exact.then(|| left / right));
        }
        if slots::tag(right) != FLOAT {
            return false;
        }
        let left = match slots::tag(left) {
            INT => slots::payload(left) as i64 as f64,
            FLOAT => f64::from_bits(slots::payload(left)),
            _ => return false,
        };
        slots::put_float(to, left / f64::from_bits(slots::payload(right)));
        true
    }
}

macro_rules! sign {
    ($name:ident, $operator:tt) => {
        unsafe fn $name(to: *mut Value, value: *const Value, _: *const Value) -> bool {
            // SAFETY: the caller's slots are registers.
            unsafe {
                let holds = match slots::tag(value) {
                    INT => Some((slots::payload(value) as i64) $operator 0),
                    FLOAT => Some(f64::from_bits(slots::payload(value)) $operator 0.0),
                    _ => None,
                };
                put_bool(to, holds)
            }
        }
    };
}

sign!(is_zero, ==);
sign!(is_pos, >);
sign!(is_neg, <);

unsafe fn is_even(to: *mut Value, value: *const Value, _: *const Value) -> bool {
    // SAFETY: the caller's slots are registers.
    unsafe {
        let is_int = slots::tag(value) == INT;
        put_bool(to, is_int.then(|| slots::payload(value) & 1 == 0))
    }
}

unsafe fn is_odd(to: *mut Value, value: *const Value, _: *const Value) -> bool {
    // SAFETY: the caller's slots are registers.
    unsafe {
        let is_int = slots::tag(value) == INT;
        put_bool(to, is_int.then(|| slots::payload(value) & 1 == 1))
    }
}

/// Returns the number of items of a collection that stores it.
fn known_count(coll: &Value) -> Option<usize> {
    match coll {
        Value::Nil => Some(0),
        Value::Vector(vector) => Some(vector.len()),
        Value::Map(map) => Some(map.len()),
        Value::List(list) => list.count.map(|count| count as usize),
        _ => None,
    }
}

unsafe fn count(to: *mut Value, coll: *const Value, _: *const Value) -> bool {
    // SAFETY: the caller's slots are registers.
    unsafe { put_int(to, known_count(&*coll).map(|count| count as i64)) }
}

unsafe fn is_empty(to: *mut Value, coll: *const Value, _: *const Value) -> bool {
    // SAFETY: the caller's slots are registers.
    unsafe { put_bool(to, known_count(&*coll).map(|count| count == 0)) }
}

const NIL: &Value = &Value::Nil;

unsafe fn first(to: *mut Value, coll: *const Value, _: *const Value) -> bool {
    // SAFETY: the caller's slots are registers; the value found lives in the collection that one of them holds.
    unsafe {
        let found = match &*coll {
            Value::Nil => NIL,
            Value::Vector(vector) => vector.get(0).unwrap_or(NIL),
            Value::List(list) => &list.first,
            _ => return false,
        };
        slots::put_copy(to, found);
        true
    }
}

unsafe fn nth(to: *mut Value, coll: *const Value, idx: *const Value) -> bool {
    // SAFETY: as in `first`.
    unsafe {
        let found = match (&*coll, &*idx) {
            (Value::Vector(vector), Value::Int(idx)) => {
                usize::try_from(*idx).ok().and_then(|idx| vector.get(idx))
            }
            _ => None,
        };
        found.map(|found| slots::put_copy(to, found)).is_some()
    }
}

unsafe fn get(to: *mut Value, coll: *const Value, key: *const Value) -> bool {
    // SAFETY: as in `first`.
    unsafe {
        let found = match (&*coll, &*key) {
            (Value::Nil, _) => None,
            (Value::Map(map), Value::Keyword(_) | Value::Int(_) | Value::Text(_))
                if map.entries().sorted().is_none() =>
            {
                map.get(&*key)
            }
            (Value::Vector(vector), Value::Int(idx)) => {
                usize::try_from(*idx).ok().and_then(|idx| vector.get(idx))
            }
            _ => return false,
        };
        slots::put_copy(to, found.unwrap_or(NIL));
        true
    }
}
