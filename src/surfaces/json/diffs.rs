//! Differences between two runs.

use flowstone_engine::{RunDiff, StepDiff as Step, StepSide as Side, StepVerdict};
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::values::{Values, object};

/// The differences between two runs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    same: bool,
    /// The id of the first run.
    a: String,
    /// The id of the second run.
    b: String,
    /// If the flows differ: each text that differs, as a unified diff.
    flow: Option<Vec<String>>,
    /// The names of both flows, if they are different flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    flows: Option<Names>,
    /// Both inputs, if they differ.
    input: Option<Inputs>,
    /// The number of steps that are the same.
    same_steps: usize,
    steps: Vec<StepDifference>,
    /// How both ended, if that differs.
    end: Option<Ends>,
}

/// The flows of two runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct Names {
    a: String,
    b: String,
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

/// Returns the differences as JSON, with values in a form. With `all`, equal steps are part of it. The names of the fields
/// are stable.
pub fn diff_json(diff: &RunDiff, all: bool, values: Values) -> Json {
    let is_same = |step: &&Step| step.verdict == StepVerdict::Same;
    let steps = diff.steps.iter().filter(|step| all || !is_same(step));
    let is_one_flow = diff.a.flow == diff.b.flow;
    object(&Difference {
        same: diff.is_same(),
        a: diff.a.id.to_string(),
        b: diff.b.id.to_string(),
        flow: diff.flow.clone(),
        flows: (!is_one_flow).then(|| Names {
            a: diff.a.flow.clone(),
            b: diff.b.flow.clone(),
        }),
        input: diff.input.as_ref().map(|(a, b)| Inputs {
            a: values.shown(a),
            b: values.shown(b),
        }),
        same_steps: diff.steps.iter().filter(is_same).count(),
        steps: steps.map(|it| step(it, values)).collect(),
        end: diff.end.as_ref().map(|(a, b)| Ends {
            a: a.clone(),
            b: b.clone(),
        }),
    })
}

fn step(step: &Step, values: Values) -> StepDifference {
    StepDifference {
        path: step.path.clone(),
        difference: step.verdict.name(),
        a: step.a.as_ref().map(|it| side(it, values)),
        b: step.b.as_ref().map(|it| side(it, values)),
    }
}

fn side(side: &Side, values: Values) -> StepSide {
    StepSide {
        r#type: side.what.clone(),
        request: side.request.clone(),
        failed: side.failed,
        result: side.end.as_deref().map(|text| values.shown(text)),
    }
}
