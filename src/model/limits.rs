//! The limits of one run: `:limits` in the project's settings, and in a flow, which can only lower them.
//!
//! Every limit is a row of [`LIMITS`]: settings, checks and the table of `docs/guide/limits.md` are derived from it.

use flowstone_lang::value::Value;

use crate::diagnostic::unknown_key;
use crate::names::name_of;
use crate::size::parse_size;

/// The resources that one run may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of attempts at one step.
    pub attempts: u32,
    /// Maximum number of branches that run at the same time.
    pub branches: u64,
    /// Maximum number of branches, finished ones included.
    pub branches_in_total: u64,
    /// Maximum number of times that processes may end while they execute the run, without progress of the run.
    pub crashes: u32,
    /// Maximum depth of calls from flow to flow.
    pub depth: u32,
    /// Maximum size of an input in bytes.
    pub input: u64,
    /// Maximum number of instructions of the machine, replay included.
    pub fuel: u64,
    /// Maximum size of the journal in bytes.
    pub journal: u64,
    /// Maximum memory in bytes for the values of the run.
    pub memory: usize,
    /// Maximum number of bytes that are printed, logged and emitted.
    pub output: u64,
    /// Maximum size of a step's result as text, in bytes.
    pub result: usize,
    /// Maximum number of step calls.
    pub steps: u64,
    /// Maximum number of open waits.
    pub waits: u64,
}

/// A limit: its key, its default, what it bounds, and the error when it is exceeded.
#[derive(Debug)]
pub struct Limit {
    /// The key under `:limits`.
    pub key: &'static str,
    pub unit: Unit,
    pub default: u64,
    /// Minimum value: no useful run fits into less.
    pub least: u64,
    /// Maximum value that can be set.
    pub most: u64,
    /// The code of the error, which has a page in `docs/errors`.
    pub code: &'static str,
    /// What is bounded, as a short phrase.
    pub what: &'static str,
    /// Tells whether a flow may lower it for its runs.
    pub is_lowerable_by_flows: bool,
    get: fn(&Limits) -> u64,
    set: fn(&mut Limits, u64),
}

/// The unit that a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    Count,
}

/// All limits, sorted by key.
pub const LIMITS: &[Limit] = &[
    ATTEMPTS,
    BRANCHES,
    BRANCHES_IN_TOTAL,
    CRASHES,
    DEPTH,
    INPUT,
    INSTRUCTIONS,
    JOURNAL,
    MEMORY,
    OUTPUT,
    RESULT,
    STEPS,
    WAITS,
];

const ATTEMPTS: Limit = Limit {
    key: "attempts",
    unit: Unit::Count,
    default: 1_000,
    least: 1,
    most: 1_000,
    code: "E0713",
    what: "attempts at one step that `:retry` may ask for",
    is_lowerable_by_flows: true,
    get: |limits| u64::from(limits.attempts),
    set: |limits, value| limits.attempts = u32::try_from(value).unwrap_or(u32::MAX),
};

pub const BRANCHES: Limit = Limit {
    key: "branches",
    unit: Unit::Count,
    default: 20_000,
    least: 1,
    most: u64::MAX,
    code: "E0994",
    what: "branches of the run that run at the same time",
    is_lowerable_by_flows: true,
    get: |limits| limits.branches,
    set: |limits, value| limits.branches = value,
};

pub const BRANCHES_IN_TOTAL: Limit = Limit {
    key: "branches-in-total",
    unit: Unit::Count,
    default: 1_000_000,
    least: 1,
    most: u64::MAX,
    code: "E0994",
    what: "branches of the run, finished ones included",
    is_lowerable_by_flows: true,
    get: |limits| limits.branches_in_total,
    set: |limits, value| limits.branches_in_total = value,
};

const CRASHES: Limit = Limit {
    key: "crashes",
    unit: Unit::Count,
    default: 3,
    least: 1,
    most: u64::MAX,
    code: "E0990",
    what: "consecutive ends of the process while it executed the run, without progress",
    is_lowerable_by_flows: false,
    get: |limits| u64::from(limits.crashes),
    set: |limits, value| limits.crashes = u32::try_from(value).unwrap_or(u32::MAX),
};

const DEPTH: Limit = Limit {
    key: "depth",
    unit: Unit::Count,
    default: 16,
    least: 1,
    most: 100,
    code: "E0547",
    what: "levels of flows that call flows",
    is_lowerable_by_flows: false,
    get: |limits| u64::from(limits.depth),
    set: |limits, value| limits.depth = u32::try_from(value).unwrap_or(u32::MAX),
};

const INPUT: Limit = Limit {
    key: "input",
    unit: Unit::Bytes,
    default: 64_000_000,
    least: 1,
    most: u64::MAX,
    code: "E0997",
    what: "the text of one input",
    is_lowerable_by_flows: false,
    get: |limits| limits.input,
    set: |limits, value| limits.input = value,
};

pub const INSTRUCTIONS: Limit = Limit {
    key: "instructions",
    unit: Unit::Count,
    default: 200_000_000_000,
    least: 1,
    most: u64::MAX,
    code: "E0530",
    what: "instructions of the run, replay included",
    is_lowerable_by_flows: true,
    get: |limits| limits.fuel,
    set: |limits, value| limits.fuel = value,
};

pub const JOURNAL: Limit = Limit {
    key: "journal",
    unit: Unit::Bytes,
    default: 1_000_000_000,
    least: 1_000,
    most: u64::MAX,
    code: "E0992",
    what: "the journal of the run",
    is_lowerable_by_flows: true,
    get: |limits| limits.journal,
    set: |limits, value| limits.journal = value,
};

pub const MEMORY: Limit = Limit {
    key: "memory",
    unit: Unit::Bytes,
    default: 512_000_000,
    least: LEAST_MEMORY,
    most: u64::MAX,
    code: "E0903",
    what: "memory that the values of the run hold",
    is_lowerable_by_flows: true,
    get: |limits| limits.memory as u64,
    set: |limits, value| limits.memory = usize::try_from(value).unwrap_or(usize::MAX),
};

pub const OUTPUT: Limit = Limit {
    key: "output",
    unit: Unit::Bytes,
    default: 100_000_000,
    least: 1_000,
    most: u64::MAX,
    code: "E0995",
    what: "output that the run prints, logs and emits",
    is_lowerable_by_flows: true,
    get: |limits| limits.output,
    set: |limits, value| limits.output = value,
};

pub const RESULT: Limit = Limit {
    key: "result",
    unit: Unit::Bytes,
    default: 128_000_000,
    least: 1_000,
    most: u64::MAX,
    code: "E0993",
    what: "the result of one step, and of the run",
    is_lowerable_by_flows: true,
    get: |limits| limits.result as u64,
    set: |limits, value| limits.result = usize::try_from(value).unwrap_or(usize::MAX),
};

pub const STEPS: Limit = Limit {
    key: "steps",
    unit: Unit::Count,
    default: 1_000_000,
    least: 1,
    most: u64::MAX,
    code: "E0991",
    what: "step calls, nested steps of agents included",
    is_lowerable_by_flows: true,
    get: |limits| limits.steps,
    set: |limits, value| limits.steps = value,
};

pub const WAITS: Limit = Limit {
    key: "waits",
    unit: Unit::Count,
    default: 20_000,
    least: 1,
    most: u64::MAX,
    code: "E0996",
    what: "open waits of the run",
    is_lowerable_by_flows: true,
    get: |limits| limits.waits,
    set: |limits, value| limits.waits = value,
};

/// Minimum memory of a run in bytes: with less, nothing useful can run.
const LEAST_MEMORY: u64 = 1_000_000;

impl Default for Limits {
    fn default() -> Limits {
        let mut limits = Limits {
            attempts: 0,
            branches: 0,
            branches_in_total: 0,
            crashes: 0,
            depth: 0,
            input: 0,
            fuel: 0,
            journal: 0,
            memory: 0,
            output: 0,
            result: 0,
            steps: 0,
            waits: 0,
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
    /// A message that names the key and what it accepts.
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

    /// Returns the limits of settings that were checked before.
    pub fn of(settings: &Value) -> Limits {
        Limits::read(settings).unwrap_or_default()
    }

    /// Returns these limits combined with those of a flow, as [`Limit::read`] returned them: the lower value of each
    /// applies.
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
    /// A message that names the expected value.
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

    /// Returns a value of the limit in the form that people write.
    pub fn shown(&self, value: u64) -> String {
        let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "KB")];
        let unit = units
            .iter()
            .find(|(size, _)| value >= *size && value.is_multiple_of(*size));
        match (self.unit, unit) {
            (Unit::Bytes, Some((size, name))) => format!("{}{name}", value / size),
            _ => value.to_string(),
        }
    }
}

fn unknown(name: &str) -> String {
    unknown_key(":limits", name, LIMITS.iter().map(|limit| limit.key))
}

/// Reads the memory of a run, such as `512MB`.
///
/// # Errors
/// A message that names the expected value.
pub fn parse_memory(text: &str) -> Result<usize, String> {
    let size = parse_size(text).filter(|size| *size >= LEAST_MEMORY);
    size.and_then(|size| usize::try_from(size).ok())
        .ok_or_else(|| format!("expected a size of at least 1MB, such as 512MB, got `{text}`"))
}
