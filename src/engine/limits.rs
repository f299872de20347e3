//! What one run may take: `:limits` of the project's settings, and of a flow, which can only narrow them.
//!
//! Every limit is a row of [`LIMITS`]: settings, checks and the table of `docs/guide/limits.md` are made of it.

use flowstone_lang::value::Value;

use crate::diagnostic::nearest;
use crate::flow::name_of;
use crate::runs::parse_size;

/// What one run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How often a process may end while it executes the run, without progress of the run.
    pub crashes: u32,
    /// Instructions of the machine, replay included.
    pub fuel: u64,
    /// Bytes that the values of the run may hold.
    pub memory: usize,
}

/// A limit: its key, its default, what it bounds and what meeting it means.
pub struct Limit {
    /// The key under `:limits`.
    pub key: &'static str,
    pub unit: Unit,
    pub default: u64,
    /// No useful run fits into less.
    pub least: u64,
    /// The code of the error, which has a page in `docs/errors`.
    pub code: &'static str,
    /// What is bounded, in a few words.
    pub what: &'static str,
    /// A flow may narrow it for its runs.
    pub is_of_flows: bool,
    get: fn(&Limits) -> u64,
    set: fn(&mut Limits, u64),
}

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    Count,
}

/// All limits, sorted by key.
pub const LIMITS: &[Limit] = &[CRASHES, INSTRUCTIONS, MEMORY];

const CRASHES: Limit = Limit {
    key: "crashes",
    unit: Unit::Count,
    default: 3,
    least: 1,
    code: "E0990",
    what: "ends of the process in a row while it executed the run, without progress",
    is_of_flows: false,
    get: |limits| u64::from(limits.crashes),
    set: |limits, count| limits.crashes = u32::try_from(count).unwrap_or(u32::MAX),
};

const INSTRUCTIONS: Limit = Limit {
    key: "instructions",
    unit: Unit::Count,
    default: 200_000_000_000,
    least: 1,
    code: "E0530",
    what: "instructions of the run, replay included",
    is_of_flows: true,
    get: |limits| limits.fuel,
    set: |limits, count| limits.fuel = count,
};

const MEMORY: Limit = Limit {
    key: "memory",
    unit: Unit::Bytes,
    default: 512_000_000,
    least: LEAST_MEMORY,
    code: "E0903",
    what: "memory that the values of the run hold",
    is_of_flows: true,
    get: |limits| limits.memory as u64,
    set: |limits, bytes| limits.memory = usize::try_from(bytes).unwrap_or(usize::MAX),
};

/// The least memory that a run can be given: below it, nothing of use can run.
const LEAST_MEMORY: u64 = 1_000_000;

impl Default for Limits {
    fn default() -> Limits {
        let mut limits = Limits {
            crashes: 0,
            fuel: 0,
            memory: 0,
        };
        for limit in LIMITS {
            (limit.set)(&mut limits, limit.default);
        }
        limits
    }
}

impl Limits {
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
            let limit = LIMITS.iter().find(|limit| *limit.key == *name);
            let limit = limit.ok_or_else(|| unknown(&name))?;
            (limit.set)(&mut limits, limit.read(value)?);
        }
        Ok(limits)
    }

    /// Returns the limits of checked settings.
    pub fn of(settings: &Value) -> Limits {
        Limits::read(settings).unwrap_or_default()
    }

    /// Returns these limits with those of a flow, as [`Limit::read`] gave them: each counts where it is lower.
    #[must_use]
    pub fn narrowed(mut self, narrower: &[(&'static Limit, u64)]) -> Limits {
        for (limit, value) in narrower {
            let lower = (*value).min((limit.get)(&self));
            (limit.set)(&mut self, lower);
        }
        self
    }

    /// Returns the value of a limit.
    pub fn value(&self, limit: &Limit) -> u64 {
        (limit.get)(self)
    }
}

impl Limit {
    /// Reads the value of the key.
    ///
    /// # Errors
    /// A message that says what is expected.
    pub fn read(&self, value: &Value) -> Result<u64, String> {
        let key = self.key;
        match (self.unit, value) {
            (Unit::Bytes, Value::Text(text)) => self.size(text),
            (Unit::Bytes, Value::Int(bytes)) => self.size(&bytes.to_string()),
            (Unit::Bytes, other) => Err(format!(
                "`:limits :{key}` takes a size such as \"{}\", not {}",
                self.shown(self.default),
                other.kind()
            )),
            (Unit::Count, value) => {
                let count = value.as_int().and_then(|count| u64::try_from(count).ok());
                count.filter(|count| *count >= self.least).ok_or_else(|| {
                    format!("`:limits :{key}` takes a whole number from {}", self.least)
                })
            }
        }
    }

    fn size(&self, text: &str) -> Result<u64, String> {
        let size = parse_size(text).filter(|size| *size >= self.least);
        size.ok_or_else(|| {
            format!(
                "`:limits :{}`: expected a size of at least {}, such as {}, got `{text}`",
                self.key,
                self.shown(self.least),
                self.shown(self.default)
            )
        })
    }

    /// Returns a value of the limit as people write it.
    pub fn shown(&self, value: u64) -> String {
        let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "KB")];
        let unit = units
            .iter()
            .find(|(size, _)| value >= *size && value % size == 0);
        match (self.unit, unit) {
            (Unit::Bytes, Some((size, name))) => format!("{}{name}", value / size),
            _ => value.to_string(),
        }
    }
}

fn unknown(name: &str) -> String {
    let keys = || LIMITS.iter().map(|limit| limit.key);
    let hint = match nearest(name, keys()) {
        Some(near) => format!("did you mean `:{near}`?"),
        None => {
            let keys: Vec<String> = keys().map(|key| format!("`:{key}`")).collect();
            format!("it takes {}", keys.join(", "))
        }
    };
    format!("`:limits` has no key `:{name}`; {hint}")
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
