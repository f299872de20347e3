//! `flowstone check`.

use std::fmt::Write;

use expect_test::{Expect, expect};

use crate::program::Scratch;

#[test]
fn interfaces_that_cannot_be_served_are_found() {
    let scratch = Scratch::new();
    let with = |slug: &str, interfaces: &str, more: &str| {
        let text = format!(
            "{{:slug :{slug}\n :invocations {{:default {{:inputs []}}}}\n :interfaces {interfaces}\n {more}\n :flow '1}}"
        );
        scratch.write(&format!("{slug}.edn"), text);
    };
    let auth = ":auth {:type :bearer :secret-ref :k}";
    with(
        "bad",
        "{:http [{:id :a :invocation :default :path \"orders\" :timeout \"10m\"}]\n  :webhook [{:id :b :invocation :default}]}",
        ":triggers [{:type :event :config {:event-name \"a b\" :auth {:type :bearer :secret-ref :k}}}\n            {:type :event :enabled false}]",
    );
    with(
        "one",
        "{:http [{:id :a :invocation :default :path \"/x/{a}\"}]}",
        "",
    );
    with(
        "two",
        &format!(
            "{{:http [{{:id :a :invocation :default :path \"/x/{{b}}\"}}]\n  :webhook [{{:id :h :invocation :default {auth} :window \"1m\"}}]}}"
        ),
        "",
    );
    let ran = scratch.run(&["check", "bad.edn", "one.edn", "two.edn"]);
    assert_eq!(ran.code, Some(1));
    for expected in [
        "a `:path` must begin with `/` and must not be empty",
        "this needs an `:auth`: anyone can send to a webhook",
        "`a b` cannot be the path of an event",
        "the address `POST /http/x/{}` is that of an interface in one.edn, too: neither is served",
        "`:window` must be a duration from 300 to 2592000 seconds",
        "bad.edn:4:",
        "two.edn:3:",
    ] {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
    assert_eq!(ran.err.matches("error[").count(), 5, "{}", ran.err);
}

#[test]
fn findings_are_located() {
    let scratch = Scratch::new();
    scratch.write("flows/good.edn", "(let [a 1] a) ; no (flow/step");
    scratch.write(
        "flows/deep/bad.edn",
        "{:slug :bad\n :flow '(flow/step :fiels :list {})}",
    );
    scratch.write("flows/data.edn", "{:just :data");
    let ran = scratch.run(&["check", "flows"]);
    assert_eq!((ran.code, &*ran.out), (Some(1), ""));
    assert!(ran.err.contains("flows/deep/bad.edn:2:"), "{}", ran.err);
    assert!(ran.err.contains("`:files`"), "{}", ran.err);
    assert!(!ran.err.contains("data.edn"), "{}", ran.err);
}

#[test]
fn json_lists_the_findings() {
    let scratch = Scratch::new();
    scratch.write("bad.edn", "{:slug :bad :flow '(+ 1}");
    let ran = scratch.run(&["check", "--json", "bad.edn"]);
    assert_eq!(ran.code, Some(1));
    let json = ran.json();
    assert_eq!(json["ok"], false);
    assert_eq!(json["findings"][0]["file"], "bad.edn");
    assert_eq!(json["findings"][0]["line"], 1);
}

#[test]
fn a_missing_file_is_named() {
    let ran = Scratch::new().run(&["check", "nothing.edn"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("nothing.edn: there is no such file"),
        "{}",
        ran.err
    );
}

#[test]
fn the_flows_of_this_repository_are_right() {
    let flows = concat!(env!("CARGO_MANIFEST_DIR"), "/flows");
    let ran = Scratch::new().run(&["check", flows]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

#[test]
fn code_is_compiled_and_not_run() {
    let scratch = Scratch::new();
    scratch.write(
        "bad.edn",
        "{:slug :bad :concurrency {:type :singleton :on-new-version :supersede}
 :functions [{:id :f :language :clojure :code \"(fn [{:keys [x]}] (inc y))\"}]
 :flow '(let [a 1] (loop [] (recur)) (+ a totl))}",
    );
    let ran = scratch.run(&["check", "bad.edn"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("bad.edn:3:43") && ran.err.contains("`totl`"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("bad.edn:2:71") && ran.err.contains("`y`"),
        "{}",
        ran.err
    );
}

#[test]
fn definitions_in_a_flow_are_known_to_what_follows() {
    let scratch = Scratch::new();
    scratch.write(
        "good.edn",
        "(do (defn twice [x] (* 2 x))
    (defmacro once [x] x)
    (def base (twice 4))
    (once (+ base (twice (count (flow/step :files :list {:op :list :source {:type :dir :path \".\"}}))))))",
    );
    assert_eq!(
        scratch.run(&["check", "good.edn"]).transcript(),
        "--- stderr\n1 file checked, nothing found\n"
    );
}

#[test]
fn run_shows_warnings_in_one_line() {
    let scratch = Scratch::new();
    let get = |id: &str| format!("(flow/step :kv {id} {{:op :get :key \"k\"}})");
    let (a, b) = (get(":a"), get(":b"));
    let wide = format!("{{:a {a} :b {b} :c 3 :d 4 :e 5 :f 6 :g 7 :h 8 :i 9}}");
    scratch.write("a.edn", format!("{{:slug :a :flow '(count {wide})}}"));
    let ran = scratch.run(&["run", "a.edn"]);
    assert_eq!(ran.out, "9\n", "{ran:?}");
    let warning = ran.err.lines().find(|line| line.starts_with("warning"));
    let warning = warning.expect("a warning");
    assert!(
        warning.contains("E0953")
            && warning.ends_with("(`flowstone check a.edn` shows it in full)"),
        "{warning}"
    );
    assert!(!ran.err.contains("-->"), "{}", ran.err);
    let ran = scratch.run(&["check", "a.edn"]);
    assert!(
        ran.code == Some(0) && ran.err.contains("--> a.edn:1:"),
        "{}",
        ran.err
    );
}

#[test]
fn a_flow_without_its_manual_interface_is_not_started_by_hand() {
    let scratch = Scratch::new();
    scratch.write(
        "a.edn",
        "{:slug :a :invocations {:default {:inputs []} :other {:inputs []}}
 :interfaces {:manual [{:id :run :invocation :default :enabled false}]} :flow '1}",
    );
    let ran = scratch.run(&["run", "a.edn"]);
    assert!(
        ran.code == Some(1) && ran.err.contains("E0954") && ran.err.contains(":enabled true"),
        "{ran:?}"
    );
    let ran = scratch.run(&["run", "a.edn", "--invocation", "other"]);
    assert_eq!(ran.out, "1\n", "{ran:?}");
    let ran = scratch.run(&["test", "a.edn"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn waits_are_within_the_limit_of_the_project() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{:waits {:max-timeout \"30d\"}}");
    let flow = |timeout: &str| format!("(flow/step :wait :w {{:timeout {timeout}}})");
    scratch.write("a.edn", flow("\"40d\""));
    let ran = scratch.run(&["check", "a.edn"]);
    assert!(
        ran.code == Some(1) && ran.err.contains("E0762") && ran.err.contains("a.edn:1:31"),
        "{ran:?}"
    );
    for good in ["\"30d\"", "(str 40 \"d\")"] {
        scratch.write("a.edn", flow(good));
        let ran = scratch.run(&["check", "a.edn"]);
        assert_eq!(ran.code, Some(0), "{good} {ran:?}");
    }
}

#[test]
fn steps_in_unordered_literals_are_warned_of() {
    findings(
        "[{:a (flow/step :kv :a {:op :get :key \"a\"}) :b 1 :c 1 :d 1 :e 1 :f 1 :g 1 :h 1 :i (flow/call-flow :child {})}
 {:a (flow/step :kv :b {:op :get :key \"a\"}) :b 1 :c 1 :d 1 :e 1 :f 1 :g 1 :h 1 :i '(flow/step :kv :b {})}
 {:a (flow/step :kv :c {:op :get :key \"a\"}) :b (flow/step :kv :d {:op :get :key \"b\"})}
 {:a #(flow/step :kv :g {:op :get :key \"a\"}) :b (fn [] (flow/step :kv :h {:op :get :key \"a\"})) :c 1 :d 1 :e 1 :f 1 :g 1 :h 1 :i 1}
 #{(flow/step :kv :e {:op :get :key \"a\"}) (flow/step :kv :f {:op :get :key \"b\"})}]",
        expect![[r#"
            warning E0953 <{:a> the 2 steps in this literal are not performed in the written order: a map of more than 8 entries is evaluated in the order of its hashes
                perform the steps in a `let`, in the order that you want, and put the results into the literal
            warning E0953 <#{(flow/step> the 2 steps in this literal are not performed in the written order: a set is evaluated in the order of its hashes
                perform the steps in a `let`, in the order that you want, and put the results into the literal
        "#]],
    );
}

#[test]
fn literal_instants_and_patterns_are_checked() {
    findings(
        "[(flow/step :time :a {:op :format :at \"2026-13-41\" :format \"yyyy-QQQ\"})
 (flow/step :time :b {:op :between :from \"yesterday\" :to (flow/now-ms)})
 (flow/step :time :c {:op :between :from 0 :to \"2026-01-31\" :timezone \"Europe/Berlin\"})
 (flow/step :time :d {:op :parse :text \"31.01.2026\"})
 (flow/step :time :e {:op :parse :text \"31.01.2026\" :format \"dd.MM.yyyy\"})
 (flow/step :time :f {:op :format :at (str 1) :format (str 2)})]",
        expect![[r#"
            E0767 <"2026-13-41"> `:at` is not an instant: "2026-13-41"
                give an `#inst`, milliseconds since 1970, or text such as "2026-01-31T09:30:00Z"
            E0767 <"yyyy-QQQ"> the pattern cannot be used: the pattern "yyyy-QQQ" has `QQQ`, which is not known
                letters: y M d E D for dates, H h m s S a for times, X x Z VV for zones; other text goes in single quotes
            E0767 <"yesterday"> `:from` is not an instant: "yesterday"
                give an `#inst`, milliseconds since 1970, or text such as "2026-01-31T09:30:00Z"
            E0767 <"31.01.2026"> `31.01.2026` is not a date and time
                write it as in `2026-01-31T09:30:00Z`, or say in which `:format` it is
        "#]],
    );
}

#[test]
fn sources_that_a_flow_does_not_have_are_explained() {
    let scratch = Scratch::new();
    scratch.write("a.edn", "(do (require '[my.tools :as t]) 1)");
    let ran = scratch.run(&["check", "a.edn"]);
    assert!(
        ran.err.contains("E0344") && ran.err.contains("`:functions`") && !ran.err.contains("path"),
        "{}",
        ran.err
    );
}

#[test]
fn op_of_kv_is_another_name_of_operation() {
    findings(
        "[(flow/step :kv :a {:op :get :key \"a\"})
 (flow/step :kv :b {:op :gett :key \"a\"})
 (flow/step :kv :c {:op :get :operation :get :key \"a\"})
 (flow/step :kv :d {:op :get :key \"a\" :delta 1})]",
        expect![[r#"
            E0765 <:gett> `:kv` has no operation `:gett`
                did you mean `:get`?
            E0710 <:op> `:op` of a `:kv` step is another name of `:operation`
                give one of the two
            E0765 <:delta> `:delta` does not apply to `:operation :get`
                it takes `:key` `:as-in-origin` `:default`
        "#]],
    );
    let scratch = Scratch::new();
    scratch.write(
        "a.edn",
        "(:value (flow/step :kv :a {:op :increment :key \"n\"}))",
    );
    assert_eq!(scratch.run(&["run", "a.edn", "--quiet"]).out, "1\n");
}

/// Checks a flow file, and compares its findings, one a line, with the text that each is at.
#[track_caller]
fn findings(flow: &str, expected: Expect) {
    let scratch = Scratch::new();
    scratch.write("a.edn", flow);
    scratch.write("flows/child.edn", "{:slug :kid :flow '1}");
    let told = scratch.run(&["check", "--json", "a.edn"]).json();
    let mut text = String::new();
    for finding in told["findings"].as_array().expect("findings") {
        let number = |key: &str| finding[key].as_u64().unwrap_or(0) as usize;
        let line = flow.lines().nth(number("line").saturating_sub(1));
        let at = line.unwrap_or_default().chars().skip(number("column") - 1);
        let at: String = at.take_while(|char| !" )}]".contains(*char)).collect();
        let field = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        let mark = if field("severity") == "warning" {
            "warning "
        } else {
            ""
        };
        let _ = writeln!(text, "{mark}{} <{at}> {}", field("code"), field("message"));
        let hints = finding["hints"].as_array().cloned().unwrap_or_default();
        if let Some(hint) = hints.first().and_then(|it| it.as_str()) {
            let _ = writeln!(text, "    {hint}");
        }
    }
    expected.assert_eq(&text);
}

fn body(flow: &str, expected: Expect) {
    findings(&format!("{{:slug :a :flow '(do {flow})}}"), expected);
}

#[test]
fn code_in_texts_is_read_and_compiled() {
    findings(
        r#"{:slug :a
 :functions [{:id :f :code "(fn [x] (inc (:n x))"} {:id :g :code "(fn [x] x) (fn [y] y)"}
             {:id :h :code "(fn [x] #=(+ 1 2))"} {:id :i :code "(fn [x] \"é\" (undefd x))"} {:id :j :code ""}]
 :flow '(do (flow/step :function :a {:code "(fn [x] (inc " :input {}})
            (flow/step :function :b {:code "42"})
            (flow/step :function :c {:code "(do (require '[clojure.set :as s]) (fn [x] (s/union #{} x)))"}))}"#,
        expect![[r#"
            E0101 <(fn> `(` is never closed
                add `)` where the form should end
            E0470 <(fn> code is one form, and here is another
                write one `(fn [input] ...)`; put what else it needs into a `let` or `letfn` around it
            E0113 <#=(+> `#=` would run code while reading, which is not done here
                put the expression where it is evaluated, without `#=`
            E0204 <undefd> `undefd` is not defined
            E0470 <""> this code is empty
                write a function: `(fn [input] ...)`
            E0101 <(inc> `(` is never closed
                add `)` where the form should end
            E0706 <"42"> the code is an integer, not a function
                wrap it: `(fn [input] ...)`
        "#]],
    );
}

#[test]
fn quoted_code_is_compiled() {
    body(
        "(flow/step :function :b {:code '(fn [_] (undefind-fn 1))})
         (flow/step :http :c {:url \"http://a\" :parser-fn '(fn [body] (parse body))})
         (flow/step :http :d {:url \"http://a\" :expect {:fn '(fn [it] (odd it it))}})
         (flow/step :function :e {:code '(fn [{:keys [n]}] (let [f (fn [x] (* x n))] (f 2)))})",
        expect![[r#"
            E0204 <undefind-fn> `undefind-fn` is not defined
            E0204 <parse> `parse` is not defined
                clojure.pprint has it: (require '[clojure.pprint :refer [parse]])
            E0204 <odd> `odd` is not defined
                did you mean `odd?`?
        "#]],
    );
}

#[test]
fn function_code_that_reaches_outside_is_found() {
    body(
        "(flow/step :function :a {:code '(fn [_] (slurp \"a\"))})
         (flow/step :function :b {:code '(fn [_] (flow/step :kv :x {:operation :get :key \"k\"}))})
         (flow/step :function :c {:code '(fn [_] (Thread/sleep 10))})
         (flow/step :function :d {:code '(fn [_] (str (java.util.UUID/randomUUID) (rand-int 3) (java.time.Instant/now)))})
         ; Names of its own, and data.
         (flow/step :function :e {:code '(fn [{:keys [step]}] (let [rand inc] [(step 1) (rand 2) 'slurp (flow/backoff 1 1)]))})
         (flow/step :function :f {:code '(fn [_] (letfn [(shuffle [x] x)] (shuffle [1])))})",
        expect![[r#"
            E0707 <slurp> `slurp` cannot be used inside function code, which has no files
                read files in the flow, with a `:files` step, and pass the text to the function
            E0707 <flow/step> `flow/step` cannot be used inside function code
                do it in the body of the flow, and pass the result to the function: `:input {...}`
            E0707 <Thread/sleep> `Thread/sleep` cannot be used inside function code, which cannot sleep
                let the flow sleep, with a `:sleep` step
            E0707 <java.util.UUID/randomUUID> `java.util.UUID/randomUUID` cannot be used inside function code, which has no randomness
                take it in the body of the flow, where it is journaled, and pass it to the function: `:input {...}`
            E0707 <rand-int> `rand-int` cannot be used inside function code, which has no randomness
                take it in the body of the flow, where it is journaled, and pass it to the function: `:input {...}`
            E0707 <java.time.Instant/now> `java.time.Instant/now` cannot be used inside function code, which has no clock
                take it in the body of the flow, where it is journaled, and pass it to the function: `:input {...}`
        "#]],
    );
}

#[test]
fn operations_are_held_against_what_they_need_and_take() {
    body(
        "(flow/step :table :a {:op :upser :table \"t\" :rows []})
         (flow/step :table :b {:op :query})
         (flow/step :table :c {:op :query :table \"t\" :rows [1]})
         (flow/step :kv :d {:operation :gett :key \"k\"})
         (flow/step :kv :e {:operation :get :key \"k\" :value 1})
         (flow/step :mcp :f {:adapter :a/b})
         ; What is computed is left alone.
         (let [op :query key :table] (flow/step :table :g {:op op}) (flow/step :table :h {:op :query key \"t\"}))",
        expect![[r#"
            E0764 <:upser> `:table` has no operation `:upser`
                did you mean `:upsert`?
            E0764 <{:op> `:op :query` needs `:table`
                `:table`: The table: its name, its `res://` name, or the reference that a step returned. A table with partitions is written `{:name "orders" :partitions {:key "2026-03"}}`, or with `{:keys [...]}` to read several partitions.
            E0764 <:rows> `:rows` does not apply to `:op :query`
                it takes `:table` `:page` `:query` `:select` `:sort` `:where`
            E0765 <:gett> `:kv` has no operation `:gett`
                did you mean `:get`?
            E0765 <:value> `:value` does not apply to `:operation :get`
                it takes `:key` `:as-in-origin` `:default`
            E0830 <{:adapter> `:op :call` needs `:tool`
                `:tool`: The name of the tool on the server.
            E0830 <:a/b> the flow has no adapter `:a/b`
                describe it in the flow: `:mcp [{:id :linear/issues :connection :linear-mcp :allow-tools [...]}]`
        "#]],
    );
}

#[test]
fn what_is_written_out_is_checked_as_when_it_is_performed() {
    body(
        "(flow/step :table :a {:op :query :table \"t\" :where [[\"a\" \"?\" 1]] :sort [[\"a\" \"up\"]]})
         (flow/step :llm :b {:connection :ai})
         (flow/step :llm :c {:connection :ai :prompt \"x\" :output {:format :json :schema [:mapp]}})
         (flow/step :agent :d {:connection :ai :objective \"x\" :output {:formt :json}})
         (flow/step :sleep :e {:seconds 1 :duration \"5s\"})
         (flow/step :wait :f {:validation [:mapp] :webhook {:path \"a\" :auth {:type :bogus}} :default-value 1})
         (flow/step :http :g {:url \"http://x\" :auth {:type :bearer :token \"abc\"}})
         (flow/step :http :h {:method :get})
         (flow/step :http :i {:url \"http://x\" :persist {:type :blobb} :on-error :skp})
         (flow/step :http :j {:url \"http://x\" :persist {:type :table :table \"x\" :kye-fields [:a]}})
         (let [a 1] (flow/step :sleep :k {:seconds (when a 1) :duration (when-not a 2)})
                    (flow/step :wait :l {:validation a :on-timeout a :default-value 1})
                    (flow/step :http :m {:url a :path \"/b\" :persist {:type a :x 1}}))",
        expect![[r#"
            E0764 <[["a"> `:where` has the operator "?", which does not exist
                there are = != < <= > >= in not-in contains not-contains starts-with ends-with like between is-null not-null
            E0764 <[["a"> `:sort` has ["a" "up"], which is not a column with a direction
                write `[:column :asc]` or `[:column :desc]`
            E0809 <{:connection> there is nothing to ask
                give it a `:prompt` or `:messages`
            E0815 <{:format> the `:schema` of `:output` cannot be used: `mapp` is not a schema type; did you mean `:map`?
                it takes a Malli form such as `[:map [:title :string]]`, or a JSON Schema as a map
            E0726 <{:formt> `:output` has no key `:formt`
                did you mean `:format`?
            E0766 <"5s"> `:sleep` takes one of `:duration` and `:seconds`, not both
            E0762 <[:mapp> `:validation` is not a schema: `mapp` is not a schema type; did you mean `:map`?
                as in `{:required [:action]}` or `[:map [:amount :int]]`
            E0719 <{:path> `:webhook :auth` has no type `:bogus`
                there are `:api-key` `:basic` `:bearer` `:github` `:hmac-sha256` `:ip-allowlist` `:signature` `:slack` `:standard-webhooks` `:stripe`
            E0762 <1> `:default-value` means nothing when `:on-timeout` is `:fail`
                add `:on-timeout :continue`
            E0753 <{:type> `:auth` holds a secret itself, under `:token`
                name it instead, `:secret-ref :my-token`, and set MY_TOKEN in the environment or in `.env`
            E0738 <{:method> the request has no address
                give it a `:url`, or a `:connection` and a `:path`
            E0712 <:blobb> `:persist :type` of a `:http` step must be one of `:blob`, `:kv`, `:table`, not :blobb (a keyword)
                did you mean `:blob`?
            E0712 <:skp> `:on-error` of a `:http` step must be one of `:checkpoint`, `:fail`, `:skip`, not :skp (a keyword)
                did you mean `:skip`?
            E0710 <:kye-fields> `:persist` of a `:http` step has no key `:kye-fields`
                did you mean `:key-fields`?
        "#]],
    );
}

#[test]
fn options_of_calls_are_known() {
    body(
        "(flow/call-flow :nosuch {} {:profile-id \"x\" :timout \"3m\" :input 1})
         (flow/call-flow :kid {} {:retry-policy {:a 1} :id :x :timeout \"soon\"})
         (flow/call-flow :child)
         (flow/call-flow :a)
         (flow/step :call-flow :c {:flow-slug :childd})
         (flow/step :fanout :d {:items [{:type :call-flow :flow-slug :chlid :inptu {}}]})
         (flow/step :fanout :e {:items [{:type :http :url 1} {:type :htp}]})
         (flow/step :fanout :f {:items [{:type :http :url \"http://a\"} {:type :call-flow :flow-slug :kid}]})
         (flow/pmap {:max-concurrency 1000} inc [1])
         (flow/all {:on-error :colect :max 0} [])
         (flow/race {:a inc})
         (flow/poll {:intervall \"5s\" :return-on some?} 1)
         (flow/poll {:interval \"5s\" :return-on (fn [x] x)} 1)
         (flow/poll {:interval 10 :return-on some? :timeout \"1m\" :backoff {:type :linar}} 1)",
        expect![[r#"
            E0545 <:nosuch> the project has no flow `nosuch`
                a flow is found by the name of its file or by its `:slug`: beside the flow that calls it, or in the project's `flows` folder; a graph spec or a behaviour tree also by its path
            E0710 <:profile-id> `flow/call-flow` has no option `:profile-id`
                name an installation with `:installation-id`, or bind connections with `--profile NAME`
            E0710 <:timout> `flow/call-flow` has no option `:timout`
                did you mean `:timeout`?
            E0710 <:input> `:input` is not an option of `flow/call-flow`: it is an argument
            E0710 <:retry-policy> `flow/call-flow` has no option `:retry-policy`
                write `:retry {:max-attempts 3}`
            E0712 <"soon"> `:timeout` of a `:call-flow` step must be seconds or a duration such as "10s", not "soon" (a string)
                `:timeout`: Maximum duration of one attempt.
            E0545 <:childd> the project has no flow `childd`
                did you mean `child`?
            E0545 <:chlid> the project has no flow `chlid`
                did you mean `child`?
            E0710 <:inptu> a `:call-flow` step has no option `:inptu`
                did you mean `:input`?
            E0712 <1> `:url` of a `:http` step must be a string, not 1 (an integer)
                `:url`: The whole address, instead of `:path`.
            E0431 <:htp> unknown step type `:htp`
                did you mean `:http`?
            E0446 <{:items> a `:fanout` cannot mix items of type `:call-flow` with others
                use two steps, or flow/pmap, which runs any steps concurrently
            E0541 <:max-concurrency> `flow/pmap` has no option `:max-concurrency`
                its options are :id, :max, :on-error
            E0541 <:on-error> `:on-error` of `flow/all` must be one of :fail, :continue and :collect
                :fail cancels the others, :continue gives nil, :collect gives {:error ...}
            E0541 <:max> `:max` of `flow/all` is a number from 1 on
                it says how many branches are under way at once
            E0443 <:intervall> flow/poll has no option :intervall
                did you mean `:interval`?
            E0443 <{:interval> flow/poll needs :timeout or :max-attempts
                without one of them it may never end
            E0443 <:backoff> :backoff :type of flow/poll must be one of `:constant`, `:exponential`, `:linear`, not :linar (a keyword)
                did you mean `:linear`?
        "#]],
    );
}

#[test]
fn contents_of_definitions_are_checked() {
    findings(
        "{:slug :a :doc/flow \"mine\" :custom/steps [1] \"note\" 1 \"steps\" []
 :invocations {:defualt {:inputs [{:name :n :typ :number :requird true :doc/note 1} {:name :m :type :select :optins [1]}]}}
 :requires [{:slott :ai} {:slot :crm :type :nonsense} {:slot :crm :type :http-api :auth {:type :bearr}}
            {:slot :a/b :auth {:type :bearer :token \"abc\"}} {:slot :c :colour 1}
            {:kind :form :collect :setupp :fields [{:key :region :requird true}]} {:kind :frm} {:kind :worker :any 1}]
 :interfaces {:webhook [{:id :w :invocation :defualt :auth {:type :none}}] :htp [{:id :x}]
              :manual [{:id :r :invocation :defualt :lable 1}]}
 :triggers [{:type :bogus} {:type :manual :config {:fields [{:key :a :requird 1}]}} {:type :event :config {:auth {:type :bogus}}}]
 :functions [{:id :f :cod 1 :code \"inc\"}]
 :flow '(str \"res://v1/ws/ws-4f2a9c01/x\")}",
        expect![[r#"
            warning E0402 <"note"> the key "note" has no effect: it is not a keyword
            E0402 <"steps"> the key "steps" has no effect: it is not a keyword
                write it as `:steps`
            warning E0472 <:defualt> the invocation `:defualt` is not the default one
                did you mean `:default`?
            E0472 <:typ> `:inputs 0` of the invocation `:defualt` has no key `:typ`
                did you mean `:type`?
            E0472 <:requird> `:inputs 0` of the invocation `:defualt` has no key `:requird`
                did you mean `:required`?
            E0408 <{:name> the input `:m` of type `:select` needs `:options`
                for example `:options ["EU" "US"]`
            E0472 <:optins> `:inputs 1` of the invocation `:defualt` has no key `:optins`
                did you mean `:options`?
            E0472 <:slott> an entry of `:requires` has no key `:slott`
                did you mean `:slot`?
            E0472 <:nonsense> `:type` of an entry of `:requires` must be one of `:blob-storage`, `:database`, `:http-api`, `:kv-store`, `:llm-provider`, `:mcp`, `:secret`, `:ssh`, not :nonsense (a keyword)
            E0414 <:crm> there are two slots `:crm`
            E0472 <:bearr> `:auth :type` of an entry of `:requires` must be one of `:api-key`, `:aws-sigv4`, `:basic`, `:bearer`, `:google-service-account`, `:none`, `:oauth`, `:private-key`, not :bearr (a keyword)
                did you mean `:bearer`?
            E0472 <:a/b> `:a/b` cannot name a slot
                a slot is a keyword without a namespace, such as `:crm`
            E0753 <:token> `:auth` of an entry of `:requires` holds a secret itself, under `:token`
                name it instead, `:secret-ref :my-token`, and set MY_TOKEN in the environment or in `.env`
            warning E0472 <:colour> an entry of `:requires` has no key `:colour`: it has no effect
                its keys are `:allow-hosts`, `:allow-link-local`, `:auth`, `:backend`, `:backends`, `:base-url`, `:capabilities`, `:command`, `:config`, `:description`, `:family`, `:headers`, `:kind`, `:label`, `:model`, `:oauth`, `:optional`, `:provided-by`, `:provider`, `:region`, `:required`, `:script`, `:scopes`, `:secret-ref`, `:slot`, `:type`
            E0472 <:setupp> `:collect` of an entry of `:requires` must be one of `:run`, `:setup`, not :setupp (a keyword)
                did you mean `:setup`?
            E0472 <:requird> `:fields 0` of an entry of `:requires` has no key `:requird`
                did you mean `:required`?
            E0472 <:frm> `:kind` of an entry of `:requires` must be one of `:connection`, `:form`, `:worker`, not :frm (a keyword)
                did you mean `:form`?
            E0472 <:none> `:auth :type` of an entry of `:webhook` must be one of `:api-key`, `:basic`, `:bearer`, `:github`, `:hmac-sha256`, `:ip-allowlist`, `:signature`, `:slack`, `:standard-webhooks`, `:stripe`, not :none (a keyword)
            E0472 <:htp> there are no interfaces of kind `:htp`
                did you mean `:http`?
            E0472 <:lable> an entry of `:manual` has no key `:lable`
                did you mean `:label`?
            E0472 <:bogus> `:type` of an entry of `:triggers` must be one of `:event`, `:manual`, `:schedule`, `:webhook`, not :bogus (a keyword)
            warning E0473 <:manual> a trigger of type `:manual` is the older way to start a run
                write `:invocations {:default {:inputs [...]}}` and `:interfaces {:manual [{:id :run :invocation :default}]}`
            E0472 <:requird> `:config :fields 0` of an entry of `:triggers` has no key `:requird`
                did you mean `:required`?
            E0472 <:bogus> `:config :auth :type` of an entry of `:triggers` must be one of `:api-key`, `:basic`, `:bearer`, `:github`, `:hmac-sha256`, `:ip-allowlist`, `:signature`, `:slack`, `:standard-webhooks`, `:stripe`, not :bogus (a keyword)
            E0472 <:cod> an entry of `:functions` has no key `:cod`
                did you mean `:code`?
            warning E0474 <"res://v1/ws/ws-4f2a9c01/x"> a text contains the id of one workspace: the flow works nowhere else
                pass the id to the run as an input
        "#]],
    );
}

#[test]
fn a_flow_may_use_the_usual_aliases() {
    let scratch = Scratch::new();
    scratch.write(
        "a.edn",
        "{:slug :a
 :functions [{:id :f :code \"(fn [{:keys [x]}] {:s (set/union #{1} #{x}) :e (edn/read-string \\\"[1]\\\")})\"}]
 :flow '(let [str \"b\"]
          [(str/upper-case \"a\") (walk/keywordize-keys {str 1})
           (flow/step :function :f {:ref :f :input {:x 2}}) (json/write-str {:a 1})])}",
    );
    scratch.write(
        "own.edn",
        "(do (require '[clojure.set :as str] '[clojure.pprint :as pp])
             (str/union #{1} #{2})
             (with-out-str (pp/pprint 1)))",
    );
    assert_eq!(scratch.run(&["run", "own.edn", "--quiet"]).out, "1\n");
    let ran = scratch.run(&["run", "a.edn", "--quiet"]);
    assert_eq!(
        (ran.out.as_str(), ran.code),
        (
            "[\"A\" {:b 1} {:s #{1 2}, :e [1]} \"{\\\"a\\\":1}\"]\n",
            Some(0)
        ),
        "{}",
        ran.err
    );
}

#[test]
fn unknown_names_have_suggestions() {
    let scratch = Scratch::new();
    let ran = scratch.run(&["eval", "(flow/step :kv :a {})"]);
    assert!(ran.err.contains("flowstone repl"), "{}", ran.err);
    let ran = scratch.run(&["eval", "(clojure.java.shell/sh \"ls\")"]);
    assert!(ran.err.contains("the library has"), "{}", ran.err);
}

#[test]
fn a_flow_is_found_by_its_name() {
    let scratch = Scratch::new();
    scratch.write("flows/news.edn", "{:slug :daily :flow '7}");
    scratch.write("flows/one/mail.edn", "1");
    scratch.write("flows/two/mail.edn", "2");
    for name in ["news", "daily"] {
        assert_eq!(scratch.run(&["run", name, "--quiet"]).out, "7\n");
        assert_eq!(scratch.run(&["check", name]).code, Some(0));
    }
    let told = |args: &[&str]| scratch.run(args).err;
    let err = told(&["run", "newz"]);
    assert!(
        err.contains("E0400") && err.contains("did you mean `news`?"),
        "{err}"
    );
    let err = told(&["run", "mail"]);
    assert!(
        err.contains("flows/one/mail.edn") && err.contains("flows/two/mail.edn"),
        "{err}"
    );
    let err = told(&["run", "flows"]);
    assert!(err.contains("flows is a folder"), "{err}");
}

#[test]
fn other_formats_are_named() {
    let scratch = Scratch::new();
    scratch.write("a.json", "{\"slug\": \"a\", \"flow\": [1]}");
    scratch.write("b.csv", "day,n\n2026-01-02,1\n");
    let err = scratch.run(&["check", "a.json"]).err;
    assert!(err.contains("this looks like JSON"), "{err}");
    let err = scratch.run(&["check", "b.csv"]).err;
    assert!(err.contains("this is a table"), "{err}");
}

#[test]
fn files_in_a_body_are_found() {
    body(
        "(slurp \"x\") (let [f #(spit \"y\" %)] (f 1)) (rand) '(slurp 1) (letfn [(load-file [x] x)] (load-file 1))",
        expect![[r#"
            E0388 <slurp> `slurp` cannot be used in a flow, which has no files
                read and write files with a `:files` step
            E0388 <spit> `spit` cannot be used in a flow, which has no files
                read and write files with a `:files` step
        "#]],
    );
}

#[test]
fn times_that_always_fail_are_found() {
    body(
        "(flow/step :time :a {:timezone \"Europe/Berln\"})
         (flow/step :time :b {:op :add :at 0 :by {:month 1}})
         (flow/step :time :c {:op :add :at 0 :by {:months 1.5}})
         (let [z \"UTC\" n 1] (flow/step :time :d {:op :add :at 0 :by {:days n} :timezone z}))
         (flow/step :time :e {:op :add :at 0 :by \"90m\" :timezone \"+01:00\"})",
        expect![[r#"
            E0767 <"Europe/Berln"> there is no time zone `Europe/Berln`
                did you mean "Europe/Berlin"?
            E0767 <{:month> `:by` has no unit :month
                did you mean `:months`?
            E0767 <{:months> `:months` of `:by` takes a whole number, not 1.5
        "#]],
    );
}

#[test]
fn requests_that_cannot_be_sent_as_written_are_found() {
    body(
        "(flow/step :http :a {:url \"127.0.0.1:8765/x\"})
         (flow/step :http :b {:url \"localhost:8765/x\"})
         (flow/step :http :c {:url \"http://x\" :json {:a (inc 1)} :body \"b\"})
         (flow/step :http :d {:url \"http://x\" :json {:a 1} :form {:b 2}})
         (let [u \"http://x\" b nil] (flow/step :http :e {:url u :json [1] :body b}))",
        expect![[r#"
            E0730 <"127.0.0.1:8765/x"> `127.0.0.1:8765/x` is not a valid address: relative URL without a base
                an address looks like https://host/path
            E0730 <"localhost:8765/x"> `localhost:8765/x` is not a valid address: `localhost:` is not HTTP
                an address looks like https://host/path
            warning E0738 <"b"> `:body` is not sent: `:json` wins over it
                leave one of them out
            E0738 <{:a> a request has one body, and this has `:form` `:json`
        "#]],
    );
}

#[test]
fn a_select_needs_options() {
    findings(
        "{:slug :a :invocations {:default {:inputs [{:name :m :type :select} {:name :n :type :select :options []} {:name :o :type :select :options [1]}]}}
 :flow '(flow/input)}",
        expect![[r#"
            E0408 <{:name> the input `:m` of type `:select` needs `:options`
                for example `:options ["EU" "US"]`
            E0408 <{:name> the input `:n` of type `:select` needs `:options`
                for example `:options ["EU" "US"]`
        "#]],
    );
}
