//! Agents in the program: what a crash may cost, and the guide's example.

use serde_json::Value;

use crate::program::{Ran, Scratch};

/// Twelve turns that use four tools: files of a changeset, the search, a function, and a counter of the own store.
fn script() -> String {
    let call = |turn: usize, name: &str, arguments: &str| {
        format!("{{:tool-call-id \"c{turn}{name}\" :name \"{name}\" :arguments {arguments}}}")
    };
    let mut turns = Vec::new();
    for turn in 1..=11 {
        let mut calls = vec![call(turn, "notes_count", "{}")];
        match turn % 3 {
            0 => calls.push(call(turn, "math_add", &format!("{{:a {turn} :b 1}}"))),
            1 => calls.push(call(
                turn,
                "files",
                &format!("{{:op \"write-file\" :changeset \"DRAFT\" :path \"{turn}.txt\" :content \"{turn}\\n\"}}"),
            )),
            _ => calls.push(call(turn, "search", "{:query \"nothing\"}")),
        }
        turns.push(format!(
            "{{:content \"turn {turn}\" :tool-calls [{}] :usage {{:prompt-tokens 10 :completion-tokens 1}}}}",
            calls.join(" ")
        ));
    }
    turns
        .push("{:content \"all done\" :usage {:prompt-tokens 10 :completion-tokens 1}}".to_owned());
    format!("[{}]", turns.join("\n"))
}

fn flow() -> String {
    let script = script();
    let parts: Vec<&str> = script.split("\"DRAFT\"").collect();
    let turns = parts.join("(:uri draft)");
    format!(
        "{{:slug :twelve
 :functions [{{:id :add :code (fn [{{:keys [a b]}}] {{:sum (+ a b)}})}}
             {{:id :next :code (fn [_] {{:operation :increment :key \"calls\"}})}}]
 :steps [{{:id :math/add :type :function :description \"Adds.\" :input-schema [:map [:a :int] [:b :int]] :defaults {{:ref :add}}}}
         {{:id :notes/count :type :kv :description \"Counts.\" :input-schema [:map] :prepare :next}}]
 :flow '(let [draft (flow/step :files :draft {{:op :init-changeset :source {{:type :dir :path \"src\"}}}})
              result (flow/step :agent :work
                       {{:provider :scripted
                        :objective \"Work.\"
                        :inputs {{:draft draft}}
                        :available-steps [:files :search]
                        :tools {{:steps [:math/add :notes/count]}}
                        :provider-opts {{:scripted {{:turns {turns}}}}}}})
              files (flow/step :files :list {{:op :list :source draft}})]
          {{:content (:content result)
           :turns (:iterations result)
           :usage (:usage result)
           :calls (mapv :success (:tool-calls result))
           :counted (:value (flow/step :kv :counted {{:operation :get :key \"calls\"}}))
           :files (count (:entries files))}})}}"
    )
}

#[test]
fn a_crash_at_any_moment_costs_an_agent_nothing() {
    let scratch = Scratch::new();
    scratch.write("src/a.txt", "a\n");
    scratch.write("twelve.edn", flow());
    let mut command = scratch.command(&[
        "test",
        "twelve.edn",
        "--live",
        "--crash-everywhere",
        "--json",
    ]);
    // Syncs cost nothing there, and a killed process does not need them.
    if std::path::Path::new("/dev/shm").is_dir() {
        command.env("TMPDIR", "/dev/shm");
    }
    let ran = Ran::of(command.output().expect("the program runs"));
    let told = ran.json();
    assert_eq!(
        (ran.code, &told["ok"]),
        (Some(0), &Value::Bool(true)),
        "{told:#}"
    );
    let shown = told.to_string();
    for fact in ["all done", "132"] {
        assert!(shown.contains(fact), "{told:#}");
    }
    let crashes = &told["crashes"];
    assert_eq!(crashes["killed"], crashes["resumed"], "{told:#}");
    assert!(crashes["killed"].as_u64() > Some(60), "{told:#}");
}

/// The flow and the settings of the guide, as they stand there.
#[test]
fn the_example_of_the_guide_runs() {
    let guide = std::fs::read_to_string(crate::tidy::root().join("docs/guide/agents.md")).unwrap();
    let mut blocks = guide.split("```clojure\n").skip(1);
    let mut block = || {
        blocks
            .next()
            .unwrap()
            .split("```")
            .next()
            .unwrap()
            .to_owned()
    };
    let scratch = Scratch::new();
    scratch.write("sums.edn", block());
    scratch.write("flowstone.edn", block());
    let ran = scratch.run(&["run", "sums.edn"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for fact in ["42", "math_add"] {
        assert!(ran.out.contains(fact), "{}", ran.out);
    }
}
