//! What differs between two runs.

use expect_test::{Expect, expect};
use flowstone_engine::shown_end;

use super::STORE;
use crate::bench::{Bench, block_on, outcome};

/// Runs two flows and says what differs.
fn check(a: &str, b: &str, expected: Expect) {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let (a, b) = (bench.start(&engine, a), bench.start(&engine, b));
    outcome(&engine, &a);
    outcome(&engine, &b);
    let diff = block_on(engine.compare_runs(&a, &b)).expect("they are compared");
    let mut out = String::new();
    if let Some(texts) = &diff.flow {
        out.push_str(&texts.concat());
    }
    for step in &diff.steps {
        out.push_str(&format!("{}: {}", step.path, step.verdict.name()));
        if let (Some(a), Some(b)) = (&step.a, &step.b)
            && a.end != b.end
        {
            out.push_str(&format!(
                ": {} / {}",
                shown_end(a.end.as_deref(), a.failed),
                shown_end(b.end.as_deref(), b.failed)
            ));
        }
        out.push('\n');
    }
    if let Some((a, b)) = &diff.end {
        out.push_str(&format!("end: {a} / {b}\n"));
    }
    out.push_str(if diff.is_same() { "same" } else { "different" });
    expected.assert_eq(&out);
}

#[test]
fn equal_runs_do_not_differ() {
    let flow =
        "(do (flow/step :write :a {:value 1}) (flow/log :info \"hello\") (when (flow/rand) 2))";
    check(
        flow,
        flow,
        expect![[r#"
        a: same
        same"#]],
    );
}

#[test]
fn steps_are_compared_by_path() {
    check(
        "(do (flow/step :pure :a {:value 1})\n    (flow/step :look :b {:value 2})\n    (flow/step :pure :c {})\n    1)",
        "(do (flow/step :pure :a {:value 1})\n    (flow/step :look :b {:value 3})\n    (flow/step :pure :d {})\n    1)",
        expect![[r#"
            --- flow.clj
            +++ flow.clj
            @@ -1,4 +1,4 @@
             (do (flow/step :pure :a {:value 1})
            -    (flow/step :look :b {:value 2})
            -    (flow/step :pure :c {})
            +    (flow/step :look :b {:value 3})
            +    (flow/step :pure :d {})
                 1)
            a: same
            b: different request: 2 / 3
            c: only in the first
            d: only in the second
            different"#]],
    );
}

#[test]
fn results_and_ends_are_compared() {
    // The store gives another result for the same request.
    let flow = "(let [it (flow/step :put :list {:value 1})] (if (= 1 (:count it)) :first (throw (ex-info \"again\" {}))))";
    check(
        flow,
        flow,
        expect![[r#"
        list: different result: {:success true :key "all" :count 1 :dropped 0} / {:success true :key "all" :count 2 :dropped 0}
        end: completed: :first / failed: again
        different"#]],
    );
}
