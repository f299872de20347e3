//! The usage of all turns together.

use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;

/// The counts that are always present.
const ALWAYS: &[&str] = &["prompt-tokens", "completion-tokens", "total-tokens"];

/// Counts of tokens by name, and the cost if known.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    counts: Vec<(String, i64)>,
    cost: Option<f64>,
}

impl Default for Usage {
    fn default() -> Usage {
        Usage {
            counts: ALWAYS.iter().map(|name| ((*name).to_owned(), 0)).collect(),
            cost: None,
        }
    }
}

impl Usage {
    /// Adds the counts of a turn, or of a nested agent.
    pub(super) fn add(&mut self, counts: &Value) {
        for (key, count) in counts.as_map().into_iter().flat_map(|map| map.iter()) {
            let (Some(name), Some(count)) = (name_of(key), count.as_int()) else {
                continue;
            };
            match self.counts.iter_mut().find(|(known, _)| **known == *name) {
                Some((_, sum)) => *sum = sum.saturating_add(count),
                None => self.counts.push((name.to_string(), count)),
            }
        }
    }

    /// Adds a cost.
    pub(super) fn pay(&mut self, cost: Option<&Value>) {
        if let Some(cost) = cost.and_then(crate::json::number_float) {
            self.cost = Some(self.cost.unwrap_or(0.0) + cost);
        }
    }

    pub(super) fn total(&self) -> i64 {
        self.count("total-tokens")
    }

    /// Returns the count with a name.
    pub(super) fn count(&self, name: &str) -> i64 {
        let count = self.counts.iter().find(|(known, _)| known == name);
        count.map_or(0, |(_, count)| *count)
    }

    pub(super) fn cost(&self) -> Option<f64> {
        self.cost
    }

    /// Returns `:usage`.
    pub(super) fn value(&self) -> Value {
        let counts = self.counts.iter();
        Value::map(counts.map(|(name, count)| (Value::keyword(name), Value::Int(*count))))
    }
}
