//! Random forms: a printed form reads as an equal one, equal values have equal hashes, and the order is consistent.
//!
//! Each test runs a few thousand forms; `PROPTEST_CASES=1000000` makes it a million.

#![expect(
    clippy::disallowed_methods,
    reason = "the number of cases is set from outside"
)]

use std::cmp::Ordering;

use flowstone_lang::reader::read_all_data;
use flowstone_lang::value::{
    BigInt, Keyword, PrintOptions, Symbol, Unforced, Value, compare, equal, hash_value, print_value,
};
use proptest::prelude::*;

use super::read_code;

fn names() -> impl Strategy<Value = String> {
    "[a-z*+!_?<>=-][a-z0-9*+!_?<>='-]{0,6}".prop_filter("not a number or a constant", |name| {
        let starts_number = name.starts_with(['+', '-'])
            && name[1..].starts_with(|char: char| char.is_ascii_digit());
        !starts_number && !["nil", "true", "false"].contains(&name.as_str())
    })
}

fn full_names() -> impl Strategy<Value = (Option<String>, String)> {
    (prop::option::weighted(0.3, names()), names())
}

fn scalars() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        (-20_i64..20).prop_map(Value::Int),
        any::<f64>()
            .prop_filter("NaN equals nothing", |float| !float.is_nan())
            .prop_map(Value::Float),
        any::<i128>().prop_map(|int| Value::from(BigInt::from(int) * BigInt::from(int))),
        any::<char>().prop_map(Value::Char),
        ".{0,12}".prop_map(Value::from),
        full_names().prop_map(|(namespace, name)| {
            Value::Symbol(Symbol::with_namespace(namespace.as_deref(), &name))
        }),
        full_names().prop_map(|(namespace, name)| {
            let text = namespace.map_or(name.clone(), |namespace| format!("{namespace}/{name}"));
            Value::Keyword(Keyword::new(&text))
        }),
    ]
}

fn forms() -> impl Strategy<Value = Value> {
    scalars().prop_recursive(4, 24, 5, |inner| {
        let items = prop::collection::vec(inner, 0..6);
        prop_oneof![
            items.clone().prop_map(Value::vector),
            items.clone().prop_map(Value::list),
            items.clone().prop_map(Value::set),
            items.prop_map(|items| {
                let pairs: Vec<_> = items
                    .chunks_exact(2)
                    .map(|pair| (pair[0].clone(), pair[1].clone()))
                    .collect();
                Value::map(pairs)
            }),
        ]
    })
}

fn printed(value: &Value) -> String {
    let mut out = String::new();
    print_value(&mut out, &mut Unforced, value, PrintOptions::READABLE).unwrap();
    out
}

fn hash(value: &Value) -> u32 {
    hash_value(&mut Unforced, value).unwrap()
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    compare(&mut Unforced, left, right).ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2000)
    ))]

    #[test]
    fn a_form_is_read_as_it_was_printed(form in forms()) {
        let text = printed(&form);
        for read in [read_all_data(&text), read_code(&text)] {
            let read = read.map_err(|error| TestCaseError::fail(format!("{text}: {error:?}")))?;
            prop_assert_eq!(read.len(), 1, "{}", text);
            prop_assert!(equal(&mut Unforced, &read[0], &form).unwrap(), "{} reads as {}", text, printed(&read[0]));
            prop_assert_eq!(hash(&read[0]), hash(&form), "{}", text);
            prop_assert_eq!(printed(&read[0]), text.clone());
        }
    }

    #[test]
    fn equal_values_hash_alike_and_order_is_an_order(one in scalars(), two in scalars(), three in scalars()) {
        if equal(&mut Unforced, &one, &two).unwrap() {
            prop_assert_eq!(hash(&one), hash(&two));
        }
        prop_assert!(equal(&mut Unforced, &one, &one).unwrap());
        prop_assert_eq!(order(&one, &two), order(&two, &one).map(Ordering::reverse));
        if order(&one, &two) == Some(Ordering::Less) && order(&two, &three) == Some(Ordering::Less) {
            prop_assert_eq!(order(&one, &three), Some(Ordering::Less));
        }
        let (left, right) = (
            Value::vector([one.clone(), two.clone()]),
            Value::list([one, two]),
        );
        prop_assert!(equal(&mut Unforced, &left, &right).unwrap());
        prop_assert_eq!(hash(&left), hash(&right));
    }
}
