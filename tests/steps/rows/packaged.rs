//! The rows of `tests/coverage/packaged.tsv`.

use flowstone_flow::packaged;

use crate::project::Project;

/// Returns a flow with one packaged step, and a body.
fn flow(entry: &str, body: &str) -> String {
    format!(
        "{{:slug :packed :concurrency {{:type :singleton :on-new-version :coexist}}
          :functions [{{:id :prep :language :clojure :code \"(fn [{{:keys [n]}}] {{:input {{:n (* 10 n)}}}})\"}}
                      {{:id :text :language :clojure :code \"(fn [input] (str input))\"}}
                      {{:id :fail :language :clojure :code \"(fn [input] (throw (ex-info \\\"no luck\\\" {{:why 7}})))\"}}
                      {{:id :proj :language :clojure :code \"(fn [result] {{:total (:n result)}})\"}}]
          :steps [{entry}]
          :flow '{body}}}"
    )
}

/// Checks a flow, and runs it if there are no findings.
fn done(entry: &str, body: &str) -> String {
    let project = Project::new();
    let text = flow(entry, body);
    let findings = project.check(&text);
    match findings.is_empty() {
        true => project.eval(&text),
        false => findings,
    }
}

#[track_caller]
fn each(cases: &[(&str, &str, &str)]) {
    for (entry, body, expected) in cases {
        assert_eq!(done(entry, body), *expected, "{entry}\n{body}");
    }
}

const ADD: &str = "{:id :math/add :type :function :input-schema [:map [:n :int] [:by {:optional true :default 1} :int]]
  :defaults {:code '(fn [{:keys [n by]}] {:n (+ n by)})}}";

#[test]
fn id() {
    each(&[
        (ADD, "(flow/step :math/add {:n 2})", "{:n 3}"),
        (
            "{:id :my.own_tools-2/do-it :type :function :defaults {:code '(fn [i] (select-keys i [:a :n :x]))}}",
            "(flow/step :my.own_tools-2/do-it {:a 1})",
            "{:a 1}",
        ),
        (
            "{:id \"a/b\" :type :function :defaults {:code '(fn [i] (select-keys i [:a :n :x]))}}",
            "(flow/step :a/b {})",
            "{}",
        ),
        (
            "{:id :add :type :function}",
            "1",
            "E0422 `:add` cannot be the `:id` of a packaged step | it is a keyword with a namespace, both of letters, \
             digits, `-` and `_`: `:github/open-pr`",
        ),
        (
            "{:type :function}",
            "1",
            "E0422 an entry of `:steps` needs an `:id` | a keyword with a namespace, such as `:id :github/open-pr`",
        ),
        (
            "{:id :a/b :type :function} {:id :a/b :type :http}",
            "(flow/step :a/b {})",
            "E0414 there are two packaged steps `:a/b`",
        ),
        (
            "{:id :a/b :type :function :prepair :x}",
            "(flow/step :a/b {})",
            "E0422 a packaged step has no key `:prepair` | did you mean `:prepare`?",
        ),
    ]);
}

#[test]
fn type_() {
    each(&[
        (
            "{:id :time/nap :type :sleep :defaults {:millis 1}}",
            "(flow/step :time/nap {})",
            "{:slept-seconds 0.001}",
        ),
        (
            "{:id :keep/it :type :kv :defaults {:operation :set} :prepare '(fn [{:keys [k v]}] {:key k :value v})}",
            "[(flow/step :keep/it {:k \"a\" :v [1]}) (flow/step :kv :get {:operation :get :key \"a\"})]",
            "[{:success true :key \"a\" :created? true} {:success true :value [1] :exists? true}]",
        ),
        (
            "{:id :old/code :type :code :defaults {:code '(fn [i] (inc (:n i)))}}",
            "(flow/step :old/code {:n 1})",
            "2",
        ),
        (
            "{:id :a/b :type :functon}",
            "(flow/step :a/b {})",
            "E0422 `:a/b` wraps `:functon`, which is not a step type | did you mean `:function`?",
        ),
        (
            "{:id :a/b}",
            "(flow/step :a/b {})",
            "E0422 the packaged step `:a/b` needs a `:type` | the type of the step that it wraps, such as `:type :http`",
        ),
        (
            "{:id :a/b :type :c/d}",
            "1",
            "E0422 `:a/b` wraps `:c/d`, but only a built-in step can be wrapped",
        ),
        (
            "{:id :a/b :type :fanout}",
            "(flow/step :a/b {})",
            "E0422 `:a/b` wraps a `:fanout`, which works only in a flow's body | call the packaged step itself with flow/pmap",
        ),
    ]);
}

#[test]
fn description() {
    let project = Project::new();
    let described = |entry: &str| {
        let loaded = project.load(&flow(entry, "1"));
        packaged::tools(&loaded.flow)[0].description.clone()
    };
    assert_eq!(
        described("{:id :a/b :type :function :description \"Adds.\"}"),
        "Adds."
    );
    assert_eq!(
        described("{:id :a/b :type :function}"),
        "Performs a `function` step."
    );
    assert_eq!(
        done(
            "{:id :a/b :type :function :description 5}",
            "(flow/step :a/b {})"
        ),
        "E0404 `:description` must be a string, not an integer"
    );
}

#[test]
fn input_schema() {
    each(&[
        (ADD, "(flow/step :math/add {:n 2 :by 40})", "{:n 42}"),
        // A computed input is checked when its value is known.
        (
            ADD,
            "(let [n (str 5)] (flow/step :math/add {:n n}))",
            "E0552 the input of `:math/add` does not match its `:input-schema`: at [:n]: should be an integer, but is \
             \"5\" (a string) | its input is [:map [:n :int] [:by {:optional true, :default 1} :int]]",
        ),
        (
            ADD,
            "(try (flow/step :math/add {:n (str 5)}) (catch Exception e (dissoc (first (:errors (ex-data e))) :message)))",
            "{:in [:n] :path [:n] :schema :int}",
        ),
        (
            ADD,
            "(try (flow/step :math/add {:n (str 5)}) (catch Exception e (select-keys (ex-data e) [:packaged :path :kind])))",
            "{:packaged :math/add :path \"add\" :kind :invalid}",
        ),
        // A literal input is checked before anything runs.
        (
            ADD,
            "(flow/step :math/add {:n \"5\" :by (count [])})",
            "E0425 the input of `:math/add`: at [:n]: should be an integer, but is \"5\" (a string) | its input is \
             [:map [:n :int] [:by {:optional true, :default 1} :int]]",
        ),
        (
            ADD,
            "(flow/step :math/add {})",
            "E0425 the input of `:math/add`: :n is missing | its input is [:map [:n :int] [:by {:optional true, \
             :default 1} :int]]",
        ),
        (
            "{:id :a/b :type :function :input-schema [:map [:n :integer]]}",
            "(flow/step :a/b {:n 1})",
            "E0424 `:input-schema` is not a valid schema: `integer` is not a schema type | a Malli form, such as `[:map [:owner \
             :string]]`",
        ),
        (
            "{:id :a/b :type :function :defaults {:code '(fn [i] (select-keys i [:a :n :x]))} :input-schema [:map [:n [:fn '(fn [n] (odd? n))]]]}",
            "[(flow/step :a/b {:n 1}) (:kind (ex-data (try (flow/step :a/b {:n (count [])}) (catch Exception e e))))]",
            "[{:n 1} :invalid]",
        ),
    ]);
}

#[test]
fn output_schema() {
    let out = |schema: &str| {
        format!(
            "{{:id :a/b :type :function :defaults {{:code '(fn [i] (select-keys i [:a :n :x]))}} :output-schema {schema}}}"
        )
    };
    each(&[
        (
            &out("[:map [:n :int]]"),
            "(flow/step :a/b {:n 1})",
            "{:n 1}",
        ),
        (
            &out("[:map [:n :string]]"),
            "(flow/step :a/b {:n 1})",
            "E0554 the result of `:a/b` does not match its `:output-schema`: at [:n]: should be a string, but is 1 \
             (an integer) | `:project-result` computes the result from the value of the wrapped step",
        ),
        (
            &out("[:map [:n]]"),
            "(flow/step :a/b {:n 1})",
            "E0424 `:output-schema` is not a valid schema: [:n] is not a schema: an entry of `:map` is written `[:key :type]` \
             or `[:key {:optional true} :type]` | a Malli form, such as `[:map [:owner :string]]`",
        ),
    ]);
}

#[test]
fn defaults() {
    each(&[
        // A prepared field wins over an input.
        (
            "{:id :a/b :type :function :defaults {:code '(fn [i] (select-keys i [:a :n :x])) :input {:n 1}} :prepare '(fn [i] (if (:x i) {:input i} {}))}",
            "[(flow/step :a/b {}) (flow/step :a/b {:x 2})]",
            "[{:n 1} {:x 2}]",
        ),
        (
            "{:id :a/b :type :function :defaults {:code '(fn [i] (select-keys i [:a :n :x])) :inputt {}}}",
            "(flow/step :a/b {})",
            "E0710 `:defaults` of `:a/b`: a `:function` step has no option `:inputt` | did you mean `:input`?",
        ),
        (
            "{:id :a/b :type :function :defaults [1]}",
            "(flow/step :a/b {})",
            "E0422 `:defaults` must be a map, not a vector",
        ),
        // The common options of a packaged step are those of the wrapped step.
        (
            "{:id :a/b :type :function :defaults {:code '(fn [i] (throw (ex-info \"x\" {}))) :on-error :skip} :project-result :proj}",
            "[(flow/step :a/b {})]",
            "[nil]",
        ),
        (
            "{:id :a/b :type :function :defaults {:code '(fn [i] (select-keys i [:a :n :x])) :expect {:equals {:n 2}}}}",
            "(:kind (ex-data (try (flow/step :a/b {:n 1}) (catch Exception e e))))",
            ":expectation-failed",
        ),
        (
            "{:id :a/b :type :function :defaults {:code '(fn [i] (select-keys i [:a :n :x])) :persist {:type :kv :key \"kept\"}}}",
            "(do (flow/step :a/b {:n 1}) (:value (flow/step :kv :get {:operation :get :key \"kept\"})))",
            "{:n 1}",
        ),
        (
            "{:id :a/b :type :function :defaults {:code '(fn [i] (select-keys i [:a :n :x])) :confirm true}}",
            "(flow/step :a/b {:n 1})",
            "waiting: `b` waits for an answer 1",
        ),
    ]);
}

#[test]
fn prepare() {
    each(&[
        (
            "{:id :a/b :type :function :defaults {:code '(fn [i] (select-keys i [:a :n :x]))} :prepare :prep}",
            "(flow/step :a/b {:n 4})",
            "{:n 40}",
        ),
        (
            "{:id :a/b :type :function :prepare :text}",
            "(flow/step :a/b {:n 4})",
            "E0553 `:prepare` of `:a/b` gives a string, not the config of a `:function` step | it takes the input and \
             returns a map of the wrapped step's options",
        ),
        (
            "{:id :a/b :type :function :prepare :fail}",
            "(flow/step :a/b {:n 4})",
            "E0701 `:prepare` of `:a/b` failed: no luck",
        ),
        (
            "{:id :a/b :type :function :prepare :pre}",
            "(flow/step :a/b {:n 4})",
            "E0427 there is no function `:pre` | did you mean `:prep`? | `:prepare` names one of the flow's `:functions`",
        ),
        (
            "{:id :a/b :type :function :prepare 3}",
            "(flow/step :a/b {:n 4})",
            "E0427 `:prepare` is the id of a function, not an integer | name one of the flow's `:functions`: `:prepare \
             :my-function`",
        ),
        (
            "{:id :a/b :type :sleep :prepare '(fn [i] {:secs 1})}",
            "(flow/step :a/b {})",
            "E0710 `:a/b`: a `:sleep` step has no option `:secs` | its options are `:duration`, `:millis`, `:seconds`",
        ),
    ]);
}

#[test]
fn project_result() {
    each(&[
        (
            "{:id :a/b :type :function :defaults {:code '(fn [i] (select-keys i [:a :n :x]))} :project-result :proj}",
            "(flow/step :a/b {:n 4})",
            "{:total 4}",
        ),
        (
            "{:id :a/b :type :function :defaults {:code '(fn [i] (select-keys i [:a :n :x]))} :project-result :fail}",
            "(flow/step :a/b {:n 4})",
            "E0701 `:project-result` of `:a/b` failed: no luck",
        ),
        (
            "{:id :a/b :type :function :defaults {:code '(fn [i] (select-keys i [:a :n :x]))} :project-result :fail}",
            "(select-keys (ex-data (try (flow/step :a/b {}) (catch Exception e e))) [:why :packaged])",
            "{:why 7 :packaged :a/b}",
        ),
        (
            "{:id :a/b :type :function :project-result :prok}",
            "(flow/step :a/b {:n 4})",
            "E0427 there is no function `:prok` | did you mean `:proj`? | `:project-result` names one of the \
             flow's `:functions`",
        ),
    ]);
}

#[test]
fn tool() {
    let project = Project::new();
    let loaded = project.load(&flow(
        "{:id :github/open-pr :type :http :description \"d\" :tool {:name \"open_pr\" :description \"Opens it.\"}
          :input-schema [:map [:owner {:description \"Whose.\"} :string] [:draft {:optional true} :boolean]]}",
        "1",
    ));
    let tools = packaged::tools(&loaded.flow);
    assert_eq!(&*tools[0].name, "open_pr");
    assert_eq!(tools[0].description, "Opens it.");
    assert_eq!(
        tools[0].parameters,
        serde_json::json!({
            "type": "object",
            "properties": {"owner": {"type": "string", "description": "Whose."}, "draft": {"type": "boolean"}},
            "required": ["owner"],
            "additionalProperties": false,
        })
    );
    let found = packaged::by_tool(&loaded.flow, "open_pr");
    assert_eq!(found.map(|step| &*step.id), Some("github/open-pr"));
    each(&[
        (
            "{:id :a/b :type :http :tool {:name \"a b\"}}",
            "(flow/step :a/b {:url \"u\"})",
            "E0422 this cannot be the name of a tool | models take up to 64 letters, digits, `_` and `-`",
        ),
        (
            "{:id :a/b :type :http :tool {:nam \"b\"}}",
            "(flow/step :a/b {:url \"u\"})",
            "E0422 `:tool` has no key `:nam` | did you mean `:name`?",
        ),
        (
            "{:id :a/b :type :http} {:id :a-b/c :type :http :tool {:name \"a_b\"}}",
            "[(flow/step :a/b {:url \"u\"}) (flow/step :a-b/c {:url \"u\"})]",
            "E0422 `:a/b` and `:a-b/c` are the same tool `a_b` | give one of them another name: `:tool {:name \"...\"}`",
        ),
    ]);
}

#[test]
fn tool_name_without_tool() {
    let project = Project::new();
    let loaded = project.load(&flow("{:id :my.github/open-pr :type :http}", "1"));
    assert_eq!(&*packaged::tools(&loaded.flow)[0].name, "my_github_open_pr");
}

#[test]
fn order_of_execution() {
    let entry = "{:id :a/b :type :function
        :input-schema [:map [:n {:default 5} :int]]
        :prepare '(fn [{:keys [n]}] {:input {:trace [[:prepared n]]}})
        :defaults {:input {:trace [:lost]} :code '(fn [{:keys [trace]}] {:trace (conj trace :ran)})}
        :project-result '(fn [{:keys [trace]}] {:trace (conj trace :projected)})
        :output-schema [:map [:trace [:tuple [:tuple [:= :prepared] [:= 5]] [:= :ran] [:= :projected]]]]}";
    each(&[(
        entry,
        "(flow/step :a/b {})",
        "{:trace [[:prepared 5] :ran :projected]}",
    )]);
}

#[test]
fn implicit_step_id() {
    each(&[
        (
            ADD,
            "(:path (ex-data (try (do (flow/step :math/add {:n 1}) (flow/step :math/add {:n :x})) (catch Exception e e))))",
            "E0425 the input of `:math/add`: at [:n]: should be an integer, but is :x (a keyword) | its input is [:map [:n \
             :int] [:by {:optional true, :default 1} :int]]",
        ),
        (
            ADD,
            "(:path (ex-data (try (do (flow/step :math/add {:n 1}) (flow/step :math/add {:n (keyword \"x\")})) (catch \
             Exception e e))))",
            "\"add#2\"",
        ),
        (
            ADD,
            "(flow/step :math/add)",
            "E0432 the packaged step `:math/add` has no input | write it as `(flow/step :math/add {...})`",
        ),
        (
            ADD,
            "(flow/step :math/add 5)",
            "E0432 the input of `:math/add` must be a map, not an integer",
        ),
        (
            ADD,
            "(mapv (fn [n] (:n (flow/step :math/add {:n n}))) [1 2 3])",
            "[2 3 4]",
        ),
        (
            ADD,
            "(flow/pmap (fn [n] (:n (flow/step :math/add {:n n}))) [1 2 3])",
            "[2 3 4]",
        ),
        (
            ADD,
            "(flow/step :fanout :all {:items [{:type :math/add :n 1} {:type :math/add :n 2}]})",
            "[{:n 2} {:n 3}]",
        ),
    ]);
}

#[test]
fn explicit_step_id() {
    each(&[
        (ADD, "(flow/step :math/add :sum {:n 1})", "{:n 2}"),
        (
            ADD,
            "(:path (ex-data (try (flow/step :math/add :sum {:n (keyword \"x\")}) (catch Exception e e))))",
            "\"sum\"",
        ),
        (
            ADD,
            "(flow/step :math/add 7 {:n 1})",
            "E0433 a step id is a keyword, not an integer",
        ),
    ]);
}

#[test]
fn missing_packaged_step_reference() {
    each(&[
        (
            ADD,
            "[(flow/step :math/add {:n 1}) (flow/step :math/ad {:n 1})]",
            "E0418 there is no packaged step `:math/ad` in `:steps` | did you mean `:math/add`?",
        ),
        (
            ADD,
            "[(flow/step :math/add {:n 1}) (let [kind :math/ad] (flow/step kind {:n 1}))]",
            "E0418 there is no packaged step `:math/ad` in `:steps` | did you mean `:math/add`?",
        ),
    ]);
}

#[test]
fn unreferenced_packaged_step() {
    each(&[
        (
            ADD,
            "1",
            "E0419 nothing uses the packaged step `:math/add` | call it: `(flow/step :math/add {...})`",
        ),
        (ADD, "(do (comment (flow/step :math/add {:n 1})) 1)", "1"),
    ]);
}

#[test]
fn flow_step_packaged_extra_argument() {
    each(&[
        (
            ADD,
            "(flow/step :math/add {:n 1} {:retry {}})",
            "E0426 the call of the packaged step `:math/add` has too many arguments | write it as `(flow/step :math/add \
             {...})` or `(flow/step :math/add :step-id {...})`",
        ),
        (
            ADD,
            "(apply flow/step [:math/add :id {:n 1} {}])",
            "E0426 the call of the packaged step `:math/add` has too many arguments | write it as `(flow/step :math/add \
             {...})` or `(flow/step :math/add :step-id {...})`",
        ),
    ]);
}

#[test]
fn flow_step_arity_invalid() {
    each(&[
        (
            ADD,
            "(flow/step :math/add :id {:n 1} {})",
            "E0426 the call of the packaged step `:math/add` has too many arguments | write it as `(flow/step :math/add \
             {...})` or `(flow/step :math/add :step-id {...})`",
        ),
        (
            ADD,
            "[:math/add (flow/step :kv :id {:operation :get :key \"a\"} {})]",
            "E0430 `flow/step` takes a type, an id and a config, not 4 arguments | write it as `(flow/step :type :step-id \
             {...})`",
        ),
    ]);
}

#[test]
fn malli_to_json_schema() {
    let project = Project::new();
    let loaded = project.load(&flow(
        "{:id :a/b :type :http :input-schema
          [:map [:v [:vector :int]] [:e [:enum :x :y]] [:m [:maybe :string]] [:t [:tuple :int :string]]
                [:o [:or :int :string]] [:r [:re \"^a\"]] [:k [:map-of :string :double]] [:u :uuid]
                [:n [:int {:min 1 :max 5 :default 2 :description \"how many\"}]]
                [:j [:string {:json-schema {:format \"email\"}}]] [:s [:set :keyword]] [:q [:= \"x\"]]]}",
        "1",
    ));
    let schema = &packaged::tools(&loaded.flow)[0].parameters["properties"];
    let cases = [
        ("v", r#"{"type":"array","items":{"type":"integer"}}"#),
        ("e", r#"{"type":"string","enum":["x","y"]}"#),
        ("m", r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#),
        (
            "t",
            r#"{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false,"minItems":2,"maxItems":2}"#,
        ),
        ("o", r#"{"anyOf":[{"type":"integer"},{"type":"string"}]}"#),
        ("r", r#"{"type":"string","pattern":"^a"}"#),
        (
            "k",
            r#"{"type":"object","additionalProperties":{"type":"number"}}"#,
        ),
        ("u", r#"{"type":"string","format":"uuid"}"#),
        (
            "n",
            r#"{"type":"integer","minimum":1,"maximum":5,"default":2,"description":"how many"}"#,
        ),
        ("j", r#"{"type":"string","format":"email"}"#),
        (
            "s",
            r#"{"type":"array","items":{"type":"string"},"uniqueItems":true}"#,
        ),
        ("q", r#"{"const":"x"}"#),
    ];
    for (name, expected) in cases {
        let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
        assert_eq!(schema[name], expected, "{name}");
    }
}
