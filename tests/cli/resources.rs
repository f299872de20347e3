//! `flowstone resources`: the wiring of its verbs; what resources are is tested with the engine.

use crate::program::{Ran, Scratch};

const MAKE: &str = r#"{:slug :make
 :flow '(let [doc (flow/step :function :doc {:code '(fn [_] (vec (range 30)))
                                             :persist {:type :blob :filename "numbers.edn"}})
              rows (flow/step :function :rows {:code '(fn [_] (mapv (fn [n] {:n n}) (range 40)))
                                               :persist {:type :table :table "numbers"}})
              note (flow/step :kv :note {:operation :set :key "report:latest" :value {:total 7}})]
          (:uri doc))}"#;

/// Returns a project in which a run has made a few things, and the name of its blob.
fn made() -> (Scratch, String) {
    let scratch = Scratch::new();
    scratch.write("flow.edn", MAKE);
    let uri = scratch.run(&["run", "flow.edn", "--quiet"]).ok();
    (scratch, uri.trim().to_owned())
}

#[track_caller]
fn refused(ran: &Ran, code: &str) {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let said = format!("{}{}", ran.out, ran.err);
    assert!(said.contains(code), "{ran:?}");
}

/// Returns the names in a list.
fn names(scratch: &Scratch, args: &[&str]) -> Vec<String> {
    let list = scratch.json_of(&[&["resources", "list"], args].concat());
    let rows = list["resources"].as_array().expect("a list");
    let names = rows
        .iter()
        .map(|row| row["name"].as_str().unwrap_or("-").to_owned());
    names.collect()
}

#[test]
fn lists_are_chosen_sorted_and_paged() {
    let empty = Scratch::new();
    assert_eq!(names(&empty, &[]), [""; 0]);
    let (scratch, _) = made();
    let cases: [(&[&str], &[&str]); 5] = [
        (
            &["--sort", "name"],
            &["numbers", "numbers.edn", "report:latest"],
        ),
        (&["--type", "kv"], &["report:latest"]),
        (
            &["--type", "kv", "--type", "table", "--sort", "name"],
            &["numbers", "report:latest"],
        ),
        (&["--prefix", "result/kv/"], &["report:latest"]),
        (&["--tier", "ephemeral"], &[]),
    ];
    for (args, expected) in cases {
        assert_eq!(names(&scratch, args), expected, "{args:?}");
    }
    for sort in ["name", "time"] {
        let mut all = Vec::new();
        let mut after = String::new();
        loop {
            let mut args = vec!["resources", "list", "--sort", sort, "--limit", "1"];
            if !after.is_empty() {
                args.extend(["--after", &after]);
            }
            let page = scratch.json_of(&args);
            all.extend(page["resources"].as_array().expect("a page").clone());
            match page["next"].as_str() {
                Some(next) => after = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(all.len(), 3, "{sort}");
    }
    let run = scratch.run(&["runs", "list", "--json"]).json()["runs"][0]["id"].clone();
    let run = run.as_str().expect("an id");
    let listed = scratch.json_of(&["resources", "workflow", "list", run]);
    let kinds = listed["resources"].as_array().expect("a list").iter();
    let mut kinds: Vec<_> = kinds.filter_map(|row| row["type"].as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["blob", "flow-output", "step-output", "step-output"]);
    let step = scratch.json_of(&["resources", "workflow", "step", run, "note"]);
    assert_eq!(step["resources"].as_array().expect("a list").len(), 1);
    for (args, code) in [
        (&["list", "--after", "x"][..], "E0618"),
        (&["list", "--run", "zzz"], "E0502"),
        (&["get", "file/none"], "E0936"),
        (&["workflow", "list", "zzz"], "E0502"),
    ] {
        refused(&scratch.run(&[&["resources"], args].concat()), code);
    }
    for args in [
        &["list", "--type", "blobb"][..],
        &["list", "--limit", "0"],
        &["list", "--limit", "1001"],
        &["list", "--tier", "cold"],
        &["read", "x", "--limit", "0"],
        &["read", "x", "--limit", "5", "--full"],
        &["url", "x", "--ttl", "59"],
        &["url", "x", "--ttl", "86401"],
        &["upload", "x", "--replace"],
        &["upload", "x", "--content-type", "csv"],
    ] {
        let ran = scratch.run(&[&["resources"], args].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
}

#[test]
fn read() {
    let (scratch, uri) = made();
    let shown = scratch.json_of(&["resources", "read", &uri]);
    assert_eq!(
        (&shown["format"], &shown["total"]),
        (&"edn".into(), &30.into())
    );
    assert_eq!(shown["value"].as_array().expect("items").len(), 25);
    assert_eq!(shown["truncated"], true);
    let key = scratch.json_of(&["resources", "read", "result/kv/report:latest"]);
    assert_eq!(
        (&key["value"]["total"], &key["truncated"]),
        (&7.into(), &false.into())
    );
    let table = scratch.json_of(&["resources", "read", "result/table/numbers"]);
    assert_eq!(
        (&table["format"], &table["truncated"]),
        (&"rows".into(), &true.into())
    );
    assert_eq!(table["value"].as_array().expect("rows").len(), 25);
    scratch.write("picture.png", [0x89, 0xff, 0x00]);
    let file = scratch.json_of(&["resources", "upload", "picture.png"]);
    let file = file["uri"].as_str().expect("a name");
    let binary = scratch.json_of(&["resources", "read", file]);
    assert_eq!(
        (&binary["format"], binary["value"].is_null()),
        (&"binary".into(), true)
    );
}

#[test]
fn read_limit() {
    let (scratch, uri) = made();
    let shown = scratch.json_of(&["resources", "read", &uri, "--limit", "2"]);
    assert_eq!(shown["value"], serde_json::json!([0, 1]));
    scratch.write("lines.txt", "a\nb\nc\n");
    let file = scratch.json_of(&["resources", "upload", "lines.txt"]);
    let file = file["uri"].as_str().expect("a name");
    let text = scratch.json_of(&["resources", "read", file, "--limit", "2"]);
    assert_eq!(
        (&text["value"], &text["total"]),
        (&"a\nb\n".into(), &3.into())
    );
}

#[test]
fn read_full() {
    let (scratch, uri) = made();
    let shown = scratch.json_of(&["resources", "read", &uri, "--full"]);
    assert_eq!(shown["value"].as_array().expect("items").len(), 30);
    let table = scratch.json_of(&["resources", "read", "result/table/numbers", "--full"]);
    assert_eq!(table["value"].as_array().expect("rows").len(), 40);
    assert_eq!(table["truncated"], false);
}

#[test]
fn read_partitions() {
    let scratch = Scratch::new();
    scratch.write(
        "flow.edn",
        r#"{:slug :parts
 :flow '(do (flow/step :table :may {:op :insert :table {:name "sales" :partitions {:key "may"}} :rows [{:n 1}]})
            (flow/step :table :june {:op :insert :table {:name "sales" :partitions {:key "june"}} :rows [{:n 2} {:n 3}]})
            :done)}"#,
    );
    scratch.run(&["run", "flow.edn", "--quiet"]).ok();
    let rows = |args: &[&str]| {
        let read = ["resources", "read", "result/table/sales"];
        let shown = scratch.json_of(&[&read, args].concat());
        shown["value"].as_array().expect("rows").len()
    };
    assert_eq!(rows(&[]), 3);
    assert_eq!(rows(&["--partition", "june"]), 2);
    assert_eq!(rows(&["--partition", "june", "--partition", "may"]), 3);
    let wrong = scratch.run(&["resources", "read", "file/x", "--partition", "may"]);
    refused(&wrong, "E0936");
}

#[test]
fn replace() {
    let scratch = Scratch::new();
    scratch.write("may.csv", "n\n1\n");
    let upload = ["resources", "upload", "may.csv", "--folder", "reports"];
    let stored = scratch.json_of(&upload);
    assert_eq!(stored["uri"], "res://v1/ws/local/file/reports/may.csv");
    assert_eq!(
        (&stored["type"], &stored["contentType"]),
        (&"resource-ref".into(), &"text/csv".into())
    );
    assert_eq!(
        (&stored["filename"], &stored["sizeBytes"]),
        (&"may.csv".into(), &4.into())
    );
    refused(&scratch.run(&upload), "E0939");
    scratch.write("may.csv", "n\n2\n");
    scratch.run(&[&upload[..], &["--replace"]].concat()).ok();
    let out = [
        "resources",
        "get",
        "file/reports/may.csv",
        "--out",
        "back.csv",
    ];
    scratch.run(&out).ok();
    assert_eq!(scratch.read("back.csv"), "n\n2\n");
    refused(&scratch.run(&["resources", "upload", "none.csv"]), "E0905");
    refused(&scratch.run(&["resources", "upload", "."]), "E0941");
}

#[test]
fn search_index_reindex() {
    let (scratch, uri) = made();
    let update = ["resources", "search-index", "update", &uri, "--tag", "may"];
    let entry = scratch.json_of(&update)["searchIndex"].clone();
    assert_eq!(entry["tags"], serde_json::json!(["may"]));
    let again = scratch.json_of(&["resources", "search-index", "reindex", "--all"]);
    assert_eq!(again["ok"], true);
}

#[test]
fn what_is_deleted_is_remembered() {
    let (scratch, uri) = made();
    refused(&scratch.run(&["resources", "delete", &uri]), "E0938");
    scratch.run(&["resources", "delete", &uri, "--yes"]).ok();
    refused(
        &scratch.run(&["resources", "delete", &uri, "--yes"]),
        "E0937",
    );
    refused(&scratch.run(&["resources", "read", &uri]), "E0937");
    let row = scratch.json_of(&["resources", "get", &uri]);
    assert_eq!(row["resource"]["state"], "deleted");
    assert!(!names(&scratch, &[]).contains(&"numbers.edn".to_owned()));
    assert!(names(&scratch, &["--all"]).contains(&"numbers.edn".to_owned()));
    scratch
        .run(&["resources", "delete", "result/kv/report:latest", "--yes"])
        .ok();
    refused(
        &scratch.run(&["resources", "get", "result/kv/report:latest"]),
        "E0936",
    );
    refused(
        &scratch.run(&["resources", "delete", "result/table/numbers", "--yes"]),
        "E0617",
    );
}

#[test]
fn what_a_run_needs_is_kept() {
    let scratch = Scratch::new();
    scratch.write(
        "flow.edn",
        r#"{:slug :holds
 :flow '(let [doc (flow/input)
              answer (flow/step :wait :ok {:key "ok"})]
          (flow/step :function :read {:input doc :load [:report] :code '(fn [i] (:report i))}))}"#,
    );
    scratch.write("may.txt", "all of May");
    let ran = scratch.run(&["run", "flow.edn", "--upload", "report=may.txt", "--quiet"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let file = scratch.json_of(&["resources", "list", "--type", "file"]);
    let uri = file["resources"][0]["uri"]
        .as_str()
        .expect("a name")
        .to_owned();
    refused(
        &scratch.run(&["resources", "delete", &uri, "--yes"]),
        "E0938",
    );
    let answered = scratch
        .run(&["waits", "complete", "ok", "--value", "{}"])
        .ok();
    assert_eq!(answered.trim(), "all of May");
    scratch.run(&["resources", "delete", &uri, "--yes"]).ok();
    for (args, code) in [
        (&["--upload", "report"][..], 2),
        (&["--upload", "=x"], 2),
        (&["--upload", "report=none.txt"], 1),
        (&["--upload", "report=may.txt", "--input", "[1]"], 1),
    ] {
        let ran = scratch.run(&[&["run", "flow.edn", "--quiet"], args].concat());
        assert_eq!(ran.code, Some(code), "{ran:?}");
    }
}

#[test]
fn links_are_made_and_checked() {
    let (scratch, uri) = made();
    refused(&scratch.run(&["resources", "url", &uri]), "E1073");
    scratch.write(
        "flowstone.edn",
        "{:server {:url \"https://flows.example.com\"}}",
    );
    let link = scratch.json_of(&["resources", "url", &uri, "--ttl", "900"]);
    let link = link["url"].as_str().expect("a link").to_owned();
    let checked = scratch.json_of(&["resources", "url", "--check", &link]);
    assert_eq!(checked["resource"]["uri"], uri);
    refused(
        &scratch.run(&[
            "resources",
            "url",
            "--check",
            &link.replace("expires=", "expires=9"),
        ]),
        "E0940",
    );
    refused(
        &scratch.run(&["resources", "url", "--check", "https://example.com"]),
        "E0940",
    );
    refused(
        &scratch.run(&["resources", "url", "result/table/numbers"]),
        "E0942",
    );
}
