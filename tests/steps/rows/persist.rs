//! The rows of `tests/coverage/persist.tsv`.

use flowstone_engine::GcOptions;
use flowstone_engine::ports::RunFilter;
use flowstone_engine::resource::{SearchEntry, Tier};

use crate::project::Project;
use crate::server::{Server, reply};

/// Stores the value of a function as a blob, and returns an expression over its reference `r`.
fn stored(project: &Project, value: &str, persist: &str, of: &str) -> String {
    project.eval(&format!(
        "(let [r (flow/step :function :make {{:code '(fn [_] {value}) :persist {persist}}})] {of})"
    ))
}

fn blob(persist: &str, of: &str) -> String {
    let persist = format!("{{:type :blob {persist}}}");
    stored(&Project::new(), "\"text\"", &persist, of)
}

/// Stores a server's response as an ephemeral blob.
fn ephemeral(project: &Project, of: &str) -> String {
    let answer = reply("200 OK", &["content-type: text/plain"], "0123456789");
    let server = Server::start(vec![answer]);
    project.eval(&format!(
        "(let [r (flow/step :http :get {{:url \"{}\" :persist {{:type :blob :tier :ephemeral}}}})] {of})",
        server.url
    ))
}

const BACK: &str =
    "(flow/step :function :back {:input {:doc r} :load [:doc] :code '(fn [i] (:doc i))})";

#[test]
fn persist_is_a_map() {
    let project = Project::new();
    for persist in ["true", ":blob", "[:blob]"] {
        let found = project.eval(&format!(
            "(flow/step :function :make {{:code '(fn [_] 1) :persist {persist}}})"
        ));
        assert!(found.starts_with("E0712 "), "{persist}: {found}");
    }
}

#[test]
fn type_() {
    let wrong = [
        (
            "{}",
            "E0763 `:persist` needs `:type` | there are `:blob`, `:kv` and `:table`",
        ),
        (
            "{:type :blobb}",
            "E0763 `:persist` has no type `:blobb` | did you mean `:blob`?",
        ),
    ];
    for (persist, expected) in wrong {
        assert_eq!(stored(&Project::new(), "1", persist, "r"), expected);
    }
    assert_eq!(
        stored(&Project::new(), "1", "{:type \"blob\"}", "(:type r)"),
        ":resource-ref"
    );
}

#[test]
fn type_blob() {
    let project = Project::new();
    assert_eq!(
        stored(&project, "{:a [1 #{:b}]}", "{:type :blob}", BACK),
        "{:a [1 #{:b}]}"
    );
    // Each iteration of a loop and each branch has its own blob.
    let turns = project.eval(
        "(let [rs (mapv (fn [n] (flow/step :function :turn {:input {:n n} :code '(fn [i] (:n i)) :persist {:type :blob}})) (range 3))
               ps (flow/pmap (fn [n] (flow/step :function :line {:input {:n n} :code '(fn [i] (:n i)) :persist {:type :blob}})) (range 3))]
           [(count (distinct (map :uri (concat rs ps))))
            (mapv (fn [r] (flow/step :function :back {:input {:doc r} :load [:doc] :code '(fn [i] (:doc i))})) (concat rs ps))])",
    );
    assert_eq!(turns, "[6 [0 1 2 0 1 2]]");
    // So does each pass of a run.
    let passes = project.eval(
        "{:slug :again :concurrency {:type :singleton :on-new-version :coexist}
          :flow '(let [before (:before (flow/input))
                       r (flow/step :function :make {:input {:n (if before 2 1)} :code '(fn [i] (:n i)) :persist {:type :blob}})]
                   (if before
                     [(= (:uri before) (:uri r))
                      (flow/step :function :back {:input {:doc before} :load [:doc] :code '(fn [i] (:doc i))})]
                     (flow/continue-as-new {:before r})))}",
    );
    assert_eq!(passes, "[false 1]");
}

#[test]
fn tier_retained() {
    let project = Project::new();
    let uri = stored(&project, "1", "{:type :blob :tier :retained}", "(:uri r)");
    project.clock.advance(100 * 24 * 3_600_000);
    let row = project.block_on(project.engine.live_resource(uri.trim_matches('"')));
    assert_eq!(row.expect("it is there").expires_ms, None);
    let wrong = blob(":tier :frozen", "r");
    assert_eq!(
        wrong,
        "E0763 `:tier` is `:retained` or `:ephemeral`, not `:frozen`"
    );
}

#[test]
fn tier_ephemeral() {
    let project = Project::new();
    let found = ephemeral(
        &project,
        &format!("[(:tier r) (:expires-at r) (:size-bytes r) {BACK}]"),
    );
    assert_eq!(
        found,
        "[:ephemeral #inst \"2026-03-01T12:00:00.000Z\" 10 \"0123456789\"]"
    );
    // The registered resource has the same facts.
    let uri = ephemeral(&project, "(:uri r)");
    let row = project.block_on(project.engine.live_resource(uri.trim_matches('"')));
    let row = row.expect("it is there");
    assert_eq!(
        (row.tier, row.expires_ms),
        (
            Tier::Ephemeral,
            Some(crate::project::START + 12 * 3_600_000)
        )
    );
    let wrong = blob(":tier :ephemeral", "r");
    assert_eq!(
        wrong,
        "E0763 `:tier :ephemeral` is for steps that stream, and `:function` does not | use `:tier :retained`"
    );
}

#[test]
fn filename() {
    assert_eq!(
        blob(":filename \"a b.txt\"", "(:filename r)"),
        "\"a b.txt\""
    );
    assert_eq!(blob("", "(:filename r)"), "\"make.txt\"");
    for bad in ["../x", "a/b", "..", "", "a\\\\b", "a\\nb"] {
        let found = blob(&format!(":filename \"{bad}\""), "r");
        assert!(
            found.starts_with("E0763 `:filename` is a plain name without folders"),
            "{bad}: {found}"
        );
    }
}

#[test]
fn name() {
    assert_eq!(blob(":name \"n.txt\"", "(:filename r)"), "\"n.txt\"");
    let both = blob(":name \"n.txt\" :filename \"m.txt\"", "r");
    assert!(
        both.starts_with("E0763 `:filename` and `:name` say different things"),
        "{both}"
    );
}

#[test]
fn content_type() {
    assert_eq!(
        blob(":content-type \"text/csv\"", "(:content-type r)"),
        "\"text/csv\""
    );
    assert_eq!(
        blob("", "(:content-type r)"),
        "\"text/plain; charset=utf-8\""
    );
    for bad in ["csv", "text/", "a b/c", "text/csv\\r\\nx: y"] {
        let found = blob(&format!(":content-type \"{bad}\""), "r");
        assert!(
            found.starts_with("E0763 `:content-type` is a media type"),
            "{bad}: {found}"
        );
    }
}

/// Stores a blob with a signed link, and checks the link after some seconds.
fn linked(signed: &str, seconds: i64) -> Result<String, String> {
    let project = Project::with("{:server {:url \"https://flows.example.com/\"}}");
    let persist = format!("{{:type :blob :signed-url {signed}}}");
    let url = stored(&project, "1", &persist, "(:url r)");
    let url = url.trim_matches('"');
    assert!(
        url.starts_with("https://flows.example.com/api/resources/content?uri=res:"),
        "{url}"
    );
    project.clock.advance(seconds * 1_000);
    let checked = project.block_on(project.engine.check_link(url));
    checked
        .map(|(row, _)| row.uri)
        .map_err(|error| error.to_string())
}

#[test]
fn signed_url() {
    assert!(linked("true", 3_599).is_ok());
    assert_eq!(
        linked("true", 3_600),
        Err("this link is not good: it has expired".into())
    );
    assert_eq!(blob(":signed-url false", "(:url r)"), "nil");
    assert!(blob(":signed-url 900", "r").starts_with("E0763 `:signed-url` takes true or a map"));
}

#[test]
fn signed_url_ttl_seconds() {
    assert!(linked("{:ttl-seconds 60}", 59).is_ok());
    assert!(linked("{:ttl-seconds 60}", 60).is_err());
    for bad in ["59", "86401"] {
        let found = blob(&format!(":signed-url {{:ttl-seconds {bad}}}"), "r");
        assert!(
            found.starts_with("E0725 ") && found.contains("from 60 to 86400"),
            "{found}"
        );
    }
    let unknown = blob(":signed-url {:ttl 60}", "r");
    assert!(
        unknown.contains("did you mean `:ttl-seconds`?") || unknown.contains(":ttl-seconds"),
        "{unknown}"
    );
}

/// Stores a blob with search fields, and returns them.
fn indexed(entry: &str) -> SearchEntry {
    let project = Project::new();
    let persist = format!("{{:type :blob :search-index {entry}}}");
    let uri = stored(&project, "1", &persist, "(:uri r)");
    let row = project.block_on(project.engine.live_resource(uri.trim_matches('"')));
    let row = row.unwrap_or_else(|error| panic!("{uri}: {error}"));
    row.search.expect("an entry")
}

#[test]
fn search_index() {
    assert_eq!(indexed("{}"), SearchEntry::default());
    assert!(indexed("{:contents false}").without_contents);
    assert!(
        blob(":search-index true", "r").starts_with("E0780 `:persist :search-index` takes a map")
    );
    assert!(blob(":search-index {:txt \"x\"}", "r").contains("did you mean `:text`?"));
}

#[test]
fn search_index_text() {
    assert_eq!(
        indexed("{:text \"sales of May\"}").text.as_deref(),
        Some("sales of May")
    );
    let long = blob(
        ":search-index {:text (apply str (repeat 100001 \"x\"))}",
        "r",
    );
    assert!(
        long.starts_with("E0763 `:search-index :text` has at most 100000 characters"),
        "{long}"
    );
}

#[test]
fn search_index_tags() {
    assert_eq!(indexed("{:tags [\"may\" :sales]}").tags, ["may", "sales"]);
    assert!(
        blob(":search-index {:tags [{}]}", "r")
            .starts_with("E0763 `:search-index :tags` takes names")
    );
}

#[test]
fn search_index_source_label() {
    let entry = indexed("{:source-label \"Shop\"}");
    assert_eq!(entry.source_label.as_deref(), Some("Shop"));
}

#[test]
fn bucket() {
    let found = blob(":bucket :reports", "[(:bucket r) (:path r)]");
    assert!(
        found.starts_with("[\"reports\" \"reports/result/run/"),
        "{found}"
    );
    assert_eq!(blob(":bucket :default", "(:bucket r)"), "nil");
    let project = Project::with("{:resources {:buckets [:reports]}}");
    let persist = |bucket: &str| format!("{{:type :blob :bucket {bucket}}}");
    assert_eq!(
        stored(&project, "1", &persist(":reports"), "(:bucket r)"),
        "\"reports\""
    );
    let wrong = stored(&project, "1", &persist("\"report\""), "r");
    assert_eq!(
        wrong,
        "E0763 there is no bucket `report` | did you mean `:reports`?"
    );
    assert!(blob(":bucket \"a/b\"", "r").starts_with("E0763 `:bucket` is a name"));
}

#[test]
fn result_ref() {
    assert_eq!(
        blob("", "[(:type (:ref r)) (= (:uri r) (:uri (:ref r)))]"),
        "[:resource-ref true]"
    );
}

#[test]
fn result_blob_ref() {
    assert_eq!(blob("", "(= (:ref r) (:blob-ref r))"), "true");
}

#[test]
fn result_uri() {
    let uri = blob("", "(:uri r)");
    assert!(uri.starts_with("\"res://v1/ws/local/result/run/"), "{uri}");
    assert!(uri.ends_with("/step/make/output\""), "{uri}");
}

#[test]
fn result_resource_uri() {
    assert_eq!(blob("", "(= (:uri r) (:resource-uri r))"), "true");
}

#[test]
fn result_url() {
    assert_eq!(blob("", "(contains? r :url)"), "false");
    assert_eq!(blob(":signed-url true", "(string? (:url r))"), "true");
}

#[test]
fn result_path() {
    assert_eq!(
        blob("", "(= (:uri r) (str \"res://v1/ws/local/\" (:path r)))"),
        "true"
    );
}

#[test]
fn result_content_type() {
    assert_eq!(
        blob("", "(= (:content-type r) (:content-type (:ref r)))"),
        "true"
    );
}

#[test]
fn result_size_bytes() {
    assert_eq!(
        blob("", "[(:size-bytes r) (:size-bytes (:ref r))]"),
        "[4 4]"
    );
}

#[test]
fn result_filename() {
    assert_eq!(
        blob(":filename \"x.md\"", "(:filename (:ref r))"),
        "\"x.md\""
    );
}

#[test]
fn refs_are_checked() {
    let project = Project::new();
    let load = |uri: &str| project.eval(&format!("(let [r \"{uri}\"] {BACK})"));
    let missing = load("res://v1/ws/local/result/blob/x");
    assert!(missing.starts_with("E0761 there is no blob"), "{missing}");
    let uri = stored(&project, "1", "{:type :blob}", "(:uri r)");
    let uri = uri.trim_matches('"');
    project
        .block_on(project.engine.delete_resource(uri, false))
        .expect("deleted");
    let deleted = load(uri);
    assert!(
        deleted.starts_with(&format!("E0703 `{uri}` was deleted at 2026-03-01")),
        "{deleted}"
    );
    let table = stored(&project, "[{:n 1}]", "{:type :table :table \"t\"}", BACK);
    assert!(
        table.starts_with("E0704 ") && table.contains(":op :query"),
        "{table}"
    );
    assert!(load("https://example.com").starts_with("E0761 not a reference"));
    // Results of steps and runs, and values of keys, can be read under their names as well.
    let key = stored(&project, "[1]", "{:type :kv :key \"k\"}", BACK);
    assert_eq!(key, "[1]");
    // A name from another workspace is read as a name of this one.
    let other = stored(&project, "7", "{:type :blob}", "(:uri r)");
    assert_eq!(
        load(&other.trim_matches('"').replace("/ws/local/", "/ws/acme/")),
        "7"
    );
}

#[test]
fn retained_size() {
    let project = Project::with("{:resources {:max-retained 10}}");
    assert_eq!(
        stored(
            &project,
            "\"0123456789\"",
            "{:type :blob}",
            "(:size-bytes r)"
        ),
        "10"
    );
    let large = stored(&project, "\"0123456789x\"", "{:type :blob}", "r");
    assert!(
        large.starts_with("E0768 the result has 11 bytes, but a blob can have at most 10 | "),
        "{large}"
    );
}

#[test]
fn ephemeral_size() {
    let project = Project::with("{:resources {:max-ephemeral 5}}");
    let large = ephemeral(&project, "r");
    assert!(large.starts_with("E07") && large.contains('5'), "{large}");
}

#[test]
fn ephemeral_life() {
    let project = Project::with("{:resources {:ephemeral-ttl \"1h\"}}");
    let uri = ephemeral(&project, "(:uri r)");
    let uri = uri.trim_matches('"').to_owned();
    let load = || project.eval(&format!("(let [r \"{uri}\"] {BACK})"));
    project.clock.advance(3_599_000);
    assert_eq!(load(), "\"0123456789\"");
    project.clock.advance(1_000);
    let expired = format!("E0703 `{uri}` has expired: it was kept until 2026-03-01T01:00:00");
    assert!(load().starts_with(&expired), "{}", load());
    // Garbage collection removes the contents, but not the record of the blob.
    let report = project.block_on(project.engine.collect_garbage(&GcOptions::default()));
    assert_eq!(report.expect("collected").expired, 1);
    assert!(load().starts_with(&expired), "{}", load());
}

#[test]
fn loaded_size() {
    let project = Project::with("{:http {:max-body-from-ref 3}}");
    let server = Server::start(vec![reply("200 OK", &[], "")]);
    let send = format!(
        "(:status (flow/step :http :send {{:url \"{}\" :method :post :body-from-ref r}}))",
        server.url
    );
    assert_eq!(stored(&project, "\"abc\"", "{:type :blob}", &send), "200");
    let large = stored(&project, "\"abcd\"", "{:type :blob}", &send);
    assert!(
        large.starts_with("E0746 ") && large.contains("has 4 bytes, and a request takes 3"),
        "{large}"
    );
}

#[test]
fn type_kv() {
    let project = Project::new();
    let found = stored(
        &project,
        "{:n 1}",
        "{:type :kv :key \"report:1\"}",
        "[(:type r) (:uri r) (:key r) (= (:uri r) (:uri (:ref r)))]",
    );
    assert_eq!(
        found,
        "[:resource-ref \"res://v1/ws/local/result/kv/report:1\" \"report:1\" true]"
    );
}

#[test]
fn key() {
    let cases = [
        ("{:type :kv}", "E0763 `:persist {:type :kv}` needs `:key`"),
        (
            "{:type :kv :key \"a b\"}",
            "E0610 `:persist :key` is not a key",
        ),
        ("{:type :kv :key :ok}", "\"ok\""),
    ];
    for (persist, expected) in cases {
        let found = stored(&Project::new(), "1", persist, "(:key r)");
        assert!(found.starts_with(expected), "{persist}: {found}");
    }
}

#[test]
fn ttl() {
    let project = Project::new();
    stored(&project, "1", "{:type :kv :key \"k\" :ttl 60}", "r");
    let get = "(:exists? (flow/step :kv :get {:operation :get :key \"k\"}))";
    assert_eq!(project.eval(get), "true");
    project.clock.advance(60_000);
    assert_eq!(project.eval(get), "false");
    let wrong = stored(&project, "1", "{:type :kv :key \"k\" :ttl 0}", "r");
    assert!(wrong.contains("from 1 to 31536000"), "{wrong}");
}

#[test]
fn read_by_kv() {
    let project = Project::new();
    stored(
        &project,
        "{:n 1}",
        "{:type :kv :key \"k\" :metadata {:by \"make\"}}",
        "r",
    );
    assert_eq!(
        project.eval("(flow/step :kv :get {:operation :get :key \"k\"})"),
        "{:success true :value {:n 1} :exists? true :metadata {:by \"make\"}}"
    );
}

/// A result that is far larger than a hosted product keeps inline is stored, replayed and passed on.
#[test]
fn inline_size() {
    const BYTES: usize = 10 << 21;
    let project = Project::new();
    // The value of a step that loads something is journaled, and not computed again.
    let found = project.eval(
        "(let [r (flow/step :function :make {:code '(fn [_] \"0123456789\") :persist {:type :blob}})
               big (flow/step :function :big {:input {:doc r} :load [:doc]
                                              :code '(fn [i] {:text (nth (iterate (fn [s] (str s s)) (:doc i)) 21)})})
               answer (flow/step :wait :ok {:key \"ok\"})]
           [(count (:text big)) (:go answer)])",
    );
    assert!(found.starts_with("waiting"), "{found}");
    let run = project.block_on(project.engine.list_runs(RunFilter::default()));
    let run = run.expect("runs").remove(0);
    let archive = project.block_on(project.engine.export_run(&run.id, false));
    assert!(archive.expect("exported").write().len() > BYTES);
    // Another process replays the run.
    let project = project.reopen();
    let answer = flowstone_engine::codec::decode("{:go true}").expect("EDN");
    assert_eq!(project.answer("ok", &answer), format!("[{BYTES} true]"));
}
