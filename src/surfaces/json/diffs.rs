//! Differences between two runs.

use flowstone_engine::{RunDiff, StepDiff as Step, StepSide as Side, StepVerdict};
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::values::{object, stored_json};

/// The differences between two runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct Difference {
    same: bool,
    /// The id of the first run.
    a: String,
    /// The id of the second run.
    b: String,
    /// If the flows differ: each text that differs, as a unified diff.
    flow: Option<Vec<String>>,
    /// Both inputs, if they differ.
    input: Option<Inputs>,
    steps: Vec<StepDifference>,
    /// How both ended, if that differs.
    end: Option<Ends>,
}

/// The inputs of two runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct Inputs {
    a: Json,
    b: Json,
}

/// The ends of two runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct Ends {
    a: String,
    b: String,
}

/// The difference of a step between two runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct StepDifference {
    path: String,
    difference: &'static str,
    a: Option<StepSide>,
    b: Option<StepSide>,
}

/// A step in one of two runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct StepSide {
    r#type: String,
    /// The beginning of the request, as EDN text.
    request: Option<String>,
    failed: bool,
    result: Option<Json>,
}

/// Returns the differences as JSON. The names of the fields are stable.
pub fn diff_json(diff: &RunDiff, all: bool) -> Json {
    let steps = diff.steps.iter();
    let steps = steps.filter(|step| all || step.verdict != StepVerdict::Same);
    object(&Difference {
        same: diff.is_same(),
        a: diff.a.id.to_string(),
        b: diff.b.id.to_string(),
        flow: diff.flow.clone(),
        input: diff.input.as_ref().map(|(a, b)| Inputs {
            a: stored_json(a),
            b: stored_json(b),
        }),
        steps: steps.map(step).collect(),
        end: diff.end.as_ref().map(|(a, b)| Ends {
            a: a.clone(),
            b: b.clone(),
        }),
    })
}

fn step(step: &Step) -> StepDifference {
    StepDifference {
        path: step.path.clone(),
        difference: step.verdict.name(),
        a: step.a.as_ref().map(side),
        b: step.b.as_ref().map(side),
    }
}

fn side(side: &Side) -> StepSide {
    StepSide {
        r#type: side.what.clone(),
        request: side.request.clone(),
        failed: side.failed,
        result: side.end.as_deref().map(stored_json),
    }
}
