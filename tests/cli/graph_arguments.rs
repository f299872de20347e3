//! Arguments of tool calls are checked before anybody is asked to approve the call.

use serde_json::{Value, json};

use crate::graphs::{Graphs, data, function, llm, names, one};
use crate::program::Scratch;

/// Returns a spec with one node that calls a tool.
fn calling(source: &str, name: &str, args: &Value) -> Value {
    let block = match source {
        "function" => "functions",
        _ => "builtin",
    };
    one(
        json!({
            "type": "tool", "tool_ref": {"source": source, "name": name}, "args_template": args, "output_key": "reply",
        }),
        json!({block: [name]}),
    )
}

fn with_move(input_schema: &Value) -> Graphs {
    let graphs = Graphs::serve();
    let created = graphs.post(
        "/functions",
        &json!({
            "name": "move", "code": "(fn [{:keys [n]}] {:moved n})", "agent_tool": true,
            "agent_tool_mode": "read_write", "input_schema": input_schema,
        }),
    );
    assert_eq!(created.status, 201, "{created:?}");
    graphs
}

fn number() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}, "required": ["n"]})
}

/// Runs a spec that must fail before it pauses, and returns the error of its call.
fn refused(graphs: &Graphs, name: &str, spec: &Value, message: &str) -> String {
    graphs.agent(name, spec, json!({}));
    let run = graphs.start(name, &json!({"message": message}));
    let events = graphs.events(&run);
    assert!(!names(&events).contains(&"run_paused"), "{events:?}");
    let ends = data(&events, "tool_call_end");
    assert_eq!(ends[0]["status"], "error", "{events:?}");
    ends[0]["error"].as_str().expect("an error").to_owned()
}

#[test]
fn nobody_approves_a_call_whose_arguments_do_not_fit() {
    let graphs = with_move(&number());
    let spec = calling("function", "move", &json!({"n": "{{ input.message }}"}));
    let begin = "the arguments of the tool `move` do not fit its schema: ";
    assert_eq!(
        refused(&graphs, "moves", &spec, "x"),
        format!("{begin}`n` must be an integer, got \"x\"")
    );
    assert_eq!(
        refused(&graphs, "far", &spec, "10"),
        format!("{begin}`n` must be at most 9, got 10")
    );
    let empty = calling("function", "move", &json!({}));
    assert_eq!(
        refused(&graphs, "empty", &empty, "x"),
        format!("{begin}`n` is missing")
    );
}

/// A template makes texts only, so a text that is an integer is one where the schema has an integer.
#[test]
fn a_text_of_a_template_becomes_the_number_that_the_schema_names() {
    let graphs = with_move(&number());
    let spec = calling("function", "move", &json!({"n": "{{ input.message }}"}));
    graphs.agent("moves", &spec, json!({}));
    let run = graphs.start("moves", &json!({"message": "7"}));
    let token = graphs.paused(&run);
    let answer = json!({"approval_token": token, "approved": true});
    let resumed = graphs.post(&format!("{run}/resume"), &answer);
    assert_eq!(resumed.status, 202, "{resumed:?}");
    let events = graphs.events(&run);
    assert_eq!(
        data(&events, "tool_call_start")[0]["args"],
        json!({"n": 7}),
        "{events:?}"
    );
    assert_eq!(
        data(&events, "tool_call_end")[0]["result"],
        json!({"moved": 7})
    );
}

#[test]
fn a_model_gets_the_problem_of_its_call() {
    let graphs = Graphs::serve();
    let schema = json!({"properties": {"id": {"type": "string"}}, "required": ["id"], "additionalProperties": false});
    let changed = graphs.send(
        "PATCH",
        "/functions/cancel",
        &json!({"input_schema": schema}),
    );
    assert_eq!(changed.status, 200, "{changed:?}");
    let spec = one(
        llm("WRITE", &[function("cancel"), function("lookup")]),
        json!({"functions": ["cancel", "lookup"]}),
    );
    let error = refused(&graphs, "writes", &spec, "x");
    assert!(
        error.ends_with("`id` is missing; `user` is unknown: expected id"),
        "{error}"
    );
}

#[test]
fn nobody_approves_a_built_in_call_that_lacks_an_argument() {
    let graphs = Graphs::serve();
    for (tool, args, expected) in [
        (
            "insert_row",
            json!({"table": "t"}),
            "the argument `row` is missing",
        ),
        (
            "delete_row",
            json!({"key": {"id": 1}}),
            "the argument `table` is missing",
        ),
        (
            "delete_row",
            json!({"table": "t", "key": {}}),
            "the argument `key` has no cells, which would mean every row",
        ),
        (
            "write_storage",
            json!({"path": "a", "content": 1, "content_base64": "MQ=="}),
            "expected the argument `content` or `content_base64`, got both",
        ),
    ] {
        let name = expected.replace(|byte: char| !byte.is_ascii_lowercase(), "-");
        let name: String = format!("a{name}").chars().take(60).collect();
        let spec = calling("builtin", tool, &args);
        assert_eq!(refused(&graphs, &name, &spec, "x"), expected);
    }
}

/// Cells that are not the key of a table fit several rows, and `delete_row` deletes one.
#[test]
fn a_row_is_deleted_by_cells_that_only_it_has() {
    let graphs = Graphs::serve();
    graphs.scratch.write(
        "fill.edn",
        "{:slug :fill :flow '(flow/step :table :fill {:op :upsert :table \"o\" :key-fields [:id]
           :rows [{:id 1 :v \"x\"} {:id 2 :v \"x\"} {:id 3 :v \"y\"}]})}",
    );
    graphs.scratch.run(&["run", "fill.edn", "--quiet"]).ok();
    for (name, key, expected) in [
        ("several", json!({"v": "x"}), json!(null)),
        ("one", json!({"id": 2}), json!(1)),
    ] {
        let spec = calling("builtin", "delete_row", &json!({"table": "o", "key": key}));
        graphs.agent(name, &spec, json!({}));
        let run = graphs.start(name, &json!({"message": "x"}));
        let token = graphs.paused(&run);
        let answer = json!({"approval_token": token, "approved": true});
        assert_eq!(graphs.post(&format!("{run}/resume"), &answer).status, 202);
        let events = graphs.events(&run);
        let end = data(&events, "tool_call_end")[0].clone();
        assert_eq!(
            end["result"]["rows-deleted"], expected,
            "{name}: {events:?}"
        );
    }
    graphs.scratch.write(
        "count.edn",
        "{:slug :count :flow '(count (:rows (flow/step :table :all {:op :query :table \"o\"})))}",
    );
    let left = graphs.scratch.run(&["run", "count.edn", "--quiet"]).ok();
    assert_eq!(left.trim_end(), "2");
}

#[test]
fn the_examples_of_the_namespace_hold() {
    let scratch = Scratch::new();
    let code = "(do (require 'flow.arguments) (in-ns 'flow.arguments)
      (let [examples (for [[name var] (ns-publics 'flow.arguments)
                           example (let [pairs (:examples (meta var))] (if (seq? pairs) (second pairs) pairs))]
                       (cons name example))
            wrong (for [[name form expected] examples
                        :let [found (try (eval form) (catch Throwable e e))]
                        :when (not= found expected)]
                    [name form found])]
        [(count examples) (vec wrong)]))";
    let printed = scratch.run(&["eval", code]).ok();
    assert_eq!(printed.trim_end(), "[5 []]");
}
