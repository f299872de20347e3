//! Bit operations on 64-bit integers.

use crate::value::{Arity, Native, Result, Value, number};
use crate::vm::Args;

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    BIT_AND,
    BIT_AND_NOT,
    BIT_CLEAR,
    BIT_FLIP,
    BIT_NOT,
    BIT_OR,
    BIT_SET,
    BIT_SHIFT_LEFT,
    BIT_SHIFT_RIGHT,
    BIT_TEST,
    BIT_XOR,
    UNSIGNED_BIT_SHIFT_RIGHT,
];

const BIT_AND: Native = Native {
    name: "bit-and",
    usage: "(bit-and x y & more)",
    doc: "Combines the bits of 64-bit integers with and.",
    examples: &[("(bit-and 12 10)", "8")],
    arity: Arity::at_least(2),
    run: |_, args| all(&args, "bit-and", number::bit_and),
};

const BIT_OR: Native = Native {
    name: "bit-or",
    usage: "(bit-or x y & more)",
    doc: "Combines the bits of 64-bit integers with or.",
    examples: &[("(bit-or 12 10)", "14")],
    arity: Arity::at_least(2),
    run: |_, args| all(&args, "bit-or", number::bit_or),
};

const BIT_XOR: Native = Native {
    name: "bit-xor",
    usage: "(bit-xor x y & more)",
    doc: "Combines the bits of 64-bit integers with xor.",
    examples: &[("(bit-xor 12 10)", "6")],
    arity: Arity::at_least(2),
    run: |_, args| all(&args, "bit-xor", number::bit_xor),
};

const BIT_AND_NOT: Native = Native {
    name: "bit-and-not",
    usage: "(bit-and-not x y & more)",
    doc: "Clears in the first integer the bits that are set in the others.",
    examples: &[("(bit-and-not 12 10)", "4")],
    arity: Arity::at_least(2),
    run: |_, args| {
        all(&args, "bit-and-not", |x, y| {
            number::bit_and(x, &number::bit_not(y)?)
        })
    },
};

const BIT_NOT: Native = Native {
    name: "bit-not",
    usage: "(bit-not x)",
    doc: "Inverts all bits.",
    examples: &[("(bit-not 5)", "-6")],
    arity: Arity::exactly(1),
    run: |_, args| number::bit_not(args.get(0)),
};

const BIT_SHIFT_LEFT: Native = Native {
    name: "bit-shift-left",
    usage: "(bit-shift-left x n)",
    doc: "Shifts the bits to the left; the distance counts modulo 64.",
    examples: &[("(bit-shift-left 1 10)", "1024")],
    arity: Arity::exactly(2),
    run: |_, args| number::shift_left(args.get(0), args.get(1)),
};

const BIT_SHIFT_RIGHT: Native = Native {
    name: "bit-shift-right",
    usage: "(bit-shift-right x n)",
    doc: "Shifts the bits to the right and keeps the sign; the distance counts modulo 64.",
    examples: &[("(bit-shift-right -8 1)", "-4")],
    arity: Arity::exactly(2),
    run: |_, args| number::shift_right(args.get(0), args.get(1)),
};

const UNSIGNED_BIT_SHIFT_RIGHT: Native = Native {
    name: "unsigned-bit-shift-right",
    usage: "(unsigned-bit-shift-right x n)",
    doc: "Shifts the bits to the right and fills with zeros; the distance counts modulo 64.",
    examples: &[("(unsigned-bit-shift-right -1 60)", "15")],
    arity: Arity::exactly(2),
    run: |_, args| number::unsigned_shift_right(args.get(0), args.get(1)),
};

const BIT_TEST: Native = Native {
    name: "bit-test",
    usage: "(bit-test x n)",
    doc: "Tells whether the bit at index n is set.",
    examples: &[("(bit-test 5 2)", "true")],
    arity: Arity::exactly(2),
    run: |_, args| {
        let (bits, bit) = bits_and_bit(&args, "bit-test")?;
        Ok(Value::Bool(bits & bit != 0))
    },
};

const BIT_SET: Native = Native {
    name: "bit-set",
    usage: "(bit-set x n)",
    doc: "Sets the bit at index n.",
    examples: &[("(bit-set 0 3)", "8")],
    arity: Arity::exactly(2),
    run: |_, args| {
        let (bits, bit) = bits_and_bit(&args, "bit-set")?;
        Ok(Value::Int(bits | bit))
    },
};

const BIT_CLEAR: Native = Native {
    name: "bit-clear",
    usage: "(bit-clear x n)",
    doc: "Clears the bit at index n.",
    examples: &[("(bit-clear 5 0)", "4")],
    arity: Arity::exactly(2),
    run: |_, args| {
        let (bits, bit) = bits_and_bit(&args, "bit-clear")?;
        Ok(Value::Int(bits & !bit))
    },
};

const BIT_FLIP: Native = Native {
    name: "bit-flip",
    usage: "(bit-flip x n)",
    doc: "Flips the bit at index n.",
    examples: &[("(bit-flip 5 1)", "7")],
    arity: Arity::exactly(2),
    run: |_, args| {
        let (bits, bit) = bits_and_bit(&args, "bit-flip")?;
        Ok(Value::Int(bits ^ bit))
    },
};

fn all(
    args: &Args<'_>,
    operation: &str,
    combine: fn(&Value, &Value) -> Result<Value>,
) -> Result<Value> {
    let mut result = args.get(0).clone();
    for (idx, item) in args.from(1).iter().enumerate() {
        number::long_bits(operation, item, idx + 1)?;
        result = combine(&result, item)?;
    }
    Ok(result)
}

/// Returns the integer, and the integer with only the bit at that index set.
fn bits_and_bit(args: &Args<'_>, operation: &str) -> Result<(i64, i64)> {
    let bits = number::long_bits(operation, args.get(0), 0)?;
    let idx = number::long_bits(operation, args.get(1), 1)?;
    Ok((bits, 1i64.wrapping_shl(idx as u32)))
}
