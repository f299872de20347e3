//! The limits of a loop.

use flowstone_flow::step::{StepContext, StepError};
use flowstone_flow::tools::Envelope;

use crate::fields::Fields;

/// The limits of a loop. Those of the `:tools` envelope override the step's own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Maximum number of turns before the last one, which is without tools.
    pub turns: i64,
    /// Maximum number of calls that the model requests, including refused ones.
    pub calls: i64,
    /// Maximum number of calls of the same tool with the same arguments.
    pub repeated: Option<i64>,
    /// Maximum number of tokens of all turns together.
    pub budget: Option<Budget>,
}

/// A limit on the tokens of a loop and of the agents that it calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    pub tokens: i64,
    /// `:finish-reason` when it is used up.
    pub reason: &'static str,
}

impl Budget {
    fn of_run(tokens: i64) -> Budget {
        Budget {
            tokens,
            reason: "token-budget",
        }
    }

    /// Returns the rest of the ledger's budget.
    pub(super) fn of_ledger(tokens: i64) -> Budget {
        Budget {
            tokens,
            reason: "cost-budget",
        }
    }

    /// Returns the budget that the calling agent leaves to this one.
    pub(super) fn enclosing(cx: &StepContext) -> Option<Budget> {
        cx.allowance().map(Budget::of_run)
    }
}

impl Limits {
    /// Reads the limits.
    pub(super) fn read(fields: Fields<'_>, envelope: &Envelope) -> Result<Limits, StepError> {
        let turns = fields.int("max-iterations", 1, 100)?;
        let calls = fields.int("max-tool-calls", 1, 1000)?;
        let repeated = fields.int("max-repeated-tool-calls", 1, 100)?;
        Ok(Limits {
            turns: envelope.max_iterations.or(turns).unwrap_or(20),
            calls: envelope.max_tool_calls.or(calls).unwrap_or(100),
            repeated: envelope.max_repeated_tool_calls.or(repeated),
            budget: fields
                .int("max-tokens-budget", 1, i64::MAX)?
                .map(Budget::of_run),
        })
    }
}

#[cfg(test)]
mod tests {
    use flowstone_flow::flow::Flow;
    use flowstone_flow::tools;
    use flowstone_lang::reader::read_data;
    use flowstone_lang::value::Value;

    use super::*;

    fn read(config: &str) -> String {
        let config = read_data(config).unwrap();
        let (envelope, wrong) = tools::read(&Flow::bare("test", Value::Nil), &config, false);
        assert!(wrong.is_empty(), "{wrong:?}");
        match Limits::read(Fields::new(&config), &envelope) {
            Ok(it) => format!(
                "{} {} {:?} {:?}",
                it.turns,
                it.calls,
                it.repeated,
                it.budget.map(|budget| budget.tokens)
            ),
            Err(error) => error.message,
        }
    }

    #[test]
    fn the_envelope_wins_over_the_step() {
        for (config, expected) in [
            ("{}", "20 100 None None"),
            (
                "{:max-iterations 3 :max-tool-calls 4 :max-repeated-tool-calls 2 :max-tokens-budget 9}",
                "3 4 Some(2) Some(9)",
            ),
            (
                "{:max-iterations 20 :max-tool-calls 100 :max-repeated-tool-calls 4 :tools {:max-iterations 8 :max-tool-calls 80 :max-repeated-tool-calls 3}}",
                "8 80 Some(3) None",
            ),
            (
                "{:max-iterations 101}",
                "`:max-iterations` must be from 1 to 100, and is 101",
            ),
            (
                "{:max-tool-calls 1001}",
                "`:max-tool-calls` must be from 1 to 1000, and is 1001",
            ),
            (
                "{:max-repeated-tool-calls 101}",
                "`:max-repeated-tool-calls` must be from 1 to 100, and is 101",
            ),
            (
                "{:max-tokens-budget 0}",
                "`:max-tokens-budget` must be from 1 to 9223372036854775807, and is 0",
            ),
        ] {
            assert_eq!(read(config), expected, "{config}");
        }
    }
}
