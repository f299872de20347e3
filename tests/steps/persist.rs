use crate::project::Project;

fn function(value: &str, persist: &str) -> String {
    format!(
        "(let [r (flow/step :function :make {{:code '(fn [_] {value}) :persist {persist}}})] r)"
    )
}

#[test]
fn a_result_can_be_stored_as_a_blob() {
    let project = Project::new();
    let stored = project.eval(&format!(
        "(let [r {}
               back (flow/step :function :back {{:input {{:doc r :uri (:uri r)}} :load [:doc] :code '(fn [i] (:doc i))}})]
           [(:type r) (:content-type r) (:size-bytes r) (:filename r) (= (:uri r) (:resource-uri r) (:uri (:ref r)) (:uri (:blob-ref r))) back])",
        "(flow/step :function :make {:code '(fn [_] {:a [1 :k \"x\"]}) :persist {:type :blob}})"
    ));
    assert_eq!(
        stored,
        "[:resource-ref \"application/edn\" 15 \"make.edn\" true {:a [1 :k \"x\"]}]"
    );
    let uri = project.eval(
        &function("\"plain\"", "{:type :blob :filename \"a.txt\"}").replace("] r)", "] (:uri r))"),
    );
    let (kind, bytes) = project.blob(uri.trim_matches('"')).expect("a blob");
    assert_eq!(
        (kind.as_str(), bytes.as_slice()),
        ("text/plain; charset=utf-8", b"plain".as_slice())
    );
    let json = function(
        "{:a [1 :k]}",
        "{:type :blob :content-type \"application/json\"}",
    )
    .replace("] r)", "] (:uri r))");
    let (kind, bytes) = project
        .blob(project.eval(&json).trim_matches('"'))
        .expect("a blob");
    assert_eq!(
        (kind.as_str(), bytes.as_slice()),
        ("application/json", br#"{"a":[1,"k"]}"#.as_slice())
    );
}

#[test]
fn a_result_can_be_stored_under_a_key() {
    let project = Project::new();
    let found = project.eval(
        "(let [r (flow/step :function :make {:code '(fn [_] {:n 1}) :persist {:type :kv :key \"report:1\" :ttl 60}})
               back (flow/step :kv :read {:operation :get :key \"report:1\"})]
           [(:key r) (:uri r) (:value back)])",
    );
    assert_eq!(
        found,
        "[\"report:1\" \"res://v1/ws/local/result/kv/report:1\" {:n 1}]"
    );
}

#[test]
fn a_result_can_be_stored_as_a_table() {
    let project = Project::new();
    let found = project.eval(
        "(let [r (flow/step :function :make {:code '(fn [_] {:body {:items [{:id 1 :s \"a\"} {:id 2 :s \"b\"}]}})
                                             :persist {:type :table :table \"items\" :rows-path [:body :items] :write-mode :upsert
                                                       :key-fields [:id] :index-fields [:s]}})
               q (flow/step :table :q {:op :query :table r :where [[:s := \"b\"]]})]
           [(:type r) (:count r) (:rows-inserted r) (:row-count r) (:preview r) (:rows q)])",
    );
    assert_eq!(
        found,
        "[:resource-ref 2 2 2 [{:id 1 :s \"a\"} {:id 2 :s \"b\"}] [{:id 2 :s \"b\"}]]"
    );
    let again = project.eval(
        "(let [r (flow/step :function :make {:code '(fn [_] [{:id 2 :s \"c\"} {:id 3 :s \"d\"}]) :persist {:type :table :name :items :key-fields [:id]}})]
           [(:rows-inserted r) (:rows-updated r)])",
    );
    assert_eq!(again, "[1 1]");
}

#[test]
fn invalid_configs_are_refused() {
    let project = Project::new();
    for (value, persist, expected) in [
        (
            "1",
            "{}",
            "E0763 `:persist` needs `:type` | there are `:blob`, `:kv` and `:table`",
        ),
        (
            "1",
            "{:type :blobb}",
            "E0763 `:persist` has no type `:blobb` | did you mean `:blob`?",
        ),
        (
            "1",
            "{:type :blob :file-name \"x\"}",
            "E0726 `:persist` has no key `:file-name` | did you mean `:filename`?",
        ),
        (
            "1",
            "{:type :blob :tier :ephemeral}",
            "E0763 `:tier :ephemeral` is for steps that stream, and `:function` does not | use `:tier :retained`",
        ),
        (
            "1",
            "{:type :blob :filename \"../x\"}",
            "E0763 `:filename` is a plain name without folders, not \"../x\"",
        ),
        (
            "1",
            "{:type :kv}",
            "E0763 `:persist {:type :kv}` needs `:key` | as in `:key \"report:latest\"`",
        ),
        (
            "1",
            "{:type :kv :key \"a b\"}",
            "E0610 `:persist :key` is not a key: a key can contain only letters, digits, `_`, `-` and `:`, and this one has ' ' | put `:` or `-` between the parts of a key, as in \"orders:2026-03\"",
        ),
        (
            "1",
            "{:type :table}",
            "E0763 `:persist {:type :table}` needs `:table` | as in `:table \"orders\"`",
        ),
        (
            "1",
            "{:type :table :table \"t\"}",
            "E0764 the rows of the result are an integer, not a vector of maps",
        ),
        (
            "{:a 1 :b 2}",
            "{:type :table :table \"t\"}",
            "E0768 the result is a map, but the place of its rows is not set | add `:rows-path [...]`; the result has :a :b",
        ),
        (
            "{:a {:c []}}",
            "{:type :table :table \"t\" :rows-path [:a :b]}",
            "E0768 `:rows-path` leads nowhere: the result has no :b at step 2 | there it has :c",
        ),
        (
            "[{:a 1}]",
            "{:type :table :table \"t\" :write-mode :merge}",
            "E0763 `:write-mode` is `:append`, `:upsert` or `:replace`, not `:merge`",
        ),
    ] {
        assert_eq!(
            project.eval(&function(value, persist)),
            expected,
            "{persist}"
        );
    }
}

#[test]
fn an_invalid_persist_fails_before_the_step() {
    let project = Project::new();
    let found = project.eval("(let [r (flow/step :function :make {:code '(fn [_] (throw (ex-info \"ran\" {}))) :persist {:type :blobb}})] r)");
    assert!(found.starts_with("E0763"), "{found}");
    let found = project.eval("(let [r (flow/step :kv :k {:operation :set :key \"k\" :value 1 :persist {:type :blob}})] r)");
    assert_eq!(
        found,
        "E0714 the result of a `:kv` step cannot be persisted | persist it with a `:function` step that follows"
    );
}

/// Returns the content type and the bytes of the blob that a function's value becomes.
fn bytes(value: &str, persist: &str) -> (String, String) {
    let project = Project::new();
    let flow =
        function(value, &format!("{{:type :blob {persist}}}")).replace("] r)", "] (:uri r))");
    let uri = project.eval(&flow);
    match project.blob(uri.trim_matches('"')) {
        Some((kind, bytes)) => (kind, String::from_utf8(bytes).expect("text")),
        None => (String::new(), uri),
    }
}

#[test]
fn the_name_and_the_type_of_a_file_decide_its_bytes() {
    let rows = "[{:n 1 :name \"a,b\"} {:n 2.50M :name :k}]";
    for (value, persist, kind, expected) in [
        (
            "{:x 1}",
            ":filename \"report.json\"",
            "application/json",
            "{\"x\":1}",
        ),
        (
            "{:x 1}",
            ":name \"report.JSON\"",
            "application/json",
            "{\"x\":1}",
        ),
        (
            "{:x 1}",
            ":content-type \"application/ld+json\"",
            "application/ld+json",
            "{\"x\":1}",
        ),
        (
            "{:x 1}",
            ":filename \"a.json\" :content-type \"application/edn\"",
            "application/edn",
            "{:x 1}",
        ),
        ("{:x 1}", ":filename \"a.edn\"", "application/edn", "{:x 1}"),
        ("{:x 1}", "", "application/edn", "{:x 1}"),
        (
            "{:x 1}",
            ":filename \"a.txt\"",
            "text/plain; charset=utf-8",
            "{:x 1}",
        ),
        ("{:x 1}", ":filename \"noext\"", "application/edn", "{:x 1}"),
        (
            "[1 {:a :b}]",
            ":filename \"a.ndjson\"",
            "application/x-ndjson",
            "1\n{\"a\":\"b\"}\n",
        ),
        (
            "[1 2]",
            ":content-type \"application/jsonl\"",
            "application/jsonl",
            "1\n2\n",
        ),
        (
            rows,
            ":filename \"a.csv\"",
            "text/csv",
            "n,name\n1,\"a,b\"\n2.50,k\n",
        ),
        (
            "[[1 2] [3 4]]",
            ":filename \"a.tsv\"",
            "text/tab-separated-values",
            "1\t2\n3\t4\n",
        ),
        ("[]", ":filename \"a.csv\"", "text/csv", ""),
        (
            "{:x [1]}",
            ":filename \"a.yaml\"",
            "application/yaml",
            "{\n  \"x\": [\n    1\n  ]\n}\n",
        ),
        // Text is stored unchanged.
        ("\"{}\"", ":filename \"a.json\"", "application/json", "{}"),
        (
            "\"not json\"",
            ":filename \"a.json\"",
            "text/plain; charset=utf-8",
            "not json",
        ),
        ("\"a,b\"", ":filename \"a.csv\"", "text/csv", "a,b"),
        ("\"# T\"", ":filename \"a.md\"", "text/markdown", "# T"),
        (
            "\"x\"",
            ":filename \"a.edn\"",
            "text/plain; charset=utf-8",
            "x",
        ),
    ] {
        let found = bytes(value, persist);
        assert_eq!(
            (found.0.as_str(), found.1.as_str()),
            (kind, expected),
            "{value} {persist}"
        );
    }
    for (value, persist, words) in [
        (
            "{:x 1}",
            ":filename \"a.html\"",
            "E0768 the result is a map, which cannot be stored as text/html",
        ),
        (
            "{:x 1}",
            ":filename \"a.png\"",
            "E0768 the result is a map, which cannot be stored as image/png",
        ),
        (
            "{:x 1}",
            ":filename \"a.csv\"",
            "E0768 a table needs a vector of maps or of vectors",
        ),
        (
            "[1 2]",
            ":filename \"a.csv\"",
            "E0768 the result cannot be stored: row 1 is an integer",
        ),
        (
            "{:x 1}",
            ":filename \"a.ndjson\"",
            "E0768 JSON Lines need a vector",
        ),
    ] {
        let found = bytes(value, persist).1;
        assert!(found.starts_with(words), "{value} {persist}: {found}");
    }
}

#[test]
fn a_blob_is_loaded_as_data_according_to_its_file_name() {
    let project = Project::new();
    for (value, name, expected) in [
        ("{:x [1 2.5 nil true]}", "a.json", "{:x [1 2.5 nil true]}"),
        ("[{:a 1} {:a 2}]", "a.ndjson", "[{:a 1} {:a 2}]"),
        ("{:k #{:a}}", "a.edn", "{:k #{:a}}"),
        ("[{:a 1}]", "a.csv", "\"a\\n1\\n\""),
    ] {
        let found = project.eval(&format!(
            "(let [r (flow/step :function :make {{:code '(fn [_] {value}) :persist {{:type :blob :filename \"{name}\"}}}})]
               (flow/step :function :back {{:input {{:doc r}} :load [:doc] :code '(fn [i] (:doc i))}}))"
        ));
        assert_eq!(found, expected, "{name}");
    }
}
