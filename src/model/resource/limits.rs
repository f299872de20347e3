//! `:resources` of the project's settings: maximum sizes, and retention times.

use std::time::Duration;

use flowstone_lang::value::Value;

use super::Tier;
use crate::diagnostic::nearest;
use crate::duration;
use crate::kv;
use crate::names::name_of;
use crate::size::parse_size;

/// The settings for resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceLimits {
    /// The allowed values of `:bucket`.
    pub buckets: Vec<String>,
    /// The retention time of an ephemeral blob; 12 hours by default.
    pub ephemeral_ttl: Duration,
    /// Maximum size of a retained blob in bytes.
    pub max_retained: u64,
    /// Maximum size of an ephemeral blob in bytes.
    pub max_ephemeral: u64,
    /// Maximum size of an uploaded file in bytes.
    pub max_upload: u64,
    /// Maximum size of a value under a key in bytes.
    pub max_value: u64,
}

impl Default for ResourceLimits {
    fn default() -> ResourceLimits {
        ResourceLimits {
            buckets: Vec::new(),
            ephemeral_ttl: Duration::from_secs(12 * 3_600),
            max_retained: 50 << 20,
            max_ephemeral: 4 << 30,
            max_upload: 4 << 30,
            max_value: kv::MAX_VALUE as u64,
        }
    }
}

impl ResourceLimits {
    const KEYS: [&'static str; 6] = [
        "buckets",
        "ephemeral-ttl",
        "max-ephemeral",
        "max-retained",
        "max-upload",
        "max-value",
    ];

    /// Reads `:resources` of the project's settings; a missing key has its default.
    ///
    /// # Errors
    /// A message that says what is wrong.
    pub fn read(settings: &Value) -> Result<ResourceLimits, String> {
        let mut limits = ResourceLimits::default();
        let Some(given) = settings.get("resources").filter(|given| !given.is_nil()) else {
            return Ok(limits);
        };
        let given = given
            .as_map()
            .ok_or_else(|| format!("`:resources` takes a map, not {}", given.kind()))?;
        for (key, value) in given.iter() {
            let name = name_of(key).unwrap_or_default();
            match &*name {
                "buckets" => limits.buckets = buckets(value)?,
                "ephemeral-ttl" => {
                    let ttl = duration::of_value(value).filter(|ttl| !ttl.is_zero());
                    limits.ephemeral_ttl =
                        ttl.ok_or("`:ephemeral-ttl` must be a duration such as \"12h\"")?;
                }
                "max-ephemeral" => limits.max_ephemeral = size(&name, value)?,
                "max-retained" => limits.max_retained = size(&name, value)?,
                "max-upload" => limits.max_upload = size(&name, value)?,
                "max-value" => limits.max_value = size(&name, value)?,
                _ => {
                    let meant = nearest(&name, Self::KEYS).map_or_else(
                        || {
                            format!(
                                "it takes {}",
                                Self::KEYS.map(|key| format!("`:{key}`")).join(", ")
                            )
                        },
                        |near| format!("did you mean `:{near}`?"),
                    );
                    return Err(format!("`:resources` has no key `:{name}`; {meant}"));
                }
            }
        }
        Ok(limits)
    }

    /// Returns the settings, which were checked when they were read.
    pub fn of(settings: &Value) -> ResourceLimits {
        ResourceLimits::read(settings).unwrap_or_default()
    }

    /// Returns the maximum size of a blob in bytes.
    pub fn max_blob(&self, tier: Tier) -> u64 {
        match tier {
            Tier::Retained => self.max_retained,
            Tier::Ephemeral => self.max_ephemeral,
        }
    }

    /// Returns when a blob that is stored now expires.
    pub fn expires_ms(&self, tier: Tier, now_ms: i64) -> Option<i64> {
        match tier {
            Tier::Retained => None,
            Tier::Ephemeral => Some(now_ms.saturating_add(duration::millis(self.ephemeral_ttl))),
        }
    }
}

fn buckets(value: &Value) -> Result<Vec<String>, String> {
    let wrong = || "`:buckets` must be a vector of names, such as [:reports :exports]".to_owned();
    let names = value.as_vector().ok_or_else(wrong)?;
    names
        .iter()
        .map(|name| {
            let name = name_of(name).ok_or_else(wrong)?;
            let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
            match !name.is_empty() && name.chars().all(is_plain) {
                true => Ok(name.to_string()),
                false => Err(format!(
                    "`:buckets` has {name:?}: a name has letters, digits, `-`, `_` and `.`"
                )),
            }
        })
        .collect()
}

fn size(key: &str, value: &Value) -> Result<u64, String> {
    let bytes = match value {
        Value::Int(bytes) => u64::try_from(*bytes).ok(),
        Value::Text(text) => parse_size(text.as_str()),
        _ => None,
    };
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| format!("`:{key}` must be a size such as \"50MB\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;

    #[test]
    fn resource_limits_are_read_from_settings() {
        let read = |text: &str| {
            let settings = codec::decode(&format!("{{:resources {text}}}")).expect("EDN");
            match ResourceLimits::read(&settings) {
                Ok(it) if it == ResourceLimits::default() => "as usual".to_owned(),
                Ok(it) => format!(
                    "{:?} {} {} {}",
                    it.buckets,
                    it.ephemeral_ttl.as_secs(),
                    it.max_retained,
                    it.max_value
                ),
                Err(words) => words,
            }
        };
        let cases = [
            ("nil", "as usual"),
            ("{}", "as usual"),
            (
                "{:buckets [:reports \"x.1\"] :ephemeral-ttl \"1h\" :max-retained \"1MB\" :max-value 5}",
                "[\"reports\", \"x.1\"] 3600 1000000 5",
            ),
            ("7", "`:resources` takes a map, not an integer"),
            (
                "{:max-retained 0}",
                "`:max-retained` must be a size such as \"50MB\"",
            ),
            (
                "{:max-value \"big\"}",
                "`:max-value` must be a size such as \"50MB\"",
            ),
            (
                "{:ephemeral-ttl 0}",
                "`:ephemeral-ttl` must be a duration such as \"12h\"",
            ),
            (
                "{:buckets :a}",
                "`:buckets` must be a vector of names, such as [:reports :exports]",
            ),
            (
                "{:buckets [\"a/b\"]}",
                "`:buckets` has \"a/b\": a name has letters, digits, `-`, `_` and `.`",
            ),
            (
                "{:max-retaind 1}",
                "`:resources` has no key `:max-retaind`; did you mean `:max-retained`?",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
