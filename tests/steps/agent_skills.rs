//! `:skills` and `:defer-tools` of an agent: what the model gets when it asks for it.

use serde_json::Value as Json;

use crate::agent::{Bench, STEPS, calls, says};
use crate::server::Say;

const INVOICES: &str = "---\nname: invoices\ndescription: >\n  Checks\n  invoices.\n---\n# Invoices\nAdd up the lines.\n";

/// A project with two skills, a file beside them, and a secret.
fn bench(turns: Vec<Say>) -> Bench {
    let bench = Bench::new(turns);
    let project = &bench.project;
    project.write("skills/invoices/SKILL.md", INVOICES.as_bytes());
    project.write("skills/invoices/reference/vat.md", b"VAT is 19 %.");
    project.write(
        "skills/letters/SKILL.md",
        b"---\nname: letters\ndescription: Writes letters.\n---\nBe polite.\n",
    );
    project.write("skills/notes.txt", b"not a skill");
    project.write("secret.txt", b"hidden");
    bench
}

fn agent(fields: &str) -> String {
    format!(
        "(let [r (flow/step :agent :a {{:connection :ai :objective \"Check.\" {fields}}})] [(:content r) (mapv :success (:tool-calls r))])"
    )
}

fn system(asked: &Json) -> &str {
    asked["messages"][0]["content"].as_str().expect("text")
}

fn results(asked: &Json) -> Vec<&str> {
    let messages = asked["messages"].as_array().expect("messages").iter();
    let results = messages.filter(|it| it["role"] == "tool");
    results.filter_map(|it| it["content"].as_str()).collect()
}

fn offered(asked: &Json) -> Vec<&str> {
    let tools = asked["tools"].as_array();
    let names = tools.into_iter().flatten();
    names
        .filter_map(|it| it["function"]["name"].as_str())
        .collect()
}

fn read(arguments: &str) -> Say {
    calls(&[("c1", "skill_read", arguments)])
}

#[test]
fn the_prompt_has_names_and_descriptions_of_skills() {
    let bench = bench(vec![says("ok")]);
    assert_eq!(bench.run(&agent(":skills [\"skills\"]")), "[\"ok\" []]");
    let asked = &bench.asked()[0];
    let lines = "\n- invoices: Checks invoices.\n- letters: Writes letters.";
    assert!(system(asked).contains(lines), "{}", system(asked));
    assert!(!asked.to_string().contains("Add up the lines"));
    let parameters = &asked["tools"][0]["function"]["parameters"];
    assert_eq!(
        parameters["properties"]["skill"]["enum"],
        serde_json::json!(["invoices", "letters"])
    );
}

#[test]
fn the_model_reads_a_skill_and_its_files() {
    let turns = vec![
        read("{\"skill\": \"invoices\"}"),
        read("{\"skill\": \"invoices\", \"path\": \"reference/vat.md\"}"),
        says("ok"),
    ];
    let bench = bench(turns);
    let found = bench.run(&agent(":skills \"skills/invoices\""));
    assert_eq!(found, "[\"ok\" [true true]]");
    let last = &bench.asked()[2];
    assert_eq!(
        results(last),
        [
            "{\"content\":\"# Invoices\\nAdd up the lines.\",\"files\":[\"reference/vat.md\"]}",
            "{\"content\":\"VAT is 19 %.\"}"
        ]
    );
    assert!(!system(last).contains("letters"));
}

#[test]
fn a_path_cannot_leave_its_skill() {
    let paths = [
        "../letters/SKILL.md",
        "../../secret.txt",
        "/etc/passwd",
        "reference/../../notes.txt",
        "reference//vat.md",
        "..\\\\letters\\\\SKILL.md",
        "missing.md",
    ];
    for path in paths {
        let arguments = format!("{{\"skill\": \"invoices\", \"path\": \"{path}\"}}");
        let bench = bench(vec![read(&arguments), says("ok")]);
        let found = bench.run(&agent(":skills \"skills\""));
        assert_eq!(found, "[\"ok\" [false]]", "{path}");
        let asked = bench.asked()[1].to_string();
        for text in ["Be polite", "hidden", "not a skill", "root:"] {
            assert!(!asked.contains(text), "{path}: {asked}");
        }
    }
}

#[test]
fn a_link_out_of_a_skill_is_not_followed() {
    let bench = bench(vec![
        read("{\"skill\": \"invoices\", \"path\": \"out.txt\"}"),
        says("ok"),
    ]);
    #[cfg(unix)]
    std::os::unix::fs::symlink(
        "../../secret.txt",
        bench.project.path().join("skills/invoices/out.txt"),
    )
    .expect("a link");
    bench.run(&agent(":skills \"skills\""));
    for asked in bench.asked() {
        assert!(!asked.to_string().contains("hidden"), "{asked}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_another_folder_of_the_source_is_not_followed() {
    use std::os::unix::fs::symlink;

    let paths = [
        "link.md",
        "folder/notes.md",
        "inside.md",
        "reference/vat.md",
    ];
    let asked = paths.map(|path| {
        let arguments = format!("{{\"skill\": \"invoices\", \"path\": \"{path}\"}}");
        read(&arguments)
    });
    let bench = bench(asked.into_iter().chain([says("ok")]).collect());
    let project = &bench.project;
    project.write("skills/private/notes.md", b"hidden");
    project.write("skills/private/SKILL-of-another.md", INVOICES.as_bytes());
    project.write("skills/linked/readme.md", b"no skill");
    for (target, link) in [
        ("../private/notes.md", "skills/invoices/link.md"),
        ("../private", "skills/invoices/folder"),
        ("reference/vat.md", "skills/invoices/inside.md"),
        ("../private/SKILL-of-another.md", "skills/linked/SKILL.md"),
    ] {
        symlink(target, project.path().join(link)).expect("a link");
    }
    let found = bench.run(&agent(":skills \"skills\""));
    assert_eq!(found, "[\"ok\" [false false false true]]");
    for asked in bench.asked() {
        assert!(!asked.to_string().contains("hidden"), "{asked}");
    }
    // A skill whose instructions are a link is not a skill, and links are not named as files.
    let last = bench.asked().pop().expect("a request");
    let results = results(&last);
    assert!(results[0].contains("links are not followed"), "{results:?}");
}

#[test]
fn a_skill_stays_as_it_was_when_the_agent_began() {
    let turns = vec![
        calls(&[("c1", "ask", "{}")]),
        read("{\"skill\": \"invoices\"}"),
        says("ok"),
    ];
    let bench = bench(turns);
    let waiting = bench.run(&agent(":skills \"skills\" :client-tools [{:name \"ask\"}]"));
    assert!(waiting.starts_with("waiting"), "{waiting}");
    let changed = INVOICES.replace("Add up", "Delete");
    bench
        .project
        .write("skills/invoices/SKILL.md", changed.as_bytes());
    let answer = crate::world::edn("{:outputs [{:tool-call-id \"c1\" :output 1}]}");
    bench.project.answer(&bench.only_wait(), &answer);
    assert!(results(&bench.asked()[2])[1].contains("Add up the lines"));
}

#[test]
fn a_wrong_skill_is_named() {
    let bench = bench(Vec::new());
    let project = &bench.project;
    project.write("other/one/SKILL.md", b"# No front matter");
    project.write("twice/SKILL.md", INVOICES.as_bytes());
    for (fields, expected) in [
        (
            ":skills \"other\"",
            "E1303 `one/SKILL.md` of \"other\": it does not begin with front matter",
        ),
        (
            ":skills [\"skills\" \"twice\"]",
            "E1303 two skills have the name `invoices`",
        ),
        (":skills [7]", "E1303 `:skills` holds folders"),
        (
            ":skills \"skills/invoices/reference\"",
            "E1303 there is no skill in",
        ),
        (":skills \"nowhere\"", "nowhere"),
        (":skills \"../..\"", "E"),
    ] {
        let found = bench.run(&agent(fields));
        assert!(
            found.starts_with('E') && found.contains(expected),
            "{fields}: {found}"
        );
    }
    assert_eq!(bench.asked().len(), 0);
}

const ADD: &str = "{\"a\":1,\"b\":2}";

#[test]
fn a_deferred_tool_is_offered_once_it_is_found() {
    let turns = vec![
        calls(&[("c1", "math_add", ADD)]),
        calls(&[("c2", "tool_search", "{\"query\": \"add numbers\"}")]),
        calls(&[("c3", "math_add", ADD)]),
        says("3"),
    ];
    let bench = Bench::with(STEPS, turns);
    let found = bench.run(&agent(
        ":tools {:steps [:math/add :math/fail]} :defer-tools true",
    ));
    assert_eq!(found, "[\"3\" [false true true]]");
    let asked = bench.asked();
    assert_eq!(offered(&asked[0]), ["tool_search"]);
    assert!(system(&asked[0]).contains("in your next turn: math_add, math_fail."));
    assert!(!asked[0].to_string().contains("Adds two numbers"));
    let results = results(&asked[3]);
    assert!(
        results[0].contains("the tool `math_add` is not loaded. Find it with `tool_search` first")
    );
    assert_eq!(
        results[1],
        "{\"tools\":[{\"name\":\"math_add\",\"description\":\"Adds two numbers.\"}]}"
    );
    assert_eq!(results[2], "{\"sum\":3}");
    assert_eq!(offered(&asked[2]), ["math_add", "tool_search"]);
}

#[test]
fn tools_that_another_option_names_are_not_deferred() {
    let fields =
        ":tools {:steps [:math/add :math/fail] :require {:steps [:math/add]}} :defer-tools true";
    let bench = Bench::with(STEPS, vec![calls(&[("c1", "math_add", ADD)]), says("3")]);
    assert_eq!(bench.run(&agent(fields)), "[\"3\" [true]]");
    assert_eq!(offered(&bench.asked()[0]), ["math_add", "tool_search"]);
    let fields = ":tools {:steps [:math/add :math/fail]} :defer-tools [\"math_fail\"]";
    let bench = Bench::with(STEPS, vec![says("3")]);
    bench.run(&agent(fields));
    assert_eq!(offered(&bench.asked()[0]), ["math_add", "tool_search"]);
}

#[test]
fn loaded_tools_stay_loaded_over_a_restart() {
    let turns = vec![
        calls(&[("c1", "tool_search", "{\"query\": \"math_add\"}")]),
        calls(&[("c2", "ask", "{}")]),
        calls(&[("c3", "math_add", ADD)]),
        says("3"),
    ];
    let bench = Bench::with(STEPS, turns);
    let waiting = bench.run(&agent(
        ":tools {:steps [:math/add]} :client-tools [{:name \"ask\"}] :defer-tools true",
    ));
    assert!(waiting.starts_with("waiting"), "{waiting}");
    let wait = bench.only_wait();
    let project = bench.project.reopen();
    let answer = crate::world::edn("{:outputs [{:tool-call-id \"c2\" :output 1}]}");
    let found = project.answer(&wait, &answer);
    assert_eq!(found, "[\"3\" [true true true]]");
    let body = bench.server.body(2);
    assert_eq!(offered(&body), ["math_add", "tool_search", "ask"]);
}

#[test]
fn an_unknown_deferred_tool_is_named() {
    let bench = Bench::with(STEPS, Vec::new());
    let found = bench.run(&agent(
        ":tools {:steps [:math/add]} :defer-tools [\"math_ad\"]",
    ));
    assert!(
        found.starts_with("E1304 `:defer-tools` names `math_ad`, which is not a tool of the agent | did you mean `math_add`?"),
        "{found}"
    );
}
