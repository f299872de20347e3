//! Upper bounds of what a run uses: step calls, model turns, tool calls, tokens and cost.

use std::fmt;

/// A number that a run does not exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Most {
    Number(u64),
    /// No number is known.
    Unbounded,
}

/// What a bound counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// Step calls of the flow and of the flows that it calls.
    Steps,
    /// Answers of models.
    Turns,
    /// Calls of tools by models.
    ToolCalls,
    /// Tokens of models, read and written.
    Tokens,
    /// Millionths of a dollar.
    Cost,
}

/// A bound for each quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amounts([Most; 5]);

/// What one step uses at most, apart from the step call itself, and why some of it has no bound.
#[derive(Debug, Clone, PartialEq)]
pub struct StepBounds {
    pub amounts: Amounts,
    pub reasons: Vec<(Quantity, String)>,
    /// The packaged steps and agents that the step's model may call, by their ids.
    pub tools: Vec<String>,
    /// The flows that it may call.
    pub flows: Vec<String>,
}

impl Most {
    pub const NOTHING: Most = Most::Number(0);

    #[must_use]
    pub fn plus(self, other: Most) -> Most {
        match (self, other) {
            (Most::Number(one), Most::Number(other)) => number(one.checked_add(other)),
            (Most::Unbounded, _) | (_, Most::Unbounded) => Most::Unbounded,
        }
    }

    /// Nothing stays nothing, however often.
    #[must_use]
    pub fn times(self, other: Most) -> Most {
        match (self, other) {
            (Most::Number(0), _) | (_, Most::Number(0)) => Most::NOTHING,
            (Most::Number(one), Most::Number(other)) => number(one.checked_mul(other)),
            (Most::Unbounded, _) | (_, Most::Unbounded) => Most::Unbounded,
        }
    }

    pub fn number(self) -> Option<u64> {
        match self {
            Most::Number(number) => Some(number),
            Most::Unbounded => None,
        }
    }
}

/// A number that does not fit bounds nothing.
fn number(number: Option<u64>) -> Most {
    number.map_or(Most::Unbounded, Most::Number)
}

impl fmt::Display for Most {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Most::Number(number) => write!(out, "{number}"),
            Most::Unbounded => out.write_str("unbounded"),
        }
    }
}

impl Quantity {
    pub const ALL: [Quantity; 5] = [
        Quantity::Steps,
        Quantity::Turns,
        Quantity::ToolCalls,
        Quantity::Tokens,
        Quantity::Cost,
    ];

    /// Returns the name used in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Quantity::Steps => "steps",
            Quantity::Turns => "turns",
            Quantity::ToolCalls => "toolCalls",
            Quantity::Tokens => "tokens",
            Quantity::Cost => "costMicros",
        }
    }

    /// Returns the name used in text.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Steps => "steps",
            Quantity::Turns => "model turns",
            Quantity::ToolCalls => "tool calls",
            Quantity::Tokens => "tokens",
            Quantity::Cost => "cost",
        }
    }
}

impl Amounts {
    pub const NOTHING: Amounts = Amounts([Most::NOTHING; 5]);

    /// Returns amounts of which only one is not nothing.
    pub fn of(quantity: Quantity, most: Most) -> Amounts {
        Amounts::NOTHING.with(quantity, most)
    }

    #[must_use]
    pub fn with(mut self, quantity: Quantity, most: Most) -> Amounts {
        self.0[quantity as usize] = most;
        self
    }

    pub fn get(&self, quantity: Quantity) -> Most {
        self.0[quantity as usize]
    }

    #[must_use]
    pub fn plus(self, other: Amounts) -> Amounts {
        self.each(other, Most::plus)
    }

    #[must_use]
    pub fn times(self, count: Most) -> Amounts {
        self.each(Amounts([count; 5]), Most::times)
    }

    /// Returns the larger of each.
    #[must_use]
    pub fn or(self, other: Amounts) -> Amounts {
        self.each(other, Most::max)
    }

    /// Returns the quantities of which there are any.
    pub fn used(&self) -> Vec<Quantity> {
        let used = |quantity: &Quantity| self.get(*quantity) != Most::NOTHING;
        Quantity::ALL.into_iter().filter(used).collect()
    }

    fn each(self, other: Amounts, join: impl Fn(Most, Most) -> Most) -> Amounts {
        let mut joined = self;
        for (idx, most) in joined.0.iter_mut().enumerate() {
            *most = join(*most, other.0[idx]);
        }
        joined
    }
}

impl Default for StepBounds {
    fn default() -> StepBounds {
        StepBounds {
            amounts: Amounts::NOTHING,
            reasons: Vec::new(),
            tools: Vec::new(),
            flows: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_unbounded() {
        let large = Most::Number(u64::MAX);
        assert_eq!(large.plus(Most::Number(1)), Most::Unbounded);
        assert_eq!(large.times(Most::Number(2)), Most::Unbounded);
        assert_eq!(Most::Unbounded.times(Most::NOTHING), Most::NOTHING);
        assert_eq!(Most::Unbounded.max(large), Most::Unbounded);
        let used = Amounts::of(Quantity::Turns, Most::Number(2)).times(Most::Number(3));
        assert_eq!(used.get(Quantity::Turns), Most::Number(6));
        assert_eq!(used.used(), [Quantity::Turns]);
    }
}
