//! Concurrent branches of a run: values, failures, order, replay.

use expect_test::{Expect, expect};
use flowstone_engine::codec;
use flowstone_engine::ports::WaitFilter;

use super::STORE;
use crate::bench::{Bench, block_on, outcome};

/// Runs a flow with gates that open in a given order, and replays it.
fn run(script: &[&str], text: &str) -> String {
    let bench = Bench::over(STORE);
    bench.script.set(script.iter().copied());
    let engine = bench.engine();
    let run = bench.start(&engine, text);
    outcome(&engine, &run)
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&run(&[], text));
}

#[test]
fn values_are_in_the_order_of_the_branches() {
    check("(flow/all [])", expect!["[]"]);
    check("(flow/pmap inc nil)", expect!["[]"]);
    check("(flow/all [(fn [] 1) #(+ 1 1)])", expect!["[1 2]"]);
    check(
        "(flow/all [#(flow/step :gate :a {}) #(flow/step :pure :b {:value 2}) #(flow/step :put :c {:value 3})])",
        expect![[r#"["all.0/a" 2 {:success true :key "all" :count 1 :dropped 0}]"#]],
    );
    check(
        "(flow/pmap (fn [n] (:value (flow/step :look :page {:value {:value (* n n)}}))) (range 5))",
        expect!["[0 1 4 9 16]"],
    );
    check(
        "(flow/pmap #(map (fn [n] (flow/step :gate :part {})) (range %)) [1 2])",
        expect![[r#"[("pmap.0/part") ("pmap.1/part" "pmap.1/part#2")]"#]],
    );
}

#[test]
fn each_branch_has_its_own_paths() {
    check(
        "(let [gate #(flow/step :gate :x {})
               two #(flow/all [gate gate])]
           [(gate) (two) (two) (gate) (flow/all {:id :named} [two gate]) (flow/race {:left gate})])",
        expect![[r#"["x" ["all.0/x" "all.1/x"] ["all#2.0/x" "all#2.1/x"] "x#2" [["named.0/all.0/x" "named.0/all.1/x"] "named.1/x"] [:left "race.left/x"]]"#]],
    );
}

#[test]
fn the_order_of_completion_does_not_affect_a_replay() {
    let text = "(let [seen (atom [])
          three (flow/pmap (fn [n]
                             (swap! seen conj [:start n])
                             (let [got (flow/step :gate :x {:as (nth [:read :put :write] n) :value n})]
                               (swap! seen conj [:end n (flow/rand)])
                               (flow/step :pure :y {:value @seen})
                               (flow/log :info \"done\" n)
                               n))
                           [0 1 2])]
      [three (mapv #(take 2 %) @seen)])";
    let gates = ["pmap.0/x", "pmap.1/x", "pmap.2/x"];
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let script = order.map(|idx: usize| gates[idx]);
        let ends = order.map(|idx| format!("(:end {idx})")).join(" ");
        let expected = format!("[[0 1 2] [(:start 0) (:start 1) (:start 2) {ends}]]");
        assert_eq!(run(&script, text), expected, "{order:?}");
    }
}

#[test]
fn a_failure_follows_the_policy_of_its_step() {
    check(
        "(try (flow/all [#(flow/step :gate :a {:fails true :retry {:max-attempts 1}}) #(flow/step :gate :b {})])
           (catch Exception e [(ex-message e) (:step (ex-data e))]))",
        expect![[r#"["all.0/a fails" "a"]"#]],
    );
    check(
        "(flow/pmap {:on-error :continue} #(/ 6 %) [1 0 3])",
        expect!["[6 nil 2]"],
    );
    check(
        "(flow/all {:on-error :collect} [(fn [] 1) #(throw (ex-info \"no\" {:kind :odd :n 1}))])",
        expect![[r#"[1 {:error {:message "no" :kind :odd :data {:kind :odd :n 1}}}]"#]],
    );
    check(
        "(flow/all [5])",
        expect!["failed E0540 branch 0 of `flow/all` is an integer, not a function"],
    );
    check(
        "(flow/race {})",
        expect!["failed E0541 `flow/race` without branches never ends"],
    );
    check(
        "(flow/pmap {:maxx 3} inc [1])",
        expect!["failed E0541 `flow/pmap` has no option `:maxx`"],
    );
    check(
        "(flow/pmap {:max 0} inc [1])",
        expect!["failed E0541 `:max` of `flow/pmap` is a number from 1 on"],
    );
}

#[test]
fn branches_that_lose_a_race_are_cancelled() {
    for (winner, expected) in [
        (":a", expect!["[[:a 1] [:a :b1 :b2 :c]]"]),
        (":c", expect!["[[:c 1] [:c :a :b1 :b2]]"]),
    ] {
        let text = "(let [seen (atom [])
              run (fn [name]
                    (fn [] (try (flow/step :look :x (if (= name WINNER) {:value 1} {:hang true}))
                             (finally (flow/step :put :over {:value name})
                                      (swap! seen conj name)))))
              won (flow/race {:a (run :a) :b #(flow/all [(run :b1) (run :b2)]) :c (run :c)})]
          [won @seen])";
        check(&text.replace("WINNER", winner), expected);
    }
    check(
        "(try (flow/race [#(flow/step :look :a {:hang true}) #(throw (ex-info \"first\" {}))])
           (catch Exception e (ex-message e)))",
        expect![[r#""first""#]],
    );
}

#[test]
fn max_bounds_the_number_of_active_branches() {
    for (max, expected) in [(1, 1), (3, 3), (64, 10)] {
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        let run = bench.start(
            &engine,
            &format!("(count (flow/pmap {{:max {max}}} #(flow/step :gate :x {{:name (str %)}}) (range 10)))"),
        );
        let order: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        bench.script.set(order.iter().map(String::as_str));
        assert_eq!(outcome(&engine, &run), "10");
        assert_eq!(bench.script.most(), expected, "{max}");
    }
}

#[test]
fn a_branch_waits_and_another_sleeps() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(flow/all [#(:action (flow/step :hold :door {})) #(flow/step :pause :nap {:times 60000}) #(flow/step :gate :x {})])",
    );
    expect!["waiting: `door` waits for an answer"].assert_eq(&outcome(&engine, &run));
    let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
    assert_eq!(waits[0].path, "all.0/door");
    let answer = codec::decode("{:action :approve}").expect("EDN");
    block_on(engine.complete_wait("door", &answer, false)).expect("answered");
    expect![[r#"[:approve :slept "all.2/x"]"#]].assert_eq(&outcome(&engine, &run));
}

#[test]
fn a_long_collection_is_mapped_in_constant_memory() {
    check(
        "(reduce + (flow/pmap #(flow/step :pure :x {:value %}) (range 10000)))",
        expect!["49995000"],
    );
}

#[test]
fn bindings_reach_the_branches() {
    check(
        "(do (def ^:dynamic *who* :nobody)
             (binding [*who* :me] (flow/all [(fn [] (flow/step :gate :x {}) *who*) (fn [] *who*)])))",
        expect!["[:me :me]"],
    );
}

#[test]
fn bindings_start_as_soon_as_they_can() {
    check("(flow/let [] 1)", expect!["1"]);
    check(
        "(flow/let [a (flow/step :gate :x {:value 1})
                    b (flow/step :gate :x {:value 2})
                    c (+ a b)
                    {:keys [d] :or {d c} [e & more] :list :as all} {:list [c 5 6]}
                    a (* 10 (flow/step :gate :x {:value a}))
                    f (str a d)]
           [a b c d e more all f])",
        expect![[r#"[10 2 3 3 3 (5 6) {:list [3 5 6]} "103"]"#]],
    );
    check(
        "(let [x 1] (flow/let [a (flow/step :gate :s {}) y (let [a x] (inc a)) [p q] [(flow/step :gate :s {}) y]] [a y p q]))",
        expect![[r#"["let.a/s" 2 "let.2/s" 2]"#]],
    );
    check(
        "(try (flow/let [a (/ 1 0) b (flow/step :look :l {:hang true}) c (inc b)] c) (catch Exception e (ex-message e)))",
        expect![[r#""Divide by zero""#]],
    );
    let bench = Bench::over(STORE);
    bench.script.set(["b", "c", "a"]);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(let [seen (atom [])
               gate (fn [name] (flow/step :gate :x {:name name}) (swap! seen conj name) name)]
           (flow/let [a (gate \"a\") b (gate \"b\") c (do b (gate \"c\"))] [a b c @seen]))",
    );
    expect![[r#"["a" "b" "c" ["b" "c" "a"]]"#]].assert_eq(&outcome(&engine, &run));
}

#[test]
fn a_fanout_returns_the_values_of_its_items() {
    check(
        "(flow/step :fanout :send {:items [{:type :gate :as :write} {:type :pure :value 2} {:type :gate}]})",
        expect![[r#"["send.0/gate" 2 "send.2/gate"]"#]],
    );
    check(
        "[(flow/step :fanout :sum {:items (map (fn [n] {:type :pure :value n}) [1 2]) :transform '(fn [values] (apply + values))})
          (flow/step :fanout :none {:items [] :transform count})]",
        expect!["[3 0]"],
    );
    let failing = |policy: &str| {
        format!(
            "(let [result (try (flow/step :fanout :send {{{policy} :items [{{:type :put :value 1}} {{:type :gate :fails true :retry {{:max-attempts 1}}}} {{:type :put :value 3}}]}})
                            (catch Exception e (ex-message e)))]
               (if (vector? result) (mapv #(or (:count %) (:message (:error %))) result) [result]))"
        )
    };
    check(&failing(""), expect![[r#"["send.1/gate fails"]"#]]);
    check(&failing(":on-error :continue"), expect!["[1 nil 2]"]);
    check(
        &failing(":on-error :collect"),
        expect![[r#"[1 "send.1/gate fails" 2]"#]],
    );
    for (config, expected) in [
        (
            "{:items [{:value 1}]}",
            "failed E0446 item 0 of the `:fanout` has no `:type`",
        ),
        (
            "{:items [{:type :call-flow} {:type :pure}]}",
            "failed E0446 a `:fanout` cannot mix items of type `:call-flow` with others",
        ),
        (
            "{:items [] :retry {}}",
            "failed E0446 `:retry` does not apply to a `:fanout`",
        ),
        ("{}", "failed E0711 the `:fanout` step needs `:items`"),
        (
            "{:items [] :max-concurrency 0}",
            "failed E0446 `:max-concurrency` is a number from 1 on",
        ),
    ] {
        // The config is computed, so that the check before the run cannot see it.
        let text = format!("(flow/step :fanout :send (identity {config}))");
        assert_eq!(run(&[], &text), expected);
    }
}

#[test]
fn a_delay_shared_by_branches_is_computed_once() {
    check(
        "(let [asked (delay (flow/step :gate :x {}))
               items (map (fn [n] (flow/step :gate :y {:value n})) (range 3))]
           [(flow/all [#(deref asked) #(deref asked) #(vec items) #(vec items) #(first items)])
            (flow/step :gate :x {})])",
        expect![[r#"[["all.0/x" "all.0/x" [0 1 2] [0 1 2] 0] "x"]"#]],
    );
    // The branch that was computing the delay lost the race: another branch computes it again.
    check(
        "(let [asked (delay (flow/step :gate :x {:turns 9}))]
           (flow/all [#(flow/race [(fn [] @asked) (fn [] (flow/step :gate :y {}))]) #(deref asked)]))",
        expect![[r#"[[1 "all.0/race.1/y"] "all.1/x"]"#]],
    );
    check(
        "(let [cell (atom nil)
               left (delay (flow/step :gate :x {}) (deref (:right @cell)))
               right (delay (flow/step :gate :y {}) (deref left))]
           (reset! cell {:right right})
           (flow/all [#(deref left) #(deref right)]))",
        expect!["failed E0310 the value of a delay depends on itself"],
    );
}
