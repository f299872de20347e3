//! Hashes agree with Clojure on the JVM.

use flowstone_lang::value::{Unforced, Value, hash_value};

use super::{read, show};

fn hash(value: &Value) -> i32 {
    hash_value(&mut Unforced, value).expect("nothing to compute") as i32
}

#[test]
fn hashes_are_those_of_clojure() {
    let wrong: Vec<String> = include_str!("hashes.txt")
        .lines()
        .filter_map(|line| {
            let (expected, text) = line.split_once(' ')?;
            let got = hash(&read(text));
            (got.to_string() != expected).then(|| format!("{text}: {got}, not {expected}"))
        })
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn order_of_large_maps_and_sets_is_fixed() {
    let set = Value::set((0..12).map(Value::Int));
    let map = Value::map(('a'..='l').map(|char| {
        let key = Value::keyword(&char.to_string());
        (key, Value::Int(i64::from(char as u32)))
    }));
    let text = Value::set(
        [
            "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
        ]
        .map(Value::from),
    );
    expect_test::expect_file!["order.txt"].assert_eq(&format!(
        "{}\n{}\n{}\n",
        show(&set),
        show(&map),
        show(&text)
    ));
}
