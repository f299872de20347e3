//! The rows of `tests/coverage/definition.tsv` on the callers of a flow: interfaces, schedules, triggers.

use crate::net::contains;
use crate::project::Project;

fn with(keys: &str) -> String {
    let text = format!("{{:slug :a :invocations {{:d {{}}}} {keys} :flow '1}}");
    Project::new().errors(&text)
}

#[test]
fn interface_shapes() {
    for (bad, code) in [
        ("[]", "E0409 `:interfaces` must be a map"),
        ("{:manual {}}", "E0404 `:manual` must be a vector of maps"),
        ("{:manual [1]}", "E0404 an entry of `:manual` must be a map"),
        (
            "{:manual [{:id :a :invocation :d} {:id :b :invocation :d}]}",
            "E0409 there can only be one `:manual` interface",
        ),
        (
            "{:http [{:id :a :invocation :d} {:id :b :invocation :d}]}",
            "E0409 there can only be one `:http` interface",
        ),
        (
            "{:manual [{:invocation :d}]}",
            "E0409 this interface needs `:id`",
        ),
        (
            "{:mcp [{:id :x :invocation :d}]}",
            "E0409 this interface needs `:tool-name`",
        ),
        (
            "{:mcp [{:tool-name \"enrich company\" :invocation :d}]}",
            "E1080 a `:tool-name` must have 1 to 64 letters, digits, `_` and `-`, got `enrich company`",
        ),
        (
            "{:manual [{:id :x :invocation :d}] :mcp [{:tool-name \"x\" :invocation :d}]}",
            "E0414 there are two interfaces `x`",
        ),
        (
            "{:manual [{:id :x}]}",
            "E0409 this needs an `:invocation` to call",
        ),
        (
            "{:manual [{:id :x :invocation :e}]}",
            "E0409 there is no invocation `:e`",
        ),
    ] {
        contains(&with(&format!(":interfaces {bad}")), code);
    }
    for good in [
        "{:manual [{:id :run :label \"Run\" :description \"It\" :invocation :d :enabled true}]}",
        "{:mcp [{:tool-name \"enrich_company\" :invocation :d} {:tool-name \"b\" :invocation :d}]}",
    ] {
        assert_eq!(with(&format!(":interfaces {good}")), "", "{good}");
    }
}

fn schedule(keys: &str) -> String {
    with(&format!(":schedules [{{:invocation :d {keys}}}]"))
}

#[test]
fn schedules() {
    for good in [
        ":id :weekly :label \"Weekly\" :enabled true :cron \"0 9 * * MON\" :timezone \"UTC\"",
        ":id :a :cron \"*/15 8-18 1,15 JAN-MAR *\" :timezone \"Europe/Berlin\"",
        ":id :a :cron \"@daily\"",
        ":id :a :every \"15m\" :input {:x 1} :enabled false",
    ] {
        assert_eq!(schedule(good), "", "{good}");
    }
    for (bad, code) in [
        (":cron \"0 9 * * *\"", "E0460 a schedule needs an `:id`"),
        (
            ":id \"9 x\" :cron \"0 9 * * *\"",
            "E0460 a schedule needs an `:id`",
        ),
        (":id :a", "E0460 a schedule needs a `:cron` or an `:every`"),
        (":id :a :cron \"0 9 * * FOO\"", "E0461"),
        (":id :a :cron \"0 9 * *\"", "E0461"),
        (
            ":id :a :cron \"0 9 * * *\" :timezone \"Mars\"",
            "E0462 there is no timezone `Mars`",
        ),
        (
            ":id :a :cron \"0 9 * * *\" :tz \"UTC\"",
            "E0460 unknown key `:tz`",
        ),
    ] {
        contains(&schedule(bad), code);
    }
    contains(
        &with(":schedules [{:id :a :invocation :e :cron \"0 9 * * *\"}]"),
        "E0409 there is no invocation `:e`",
    );
}

#[test]
fn triggers() {
    let good = ":triggers [{:type :manual :label \"Run\" :enabled true :config {:fields []}}
        {:type :schedule :label \"Nightly\" :enabled true :config {:cron \"0 2 * * *\" :timezone \"UTC\"}}]";
    let loaded = Project::new().load(&format!("{{:slug :a {good} :flow '1}}"));
    assert_eq!(loaded.flow.schedules.len(), 1);
    assert_eq!(loaded.flow.invocations.len(), 1);
    contains(
        &Project::new().errors("{:slug :a :flow '1 :triggers [{:label \"x\"}]}"),
        "E0409 an entry of `:triggers` needs a `:type`",
    );
    contains(&with(":triggers [{:type :bogus}]"), "E0472");
    let text = "{:slug :a :flow '1 :triggers [{:type :manual}]}";
    contains(&Project::new().check(text), "E0473");
    contains(
        &with(":triggers [{:type :schedule :config {:cron \"0 99 * * *\"}}]"),
        "E0461",
    );
}

#[test]
fn auth_of_webhooks() {
    let auth = |auth: &str| {
        with(&format!(
            ":interfaces {{:webhook [{{:id :hook :invocation :d :auth {auth}}}]}}"
        ))
    };
    for good in [
        "{:type :api-key :secret-ref :s}",
        "{:type :bearer :secret-ref :s}",
        "{:type :basic :username \"u\" :secret-ref :s}",
        "{:type :hmac-sha256 :header \"X-Signature\" :secret-ref :s}",
        "{:type :ip-allowlist :allow [\"10.0.0.1\"]}",
    ] {
        assert_eq!(auth(good), "", "{good}");
    }
    for bad in ["{:type :none}", "{:type :bogus}", "{:type :bearer}"] {
        contains(&auth(bad), "E0472");
    }
}
