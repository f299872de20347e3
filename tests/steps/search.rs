//! `:search` by meaning, against a local server of embeddings, and the texts that are never sent there.

use flowstone_engine::ports::Secret;
use flowstone_lang::reader::read_data;
use flowstone_lang::value::Value;
use flowstone_project::search::Embedder as _;
use flowstone_steps::embedder::embedder;

use crate::embedding_server::EmbeddingServer;
use crate::project::{Project, shown};
use crate::rows;
use crate::world::wait;

/// Creates a project with an embedder and three documents.
pub fn project(server: &EmbeddingServer) -> Project {
    let project = Project::with(&settings(server, "m"));
    for (name, text) in [
        ("policy.md", "Refund policy: money back within 30 days."),
        ("fees.md", "A late fee applies after 30 days."),
        ("menu.md", "Soup, bread and cheese."),
    ] {
        keep(&project, name, text);
    }
    project
}

fn settings(server: &EmbeddingServer, model: &str) -> String {
    format!(
        r#"{{:connections {{:ai {{:base-url "{}" :auth {{:type :none}}}}}}
            :search {{:embedder {{:connection :ai :model "{model}" :dimensions 4}}}}}}"#,
        server.url
    )
}

fn keep(project: &Project, name: &str, text: &str) {
    project.eval(&format!(
        "(let [r (flow/step :function :keep {{:code '(fn [_] {text:?})
                                              :persist {{:type :blob :filename {name:?}}}}})] 1)"
    ));
}

pub fn ask(project: &Project, config: &str, of: &str) -> String {
    project.eval(&format!(
        "(let [found (flow/step :search :it {{:targets [:resources] {config}}})] ({of} found))"
    ))
}

pub const TITLES: &str = "(fn [r] (mapv :title (:results r)))";

#[test]
fn texts_are_embedded_once() {
    let server = EmbeddingServer::start();
    let project = project(&server);
    let config = ":query \"lunch\" :limit 1";
    assert_eq!(ask(&project, config, TITLES), "[\"menu.md\"]");
    let first = server.texts();
    assert_eq!(ask(&project, config, TITLES), "[\"menu.md\"]");
    // Only the query is embedded, because nothing is new.
    assert!(server.texts() <= first + 1, "{} {first}", server.texts());
    let before = server.texts();
    keep(&project, "again.md", "Soup, bread and cheese.");
    keep(&project, "dinner.md", "Dinner for the hungry.");
    let all = ask(
        &project,
        ":query \"hungry people\" :limit 3 :mode :semantic",
        TITLES,
    );
    assert!(
        all.contains("dinner.md") && all.contains("again.md"),
        "{all}"
    );
    assert!(server.texts() > before);
    let (head, body) = server.requests().pop().expect("a request");
    assert!(head.starts_with("POST /v1/embeddings "), "{head}");
    assert_eq!(body["model"], "m");
    assert_eq!(body["dimensions"], 4);
}

#[test]
fn without_the_embedder_only_words_are_searched() {
    let server = EmbeddingServer::start();
    let project = project(&server);
    server.refuse(100, 500);
    let of = "(fn [r] [(mapv :title (:results r)) (count (:warnings r))])";
    assert_eq!(ask(&project, ":query \"soup\"", of), "[[\"menu.md\"] 1]");
    let found = ask(&project, ":query \"soup\" :mode :semantic", of);
    assert!(
        found.starts_with("E0729 the request to the embedder failed"),
        "{found}"
    );
    // Two transient errors are retried.
    server.refuse(2, 503);
    assert_eq!(
        ask(&project, ":query \"lunch\" :limit 1", of),
        "[[\"menu.md\"] 0]"
    );
    server.refuse(1, 400);
    let found = ask(&project, ":query \"lunch\" :mode :semantic", of);
    assert!(found.contains("400"), "{found}");
}

#[test]
fn long_texts_are_found_by_any_part() {
    let server = EmbeddingServer::start();
    let project = project(&server);
    let filler = "Nothing of note happened here. ".repeat(200);
    keep(
        &project,
        "long.md",
        &format!("{filler} Reimbursement of travel. {filler}"),
    );
    let of = "(fn [r] (mapv (fn [hit] [(:title hit) (clojure.string/includes? (:snippet hit) \"Nothing\")]) (:results r)))";
    let found = ask(&project, ":query \"pay\" :mode :semantic :limit 3", of);
    assert!(found.contains("[\"long.md\" true]"), "{found}");
}

#[test]
fn the_key_goes_to_the_embedder_only() {
    let server = EmbeddingServer::start();
    server.refuse(1, 401);
    let settings = format!(
        r#"{{:connections {{:ai {{:base-url "{}" :auth {{:type :bearer :secret-ref :my-key}}}}}}
            :search {{:embedder {{:connection :ai :model "m"}}}}}}"#,
        server.url
    );
    let settings = read_data(&settings).expect("well formed");
    let find = |name: &str| (name == "my-key").then(|| Secret::new("hush-hush"));
    let embedder = embedder(&settings, find).expect("good").expect("there");
    let texts = ["a".to_owned()];
    let error = wait(embedder.embed(&texts)).expect_err("refused");
    assert_eq!((error.code, error.kind), ("E0729", "unauthorized"));
    assert!(error.message.contains("[secret]"), "{}", error.message);
    assert!(!format!("{error:?}").contains("hush-hush"), "{error:?}");
    assert!(wait(embedder.embed(&texts)).is_ok());
    let (head, _) = server.requests().remove(0);
    assert!(head.contains("authorization: Bearer hush-hush"), "{head}");
    let nobody = flowstone_steps::embedder::embedder(&settings, |_| None);
    let error = wait(nobody.expect("good").expect("there").embed(&texts));
    let error = error.expect_err("no key");
    assert_eq!((error.code, error.kind), ("E0752", "missing-secret"));
}

/// No text is an operator of the index, and none makes the query fail.
#[test]
fn hostile_queries_do_no_harm() {
    let project = rows::search::desk();
    let long = "soup ".repeat(200_000);
    let one_word = "x".repeat(1 << 20);
    let queries = [
        "\"",
        "\"\"",
        "'",
        "''",
        "soup\"",
        "\"soup",
        "NEAR(soup, 3)",
        "soup NEAR/2 bread",
        "title:soup",
        "{title body}: soup",
        "-title: soup",
        "^soup",
        "soup + bread",
        "soup*",
        "*",
        "* soup",
        "(",
        ")",
        "((((",
        "soup OR",
        "AND",
        "NOT soup",
        "soup NOT",
        "OR",
        "-soup",
        "--",
        "-- soup; DROP TABLE run",
        "'; DROP TABLE run; --",
        "\0",
        "so\0up",
        "\u{1f600}",
        "\u{1f600} soup",
        "!?.,;:",
        "…",
        "\u{202e}soup",
        "\u{301}",
        "e\u{301}",
        "北京",
        "%",
        "_",
        "\\",
        "?1",
        "$1",
        ":query",
        "@",
        "[soup]",
        "soup\nbread\r\n\tcheese",
        &long,
        &one_word,
    ];
    for query in queries {
        let input = Value::map([(Value::keyword("query"), Value::from(query))]);
        let found = shown(project.run_on(
            "(let [found (flow/step :search :it {:query (:query (flow/input))})] (:count found))",
            input,
        ));
        let start: String = query.chars().take(40).collect();
        assert!(found.parse::<u32>().is_ok(), "{start:?}: {found}");
    }
    assert_eq!(ask(&project, ":query \"soup\"", ":count"), "1");
}
