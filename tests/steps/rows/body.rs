//! The rows of `tests/coverage/body.tsv`: the forms of a flow's body, step calls, includes.

use crate::net::contains;
use crate::project::Project;

fn eval(body: &str) -> String {
    Project::new().eval(body)
}

#[track_caller]
fn each(cases: &[(&str, &str)]) {
    let project = Project::new();
    for (body, expected) in cases {
        assert_eq!(project.eval(body), *expected, "{body}");
    }
}

fn errors(body: &str) -> String {
    Project::new().errors(&format!("{{:slug :a :flow '{body}}}"))
}

#[test]
fn the_last_form_is_the_result() {
    each(&[("(do 1 {:a [1 2]})", "{:a [1 2]}"), ("nil", "nil")]);
}

/// Only data can be a result; a lazy value is computed first.
#[test]
fn results_are_data() {
    each(&[("(map inc [1 2])", "(2 3)")]);
    contains(&eval("(do inc)"), "E0510");
    contains(&eval("(do (atom 1))"), "E0510");
}

#[test]
fn let_() {
    each(&[(
        "(let [{:keys [a b] :or {b 2}} {:a 1} [c & more] [3 4] {d :d} {:d 5}] [a b c more d])",
        "[1 2 3 (4) 5]",
    )]);
}

#[test]
fn conditionals() {
    each(&[
        ("(if true 1 2)", "1"),
        ("(when true 1 2)", "2"),
        ("(when-not true 1)", "nil"),
        ("(cond (= 1 2) :a :else :b)", ":b"),
        ("(do 1 2)", "2"),
        ("[(or nil 1) (and 1 nil) (not 1)]", "[1 nil false]"),
        ("[(= 1 1) (true? true) (false? nil)]", "[true true false]"),
    ]);
}

#[test]
fn binding_conditionals() {
    each(&[
        ("(case :b (:a :b) 1 2)", "1"),
        ("[(if-let [x 1] x 2) (if-let [x nil] x 2)]", "[1 2]"),
        ("(when-let [x false] x)", "nil"),
        ("(if-some [x false] x 2)", "false"),
        ("(when-some [x 3] x)", "3"),
        ("(when-first [x [4 5]] x)", "4"),
    ]);
}

const COUNT: &str = "(:value (flow/step :kv :count {:operation :increment :key \"n\"}))";

#[test]
fn loops_over_steps() {
    each(&[(
        &format!(
            "(let [rows (vec (for [i [1 nil 2 3] :when (some? i) :let [j (* 10 i)]] [j {COUNT}]))]
               (doseq [_ rows] {COUNT}) (dotimes [_ 2] {COUNT}) [rows {COUNT}])"
        ),
        "[[[10 1] [20 2] [30 3]] 9]",
    )]);
}

/// A loop of steps does not need a wait.
#[test]
fn loop_and_recur() {
    each(&[(&format!("(loop [n 0] (if (< n 3) (recur {COUNT}) n))"), "3")]);
}

#[test]
fn threading() {
    each(&[("(-> {:a 1} (assoc :b 2) :b inc)", "3")]);
}

#[test]
fn exceptions() {
    each(&[
        (
            "(try (throw (ex-info \"no\" {:a 1})) (catch Exception e [(ex-message e) (ex-data e)]))",
            "[\"no\" {:a 1}]",
        ),
        (&format!("(do (try 1 (finally {COUNT})) {COUNT})"), "2"),
    ]);
}

#[test]
fn functions() {
    each(&[
        ("((fn [x] (inc x)) 1)", "2"),
        ("(#(+ % %2) 1 2)", "3"),
        (
            "(letfn [(f [n] (if (pos? n) (g (dec n)) :end)) (g [n] (f n))] (f 3))",
            ":end",
        ),
        ("(do (def ^:dynamic *x* 1) (binding [*x* 2] *x*))", "2"),
        ("(some pos? [-1 2])", "true"),
    ]);
}

#[test]
fn quoted_forms() {
    each(&[("(do '(flow/step :nope x))", "(flow/step :nope x)")]);
}

#[test]
fn data_and_small_functions() {
    each(&[
        (
            "[(:k {:k 1}) (get {:a 1} :a) (get-in {:a {:b 2}} [:a :b])]",
            "[1 1 2]",
        ),
        (
            "[(assoc {} :a 1) (select-keys {:a 1 :b 2} [:a]) (merge {:a 1} {:a 2})]",
            "[{:a 1} {:a 1} {:a 2}]",
        ),
        (
            "[(str 1 :a) (count [1 2]) (vec '(1)) (some #{2} [1 2])]",
            "[\"1:a\" 2 [1] 2]",
        ),
        (
            "[(pos? 1) (> 2 1) (nil? nil) (contains? #{1} 1) (inc 1)]",
            "[true true true true 2]",
        ),
        ("(re-seq #\"[0-9]+\" \"a1b22\")", "(\"1\" \"22\")"),
    ]);
}

#[test]
fn map_indexed() {
    each(&[("(vec (map-indexed vector [:a :b]))", "[[0 :a] [1 :b]]")]);
}

#[test]
fn ranges() {
    each(&[("(range 3)", "(0 1 2)"), ("(take 2 (range))", "(0 1)")]);
}

#[test]
fn labels() {
    each(&[(
        "(if ^{:label \"Anything new?\" :yes \"Store\" :no \"Stop\"} (seq [1]) :yes :no)",
        ":yes",
    )]);
}

/// The whole language is available; a form that a diagram of the flow cannot show is not an error.
#[test]
fn the_whole_language() {
    each(&[
        ("(->> [1 2 3] (map inc) (filter odd?) (reduce +))", "3"),
        (
            "[(as-> 1 x (inc x)) (some-> {:a 1} :a inc) (some->> nil (map inc)) (cond-> 1 true inc) (cond->> [1] true (map inc))]",
            "[2 2 nil 2 (2)]",
        ),
        (
            "[(mapv inc [1]) (filterv odd? [1 2]) (mapcat range [2]) (keep seq [[] [1]]) (keep-indexed (fn [i x] x) [1]) (remove odd? [1 2])]",
            "[[2] [1] (0 1) ((1)) (1) (2)]",
        ),
        ("(apply #'map [inc [1 2]])", "(2 3)"),
    ]);
    assert_eq!(errors("(->> [1 2] (map inc) (reduce +))"), "");
}

#[test]
fn code_in_the_reader() {
    contains(&errors("(do #=(+ 1 2))"), "E0113");
}

#[test]
fn host_names_in_the_body() {
    each(&[
        ("(Long/parseLong \"5\")", "5"),
        ("(count (breyta.sandbox/sha256-hex \"a\"))", "64"),
    ]);
    contains(&errors("(java.net.InetAddress/getLocalHost)"), "E0");
}

#[test]
fn nondeterministic_functions() {
    let body =
        "[(rand) (rand-int 9) (shuffle [1 2 3]) (str (random-uuid)) (.getTime (java.util.Date.))]";
    let project = Project::new();
    let first = project.eval(body);
    assert_eq!(first.matches(' ').count(), 6, "{first}");
    contains(&eval("(slurp \"flow.edn\")"), "E0388");
}

#[test]
fn shadowed_names() {
    each(&[
        ("(let [map {:a 1} filter :a] (filter map))", "1"),
        ("(comment (flow/step :nope :a {}))", "nil"),
    ]);
}

#[test]
fn step_calls() {
    each(&[
        (
            "(:slept-seconds (flow/step :sleep :a {:millis 1}))",
            "0.001",
        ),
        (
            "(let [kind :sleep] (:slept-seconds (flow/step kind :a {:millis 1})))",
            "0.001",
        ),
        ("(:slept-seconds (step :sleep :a {:millis 1}))", "0.001"),
    ]);
    for (call, code) in [
        ("(flow/step :sleep :a {} 1)", "E0430"),
        ("(flow/step)", "E0430"),
        ("(flow/step :sleep :a)", "E0432"),
        ("(flow/step :sleep {:millis 1})", "E0433"),
        ("(flow/step :sleep 5 {})", "E0433"),
        ("(flow/step \"sleep\" :a {})", "E0431"),
        ("(flow/step :a/b {})", "E0418"),
    ] {
        contains(&errors(call), code);
    }
}

#[test]
fn configs_are_evaluated() {
    each(&[(
        "(let [n 1] (:slept-seconds (flow/step :sleep :a {:millis (+ n 1)})))",
        "0.002",
    )]);
}

#[test]
fn included_files() {
    let project = Project::new();
    project.write("parts/double.clj", b"(fn [x] (* 2 x))");
    assert_eq!(project.eval("(#flow/include \"parts/double.clj\" 4)"), "8");
    assert_eq!(
        project.eval("(do \"#flow/include nothing\" #_ #flow/include \"nothing\" 1)"),
        "1"
    );
    for bad in ["\"/etc/hosts\"", "\"../a.clj\"", "\"nothing.clj\"", "5"] {
        contains(&errors(&format!("(do #flow/include {bad})")), "E0119");
    }
}

#[test]
fn unreadable_flows() {
    contains(&errors("(let [x 1)"), "E010");
    contains(&Project::new().errors("{:slug :a :flow '(inc 1}"), "E010");
    contains(&errors("(do #5)"), "E01");
}

#[test]
fn workspace_ids() {
    let found = Project::new().check("{:slug :a :flow '(str \"ws-acme123\")}");
    contains(&found, "E0474");
}

#[test]
fn long_strings() {
    let text = format!("{{:slug :a :flow '(count \"{}\")}}", "x".repeat(4001));
    contains(&Project::new().check(&text), "E0441");
}

#[test]
fn literal_inputs_of_functions() {
    for input in ["[1]", "\"s\"", "#{1}"] {
        let call = format!("(flow/step :function :f {{:code '(fn [x] x) :input {input}}})");
        contains(
            &errors(&call),
            "E0712 `:input` of a `:function` step must be a map",
        );
    }
    contains(
        &errors("(flow/step :function :f {:code '(fn [x] x) :ref :g})"),
        "E0438",
    );
    contains(&errors("(flow/step :function :f {})"), "E0438");
    contains(&errors("(flow/step :function :f)"), "E0432");
}
