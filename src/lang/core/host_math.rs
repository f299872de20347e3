//! `Math/*`: the functions of `clojure.math` under their Java names.

use super::{arithmetic, math};
use crate::value::Native;

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    ABS,
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
    IEEEREMAINDER,
    INCREMENT_EXACT,
    LOG,
    LOG10,
    LOG1P,
    MAX,
    MIN,
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

const SIN: Native = Native {
    name: "sin",
    usage: "(Math/sin x)",
    examples: &[("(Math/sin 0)", "0.0")],
    ..math::SIN
};

const COS: Native = Native {
    name: "cos",
    usage: "(Math/cos x)",
    examples: &[("(Math/cos 0)", "1.0")],
    ..math::COS
};

const TAN: Native = Native {
    name: "tan",
    usage: "(Math/tan x)",
    examples: &[("(Math/tan 0)", "0.0")],
    ..math::TAN
};

const ASIN: Native = Native {
    name: "asin",
    usage: "(Math/asin x)",
    examples: &[("(Math/asin 0)", "0.0")],
    ..math::ASIN
};

const ACOS: Native = Native {
    name: "acos",
    usage: "(Math/acos x)",
    examples: &[("(Math/acos 1)", "0.0")],
    ..math::ACOS
};

const ATAN: Native = Native {
    name: "atan",
    usage: "(Math/atan x)",
    examples: &[("(Math/atan 0)", "0.0")],
    ..math::ATAN
};

const SINH: Native = Native {
    name: "sinh",
    usage: "(Math/sinh x)",
    examples: &[("(Math/sinh 0)", "0.0")],
    ..math::SINH
};

const COSH: Native = Native {
    name: "cosh",
    usage: "(Math/cosh x)",
    examples: &[("(Math/cosh 0)", "1.0")],
    ..math::COSH
};

const TANH: Native = Native {
    name: "tanh",
    usage: "(Math/tanh x)",
    examples: &[("(Math/tanh 0)", "0.0")],
    ..math::TANH
};

const EXP: Native = Native {
    name: "exp",
    usage: "(Math/exp x)",
    examples: &[("(Math/exp 0)", "1.0")],
    ..math::EXP
};

const EXPM1: Native = Native {
    name: "expm1",
    usage: "(Math/expm1 x)",
    examples: &[("(Math/expm1 0)", "0.0")],
    ..math::EXPM1
};

const LOG: Native = Native {
    name: "log",
    usage: "(Math/log x)",
    examples: &[("(Math/log 1)", "0.0")],
    ..math::LOG
};

const LOG10: Native = Native {
    name: "log10",
    usage: "(Math/log10 x)",
    examples: &[("(Math/log10 1000)", "3.0")],
    ..math::LOG10
};

const LOG1P: Native = Native {
    name: "log1p",
    usage: "(Math/log1p x)",
    examples: &[("(Math/log1p 0)", "0.0")],
    ..math::LOG1P
};

const SQRT: Native = Native {
    name: "sqrt",
    usage: "(Math/sqrt x)",
    examples: &[("(Math/sqrt 9)", "3.0")],
    ..math::SQRT
};

const CBRT: Native = Native {
    name: "cbrt",
    usage: "(Math/cbrt x)",
    examples: &[("(Math/cbrt 27)", "3.0")],
    ..math::CBRT
};

const CEIL: Native = Native {
    name: "ceil",
    usage: "(Math/ceil x)",
    examples: &[("(Math/ceil 1.2)", "2.0")],
    ..math::CEIL
};

const FLOOR: Native = Native {
    name: "floor",
    usage: "(Math/floor x)",
    examples: &[("(Math/floor 1.8)", "1.0")],
    ..math::FLOOR
};

const RINT: Native = Native {
    name: "rint",
    usage: "(Math/rint x)",
    examples: &[("(Math/rint 2.5)", "2.0")],
    ..math::RINT
};

const SIGNUM: Native = Native {
    name: "signum",
    usage: "(Math/signum x)",
    examples: &[("(Math/signum -3)", "-1.0")],
    ..math::SIGNUM
};

const ULP: Native = Native {
    name: "ulp",
    usage: "(Math/ulp x)",
    examples: &[("(Math/ulp 1)", "2.220446049250313E-16")],
    ..math::ULP
};

const TO_DEGREES: Native = Native {
    name: "toDegrees",
    usage: "(Math/toDegrees x)",
    examples: &[("(Math/toDegrees 0)", "0.0")],
    ..math::TO_DEGREES
};

const TO_RADIANS: Native = Native {
    name: "toRadians",
    usage: "(Math/toRadians x)",
    examples: &[("(Math/toRadians 0)", "0.0")],
    ..math::TO_RADIANS
};

const NEXT_UP: Native = Native {
    name: "nextUp",
    usage: "(Math/nextUp x)",
    examples: &[("(Math/nextUp 1)", "1.0000000000000002")],
    ..math::NEXT_UP
};

const NEXT_DOWN: Native = Native {
    name: "nextDown",
    usage: "(Math/nextDown x)",
    examples: &[("(Math/nextDown 1)", "0.9999999999999999")],
    ..math::NEXT_DOWN
};

const POW: Native = Native {
    name: "pow",
    usage: "(Math/pow a b)",
    examples: &[("(Math/pow 2 10)", "1024.0")],
    ..math::POW
};

const ATAN2: Native = Native {
    name: "atan2",
    usage: "(Math/atan2 y x)",
    examples: &[("(Math/atan2 0 1)", "0.0")],
    ..math::ATAN2
};

const HYPOT: Native = Native {
    name: "hypot",
    usage: "(Math/hypot x y)",
    examples: &[("(Math/hypot 3 4)", "5.0")],
    ..math::HYPOT
};

const COPY_SIGN: Native = Native {
    name: "copySign",
    usage: "(Math/copySign magnitude sign)",
    examples: &[("(Math/copySign 3 -1)", "-3.0")],
    ..math::COPY_SIGN
};

const IEEEREMAINDER: Native = Native {
    name: "IEEEremainder",
    usage: "(Math/IEEEremainder dividend divisor)",
    examples: &[("(Math/IEEEremainder 5 3)", "-1.0")],
    ..math::IEEE_REMAINDER
};

const NEXT_AFTER: Native = Native {
    name: "nextAfter",
    usage: "(Math/nextAfter start direction)",
    examples: &[("(Math/nextAfter 1 2)", "1.0000000000000002")],
    ..math::NEXT_AFTER
};

const ROUND: Native = Native {
    name: "round",
    usage: "(Math/round x)",
    examples: &[("(Math/round 2.5)", "3")],
    ..math::ROUND
};

const FLOOR_DIV: Native = Native {
    name: "floorDiv",
    usage: "(Math/floorDiv x y)",
    examples: &[("(Math/floorDiv -7 2)", "-4")],
    ..math::FLOOR_DIV
};

const FLOOR_MOD: Native = Native {
    name: "floorMod",
    usage: "(Math/floorMod x y)",
    examples: &[("(Math/floorMod -7 2)", "1")],
    ..math::FLOOR_MOD
};

const GET_EXPONENT: Native = Native {
    name: "getExponent",
    usage: "(Math/getExponent x)",
    examples: &[("(Math/getExponent 8)", "3")],
    ..math::GET_EXPONENT
};

const SCALB: Native = Native {
    name: "scalb",
    usage: "(Math/scalb x exponent)",
    examples: &[("(Math/scalb 3 2)", "12.0")],
    ..math::SCALB
};

const RANDOM: Native = Native {
    name: "random",
    usage: "(Math/random)",
    examples: &[("(< (Math/random) 1)", "true")],
    ..math::RANDOM
};

const ADD_EXACT: Native = Native {
    name: "addExact",
    usage: "(Math/addExact x y)",
    examples: &[("(Math/addExact 1 2)", "3")],
    ..math::ADD_EXACT
};

const SUBTRACT_EXACT: Native = Native {
    name: "subtractExact",
    usage: "(Math/subtractExact x y)",
    examples: &[("(Math/subtractExact 3 1)", "2")],
    ..math::SUBTRACT_EXACT
};

const MULTIPLY_EXACT: Native = Native {
    name: "multiplyExact",
    usage: "(Math/multiplyExact x y)",
    examples: &[("(Math/multiplyExact 3 4)", "12")],
    ..math::MULTIPLY_EXACT
};

const INCREMENT_EXACT: Native = Native {
    name: "incrementExact",
    usage: "(Math/incrementExact x)",
    examples: &[("(Math/incrementExact 1)", "2")],
    ..math::INCREMENT_EXACT
};

const DECREMENT_EXACT: Native = Native {
    name: "decrementExact",
    usage: "(Math/decrementExact x)",
    examples: &[("(Math/decrementExact 1)", "0")],
    ..math::DECREMENT_EXACT
};

const NEGATE_EXACT: Native = Native {
    name: "negateExact",
    usage: "(Math/negateExact x)",
    examples: &[("(Math/negateExact 1)", "-1")],
    ..math::NEGATE_EXACT
};

const ABS: Native = Native {
    name: "abs",
    usage: "(Math/abs x)",
    examples: &[("(Math/abs -3)", "3")],
    ..arithmetic::ABS
};

const MAX: Native = Native {
    name: "max",
    usage: "(Math/max x y)",
    examples: &[("(Math/max 1 2)", "2")],
    ..arithmetic::MAX
};

const MIN: Native = Native {
    name: "min",
    usage: "(Math/min x y)",
    examples: &[("(Math/min 1 2)", "1")],
    ..arithmetic::MIN
};
