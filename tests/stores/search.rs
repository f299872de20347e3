//! The index behind `:search` is updated with the documents, and a rebuilt index is the same.

use flowstone_engine::StartOptions;
use flowstone_engine::blob::BlobRow;
use flowstone_engine::ports::{
    Embedded, SearchFilter, SearchHit, SearchTarget, Stores, Sweep, SweepKind, VectorQuery,
    WordQuery,
};
use flowstone_engine::resource::{PREFIX, SearchEntry};
use flowstone_lang::value::Value;
use flowstone_project::search::parse_query;

use super::STORE;
use crate::bench::{Bench, block_on};

const NOW: i64 = 1_000_000;

/// Stores a text under a name.
pub async fn keep(stores: &Stores, name: &str, text: &str, search: Option<SearchEntry>) -> String {
    let hash = stores
        .blobs
        .put(text.as_bytes().to_vec())
        .await
        .expect("put");
    let uri = format!("{PREFIX}file/{name}");
    let row = BlobRow {
        filename: Some(name.to_owned()),
        content_type: Some("text/plain".to_owned()),
        search,
        ..BlobRow::new(uri.clone(), hash, text.len() as u64)
    };
    stores
        .resources
        .register(row, NOW)
        .await
        .expect("registered");
    uri
}

async fn ask(stores: &Stores, target: SearchTarget, query: &str) -> Vec<SearchHit> {
    while stores.search.refresh(1_000).await.expect("refreshed").left > 0 {}
    let query = WordQuery {
        target,
        terms: parse_query(query).terms,
        all: true,
        limit: 20,
        filter: SearchFilter::default(),
    };
    stores.search.by_words(query).await.expect("an answer")
}

pub async fn titles(stores: &Stores, query: &str) -> String {
    let hits = ask(stores, SearchTarget::Resources, query).await;
    let mut titles: Vec<String> = hits.into_iter().map(|hit| hit.title).collect();
    titles.sort();
    titles.join(" ")
}

#[test]
fn the_index_follows_the_registry() {
    let bench = Bench::over(STORE);
    let stores = bench.stores();
    block_on(async {
        let a = keep(&stores, "a.txt", "a walrus", None).await;
        keep(&stores, "b.txt", "another walrus", None).await;
        assert_eq!(titles(&stores, "walrus").await, "a.txt b.txt");
        keep(&stores, "b.txt", "a giraffe", None).await;
        assert_eq!(titles(&stores, "walrus").await, "a.txt");
        assert_eq!(titles(&stores, "giraffe").await, "b.txt");
        assert!(stores.resources.delete(&a, NOW).await.expect("deleted"));
        assert_eq!(titles(&stores, "walrus").await, "");
        assert_eq!(titles(&stores, "\"a.txt\"").await, "");
    });
}

#[test]
fn labels_and_descriptions_of_resources_are_searched() {
    let bench = Bench::over(STORE);
    let stores = bench.stores();
    block_on(async {
        let entry = SearchEntry {
            text: Some("quarterly".to_owned()),
            tags: vec!["finance".to_owned()],
            source_label: Some("Ledger".to_owned()),
            without_contents: true,
        };
        let uri = keep(&stores, "x.txt", "walrus", Some(entry.clone())).await;
        for query in ["quarterly", "finance", "ledger", "x txt"] {
            assert_eq!(titles(&stores, query).await, "x.txt", "{query}");
        }
        assert_eq!(titles(&stores, "walrus").await, "");
        let entry = SearchEntry {
            without_contents: false,
            tags: vec!["money".to_owned()],
            ..entry
        };
        let described = stores.resources.describe(&uri, Some(entry)).await;
        assert!(described.expect("described"));
        assert_eq!(titles(&stores, "walrus money").await, "x.txt");
        assert_eq!(titles(&stores, "finance").await, "");
    });
}

#[test]
fn words_are_compared_without_case_and_accents() {
    let bench = Bench::over(STORE);
    let stores = bench.stores();
    block_on(async {
        keep(&stores, "a.txt", "Crème BRÛLÉE für Zoë, 北京", None).await;
        for query in ["creme brulee", "CRÈME", "fur", "zoe", "北京", "bru*"] {
            assert_eq!(titles(&stores, query).await, "a.txt", "{query}");
        }
        let binary = "walrus \0 inside";
        keep(&stores, "b.bin", binary, None).await;
        assert_eq!(titles(&stores, "walrus").await, "");
        let long = format!("{} walrus", "word ".repeat(100_000));
        keep(&stores, "long.txt", &long, None).await;
        assert_eq!(titles(&stores, "word").await, "long.txt");
        assert_eq!(titles(&stores, "walrus").await, "");
    });
}

#[test]
fn runs_are_found_with_their_current_status_until_they_are_removed() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let stores = engine.stores().clone();
    let flow = bench.flow("'(throw (ex-info (str \"no \" (:animal (flow/input))) {}))");
    let input = Value::map([(Value::keyword("animal"), Value::from("walrus"))]);
    block_on(async {
        let start = StartOptions::with_input(input);
        let run = engine.start(&flow, start).await.expect("started");
        let status = async |stores: &Stores| {
            let hits = ask(stores, SearchTarget::Runs, "walrus").await;
            let facts = hits.into_iter().flat_map(|hit| hit.facts);
            let mut status = facts.filter(|(key, _)| key == "status");
            status.next().map(|(_, status)| status)
        };
        assert_eq!(status(&stores).await.as_deref(), Some("running"));
        let observer = std::rc::Rc::new(flowstone_engine::observer::NoObserver);
        let options = flowstone_engine::ExecuteOptions::default();
        engine
            .execute(&run, observer, options)
            .await
            .expect("executed");
        assert_eq!(status(&stores).await.as_deref(), Some("failed"));
        stores.upkeep.prune(&run, NOW).await.expect("pruned");
        assert!(stores.upkeep.forget(&run).await.expect("forgotten"));
        assert_eq!(status(&stores).await, None);
        // The next run may get the number of the removed one.
        let input = Value::map([(Value::keyword("animal"), Value::from("giraffe"))]);
        engine
            .start(&flow, StartOptions::with_input(input))
            .await
            .expect("started");
        let hits = ask(&stores, SearchTarget::Runs, "giraffe").await;
        assert_eq!(hits.len(), 1);
    });
}

#[test]
fn a_rebuilt_index_finds_the_same() {
    let bench = Bench::over(STORE);
    let stores = bench.stores();
    block_on(async {
        for idx in 0..450 {
            let text = format!("walrus number {idx} {}", "ice ".repeat(idx % 7));
            keep(&stores, &format!("{idx}.txt"), &text, None).await;
        }
        let queries = ["walrus", "ice", "number 7*", "\"number 44\"", "walrus -ice"];
        let mut before = Vec::new();
        for query in queries {
            before.push(ask(&stores, SearchTarget::Resources, query).await);
        }
        assert!(before.iter().all(|hits| !hits.is_empty()));
        let todo = stores.search.forget(None).await.expect("forgotten");
        assert_eq!(todo, 450);
        for (query, before) in queries.into_iter().zip(before) {
            let after = ask(&stores, SearchTarget::Resources, query).await;
            assert_eq!(after, before, "{query}");
        }
    });
}

#[test]
fn search_work_is_bounded_and_the_rest_is_reported() {
    let bench = Bench::over(STORE);
    let stores = bench.stores();
    block_on(async {
        for idx in 0..30 {
            keep(&stores, &format!("{idx}.txt"), "walrus", None).await;
        }
        let part = stores.search.refresh(10).await.expect("refreshed");
        assert_eq!((part.indexed, part.left), (10, 20));
        let rest = stores.search.refresh(1_000).await.expect("refreshed");
        assert_eq!((rest.indexed, rest.left), (20, 0));
        let nothing = stores.search.refresh(1_000).await.expect("refreshed");
        assert_eq!((nothing.indexed, nothing.left), (0, 0));
    });
}

/// An index entry does not keep a blob that nothing mentions any more.
#[test]
fn the_search_index_keeps_no_resource_alive() {
    let bench = Bench::over(STORE);
    let stores = bench.stores();
    block_on(async {
        let hash = stores.blobs.put(b"walrus".to_vec()).await.expect("put");
        let uri = format!("{PREFIX}result/run/gone/step/keep/output");
        let row = BlobRow {
            filename: Some("a.txt".to_owned()),
            ..BlobRow::new(uri.clone(), hash, 6)
        };
        stores
            .resources
            .register(row, NOW)
            .await
            .expect("registered");
        assert_eq!(titles(&stores, "walrus").await, "a.txt");
        let sweep = Sweep {
            what: SweepKind::Resources,
            older_than_ms: NOW + 1,
            dry_run: false,
        };
        let swept = stores.upkeep.sweep(sweep, NOW + 2).await.expect("swept");
        assert_eq!(swept.count, 1);
        assert_eq!(titles(&stores, "walrus").await, "");
    });
}

fn near(target: SearchTarget, vector: &[f32]) -> VectorQuery {
    VectorQuery {
        targets: vec![target],
        model: "m".to_owned(),
        vector: vector.to_vec(),
        limit: 2,
        filter: SearchFilter::default(),
    }
}

#[test]
fn hits_are_ordered_by_distance_and_a_new_model_embeds_again() {
    let bench = Bench::over(STORE);
    let stores = bench.stores();
    block_on(async {
        for name in ["north", "east", "south"] {
            keep(&stores, name, name, None).await;
        }
        titles(&stores, "x").await;
        let targets = [SearchTarget::Resources];
        let (texts, left) = stores
            .search
            .unembedded("m", &targets, 10)
            .await
            .expect("texts");
        assert_eq!((texts.len(), left), (3, 0));
        let vector = |text: &str| match text {
            text if text.contains("north") => vec![0.0, 1.0],
            text if text.contains("east") => vec![1.0, 0.0],
            _ => vec![0.0, -1.0],
        };
        let embedded = texts.iter().map(|text| Embedded {
            hash: text.hash.clone(),
            vectors: vec![vec![-1.0, 0.0], vector(&text.text)],
        });
        stores
            .search
            .embed("m", embedded.collect())
            .await
            .expect("kept");
        let query = near(SearchTarget::Resources, &[0.6, 0.8]);
        let hits = stores
            .search
            .by_vector(query.clone())
            .await
            .expect("an answer");
        let found: Vec<(&str, f64)> = hits.iter().map(|hit| (&*hit.title, hit.score)).collect();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].0, found[1].0), ("north", "east"));
        assert!((found[0].1 - 0.8).abs() < 1e-6);
        // The same text has vectors already.
        keep(&stores, "north", "north", None).await;
        titles(&stores, "x").await;
        let again = stores
            .search
            .unembedded("m", &targets, 10)
            .await
            .expect("texts");
        assert_eq!(again, (Vec::new(), 0));
        let other = stores
            .search
            .unembedded("n", &targets, 10)
            .await
            .expect("texts");
        assert_eq!(other.0.len(), 3);
        let hits = stores.search.by_vector(query).await.expect("an answer");
        assert_eq!(hits, Vec::new());
        let back = stores
            .search
            .unembedded("m", &targets, 10)
            .await
            .expect("texts");
        assert_eq!(back.0.len(), 0);
    });
}
