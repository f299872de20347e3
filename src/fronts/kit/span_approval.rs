//! What people decided about the calls of an agent that waits in place: `flowstone.approval` of their spans.
//!
//! An agent asks about calls of one turn together, in a wait of its own after that turn. The wait shows the ids of the calls, and
//! its answer has one decision for all of them, with others for single calls.

use std::collections::HashMap;

use flowstone_engine::codec;
use flowstone_engine::{RunReport, StepReport, StepStatus};
use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;
use flowstone_model::json::items;

use super::span_path::{TURN, outer, step_id};

/// The id of the step in which an agent waits for a person.
const WAIT: &str = "approval";

/// What is known of the approval of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Approval {
    /// A person is asked.
    Waiting,
    Approved,
    /// A person said no.
    Rejected {
        at_ms: i64,
    },
    /// Nobody answered in time, or the wait ended with its run.
    Unanswered {
        at_ms: i64,
    },
}

impl Approval {
    /// Returns the value of the attribute.
    pub(super) fn name(self) -> &'static str {
        match self {
            Approval::Waiting => "waiting",
            Approval::Approved => "approved",
            Approval::Rejected { .. } => "rejected",
            Approval::Unanswered { .. } => "unanswered",
        }
    }
}

/// The approvals of a run, by the path of the turn and the id of the call.
#[derive(Debug, Default)]
pub(super) struct Approvals(HashMap<(String, String), Approval>);

impl Approvals {
    pub(super) fn of(report: &RunReport) -> Approvals {
        let mut turns: HashMap<&str, &str> = HashMap::new();
        let mut approvals = Approvals::default();
        for step in &report.steps {
            let agent = outer(&step.path).unwrap_or_default();
            match (&*step.kind, step_id(&step.path)) {
                ("llm", TURN) => drop(turns.insert(agent, &step.path)),
                ("wait", WAIT) => {
                    let Some(turn) = turns.get(agent) else {
                        continue;
                    };
                    for call in asked(report, step) {
                        let decided = decision(step, &call);
                        approvals.0.insert(((*turn).to_owned(), call), decided);
                    }
                }
                _ => {}
            }
        }
        approvals
    }

    pub(super) fn find(&self, turn: &str, call: Option<&str>) -> Option<Approval> {
        let key = (turn.to_owned(), call?.to_owned());
        self.0.get(&key).copied()
    }
}

/// Returns the ids of the calls that a wait asks about.
fn asked(report: &RunReport, step: &StepReport) -> Vec<String> {
    let wait = report.waits.iter().find(|wait| wait.path == step.path);
    let details = wait.and_then(|wait| codec::decode(&wait.details).ok());
    let shown = details.as_ref().and_then(|details| details.get("show"));
    let data = shown.and_then(|shown| shown.get("data"));
    let actions = data.and_then(|data| data.get("actions"));
    let actions = actions.and_then(items).unwrap_or_default();
    let ids = actions
        .iter()
        .filter_map(|action| action.get("tool-call-id"));
    let ids = ids.filter_map(Value::as_str);
    ids.map(|id| id.to_string()).collect()
}

fn decision(step: &StepReport, call: &str) -> Approval {
    let Some(at_ms) = step.ended_ms else {
        return Approval::Waiting;
    };
    if step.status != StepStatus::Done {
        return Approval::Unanswered { at_ms };
    }
    let answer = step.result.as_deref();
    let answer = answer.and_then(|text| codec::decode(text).ok());
    let action = answer.as_ref().and_then(|answer| {
        let own = answer.get("decisions").and_then(items).unwrap_or_default();
        let is_own = |it: &&Value| it.get("tool-call-id").and_then(Value::as_str) == Some(call);
        let own = own.iter().find(is_own).and_then(|own| own.get("action"));
        let all = answer.get("action").unwrap_or(answer);
        name_of(own.unwrap_or(all))
    });
    match action.as_deref() {
        Some("approve" | "approved" | "edit") => Approval::Approved,
        _ => Approval::Rejected { at_ms },
    }
}
