//! `:cost` of an agent: a ledger of its runs' usage, and a budget for a period of time.
//!
//! The ledger is a key of the project for each flow, read before the first turn and extended after the last one, by
//! nested `:kv` steps. The current time is the journaled end of the reading step.

use flowstone_flow::step::{Field, FieldType, NestedRequest, StepContext, StepError};
use flowstone_lang::value::{Object, Value};

use super::notes::{facts, minute};
use crate::fields::Fields;
use crate::json::{items, number_float};

/// The keys of `:cost`.
pub(super) const FIELD: FieldType = FieldType::Either(&[
    FieldType::Bool,
    FieldType::Keys(&[
        Field::optional(
            "budget",
            BUDGET,
            "The budget of all runs of the flow together.",
        )
        .or_nil(),
        Field::optional(
            "enabled",
            FieldType::Bool,
            "Whether a ledger is kept. Default true.",
        )
        .or_nil(),
    ]),
]);
const BUDGET: FieldType = FieldType::Keys(&[
    Field::optional(
        "max-tokens-total",
        FieldType::IntIn(1, i64::MAX),
        "Maximum number of tokens.",
    )
    .or_nil(),
    Field::optional(
        "window-hours",
        FieldType::IntIn(1, MOST_HOURS),
        "The period in hours; without it, the last 100 runs count.",
    )
    .or_nil(),
]);
/// Number of runs that the ledger keeps, newest first.
pub(super) const KEPT: usize = 100;
const HOUR_MS: i64 = 3_600_000;
/// A hundred years.
const MOST_HOURS: i64 = 876_000;

/// The parsed `:cost`.
#[derive(Debug)]
pub(super) struct Cost {
    key: String,
    flow: String,
    /// The installation that the run is of, which the ledger names.
    installation: Option<String>,
    budget: Option<Budget>,
}

/// The maximum usage in a period of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Budget {
    tokens: i64,
    /// The period; without it, the whole ledger counts.
    window_hours: Option<i64>,
}

/// A run in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    at_ms: i64,
    tokens: i64,
}

impl Cost {
    /// Reads `:cost`; `None` if it is off.
    pub(super) fn read(cx: &StepContext, given: &Value) -> Result<Option<Cost>, StepError> {
        let nothing = Value::map([]);
        let given = match given {
            Value::Bool(false) => return Ok(None),
            Value::Bool(true) => &nothing,
            given => given,
        };
        let fields = Fields::nested(":cost", given)?;
        if fields.bool("enabled")? == Some(false) {
            return Ok(None);
        }
        let flow = cx.flow().slug.to_string();
        let installation = cx.installation();
        Ok(Some(Cost {
            installation: installation.map(|it| it.flow.to_string()),
            key: key(&flow),
            budget: fields.get("budget").map(Budget::read).transpose()?,
            flow,
        }))
    }

    /// Returns the number of tokens left in the budget, if there is one.
    ///
    /// # Errors
    /// E0852 when the budget is used up.
    pub(super) async fn check(&self, cx: &StepContext) -> Result<Option<i64>, StepError> {
        let Some(budget) = &self.budget else {
            return Ok(None);
        };
        let config = facts([
            ("operation", Value::keyword("get")),
            ("key", Value::from(self.key.as_str())),
            ("default", Value::vector([])),
        ]);
        let asked = vec![NestedRequest::new("kv", "cost-check", config).of_author()];
        let Some(performed) = cx.perform_all(asked, 1).await.pop() else {
            return Ok(None);
        };
        let now_ms = performed.ended_ms;
        let ledger = performed.result?;
        let entries = entries(ledger.get("value").unwrap_or(&Value::Nil));
        match budget.exceeded(&entries, now_ms) {
            None => Ok(Some(budget.left(&entries, now_ms))),
            Some(exceeded) => Err(self.exhausted(budget, exceeded, entries.len())),
        }
    }

    /// Returns the step that adds a run to the ledger.
    pub(super) fn entry(&self, cx: &StepContext, result: &Value, now_ms: i64) -> NestedRequest {
        let figure = |key: &str| result.get(key).cloned().unwrap_or(Value::Nil);
        let mut item = vec![
            ("run", Value::from(cx.run_id().as_str())),
            ("step", Value::from(cx.path().to_string())),
            ("at", Object::Inst(now_ms).into()),
            ("tokens", figure("tokens-used")),
            ("iterations", figure("iterations")),
            (
                "tool-calls",
                result
                    .get("tool-call-stats")
                    .and_then(|stats| stats.get("call-count"))
                    .cloned()
                    .unwrap_or(Value::Int(0)),
            ),
            ("model", figure("model")),
        ];
        if let Some(installation) = &self.installation {
            item.push(("installation", Value::from(installation.as_str())));
        }
        let evaluation = result.get("evaluation").unwrap_or(&Value::Nil);
        if let Some(tokens) = evaluation.get("evaluation-tokens") {
            item.push(("evaluation-tokens", tokens.clone()));
        }
        let usd = [result, evaluation].map(|it| it.get("cost-usd").and_then(number_float));
        if usd.iter().any(Option::is_some) {
            let sum: f64 = usd.into_iter().flatten().sum();
            item.push(("cost-usd", Value::Float(sum)));
        }
        let item = item
            .into_iter()
            .map(|(key, value)| (Value::keyword(key), value));
        let config = facts([
            ("operation", Value::keyword("append")),
            ("key", Value::from(self.key.as_str())),
            ("item", Value::map(item)),
            ("max-length", Value::from(KEPT)),
        ]);
        NestedRequest::new("kv", "cost", config).of_author()
    }

    fn exhausted(&self, budget: &Budget, exceeded: Exceeded, runs: usize) -> StepError {
        let Budget {
            tokens,
            window_hours,
        } = *budget;
        let used = exceeded.used;
        if self.installation.is_some() {
            // The figures are the author's.
            return StepError::new("E0852", "resource-exhausted", "budget used up")
                .hint("the author of the flow can raise it");
        }
        let flow = &self.flow;
        let within = match window_hours {
            Some(hours) => format!(" of {tokens} tokens within {hours} hours"),
            None => format!(" of {tokens} tokens in its last {runs} runs"),
        };
        let error = StepError::new(
            "E0852",
            "resource-exhausted",
            format!("the agents of `{flow}` have used {used}{within}"),
        )
        .with("usage", used)
        .with("limit", tokens)
        .with("window-hours", window_hours.map_or(Value::Nil, Value::Int))
        .with("runs", Value::from(runs))
        .with("ledger-key", Value::from(self.key.as_str()));
        let error = match exceeded.free_at_ms {
            Some(at) => error
                .with("free-at", Value::from(Object::Inst(at)))
                .hint(format!("there is room again at {} UTC", minute(at))),
            None => error,
        };
        error.hint(format!(
            "raise `:cost :budget :max-tokens-total`, or delete the key `{}` to start with an empty one",
            self.key
        ))
    }
}

impl Budget {
    fn read(given: &Value) -> Result<Budget, StepError> {
        let fields = Fields::nested(":cost :budget", given)?;
        let Some(tokens) = fields.int("max-tokens-total", 1, i64::MAX)? else {
            return Err(
                StepError::config("E0850", "`:cost :budget` needs `:max-tokens-total`")
                    .hint("as in `{:max-tokens-total 500000 :window-hours 720}`"),
            );
        };
        Ok(Budget {
            tokens,
            window_hours: fields.int("window-hours", 1, MOST_HOURS)?,
        })
    }

    fn window_ms(&self) -> Option<i64> {
        self.window_hours.map(|hours| hours * HOUR_MS)
    }

    /// Returns the entries of the window.
    fn counted(&self, entries: &[Entry], now_ms: i64) -> Vec<Entry> {
        let window_ms = self.window_ms();
        let counts = |entry: &&Entry| window_ms.is_none_or(|window| entry.at_ms > now_ms - window);
        entries.iter().filter(counts).copied().collect()
    }

    fn left(&self, entries: &[Entry], now_ms: i64) -> i64 {
        let used = total(&self.counted(entries, now_ms));
        self.tokens.saturating_sub(used).max(0)
    }

    /// Returns the usage if nothing is left.
    fn exceeded(&self, entries: &[Entry], now_ms: i64) -> Option<Exceeded> {
        let window_ms = self.window_ms();
        let mut counted = self.counted(entries, now_ms);
        counted.sort_by_key(|entry| entry.at_ms);
        let used = total(&counted);
        if used < self.tokens {
            return None;
        }
        let mut left = used;
        let frees = counted.iter().find(|entry| {
            left = left.saturating_sub(entry.tokens);
            left < self.tokens
        });
        let free_at_ms = window_ms.and_then(|window| Some(frees?.at_ms + window));
        Some(Exceeded { used, free_at_ms })
    }
}

/// See [`Budget::exceeded`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Exceeded {
    used: i64,
    /// The time when enough of it has left the period.
    free_at_ms: Option<i64>,
}

fn total(entries: &[Entry]) -> i64 {
    let tokens = entries.iter().map(|entry| entry.tokens);
    tokens.fold(0, i64::saturating_add)
}

/// Returns the key of a flow's ledger. Slugs have only characters that keys may have.
fn key(flow: &str) -> String {
    format!("agent-cost:{flow}")
}

/// Reads the ledger, and ignores malformed entries.
fn entries(ledger: &Value) -> Vec<Entry> {
    let read = |item: &Value| {
        let Some(Value::Object(at)) = item.get("at") else {
            return None;
        };
        let Object::Inst(at_ms) = **at else {
            return None;
        };
        let tokens = |key: &str| item.get(key).and_then(Value::as_int).unwrap_or(0).max(0);
        Some(Entry {
            at_ms,
            tokens: tokens("tokens").saturating_add(tokens("evaluation-tokens")),
        })
    };
    let items = items(ledger).unwrap_or_default();
    items.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000 * HOUR_MS;

    fn entry(hours_ago: i64, tokens: i64) -> Entry {
        Entry {
            at_ms: NOW - hours_ago * HOUR_MS,
            tokens,
        }
    }

    fn exceeded(tokens: i64, window_hours: Option<i64>, entries: &[Entry]) -> Option<(i64, i64)> {
        let budget = Budget {
            tokens,
            window_hours,
        };
        let exceeded = budget.exceeded(entries, NOW)?;
        let hours = |at: i64| (at - NOW) / HOUR_MS;
        Some((exceeded.used, exceeded.free_at_ms.map_or(-1, hours)))
    }

    #[test]
    fn only_what_is_in_the_window_counts() {
        let ledger = [entry(30, 500), entry(24, 500), entry(23, 60), entry(1, 40)];
        let cases = [
            ((101, Some(24)), None),
            // The oldest entry in the period leaves it in an hour.
            ((100, Some(24)), Some((100, 1))),
            // Here that is not enough: both must leave.
            ((30, Some(24)), Some((100, 23))),
            ((1_100, Some(31)), Some((1_100, 1))),
            ((1_101, Some(31)), None),
            ((1_000, None), Some((1_100, -1))),
            ((1_101, None), None),
        ];
        for ((tokens, window), expected) in cases {
            assert_eq!(
                exceeded(tokens, window, &ledger),
                expected,
                "{tokens} {window:?}"
            );
        }
    }

    #[test]
    fn the_order_in_the_ledger_does_not_matter() {
        let ledger = [entry(1, 40), entry(23, 60)];
        assert_eq!(exceeded(100, Some(24), &ledger), Some((100, 1)));
    }

    #[test]
    fn what_is_no_entry_does_not_count() {
        let good = facts([
            ("at", Object::Inst(7).into()),
            ("tokens", Value::Int(5)),
            ("evaluation-tokens", Value::Int(2)),
        ]);
        let bad = facts([("at", Value::from("today")), ("tokens", Value::Int(5))]);
        let ledger = Value::vector([good, bad, Value::Int(3), Value::Nil]);
        let expected = Entry {
            at_ms: 7,
            tokens: 7,
        };
        assert_eq!(entries(&ledger), [expected]);
        assert!(entries(&Value::Nil).is_empty());
    }
}
