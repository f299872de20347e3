//! The scores of a set: a table for people, or one JSON object.

use std::path::{Path, PathBuf};

use flowstone_engine::codec;
use flowstone_engine::json::to_exact_json;
use serde_json::json;

use super::super::super::output;
use super::super::super::report::{Report, Shown as _};
use super::super::super::table::{Column, table};
use super::super::Test;
use super::set::Set;
use super::stats::{Estimate, differences, scores};
use super::{BELOW, Run, score};

/// The scores of one scorer.
struct Line {
    name: String,
    pass: Option<f64>,
    /// By flow.
    estimates: Vec<Estimate>,
    /// The second flow's less the first one's, by case.
    difference: Option<Estimate>,
}

impl Line {
    /// Tells whether each flow reaches the threshold.
    fn is_well(&self) -> bool {
        let pass = self.pass.unwrap_or(0.0);
        self.estimates.iter().all(|estimate| estimate.mean >= pass)
    }
}

/// Reports on a set. Tells whether all runs could be scored, and all thresholds are reached.
pub fn report(args: &Test, file: &Path, set: &Set, flows: &[PathBuf], runs: &[Run]) -> bool {
    let lines = lines(set, flows.len(), runs);
    let problems: Vec<&Run> = runs.iter().filter(|run| run.problem.is_some()).collect();
    let is_well = problems.is_empty() && lines.iter().all(Line::is_well);
    if args.json {
        output::json(&as_json(file, set, flows, runs, &lines, is_well));
        return is_well;
    }
    for run in &problems {
        if let Some(problem) = &run.problem {
            let mut problem = problem.clone();
            problem.message = format!("{}: {}", set.names[run.case], problem.message);
            output::report(&problem);
        }
    }
    for line in lines.iter().filter(|line| !line.is_well()) {
        output::report(&below(line));
    }
    people(file, set, flows, runs, &lines);
    is_well
}

fn below(line: &Line) -> Report {
    let least = line.estimates.iter().map(|estimate| estimate.mean);
    let least = least.fold(1.0, f64::min);
    let message = format!(
        "the mean of `{}` is {}, and `:pass` asks for {}",
        line.name,
        two(least),
        two(line.pass.unwrap_or(0.0))
    );
    Report::error(BELOW, message)
}

fn lines(set: &Set, flows: usize, runs: &[Run]) -> Vec<Line> {
    let scorers = score::read(set).unwrap_or_default();
    let of = |flow: usize, case: Option<usize>, idx: usize| -> Vec<f64> {
        let runs = runs.iter().filter(|run| run.flow == flow);
        let runs = runs.filter(|run| case.is_none_or(|case| run.case == case));
        runs.filter_map(|run| run.scores.get(idx))
            .map(|it| it.score)
            .collect()
    };
    let lines = scorers.into_iter().enumerate().map(|(idx, scorer)| {
        let difference = (flows == 2).then(|| {
            let cases = (0..set.names.len()).filter_map(|case| {
                let [first, second] = [0, 1].map(|flow| mean(&of(flow, Some(case), idx)));
                Some(second? - first?)
            });
            differences(&cases.collect::<Vec<f64>>())
        });
        Line {
            name: scorer.name,
            pass: scorer.pass,
            estimates: (0..flows)
                .map(|flow| scores(&of(flow, None, idx)))
                .collect(),
            difference,
        }
    });
    lines.collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    let count = f64::from(u32::try_from(values.len()).unwrap_or(u32::MAX));
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count)
}

fn people(file: &Path, set: &Set, flows: &[PathBuf], runs: &[Run], lines: &[Line]) {
    let mut rows = Vec::new();
    for line in lines {
        for (flow, estimate) in flows.iter().zip(&line.estimates) {
            rows.push(vec![
                line.name.clone(),
                flow.display().to_string(),
                two(estimate.mean),
                interval(*estimate),
                estimate.count.to_string(),
            ]);
        }
        if let Some(difference) = line.difference {
            rows.push(vec![
                line.name.clone(),
                "difference".to_owned(),
                format!("{:+.2}", difference.mean),
                interval(difference),
                difference.count.to_string(),
            ]);
        }
    }
    let heading = ["score", "flow", "mean", "95 %", "runs"].map(Column::Whole);
    output::data(&table(&heading, rows));
    let ended = runs.iter().filter(|run| run.status != "completed");
    let failed = ended.count();
    let of = if failed == 0 {
        String::new()
    } else {
        format!(", {failed} not completed")
    };
    output::note(&format!(
        "{}: {} cases, {} runs{of}",
        file.display(),
        set.names.len(),
        runs.len()
    ));
}

fn two(number: f64) -> String {
    format!("{number:.2}")
}

fn interval(estimate: Estimate) -> String {
    format!("{} to {}", two(estimate.low), two(estimate.high))
}

fn as_json(
    file: &Path,
    set: &Set,
    flows: &[PathBuf],
    runs: &[Run],
    lines: &[Line],
    is_well: bool,
) -> serde_json::Value {
    let estimate =
        |it: &Estimate| json!({"mean": it.mean, "low": it.low, "high": it.high, "count": it.count});
    let scores = lines.iter().map(|line| {
        let flows = flows.iter().zip(&line.estimates).map(|(flow, found)| {
            let mut object = estimate(found);
            object["flow"] = flow.display().to_string().into();
            object
        });
        json!({
            "name": line.name,
            "pass": line.pass,
            "ok": line.is_well(),
            "flows": flows.collect::<Vec<_>>(),
            "difference": line.difference.as_ref().map(estimate),
        })
    });
    let runs = runs.iter().map(|run| {
        let scores = lines.iter().zip(&run.scores).map(|(line, scored)| {
            json!({"name": line.name, "score": scored.score, "reason": scored.reason})
        });
        let end = codec::decode(&run.end).ok();
        json!({
            "flow": flows[run.flow].display().to_string(),
            "case": set.names[run.case],
            "status": run.status,
            "result": end.as_ref().and_then(|end| to_exact_json(end).ok()),
            "scores": scores.collect::<Vec<_>>(),
            "error": run.problem.as_ref().map(|problem| problem.to_json()),
        })
    });
    json!({
        "ok": is_well,
        "set": file.display().to_string(),
        "cases": set.names.len(),
        "scores": scores.collect::<Vec<_>>(),
        "runs": runs.collect::<Vec<_>>(),
    })
}
