//! Deep nesting does not overflow the stack.

use flowstone_lang::value::{List, Unforced, Value, compare, equal, hash_value};

use super::show;

const DEPTH: usize = 200_000;

fn nested(depth: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(Value::Nil, |inner, _| wrap(inner))
}

fn kinds() -> [fn(Value) -> Value; 4] {
    [
        |inner| Value::vector([inner]),
        |inner| Value::list([inner]),
        |inner| Value::map([(Value::keyword("a"), inner)]),
        |inner| List::cons(inner, Value::Nil),
    ]
}

#[test]
fn deep_values_compare_and_hash() {
    for wrap in kinds() {
        let (one, other) = (nested(DEPTH, wrap), nested(DEPTH, wrap));
        let deeper = wrap(nested(DEPTH, wrap));
        assert!(equal(&mut Unforced, &one, &other).unwrap());
        assert!(!equal(&mut Unforced, &one, &deeper).unwrap());
        assert_eq!(
            hash_value(&mut Unforced, &one).unwrap(),
            hash_value(&mut Unforced, &other).unwrap()
        );
    }
    let (one, other) = (nested(DEPTH, kinds()[0]), nested(DEPTH, kinds()[0]));
    assert!(compare(&mut Unforced, &one, &other).unwrap().is_eq());
}

#[test]
fn deep_values_print() {
    for wrap in kinds() {
        assert!(show(&nested(DEPTH, wrap)).len() > 2 * DEPTH);
    }
}

#[test]
fn printing_a_circular_value_throws() {
    let atom = std::rc::Rc::new(flowstone_lang::value::Atom::new(Value::Nil));
    atom.value.replace(Value::Atom(atom.clone()));
    let mut out = String::new();
    let result = flowstone_lang::value::print_value(
        &mut out,
        &mut Unforced,
        &Value::Atom(atom.clone()),
        flowstone_lang::value::PrintOptions::READABLE,
    );
    assert!(result.is_err());
    atom.value.replace(Value::Nil);
}

#[test]
fn wide_and_deep_values_hash_in_reasonable_time() {
    // Two references at each level: deeply nested shared values are hashed a bounded number of times.
    let mut value = Value::Nil;
    for level in 0..300 {
        value = Value::vector([value, Value::Int(level)]);
    }
    let wide = Value::vector(std::iter::repeat_n(value, 2000));
    hash_value(&mut Unforced, &wide).unwrap();
}

#[test]
fn comparing_deeply_nested_sets_throws() {
    let nest = |depth| (0..depth).fold(Value::Nil, |inner, _| Value::set([inner]));
    assert!(equal(&mut Unforced, &nest(50), &nest(50)).unwrap());
    assert!(!equal(&mut Unforced, &nest(50), &nest(51)).unwrap());
    assert!(equal(&mut Unforced, &nest(300), &nest(300)).is_err());
    assert!(equal(&mut Unforced, &nest(50), &nest(50)).unwrap());
}
