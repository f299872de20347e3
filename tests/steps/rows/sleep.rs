//! The rows of `tests/coverage/sleep.tsv`.

use flowstone_engine::ports::Clock as _;

use crate::net::contains;
use crate::project::Project;

/// Returns the result of a `:sleep` step, and how many milliseconds of the run's clock it took.
fn slept(config: &str) -> (String, i64) {
    let project = Project::new();
    let before = project.clock.now_ms();
    let found = project.eval(&format!("(let [r (flow/step :sleep :it {config})] r)"));
    (found, project.clock.now_ms() - before)
}

#[track_caller]
fn check(config: &str, seconds: &str, millis: i64) {
    let (found, took) = slept(config);
    assert_eq!(found, format!("{{:slept-seconds {seconds}}}"), "{config}");
    assert_eq!(took, millis, "{config}");
}

#[test]
fn seconds() {
    check("{:seconds 30}", "30", 30_000);
    check("{:seconds 0.25}", "0.25", 250);
    check("{:seconds 0}", "0", 0);
    contains(
        &slept("{:seconds -1}").0,
        "E0766 `:seconds` is not a length of time: -1",
    );
    contains(&slept("{:seconds \"soon\"}").0, "`:seconds`");
}

#[test]
fn millis() {
    check("{:millis 1500}", "1.5", 1500);
    check("{:millis 2000}", "2", 2000);
    contains(
        &slept("{:millis -5}").0,
        "E0766 `:millis` is not a length of time: -5",
    );
    contains(
        &slept("{:millis 1 :seconds 1}").0,
        "takes one of `:millis` and `:seconds`, not both",
    );
}

#[test]
fn duration() {
    for (text, seconds, millis) in [
        ("500ms", "0.5", 500),
        ("10s", "10", 10_000),
        ("5m", "300", 300_000),
        ("2h", "7200", 7_200_000),
        ("1d", "86400", 86_400_000),
    ] {
        check(&format!("{{:duration {text:?}}}"), seconds, millis);
    }
    contains(&slept("{:duration \"5 fortnights\"}").0, "`:duration`");
    contains(
        &slept("{:duration \"367d\"}").0,
        "E0766 `:duration` is longer than a year",
    );
}

#[test]
fn one_second() {
    check("{}", "1", 1000);
}

#[test]
fn result() {
    let project = Project::new();
    assert_eq!(
        project.eval("(:slept-seconds (flow/step :sleep :it {:seconds 30}))"),
        "30"
    );
    // A replay does not sleep again.
    let before = project.clock.now_ms();
    assert!(project.resume_all().is_empty());
    assert_eq!(project.clock.now_ms(), before);
}
