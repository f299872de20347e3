//! The permissions that a flow needs and those that are missing, for `check` and `flows trust`.

use std::path::Path;

use flowstone_flow::permission::{Allow, Missing, PlannedNeed, merged_lines, shown};
use flowstone_flow::step::real_path;
use serde_json::json;

/// A flow with the permissions that its steps need.
pub struct Needs {
    pub slug: String,
    /// What its steps need, and what is missing of it: nothing grants that yet.
    planned: Vec<(PlannedNeed, Option<Missing>)>,
}

impl Needs {
    pub fn of(slug: &str, planned: &[PlannedNeed], allow: &Allow, root: &Path) -> Needs {
        let planned = planned.iter();
        let planned = planned.map(|need| (need.clone(), need.missing(allow, root, &real_path)));
        Needs {
            slug: slug.to_owned(),
            planned: planned.collect(),
        }
    }

    /// Returns the needed permissions that nothing grants yet.
    pub fn missing(&self) -> impl Iterator<Item = &Missing> {
        self.planned
            .iter()
            .filter_map(|(_, missing)| missing.as_ref())
    }

    /// Returns the lines for a person to read. `is_new`: marks a missing permission.
    pub fn lines(&self, is_new: impl Fn(&Missing) -> bool) -> Vec<String> {
        let slug = shown(&self.slug);
        if self.planned.is_empty() {
            return vec![format!(
                "the flow `{slug}` needs no permissions that are known before it runs"
            )];
        }
        let heading = format!("the flow `{slug}` needs:");
        let needs = self.planned.iter().map(|(need, missing)| {
            let mark = match missing {
                Some(missing) if is_new(missing) => "  (new)",
                Some(_) | None => "",
            };
            format!("  {}{mark}", need.describe())
        });
        [heading].into_iter().chain(needs).collect()
    }

    /// Returns the lines about what these flows lack: each key of flowstone.edn once.
    pub fn missing_lines<'a>(flows: impl Iterator<Item = &'a Needs>) -> Vec<String> {
        let missing: Vec<Missing> = flows.flat_map(Needs::missing).cloned().collect();
        let heading = "missing in flowstone.edn:".to_owned();
        let lines = merged_lines(&missing).into_iter();
        let lines = lines.map(|line| format!("  {line}"));
        [heading].into_iter().chain(lines).collect()
    }

    pub fn to_json(&self) -> serde_json::Value {
        let needs: Vec<_> = self
            .planned
            .iter()
            .map(|(need, _)| {
                let known = matches!(need, PlannedNeed::Known(_));
                json!({"access": need.access().key(), "needs": need.describe(), "known": known})
            })
            .collect();
        let missing: Vec<String> = self.missing().map(Missing::edn).collect();
        json!({"flow": self.slug, "needs": needs, "missing": missing})
    }
}
