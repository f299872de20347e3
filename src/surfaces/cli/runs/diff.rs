//! `flowstone runs diff`: prints the differences between two runs.

use flowstone_engine::{RunDiff, StepDiff, StepSide, StepVerdict, shown_end};

use super::ask;
use crate::cli::args::RunsDiff;
use crate::cli::exit::Exit;
use crate::cli::paint::{DIM, GREEN as COME, PLAIN, RED as GONE};
use crate::cli::report::Report;
use crate::cli::{App, output};
use crate::json::{diff_json, ok};

/// How many characters of a value are shown.
const BRIEF: usize = 200;
/// How many characters are shown before a difference that is not at the beginning.
const BEFORE: usize = 40;

/// Prints the differences. The exit code is that of `diff`.
pub(super) fn run(args: &RunsDiff, app: &dyn App) -> Result<Exit, Report> {
    let diff = ask(app, &args.home, async |engine| {
        let a = engine.find_run(&args.a).await?.id;
        let b = engine.find_run(&args.b).await?.id;
        engine.compare_runs(&a, &b).await
    })?;
    if args.json {
        output::json(&ok(diff_json(&diff, args.all)));
    } else if diff.is_same() && !args.all {
        output::note("nothing differs");
    } else {
        output::data(&in_words(&diff, args.all));
    }
    Ok(match diff.is_same() {
        true => Exit::Completed,
        false => Exit::Failed,
    })
}

fn in_words(diff: &RunDiff, all: bool) -> String {
    let mut out = String::new();
    if let Some(texts) = &diff.flow {
        out.push_str("flow\n");
        if diff.a.flow != diff.b.flow {
            pair(&mut out, &diff.a.flow, &diff.b.flow);
        }
        for line in texts.iter().flat_map(|text| text.lines()) {
            let style = match line.as_bytes().first() {
                Some(b'-') => GONE,
                Some(b'+') => COME,
                _ => PLAIN,
            };
            out.push_str(&format!("  {style}{line}{style:#}\n"));
        }
    }
    if let Some((a, b)) = &diff.input {
        out.push_str("input\n");
        pair(&mut out, a, b);
    }
    for step in &diff.steps {
        if all || step.verdict != StepVerdict::Same {
            out.push_str(&format!(
                "step {}  {DIM}{}{DIM:#}\n",
                step.path,
                step.verdict.name()
            ));
            step_words(&mut out, step);
        }
    }
    if let Some((a, b)) = &diff.end {
        out.push_str("end\n");
        pair(&mut out, a, b);
    }
    let same = |step: &&StepDiff| step.verdict == StepVerdict::Same;
    let same = diff.steps.iter().filter(same).count();
    out.push_str(&format!(
        "{same} of {} steps are the same\n",
        diff.steps.len()
    ));
    out
}

fn step_words(out: &mut String, step: &StepDiff) {
    let request = |side: &StepSide| {
        format!(
            ":{} {}",
            side.what,
            side.request.as_deref().unwrap_or("(not kept)")
        )
    };
    match (&step.a, &step.b, step.verdict) {
        (Some(a), Some(b), StepVerdict::Request) => pair(out, &request(a), &request(b)),
        (Some(a), Some(b), StepVerdict::Result) => {
            let (words_a, words_b) = (shown_end(a), shown_end(b));
            // Errors with the same message differ in their data.
            match (words_a == words_b, &a.end, &b.end) {
                (true, Some(a), Some(b)) => pair(out, a, b),
                _ => pair(out, &words_a, &words_b),
            }
        }
        (Some(a), None, _) => gone(out, &request(a)),
        (None, Some(b), _) => come(out, &request(b)),
        _ => {}
    }
}

fn pair(out: &mut String, a: &str, b: &str) {
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    // Both beginnings would look the same, so the text before the difference is left out.
    if same + BEFORE >= BRIEF {
        let skip = same - BEFORE;
        let rest = |text: &str| format!("…{}", text.chars().skip(skip).collect::<String>());
        gone(out, &rest(a));
        come(out, &rest(b));
        return;
    }
    gone(out, a);
    come(out, b);
}

fn gone(out: &mut String, text: &str) {
    out.push_str(&format!("  {GONE}- {}{GONE:#}\n", brief(text)));
}

fn come(out: &mut String, text: &str) {
    out.push_str(&format!("  {COME}+ {}{COME:#}\n", brief(text)));
}

fn brief(text: &str) -> String {
    match text.char_indices().nth(BRIEF) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
