//! `flowstone runs diff`: prints the differences between two runs.

use flowstone_engine::{StepVerdict, shown_end};
use serde_json::Value as Json;

use super::ask;
use crate::cli::args::RunsDiff;
use crate::cli::exit::Exit;
use crate::cli::paint::{DIM, GREEN as COME, PLAIN, RED as GONE};
use crate::cli::report::Report;
use crate::cli::rows::{list, maybe, text};
use crate::cli::{App, output};
use crate::json::{Values, diff_json, ok};

/// How many characters of a value are shown.
const BRIEF: usize = 200;
/// How many characters are shown before a difference that is not at the beginning.
const BEFORE: usize = 40;

/// Prints the differences. The exit code is that of `diff`.
pub(super) fn run(args: &RunsDiff, app: &dyn App) -> Result<Exit, Report> {
    let diff = ask(app, &args.home, async |engine| {
        let a = engine.find_run(&args.a).await?.id;
        let b = engine.find_run(&args.b).await?.id;
        let diff = engine.compare_runs(&a, &b).await?;
        Ok(diff_json(&diff, args.all, values(args)))
    })?;
    Ok(tell(diff, args))
}

/// Returns the form of the values that the command prints.
pub fn values(args: &RunsDiff) -> Values {
    match args.json {
        true => Values::Json,
        false => Values::Edn,
    }
}

/// Prints differences, in the form of the API.
pub fn tell(diff: Json, args: &RunsDiff) -> Exit {
    let is_same = diff["same"] == true;
    if args.json {
        output::json(&ok(diff));
    } else if is_same && !args.all {
        output::note("nothing differs");
    } else {
        output::data(&describe(&diff));
    }
    match is_same {
        true => Exit::Completed,
        false => Exit::Failed,
    }
}

/// Returns the differences as text.
pub(in crate::cli) fn describe(diff: &Json) -> String {
    let mut out = String::new();
    if let Some(texts) = diff["flow"].as_array() {
        out.push_str("flow\n");
        if diff["flows"].is_object() {
            both(&mut out, &diff["flows"]);
        }
        let texts = texts.iter().filter_map(Json::as_str);
        for line in texts.flat_map(str::lines) {
            let style = match line.as_bytes().first() {
                Some(b'-') => GONE,
                Some(b'+') => COME,
                _ => PLAIN,
            };
            out.push_str(&format!("  {style}{line}{style:#}\n"));
        }
    }
    if diff["input"].is_object() {
        out.push_str("input\n");
        both(&mut out, &diff["input"]);
    }
    let steps: Vec<&Json> = list(diff, "steps").collect();
    for step in &steps {
        let [path, difference] = ["path", "difference"].map(|name| text(step, name));
        out.push_str(&format!("step {path}  {DIM}{difference}{DIM:#}\n"));
        write_step(&mut out, step, &difference);
    }
    if diff["end"].is_object() {
        out.push_str("end\n");
        both(&mut out, &diff["end"]);
    }
    let is_same = |step: &&&Json| step["difference"] == StepVerdict::Same.name();
    let listed = steps.iter().filter(is_same).count() as u64;
    let same = diff["sameSteps"].as_u64().unwrap_or(listed);
    let all = steps.len() as u64 - listed + same;
    out.push_str(&format!("{same} of {all} steps are the same\n"));
    out
}

/// Writes the two sides of a difference.
fn both(out: &mut String, sides: &Json) {
    pair(out, &text(sides, "a"), &text(sides, "b"));
}

fn write_step(out: &mut String, step: &Json, difference: &str) {
    let (a, b) = (&step["a"], &step["b"]);
    let request = |side: &Json| {
        let asked = maybe(side, "request").unwrap_or_else(|| "(not kept)".to_owned());
        format!(":{} {asked}", text(side, "type"))
    };
    match (a.is_object(), b.is_object()) {
        (true, true) if difference == StepVerdict::Request.name() => {
            pair(out, &request(a), &request(b));
        }
        (true, true) if difference == StepVerdict::Result.name() => {
            let (text_a, text_b) = (end_text(a), end_text(b));
            // Errors with the same message differ in their data.
            match (text_a == text_b, maybe(a, "result"), maybe(b, "result")) {
                (true, Some(a), Some(b)) => pair(out, &a, &b),
                _ => pair(out, &text_a, &text_b),
            }
        }
        (true, false) => gone(out, &request(a)),
        (false, true) => come(out, &request(b)),
        _ => {}
    }
}

fn end_text(side: &Json) -> String {
    shown_end(maybe(side, "result").as_deref(), side["failed"] == true)
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
