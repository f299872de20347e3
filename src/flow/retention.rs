//! `:retention` of the project's settings: how long the journals of finished runs are kept.

use std::time::Duration;

use flowstone_lang::value::Value;
use flowstone_model::names::name_of;
use flowstone_model::size::parse_size;

use crate::duration;

/// How long journals are kept by default.
const JOURNAL_AGE: Duration = Duration::from_secs(30 * 86_400);

/// The data that is kept, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// How long journals of finished runs are kept; `None`: for ever.
    pub journal: Option<Duration>,
    /// How long their rows and results are kept; `None`: for ever.
    pub runs: Option<Duration>,
    /// The number of newest journals of each flow that are kept at any age.
    pub keep_last: usize,
    /// Maximum size of the database. While it is larger, the oldest journals are removed at any age.
    pub max_bytes: Option<u64>,
}

impl Default for Retention {
    fn default() -> Self {
        Retention {
            journal: Some(JOURNAL_AGE),
            runs: None,
            keep_last: 0,
            max_bytes: None,
        }
    }
}

impl Retention {
    const KEYS: [&'static str; 4] = ["journal", "keep-last", "max-size", "runs"];

    /// Reads `:retention` of the project's settings; missing keys have their defaults.
    ///
    /// # Errors
    /// A message that states what is wrong.
    pub fn read(settings: &Value) -> Result<Retention, String> {
        let mut retention = Retention::default();
        let Some(given) = settings.get("retention").filter(|given| !given.is_nil()) else {
            return Ok(retention);
        };
        let given = given
            .as_map()
            .ok_or_else(|| format!("`:retention` takes a map, not {}", given.kind()))?;
        for (key, value) in given.iter() {
            let name = name_of(key).unwrap_or_default();
            match &*name {
                "journal" => retention.journal = age("journal", value)?,
                "runs" => retention.runs = age("runs", value)?,
                "keep-last" => {
                    let count = value.as_int().and_then(|count| usize::try_from(count).ok());
                    retention.keep_last = count.ok_or("`:keep-last` must be a number from 0")?;
                }
                "max-size" => {
                    let bytes = match value {
                        Value::Int(bytes) => u64::try_from(*bytes).ok(),
                        Value::Text(text) => parse_size(text.as_str()),
                        _ => None,
                    };
                    let bytes = bytes.ok_or("`:max-size` must be a size such as \"500MB\"")?;
                    retention.max_bytes = Some(bytes);
                }
                _ => {
                    let known = Self::KEYS.map(|key| format!("`:{key}`")).join(", ");
                    return Err(format!("`:retention` has no `:{name}`; it takes {known}"));
                }
            }
        }
        Ok(retention)
    }
}

/// Reads a retention time: a duration, or `:forever`.
fn age(key: &str, value: &Value) -> Result<Option<Duration>, String> {
    if name_of(value).is_some_and(|name| &*name == "forever") {
        return Ok(None);
    }
    let age = duration::of_value(value);
    age.map(Some)
        .ok_or_else(|| format!("`:{key}` must be a duration such as \"30d\", or `:forever`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;

    #[test]
    fn settings_are_read() {
        let read = |text: &str| {
            let settings = codec::decode(text).expect("EDN");
            match Retention::read(&settings) {
                Ok(it) => format!(
                    "{:?} {:?} {} {:?}",
                    it.journal.map(|age| age.as_secs() / 86_400),
                    it.runs.map(|age| age.as_secs() / 86_400),
                    it.keep_last,
                    it.max_bytes
                ),
                Err(message) => message,
            }
        };
        let cases = [
            ("{}", "Some(30) None 0 None"),
            ("{:retention nil}", "Some(30) None 0 None"),
            (
                "{:retention {:journal \"7d\" :runs \"365d\"}}",
                "Some(7) Some(365) 0 None",
            ),
            ("{:retention {:journal :forever}}", "None None 0 None"),
            (
                "{:retention {:keep-last 5 :max-size \"1.5GB\"}}",
                "Some(30) None 5 Some(1500000000)",
            ),
            ("{:retention 7}", "`:retention` takes a map, not an integer"),
            (
                "{:retention {:journal \"soon\"}}",
                "`:journal` must be a duration such as \"30d\", or `:forever`",
            ),
            (
                "{:retention {:keep-last -1}}",
                "`:keep-last` must be a number from 0",
            ),
            (
                "{:retention {:max-size \"big\"}}",
                "`:max-size` must be a size such as \"500MB\"",
            ),
            (
                "{:retention {:jurnal \"7d\"}}",
                "`:retention` has no `:jurnal`; it takes `:journal`, `:keep-last`, `:max-size`, `:runs`",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn sizes_are_read() {
        let cases = [
            ("0", Some(0)),
            ("12", Some(12)),
            ("1KiB", Some(1024)),
            ("2 MB", Some(2_000_000)),
            ("", None),
            ("x", None),
            ("5 parsecs", None),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text), bytes, "{text}");
        }
    }
}
