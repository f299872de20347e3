//! The rows of `tests/coverage/definition.tsv` on the file of a flow, its keys, and the inputs of its runs.

use flowstone_engine::codec;
use flowstone_engine::json::from_json;
use flowstone_lang::value::Value;
use serde_json::json;

use crate::net::contains;
use crate::project::{Project, shown};

/// Returns the errors of a flow file, each as a code with its text.
fn errors(text: &str) -> String {
    Project::new().errors(text)
}

/// Returns the errors of a definition with these keys besides `:slug` and `:flow`.
fn with(keys: &str) -> String {
    errors(&format!("{{:slug :a {keys} :flow '1}}"))
}

#[track_caller]
fn refused(keys: &str, code: &str) {
    let found = with(keys);
    assert!(found.starts_with(code), "{keys}: {found}");
}

#[track_caller]
fn accepted(keys: &str) {
    assert_eq!(with(keys), "", "{keys}");
}

/// Runs a flow file with an input.
fn run_on(text: &str, input: Value) -> String {
    shown(Project::new().run_on(text, input))
}

#[test]
fn one_form_a_file() {
    contains(&errors("{:slug :a :flow '1} {:x 1}"), "E0401");
    contains(&errors("(def a 1) {:slug :a :flow '1}"), "E0401");
    contains(&errors(""), "E0401");
    assert_eq!(errors("; a comment\n{:slug :a :flow '1}\n#_ rest"), "");
}

#[test]
fn slug() {
    for good in [":a", "\"a\"", ":A-b_9"] {
        assert_eq!(errors(&format!("{{:slug {good} :flow '1}}")), "", "{good}");
    }
    let long = format!(":a{}", "b".repeat(128));
    for bad in [":a/b", "\"9a\"", "\"a b\"", "\"\"", "5", &long] {
        let found = errors(&format!("{{:slug {bad} :flow '1}}"));
        contains(&found, "E0405 this cannot be a slug");
    }
    contains(&errors("{:flow '1}"), "E0403 the flow has no `:slug`");
}

#[test]
fn reader_syntax() {
    let body = r#"(do #_ignored ^{:a 1} [] #^{:b 2} []
        [#"a+" \" \, (#(inc %) 1) (deref #'clojure.core/inc) #{1} (= ##Inf (- ##-Inf)) (not= ##NaN ##NaN)
         #inst "2026-01-02T03:04:05Z" #uuid "123e4567-e89b-12d3-a456-426614174000"
         #?(:clj :jvm :default :other) #?@(:default [1 2]) 'a `(b ~(inc 1))])"#;
    let shown = format!("{{:slug :a :flow '(str (nth {body} 3) (count {body}))}}");
    assert_eq!(Project::new().eval(&shown), "\"215\"");
}

#[test]
fn unknown_tags() {
    contains(
        &errors("{:slug :a :flow '(do #my/tag 1)}"),
        "E0119 no reader is known for `#my/tag`",
    );
}

#[test]
fn namespaced_maps() {
    assert_eq!(
        Project::new().eval("{:slug :a :flow '(:b/c #:b{:c 1})}"),
        "1"
    );
}

#[test]
fn quoted_flow() {
    for flow in [
        "'(+ 1 2)",
        "(quote (+ 1 2))",
        "^{:label \"x\"} '(+ 1 2)",
        "#?(:clj '(+ 1 2))",
        "#?(:cljs 5 :default '(+ 1 2))",
    ] {
        let text = format!("{{:slug :a :flow {flow}}}");
        assert_eq!(Project::new().eval(&text), "3", "{flow}");
    }
    contains(&errors("{:slug :a :flow (+ 1 2)}"), "E0406");
    contains(&errors("{:slug :a}"), "E0403 the definition has no `:flow`");
}

const SCAFFOLD: &str = r#"{:slug :my-flow
 :name "My Flow"
 :description "..."
 :tags ["draft"]
 :concurrency {:type :singleton :on-new-version :supersede}
 :requires nil
 :templates nil
 :functions nil
 :steps []
 :invocations {:default {:label "Run" :inputs []}}
 :interfaces {:manual [{:id :run :label "Run" :invocation :default}]}
 :schedules []
 :flow '(let [input (flow/input)] (dissoc input :flow/ctx))}"#;

#[test]
fn the_scaffold() {
    let project = Project::new();
    assert_eq!(project.check(SCAFFOLD), "");
    assert_eq!(project.eval(SCAFFOLD), "{}");
}

#[test]
fn nil_for_optional_keys() {
    accepted(
        ":name nil :description nil :icon nil :tags nil :requires nil :invocations nil :interfaces nil \
         :schedules nil :triggers nil :templates nil :functions nil :steps nil :agents nil :mcp nil \
         :llm-providers nil :discover nil :marketplace nil :publish-media nil :deploy-key-required nil",
    );
    contains(
        &with(":concurrency nil"),
        "E0404 `:concurrency` must be a map, not nil",
    );
}

#[test]
fn name_and_description() {
    accepted(":name \"A name\" :description \"Some *text*.\"");
    refused(":name 5", "E0404 `:name` must be a string");
    refused(":description :x", "E0404 `:description` must be a string");
    let loaded = Project::new().load("{:slug :a :name \"A name\" :description \"Text\" :flow '1}");
    assert_eq!(loaded.flow.name.as_deref(), Some("A name"));
    assert_eq!(loaded.flow.description.as_deref(), Some("Text"));
}

/// Settings that a hosted product shows or sells are accepted and have no effect.
#[test]
fn keys_of_a_hosted_product() {
    accepted(
        ":icon :workflow :tags [:end-user \"draft\"] :deploy-key-required true :discover {:public true} \
         :marketplace {:visible true :app {:app-id \"x\" :monetization {:plans [{:type :subscription :interval :month}]}}} \
         :publish-media {:image {:url \"https://example.com/a.png\"}}",
    );
}

#[test]
fn unknown_keys() {
    contains(&with(":functons []"), "E0402 unknown key `:functons`");
    accepted(":doc/flow \"x\" :custom/steps 1");
}

#[test]
fn concurrency() {
    for good in [
        "{:type :singleton :on-new-version :supersede}",
        "{:type \"singleton\" :on-new-version \"drain\"}",
        "{:type :keyed :key-field :user-id :on-new-version :drain}",
        "{:type :keyed :key-field [:event :id] :on-new-version :coexist}",
    ] {
        accepted(&format!(":concurrency {good}"));
    }
    for (bad, code) in [
        (":singleton", "E0404"),
        ("{:type :single}", "E0404"),
        ("{:type :singleton :on-new-version :replace}", "E0404"),
        (
            "{:type :keyed}",
            "E0404 `:concurrency {:type :keyed}` needs a `:key-field`",
        ),
        ("{:type :singleton :key-field :x}", "E0456"),
        ("{:type :keyed :key-field (str :a)}", "E0456"),
        ("{:typ :singleton}", "E0456"),
    ] {
        contains(&with(&format!(":concurrency {bad}")), code);
    }
}

#[test]
fn keyed_schedules_give_the_key() {
    let text = |input: &str| {
        format!(
            ":concurrency {{:type :keyed :key-field :user}} :invocations {{:default {{:inputs [{{:name :user}}]}}}} \
             :schedules [{{:id :s :invocation :default :cron \"0 9 * * *\" {input}}}]"
        )
    };
    contains(
        &with(&text("")),
        "E0458 the input of the schedule has no `:user`",
    );
    accepted(&text(":input {:user \"ada\"}"));
}

#[test]
fn keyed_triggers_give_the_key() {
    let text = |input: &str| {
        format!(
            ":concurrency {{:type :keyed :key-field :user}} \
             :triggers [{{:type :manual :config {{:fields [{{:name :user}}]}}}} \
             {{:type :schedule :config {{:cron \"0 9 * * *\" {input}}}}}]"
        )
    };
    contains(
        &with(&text("")),
        "E0458 the input of the schedule has no `:user`",
    );
    accepted(&text(":input {:user \"ada\"}"));
}

#[test]
fn triggers_beside_invocations_need_a_type() {
    refused(
        ":invocations {:default {}} :triggers [{:label \"x\"}]",
        "E0409 an entry of `:triggers` needs a `:type`",
    );
}

#[test]
fn defaults_of_inputs_have_the_type_of_the_input() {
    let input = |keys: &str| format!(":invocations {{:default {{:inputs [{{:name :n {keys}}}]}}}}");
    refused(
        &input(":type :number :default \"x\""),
        "E0408 the `:default` of the input `:n` must be a number, not",
    );
    refused(&input(":type :select :options [:a] :default :b"), "E0408");
    refused(
        &input(":type :number :multiple true :default [1 \"x\"]"),
        "E0408",
    );
    accepted(&input(":type :number :default 5"));
    accepted(&input(":type :select :options [:a] :default :a"));
    accepted(&input(":type :text :default \"\""));
    let text = "{:slug :a :invocations {:default {:inputs [{:name :n :type :number :default \"5\"}]}} \
                :flow '(:n (flow/input))}";
    assert_eq!(run_on(text, Value::Nil), "5");
}

#[test]
fn levels_of_the_log_are_known() {
    contains(
        &errors("{:slug :a :flow '(flow/log :loud \"x\")}"),
        "E0710 `flow/log` has no level `:loud`",
    );
    // Only literals are checked: a run that logged another level is replayed as it was.
    let computed = "{:slug :a :flow '(flow/log (keyword \"loud\") \"x\")}";
    assert_eq!(errors(computed), "");
    assert_eq!(errors("{:slug :a :flow '(flow/log \"warn\" \"x\")}"), "");
}

#[test]
fn invocation_shapes() {
    for (bad, code) in [
        ("[]", "E0407 `:invocations` must be a map"),
        ("{:a/b {}}", "E0407 the id of an invocation"),
        ("{\"a\" {}}", "E0407 the id of an invocation"),
        ("{:a []}", "E0407 the invocation `:a` must be a map"),
        (
            "{:a {:inputs {}}}",
            "E0408 `:inputs` must be a vector of maps",
        ),
        ("{:a {:inputs [1]}}", "E0408 an input must be a map"),
        (
            "{:a {:inputs [{:type :text}]}}",
            "E0408 an input needs a `:name`",
        ),
        (
            "{:a {:inputs [{:name \"9x\"}]}}",
            "E0408 `9x` cannot name an input",
        ),
        (
            "{:a {:inputs [{:name :x} {:name \"x\"}]}}",
            "E0414 there are two inputs `:x`",
        ),
        (
            "{:a {:inputs [{:name :x :type :nubmer}]}}",
            "E0408 unknown input type `:nubmer`",
        ),
    ] {
        contains(&with(&format!(":invocations {bad}")), code);
    }
    accepted(
        ":invocations {:default {:label \"Run\" :inputs [{:name \"q\" :type \"text\"}]} :b_2 {}}",
    );
}

/// Runs a flow that returns its input `:x`, declared with this type and these keys.
fn input(type_: &str, given: &str) -> String {
    let text = format!(
        "{{:slug :a :invocations {{:default {{:inputs [{{:name :x :type {type_}}}]}}}} :flow '(:x (flow/input))}}"
    );
    let given = codec::decode(given).expect("EDN");
    run_on(&text, Value::map([(Value::keyword("x"), given)]))
}

#[test]
fn text_inputs() {
    assert_eq!(
        input(":email", "\"ada@example.com\""),
        "\"ada@example.com\""
    );
    contains(
        &input(":email", "\"ada\""),
        "engine: the input `x` must be ",
    );
    for (type_, shown) in [
        ("string", "lovelace"),
        ("text", "lovelace"),
        ("password", "[secret]"),
        ("textarea", "lovelace"),
        ("secret", "[secret]"),
    ] {
        let found = input(&format!(":{type_}"), "\"lovelace\"");
        assert_eq!(found, format!("\"{shown}\""), "{type_}");
        contains(
            &input(&format!(":{type_}"), "5"),
            "engine: the input `x` must be ",
        );
    }
}

#[test]
fn number_inputs() {
    assert_eq!(input(":number", "\"42\""), "42");
    assert_eq!(input(":number", "1.5"), "1.5");
    contains(&input(":number", "\"x\""), "engine: the input `x` must be ");
}

#[test]
fn flag_inputs() {
    for type_ in [":boolean", ":checkbox"] {
        assert_eq!(input(type_, "\"true\""), "true");
        assert_eq!(input(type_, "false"), "false");
        contains(
            &input(type_, "\"perhaps\""),
            "engine: the input `x` must be ",
        );
    }
}

#[test]
fn choice_inputs() {
    assert_eq!(
        input(":select :options [\"EU\" \"US\"]", "\"US\""),
        "\"US\""
    );
    contains(
        &input(":select :options [\"EU\" \"US\"]", "\"XX\""),
        "engine: the input `x` must be ",
    );
}

#[test]
fn time_inputs() {
    assert_eq!(input(":date", "\"2026-01-31\""), "\"2026-01-31\"");
    contains(
        &input(":date", "\"2026-02-31\""),
        "engine: the input `x` must be ",
    );
    assert_eq!(input(":time", "\"09:30\""), "\"09:30\"");
    contains(
        &input(":time", "\"25:00\""),
        "engine: the input `x` must be ",
    );
    assert_eq!(
        input(":datetime", "\"2026-01-31T09:30:00Z\""),
        "\"2026-01-31T09:30:00Z\""
    );
    assert_eq!(
        input(":datetime", "\"2026-01-31 09:30+02:00\""),
        "\"2026-01-31 09:30+02:00\""
    );
    contains(
        &input(":datetime", "\"2026-01-31T09:30+soon\""),
        "engine: the input `x` must be ",
    );
    contains(
        &input(":datetime", "\"soon\""),
        "engine: the input `x` must be ",
    );
}

#[test]
fn json_inputs() {
    assert_eq!(input(":json", "\"{\\\"a\\\": [1]}\""), "{:a [1]}");
    assert_eq!(input(":json", "[1 2]"), "[1 2]");
}

#[test]
fn references_as_inputs() {
    let uri = "\"res://v1/ws/local/file/f1\"";
    for type_ in [":file", ":blob", ":blob-ref", ":resource"] {
        let given = format!("{{:type :resource-ref :uri {uri}}}");
        contains(&input(type_, &given), "res://v1/ws/local/file/f1");
        for bad in ["5", "\"nothing\"", "{:name \"x\"}"] {
            contains(&input(type_, bad), "engine: the input `x` must be ");
        }
    }
}

#[test]
fn required_inputs() {
    let text = "{:slug :a :invocations {:default {:inputs [{:name :a :required true} {:name :b :required true}]}} :flow '1}";
    contains(
        &run_on(text, Value::map([])),
        "engine: missing required run inputs: a, b",
    );
}

#[test]
fn default_inputs() {
    assert_eq!(input(":text :default \"me\"", "nil"), "\"me\"");
    assert_eq!(input(":text :default \"me\"", "\"you\""), "\"you\"");
}

#[test]
fn keys_of_inputs() {
    accepted(
        ":invocations {:default {:inputs [{:name :x :type :text :label \"X\" :description \"It\" :multiple true}]}}",
    );
    refused(
        ":invocations {:default {:inputs [{:name :x :label 5}]}}",
        "E0404",
    );
}

#[test]
fn keys_from_json_are_keywords() {
    let input = from_json(&json!({"user": {"firstName": "Ada"}}));
    assert_eq!(
        run_on(
            "(let [{:keys [user]} (flow/input)] (:firstName user))",
            input
        ),
        "\"Ada\""
    );
}

#[test]
fn activation_in_the_input() {
    let input = from_json(&json!({"activation": {"region": "EU"}}));
    assert_eq!(
        run_on("(:region (:activation (flow/input)))", input),
        "\"EU\""
    );
}
