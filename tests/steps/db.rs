//! `:db` with files of SQLite: values, limits, and what a statement may not do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use flowstone_steps::db::Db;
use flowstone_steps::recording::{Recorder, Replayer};
use rusqlite::Connection;

use crate::net::contains;
use crate::project::Project;
use crate::world::{World, wait};

const SETTINGS: &str = "{:connections {:shop {:base-url \"sqlite:shop.db\"} :none {:base-url \"sqlite:none.db\"}
  :text {:base-url \"sqlite:text.db\"} :outside {:base-url \"sqlite:/etc/passwd\"} :link {:base-url \"sqlite:link.db\"}}}";

/// Creates a project with a database of two orders.
fn shop() -> Project {
    let project = Project::with(SETTINGS);
    let shop = Connection::open(project.path().join("shop.db")).expect("a database");
    shop.execute_batch(
        "create table orders (id integer primary key, name text, total real, paid boolean, raw blob, note text);
         insert into orders values (1, 'Ada', 12.5, 1, x'00ff', null), (2, 'O''Neil', 3, 0, null, '{\"a\": 1}');",
    )
    .expect("two orders");
    project
}

/// Runs a statement with more of the step's config.
fn sql(project: &Project, statement: &str, more: &str) -> String {
    let statement = statement.replace('\\', "\\\\").replace('"', "\\\"");
    // The statement is not written out in the step, so that nothing is found before it runs.
    project.eval(&format!(
        "(let [statement \"{statement}\"] (flow/step :db :it {{:database :sqlite :connection :shop :sql statement {more}}}))"
    ))
}

#[track_caller]
fn check(cases: &[(&str, &str, &str)]) {
    let project = shop();
    let found: Vec<String> = cases
        .iter()
        .filter_map(|(statement, more, expected)| {
            let found = sql(&project, statement, more);
            (!found.contains(expected))
                .then(|| format!("{statement} {more}\n  expected {expected}\n  found    {found}"))
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn rows_are_maps_in_order() {
    check(&[
        (
            "select id, name, total, paid, raw, note from orders order by id",
            "",
            "[{:id 1 :name \"Ada\" :total 12.5 :paid 1 :raw #flowstone/bytes \"00ff\" :note nil} {:id 2 :name \"O'Neil\" :total 3.0 :paid 0 :raw nil :note \"{\\\"a\\\": 1}\"}]",
        ),
        ("select id from orders where 1 = 0", "", "[]"),
        ("pragma table_info(orders)", "", ":name \"total\""),
        ("explain query plan select * from orders", "", "SCAN orders"),
        (
            "select 9223372036854775807 as big, -1 as small",
            "",
            "[{:big 9223372036854775807 :small -1}]",
        ),
        ("select id as \"a b\" from orders where id = 1", "", "a b"),
    ]);
}

#[test]
fn values_are_parameters() {
    check(&[
        (
            "select name from orders where name = ?",
            ":params [\"O'Neil\"]",
            "[{:name \"O'Neil\"}]",
        ),
        (
            "select ? as a, ? as b, ? as c, ? as d, ? as e",
            ":params [nil true 1.5M :paid #inst \"2026-03-01T10:00:00.5Z\"]",
            "[{:a nil :b 1 :c \"1.5\" :d \"paid\" :e \"2026-03-01T10:00:00.5Z\"}]",
        ),
        (
            "select ? as a, ? as b",
            ":params [12345678901234567890 {:a [1 nil]}]",
            "[{:a \"12345678901234567890\" :b \"{\\\"a\\\":[1,null]}\"}]",
        ),
        (
            "select count(*) as n from orders where name = ?",
            ":params [\"x'; drop table orders; --\"]",
            "[{:n 0}]",
        ),
        ("select count(*) as n from orders", "", "[{:n 2}]"),
        (
            "select ?",
            "",
            "E1464 the statement has 1 placeholder, and `:params` has 0 values",
        ),
        (
            "select '?', ?",
            ":params [1 2]",
            "E1464 the statement has 1 placeholder, and `:params` has 2 values",
        ),
        ("select ?2", ":params [1]", "E1464"),
        ("select :a", ":params [1]", "E1464"),
        (
            "select * from orders where id in (?)",
            ":params [[1 2]]",
            "E1464 `:params` has a list",
        ),
        ("select ?", ":params [inc]", "E1464"),
    ]);
}

#[test]
fn hostile_names_do_no_harm() {
    let project = Project::with(SETTINGS);
    let shop = Connection::open(project.path().join("shop.db")).expect("a database");
    shop.execute_batch(
        "create table \"a\"\"; drop table b; --\" (\"x\"\"; select 1; --\" integer); insert into \"a\"\"; drop table b; --\" values (7);
         create table b (id integer);",
    )
    .expect("a table");
    let found = sql(&project, "select * from \"a\"\"; drop table b; --\"", "");
    contains(&found, "7}]");
    contains(
        &sql(&project, "select count(*) as n from b", ""),
        "[{:n 0}]",
    );
}

#[test]
fn a_statement_reads_unless_it_may_write() {
    let denied = [
        "insert into orders (name) values ('x')",
        "delete from orders",
        "with a as (select 1) update orders set name = 'x'",
        "create table t (id integer)",
        "create temp table t (id integer)",
        "drop table orders",
        "attach database 'other.db' as other",
        "pragma user_version = 7",
        "pragma journal_mode = wal",
        "pragma writable_schema = 1",
        "vacuum",
        "vacuum into 'other.db'",
        "begin",
        "commit",
        "analyze",
    ];
    let project = shop();
    for statement in denied {
        contains(&sql(&project, statement, ""), "E1472");
    }
    assert!(!project.path().join("other.db").exists());
    assert_eq!(
        sql(&project, "select count(*) as n from orders", ""),
        "[{:n 2}]"
    );
    // What may write stays in its own file all the same.
    for statement in [
        "attach database 'other.db' as other",
        "vacuum into 'other.db'",
        "pragma journal_mode = wal",
        "commit",
        "savepoint a",
    ] {
        contains(&sql(&project, statement, ":read-only false"), "E1468");
    }
    assert!(!project.path().join("other.db").exists());
}

#[test]
fn a_statement_that_writes_reports_its_rows() {
    check(&[
        (
            "insert into orders (name) values (?)",
            ":params [\"Bo\"] :read-only false",
            "{:affected 1 :rows [] :last-id 3}",
        ),
        (
            "update orders set note = ? where id < ? returning id",
            ":params [\"x\" 3] :read-only false",
            ":affected 2 :rows [{:id 1} {:id 2}]",
        ),
        (
            "delete from orders where id = 7",
            ":read-only false",
            "{:affected 0 :rows []}",
        ),
        // A shorter answer would hide what was changed, so nothing is.
        (
            "delete from orders returning id",
            ":read-only false :max-results 1",
            "E1470 the answer has more than 1 rows",
        ),
        ("select count(*) as n from orders", "", "[{:n 3}]"),
        (
            "insert into orders (id) values (1)",
            ":read-only false",
            "E1468 shop.db refuses the statement: UNIQUE constraint failed: orders.id",
        ),
    ]);
}

#[test]
fn one_statement_at_a_time() {
    check(&[
        ("select 1; drop table orders", "", "E1461"),
        ("select 1 as a;  -- over", "", "[{:a 1}]"),
        ("select 1; select 2", ":read-only false", "E1461"),
        ("select 'a", "", "E1461"),
        ("select {{id}}", "", "E1461"),
        ("", "", "E1461 the statement is empty"),
        (
            "create trigger one after insert on orders begin delete from orders where id = 7; end",
            ":read-only false",
            "{:affected 0 :rows []}",
        ),
        (
            "create table a (b); create table c (d)",
            ":read-only false",
            "E1464 a step executes one statement",
        ),
        ("select 1", ":data {:a 1}", "E1461"),
        (
            "selec 1",
            "",
            "E1468 shop.db refuses the statement: near \"selec\": syntax error",
        ),
        ("select * from absent", "", "no such table: absent"),
    ]);
}

#[test]
fn limits_hold() {
    let many = "with recursive n(i) as (select 1 union all select i + 1 from n limit 1000000) select i from n";
    let forever =
        "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n";
    check(&[
        (many, "", "E1470 the answer has more than 5000 rows"),
        (
            many,
            ":max-results 1000000 :max-bytes 1000",
            "E1470 the answer is larger than 1000 bytes",
        ),
        (
            "select zeroblob(900000000) as a",
            "",
            "E1470 the answer is larger than 16777216 bytes",
        ),
        (
            "select hex(zeroblob(2000000)) as a",
            ":max-bytes 1000000",
            "E1470",
        ),
        (
            "select 1 as a, 2 as a",
            "",
            "E1471 two columns are named `a`",
        ),
        ("select 1 as \"\"", "", "E1471 column 1 has no name"),
        (
            "select cast(x'ff' as text) as a",
            "",
            "E1471 column `a`: its text is not UTF-8",
        ),
    ]);
    let began = Instant::now();
    contains(&sql(&shop(), forever, ":timeout \"300ms\""), "E1469");
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

#[test]
fn files_that_are_no_databases_are_refused() {
    let project = shop();
    project.write(
        "text.db",
        b"this is not a database, but a text of some length",
    );
    let read = |name: &str, more: &str| {
        project.eval(&format!(
            "(flow/step :db :it {{:database :sqlite :connection :{name} :sql \"select 1 from t\" {more}}})"
        ))
    };
    contains(
        &read("none", ""),
        "E1474 none.db cannot be opened as a database",
    );
    contains(
        &read("text", ""),
        "E1474 text.db cannot be opened as a database",
    );
    assert!(!project.path().join("none.db").exists());
    contains(&read("outside", ""), "E0960");
    contains(&read("nowhere", ""), "E0750");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc/passwd", project.path().join("link.db")).expect("a link");
        contains(&read("link", ""), "E0960");
        // The project's own data is not a database of flows.
        std::fs::remove_file(project.path().join("link.db")).expect("removed");
        let own = std::fs::read_dir(project.path().join(".flowstone")).expect("a home");
        let own = own
            .filter_map(Result::ok)
            .find(|it| it.path().is_file())
            .expect("a file");
        std::os::unix::fs::symlink(own.path(), project.path().join("link.db")).expect("a link");
        contains(&read("link", ""), "E0960");
    }
}

#[test]
fn a_missing_file_is_made_by_a_statement_that_writes() {
    let project = Project::with(SETTINGS);
    contains(
        &sql(&project, "create table t (id integer)", ":read-only false"),
        "{:affected 0 :rows []}",
    );
    assert_eq!(sql(&project, "select * from t", ""), "[]");
}

#[test]
fn rows_go_into_a_table() {
    let project = shop();
    let kept = sql(
        &project,
        "select id, name, total from orders",
        ":persist {:type :table :table \"orders\" :key-fields [:id]}",
    );
    contains(&kept, "res://");
    let found = project.eval(
        "(:rows (flow/step :table :q {:op :query :table \"orders\" :where [[:name := \"O'Neil\"]]}))",
    );
    contains(&found, ":name \"O'Neil\" :total 3.0");
}

/// Runs a step with a template, or returns what `check` finds.
fn templated(body: &str, more: &str) -> String {
    let project = shop();
    let flow = format!(
        "{{:slug :t :templates [{{:id :q :type :sql {body}}}]
           :flow '(flow/step :db :it {{:database :sqlite :connection :shop :template :q {more}}})}}"
    );
    match project.errors(&flow) {
        errors if errors.is_empty() => project.eval(&flow),
        errors => errors,
    }
}

#[test]
fn variables_of_templates_become_parameters() {
    let body = ":sql \"select name from orders where name = {{who.name}} and id > {{at-least}}\"";
    assert_eq!(
        templated(body, ":data {:who {:name \"O'Neil\"} :at-least 0}"),
        "[{:name \"O'Neil\"}]"
    );
    assert_eq!(
        templated(body, ":data {:who {:name \"' or 1 = 1 --\"} :at-least 0}"),
        "[]"
    );
    // The older name of the statement.
    assert_eq!(
        templated(":query \"select {{n}} as n\"", ":data {:n 1}"),
        "[{:n 1}]"
    );
    contains(&templated(body, ":data {:at-least 0}"), "E1463");
    contains(&templated(body, ":params [1]"), "E1461");
    for (text, why) in [
        ("select '{{n}}'", "inside of quotes"),
        ("select {{#if n}}1{{/if}}", "is not a variable"),
        ("select {{{n}}}", "is not a variable"),
        ("select {{upper n}}", "is not a variable"),
        ("select ?", "a `?` of its own"),
    ] {
        let found = templated(&format!(":sql \"{text}\""), ":data {:n 1}");
        contains(&found, "E1463");
        contains(&found, why);
    }
}

#[test]
fn a_recorded_statement_is_answered_without_its_database() {
    let config = |statement: &str| {
        format!("{{:database :sqlite :connection :shop :sql \"{statement}\" :params [1.5]}}")
    };
    let good = config("select a, ? as b, x'00ff' as c, null as d, 0.5 as e from t");
    let bad = config("select ? from absent");
    wait(async {
        let mut world = World::new().settings(SETTINGS);
        let file = world.path().join("shop.db");
        let shop = Connection::open(&file).expect("a database");
        shop.execute_batch("create table t (a text); insert into t values ('x')")
            .expect("a row");
        drop(shop);
        let folder = world.path().join("answers");
        let recorder = Recorder::create(&folder, BTreeMap::new()).expect("a folder");
        world.exchanges = Some(Arc::new(recorder));
        let live = world.run(&Db, &good).await;
        assert_eq!(
            live,
            "[{:a \"x\" :b 1.5 :c #flowstone/bytes \"00ff\" :d nil :e 0.5}]"
        );
        let refused = world.run(&Db, &bad).await;
        contains(&refused, "E1468 invalid");
        std::fs::remove_file(&file).expect("removed");
        let replayer = Replayer::open(&folder).expect("a recording");
        world.exchanges = Some(Arc::new(replayer));
        assert_eq!(world.run(&Db, &good).await, live);
        assert_eq!(world.run(&Db, &bad).await, refused);
        contains(&world.run(&Db, &config("select ?")).await, "E0754");
    });
}

#[test]
fn databases_that_are_not_reached_say_what_to_use() {
    let check = |config: &str| {
        Project::with(SETTINGS).check(&format!("{{:slug :a :flow '(flow/step :db :it {config})}}"))
    };
    let cases = [
        (
            "{:database :bigquery :connection :shop :sql \"select 1\"}",
            "bigquery.googleapis.com",
        ),
        (
            "{:database :clickhouse :connection :shop :sql \"select 1\"}",
            "HTTP interface",
        ),
        (
            "{:database :firestore :connection :shop :collection \"a\"}",
            "firestore.googleapis.com",
        ),
        (
            "{:database :snowflake :connection :shop :sql \"select 1\"}",
            "/api/v2/statements",
        ),
        (
            "{:database :postgress :connection :shop :sql \"select 1\"}",
            "did you mean `:postgres`?",
        ),
        (
            "{:database :postgres :connection :shop :sql \"select 1\" :dry-run true}",
            "E0710 a `:db` step has no option `:dry-run`",
        ),
        (
            "{:database :sqlite :connection :shop}",
            "E1461 the step has no statement",
        ),
        (
            "{:database :sqlite :connection :shop :sql \"select 1; select 2\"}",
            "E1461",
        ),
        (
            "{:database :postgres :connection :shop :sql \"delete from t\"}",
            "E1472",
        ),
        (
            "{:database :mysql :connection :shop :sql \"call p()\"}",
            "E1472",
        ),
        (
            "{:database :sqlite :connection :shop :sql \"select ?\"}",
            "E1464",
        ),
        (
            "{:database :sqlite :connection :shop :sql \"select ?\" :params [1 2]}",
            "E1464",
        ),
        (
            "{:database :sqlite :connection :shop :sql \"select 1\" :tempalte :q}",
            "did you mean",
        ),
        (
            "{:database :sqlite :connection :shop :template :q}",
            "E0755",
        ),
    ];
    for (config, expected) in cases {
        contains(&check(config), expected);
    }
    for config in [
        "{:database :sqlite :connection :shop :sql \"select ?\" :params [1]}",
        "{:connection :shop :sql \"delete from t\" :read-only false}",
        "{:database :postgres :connection :shop :sql q :params [1]}",
    ] {
        let found = check(config);
        assert!(!found.contains("E14"), "{config}: {found}");
    }
}
