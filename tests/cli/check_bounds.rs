//! `flowstone check --bounds`.

use serde_json::Value;

use crate::program::Scratch;

const STEP: &str = "(flow/step :function :f {:input {} :code '(fn [x] 1)})";

/// Returns the bounds of a flow with this body.
#[track_caller]
fn bounds(scratch: &Scratch, name: &str) -> Value {
    let told = scratch.run(&["check", "--bounds", "--json", name]).json();
    told["bounds"][0].clone()
}

/// Checks the number of steps of bodies, in which `S` stands for a step.
#[track_caller]
fn steps(cases: &[(&str, Option<u64>)]) {
    let scratch = Scratch::new();
    for (idx, (body, expected)) in cases.iter().enumerate() {
        let body = body.replace('S', STEP);
        let name = format!("f{idx}.edn");
        scratch.write(&name, format!("{{:slug :f{idx} :flow '(do {body})}}"));
        let found = bounds(&scratch, &name);
        assert_eq!(found["steps"].as_u64(), *expected, "{body}: {found}");
        let has_reason = found["unbounded"]
            .as_array()
            .is_some_and(|it| !it.is_empty());
        assert_eq!(has_reason, expected.is_none(), "{body}: {found}");
    }
}

#[test]
fn steps_are_counted_as_often_as_they_may_be_performed() {
    steps(&[
        ("1", Some(0)),
        ("S S", Some(2)),
        ("(if (flow/input) S (do S S))", Some(2)),
        ("(cond 1 S 2 (do S S) :else 3)", Some(2)),
        ("(case 1 1 S 2 [S S S])", Some(3)),
        ("(when S S)", Some(2)),
        ("(try S (catch Exception e S S) (finally S))", Some(4)),
        ("(for [x [1 2 3] y (range 4) :let [z S]] S)", Some(24)),
        ("(doseq [x (take 5 (:xs (flow/input)))] S)", Some(5)),
        ("(doseq [x (:xs (flow/input))] S)", None),
        ("(dotimes [i 7] S)", Some(7)),
        ("(let [xs [1 2 3]] (mapv (fn [x] S) (rest xs)))", Some(3)),
        ("(let [f (fn [x] S)] (f 1) (run! f [1 2]))", Some(3)),
        ("(let [f (fn [x] S)] (apply f [1]))", None),
        ("(fn [x] S)", None),
        ("(let [f (fn f [n] S (f n))] (f 1))", None),
        ("(defn g [] S S) (g) (g)", Some(4)),
        ("(defn h [n] (when (pos? n) S (h (dec n)))) (h 3)", None),
        ("(loop [i 0] (when (< i 5) S (recur (inc i))))", Some(6)),
        (
            "(loop [i 10] (if (pos? i) (do S (recur (- i 3))) i))",
            Some(5),
        ),
        (
            "(loop [xs [1 2 3]] (when (seq xs) S (recur (rest xs))))",
            Some(4),
        ),
        ("(loop [i 0] (when (< i 5) S (recur i)))", None),
        ("(loop [i 0] (when S (recur (inc i))))", None),
        (
            "(loop [n 5 i 0] (when (< i n) S (recur (inc n) (inc i))))",
            None,
        ),
        ("(while true S)", None),
        (
            "(flow/poll {:interval 10 :max-attempts 4 :return-on some?} S)",
            Some(8),
        ),
        ("(flow/pmap (fn [x] S) [1 2])", Some(2)),
        ("(flow/all [(fn [] S) (fn [] S S)])", Some(3)),
        ("(flow/race {:a (fn [] S) :b (fn [] S)})", Some(2)),
        ("(flow/let [a S b S] [a b])", Some(2)),
        ("(-> 1 (vector S) (conj S))", Some(2)),
        ("(->> [1 2] (map (fn [x] S)) vec)", Some(2)),
        ("(flow/continue-as-new {}) S", None),
        ("(eval '(+ 1 2))", None),
        ("(map flow/step [:a])", None),
        ("(defmacro twice [x] `(do ~x ~x)) (twice S)", None),
        ("'S (comment S)", Some(0)),
        ("(flow/call-flow :none {})", None),
    ]);
}

#[test]
fn called_flows_count() {
    let scratch = Scratch::new();
    scratch.write(
        "flows/kid.edn",
        format!("{{:slug :kid :flow '(do {STEP} {STEP})}}"),
    );
    scratch.write(
        "flows/a.edn",
        "{:slug :a :flow '(dotimes [i 3] (flow/call-flow :kid {}))}",
    );
    scratch.write("flows/b.edn", "{:slug :b :flow '(flow/call-flow :c {})}");
    scratch.write("flows/c.edn", "{:slug :c :flow '(flow/call-flow :b {})}");
    assert_eq!(bounds(&scratch, "flows/a.edn")["steps"], 9);
    let found = bounds(&scratch, "flows/b.edn");
    assert!(found["steps"].is_null(), "{found}");
    assert!(
        found["unbounded"]
            .to_string()
            .contains("calls this one again"),
        "{found}"
    );
}

#[test]
fn agents_are_bounded_by_their_limits() {
    let scratch = Scratch::new();
    scratch.write(
        "flowstone.edn",
        "{:connections {:ai {:backend :openai :model \"gpt-5-mini\"} :own {:backend :openai :model \"my-model\"}}
          :prices [{:provider :openai :model \"gpt-5-mini\" :input 1 :output 2}]}",
    );
    let agent = |name: &str, config: &str, more: &str| {
        scratch.write(
            &format!("{name}.edn"),
            format!("{{:slug :{name} {more} :flow '(flow/step :agent :x {{:objective \"o\" {config}}})}}"),
        );
        bounds(&scratch, &format!("{name}.edn"))
    };
    let plain = agent(
        "plain",
        ":connection :ai :max-iterations 3 :max-tool-calls 5",
        "",
    );
    assert_eq!(plain["steps"], 1);
    assert_eq!(
        (&plain["turns"], &plain["toolCalls"]),
        (&5.into(), &5.into()),
        "{plain}"
    );
    assert_eq!(plain["tokens"], 5 * 400_000, "{plain}");
    assert_eq!(plain["costMicros"], 4_000_001, "{plain}");
    let retried = agent(
        "retried",
        ":connection :ai :max-iterations 3 :retry {:max-attempts 2}",
        "",
    );
    assert_eq!(retried["turns"], 10, "{retried}");
    let unknown = agent("unknown", ":connection :own", "");
    assert_eq!(unknown["turns"], 22);
    assert!(
        unknown["tokens"].is_null() && unknown["costMicros"].is_null(),
        "{unknown}"
    );
    let computed = agent(
        "computed",
        ":connection :ai :max-iterations (:n (flow/input))",
        "",
    );
    assert_eq!(computed["turns"], 102);
    let inner = agent(
        "inner",
        ":connection :ai :max-iterations 3 :max-tool-calls 2 :tools {:agents [:x/y]}",
        ":agents [{:id :x/y :description \"d\" :objective \"o\" :connection :ai :max-iterations 4 :max-tool-calls 1}]",
    );
    assert_eq!(inner["turns"], 5 + 2 * 6, "{inner}");
    assert_eq!(inner["toolCalls"], 2 + 2, "{inner}");
    let itself = agent(
        "itself",
        ":connection :ai :tools {:agents [:x/y]}",
        ":agents [{:id :x/y :description \"d\" :objective \"o\" :connection :ai :tools {:agents [:x/y]}}]",
    );
    assert!(itself["turns"].is_null(), "{itself}");
}

#[test]
fn bounds_are_shown_with_what_has_none() {
    let scratch = Scratch::new();
    scratch.write(
        "a.edn",
        format!("{{:slug :a\n :flow '(do {STEP}\n          (doseq [x (:xs (flow/input))]\n            {STEP}))}}"),
    );
    scratch.write("b.edn", format!("{{:slug :b :flow '{STEP}}}"));
    let ran = scratch.run(&["check", "--bounds", "a.edn", "b.edn"]);
    for expected in [
        "a     unbounded  0            0           0       $0.000000",
        "b     1          0            0           0       $0.000000",
    ] {
        assert!(ran.out.contains(expected), "{expected}: {}", ran.out);
    }
    for expected in [
        "a.edn:3:11: the number of items is not known here (steps)",
        "a.edn: a run is stopped after 1000000 steps, by `:limits {:steps n}`",
    ] {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
}

/// A source of numbers that is the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    /// Returns a form, at most so deep. `names` are the functions that it may call.
    fn form(&mut self, depth: u64, names: &mut Vec<String>) -> String {
        if depth == 0 {
            return match self.below(3) {
                0 => "1".to_owned(),
                _ => STEP.to_owned(),
            };
        }
        let kind = self.below(17);
        let outer = names.clone();
        let mut inner = |numbers: &mut Numbers| numbers.form(depth - 1, names);
        match kind {
            0 => format!("(do {} {})", inner(self), inner(self)),
            1 => format!(
                "(if (even? (:n (flow/input))) {} {})",
                inner(self),
                inner(self)
            ),
            2 => format!("(when {} {})", inner(self), inner(self)),
            3 => format!(
                "(vec (for [x (range {}) :when (odd? x)] {}))",
                self.below(4),
                inner(self)
            ),
            4 => format!(
                "(doseq [x (take {} (range 9)) y [1 2]] {})",
                self.below(3),
                inner(self)
            ),
            5 => format!("(dotimes [i {}] {})", self.below(4), inner(self)),
            6 => format!(
                "(loop [i {}] (when (< i 4) {} (recur (inc i))))",
                self.below(5),
                inner(self)
            ),
            7 => format!(
                "(loop [i {}] (if (zero? i) {} (do {} (recur (dec i)))))",
                self.below(4),
                inner(self),
                inner(self)
            ),
            8 => format!("(mapv (fn [x] {}) [1 2])", inner(self)),
            9 => format!(
                "(flow/pmap (fn [x] {}) (range {}))",
                inner(self),
                self.below(3)
            ),
            10 => format!(
                "(flow/all [(fn [] {}) (fn [] {})])",
                inner(self),
                inner(self)
            ),
            11 => format!(
                "(try {} (throw (ex-info \"x\" {{}})) (catch Exception e {}) (finally {}))",
                inner(self),
                inner(self),
                inner(self)
            ),
            12 => format!(
                "(->> [1 2 3] (map (fn [x] {})) (filter some?) vec)",
                inner(self)
            ),
            13 => format!("(-> {} (vector {}) first)", inner(self), inner(self)),
            14 => {
                let name = format!("f{}", outer.len());
                let body = inner(self);
                names.push(name.clone());
                let rest = self.form(depth - 1, names);
                names.pop();
                format!("(let [{name} (fn [x] {body})] {rest} ({name} 1))")
            }
            15 if !outer.is_empty() => {
                let idx = self.below(outer.len() as u64) as usize;
                format!("({} 2)", outer[idx])
            }
            _ => format!("(reduce (fn [sum x] {}) 0 [1 2])", inner(self)),
        }
    }
}

#[test]
fn no_generated_run_exceeds_its_bound() {
    let scratch = Scratch::new();
    let mut numbers = Numbers(7);
    let count = 24;
    let mut bodies = Vec::new();
    for idx in 0..count {
        let body = numbers.form(4, &mut Vec::new());
        scratch.write(
            &format!("flows/g{idx}.edn"),
            format!("{{:slug :g{idx} :flow '(do {body})}}"),
        );
        bodies.push(body);
    }
    let told = scratch
        .run(&["check", "--bounds", "--json", "flows"])
        .json();
    let all = told["bounds"].as_array().expect("bounds");
    assert_eq!(all.len(), count);
    let mut bounded = 0;
    for bounds in all {
        let slug = bounds["flow"].as_str().expect("a slug");
        let idx: usize = slug[1..].parse().expect("a number");
        let Some(steps) = bounds["steps"].as_u64().filter(|steps| *steps < 3000) else {
            continue;
        };
        bounded += 1;
        // A run that performs one step more fails.
        let file = format!("flows/{slug}.edn");
        let limit = steps.max(1);
        scratch.write(
            &file,
            format!(
                "{{:slug :{slug} :limits {{:steps {limit}}} :flow '(do {})}}",
                bodies[idx]
            ),
        );
        for input in ["{\"n\": 1}", "{\"n\": 2}"] {
            let ran = scratch.run(&["run", &file, "--quiet", "--input", input]);
            assert_eq!(
                ran.code,
                Some(0),
                "{steps} steps: {}\n{}",
                bodies[idx],
                ran.err
            );
        }
    }
    assert!(bounded > count / 2, "{bounded} of {count}");
}
