//! Evaluation sets: a flow runs for each case of a dataset, several times, and scorers say how good its results are.

mod judge;
mod score;
mod set;
mod stats;
mod table;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use flowstone_engine::codec;
use flowstone_lang::value::Value;

use super::super::exit::Exit;
use super::super::report::Report;
use super::super::{App, stack};
use super::flow::{self, Trial};
use super::{Refused, Test, failed, format, misused, overridden};
use score::{Scored, Scorers};
use set::Set;

/// The code of a malformed evaluation set.
const MALFORMED: &str = "E1593";
/// The code of a score below its threshold.
const BELOW: &str = "E1594";

/// Tells whether a file has an evaluation set, by its name.
pub fn is_set(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with("_eval.edn")
}

/// One run of a case. It is all text, so that it can leave its thread.
#[derive(Debug, Clone)]
struct Run {
    /// The index of the flow: 0, or 1 for the one that it is compared with.
    flow: usize,
    case: usize,
    status: String,
    /// The result or the error, as EDN text.
    end: String,
    /// By scorer, in order.
    scores: Vec<Scored>,
    /// Why the run could not be performed or scored.
    problem: Option<Report>,
}

/// Evaluates the sets that were named.
pub fn evaluate(args: &Test, app: &'static dyn App) -> Result<Exit, Refused> {
    let mut is_well = true;
    if args.update {
        let message = "`--update` is for cases, and evaluation sets have scores instead";
        return Err(misused(Report::error("E0926", message)));
    }
    for file in &args.flows {
        let mut set = Set::read(file).map_err(misused)?;
        if let Some(repeat) = args.repeat {
            set.repeat = repeat;
        }
        let mut flows = vec![set.flow.clone()];
        if let Some(other) = &args.compare {
            flows.push(super::flow_file(other).map_err(misused)?);
        }
        let runs = perform(args, app, file, &set, &flows).map_err(failed)?;
        is_well &= table::report(args, file, &set, &flows, &runs);
    }
    Ok(match is_well {
        true => Exit::Completed,
        false => Exit::Failed,
    })
}

/// Runs each case of a set so often as it says, side by side.
fn perform(
    args: &Test,
    app: &'static dyn App,
    file: &Path,
    set: &Set,
    flows: &[PathBuf],
) -> Result<Vec<Run>, Report> {
    let mut plan = Vec::new();
    for flow in 0..flows.len() {
        for case in 0..set.names.len() {
            plan.extend((0..set.repeat).map(|_| (flow, case)));
        }
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Run)>> = Mutex::default();
    let problem: Mutex<Option<Report>> = Mutex::default();
    let bar = format::bar(args, plan.len());
    let worker = || {
        // What a set holds stays in one thread, so each reads it.
        let ready = Set::read(file).and_then(|set| Ok((Scorers::new(&set, app)?, set)));
        let (scorers, set) = match ready {
            Ok(ready) => ready,
            Err(report) => {
                let mut problem = problem.lock().unwrap_or_else(PoisonError::into_inner);
                problem.get_or_insert(report);
                return;
            }
        };
        loop {
            let at = next.fetch_add(1, Ordering::SeqCst);
            let Some((flow, case)) = plan.get(at).copied() else {
                return;
            };
            let run = one_run((args, app), &set, &scorers, (flow, &flows[flow]), case);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((at, run));
            bar.inc(1);
        }
    };
    let most = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.jobs.unwrap_or(most).clamp(1, plan.len().max(1));
    std::thread::scope(|scope| {
        for _ in 1..threads {
            let _ = stack::spawn_scoped(scope, worker);
        }
        worker();
    });
    bar.finish_and_clear();
    if let Some(report) = problem.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(report);
    }
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, run)| run).collect())
}

fn one_run(
    (args, app): (&Test, &'static dyn App),
    set: &Set,
    scorers: &Scorers<'_>,
    (flow, file): (usize, &Path),
    case: usize,
) -> Run {
    let mut run = Run {
        flow,
        case,
        status: "not tried".to_owned(),
        end: String::new(),
        scores: Vec::new(),
        problem: None,
    };
    let tested = set.case(case).and_then(|case| {
        let mut case = overridden(args, case)?;
        // Scorers look at the result.
        case.expect = Value::Nil;
        let trial = Trial {
            args,
            file,
            case,
            replay: set.replay.as_deref(),
            records: false,
            is_quiet: true,
        };
        flow::whole(trial, app)
    });
    let tested = match tested {
        Ok(tested) => tested,
        Err(report) => {
            run.problem = Some(report);
            return run;
        }
    };
    run.status = tested.outcome.status;
    run.end = tested.outcome.end;
    let result = match run.status.as_str() {
        "completed" => codec::decode(&run.end).ok(),
        _ => None,
    };
    match scorers.score(args, set, case, result.as_ref()) {
        Ok(scores) => run.scores = scores,
        Err(report) => run.problem = Some(report),
    }
    run
}
