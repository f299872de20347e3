//! Bit operations on longs. Shifts use the low six bits of the distance, as Java does.

use super::{Result, Value};
use crate::value::{Class, Exception, Signal};

/// Returns the long on whose bits an operation works.
///
/// # Errors
/// When the value is not an integer; `argument` counts from 0.
pub fn long_bits(operation: &str, value: &Value, argument: usize) -> Result<i64> {
    match value {
        Value::Int(int) => Ok(*int),
        _ => Err(no_bits(operation, value, argument)),
    }
}

#[cold]
fn no_bits(operation: &str, value: &Value, argument: usize) -> Signal {
    let class = if value.is_nil() {
        Class::NULL_POINTER
    } else {
        Class::ILLEGAL_ARGUMENT
    };
    Exception::new(
        class,
        "E0325",
        format!(
            "{operation} got {} as argument {}: bit operations take 64-bit integers",
            crate::value::print::describe(value),
            argument + 1
        ),
    )
    .argument(argument)
    .into()
}

macro_rules! binary {
    ($name:ident, $symbol:literal, |$left:ident, $right:ident| $result:expr) => {
        #[doc = concat!("`", $symbol, "`.")]
        /// ¶ # Errors When an operand is not a long.
        #[inline]
        pub fn $name(left: &Value, right: &Value) -> Result<Value> {
            let ($left, $right) = (long_bits($symbol, left, 0)?, long_bits($symbol, right, 1)?);
            Ok(Value::Int($result))
        }
    };
}

binary!(bit_and, "bit-and", |left, right| left & right);
binary!(bit_or, "bit-or", |left, right| left | right);
binary!(bit_xor, "bit-xor", |left, right| left ^ right);
binary!(shift_left, "bit-shift-left", |left, right| left
    .wrapping_shl(right as u32));
binary!(shift_right, "bit-shift-right", |left, right| left
    .wrapping_shr(right as u32));
binary!(
    unsigned_shift_right,
    "unsigned-bit-shift-right",
    |left, right| (left as u64).wrapping_shr(right as u32) as i64
);

/// `bit-not`: inverts all bits.
///
/// # Errors
/// When this is not a long.
#[inline]
pub fn bit_not(value: &Value) -> Result<Value> {
    Ok(Value::Int(!long_bits("bit-not", value, 0)?))
}
