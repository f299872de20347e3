//! `flowstone resources table`: the wiring of its verbs; what operations mean is tested with the step.

use crate::program::{Ran, Scratch};

const ORDERS: &str =
    "id,status,amount,day\n1,open,10.5,2026-01-01\n2,open,20,2026-01-20\n3,paid,7,2026-02-01\n";

/// Asks for JSON, except of an export, whose rows are text.
fn table(scratch: &Scratch, args: &[&str]) -> Ran {
    let form: &[&str] = match args.contains(&"export") || args.contains(&"--json") {
        true => &[],
        false => &["--json"],
    };
    scratch.run(&[&["resources", "table"], args, form].concat())
}

fn orders() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("orders.csv", ORDERS);
    let done = table(
        &scratch,
        &[
            "import",
            "orders",
            "orders.csv",
            "--key-fields",
            "id",
            "--index-fields",
            "status,amount",
        ],
    );
    let done = done.json();
    assert_eq!(done["ok"], true, "{done}");
    assert_eq!(done["rowsInserted"], 3);
    scratch
}

#[test]
fn a_file_is_imported_asked_and_exported() {
    let scratch = orders();
    let page = table(
        &scratch,
        &[
            "query",
            "orders",
            "--where",
            r#"[["status" "=" "open"]]"#,
            "--sort",
            r#"[["amount" "desc"]]"#,
            "--limit",
            "1",
            "--total",
        ],
    )
    .json();
    assert_eq!(page["rows"][0]["id"], 2, "{page}");
    assert_eq!(page["page"]["hasMore"], true);
    assert_eq!(page["page"]["totalCount"], 2);
    let first = table(
        &scratch,
        &[
            "query",
            "orders",
            "--sort",
            "id",
            "--page-mode",
            "cursor",
            "--limit",
            "2",
        ],
    )
    .json();
    let cursor = first["page"]["nextCursor"]
        .as_str()
        .expect("there are more");
    let second = table(
        &scratch,
        &[
            "query", "orders", "--sort", "id", "--cursor", cursor, "--select", "id,day",
        ],
    )
    .json();
    assert_eq!(
        second["rows"].to_string(),
        r#"[{"id":3,"day":"2026-02-01"}]"#
    );
    let row = table(&scratch, &["get-row", "orders", "--key", r#"{"id": 3}"#]).json();
    assert_eq!(row["row"]["amount"], 7);
    let groups = table(
        &scratch,
        &[
            "aggregate",
            "orders",
            "--group-by",
            "status",
            "--metrics",
            "[{:op :sum :field :amount :as :total}]",
            "--having",
            "[[:total :> 10]]",
            "--order-by",
            "[[:total :desc]]",
        ],
    )
    .json();
    assert_eq!(
        groups["groups"].to_string(),
        r#"[{"status":"open","total":30.5}]"#
    );
}

#[test]
fn a_table_is_described_and_exported() {
    let scratch = orders();
    let schema = table(&scratch, &["schema", "orders"]).json();
    assert_eq!(schema["columns"][0]["key"], true, "{schema}");
    assert_eq!(schema["rowCount"], 3);
    let text = table(&scratch, &["export", "orders"]).ok();
    assert_eq!(text, ORDERS);
    let out = table(
        &scratch,
        &[
            "export",
            "orders",
            "--where",
            "[[:id := 2]]",
            "--select",
            "id,amount",
            "--out",
            "out.csv",
            "--json",
        ],
    );
    assert_eq!(out.json()["rows"], 1);
    assert_eq!(scratch.read("out.csv"), "id,amount\n2,20\n");
}

#[test]
fn cells_columns_and_joins_are_changed() {
    let scratch = orders();
    let done = |args: &[&str]| table(&scratch, args).json();
    let rows = |args: &[&str]| {
        let page = done(&[&["query"], args].concat());
        page["rows"].to_string()
    };
    let key = ["--key", "{:id 3}", "--column"];
    let update = [
        &["update-cell", "orders"][..],
        &key,
        &["amount", "--value", "8"],
    ]
    .concat();
    assert_eq!(done(&update)["ok"], true);
    let paid = ["orders", "--where", "[[:id := 3]]", "--select", "amount"];
    assert_eq!(rows(&paid), r#"[{"amount":8}]"#);
    let format = [
        "amount",
        "--format",
        "{:display \"currency\" :currency \"USD\"}",
    ];
    let format = [&["update-cell-format", "orders"][..], &key, &format].concat();
    assert_eq!(done(&format)["ok"], true);
    assert_eq!(rows(&paid), r#"[{"amount":8}]"#, "only how it is shown");
    scratch.write("names.csv", "status,name\nopen,Open\npaid,Paid\n");
    let import = ["import", "names", "names.csv", "--key-fields", "status"];
    assert_eq!(done(&import)["ok"], true);
    let definition = "{:display-name \"Day\" :type-hint :date}";
    let column = [
        "set-column",
        "orders",
        "--column",
        "day",
        "--definition",
        definition,
    ];
    assert_eq!(done(&column)["ok"], true);
    assert_eq!(done(&["recompute", "orders"])["rowsScanned"], 3);
    let join = [
        "materialize-join",
        "--left",
        "orders",
        "--right",
        "names",
        "--on",
        "[{:left-field :status :right-field :status}]",
        "--project",
        "{:keep-left :all :right-fields [{:field :name :as :label}]}",
        "--into",
        "{:table \"labelled\" :write-mode :upsert :key-fields [:id]}",
    ];
    assert_eq!(done(&join)["ok"], true);
    let labels = ["labelled", "--sort", "id", "--select", "id,label"];
    assert_eq!(
        rows(&labels),
        r#"[{"id":1,"label":"Open"},{"id":2,"label":"Open"},{"id":3,"label":"Paid"}]"#
    );
}

#[test]
fn imports_of_all_kinds() {
    let scratch = orders();
    scratch.write("more.csv", "id;amount\n3;8\nx;1\n4;9\n");
    let args = [
        "import",
        "orders",
        "more.csv",
        "--delimiter",
        ";",
        "--write-mode",
        "upsert",
        "--on-bad-row",
        "collect",
    ];
    let done = table(&scratch, &args).json();
    assert_eq!(
        (
            &done["rowsInserted"],
            &done["rowsUpdated"],
            &done["rowsRejected"]
        ),
        (&1.into(), &1.into(), &1.into()),
        "{done}"
    );
    assert_eq!(done["rejected"][0]["line"], 3);
    let stdin = scratch.run_with(
        &[
            "resources",
            "table",
            "import",
            "zips",
            "-",
            "--columns",
            "{:zip :string}",
            "--no-header",
            "--json",
        ],
        "12345\n",
    );
    assert_eq!(
        stdin.json()["rowCount"],
        1,
        "the columns are named by --columns"
    );
    let stdin = scratch.run_with(
        &[
            "resources",
            "table",
            "import",
            "zips",
            "-",
            "--columns",
            "{:zip :string}",
            "--json",
        ],
        "zip\n12345\n",
    );
    assert_eq!(stdin.json()["rowCount"], 2);
    let rows = table(&scratch, &["query", "zips"]).json();
    assert_eq!(rows["rows"][0]["zip"], "12345");
    let parts = table(
        &scratch,
        &["import", "logs", "orders.csv", "--partition-key", "2026-01"],
    )
    .json();
    assert_eq!(parts["rowCount"], 3, "{parts}");
    let parts = table(
        &scratch,
        &[
            "query",
            "logs",
            "--partition-keys",
            "2026-01",
            "--limit",
            "1",
        ],
    )
    .json();
    assert_eq!(parts["count"], 1, "{parts}");
}

#[allow(clippy::too_many_lines, reason = "a table of cases")]
#[test]
fn what_is_wrong_is_said_and_how_it_ends() {
    let scratch = orders();
    scratch.write("ragged.csv", "id,status\n1\n");
    scratch.write("latin1.csv", b"id\n\xe9\n");
    let cases: &[(&[&str], i32, &str)] = &[
        (&["query", "order"], 1, "E0620"),
        (
            &["query", "orders", "--where", "[[:stat := 1]]"],
            1,
            "E0622",
        ),
        (
            &["query", "orders", "--where", "[[:status :is 1]]"],
            2,
            "E0764",
        ),
        (&["query", "orders", "--where", "[[:status"], 2, "E0101"),
        (
            &["query", "orders", "--where", "{\"status\": }"],
            2,
            "E0906",
        ),
        (&["query", "orders", "--limit", "2000"], 2, "E0"),
        (
            &["query", "orders", "--sort", "id", "--cursor", "zzz"],
            2,
            "E0627",
        ),
        (&["get-row", "orders", "--key", "{:id 9}"], 1, "E0931"),
        (&["get-row", "orders"], 2, "--row-id"),
        (
            &["get-row", "orders", "--row-id", "1", "--key", "{:id 1}"],
            2,
            "cannot be used with",
        ),
        (&["aggregate", "orders"], 2, "E0764"),
        (
            &[
                "aggregate",
                "orders",
                "--metrics",
                "[{:op :mean :field :amount}]",
            ],
            2,
            "E0764",
        ),
        (
            &["export", "orders", "--out", "no/such/folder.csv"],
            1,
            "E0932",
        ),
        (&["import", "orders", "none.csv"], 1, "E0905"),
        (&["import", "orders", "ragged.csv"], 1, "E0642"),
        (&["import", "orders", "latin1.csv"], 1, "E0641"),
        (&["import", "orders", "orders.csv"], 1, "E0642"),
        (
            &["import", "orders", "orders.csv", "--delimiter", "ab"],
            2,
            "E0723",
        ),
        (
            &["import", "orders", "orders.csv", "--write-mode", "merge"],
            2,
            "merge",
        ),
        (
            &["import", "new", "orders.csv", "--write-mode", "upsert"],
            2,
            "E0625",
        ),
        (&["schema", "orders", "--partition-key", "a"], 0, ""),
        (&["query", "orders", "--partition-key", "a"], 2, "E0630"),
    ];
    for (args, code, words) in cases {
        let ran = table(&scratch, args);
        assert_eq!(ran.code, Some(*code), "{args:?} {ran:?}");
        let said = format!("{}{}", ran.out, ran.err);
        assert!(said.contains(words), "{args:?} {said}");
    }
    let rows = table(&scratch, &["query", "orders", "--total"]).json();
    assert_eq!(rows["page"]["totalCount"], 3, "nothing is half-written");
    let empty = Scratch::new();
    let ran = table(&empty, &["query", "orders"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
}
