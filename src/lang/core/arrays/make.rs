//! Functions that create arrays.

use super::{array, element, items};
use crate::value::{Arity, Class, Element, Exception, Native, Object, Result, Value, meter};
use crate::vm::{Args, Vm};

/// The functions of this area.
pub(in crate::core) const FNS: &[Native] = &[
    BOOLEAN_ARRAY,
    BYTE_ARRAY,
    CHAR_ARRAY,
    DOUBLE_ARRAY,
    FLOAT_ARRAY,
    INT_ARRAY,
    INTO_ARRAY,
    LONG_ARRAY,
    MAKE_ARRAY,
    OBJECT_ARRAY,
    SHORT_ARRAY,
    TO_ARRAY,
    TO_ARRAY_2D,
];

macro_rules! constructors {
    ($($constant:ident $name:literal $what:literal $element:ident $items:literal;)*) => {
        $(const $constant: Native = Native {
            name: $name,
            usage: concat!("(", $name, " size-or-coll)\n(", $name, " size init-or-coll)"),
            doc: concat!(
                "Returns an array of ", $what,
                ": of a size, or with the items of coll. init is the value of every place."
            ),
            examples: &[(concat!("(vec (", $name, " ", $items, "))"), $items)],
            arity: Arity::between(1, 2),
            run: |vm, args| construct(vm, args, Element::$element),
        };)*
    };
}

constructors! {
    BOOLEAN_ARRAY "boolean-array" "booleans" Boolean "[true false]";
    BYTE_ARRAY "byte-array" "integers of 8 bits" Byte "[1 2]";
    CHAR_ARRAY "char-array" "characters" Char "[\\a \\b]";
    DOUBLE_ARRAY "double-array" "doubles" Double "[1.5 2.5]";
    FLOAT_ARRAY "float-array" "short doubles" Float "[1.5 2.5]";
    INT_ARRAY "int-array" "integers of 32 bits" Int "[1 2]";
    LONG_ARRAY "long-array" "integers of 64 bits" Long "[1 2]";
    SHORT_ARRAY "short-array" "integers of 16 bits" Short "[1 2]";
}

const INTO_ARRAY: Native = Native {
    name: "into-array",
    usage: "(into-array coll)\n(into-array type coll)",
    doc: "Returns an array of the items of coll; an array of strings if the first item is one or type is String.",
    examples: &[("(vec (into-array [1 2]))", "[1 2]")],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        let element = match args.len() {
            1 => None,
            _ => Some(element_of(&args)?),
        };
        let coll = args.take(args.len() - 1);
        let items = items(vm, coll)?;
        let element = element.unwrap_or(match items.first() {
            Some(Value::Text(_)) => Element::Text,
            _ => Element::Any,
        });
        let items: Result<Vec<Value>> = items
            .iter()
            .map(|item| element::fitting(element, item))
            .collect();
        Ok(array(element, items?))
    },
};

const MAKE_ARRAY: Native = Native {
    name: "make-array",
    usage: "(make-array type size)\n(make-array type size & sizes)",
    doc: "Returns an array for items of a class, such as String or Integer/TYPE; with more sizes, an array of arrays.",
    examples: &[
        ("(vec (make-array Integer/TYPE 2))", "[0 0]"),
        ("(alength (aget (make-array String 2 3) 1))", "3"),
    ],
    arity: Arity::at_least(2),
    run: |vm, args| {
        let element = element_of(&args)?;
        let sizes: Result<Vec<usize>> = (1..args.len()).map(|idx| size(&args, idx)).collect();
        nested(vm, element, &sizes?)
    },
};

const OBJECT_ARRAY: Native = Native {
    name: "object-array",
    usage: "(object-array size-or-coll)",
    doc: "Returns an array of values of any kind: of a size, with nil in every place, or with the items of coll.",
    examples: &[
        ("(vec (object-array 2))", "[nil nil]"),
        ("(vec (object-array [1 :a]))", "[1 :a]"),
    ],
    arity: Arity::exactly(1),
    run: |vm, args| construct(vm, args, Element::Any),
};

const TO_ARRAY: Native = Native {
    name: "to-array",
    usage: "(to-array coll)",
    doc: "Returns an array of the items of coll.",
    examples: &[("(alength (to-array [1 2 3]))", "3")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        let items = items(vm, args.take(0))?;
        Ok(array(Element::Any, items))
    },
};

const TO_ARRAY_2D: Native = Native {
    name: "to-array-2d",
    usage: "(to-array-2d coll)",
    doc: "Returns an array of arrays, each with the items of one collection in coll.",
    examples: &[("(aget (to-array-2d [[1 2] [3]]) 0 1)", "2")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        let rows = items(vm, args.take(0))?;
        let mut made = Vec::with_capacity(rows.len());
        for row in rows {
            made.push(array(Element::Any, items(vm, row)?));
        }
        Ok(array(Element::Any, made))
    },
};

fn construct(vm: &mut Vm, mut args: Args<'_>, kind: Element) -> Result<Value> {
    if !args.get(0).is_number() {
        let items = items(vm, args.take(0))?;
        return Ok(array(kind, narrowed(kind, &items)?));
    }
    let size = size(&args, 0)?;
    charge(vm, size)?;
    if args.len() == 1 {
        return Ok(array(kind, filled(vm, &kind.initial(), size)?));
    }
    let init = args.get(1);
    let is_one = match kind {
        Element::Boolean => matches!(init, Value::Bool(_)),
        Element::Char => matches!(init, Value::Char(_)),
        _ => init.is_number(),
    };
    if is_one {
        let init = element::narrowed(kind, init)?;
        return Ok(array(kind, filled(vm, &init, size)?));
    }
    let mut made = Vec::new();
    let mut coll = vm.iter(args.take(1))?;
    while made.len() < size
        && let Some(item) = coll.next(vm)?
    {
        made.push(element::narrowed(kind, &item)?);
    }
    made.resize(size, kind.initial());
    Ok(array(kind, made))
}

/// Number of places that are filled between two payments.
const FILLED_AT_ONCE: usize = 1 << 20;

fn filled(vm: &mut Vm, init: &Value, size: usize) -> Result<Vec<Value>> {
    let mut made = Vec::with_capacity(size);
    while made.len() < size {
        made.resize((made.len() + FILLED_AT_ONCE).min(size), init.clone());
        meter::spend(FILLED_AT_ONCE as u32 / 64)?;
        vm.charge(1)?;
    }
    Ok(made)
}

fn narrowed(kind: Element, items: &[Value]) -> Result<Vec<Value>> {
    items
        .iter()
        .map(|item| element::narrowed(kind, item))
        .collect()
}

fn nested(vm: &mut Vm, kind: Element, sizes: &[usize]) -> Result<Value> {
    let Some((size, inner)) = sizes.split_first() else {
        return Ok(Value::Nil);
    };
    charge(vm, *size)?;
    if inner.is_empty() {
        return Ok(array(kind, filled(vm, &kind.initial(), *size)?));
    }
    let rows: Result<Vec<Value>> = (0..*size).map(|_| nested(vm, kind, inner)).collect();
    Ok(array(Element::Any, rows?))
}

/// Maximum number of items in an array, which then takes 2 GiB.
const MANY: usize = 1 << 27;

/// Pays for an array, and fails if there is no room for it.
fn charge(vm: &mut Vm, size: usize) -> Result<()> {
    let has_room = || Vec::<Value>::new().try_reserve_exact(size).is_ok();
    if size > MANY || !has_room() {
        let message = format!("there is no room for an array of {size} items");
        return Err(Exception::new(Class::OUT_OF_MEMORY, "E0328", message)
            .hint("work on parts of it, or use a sequence")
            .into());
    }
    vm.room_for(size * size_of::<Value>())?;
    vm.charge_much(size as u64)
}

/// Returns a size: an integer of 0 or more that fits into 32 bits.
fn size(args: &Args<'_>, idx: usize) -> Result<usize> {
    let size = element::checked(Element::Int, args.get(idx))?;
    let size = size.as_int().unwrap_or(-1);
    usize::try_from(size).map_err(|_| {
        Exception::new(
            Class::NEGATIVE_ARRAY_SIZE,
            "E0301",
            format!("an array cannot have {size} items"),
        )
        .argument(idx)
        .into()
    })
}

/// Returns the element type of an array of a class.
fn element_of(args: &Args<'_>) -> Result<Element> {
    match args.get(0) {
        Value::Object(object) => match &**object {
            Object::Class(class) => Ok(class.primitive().unwrap_or(match class.0.name {
                "String" => Element::Text,
                _ => Element::Any,
            })),
            Object::RecordType(_) => Ok(Element::Any),
            _ => Err(args.expected(0, "a class")),
        },
        _ => Err(args.expected(0, "a class")),
    }
}
