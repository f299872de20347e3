//! The results of tests: a table for people, one JSON object, lines of TAP, and JUnit's XML.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::super::output;
use super::super::report::{Report, Shown};
use super::super::table::{Column, table};
use super::find::Found;
use super::trial::{Ended, Verdict};
use super::{Test, coverage, outcome};

/// Reports on all tests in the chosen format.
///
/// # Errors
/// When the file for JUnit cannot be written.
pub fn report(args: &Test, found: &Found, ended: &[Ended]) -> Result<(), Report> {
    if args.json {
        let mut object = as_json(found, ended);
        if args.coverage {
            object["coverage"] = coverage::as_json(ended);
        }
        output::json(&object);
    } else if args.tap {
        output::data(&tap(found, ended));
    } else {
        people(found, ended);
    }
    if let Some(file) = &args.junit {
        fs::write(file, junit(found, ended)).map_err(|error| {
            let message = format!("{} cannot be written: {error}", file.display());
            Report::error("E0927", message)
        })?;
    }
    Ok(())
}

/// Returns a progress bar for tests.
pub fn bar(args: &Test, count: usize) -> ProgressBar {
    let is_hidden = args.quiet || args.json || args.tap || count < 2 || !io::stderr().is_terminal();
    if is_hidden {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(count as u64);
    if let Ok(style) = ProgressStyle::with_template("testing  {bar:30}  {pos} of {len}  {eta}") {
        bar.set_style(style);
    }
    bar
}

fn people(found: &Found, ended: &[Ended]) {
    let mut rows = Vec::new();
    for (file, report) in &found.unusable {
        output::report(report);
        rows.push(vec![file.display().to_string(), "not tried".to_owned()]);
    }
    for ended in ended {
        let name = ended.name();
        match &ended.verdict {
            Verdict::Passed | Verdict::Skipped(_) => {}
            Verdict::NotTried(report) => output::report(report),
            Verdict::Failed(problems) => {
                for problem in problems {
                    let mut problem = problem.clone();
                    problem.message = format!("{name}: {}", problem.message);
                    output::report(&problem);
                }
            }
        }
        rows.push(vec![name, text(&ended.verdict)]);
    }
    output::data(&table(
        &[Column::Whole("flow"), Column::Whole("verdict")],
        rows,
    ));
    let without: Vec<String> = without_case(found);
    if !without.is_empty() {
        output::note(&format!("without a case: {}", without.join(", ")));
    }
}

fn text(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Passed => outcome::verdict(&[]),
        Verdict::Failed(problems) => outcome::verdict(problems),
        Verdict::NotTried(_) => "not tried".to_owned(),
        Verdict::Skipped(why) => format!("skipped: {why}"),
    }
}

fn without_case(found: &Found) -> Vec<String> {
    let flows = found.without_case.iter();
    flows.map(|flow| flow.display().to_string()).collect()
}

fn as_json(found: &Found, ended: &[Ended]) -> serde_json::Value {
    let unusable = found.unusable.iter();
    let unusable = unusable.map(|(file, report)| {
        json!({"ok": false, "flow": file.display().to_string(), "error": report.to_json()})
    });
    let is_well = found.unusable.is_empty() && ended.iter().all(Ended::is_well);
    let objects: Vec<_> = unusable
        .chain(ended.iter().map(|ended| ended.json.clone()))
        .collect();
    json!({
        "ok": is_well,
        "counts": Counts::of(found, ended).to_json(),
        "flows": objects,
        "skipped": without_case(found),
    })
}

/// How many tests ended in which way.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    not_tried: usize,
    skipped: usize,
}

impl Counts {
    fn of(found: &Found, ended: &[Ended]) -> Counts {
        let mut counts = Counts {
            not_tried: found.unusable.len(),
            ..Counts::default()
        };
        for ended in ended {
            match &ended.verdict {
                Verdict::Passed => counts.passed += 1,
                Verdict::Failed(_) => counts.failed += 1,
                Verdict::NotTried(_) => counts.not_tried += 1,
                Verdict::Skipped(_) => counts.skipped += 1,
            }
        }
        counts
    }

    fn to_json(&self) -> serde_json::Value {
        json!({
            "passed": self.passed,
            "failed": self.failed,
            "not_tried": self.not_tried,
            "skipped": self.skipped,
        })
    }
}

/// Returns the messages about a test that failed or could not be performed.
fn messages(verdict: &Verdict) -> Vec<String> {
    match verdict {
        Verdict::Passed | Verdict::Skipped(_) => Vec::new(),
        Verdict::NotTried(report) => vec![report.render()],
        Verdict::Failed(problems) => problems.iter().map(|it| it.message.clone()).collect(),
    }
}

/// Writes version 14 of the Test Anything Protocol.
fn tap(found: &Found, ended: &[Ended]) -> String {
    let count = found.unusable.len() + ended.len();
    let mut out = format!("TAP version 14\n1..{count}\n");
    let mut number = 0;
    let mut line = |out: &mut String, is_well: bool, name: &str, after: &str| {
        number += 1;
        let not = if is_well { "" } else { "not " };
        let _ = writeln!(out, "{not}ok {number} - {}{after}", tap_text(name));
    };
    for (file, report) in &found.unusable {
        line(&mut out, false, &file.display().to_string(), "");
        details(&mut out, &[report.render()]);
    }
    for ended in ended {
        let after = match &ended.verdict {
            Verdict::Skipped(why) => format!(" # SKIP {}", tap_text(why)),
            Verdict::Passed | Verdict::Failed(_) | Verdict::NotTried(_) => String::new(),
        };
        line(&mut out, ended.is_well(), &ended.name(), &after);
        details(&mut out, &messages(&ended.verdict));
    }
    out
}

/// Escapes what has a meaning in a line of TAP.
fn tap_text(text: &str) -> String {
    let line = text.replace(['\n', '\r'], " ");
    line.replace('\\', "\\\\").replace('#', "\\#")
}

/// Writes messages as the block of YAML that belongs to a line of TAP.
fn details(out: &mut String, messages: &[String]) {
    if messages.is_empty() {
        return;
    }
    out.push_str("  ---\n  message: |\n");
    for line in messages.iter().flat_map(|message| message.lines()) {
        let _ = writeln!(out, "    {line}");
    }
    out.push_str("  ...\n");
}

/// Writes the format that CI servers know from JUnit: one suite for each file.
fn junit(found: &Found, ended: &[Ended]) -> String {
    let counts = Counts::of(found, ended);
    let total: Duration = ended.iter().map(|ended| ended.took).sum();
    let count = found.unusable.len() + ended.len();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"flowstone\" tests=\"{count}\" \
         failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\">\n",
        counts.failed,
        counts.not_tried,
        counts.skipped,
        seconds(total)
    );
    for (file, report) in &found.unusable {
        let file = file.display().to_string();
        let name = xml(&file);
        let _ = writeln!(
            out,
            "  <testsuite name=\"{name}\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\" time=\"0.000\">\n    \
             <testcase name=\"{name}\" classname=\"{name}\" time=\"0.000\">\n{}    </testcase>\n  </testsuite>",
            fault("error", &[report.render()])
        );
    }
    let mut suites: BTreeMap<&str, Vec<&Ended>> = BTreeMap::new();
    for ended in ended {
        suites.entry(&ended.file).or_default().push(ended);
    }
    for (file, ended) in suites {
        suite(&mut out, file, &ended);
    }
    out.push_str("</testsuites>\n");
    out
}

fn suite(out: &mut String, file: &str, ended: &[&Ended]) {
    let count = |is: fn(&Verdict) -> bool| ended.iter().filter(|it| is(&it.verdict)).count();
    let took: Duration = ended.iter().map(|ended| ended.took).sum();
    let _ = writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\">",
        xml(file),
        ended.len(),
        count(|verdict| matches!(verdict, Verdict::Failed(_))),
        count(|verdict| matches!(verdict, Verdict::NotTried(_))),
        count(|verdict| matches!(verdict, Verdict::Skipped(_))),
        seconds(took)
    );
    for ended in ended {
        let name = ended.case.as_deref().unwrap_or(&ended.file);
        let _ = write!(
            out,
            "    <testcase name=\"{}\" classname=\"{}\" time=\"{}\"",
            xml(name),
            xml(file),
            seconds(ended.took)
        );
        let inner = match &ended.verdict {
            Verdict::Passed => String::new(),
            Verdict::Skipped(why) => format!("      <skipped message=\"{}\"/>\n", xml(why)),
            Verdict::Failed(_) => fault("failure", &messages(&ended.verdict)),
            Verdict::NotTried(_) => fault("error", &messages(&ended.verdict)),
        };
        match inner.is_empty() {
            true => out.push_str("/>\n"),
            false => {
                let _ = writeln!(out, ">\n{inner}    </testcase>");
            }
        }
    }
    out.push_str("  </testsuite>\n");
}

fn fault(element: &str, messages: &[String]) -> String {
    let first = messages
        .first()
        .map_or("", |message| message.lines().next().unwrap_or(""));
    let all = messages.join("\n\n");
    format!(
        "      <{element} message=\"{}\">{}</{element}>\n",
        xml(first),
        xml(&all)
    )
}

fn seconds(took: Duration) -> String {
    format!("{:.3}", took.as_secs_f64())
}

/// Escapes text for XML, which has no place for most control characters.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push('\t'),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            char if char.is_control() => out.push('\u{fffd}'),
            char => out.push(char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::trial::Reached;
    use super::*;

    fn ended(file: &str, case: &str, verdict: Verdict) -> Ended {
        Ended {
            file: file.to_owned(),
            case: Some(case.to_owned()),
            verdict,
            took: Duration::from_millis(1500),
            json: json!({}),
            reached: Reached::default(),
            source: None,
            corrections: Vec::new(),
        }
    }

    fn some() -> Vec<Ended> {
        let failed = || vec![outcome::problem("1 < 2 & \"no\"\u{1b}".to_owned())];
        vec![
            ended("a.edn", "small # one", Verdict::Passed),
            ended("b.edn", "test", Verdict::Failed(failed())),
            ended("a.edn", "later", Verdict::Skipped("no model".to_owned())),
        ]
    }

    #[test]
    fn tap_has_one_line_for_each_test() {
        let lines = [
            "TAP version 14",
            "1..3",
            "ok 1 - a.edn: small \\# one",
            "not ok 2 - b.edn",
            "  ---",
            "  message: |",
            "    1 < 2 & \"no\"\u{1b}",
            "  ...",
            "ok 3 - a.edn: later # SKIP no model",
            "",
        ];
        assert_eq!(tap(&Found::default(), &some()), lines.join("\n"));
    }

    #[test]
    fn junit_has_one_suite_for_each_file() {
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="flowstone" tests="3" failures="1" errors="0" skipped="1" time="4.500">
  <testsuite name="a.edn" tests="2" failures="0" errors="0" skipped="1" time="3.000">
    <testcase name="small # one" classname="a.edn" time="1.500"/>
    <testcase name="later" classname="a.edn" time="1.500">
      <skipped message="no model"/>
    </testcase>
  </testsuite>
  <testsuite name="b.edn" tests="1" failures="1" errors="0" skipped="0" time="1.500">
    <testcase name="test" classname="b.edn" time="1.500">
      <failure message="1 &lt; 2 &amp; &quot;no&quot;�">1 &lt; 2 &amp; &quot;no&quot;�</failure>
    </testcase>
  </testsuite>
</testsuites>
"#;
        assert_eq!(junit(&Found::default(), &some()), expected);
    }
}
