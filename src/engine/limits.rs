//! What one run may take: `:limits` of the project's settings.

use flowstone_lang::value::Value;

use crate::diagnostic::nearest;
use crate::flow::name_of;
use crate::runs::parse_size;

/// What one run may take, as long as it executes in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Instructions of the machine, replay included. Default: 200,000,000,000.
    pub fuel: u64,
    /// Bytes that the values of the run may hold. Default: 512 MB.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            fuel: 200_000_000_000,
            memory: 512_000_000,
        }
    }
}

/// The least memory that a run can be given: below it, nothing of use can run.
const LEAST_MEMORY: u64 = 1_000_000;

impl Limits {
    /// The keys of `:limits` in the project's settings.
    pub const KEYS: [&'static str; 2] = ["instructions", "memory"];

    /// Reads `:limits` of the project's settings; a key that is absent keeps its default.
    ///
    /// # Errors
    /// A message that names the key and what it takes.
    pub fn read(settings: &Value) -> Result<Limits, String> {
        let mut limits = Limits::default();
        let Some(given) = settings.get("limits").filter(|given| !given.is_nil()) else {
            return Ok(limits);
        };
        let given = given
            .as_map()
            .ok_or_else(|| format!("`:limits` takes a map, not {}", given.kind()))?;
        for (key, value) in given.iter() {
            let name = name_of(key).unwrap_or_default();
            match &*name {
                "instructions" => limits.fuel = instructions(value)?,
                "memory" => limits.memory = memory(value)?,
                _ => {
                    let hint = nearest(&name, Self::KEYS).map_or_else(
                        || {
                            format!(
                                "it takes {}",
                                Self::KEYS.map(|key| format!("`:{key}`")).join(", ")
                            )
                        },
                        |near| format!("did you mean `:{near}`?"),
                    );
                    return Err(format!("`:limits` has no key `:{name}`; {hint}"));
                }
            }
        }
        Ok(limits)
    }

    /// Returns the limits of checked settings.
    pub fn of(settings: &Value) -> Limits {
        Limits::read(settings).unwrap_or_default()
    }
}

/// Reads how much memory a run may have, as in `512MB`.
///
/// # Errors
/// A message that says what is expected.
pub fn parse_memory(text: &str) -> Result<usize, String> {
    let size = parse_size(text).filter(|size| *size >= LEAST_MEMORY);
    size.and_then(|size| usize::try_from(size).ok())
        .ok_or_else(|| format!("expected a size of at least 1MB, such as 512MB, got `{text}`"))
}

fn memory(value: &Value) -> Result<usize, String> {
    let text = match value {
        Value::Text(text) => text.to_string(),
        Value::Int(bytes) => bytes.to_string(),
        other => {
            return Err(format!(
                "`:limits :memory` takes a size such as \"512MB\", not {}",
                other.kind()
            ));
        }
    };
    parse_memory(&text).map_err(|why| format!("`:limits :memory`: {why}"))
}

fn instructions(value: &Value) -> Result<u64, String> {
    let count = value.as_int().and_then(|count| u64::try_from(count).ok());
    count
        .filter(|count| *count > 0)
        .ok_or_else(|| "`:limits :instructions` takes a whole number from 1".to_owned())
}
