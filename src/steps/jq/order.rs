//! The order of values: null, false, true, numbers, strings, arrays, objects.

use std::cmp::Ordering;

use serde_json::Value as Json;

/// Compares two values.
pub(super) fn compare(one: &Json, other: &Json) -> Ordering {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => {
            let number = |it: &serde_json::Number| it.as_f64().unwrap_or(f64::NAN);
            number(one).total_cmp(&number(other))
        }
        (Json::String(one), Json::String(other)) => one.cmp(other),
        (Json::Array(one), Json::Array(other)) => {
            let mut pairs = one.iter().zip(other);
            let unequal = pairs.find_map(|(one, other)| match compare(one, other) {
                Ordering::Equal => None,
                order => Some(order),
            });
            unequal.unwrap_or(one.len().cmp(&other.len()))
        }
        (Json::Object(one), Json::Object(other)) => {
            let mut keys: [Vec<&String>; 2] = [one.keys().collect(), other.keys().collect()];
            keys.iter_mut().for_each(|keys| keys.sort());
            let of_values = || {
                let values = keys[0].iter().map(|key| compare(&one[*key], &other[*key]));
                values
                    .into_iter()
                    .find(|it| it.is_ne())
                    .unwrap_or(Ordering::Equal)
            };
            match keys[0].cmp(&keys[1]) {
                Ordering::Equal => of_values(),
                order => order,
            }
        }
        (one, other) => rank(one).cmp(&rank(other)),
    }
}

fn rank(value: &Json) -> u8 {
    match value {
        Json::Null => 0,
        Json::Bool(false) => 1,
        Json::Bool(true) => 2,
        Json::Number(_) => 3,
        Json::String(_) => 4,
        Json::Array(_) => 5,
        Json::Object(_) => 6,
    }
}
