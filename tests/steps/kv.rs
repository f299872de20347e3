use crate::project::{Project, check_steps};

#[test]
fn values_are_stored() {
    check_steps(
        "kv",
        &[
            (
                "{:operation :get :key \"a\"}",
                "{:success true :value nil :exists? false}",
            ),
            (
                "{:operation :get :key \"a\" :default #{}}",
                "{:success true :value #{} :exists? false}",
            ),
            (
                "{:operation :set :key \"a\" :value {:k [1 2.5 \"x\" nil #{:y}]}}",
                "{:success true :key \"a\" :created? true}",
            ),
            (
                "{:operation :get :key \"a\"}",
                "{:success true :value {:k [1 2.5 \"x\" nil #{:y}]} :exists? true}",
            ),
            (
                "{:operation :set :key :a :value 2 :if-not-exists true}",
                "{:success true :key \"a\" :created? false}",
            ),
            (
                "{:operation \"exists\" :key \"a\"}",
                "{:success true :key \"a\" :exists? true}",
            ),
            (
                "{:operation :set :key \"a\" :value nil}",
                "{:success true :key \"a\" :created? false}",
            ),
            (
                "{:operation :get :key \"a\" :default 7}",
                "{:success true :value nil :exists? true}",
            ),
            (
                "{:operation :delete :key \"a\"}",
                "{:success true :key \"a\" :deleted? true}",
            ),
            (
                "{:operation :delete :key \"a\"}",
                "{:success true :key \"a\" :deleted? false}",
            ),
        ],
    );
}

#[test]
fn numbers_are_incremented() {
    check_steps(
        "kv",
        &[
            (
                "{:operation :increment :key \"n\"}",
                "{:success true :key \"n\" :value 1 :previous 0}",
            ),
            (
                "{:operation :increment :key \"n\" :delta 9}",
                "{:success true :key \"n\" :value 10 :previous 1}",
            ),
            (
                "{:operation :increment :key \"n\" :delta -0.5}",
                "{:success true :key \"n\" :value 9.5 :previous 10}",
            ),
            (
                "{:operation :set :key \"n\" :value 9223372036854775807}",
                "{:success true :key \"n\" :created? false}",
            ),
            (
                "{:operation :increment :key \"n\"}",
                "E0611 incrementing `n` goes beyond the largest integer",
            ),
            (
                "{:operation :set :key \"s\" :value \"x\"}",
                "{:success true :key \"s\" :created? true}",
            ),
            (
                "{:operation :increment :key \"s\"}",
                "E0611 `s` holds a string, which cannot be incremented | set it to a number first, or use another key",
            ),
        ],
    );
}

#[test]
fn items_are_appended() {
    check_steps(
        "kv",
        &[
            (
                "{:operation :append :key \"l\" :item {:a 1}}",
                "{:success true :key \"l\" :count 1 :dropped 0}",
            ),
            (
                "{:operation :append :key \"l\" :items [2 3 4] :max-length 3}",
                "{:success true :key \"l\" :count 3 :dropped 1}",
            ),
            (
                "{:operation :append :key \"l\" :value 5 :max-length 3}",
                "{:success true :key \"l\" :count 3 :dropped 1}",
            ),
            (
                "{:operation :get :key \"l\"}",
                "{:success true :value [3 4 5] :exists? true}",
            ),
            (
                "{:operation :append :key \"l\"}",
                "E0765 `:append` needs `:item` or `:items`",
            ),
        ],
    );
}

#[test]
fn keys_are_listed() {
    check_steps(
        "kv",
        &[
            (
                "{:operation :set :key \"a:2\" :value 1}",
                "{:success true :key \"a:2\" :created? true}",
            ),
            (
                "{:operation :set :key \"a:1\" :value 1}",
                "{:success true :key \"a:1\" :created? true}",
            ),
            (
                "{:operation :set :key \"a_1\" :value 1}",
                "{:success true :key \"a_1\" :created? true}",
            ),
            (
                "{:operation :list-keys}",
                "{:success true :keys [\"a:1\" \"a:2\" \"a_1\"] :count 3}",
            ),
            (
                "{:operation :list-keys :prefix \"a:\"}",
                "{:success true :keys [\"a:1\" \"a:2\"] :count 2}",
            ),
            (
                "{:operation :list-keys :limit 1}",
                "{:success true :keys [\"a:1\"] :count 1}",
            ),
            (
                "{:operation :list-keys :limit 1001}",
                "E0725 `:limit` must be from 1 to 1000, and is 1001",
            ),
        ],
    );
}

#[test]
fn invalid_configs_are_refused() {
    let long = format!("{{:operation :get :key \"{}\"}}", "k".repeat(257));
    let large = format!(
        "{{:operation :set :key \"k\" :value \"{}\"}}",
        "v".repeat(1_000_001)
    );
    check_steps(
        "kv",
        &[
            (
                "{:operation :gett :key \"k\"}",
                "E0765 `:kv` has no operation `:gett` | did you mean `:get`? | there are `:append` `:delete` `:exists` `:get` `:increment` `:list-keys` `:set`",
            ),
            (
                "{:operation :get}",
                "E0765 `:operation :get` needs `:key` | `:key`: The key: letters, digits, `_`, `-`, `:`.",
            ),
            (
                "{:operation :get :key \"a b\"}",
                "E0610 `:key` is not a key: a key can contain only letters, digits, `_`, `-` and `:`, and this one has ' ' | put `:` or `-` between the parts of a key, as in \"orders:2026-03\"",
            ),
            (
                "{:operation :get :key \"x'; DROP TABLE kv; --\"}",
                "E0610 `:key` is not a key: a key can contain only letters, digits, `_`, `-` and `:`, and this one has '\\'' | put `:` or `-` between the parts of a key, as in \"orders:2026-03\"",
            ),
            (
                &long,
                "E0610 `:key` is not a key: a key can have at most 256 characters, and this one has 257 | put `:` or `-` between the parts of a key, as in \"orders:2026-03\"",
            ),
            (
                &large,
                "E0613 the value for `k` has 1000003 bytes, but at most 1000000 are allowed | store it with `:persist {:type :blob}`, and keep the reference here",
            ),
            (
                "{:operation :set :key \"k\"}",
                "E0765 `:operation :set` needs `:value` | `:value nil` stores nil",
            ),
            (
                "{:operation :set :key \"k\" :value 1 :ttl 0}",
                "E0725 `:ttl` must be from 1 to 31536000, and is 0",
            ),
            (
                "{:operation :get :key \"k\" :ttl 5}",
                "E0765 `:ttl` does not apply to `:operation :get` | it takes `:key` `:as-in-origin` `:default`",
            ),
        ],
    );
}

#[test]
fn an_expired_key_does_not_exist() {
    let project = Project::new();
    project.eval("(let [r (flow/step :kv :it {:operation :set :key \"k\" :value 1 :ttl 60})] r)");
    let get = "(let [r (flow/step :kv :it {:operation :get :key \"k\"})] (:exists? r))";
    project.clock.advance(59_999);
    assert_eq!(project.eval(get), "true");
    project.clock.advance(1);
    assert_eq!(project.eval(get), "false");
    let again = "(let [r (flow/step :kv :it {:operation :set :key \"k\" :value 2 :if-not-exists true})] (:created? r))";
    assert_eq!(project.eval(again), "true");
    let project = project.reopen();
    assert_eq!(project.eval(get), "true");
}
