//! Flow files: how they are read, and the findings about wrong ones.

use std::path::PathBuf;

use expect_test::{Expect, expect};
use flowstone_engine::disk;
use flowstone_flow::flow::{self, Checked};
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec,
};
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;

struct Fake(&'static StepSpec);

impl Step for Fake {
    fn spec(&self) -> &'static StepSpec {
        self.0
    }

    fn run<'a>(
        &'a self,
        _cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move { Ok(Outcome::Value(config)) })
    }
}

static HTTP: StepSpec = StepSpec {
    kind: "http",
    operations: None,
    aliases: &[],
    doc: "Calls a server.",
    fields: &[
        Field::required("url", FieldType::Text, "Where to."),
        Field::optional("method", FieldType::OneOf(&["get", "post"]), "How."),
    ],
    examples: &[],
    effect: Effect::External,
};

static FUNCTION: StepSpec = StepSpec {
    kind: "function",
    operations: None,
    aliases: &["code"],
    doc: "Computes.",
    fields: &[
        Field::optional("code", FieldType::Function, "The code."),
        Field::optional("ref", FieldType::Name, "A function of the flow."),
        Field::optional("input", FieldType::Map, "Its argument."),
    ],
    examples: &[],
    effect: Effect::Pure,
};

static AGENT: StepSpec = StepSpec {
    kind: "agent",
    operations: None,
    aliases: &[],
    doc: "Works toward an objective.",
    fields: &[
        Field::optional("after-tool-call", FieldType::Function, "A hook."),
        Field::optional("available-steps", FieldType::Items, "Built-in tools."),
        Field::optional("inputs", FieldType::Map, "What it works on."),
        Field::optional("max-iterations", FieldType::IntIn(1, 100), "A cap."),
        Field::optional("memory", FieldType::Any, "What it remembers."),
        Field::required("objective", FieldType::Text, "What it is for."),
        Field::optional("output", FieldType::Any, "What it answers."),
        Field::optional("tools", FieldType::Any, "What it may call."),
    ],
    examples: &[],
    effect: Effect::External,
};

fn checked(files: &[(&str, &str)]) -> (Session, Checked) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let session = Session::new();
    flowstone_flow::natives::install(&session);
    let steps: Vec<Box<dyn Step>> = vec![
        Box::new(Fake(&AGENT)),
        Box::new(Fake(&FUNCTION)),
        Box::new(Fake(&HTTP)),
    ];
    let path: PathBuf = folder.path().join(files[0].0);
    let checked = disk::check(&session, &path, files[0].0, &steps);
    (session, checked)
}

pub(crate) fn findings(files: &[(&str, &str)], expected: Expect) {
    let (session, checked) = checked(files);
    let sources = session.world().sources.borrow();
    let mut text = String::new();
    for finding in &checked.findings {
        let place = sources
            .get(finding.span.source)
            .map_or(String::new(), |source| {
                let at = source.line_column(finding.span.start);
                let part = &source.text[finding.span.start as usize..finding.span.end as usize];
                let part: String = part.chars().take(24).collect();
                format!(" {}:{}:{} <{part}>", source.name, at.line, at.column)
            });
        text += &format!("{}{place} {}\n", finding.code, finding.message);
        for hint in &finding.hints {
            text += &format!("  {hint}\n");
        }
    }
    expected.assert_eq(&text);
}

fn check(text: &str, expected: Expect) {
    findings(&[("a.edn", text)], expected);
}

#[test]
fn a_full_definition_is_read() {
    let (_, checked) = checked(&[(
        "a.edn",
        r#"{:slug :order-sync :name "Order sync" :description "…" :tags ["draft"]
            :concurrency {:type :keyed :key-field :account-id :on-new-version :drain}
            :requires nil :templates nil :steps [] :schedules []
            :functions [{:id :prep :language :clojure :code "(fn [x] x)"}
                        {:id :proj :code '(fn [x] x)}]
            :invocations {:default {:label "Run" :inputs [{:name :account-id :type :string :required true}]}}
            :interfaces {:manual [{:id :run :label "Run" :invocation :default}]}
            :flow '(let [input (flow/input)] input)}"#,
    )]);
    assert!(checked.findings.is_empty(), "{:?}", checked.findings);
    let flow = checked.loaded.expect("a flow").flow;
    assert_eq!(&*flow.slug, "order-sync");
    assert_eq!(flow.functions.len(), 2);
    assert!(matches!(flow.body, Value::List(_)));
    assert_eq!(
        &*flow.default_invocation().expect("one").inputs[0].type_,
        "string"
    );
}

#[test]
fn the_older_surface_is_read() {
    let (_, checked) = checked(&[(
        "a.edn",
        r#"{:slug "old" :concurrency {:type :singleton :on-new-version :supersede}
            :triggers [{:type :manual :label "Go" :enabled true
                        :config {:fields [{:key :region :field-type :select :options ["EU" "US"] :required true}]}}]
            :flow (quote (flow/input))}"#,
    )]);
    let codes: Vec<&str> = checked
        .findings
        .iter()
        .map(|finding| finding.code)
        .collect();
    assert_eq!(codes, ["E0473"], "{:?}", checked.findings);
    assert!(!checked.has_errors());
    let flow = checked.loaded.expect("a flow").flow;
    let contract = flow.default_invocation().expect("one");
    assert_eq!(
        (&*contract.inputs[0].name, &*contract.inputs[0].type_),
        ("region", "select")
    );
}

#[test]
fn a_bare_form_is_a_flow_named_after_its_file() {
    for text in ["'(let [a 1] a)", "(let [a 1] a)"] {
        let (_, checked) = checked(&[("my flow.clj", text)]);
        let flow = checked.loaded.expect("a flow").flow;
        assert_eq!(&*flow.slug, "my-flow");
        assert!(matches!(flow.body, Value::List(_)));
    }
}

#[test]
fn keys_of_the_definition_are_checked() {
    check(
        "{:slug :a\n :functons []\n :flow '(+ 1 2)}",
        expect![[r#"
            E0402 a.edn:2:2 <:functons> unknown key `:functons` in the flow definition
              did you mean `:functions`?
        "#]],
    );
    check(
        "{:slug \"9 lives\" :flow (let [] 1)}",
        expect![[r#"
            E0405 a.edn:1:8 <"9 lives"> this cannot be a slug
              a slug is a keyword or string of letters, digits, `-` and `_` that starts with a letter
            E0406 a.edn:1:24 <(let [] 1)> `:flow` must be a quoted form
              put a quote before it: `:flow '(...)`
        "#]],
    );
    check(
        "{:name 1}",
        expect![[r#"
            E0403 a.edn:1:1 <{:name 1}> the flow has no `:slug`
              give it a short name that stays the same, such as `:slug :my-flow`
            E0403 a.edn:1:1 <{:name 1}> the definition has no `:flow`
              add the form to run, quoted: `:flow '(let [input (flow/input)] ...)`
            E0404 a.edn:1:8 <1> `:name` must be a string, not an integer
        "#]],
    );
}

#[test]
fn contracts_are_checked() {
    check(
        "{:slug :a :flow '1 :invocations {:default {:inputs [{:name :n :type :nubmer} {:name :n} {:type :text}]}}\n :interfaces {:manual [{:id :run :invocation :defalt}]}}",
        expect![[r#"
            E0408 a.edn:1:69 <:nubmer> unknown input type `:nubmer`
              did you mean `:number`?
              the types are `:any`, `:blob`, `:blob-ref`, `:boolean`, `:checkbox`, `:date`, `:datetime`, `:email`, `:file`, `:json`, `:list`, `:number`, `:password`, `:resource`, `:secret`, `:select`, `:string`, `:text`, `:textarea`, `:time`
            E0414 a.edn:1:78 <{:name :n}> there are two inputs `:n`
            E0408 a.edn:1:89 <{:type :text}> an input needs a `:name`
              for example `{:name :query :type :text :required true}`
            E0409 a.edn:2:46 <:defalt> there is no invocation `:defalt`
              did you mean `:default`?
        "#]],
    );
}

#[test]
fn step_calls_are_checked_without_running() {
    check(
        "{:slug :a :flow '(do (flow/step :htp :x {})\n (flow/step :http :x {:url \"u\" :metod :get})\n (flow/step :http {:url \"u\"})\n (flow/step :http :x)\n (flow/step :http :x {:method :gte})\n (flow/step :http :x {} 1 2)\n (flow/step :gh/pr {})\n '(flow/step :nope)\n (-> {:url \"u\"} (flow/step :http)))}",
        expect![[r#"
            E0431 a.edn:1:33 <:htp> unknown step type `:htp`
              did you mean `:http`?
            E0710 a.edn:2:32 <:metod> a `:http` step has no option `:metod`
              did you mean `:method`?
            E0433 a.edn:3:2 <(flow/step :http {:url "> the step has no id
              write it between type and config: `(flow/step :http :step-id {...})`
            E0432 a.edn:4:2 <(flow/step :http :x)> the step has no config
              write it as `(flow/step :http :step-id {...})`
            E0711 a.edn:5:22 <{:method :gte}> the `:http` step needs `:url`
              `:url`: Where to.
            E0712 a.edn:5:31 <:gte> `:method` of a `:http` step must be one of `:get`, `:post`, not :gte (a keyword)
              did you mean `:get`?
            E0430 a.edn:6:2 <(flow/step :http :x {} 1> `flow/step` takes a type, an id and a config, not 5 arguments
              write it as `(flow/step :type :step-id {...})`
            E0418 a.edn:7:13 <:gh/pr> there is no packaged step `:gh/pr` in `:steps`
              add it: `:steps [{:id :gh/pr :type :http ...}]`; built-in types have no namespace
        "#]],
    );
}

#[test]
fn function_steps_are_checked() {
    check(
        "{:slug :a :functions [{:id :double :code \"(fn [x] x)\"}]\n :flow '(do (flow/step :function :a {:ref :duble})\n (flow/step :code :b {})\n (flow/step :function :c {:code (fn [x] x)})\n (flow/step :function :d {:ref :double :code '(fn [x] x)}))}",
        expect![[r#"
            E0439 a.edn:2:43 <:duble> there is no function `:duble`
              did you mean `:double`?
            E0655 a.edn:3:13 <:code> the step type `:code` is an old name of `:function`
              write `:function`, which is the same step
            E0438 a.edn:3:22 <{}> the function step has neither `:code` nor `:ref`
              give the code, `:code '(fn [input] ...)`, or name one of `:functions`
            E0438 a.edn:4:33 <(fn [x] x)> `:code` must be quoted
              put a quote before it: `:code '(fn [input] ...)`
            E0438 a.edn:5:32 <:double> a function step takes `:code` or `:ref`, not both
        "#]],
    );
}

#[test]
fn files_can_include_others() {
    let (session, checked) = checked(&[
        (
            "main.edn",
            "{:slug :a :flow '(let [f #flow/include \"parts/f.clj\"] (f 1))}",
        ),
        ("parts/f.clj", "#flow/include \"./g.clj\""),
        ("parts/g.clj", "; a comment\n(fn [x] (inc x))"),
    ]);
    assert!(checked.findings.is_empty(), "{:?}", checked.findings);
    let loaded = checked.loaded.expect("a flow");
    drop(session);
    // The stored program is enough to read it again.
    let session = Session::new();
    let again = flow::reload(&session, &loaded.program);
    let again = again.loaded.expect("a flow");
    assert_eq!(again.program, loaded.program);
}

#[test]
fn a_stored_program_is_not_held_up_by_newer_rules_of_inputs() {
    let text = "{:slug :a :invocations {:default {:inputs [{:name :region :type :select :options [1]}]}} :flow '1}";
    let (_, checked) = checked(&[("main.edn", text)]);
    let mut program = checked.loaded.expect("a flow").program;
    program.source = program.source.replace(":options", ":choices");
    let again = flow::reload(&Session::new(), &program);
    let codes: Vec<&str> = again.findings.iter().map(|it| it.code).collect();
    assert_eq!((codes, again.loaded.is_some()), (vec!["E0408"], true));
}

#[test]
fn includes_stay_inside_and_do_not_circle() {
    findings(
        &[(
            "a.edn",
            "{:slug :a :flow '(do #flow/include \"../secret.clj\")}",
        )],
        expect![[r#"
            E0119 a.edn:1:22 <#flow/include "../secret> the form after `#flow/include` cannot be read: the path leaves the folder of the flow
        "#]],
    );
    findings(
        &[
            ("a.edn", "{:slug :a :flow '(do #flow/include \"b.clj\")}"),
            ("b.clj", "(do #flow/include \"b.clj\")"),
        ],
        expect![[r#"
            E0119 b.clj:1:5 <#flow/include "b.clj"> the form after `#flow/include` cannot be read: b.clj includes itself: b.clj
        "#]],
    );
    findings(
        &[
            ("a.edn", "{:slug :a :flow '(do #flow/include \"b.clj\")}"),
            ("b.clj", "(let [x 1]"),
        ],
        expect![[r#"
            E0101 b.clj:1:1 <(> `(` is never closed
              add `)` where the form should end
        "#]],
    );
}

#[test]
fn unreadable_and_empty_files_are_named() {
    check(
        "",
        expect![[r#"
        E0401 a.edn is empty
          a flow file holds one map with `:slug` and `:flow`, or one form
    "#]],
    );
    check(
        "{:slug :a :flow '(let [x 1}",
        expect![[r#"
        E0103 a.edn:1:27 <}> expected `]`, got `}`
          close the inner form with `]` first, or delete this `}`
    "#]],
    );
    check(
        "(defn f [] 1) (f)",
        expect![[r#"
        E0401 a.edn:1:15 <(f)> a flow file holds one form, and here is another
          put functions into `:functions`, or wrap the forms in `(do ...)`
    "#]],
    );
}

mod inputs {
    use super::*;
    use flowstone_engine::codec;
    use flowstone_flow::flow::coerce_input;

    fn coerce(contract: &str, given: &str) -> String {
        let text =
            format!("{{:slug :a :flow '1 :invocations {{:default {{:inputs {contract}}}}}}}");
        let (_, checked) = checked(&[("a.edn", &text)]);
        let flow = checked.loaded.expect("a flow").flow;
        let given = codec::decode(given).expect("EDN");
        match coerce_input(&flow, None, &given) {
            Ok(input) => codec::encode(&input).expect("data"),
            Err(error) => format!("{} {error}", error.code()),
        }
    }

    #[test]
    fn keys_become_keywords_and_values_take_their_types() {
        let contract = "[{:name :n :type :number} {:name :on :type :boolean} {:name :size :type :select :options [:s :l]} {:name :j :type :json} {:name :tag :default \"x\"}]";
        let given = r#"{"n" "42", "on" "true", "size" "l", "j" "{\"a\": [1]}", "more" 1}"#;
        expect![[r#"{:n 42 :on true :size :l :j {:a [1]} :more 1 :tag "x"}"#]]
            .assert_eq(&coerce(contract, given));
    }

    #[test]
    fn all_missing_inputs_are_named_at_once() {
        let contract =
            "[{:name :a :required true} {:name :b :required true} {:name :c :required true}]";
        expect!["E0420 missing required run inputs: a, c"]
            .assert_eq(&coerce(contract, r#"{:b "x" :c nil}"#));
    }

    #[test]
    fn wrong_types_are_refused() {
        let one = |type_: &str, given: &str| {
            coerce(
                &format!("[{{:name :a :type {type_} :options [\"x\" \"y\"]}}]"),
                &format!("{{:a {given}}}"),
            )
        };
        expect!["E0421 the input `a` must be a number, not \"abc\" (a string)"]
            .assert_eq(&one(":number", "\"abc\""));
        expect!["E0421 the input `a` must be a string, not 5 (an integer)"]
            .assert_eq(&one(":text", "5"));
        expect!["E0421 the input `a` must be one of x, y, not \"z\" (a string)"]
            .assert_eq(&one(":select", "\"z\""));
        expect![
            "E0421 the input `a` must be a date such as 2026-01-31, not \"2026-13-01\" (a string)"
        ]
        .assert_eq(&one(":date", "\"2026-13-01\""));
        expect!["E0423 the input must be a map, not a vector"].assert_eq(&coerce("[]", "[1]"));
    }
}

#[test]
fn lazy_sequences_that_leave_a_binding_are_warned_of() {
    let check = |body: &str| {
        let text = format!(
            "(do (def ^:dynamic *rate* 1) (def ^:dynamic *f* inc) (def xs [1 2])
               (defn scaled [x] (* *rate* x)) (defn twice [x] (scaled (scaled x)))
               (defn harmless [x] '*rate* (inc x))
               (binding [*rate* 3, *f* dec] {body}))"
        );
        let (session, checked) = checked(&[("a.clj", &text)]);
        let sources = session.world().sources.borrow();
        let found = checked.findings.iter().map(|finding| {
            let source = sources.get(finding.span.source).expect("a source");
            let range = finding.span.start as usize..finding.span.end as usize;
            format!("{} {}", finding.code, &source.text[range])
        });
        found.collect::<Vec<_>>().join("\n")
    };
    for (body, part) in [
        ("(map #(* *rate* %) xs)", "(map #(* *rate* %) xs)"),
        ("(map scaled xs)", "(map scaled xs)"),
        (
            "(let [a 1] (filter (fn [x] (twice x)) xs))",
            "(filter (fn [x] (twice x)) xs)",
        ),
        ("(for [x xs] (* *rate* x))", "(for [x xs] (* *rate* x))"),
        ("(for [x xs :when *rate*] x)", "(for [x xs :when *rate*] x)"),
        ("(lazy-seq [*rate*])", "(lazy-seq [*rate*])"),
        ("(->> xs (map scaled) (remove nil?))", "(map scaled)"),
        (
            "(if (seq xs) (take 2 (keep twice xs)) nil)",
            "(keep twice xs)",
        ),
        (
            "(cond (seq xs) [] :else (map inc (map scaled xs)))",
            "(map scaled xs)",
        ),
        (
            "(repeatedly 2 (fn [] *rate*))",
            "(repeatedly 2 (fn [] *rate*))",
        ),
    ] {
        assert_eq!(check(body), format!("E0445 {part}"), "{body}");
    }
    for body in [
        "(doall (map scaled xs))",
        "(mapv scaled xs)",
        "(into [] (map scaled) xs)",
        "(reduce + (map scaled xs))",
        "(map scaled)",
        "(map (partial + *rate*) [*rate*])",
        "(map *f* xs)",
        "(map harmless xs)",
        "(map inc xs)",
        "(let [rate *rate*] (map #(* rate %) xs))",
        "(for [x (range *rate*)] x)",
        "(map (fn [x] (binding [*rate* 1] (scaled x))) xs)",
        "(do (map scaled xs) 1)",
        "(->> xs (map scaled) vec (map inc))",
        "'(map scaled xs)",
        "(comment (map scaled xs))",
    ] {
        assert_eq!(check(body), "", "{body}");
    }
}

#[test]
fn keys_of_approval_beside_it_are_explained() {
    check(
        "{:slug :a :flow '(flow/step :agent :b {:objective \"Go.\" :resume :in-place})}",
        expect![[r#"
            E0710 a.edn:1:57 <:resume> a `:agent` step has no option `:resume`
              `:resume` is a key of `:approval`: write `:approval {:resume ...}`
        "#]],
    );
}

#[test]
fn a_wrong_key_that_several_readers_read_is_reported_once() {
    check(
        "{:slug :a :triggers 5 :flow '1}",
        expect![[r#"
            E0404 a.edn:1:21 <5> `:triggers` must be a vector of maps, not an integer
        "#]],
    );
}
