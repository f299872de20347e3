//! The rows of `tests/coverage/agent.tsv` about the tools that an agent gets, and about the outcome of a call. The
//! tests inspect the requests to the model, and the effects of the tools.

use expect_test::{Expect, expect};
use serde_json::Value as Json;

use crate::agent::{Bench, STEPS, calls, says};

/// Returns the names of the tools that were sent to the model.
fn given(bench: &Bench, turn: usize) -> Vec<(String, Json)> {
    let asked = &bench.asked()[turn];
    let tools = asked["tools"].as_array().cloned().unwrap_or_default();
    tools
        .iter()
        .map(|tool| {
            let name = tool["function"]["name"].as_str().unwrap_or_default();
            (name.to_owned(), tool["function"]["parameters"].clone())
        })
        .collect()
}

fn names(bench: &Bench, turn: usize) -> String {
    let names: Vec<String> = given(bench, turn)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    names.join(" ")
}

/// Returns the result of the last call that was sent to the model.
fn tool_result(bench: &Bench) -> String {
    let asked = bench.asked();
    let messages = asked
        .last()
        .and_then(|body| body["messages"].as_array().cloned());
    let last = messages
        .and_then(|messages| messages.last().cloned())
        .unwrap_or_default();
    match &last["content"] {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Makes the model call a tool once and then answer; returns the result that was sent to it.
fn call(definitions: &str, config: &str, (name, arguments): (&str, &str)) -> (Bench, String) {
    let bench = Bench::with(
        definitions,
        vec![calls(&[("c1", name, arguments)]), says("Done.")],
    );
    let found = bench.run(&format!(
        "(:content (flow/step :agent :a {{:connection :ai :objective \"Do it.\" {config}}}))"
    ));
    assert_eq!(found, "\"Done.\"", "{:?}", bench.asked().last());
    let said = tool_result(&bench);
    (bench, said)
}

fn with_tools(config: &str, definitions: &str, expected: &str) {
    let bench = Bench::with(definitions, vec![says("Done.")]);
    let found = bench.run(&format!(
        "(:content (flow/step :agent :a {{:connection :ai :objective \"Do it.\" {config}}}))"
    ));
    match found.as_str() {
        "\"Done.\"" => assert_eq!(names(&bench, 0), expected, "{config}"),
        error => assert_eq!(error, expected, "{config}"),
    }
}

#[test]
fn available_built_ins() {
    with_tools(
        ":available-steps [:files :table :search]",
        "",
        "files table search",
    );
    with_tools(":available-steps [\"search\"]", "", "search");
    with_tools(
        ":available-steps (vec [:tabel])",
        "",
        "E0836 :available-steps 0: there is no built-in tool `tabel` | did you mean `table`?",
    );
}

#[test]
fn tools_allowed() {
    with_tools(":tools {:allowed [\"files\" \"table\"]}", "", "files table");
    with_tools(
        ":available-steps [:search] :tools {:allowed [\"files\" \"search\"]}",
        "",
        "search files",
    );
    with_tools(
        ":tools {:allowed (vec [\"http\"])}",
        "",
        "E0836 :tools :allowed 0: there is no built-in tool `http` | a `:http` step becomes a tool when it is packaged: \
         `:steps [{:id :my/http :type :http :input-schema [...]}]` and `:tools {:steps [:my/http]}`",
    );
}

#[test]
fn tools_steps() {
    let (bench, said) = call(
        STEPS,
        ":tools {:steps [:math/add]}",
        ("math_add", "{\"a\": 2, \"b\": \"40\"}"),
    );
    assert_eq!(names(&bench, 0), "math_add");
    assert_eq!(
        given(&bench, 0)[0].1.to_string(),
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"integer\"}},\"required\":[\"a\",\"b\"],\"additionalProperties\":false}"
    );
    assert_eq!(said, "{\"sum\":42}");
}

const AGENTS: &str =
    ":agents [{:id :review/security :description \"Looks for holes.\" :connection :ai
   :objective \"Name every hole.\" :instructions \"Be short.\" :inputs {:depth 1}
   :input-schema [:map [:diff :string] [:depth {:optional true} :int]]}
  {:id :review/plain :connection :ai :objective \"Help.\"}
  {:id :review/rated :connection :ai :objective \"Rate it.\" :output-schema [:map [:score :int]]}]";

#[test]
fn tools_agents() {
    let bench = Bench::with(
        AGENTS,
        vec![
            calls(&[("c1", "review_security", "{\"diff\": \"x = y\"}")]),
            says("None."),
            says("No holes."),
        ],
    );
    let found = bench.run(
        "(:content (flow/step :agent :a {:connection :ai :objective \"Review.\" :tools {:agents [:review/security :review/plain]}}))",
    );
    assert_eq!(found, "\"No holes.\"");
    assert_eq!(names(&bench, 0), "review_security review_plain");
    let asked = bench.asked();
    let inner = asked[1]["messages"].to_string();
    for part in ["Name every hole.", "Be short.", "x = y"] {
        assert!(inner.contains(part), "{inner}");
    }
    // The calling model receives only the text of the answer.
    assert_eq!(tool_result(&bench), "None.");
}

#[test]
fn tools_breyta() {
    for name in ["breyta", "workspace"] {
        let config = format!(":tools {{:{name} {{:allow [:flows/list :runs/show]}}}}");
        let (bench, said) = call("", &config, (name, "{\"op\": \"flows/list\"}"));
        assert_eq!(names(&bench, 0), name);
        assert_eq!(
            given(&bench, 0)[0].1["properties"]["op"]["enum"].to_string(),
            "[\"flows/list\",\"runs/show\"]"
        );
        assert_eq!(said, "{\"flows\":[]}");
        let (_, said) = call("", &config, (name, "{\"op\": \"flows/run\", \"args\": {}}"));
        assert!(
            said.contains("must be one of [\\\"flows/list\\\",\\\"runs/show\\\"]")
                || said.contains("must be one of [\"flows/list\",\"runs/show\"]"),
            "{said}"
        );
    }
}

fn ops(tool: &str, config: &str, expected: Expect) {
    let bench = Bench::new(vec![says("Done.")]);
    bench.run(&format!(
        "(flow/step :agent :a {{:connection :ai :objective \"Do it.\" {config}}})"
    ));
    let (_, parameters) = given(&bench, 0)
        .into_iter()
        .find(|(name, _)| name == tool)
        .unwrap();
    expected.assert_eq(&parameters["properties"]["op"]["enum"].to_string());
}

#[test]
fn ops_of_files() {
    ops(
        "files",
        ":available-steps [:files]",
        expect![[
            r#"["apply-edit","delete-file","diff","init-changeset","list","move-file","read","replace","replace-lines","search","write-file"]"#
        ]],
    );
    // Only an existing tree can be read: a model does not choose folders.
    let (_, said) = call(
        "",
        ":available-steps [:files]",
        (
            "files",
            "{\"op\": \"list\", \"source\": {\"type\": \"dir\", \"path\": \"/etc\"}}",
        ),
    );
    assert!(
        said.contains("`source` is a reference that begins with `res://`"),
        "{said}"
    );
    let (_, said) = call(
        "",
        ":available-steps [:files]",
        ("files", "{\"op\": \"publish\"}"),
    );
    assert!(said.contains("must be one of"), "{said}");
    // A reference to a tree is accepted.
    let bench = Bench::new(vec![]);
    bench.project.write("src/a.txt", b"hello\n");
    let tree = bench.project.eval(
        "(:uri (flow/step :files :t {:op :resolve-source :source {:type :dir :path \"src\"}}))",
    );
    let arguments = format!(
        "{{\"op\": \"read\", \"source\": {tree}, \"path\": \"a.txt\", \"start_line\": \"1\"}}"
    );
    let bench = Bench::new(vec![calls(&[("c1", "files", &arguments)]), says("Done.")]);
    bench.project.write("src/a.txt", b"hello\n");
    bench.run("(do (flow/step :files :t {:op :resolve-source :source {:type :dir :path \"src\"}}) (flow/step :agent :a {:connection :ai :objective \"Read.\" :available-steps [:files]}))");
    assert!(
        tool_result(&bench).contains("hello"),
        "{}",
        tool_result(&bench)
    );
}

#[test]
fn ops_of_table() {
    ops(
        "table",
        ":available-steps [:table]",
        expect![[
            r#"["aggregate","export","get-row","materialize-join","query","recompute","schema","set-column","update-cell","update-cell-format"]"#
        ]],
    );
    let bench = Bench::new(vec![
        calls(&[(
            "c1",
            "table",
            "{\"op\": \"query\", \"table\": \"people\", \"where\": [[\"age\", \">\", 40]]}",
        )]),
        says("Done."),
    ]);
    bench.run(
        "(do (flow/step :table :w {:op :insert :table \"people\" :rows [{:name \"Ada\" :age 36} {:name \"Grace\" :age 85}]})
             (flow/step :agent :a {:connection :ai :objective \"Who?\" :available-steps [:table]}))",
    );
    let said = tool_result(&bench);
    assert!(said.contains("Grace") && !said.contains("Ada"), "{said}");
    let (_, said) = call(
        "",
        ":available-steps [:table]",
        ("table", "{\"op\": \"query\"}"),
    );
    assert!(said.contains("`query` needs `table`"), "{said}");
    let (_, said) = call(
        "",
        ":available-steps [:table]",
        (
            "table",
            "{\"op\": \"schema\", \"table\": \"t\", \"rows\": []}",
        ),
    );
    assert!(said.contains("has no `rows`"), "{said}");
}

#[test]
fn needs_a_packaged_step() {
    let bench = Bench::new(vec![]);
    for kind in [
        "http", "db", "kv", "function", "notify", "sleep", "wait", "ssh",
    ] {
        let found = bench.project.check(&format!(
            "{{:slug :x :flow '(flow/step :agent :a {{:objective \"x\" :available-steps [:{kind}]}})}}"
        ));
        let expected = format!(
            "E0469 there is no built-in tool `{kind}` | a `:{kind}` step becomes a tool when it is packaged"
        );
        assert!(found.starts_with(&expected), "{found}");
    }
}

#[test]
fn wrong_arguments() {
    for (arguments, expected) in [
        ("{\"a\": 1}", "needs `b`"),
        ("{\"a\": 1, \"b\": \"two\"}", "`b`"),
        ("{\"a\": 1, \"b\": 2, \"c\": 3}", "has no `c`"),
        ("{\"a\": 1,", "not JSON"),
        ("[1, 2]", "an array, not an object"),
    ] {
        let (_, said) = call(
            STEPS,
            ":tools {:steps [:math/add]}",
            ("math_add", arguments),
        );
        assert!(said.contains(expected), "{arguments}: {said}");
    }
    for arguments in [
        "{\"A\": 1, \"b\": 2}",
        "{\"a\": 1, \"b\": 2, \"c\": null}",
        "```json\n{\"a\": 1, \"b\": 2}\n```",
        "\"{\\\"a\\\": 1, \\\"b\\\": 2}\"",
    ] {
        let (_, said) = call(
            STEPS,
            ":tools {:steps [:math/add]}",
            ("math_add", arguments),
        );
        assert_eq!(said, "{\"sum\":3}", "{arguments}");
    }
}

#[test]
fn long_results() {
    let steps = ":steps [{:id :big/text :type :function :defaults {:code '(fn [_] {:text (apply str (repeat 30000 \"x\")) :ref \"res://v1/ws/local/a\"})}}]";
    let (_, said) = call(steps, ":tools {:steps [:big/text]}", ("big_text", "{}"));
    assert!(said.len() < 21_000, "{}", said.len());
    assert!(
        said.contains("more characters: ask for a part]") && said.contains("res://v1/ws/local/a"),
        "{}",
        &said[said.len() - 200..]
    );
}

#[test]
fn agents_id() {
    let bench = Bench::with(AGENTS, vec![says("One."), says("Two.")]);
    assert_eq!(
        bench.run("(:content (flow/step :review/plain {}))"),
        "\"One.\""
    );
    assert_eq!(
        bench.run("(:content (flow/step :review/plain :my-id {:a 1}))"),
        "\"Two.\""
    );
    let found = bench
        .project
        .check("{:slug :x :agents [{:id :plain :objective \"x\"}] :flow '1}");
    assert!(
        found.starts_with("E0468 `:plain` cannot be the `:id` of a named agent"),
        "{found}"
    );
}

#[test]
fn agents_description() {
    let bench = Bench::with(AGENTS, vec![says("Done.")]);
    bench.run("(flow/step :agent :a {:connection :ai :objective \"x\" :tools {:agents [:review/security :review/plain]}})");
    let asked = &bench.asked()[0];
    assert_eq!(
        asked["tools"][0]["function"]["description"],
        "Looks for holes."
    );
    assert_eq!(
        asked["tools"][1]["function"]["description"],
        "Asks another agent, which works independently. Its objective: Help."
    );
}

#[test]
fn agents_fields() {
    let bench = Bench::with(
        ":agents [{:id :a/b :connection :ai :objective \"Go.\" :max-tokens 77 :temperature 0.5 :available-steps [:search]}]",
        vec![says("Done.")],
    );
    bench.run("(flow/step :a/b {})");
    let asked = &bench.asked()[0];
    assert_eq!(asked["temperature"], 0.5);
    assert_eq!(names(&bench, 0), "search");
    let found = bench.project.check("{:slug :x :agents [{:id :a/b :objective \"x\" :max-iteration 5}] :flow '(flow/step :a/b {})}");
    assert_eq!(
        found,
        "E0710 the named agent `:a/b`: a `:agent` step has no option `:max-iteration` | did you mean `:max-iterations`?"
    );
}

#[test]
fn agents_input_schema() {
    let bench = Bench::with(AGENTS, vec![says("Done.")]);
    let found = bench.run("(flow/step :review/security (assoc {} :diff 5))");
    assert!(
        found.starts_with(
            "E0552 the input of `:review/security` does not match its `:input-schema`"
        ),
        "{found}"
    );
    assert!(bench.asked().is_empty());
    assert_eq!(
        bench.run("(:content (flow/step :review/security {:diff \"d\" :depth 3}))"),
        "\"Done.\""
    );
    // The arguments of the call are merged over the agent's own inputs.
    let asked = bench.asked()[0]["messages"].to_string();
    assert!(asked.contains('3') && asked.contains("diff"), "{asked}");
}

#[test]
fn agents_output_schema() {
    let bench = Bench::with(AGENTS, vec![says("{\"score\": 4}")]);
    assert_eq!(
        bench.run("(:content (flow/step :review/rated {}))"),
        "{:score 4}"
    );
    assert!(
        bench.asked()[0]["response_format"]
            .to_string()
            .contains("score")
    );
}

#[test]
fn agents_called() {
    let bench = Bench::with(AGENTS, vec![says("Fine.")]);
    assert_eq!(
        bench.run("(select-keys (flow/step :review/security {:diff \"a\"}) [:content :iterations :provider])"),
        "{:content \"Fine.\" :iterations 1 :provider :openai}"
    );
}

#[test]
fn agents_as_a_tool() {
    let bench = Bench::with(
        AGENTS,
        vec![
            calls(&[("c1", "review_plain", "{\"task\": \"Count to 3.\"}")]),
            says("1 2 3"),
            says("Done."),
        ],
    );
    bench.run("(flow/step :agent :a {:connection :ai :objective \"x\" :tools [:review/plain]})");
    assert!(
        bench.asked()[1]["messages"]
            .to_string()
            .contains("Count to 3.")
    );
    assert_eq!(tool_result(&bench), "1 2 3");
}

/// Two agents that call each other in every turn.
const LOOP: &str = ":agents [{:id :team/plan :connection :ai :objective \"Plan.\" :tools {:agents [:team/build]}}
                             {:id :team/build :connection :ai :objective \"Build.\" :tools {:agents [:team/plan]}}]";

#[test]
fn delegation_ends() {
    // Nested agents need more stack than a test thread has; commands and workers have 64 MB.
    let deep = std::thread::Builder::new().stack_size(32 << 20);
    deep.spawn(delegate).unwrap().join().unwrap();
}

fn delegate() {
    let task = "{\"task\": \"go\"}";
    let turns = || {
        let mut turns = Vec::new();
        for level in 0..5 {
            let name = if level % 2 == 0 {
                "team_build"
            } else {
                "team_plan"
            };
            turns.push(calls(&[("c1", name, task)]));
        }
        turns
    };
    let mut all = turns();
    all.extend((0..5).map(|_| says("Enough.")));
    let bench = Bench::with(LOOP, all);
    assert_eq!(
        bench.run("(:content (flow/step :team/plan {}))"),
        "\"Enough.\""
    );
    let refused = bench.asked()[5]["messages"].to_string();
    assert!(
        refused.contains("agents have handed this on 5 times, and 4 is the most"),
        "{refused}"
    );
}

#[test]
fn envelope_allowed() {
    with_tools(":tools {:allowed [:files \"files\"]}", "", "files");
}

#[test]
fn envelope_steps() {
    with_tools(
        ":tools {:steps [:math/add :math/fail]}",
        STEPS,
        "math_add math_fail",
    );
    with_tools(
        ":tools {:steps (vec [:math/ad])}",
        STEPS,
        "E0836 :tools :steps 0: there is no packaged step `:math/ad` | did you mean `:math/add`?",
    );
}

#[test]
fn envelope_agents() {
    with_tools(":tools {:agents [:review/plain]}", AGENTS, "review_plain");
    with_tools(
        ":tools {:agents (vec [:review/plane])}",
        AGENTS,
        "E0836 :tools :agents 0: there is no named agent `:review/plane` | did you mean `:review/plain`?",
    );
}

#[test]
fn envelope_breyta() {
    with_tools(
        ":tools {:breyta {:allow [:runs/list]} :allowed [\"search\"]}",
        "",
        "search breyta",
    );
    with_tools(
        ":tools {:breyta {:allow (vec [:flows/run])}}",
        "",
        "E0836 :tools :breyta :allow 0: `:flows/run` changes something, and `:mutations` is `:none` | say `:mutations \
         :run-only`, or `:write`",
    );
}

#[test]
fn names_do_not_clash() {
    let steps = ":steps [{:id :my/search :type :function :tool {:name \"search\"} :defaults {:code '(fn [_] 1)}}]";
    with_tools(
        ":tools {:allowed [\"search\"] :steps [:my/search]}",
        steps,
        "E0836 the model would have two tools `search`: `:search` and `:my/search` | give the packaged step another name: \
         `:tool {:name \"...\"}`; or the adapter another `:tool-prefix`",
    );
}

/// Makes the model answer at once, although a tool is required, and then call it.
fn requires(
    definitions: &str,
    tools: &str,
    (name, arguments): (&str, &str),
    more: Vec<crate::server::Say>,
) {
    let mut turns = vec![says("I am done."), calls(&[("c1", name, arguments)])];
    turns.extend(more);
    turns.push(says("Now I am."));
    let bench = Bench::with(definitions, turns);
    let found = bench.run(&format!(
        "(:content (flow/step :agent :a {{:connection :ai :objective \"Do it.\" :tools {tools}}}))"
    ));
    assert_eq!(found, "\"Now I am.\"");
    let reminded = bench.asked()[1]["messages"].to_string();
    assert!(reminded.contains(name), "{reminded}");
}

#[test]
fn require_agents() {
    requires(
        AGENTS,
        "{:agents [:review/plain] :require {:agents [:review/plain]}}",
        ("review_plain", "{\"task\": \"x\"}"),
        vec![says("Yes.")],
    );
}

#[test]
fn breyta_require_approval() {
    let bench = Bench::new(vec![
        calls(&[("c1", "workspace", "{\"op\": \"runs/list\"}")]),
        says("Done."),
    ]);
    let found = bench.run(
        "(let [r (flow/step :agent :a {:connection :ai :objective \"x\"
                   :tools {:workspace {:allow [:runs/list :flows/list] :require-approval [:runs/list]}}})]
           [(:abort? r) (:abort-reason r)])",
    );
    assert_eq!(found, "[true \"approval-required\"]");
    let bench = Bench::new(vec![
        calls(&[("c1", "workspace", "{\"op\": \"flows/list\"}")]),
        says("Done."),
    ]);
    let found = bench.run(
        "(:content (flow/step :agent :a {:connection :ai :objective \"x\"
                   :tools {:workspace {:allow [:runs/list :flows/list] :require-approval [:runs/list]}}}))",
    );
    assert_eq!(found, "\"Done.\"");
}
