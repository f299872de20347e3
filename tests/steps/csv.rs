//! Import and export of CSV files: accepted and refused texts, and that nothing is half-written.

use crate::project::Project;

/// Imports a text into a table, and returns the result or the error.
fn import(project: &Project, text: &str, options: &str) -> String {
    let text = flowstone_engine::codec::encode(&flowstone_lang::value::Value::from(text)).unwrap();
    project.eval(&format!(
        "(let [r (flow/step :table :load {{:op :import :table \"t\" :csv {text} {options}}})]
           (select-keys r [:rows-written :rows-inserted :rows-updated :rows-rejected :rejected]))"
    ))
}

fn rows(project: &Project) -> String {
    project.eval(
        "(let [r (flow/step :table :all {:op :query :table \"t\" :page {:limit 100}})] (:rows r))",
    )
}

/// Compares all rows with the expected ones, written as EDN.
fn has_rows(project: &Project, expected: &str) {
    let found = project.eval(&format!(
        "(let [r (flow/step :table :all {{:op :query :table \"t\" :page {{:limit 100}}}})] (= (:rows r) '{expected}))"
    ));
    assert_eq!(found, "true", "{}", rows(project));
}

fn types(project: &Project) -> String {
    project.eval(
        "(let [r (flow/step :table :s {:op :schema :table \"t\"})] (mapv (juxt :name :type) (:columns r)))",
    )
}

#[test]
fn types_are_inferred_and_rows_round_trip() {
    let project = Project::new();
    let text = "id,code,paid,amount,exact,day,at,note,empty\n\
        1,007,true,1.5,12345678901234567.89,2026-01-31,2026-01-31T10:00:00Z,\"a, b\",\n\
        2,012,FALSE,2,1,2026-02-01,2026-02-01 00:00:00.5,\"say \"\"hi\"\"\",\n\
        3,1,,,,,,\"two\nlines\",\n";
    assert_eq!(
        import(&project, text, ""),
        "{:rows-written 3 :rows-inserted 3 :rows-updated 0 :rows-rejected 0 :rejected []}"
    );
    assert_eq!(
        types(&project),
        r#"[["id" :long] ["code" :string] ["paid" :boolean] ["amount" :double] ["exact" :decimal] ["day" :date] ["at" :timestamp] ["note" :string] ["empty" nil]]"#
    );
    has_rows(
        &project,
        "[{:id 1 :code \"007\" :paid true :amount 1.5 :exact 12345678901234567.89M :day \"2026-01-31\" :at #inst \"2026-01-31T10:00:00.000Z\" :note \"a, b\" :empty nil} \
          {:id 2 :code \"012\" :paid false :amount 2 :exact 1M :day \"2026-02-01\" :at #inst \"2026-02-01T00:00:00.500Z\" :note \"say \\\"hi\\\"\" :empty nil} \
          {:id 3 :code \"1\" :paid nil :amount nil :exact nil :day nil :at nil :note \"two\\nlines\" :empty nil}]",
    );
}

#[test]
fn the_types_of_a_table_apply_to_later_imports() {
    let project = Project::new();
    project.eval(
        "(let [r (flow/step :table :c {:op :create :table \"t\" :columns [{:name :id :type :long} {:name :zip :type :string}
            {:name :on :type :boolean} {:name :n :type :double} {:name :d :type :decimal} {:name :day :type :date}
            {:name :at :type :timestamp} {:name :kind :type :enum} {:name :more :type :json}]})] r)",
    );
    let good = "id,zip,on,n,d,day,at,kind,more\n01,01234,yes,3,+1.50,2026-01-02,2026-01-02,a,\"{\"\"a\"\":1}\"\n2,\"\",0,1e3,,,,,\n";
    assert_eq!(
        import(&project, good, ""),
        "{:rows-written 2 :rows-inserted 2 :rows-updated 0 :rows-rejected 0 :rejected []}"
    );
    has_rows(
        &project,
        "[{:id 1 :zip \"01234\" :on true :n 3 :d 1.50M :day \"2026-01-02\" :at #inst \"2026-01-02T00:00:00.000Z\" :kind \"a\" :more {:a 1}} \
          {:id 2 :zip \"\" :on false :n 1000.0 :d nil :day nil :at nil :kind nil :more nil}]",
    );
    let cases = [
        (
            "id\n1\nx\n",
            "E0642 line 3, column `id` of the CSV text: the column holds integers, and the row has \"x\"",
        ),
        (
            "id\n1.5\n",
            "E0642 line 2, column `id` of the CSV text: the column holds integers, and the row has \"1.5\"",
        ),
        (
            "id,on\n1,maybe\n",
            "E0642 line 2, column `on` of the CSV text: the column holds booleans, and the row has \"maybe\"",
        ),
        (
            "id,n\n1,\"1,5\"\n",
            "E0642 line 2, column `n` of the CSV text: the column holds doubles, and the row has \"1,5\"",
        ),
        (
            "id,day\n\"1\",31.1.2026\n",
            "E0642 line 2, column `day` of the CSV text: the column holds dates such as \"2026-01-31\", and the row has \"31.1.2026\"",
        ),
        (
            "id,at\n1,soon\n",
            "E0642 line 2, column `at` of the CSV text: the column holds instants, and the row has \"soon\"",
        ),
    ];
    for (text, expected) in cases {
        let found = import(&project, text, "");
        assert!(found.starts_with(expected), "{text:?}\n{found}");
    }
    // An invalid file leaves nothing behind, not even a new column.
    let found = import(&project, "id,fresh\n7,1\nx,2\n", "");
    assert!(found.starts_with("E0642"), "{found}");
    assert!(!types(&project).contains("fresh"));
    assert!(!rows(&project).contains(":id 7"));
}

#[test]
fn bad_rows_are_left_out_or_listed() {
    let project = Project::new();
    let options = ":key-fields [:id] :columns {:id :long :n :long}";
    let text = "id,n\n1,10\n2\n3,x\n1,11\n,5\n4,\"1\"2\n5,50,\n6,60\n";
    assert_eq!(
        import(&project, text, &format!("{options} :on-bad-row :collect")),
        "{:rows-written 2 :rows-inserted 2 :rows-updated 0 :rows-rejected 6 :rejected [\
         {:line 3 :reason \"it has 1 field, and should have 2\"} \
         {:line 4 :column \"n\" :reason \"the column holds integers, and the row has \\\"x\\\"\"} \
         {:line 5 :reason \"a row with the same `id` is there already\"} \
         {:line 6 :column \"id\" :reason \"its key field is empty\"} \
         {:line 7 :reason \"there is text after the closing quote of field 2\"} \
         {:line 8 :reason \"it has 3 fields, and should have 2\"}]}"
    );
    assert_eq!(rows(&project), "[{:id 1 :n 10} {:id 6 :n 60}]");
    assert_eq!(
        import(&project, "id,n\n6,61\n7,70\n", ":on-bad-row :skip"),
        "{:rows-written 1 :rows-inserted 1 :rows-updated 0 :rows-rejected 1 :rejected []}"
    );
    let many = format!("id,n\n{}", "1,1\n".repeat(250));
    let found = import(&project, &many, ":on-bad-row :collect");
    assert!(found.contains(":rows-rejected 250"), "{found}");
    assert_eq!(found.matches(":line").count(), 100);
}

#[test]
fn write_modes() {
    let project = Project::new();
    let upsert = ":write-mode :upsert :key-fields [:id]";
    assert_eq!(
        import(&project, "id,n,m\n1,10,a\n2,20,b\n1,11,\n", upsert),
        "{:rows-written 3 :rows-inserted 2 :rows-updated 1 :rows-rejected 0 :rejected []}"
    );
    assert_eq!(
        import(&project, "n,id\n12,1\n30,3\n", ":write-mode :upsert"),
        "{:rows-written 2 :rows-inserted 1 :rows-updated 1 :rows-rejected 0 :rejected []}"
    );
    let found = project.eval(
        "(let [r (flow/step :table :q {:op :query :table \"t\" :sort [:id]})] (mapv (juxt :id :n :m) (:rows r)))",
    );
    assert_eq!(found, r#"[[1 12 nil] [2 20 "b"] [3 30 nil]]"#);
    let found = import(&project, "id,n,m\n9,1,x\n", ":write-mode :append");
    assert!(found.contains(":rows-inserted 1"), "{found}");
    let found = import(&project, "id,n,m\n5,1,x\n", ":write-mode :replace");
    assert!(found.contains(":rows-inserted 1"), "{found}");
    assert_eq!(rows(&project), "[{:id 5 :n 1 :m \"x\"}]");
    let cases = [
        (
            ":write-mode :upsert :key-fields [:n]",
            "E0625 the key of the table `t` is `id`, not `n`",
        ),
        (":write-mode :merge", "E0723 `:write-mode` has no `:merge`"),
        (
            ":on-bad-row :skipp",
            "E0723 `:on-bad-row` has no `:skipp` | did you mean `:skip`?",
        ),
        (
            ":delimiter \",,\"",
            "E0723 `:delimiter` must be one ASCII character",
        ),
        (
            ":columns {:idd :long}",
            "E0640 `:columns` sets the type of `idd`, but the CSV text has no such column",
        ),
        (":encoding :klingon", "E0641 there is no encoding `klingon`"),
        (
            ":index-fields [:x]",
            "E0622 the table `t` has no column `x`",
        ),
        (
            ":from \"a.csv\"",
            "E0723 the CSV text is given in more than one way",
        ),
    ];
    for (options, expected) in cases {
        let found = import(&project, "id,n\n1,1\n", options);
        assert!(found.starts_with(expected), "{options}\n{found}");
    }
    let project = Project::new();
    for (options, expected) in [
        (
            ":write-mode :upsert",
            "E0625 the table `t` has no key by which existing rows could be found",
        ),
        (
            ":key-fields [:id]",
            "E0625 rows 1 and 3 of the CSV text have the same `id`",
        ),
    ] {
        let found = import(&project, "id,n\n1,1\n2,2\n1,3\n", options);
        assert!(found.starts_with(expected), "{options}\n{found}");
    }
    assert!(
        types(&project).starts_with("E0620"),
        "nothing is half-written"
    );
}

#[test]
fn layouts() {
    let cases: &[(&str, &str, &str)] = &[
        ("a;b\n1;2\n", ":delimiter \";\"", "[{:a 1 :b 2}]"),
        ("a\tb\r\n1\t2\r\n", ":delimiter \"\\t\"", "[{:a 1 :b 2}]"),
        (
            "1,2\n3,4",
            ":header? false",
            "[{:column-1 1 :column-2 2} {:column-1 3 :column-2 4}]",
        ),
        (
            "1,2\n",
            ":header? false :columns [{:name :x :type :string} {:name :y :type :long}]",
            "[{:x \"1\" :y 2}]",
        ),
        ("\u{feff}a\n1\n", "", "[{:a 1}]"),
        ("\n\na,b\n\n1,2\n\n", "", "[{:a 1 :b 2}]"),
        ("a\n1\n\n3\n", "", "[{:a 1} {:a nil} {:a 3}]"),
        (" a , b\n1,2\n", "", "[{:a 1 :b 2}]"),
        ("a,b\n", "", "[]"),
        ("a\nx\"y\n", "", "[{:a \"x\\\"y\"}]"),
        (
            "a'; DROP TABLE t_1; --\n1\n",
            "",
            "[{#flowstone/keyword \"a'; DROP TABLE t_1; --\" 1}]",
        ),
    ];
    for (text, options, expected) in cases {
        let project = Project::new();
        let done = import(&project, text, options);
        assert!(done.starts_with("{:rows-written"), "{text:?} {done}");
        let found = rows(&project);
        if expected.contains("DROP") {
            assert!(found.contains("DROP"), "{found}");
            continue;
        }
        assert_eq!(found, *expected, "{text:?}");
    }
}

#[test]
fn invalid_csv_is_refused() {
    let wide: String = (0..10_000)
        .map(|idx| format!("c{idx},"))
        .collect::<String>()
        + "z\n";
    let cases: &[(&str, &str)] = &[
        (
            "",
            "E0640 the CSV text is empty | its first line names the columns",
        ),
        (
            "a,,c\n1,2,3\n",
            "E0640 line 1 of the CSV text: column 2 has no name",
        ),
        (
            "a,b,a\n1,2,3\n",
            "E0640 line 1 of the CSV text: columns 1 and 3 are both called `a`",
        ),
        (
            "row-id\n1\n",
            "E0640 line 1 of the CSV text: a column is called `row-id`",
        ),
        (
            &wide,
            "E0640 the CSV text has 10001 columns, and a table has at most 1000",
        ),
        (
            "a,b\n1,2,3\n",
            "E0642 line 2 of the CSV text: it has 3 fields, and should have 2",
        ),
        (
            "a,b\n1\n",
            "E0642 line 2 of the CSV text: it has 1 field, and should have 2",
        ),
        (
            "a,b\n1,\"2\n3,4\n",
            "E0643 line 2 of the CSV text, field 2: a quote is opened here and never closed",
        ),
        (
            "a,b\n1,\"2\"x\n",
            "E0642 line 2 of the CSV text: there is text after the closing quote of field 2",
        ),
        (
            "a\u{0}\n",
            "E0641 line 1 of the CSV text contains a NUL character",
        ),
    ];
    let project = Project::new();
    for (text, expected) in cases {
        let found = import(&project, text, "");
        assert!(
            found.starts_with(expected),
            "{:?}\n{found}",
            &text[..text.len().min(40)]
        );
    }
    let huge = format!("a,b\n1,{}\n", "x".repeat(20 << 20));
    project.write("huge.csv", huge.as_bytes());
    let found = project
        .eval("(let [r (flow/step :table :l {:op :import :table \"t\" :from \"huge.csv\"})] r)");
    assert!(
        found.starts_with("E0643 line 2 of the CSV text, field 2: it is larger than 16 MB"),
        "{found}"
    );
    assert!(
        types(&project).starts_with("E0620"),
        "nothing is half-written"
    );
}

#[test]
fn files_and_their_encodings() {
    let project = Project::new();
    let utf16 = |text: &str, little: bool| -> Vec<u8> {
        let units = text.encode_utf16();
        units
            .flat_map(|unit| {
                if little {
                    unit.to_le_bytes()
                } else {
                    unit.to_be_bytes()
                }
            })
            .collect()
    };
    let marked = [vec![0xff, 0xfe], utf16("name\nÉva\n", true)].concat();
    project.write("data/utf8.csv", "name\nÉva\n".as_bytes());
    project.write("data/latin1.csv", b"name\n\xc9va\n");
    project.write("data/marked.csv", &marked);
    project.write("data/utf16.csv", &utf16("name\nÉva\n", false));
    project.write("data/cut.csv", b"name\n\x81");
    let load = |from: &str, options: &str| {
        project.eval(&format!(
            "(let [r (flow/step :table :l {{:op :import :table \"t\" :write-mode :replace :from \"{from}\" {options}}})] (:rows-written r))"
        ))
    };
    for (from, options) in [
        ("data/utf8.csv", ""),
        ("./data/utf8.csv", ":encoding :utf-8"),
        ("data/latin1.csv", ":encoding :latin1"),
        ("data/marked.csv", ""),
        ("data/utf16.csv", ":encoding \"utf-16be\""),
    ] {
        assert_eq!(load(from, options), "1", "{from}");
        assert_eq!(rows(&project), "[{:name \"Éva\"}]", "{from}");
    }
    std::fs::create_dir_all(project.path().join("data/folder")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("x.csv"), "a\n1\n").unwrap();
    std::os::unix::fs::symlink(outside.path(), project.path().join("data/out")).unwrap();
    for (from, options, expected) in [
        (
            "data/latin1.csv",
            "",
            "E0641 line 2 of the CSV text is not UTF-8: byte 0xC9 | name the encoding that it has",
        ),
        (
            "data/utf16.csv",
            "",
            "E0641 line 1 of the CSV text contains a NUL character | it may be UTF-16",
        ),
        ("data/latin1.csv", ":encoding :utf-16le", "E064"),
        (
            "data/cut.csv",
            ":encoding :shift_jis",
            "E0641 the CSV text is not in the encoding Shift_JIS",
        ),
        (
            "data/none.csv",
            "",
            "E0724 `:from` names \"data/none.csv\", which does not exist",
        ),
        (
            "data/latin.csv",
            "",
            "E0724 `:from` names \"data/latin.csv\", which does not exist | did you mean \"data/latin1.csv\"?",
        ),
        (
            "data/folder",
            "",
            "E0724 `:from` names \"data/folder\", which is a folder | name a file in it",
        ),
        ("data/out/x.csv", "", "E0960 the flow may not read "),
        ("../x.csv", "", "E0960 the flow may not read "),
        ("/etc/passwd", "", "E0960 the flow may not read "),
        (
            "res://v1/ws/local/result/nothing",
            "",
            "E0761 there is no blob",
        ),
    ] {
        let found = load(from, options);
        assert!(found.starts_with(expected), "{from}\n{found}");
    }
    assert_eq!(
        rows(&project),
        "[{:name \"Éva\"}]",
        "a failed replace leaves what was there"
    );
}

#[test]
fn a_blob_is_imported_by_its_reference() {
    let project = Project::new();
    let found = project.eval(
        "(let [file (flow/step :function :make {:code '(fn [_] {:content \"a,b\\n1,x\\n2,y\\n\" :content-type \"text/csv\" :filename \"f.csv\"}) :persist {:type :blob}})
               one (flow/step :table :one {:op :import :table \"t\" :from file})
               two (flow/step :table :two {:op :import :table \"t\" :from-ref (:uri file)})]
           [(:rows-written one) (:row-count two) (:type two) (some? (:uri two))])",
    );
    assert_eq!(found, "[2 4 :resource-ref true]");
}

#[test]
fn an_export_round_trips() {
    let project = Project::new();
    let make = r#"(let [r (flow/step :table :w {:op :create :table "t" :columns [{:name :s :type :string} {:name :l :type :long} {:name :d :type :double}
          {:name :m :type :decimal} {:name :b :type :boolean} {:name :day :type :date} {:name :at :type :timestamp} {:name :j :type :json}]})
        w (flow/step :table :i {:op :insert :table "t" :rows [
          {:s "" :l -9223372036854775808 :d 1.0 :m 12.50M :b true :day "2026-01-31" :at #inst "2026-01-05T10:00:00.123Z" :j {:a [1 nil "x"]}}
          {:s nil :l nil :d nil :m nil :b nil :day nil :at nil :j nil}
          {:s "a,\"b\"\r\n c " :l 0 :d 1e-300 :m -0.001M :b false :day "0001-01-01" :at #inst "1969-12-31T23:59:59.999Z" :j "plain"}
          {:s "007" :l 7 :d 3 :m 1E+30M :b true :day "9999-12-31" :at #inst "2026-01-05T10:00:00Z" :j "[1]"}
          {:s "é 🦀" :l 9223372036854775807 :d -0.0 :m 0M :b true :day nil :at nil :j 17}]})] (:rows-written w))"#;
    assert_eq!(project.eval(make), "5");
    let again = r#"(let [file (flow/step :table :e {:op :export :table "t"})
          c (flow/step :table :c {:op :create :table "u" :columns [{:name :s :type :string} {:name :l :type :long} {:name :d :type :double}
            {:name :m :type :decimal} {:name :b :type :boolean} {:name :day :type :date} {:name :at :type :timestamp} {:name :j :type :json}]})
          i (flow/step :table :i2 {:op :import :table "u" :csv (:content file)})
          one (flow/step :table :q1 {:op :query :table "t"})
          two (flow/step :table :q2 {:op :query :table "u"})
          file2 (flow/step :table :e2 {:op :export :table "u"})]
      [(:rows file) (= (:rows one) (:rows two)) (= (map pr-str (:rows one)) (map pr-str (:rows two))) (= (:content file) (:content file2))])"#;
    assert_eq!(project.eval(again), "[5 true true true]");
}

#[test]
fn a_large_export_goes_into_a_blob() {
    let project = Project::new();
    let text: String = std::iter::once("id,text\n".to_owned())
        .chain((0..30_000).map(|idx| format!("{idx},{}\n", "x".repeat(40))))
        .collect();
    project.write("big.csv", text.as_bytes());
    let found = project.eval(
        "(let [in (flow/step :table :in {:op :import :table \"t\" :from \"big.csv\" :key-fields [:id]})
               out (flow/step :table :out {:op :export :table \"t\"})
               back (flow/step :table :back {:op :import :table \"u\" :from out})
               kept (flow/step :table :kept {:op :export :table \"t\" :persist {:type :blob :filename \"all.csv\"}})]
           [(:rows-written in) (:rows out) (:content out) (:content-type out) (:size-bytes out) (:rows-written back) (:size-bytes kept)])",
    );
    let size = text.len();
    assert_eq!(
        found,
        format!("[30000 30000 nil \"text/csv\" {size} 30000 {size}]")
    );
}

#[test]
fn column_rules_apply_to_imported_files() {
    let project = Project::new();
    project.eval(
        "(let [r (flow/step :table :c {:op :create :table \"t\" :key-fields [:id] :columns [{:name :id :type :long}
            {:name :state :enum {:options [{:id \"open\" :name \"Open\" :aliases [\"new\"]}]}}
            {:name :n :type :long :validation {:max 5}}]})] r)",
    );
    let found = import(
        &project,
        "id,state,n\n1,Open,1\n2,new,6\n3,closed,5\n",
        ":on-bad-row :collect",
    );
    assert!(found.contains(":rows-written 2"), "{found}");
    assert!(
        found.contains(":line 3 :column \"n\" :reason \"it should be at most 5"),
        "{found}"
    );
    has_rows(
        &project,
        "[{:id 1 :state \"open\" :n 1} {:id 3 :state \"closed\" :n 5}]",
    );
}

#[test]
fn formulas_are_escaped_on_request() {
    let rows = [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("+1+1", "'+1+1"),
        ("-2+3", "'-2+3"),
        ("@SUM(1)", "'@SUM(1)"),
        ("\t=1", "'\t=1"),
        ("＝1", "'＝1"),
        ("a=1", "a=1"),
        ("'=1", "'=1"),
        (" =1", " =1"),
        ("plain", "plain"),
    ];
    for (text, escaped) in rows {
        let project = Project::new();
        let body = format!(
            "(do (flow/step :table :in {{:op :insert :table \"t\" :rows [{{:name {text:?} :n -5}}]}})
                 [(:content (flow/step :table :plain {{:op :export :table \"t\" :select [:name :n]}}))
                  (:content (flow/step :table :safe {{:op :export :table \"t\" :select [:name :n] :escape-formulas? true}}))
                  (flow.util/write-csv [{{:name {text:?} :n -5}}] {{:columns [:name :n] :escape-formulas? true}})])"
        );
        let found = project.eval(&body);
        let line = |text: &str| match text.contains(',') {
            true => format!("\"{text}\""),
            false => text.to_owned(),
        };
        let shown = |text: &str| format!("{:?}", format!("name,n\n{},-5\n", line(text)));
        let expected = format!("[{} {} {}]", shown(text), shown(escaped), shown(escaped));
        assert_eq!(found, expected, "{text:?}");
    }
}
