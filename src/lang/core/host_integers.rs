//! `Integer/...` and `Long/...`: bits, signs and digits of 32-bit and 64-bit integers.

use crate::value::{Arity, Native, Result, Value};
use crate::vm::{Args, wrong_type};

/// The functions of both classes, which differ only in their width.
macro_rules! integers {
    ($constant:ident $class:literal $int:ty, $unsigned:ty) => {
        pub(super) const $constant: &[Native] = &[
            unary!($class "bitCount" "the number of set bits of n" "7" "3",
                |n: $int| i64::from(n.count_ones())),
            unary!($class "highestOneBit" "n with only its highest set bit" "10" "8",
                |n: $int| if n == 0 { 0 } else { (1 as $int).rotate_left(<$int>::BITS - 1 - n.leading_zeros()) as i64 }),
            unary!($class "lowestOneBit" "n with only its lowest set bit" "12" "4",
                |n: $int| (n & n.wrapping_neg()) as i64),
            unary!($class "numberOfLeadingZeros" "the number of zero bits above the highest set bit" "-1" "0",
                |n: $int| i64::from(n.leading_zeros())),
            unary!($class "numberOfTrailingZeros" "the number of zero bits below the lowest set bit" "8" "3",
                |n: $int| i64::from(n.trailing_zeros())),
            unary!($class "reverse" "n with its bits in reverse order" "0" "0",
                |n: $int| n.reverse_bits() as i64),
            unary!($class "reverseBytes" "n with its bytes in reverse order" "0" "0",
                |n: $int| n.swap_bytes() as i64),
            unary!($class "signum" "-1, 0 or 1, as n is negative, 0 or positive" "-7" "-1",
                |n: $int| n.signum() as i64),
            unary!($class "hashCode" "Java's hash of n" "5" "5",
                |n: $int| i64::from(((n as i64) ^ if <$int>::BITS == 64 { ((n as u64) >> 32) as i64 } else { 0 }) as i32)),
            binary!($class "compare" "-1, 0 or 1, as a is less than, equal to or greater than b" "1 2" "-1",
                |a: $int, b: $int| Some(a.cmp(&b) as i64)),
            binary!($class "compareUnsigned" "-1, 0 or 1, comparing a and b as unsigned" "-1 1" "1",
                |a: $int, b: $int| Some((a as $unsigned).cmp(&(b as $unsigned)) as i64)),
            binary!($class "max" "the greater of a and b" "1 2" "2", |a: $int, b: $int| Some(a.max(b) as i64)),
            binary!($class "min" "the lesser of a and b" "1 2" "1", |a: $int, b: $int| Some(a.min(b) as i64)),
            binary!($class "sum" "the sum of a and b, wrapped around if it does not fit" "1 2" "3",
                |a: $int, b: $int| Some(a.wrapping_add(b) as i64)),
            binary!($class "rotateLeft" "a with its bits rotated left by b" "1 3" "8",
                |a: $int, b: $int| Some(a.rotate_left(b.rem_euclid(<$int>::BITS as $int) as u32) as i64)),
            binary!($class "rotateRight" "a with its bits rotated right by b" "8 3" "1",
                |a: $int, b: $int| Some(a.rotate_right(b.rem_euclid(<$int>::BITS as $int) as u32) as i64)),
            binary!($class "divideUnsigned" "a divided by b, both taken as unsigned" "7 2" "3",
                |a: $int, b: $int| (a as $unsigned).checked_div(b as $unsigned).map(|n| n as $int as i64)),
            binary!($class "remainderUnsigned" "the remainder of a divided by b, both taken as unsigned" "7 2" "1",
                |a: $int, b: $int| (a as $unsigned).checked_rem(b as $unsigned).map(|n| n as $int as i64)),
            unary!($class "toBinaryString" "the bits of n as digits" "5" "\"101\"",
                |n: $int| format!("{n:b}")),
            unary!($class "toHexString" "the bits of n as hexadecimal digits" "255" "\"ff\"",
                |n: $int| format!("{n:x}")),
            unary!($class "toOctalString" "the bits of n as octal digits" "8" "\"10\"",
                |n: $int| format!("{n:o}")),
            unary!($class "toUnsignedString" "n, taken as unsigned, as text" "5" "\"5\"",
                |n: $int| (n as $unsigned).to_string()),
            Native {
                name: "toString",
                usage: concat!("(", $class, "/toString n)\n(", $class, "/toString n radix)"),
                doc: "Returns n as text, in a radix (10).",
                examples: &[
                    (concat!("(", $class, "/toString 255 16)"), "\"ff\""),
                    (concat!("(", $class, "/toString -5)"), "\"-5\""),
                ],
                arity: Arity::between(1, 2),
                run: |_, args| {
                    let int: $int = narrow(&args, 0, $class)?;
                    let radix = if args.len() == 2 { args.int(1)? } else { 10 };
                    Ok(Value::text(digits(i64::from(int), radix)))
                },
            },
            Native {
                name: "new",
                usage: concat!("(", $class, ". x)"),
                doc: "Returns an integer, or parses a string as an integer; throws if the string is not an integer.",
                examples: &[(concat!("(", $class, ". \"12\")"), "12")],
                arity: Arity::exactly(1),
                run: |_, args| super::host_numbers::make($class, &args),
            },
        ];
    };
}

macro_rules! unary {
    ($class:literal $name:literal $doc:literal $given:literal $result:literal, |$n:ident: $int:ty| $body:expr) => {
        Native {
            name: $name,
            usage: concat!("(", $class, "/", $name, " n)"),
            doc: concat!("Returns ", $doc, "."),
            examples: &[(concat!("(", $class, "/", $name, " ", $given, ")"), $result)],
            arity: Arity::exactly(1),
            run: |_, args| {
                let $n: $int = narrow(&args, 0, $class)?;
                Ok(Value::from($body))
            },
        }
    };
}

/// `None` denotes a division by zero.
macro_rules! binary {
    ($class:literal $name:literal $doc:literal $given:literal $result:literal, |$a:ident: $int:ty, $b:ident: $other:ty| $body:expr) => {
        Native {
            name: $name,
            usage: concat!("(", $class, "/", $name, " a b)"),
            doc: concat!("Returns ", $doc, "."),
            examples: &[(concat!("(", $class, "/", $name, " ", $given, ")"), $result)],
            arity: Arity::exactly(2),
            run: |_, args| {
                let $a: $int = narrow(&args, 0, $class)?;
                let $b: $int = narrow(&args, 1, $class)?;
                let result: Option<i64> = $body;
                result
                    .map(Value::Int)
                    .ok_or_else(crate::value::number::divide_by_zero)
            },
        }
    };
}

integers!(INTEGER_FNS "Integer" i32, u32);
integers!(LONG_FNS "Long" i64, u64);

/// Returns an argument as an integer of a width.
fn narrow<T: TryFrom<i64>>(args: &Args<'_>, idx: usize, class: &str) -> Result<T> {
    let int = args.int(idx)?;
    T::try_from(int).map_err(|_| {
        let expected = format!("an integer that fits into {class}");
        wrong_type(args.get(idx), &expected, idx)
            .of_class(crate::value::Class::ILLEGAL_ARGUMENT)
            .into()
    })
}

/// Returns the digits of an integer in a radix; as in Java, 10 replaces an unsupported radix.
fn digits(int: i64, radix: i64) -> String {
    match u32::try_from(radix) {
        Ok(radix @ 2..=36) => num_bigint::BigInt::from(int).to_str_radix(radix),
        _ => int.to_string(),
    }
}
