//! `clojure.math`: functions of doubles, with the results of Java's `Math`.

use crate::value::{Arity, Native, Result, Value, number};
use crate::vm::{Args, Vm};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    ACOS,
    ADD_EXACT,
    ASIN,
    ATAN,
    ATAN2,
    CBRT,
    CEIL,
    COPY_SIGN,
    COS,
    COSH,
    DECREMENT_EXACT,
    EXP,
    EXPM1,
    FLOOR,
    FLOOR_DIV,
    FLOOR_MOD,
    GET_EXPONENT,
    HYPOT,
    IEEE_REMAINDER,
    INCREMENT_EXACT,
    LOG,
    LOG10,
    LOG1P,
    MULTIPLY_EXACT,
    NEGATE_EXACT,
    NEXT_AFTER,
    NEXT_DOWN,
    NEXT_UP,
    POW,
    RANDOM,
    RINT,
    ROUND,
    SCALB,
    SIGNUM,
    SIN,
    SINH,
    SQRT,
    SUBTRACT_EXACT,
    TAN,
    TANH,
    TO_DEGREES,
    TO_RADIANS,
    ULP,
];

pub(super) const SIN: Native = Native {
    name: "sin",
    usage: "(sin x)",
    doc: "Returns the sine of an angle in radians.",
    examples: &[("(clojure.math/sin 0)", "0.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "sin", f64::sin),
};

pub(super) const COS: Native = Native {
    name: "cos",
    usage: "(cos x)",
    doc: "Returns the cosine of an angle in radians.",
    examples: &[("(clojure.math/cos 0)", "1.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "cos", f64::cos),
};

pub(super) const TAN: Native = Native {
    name: "tan",
    usage: "(tan x)",
    doc: "Returns the tangent of an angle in radians.",
    examples: &[("(clojure.math/tan 0)", "0.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "tan", f64::tan),
};

pub(super) const ASIN: Native = Native {
    name: "asin",
    usage: "(asin x)",
    doc: "Returns the angle in radians that has this sine.",
    examples: &[("(clojure.math/asin 0)", "0.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "asin", f64::asin),
};

pub(super) const ACOS: Native = Native {
    name: "acos",
    usage: "(acos x)",
    doc: "Returns the angle in radians that has this cosine.",
    examples: &[("(clojure.math/acos 1)", "0.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "acos", f64::acos),
};

pub(super) const ATAN: Native = Native {
    name: "atan",
    usage: "(atan x)",
    doc: "Returns the angle in radians that has this tangent.",
    examples: &[("(clojure.math/atan 0)", "0.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "atan", f64::atan),
};

pub(super) const SINH: Native = Native {
    name: "sinh",
    usage: "(sinh x)",
    doc: "Returns the hyperbolic sine.",
    examples: &[("(clojure.math/sinh 0)", "0.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "sinh", f64::sinh),
};

pub(super) const COSH: Native = Native {
    name: "cosh",
    usage: "(cosh x)",
    doc: "Returns the hyperbolic cosine.",
    examples: &[("(clojure.math/cosh 0)", "1.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "cosh", f64::cosh),
};

pub(super) const TANH: Native = Native {
    name: "tanh",
    usage: "(tanh x)",
    doc: "Returns the hyperbolic tangent.",
    examples: &[("(clojure.math/tanh 0)", "0.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "tanh", f64::tanh),
};

pub(super) const EXP: Native = Native {
    name: "exp",
    usage: "(exp x)",
    doc: "Returns e raised to the power of x.",
    examples: &[("(clojure.math/exp 0)", "1.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "exp", f64::exp),
};

pub(super) const EXPM1: Native = Native {
    name: "expm1",
    usage: "(expm1 x)",
    doc: "Returns e raised to the power of x, minus 1; precise near 0.",
    examples: &[("(clojure.math/expm1 0)", "0.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "expm1", f64::exp_m1),
};

pub(super) const LOG: Native = Native {
    name: "log",
    usage: "(log x)",
    doc: "Returns the natural logarithm.",
    examples: &[("(clojure.math/log 1)", "0.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "log", f64::ln),
};

pub(super) const LOG10: Native = Native {
    name: "log10",
    usage: "(log10 x)",
    doc: "Returns the logarithm to base 10.",
    examples: &[("(clojure.math/log10 1000)", "3.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "log10", f64::log10),
};

pub(super) const LOG1P: Native = Native {
    name: "log1p",
    usage: "(log1p x)",
    doc: "Returns the natural logarithm of x plus 1; precise near 0.",
    examples: &[("(clojure.math/log1p 0)", "0.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "log1p", f64::ln_1p),
};

pub(super) const SQRT: Native = Native {
    name: "sqrt",
    usage: "(sqrt x)",
    doc: "Returns the square root; NaN for a negative number.",
    examples: &[("(clojure.math/sqrt 9)", "3.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "sqrt", f64::sqrt),
};

pub(super) const CBRT: Native = Native {
    name: "cbrt",
    usage: "(cbrt x)",
    doc: "Returns the cube root.",
    examples: &[("(clojure.math/cbrt 27)", "3.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "cbrt", f64::cbrt),
};

pub(super) const CEIL: Native = Native {
    name: "ceil",
    usage: "(ceil x)",
    doc: "Returns the least whole double that is at least x.",
    examples: &[("(clojure.math/ceil 1.2)", "2.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "ceil", f64::ceil),
};

pub(super) const FLOOR: Native = Native {
    name: "floor",
    usage: "(floor x)",
    doc: "Returns the greatest whole double that is at most x.",
    examples: &[("(clojure.math/floor 1.8)", "1.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "floor", f64::floor),
};

pub(super) const RINT: Native = Native {
    name: "rint",
    usage: "(rint x)",
    doc: "Returns the nearest whole double; the even one in case of a tie.",
    examples: &[("(clojure.math/rint 2.5)", "2.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "rint", f64::round_ties_even),
};

pub(super) const SIGNUM: Native = Native {
    name: "signum",
    usage: "(signum x)",
    doc: "Returns -1.0, 0.0 or 1.0: the sign of x.",
    examples: &[("(clojure.math/signum -3)", "-1.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "signum", signum),
};

pub(super) const ULP: Native = Native {
    name: "ulp",
    usage: "(ulp x)",
    doc: "Returns the distance to the next larger double.",
    examples: &[("(clojure.math/ulp 1)", "2.220446049250313E-16")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "ulp", ulp),
};

pub(super) const TO_DEGREES: Native = Native {
    name: "to-degrees",
    usage: "(to-degrees x)",
    doc: "Converts an angle from radians to degrees.",
    examples: &[("(clojure.math/to-degrees 0)", "0.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "to-degrees", |x| x * (180.0 / std::f64::consts::PI)),
};

pub(super) const TO_RADIANS: Native = Native {
    name: "to-radians",
    usage: "(to-radians x)",
    doc: "Converts an angle from degrees to radians.",
    examples: &[("(clojure.math/to-radians 0)", "0.0")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "to-radians", |x| x * (std::f64::consts::PI / 180.0)),
};

pub(super) const NEXT_UP: Native = Native {
    name: "next-up",
    usage: "(next-up x)",
    doc: "Returns the next larger double.",
    examples: &[("(clojure.math/next-up 1)", "1.0000000000000002")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "next-up", f64::next_up),
};

pub(super) const NEXT_DOWN: Native = Native {
    name: "next-down",
    usage: "(next-down x)",
    doc: "Returns the next smaller double.",
    examples: &[("(clojure.math/next-down 1)", "0.9999999999999999")],
    arity: Arity::exactly(1),
    run: |_, args| one(&args, "next-down", f64::next_down),
};

pub(super) const POW: Native = Native {
    name: "pow",
    usage: "(pow a b)",
    doc: "Returns a raised to the power of b, as a double.",
    examples: &[("(clojure.math/pow 2 10)", "1024.0")],
    arity: Arity::exactly(2),
    run: |_, args| two(&args, "pow", pow),
};

pub(super) const ATAN2: Native = Native {
    name: "atan2",
    usage: "(atan2 y x)",
    doc: "Returns the angle in radians of the point (x, y).",
    examples: &[("(clojure.math/atan2 0 1)", "0.0")],
    arity: Arity::exactly(2),
    run: |_, args| two(&args, "atan2", f64::atan2),
};

pub(super) const HYPOT: Native = Native {
    name: "hypot",
    usage: "(hypot x y)",
    doc: "Returns the length of the hypotenuse: the root of the sum of the squares.",
    examples: &[("(clojure.math/hypot 3 4)", "5.0")],
    arity: Arity::exactly(2),
    run: |_, args| two(&args, "hypot", f64::hypot),
};

pub(super) const COPY_SIGN: Native = Native {
    name: "copy-sign",
    usage: "(copy-sign magnitude sign)",
    doc: "Returns the first number with the sign of the second.",
    examples: &[("(clojure.math/copy-sign 3 -1)", "-3.0")],
    arity: Arity::exactly(2),
    run: |_, args| two(&args, "copy-sign", f64::copysign),
};

pub(super) const IEEE_REMAINDER: Native = Native {
    name: "IEEE-remainder",
    usage: "(IEEE-remainder dividend divisor)",
    doc: "Returns the remainder of dividing by the nearest whole quotient.",
    examples: &[("(clojure.math/IEEE-remainder 5 3)", "-1.0")],
    arity: Arity::exactly(2),
    run: |_, args| two(&args, "IEEE-remainder", ieee_remainder),
};

pub(super) const NEXT_AFTER: Native = Native {
    name: "next-after",
    usage: "(next-after start direction)",
    doc: "Returns the double next to start in the direction of direction.",
    examples: &[("(clojure.math/next-after 1 2)", "1.0000000000000002")],
    arity: Arity::exactly(2),
    run: |_, args| two(&args, "next-after", next_after),
};

pub(super) const ROUND: Native = Native {
    name: "round",
    usage: "(round x)",
    doc: "Returns the nearest integer; the greater one in case of a tie.",
    examples: &[("(clojure.math/round 2.5)", "3")],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::Int(round(number::to_float(args.get(0), "round")?))),
};

pub(super) const FLOOR_DIV: Native = Native {
    name: "floor-div",
    usage: "(floor-div x y)",
    doc: "Returns the quotient of integers, rounded down.",
    examples: &[("(clojure.math/floor-div -7 2)", "-4")],
    arity: Arity::exactly(2),
    run: floor_div,
};

pub(super) const FLOOR_MOD: Native = Native {
    name: "floor-mod",
    usage: "(floor-mod x y)",
    doc: "Returns the modulus of integers; it has the sign of y.",
    examples: &[("(clojure.math/floor-mod -7 2)", "1")],
    arity: Arity::exactly(2),
    run: floor_mod,
};

pub(super) const GET_EXPONENT: Native = Native {
    name: "get-exponent",
    usage: "(get-exponent x)",
    doc: "Returns the exponent of a double to base 2.",
    examples: &[("(clojure.math/get-exponent 8)", "3")],
    arity: Arity::exactly(1),
    run: |_, args| {
        Ok(Value::Int(exponent(number::to_float(
            args.get(0),
            "get-exponent",
        )?)))
    },
};

pub(super) const SCALB: Native = Native {
    name: "scalb",
    usage: "(scalb x exponent)",
    doc: "Returns x times 2 raised to an integer.",
    examples: &[("(clojure.math/scalb 3 2)", "12.0")],
    arity: Arity::exactly(2),
    run: scalb,
};

pub(super) const RANDOM: Native = Native {
    name: "random",
    usage: "(random)",
    doc: "Returns a random double from 0 up to but not including 1.",
    examples: &[("(< (clojure.math/random) 1)", "true")],
    arity: Arity::exactly(0),
    run: |vm, _| super::number::random(vm).map(Value::Float),
};

pub(super) const ADD_EXACT: Native = Native {
    name: "add-exact",
    usage: "(add-exact x y)",
    doc: "Returns the sum of integers; throws when it does not fit.",
    examples: &[("(clojure.math/add-exact 1 2)", "3")],
    arity: Arity::exactly(2),
    run: |_, args| number::add(&Value::Int(args.int(0)?), &Value::Int(args.int(1)?)),
};

pub(super) const SUBTRACT_EXACT: Native = Native {
    name: "subtract-exact",
    usage: "(subtract-exact x y)",
    doc: "Returns the difference of integers; throws when it does not fit.",
    examples: &[("(clojure.math/subtract-exact 3 1)", "2")],
    arity: Arity::exactly(2),
    run: |_, args| number::sub(&Value::Int(args.int(0)?), &Value::Int(args.int(1)?)),
};

pub(super) const MULTIPLY_EXACT: Native = Native {
    name: "multiply-exact",
    usage: "(multiply-exact x y)",
    doc: "Returns the product of integers; throws when it does not fit.",
    examples: &[("(clojure.math/multiply-exact 3 4)", "12")],
    arity: Arity::exactly(2),
    run: |_, args| number::mul(&Value::Int(args.int(0)?), &Value::Int(args.int(1)?)),
};

pub(super) const INCREMENT_EXACT: Native = Native {
    name: "increment-exact",
    usage: "(increment-exact x)",
    doc: "Returns the integer plus 1; throws when it does not fit.",
    examples: &[("(clojure.math/increment-exact 1)", "2")],
    arity: Arity::exactly(1),
    run: |_, args| number::inc(&Value::Int(args.int(0)?)),
};

pub(super) const DECREMENT_EXACT: Native = Native {
    name: "decrement-exact",
    usage: "(decrement-exact x)",
    doc: "Returns the integer minus 1; throws when it does not fit.",
    examples: &[("(clojure.math/decrement-exact 1)", "0")],
    arity: Arity::exactly(1),
    run: |_, args| number::dec(&Value::Int(args.int(0)?)),
};

pub(super) const NEGATE_EXACT: Native = Native {
    name: "negate-exact",
    usage: "(negate-exact x)",
    doc: "Returns the integer negated; throws when it does not fit.",
    examples: &[("(clojure.math/negate-exact 1)", "-1")],
    arity: Arity::exactly(1),
    run: |_, args| number::neg(&Value::Int(args.int(0)?)),
};

fn one(args: &Args<'_>, operation: &str, f: fn(f64) -> f64) -> Result<Value> {
    Ok(Value::Float(f(number::to_float(args.get(0), operation)?)))
}

fn two(args: &Args<'_>, operation: &str, f: fn(f64, f64) -> f64) -> Result<Value> {
    let float = |idx: usize| match args.get(idx).is_number() {
        true => number::to_float(args.get(idx), operation),
        false => Err(number::not_a_number(operation, args.get(idx), idx)),
    };
    Ok(Value::Float(f(float(0)?, float(1)?)))
}

fn signum(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() {
        x
    } else {
        x.signum()
    }
}

fn ulp(x: f64) -> f64 {
    let x = x.abs();
    if x == f64::MAX {
        return x - x.next_down();
    }
    x.next_up() - x
}

/// Raises to a power as Java does: a NaN exponent gives NaN, and so does a base of 1 with an infinite exponent.
fn pow(base: f64, exponent: f64) -> f64 {
    if exponent.is_nan() || (base.abs() == 1.0 && exponent.is_infinite()) {
        return f64::NAN;
    }
    base.powf(exponent)
}

fn ieee_remainder(dividend: f64, divisor: f64) -> f64 {
    if !dividend.is_finite() || divisor.is_nan() || divisor == 0.0 {
        return f64::NAN;
    }
    if divisor.is_infinite() {
        return dividend;
    }
    let rest = dividend % divisor;
    let half = divisor.abs() / 2.0;
    let is_odd = (dividend / divisor).trunc() % 2.0 != 0.0;
    if rest.abs() > half || (rest.abs() == half && is_odd) {
        rest - divisor.abs().copysign(rest)
    } else {
        rest
    }
}

fn next_after(start: f64, direction: f64) -> f64 {
    if start.is_nan() || direction.is_nan() {
        f64::NAN
    } else if direction > start {
        start.next_up()
    } else if direction < start {
        start.next_down()
    } else {
        direction
    }
}

fn round(x: f64) -> i64 {
    // Adding one half would round 0.49999999999999994 up.
    let floor = x.floor();
    if x - floor >= 0.5 {
        floor as i64 + 1
    } else {
        floor as i64
    }
}

fn floor_div(_vm: &mut Vm, args: Args<'_>) -> Result<Value> {
    let (x, y) = (args.int(0)?, args.int(1)?);
    if y == 0 {
        return Err(number::divide_by_zero());
    }
    let quotient = x.wrapping_div(y);
    let is_below = x.wrapping_rem(y) != 0 && (x < 0) != (y < 0);
    Ok(Value::Int(quotient - i64::from(is_below)))
}

fn floor_mod(_vm: &mut Vm, args: Args<'_>) -> Result<Value> {
    number::modulo(&Value::Int(args.int(0)?), &Value::Int(args.int(1)?))
}

fn exponent(x: f64) -> i64 {
    match (x.to_bits() >> 52 & 0x7ff) as i64 {
        0x7ff => 1024,
        0 => -1023,
        biased => biased - 1023,
    }
}

fn scalb(_vm: &mut Vm, args: Args<'_>) -> Result<Value> {
    let mut float = number::to_float(args.get(0), "scalb")?;
    let mut exponent = args.int(1)?.clamp(-2200, 2200) as i32;
    // In steps, because a single factor could overflow when the product does not.
    while exponent != 0 {
        let step = exponent.clamp(-1000, 1000);
        float *= 2f64.powi(step);
        exponent -= step;
    }
    Ok(Value::Float(float))
}
