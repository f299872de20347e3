//! Dry tests: nothing outside changes, and nothing of the project; the test itself sees its changes.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use flowstone_engine::ExecuteOptions;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::{ResourceQuery, SearchTarget};
use flowstone_engine::table::{
    Filter, Page, PageStart, Partitions, RowsQuery, TableName, TableQuery, TableTarget,
};
use flowstone_project::knowledge::{ENTRIES, MEMORIES};
use serde_json::{Value as Json, json};
use tokio::io::AsyncWriteExt as _;

use super::project::{Project, SLUG, flow, run};

fn dry(inputs: Json) -> Json {
    json!({"inputs": inputs, "dry": true})
}

/// A project over a database.
fn project() -> Project {
    let folder = tempfile::tempdir().expect("a folder");
    let stores = flowstone_stores::open(folder.path(), &flowstone_stores::Options::default());
    let mut project = Project::over(stores.expect("a database"), "");
    project.database = Some(folder);
    project
}

/// Describes the data of a project: its keys, tables and resources, and the files of its folders.
async fn described(project: &Project) -> String {
    let stores = &project.stores;
    let now_ms = project.engine.now_ms();
    let mut text = String::new();
    for key in stores.kv.list_keys("", 1_000, now_ms).await.expect("keys") {
        let entry = stores.kv.entry(&key, now_ms).await.expect("an entry");
        text += &format!("{key} {entry:?}\n");
    }
    for name in stores.tables.names().await.expect("names") {
        let query = TableQuery::Rows(RowsQuery {
            table: TableTarget {
                partitions: Partitions::All,
                ..TableTarget::from(TableName::Name(name.clone()))
            },
            select: Vec::new(),
            filter: Filter::ALL,
            sort: Vec::new(),
            page: Page {
                limit: 1_000,
                from: PageStart::Offset(0),
                total: true,
            },
        });
        let rows = stores.tables.query(query).await.expect("rows");
        // The kit's own notes about sessions are not the project's data.
        if !name.starts_with("flowstone_kit") {
            text += &format!("{name} {rows}\n");
        }
    }
    let query = ResourceQuery {
        limit: 1_000,
        now_ms,
        ..ResourceQuery::default()
    };
    for row in stores.resources.list(query).await.expect("resources").rows {
        let is_kit = row
            .name
            .as_deref()
            .is_some_and(|it| it.starts_with("flowstone_kit"));
        if !is_kit {
            text += &format!("{row:?}\n");
        }
    }
    let folders = [Some(&project.folder), project.database.as_ref()];
    for folder in folders.into_iter().flatten() {
        for part in ["", ".flowstone", ".flowstone/trees", "blobs"] {
            add_files(&folder.path().join(part), &mut text);
        }
    }
    text
}

/// Adds the files of a folder, but not the database and what belongs to processes.
fn add_files(folder: &Path, text: &mut String) {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("flowstone.db") || name == "owners" {
                continue;
            }
            match path.is_dir() {
                true => open.push(path),
                false => *text += &format!("{} {:?}\n", path.display(), fs::read(&path).ok()),
            }
        }
    }
}

#[test]
fn a_dry_test_changes_nothing() {
    run(async {
        let project = project();
        fs::create_dir_all(project.folder.path().join("src")).expect("a folder");
        fs::write(project.folder.path().join("src/a.txt"), "one\n").expect("a file");
        let body = "(let [n (flow/step :kv :count {:operation :increment :key \"count\"})
              row (flow/step :table :row {:op :insert :table \"notes\" :rows [{:n (:value n)}]})
              draft (flow/step :files :draft {:op :init-changeset :source {:type :dir :path \"src\"}})
              _ (flow/step :files :edit {:op :write-file :changeset draft :path \"b.txt\" :content \"two\"})
              out (flow/step :files :out {:op :write-out :path \"b.txt\" :content \"two\" :overwrite? true})
              job (flow/step :job :later {:op :submit :job-type \"resize\" :payload {:n 1}})
              sent (flow/step :send :ship {})]
          {:n (:value n) :row (some? row) :out out :job job :sent sent})";
        project.commit(SLUG, &flow(body)).await;
        let live = json!({"inputs": {}, "expectations": {"terminal_tool": "ship"}});
        let answer = project.test(live.clone()).await;
        assert_eq!(answer["verdict"], "pass", "{answer}");
        assert_eq!(project.sent.get(), 1);
        let before = described(&project).await;
        assert!(
            before.contains("notes") && before.contains("count"),
            "{before}"
        );
        for expected in [2, 2] {
            let mut arguments = live.clone();
            arguments["dry"] = json!(true);
            let answer = project.test(arguments).await;
            assert_eq!(
                (&answer["verdict"], &answer["dry"]),
                (&json!("pass"), &json!(true)),
                "{answer}"
            );
            let output: Json =
                serde_json::from_str(answer["output"].as_str().expect("text")).expect("JSON");
            let stub = json!({"dry": true});
            assert_eq!(output["n"], expected, "{output}");
            assert_eq!(
                (&output["sent"], &output["out"], &output["job"]),
                (&stub, &stub, &stub),
                "{output}"
            );
        }
        assert_eq!(project.sent.get(), 1);
        assert_eq!(described(&project).await, before);
        let answer = project.test(live).await;
        assert_eq!(answer["verdict"], "pass", "{answer}");
        assert_ne!(
            described(&project).await,
            before,
            "the description shows changes"
        );
    });
}

#[test]
fn a_dry_test_reads_what_it_wrote() {
    run(async {
        let project = project();
        fs::create_dir_all(project.folder.path().join("src")).expect("a folder");
        fs::write(project.folder.path().join("src/a.txt"), "one\n").expect("a file");
        let body = "(let [_ (flow/step :kv :keep {:operation :set :key \"seen\" :value [1 2]})
              seen (flow/step :kv :look {:operation :get :key \"seen\"})
              table (flow/step :table :rows {:op :insert :table \"notes\" :rows [{:id 1 :text \"a\"} {:id 2 :text \"b\"}]})
              all (flow/step :table :all {:op :query :table \"notes\"})
              draft (flow/step :files :draft {:op :init-changeset :source {:type :dir :path \"src\"}})
              _ (flow/step :files :edit {:op :write-file :changeset draft :path \"b.txt\" :content \"two\\n\"})
              files (flow/step :files :list {:op :list :changeset draft})
              old (flow/step :files :old {:op :read :changeset draft :path \"a.txt\"})
              new (flow/step :files :new {:op :read :changeset draft :path \"b.txt\"})
              temporary (flow/step :files :temporary {:op :materialize :changeset draft})
              big (flow/step :function :big {:code '(fn [_] (apply str (repeat 1000 \"x\"))) :persist {:type :blob}})
              kept (flow/step :function :kept {:input {:doc big} :load [:doc] :code '(fn [i] (count (:doc i)))})
              text (fn [read] (:content (first (:files read))))]
          {:seen (:value seen) :rows (count (:rows all)) :files (mapv :path (:entries files))
           :old (text old) :new (text new) :kept kept})";
        project.commit(SLUG, &flow(body)).await;
        let before = described(&project).await;
        let first = output(&project.test(dry(json!({}))).await);
        let layers = fs::read_dir(project.engine.home().join("scratch")).expect("a folder");
        assert_eq!(layers.count(), 0);
        assert_eq!(
            first,
            json!({"seen": [1, 2], "rows": 2, "files": ["a.txt", "b.txt"], "old": "one\n", "new": "two\n", "kept": 1000}),
        );
        assert_eq!(described(&project).await, before);
        // A real run gives the same.
        let real = output(&project.test(json!({"inputs": {}})).await);
        assert_eq!(real, first);
        assert_ne!(described(&project).await, before);
        // Over the data of the real run, too.
        let before = described(&project).await;
        assert_eq!(output(&project.test(dry(json!({}))).await)["rows"], 4);
        assert_eq!(described(&project).await, before);
    });
}

#[test]
fn children_of_a_dry_test_share_its_layer() {
    run(async {
        let project = Project::with("");
        let child = "{:slug :child
                      :flow '(do (flow/step :kv :add {:operation :append :key \"log\" :item :child})
                                 (:value (flow/step :kv :look {:operation :get :key \"log\"})))}";
        let flows = project.folder.path().join("flows");
        fs::create_dir_all(&flows).expect("a folder");
        fs::write(flows.join("child.edn"), child).expect("a file");
        let body = "(do (flow/step :kv :add {:operation :append :key \"log\" :item :parent})
              (let [inner (flow/call-flow :child {} {:id :call})]
                {:inner inner :outer (:value (flow/step :kv :look {:operation :get :key \"log\"}))}))";
        project.commit(SLUG, &flow(body)).await;
        let answer = project.test(dry(json!({}))).await;
        let log = json!(["parent", "child"]);
        let output: Json =
            serde_json::from_str(answer["output"].as_str().unwrap_or_default()).expect("JSON");
        assert_eq!(output, json!({"inner": log, "outer": log}), "{answer}");
        let kept = project.stores.kv.get("log", project.engine.now_ms()).await;
        assert_eq!(kept.expect("the store"), None);
    });
}

#[test]
fn layers_of_processes_that_ended_are_removed() {
    run(async {
        let project = Project::with("");
        let layers = project.engine.home().join("scratch");
        let left = layers.join("gone--01ARZ3NDEKTSV4RRFFQ69G5FAV-0");
        fs::create_dir_all(left.join("blobs")).expect("a folder");
        let body = "(flow/step :kv :keep {:operation :set :key \"seen\" :value 1})";
        project.commit(SLUG, &flow(body)).await;
        let answer = project.test(dry(json!({}))).await;
        assert_eq!(answer["dry"], true, "{answer}");
        let there = fs::read_dir(&layers).expect("a folder").count();
        assert_eq!(
            there, 0,
            "neither the left layer nor the test's own is there"
        );
        // A caller that leaves ends the test with its layer.
        let long = "(do (flow/step :kv :keep {:operation :set :key \"seen\" :value 1})
                        (flow/step :sleep :long {:millis 600000}))";
        project.commit(SLUG, &flow(long)).await;
        project.leave.send_replace(true);
        let answer = project.test(dry(json!({}))).await;
        assert_eq!(answer["code"], "test_run_incomplete", "{answer}");
        assert_eq!(fs::read_dir(&layers).expect("a folder").count(), 0);
    });
}

/// Executes a flow as an ordinary run.
async fn perform(project: &Project, text: &str) {
    let run = project.start(text).await;
    let executing = project
        .engine
        .execute(&run, Rc::new(NoObserver), ExecuteOptions::default());
    executing.await.expect("it is executed");
}

fn output(answer: &Json) -> Json {
    let text = answer["output"].as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_else(|_| panic!("{answer}"))
}

#[test]
fn joins_aggregates_lookups_and_deletes_of_a_dry_test_are_those_of_a_real_run() {
    run(async {
        let project = project();
        let real = "(do
          (flow/step :table :cities {:op :insert :table \"cities\" :key-fields [:id] :rows [{:id 1 :name \"Ulm\"} {:id 2 :name \"Bonn\"}]})
          (flow/step :table :people {:op :insert :table \"people\" :key-fields [:id] :rows [{:id 1 :city 1} {:id 2 :city 2}]})
          (flow/step :table :refer {:op :set-column :table \"people\" :column :city :definition {:reference {:table \"cities\" :column :id}}})
          (flow/step :table :look {:op :set-column :table \"people\" :column :city-name
                                   :definition {:computed {:type \"lookup\" :reference-column :city :field :name}}})
          (flow/step :kv :a {:operation :set :key \"a\" :value 1})
          (flow/step :kv :b {:operation :set :key \"b\" :value 2}))";
        perform(&project, &flow(real)).await;
        let before = described(&project).await;
        assert!(before.contains("Ulm"), "{before}");
        // A type of a column that another table looks up cannot change: the layer must know that table, too.
        let body = "(let [refused (try (flow/step :table :retype {:op :set-column :table \"cities\" :column :id :definition {:type-hint :text}})
                                       (catch Exception error (:code (ex-data error))))
              _ (flow/step :table :rename {:op :update-cell :table \"cities\" :key {:id 1} :column :name :value \"Jena\"})
              _ (flow/step :table :more {:op :upsert :table \"people\" :key-fields [:id] :rows [{:id 1 :city 1} {:id 3 :city 2}]})
              _ (flow/step :table :gone {:op :delete :table \"people\" :where [[:id := 2]]})
              rows (:rows (flow/step :table :rows {:op :query :table \"people\" :sort [[:id :asc]]}))
              counts (:groups (flow/step :table :counts {:op :aggregate :table \"people\" :group-by [:city-name]
                                                 :metrics [{:op :count :as :n}] :order-by [[:city-name :asc]]}))
              _ (flow/step :table :join {:op :materialize-join :left {:table \"people\"} :right {:table \"cities\"}
                                         :on [{:left-field :city :right-field :id}]
                                         :project {:keep-left \"all\" :right-fields [{:field :name :as :place}]}
                                         :into {:table \"joined\"}})
              joined (:rows (flow/step :table :joined {:op :query :table \"joined\" :sort [[:id :asc]]}))
              _ (flow/step :kv :drop {:operation :delete :key \"a\"})
              a (flow/step :kv :a {:operation :get :key \"a\"})
              keys (flow/step :kv :keys {:operation :list-keys :prefix \"\"})]
          {:refused (str refused) :names (mapv :city-name rows) :counts (mapv :n counts)
           :joined (mapv :place joined) :a (:value a) :b (some #{\"b\"} (:keys keys)) :gone (some #{\"a\"} (:keys keys))})";
        project.commit(SLUG, &flow(body)).await;
        let first = output(&project.test(dry(json!({}))).await);
        assert_eq!(described(&project).await, before);
        let second = output(&project.test(dry(json!({}))).await);
        assert_eq!(second, first);
        let real = output(&project.test(json!({"inputs": {}})).await);
        assert_eq!(first, real);
        assert_eq!(
            first,
            json!({"refused": "E0634", "names": ["Jena", "Bonn"], "counts": [1, 1], "joined": ["Jena", "Bonn"],
                   "a": null, "b": "b", "gone": null}),
        );
        assert_ne!(described(&project).await, before);
    });
}

#[test]
fn a_dry_test_has_an_index_of_memories_of_its_own() {
    run(async {
        let project = project();
        let memory = json!({"id": "mem_01", "name": "m", "description": ""});
        MEMORIES
            .put(&project.engine, "01", &memory)
            .await
            .expect("a memory");
        let write = |id: &str, fact: &str| {
            format!(
                "(flow/step :knowledge :{id} {{:op :write :memory \"mem_01\" :content \"{fact}\"}})"
            )
        };
        let search = "(mapv :text (:results (flow/step :knowledge :find {:op :search :query \"tea\" :memory-ids [\"mem_01\"]})))";
        perform(&project, &flow(&write("old", "Green tea is best."))).await;
        project.commit(SLUG, &flow(search)).await;
        let index = || async {
            let search = &project.stores.search;
            let versions = search.versions(SearchTarget::Knowledge).await;
            versions.expect("the index")
        };
        // Not even what was there is indexed by a dry test.
        let found = output(&project.test(dry(json!({}))).await);
        assert_eq!(found, json!(["[Memory: m]\nGreen tea is best."]));
        assert_eq!(index().await, []);
        assert_eq!(output(&project.test(json!({"inputs": {}})).await), found);
        let before = index().await;
        assert_eq!(before.len(), 1);
        let body = format!(
            "(do {} {search})",
            write("new", "Black tea keeps her awake.")
        );
        project.commit(SLUG, &flow(&body)).await;
        let answer = project.test(dry(json!({}))).await;
        let mut found: Vec<Json> = output(&answer).as_array().expect("texts").clone();
        found.sort_by_key(ToString::to_string);
        assert_eq!(
            found,
            [
                "[Memory: m]\nBlack tea keeps her awake.",
                "[Memory: m]\nGreen tea is best."
            ]
        );
        assert_eq!(index().await, before);
        assert_eq!(
            ENTRIES.list(&project.engine).await.expect("entries").len(),
            1
        );
    });
}

#[test]
fn a_dry_test_sends_no_notifications_of_waits() {
    run(async {
        let project = Project::with("");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        let text = format!(
            "{{:slug :mail :requires [{{:slot :chat :type :http-api :base-url \"http://{address}\"}}]
              :flow '(flow/step :wait :ask {{:key \"k\" :timeout \"1h\"
                       :notify {{:channels {{:http {{:connection :chat :path \"/m\" :json {{:text \"x\"}}}}}}}}}})}}"
        );
        project.commit(SLUG, &text).await;
        let calls = Rc::new(Cell::new(0));
        let counting = calls.clone();
        tokio::task::spawn_local(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counting.set(counting.get() + 1);
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                stream.write_all(answer).await.ok();
            }
        });
        let answer = project.test(dry(json!({}))).await;
        assert_eq!(answer["dry"], true, "{answer}");
        assert_eq!(calls.get(), 0, "a dry test sends nothing");
        project.test(json!({"inputs": {}})).await;
        assert_eq!(calls.get(), 1, "a test that acts sends it");
    });
}
