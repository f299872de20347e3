//! The rows of `tests/coverage/kv.tsv`.

use std::time::Duration;

use crate::project::{Project, check_steps};

/// Performs `:kv` steps in order in one project, and returns the result of the last.
fn last(configs: &[&str]) -> String {
    after(&Project::new(), configs)
}

fn after(project: &Project, configs: &[&str]) -> String {
    let results = configs
        .iter()
        .map(|config| project.eval(&format!("(flow/step :kv :it {config})")));
    results.last().expect("a step")
}

#[test]
fn op_get() {
    check_steps(
        "kv",
        &[
            (
                "{:operation :set :key \"a\" :value {:n 1}}",
                "{:success true :key \"a\" :created? true}",
            ),
            (
                "{:operation :get :key \"a\"}",
                "{:success true :value {:n 1} :exists? true}",
            ),
            (
                "{:operation :get}",
                "E0765 `:operation :get` needs `:key` | `:key`: The key: letters, digits, `_`, `-`, `:`.",
            ),
        ],
    );
}

#[test]
fn get_default() {
    let missing = last(&["{:operation :get :key \"a\" :default [1]}"]);
    assert_eq!(missing, "{:success true :value [1] :exists? false}");
    // nil is a value, different from a missing key.
    let there = last(&[
        "{:operation :set :key \"a\" :value nil}",
        "{:operation :get :key \"a\" :default 7}",
    ]);
    assert_eq!(there, "{:success true :value nil :exists? true}");
}

#[test]
fn op_set() {
    check_steps(
        "kv",
        &[
            (
                "{:operation :set :key \"a\" :value 1}",
                "{:success true :key \"a\" :created? true}",
            ),
            (
                "{:operation :set :key \"a\" :value 2}",
                "{:success true :key \"a\" :created? false}",
            ),
            (
                "{:operation :set :key \"a\"}",
                "E0765 `:operation :set` needs `:value` | `:value nil` stores nil",
            ),
        ],
    );
}

#[test]
fn set_ttl() {
    let project = Project::new();
    let put = after(&project, &["{:operation :set :key \"a\" :value 1 :ttl 60}"]);
    assert_eq!(put, "{:success true :key \"a\" :created? true}");
    let get = "{:operation :get :key \"a\"}";
    let found = after(&project, &[get]);
    assert_eq!(
        found,
        "{:success true :value 1 :exists? true :expires-at #inst \"2026-03-01T00:01:00.000Z\"}"
    );
    project.clock.advance(60_000);
    assert_eq!(
        after(&project, &[get]),
        "{:success true :value nil :exists? false}"
    );
    for (ttl, expected) in [
        ("0", "E0725 `:ttl` must be from 1 to 31536000, and is 0"),
        (
            "31536001",
            "E0725 `:ttl` must be from 1 to 31536000, and is 31536001",
        ),
        ("1.5", "E0712 "),
    ] {
        let config = format!("{{:operation :set :key \"b\" :value 1 :ttl {ttl}}}");
        let found = after(&project, &[&config]);
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn set_metadata() {
    let found = last(&[
        "{:operation :set :key \"a\" :value 1 :metadata {:by \"Nora\"}}",
        "{:operation :get :key \"a\"}",
    ]);
    assert_eq!(
        found,
        "{:success true :value 1 :exists? true :metadata {:by \"Nora\"}}"
    );
    // Operations that change the value keep the metadata.
    let kept = last(&[
        "{:operation :set :key \"a\" :value 1 :metadata {:by \"Nora\"}}",
        "{:operation :increment :key \"a\"}",
        "{:operation :get :key \"a\"}",
    ]);
    assert_eq!(
        kept,
        "{:success true :value 2 :exists? true :metadata {:by \"Nora\"}}"
    );
    let wrong = last(&["{:operation :set :key \"a\" :value 1 :metadata 7}"]);
    assert!(wrong.starts_with("E0712 "), "{wrong}");
}

#[test]
fn set_if_not_exists() {
    let project = Project::new();
    let set = "{:operation :set :key \"a\" :value 2 :if-not-exists true}";
    let first = after(
        &project,
        &["{:operation :set :key \"a\" :value 1 :ttl 5}", set],
    );
    assert_eq!(first, "{:success true :key \"a\" :created? false}");
    let get = "{:operation :get :key \"a\" :default :none}";
    assert!(after(&project, &[get]).contains(":value 1 "));
    // An expired key does not exist.
    project.clock.advance(5_000);
    assert_eq!(
        after(&project, &[set]),
        "{:success true :key \"a\" :created? true}"
    );
    assert_eq!(
        after(&project, &[get]),
        "{:success true :value 2 :exists? true}"
    );
}

#[test]
fn op_delete() {
    let delete = "{:operation :delete :key \"a\"}";
    let set = "{:operation :set :key \"a\" :value 1}";
    assert_eq!(
        last(&[set, delete]),
        "{:success true :key \"a\" :deleted? true}"
    );
    assert_eq!(
        last(&[set, delete, delete]),
        "{:success true :key \"a\" :deleted? false}"
    );
}

#[test]
fn op_exists() {
    let exists = "{:operation :exists :key \"a\"}";
    assert_eq!(last(&[exists]), "{:success true :key \"a\" :exists? false}");
    let set = "{:operation :set :key \"a\" :value nil}";
    assert_eq!(
        last(&[set, exists]),
        "{:success true :key \"a\" :exists? true}"
    );
}

#[test]
fn op_increment() {
    let increment = "{:operation :increment :key \"n\"}";
    assert_eq!(
        last(&[increment]),
        "{:success true :key \"n\" :value 1 :previous 0}"
    );
    assert_eq!(
        last(&[increment, increment]),
        "{:success true :key \"n\" :value 2 :previous 1}"
    );
    let text = last(&["{:operation :set :key \"n\" :value \"x\"}", increment]);
    assert!(text.starts_with("E0611 `n` holds a string"), "{text}");
}

#[test]
fn increment_delta() {
    let cases = [
        (
            "5",
            "-7",
            "{:success true :key \"n\" :value -2 :previous 5}",
        ),
        (
            "5",
            "0.5",
            "{:success true :key \"n\" :value 5.5 :previous 5}",
        ),
        (
            "1.5",
            "2",
            "{:success true :key \"n\" :value 3.5 :previous 1.5}",
        ),
        (
            "9223372036854775807",
            "1",
            "E0611 incrementing `n` goes beyond the largest integer",
        ),
        (
            "1.7e308",
            "1.7e308",
            "E0611 incrementing `n` goes beyond the largest double",
        ),
        (
            "5",
            "1/2",
            "E0765 `:delta` is an integer or a double, not 1/2",
        ),
    ];
    for (before, delta, expected) in cases {
        let found = last(&[
            &format!("{{:operation :set :key \"n\" :value {before}}}"),
            &format!("{{:operation :increment :key \"n\" :delta {delta}}}"),
        ]);
        assert_eq!(found, expected, "{before} {delta}");
    }
}

#[test]
fn op_append() {
    let found = last(&[
        "{:operation :append :key \"l\" :item 1}",
        "{:operation :append :key \"l\" :items [2 3]}",
        "{:operation :get :key \"l\"}",
    ]);
    assert_eq!(found, "{:success true :value [1 2 3] :exists? true}");
    let number = last(&[
        "{:operation :set :key \"l\" :value 1}",
        "{:operation :append :key \"l\" :item 1}",
    ]);
    assert!(number.starts_with("E0611 `l` holds an integer"), "{number}");
}

#[test]
fn append_item() {
    let found = last(&["{:operation :append :key \"l\" :item [1 2]}"]);
    assert_eq!(found, "{:success true :key \"l\" :count 1 :dropped 0}");
}

#[test]
fn append_items() {
    let found = last(&["{:operation :append :key \"l\" :items [1 2]}"]);
    assert_eq!(found, "{:success true :key \"l\" :count 2 :dropped 0}");
    let both = last(&["{:operation :append :key \"l\" :items [1] :item 2}"]);
    assert_eq!(both, "E0765 `:append` takes `:item` or `:items`, not both");
}

#[test]
fn append_value() {
    let found = last(&[
        "{:operation :append :key \"l\" :value {:a 1}}",
        "{:operation :get :key \"l\"}",
    ]);
    assert_eq!(found, "{:success true :value [{:a 1}] :exists? true}");
}

#[test]
fn append_max_length() {
    let found = last(&[
        "{:operation :append :key \"l\" :items [1 2 3] :max-length 2}",
        "{:operation :get :key \"l\"}",
    ]);
    assert_eq!(found, "{:success true :value [2 3] :exists? true}");
    let usual = last(&[
        "{:operation :append :key \"l\" :items (vec (range 1001))}",
        "{:operation :append :key \"l\" :items []}",
    ]);
    assert_eq!(usual, "{:success true :key \"l\" :count 1000 :dropped 0}");
    let most = last(&["{:operation :append :key \"l\" :item 1 :max-length 1001}"]);
    assert_eq!(
        most,
        "E0725 `:max-length` must be from 1 to 1000, and is 1001"
    );
}

#[test]
fn op_list_keys() {
    let found = last(&[
        "{:operation :set :key \"b\" :value 1}",
        "{:operation :set :key \"a\" :value 1}",
        "{:operation :list-keys}",
    ]);
    assert_eq!(found, "{:success true :keys [\"a\" \"b\"] :count 2}");
}

#[test]
fn list_keys_prefix() {
    let found = last(&[
        "{:operation :set :key \"a:1\" :value 1}",
        "{:operation :set :key \"ab\" :value 1}",
        "{:operation :list-keys :prefix \"a:\"}",
    ]);
    assert_eq!(found, "{:success true :keys [\"a:1\"] :count 1}");
    let wrong = last(&["{:operation :list-keys :prefix \"a%\"}"]);
    assert!(wrong.starts_with("E0610 `:prefix` is not a key"), "{wrong}");
}

#[test]
fn list_keys_limit() {
    let sets = ["a", "b", "c"].map(|key| format!("{{:operation :set :key {key:?} :value 1}}"));
    let project = Project::new();
    after(&project, &sets.each_ref().map(String::as_str));
    let found = after(&project, &["{:operation :list-keys :limit 2}"]);
    assert_eq!(found, "{:success true :keys [\"a\" \"b\"] :count 2}");
    for (limit, words) in [("0", "and is 0"), ("1001", "and is 1001")] {
        let config = format!("{{:operation :list-keys :limit {limit}}}");
        let found = after(&project, &[&config]);
        assert_eq!(
            found,
            format!("E0725 `:limit` must be from 1 to 1000, {words}")
        );
    }
}

#[test]
fn key() {
    let longest = "k".repeat(256);
    let cases = [
        ("\"aZ09_-:\"", ""),
        (&*format!("\"{longest}\""), ""),
        (":kept", ""),
        ("\"\"", "a key must have at least one character"),
        (
            &*format!("\"{longest}k\""),
            "a key can have at most 256 characters, and this one has 257",
        ),
        ("\"a b\"", "this one has ' '"),
        ("\"a/b\"", "this one has '/'"),
        ("\"é\"", "this one has 'é'"),
        ("\"a'; DROP TABLE kv; --\"", "this one has '\\''"),
    ];
    for (key, problem) in cases {
        let found = last(&[&format!("{{:operation :set :key {key} :value 1}}")]);
        match problem {
            "" => assert!(found.contains(":created? true"), "{key}: {found}"),
            problem => {
                assert!(found.starts_with("E0610 "), "{key}: {found}");
                assert!(found.contains(problem), "{key}: {found}");
            }
        }
    }
}

#[test]
fn value() {
    let text = |length: usize| format!("(apply str (repeat {length} \"x\"))");
    let set = |length| {
        last(&[&format!(
            "{{:operation :set :key \"a\" :value {}}}",
            text(length)
        )])
    };
    assert_eq!(set(999_998), "{:success true :key \"a\" :created? true}");
    let large = set(999_999);
    assert!(
        large.starts_with(
            "E0613 the value for `a` has 1000001 bytes, but at most 1000000 are allowed | store it with"
        ),
        "{large}"
    );
    let project = Project::with("{:resources {:max-value 10}}");
    let small = after(
        &project,
        &["{:operation :set :key \"a\" :value \"0123456789\"}"],
    );
    assert!(small.contains("at most 10 are allowed"), "{small}");
    let append = after(
        &project,
        &[
            "{:operation :append :key \"l\" :items [1 2 3 4]}",
            "{:operation :append :key \"l\" :items [5]}",
        ],
    );
    assert!(append.contains("at most 10 are allowed"), "{append}");
}

#[test]
fn operation() {
    let found = last(&["{:operation :sett :key \"a\"}"]);
    assert!(found.contains("`:set`"), "{found}");
    let found = last(&["{:key \"a\"}"]);
    assert!(found.contains(":operation"), "{found}");
    let found = last(&["{:operation :get :key \"a\" :value 1}"]);
    assert!(found.starts_with("E0765 "), "{found}");
}

#[test]
fn expiry() {
    let project = Project::new();
    let set = |key: &str| format!("{{:operation :set :key {key:?} :value 5 :ttl 10}}");
    after(&project, &[&set("a"), &set("b"), &set("c")]);
    project
        .clock
        .advance(Duration::from_secs(10).as_millis() as i64);
    let cases = [
        (
            "{:operation :list-keys}",
            "{:success true :keys [] :count 0}",
        ),
        (
            "{:operation :exists :key \"a\"}",
            "{:success true :key \"a\" :exists? false}",
        ),
        (
            "{:operation :increment :key \"a\"}",
            "{:success true :key \"a\" :value 1 :previous 0}",
        ),
        (
            "{:operation :append :key \"b\" :item 1}",
            "{:success true :key \"b\" :count 1 :dropped 0}",
        ),
        (
            "{:operation :delete :key \"c\"}",
            "{:success true :key \"c\" :deleted? false}",
        ),
        // The new value of an expired key has no expiry.
        (
            "{:operation :get :key \"a\"}",
            "{:success true :value 1 :exists? true}",
        ),
    ];
    for (config, expected) in cases {
        assert_eq!(after(&project, &[config]), expected, "{config}");
    }
}

#[test]
fn scope() {
    let project = Project::new();
    after(&project, &["{:operation :set :key \"a\" :value 1}"]);
    let other_flow = "{:slug :other :concurrency {:type :singleton :on-new-version :coexist}
                       :flow '(:value (flow/step :kv :it {:operation :get :key \"a\"}))}";
    assert_eq!(project.eval(other_flow), "1");
    // Concurrent branches lose no update.
    let counted = project.eval(
        "(do (flow/pmap (fn [_] (flow/step :kv :count {:operation :increment :key \"n\"})) (range 20))
             (:value (flow/step :kv :read {:operation :get :key \"n\"})))",
    );
    assert_eq!(counted, "20");
    // Of several concurrent `:if-not-exists` writes, exactly one succeeds.
    let made = project.eval(
        "(->> (flow/pmap (fn [i] (flow/step :kv :claim {:operation :set :key \"lock\" :value i :if-not-exists true})) (range 8))
              (filter :created?) count)",
    );
    assert_eq!(made, "1");
}

#[test]
fn object_keys() {
    let found = last(&[
        "{:operation :set :key \"a\" :value {\"camelCase\" {\"a b\" 1} :kept 2}}",
        "{:operation :get :key \"a\"}",
    ]);
    assert_eq!(
        found,
        "{:success true :value {\"camelCase\" {\"a b\" 1} :kept 2} :exists? true}"
    );
}

#[test]
fn values_come_back() {
    for value in [
        "nil",
        "[1 2.5 3N 1/3]",
        "{:a #{:b} [1] \"x\"}",
        "#inst \"2026-03-01T00:00:00.000Z\"",
        "\"\\u0000 é 🙂\"",
        "(1 2 3)",
        "##Inf",
    ] {
        let quoted = format!("'{value}");
        let found = last(&[
            &format!("{{:operation :set :key \"a\" :value {quoted}}}"),
            "{:operation :get :key \"a\"}",
        ]);
        assert_eq!(
            found,
            format!("{{:success true :value {value} :exists? true}}")
        );
    }
}
