//! `:total-timeout` of a step: the time for all its attempts, with the pauses between them.

use std::time::Duration;

use flowstone_lang::value::Value;

use crate::duration;
use crate::option_problem::{Wrong, keys};

const OPTION: &str = "total-timeout";
const CODE: &str = "E0800";
const KEYS: &[&str] = &["from", "limit"];

/// `:total-timeout` of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TotalTimeout {
    pub limit: Duration,
    /// The time from which the limit counts, in milliseconds since 1970; `None`: the start of the step.
    pub from_ms: Option<i64>,
}

impl TotalTimeout {
    /// Reads the option of a step.
    ///
    /// # Errors
    /// When it is neither a duration nor a map with one.
    pub fn of(value: &Value) -> Result<Option<TotalTimeout>, Wrong> {
        if value.is_nil() {
            return Ok(None);
        }
        if let Some(limit) = duration::of_value(value) {
            let from_ms = None;
            return Ok(Some(TotalTimeout { limit, from_ms }));
        }
        let (limit, from_ms) = parts(value)?;
        let limit = limit.ok_or_else(|| wrong("limit", "a time, such as `\"5m\"`"))?;
        Ok(Some(TotalTimeout { limit, from_ms }))
    }
}

/// Checks the parts of `:total-timeout` that are known.
pub fn check_shape(value: &Value) -> Result<(), Wrong> {
    match value.is_nil() || duration::of_value(value).is_some() {
        true => Ok(()),
        false => parts(value).map(|_| ()),
    }
}

/// Reads the option if it is a map.
fn parts(value: &Value) -> Result<(Option<Duration>, Option<i64>), Wrong> {
    if value.as_map().is_none() {
        let message = format!(
            "`:{OPTION}` must be a time, or a map with `:limit` and `:from`, not {}",
            value.kind()
        );
        return Err(Wrong::new(CODE, OPTION, message)
            .hint("write seconds or text: `:total-timeout \"5m\"`"));
    }
    let map = keys(CODE, OPTION, value, KEYS)?;
    let get = |name: &str| map.get(&Value::keyword(name)).filter(|it| !it.is_nil());
    let limit = match get("limit") {
        None => None,
        Some(given) => Some(
            duration::of_value(given).ok_or_else(|| wrong("limit", "a time, such as `\"5m\"`"))?,
        ),
    };
    let from_ms = match get("from") {
        None => None,
        Some(given) => Some(given.as_int().ok_or_else(|| {
            wrong(
                "from",
                "a time in milliseconds since 1970, as `(flow/now-ms)` returns it",
            )
        })?),
    };
    Ok((limit, from_ms))
}

fn wrong(key: &str, expected: &str) -> Wrong {
    Wrong::value(CODE, OPTION, key, expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<TotalTimeout>, String> {
        let value = flowstone_model::codec::decode(text).expect("EDN");
        TotalTimeout::of(&value).map_err(|wrong| wrong.message)
    }

    #[test]
    fn a_limit_is_a_time_or_has_a_beginning() {
        let limit = Duration::from_secs(5);
        let plain = TotalTimeout {
            limit,
            from_ms: None,
        };
        assert_eq!(read("nil"), Ok(None));
        assert_eq!(read("5"), Ok(Some(plain)));
        assert_eq!(read("\"5s\""), Ok(Some(plain)));
        assert_eq!(read("{:limit 5}"), Ok(Some(plain)));
        let from_ms = Some(1_700);
        let counted = TotalTimeout { limit, from_ms };
        assert_eq!(read("{:limit \"5s\" :from 1700}"), Ok(Some(counted)));
    }

    #[test]
    fn other_values_are_refused() {
        let refused = |text: &str| read(text).expect_err(text);
        assert!(refused("[5]").contains("must be a time, or a map"));
        assert!(refused("{:form 1 :limit 5}").contains("has no option `:form`"));
        assert!(refused("{:from 1}").contains("`:limit` of `:total-timeout`"));
        assert!(refused("{:limit 5 :from \"now\"}").contains("`:from` of `:total-timeout`"));
    }
}
