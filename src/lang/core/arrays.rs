//! Arrays: creating them, reading and replacing their items.
//!
//! Constructors narrow numbers silently, as on the host; `aset` rejects values that do not fit.

mod element;
mod make;

use crate::value::{Arity, Array, Class, Element, Exception, Native, Object, Result, Value, track};
use crate::vm::{Args, Vm, wrong_type};

pub(super) use make::FNS as MAKE_FNS;

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    ACLONE,
    AGET,
    ALENGTH,
    ASET,
    ASET_BOOLEAN,
    ASET_BYTE,
    ASET_CHAR,
    ASET_DOUBLE,
    ASET_FLOAT,
    ASET_INT,
    ASET_LONG,
    ASET_SHORT,
    BOOLEANS,
    BYTES,
    CHARS,
    DOUBLES,
    FLOATS,
    INTS,
    LONGS,
    SHORTS,
];

const ACLONE: Native = Native {
    name: "aclone",
    usage: "(aclone array)",
    doc: "Returns a copy of an array.",
    examples: &[("(vec (aclone (int-array [1 2])))", "[1 2]")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        if let Value::Object(object) = args.get(0)
            && let Object::Bytes(bytes) = &**object
        {
            let items = bytes.iter().map(|byte| Value::Int(i64::from(*byte as i8)));
            return Ok(array(Element::Byte, items.collect()));
        }
        let from = array_argument(&args, 0)?;
        vm.charge(u32::try_from(from.len()).unwrap_or(u32::MAX))?;
        Ok(array(from.element, from.snapshot()))
    },
};

const AGET: Native = Native {
    name: "aget",
    usage: "(aget array idx)\n(aget array idx & idxs)",
    doc: "Returns the item of an array at idx; with more, the item of the array inside it, and so on.",
    examples: &[("(aget (int-array [1 2]) 1)", "2")],
    arity: Arity::at_least(2),
    run: |_, args| {
        let mut at = item(args.get(0), args.get(1), 0)?;
        for idx in args.from(2) {
            at = item(&at, idx, 0)?;
        }
        Ok(at)
    },
};

const ALENGTH: Native = Native {
    name: "alength",
    usage: "(alength array)",
    doc: "Returns the number of items of an array.",
    examples: &[("(alength (int-array 3))", "3")],
    arity: Arity::exactly(1),
    run: |_, args| match args.get(0) {
        Value::Object(object) if let Object::Bytes(bytes) = &**object => {
            Ok(Value::from(bytes.len()))
        }
        _ => Ok(Value::from(array_argument(&args, 0)?.len())),
    },
};

const ASET: Native = Native {
    name: "aset",
    usage: "(aset array idx x)\n(aset array idx & idxs-and-x)",
    doc: "Replaces the item of an array at idx, or that of the array inside it, and returns x.",
    examples: &[("(let [a (int-array 2)] (aset a 0 7) (vec a))", "[7 0]")],
    arity: Arity::at_least(3),
    run: |_, args| replace(&args, element::fitting),
};

macro_rules! typed_set {
    ($($constant:ident $name:literal $array:literal $element:ident $x:literal;)*) => {
        $(const $constant: Native = Native {
            name: $name,
            usage: concat!("(", $name, " array idx x)\n(", $name, " array idx & idxs-and-x)"),
            doc: "Replaces the item of an array at idx with x, converted, and returns it.",
            examples: &[(
                concat!("(let [a (", $array, " 1)] (", $name, " a 0 ", $x, ") (aget a 0))"),
                $x,
            )],
            arity: Arity::at_least(3),
            run: |_, args| {
                replace(&args, |held, x| {
                    element::fitting(held, &element::checked(Element::$element, x)?)
                })
            },
        };)*
    };
}

typed_set! {
    ASET_BOOLEAN "aset-boolean" "boolean-array" Boolean "true";
    ASET_BYTE "aset-byte" "byte-array" Byte "7";
    ASET_CHAR "aset-char" "char-array" Char "\\a";
    ASET_DOUBLE "aset-double" "double-array" Double "1.5";
    ASET_FLOAT "aset-float" "float-array" Float "1.5";
    ASET_INT "aset-int" "int-array" Int "7";
    ASET_LONG "aset-long" "long-array" Long "7";
    ASET_SHORT "aset-short" "short-array" Short "7";
}

macro_rules! casts {
    ($($constant:ident $name:literal $array:literal $kind:literal $element:ident;)*) => {
        $(const $constant: Native = Native {
            name: $name,
            usage: concat!("(", $name, " x)"),
            doc: concat!("Returns x if it is ", $kind, ", else throws."),
            examples: &[(concat!("(alength (", $name, " (", $array, " 2)))"), "2")],
            arity: Arity::exactly(1),
            run: |_, mut args| {
                let is = match args.get(0) {
                    Value::Nil => true,
                    Value::Object(object) => match &**object {
                        Object::Array(array) => array.element == Element::$element,
                        Object::Bytes(_) => Element::$element == Element::Byte,
                        _ => false,
                    },
                    _ => false,
                };
                match is {
                    true => Ok(args.take(0)),
                    false => Err(args.expected(0, $kind)),
                }
            },
        };)*
    };
}

casts! {
    BOOLEANS "booleans" "boolean-array" "an array of booleans" Boolean;
    BYTES "bytes" "byte-array" "an array of bytes" Byte;
    CHARS "chars" "char-array" "an array of characters" Char;
    DOUBLES "doubles" "double-array" "an array of doubles" Double;
    FLOATS "floats" "float-array" "an array of floats" Float;
    INTS "ints" "int-array" "an array of ints" Int;
    LONGS "longs" "long-array" "an array of longs" Long;
    SHORTS "shorts" "short-array" "an array of shorts" Short;
}

/// Returns a new array value.
pub(super) fn array(element: Element, items: Vec<Value>) -> Value {
    let array = Value::from(Object::Array(Array::new(element, items)));
    // Only an array of any values can contain itself.
    if element == Element::Any {
        track(&array);
    }
    array
}

fn array_argument<'a>(args: &'a Args<'_>, idx: usize) -> Result<&'a Array> {
    args.get(idx)
        .as_array()
        .ok_or_else(|| not_an_array(args.get(idx), idx).into())
}

fn not_an_array(value: &Value, argument: usize) -> Exception {
    let exception = wrong_type(value, "an array", argument);
    match value {
        Value::Nil => exception,
        Value::Object(object) if matches!(**object, Object::Bytes(_)) => {
            exception.hint("these bytes never change: aclone makes an array of them")
        }
        Value::Vector(_) | Value::List(_) | Value::Seq(_) | Value::Lazy(_) => exception
            .of_class(Class::ILLEGAL_ARGUMENT)
            .hint("nth and count read a vector or sequence; to-array makes an array of it"),
        _ => exception.of_class(Class::ILLEGAL_ARGUMENT),
    }
}

fn item(from: &Value, idx: &Value, argument: usize) -> Result<Value> {
    if let Value::Object(object) = from
        && let Object::Bytes(bytes) = &**object
    {
        let at = index(idx, argument + 1, bytes.len())?;
        return Ok(Value::Int(i64::from(bytes[at] as i8)));
    }
    let Some(array) = from.as_array() else {
        return Err(not_an_array(from, argument).into());
    };
    let at = index(idx, argument + 1, array.len())?;
    Ok(array.get(at).unwrap_or(Value::Nil))
}

/// Returns an index that is within the length.
fn index(idx: &Value, argument: usize, length: usize) -> Result<usize> {
    let int = element::checked(Element::Int, idx)?;
    let int = int.as_int().unwrap_or(-1);
    usize::try_from(int)
        .ok()
        .filter(|idx| *idx < length)
        .ok_or_else(|| {
            crate::vm::out_of_bounds(int, length)
                .of_class(Class::ARRAY_INDEX_OUT_OF_BOUNDS)
                .argument(argument)
                .into()
        })
}

/// Replaces the item at a path of indexes: the arguments are array, one or more indexes, new item.
fn replace(args: &Args<'_>, convert: impl Fn(Element, &Value) -> Result<Value>) -> Result<Value> {
    let last = args.len() - 1;
    let mut inner = args.get(0).clone();
    for idx in 1..last - 1 {
        inner = item(&inner, args.get(idx), 0)?;
    }
    let Some(array) = inner.as_array() else {
        return Err(not_an_array(&inner, 0).into());
    };
    let at = index(args.get(last - 1), last - 1, array.len())?;
    let new = convert(array.element, args.get(last))?;
    array.set(at, new.clone());
    Ok(new)
}

/// Collects the items of a seqable value; an array is not walked.
fn items(vm: &mut Vm, coll: Value) -> Result<Vec<Value>> {
    match coll.as_array() {
        Some(array) => {
            vm.charge(u32::try_from(array.len()).unwrap_or(u32::MAX))?;
            Ok(array.snapshot())
        }
        None => vm.items(coll),
    }
}
