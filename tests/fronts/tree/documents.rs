//! Documents of `file://` handles: written after each answer, imported, and compared with their runs.

use serde_json::{Value as Json, json};

use super::project::{Project, run};
use super::walk::DEPLOY;

fn document(project: &Project, name: &str) -> Json {
    let text = std::fs::read_to_string(project.path(name)).expect("a document");
    serde_json::from_str(&text).expect("JSON")
}

async fn started() -> (Project, String) {
    let project = Project::with(&[("deploy.yaml", DEPLOY)]);
    let uri = project.uri("run.json");
    let arguments = json!({"tree_uri": project.uri("deploy.yaml"), "gate": false});
    let answer = project.on(&uri, "start_execution", arguments).await;
    assert_eq!(answer["ok"], true, "{answer}");
    (project, uri)
}

#[test]
fn a_document_has_the_published_shape_after_each_answer() {
    run(async {
        let (project, uri) = started().await;
        let said = document(&project, "run.json");
        let mut keys: Vec<&str> = said
            .as_object()
            .expect("a map")
            .keys()
            .map(|it| &**it)
            .collect();
        keys.sort_unstable();
        let expected = [
            "const",
            "created_at",
            "cursor",
            "flowstone",
            "phase",
            "protocol_accepted",
            "runtime",
            "schema_version",
            "status",
            "trace",
            "tree",
            "tree_uri",
            "updated_at",
            "uri",
            "var",
        ];
        assert_eq!(keys, expected);
        assert_eq!(
            (&said["cursor"], &said["phase"]),
            (&json!("[]"), &json!("idle"))
        );
        assert_eq!(said["schema_version"], 1);
        let steps = &said["tree"]["children"][0]["steps"];
        assert_eq!(
            steps[1],
            json!({"kind": "evaluate", "expression": "$VAR.tests_passed is true."})
        );
        assert_eq!(said["tree"]["children"][1]["retries"], 1);
        project.on(&uri, "next_step", json!({})).await;
        let said = document(&project, "run.json");
        assert_eq!(
            (&said["phase"], &said["cursor"]),
            (&json!("performing"), &json!("{\"path\":[0],\"step\":0}"))
        );
        project
            .on(&uri, "submit", json!({"status": "success"}))
            .await;
        let said = document(&project, "run.json");
        assert_eq!(
            (&said["phase"], &said["cursor"]),
            (&json!("idle"), &json!("null"))
        );
        assert_eq!(
            said["runtime"],
            json!({"node_status": {}, "step_index": {"0": 1}, "retry_count": {}})
        );
        assert_eq!(said["trace"].as_array().expect("a list").len(), 1);
        let left: Vec<String> = std::fs::read_dir(project.folder.path())
            .expect("a folder")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .filter(|name| name.ends_with(".tmp"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    });
}

#[test]
fn a_document_of_another_project_continues_there() {
    run(async {
        let (project, uri) = started().await;
        project.on(&uri, "next_step", json!({})).await;
        project
            .on(
                &uri,
                "var_write",
                json!({"path": "tests_passed", "value": true}),
            )
            .await;
        project.on(&uri, "think", json!({"thought": "x"})).await;
        let mut before = document(&project, "run.json");
        let other = Project::with(&[]);
        // As another runtime writes it.
        before.as_object_mut().expect("a map").remove("flowstone");
        std::fs::write(other.path("run.json"), before.to_string()).expect("written");
        let uri = other.uri("run.json");
        let resumed = other.on(&uri, "resume_execution", json!({})).await;
        assert_eq!(resumed["phase"], "performing", "{resumed}");
        let imported = document(&other, "run.json");
        for key in [
            "var", "const", "runtime", "trace", "cursor", "phase", "status", "tree_uri",
        ] {
            assert_eq!(imported[key], before[key], "{key}");
        }
        assert_eq!(
            other.on(&uri, "next_step", json!({})).await["name"],
            "Run_Tests"
        );
        let answer = other.on(&uri, "submit", json!({"status": "success"})).await;
        assert_eq!(answer["status"], "step_complete");
        let trace = other.on(&uri, "read_trace", json!({})).await;
        assert_eq!(trace[0], before["trace"][0]);
        assert_eq!(trace.as_array().expect("a list").len(), 2);
    });
}

#[test]
fn documents_that_have_ended_are_imported_as_ended() {
    run(async {
        let (project, uri) = started().await;
        let mut before = document(&project, "run.json");
        for (status, answer) in [("complete", "done"), ("failed", "failure")] {
            before.as_object_mut().expect("a map").remove("flowstone");
            before["status"] = json!(status);
            before["cursor"] = json!("null");
            let name = format!("{status}.json");
            std::fs::write(project.path(&name), before.to_string()).expect("written");
            let uri = project.uri(&name);
            assert_eq!(
                project.on(&uri, "next_step", json!({})).await,
                json!({"status": answer})
            );
        }
        assert_eq!(
            project.on(&uri, "next_step", json!({})).await["name"],
            "Run_Tests"
        );
    });
}

#[test]
fn a_document_that_differs_from_its_run_is_refused() {
    run(async {
        let (project, uri) = started().await;
        project.on(&uri, "next_step", json!({})).await;
        let behind = std::fs::read_to_string(project.path("run.json")).expect("a document");
        project
            .on(&uri, "submit", json!({"status": "success"}))
            .await;
        let good = std::fs::read_to_string(project.path("run.json")).expect("a document");
        let mut edited = document(&project, "run.json");
        edited["var"]["tests_passed"] = json!(true);
        std::fs::write(project.path("run.json"), edited.to_string()).expect("written");
        for tool in ["next_step", "resume_execution", "reset_execution"] {
            let refused = project.on(&uri, tool, json!({})).await;
            assert_eq!(refused["code"], "E1210", "{tool}: {refused}");
            let said = refused["error"].as_str().expect("a text");
            assert!(
                said.contains("edited") && said.contains("2 answers, phase idle"),
                "{said}"
            );
        }
        // One that a crash has left behind its run is written again.
        std::fs::write(project.path("run.json"), &behind).expect("written");
        project.on(&uri, "resume_execution", json!({})).await;
        let again = std::fs::read_to_string(project.path("run.json")).expect("a document");
        assert_eq!(again, good);
        // So is one that is missing.
        std::fs::remove_file(project.path("run.json")).expect("it was there");
        assert_eq!(
            project.on(&uri, "next_step", json!({})).await["type"],
            "evaluate"
        );
        assert_eq!(document(&project, "run.json")["phase"], "evaluating");
    });
}

#[test]
fn a_document_has_the_trace_of_the_journal_after_each_answer() {
    run(async {
        let (project, uri) = started().await;
        let steps = [
            ("next_step", json!({})),
            ("think", json!({"thought": "slow"})),
            ("submit", json!({"status": "success", "note": "done"})),
            ("next_step", json!({})),
            ("reset_execution", json!({})),
            ("next_step", json!({})),
            ("submit", json!({"status": "success"})),
        ];
        for (tool, arguments) in steps {
            let answer = project.on(&uri, tool, arguments).await;
            assert!(answer.get("error").is_none(), "{tool}: {answer}");
            let trace = project.on(&uri, "read_trace", json!({})).await;
            assert_eq!(document(&project, "run.json")["trace"], trace, "{tool}");
            // What another process writes is read from its file, whatever this one remembers.
            let other = flowstone_fronts::tree::Trees::new(&project.engine, "other", None);
            let handle = other.handle(&uri).expect("a handle");
            other.resume(&handle).await.expect("an unchanged document");
        }
        assert_eq!(
            document(&project, "run.json")["trace"]
                .as_array()
                .map(Vec::len),
            Some(1)
        );
    });
}

#[test]
fn malformed_documents_are_refused() {
    run(async {
        let (project, _) = started().await;
        let mut good = document(&project, "run.json");
        good.as_object_mut().expect("a map").remove("flowstone");
        let changed = |key: &str, value: Json| {
            let mut bad = good.clone();
            bad[key] = value;
            bad
        };
        let deep = (0..56).fold(
            json!({"type": "ref", "ref": "x"}),
            |node, _| json!({"type": "sequence", "name": "S", "children": [node]}),
        );
        let uri = project.uri("bad.json");
        for (document, why) in [
            (
                changed("schema_version", json!(2)),
                "schema_version is 2, and this build reads 1",
            ),
            (changed("phase", json!("dancing")), "phase must be one of"),
            (changed("status", json!("done")), "status must be one of"),
            (changed("var", json!([])), "var must be a map"),
            (
                changed("var", json!({"__proto__": 1})),
                "var has the key `__proto__`",
            ),
            (
                changed("trace", json!([{"note": {}}])),
                "trace must be a list",
            ),
            (
                changed("runtime", json!({"node_status": {"0": "ok"}})),
                "runtime.node_status must map",
            ),
            (
                changed("tree", json!({"type": "loop", "name": "x"})),
                "`loop` is not a type of node",
            ),
            (changed("tree", deep), "is deeper than"),
            (json!([]), "schema_version is null"),
            (
                {
                    let mut bad = changed("phase", json!("performing"));
                    bad["cursor"] = json!("{\"path\":[7],\"step\":0}");
                    bad
                },
                "names no step of phase performing",
            ),
        ] {
            std::fs::write(project.path("bad.json"), document.to_string()).expect("written");
            let refused = project.on(&uri, "next_step", json!({})).await;
            assert_eq!(refused["code"], "E1211", "{why}: {refused}");
            assert!(
                refused["error"].as_str().expect("a text").contains(why),
                "{why}: {refused}"
            );
        }
        std::fs::write(project.path("bad.json"), "{").expect("written");
        assert_eq!(
            project.on(&uri, "next_step", json!({})).await["code"],
            "E1211"
        );
        let exists = project
            .on(&uri, "start_execution", json!({"tree_uri": "deploy.yaml"}))
            .await;
        assert_eq!(exists["code"], "E1204");
    });
}

/// Returns the names of the temporary files in a project's folder.
fn temporary(project: &Project) -> Vec<String> {
    let entries = std::fs::read_dir(project.folder.path()).expect("a folder");
    let names = entries.map(|entry| {
        entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".tmp")).collect();
    names.sort();
    names
}

#[test]
fn temporary_files_of_killed_processes_are_removed_and_those_in_use_stay() {
    run(async {
        let (project, uri) = started().await;
        for name in [
            ".run.json.123.tmp",
            ".run.json.123-4.tmp",
            ".run.json.9-9.tmp",
            ".run.json.mine.tmp",
            ".other.json.1-1.tmp",
        ] {
            std::fs::write(project.path(name), "{").expect("written");
        }
        let used = std::fs::File::open(project.path(".run.json.9-9.tmp")).expect("a file");
        used.lock().expect("a lock");
        let kept = [
            ".other.json.1-1.tmp",
            ".run.json.9-9.tmp",
            ".run.json.mine.tmp",
        ];
        // As another process: it has not written the document.
        project.as_other(&uri, "next_step", json!({})).await;
        assert_eq!(temporary(&project), kept);
        drop(used);
        project
            .as_other(&uri, "submit", json!({"status": "success"}))
            .await;
        assert_eq!(
            temporary(&project),
            [".other.json.1-1.tmp", ".run.json.mine.tmp"]
        );
    });
}

#[test]
fn the_document_of_a_cancelled_run_says_so() {
    run(async {
        let (project, uri) = started().await;
        project.on(&uri, "next_step", json!({})).await;
        let id = project.run_of(&uri).await;
        let observer = std::rc::Rc::new(flowstone_engine::observer::NoObserver);
        project
            .engine
            .cancel(&id, "enough", observer)
            .await
            .expect("cancelled");
        assert_eq!(document(&project, "run.json")["phase"], "performing");
        flowstone_fronts::tree::write_ended(&project.engine, &id)
            .await
            .expect("written");
        let said = document(&project, "run.json");
        for (key, expected) in [
            ("status", "failed"),
            ("phase", "idle"),
            ("ended", "cancelled"),
        ] {
            assert_eq!(said[key], expected, "{said}");
        }
        // A call of a driver writes it, too.
        let (project, uri) = started().await;
        project.on(&uri, "next_step", json!({})).await;
        let id = project.run_of(&uri).await;
        let observer = std::rc::Rc::new(flowstone_engine::observer::NoObserver);
        project
            .engine
            .cancel(&id, "enough", observer)
            .await
            .expect("cancelled");
        assert_eq!(
            project.on(&uri, "next_step", json!({})).await,
            json!({"status": "failure"})
        );
        assert_eq!(document(&project, "run.json")["ended"], "cancelled");
        assert_eq!(
            project.on(&uri, "get_execution", json!({})).await["ended"],
            "cancelled"
        );
        // The run that follows has not ended.
        project.on(&uri, "reset_execution", json!({})).await;
        assert_eq!(document(&project, "run.json")["ended"], Json::Null);
    });
}

#[test]
fn large_objects_have_their_keys_in_alphabetical_order() {
    run(async {
        let (project, uri) = started().await;
        let small = "{\"c\":1,\"b\":2,\"a\":3}";
        let large = "{\"i\":1,\"h\":1,\"g\":1,\"f\":1,\"e\":1,\"d\":1,\"c\":1,\"b\":1,\"a\":1}";
        for (path, value) in [("small", small), ("large", large)] {
            project
                .on(&uri, "var_write", json!({"path": path, "value": value}))
                .await;
        }
        let keys = |found: &Json| -> String {
            found.as_object().expect("a map").keys().cloned().collect()
        };
        let var = document(&project, "run.json")["var"].clone();
        assert_eq!(
            (keys(&var["small"]), keys(&var["large"])),
            ("cba".to_owned(), "abcdefghi".to_owned())
        );
        let read = project.on(&uri, "var_read", json!({"path": "large"})).await;
        assert_eq!(keys(&read["value"]), "abcdefghi");
    });
}
