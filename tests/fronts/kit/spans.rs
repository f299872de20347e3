//! Spans of runs, and the filters that select them.

use flowstone_fronts::kit::span_filter::SpanFilter;
use flowstone_fronts::kit::{catalog, schema};
use serde_json::{Value as Json, json};

use super::project::Project;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, future)
}

/// A span with attributes of each type.
fn span() -> Json {
    json!({
        "trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331", "parent_id": null,
        "trace_type": "invocation", "span_type": "tool", "span_kind": "SPAN_KIND_INTERNAL",
        "span_name": "execute_tool slack__SEND_MESSAGE",
        "start_time": "2026-01-31T09:30:00.000000Z", "end_time": null,
        "status_code": "STATUS_CODE_OK", "status_message": "",
        "attributes": {
            "gen_ai.tool.name": "slack__SEND_MESSAGE", "n": 5, "text": "5", "tags": ["a", "b"],
            "nested": {"deep": {"x": 1}}, "flag": true,
            "input": {"value": {"channel": "General", "text": "100% Sure_ly"}},
            "output": {"value": {"ok": true}},
        },
        "events": [{"name": "annotation", "attributes": {"id": "ann_1", "score": 2}}],
        "links": [],
    })
}

fn fits(condition: Json) -> String {
    let filter = json!({"conditions": [condition]});
    match SpanFilter::read(&filter, "/filtering") {
        Ok(filter) => filter
            .fits(span().as_object().expect("an object"))
            .to_string(),
        Err(error) => error.details.expect("details")["path"].to_string(),
    }
}

/// Conditions, and whether the span fits them; for one that is refused, the place that its error names.
const CONDITIONS: &[(&str, &str)] = &[
    (r#"{"field": "span_type", "value": "tool"}"#, "true"),
    (
        r#"{"field": "span_type", "operator": "is_not", "value": "tool"}"#,
        "false",
    ),
    (
        r#"{"field": "span_type", "operator": "in", "value": ["chat", "tool"]}"#,
        "true",
    ),
    (
        r#"{"field": "span_type", "operator": "not_in", "value": ["chat", "tool"]}"#,
        "false",
    ),
    (
        r#"{"field": "parent_id", "operator": "is", "value": null}"#,
        "true",
    ),
    (
        r#"{"field": "parent_id", "operator": "is_not", "value": "x"}"#,
        "true",
    ),
    (
        r#"{"field": "parent_id", "operator": "exists", "value": null}"#,
        "false",
    ),
    (
        r#"{"field": "parent_id", "operator": "not_exists", "value": null}"#,
        "true",
    ),
    (
        r#"{"field": "span_name", "operator": "startswith", "value": "EXECUTE_"}"#,
        "true",
    ),
    (
        r#"{"field": "span_name", "operator": "startswith", "value": "%"}"#,
        "false",
    ),
    (
        r#"{"field": "span_name", "operator": "endswith", "value": "send_message"}"#,
        "true",
    ),
    (
        r#"{"field": "span_name", "operator": "contains", "value": "slack"}"#,
        "true",
    ),
    (
        r#"{"field": "span_name", "operator": "matches", "value": "tool slack"}"#,
        "true",
    ),
    (
        r#"{"field": "span_name", "operator": "matches", "value": "t.*k"}"#,
        "false",
    ),
    (
        r#"{"field": "span_name", "operator": "like", "value": "execute_tool %MESSAGE"}"#,
        "true",
    ),
    (
        r#"{"field": "span_name", "operator": "like", "value": "execute_too_ %"}"#,
        "true",
    ),
    (
        r#"{"field": "span_name", "operator": "like", "value": "tool"}"#,
        "false",
    ),
    (
        r#"{"field": "start_time", "operator": "gt", "value": "2026-01-31T09:29:59Z"}"#,
        "true",
    ),
    (
        r#"{"field": "start_time", "operator": "is", "value": "2026-01-31T10:30:00+01:00"}"#,
        "true",
    ),
    (
        r#"{"field": "start_time", "operator": "btwn", "value": ["2026-01-31T09:30:00Z", "2026-02-01T00:00:00Z"]}"#,
        "true",
    ),
    (
        r#"{"field": "end_time", "operator": "exists", "value": null}"#,
        "false",
    ),
    (
        r#"{"field": "end_time", "operator": "lt", "value": "2030-01-01T00:00:00Z"}"#,
        "false",
    ),
    (
        r#"{"field": "attributes", "key": "n", "operator": "eq", "value": 5}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "key": "n", "operator": "eq", "value": 5.0}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "key": "text", "operator": "eq", "value": 5}"#,
        "false",
    ),
    (
        r#"{"field": "attributes", "key": "n", "operator": "neq", "value": 6}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "key": "missing", "operator": "neq", "value": 6}"#,
        "false",
    ),
    (
        r#"{"field": "attributes", "key": "n", "operator": "gte", "value": 5}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "key": "n", "operator": "lt", "value": 5}"#,
        "false",
    ),
    (
        r#"{"field": "attributes", "key": "n", "operator": "lte", "value": "9"}"#,
        "false",
    ),
    (
        r#"{"field": "attributes", "key": "n", "operator": "btwn", "value": [5, 6]}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "key": "n", "operator": "btwn", "value": [6, 7]}"#,
        "false",
    ),
    (
        r#"{"field": "attributes", "key": "flag", "operator": "is", "value": true}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "key": "nested", "operator": "is", "value": {"deep": {"x": 1.0}}}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "key": "nested.deep.x", "operator": "is", "value": 1}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "key": "gen_ai.tool.name", "operator": "is", "value": "slack__SEND_MESSAGE"}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "key": "gen_ai.tool.name", "operator": "is", "value": "slack__send_message"}"#,
        "false",
    ),
    (
        r#"{"field": "attributes", "key": "tags", "operator": "in", "value": ["b", "c"]}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "key": "tags", "operator": "has", "value": "a"}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "key": "tags", "operator": "has_not", "value": "a"}"#,
        "false",
    ),
    (
        r#"{"field": "attributes", "key": "missing", "operator": "has_not", "value": "a"}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "key": "missing", "operator": "not_in", "value": ["a"]}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "key": "missing", "operator": "is_not", "value": "a"}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "key": "missing", "operator": "is", "value": null}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "key": "nested.deep", "operator": "has", "value": "x"}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "key": "input.value.text", "operator": "contains", "value": "100% s"}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "key": "input.value.text", "operator": "like", "value": "100%sure_ly"}"#,
        "true",
    ),
    (
        r#"{"field": "attributes", "operator": "has", "value": "n"}"#,
        "true",
    ),
    (
        r#"{"field": "events", "operator": "in", "value": [{"attributes": {"id": "ann_1"}}]}"#,
        "true",
    ),
    (
        r#"{"field": "events", "operator": "in", "value": [{"attributes": {"id": "ann_2"}}]}"#,
        "false",
    ),
    (
        r#"{"field": "events", "operator": "has", "value": "score"}"#,
        "true",
    ),
    (
        r#"{"field": "events", "operator": "exists", "value": null}"#,
        "true",
    ),
    (
        r#"{"field": "links", "operator": "exists", "value": null}"#,
        "false",
    ),
    (
        r#"{"field": "content", "operator": "contains", "value": "general SURE ok"}"#,
        "true",
    ),
    (
        r#"{"field": "content", "operator": "contains", "value": "general nothing"}"#,
        "false",
    ),
    (
        r#"{"field": "attributes", "key": "tags", "operator": "in", "value": ["a", "c"], "options": {"all": true}}"#,
        "false",
    ),
    (
        r#"{"field": "span_name", "operator": "contains", "value": "SLACK", "options": {"case_sensitive": true}}"#,
        "false",
    ),
    (
        r#"{"field": "span_name", "operator": "matches", "value": "slack", "options": {"exact_match": true}}"#,
        "false",
    ),
    // What cannot be a condition is refused where it is wrong.
    (r#"{"value": 1}"#, "/filtering/conditions/0/field"),
    (
        r#"{"field": "name", "value": 1}"#,
        "/filtering/conditions/0/field",
    ),
    (
        r#"{"field": "span_type", "operator": "contains", "value": "x"}"#,
        "/filtering/conditions/0/operator",
    ),
    (
        r#"{"field": "span_name", "operator": "similar", "value": "x"}"#,
        "/filtering/conditions/0/operator",
    ),
    (
        r#"{"field": "content", "operator": "is", "value": "x"}"#,
        "/filtering/conditions/0/operator",
    ),
    (
        r#"{"field": "start_time", "operator": "exists", "value": null}"#,
        "/filtering/conditions/0/operator",
    ),
    (
        r#"{"field": "start_time", "operator": "gt", "value": "soon"}"#,
        "/filtering/conditions/0/value",
    ),
    (
        r#"{"field": "span_type", "operator": "in", "value": "tool"}"#,
        "/filtering/conditions/0/value",
    ),
    (
        r#"{"field": "attributes", "key": "n", "operator": "btwn", "value": [1]}"#,
        "/filtering/conditions/0/value",
    ),
    (
        r#"{"field": "attributes", "key": "n", "operator": "contains", "value": 5}"#,
        "/filtering/conditions/0/value",
    ),
    (
        r#"{"field": "span_type", "operator": "is", "value": 5}"#,
        "/filtering/conditions/0/value",
    ),
    (
        r#"{"field": "attributes", "operator": "gt", "value": 5}"#,
        "/filtering/conditions/0/key",
    ),
    (
        r#"{"field": "span_type", "key": "a", "value": "tool"}"#,
        "/filtering/conditions/0/key",
    ),
    // What a field never is.
    (
        r#"{"field": "span_type", "value": "banana"}"#,
        "/filtering/conditions/0/value",
    ),
    (
        r#"{"field": "status_code", "value": "OK"}"#,
        "/filtering/conditions/0/value",
    ),
    (
        r#"{"field": "span_kind", "operator": "not_in", "value": ["SPAN_KIND_CLIENT", "CLIENT"]}"#,
        "/filtering/conditions/0/value",
    ),
    (
        r#"{"field": "status_code", "value": "status_code_ok"}"#,
        "/filtering/conditions/0/value",
    ),
    (
        r#"{"field": "attributes", "operator": "is", "value": {}}"#,
        "/filtering/conditions/0/key",
    ),
    (
        r#"{"field": "attributes", "operator": "exists"}"#,
        "/filtering/conditions/0/key",
    ),
    // A time without an offset could be any of 24 hours.
    (
        r#"{"field": "start_time", "operator": "gt", "value": "2026-01-31T09:30:00"}"#,
        "/filtering/conditions/0/value",
    ),
    (
        r#"{"field": "start_time", "operator": "gt", "value": "2026-01-31"}"#,
        "/filtering/conditions/0/value",
    ),
    (
        r#"{"field": "start_time", "operator": "gt", "value": "2020-01-31T09:30:00-05:00"}"#,
        "true",
    ),
];

#[test]
fn the_schema_of_a_filter_is_closed_at_every_depth() {
    let tool = catalog::find("query_spans").expect("the tool");
    let refused = |filter: Json| {
        let arguments = json!({"filtering": filter});
        let checked = schema::check(tool, arguments.as_object().expect("an object"));
        let error = checked.err()?;
        Some(error.details.expect("details")["path"].to_string())
    };
    let deep =
        |condition: Json| json!({"conditions": [{"conditions": [{"conditions": [condition]}]}]});
    assert_eq!(
        refused(deep(json!({"field": "span_type", "value": "tool"}))),
        None
    );
    let path = "\"/filtering/conditions/0/conditions/0/conditions/0";
    for (condition, at) in [
        (json!({"feild": "span_type"}), "/feild\""),
        (json!({"field": 5}), "/field\""),
        (
            json!({"field": "span_type", "options": {"all": "yes"}}),
            "/options/all\"",
        ),
    ] {
        assert_eq!(refused(deep(condition)), Some(format!("{path}{at}")));
    }
}

#[test]
fn every_operator_selects_what_it_says() {
    for (condition, expected) in CONDITIONS {
        let json = serde_json::from_str(condition).expect("JSON");
        let found = fits(json);
        assert_eq!(found.trim_matches('"'), *expected, "{condition}");
    }
}

#[test]
fn groups_are_combined() {
    let tool = json!({"field": "span_type", "value": "tool"});
    let chat = json!({"field": "span_type", "value": "chat"});
    let group = |operator: &str, conditions: Json| {
        let filter = json!({"operator": operator, "conditions": conditions});
        match SpanFilter::read(&filter, "/f") {
            Ok(filter) => filter
                .fits(span().as_object().expect("an object"))
                .to_string(),
            Err(error) => error.details.expect("details")["path"].to_string(),
        }
    };
    for (operator, conditions, expected) in [
        ("and", json!([tool, chat]), "false"),
        ("or", json!([tool, chat]), "true"),
        ("not", json!([chat]), "true"),
        ("nand", json!([tool, chat]), "true"),
        ("nand", json!([tool, tool]), "false"),
        ("nor", json!([chat, chat]), "true"),
        ("nor", json!([tool, chat]), "false"),
        ("not", json!([]), "true"),
        (
            "and",
            json!([{"operator": "not", "conditions": [{"operator": "or", "conditions": [chat]}]}]),
            "true",
        ),
        ("not", json!([tool, chat]), "\"/f/conditions\""),
        ("xor", json!([tool]), "\"/f/operator\""),
        ("and", json!("tool"), "\"/f/conditions\""),
    ] {
        assert_eq!(
            group(operator, conditions.clone()),
            expected,
            "{operator} {conditions}"
        );
    }
    let many = json!(vec![tool.clone(); 65]);
    assert_eq!(group("and", many), "\"/f\"");
    let mut deep = tool;
    for _ in 0..10 {
        deep = json!({"conditions": [deep]});
    }
    assert!(group("and", json!([deep])).starts_with("\"/f/conditions/0"));
}

fn of_trace(run: &str) -> Json {
    json!({"filtering": {"conditions": [{"field": "trace_id", "operator": "is", "value": run}]}})
}

#[test]
fn a_trace_is_returned_in_order_with_what_each_call_gave() {
    block_on(async {
        let project = Project::new();
        let body = r#"(let [a (flow/step :function :one {:code '(fn [x] (* 2 (:n x))) :input {:n 21}})]
            (try (flow/step :function :bad {:code '(fn [_] (throw (ex-info "no luck" {}))) :input {:a a}})
                 (catch Exception _ {:a a})))"#;
        let run = project.run(body).await;
        let answer = project.call("query_spans", of_trace(run.as_str())).await;
        let spans = answer["spans"].as_array().expect("spans").clone();
        assert_eq!(answer["count"], spans.len(), "{answer}");
        assert_eq!(answer["next"], Json::Null);
        let names: Vec<&str> = spans
            .iter()
            .filter_map(|it| it["span_name"].as_str())
            .collect();
        assert_eq!(
            names,
            ["invoke_workflow digest", "function one", "function bad"]
        );
        let root = &spans[0];
        assert_eq!(root["parent_id"], Json::Null);
        assert_eq!(root["span_type"], "workflow");
        assert_eq!(root["status_code"], "STATUS_CODE_OK");
        assert_eq!(root["attributes"]["output"], json!({"value": {"a": 42}}));
        assert_eq!(root["attributes"]["flowstone.run.id"], run.as_str());
        assert_eq!(spans[1]["attributes"]["output"], json!({"value": 42}));
        assert_eq!(spans[1]["parent_id"], root["span_id"]);
        let bad = &spans[2];
        assert_eq!(bad["status_code"], "STATUS_CODE_ERROR");
        let error = &bad["attributes"]["output"]["value"];
        assert!(
            error["error"]
                .as_str()
                .is_some_and(|it| it.contains("no luck")),
            "{bad}"
        );
        assert!(error["code"].is_string(), "{bad}");
        // Other ways to write the trace.
        let trace = root["trace_id"].as_str().expect("a trace");
        assert_eq!(trace.len(), 32);
        let uuid = [
            &trace[..8],
            &trace[8..12],
            &trace[12..16],
            &trace[16..20],
            &trace[20..],
        ]
        .join("-");
        for written in [
            trace.to_owned(),
            uuid,
            format!("0x{}", trace.to_uppercase()),
        ] {
            let same = project.call("query_spans", of_trace(&written)).await;
            assert_eq!(same, answer, "{written}");
        }
        let none = project.call("query_spans", of_trace(&"0".repeat(32))).await;
        assert_eq!(none["count"], 0);
    });
}

#[test]
fn pages_continue_where_they_ended() {
    block_on(async {
        let project = Project::new();
        project.run("(mapv (fn [n] (flow/step :function :f {:code '(fn [x] (:n x)) :input {:n n}})) [1 2 3])").await;
        for _ in 0..3 {
            project.run_again().await;
        }
        let all = project
            .call(
                "query_spans",
                json!({"fields": ["span_name", "attributes.output.value"]}),
            )
            .await;
        assert_eq!(all["count"], 16, "{all}");
        let span = &all["spans"][0];
        let names: Vec<&String> = span.as_object().expect("an object").keys().collect();
        assert_eq!(names, ["trace_id", "span_id", "span_name", "attributes"]);
        assert_eq!(span["attributes"], json!({"output": {"value": 3}}));
        for order in ["ascending", "descending"] {
            let mut arguments = json!({"windowing": {"limit": 5, "order": order}});
            let mut ids = Vec::new();
            loop {
                let page = project.call("query_spans", arguments.clone()).await;
                let spans = page["spans"].as_array().expect("spans");
                ids.extend(spans.iter().map(|it| it["span_id"].to_string()));
                let Some(next) = page["next"].as_str() else {
                    break;
                };
                arguments["windowing"]["next"] = json!(next);
            }
            assert_eq!(ids.len(), 16, "{order}");
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), 16, "{order}");
        }
        for (arguments, path) in [
            (json!({"windowing": {"limit": 0}}), "/windowing/limit"),
            (json!({"windowing": {"limit": 1001}}), "/windowing/limit"),
            (json!({"windowing": {"interval": 5}}), "/windowing/interval"),
            (json!({"windowing": {"rate": 0.5}}), "/windowing/rate"),
            (
                json!({"windowing": {"oldest": "soon"}}),
                "/windowing/oldest",
            ),
            (json!({"windowing": {"next": "abc"}}), "/windowing/next"),
            (json!({"fields": ["name"]}), "/fields/0"),
            (json!({"query_ref": {}}), "/query_ref"),
            (json!({"project_id": "x"}), "/project_id"),
        ] {
            let refused = project.call("query_spans", arguments.clone()).await;
            assert_eq!(refused["code"], "invalid_arguments", "{arguments}");
            assert_eq!(refused["details"]["path"], path, "{refused}");
        }
        let later = json!({"windowing": {"oldest": "2200-01-01T00:00:00Z"}});
        assert_eq!(project.call("query_spans", later).await["count"], 0);
    });
}

#[test]
fn spans_of_runs_that_overlap_are_in_order() {
    block_on(async {
        let project = Project::new();
        // The outer run begins first and ends last, and the sleep makes its last span the newest.
        let pause = "(flow/step :sleep :pause {:millis 5})";
        let step = |name: &str| format!("(flow/step :function :{name} {{:code '(fn [_] 1)}})");
        let (first, inner, last) = (step("first"), step("inner"), step("last"));
        let child = format!("{{:slug :child :flow '(do {pause} {inner} {pause})}}");
        let flows = project.engine.project_root().join("flows");
        std::fs::create_dir_all(&flows).expect("a folder");
        std::fs::write(flows.join("child.edn"), child).expect("a file");
        project
            .run(&format!(
                "(do {first} {pause} (flow/call-flow :child {{}} {{:id :call}}) {last})"
            ))
            .await;
        let names = |order: &'static str, limit: usize| {
            let project = &project;
            async move {
                let fields = json!(["span_name", "start_time"]);
                let window = json!({"order": order, "limit": limit});
                let mut arguments = json!({"fields": fields, "windowing": window});
                let mut found: Vec<(String, String)> = Vec::new();
                loop {
                    let page = project.call("query_spans", arguments.clone()).await;
                    let spans = page["spans"].as_array().expect("spans");
                    assert!(spans.len() <= limit, "{page}");
                    for span in spans {
                        let text = |name: &str| span[name].as_str().expect("text").to_owned();
                        found.push((text("start_time"), text("span_name")));
                    }
                    let Some(next) = page["next"].as_str() else {
                        return found;
                    };
                    arguments["windowing"]["next"] = json!(next);
                }
            }
        };
        let all = names("descending", 100).await;
        let times: Vec<&String> = all.iter().map(|(time, _)| time).collect();
        assert!(times.is_sorted_by(|one, other| one >= other), "{all:?}");
        let at = |name: &str| {
            let found = all.iter().position(|(_, known)| known.ends_with(name));
            found.unwrap_or_else(|| panic!("{name}: {all:?}"))
        };
        let (last, inner) = (at("function last"), at("function inner"));
        let (child, first) = (at("invoke_workflow child"), at("function first"));
        assert!(last < inner && inner < child && child < first, "{all:?}");
        for limit in [1, 2, 3] {
            assert_eq!(names("descending", limit).await, all, "{limit}");
        }
        let mut oldest = names("ascending", 2).await;
        let times: Vec<&String> = oldest.iter().map(|(time, _)| time).collect();
        assert!(times.is_sorted(), "{oldest:?}");
        let mut newest = all.clone();
        oldest.sort();
        newest.sort();
        assert_eq!(oldest, newest, "the same spans");
    });
}

#[test]
fn annotations_are_events_of_the_own_trace() {
    block_on(async {
        let project = Project::new();
        let note = json!({"references": {"evaluator": {"slug": "self-check"}}, "data": {"outputs": {"score": 0.5}}});
        let none = project.call("annotate_trace", note.clone()).await;
        assert_eq!(none["code"], "no_trace");
        let run = project.run("1").await;
        let other = project.run_again().await;
        *project.caller.borrow_mut() = Some(run.clone());
        // Clients may wrap the arguments.
        let made = project
            .call("annotate_trace", json!({"annotation": note}))
            .await;
        let made = &made["annotation"];
        assert_eq!(made["data"], note["data"], "{made}");
        let mut named = note.clone();
        named["trace_id"] = json!("0".repeat(32));
        let refused = project.call("annotate_trace", named).await;
        assert_eq!(refused["code"], "invalid_arguments");
        let spans = project.call("query_spans", of_trace(run.as_str())).await;
        let root = &spans["spans"][0];
        assert_eq!(root["span_id"], made["span_id"]);
        assert_eq!(root["trace_id"], made["trace_id"]);
        assert_eq!(root["events"][0]["name"], "annotation");
        assert_eq!(root["events"][0]["attributes"]["data"], note["data"]);
        let spans = project.call("query_spans", of_trace(other.as_str())).await;
        assert_eq!(spans["spans"][0]["events"], json!([]));
    });
}
