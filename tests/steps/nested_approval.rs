//! `:approval` of named tools, in agents that are called as tools.

use flowstone_lang::value::Value;

use crate::agent::{Bench, calls, says};
use crate::server::Say;

/// A step that writes, an agent that has it, an agent that has that one, and one that has its own rules.
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
fn a_named_tool_is_asked_about_at_any_depth() {
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
fn what_is_not_named_is_performed() {
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
