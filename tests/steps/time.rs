//! `:time`: formatting, parsing and computing instants.

use crate::project::Project;

/// Returns a function that runs steps at a fixed instant; `T` stands for the start of a `:time` step.
fn at(millis: i64) -> impl Fn(&str) -> String {
    let project = Project::new();
    project.clock.set(millis);
    move |body: &str| project.eval(&body.replace("(T ", "(flow/step :time :it "))
}

/// 2026-01-31T22:30:05.250Z, a Saturday.
const LATE: i64 = 1_769_898_605_250;

#[test]
fn now_without_any_option() {
    let run = at(LATE);
    assert_eq!(
        run(
            "(let [n (flow/step :time :now {})] [(:instant n) (:iso n) (:epoch-ms n) (:epoch-seconds n) (:date n) (:time n)])"
        ),
        r#"[#inst "2026-01-31T22:30:05.250Z" "2026-01-31T22:30:05.250Z" 1769898605250 1769898605 "2026-01-31" "22:30:05.250"]"#
    );
    assert_eq!(
        run(
            "(mapv (T {:op :now}) [:year :month :day :hour :minute :second :weekday :week :timezone :offset :formatted])"
        ),
        r#"[2026 1 31 22 30 5 :saturday "2026-W05" "UTC" "Z" nil]"#
    );
    assert_eq!(
        run(
            "(mapv (T {:timezone \"Europe/Berlin\" :format \"EEE, d MMM yyyy HH:mm\"}) [:iso :date :weekday :offset :timezone :formatted])"
        ),
        r#"["2026-01-31T23:30:05.250+01:00" "2026-01-31" :saturday "+01:00" "Europe/Berlin" "Sat, 31 Jan 2026 23:30"]"#
    );
    assert_eq!(
        run("(mapv (T {:timezone \"+05:30\"}) [:iso :day])"),
        r#"["2026-02-01T04:00:05.250+05:30" 1]"#
    );
}

#[test]
fn the_current_time_is_journaled() {
    let project = Project::new();
    project.clock.set(LATE);
    let found = project.eval(
        "(let [n (flow/step :time :now {})] (flow/step :wait :go {:key \"go\"}) (:epoch-ms n))",
    );
    assert!(found.starts_with("waiting"), "{found}");
    project.clock.set(LATE + 60_000);
    assert_eq!(
        project.answer("go", &flowstone_lang::value::Value::Nil),
        LATE.to_string()
    );
}

#[test]
fn instants_are_parsed() {
    let run = at(LATE);
    for (config, expected) in [
        (
            "{:op :parse :text \"2026-03-01T10:00:00Z\"}",
            "2026-03-01T10:00:00Z",
        ),
        (
            "{:op :parse :text \"2026-03-01T10:00+02:00\"}",
            "2026-03-01T08:00:00Z",
        ),
        ("{:op :parse :text \"2026-03-01\"}", "2026-03-01T00:00:00Z"),
        (
            "{:op :parse :text \"2026-03-01\" :timezone \"Europe/Berlin\"}",
            "2026-03-01T00:00:00+01:00",
        ),
        (
            "{:op :parse :text \"2026-03-01T10:00\" :timezone \"America/New_York\"}",
            "2026-03-01T10:00:00-05:00",
        ),
        (
            "{:op :parse :text \"31.01.2026\" :format \"dd.MM.yyyy\"}",
            "2026-01-31T00:00:00Z",
        ),
        (
            "{:op :parse :text \"31.01.2026 08:15\" :format \"dd.MM.yyyy HH:mm\" :timezone \"Europe/Berlin\"}",
            "2026-01-31T08:15:00+01:00",
        ),
        (
            "{:op :format :at 0 :format \"yyyy\"}",
            "1970-01-01T00:00:00Z",
        ),
        (
            "{:op :format :at #inst \"2026-01-01T00:00:00Z\" :format \"yyyy\"}",
            "2026-01-01T00:00:00Z",
        ),
        (
            "{:op :format :at (T {:op :parse :text \"2026-01-01\"}) :format \"yyyy\"}",
            "2026-01-01T00:00:00Z",
        ),
    ] {
        assert_eq!(
            run(&format!("(:iso (T {config}))")),
            format!("\"{expected}\""),
            "{config}"
        );
    }
}

#[test]
fn durations_are_added_by_the_calendar() {
    let run = at(LATE);
    for (config, expected) in [
        (
            "{:op :add :at \"2026-01-31\" :by {:months 1}}",
            "2026-02-28T00:00:00Z",
        ),
        (
            "{:op :add :at \"2026-01-31\" :by {:days -31 :hours 2}}",
            "2025-12-31T02:00:00Z",
        ),
        (
            "{:op :add :at \"2026-01-31\" :by \"90m\"}",
            "2026-01-31T01:30:00Z",
        ),
        (
            "{:op :add :at \"2026-01-31\" :by 30}",
            "2026-01-31T00:00:30Z",
        ),
        // A day with 23 hours.
        (
            "{:op :add :at \"2026-03-28T12:00\" :by {:days 1} :timezone \"Europe/Berlin\"}",
            "2026-03-29T12:00:00+02:00",
        ),
        (
            "{:op :add :at \"2026-03-28T12:00\" :by {:hours 24} :timezone \"Europe/Berlin\"}",
            "2026-03-29T13:00:00+02:00",
        ),
        (
            "{:op :truncate :at \"2026-05-20T10:11:12.345Z\" :unit :second}",
            "2026-05-20T10:11:12Z",
        ),
        (
            "{:op :truncate :at \"2026-05-20T10:11:12Z\" :unit :minute}",
            "2026-05-20T10:11:00Z",
        ),
        (
            "{:op :truncate :at \"2026-05-20T10:11:12Z\" :unit \"hour\"}",
            "2026-05-20T10:00:00Z",
        ),
        (
            "{:op :truncate :at \"2026-05-20T10:11:12Z\" :unit :day}",
            "2026-05-20T00:00:00Z",
        ),
        (
            "{:op :truncate :at \"2026-05-20T10:11:12Z\" :unit :week}",
            "2026-05-18T00:00:00Z",
        ),
        (
            "{:op :truncate :at \"2026-05-20T10:11:12Z\" :unit :month}",
            "2026-05-01T00:00:00Z",
        ),
        (
            "{:op :truncate :at \"2026-05-20T10:11:12Z\" :unit :quarter}",
            "2026-04-01T00:00:00Z",
        ),
        (
            "{:op :truncate :at \"2026-05-20T10:11:12Z\" :unit :year}",
            "2026-01-01T00:00:00Z",
        ),
        (
            "{:op :truncate :at \"2026-05-19T23:30:00Z\" :unit :day :timezone \"Europe/Berlin\"}",
            "2026-05-20T00:00:00+02:00",
        ),
    ] {
        assert_eq!(
            run(&format!("(:iso (T {config}))")),
            format!("\"{expected}\""),
            "{config}"
        );
    }
    assert_eq!(
        run(
            "(:end (T {:op :truncate :at \"2026-03-29T10:00\" :unit :day :timezone \"Europe/Berlin\"}))"
        ),
        r#"#inst "2026-03-29T22:00:00.000Z""#
    );
    assert_eq!(
        run(
            "(mapv (T {:op :between :from \"2026-01-31\" :to \"2026-03-01T12:00\"}) [:millis :seconds :minutes :hours :days :months :years])"
        ),
        "[2548800000 2548800 42480 708 29 1 0]"
    );
    assert_eq!(
        run(
            "(mapv (T {:op :between :from \"2026-03-29T12:00\" :to \"2026-03-28T12:00\" :timezone \"Europe/Berlin\"}) [:hours :days])"
        ),
        "[-23 -1]"
    );
}

#[test]
fn invalid_configs_are_refused() {
    let run = at(LATE);
    for (config, words) in [
        (
            "{:op :noww}",
            "E0767 `:time` has no operation `:noww` | did you mean `:now`?",
        ),
        (
            "{:timezone \"Europe/Berln\"}",
            "E0767 there is no time zone `Europe/Berln` | did you mean \"Europe/Berlin\"?",
        ),
        ("{:timezone \"+25:00\"}", "E0767 `+25:00` is not an offset"),
        (
            "{:format \"yyyy QQQQ b\"}",
            "E0767 the pattern cannot be used",
        ),
        ("{:op :parse}", "E0767 `:op :parse` needs `:text`"),
        (
            "{:op :parse :text \"soon\"}",
            "E0767 `soon` is not a date and time",
        ),
        (
            "{:op :parse :text \"1.2.26\" :format \"dd.MM.yyyy\"}",
            "E0767 `1.2.26` is not a date and time of the pattern `dd.MM.yyyy`",
        ),
        (
            "{:op :format :at :now :format \"yyyy\"}",
            "E0767 `:at` is not an instant: :now",
        ),
        (
            "{:op :add :at 0 :by {:day 1}}",
            "E0767 `:by` has no unit :day | did you mean `:days`?",
        ),
        (
            "{:op :add :at 0 :by {:days 1.5}}",
            "E0767 `:days` of `:by` takes a whole number",
        ),
        (
            "{:op :add :at 0 :by {:years 99999}}",
            "E0767 the instant is outside",
        ),
        ("{:op :truncate :at 0 :unit :decade}", ":unit"),
        (
            "{:by {:days 1}}",
            "E0767 `:by` does not apply to `:op :now`",
        ),
    ] {
        let found = run(&format!("(T {config})"));
        assert!(found.contains(words), "{config}\n  {found}");
    }
}
