//! The permissions that a flow needs and those that are missing, for `check` and `flows trust`.

use std::path::Path;

use flowstone_flow::permission::{Allow, Missing, PlannedNeed, shown};
use flowstone_flow::step::real_path;
use serde_json::json;

/// A flow with the permissions that its steps need.
pub struct Needs {
    pub slug: String,
    pub planned: Vec<PlannedNeed>,
    /// The needed permissions that nothing grants yet.
    pub missing: Vec<Missing>,
}

impl Needs {
    pub fn of(slug: &str, planned: &[PlannedNeed], allow: &Allow, root: &Path) -> Needs {
        let missing = planned.iter();
        let missing = missing.filter_map(|need| need.missing(allow, root, &real_path));
        Needs {
            slug: slug.to_owned(),
            missing: missing.collect(),
            planned: planned.to_vec(),
        }
    }

    /// Returns the lines for a person to read.
    pub fn lines(&self) -> Vec<String> {
        let slug = shown(&self.slug);
        if self.planned.is_empty() {
            return vec![format!(
                "the flow `{slug}` needs no permissions that are known before it runs"
            )];
        }
        let mut lines = vec![format!("the flow `{slug}` needs:")];
        lines.extend(
            self.planned
                .iter()
                .map(|need| format!("  {}", need.describe())),
        );
        if !self.missing.is_empty() {
            lines.push("missing in flowstone.edn:".to_owned());
            lines.extend(
                self.missing
                    .iter()
                    .map(|missing| format!("  {}", missing.line())),
            );
        }
        lines
    }

    pub fn to_json(&self) -> serde_json::Value {
        let needs: Vec<_> = self
            .planned
            .iter()
            .map(|need| {
                let known = matches!(need, PlannedNeed::Known(_));
                json!({"access": need.access().key(), "needs": need.describe(), "known": known})
            })
            .collect();
        let missing: Vec<String> = self.missing.iter().map(Missing::edn).collect();
        json!({"flow": self.slug, "needs": needs, "missing": missing})
    }
}
