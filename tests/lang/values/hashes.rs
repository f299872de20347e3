//! Hashes agree with Clojure on the JVM.

use flowstone_lang::value::{Unforced, Value, hash_value};

use super::read;

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
