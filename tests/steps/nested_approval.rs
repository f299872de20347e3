//! `:approval` of named tools, in agents that other agents call as tools.

use flowstone_lang::value::Value;

use crate::agent::{Bench, calls, says};
use crate::server::Say;

/// A step that writes, an agent with that step, an agent with that agent, and an agent with its own rules.
const TOOLS: &str = r#":steps [{:id :t/write :type :kv :description "Writes." :input-schema [:map] :defaults {:operation :set :key "done" :value 1}}]
 :agents [{:id :in/ner :description "Inner." :objective "Work." :input-schema [:map] :connection :ai :tools {:steps [:t/write]}}
          {:id :mid/dle :description "Middle." :objective "Work." :input-schema [:map] :connection :ai :tools {:agents [:in/ner]}}
          {:id :own/rules :description "Own." :objective "Work." :input-schema [:map] :connection :ai :tools {:steps [:t/write]}
           :approval {:mode :tools :tool-names #{"other"} :resume :in-place}}]"#;

fn call(name: &str) -> Say {
    calls(&[("c1", name, "{}")])
}

fn body(agent: &str, approval: &str) -> String {
    format!(
        "(let [r (flow/step :agent :work {{:connection :ai :objective \"Go.\" :tools {{:agents [{agent}]}} :approval {approval}}})]
           [(:abort-reason r) (mapv :tool (:actions (:approval-request r))) (:content r)
            (:value (flow/step :kv :seen {{:operation :get :key \"done\"}}))])"
    )
}

#[test]
fn a_named_tool_needs_approval_at_any_depth() {
    let rows: &[(&str, &str, &[&str])] = &[
        (
            ":in/ner",
            r##"{:mode :tools :tool-names #{"t_write"}}"##,
            &["in_ner", "t_write"],
        ),
        (
            ":in/ner",
            r##"{:tool-names #{"t_write"}}"##,
            &["in_ner", "t_write"],
        ),
        (
            ":in/ner",
            "{:mode :tools :tool-names [:t/write]}",
            &["in_ner", "t_write"],
        ),
        (
            ":mid/dle",
            r##"{:mode :tools :tool-names #{"t_write"}}"##,
            &["mid_dle", "in_ner", "t_write"],
        ),
        (
            ":own/rules",
            r##"{:mode :tools :tool-names #{"t_write"}}"##,
            &["own_rules", "t_write"],
        ),
    ];
    for (agent, approval, turns) in rows {
        let mut turns: Vec<Say> = turns.iter().map(|name| call(name)).collect();
        turns.push(says("It went on."));
        let bench = Bench::with(TOOLS, turns);
        let found = bench.run(&body(agent, approval));
        assert_eq!(
            found, "[\"approval-required\" [\"t_write\"] \"\" nil]",
            "{agent} {approval}"
        );
    }
}

#[test]
fn in_place_the_inner_agent_waits() {
    let approval = r##"{:mode :tools :tool-names #{"t_write"} :resume :in-place}"##;
    for (verdict, done, success) in [("approve", "1", true), ("reject", "nil", false)] {
        let bench = Bench::with(
            TOOLS,
            vec![
                call("mid_dle"),
                call("in_ner"),
                call("t_write"),
                says("inner"),
                says("middle"),
                says("outer"),
            ],
        );
        let found = bench.run(&body(":mid/dle", approval));
        assert!(!found.contains("outer"), "{found}");
        let wait = bench.only_wait();
        let answer = Value::map([(Value::keyword("action"), Value::keyword(verdict))]);
        let found = bench.project.answer(&wait, &answer);
        assert!(
            found.contains(&format!("[nil [] \"outer\" {done}]")),
            "{verdict}: {found}"
        );
        let told = bench
            .asked()
            .iter()
            .any(|asked| asked.to_string().contains("eject"));
        assert_eq!(told, !success, "{verdict}");
    }
}

#[test]
fn tools_that_are_not_named_are_performed() {
    for approval in [r##"{:mode :tools :tool-names #{"another"}}"##, "false"] {
        let bench = Bench::with(
            TOOLS,
            vec![
                call("in_ner"),
                call("t_write"),
                says("inner"),
                says("outer"),
            ],
        );
        let found = bench.run(&body(":in/ner", approval));
        assert_eq!(found, "[nil [] \"outer\" 1]", "{approval}");
    }
}

#[test]
fn options_of_every_step_belong_to_the_flow() {
    let tools = r#":steps [{:id :t/list :type :files :tool {:name "t_list"} :description "Lists." :input-schema [:map]}
        {:id :t/search :type :search :tool {:name "t_search"} :description "Searches." :input-schema [:map [:query :string]]}
        {:id :t/named :type :files :tool {:name "t_named"} :description "Lists." :input-schema [:map [:op :string] [:source :map] [:persist :map]]}]"#;
    let list = |option: &str| {
        format!(r#"{{"op": "list", "source": {{"type": "dir", "path": "."}}, {option}}}"#)
    };
    let kv = r#""persist": {"type": "kv", "key": "taken"}"#;
    let rows: &[(&str, String)] = &[
        ("t_list", list(kv)),
        (
            "t_list",
            list(r#""Persist": {"type": "kv", "key": "taken"}"#),
        ),
        ("t_list", list(r#""retry": {"max-attempts": 3}"#)),
        ("t_list", list(r#""on_doubt": "retry""#)),
        ("t_list", list(r#""idempotency-key": "k""#)),
        ("t_list", list(r#""timeout": "9h""#)),
        ("t_search", format!(r#"{{"query": "x", {kv}}}"#)),
        ("search", format!(r#"{{"query": "x", {kv}}}"#)),
    ];
    for (name, arguments) in rows {
        let bench = Bench::with(tools, vec![calls(&[("c1", name, arguments)]), says("done")]);
        let found = bench.run(
            "(let [r (flow/step :agent :work {:connection :ai :objective \"Go.\" :tools {:steps [:t/list :t/search] :allowed [:search]} :approval true})]
               [(:abort-reason r) (mapv (juxt :success (comp :error :result)) (:tool-calls r)) (:exists? (flow/step :kv :seen {:operation :get :key \"taken\"}))])",
        );
        assert!(
            found.starts_with("[nil [[false \"wrong arguments of"),
            "{name} {arguments}: {found}"
        );
        assert!(
            found.contains(" has no `") && found.ends_with(" false]"),
            "{name} {arguments}: {found}"
        );
    }
    // A schema that names an option exposes it to the model, and storing is a change.
    let bench = Bench::with(
        tools,
        vec![calls(&[("c1", "t_named", &list(kv))]), says("done")],
    );
    let found = bench.run(
        "(let [r (flow/step :agent :work {:connection :ai :objective \"Go.\" :tools {:steps [:t/named]} :approval true})] (:abort-reason r))",
    );
    assert_eq!(found, "\"approval-required\"");
}

#[test]
fn a_step_whose_result_is_stored_needs_approval() {
    let tools = r#":steps [{:id :t/count :type :function :tool {:name "t_count"} :description "Counts." :input-schema [:map]
                :defaults {:code (fn [_] {:n 2}) :persist {:type :kv :key "n"}}}]
        :agents [{:id :in/ner :description "Inner." :objective "Work." :input-schema [:map] :connection :ai :tools {:steps [:t/count]}}]"#;
    for (list, name) in [
        (":steps [:t/count]", "t_count"),
        (":agents [:in/ner]", "in_ner"),
    ] {
        let bench = Bench::with(tools, vec![call(name), says("done")]);
        let found = bench.run(&format!(
            "(let [r (flow/step :agent :work {{:connection :ai :objective \"Go.\" :tools {{{list}}} :approval true}})] (:abort-reason r))"
        ));
        assert_eq!(found, "\"approval-required\"", "{name}");
    }
}
