//! Bounded sets of names for labels: what comes from outside must not make the number of series grow for ever.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Names beyond this number share one label.
const NAMES_MAX: usize = 200;
/// The label of those.
const OTHER: &str = "other";

/// The names that have a label of their own: the first ones that were seen.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<BTreeSet<String>>);

impl Names {
    /// Returns the label of a name: the name itself, or `other`.
    pub(super) fn label(&self, name: &str) -> String {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !names.contains(name) {
            if names.len() >= NAMES_MAX {
                return OTHER.to_owned();
            }
            names.insert(name.to_owned());
        }
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_two_hundred_share_a_label() {
        let names = Names::default();
        for number in 0..NAMES_MAX {
            let name = format!("flow-{number}");
            assert_eq!(names.label(&name), name);
        }
        assert_eq!(names.label("late"), OTHER);
        assert_eq!(names.label("flow-7"), "flow-7");
    }
}
