//! `flowstone check --fix`, and the changes that findings carry.

use expect_test::expect;

use crate::program::Scratch;

/// Has a flow fixed, and compares the text.
#[track_caller]
fn fixed(flow: &str, expected: &str) {
    let scratch = Scratch::new();
    scratch.write("a.edn", flow);
    let ran = scratch.run(&["check", "--fix", "a.edn"]);
    assert_eq!(scratch.read("a.edn"), expected, "{}", ran.err);
}

/// A flow with this body.
fn with(body: &str) -> String {
    format!("{{:slug :a :flow '(do {body})}}")
}

#[track_caller]
fn body(before: &str, after: &str) {
    fixed(&with(before), &with(after));
}

#[test]
fn misspelt_keys_and_names_are_respelt() {
    fixed(
        "{:slug :a ; the name\n :functons [{:id :go  :code '(fn [x] x)}]\n :flow '(flow/step :function :f {:reff :go, :titel \"é\"})}\n",
        "{:slug :a ; the name\n :functions [{:id :go  :code '(fn [x] x)}]\n :flow '(flow/step :function :f {:ref :go, :title \"é\"})}\n",
    );
    body(
        "(flow/step :files :read {:op :serach :query \"x\" :source {:type :dir :path \".\"}})",
        "(flow/step :files :read {:op :search :query \"x\" :source {:type :dir :path \".\"}})",
    );
    body(
        "(flow/step :http :get {:url \"https://example.com\" :method :delte :retry {:max-attemps 2}})",
        "(flow/step :http :get {:url \"https://example.com\" :method :delete :retry {:max-attempts 2}})",
    );
    body(
        "(flow/step :functoin :f {:code '(fn [x] x)})",
        "(flow/step :function :f {:code '(fn [x] x)})",
    );
    body("(flow/log :wran \"x\")", "(flow/log :warn \"x\")");
    body(
        "(flow/pmap {:on-eror :collect} inc [1])",
        "(flow/pmap {:on-error :collect} inc [1])",
    );
    fixed(
        "{:slug :a :flow '(flow/step :agent :x {:objective \"o\" :available-steps [:filse \"serach\"]})}",
        "{:slug :a :flow '(flow/step :agent :x {:objective \"o\" :available-steps [:files \"search\"]})}",
    );
}

#[test]
fn missing_quotes_and_namespaces_are_added() {
    fixed(
        "{:slug :a :flow (flow/input)}",
        "{:slug :a :flow '(flow/input)}",
    );
    fixed(
        "{\"slug\" :a :slug :a :flow '1}",
        "{\"slug\" :a :slug :a :flow '1}",
    );
    fixed(
        "{:slug :a \"name\" \"n\" :flow '1}",
        "{:slug :a :name \"n\" :flow '1}",
    );
    body(
        "(flow/step :code :f {:code (fn [x] x)})",
        "(flow/step :function :f {:code '(fn [x] x)})",
    );
    body(
        "[(str/join (s/split \"a b\" #\" \")) (upper-case \"a\")]",
        "[(str/join (clojure.string/split \"a b\" #\" \")) (clojure.string/upper-case \"a\")]",
    );
    // In code that is text.
    fixed(
        "{:slug :a :functions [{:id :f :code \"(fn [x] (str (upper-case \\\"é\\\") x))\"}] :flow '1}",
        "{:slug :a :functions [{:id :f :code \"(fn [x] (str (clojure.string/upper-case \\\"é\\\") x))\"}] :flow '1}",
    );
}

#[test]
fn delimiters_follow_the_indentation() {
    fixed(
        "{:slug :a\n :flow '(let [x (inc 1\n              y 2]\n          {:functon x})}\n",
        "{:slug :a\n :flow '(let [x (inc 1)\n              y 2]\n          {:functon x})}\n",
    );
    // The opening delimiter may be what is missing.
    let too_many = "{:slug :a\n :flow '(do flow/input))}\n";
    fixed(too_many, too_many);
}

#[test]
fn doubtful_changes_are_offered_and_not_made() {
    let flow = with("(let [total 1] (inc totl))");
    fixed(&flow, &flow);
    let scratch = Scratch::new();
    scratch.write("a.edn", &flow);
    let told = scratch.run(&["check", "--json", "a.edn"]).json();
    let changes = &told["findings"][0]["changes"];
    expect![[r#"[{"title":"write `total`","certain":false,"edits":[{"file":"a.edn","line":1,"column":42,"end_line":1,"end_column":46,"old":"totl","new":"total"}]}]"#]]
        .assert_eq(&changes.to_string());
    // The right key is there, too.
    let flow = with("(flow/step :wait :w {:timeot 5 :timeout 6})");
    fixed(&flow, &flow);
}

#[test]
fn a_dry_run_prints_a_patch() {
    let scratch = Scratch::new();
    let text = "{:slug :a\n :nmae \"n\"\n :flow '(flow/step :wait :w {:titel \"t\" :x 1})}\n";
    scratch.write("a.edn", text);
    let ran = scratch.run(&["check", "--fix", "--dry-run", "a.edn"]);
    assert_eq!(scratch.read("a.edn"), text);
    expect![[r#"
        --- a/a.edn
        +++ b/a.edn
        @@ -1,3 +1,3 @@
         {:slug :a
        - :nmae "n"
        - :flow '(flow/step :wait :w {:titel "t" :x 1})}
        + :name "n"
        + :flow '(flow/step :wait :w {:title "t" :x 1})}
    "#]]
    .assert_eq(&ran.out);
    for expected in [
        "a.edn:2:2: write `:name` (E0402)",
        "a.edn:3:30: write `:title` (E0710)",
        "2 changes to make; nothing was written",
        "a `:wait` step has no option `:x`",
    ] {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
    assert_eq!(ran.code, Some(1));
    let fixes = scratch.run(&["check", "--fix", "--json", "a.edn"]).json()["fixes"].clone();
    assert_eq!(fixes["written"], true);
    assert_eq!(fixes["changes"].as_array().map(Vec::len), Some(2));
    assert!(scratch.read("a.edn").contains(":title"));
    let again = scratch.run(&["check", "--fix", "a.edn"]);
    assert!(again.err.contains("no change is certain"), "{}", again.err);
}

#[test]
fn included_files_are_changed_and_links_stay() {
    let scratch = Scratch::new();
    scratch.write(
        "flows/parts/body.edn",
        "(flow/step :wait :w {:titel \"t\"})",
    );
    scratch.write(
        "flows/real.edn",
        "{:slug :a :naem \"n\" :flow '#flow/include \"parts/body.edn\"}",
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let real = scratch.path().join("flows/real.edn");
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).expect("a mode");
        symlink("real.edn", scratch.path().join("flows/link.edn")).expect("a link");
        let ran = scratch.run(&["check", "--fix", "flows/link.edn"]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let link = scratch.path().join("flows/link.edn");
        assert!(link.symlink_metadata().expect("a link").is_symlink());
        let mode = real.metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }
    #[cfg(not(unix))]
    scratch.run(&["check", "--fix", "flows/real.edn"]);
    assert!(scratch.read("flows/real.edn").contains(":name"));
    assert!(scratch.read("flows/parts/body.edn").contains(":title"));
}

#[test]
#[cfg(unix)]
fn a_file_that_cannot_be_written_is_reported() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = Scratch::new();
    scratch.write("flows/a.edn", "{:slug :a :naem \"n\" :flow '1}");
    let folder = scratch.path().join("flows");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).expect("a mode");
    // Permissions do not bind an administrator.
    let is_bound = std::fs::write(folder.join("probe"), "").is_err();
    let ran = scratch.run(&["check", "--fix", "flows/a.edn"]);
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    if is_bound {
        assert!(ran.err.contains("error[E1490]"), "{}", ran.err);
        assert_eq!(ran.code, Some(1));
    }
}

#[test]
fn a_server_refuses_to_fix() {
    let scratch = Scratch::new();
    scratch.write("a.edn", "{:slug :a :flow '1}");
    scratch.write("token", "secret");
    let server = ["--server", "http://127.0.0.1:9", "--token-file", "token"];
    let ran = scratch.run(&[&["check", "--fix", "a.edn"], &server[..]].concat());
    assert!(ran.err.contains("check --fix"), "{}", ran.err);
    assert_ne!(ran.code, Some(0));
}
