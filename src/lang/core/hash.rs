//! Equality, order and hashes.

use std::rc::Rc;

use crate::value::{Arity, Native, Result, Value, compare_exact};
use crate::vm::{Args, Vm};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    COMPARE,
    EQUAL,
    HASH,
    HASH_COMBINE,
    HASH_ORDERED,
    HASH_UNORDERED,
    IDENTICAL,
    MIX_COLLECTION,
    NOT_EQUAL,
];

const EQUAL: Native = Native {
    name: "=",
    usage: "(= x & more)",
    doc: "Tells whether all arguments are equal: numbers of one kind by value, collections by contents.",
    examples: &[
        ("(= 1 1)", "true"),
        ("(= [1 2] '(1 2))", "true"),
        ("(= 1 1.0)", "false"),
    ],
    arity: Arity::at_least(1),
    run: |vm, args| Ok(Value::Bool(all_equal(vm, &args)?)),
};

const COMPARE: Native = Native {
    name: "compare",
    usage: "(compare x y)",
    doc: "Returns a negative number, 0 or a positive number as x comes before, with or after y; nil comes first.",
    examples: &[
        ("(compare 1 2)", "-1"),
        ("(compare [1 2] [1])", "1"),
        (r#"(compare "a" "a")"#, "0"),
    ],
    arity: Arity::exactly(2),
    run: |vm, args| {
        if identical(args.get(0), args.get(1)) {
            return Ok(Value::Int(0));
        }
        if let Value::Object(_) = args.get(0)
            && let Some(order) =
                vm.call_own_method(args.get(0), "compareTo", &[args.get(1).clone()])?
        {
            return Ok(order);
        }
        let order = compare_exact(vm, args.get(0), args.get(1));
        order
            .map(Value::Int)
            .map_err(|signal| signal.at_argument(1))
    },
};

const HASH: Native = Native {
    name: "hash",
    usage: "(hash x)",
    doc: "Returns the hash of x: equal values have equal hashes.",
    examples: &[
        ("(= (hash [1 2]) (hash '(1 2)))", "true"),
        ("(hash 1)", "1392991556"),
    ],
    arity: Arity::exactly(1),
    run: |vm, args| {
        if let Value::Object(_) = args.get(0)
            && let Some(hash) =
                vm.call_first_own_method(args.get(0), &["hasheq", "hashCode"], &[])?
        {
            return Ok(hash);
        }
        Ok(int(vm.hash(args.get(0))?))
    },
};

const HASH_COMBINE: Native = Native {
    name: "hash-combine",
    usage: "(hash-combine x y)",
    doc: "Returns a hash that combines the hash x and the hash of y.",
    examples: &[("(hash-combine 1 nil)", "-1640531464")],
    arity: Arity::exactly(2),
    run: |vm, args| {
        let seed = args.int(0)? as i32;
        let hash = vm.hash(args.get(1))? as i32;
        let mixed = seed
            ^ hash
                .wrapping_add(0x9e37_79b9_u32 as i32)
                .wrapping_add(seed << 6)
                .wrapping_add(seed >> 2);
        Ok(Value::Int(i64::from(mixed)))
    },
};

const HASH_ORDERED: Native = Native {
    name: "hash-ordered-coll",
    usage: "(hash-ordered-coll coll)",
    doc: "Returns the hash of a vector or list with the items of coll.",
    examples: &[("(= (hash [1 2]) (hash-ordered-coll [1 2]))", "true")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        let items = vm.items(args.take(0))?;
        Ok(int(vm.hash(&Value::vector(items))?))
    },
};

const HASH_UNORDERED: Native = Native {
    name: "hash-unordered-coll",
    usage: "(hash-unordered-coll coll)",
    doc: "Returns the hash of a set with the items of coll.",
    examples: &[("(= (hash #{1 2}) (hash-unordered-coll [1 2]))", "true")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        let items = vm.items(args.take(0))?;
        for item in &items {
            vm.realise_key(item)?;
        }
        Ok(int(vm.hash(&Value::set(items))?))
    },
};

const IDENTICAL: Native = Native {
    name: "identical?",
    usage: "(identical? x y)",
    doc: "Tells whether x and y are the same object; numbers, keywords and characters are when they are equal.",
    examples: &[
        ("(identical? :a :a)", "true"),
        ("(identical? [1] [1])", "false"),
    ],
    arity: Arity::exactly(2),
    run: |_, args| Ok(Value::Bool(identical(args.get(0), args.get(1)))),
};

const MIX_COLLECTION: Native = Native {
    name: "mix-collection-hash",
    usage: "(mix-collection-hash basis count)",
    doc: "Returns the hash of a collection from the combined hashes of its items and their number.",
    examples: &[("(mix-collection-hash 1 2)", "1734656966")],
    arity: Arity::exactly(2),
    run: |_, args| {
        let (basis, count) = (args.int(0)? as u32, args.int(1)? as u32);
        Ok(int(mix(basis, count)))
    },
};

const NOT_EQUAL: Native = Native {
    name: "not=",
    usage: "(not= x & more)",
    doc: "Tells whether not all arguments are equal.",
    examples: &[("(not= 1 2)", "true")],
    arity: Arity::at_least(1),
    run: |vm, args| Ok(Value::Bool(!all_equal(vm, &args)?)),
};

fn all_equal(vm: &mut Vm, args: &Args<'_>) -> Result<bool> {
    for pair in args.as_slice().windows(2) {
        if !vm.equal(&pair[0], &pair[1])? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Applies Murmur3's mixing of one word and its finalisation for a length.
fn mix(word: u32, length: u32) -> u32 {
    let word = word
        .wrapping_mul(0xcc9e_2d51)
        .rotate_left(15)
        .wrapping_mul(0x1b87_3593);
    let mut hash = word
        .rotate_left(13)
        .wrapping_mul(5)
        .wrapping_add(0xe654_6b64);
    hash ^= length;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

fn int(hash: u32) -> Value {
    Value::Int(i64::from(hash as i32))
}

/// Tells whether two values are identical.
pub(crate) fn identical(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left), Value::Int(right)) => left == right,
        (Value::Float(left), Value::Float(right)) => left.to_bits() == right.to_bits(),
        (Value::Char(left), Value::Char(right)) => left == right,
        (Value::Keyword(left), Value::Keyword(right)) => left == right,
        (Value::Symbol(left), Value::Symbol(right)) => left == right,
        (Value::Native(left), Value::Native(right)) => {
            std::ptr::eq(*left, *right) || left.name == right.name
        }
        (Value::Text(left), Value::Text(right)) => Rc::ptr_eq(left, right),
        (Value::Name(left), Value::Name(right)) => Rc::ptr_eq(left, right),
        (Value::Fn(left), Value::Fn(right)) => Rc::ptr_eq(left, right),
        (Value::Vector(left), Value::Vector(right)) => Rc::ptr_eq(left, right),
        (Value::Map(left), Value::Map(right)) => Rc::ptr_eq(left, right),
        (Value::Set(left), Value::Set(right)) => Rc::ptr_eq(left, right),
        (Value::List(left), Value::List(right)) => {
            Rc::ptr_eq(left, right) || (left.is_empty() && right.is_empty())
        }
        (Value::Seq(left), Value::Seq(right)) => Rc::ptr_eq(left, right),
        (Value::Lazy(left), Value::Lazy(right)) => Rc::ptr_eq(left, right),
        (Value::Var(left), Value::Var(right)) => Rc::ptr_eq(left, right),
        (Value::Atom(left), Value::Atom(right)) => Rc::ptr_eq(left, right),
        (Value::BigInt(left), Value::BigInt(right)) => Rc::ptr_eq(left, right),
        (Value::Ratio(left), Value::Ratio(right)) => Rc::ptr_eq(left, right),
        (Value::Decimal(left), Value::Decimal(right)) => Rc::ptr_eq(left, right),
        (Value::Exception(left), Value::Exception(right)) => Rc::ptr_eq(left, right),
        (Value::Record(left), Value::Record(right)) => Rc::ptr_eq(left, right),
        (Value::Object(left), Value::Object(right)) => {
            Rc::ptr_eq(left, right) || same_class(left, right)
        }
        _ => false,
    }
}

/// Several objects may represent the same class or namespace.
fn same_class(left: &crate::value::Object, right: &crate::value::Object) -> bool {
    use crate::value::Object;
    match (left, right) {
        (Object::Class(left), Object::Class(right)) => left == right,
        (Object::Namespace(left), Object::Namespace(right)) => Rc::ptr_eq(left, right),
        (Object::RecordType(left), Object::RecordType(right)) => Rc::ptr_eq(left, right),
        _ => false,
    }
}
