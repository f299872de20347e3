//! Reads a step's config, or a map inside it, with errors that name the key.
//!
//! The engine has checked the top level against the spec; the maps inside are checked here.

use std::rc::Rc;
use std::time::Duration;

use flowstone_flow::diagnostic::nearest;
use flowstone_flow::duration;
use flowstone_flow::flow::name_of;
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;

use crate::json::items;

/// A map, with its name in errors.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    pub map: &'a Value,
    /// The key that contains the map, such as `:source`; empty for the step's config itself.
    at: &'a str,
}

impl<'a> Fields<'a> {
    /// Reads a step's whole config.
    pub fn new(config: &'a Value) -> Fields<'a> {
        Fields {
            map: config,
            at: "",
        }
    }

    /// Reads a map inside a config.
    pub fn nested(at: &'a str, map: &'a Value) -> Result<Fields<'a>, StepError> {
        match map {
            Value::Map(_) => Ok(Fields { map, at }),
            other => Err(StepError::config(
                StepError::OPTION_KIND,
                format!("`{at}` takes a map, not {}", other.kind()),
            )),
        }
    }

    /// Returns the value under a key; nil counts as missing.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_nil())
    }

    /// Returns the value under a key, including nil.
    pub fn given(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key)
    }

    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Rejects unknown keys.
    pub fn only(&self, known: &[&str]) -> Result<(), StepError> {
        let Some(map) = self.map.as_map() else {
            return Ok(());
        };
        for (key, _) in map.iter() {
            let name = name_of(key).unwrap_or_else(|| Rc::from("?"));
            if known.contains(&&*name) {
                continue;
            }
            let error = StepError::config(
                StepError::OPTION_KEYS,
                format!("`{}` has no key `:{name}`", self.at),
            );
            return Err(match nearest(&name, known.iter().copied()) {
                Some(near) => error.hint(format!("did you mean `:{near}`?")),
                None => error.hint(format!("it takes {}", listed(known))),
            });
        }
        Ok(())
    }

    pub fn text(&self, key: &str) -> Result<Option<&'a str>, StepError> {
        self.get(key)
            .map(|value| {
                value
                    .as_str()
                    .ok_or_else(|| self.wrong(key, "a string", value))
            })
            .transpose()
    }

    /// Reads a keyword, symbol or string by its name.
    pub fn name(&self, key: &str) -> Result<Option<Rc<str>>, StepError> {
        self.get(key)
            .map(|value| name_of(value).ok_or_else(|| self.wrong(key, "a keyword", value)))
            .transpose()
    }

    pub fn bool(&self, key: &str) -> Result<Option<bool>, StepError> {
        self.get(key)
            .map(|value| match value {
                Value::Bool(bool) => Ok(*bool),
                other => Err(self.wrong(key, "true or false", other)),
            })
            .transpose()
    }

    /// Reads an integer within bounds.
    pub fn int(&self, key: &str, least: i64, most: i64) -> Result<Option<i64>, StepError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match value.as_int() {
            Some(int) if (least..=most).contains(&int) => Ok(Some(int)),
            Some(int) => Err(StepError::config(
                StepError::OPTION_BOUNDS,
                format!(
                    "`{}` must be from {least} to {most}, and is {int}",
                    self.path(key)
                ),
            )),
            None => Err(self.wrong(key, "an integer", value)),
        }
    }

    pub fn count(&self, key: &str, least: usize, most: usize) -> Result<Option<usize>, StepError> {
        let bound = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        Ok(self
            .int(key, bound(least), bound(most))?
            .map(|int| usize::try_from(int).unwrap_or(0)))
    }

    pub fn number(&self, key: &str) -> Result<Option<f64>, StepError> {
        self.get(key)
            .map(|value| match value {
                Value::Int(int) => Ok(*int as f64),
                Value::Float(float) if float.is_finite() => Ok(*float),
                Value::Ratio(_) | Value::Decimal(_) | Value::BigInt(_) | Value::Float(_) => {
                    Err(self.wrong(key, "a plain number", value))
                }
                other => Err(self.wrong(key, "a number", other)),
            })
            .transpose()
    }

    /// Reads seconds, or text such as `"10s"`.
    pub fn duration(&self, key: &str) -> Result<Option<Duration>, StepError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let found = duration::of_value(value);
        found
            .map(Some)
            .ok_or_else(|| self.wrong(key, "seconds or a duration such as \"30s\"", value))
    }

    /// Reads one string, or several.
    pub fn texts(&self, key: &str) -> Result<Vec<String>, StepError> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        if let Some(text) = value.as_str() {
            return Ok(vec![text.to_string()]);
        }
        let items = items(value).ok_or_else(|| self.wrong(key, "strings", value))?;
        items
            .iter()
            .map(|item| {
                item.as_str()
                    .map(str::to_string)
                    .ok_or_else(|| self.wrong(key, "strings", item))
            })
            .collect()
    }

    pub fn map(&self, key: &str) -> Result<Option<&'a Value>, StepError> {
        self.get(key)
            .map(|value| match value {
                Value::Map(_) => Ok(value),
                other => Err(self.wrong(key, "a map", other)),
            })
            .transpose()
    }

    fn wrong(&self, key: &str, wanted: &str, value: &Value) -> StepError {
        StepError::config(
            StepError::OPTION_KIND,
            format!("`{}` takes {wanted}, not {}", self.path(key), value.kind()),
        )
    }

    fn path(&self, key: &str) -> String {
        match self.at {
            "" => format!(":{key}"),
            at => format!("{at} :{key}"),
        }
    }
}

/// Returns names as they are written in a config.
pub fn listed(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("`:{name}`"))
        .collect::<Vec<_>>()
        .join(" ")
}
