//! `flowstone test --coverage`: which steps and branches of the flows the tests reach.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::super::output;
use super::super::table::{Column, table};
use super::trial::Ended;

/// What all tests of a flow reach of it.
#[derive(Default)]
struct Flow {
    /// The steps of its text, and whether one was called.
    steps: BTreeMap<String, bool>,
    /// The branches of its text by place and label, and whether they were taken.
    arms: BTreeMap<(String, usize, usize, String), bool>,
}

impl Flow {
    /// Returns the flows that were tested.
    fn all(ended: &[Ended]) -> BTreeMap<&str, Flow> {
        let mut flows: BTreeMap<&str, Flow> = BTreeMap::new();
        for ended in ended
            .iter()
            .filter(|ended| !ended.reached.declared.is_empty() || !ended.reached.arms.is_empty())
        {
            let flow = flows.entry(&ended.file).or_default();
            let called: BTreeSet<&String> = ended.reached.called.iter().collect();
            for id in &ended.reached.declared {
                *flow.steps.entry(id.clone()).or_default() |= called.contains(id);
            }
            for arm in &ended.reached.arms {
                let key = (arm.file.clone(), arm.line, arm.column, arm.label.clone());
                *flow.arms.entry(key).or_default() |= arm.is_taken;
            }
        }
        flows
    }
}

fn reached<K>(all: &BTreeMap<K, bool>) -> usize {
    all.values().filter(|is_reached| **is_reached).count()
}

/// Prints what tests reach of their flows, and what they do not.
pub fn show(ended: &[Ended]) {
    let flows = Flow::all(ended);
    let mut rows = Vec::new();
    for (name, flow) in &flows {
        let of = |reached: usize, all: usize| format!("{reached} of {all}");
        rows.push(vec![
            (*name).to_owned(),
            of(reached(&flow.steps), flow.steps.len()),
            of(reached(&flow.arms), flow.arms.len()),
        ]);
        let steps = flow.steps.iter().filter(|(_, is_reached)| !**is_reached);
        for (id, _) in steps {
            output::note(&format!("{name}: the step :{id} is never called"));
        }
        let arms = flow.arms.iter().filter(|(_, is_reached)| !**is_reached);
        for ((file, line, column, label), _) in arms {
            output::note(&format!("{file}:{line}:{column}: `{label}` is never taken"));
        }
    }
    let heading = ["flow", "steps", "branches"].map(Column::Whole);
    output::data(&table(&heading, rows));
}

/// Returns what tests reach of their flows.
pub fn as_json(ended: &[Ended]) -> serde_json::Value {
    let flows = Flow::all(ended);
    let flows = flows.iter().map(|(name, flow)| {
        let steps = flow.steps.iter();
        let steps = steps.map(|(id, is_reached)| json!({"step": id, "reached": is_reached}));
        let arms = flow.arms.iter().map(|((file, line, column, label), is_reached)| {
            json!({"file": file, "line": line, "column": column, "branch": label, "reached": is_reached})
        });
        json!({"flow": name, "steps": steps.collect::<Vec<_>>(), "branches": arms.collect::<Vec<_>>()})
    });
    flows.collect::<Vec<_>>().into()
}
