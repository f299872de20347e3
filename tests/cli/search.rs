//! `flowstone search`, `flowstone resources search` and `search-index`.

use serde_json::json;

use crate::program::Scratch;

const KEEP: &str = "(let [r (flow/step :function :keep {:code '(fn [_] \"Refund policy: money back.\")
                                            :persist {:type :blob :filename \"policy.md\"}})] (:uri r))";

fn scratch() -> (Scratch, String) {
    let scratch = Scratch::new();
    scratch.write("keep.edn", KEEP);
    let run = scratch.run(&["run", "keep.edn", "--json"]).json();
    let uri = run["result"].as_str().expect("a name").to_owned();
    (scratch, uri)
}

#[test]
fn resources_are_found() {
    let (scratch, uri) = scratch();
    let found = scratch
        .run(&["resources", "search", "refund", "--json"])
        .json();
    assert_eq!((&found["ok"], &found["count"]), (&json!(true), &json!(1)));
    assert_eq!(found["byTarget"], json!({"resources": 1}));
    let hit = &found["results"][0];
    assert_eq!(hit["uri"], json!(uri));
    assert_eq!(hit["title"], "policy.md");
    assert_eq!(hit["snippet"], "Refund policy: money back.");
    assert_eq!(hit["content"], json!(null));
    assert_eq!(hit["sizeBytes"], 26);
    let args = [
        "resources",
        "search",
        "refund",
        "--hydrate",
        "--max-chars",
        "6",
        "--json",
    ];
    let hit = &scratch.run(&args).json()["results"][0];
    assert_eq!(
        (&hit["content"], &hit["contentTruncated"]),
        (&json!("Refund"), &json!(true))
    );
}

#[test]
fn everything_is_searched_from_the_top() {
    let (scratch, _) = scratch();
    let found = scratch
        .run(&["search", "keep", "--targets", "flows,runs", "--json"])
        .json();
    assert_eq!(found["byTarget"], json!({"flows": 1, "runs": 1}));
    assert_eq!(found["results"][0]["id"], "keep.edn");
    let all = scratch.run(&["search", "policy", "--json"]).json();
    assert_eq!(
        all["byTarget"].as_object().map(serde_json::Map::len),
        Some(4)
    );
}

#[test]
fn an_entry_is_shown_changed_and_cleared() {
    let (scratch, uri) = scratch();
    let index = |args: &[&str]| {
        let whole = ["resources", "search-index"];
        scratch
            .run(&[&whole[..], args, &["--json"]].concat())
            .json()
    };
    let shown = index(&["show", &uri]);
    assert_eq!(shown["indexed"]["title"], "policy.md");
    assert_eq!(shown["searchIndex"], json!(null));
    let updated = index(&[
        "update",
        &uri,
        "--tag",
        "finance",
        "--label",
        "Desk",
        "--contents",
        "false",
    ]);
    assert_eq!(updated["searchIndex"]["tags"], json!(["finance"]));
    assert_eq!(updated["indexed"]["text"], "");
    let count = |query: &str| {
        let args = ["resources", "search", query, "--json"];
        scratch.run(&args).json()["count"].clone()
    };
    assert_eq!(
        (count("finance desk"), count("refund")),
        (json!(1), json!(0))
    );
    index(&["clear", &uri]);
    assert_eq!((count("finance"), count("refund")), (json!(0), json!(1)));
    assert_eq!(index(&["reindex", &uri])["indexed"], json!(1));
    let all = index(&["reindex", "--all"]);
    assert!(all["indexed"].as_u64() >= Some(3), "{all}");
    assert_eq!(count("refund"), json!(1));
}

#[test]
fn bad_input_is_told() {
    let (scratch, _) = scratch();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["search"], 2, "<QUERY>"),
        (&["search", "x", "--limit", "0"], 2, "1..=20"),
        (
            &["search", "x", "--targets", "mails"],
            2,
            "there are resources, flows, runs, connections",
        ),
        (
            &["search", "x", "--mode", "fuzzy"],
            2,
            "there are hybrid, keyword, semantic",
        ),
        (&["search", "x", "--mode", "semantic", "--json"], 1, "E0709"),
        (&["search", " ", "--json"], 1, "E0708"),
        (
            &["search", "x", "--storage-backend", "s3", "--json"],
            1,
            "E0709",
        ),
        (
            &[
                "resources",
                "search-index",
                "show",
                "res://nothing",
                "--json",
            ],
            1,
            "E0936",
        ),
        (&["resources", "search-index", "reindex"], 2, "<URI>"),
    ];
    for (args, code, words) in cases {
        let ran = scratch.run(args);
        assert_eq!(ran.code, Some(*code), "{args:?}: {ran:?}");
        assert!(
            format!("{}{}", ran.out, ran.err).contains(words),
            "{args:?}: {ran:?}"
        );
    }
    let (_, uri) = self::scratch();
    let update = scratch.run(&["resources", "search-index", "update", &uri, "--json"]);
    assert!(update.out.contains("E0944"), "{update:?}");
}
