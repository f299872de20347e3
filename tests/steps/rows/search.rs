//! The rows of `tests/coverage/search.tsv`.

use crate::embedding_server::EmbeddingServer;
use crate::project::Project;
use crate::search as meaning;

fn write(project: &Project, name: &str, text: &str) {
    let path = project.path().join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

/// Creates a project with a document of each target.
pub fn desk() -> Project {
    let project = Project::with(
        r#"{:connections {:crm {:base-url "https://crm.example.com" :label "Customer records"
                               :auth {:type :bearer :secret-ref :crm-token}}}}"#,
    );
    write(
        &project,
        "flows/refund-desk.edn",
        r#"{:slug :refund-desk :name "Refund desk" :description "Answers mail about refunds."
            :concurrency {:type :singleton :on-new-version :coexist}
            :flow '(let [draft (flow/step :function :draft {:code '(fn [_] 1)})] draft)}"#,
    );
    for (name, text) in [
        ("policy.md", "Refund policy: money back within 30 days."),
        (
            "fees.md",
            "A late fee applies after 30 days. Refund excludes it.",
        ),
        ("menu.md", "Soup, bread and cheese."),
    ] {
        let stored = project.eval(&format!(
            "(let [r (flow/step :function :keep {{:code '(fn [_] {text:?})
                                                  :persist {{:type :blob :filename {name:?}}}}})] (:filename r))"
        ));
        assert_eq!(stored, format!("{name:?}"));
    }
    project
}

/// Runs a search, and returns what a function makes of its result.
pub fn ask(project: &Project, config: &str, of: &str) -> String {
    project.eval(&format!(
        "(let [found (flow/step :search :it {config})] ({of} found))"
    ))
}

const TITLES: &str = "(fn [r] (mapv :title (:results r)))";

#[test]
fn query() {
    let project = desk();
    let cases = [
        ("\"policy\"", "[\"policy.md\"]"),
        ("\"  Soup,  BREAD!\"", "[\"menu.md\"]"),
        ("\"\\\"late fee\\\"\"", "[\"fees.md\"]"),
        ("\"refund -policy\"", "[\"fees.md\"]"),
        ("\"pol*\"", "[\"policy.md\"]"),
        ("\"nothing-like-this\"", "[]"),
        // A document with both words comes before one with a single word.
        ("\"money refund\"", "[\"policy.md\" \"fees.md\"]"),
    ];
    for (query, expected) in cases {
        let config = format!("{{:query {query} :targets [:resources]}}");
        assert_eq!(ask(&project, &config, TITLES), expected, "{query}");
    }
    for (config, code) in [
        ("{:query \"  \"}", "E0708"),
        ("{:query 7}", "E0"),
        ("{}", "E0"),
    ] {
        let found = ask(&project, config, TITLES);
        assert!(found.starts_with(code), "{config}: {found}");
    }
}

#[test]
fn targets() {
    let project = desk();
    let of = "(fn [r] [(:by-target r) (set (map :target (:results r)))])";
    assert_eq!(
        ask(
            &project,
            "{:query \"refund\" :targets [\"flows\" :resources]}",
            of
        ),
        "[{:resources 2 :flows 1} #{:flows :resources}]"
    );
    let all = ask(
        &project,
        "{:query \"refund\"}",
        "(fn [r] (sort (keys (:by-target r))))",
    );
    assert_eq!(all, "(:connections :flows :resources :runs)");
    for targets in ["[:emails]", "[]", ":flows"] {
        let config = format!("{{:query \"x\" :targets {targets}}}");
        let found = ask(&project, &config, TITLES);
        assert!(found.starts_with("E0"), "{targets}: {found}");
    }
}

#[test]
fn targets_resources() {
    let project = desk();
    let of = "(fn [r] (let [{:keys [uri target content-type snippet score]} (first (:results r))]
                [target content-type snippet (pos? score) (subs uri 0 18)]))";
    assert_eq!(
        ask(&project, "{:query \"soup\" :targets [:resources]}", of),
        "[:resources \"text/markdown\" \"Soup, bread and cheese.\" true \"res://v1/ws/local/\"]"
    );
}

#[test]
fn targets_flows() {
    let project = desk();
    let of = "(fn [r] (mapv (juxt :target :id :slug :title :description) (:results r)))";
    let found = "[[:flows \"flows/refund-desk.edn\" \"refund-desk\" \"Refund desk\" \"Answers mail about refunds.\"]]";
    for query in ["refund desk", "draft", "mail"] {
        let config = format!("{{:query {query:?} :targets [:flows]}}");
        assert_eq!(ask(&project, &config, of), found, "{query}");
    }
    // A changed or removed file is found in its current state.
    write(
        &project,
        "flows/refund-desk.edn",
        "'(flow/step :kv :parrot {})",
    );
    let config = "{:query \"parrot\" :targets [:flows]}";
    assert_eq!(ask(&project, config, TITLES), "[\"refund-desk\"]");
    std::fs::remove_file(project.path().join("flows/refund-desk.edn")).expect("removed");
    assert_eq!(ask(&project, config, TITLES), "[]");
}

#[test]
fn targets_runs() {
    let project = desk();
    let failed = project.eval("(throw (ex-info \"the giraffe is missing\" {}))");
    assert!(failed.contains("giraffe"));
    let of = "(fn [r] (mapv (juxt :target :flow :status) (:results r)))";
    // The searching run does not find itself, although its program contains the word.
    assert_eq!(
        ask(&project, "{:query \"giraffe\" :targets [:runs]}", of),
        "[[:runs \"flow\" \"failed\"]]"
    );
}

#[test]
fn targets_connections() {
    let project = desk();
    let of = "(fn [r] (mapv (juxt :target :id :label :base-url) (:results r)))";
    for query in ["customer", "crm", "example.com"] {
        let config = format!("{{:query {query:?} :targets [:connections]}}");
        assert_eq!(
            ask(&project, &config, of),
            "[[:connections \"crm\" \"Customer records\" \"https://crm.example.com\"]]",
            "{query}"
        );
    }
    let config = "{:query \"bearer token secret\" :targets [:connections]}";
    assert_eq!(ask(&project, config, TITLES), "[]");
}

#[test]
fn storage_backend() {
    let project = desk();
    for backend in [":local", ":platform", "\"local\""] {
        let config = format!("{{:query \"soup\" :storage-backend {backend}}}");
        assert_eq!(ask(&project, &config, ":count"), "1", "{backend}");
    }
    assert_eq!(
        ask(&project, "{:query \"soup\" :storage-backend :s3}", ":count"),
        "E0709 there is no storage backend `:s3` | resources are kept in `:local`, which is the default"
    );
}

#[test]
fn storage_root() {
    let project = desk();
    for (root, count) in [
        ("result", "1"),
        ("/result/run/", "1"),
        ("file", "0"),
        ("resul", "0"),
    ] {
        let config = format!("{{:query \"soup\" :targets [:resources] :storage-root {root:?}}}");
        assert_eq!(ask(&project, &config, ":count"), count, "{root}");
    }
}

#[test]
fn path_prefix() {
    let project = desk();
    for (config, count) in [
        (":path-prefix \"result/run/\"", "1"),
        (":path-prefix \"resul\"", "1"),
        (":path-prefix \"res://v1/ws/local/result\"", "1"),
        (":path-prefix \"run/\" :storage-root \"result\"", "1"),
        (":path-prefix \"other\" :storage-root \"result\"", "0"),
        (":path-prefix \"%\"", "0"),
    ] {
        let whole = format!("{{:query \"soup\" :targets [:resources] {config}}}");
        assert_eq!(ask(&project, &whole, ":count"), count, "{config}");
    }
    let found = ask(
        &project,
        "{:query \"a\" :targets [:runs] :path-prefix \"x\"}",
        ":count",
    );
    assert!(found.starts_with("E0708"), "{found}");
}

#[test]
fn limit() {
    let project = desk();
    let config = |limit: &str| format!("{{:query \"days\" :targets [:resources] :limit {limit}}}");
    assert_eq!(ask(&project, &config("1"), ":count"), "1");
    assert_eq!(ask(&project, &config("20"), ":count"), "2");
    for wrong in ["0", "21", "\"many\""] {
        let found = ask(&project, &config(wrong), ":count");
        assert!(found.starts_with("E0"), "{wrong}: {found}");
    }
    for idx in 0..14 {
        project.eval(&format!(
            "(let [r (flow/step :function :keep {{:code '(fn [_] \"walrus {idx}\") :persist {{:type :blob}}}})] 1)"
        ));
    }
    let config = "{:query \"walrus\" :targets [:resources]}";
    assert_eq!(ask(&project, config, ":count"), "12");
}

#[test]
fn hydrate() {
    let project = desk();
    let of = "(fn [r] (mapv (juxt :content :content-truncated?) (:results r)))";
    assert_eq!(
        ask(&project, "{:query \"soup\" :targets [:resources]}", of),
        "[[\"Soup, bread and cheese.\" false]]"
    );
    // Only resources have contents to search.
    assert_eq!(
        ask(&project, "{:query \"desk\" :targets [:flows]}", of),
        "[[nil nil]]"
    );
    for wrong in ["true", "{:top 3}", "{:enabled 1}"] {
        let found = ask(
            &project,
            &format!("{{:query \"soup\" :hydrate {wrong}}}"),
            of,
        );
        assert!(found.starts_with("E0"), "{wrong}: {found}");
    }
}

#[test]
fn hydrate_enabled() {
    let project = desk();
    let of = "(fn [r] (mapv #(contains? % :content) (:results r)))";
    for (enabled, expected) in [("true", "[true]"), ("false", "[false]")] {
        let config =
            format!("{{:query \"soup\" :targets [:resources] :hydrate {{:enabled {enabled}}}}}");
        assert_eq!(ask(&project, &config, of), expected);
    }
}

#[test]
fn hydrate_top_k() {
    let project = desk();
    let of = "(fn [r] (mapv #(contains? % :content) (:results r)))";
    let config = |top_k: i64| {
        format!("{{:query \"days\" :targets [:resources] :hydrate {{:top-k {top_k}}}}}")
    };
    assert_eq!(ask(&project, &config(1), of), "[true false]");
    assert_eq!(ask(&project, &config(10), of), "[true true]");
    for wrong in [0, 11] {
        assert!(
            ask(&project, &config(wrong), of).starts_with("E0"),
            "{wrong}"
        );
    }
}

#[test]
fn hydrate_max_chars() {
    let project = desk();
    let of = "(fn [r] (mapv (juxt :content :content-truncated?) (:results r)))";
    let config = |most: i64| {
        format!("{{:query \"soup\" :targets [:resources] :hydrate {{:max-chars {most}}}}}")
    };
    assert_eq!(ask(&project, &config(4), of), "[[\"Soup\" true]]");
    assert_eq!(
        ask(&project, &config(100_000), of),
        "[[\"Soup, bread and cheese.\" false]]"
    );
    for wrong in [0, 100_001] {
        assert!(
            ask(&project, &config(wrong), of).starts_with("E0"),
            "{wrong}"
        );
    }
}

#[test]
fn mode() {
    let project = desk();
    for (mode, expected) in [
        ("", "[:keyword nil]"),
        (":mode :keyword", "[:keyword nil]"),
        (
            ":mode \"hybrid\"",
            "[:hybrid [\"only words were looked for: no embedder is configured\"]]",
        ),
    ] {
        let config = format!("{{:query \"soup\" {mode}}}");
        assert_eq!(ask(&project, &config, "(juxt :mode :warnings)"), expected);
    }
    assert!(ask(&project, "{:query \"soup\" :mode :fuzzy}", ":mode").starts_with("E0"));
}

#[test]
fn missing_backend() {
    let project = desk();
    let found = ask(&project, "{:query \"soup\" :mode :semantic}", ":mode");
    assert!(
        found.starts_with("E0709 `:mode :semantic` needs an embedder, and none is configured"),
        "{found}"
    );
}

#[test]
fn semantic() {
    let server = EmbeddingServer::start();
    let project = meaning::project(&server);
    let ask = |config: &str| meaning::ask(&project, config, meaning::TITLES);
    // No word of these queries is in the documents found.
    assert_eq!(
        ask(":query \"lunch\" :mode :semantic :limit 1"),
        "[\"menu.md\"]"
    );
    assert_eq!(ask(":query \"lunch\" :mode :keyword"), "[]");
    // By default, both searches run, and their results are fused.
    assert_eq!(
        ask(":query \"reimbursement within days\" :limit 2"),
        "[\"policy.md\" \"fees.md\"]"
    );
    let mode = meaning::ask(&project, ":query \"lunch\"", ":mode");
    assert_eq!(mode, ":hybrid");
}
