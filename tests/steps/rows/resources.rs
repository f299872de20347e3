//! The rows of `tests/coverage/resources.tsv`; the commands are tested in `tests/cli/resources.rs`.

use flowstone_engine::ports::{ResourceQuery, ResourceRow};
use flowstone_engine::resource::{ResourceKind, SearchEntry};
use flowstone_engine::resources::Upload;

use crate::project::{Project, START};

/// Runs a flow, and returns its result, a text.
fn text(project: &Project, body: &str) -> String {
    project.eval(body).trim_matches('"').to_owned()
}

fn found(project: &Project, uri: &str) -> ResourceRow {
    let row = project.block_on(project.engine.live_resource(uri));
    row.unwrap_or_else(|error| panic!("{uri}: {error}"))
}

/// Stores a blob, and returns its name.
fn blob(project: &Project) -> String {
    text(
        project,
        "(:uri (flow/step :function :make {:code '(fn [_] \"text\") :persist {:type :blob :filename \"a.txt\"}}))",
    )
}

fn upload(project: &Project, upload: &Upload, bytes: &[u8]) -> Result<ResourceRow, String> {
    let done = project.block_on(project.engine.upload(upload, bytes));
    done.map_err(|error| format!("{} {error}", error.code()))
}

fn file(name: &str) -> Upload {
    Upload {
        name: name.to_owned(),
        ..Upload::default()
    }
}

/// Loads the contents of a name in a flow.
fn loaded(project: &Project, uri: &str) -> String {
    project.eval(&format!(
        "(flow/step :function :back {{:input {{:doc \"{uri}\"}} :load [:doc] :code '(fn [i] (:doc i))}})"
    ))
}

#[test]
fn uri() {
    let project = Project::new();
    let uri = blob(&project);
    assert!(uri.starts_with("res://v1/ws/local/result/"), "{uri}");
    let row = found(&project, &uri);
    assert_eq!(
        (row.uri.as_str(), row.kind),
        (uri.as_str(), ResourceKind::Blob)
    );
    // People may leave out the common prefix of names.
    let short = uri.trim_start_matches("res://v1/ws/local/");
    assert_eq!(found(&project, short).uri, uri);
    let missing = project.block_on(project.engine.live_resource("res://v1/ws/local/nothing"));
    assert_eq!(missing.expect_err("nothing").code(), "E0936");
}

#[test]
fn type_result() {
    let project = Project::new();
    let row = found(&project, &blob(&project));
    assert_eq!(row.name.as_deref(), Some("a.txt"));
    assert_eq!((row.size, row.created_ms), (Some(4), START));
    assert_eq!(row.path.as_deref(), Some("make"));
}

#[test]
fn type_import() {
    let project = Project::new();
    let uri = text(
        &project,
        "(:uri (flow/step :function :rows {:code '(fn [_] [{:n 1}]) :persist {:type :table :table \"imported\"}}))",
    );
    assert_eq!(found(&project, &uri).name.as_deref(), Some("imported"));
}

#[test]
fn type_file() {
    let project = Project::new();
    let row = upload(&project, &file("a.csv"), b"a,b\n1,2\n").expect("stored");
    assert!(
        row.uri.starts_with("res://v1/ws/local/file/"),
        "{}",
        row.uri
    );
    assert_eq!(row.kind, ResourceKind::File);
    assert_eq!(row.content_type.as_deref(), Some("text/csv"));
    assert_eq!(loaded(&project, &row.uri), "\"a,b\\n1,2\\n\"");
}

/// Creates a source tree of the project's folder, and returns its name.
fn tree(project: &Project) -> String {
    text(
        project,
        "(:uri (flow/step :files :tree {:op :resolve-source :source {:type :dir :path \".\"}}))",
    )
}

#[test]
fn type_bundle() {
    let project = Project::new();
    let row = found(&project, &tree(&project));
    assert_eq!(row.kind, ResourceKind::Tree);
    let wrong = loaded(&project, &row.uri);
    assert!(
        wrong.starts_with("E0704 ") && wrong.contains(":op :read"),
        "{wrong}"
    );
}

#[test]
fn form_table() {
    let project = Project::new();
    let uri = text(
        &project,
        "(:uri (flow/step :function :rows {:code '(fn [_] [{:n 1}]) :persist {:type :table :table \"t\"}}))",
    );
    assert!(uri.starts_with("res://v1/ws/local/result/table/"), "{uri}");
    assert_eq!(found(&project, &uri).kind, ResourceKind::Table);
}

#[test]
fn form_step_output() {
    let project = Project::new();
    text(
        &project,
        "(do (flow/step :kv :note {:operation :set :key \"k\" :value 1}) :done)",
    );
    let query = ResourceQuery {
        kinds: vec![ResourceKind::FlowOutput],
        limit: 10,
        ..ResourceQuery::default()
    };
    let page = project.block_on(project.engine.stores().resources.list(query));
    let run = page.expect("a list").rows[0].run.clone().expect("a run");
    let uri = format!("res://v1/ws/acme/result/run/{run}/step/note/output");
    let row = found(&project, &uri);
    assert_eq!(row.kind, ResourceKind::StepOutput);
    assert_eq!(
        loaded(&project, &uri),
        "{:success true :key \"k\" :created? true}"
    );
}

#[test]
fn form_flow_output() {
    let project = Project::new();
    project.eval("(hash-map :total 7)");
    let query = ResourceQuery {
        kinds: vec![ResourceKind::FlowOutput],
        limit: 10,
        ..ResourceQuery::default()
    };
    let page = project.block_on(project.engine.stores().resources.list(query));
    let row = page.expect("a list").rows.remove(0);
    assert!(row.uri.ends_with("/flow-output"), "{}", row.uri);
    assert_eq!(loaded(&project, &row.uri), "{:total 7}");
}

#[test]
fn form_blob() {
    let project = Project::new();
    let missing = loaded(&project, "res://v1/ws/local/result/blob/b1");
    assert!(
        missing.starts_with("E0761 there is no blob `res://v1/ws/local/result/blob/b1`"),
        "{missing}"
    );
    assert_eq!(loaded(&project, &blob(&project)), "\"text\"");
}

#[test]
fn form_kv() {
    let project = Project::new();
    project.eval("(flow/step :kv :it {:operation :set :key \"a:1\" :value {:n 1} :ttl 60})");
    let uri = "res://v1/ws/local/result/kv/a:1";
    assert_eq!(found(&project, uri).kind, ResourceKind::Kv);
    assert_eq!(loaded(&project, uri), "{:n 1}");
    project.clock.advance(60_000);
    assert!(loaded(&project, uri).starts_with("E0761 there is no key"));
}

#[test]
fn form_file() {
    let project = Project::new();
    let row = upload(&project, &file("a.txt"), b"x").expect("stored");
    let id = row.uri.rsplit('/').next().expect("an id");
    let other = format!("res://v1/ws/acme/some/file/{id}");
    assert_eq!(found(&project, &other).uri, row.uri);
}

#[test]
fn form_source_tree() {
    let project = Project::new();
    let uri = tree(&project);
    assert!(uri.contains("/bundle/source-tree/"), "{uri}");
    let listed = project.eval(&format!(
        "(mapv :path (:entries (flow/step :files :list {{:op :list :source \"{uri}\" :glob \"*.edn\"}})))"
    ));
    assert!(listed.contains("flowstone.edn"), "{listed}");
}

#[test]
fn form_changeset() {
    let project = Project::new();
    let uri = text(
        &project,
        "(:uri (flow/step :files :begin {:op :init-changeset :source {:type :dir :path \".\"}}))",
    );
    assert!(uri.contains("/bundle/changeset/files/"), "{uri}");
    assert_eq!(found(&project, &uri).kind, ResourceKind::Changeset);
}

#[test]
fn value_form() {
    let project = Project::new();
    let uri = blob(&project);
    for form in [
        format!("{{:type :resource-ref :uri \"{uri}\"}}"),
        format!(
            "{{:type :resource-ref :uri \"{uri}\" :content-type \"text/plain\" :size-bytes 4}}"
        ),
        format!("{{:ref {{:uri \"{uri}\"}}}}"),
        format!("{{:resource-uri \"{uri}\"}}"),
        format!("\"{uri}\""),
    ] {
        let back = project.eval(&format!(
            "(flow/step :function :back {{:input {{:doc {form}}} :load [:doc] :code '(fn [i] (:doc i))}})"
        ));
        assert_eq!(back, "\"text\"", "{form}");
    }
}

#[test]
fn uploads() {
    let project = Project::with("{:resources {:max-upload 5}}");
    let row = upload(&project, &file("a.json"), b"[1]").expect("stored");
    assert_eq!(loaded(&project, &row.uri), "[1]");
    // The same file gets the same name, so starting a run with it again starts the same run.
    assert_eq!(
        upload(&project, &file("a.json"), b"[1]")
            .expect("stored")
            .uri,
        row.uri
    );
    let large = upload(&project, &file("a.json"), b"123456").expect_err("too large");
    assert_eq!(
        large,
        "E0941 the file cannot be stored: it has more than 5 bytes (`:max-upload`)"
    );
    for bad in ["", "..", "a/b", "a\nb"] {
        let error = upload(&project, &file(bad), b"x").expect_err("no name");
        assert!(error.starts_with("E0941 "), "{error}");
    }
}

#[test]
fn stable_targets() {
    let project = Project::new();
    let target = |name: &str, folder: &str, replace| Upload {
        folder: Some(folder.to_owned()),
        replace,
        ..file(name)
    };
    let row = upload(&project, &target("may.csv", "reports/2026", false), b"1").expect("stored");
    assert_eq!(row.uri, "res://v1/ws/local/file/reports/2026/may.csv");
    let again = upload(&project, &target("may.csv", "reports/2026", false), b"2");
    assert_eq!(
        again.expect_err("taken"),
        "E0939 there is a file `may.csv` in the folder `reports/2026` already"
    );
    let replaced =
        upload(&project, &target("may.csv", "reports/2026", true), b"2").expect("stored");
    assert_eq!(
        (replaced.uri.as_str(), loaded(&project, &row.uri).as_str()),
        (row.uri.as_str(), "\"2\"")
    );
    for bad in ["..", "a/../b", "a//b", ""] {
        let error = upload(&project, &target("x", bad, false), b"x").expect_err("no folder");
        assert!(error.starts_with("E0941 "), "{bad}: {error}");
    }
}

#[test]
fn signed_urls() {
    let unserved = Project::new();
    let uri = blob(&unserved);
    let refused = unserved.block_on(unserved.engine.link(&uri, 3_600));
    assert_eq!(refused.expect_err("no server is known").code(), "E1073");
    let project = Project::with("{:server {:url \"https://flows.example.com\"}}");
    let uri = blob(&project);
    let link = |ttl| {
        project
            .block_on(project.engine.link(&uri, ttl))
            .expect("a link")
    };
    let (url, end) = link(3_600);
    assert_eq!(end, START + 3_600_000);
    let check = || {
        project
            .block_on(project.engine.check_link(&url))
            .map(|(row, _)| row.uri)
    };
    assert_eq!(check().expect("good"), uri);
    let forged = url.replace("expires=1", "expires=2");
    let refused = project.block_on(project.engine.check_link(&forged));
    assert_eq!(refused.expect_err("forged").code(), "E0940");
    project
        .block_on(project.engine.delete_resource(&uri, false))
        .expect("deleted");
    assert_eq!(check().expect_err("gone").code(), "E0937");
    project.clock.advance(3_600_000);
    assert_eq!(check().expect_err("over").code(), "E0940");
    let tree = tree(&project);
    assert!(project.block_on(project.engine.link(&tree, 60)).is_ok());
}

#[test]
fn search_index_show() {
    let project = Project::new();
    let uri = text(
        &project,
        "(:uri (flow/step :function :make {:code '(fn [_] 1) :persist {:type :blob :search-index {:text \"x\" :tags [:a] :source-label \"L\"}}}))",
    );
    let entry = SearchEntry {
        text: Some("x".into()),
        tags: vec!["a".into()],
        source_label: Some("L".into()),
        ..SearchEntry::default()
    };
    assert_eq!(found(&project, &uri).search, Some(entry));
}

#[test]
fn search_index_update() {
    let project = Project::new();
    let uri = blob(&project);
    let entry = SearchEntry {
        tags: vec!["may".into()],
        ..SearchEntry::default()
    };
    let done = project.block_on(project.engine.describe_resource(&uri, Some(entry.clone())));
    assert_eq!(done.expect("described").search, Some(entry.clone()));
    project.eval("(flow/step :kv :it {:operation :set :key \"k\" :value 1})");
    let key = project.block_on(project.engine.describe_resource("result/kv/k", Some(entry)));
    assert_eq!(key.expect_err("no entry of its own").code(), "E0942");
}

#[test]
fn search_index_clear() {
    let project = Project::new();
    let uri = blob(&project);
    let describe = |entry| project.block_on(project.engine.describe_resource(&uri, entry));
    describe(Some(SearchEntry::default())).expect("described");
    assert_eq!(describe(None).expect("cleared").search, None);
}

#[test]
fn unusual_path() {
    let project = Project::new();
    project.eval("(flow/step :function :rows {:code '(fn [_] [{:n 1}]) :persist {:type :table :table \"incidents\"}})");
    let uri = "res://v1/ws/ws-acme/bundle/resource/table/incidents";
    assert_eq!(found(&project, uri).name.as_deref(), Some("incidents"));
    let rows = project.eval(&format!(
        "(:rows (flow/step :table :q {{:op :query :table \"{uri}\"}}))"
    ));
    assert!(rows.contains(":n 1"), "{rows}");
}
